"""The function private_score and what it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, overload

import numpy as np

from taciturn.core.errors import DataError, ParameterError, TaciturnError, log_phase
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import check_is_fitted, is_classifier, is_regressor
from taciturn.core.validation import (
    DIFFERENT_LENGTHS,
    NO_RECORDS,
    NOT_ONE_COLUMN,
    ONE,
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    Invalid,
    NumberArray,
    check_choice,
    check_integer,
    without_data_values,
)
from taciturn.data.persons import PERSON_WEIGHT
from taciturn.data.records import (
    Records,
    admission_assumptions,
    blanked,
    check_lengths,
    checked_layout,
    count_rows,
    finite_rows,
    read_judged_table,
    read_table,
    read_target,
)
from taciturn.data.sensitivity import Relation, check_public_count, public_rows
from taciturn.data.target import (
    DEFAULT_Y_BOUNDS,
    ClassCells,
    ErrorCells,
    LabelMap,
    MarginCells,
    MeanCells,
    NumberMap,
    check_classes,
    check_y_bounds,
    label_codes,
    margin_edges,
    numeric_target,
)
from taciturn.engines.interface import ArraySource, BlockBuilder, OpenTable, Source, is_open, open_arguments
from taciturn.methods.base import (
    ESTIMAND,
    LinearPredictor,
    Persons,
    PublicFacts,
    check_common_parameters,
    person_facts,
    reserve_cost,
)
from taciturn.methods.diagnostics import REMARKS, diagnose_counts, warn_of_scored_labels
from taciturn.methods.families import family_of
from taciturn.methods.options import SingleMetric
from taciturn.methods.scores import run
from taciturn.methods.scores.plan import count_bins, plan_score
from taciturn.methods.scores.run import release_sums
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import Certificate, certify, in_short
from taciturn.privacy.claim import Release

# ---- What a score releases: one number, or one histogram and all measures that are made of it.


@dataclass(frozen=True, slots=True)
class PrivateScore:
    """A released score.

    Parameters
    ----------
    value : float
        The noisy metric, clipped to the range that the metric has.
    std : float
        Standard deviation of the noise in the units of the metric, before clipping: a public fact. For balanced
        accuracy, which divides by noisy sizes of classes, an upper estimate from these.
    metric : str
        Which one.
    certificate : Certificate
        The privacy statement of this release.
    """

    value: float
    std: float
    metric: str
    certificate: Certificate


@dataclass(frozen=True)
class ModelScore:
    """Measures of a model on private records, each with an interval and beside its baseline.

    All of them are computed from ``counts``, which was released once, and from public facts: whoever has these can
    compute them again.

    Parameters
    ----------
    cells : MarginCells or ClassCells or ErrorCells or MeanCells
        The public cells of prediction and truth.
    counts : tuple of float
        The released numbers of records in them.
    std : float
        Standard deviation of the noise on each: a public fact.
    labels : tuple
        The classes; empty for numbers.
    certificate : Certificate
        The privacy statement of the release.
    """

    cells: MarginCells | ClassCells | ErrorCells | MeanCells
    counts: tuple[float, ...]
    std: float
    labels: tuple[Any, ...]
    certificate: Certificate

    metric = "all"
    confidence_level = run.CONFIDENCE_LEVEL

    def __hash__(self) -> int:
        return hash((self.cells, self.counts))

    @property
    def _released(self) -> FloatArray:
        return np.array(self.counts)

    @cached_property
    def measures(self) -> tuple[run.Measure, ...]:
        """AUC, log loss, accuracy, calibration of two classes; R2 and errors of numbers; D2 and deviance of means."""
        if isinstance(self.cells, MeanCells):
            return run.measure_means(self.cells, self._released, self.std)
        if isinstance(self.cells, MarginCells):
            return run.measure_margins(self.cells, self._released, self.std)
        if isinstance(self.cells, ClassCells):
            return run.measure_classes(self.cells, self._released, self.std)
        return run.measure_errors(self.cells, self._released, self.std)

    @cached_property
    def calibration(self) -> tuple[run.CalibrationBin, ...]:
        """How often the second class occurs, by tenths of its predicted probability, or means of targets by prediction.

        Empty but for two classes and for means under a log link.
        """
        if isinstance(self.cells, MeanCells):
            return run.calibrate_means(self.cells, self._released, self.std)
        return (
            run.calibrate_deciles(self.cells, self._released, self.std) if isinstance(self.cells, MarginCells) else ()
        )

    @cached_property
    def roc(self) -> tuple[tuple[float, float], ...]:
        """False and true positive rates; empty but for two classes."""
        return run.roc_curve(self.cells, self._released) if isinstance(self.cells, MarginCells) else ()

    @cached_property
    def recalls(self) -> tuple[run.ClassRecall, ...]:
        """The share of right predictions by class; empty but for more than two classes."""
        return run.class_recalls(self.cells, self._released, self.std) if isinstance(self.cells, ClassCells) else ()

    def __getitem__(self, name: str) -> run.Measure:
        """The measure of this name."""
        return {found.name: found for found in self.measures}[name]

    def __str__(self) -> str:
        head = f"{'measure':<26}{'value':>10}{'lower':>10}{'upper':>10}{'baseline':>10}"
        rows = (
            f"{each.name:<26}{each.value:>10.4g}{each.lower:>10.4g}{each.upper:>10.4g}{each.baseline:>10.4g}"
            for each in self.measures
        )
        return "\n".join((head, *rows, f"intervals at {100 * self.confidence_level:g}%; {self._noise}"))

    @property
    def _noise(self) -> str:
        if self.std == 0.0:
            return "without noise, and not private"
        return f"epsilon {self.certificate.epsilon:g}, delta {self.certificate.delta:g}, {self.certificate.relation}"


# ---- The metrics: which sums over records are released, and what is made of them.

_MOST_ODDS = 10**15
# Margins of most rows are within so many times the norm of the coefficients: entries of rows are at most the bound.
_REACH = 2.0


class Metric:
    """What a score reads of each record, which sums it releases, and what is made of these.

    ``classes`` are the public labels of a classifier, None for a regressor, whose target has public ``y_bounds``.
    """

    name: str
    what: str
    finest = 1
    """The integer that stands for a term of one."""
    counts = False
    """Whether numbers of records in cells are released, and not a sum of terms."""
    n_outputs: int | None = 1
    """How many numbers :meth:`outputs` makes of a record; None for its features."""
    linear: run.LinearOutputs | None = None
    """Makes predictions of features, each of one record alone to the last bit and in any place."""

    def __init__(
        self, estimator: Any, classes: AnyArray | None = None, y_bounds: tuple[float, float] = DEFAULT_Y_BOUNDS
    ) -> None:
        self.estimator, self.numeric, self.y_bounds = estimator, classes is None, y_bounds
        self.classes: AnyArray = np.zeros(0) if classes is None else classes

    @property
    def n_values(self) -> int:
        """How many numbers are released."""
        return 1

    @property
    def facts(self) -> dict[str, Any]:
        """Public facts for the certificate."""
        return {"y_bounds": self.y_bounds} if self.numeric else {"classes": self.classes}

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix what is counted, by the number of records and the noise; whether that was left open."""
        return False

    def mapped(self, y: AnyArray) -> NumberArray:
        """Numbers on the lattice, clipped to the bounds, or class codes, -1 for labels that are none of the classes."""
        return numeric_target(y, self.y_bounds) if self.numeric else label_codes(y, self.classes)

    def outputs(self, X: Any) -> Any:
        """One row of numbers for each record: the mapped prediction, computed from the whole table."""
        from sklearn.utils import column_or_1d

        predictions = np.asarray(column_or_1d(self.estimator.predict(X)))
        return self.mapped(predictions.astype(np.float64) if self.numeric else predictions)[:, None]

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        raise NotImplementedError

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        """The metric and the standard deviation of its noise."""
        return float(np.clip(sums[0] / n_rows, 0.0, 1.0)), deviation / n_rows

    def result(self, sums: FloatArray, n_rows: int, deviation: float, certificate: Certificate) -> Any:
        """The released score."""
        return PrivateScore(*self.score(sums, n_rows, deviation), self.name, certificate)


