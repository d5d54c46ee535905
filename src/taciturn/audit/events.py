r"""The choice of an event that distinguishes two data sets, from outcomes of runs on both.

Every candidate is a statistic of the outcome beside a threshold. Statistics are made from the even runs and compared,
threshold by threshold, on the odd ones, so that one with many parameters is not preferred for fitting noise. Candidates
are ranked by the bound that they would give, not by the estimate: rare outcomes promise much and keep little.

Nothing here needs to be right for an audit to be valid: whatever is chosen, other runs bound it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import solve
from scipy.special import betainccinv, betaincinv, ndtri
from sklearn.covariance import ledoit_wolf

from taciturn.core.arrays import FloatArray

__all__ = [
    "Bound",
    "OutcomeEvent",
    "Outcomes",
    "Statistic",
    "best_event",
    "clopper_pearson",
    "gaussian_bound",
    "linear_score",
    "outcomes_in_words",
    "ratio_bound",
    "statistics_of",
]

Outcomes: TypeAlias = Any
"""Of many runs: a list of discrete ones, or a matrix whose rows are arrays."""

Bound = Callable[[Any, Any], FloatArray]
"""What an event shows, from how often it happened on the data set where it is likelier, and on the other one."""

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_THRESHOLDS = 512
_LISTED = 5
# Of the unit variance; keeps the covariance of constant coordinates invertible.
_RIDGE = 1e-6


# ------------------------------------------------------------------ bounds


def clopper_pearson(successes: Any, trials: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds on a probability, each wrong with probability at most ``tail``.

    References
    ----------
    Clopper and Pearson, *The use of confidence or fiducial limits illustrated in the case of the binomial* (1934).
    """
    hits = np.asarray(successes, dtype=np.float64)
    misses = trials - hits
    # Clipped arguments are for bounds of 0 or 1.
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1.0), misses + 1.0, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1.0, np.maximum(misses, 1.0), tail), 1.0)
    return low, high


def ratio_bound(trials: int, delta: float, tail: float) -> Bound:
    r"""``ln((p - delta) / q)`` with p bounded from below and q from above.

    An event S with :math:`P(S) > e^\varepsilon Q(S) + \delta` refutes (epsilon, delta)-DP.
    """
    low, high = clopper_pearson(np.arange(trials + 1), trials, tail)

    def bound(likelier: Any, other: Any) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(low[likelier] - delta, 0.0)) - np.log(high[other]))

    return bound


def gaussian_bound(trials: int, tail: float) -> Bound:
    r"""The least :math:`\mu` of a :math:`\mu`-GDP release with these errors.

    A test of level :math:`\alpha` with second error :math:`\beta` shows
    :math:`\mu \ge \Phi^{-1}(1 - \alpha) - \Phi^{-1}(\beta)`.
    """
    low, high = clopper_pearson(np.arange(trials + 1), trials, tail)

    def bound(likelier: Any, other: Any) -> FloatArray:
        return np.asarray(ndtri(low[likelier]) - ndtri(high[other]))

    return bound


