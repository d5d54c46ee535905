"""Plans for selecting k of d candidates."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.core.validation import check_choice, check_integer, check_real
from taciturn.data.sensitivity import Sensitivity, correlation_scores, target_parts
from taciturn.events import Event, ExponentialEvent, NotPrivateEvent, PureEvent
from taciturn.mechanisms import (
    CanonicalLipschitz,
    GumbelTopK,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    TopK,
    TwoSidedGeometric,
    log_binomial,
)
from taciturn.planning.listed import ListedReleases

__all__ = ["TOP_K_MECHANISMS", "CorrelationPlan", "TopKPlan", "plan_correlation", "plan_top_k"]

TOP_K_MECHANISMS = ("auto", "canonical-lipschitz", "gumbel", "peeling", "laplace")
"""Names of the private top-k mechanisms."""

# Of epsilon, for the mean of the target. On three real tables a tenth found hardly more of the right features, and a
# fiftieth fewer.
_CENTRE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class TopKPlan(ListedReleases):
    """How k of d candidates will be selected.

    Parameters
    ----------
    budget : Budget
        What the selection may cost; its delta is 0 where the mechanism is pure.
    method : str
        Name of the mechanism, or "all" where every candidate is taken, or "exact" without privacy.
    mechanism : TopK or None
        None where nothing private is needed.
    """

    ordered: ClassVar[bool] = True

    k: int
    budget: Budget
    method: str
    mechanism: TopK | None
    releases: tuple[Release, ...]

    @property
    def arithmetic(self) -> str:
        """Whether the proof covers what the computer does."""
        return "exact" if self.mechanism is None else self.mechanism.arithmetic


@dataclass(frozen=True, slots=True)
class CorrelationPlan(ListedReleases):
    """How k of d features will be selected by their sums of products with a target that a released mean centres.

    Parameters
    ----------
    selection : TopKPlan
        The selection; its budget is that of both releases.
    centre : TwoSidedGeometric or None
        The noise on the parts of the target. None where nothing is released of them.
    part_unit : int
        The integer that the parts of one record add up to, at most.
    """

    ordered: ClassVar[bool] = True

    selection: TopKPlan
    centre: TwoSidedGeometric | None
    part_unit: int
    releases: tuple[Release, ...]

    @property
    def budget(self) -> Budget:
        """What both releases together may cost."""
        return self.selection.budget

    @property
    def arithmetic(self) -> str:
        """Whether the proof covers what the computer does."""
        return self.selection.arithmetic


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
    if centre is None:
        return CorrelationPlan(selection, None, part_unit, selection.releases)
    what = "the sizes of the classes" if labelled else "the mean of the target"
    first = Release(what, "two-sided geometric", 1.0 / spent, centre.event)
    return CorrelationPlan(selection, centre, part_unit, (first, *selection.releases))


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
    if k == n_candidates:
        return TopKPlan(k, Budget(budget.epsilon, 0.0), "all", None, ())
    what = f"which {k:,} of {n_candidates:,} features score highest"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        return TopKPlan(k, Budget(math.inf, 0.0), "exact", None, (exact,))
    # A hair less than what is left, so that the rounded sum never exceeds the budget.
    left = budget.epsilon if before is None else (budget.epsilon - before.epsilon) * (1.0 - 2.0**-50)
    if method == "auto":
        method = _sharpest(budget, left, n_candidates, k, sensitivity, gamma, accounted=accounted, before=before)
    pure = Budget(budget.epsilon, 0.0)
    unit = sensitivity.value
    if method == "gumbel":
        noise = _gumbel(budget, k, sensitivity, before)
        release = Release(what, "Gumbel", noise.scale / unit, ExponentialEvent(noise.epsilon), k)
        return TopKPlan(k, budget, method, noise, (release,))
    if method == "canonical-lipschitz":
        subset = CanonicalLipschitz(sensitivity, k, left, gamma)
        release = Release(what, "exponential", subset.scale / unit, subset.event)
        return TopKPlan(k, pure, method, subset, (release,))
    if method == "peeling":
        # A hair less than the share, so that k rounded shares never exceed the budget.
        share = left / k * (1.0 - 2.0**-50)
        rounds = PeelingTopK(PermuteAndFlip(sensitivity, share), k)
        release = Release(what, "exponential", rounds.scale / unit, rounds.selection.event, k)
        return TopKPlan(k, pure, method, rounds, (release,))
    shot = LaplaceTopK(sensitivity, k, left)
    release = Release(what, "Laplace", shot.scale / unit, shot.event)
    return TopKPlan(k, pure, method, shot, (release,))


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
