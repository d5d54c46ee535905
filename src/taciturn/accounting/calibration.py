"""Calibration: the only way from a budget to a noise scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from taciturn.accounting.accountant import RULES, Rule, remaining_delta, satisfies
from taciturn.accounting.budget import Budget
from taciturn.accounting.pieces import Pieces, pieces_of
from taciturn.accounting.search import first_private
from taciturn.core.errors import ParameterError
from taciturn.events import Event, alternatives

__all__ = ["calibrate"]

# Searches run over the logarithm of the scale.
_LIMIT = 18.0 * math.log(10.0)
_TOLERANCE = 1e-7
# What a further bound must save before it is worth a search of its own.
_WORTHWHILE = 5e-7


def calibrate(budget: Budget, event_of_scale: Callable[[float], Event], *, ordered: bool = True) -> float:
    """The smallest scale at which a plan stays within a budget.

    Every bound accepts all scales above one of its own, so the smallest of those is sought: by a
    root finder on the cheapest bound, and on each other bound only if that accepts a scale slightly
    below the best so far.

    Parameters
    ----------
    budget : Budget
        The target, with a finite epsilon.
    event_of_scale : callable
        The plan at a given scale, with a cost that falls as the scale grows, for instance
        ``lambda scale: ExponentialEvent(2.0 / scale) * 1000``. Parallel events stand at the same places at every scale.
    ordered : bool, default=True
        Whether the releases happen in the order of the event; False holds for every order.

    Returns
    -------
    float
        A scale between 1e-18 and 1e18 that satisfies the budget, at most one part in a million
        above the smallest one.

    Raises
    ------
    ParameterError
        If the budget is infinite, if its delta is less than what the samplers cost at its epsilon, or if no scale in
        that range is enough.
    """
    if math.isinf(budget.epsilon):
        raise ParameterError(
            "epsilon",
            budget.epsilon,
            "a finite budget to calibrate noise to",
            "fit without noise instead of asking for its scale",
        )

    # The dearest branches of parallel events decide; which these are may depend on the bound.
    best = max(
        _smallest_log_scale(budget, _pieces_at(event_of_scale, place, ordered))
        for place in range(len(alternatives(event_of_scale(1.0))))
    )
    # The searches end private by each bound's own test, which agrees with the final one but for the
    # last digits of a root.
    scale, nudge = math.exp(best), 1e-9
    while not satisfies(event_of_scale(scale), budget, ordered=ordered):
        scale, nudge = scale * (1.0 + nudge), 2.0 * nudge
        if scale > math.exp(_LIMIT):
            raise _out_of_reach(budget)
    return scale


def _pieces_at(event_of_scale: Callable[[float], Event], place: int, ordered: bool) -> Callable[[float], Pieces]:
    """One of the alternatives of a plan as a function of the logarithm of the scale."""

    @cache
    def pieces_at(log_scale: float) -> Pieces:
        return pieces_of(alternatives(event_of_scale(math.exp(log_scale)))[place], ordered=ordered)

    return pieces_at


def _smallest_log_scale(budget: Budget, pieces_at: Callable[[float], Pieces]) -> float:
    if remaining_delta(pieces_at(0.0), budget.epsilon, budget.delta) is None:
        raise _beyond_samplers(budget, pieces_at(0.0))
    best: float | None = None
    for rule in RULES:
        excess = _excess_of_log_scale(rule, budget, pieces_at)
        if best is None:
            best = first_private(excess, 0.0, -_LIMIT, _LIMIT, _TOLERANCE)
        elif best > -_LIMIT and excess(best - _WORTHWHILE) <= 0.0:
            best = first_private(excess, best - _WORTHWHILE, -_LIMIT, _LIMIT, _TOLERANCE)
    if best is None:
        raise _out_of_reach(budget)
    return best


def _excess_of_log_scale(rule: Rule, budget: Budget, pieces_at: Callable[[float], Pieces]) -> Callable[[float], float]:
    @cache
    def excess(log_scale: float) -> float:
        pieces = pieces_at(log_scale)
        left = remaining_delta(pieces, budget.epsilon, budget.delta)
        return math.inf if left is None else rule.excess(pieces, budget.epsilon, left)

    return excess


def _beyond_samplers(budget: Budget, pieces: Pieces) -> ParameterError:
    if budget.delta == 0.0 or pieces.distance == 0.0:
        return _out_of_reach(budget)
    charge = (1.0 + math.exp(min(budget.epsilon, 700.0))) * pieces.distance + pieces.leak
    return ParameterError(
        "delta",
        budget.delta,
        f"more than the {charge:.3g} that the sampling of the noise costs at epsilon={budget.epsilon:g}",
        "raise delta or lower epsilon",
    )


def _out_of_reach(budget: Budget) -> ParameterError:
    return ParameterError(
        "budget",
        budget,
        "a budget that some scale up to 1e18 can meet",
        "raise epsilon or delta, or drop the releases whose cost does not shrink with the scale "
        "(Gaussian noise needs delta > 0)",
    )
