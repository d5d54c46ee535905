"""Plans for selecting features by Kendall's rank correlation, one round after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity.ranks import kendall_scores
from taciturn.events import ExponentialEvent, NotPrivateEvent
from taciturn.mechanisms import ExponentialMechanism, PermuteAndFlip
from taciturn.mechanisms.selection import Selection
from taciturn.planning.listed import ListedReleases

__all__ = ["KendallPlan", "plan_kendall"]

# Rounding down by less than a step is negligible beside the noise. Scores are at most n k 2**19 steps, below 2**62 for
# every table that fits a computer.
_FINEST = 1 << 20


@dataclass(frozen=True, slots=True)
class KendallPlan(ListedReleases):
    """How k of d features will be selected, one per round.

    Parameters
    ----------
    budget : Budget
        What all rounds together may cost; its delta is 0 where the mechanism is pure.
    method : str
        Name of the mechanism of a round, or "all" where every feature is taken, or "exact" without privacy.
    steps : int
        How many steps of the scores' lattice make one unit of ``|K| / (n - 1)``.
    rounds : tuple of Selection
        The mechanism of each round; none where nothing private is needed.
    """

    arithmetic: ClassVar[str] = "exact"
    ordered: ClassVar[bool] = True

    k: int
    budget: Budget
    method: str
    relation: str
    steps: int
    rounds: tuple[Selection, ...]
    releases: tuple[Release, ...]


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
        return KendallPlan(k, Budget(budget.epsilon, 0.0), "all", relation, steps, (), ())
    what = f"one of {n_candidates:,} features per round, by rank correlation"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent(), k)
        return KendallPlan(k, Budget(math.inf, 0.0), "exact", relation, steps, (), (exact,))
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
    return KendallPlan(k, budget, method, relation, steps, rounds, (release,))
