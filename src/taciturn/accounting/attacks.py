r"""How well anybody can test whether a record is in the data.

A test sees the release and says "in" or "out". Let P be the law of the release with the record and Q the law without
it. The true positive rate of a test is :math:`P(S)` and its false positive rate :math:`\alpha = Q(S)`, S being the
outcomes for which it says "in". Neighbouring is symmetric, so that a plan that is :math:`(\varepsilon, \delta)`-DP has

.. math:: P(S) \le e^{\varepsilon} \alpha + \delta, \qquad
          1 - \alpha \le e^{\varepsilon} (1 - P(S)) + \delta ,

the second from the complement of S with P and Q exchanged. A plan is :math:`(\varepsilon, \delta(\varepsilon))`-DP for
*every* :math:`\varepsilon \ge 0`, and the smallest of all these bounds holds (Wasserman and Zhou 2010; Kairouz, Oh and
Viswanath 2015). The *advantage* is the largest :math:`P(S) - Q(S)`, the total variation distance of P and Q. Both lines
meet where it is largest, at

.. math:: \frac{e^\varepsilon - 1 + 2 \delta}{e^\varepsilon + 1} .

A :math:`\mu`-GDP plan has :math:`P(S) \le \Phi(\Phi^{-1}(\alpha) + \mu)` and the advantage
:math:`2 \Phi(\mu/2) - 1`, which is what its whole curve :math:`\delta(\varepsilon)` gives (Dong, Roth and Su 2022).

*Outright failures* (:math:`\ell`, :mod:`taciturn.accounting.pieces`): P and Q are mixtures, with weight :math:`\ell` on
something that may tell everything. A rate of :math:`\alpha` in all is one of at most :math:`\alpha / (1 - \ell)` in the
rest. *Samplers* within total variation :math:`\eta` of their laws raise either rate by at most :math:`\eta`, and the
advantage by :math:`2 \eta`.

Which epsilons are tried changes how tight a bound is, never whether it holds. All results are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from taciturn.accounting import gdp, pure
from taciturn.accounting.accountant import provable_delta
from taciturn.accounting.pieces import Pieces, pieces_of
from taciturn.core.validation import check_real
from taciturn.events import Event, alternatives

__all__ = ["FALSE_POSITIVE_RATES", "AttackRates", "attack_rates", "highest_advantage", "highest_power", "mu_of"]

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
    releases that fail outright with some probability, with perturbed objectives, or without protection.
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
    if not (pieces.selections or pieces.pure or pieces.gaussians or pieces.objectives):
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
        found = minimize_scalar(
            lambda epsilon: bound(epsilon, provable_delta(self._pieces, epsilon)),
            bounds=between,
            method="bounded",
            options={"xatol": 1e-3 * (between[1] - between[0]), "maxiter": 20},
        )
        return min(values[best], float(found.fun))