class Accuracy(Metric):
    """The share of right labels."""

    name = "accuracy"
    what = "the accuracy of a model"

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """The number of right predictions."""
        by_outcome: IntArray = source.total(run.OutcomeCounts(self.classes.size, term_bound)).sum(axis=0)
        return by_outcome[:1]


class BalancedAccuracy(Metric):
    """The mean over classes of the share of right labels among the records of a class."""

    name = "balanced accuracy"
    what = "the numbers of right and wrong predictions in each class"
    counts = True

    @property
    def n_values(self) -> int:
        """Two numbers for each class."""
        return 2 * self.classes.size

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """Numbers of right and wrong predictions in each class."""
        return source.total(run.OutcomeCounts(self.classes.size, term_bound))

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        """The balanced accuracy and the standard deviation of its noise."""
        sizes = np.maximum(sums.sum(axis=1), 1.0)
        shares = np.clip(sums[:, 0] / sizes, 0.0, 1.0)
        # Of r and w, both with noise of deviation s, r / (r + w) deviates by s hypot(r, w) / (r + w)**2 to first order,
        # and a number in [0, 1] by no more than one half.
        spreads = np.minimum(deviation / sizes, 0.5)
        return float(shares.mean()), float(np.linalg.norm(spreads)) / sizes.size


