"""Plans of feature selection: top-k scores, votes of blocks, rank correlation."""

from __future__ import annotations

import math
import numbers
from contextlib import suppress
from dataclasses import dataclass

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE, check_choice, check_integer, check_real
from taciturn.data.sensitivity import Sensitivity, block_votes, correlation_scores, kendall_scores, target_parts
from taciturn.methods.schedule import Problem, Schedule, ScheduledPlan
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import calibrate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import Event, ExponentialEvent, NotPrivateEvent, PureEvent
from taciturn.privacy.mechanisms import (
    CanonicalLipschitz,
    ExponentialMechanism,
    GumbelTopK,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    Selection,
    TopK,
    TwoSidedGeometric,
    log_binomial,
)

# ---- Plans for selecting k of d candidates.

TOP_K_MECHANISMS = ("auto", "canonical-lipschitz", "gumbel", "peeling", "laplace")
"""Names of the private top-k mechanisms."""

# Of epsilon, for the mean of the target. On three real tables a tenth found hardly more of the right features, and a
# fiftieth fewer.
_CENTRE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class TopKPlan(ScheduledPlan):
    """How k of d candidates will be selected: by a ``method``, "all" of them, or "exact" without privacy.

    The schedule has the "selection", or nothing if all are taken; its delta is 0 where the mechanism is pure. The
    mechanism is None where nothing private is needed.
    """

    schedule: Schedule
    k: int
    method: str
    mechanism: TopK | None


@dataclass(frozen=True, slots=True)
class CorrelationPlan(ScheduledPlan):
    """How k of d features will be selected by their sums of products with a target that a released mean centres.

    The schedule has the "centre", if something is released of the target, and the "selection", whose plan has the
    budget of both. ``centre`` is the noise on the parts of the target, None where nothing is released of them;
    those of one record add up to ``part_unit`` at most.
    """

    schedule: Schedule
    selection: TopKPlan
    centre: TwoSidedGeometric | None
    part_unit: int


def plan_correlation(
    budget: Budget,
    n_candidates: int,
    k: int,
    relation: str,
    *,
    labelled: bool,
    part_unit: int,
    method: str = "auto",
    gamma: float = 0.5,
    accounted: bool = False,
) -> CorrelationPlan:
    """Plan the private selection of k of ``n_candidates`` features by centred sums of products with the target.

    A twentieth of epsilon is for the sizes of the classes (``labelled``) or the mean of a numeric target, which are
    released first and centre the target. The rest is for the selection, as in :func:`plan_top_k`. All features cost
    nothing, and need no centre.
    """
    spent = _CENTRE_SHARE * budget.epsilon
    private = k < n_candidates and not math.isinf(budget.epsilon)
    centre = TwoSidedGeometric(int(target_parts(part_unit, relation).value), spent) if private else None
    selection = plan_top_k(
        budget,
        n_candidates,
        k,
        correlation_scores(ONE, ONE, relation),
        method=method,
        gamma=gamma,
        accounted=accounted,
        before=None if centre is None else centre.event,
    )
    schedule = selection.schedule
    if centre is not None:
        what = "the sizes of the classes" if labelled else "the mean of the target"
        first = Release(what, "two-sided geometric", 1.0 / spent, centre.event)
        schedule = Schedule.of(schedule.budget, schedule.arithmetic, centre=first, selection=schedule["selection"])
    return CorrelationPlan(schedule, selection, centre, part_unit)