# ------------------------------------------------------------------ statistics and events


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number computed from an outcome.

    ``of(outcomes)`` are these numbers; ``words(comparison, threshold)`` says in words that the number compares so.
    """

    of: Callable[[Any], FloatArray]
    words: Callable[[str, float], str]


@dataclass(frozen=True, slots=True)
class OutcomeEvent:
    """A statistic that compares with a threshold, and the data set, 0 or 1, on which that is likelier."""

    statistic: Statistic
    comparison: str
    threshold: float
    likelier: int

    def count(self, outcomes: Outcomes) -> int:
        """Count how often the event happened."""
        return int(np.sum(_COMPARISONS[self.comparison](self.statistic.of(outcomes), self.threshold)))

    @property
    def words(self) -> str:
        """Describe the event in words."""
        return self.statistic.words(self.comparison, self.threshold)


def best_event(
    first: Outcomes,
    second: Outcomes,
    make: Callable[[Outcomes, Outcomes], Iterable[Statistic]],
    bound_of: Callable[[int], Bound],
) -> OutcomeEvent:
    """The event with the largest bound, of as many runs on one data set as on the other.

    ``make`` makes the statistics from the even runs; ``bound_of(trials)`` is what is to be large on the odd runs.
    """
    bound = bound_of(len(first[1::2]))
    candidates = (
        _best_threshold(statistic, first[1::2], second[1::2], bound) for statistic in make(first[::2], second[::2])
    )
    return max(candidates, key=operator.itemgetter(0))[1]


def _best_threshold(
    statistic: Statistic, first: Outcomes, second: Outcomes, bound: Bound
) -> tuple[float, OutcomeEvent]:
    samples = [np.sort(statistic.of(outcomes)) for outcomes in (first, second)]
    pooled = np.sort(np.concatenate(samples))
    places = np.linspace(0, pooled.size - 1, min(pooled.size, _THRESHOLDS)).astype(np.int64)
    thresholds = np.unique(pooled[places])
    # Also between values: if these form two clusters, a threshold at the edge of one would misplace later runs.
    thresholds = np.unique(np.concatenate((thresholds, (thresholds[1:] + thresholds[:-1]) / 2.0)))
    below = np.array([np.searchsorted(sample, thresholds, side="left") for sample in samples])
    up_to = np.array([np.searchsorted(sample, thresholds, side="right") for sample in samples])
    trials = len(first)
    candidates = []
    for comparison, counts in (("<", below), ("<=", up_to), (">", trials - up_to), (">=", trials - below)):
        for likelier in (0, 1):
            values = bound(counts[likelier], counts[1 - likelier])
            best = np.flatnonzero(values == values.max())
            place = int(best[best.size // 2])
            event = OutcomeEvent(statistic, comparison, float(thresholds[place]), likelier)
            candidates.append((float(values[place]), event))
    return max(candidates, key=operator.itemgetter(0))


def statistics_of(first: Outcomes, second: Outcomes, tail: float) -> Iterable[Statistic]:
    """Candidates for outcomes of any kind.

    Discrete: the place of an outcome in the order of likelihood ratios. Arrays: a linear score, every coordinate,
    whether it is zero, and the place of the set of non-zero coordinates in the order of likelihood ratios.
    """
    if isinstance(first, list):
        yield from _likelihood_order(first, second, tail, "the outcome")
        return
    yield linear_score(first, second)
    for column in range(first.shape[1]):
        yield Statistic(operator.itemgetter((slice(None), column)), partial(_compared, f"coordinate {column}"))
    for column in np.flatnonzero(np.any(np.concatenate((first, second)) == 0.0, axis=0)).tolist():
        yield Statistic(partial(_is_zero, column), partial(_zero_in_words, column))
    for order in _likelihood_order(_supports(first), _supports(second), tail, "the set of non-zero coordinates"):
        yield Statistic(partial(_of_supports, order), order.words)


def linear_score(first: FloatArray, second: FloatArray) -> Statistic:
    r"""The best linear score of two Gaussian laws with one covariance, :math:`\Sigma^{-1} (m_1 - m_2) \cdot x`.

    The covariance is shrunk towards the diagonal, as far as the number of runs demands.
    """
    means = first.mean(axis=0), second.mean(axis=0)
    within = np.concatenate((first - means[0], second - means[1]))
    scale = np.sqrt(np.mean(within**2, axis=0))
    scale[scale == 0.0] = 1.0
    covariance, _ = ledoit_wolf(within / scale, assume_centered=True)
    covariance[np.diag_indices_from(covariance)] += _RIDGE
    weights = solve(covariance, (means[0] - means[1]) / scale, assume_a="pos") / scale
    heaviest = int(np.argmax(np.abs(weights * scale)))
    name = f"a linear score (heaviest on coordinate {heaviest} of {weights.size})"
    return Statistic(lambda outcomes: outcomes @ weights, partial(_compared, name))


def _likelihood_order(first: list[Hashable], second: list[Hashable], tail: float, name: str) -> Iterable[Statistic]:
    """Ranks of outcomes by confident likelihood ratios, in each direction."""
    counts = Counter(first), Counter(second)
    seen = list(counts[0] | counts[1])
    times = [np.array([count[outcome] for outcome in seen]) for count in counts]
    ratio = ratio_bound(len(first), 0.0, tail)
    for likelier in (0, 1):
        order = np.argsort(-ratio(times[likelier], times[1 - likelier]), kind="stable")
        places = {seen[index]: place for place, index in enumerate(order.tolist())}
        yield Statistic(partial(_places_of, places), partial(_places_in_words, places, name))


def _places_of(places: dict[Hashable, int], outcomes: list[Hashable]) -> FloatArray:
    """Ranks of outcomes; unseen ones come last."""
    return np.array([places.get(outcome, len(places)) for outcome in outcomes], dtype=np.float64)


def _supports(outcomes: FloatArray) -> list[Hashable]:
    return [tuple(np.flatnonzero(outcome).tolist()) for outcome in outcomes]


def _of_supports(order: Statistic, outcomes: FloatArray) -> FloatArray:
    return order.of(_supports(outcomes))


def _is_zero(column: int, outcomes: FloatArray) -> FloatArray:
    return np.asarray(outcomes[:, column] == 0.0, dtype=np.float64)


# ------------------------------------------------------------------ words


def outcomes_in_words(name: str, outcomes: list[Hashable], *, none: bool = False) -> str:
    """Describe the event that an outcome is one of these, or none of them."""
    if not outcomes:
        return f"{name} is {'anything' if none else 'nothing'}"
    listed = ", ".join(map(_outcome_in_words, outcomes[:_LISTED]))
    if len(outcomes) == 1:
        return f"{name} is {'not ' if none else ''}{listed}"
    rest = f" and {len(outcomes) - _LISTED:,} more" if len(outcomes) > _LISTED else ""
    return f"{name} is {'none' if none else 'one'} of {listed}{rest}"


def _outcome_in_words(outcome: Hashable) -> str:
    # The order of a set of strings differs from process to process.
    return "{" + ", ".join(sorted(map(repr, outcome))) + "}" if isinstance(outcome, frozenset) else repr(outcome)


def _places_in_words(places: dict[Hashable, int], name: str, comparison: str, threshold: float) -> str:
    compare = _COMPARISONS[comparison]
    unseen = bool(compare(len(places), threshold))
    # If unseen outcomes belong to the event, only the list of the other outcomes is complete.
    listed = [outcome for outcome, place in places.items() if bool(compare(place, threshold)) != unseen]
    return outcomes_in_words(name, listed, none=unseen)


def _compared(name: str, comparison: str, threshold: float) -> str:
    return f"{name} {comparison} {threshold:.6g}"


def _zero_in_words(column: int, comparison: str, threshold: float) -> str:
    unlike_zero, zero = (bool(_COMPARISONS[comparison](value, threshold)) for value in (0.0, 1.0))
    words = {(False, True): "zero", (True, False): "not zero", (True, True): "anything", (False, False): "nothing"}
    return f"coordinate {column} is {words[unlike_zero, zero]}"
