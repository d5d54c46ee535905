"""How well a fitted model predicts private records, as a number that may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from taciturn.accounting import Budget
from taciturn.certificate import Certificate, certify
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    DIFFERENT_LENGTHS,
    NO_RECORDS,
    check_choice,
    check_integer,
    without_data_values,
)
from taciturn.data.admission import blanked, finite_rows
from taciturn.data.reading import admission_assumptions, check_invalid, judged_target, read_judged_table
from taciturn.data.sensitivity import check_relation, public_rows
from taciturn.data.sparse_layout import checked_layout
from taciturn.data.target import check_classes, check_y_bounds, label_codes, numeric_target
from taciturn.fitting.score import release_sums
from taciturn.planning.score import plan_score

__all__ = ["PrivateScore", "private_score"]

_LABEL_METRICS = ("accuracy", "balanced accuracy")
# With the power of the distance that is averaged.
_NUMBER_METRICS = {"mean squared error": 2, "mean absolute error": 1}
_ASSUMPTIONS = (
    "the model, its bounds and its classes are public, or its own certificate is composed with this one",
    "each prediction depends on its own record alone",
)
# Of this many terms the sum fits into 64 bits, and beyond this sum more of them make no difference.
_BLOCK, _LARGEST_SUM = 1 << 28, 1 << 62


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


@guarded
def private_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    metric: str = "auto",
    relation: str = "zero-out",
    n_public: int | None = None,
    invalid: str = "raise",
    random_state: int | None = None,
) -> PrivateScore:
    r"""Score a fitted model on private records, with noise.

    .. math:: \frac1n \sum_i 1[\hat y_i = y_i], \qquad
              \frac1K \sum_k \frac{\#\{i : \hat y_i = y_i = k\}}{\#\{i : y_i = k\}}, \qquad
              \frac1n \sum_i (\hat y_i - y_i)^2, \qquad \frac1n \sum_i |\hat y_i - y_i|

    are accuracy, balanced accuracy over K classes, mean squared and mean absolute error. Targets and predictions are
    clipped to the model's ``y_bounds`` and rounded to a lattice of :math:`2^{17}` steps. A record whose label is none
    of the model's classes is a null record: never right, but one of n. A prediction that is not a number is as wrong as
    can be.

    **Privacy.** (epsilon, 0)-DP under ``relation``, or (epsilon, delta)-DP where Gaussian noise deviates less. The sum,
    an integer, is released with two-sided geometric or rounded Gaussian noise (``data.sensitivity.error_sum``); for
    balanced accuracy the numbers of right and wrong predictions in each class are (``outcome_counts``). All else is
    made of these. Public: the model, the number of records (``n_public`` under add-remove) and all parameters. A
    prediction has to depend on its own record alone. The steps of a pipeline are fitted already and only transform
    here, record by record, so that nothing is learned from these data; a step that looks at several rows at once,
    or at a state it keeps, would break this. Under add-remove rows change their places, which may change the last bits
    of predictions; the certificate then says "float64".

    A score on the records that the model was fitted to is a second release about them: ``compose`` the certificate with
    the model's. A score on the records of other people is a release about those people, and the model's certificate
    says nothing of them.

    Parameters
    ----------
    estimator : object
        A fitted classifier with ``classes_``, or a fitted regressor with ``y_bounds``, or a pipeline that ends in one.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        What the estimator predicts from.
    y : array-like of shape (n_samples,)
        True labels or numbers.
    epsilon : float, default=1.0
        Privacy budget of this score. ``float("inf")``: no noise, and no privacy.
    delta : float, default=0.0
        Probability beyond epsilon. Only used where it makes for less noise.
    metric : {"auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"}, default="auto"
        The first two are for classifiers, the others for regressors. "auto": accuracy, or mean squared error. For
        balanced accuracy every class should have many more records than the deviation of the noise, 1.4 / epsilon (2.8
        under replace-one); without noise a class that has no records counts as one that is always wrong.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove, by which sums are divided.
    invalid : {"raise", "null"}, default="raise"
        What becomes of a record that is not admissible: one from which the model cannot predict, or without a usable
        target. "raise" refuses the score, which tells of the record. "null" makes it a null record: never right, no
        error, but one of n. X then has to be a table of numbers, and a cell that is none makes its record null.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only, and the certificate says
        so.

    Returns
    -------
    PrivateScore
        With ``value``, ``std``, ``metric`` and ``certificate``. Nothing else is said about the records.

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
    >>> model = FrankWolfeClassifier(classes=("case", "control"), random_state=0).fit(X[:4000], y[:4000])
    >>> score = private_score(model, X[4000:], y[4000:], epsilon=0.5, random_state=0)
    >>> score.metric, round(score.std, 6), score.certificate.epsilon
    ('accuracy', 0.0014, 0.5)
    >>> bool(score.value > 0.9)
    True
    """
    budget = Budget(epsilon, delta)
    stream = Stream.of(random_state)
    relation = check_relation(relation)
    if n_public is not None:
        check_integer(1, n_public=n_public)
    elif relation == "add-remove":
        raise ParameterError(
            "n_public", None, "a public number of records under add-remove", "pass one, or use relation='zero-out'"
        )
    strict = check_invalid(invalid) == "raise"
    asked = _metric_of(estimator, metric, strict=strict)
    plan = plan_score(
        budget, asked.what, finest=asked.finest, counts=asked.counts, relation=relation, n_values=asked.n_values
    )
    numeric = isinstance(asked, _Error)
    if strict:
        predictions, y = _read(estimator, X, y, numeric=numeric)
        n_slots = len(y)
    else:
        predictions, y, n_slots = _read_present(estimator, X, y, numeric=numeric, relation=relation)
    n_rows = public_rows(relation, n_slots, n_public)
    sums = release_sums(plan, asked.sums(y, predictions, plan.term_bound), stream)
    value, std = asked.score(sums, n_rows, plan.deviation)
    certificate = certify(
        plan.releases,
        plan.budget,
        relation=relation,
        public={"metric": asked.name, "records": n_rows, **asked.facts, "invalid": invalid},
        assumptions=(*_ASSUMPTIONS, *admission_assumptions(invalid)),
        seeded=stream.seeded,
        # A removed row moves the others, and products of matrices round by position.
        arithmetic="float64" if relation == "add-remove" else "exact",
    )
    return PrivateScore(value, std, asked.name, certificate)


# ------------------------------------------------------------------ metrics


class _Accuracy:
    """The share of right labels."""

    name = "accuracy"
    what = "the accuracy of a model"
    finest: ClassVar[int] = 1
    counts: ClassVar[bool] = False
    n_values = 1

    def __init__(self, classes: np.ndarray, *, strict: bool) -> None:
        self.classes, self.strict = classes, strict
        self.facts = {"classes": classes}

    def sums(self, y: np.ndarray, predictions: np.ndarray, term_bound: int) -> np.ndarray:
        codes = label_codes(y, self.classes, strict=self.strict)
        right = (codes >= 0) & (codes == label_codes(predictions, self.classes))
        return term_bound * np.array([np.count_nonzero(right)])

    def score(self, sums: np.ndarray, n_rows: int, deviation: float) -> tuple[float, float]:
        return float(np.clip(sums[0] / n_rows, 0.0, 1.0)), deviation / n_rows


class _BalancedAccuracy(_Accuracy):
    """The mean over classes of the share of right labels among the records of a class."""

    name = "balanced accuracy"
    what = "the numbers of right and wrong predictions in each class"
    counts = True

    def __init__(self, classes: np.ndarray, *, strict: bool) -> None:
        super().__init__(classes, strict=strict)
        self.n_values = 2 * classes.size

    def sums(self, y: np.ndarray, predictions: np.ndarray, term_bound: int) -> np.ndarray:
        codes = label_codes(y, self.classes, strict=self.strict)
        right = codes == label_codes(predictions, self.classes)
        counts = [np.bincount(codes[(codes >= 0) & side], minlength=self.classes.size) for side in (right, ~right)]
        return term_bound * np.column_stack(counts)

    def score(self, sums: np.ndarray, n_rows: int, deviation: float) -> tuple[float, float]:
        sizes = np.maximum(sums.sum(axis=1), 1.0)
        shares = np.clip(sums[:, 0] / sizes, 0.0, 1.0)
        # Of r and w, both with noise of deviation s, r / (r + w) deviates by s hypot(r, w) / (r + w)**2 to first order,
        # and a number in [0, 1] by no more than one half.
        spreads = np.minimum(deviation / sizes, 0.5)
        return float(shares.mean()), float(np.linalg.norm(spreads)) / sizes.size


class _Error:
    """The mean of a power of the distance between target and prediction."""

    counts: ClassVar[bool] = False
    n_values: ClassVar[int] = 1

    def __init__(self, name: str, y_bounds: tuple[float, float]) -> None:
        self.name, self.power, self.y_bounds = name, _NUMBER_METRICS[name], y_bounds
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

    def sums(self, y: np.ndarray, predictions: np.ndarray, term_bound: int) -> np.ndarray:
        distances = np.abs(numeric_target(y, self.y_bounds) - numeric_target(predictions, self.y_bounds))
        terms = np.where(np.isnan(distances), 2.0 * ONE, distances) ** self.power
        if term_bound != self.finest:
            terms = np.rint(terms * (term_bound / self.finest))
        parts = np.add.reduceat(terms.astype(np.int64), np.arange(0, terms.size, _BLOCK))
        return np.array([min(sum(parts.tolist()), _LARGEST_SUM)])

    def score(self, sums: np.ndarray, n_rows: int, deviation: float) -> tuple[float, float]:
        return float(np.clip(sums[0] / n_rows, 0.0, 1.0)) * self.largest, deviation / n_rows * self.largest


# ------------------------------------------------------------------ what is read


def _metric_of(estimator: Any, metric: str, *, strict: bool) -> _Accuracy | _Error:
    """The metric, with what it takes from the model."""
    kind = type(estimator).__name__
    whole = all(hasattr(estimator, name) for name in ("fit", "predict", "__sklearn_tags__"))
    if not whole or not (is_classifier(estimator) or is_regressor(estimator)):
        raise ParameterError(
            "estimator", kind, "a fitted classifier or regressor, or a pipeline that ends in one", "pass one"
        )
    check_is_fitted(estimator)
    if is_classifier(estimator):
        name = check_choice(("auto", *_LABEL_METRICS), metric=metric)
        classes = check_classes(estimator.classes_)
        kind_of_metric = _BalancedAccuracy if name == "balanced accuracy" else _Accuracy
        return kind_of_metric(classes, strict=strict)
    name = check_choice(("auto", *_NUMBER_METRICS), metric=metric)
    return _Error("mean squared error" if name == "auto" else name, _bounds_of(estimator))


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


def _read(estimator: Any, X: Any, y: Any, *, numeric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and targets."""

    def target() -> np.ndarray:
        return check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64 if numeric else None)

    truth = without_data_values("y", target)
    predictions = _predicted(estimator, checked_layout(X), numeric=numeric)
    without_data_values("X and y", lambda: check_consistent_length(predictions, truth))
    return predictions, truth


