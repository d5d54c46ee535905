"""What stands in for scikit-learn's base classes in a command that reads a model and neither fits nor predicts.

scikit-learn takes seconds to import, longer than the rest of such a command. The stand-ins hold parameters and check
whether attributes are set; nothing else of scikit-learn is needed to read a model file and to check it.
"""

from __future__ import annotations

import sys
from inspect import signature
from typing import Any, Self

_wanted = False


def want_stand_ins() -> None:
    """Let this process do without scikit-learn. For the program alone, before any class is made."""
    global _wanted
    _wanted = True


def are_wanted() -> bool:
    """Whether classes are made without scikit-learn; never where it was imported already."""
    return _wanted and "sklearn" not in sys.modules


class BaseEstimator:
    """Parameters by their names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor and their values."""
        names = list(signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            setattr(self, name, value)
        return self


class ClassifierMixin:
    """Marks a classifier."""


class RegressorMixin:
    """Marks a regressor."""


class TransformerMixin:
    """Marks a transformer."""


class OneToOneFeatureMixin:
    """Marks a transformer that keeps all features."""


class SelectorMixin(TransformerMixin):
    """Marks a selector."""


def is_classifier(estimator: object) -> bool:
    """Whether an estimator predicts labels."""
    return isinstance(estimator, ClassifierMixin)


def is_regressor(estimator: object) -> bool:
    """Whether an estimator predicts numbers."""
    return isinstance(estimator, RegressorMixin)


def check_is_fitted(estimator: object, attributes: str | None = None) -> None:
    """Raise AttributeError for an estimator that is not fitted."""
    fitted = (name for name in vars(estimator) if name.endswith("_") and not name.startswith("__"))
    if not (any(fitted) if attributes is None else hasattr(estimator, attributes)):
        raise AttributeError(f"{type(estimator).__name__}: it is not fitted")
