"""Private linear models in scikit-learn's shape."""

from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.estimators.screened import ScreenedClassifier, ScreenedRegressor
from taciturn.estimators.sparsified import SparsifiedClassifier, SparsifiedRegressor

__all__ = [
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "ScreenedClassifier",
    "ScreenedRegressor",
    "SparsifiedClassifier",
    "SparsifiedRegressor",
]
