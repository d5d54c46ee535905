r"""A privacy filter: a budget that is spent along the way, on releases that earlier releases decide on.

The whole is one number, :math:`x = \mu^2` of Gaussian differential privacy. The state r of the filter is what remains
of it. Which release comes next, with how much noise, may depend on everything that was released before:

*Gaussian* noise of multiplier m has the price :math:`p = 1 / m^2 \le r`; then :math:`r \leftarrow r - p`.

*k selections of range e* leave y, where :math:`F^k(y, e) \le r` with the F of :mod:`taciturn.privacy.gdp`; then
:math:`r \leftarrow y`. Bought for a price p, they leave :math:`y = r - p`, and e is the largest with
:math:`F^k(y, e) \le r`. Bought with a given range, they leave the largest such y; F is flat in y between
:math:`(1/2 - \pi/8)\, e^2` and :math:`e^2/8`, so that there can be several.

*Theorem.* Let at most N releases be made, N being finite and fixed in advance (a million here). Then everything
together is :math:`\sqrt x`-GDP.

The page "Proof: the privacy filter" (``docs/proof-filter.md``) has the proof: an induction over the
number of releases that may still come, in which a selection followed by what is :math:`\sqrt y`-GDP is
:math:`\sqrt{F(y, e)}`-GDP.

A selection is hence priced by what remains *after* it. That this is spent later on, on whatever, is not assumed: what
is not spent costs nothing. It has to be what remains of this very filter. With what remained before the selection, or
with the budget of releases outside of the filter, the statement is false. The price of k selections before y is at most
:math:`F^k(0, e) = \nu_k^2 e^2`, what they cost where nothing can follow, and tends to :math:`k e^2/4` as y grows.

The guarantee is that of the whole filter, whatever was bought. So a certificate lists every release as the Gaussian one
of the same price: then the list costs the same in every case, under every accountant, alone and beside other releases.
The filter has to be exhausted in the end for that; what remains would be a statement about what was not bought. Beside
each release stands what remained, and :func:`chain_holds` checks the list from that.

*An (epsilon, delta) budget.* Releases that are known to be :math:`(e', d')`-DP and nothing better have no Gaussian
parameter. A part (e, d) of the budget can be set aside for them when the filter is opened; nothing moves between the
two. With x in the Gaussian budget, everything together has a hockey-stick divergence of at most
:math:`\delta_G(\sqrt x; t - e) + d` at :math:`e^t`, for every t; the same page has the proof. Accounts are filters of
this kind that are kept in a database (:mod:`taciturn.privacy.ledger`).

Samplers. The distance of everything sampled from its law (:mod:`taciturn.events`) is that of the worst case and is
announced at the beginning; the list divides it in proportion to prices, again so that it adds up to the same.

References
----------
Rogers, Roth, Ullman and Vadhan, *Privacy odometers and filters: pay-as-you-go composition* (2016).
Feldman and Zrnic, *Individual privacy accounting via a Rényi filter* (2021).
Smith and Thakurta, *Fully adaptive composition for Gaussian differential privacy* (2022).
Koskela, Tobaben and Honkela, *Individual privacy accounting with Gaussian differential privacy* (2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.core.validation import check_integer
from taciturn.privacy.budget import Budget, last_private
from taciturn.privacy.calibration import calibrate
from taciturn.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
)
from taciturn.privacy.gdp import mu_of_budget, nu, selection_step

# N of the theorem.
_MOST_RELEASES = 1_000_000
# Each release rounds what remains by 2**-53 of the whole at most. So much less of it is spent that rounding cannot
# overspend it, and cannot be used to get releases for nothing.
_KEPT_BACK = 1e-9
_ROUNDING = 1e-12
# Part of delta, as accountants keep it.
_KEPT_FOR_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Spend:
    """What was bought from a filter at once.

    Parameters
    ----------
    what : str
        In words.
    mechanism : {"gaussian", "selection", "approximate", "none"}
        Gaussian releases, selections, a release that the (epsilon, delta) budget pays for, or releases without
        noise.
    parameter : float
        The noise multiplier of each, or the range or epsilon of each; 0 or infinite without noise.
    count : int
        How many.
    event : Event
        What a certificate lists for each: a Gaussian release of the same price.
    remaining : float
        What remains of the filter's squared Gaussian parameter afterwards; infinite without privacy.
    """

    what: str
    mechanism: str
    parameter: float
    count: int
    event: Event
    remaining: float

    @property
    def price(self) -> float:
        """What all of them take from the filter; nothing without privacy."""
        return self.count / self.event.noise_multiplier**2 if isinstance(self.event, GaussianEvent) else 0.0


class PrivacyFilter:
    """A budget to spend along the way; prices are shares of the whole.

    Parameters
    ----------
    budget : Budget
        What everything may cost; an infinite epsilon pays for anything, without noise.
    distance : float, default=0.0
        Bound on the sum of the distances of all samplers from their laws, whatever is released.
    approximate : tuple of float, default=(0.0, 0.0)
        The (epsilon, delta) budget, which the whole budget includes.

    Attributes
    ----------
    private : bool
        Whether epsilon is finite.
    mu : float
        The Gaussian parameter of the whole.
    remaining : float
        The share of the Gaussian budget that is not spent yet.
    spends : list of Spend
        What was bought.

    Examples
    --------
    >>> budget = PrivacyFilter(Budget(1.0, 1e-6))
    >>> multiplier = budget.gaussian("a mean", share=0.5)
    >>> selection_range = budget.selection("a median", share=budget.remaining)
    >>> [spend.what for spend in budget.spent()]
    ['a mean', 'a median']
    """

    def __init__(self, budget: Budget, distance: float = 0.0, approximate: tuple[float, float] = (0.0, 0.0)) -> None:
        self.private = not math.isinf(budget.epsilon)
        whole = _least_multiplier(budget, distance, approximate) if self.private else 0.0
        self.mu = (1.0 - _KEPT_BACK) / whole if self.private else math.inf
        self._second = approximate
        self._second_left = Fraction(approximate[0]), Fraction(approximate[1])
        self.remaining = 1.0
        self.spends: list[Spend] = []
        self._distance = self._distance_left = distance
        self._releases_left = _MOST_RELEASES

    @property
    def event(self) -> Event:
        """What the whole filter costs, whatever is bought from it."""
        if not self.private:
            return NotPrivateEvent()
        first = GaussianEvent(1.0 / self.mu, self._distance)
        return first if self._second == (0.0, 0.0) else ComposedEvent((first, ApproximateEvent(*self._second)))

    @property
    def approximate(self) -> tuple[float, float]:
        """What remains of the (epsilon, delta) budget."""
        return float(self._second_left[0]), float(self._second_left[1])

    def gaussian(self, what: str, share: float, count: int = 1, distance: float = 0.0) -> float:
        """Buy ``count`` Gaussian releases that cost ``share`` together.

        Parameters
        ----------
        what : str
            What is released, in words.
        share : float
            Their price, as a share of the whole.
        count : int, default=1
            How many.
        distance : float, default=0.0
            How far each is from its law as sampled.

        Returns
        -------
        float
            The noise multiplier of each; 0 for no noise.
        """
        remaining = self._after(share, count)
        if self.private and count * distance > self._distance_left * (1.0 + _ROUNDING):
            raise CertificateError(
                f"distance={distance!r}: expected at most the {self._distance_left!r} that is left of what was "
                "announced for samplers; this is a defect of the plan, please report it."
            )
        self._distance_left = max(self._distance_left - count * distance, 0.0)
        multiplier = math.sqrt(count / share) / self.mu if self.private else 0.0
        self._record(what, "gaussian", multiplier, share, remaining, count)
        return multiplier

    def selection(self, what: str, share: float, count: int = 1) -> float:
        """Buy ``count`` selections that cost ``share`` together.

        Returns
        -------
        float
            The range of each; infinite for no noise.
        """
        remaining = self._after(share, count)
        selection_range = self.range_of(share, count)
        self._record(what, "selection", selection_range, share, remaining, count)
        return selection_range

    def approximate_release(self, what: str, epsilon: float, delta: float = 0.0) -> None:
        """Buy a release that is (epsilon, delta)-DP from the (epsilon, delta) budget."""
        event = ApproximateEvent(epsilon, delta)
        # Without rounding, so that nothing is sold for nothing.
        epsilon_left, delta_left = self._second_left
        left = epsilon_left - Fraction(event.epsilon), delta_left - Fraction(event.delta)
        check_integer(1, self._releases_left, count=1)
        if self.private and min(left) < 0:
            raise CertificateError(
                f"epsilon={epsilon!r}, delta={delta!r}: expected at most {self.approximate!r}, which is left of the "
                "(epsilon, delta) budget; ask for less, or open a filter with a larger one."
            )
        self._second_left = left if self.private else self._second_left
        self._releases_left -= 1
        listed: Event = event if self.private else NotPrivateEvent()
        kind = "approximate" if self.private else "none"
        self.spends.append(Spend(what, kind, epsilon, 1, listed, self.remaining * self.mu**2))

    def selection_of_range(self, what: str, selection_range: float, count: int = 1) -> float:
        """Buy ``count`` selections of a given range.

        Returns
        -------
        float
            Their price, as a share of the whole.
        """
        unit = selection_range / self.mu

        def missing(after: float) -> float:
            return selection_step(after, unit, count) - self.remaining

        if not unit > 0.0 or missing(0.0) > 0.0:
            raise CertificateError(
                f"selection_range={selection_range!r}: expected a positive range that what remains can pay for; "
                "this is a defect of the plan, please report it."
            )
        share = self.remaining - last_private(missing, 0.0, self.remaining, _ROUNDING * self.remaining)
        self._record(what, "selection", selection_range, share, self._after(share, count), count)
        return share

    def range_of(self, share: float, count: int = 1) -> float:
        """The range of each of ``count`` selections that would cost ``share`` together now; infinite for no noise."""
        after = self._after(share, count)
        if not self.private:
            return math.inf

        def missing(unit: float) -> float:
            return selection_step(after, unit, count) - (after + share)

        # Between the price where nothing can follow and the limit where very much can.
        least, most = math.sqrt(share) / nu(count), 2.0 * math.sqrt(share / count)
        least *= 1.0 - _ROUNDING
        return self.mu * last_private(missing, least, most * (1.0 + _KEPT_BACK), _ROUNDING * least)

    def spent(self) -> tuple[Spend, ...]:
        """All that was bought, once nothing remains."""
        if self.remaining > _KEPT_BACK:
            raise CertificateError(
                f"remaining={self.remaining!r}: expected an exhausted filter, of which the statement does not depend "
                "on what was bought; this is a defect of the plan, please report it."
            )
        return tuple(self.spends)

    def _after(self, share: float, count: int) -> float:
        """The share that remains after a price is paid for so many releases."""
        check_integer(1, self._releases_left, count=count)
        # The tolerance for rounding is granted once: an exhausted filter accepts no further price.
        if not (0.0 < share <= self.remaining + _ROUNDING and self.remaining > 0.0):
            raise CertificateError(
                f"share={share!r}: expected a positive share of the budget, at most the {self.remaining!r} that "
                "remains; this is a defect of the plan, please report it."
            )
        return max(self.remaining - share, 0.0)

    def _record(self, what: str, mechanism: str, parameter: float, share: float, remaining: float, count: int) -> None:
        self.remaining = remaining
        self._releases_left -= count
        if not self.private:
            self.spends.append(Spend(what, "none", parameter, count, NotPrivateEvent(), math.inf))
            return
        event = GaussianEvent(math.sqrt(count / share) / self.mu, self._distance * share / count)
        self.spends.append(Spend(what, mechanism, parameter, count, event, remaining * self.mu**2))


@lru_cache(maxsize=64)
def _least_multiplier(budget: Budget, distance: float, approximate: tuple[float, float]) -> float:
    r"""The inverse of the largest :math:`\mu` that the Gaussian budget can have.

    .. math:: \delta_G(\mu; \varepsilon - e) + d + (1 + e^\varepsilon)\,\eta \le \delta
    """
    epsilon, delta = approximate
    if not epsilon and not delta:
        return calibrate(budget, lambda m: GaussianEvent(m, distance))
    rest = (budget.delta - delta - (1.0 + math.exp(budget.epsilon)) * distance) * (1.0 - _KEPT_FOR_ROUNDING)
    if not (0.0 <= epsilon < budget.epsilon and delta >= 0.0 and rest > 0.0):
        raise ParameterError(
            "approximate", approximate, "a part of the budget that leaves something to the Gaussian one", "lower it"
        )
    return 1.0 / mu_of_budget(Budget(budget.epsilon - epsilon, rest))


def chain_cost(events: Iterable[Event]) -> float:
    r"""The least squared Gaussian parameter :math:`x` with which a filter could have bought releases in this order.

    Infinite where one of them is neither Gaussian nor a selection of bounded range, which a filter does not sell.
    """
    whole = 0.0
    for event in reversed(list(events)):
        if isinstance(event, GaussianEvent):
            whole += 1.0 / event.noise_multiplier**2
        elif isinstance(event, ExponentialEvent):
            whole = selection_step(whole, event.epsilon)
        else:
            return math.inf
    return whole


def chain_holds(spends: Iterable[Spend]) -> bool:
    """Whether every release of an exhausted filter was paid for, checked from what remained.

    Prices have to lead from each remainder to the next and from the last to nothing; Gaussian releases may not cost
    more than their prices, and selections not more than price and remainder together. Then the theorem bounds
    everything by the sum of the prices. What single releases cost too much, for rounding, adds up to a billionth of
    that at most: F has slope at most one, so that it raises the whole by no more than its sum.
    """
    spends = list(spends)
    before = math.fsum(spend.price for spend in spends)
    slack = _KEPT_BACK * before
    overspent = 0.0
    for spend in spends:
        if spend.mechanism == "gaussian":
            cost = spend.count / spend.parameter**2 + spend.remaining
        elif spend.mechanism == "selection":
            cost = selection_step(spend.remaining, spend.parameter, spend.count)
        elif spend.mechanism == "approximate":
            continue
        else:
            return False
        overspent += max(cost - before, 0.0)
        # Negated, so that what is not a number does not pass.
        if not (overspent <= slack and abs(spend.remaining + spend.price - before) <= slack):
            return False
        before = spend.remaining
    return before <= slack
