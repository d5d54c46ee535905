"""How well a fitted model predicts private records, as a number that may be published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from taciturn.accounting import Budget
from taciturn.certificate import Certificate, certify
from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.guard import guarded
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    check_choice,
    check_integer,
)
from taciturn.data.persons import PERSON_WEIGHT, read_persons
from taciturn.data.reading import admission_assumptions
from taciturn.data.sensitivity import check_public_count, public_rows
from taciturn.data.target import check_classes, check_y_bounds, label_codes, numeric_target
from taciturn.estimators.scored_records import read_scored
from taciturn.fitting.procedure import ESTIMAND, check_common_parameters, person_assumptions, public_persons
from taciturn.fitting.score import OutcomeCounts, release_sums, total_error
from taciturn.planning.score import plan_score
from taciturn.sources import ArraySource, Source

__all__ = ["PrivateScore", "private_score"]

_LABEL_METRICS = ("accuracy", "balanced accuracy")
# With the power of the distance that is averaged.
_NUMBER_METRICS = {"mean squared error": 2, "mean absolute error": 1}
_ASSUMPTIONS = (
    "the model, its bounds and its classes are public, or its own certificate is composed with this one",
    "each prediction depends on its own record alone",
)


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
    persons: Any = None,
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
    or at a state it keeps, would break this. Under add-remove, and where a person has several rows, rows change their
    places, which may change the last bits of predictions; the certificate then says "float64".

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
        Probability with which the guarantee of epsilon may fail. Used only where it reduces the noise.
    metric : {"auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"}, default="auto"
        The first two are for classifiers, the others for regressors. "auto": accuracy, or mean squared error. For
        balanced accuracy every class should have many more records than the deviation of the noise, 1.4 / epsilon (2.8
        under replace-one); without noise a class that has no records counts as one that is always wrong.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        The neighbouring relation.
    n_public : int, default=None
        Public number of records, required under add-remove; sums are divided by it.
    invalid : {"raise", "null"}, default="raise"
        Treatment of records from which the model cannot predict, or without a usable target. "raise" refuses the score,
        which reveals that there is such a record. "null" makes them null records: never right, no error, but counted
        in n. X then has to be a table of numbers, and a cell that is no number makes its record null.
    persons : array-like of shape (n_samples,), default=None
        The key of the person that each row is about, where a person may have several rows: the guarantee is then for
        all rows of a person together, n is the number of persons, and each counts once, with the mean over its rows. A
        row without a key is a null row. None: every row is a record of its own.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only; the certificate then says
        that the noise was seeded.

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
    check_common_parameters(
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        n_public=n_public,
        invalid=invalid,
        random_state=random_state,
    )
    check_public_count(relation, n_public)
    asked = _metric_of(estimator, metric)
    plan = plan_score(
        Budget(epsilon, delta),
        asked.what,
        # Rows of a person share what stands for one.
        finest=asked.finest if persons is None else max(asked.finest, PERSON_WEIGHT),
        counts=asked.counts,
        relation=relation,
        n_values=asked.n_values,
    )
    numeric = isinstance(asked, _Error)
    records = read_scored(estimator, X, y, asked.mapped, numeric=numeric, invalid=invalid, relation=relation)
    n_public = public_rows(relation, records.n_slots, n_public)
    if persons is not None:
        keys = read_persons(persons, records.n_slots)
        n_public = public_persons(keys, relation, n_public)
        records = records.of_persons(keys)
    n_rows = check_integer(0, n_public=n_public)
    source = ArraySource(records, math.inf, n_rows)
    stream = Stream.of(random_state)
    sums = release_sums(plan, asked.sums(source, plan.term_bound), stream)
    value, std = asked.score(sums, n_rows, plan.deviation)
    certificate = certify(
        plan.releases,
        plan.budget,
        relation=relation,
        public={"metric": asked.name, "records": n_rows, **asked.facts, "invalid": invalid}
        | ({} if persons is None else {"estimand": ESTIMAND}),
        assumptions=(
            *_ASSUMPTIONS,
            *admission_assumptions(invalid),
            *(() if persons is None else person_assumptions(relation)),
        ),
        seeded=stream.seeded,
        # A row more or less moves the others, and products of matrices round by position.
        arithmetic="exact" if relation != "add-remove" and persons is None else "float64",
        unit="record" if persons is None else "person",
    )
    return PrivateScore(value, std, asked.name, certificate)


# ------------------------------------------------------------------ metrics


class _Mean:
    """The mean of terms between 0 and ``largest``."""

    finest = 1
    counts = False
    n_values = 1
    largest = 1.0

    def score(self, sums: FloatArray, n_rows: int, deviation: float) -> tuple[float, float]:
        """The metric and the standard deviation of its noise."""
        return float(np.clip(sums[0] / n_rows, 0.0, 1.0)) * self.largest, deviation / n_rows * self.largest


class _Accuracy(_Mean):
    """The share of right labels."""

    name = "accuracy"
    what = "the accuracy of a model"

    def __init__(self, classes: AnyArray) -> None:
        self.classes = classes
        self.facts = {"classes": classes}

    def mapped(self, y: AnyArray, *, strict: bool = True) -> IntArray:
        """Class codes, -1 for labels that are none of the classes."""
        return label_codes(y, self.classes, strict=strict)

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        right, _ = source.total(OutcomeCounts(self.classes.size, term_bound)).sum(axis=0).tolist()
        return np.array([right])


class _BalancedAccuracy(_Accuracy):
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


class _Error(_Mean):
    """The mean of a power of the distance between target and prediction."""

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

    def mapped(self, y: AnyArray, *, strict: bool = True) -> FloatArray:
        """Numbers on the lattice, clipped to the bounds."""
        return numeric_target(y, self.y_bounds)

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        return total_error(source, self.power, term_bound)


def _metric_of(estimator: Any, metric: str) -> _Accuracy | _Error:
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
        return kind_of_metric(classes)
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