class MeanError(Metric):
    """The mean of a power of the distance between target and prediction."""

    def __init__(self, estimator: Any, name: str, y_bounds: tuple[float, float]) -> None:
        super().__init__(estimator, y_bounds=y_bounds)
        self.name, self.what, self.power = name, f"the {name} of a model", NUMBER_METRICS[name]
        self.finest = (2 * ONE) ** self.power
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

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """The sum of errors, of which the largest possible one is ``term_bound``."""
        return run.total_error(source, self.power, term_bound)

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        """The mean error and the standard deviation of its noise."""
        mean, spread = super().score(sums, n_rows, deviation)
        return mean * self.largest, spread * self.largest


class AllMeasures(Metric):
    """One histogram of predictions and truth, from the features of a linear model of ours or any model's outputs.

    Its cells are bins of predicted log-odds by class, or bins of the target by bins of the absolute error, or under a
    log link by bins of the prediction.
    """

    name = "all"
    counts = True
    cells: MarginCells | ClassCells | ErrorCells | MeanCells

    def __init__(
        self, estimator: Any, classes: AnyArray | None = None, y_bounds: tuple[float, float] = DEFAULT_Y_BOUNDS
    ) -> None:
        super().__init__(estimator, classes, y_bounds)
        self._family = family_of(_last_step(estimator))
        if not self.numeric and not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                "estimator",
                type(estimator).__name__,
                "a classifier with predict_proba where metric='all'",
                "use metric='accuracy'",
            )
        counted = "prediction and class"
        if self.numeric:
            counted = "prediction and target" if self._family.log_link else "target and error"
        self.what = f"numbers of records by {counted}"
        self.linear = run.LinearOutputs.of_model(estimator) if _is_linear(estimator) else None
        self.n_outputs = None if self.linear is not None else self.classes.size if self.classes.size > 2 else 1
        self.divide(1, math.inf)

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix the cells, of which there are more the more records there are and the less noise."""
        bins, n_classes = count_bins(n_records, deviation), int(self.classes.size)
        if self.numeric and self._family.log_link:
            power = self._family.deviance_power
            self.cells = MeanCells.of_bins(
                self.y_bounds, power, max(2, bins.numbers // 4 * 2), bins.numbers, self._reach
            )
        elif self.numeric:
            self.cells = ErrorCells.of_bins(self.y_bounds, bins.numbers, bins.errors)
        else:
            # Noise on a probability of next to nothing would be multiplied by its logarithm.
            edges = margin_edges(bins.probabilities, max(n_records, 1) if deviation > 0.0 else _MOST_ODDS)
            self.cells = MarginCells(edges) if n_classes == 2 else ClassCells(edges, n_classes)
        return True

    @property
    def _reach(self) -> tuple[float, float]:
        """Where predicted logarithms of most records are, by the public coefficients of a linear model."""
        if self.linear is None:
            return -math.inf, math.inf
        weights, bound = np.array(self.linear.weights)[:, 0], float(getattr(self.estimator, "_x_bound", 1.0))
        reach = bound * min(float(np.abs(weights).sum()), _REACH * float(np.linalg.norm(weights)))
        return self.linear.constants[0] - reach, self.linear.constants[0] + reach

    @property
    def n_values(self) -> int:
        """The number of cells."""
        return self.cells.n_cells

    @property
    def facts(self) -> dict[str, Any]:
        """Public facts for the certificate."""
        return super().facts | {"cells": self.n_values}

    def outputs(self, X: Any) -> Any:
        """Features of a linear model; or predicted numbers, log-odds of the second class, or logarithms of all."""
        if self.linear is not None:
            return read_table(self.estimator, X, reset=False)
        if self.numeric:
            predicted = np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(-1, 1)
            return np.log(predicted) if self._family.log_link else predicted
        probabilities = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        logarithms: FloatArray = np.log(probabilities.reshape(-1, self.classes.size))
        return logarithms[:, 1:] - logarithms[:, :1] if self.classes.size == 2 else logarithms

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """The numbers of records in cells."""
        return source.total(run.CellCounts(self.cells, term_bound, self.linear))

    def result(self, sums: FloatArray, n_rows: int, deviation: float, certificate: Certificate) -> ModelScore:
        """All measures."""
        return ModelScore(self.cells, tuple(sums.tolist()), deviation, tuple(self.classes.tolist()), certificate)


def _is_linear(estimator: Any) -> bool:
    """Whether predictions follow from coefficients, as those of our models do; a subclass may have its own."""
    if not isinstance(estimator, LinearPredictor):
        return False
    own = (
        getattr(type(estimator), name, None) for name in ("_margins", "decision_function", "predict_proba", "predict")
    )
    return all(method is None or method.__module__.startswith("taciturn.methods.") for method in own)


LABEL_METRICS: dict[str, type[Metric]] = {
    "auto": Accuracy,
    "accuracy": Accuracy,
    "balanced accuracy": BalancedAccuracy,
    "all": AllMeasures,
}
"""For classifiers."""

NUMBER_METRICS = {"mean squared error": 2, "mean absolute error": 1}
"""For regressors, with the power of the distance that is averaged."""


def metric_of(estimator: Any, metric: str) -> Metric:
    """The metric, with what it takes from the model."""
    whole = all(hasattr(estimator, name) for name in ("fit", "predict", "__sklearn_tags__"))
    if not whole or not (is_classifier(estimator) or is_regressor(estimator)):
        raise ParameterError(
            "estimator",
            type(estimator).__name__,
            "a fitted classifier or regressor, or a pipeline that ends in one",
            "pass one",
        )
    check_is_fitted(estimator)
    if is_classifier(estimator):
        return LABEL_METRICS[check_choice(tuple(LABEL_METRICS), metric=metric)](
            estimator, check_classes(estimator.classes_)
        )
    name = check_choice(("auto", *NUMBER_METRICS, "all"), metric=metric)
    # Of all measures the squared error has to be a number too.
    error = MeanError(estimator, name if name in NUMBER_METRICS else "mean squared error", _bounds_of(estimator))
    return AllMeasures(estimator, y_bounds=error.y_bounds) if name == "all" else error


def _last_step(estimator: Any) -> Any:
    """The model at the end of a pipeline."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def unfitted_metric(estimator: Any, metric: str, labels: AnyArray | None) -> Metric:
    """One measure of a model that is still to be fitted; labels are None for a regressor."""
    known = LABEL_METRICS if labels is not None else ("auto", *NUMBER_METRICS)
    name = check_choice(tuple(each for each in known if each != "all"), metric=metric)
    if labels is not None:
        return LABEL_METRICS[name](estimator, check_classes(labels.tolist()))
    return MeanError(estimator, "mean squared error" if name == "auto" else name, _bounds_of(estimator))