def _read_present(
    estimator: Any, X: Any, y: Any, *, numeric: bool, relation: str
) -> tuple[np.ndarray, np.ndarray, int]:
    """Predictions and targets of the records that are not null, and the number of slots."""
    table = read_judged_table(estimator, X, reset=False)
    truth, known = judged_target(y, numeric=numeric)
    n_slots = table.shape[0]
    if truth.size != n_slots:
        raise DataError(f"X and y: {DIFFERENT_LENGTHS}.")
    if n_slots == 0 and relation != "add-remove":
        raise DataError(f"X: {NO_RECORDS}.")
    present = known & finite_rows(table)
    if not present.any():
        return truth[:0], truth[:0], n_slots
    if relation == "add-remove":
        predictions = _predicted(estimator, table[np.flatnonzero(present)], numeric=numeric)
    else:
        # In their places, since products of matrices round by position.
        predictions = _predicted(estimator, blanked(table, present), numeric=numeric)[present]
    return predictions, truth[present], n_slots


def _predicted(estimator: Any, X: Any, *, numeric: bool) -> np.ndarray:
    """What a model predicts; neither its errors nor its warnings, which may quote data, are passed on."""

    def predict() -> np.ndarray:
        predictions = column_or_1d(estimator.predict(X))
        return predictions.astype(np.float64) if numeric else predictions

    predictions = None
    try:
        predictions = guarded(without_data_values, silent=True)("X", predict)
    except TaciturnError:
        raise
    except Exception:
        pass
    if predictions is None:
        raise DataError(
            "X: expected records that the estimator can predict, and it failed; try it on made-up records of this form."
        )
    return predictions
