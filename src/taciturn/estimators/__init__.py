"""Private linear models in scikit-learn's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.core.lazy import lazy_names

if TYPE_CHECKING:
    from taciturn.estimators.admm import ADMMClassifier
    from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeRegressor
    from taciturn.estimators.hard_threshold import HardThresholdClassifier, HardThresholdRegressor
    from taciturn.estimators.objective_perturbation import (
        ObjectivePerturbationClassifier,
        ObjectivePerturbationRegressor,
    )
    from taciturn.estimators.scoring import private_score
    from taciturn.estimators.screened import ScreenedClassifier, ScreenedRegressor
    from taciturn.estimators.sparse import SparseClassifier, SparseRegressor
    from taciturn.estimators.sparsified import SparsifiedClassifier, SparsifiedRegressor
    from taciturn.estimators.two_stage import TwoStageClassifier, TwoStageRegressor

# Loaded on first use: whoever needs one estimator does not import the others.
_HOMES = {
    "ADMMClassifier": "admm",
    "FrankWolfeClassifier": "frank_wolfe",
    "FrankWolfeRegressor": "frank_wolfe",
    "HardThresholdClassifier": "hard_threshold",
    "HardThresholdRegressor": "hard_threshold",
    "ObjectivePerturbationClassifier": "objective_perturbation",
    "ObjectivePerturbationRegressor": "objective_perturbation",
    "ScreenedClassifier": "screened",
    "ScreenedRegressor": "screened",
    "SparseClassifier": "sparse",
    "SparseRegressor": "sparse",
    "SparsifiedClassifier": "sparsified",
    "SparsifiedRegressor": "sparsified",
    "TwoStageClassifier": "two_stage",
    "TwoStageRegressor": "two_stage",
    "private_score": "scoring",
}

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

__getattr__ = lazy_names(__name__, _HOMES)