def _bounds_of(estimator: Any) -> tuple[float, float]:
    """The public range of the target, as the certificate of a fit states it or else as a parameter."""
    model = _last_step(estimator)
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


# ---- Records on which a fitted model is scored: what is known of its predictions, beside the true targets.


def read_source(
    asked: Metric, X: Any, y: Any, n_records: int, persons: Persons | None, *, invalid: str, relation: str
) -> Source:
    """The source of the records that are not null; workers on partitions get the coefficients of the model alone."""
    if isinstance(X, OpenTable):
        numbers = NumberMap(partial(numeric_target, y_bounds=asked.y_bounds))
        target = numbers if asked.numeric else LabelMap(asked.classes)
        builder = BlockBuilder(math.inf, invalid, target, asked.numeric, own_units=True)
        return X.read(_Nobody(), builder, n_records, persons)
    records = read_scored(asked, X, y, invalid=invalid, relation=relation)
    return ArraySource(records if persons is None else records.of_persons(persons()), math.inf, n_records)


class _Nobody:
    """Learns the names of the columns in the place of the model, which stays as it is."""


def read_scored(asked: Metric, X: Any, y: Any, *, invalid: str, relation: str) -> Records:
    """Outputs, in the columns of X, and mapped targets of the records that are not null."""
    table = read_judged_table(asked.estimator, X, reset=False) if invalid == "null" else None
    truth, present = read_target(y, invalid=invalid, numeric=asked.numeric)
    if table is None:
        if truth.size == 0 and relation != "add-remove":
            raise DataError(f"y: {NO_RECORDS}.")
        features = _computed(asked, checked_layout(X)) if truth.size else _nothing(asked)
        from sklearn.utils import check_consistent_length

        without_data_values("X or y", lambda: check_consistent_length(features, truth))
    else:
        if truth.size != table.shape[0]:
            raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
        if truth.size == 0 and relation != "add-remove":
            raise DataError(f"X: {NO_RECORDS}.")
        present = present & finite_rows(table)
        features = _compute_present(asked, table, present, relation)
    target, slots = asked.mapped(truth[present]), np.flatnonzero(present)
    records = Records(features, target, slots, present.size)
    return records if asked.numeric else records.keep(target >= 0)


