"""Private linear models in scikit-learn's shape."""

from taciturn.estimators.admm import ADMMClassifier
from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.estimators.hard_threshold import HardThresholdRegressor
from taciturn.estimators.hard_threshold_classifier import HardThresholdClassifier
from taciturn.estimators.objective_perturbation import ObjectivePerturbationClassifier, ObjectivePerturbationRegressor
from taciturn.estimators.scoring import private_score
from taciturn.estimators.screened import ScreenedClassifier, ScreenedRegressor
from taciturn.estimators.sparse import SparseRegressor
from taciturn.estimators.sparse_classifier import SparseClassifier
from taciturn.estimators.sparsified import SparsifiedClassifier, SparsifiedRegressor
from taciturn.estimators.two_stage import TwoStageClassifier, TwoStageRegressor

__all__ = [
    "ADMMClassifier",
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "HardThresholdClassifier",
    "HardThresholdRegressor",
    "ObjectivePerturbationClassifier",
    "ObjectivePerturbationRegressor",
    "ScreenedClassifier",
    "ScreenedRegressor",
    "SparseClassifier",
    "SparseRegressor",
    "SparsifiedClassifier",
    "SparsifiedRegressor",
    "TwoStageClassifier",
    "TwoStageRegressor",
    "private_score",
]