def plan_top_k(
    budget: Budget,
    n_candidates: int,
    k: int,
    sensitivity: Sensitivity,
    *,
    method: str = "auto",
    gamma: float = 0.5,
    accounted: bool = False,
    before: PureEvent | None = None,
) -> TopKPlan:
    """Plan the private selection of k of ``n_candidates`` scores.

    ``"auto"`` takes the mechanism that distinguishes the smallest gaps between scores: the canonical Lipschitz
    mechanism or peeling, which are pure and leave delta unused, or, with delta > 0, one-shot Gumbel noise. Where an
    account pays (``accounted``) it is the latter wherever it can be: pure releases of the same epsilon are an order of
    magnitude dearer beside others.

    ``sensitivity`` is that of the scores in the linf norm. All candidates cost nothing. ``before`` is what the budget
    pays for beside the selection.
    """
    check_choice(TOP_K_MECHANISMS, mechanism=method)
    k = check_integer(1, n_candidates, k=k)
    check_real(0.0, 1.0, closed="left", gamma=gamma)
    pure = Budget(budget.epsilon, 0.0)
    if k == n_candidates:
        return TopKPlan(Schedule(pure), k, "all", None)
    what = f"which {k:,} of {n_candidates:,} features score highest"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        return TopKPlan(Schedule.of(pure, selection=exact), k, "exact", None)
    # A hair less than what is left, so that the rounded sum never exceeds the budget.
    left = budget.epsilon if before is None else (budget.epsilon - before.epsilon) * (1.0 - 2.0**-50)
    if method == "auto":
        method = _sharpest(budget, left, n_candidates, k, sensitivity, gamma, accounted=accounted, before=before)

    def planned(spent: Budget, mechanism: TopK, noise: str, event: Event, count: int = 1) -> TopKPlan:
        release = Release(what, noise, mechanism.scale / sensitivity.value, event, count)
        return TopKPlan(Schedule.of(spent, mechanism.arithmetic, selection=release), k, method, mechanism)

    if method == "gumbel":
        gumbel = _gumbel(budget, k, sensitivity, before)
        return planned(budget, gumbel, "Gumbel", ExponentialEvent(gumbel.epsilon), k)
    if method == "canonical-lipschitz":
        subset = CanonicalLipschitz(sensitivity, k, left, gamma)
        return planned(pure, subset, "exponential", subset.event)
    if method == "peeling":
        # A hair less than the share, so that k rounded shares never exceed the budget.
        rounds = PeelingTopK(PermuteAndFlip(sensitivity, left / k * (1.0 - 2.0**-50)), k)
        return planned(pure, rounds, "exponential", rounds.selection.event, k)
    shot = LaplaceTopK(sensitivity, k, left)
    return planned(pure, shot, "Laplace", shot.event)


def _gumbel(budget: Budget, k: int, sensitivity: Sensitivity, before: PureEvent | None) -> GumbelTopK:
    def cost(scale: float) -> Event:
        rounds = ExponentialEvent(1.0 / scale) * k
        return rounds if before is None else before + rounds

    return GumbelTopK(sensitivity, k, 1.0 / calibrate(budget, cost))


def _sharpest(
    budget: Budget,
    left: float,
    d: int,
    k: int,
    sensitivity: Sensitivity,
    gamma: float,
    *,
    accounted: bool,
    before: PureEvent | None,
) -> str:
    """The method that finds the exact top k with probability 1/2 at the smallest gap below it.

    Union bounds: the canonical mechanism fails with probability at most ``C(d, k) exp(-gap gamma epsilon / spread)``,
    rounds of permute-and-flip or Gumbel noise of scale b with at most ``k (d - k) exp(-gap / b)``. Pure ones have
    ``left`` of epsilon.
    """
    pairs = math.log(2.0 * k * (d - k))
    gaps = {"peeling": k * sensitivity.spread / left * pairs}
    if gamma > 0.0:
        subsets = float(log_binomial(d, k)) + math.log(2.0)
        gaps["canonical-lipschitz"] = sensitivity.spread / (left * gamma) * subsets
    if budget.delta > 0.0:
        # Where rounding would cost as much as the selection, one-shot noise is no candidate.
        with suppress(ParameterError):
            gaps["gumbel"] = _gumbel(budget, k, sensitivity, before).scale * pairs
    return "gumbel" if accounted and "gumbel" in gaps else min(gaps, key=lambda method: gaps[method])


# ---- Plans for selecting features by the votes of disjoint blocks of records.


@dataclass(frozen=True, slots=True)
class BlockVotePlan(ScheduledPlan):
    """How blocks of records will vote, each for k features, and how those with the most votes will be selected.

    Blocks follow one path for each output of the problem, of the logistic loss for labels and of the squared one
    for numbers. Its relation decides how records are assigned to blocks.
    """

    schedule: Schedule
    problem: Problem
    selection: TopKPlan
    n_blocks: int


