"""Sparse linear models and feature selection under differential privacy.

*A model that says little: few coefficients, and nothing about any one person.*

Every name in this namespace carries a guarantee that is proved. Fitted objects have a ``certificate_`` that
says what was released, at what cost, and under which assumptions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taciturn._version import __version__

if TYPE_CHECKING:
    from taciturn.accounting import Budget
    from taciturn.certificate import Certificate, certificate_of, compose
    from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnError, WeakBudgetWarning
    from taciturn.estimators import (
        ADMMClassifier,
        FrankWolfeClassifier,
        FrankWolfeRegressor,
        HardThresholdClassifier,
        HardThresholdRegressor,
        ObjectivePerturbationClassifier,
        ObjectivePerturbationRegressor,
        ScreenedClassifier,
        ScreenedRegressor,
        SparseClassifier,
        SparseRegressor,
        SparsifiedClassifier,
        SparsifiedRegressor,
        TwoStageClassifier,
        TwoStageRegressor,
        private_score,
    )
    from taciturn.modelfile import load
    from taciturn.scalers import BoundedScaler, PrivateScaler
    from taciturn.selectors import BlockVoteSelector, CorrelationSelector, KendallSelector

# Loaded on first use, so that importing the package costs next to nothing.
_HOMES = {
    "ADMMClassifier": "taciturn.estimators",
    "BlockVoteSelector": "taciturn.selectors",
    "BoundedScaler": "taciturn.scalers",
    "Budget": "taciturn.accounting",
    "Certificate": "taciturn.certificate",
    "CertificateError": "taciturn.core.errors",
    "CorrelationSelector": "taciturn.selectors",
    "DataError": "taciturn.core.errors",
    "FrankWolfeClassifier": "taciturn.estimators",
    "FrankWolfeRegressor": "taciturn.estimators",
    "HardThresholdClassifier": "taciturn.estimators",
    "HardThresholdRegressor": "taciturn.estimators",
    "KendallSelector": "taciturn.selectors",
    "ObjectivePerturbationClassifier": "taciturn.estimators",
    "ObjectivePerturbationRegressor": "taciturn.estimators",
    "ParameterError": "taciturn.core.errors",
    "PrivateScaler": "taciturn.scalers",
    "ScreenedClassifier": "taciturn.estimators",
    "ScreenedRegressor": "taciturn.estimators",
    "SparseClassifier": "taciturn.estimators",
    "SparseRegressor": "taciturn.estimators",
    "SparsifiedClassifier": "taciturn.estimators",
    "SparsifiedRegressor": "taciturn.estimators",
    "TaciturnError": "taciturn.core.errors",
    "TwoStageClassifier": "taciturn.estimators",
    "TwoStageRegressor": "taciturn.estimators",
    "WeakBudgetWarning": "taciturn.core.errors",
    "certificate_of": "taciturn.certificate",
    "compose": "taciturn.certificate",
    "load": "taciturn.modelfile",
    "private_score": "taciturn.estimators",
}

__all__ = [
    "ADMMClassifier",
    "BlockVoteSelector",
    "BoundedScaler",
    "Budget",
    "Certificate",
    "CertificateError",
    "CorrelationSelector",
    "DataError",
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "HardThresholdClassifier",
    "HardThresholdRegressor",
    "KendallSelector",
    "ObjectivePerturbationClassifier",
    "ObjectivePerturbationRegressor",
    "ParameterError",
    "PrivateScaler",
    "ScreenedClassifier",
    "ScreenedRegressor",
    "SparseClassifier",
    "SparseRegressor",
    "SparsifiedClassifier",
    "SparsifiedRegressor",
    "TaciturnError",
    "TwoStageClassifier",
    "TwoStageRegressor",
    "WeakBudgetWarning",
    "__version__",
    "certificate_of",
    "compose",
    "load",
    "private_score",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'taciturn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
