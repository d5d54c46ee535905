"""The accountant that prices events, and the calibration of a plan's common scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from scipy.special import ndtr, ndtri

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_delta, check_real
from taciturn.privacy import gdp, pure, rdp
from taciturn.privacy.budget import Budget, Pieces, first_private, pieces_of
from taciturn.privacy.events import Event, alternatives

# --- Events in, epsilon or delta out: the smallest of three bounds, each valid on its own.
#
# * ``gdp``: one Gaussian number for the plan (:mod:`taciturn.privacy.gdp`); the best for many steps.
# * ``rdp``: Rényi curves (:mod:`taciturn.privacy.rdp`); the best for a handful of selections.
# * ``pure``: optimal composition of pure privacy (:mod:`taciturn.privacy.pure`); the only one at
#   delta = 0, and exact for releases that are known to be pure and nothing better.
#
# Which of them is smallest depends on the plan alone. Plans are public, so the choice costs nothing. It has to be: a
# plan fixes its ranges and counts in advance, and nothing here covers scales chosen from the data, stopping rules that
# look at the data, or subsampling.
#
# Samplers -------- The bounds speak of the laws that events describe. Let everything as sampled be within
# total-variation distance :math:`\eta` of that, on every data set (:mod:`taciturn.events`). If the laws are
# :math:`(\varepsilon, \delta)`-DP, what is sampled is :math:`(\varepsilon, \delta + (1 + e^\varepsilon) \eta)`-DP:
#
# .. math:: \tilde P(S) \le P(S) + \eta \le e^\varepsilon Q(S) + \delta + \eta
#           \le e^\varepsilon \tilde Q(S) + \delta + (1 + e^\varepsilon) \eta .
#
# The charge is taken once, at the epsilon of the whole: of the plan, of the group, of the composition. It grows with
# epsilon while the bounds fall, so that a plan can be private at some epsilon and, by this account, at none that is
# much larger; since smaller epsilons imply larger ones, :func:`best_bound` looks for the smallest and :func:`delta_of`
# for the best up to the one asked. At delta = 0 only samplers with distance 0 are private at all.
#
# Parallel events --------------- Neighbours differ in one branch of each parallel event. Everything here is computed
# for each choice of branches (:func:`taciturn.events.alternatives`), and the dearest choice is stated.

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
    """One way to bound the cost of a plan; ``name`` is what a certificate calls it.

    ``epsilon`` and ``log_delta`` return the smallest provable epsilon and the logarithm of the smallest provable delta.
    ``excess`` is at most zero where a pair is provable, and varies smoothly with the scales of a plan.
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
    left = remaining_delta(pieces, 0.0, delta)
    if left is None:
        return Bound("pure", math.inf)
    gaussian, renyi, pure_ = RULES
    bounds = [Bound(rule.name, _smallest_epsilon(rule, pieces, delta)) for rule in (gaussian, pure_)]
    best = min(bounds, key=lambda bound: bound.epsilon)
    # The library that converts Rényi curves takes seconds to import, and mostly its bound is not the best.
    if rdp.exceeds(pieces, left, best.epsilon):
        return best
    bounds.insert(1, Bound(renyi.name, _smallest_epsilon(renyi, pieces, delta)))
    return min(bounds, key=lambda bound: bound.epsilon)


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
    from scipy.optimize import minimize_scalar

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


# --- Calibration: the only way from a budget to a noise scale.

# Searches run over the logarithm of the scale.
_LIMIT = 18.0 * math.log(10.0)
_TOLERANCE = 1e-7
# What a further bound must save before it is worth a search of its own.
_WORTHWHILE = 5e-7


