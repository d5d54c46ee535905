"""How well a fitted model predicts private records, as a number that may be published."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.certificate import Release, certify
from taciturn.certificate.words import in_short
from taciturn.core.errors import DataError
from taciturn.core.guard import guarded
from taciturn.core.logs import log_phase
from taciturn.core.rng import Stream
from taciturn.core.validation import NOT_ONE_COLUMN, check_integer
from taciturn.data.persons import PERSON_WEIGHT, PersonKeys, column_of_keys, read_persons
from taciturn.data.reading import admission_assumptions, check_lengths, count_rows
from taciturn.data.sensitivity import check_public_count, public_rows
from taciturn.estimators.doubts import warn_of_scored_labels
from taciturn.estimators.model_score import ModelScore, PrivateScore
from taciturn.estimators.score_metrics import metric_of
from taciturn.estimators.scored_records import read_scored
from taciturn.estimators.scored_tables import check_scored_table, read_scored_table
from taciturn.fitting.procedure import (
    ESTIMAND,
    check_common_parameters,
    person_assumptions,
    public_persons,
    reserve_cost,
)
from taciturn.fitting.score import release_sums
from taciturn.fitting.suspicions import REMARKS, suspect_counts
from taciturn.planning.score import plan_score
from taciturn.sources import ArraySource, OpenTable, Source, TablePersons, open_arguments
from taciturn.sources.open_tables import ONE_PARTITION, is_open

__all__ = ["PrivateScore", "private_score"]

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
    relation: str = ...,
    n_public: int | None = ...,
    invalid: str = ...,
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
    metric: Literal["auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"] = ...,
    epsilon: float = ...,
    delta: float = ...,
    relation: str = ...,
    n_public: int | None = ...,
    invalid: str = ...,
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
    relation: str = "zero-out",
    n_public: int | None = None,
    invalid: str = "raise",
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
    prediction that is not a number is as wrong as
    can be.

    ``metric="all"`` releases one histogram, the numbers of records by prediction and truth in public cells, and makes
    every measure of it, with an interval and beside its baseline (a ``ModelScore``): AUC, log loss, accuracy and
    calibration for two classes; accuracy, balanced accuracy and log loss for more; R2, mean absolute and mean squared
    error for numbers. All of them together cost what one does.

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
    asked: Any = metric_of(estimator, "all" if table is not None and metric == "auto" else metric)
    if table is not None:
        asked = check_scored_table(estimator, asked, table, invalid)
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
    # Where the keys are private they are read when all is reserved.
    whose: Callable[[], PersonKeys] | None = None
    if persons is not None:
        whose = persons.read if isinstance(persons, TablePersons) else partial(read_persons, persons, n_slots)
    keys = None if whose is None or relation == "add-remove" else whose()
    n_records = public_rows(relation, n_slots, n_public) if keys is None else public_persons(keys, relation, n_public)
    if asked.divide(check_integer(0, n_public=n_records), plan.deviation):
        plan = planned(n_values=asked.n_values)
    unit = "record" if persons is None else "person"
    with reserve_cost(
        account,
        plan,
        what=_WHAT,
        relation=relation,
        unit=unit,
        n_records=n_records,
        seeded=random_state is not None,
        person_column=column_of_keys(persons),
        person_digest=None if keys is None else keys.digest,
    ) as reservation:
        stream = Stream.of(random_state)
        check_lengths(X, y)
        reservation.begin()
        log_phase(_WHAT, "reading")
        if keys is not None:
            whose = partial(_known, keys)
        n_rows = check_integer(0, n_public=n_records)
        source: Source
        if table is not None:
            source = read_scored_table(asked, table, invalid, n_rows, whose)
        else:
            records = read_scored(
                estimator,
                X,
                y,
                asked.mapped,
                numeric=asked.numeric,
                invalid=invalid,
                relation=relation,
                outputs=asked.outputs,
                n_outputs=asked.n_outputs,
            )
            source = ArraySource(records if whose is None else records.of_persons(whose()), math.inf, n_rows)
        log_phase(_WHAT, "running")
        sums = release_sums(plan, asked.sums(source, plan.term_bound), stream)
    releases: tuple[Release, ...] = plan.releases
    # Post-processing: where the numbers of records of each class are released, they show labels of another type.
    foreign = (
        asked.counts
        and not asked.numeric
        and plan.mechanism is not None
        and suspect_counts(asked.what, sums, plan.deviation, asked.classes.size, n_rows)
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
            *(() if persons is None else person_assumptions(relation)),
            *((ONE_PARTITION,) if isinstance(persons, TablePersons) and not persons.table.gathers_persons else ()),
            *(() if table is None else table.assumptions),
        ),
        seeded=stream.seeded,
        # A row more or less moves the others, and products of matrices round by position.
        arithmetic="exact" if asked.by_record or (relation != "add-remove" and persons is None) else "float64",
        unit=unit,
        account_head=reservation.head,
    )
    log_phase(_WHAT, "certified", in_short(certificate))
    if foreign:
        warn_of_scored_labels(asked.classes, relation)
    result: PrivateScore | ModelScore = asked.result(sums, n_rows, plan.deviation, certificate)
    return result


def _known(keys: PersonKeys) -> PersonKeys:
    return keys
