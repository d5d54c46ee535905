"""Plans for selecting k of d candidates."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_integer, check_real
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import ExponentialEvent, NotPrivateEvent
from taciturn.mechanisms import (
    CanonicalLipschitz,
    GumbelTopK,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    TopK,
    log_binomial,
)
from taciturn.planning.listed import ListedReleases

__all__ = ["TOP_K_MECHANISMS", "TopKPlan", "plan_top_k"]

TOP_K_MECHANISMS = ("auto", "canonical-lipschitz", "gumbel", "peeling", "laplace")
"""Names of the private top-k mechanisms."""


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


def plan_top_k(
    budget: Budget,
    n_candidates: int,
    k: int,
    sensitivity: Sensitivity,
    *,
    method: str = "auto",
    gamma: float = 0.5,
    accounted: bool = False,
) -> TopKPlan:
    """Plan the private selection of k of ``n_candidates`` scores.

    ``"auto"`` takes the mechanism that distinguishes the smallest gaps between scores: the canonical Lipschitz
    mechanism or peeling, which are pure and leave delta unused, or, with delta > 0, one-shot Gumbel noise. Where an
    account pays (``accounted``) it is the latter wherever it can be: pure releases of the same epsilon are an order of
    magnitude dearer beside others.

    ``sensitivity`` is that of the scores in the linf norm. All candidates cost nothing.
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
    if method == "auto":
        method = _sharpest(budget, n_candidates, k, sensitivity, gamma, accounted=accounted)
    pure = Budget(budget.epsilon, 0.0)
    unit = sensitivity.value
    if method == "gumbel":
        noise = _gumbel(budget, k, sensitivity)
        release = Release(what, "Gumbel", noise.scale / unit, ExponentialEvent(noise.epsilon), k)
        return TopKPlan(k, budget, method, noise, (release,))
    if method == "canonical-lipschitz":
        subset = CanonicalLipschitz(sensitivity, k, budget.epsilon, gamma)
        release = Release(what, "exponential", subset.scale / unit, subset.event)
        return TopKPlan(k, pure, method, subset, (release,))
    if method == "peeling":
        # A hair less than the share, so that k rounded shares never exceed the budget.
        share = budget.epsilon / k * (1.0 - 2.0**-50)
        rounds = PeelingTopK(PermuteAndFlip(sensitivity, share), k)
        release = Release(what, "exponential", rounds.scale / unit, rounds.selection.event, k)
        return TopKPlan(k, pure, method, rounds, (release,))
    shot = LaplaceTopK(sensitivity, k, budget.epsilon)
    release = Release(what, "Laplace", shot.scale / unit, shot.event)
    return TopKPlan(k, pure, method, shot, (release,))


def _gumbel(budget: Budget, k: int, sensitivity: Sensitivity) -> GumbelTopK:
    scale = calibrate(budget, lambda b: ExponentialEvent(1.0 / b) * k)
    return GumbelTopK(sensitivity, k, 1.0 / scale)


def _sharpest(budget: Budget, d: int, k: int, sensitivity: Sensitivity, gamma: float, *, accounted: bool) -> str:
    """The method that finds the exact top k with probability 1/2 at the smallest gap below it.

    Union bounds: the canonical mechanism fails with probability at most ``C(d, k) exp(-gap gamma epsilon / spread)``,
    rounds of permute-and-flip or Gumbel noise of scale b with at most ``k (d - k) exp(-gap / b)``.
    """
    pairs = math.log(2.0 * k * (d - k))
    gaps = {"peeling": k * sensitivity.spread / budget.epsilon * pairs}
    if gamma > 0.0:
        subsets = float(log_binomial(d, k)) + math.log(2.0)
        gaps["canonical-lipschitz"] = sensitivity.spread / (budget.epsilon * gamma) * subsets
    if budget.delta > 0.0:
        # Where rounding would cost as much as the selection, one-shot noise is no candidate.
        with suppress(ParameterError):
            gaps["gumbel"] = _gumbel(budget, k, sensitivity).scale * pairs
    return "gumbel" if accounted and "gumbel" in gaps else min(gaps, key=lambda method: gaps[method])
