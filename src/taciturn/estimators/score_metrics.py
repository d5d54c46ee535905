"""The metrics of private scores: which sums are released, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from taciturn.certificate import Certificate
from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.core.validation import check_choice
from taciturn.data.target import check_classes, check_y_bounds, label_codes, numeric_target
from taciturn.estimators.model_score import PrivateScore
from taciturn.estimators.score_histogram import ClassHistogram, NumberHistogram
from taciturn.fitting.score import OutcomeCounts, total_error
from taciturn.sources import Source

__all__ = ["AccuracyMetric", "ErrorMetric", "metric_of"]

LABEL_METRICS = ("accuracy", "balanced accuracy")
"""For classifiers."""

NUMBER_METRICS = {"mean squared error": 2, "mean absolute error": 1}
"""For regressors, with the power of the distance that is averaged."""


class MeanMetric:
    """The mean of terms between 0 and ``largest``."""

    name: str
    finest = 1
    counts = False
    n_values = 1
    largest = 1.0
    numeric = False
    # Of each record the mapped prediction is read, which an estimator computes from a whole table.
    outputs = None
    n_outputs = 1
    by_record = False

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix what is counted, by the number of records and the noise; whether that was left open."""
        return False

    def result(self, sums: FloatArray, n_rows: int, deviation: float, certificate: Certificate) -> PrivateScore:
        """The released score."""
        return PrivateScore(*self.score(sums, n_rows, deviation), self.name, certificate)

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        """The metric and the standard deviation of its noise."""
        return float(np.clip(sums[0] / n_rows, 0.0, 1.0)) * self.largest, deviation / n_rows * self.largest


class AccuracyMetric(MeanMetric):
    """The share of right labels."""

    name = "accuracy"
    what = "the accuracy of a model"

    def __init__(self, classes: AnyArray) -> None:
        self.classes = classes
        self.facts = {"classes": classes}

    def mapped(self, y: AnyArray) -> IntArray:
        """Class codes, -1 for labels that are none of the classes."""
        return label_codes(y, self.classes)

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        right, _ = source.total(OutcomeCounts(self.classes.size, term_bound)).sum(axis=0).tolist()
        return np.array([right])


class BalancedAccuracyMetric(AccuracyMetric):
    """The mean over classes of the share of right labels among the records of a class."""

    name = "balanced accuracy"
    what = "the numbers of right and wrong predictions in each class"
    counts = True

    def __init__(self, classes: AnyArray) -> None:
        super().__init__(classes)
        self.n_values = 2 * classes.size

    def sums(self, source: Source, term_bound: int) -> IntArray:
        return source.total(OutcomeCounts(self.classes.size, term_bound))

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        sizes = np.maximum(sums.sum(axis=1), 1.0)
        shares = np.clip(sums[:, 0] / sizes, 0.0, 1.0)
        # Of r and w, both with noise of deviation s, r / (r + w) deviates by s hypot(r, w) / (r + w)**2 to first order,
        # and a number in [0, 1] by no more than one half.
        spreads = np.minimum(deviation / sizes, 0.5)
        return float(shares.mean()), float(np.linalg.norm(spreads)) / sizes.size


class ErrorMetric(MeanMetric):
    """The mean of a power of the distance between target and prediction."""

    numeric = True

    def __init__(self, name: str, y_bounds: tuple[float, float]) -> None:
        self.name, self.power, self.y_bounds = name, NUMBER_METRICS[name], y_bounds
        self.what = f"the {name} of a model"
        self.finest = (2 * ONE) ** self.power
        self.facts = {"y_bounds": y_bounds}
        width = y_bounds[1] - y_bounds[0]
        # A product overflows to infinity, where a power would raise.
        self.largest = width * width if self.power == 2 else width
        if not 0.0 < self.largest < np.inf:
            raise ParameterError(
                "y_bounds",
                y_bounds,
                f"bounds between which the {name} is a positive finite number",
                "fit the model to a target in other units",
            )

    def mapped(self, y: AnyArray) -> FloatArray:
        """Numbers on the lattice, clipped to the bounds."""
        return numeric_target(y, self.y_bounds)

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        return total_error(source, self.power, term_bound)


def metric_of(estimator: Any, metric: str) -> AccuracyMetric | ErrorMetric | ClassHistogram | NumberHistogram:
    """The metric, with what it takes from the model."""
    kind = type(estimator).__name__
    whole = all(hasattr(estimator, name) for name in ("fit", "predict", "__sklearn_tags__"))
    if not whole or not (is_classifier(estimator) or is_regressor(estimator)):
        raise ParameterError(
            "estimator", kind, "a fitted classifier or regressor, or a pipeline that ends in one", "pass one"
        )
    check_is_fitted(estimator)
    if is_classifier(estimator):
        name = check_choice(("auto", *LABEL_METRICS, "all"), metric=metric)
        classes = check_classes(estimator.classes_)
        if name == "all":
            return ClassHistogram(estimator, classes)
        kind_of_metric = BalancedAccuracyMetric if name == "balanced accuracy" else AccuracyMetric
        return kind_of_metric(classes)
    name = check_choice(("auto", *NUMBER_METRICS, "all"), metric=metric)
    if name == "all":
        # Its squared error has to be a number too.
        return NumberHistogram(estimator, ErrorMetric("mean squared error", _bounds_of(estimator)).y_bounds)
    return ErrorMetric("mean squared error" if name == "auto" else name, _bounds_of(estimator))


def _bounds_of(estimator: Any) -> tuple[float, float]:
    """The public range of the target, as the certificate of a fit states it or else as a parameter."""
    model = estimator
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    certificate = getattr(model, "certificate_", None)
    stated: Mapping[str, Any] = certificate.public if isinstance(certificate, Certificate) else {}
    y_bounds = stated.get("y_bounds", getattr(model, "y_bounds", None))
    if y_bounds is None:
        raise ParameterError(
            "estimator",
            type(model).__name__,
            "a regressor with public y_bounds, between which errors are bounded",
            "fit one of taciturn's, or give this one an attribute y_bounds=(low, high)",
        )
    return check_y_bounds(y_bounds)
