r"""What a fit costs an account, and what an account holds: four integers each.

An account is a privacy filter with two pots. The first one is a total :math:`x = \mu^2` of squared Gaussian parameters,
the second a pair (e, d) for releases that are known to be (e, d)-DP and nothing better. Beside them stands
:math:`\eta`, the sum of the distances of all samplers from their laws.

*Theorem.* Let the releases of an account be charged, each before it is made, either :math:`x_i` to the first pot, where
the release is :math:`\sqrt{x_i}`-GDP given everything before it, or :math:`(e_i, d_i)` to the second one, where it is
:math:`(e_i, d_i)`-DP. Which release comes next, and its price, may depend on all earlier results. If the sums never
exceed x, e and d, then for every real t

.. math:: D(e^t) \le \delta_G(\sqrt x;\, t - e) + d,

where D is the hockey-stick divergence of everything together and :math:`\delta_G(\mu; t)` that of
:math:`N(\mu, 1)` from :math:`N(0, 1)`.

The page "Proof: the privacy filter with two pots" (``docs/proof-filter.md``) has the proof, also for fits that overlap
and for the integers below.

With samplers, everything is :math:`(\varepsilon, \delta)`-DP if
:math:`\delta_G(\sqrt x; \varepsilon - e) + d + (1 + e^\varepsilon)\,\eta \le \delta`. That is the statement of the
account, for its *totals*: what happens to be spent so far is information, not a guarantee.

Integers. Doubles add up to a different sum in a different order, and a sum that is rounded can be overdrawn. So prices
are integers: squared parameters in units of :math:`10^{-15}`, raised by the factor :math:`1 + 2^{-40}`, which covers
their own evaluation, and then up; epsilons in units of :math:`10^{-15}` and deltas in units of :math:`10^{-18}`, up
from the decimal numbers that were asked for; distances in units of :math:`10^{-30}`, up. Totals are rounded down.

References
----------
Rogers, Roth, Ullman and Vadhan, *Privacy odometers and filters: pay-as-you-go composition* (2016).
Smith and Thakurta, *Fully adaptive composition for Gaussian differential privacy* (2022).
Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang, *Concurrent composition for interactive differential privacy with
adaptive privacy-loss parameters* (2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction

from taciturn.accounting import Budget, best_bound
from taciturn.accounting.gdp import gaussian_cost, mu_of_budget
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_delta, check_integer, check_real
from taciturn.events import Event

__all__ = [
    "DELTA_UNITS",
    "DISTANCE_UNITS",
    "EPSILON_UNITS",
    "GAUSSIAN_UNITS",
    "Price",
    "decimal_units",
    "prices_of",
    "totals_of",
]

GAUSSIAN_UNITS = 10**15
"""A squared Gaussian parameter of 1, as an integer."""
EPSILON_UNITS = 10**15
"""An epsilon of 1 of the second pot, as an integer."""
DELTA_UNITS = 10**18
"""A delta of 1 of the second pot, as an integer."""
DISTANCE_UNITS = 10**30
"""A distance of 1 between samplers and laws, as an integer."""

_RAISED = 1 + Fraction(1, 2**40)
# Integers of databases have 64 bits, and the sum of a total and a price has to be one.
_MOST = 2**63 - 1
_LARGEST = 2**62
# Of the account's delta: for all samplers together, and for rounding. Fits keep back twice the latter, so that an
# account can pay for a fit with its own budget.
_DISTANCE_SHARE = 1e-7
_KEPT_BACK = 0.5e-6


@dataclass(frozen=True, slots=True, order=False)
class Price:
    """Four integers: what a release costs, what was spent, or what a total is.

    Parameters
    ----------
    gaussian : int
        Squared Gaussian parameter, in units of 1e-15.
    epsilon : int
        Epsilon of the second pot, in units of 1e-15.
    delta : int
        Delta of the second pot, in units of 1e-18.
    distance : int
        Distance of samplers from their laws, in units of 1e-30.
    """

    gaussian: int = 0
    epsilon: int = 0
    delta: int = 0
    distance: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            check_integer(0, _MOST, **{each.name: getattr(self, each.name)})

    def __add__(self, other: Price) -> Price:
        return Price(*(mine + its for mine, its in zip(self.values, other.values, strict=True)))

    def __sub__(self, other: Price) -> Price:
        return Price(*(mine - its for mine, its in zip(self.values, other.values, strict=True)))

    @property
    def values(self) -> tuple[int, int, int, int]:
        """The four integers."""
        return self.gaussian, self.epsilon, self.delta, self.distance

    @property
    def mu(self) -> float:
        """The Gaussian parameter of the first pot."""
        return math.sqrt(self.gaussian / GAUSSIAN_UNITS)

    @property
    def pair(self) -> tuple[float, float]:
        """Epsilon and delta of the second pot."""
        return self.epsilon / EPSILON_UNITS, self.delta / DELTA_UNITS

    def fits(self, total: Price) -> bool:
        """Whether each of the integers is at most that of a total."""
        return all(mine <= its for mine, its in zip(self.values, total.values, strict=True))

    def times(self, count: int) -> Price:
        """So many of it."""
        return Price(*(count * mine for mine in self.values))

    def affordable(self, total: Price, count: int) -> int:
        """How many of it a total has room for, at most ``count``."""
        return min([count, *(its // mine for mine, its in zip(self.values, total.values, strict=True) if mine)])


def prices_of(event: Event, budget: Budget, *, ordered: bool = True) -> Iterable[Price]:
    """What a plan may be charged, the first pot before the second; an account takes the first price that it can pay.

    Parameters
    ----------
    event : Event
        Everything that the plan may release. Of parallel events the dearest branch is charged, once.
    budget : Budget
        What the plan was calibrated for. The second pot is charged this, as the caller wrote it.
    ordered : bool, default=True
        Whether the releases happen in the order of the event.

    Raises
    ------
    ParameterError
        If the plan is not private, or not within its budget.
    """
    bound = best_bound(event, budget.delta, ordered=ordered)
    if math.isinf(budget.epsilon) or not bound.epsilon <= budget.epsilon:
        raise ParameterError(
            "epsilon", budget.epsilon, "a finite budget that the releases keep to", "an account pays for private fits"
        )
    squared, distance = gaussian_cost(event, ordered=ordered)
    if math.isfinite(squared):
        yield Price(
            gaussian=min(math.ceil(Fraction(squared) * _RAISED * GAUSSIAN_UNITS), _LARGEST),
            distance=min(math.ceil(Fraction(distance) * DISTANCE_UNITS), _LARGEST),
        )
    # Delta of the budget already holds the charge for samplers, at the epsilon of this plan.
    pure = budget.delta == 0.0 or best_bound(event, 0.0, ordered=ordered).epsilon <= budget.epsilon
    yield Price(
        epsilon=decimal_units(budget.epsilon, EPSILON_UNITS),
        delta=0 if pure else decimal_units(budget.delta, DELTA_UNITS),
    )


def totals_of(epsilon: float, delta: float, approximate: tuple[float, float] = (0.0, 0.0)) -> Price:
    r"""The pots of an account that states (epsilon, delta).

    The second pot is ``approximate``, which epsilon and delta include; the first one is the largest x with
    :math:`\delta_G(\sqrt x; \varepsilon - e) + d + (1 + e^\varepsilon)\,\eta \le \delta`.

    Raises
    ------
    ParameterError
        If the second pot exceeds the whole, or nothing could ever be paid for.
    """
    whole = Budget(epsilon, delta)
    if math.isinf(whole.epsilon):
        raise ParameterError("epsilon", epsilon, "a finite number", "an account keeps a budget; choose one")
    pair = _checked_pair(approximate)
    if pair[0] > whole.epsilon or pair[1] > whole.delta:
        raise ParameterError(
            "approximate", approximate, f"at most epsilon={whole.epsilon!r} and delta={whole.delta!r}", "lower it"
        )
    shifted = _rounded_down(_decimal(whole.epsilon) - _decimal(pair[0]))
    rest = _rounded_down(_decimal(whole.delta) - _decimal(pair[1]))
    distance = min(_DISTANCE_SHARE * rest / (1.0 + math.exp(whole.epsilon)), _LARGEST / 2 / DISTANCE_UNITS)
    squared = 0.0
    if shifted > 0.0 and rest > 0.0:
        left = (rest - (1.0 + math.exp(whole.epsilon)) * distance) * (1.0 - _KEPT_BACK)
        squared = mu_of_budget(Budget(shifted, left)) ** 2
    totals = Price(
        gaussian=math.floor(Fraction(squared) / _RAISED * GAUSSIAN_UNITS),
        epsilon=math.floor(_decimal(pair[0]) * EPSILON_UNITS),
        delta=math.floor(_decimal(pair[1]) * DELTA_UNITS),
        distance=math.floor(Fraction(distance) * DISTANCE_UNITS),
    )
    if not totals.gaussian and not totals.epsilon:
        raise ParameterError(
            "delta", delta, "a number > 0, or a second pot", "raise delta, or give approximate=(epsilon, 0)"
        )
    return totals


def _checked_pair(approximate: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(approximate, list | tuple) or len(approximate) != 2:
        raise ParameterError("approximate", approximate, "a pair (epsilon, delta)", "give (0, 0) for no second pot")
    epsilon, delta = approximate
    return check_real(0.0, math.inf, closed="left", approximate=epsilon), check_delta(approximate=delta)


def decimal_units(number: float, units: int) -> int:
    """A decimal number that the caller wrote in units, rounded up."""
    return math.ceil(_decimal(number) * units)


def _rounded_down(number: Fraction) -> float:
    """A double that is not larger."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def _decimal(number: float) -> Fraction:
    """The decimal number that the caller wrote, without the error of its double."""
    return Fraction(repr(number))