def _compute_present(asked: Metric, table: Any, present: BoolArray, relation: str) -> Any:
    """What is computed of the records that are not null."""
    slots = np.flatnonzero(present)
    if slots.size == 0:
        return _nothing(asked)
    if relation == "add-remove":
        return _computed(asked, table[slots])
    # In their places, since products of matrices round by position.
    return _computed(asked, blanked(table, present))[slots]


def _nothing(asked: Metric) -> FloatArray:
    """What is computed of no records at all."""
    return np.zeros((0, asked.estimator.n_features_in_ if asked.n_outputs is None else asked.n_outputs))


def _computed(asked: Metric, X: Any) -> Any:
    """What a model says of a table; neither its errors nor its warnings, which may quote data, are passed on."""
    try:
        return guarded(without_data_values, silent=True)("X", lambda: asked.outputs(X))
    except TaciturnError:
        raise
    except Exception:
        failed = DataError(
            "X: expected records that the estimator can predict, and it failed; try it on made-up records of this form."
        )
    raise failed


def check_scored_table(asked: Metric, table: OpenTable, invalid: str) -> None:
    """Raise unless a metric can be made of sums over partitions and the table has the features of the model."""
    estimator = asked.estimator
    if not isinstance(asked, AllMeasures):
        raise ParameterError(
            "metric", asked.name, "'all' for a table in partitions: one histogram has every measure", "pass that"
        )
    if asked.linear is None:
        raise ParameterError(
            "estimator",
            type(estimator).__name__,
            "a linear model of taciturn for a table in partitions, whose workers get coefficients alone",
            "compute() the table, or read it into memory",
        )
    names = getattr(estimator, "feature_names_in_", None)
    same_names = names is None or table.names is None or list(names) == list(table.names)
    if table.n_features != estimator.n_features_in_ or not same_names:
        raise DataError("X: expected the features that the model was fitted to, got others; open the same columns.")
    if not table.has_target:
        raise DataError("y: a score requires y to be passed, but the target y is None.")
    if table.invalid is not None and table.invalid != invalid:
        raise ParameterError("invalid", invalid, f"{table.invalid!r}, with which the table was opened", "pass that")


# ---- How well a fitted model predicts private records, as a number that may be published.

_WHAT = "private_score"
_ASSUMPTIONS = (
    "the model, its bounds and its classes are public, or its own certificate is composed with this one",
    "each prediction depends on its own record alone",
)


@overload
def private_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    metric: Literal["all"],
    epsilon: float = ...,
    delta: float = ...,
    relation: Relation = ...,
    n_public: int | None = ...,
    invalid: Invalid = ...,
    account: Account | str | None = ...,
    persons: Any = ...,
    random_state: int | None = ...,
) -> ModelScore: ...


@overload
def private_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    metric: SingleMetric = ...,
    epsilon: float = ...,
    delta: float = ...,
    relation: Relation = ...,
    n_public: int | None = ...,
    invalid: Invalid = ...,
    account: Account | str | None = ...,
    persons: Any = ...,
    random_state: int | None = ...,
) -> PrivateScore: ...