def calibrate(budget: Budget, event_of_scale: Callable[[float], Event], *, ordered: bool = True) -> float:
    """The smallest scale at which a plan stays within a budget.

    Every bound accepts all scales above one of its own, so the smallest of those is sought: by a root finder on the
    cheapest bound, and on each other bound only if that accepts a scale slightly below the best so far.

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
        A scale between 1e-18 and 1e18 that satisfies the budget, at most one part in a million above the smallest one.

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


# --- How well anybody can test whether a record is in the data.
#
# A test sees the release and says "in" or "out". Let P be the law of the release with the record and Q the law without
# it. The true positive rate of a test is :math:`P(S)` and its false positive rate :math:`\alpha = Q(S)`, S being the
# outcomes for which it says "in". Neighbouring is symmetric, so that a plan that is :math:`(\varepsilon, \delta)`-DP
# has
#
# .. math:: P(S) \le e^{\varepsilon} \alpha + \delta, \qquad
#           1 - \alpha \le e^{\varepsilon} (1 - P(S)) + \delta ,
#
# the second from the complement of S with P and Q exchanged. A plan is :math:`(\varepsilon, \delta(\varepsilon))`-DP
# for *every* :math:`\varepsilon \ge 0`, and the smallest of all these bounds holds (Wasserman and Zhou 2010; Kairouz,
# Oh and Viswanath 2015). The *advantage* is the largest :math:`P(S) - Q(S)`, the total variation distance of P and Q.
# Both lines meet where it is largest, at
#
# .. math:: \frac{e^\varepsilon - 1 + 2 \delta}{e^\varepsilon + 1} .
#
# A :math:`\mu`-GDP plan has :math:`P(S) \le \Phi(\Phi^{-1}(\alpha) + \mu)` and the advantage :math:`2 \Phi(\mu/2) - 1`,
# which is what its whole curve :math:`\delta(\varepsilon)` gives (Dong, Roth and Su 2022).
#
# *Outright failures* (:math:`\ell`, :mod:`taciturn.privacy.budget`): P and Q are mixtures, with weight :math:`\ell`
# on something that may tell everything. A rate of :math:`\alpha` in all is one of at most :math:`\alpha / (1 - \ell)`
# in the rest. *Samplers* within total variation :math:`\eta` of their laws raise either rate by at most :math:`\eta`,
# and the advantage by :math:`2 \eta`.
#
# Which epsilons are tried changes how tight a bound is, never whether it holds. All results are rounded up.

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05)
"""The false positive rates at which membership tests are usually reported."""

# More than the rounding errors of a sum of two million squares and of the few functions applied to it.
_ROUNDING = 1e-9
# Failure probability at which the search for the best epsilon ends.
_NEGLIGIBLE = 1e-6
_LARGEST_EPSILON = 700.0
_POINTS = 48
# Plans with more choices of branches than this are bounded by fewer epsilons each.
_FEW = 16
_FEW_POINTS = 6


@dataclass(frozen=True, slots=True)
class AttackRates:
    """Upper bounds on what a test of membership achieves, whatever it computes and whatever else it knows.

    Parameters
    ----------
    fpr : tuple of float
        False positive rates: how often the test says "in" of a record that is not.
    tpr : tuple of float
        The largest true positive rate at each of them: how often it can say "in" of a record that is. A test that
        guesses has the true positive rate ``fpr``.
    advantage : float
        The largest difference between the two at any false positive rate: 0 for a guess, 1 for certainty.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    advantage: float


def mu_of(event: Event, *, ordered: bool = True) -> float | None:
    """The Gaussian parameter of a plan, rounded up; None where it has none.

    A plan with this mu is mu-GDP up to the distance of its samplers from their laws. There is none for a plan with
    releases that fail outright with some probability, with perturbed objectives, with searches, or without protection.
    """
    squared, _ = gdp.gaussian_cost(event, ordered=ordered)
    return None if math.isinf(squared) else math.sqrt(squared) * (1.0 + _ROUNDING)


def attack_rates(event: Event, *, ordered: bool = True, fpr: tuple[float, ...] = FALSE_POSITIVE_RATES) -> AttackRates:
    """Upper bounds on the power of membership tests against a plan.

    Parameters
    ----------
    event : Event
        The plan; an empty composition tells nothing.
    ordered : bool, default=True
        Whether the releases happen in the order of the event; False holds for every order.
    fpr : tuple of float, default=(0.001, 0.01, 0.05)
        False positive rates of the tests, in [0, 1].

    Returns
    -------
    AttackRates
        The dearest choice of branches of parallel events counts.
    """
    fpr = tuple(check_real(0.0, 1.0, fpr=level) for level in fpr)
    # Choices of branches that cost the same are one.
    every = {pieces_of(each, ordered=ordered) for each in alternatives(event)}
    found = [_rates(pieces, fpr, _POINTS if len(every) <= _FEW else _FEW_POINTS) for pieces in every]
    return AttackRates(
        fpr,
        tuple(max(rates.tpr[at] for rates in found) for at in range(len(fpr))),
        max(rates.advantage for rates in found),
    )


