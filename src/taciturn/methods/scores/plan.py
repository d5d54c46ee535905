"""Plans for the score of a public model on private records."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from taciturn.core.errors import ParameterError
from taciturn.data.sensitivity import error_sum, outcome_counts
from taciturn.methods.releases import term_noise
from taciturn.methods.schedule import Schedule, ScheduledPlan
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import calibrate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import GaussianEvent, NotPrivateEvent
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE, RoundedGaussian, TwoSidedGeometric

# Bins of a histogram without noise, and at most.
_MOST_PROBABILITIES, _MOST_TARGETS, _MOST_ERRORS = 200, 200, 400
_FEWEST_PROBABILITIES, _FEWEST_TARGETS, _FEWEST_ERRORS = 2, 10, 16
# Noise below this is lost in the sampling error, however many bins there are.
_LEAST_DEVIATION = 0.25


@dataclass(frozen=True, slots=True)
class BinCounts:
    """How fine the cells of a score are: even numbers of bins, for a tenth of probabilities, numbers and errors."""

    probabilities: int
    numbers: int
    errors: int


def count_bins(n_records: int, deviation: float) -> BinCounts:
    r"""Bins by public facts: as the root of the number of records over the deviation of the noise on each cell.

    The noise of a measure grows with the root of the number of bins, and what bins leave of their width, after
    extrapolation, falls with more than its square. With ten thousand records and epsilon 0.5 both are below the
    sampling error.
    """
    fineness = math.inf
    if deviation > 0.0:
        fineness = math.sqrt(math.sqrt(2.0) * n_records / max(deviation, _LEAST_DEVIATION))

    def even(divisor: float, fewest: int, most: int) -> int:
        return 2 * round(min(max(fineness / divisor, fewest / 2), most / 2))

    return BinCounts(
        even(32.0, _FEWEST_PROBABILITIES, _MOST_PROBABILITIES),
        even(10.0, _FEWEST_TARGETS, _MOST_TARGETS),
        even(6.0, _FEWEST_ERRORS, _MOST_ERRORS),
    )


@dataclass(frozen=True, slots=True)
class ScorePlan(ScheduledPlan):
    """The noise with which "sums" over records will be released; delta is 0 where it is geometric.

    The integer ``term_bound`` stands for a term of one, and the ``deviation`` of each sum is in units of it. A
    ``mechanism`` of None is for no privacy.
    """

    schedule: Schedule
    term_bound: int
    mechanism: TwoSidedGeometric | RoundedGaussian | None
    deviation: float


def plan_score(
    budget: Budget, what: str, *, finest: int, counts: bool, relation: str, n_values: int, accounted: bool = False
) -> ScorePlan:
    """Plan the release of one sum of terms in [0, 1], or of the numbers of records in cells.

    The noise is two-sided geometric, which is pure and leaves delta unused, or Gaussian where that has a smaller
    standard deviation, which is rare for one number. Where an account pays (``accounted``) and there is a delta the
    noise is Gaussian: beside other releases, pure ones of the same epsilon are an order of magnitude dearer.
    ``finest`` is the integer that stands for a term of one unless the noise is Gaussian: terms are then rounded to
    about one part in 2**16. ``counts`` are of records by cell (``data.sensitivity.outcome_counts``); sums are of
    terms (``error_sum``).
    """
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        return ScorePlan(Schedule.of(budget, sums=exact), finest, None, 0.0)
    sensitivity = outcome_counts if counts else error_sum
    geometric = TwoSidedGeometric(int(sensitivity(finest, "l1", relation).value), budget.epsilon)
    release = Release(what, "two-sided geometric", 1.0 / budget.epsilon, geometric.event)
    deviation = _geometric_deviation(geometric) / finest
    plan = ScorePlan(Schedule.of(Budget(budget.epsilon, 0.0), sums=release), finest, geometric, deviation)
    if budget.delta == 0.0:
        return plan
    # Where no Gaussian noise is enough, or sums would have no room for it, there is no choice.
    with suppress(ParameterError):
        multiplier = calibrate(budget, lambda m: GaussianEvent(m, n_values * DISTANCE_PER_VALUE))
        term_bound, noise = term_noise(relation, multiplier * sensitivity(1, "l2", relation).value)
        gaussian = replace(noise, l2_sensitivity=sensitivity(term_bound, "l2", relation).value)
        deviation = math.sqrt(4.0**gaussian.log2_scale + 1.0 / 12.0) / term_bound
        if accounted or deviation < plan.deviation:
            cost = gaussian.event_of(n_values)
            release = Release(what, "Gaussian", cost.noise_multiplier, cost)
            return ScorePlan(Schedule.of(budget, sums=release), term_bound, gaussian, deviation)
    return plan


def _geometric_deviation(noise: TwoSidedGeometric) -> float:
    r""":math:`1 / (\sqrt 2 \sinh(r / 2))` for noise of rate r, written so that a large rate does not overflow."""
    half = noise.epsilon / (2.0 * noise.sensitivity)
    return math.sqrt(2.0) * math.exp(-half) / -math.expm1(-2.0 * half)