@guarded
def private_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    metric: str = "auto",
    relation: Relation = "zero-out",
    n_public: int | None = None,
    invalid: Invalid = "raise",
    account: Account | str | None = None,
    persons: Any = None,
    random_state: int | None = None,
) -> PrivateScore | ModelScore:
    r"""Score a fitted model on private records, with noise.

    .. math:: \frac1n \sum_i 1[\hat y_i = y_i], \qquad
              \frac1K \sum_k \frac{\#\{i : \hat y_i = y_i = k\}}{\#\{i : y_i = k\}}, \qquad
              \frac1n \sum_i (\hat y_i - y_i)^2, \qquad \frac1n \sum_i |\hat y_i - y_i|

    are accuracy, balanced accuracy over K classes, mean squared and mean absolute error. Targets and predictions are
    clipped to the model's ``y_bounds`` and rounded to a lattice of :math:`2^{17}` steps. A record whose label is none
    of the model's classes is a null record: never right, but one of n; so is one whose label has another type. If
    released numbers of records by class say that almost no label is a class, a ``SuspiciousReleaseWarning`` says so. A
    prediction that is not a number is as wrong as can be.

    ``metric="all"`` releases one histogram, the numbers of records by prediction and truth in public cells, and makes
    every measure of it, with an interval and beside its baseline (a ``ModelScore``): AUC, log loss, accuracy and
    calibration for two classes; accuracy, balanced accuracy and log loss for more; R2, mean absolute and mean squared
    error for numbers; D2, the mean deviance and calibration for counts and amounts under a log link, where predictions
    far from all others count as the nearest of these. All of them together cost what one does.

    **Privacy.** (epsilon, 0)-DP under ``relation``, or (epsilon, delta)-DP where Gaussian noise deviates less. The sum,
    an integer, is released with two-sided geometric or rounded Gaussian noise (``data.sensitivity.error_sum``); for
    balanced accuracy the numbers of right and wrong predictions in each class are, and for all measures the numbers of
    records in cells (``outcome_counts``), of which each record is in one. All else is made of these. Public: the model,
    the number of records (``n_public`` under add-remove) and all parameters. A prediction has to depend on its own
    record alone. The steps of a pipeline are fitted already and only transform here, record by record, so that nothing
    is learned from these data; a step that looks at several rows at once, or at a state it keeps, would break this.
    Under add-remove, and where a person has several rows, rows change their places, which may change the last bits of
    predictions; the certificate then says "float64". It says "exact" for all measures of a model of taciturn, whose
    predictions are computed here record by record.

    A score on the records that the model was fitted to is a second release about them: ``compose`` the certificate with
    the model's. A score on the records of other people is a release about those people, and the model's certificate
    says nothing of them.

    Parameters
    ----------
    estimator : object
        A fitted classifier with ``classes_``, or a fitted regressor with ``y_bounds``, or a pipeline that ends in one.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), dask collection, or open table
        What the estimator predicts from. A table in partitions is scored by ``metric="all"``, for linear models.
    y : array-like of shape (n_samples,)
        True labels or numbers. None for an open table.
    epsilon : float, default=1.0
        Privacy budget of this score. ``float("inf")``: no noise, and no privacy.
    delta : float, default=0.0
        Probability with which the guarantee of epsilon may fail. Used only where it reduces the noise.
    metric : {"auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error", "all"}, \
default="auto"
        Accuracies are for classifiers, errors for regressors, "all" for both: every measure from one histogram; a
        classifier then needs ``predict_proba``. "auto": accuracy, or mean squared error. For balanced accuracy every
        class should have many more records than the deviation of the noise, 1.4 / epsilon (2.8 under replace-one);
        without noise a class that has no records counts as one that is always wrong.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        The neighbouring relation.
    n_public : int, default=None
        Public number of records, required under add-remove; sums are divided by it.
    invalid : {"raise", "null"}, default="raise"
        Treatment of records from which the model cannot predict, or without a usable target. "raise" refuses the score,
        which reveals that there is such a record. "null" makes them null records: never right, no error, but counted
        in n. X then has to be a table of numbers, and a cell that is no number makes its record null.
    account : Account or str, default=None
        The account that pays for the score, or where it is: ``"sqlite:///study.db#name"``. Give a delta then: the
        noise is Gaussian, and costs the account a fraction of what pure noise of the same epsilon does.
    persons : array-like of shape (n_samples,), default=None
        The key of the person that each row is about, where a person may have several rows: the guarantee is then for
        all rows of a person together, n is the number of persons, and each counts once, with the mean over its rows. A
        row without a key is a null row. None: every row is a record of its own.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only; the certificate then says
        that the noise was seeded.

    Returns
    -------
    PrivateScore or ModelScore
        With ``value``, ``std``, ``metric`` and ``certificate``; for all measures with ``measures``, ``calibration``,
        ``roc`` and the released ``counts`` in place of ``value``. Nothing else is said about the records.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, *Universally utility-maximizing privacy mechanisms* (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import FrankWolfeClassifier, private_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (6000, 20))
    >>> y = np.where(X[:, 3] > 0, "case", "control")
    >>> model = FrankWolfeClassifier(x_bound=1.0, classes=("case", "control"), random_state=0).fit(X[:4000], y[:4000])
    >>> score = private_score(model, X[4000:], y[4000:], epsilon=0.5, random_state=0)
    >>> score.metric, round(score.std, 6), score.certificate.epsilon
    ('accuracy', 0.0014, 0.5)
    >>> bool(score.value > 0.9)
    True
    >>> score = private_score(model, X[4000:], y[4000:], epsilon=0.5, metric="all", random_state=0)
    >>> [measure.name for measure in score.measures]
    ['AUC', 'log loss', 'accuracy', 'calibration in the large']
    >>> bool(score["AUC"].lower > 0.9), score["AUC"].baseline, score.certificate.epsilon
    (True, 0.5, 0.5)
    """
    check_common_parameters(
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        n_public=n_public,
        invalid=invalid,
        account=account,
        random_state=random_state,
    )
    check_public_count(relation, n_public)
    X, y, persons = open_arguments(X, y, persons)
    table: OpenTable | None = X if is_open(X) else None
    asked = metric_of(estimator, "all" if table is not None and metric == "auto" else metric)
    if table is not None:
        check_scored_table(asked, table, invalid)
        table.check_method([_WHAT], relation)
    planned = partial(
        plan_score,
        Budget(epsilon, delta),
        asked.what,
        # Rows of a person share what stands for one.
        finest=asked.finest if persons is None else max(asked.finest, PERSON_WEIGHT),
        counts=asked.counts,
        relation=relation,
        accounted=account is not None,
    )
    plan = planned(n_values=asked.n_values)
    # The rows of a table in partitions are not counted before all is reserved where their number is private.
    n_slots = count_rows(y) if table is None else 0 if relation == "add-remove" else table.shape[0]
    if n_slots is None:
        raise DataError(f"y: {NOT_ONE_COLUMN}.")
    stated = PublicFacts(n_slots, public_rows(relation, n_slots, n_public), 0)
    facts, whose = person_facts(stated, persons, relation, n_public)
    n_rows = check_integer(0, n_public=facts.n_records)
    if asked.divide(n_rows, plan.deviation):
        plan = planned(n_values=asked.n_values)
    seeded = random_state is not None
    with reserve_cost(account, plan, facts, what=_WHAT, relation=relation, seeded=seeded) as reservation:
        stream = Stream.of(random_state)
        check_lengths(X, y)
        reservation.begin()
        log_phase(_WHAT, "reading")
        source = read_source(asked, X, y, n_rows, whose, invalid=invalid, relation=relation)
        log_phase(_WHAT, "running")
        sums = release_sums(plan, asked.sums(source, plan.term_bound), stream)
    releases: tuple[Release, ...] = plan.releases
    # Post-processing: where the numbers of records of each class are released, they show labels of another type.
    foreign = (
        asked.counts
        and not asked.numeric
        and plan.mechanism is not None
        and diagnose_counts(asked.what, sums, plan.deviation, asked.classes.size, n_rows)
    )
    if foreign:
        releases = tuple(replace(each, what=f"{each.what}: {REMARKS['labels']}") for each in releases)
    certificate = certify(
        releases,
        plan.budget,
        relation=relation,
        public={"metric": asked.name, "records": n_rows, **asked.facts, "invalid": invalid}
        | ({} if persons is None else {"estimand": ESTIMAND}),
        assumptions=(
            *_ASSUMPTIONS,
            *admission_assumptions(invalid),
            *facts.assumptions,
            *(() if table is None else table.assumptions),
        ),
        seeded=stream.seeded,
        # A row more or less moves the others, and products of matrices round by position.
        arithmetic="exact" if asked.linear or (relation != "add-remove" and persons is None) else "float64",
        unit=facts.unit,
        account_head=reservation.head,
    )
    log_phase(_WHAT, "certified", in_short(certificate))
    if foreign:
        warn_of_scored_labels(asked.classes, relation)
    result: PrivateScore | ModelScore = asked.result(sums, n_rows, plan.deviation, certificate)
    return result
