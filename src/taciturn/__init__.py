"""Sparse linear models and feature selection under differential privacy.

*Few coefficients, and a proven limit on what they reveal about any one person.*

Every name in this namespace carries a guarantee that is proved. Fitted objects have a ``certificate_`` that
says what was released, at what cost, and under which assumptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn._version import __version__
from taciturn.core.lazy import lazy_names

if TYPE_CHECKING:
    from taciturn.accounting import Budget
    from taciturn.accounts import Account
    from taciturn.certificate import Certificate, certificate_of, compose
    from taciturn.core.errors import (
        AccountError,
        AccountWarning,
        BudgetExceededError,
        CertificateError,
        DataError,
        DefaultBoundsWarning,
        ParameterError,
        SuspiciousReleaseWarning,
        TaciturnError,
        UnaccountedSearchWarning,
        WeakBudgetWarning,
        WeakGuaranteeWarning,
    )
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
    from taciturn.sources import open_table

# Loaded on first use, so that importing the package costs next to nothing.
_HOMES = {
    "ADMMClassifier": "estimators",
    "Account": "accounts",
    "AccountError": "core.errors",
    "AccountWarning": "core.errors",
    "BlockVoteSelector": "selectors",
    "BoundedScaler": "scalers",
    "Budget": "accounting",
    "BudgetExceededError": "core.errors",
    "Certificate": "certificate",
    "CertificateError": "core.errors",
    "CorrelationSelector": "selectors",
    "DataError": "core.errors",
    "DefaultBoundsWarning": "core.errors",
    "FrankWolfeClassifier": "estimators",
    "FrankWolfeRegressor": "estimators",
    "HardThresholdClassifier": "estimators",
    "HardThresholdRegressor": "estimators",
    "KendallSelector": "selectors",
    "ObjectivePerturbationClassifier": "estimators",
    "ObjectivePerturbationRegressor": "estimators",
    "ParameterError": "core.errors",
    "PrivateScaler": "scalers",
    "ScreenedClassifier": "estimators",
    "ScreenedRegressor": "estimators",
    "SparseClassifier": "estimators",
    "SparseRegressor": "estimators",
    "SparsifiedClassifier": "estimators",
    "SparsifiedRegressor": "estimators",
    "SuspiciousReleaseWarning": "core.errors",
    "TaciturnError": "core.errors",
    "TwoStageClassifier": "estimators",
    "TwoStageRegressor": "estimators",
    "UnaccountedSearchWarning": "core.errors",
    "WeakBudgetWarning": "core.errors",
    "WeakGuaranteeWarning": "core.errors",
    "certificate_of": "certificate",
    "compose": "certificate",
    "load": "modelfile",
    "open_table": "sources",
    "private_score": "estimators",
}

__all__ = [
    "ADMMClassifier",
    "Account",
    "AccountError",
    "AccountWarning",
    "BlockVoteSelector",
    "BoundedScaler",
    "Budget",
    "BudgetExceededError",
    "Certificate",
    "CertificateError",
    "CorrelationSelector",
    "DataError",
    "DefaultBoundsWarning",
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
    "SuspiciousReleaseWarning",
    "TaciturnError",
    "TwoStageClassifier",
    "TwoStageRegressor",
    "UnaccountedSearchWarning",
    "WeakBudgetWarning",
    "WeakGuaranteeWarning",
    "__version__",
    "certificate_of",
    "compose",
    "load",
    "open_table",
    "private_score",
]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