def plan_block_vote(
    budget: Budget,
    problem: Problem,
    k: int,
    *,
    n_blocks: int | str,
    method: str = "auto",
    gamma: float = 0.5,
    accounted: bool = False,
) -> BlockVotePlan:
    """Plan a private selection of k features by votes, as :func:`number_of_blocks` and :func:`plan_top_k` have it."""
    blocks, votes = number_of_blocks(n_blocks, problem.n_rows), block_votes(problem.relation)
    selection = plan_top_k(budget, problem.n_features, k, votes, method=method, gamma=gamma, accounted=accounted)
    return BlockVotePlan(selection.schedule, problem, selection, blocks)


def number_of_blocks(n_blocks: int | str, n_rows: int | None) -> int:
    """The number of blocks, of which each has room for a record; "auto" is the root of ``n_rows``, rounded down."""
    if isinstance(n_blocks, str):
        if n_rows is None:
            raise ParameterError(
                "n_public",
                None,
                "a public number of records, of which n_blocks='auto' is the root, since the true one is private",
                "give n_public or n_blocks",
            )
        return math.isqrt(n_rows)
    if n_rows is not None and n_blocks > n_rows:
        raise ParameterError(
            "n_blocks",
            n_blocks,
            f"at most {n_rows}, the public number of records",
            "take fewer blocks, or leave it at 'auto'",
        )
    return int(n_blocks)


def check_n_blocks(n_blocks: int | str) -> None:
    """Refuse anything but "auto" or a positive integer."""
    if n_blocks != "auto":
        check_integer(1, n_blocks=n_blocks)


def check_n_jobs(n_jobs: int | None) -> None:
    """Refuse a number of workers that joblib does not take."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ParameterError("n_jobs", n_jobs, "None or an integer other than 0", "set -1 for all processors")


# ---- Plans for selecting features by Kendall's rank correlation, one round after the other.

# Rounding down by less than a step is negligible beside the noise. Scores are at most n k 2**19 steps, below 2**62 for
# every table that fits a computer.
_FINEST = 1 << 20


@dataclass(frozen=True, slots=True)
class KendallPlan(ScheduledPlan):
    """How k of d features will be selected, one per round.

    ``schedule`` and ``method`` are as in :class:`TopKPlan`, for "rounds" with a mechanism each; there are no rounds
    where nothing private is needed. ``steps`` of the scores' lattice make one unit of ``|K| / (n - 1)``.
    """

    schedule: Schedule
    k: int
    method: str
    relation: str
    steps: int
    rounds: tuple[Selection, ...] = ()


def plan_kendall(budget: Budget, n_candidates: int, k: int, relation: str, n_rows: int | None) -> KendallPlan:
    """Plan the private selection of k of ``n_candidates`` features by rank correlation.

    Every round costs the same: its noise is proportional to its own sensitivity. With delta > 0 the rounds are
    exponential mechanisms, composed by the accountant; with delta = 0 they are permute-and-flip, which is better then.

    All features cost nothing. ``n_rows`` is None where the number of records is private.
    """
    k = check_integer(1, n_candidates, k=k)
    # With n - 1 steps to the unit the scores of the first round are numbers of pairs.
    steps = _FINEST if n_rows is None else min(max(n_rows - 1, 1), _FINEST)
    if k == n_candidates:
        return KendallPlan(Schedule(Budget(budget.epsilon, 0.0)), k, "all", relation, steps)
    what = f"one of {n_candidates:,} features per round, by rank correlation"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent(), k)
        return KendallPlan(Schedule.of(budget, rounds=exact), k, "exact", relation, steps)
    sensitivities = [kendall_scores(n_selected, steps, relation) for n_selected in range(k)]
    rounds: tuple[Selection, ...]
    if budget.delta > 0.0:
        scale = calibrate(budget, lambda b: ExponentialEvent(1.0 / b) * k)
        method, noise = "gumbel", "Gumbel"
        rounds = tuple(ExponentialMechanism(sensitivity, 1.0 / scale) for sensitivity in sensitivities)
    else:
        # A hair less than the share, so that k rounded shares never exceed the budget.
        share = budget.epsilon / k * (1.0 - 2.0**-50)
        method, noise = "permute-and-flip", "exponential"
        rounds = tuple(PermuteAndFlip(sensitivity, share) for sensitivity in sensitivities)
    first = rounds[0]
    release = Release(what, noise, first.scale / first.sensitivity.value, first.event, k)
    return KendallPlan(Schedule.of(budget, rounds=release), k, method, relation, steps, rounds)
