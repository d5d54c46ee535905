"""Plans: a budget and public facts in, a mechanism and its certificate's releases out. No data.

A plan is made before anything is read and depends on public numbers only. It is the one place where budgets
become noise scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_finite, check_integer
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import ExponentialEvent, NotPrivateEvent
from taciturn.mechanisms import (
    CanonicalLipschitz,
    GumbelTopK,
    IndexArray,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    TopK,
    largest,
    log_binomial,
)

__all__ = ["TOP_K_MECHANISMS", "TopKPlan", "plan_top_k"]

TOP_K_MECHANISMS = ("auto", "canonical-lipschitz", "gumbel", "peeling", "laplace")
"""Names of the private top-k mechanisms."""


@dataclass(frozen=True, slots=True)
class TopKPlan:
    """How k of d candidates will be selected.

    Parameters
    ----------
    k : int
        How many.
    budget : Budget
        What the selection may cost; its delta is 0 where the mechanism is pure.
    method : str
        Name of the mechanism, or "all" where every candidate is taken, or "exact" without privacy.
    mechanism : TopK or None
        None where nothing private is needed.
    releases : tuple of Release
        For the certificate.
    """

    k: int
    budget: Budget
    method: str
    mechanism: TopK | None
    releases: tuple[Release, ...]

    def select(self, scores: object, stream: Stream) -> IndexArray:
        """The selected indices."""
        if self.mechanism is not None:
            return self.mechanism.release(scores, stream.spawn("top-k"))
        return largest(check_finite(scores=scores).astype(np.float64), self.k)


def plan_top_k(
    budget: Budget,
    n_candidates: int,
    k: int,
    sensitivity: Sensitivity,
    *,
    method: str = "auto",
    gamma: float = 0.5,
) -> TopKPlan:
    """Plan the private selection of k of ``n_candidates`` scores.

    ``"auto"`` takes a pure mechanism when delta is 0, else whichever tells smaller score gaps apart: the
    canonical Lipschitz mechanism or one-shot Gumbel noise. A pure mechanism leaves delta unused.

    Parameters
    ----------
    budget : Budget
        For the whole selection; an infinite epsilon selects without noise.
    n_candidates, k : int
        ``1 <= k <= n_candidates``; all candidates cost nothing.
    sensitivity : Sensitivity
        Of the scores, in the linf norm.
    method : {"auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"}
        The mechanism.
    gamma : float
        For the canonical Lipschitz mechanism, in [0, 1).
    """
    check_choice(TOP_K_MECHANISMS, mechanism=method)
    k = check_integer(1, n_candidates, k=k)
    if k == n_candidates:
        return TopKPlan(k, Budget(budget.epsilon, 0.0), "all", None, ())
    what = f"which {k:,} of {n_candidates:,} features score highest"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        return TopKPlan(k, Budget(math.inf, 0.0), "exact", None, (exact,))
    if method == "auto":
        method = _sharpest(budget, n_candidates, k, sensitivity, gamma)
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


def _sharpest(budget: Budget, d: int, k: int, sensitivity: Sensitivity, gamma: float) -> str:
    """The method that finds the exact top k with probability 1/2 at the smaller gap below it.

    Union bounds: the canonical mechanism fails with probability at most ``C(d, k) exp(-gap gamma epsilon / 2)``,
    in units of the sensitivity, Gumbel noise with at most ``k (d - k) exp(-gap / b)``.
    """
    if budget.delta == 0.0 or k == 1:
        return "canonical-lipschitz"
    gumbel_gap = _gumbel(budget, k, sensitivity).scale * math.log(2.0 * k * (d - k))
    subsets = float(log_binomial(d, k)) + math.log(2.0)
    canonical_gap = sensitivity.spread * subsets / (budget.epsilon * gamma) if gamma > 0.0 else math.inf
    return "gumbel" if gumbel_gap < canonical_gap else "canonical-lipschitz"
