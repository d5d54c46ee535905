r"""Events in, epsilon or delta out: the smallest of three bounds, each valid on its own.

* ``gdp``: one Gaussian number for the plan (:mod:`taciturn.accounting.gdp`); the best for many steps.
* ``rdp``: Rényi curves (:mod:`taciturn.accounting.rdp`); the best for a handful of selections.
* ``pure``: optimal composition of pure privacy (:mod:`taciturn.accounting.pure`); the only one at
  delta = 0, and exact for releases that are known to be pure and nothing better.

Which of them is smallest depends on the plan alone. Plans are public, so the choice costs nothing.
It has to be: a plan fixes its ranges and counts in advance, and nothing here covers scales chosen
from the data, stopping rules that look at the data, or subsampling.

Samplers
--------
The bounds speak of the laws that events describe. Let everything as sampled be within total-variation distance
:math:`\eta` of that, on every data set (:mod:`taciturn.events`). If the laws are :math:`(\varepsilon, \delta)`-DP, what
is sampled is :math:`(\varepsilon, \delta + (1 + e^\varepsilon) \eta)`-DP:

.. math:: \tilde P(S) \le P(S) + \eta \le e^\varepsilon Q(S) + \delta + \eta
          \le e^\varepsilon \tilde Q(S) + \delta + (1 + e^\varepsilon) \eta .

The charge is taken once, at the epsilon of the whole: of the plan, of the group, of the composition. It grows with
epsilon while the bounds fall, so that a plan can be private at some epsilon and, by this account, at none that is much
larger; since smaller epsilons imply larger ones, :func:`best_bound` looks for the smallest and :func:`delta_of` for the
best up to the one asked. At delta = 0 only samplers with distance 0 are private at all.

Parallel events
---------------
Neighbours differ in one branch of each parallel event. Everything here is computed for each choice of branches
(:func:`taciturn.events.alternatives`), and the dearest choice is stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import minimize_scalar

from taciturn.accounting import gdp, pure, rdp
from taciturn.accounting.budget import Budget
from taciturn.accounting.pieces import Pieces, pieces_of
from taciturn.core.validation import check_delta, check_real
from taciturn.events import Event, alternatives

__all__ = [
    "RULES",
    "Bound",
    "Rule",
    "best_bound",
    "delta_of",
    "epsilon_of",
    "provable_delta",
    "proves",
    "remaining_delta",
    "satisfies",
]

# Part of delta kept back, so that rounding in the evaluation of a bound can never matter.
_KEPT_BACK = 1e-6
# How often an epsilon is raised to what its own charge asks for before it is raised in strides.
_EXACT_RAISES = 20


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


def remaining_delta(pieces: Pieces, epsilon: float, delta: float) -> float | None:
    """What is left of delta for the bounds at an epsilon; None if samplers and outright failures exceed it."""
    rest = delta - pieces.leak
    if pieces.distance > 0.0:
        # Beyond 700 the power would overflow, and no distance of a sampler is that small.
        rest -= (1.0 + math.exp(epsilon)) * pieces.distance if epsilon < 700.0 else math.inf
    if rest < 0.0:
        return None
    return rest / (1.0 - pieces.leak) * (1.0 - _KEPT_BACK)


def _smallest_epsilon(rule: Rule, pieces: Pieces, delta: float) -> float:
    """The smallest epsilon that a bound proves beside the charge for samplers at that same epsilon.

    What the charge leaves falls as epsilon grows, so that each epsilon found from what an earlier one left is a lower
    bound, until one is found that needs no more than it leaves itself.
    """
    epsilon, left = 0.0, remaining_delta(pieces, 0.0, delta)
    raises, stride = 0, 1e-12
    while left is not None:
        needed = rule.epsilon(pieces, left)
        if needed <= epsilon or math.isinf(needed):
            return max(needed, epsilon)
        epsilon, raises = needed, raises + 1
        if raises > _EXACT_RAISES:
            # Where the two grow nearly alike. Strides end it, and never on an epsilon that is not proved.
            epsilon, stride = epsilon * (1.0 + stride), 2.0 * stride
        before, left = left, remaining_delta(pieces, epsilon, delta)
        if left == before:
            return epsilon
    return math.inf


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
    delta = check_delta(delta=delta)
    bounds = (_best_bound(pieces_of(each, ordered=ordered), delta) for each in alternatives(event))
    return max(bounds, key=lambda bound: bound.epsilon)


def _best_bound(pieces: Pieces, delta: float) -> Bound:
    if remaining_delta(pieces, 0.0, delta) is None:
        return Bound("pure", math.inf)
    return min(
        (Bound(rule.name, _smallest_epsilon(rule, pieces, delta)) for rule in RULES),
        key=lambda bound: bound.epsilon,
    )


def epsilon_of(event: Event, delta: float) -> float:
    """The smallest provable epsilon of a plan at the given delta."""
    return best_bound(event, delta).epsilon


def delta_of(event: Event, epsilon: float) -> float:
    """The smallest provable delta of a plan at the given epsilon (zero allowed: total variation)."""
    epsilon = check_real(0.0, math.inf, epsilon=epsilon)
    return max(_delta_of(pieces_of(each), epsilon) for each in alternatives(event))


def provable_delta(pieces: Pieces, epsilon: float) -> float:
    """The smallest delta that some bound proves at this very epsilon, the charge for samplers included."""
    if not pieces.private:
        return 1.0
    log_left = min(rule.log_delta(pieces, epsilon) for rule in RULES)
    left = min(math.exp(log_left) / (1.0 - _KEPT_BACK), 1.0)
    charge = (1.0 + math.exp(min(epsilon, 700.0))) * pieces.distance if pieces.distance else 0.0
    return min(pieces.leak + (1.0 - pieces.leak) * left + charge, 1.0)


def _delta_of(pieces: Pieces, epsilon: float) -> float:
    if not pieces.private or pieces.distance == 0.0:
        return provable_delta(pieces, epsilon)
    # Beyond this the charge alone is one. Up to the best epsilon the bounds fall faster than the charge grows.
    top = min(epsilon, -math.log(pieces.distance))
    best = minimize_scalar(
        lambda at: provable_delta(pieces, at), bounds=(0.0, top), method="bounded", options={"xatol": 1e-9}
    )
    return min(provable_delta(pieces, top), float(best.fun))


def proves(event: Event, epsilon: float, delta: float, *, ordered: bool = True) -> bool:
    """Whether some bound proves that a plan is (epsilon, delta)-DP.

    The answer of :func:`best_bound`, found without a search where a bound proves the pair itself. Of the part of delta
    that is kept back for rounding, half is enough here, so that a pair which :func:`best_bound` found on one machine is
    proved on another one.
    """
    delta = check_delta(delta=delta)
    return all(_proves(pieces_of(each, ordered=ordered), epsilon, delta) for each in alternatives(event))


def _proves(pieces: Pieces, epsilon: float, delta: float) -> bool:
    left = remaining_delta(pieces, epsilon, delta)
    if left is not None:
        left *= 1.0 + _KEPT_BACK / 2.0
        if any(rule.excess(pieces, epsilon, left) <= 0.0 for rule in RULES):
            return True
    return _best_bound(pieces, delta).epsilon <= epsilon


def satisfies(event: Event, budget: Budget, *, ordered: bool = True) -> bool:
    """Whether some bound proves that the plan stays within the budget.

    True exactly where ``best_bound(event, budget.delta, ordered=ordered).epsilon <= budget.epsilon``, but without
    evaluating the bounds that are no longer needed. An infinite budget accepts everything.
    """
    every = [pieces_of(each, ordered=ordered) for each in alternatives(event)]
    if math.isinf(budget.epsilon):
        return True
    return all(
        any(_smallest_epsilon(rule, pieces, budget.delta) <= budget.epsilon for rule in RULES) for pieces in every
    )