def highest_power(level: float, epsilon: float, delta: float) -> float:
    r"""Largest power of a test of whether a person is in the data, from one pair of epsilon and delta.

    .. math:: \min\{1,\; e^{\varepsilon} \alpha + \delta,\; 1 - e^{-\varepsilon} (1 - \delta - \alpha)\}

    for a test of level :math:`\alpha` (``level``), its false positive rate.

    Examples
    --------
    >>> round(highest_power(0.05, 1.0, 1e-6), 4)
    0.1359
    """
    factor = math.exp(-epsilon)
    by_false_alarms = level / factor + delta if factor > 0.0 else 1.0
    return min(1.0, by_false_alarms, 1.0 - factor * (1.0 - delta - level))


def highest_advantage(epsilon: float, delta: float) -> float:
    """Largest difference between true and false positive rate of a test, from one pair of epsilon and delta."""
    factor = math.exp(-epsilon)
    return min(1.0, (1.0 - factor + 2.0 * delta * factor) / (1.0 + factor))


def _rates(pieces: Pieces, fpr: tuple[float, ...], points: int) -> AttackRates:
    """For one choice of branches."""
    if not pieces.private:
        return AttackRates(fpr, (1.0,) * len(fpr), 1.0)
    if not (pieces.selections or pieces.pure or pieces.gaussians or pieces.objectives or pieces.searches):
        return AttackRates(fpr, fpr, 0.0)
    curve = _Curve(pieces, points)
    mu = math.inf if pieces.objectives else math.sqrt(gdp.mu_squared_of(pieces)) * (1.0 + _ROUNDING)

    def at_level(level: float) -> float:
        by_curve = curve.smallest(lambda epsilon, delta: highest_power(level, epsilon, delta))
        return _rounded_up(min(by_curve, _gaussian_power(pieces, mu, level)))

    leak, distance = pieces.leak, pieces.distance
    gaussian = leak + (1.0 - leak) * math.erf(mu / math.sqrt(8.0)) + 2.0 * distance
    return AttackRates(fpr, tuple(map(at_level, fpr)), _rounded_up(min(curve.smallest(highest_advantage), gaussian)))


def _gaussian_power(pieces: Pieces, mu: float, level: float) -> float:
    leak, distance = pieces.leak, pieces.distance
    if math.isinf(mu) or leak >= 1.0:
        return 1.0
    rest = min((level + distance) / (1.0 - leak), 1.0)
    return leak + (1.0 - leak) * float(ndtr(ndtri(rest) + mu)) + distance


def _rounded_up(bound: float) -> float:
    return min(bound * (1.0 + _ROUNDING), 1.0)


class _Curve:
    """The provable delta of a plan at a grid of epsilons, looked at more closely where that is asked for."""

    def __init__(self, pieces: Pieces, points: int) -> None:
        self._pieces = pieces
        ends = [rule.epsilon(pieces, _NEGLIGIBLE) for rule in (gdp, pure)]
        # The one epsilon that a pure plan has at delta = 0 is the best one for rare false alarms.
        corner = pure.epsilon(pieces, 0.0)
        self._grid = {min(corner, _LARGEST_EPSILON), 0.0}
        top = min(*ends, _LARGEST_EPSILON)
        self._grid |= {top * step / points for step in range(points + 1)}
        self._refine = points > _FEW_POINTS
        self._deltas = {epsilon: provable_delta(pieces, epsilon) for epsilon in sorted(self._grid)}

    def smallest(self, bound: Callable[[float, float], float]) -> float:
        """The smallest value of ``bound(epsilon, delta)`` that was found."""
        grid = list(self._deltas)
        values = [bound(epsilon, delta) for epsilon, delta in self._deltas.items()]
        best = min(range(len(grid)), key=values.__getitem__)
        if not self._refine:
            return values[best]
        between = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda epsilon: bound(epsilon, provable_delta(self._pieces, epsilon)),
            bounds=between,
            method="bounded",
            options={"xatol": 1e-3 * (between[1] - between[0]), "maxiter": 20},
        )
        return min(values[best], float(found.fun))
