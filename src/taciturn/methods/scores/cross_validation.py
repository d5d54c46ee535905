"""Cross-validation under differential privacy: the mean score of fits to all folds but one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtrit
from sklearn.utils import _safe_indexing

from taciturn.core.errors import DataError, ParameterError, log_phase
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import IntArray, check_integer
from taciturn.data.persons import PERSON_WEIGHT, read_persons, units_of_rows
from taciturn.data.records import admission_assumptions, check_lengths
from taciturn.data.sensitivity import check_public_count
from taciturn.engines.interface import is_open, is_spark
from taciturn.methods.base import (
    BOUNDS,
    PricedPlan,
    PrivateLinearModel,
    PublicFacts,
    check_common_parameters,
    reserve_cost,
)
from taciturn.methods.options import SingleMetric
from taciturn.methods.scores.function import Metric, metric_of, read_source, unfitted_metric
from taciturn.methods.scores.plan import ScorePlan, plan_score
from taciturn.methods.scores.run import release_sums
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import epsilon_of
from taciturn.privacy.certificate import Certificate, certify, in_short
from taciturn.privacy.claim import Release
from taciturn.privacy.events import ComposedEvent, Event, ParallelEvent
from taciturn.privacy.transcript import all_blocks_but, block_of_records, coupling

_WHAT = "private_cross_val_score"
_LEVEL = 0.95
_FOLDS = "folds were assigned without looking at the records"


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """What a private cross-validation releases.

    Parameters
    ----------
    value : float
        The mean of the scores: an accuracy, or an error.
    interval : tuple of float
        A 95 % confidence interval from the spread of the scores, by Student's law. It includes sampling error and the
        noise of fits and scores. Fits share records, for which it does not allow, so that it is a little too short.
    scores : tuple of float
        The noisy score of each fold.
    std : float
        Standard deviation of the noise on each score, a public fact.
    metric : str
        What was measured.
    certificate : Certificate
        The statement about fits and scores together.
    """

    value: float
    interval: tuple[float, float]
    scores: tuple[float, ...]
    std: float
    metric: str
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class _Plan:
    """Fits to all folds but one, and a score of each fold."""

    ordered: ClassVar[bool] = False

    fits: tuple[PricedPlan, ...]
    score: ScorePlan
    delta: float

    @property
    def private(self) -> bool:
        """Whether all fits and scores have noise."""
        budgets = (*(fit.budget for fit in self.fits), self.score.budget)
        return all(math.isfinite(budget.epsilon) for budget in budgets)

    @property
    def cost(self) -> Event:
        """What all of it costs a record: the fits that it is in, and one score.

        A record is in one fold. It enters the fits of all other folds, and the score of its own. Releases that it does
        not enter act on equal data. So the cost is that of its fold's branch, and the dearest branch bounds all.
        """
        branches = tuple(
            ComposedEvent((*(fit.cost for j, fit in enumerate(self.fits) if j != fold), self.score.cost))
            for fold in range(len(self.fits))
        )
        return branches[0] if len(set(branches)) == 1 else ParallelEvent(branches)

    @property
    def budget(self) -> Budget:
        """The smallest epsilon that accounts for all of it."""
        if not self.private:
            return Budget(math.inf, 0.0)
        return Budget(epsilon_of(self.cost, self.delta), self.delta)

    @property
    def releases(self) -> tuple[Release, ...]:
        """One line: the branches of the cost belong together."""
        k = len(self.fits)
        what = f"scores of {k} folds, each by a fit to the other {k - 1}"
        if not self.private:
            return (Release(what, "none", 0.0, self.cost),)
        return (Release(what, self.score.releases[0].noise, self.score.releases[0].scale, self.cost),)


@guarded
def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    persons: Any = None,
    cv: int = 5,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    metric: SingleMetric = "auto",
    account: Account | str | None = None,
    random_state: int | None = None,
) -> CrossValidation:
    r"""Score an estimator by k-fold cross-validation, with noise, and state what all of it costs.

    The records are divided into k folds at random. For each fold the estimator is fitted to the other folds at its own
    budget, and scored on the fold with noise.

    **Privacy.** A record enters k - 1 fits and one score. Its cost is their composition, by the accountant of all
    releases: the certificate states it, and an account is charged for it once. Folds are assigned without looking at
    records: by a random permutation of rows or persons (zero-out, replace-one), or by a secret draw for each record
    (add-remove). There is no saving over fits: k - 1 fits of one epsilon cost much more than one.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of taciturn. Its ``epsilon``, ``delta``, ``relation``, ``n_public`` and ``invalid``
        are those of each fit; its ``account`` and ``random_state`` are not used.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The features; a table in memory.
    y : array-like of shape (n_samples,)
        The target.
    persons : array-like of shape (n_samples,), default=None
        The key of the person that each row is about: all rows of a person are in one fold.
    cv : int, default=5
        The number of folds, from 2 to 50.
    epsilon : float, default=1.0
        Budget of the score of each fold. The budget of everything is on the certificate.
    delta : float, default=1e-6
        Delta of each score, and of the whole.
    metric : {"auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"}, default="auto"
        As in ``private_score``.
    account : Account or str, default=None
        The account that pays for fits and scores.
    random_state : int, default=None
        None draws from a cryptographic stream. An integer is for reproduction only.

    Returns
    -------
    CrossValidation
        With ``value``, ``interval``, ``scores``, ``std`` and ``certificate``.

    References
    ----------
    M. Stone, *Cross-validatory choice and assessment of statistical predictions* (1974).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseClassifier, private_cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 5))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = SparseClassifier(x_bound=1.0, classes=(0, 1), epsilon=0.5)
    >>> found = private_cross_val_score(model, X, y, cv=3, epsilon=0.5, random_state=0)
    >>> len(found.scores), bool(found.value > 0.9)
    (3, True)
    >>> 0.5 < found.certificate.epsilon < 1.5
    True
    """
    if not isinstance(estimator, PrivateLinearModel):
        raise ParameterError("estimator", type(estimator).__name__, "a regressor or classifier of taciturn", "pass one")
    if is_open(X) or is_spark(X):
        raise DataError("X: expected a table in memory, got one in partitions; compute() it.")
    relation, n_public = estimator.relation, estimator.n_public
    check_common_parameters(
        epsilon=epsilon, delta=delta, relation=relation, n_public=n_public, invalid=estimator.invalid,
        account=account, random_state=random_state,
    )  # fmt: skip
    check_public_count(relation, n_public)
    n_folds = check_integer(2, 50, cv=cv)
    estimator._check_persons(persons)
    facts, _ = estimator._person_facts(estimator._public_facts(X, y), persons)
    n_records = facts.n_records or 0
    if n_records < n_folds:
        raise ParameterError("cv", cv, "no more folds than there are records", "take fewer")
    sizes = [n_records * (fold + 1) // n_folds - n_records * fold // n_folds for fold in range(n_folds)]
    stream = Stream.of(random_state)
    asked = unfitted_metric(estimator, metric, facts.labels)
    finest = asked.finest if persons is None else max(asked.finest, PERSON_WEIGHT)
    of_scores = plan_score(
        Budget(epsilon, delta), asked.what, finest=finest,
        counts=asked.counts, relation=relation, n_values=asked.n_values, accounted=delta > 0.0,
    )  # fmt: skip
    check_lengths(X, y)
    folds = _assign(facts, persons, sizes, relation, stream.spawn("folds"))
    models = [_fold_model(estimator, facts, n_records - size, random_state, fold) for fold, size in enumerate(sizes)]
    parts = [
        [
            tuple(None if values is None else _safe_indexing(values, rows) for values in (X, y, persons))
            for rows in split
        ]
        for split in ((np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(n_folds))
    ]
    # Under add-remove the number of rows in a fold is private, and plans take ``n_public`` alone.
    tables = [(X, y, persons) if relation == "add-remove" else fitted for fitted, _ in parts]
    plans = tuple(model.plan_for(*each) for model, each in zip(models, tables, strict=True))
    plan = _Plan(plans, of_scores, delta)
    seeded = random_state is not None
    with reserve_cost(account, plan, facts, what=_WHAT, relation=relation, seeded=seeded) as reservation:
        reservation.begin()
        log_phase(_WHAT, "running")
        scores, deviations = [], []
        for fold, (model, size, (fitted, scored)) in enumerate(zip(models, sizes, parts, strict=True)):
            with all_blocks_but(fold):
                model.fit(*fitted)
            measured, (X_fold, y_fold, keys) = metric_of(model, metric), scored
            with block_of_records(fold, scored):
                whose = None if keys is None else partial(read_persons, keys, int(np.count_nonzero(folds == fold)))
                source = read_source(
                    measured, X_fold, y_fold, size, whose, invalid=estimator.invalid, relation=relation
                )
                sums = release_sums(of_scores, measured.sums(source, of_scores.term_bound), stream)
            value, deviation = measured.score(sums, size, of_scores.deviation)
            scores.append(value)
            deviations.append(deviation)
    certificate = certify(
        plan.releases,
        plan.budget,
        relation=relation,
        public=_described(estimator, facts, n_folds, asked),
        assumptions=(_FOLDS, BOUNDS, *admission_assumptions(estimator.invalid), *facts.assumptions),
        seeded=seeded,
        arithmetic=max((getattr(fit, "arithmetic", "exact") for fit in plan.fits), key=len),
        ordered=plan.ordered,
        unit=facts.unit,
        account_head=reservation.head,
    )
    log_phase(_WHAT, "certified", in_short(certificate))
    mean = math.fsum(scores) / n_folds
    reach = float(stdtrit(n_folds - 1, 0.5 + 0.5 * _LEVEL)) * float(np.std(scores, ddof=1)) / math.sqrt(n_folds)
    return CrossValidation(
        mean, (mean - reach, mean + reach), tuple(scores), float(np.mean(deviations)), asked.name, certificate
    )


def _assign(facts: PublicFacts, persons: Any, sizes: list[int], relation: str, draws: Stream) -> IntArray:
    """The fold of every row; rows of nobody are null in any."""
    owners, n_units = units_of_rows(persons, facts.counted_rows)
    with coupling():
        words = draws.words(n_units)
    if relation == "add-remove":
        # The others must not move to other folds with a record.
        of_units = (words % np.uint64(len(sizes))).astype(np.int64)
    else:
        of_units = np.empty(n_units, dtype=np.int64)
        of_units[np.argsort(words, kind="stable")] = np.repeat(np.arange(len(sizes)), sizes)
    found: IntArray = np.append(of_units, 0)[owners]
    return found


def _fold_model(estimator: Any, facts: PublicFacts, n_fitted: int, random_state: int | None, fold: int) -> Any:
    """An unfitted copy for one fold, which nothing charges by itself."""
    stated: dict[str, Any] = {"account": None, "random_state": None}
    if random_state is not None:
        with coupling():
            stated["random_state"] = int(Stream.of(random_state).spawn(f"fold {fold}").words(1)[0] % 2**62)
    if estimator.n_public is not None:
        stated["n_public"] = n_fitted
    if facts.labels is not None:
        stated["classes"] = tuple(facts.labels.tolist())
    return type(estimator)(**(estimator.get_params(deep=False) | stated))


def _described(estimator: Any, facts: PublicFacts, n_folds: int, asked: Metric) -> dict[str, Any]:
    return {
        "estimator": type(estimator).__name__,
        "features": facts.n_features,
        "records": facts.n_records,
        "invalid": estimator.invalid,
        "folds": n_folds,
        "metric": asked.name,
        **asked.facts,
    }
