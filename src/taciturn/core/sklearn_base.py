"""scikit-learn's base classes, which have no types of their own: mypy reads those stated here.

Without them every estimator would derive from ``Any``, and mypy would accept any argument and any attribute. Tools with
types for scikit-learn read those, since ``MYPY`` is true for mypy alone. Commands that read a model do without
scikit-learn (:mod:`taciturn.core.stand_ins`).
"""

from __future__ import annotations

from typing import Any, Self

from taciturn.core.stand_ins import are_wanted
from taciturn.core.validation import FloatArray

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "SelectorMixin",
    "TransformerMixin",
    "check_is_fitted",
    "is_classifier",
    "is_regressor",
]

MYPY = False

if MYPY:

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: Any

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __sklearn_clone__(self) -> Any: ...
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def _repr_html_inner(self) -> str: ...
        def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]: ...

    class ClassifierMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray | Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class OneToOneFeatureMixin:
        def get_feature_names_out(self, input_features: Any = None) -> Any: ...

    class SelectorMixin(TransformerMixin):
        def get_support(self, indices: bool = False) -> Any: ...
        def transform(self, X: Any) -> Any: ...
        def inverse_transform(self, X: Any) -> Any: ...
        def get_feature_names_out(self, input_features: Any = None) -> Any: ...

    def check_is_fitted(estimator: object, attributes: str | None = None) -> None: ...
    def is_classifier(estimator: object) -> bool: ...
    def is_regressor(estimator: object) -> bool: ...

elif are_wanted():
    from taciturn.core.stand_ins import (
        BaseEstimator,
        ClassifierMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        SelectorMixin,
        TransformerMixin,
        check_is_fitted,
        is_classifier,
        is_regressor,
    )

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
        is_classifier,
        is_regressor,
    )
    from sklearn.utils.validation import check_is_fitted

    def __getattr__(name: str) -> Any:
        # Models do without scikit-learn's selectors, which import its metrics.
        if name != "SelectorMixin":
            raise AttributeError(name)
        from sklearn.feature_selection import SelectorMixin

        return SelectorMixin
