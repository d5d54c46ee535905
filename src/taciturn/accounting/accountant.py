"""Events in, epsilon or delta out: the smallest of three bounds, each valid on its own.

* ``gdp``: one Gaussian number for the plan (:mod:`taciturn.accounting.gdp`); the best for many steps.
* ``rdp``: Rényi curves (:mod:`taciturn.accounting.rdp`); the best for a handful of selections.
* ``pure``: optimal composition of pure privacy (:mod:`taciturn.accounting.pure`); the only one at
  delta = 0, and exact for releases that are known to be pure and nothing better.

Which of them is smallest depends on the plan alone. Plans are public, so the choice costs nothing.
It has to be: a plan fixes its ranges and counts in advance, and nothing here covers scales chosen
from the data, stopping rules that look at the data, or subsampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from taciturn.accounting import gdp, pure, rdp
from taciturn.accounting.budget import Budget
from taciturn.accounting.pieces import Pieces, pieces_of
from taciturn.core.validation import check_delta, check_real
from taciturn.events import Event

__all__ = ["RULES", "Bound", "Rule", "best_bound", "delta_of", "epsilon_of", "remaining_delta", "satisfies"]

# Part of delta kept back, so that neither rounding in the evaluation of a bound nor the distance of sampled noise
# from its law (2**-118 a Gaussian value) can ever matter.
_KEPT_BACK = 1e-6


@dataclass(frozen=True, slots=True)
class Bound:
    """An epsilon together with the name of the bound that proves it: "gdp", "rdp" or "pure"."""

    name: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to bound the cost of a plan.

    Parameters
    ----------
    name : str
        What a certificate calls it.
    epsilon : callable
        ``(pieces, delta)`` to the smallest provable epsilon.
    log_delta : callable
        ``(pieces, epsilon)`` to the logarithm of the smallest provable delta.
    excess : callable
        ``(pieces, epsilon, delta)`` to a number that is at most zero where the pair is provable and
        varies smoothly with the scales of a plan.
    """

    name: str
    epsilon: Callable[[Pieces, float], float]
    log_delta: Callable[[Pieces, float], float]
    excess: Callable[[Pieces, float, float], float]


RULES: tuple[Rule, ...] = (
    Rule("gdp", gdp.epsilon, gdp.log_delta, gdp.excess),
    Rule("rdp", rdp.epsilon, rdp.log_delta, rdp.excess),
    Rule("pure", pure.epsilon, pure.log_delta, pure.excess),
)
"""Every bound, the cheapest to evaluate first."""


def remaining_delta(pieces: Pieces, delta: float) -> float | None:
    """What is left of delta for everything but outright failures; None if they exceed it."""
    if pieces.leak > delta:
        return None
    return (delta - pieces.leak) / (1.0 - pieces.leak) * (1.0 - _KEPT_BACK)


def best_bound(event: Event, delta: float, *, ordered: bool = True) -> Bound:
    """The smallest provable epsilon of a plan, and which bound proves it.

    Parameters
    ----------
    event : Event
        The plan; an empty composition costs nothing.
    delta : float
        Failure probability in [0, 1).
    ordered : bool, default=True
        Whether the releases happen in the order of the event; False holds for every order.

    Returns
    -------
    Bound
        Infinite if no bound is finite, for instance Gaussian noise at delta = 0.
    """
    pieces, delta = pieces_of(event, ordered=ordered), check_delta(delta=delta)
    left = remaining_delta(pieces, delta)
    if left is None:
        return Bound("pure", math.inf)
    return min(
        (Bound(rule.name, rule.epsilon(pieces, left)) for rule in RULES),
        key=lambda bound: bound.epsilon,
    )


def epsilon_of(event: Event, delta: float) -> float:
    """The smallest provable epsilon of a plan at the given delta."""
    return best_bound(event, delta).epsilon


def delta_of(event: Event, epsilon: float) -> float:
    """The smallest provable delta of a plan at the given epsilon (zero allowed: total variation)."""
    pieces = pieces_of(event)
    epsilon = check_real(0.0, math.inf, epsilon=epsilon)
    if not pieces.private:
        return 1.0
    log_left = min(rule.log_delta(pieces, epsilon) for rule in RULES)
    left = min(math.exp(log_left) / (1.0 - _KEPT_BACK), 1.0)
    return pieces.leak + (1.0 - pieces.leak) * left


def satisfies(event: Event, budget: Budget, *, ordered: bool = True) -> bool:
    """Whether some bound proves that the plan stays within the budget.

    True exactly where ``best_bound(event, budget.delta, ordered=ordered).epsilon <= budget.epsilon``, but without
    evaluating the bounds that are no longer needed. An infinite budget accepts everything.
    """
    pieces = pieces_of(event, ordered=ordered)
    if math.isinf(budget.epsilon):
        return True
    left = remaining_delta(pieces, budget.delta)
    return left is not None and any(rule.epsilon(pieces, left) <= budget.epsilon for rule in RULES)
