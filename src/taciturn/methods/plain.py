"""Fitted linear models as plain estimators of scikit-learn, which other programs read and convert."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from taciturn.core.sklearn_base import is_classifier
from taciturn.core.validation import FloatArray


class Response(NamedTuple):
    """How margins become predictions: clipped to a range, then with a log link their exponential."""

    range: tuple[float, float] | None = None
    log_link: bool = False


def plain_model(model: Any, response: Response) -> Any:
    """A fitted estimator of scikit-learn with the coefficients of a model, and its predictions.

    No estimator of scikit-learn clips what it predicts. So a regression with a public range becomes a pipeline: a
    projection on the coefficients (TruncatedSVD), which gives margins less the intercept, a QuantileTransformer with
    two quantiles, which is the line between the ends of the range and constant beyond, and a model of that one feature,
    which goes back to the range and applies the link. A MinMaxScaler with ``clip`` would be shorter, but converters to
    PMML leave its clip out.
    """
    # Here rather than above: a fit should not cost their import.
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.pipeline import Pipeline

    stored = model.coef_
    weights = np.atleast_2d(np.array(stored.toarray() if hasattr(stored, "toarray") else stored, dtype=np.float64))
    intercepts = np.array(np.atleast_1d(model.intercept_), dtype=np.float64)
    if is_classifier(model):
        labels = np.array(model.classes_.tolist())
        if labels.size == len(weights) == 2:
            # scikit-learn has one row for two classes.
            weights, intercepts = weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
        made = LogisticRegression().fit(np.zeros((labels.size, 1)), labels)
        return _named(model, _changed(made, coef_=weights, intercept_=intercepts))
    if response.range is None:
        made = LinearRegression().fit(_NOTHING, _ONES)
        return _named(model, _changed(made, coef_=weights[0], intercept_=float(intercepts[0])))
    low, high = (min(end, _LARGEST_MARGIN) if response.log_link else end for end in response.range)
    last = (PoissonRegressor() if response.log_link else LinearRegression()).fit(_NOTHING, _ONES)
    return Pipeline(
        [
            ("margin", _named(model, _projection(weights))),
            ("clip", _clip(low - intercepts, high - intercepts)),
            ("predict", _changed(last, coef_=np.array([high - low]), intercept_=low)),
        ]
    )


# The largest logarithm of a mean where there is no upper end: other programs compute in single precision.
_LARGEST_MARGIN = 80.0

# Estimators are fitted to constants first, so that they have whatever their version of scikit-learn needs.
_NOTHING, _ONES = np.zeros((2, 1)), np.ones(2)


def _changed(estimator: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


def _named(model: Any, estimator: Any) -> Any:
    """The estimator with the number of features of the model, and with their names if the model knows them."""
    estimator.n_features_in_ = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    return estimator if names is None else _changed(estimator, feature_names_in_=np.array(names, dtype=object))


def _projection(weights: FloatArray) -> Any:
    from sklearn.decomposition import TruncatedSVD

    made = TruncatedSVD(n_components=1).fit(np.eye(2))
    return _changed(made, components_=weights)


def _clip(low: FloatArray, high: FloatArray) -> Any:
    from sklearn.preprocessing import QuantileTransformer

    # Two quantiles: linear between them, and constant beyond.
    return QuantileTransformer(n_quantiles=2).fit([low, high])
