r"""A budget that is spent along the way, on releases that earlier releases decide on.

The whole is one number, :math:`x = \mu^2` of Gaussian differential privacy, and every release has a price: Gaussian
noise of multiplier m costs :math:`1 / m^2`, and k selections of range e together :math:`\nu_k^2 e^2`
(:func:`taciturn.accounting.gdp.nu`). What is bought, at what price and how often, may depend on what was released.

*Theorem.* If prices never add up to more than x, whatever is released, then everything together is
:math:`\sqrt x`-GDP.

*Proof.* By induction from the last release backwards: given any past, what is still to come is
:math:`\sqrt r`-GDP, r being what is left. A Gaussian release of price p before something that is
:math:`\sqrt{r - p}`-GDP given each of its outcomes is :math:`\sqrt{p + (r - p)}`-GDP, because adaptive composition of
Gaussian trade-off functions adds squares. A selection of range e before something that is :math:`\sqrt y`-GDP given
each of its outcomes is :math:`\sqrt{F(y, e)}`-GDP (:mod:`taciturn.accounting.gdp`), and k of them
:math:`\sqrt{F^k(y, e)}`-GDP. What F adds falls as y grows, so that :math:`F^k(y, e) - y \le F^k(0, e) = \nu_k^2 e^2`.

The guarantee is that of the whole purse, whatever was bought. So a certificate lists every release as the Gaussian one
of the same price: then the list costs the same in every case, under every accountant, alone and beside other releases.
A purse has to be empty in the end for that; what is left would be a statement about what was not bought.
"""

from __future__ import annotations

import math

from taciturn.accounting import Budget, calibrate
from taciturn.accounting.gdp import nu
from taciturn.certificate import Release
from taciturn.core.errors import CertificateError
from taciturn.events import GaussianEvent, NotPrivateEvent
from taciturn.mechanisms import DISTANCE_PER_VALUE

__all__ = ["Purse"]

# Shares are sums of a few rounded numbers; so much less of the whole is spent that rounding cannot overspend it.
_KEPT_BACK = 1e-9
_ROUNDING = 1e-12


class Purse:
    """The whole of a budget; prices are shares of it.

    Parameters
    ----------
    budget : Budget
        What everything may cost; an infinite epsilon pays for anything, without noise.
    most_values : int
        The most Gaussian values that can be released, whatever is. Their distance from the law is charged in advance,
        and listed in parts, in proportion to prices.

    Attributes
    ----------
    private : bool
        Whether epsilon is finite.
    mu : float
        The Gaussian parameter of the whole.
    left : float
        The share that is not spent yet.
    releases : list of Release
        What was bought, for the certificate.
    """

    def __init__(self, budget: Budget, most_values: int) -> None:
        self.private = not math.isinf(budget.epsilon)
        self._distance, self._values_left = most_values * DISTANCE_PER_VALUE, most_values
        whole = calibrate(budget, lambda m: GaussianEvent(m, self._distance)) if self.private else 0.0
        self.mu = (1.0 - _KEPT_BACK) / whole if self.private else math.inf
        self.left = 1.0
        self.releases: list[Release] = []

    def gaussian(self, what: str, share: float, count: int = 1, values: int = 1) -> float:
        """The noise multiplier of each of ``count`` Gaussian releases that cost ``share`` together; 0 for no noise.

        Each holds ``values`` numbers.
        """
        self._spend(share)
        if not self.private:
            return self._free(what, count)
        self._values_left -= count * values
        if self._values_left < 0:
            raise CertificateError(
                f"values={values!r}: expected no more Gaussian values than were announced; this is a defect of the "
                "plan, please report it."
            )
        priced = self._priced(share, count)
        self.releases.append(Release(what, "Gaussian", priced.noise_multiplier, priced, count))
        return priced.noise_multiplier

    def selection(self, what: str, share: float, count: int = 1) -> float:
        """The range of each of ``count`` selections that cost ``share`` together; infinite for no noise."""
        self._spend(share)
        if not self.private:
            self._free(what, count)
            return math.inf
        selection_range = self.range_of(share, count)
        self.releases.append(Release(what, "Gumbel", 2.0 / selection_range, self._priced(share, count), count))
        return selection_range

    def range_of(self, share: float, count: int) -> float:
        """The range of each of ``count`` selections that would cost ``share`` together."""
        return math.sqrt(share) * self.mu / nu(count)

    def spent(self) -> tuple[Release, ...]:
        """All that was bought, once nothing is left."""
        if self.left > _KEPT_BACK:
            raise CertificateError(
                f"left={self.left!r}: expected an empty purse, of which the statement does not depend on what was "
                "bought; this is a defect of the plan, please report it."
            )
        return tuple(self.releases)

    def _priced(self, share: float, count: int) -> GaussianEvent:
        return GaussianEvent(math.sqrt(count / share) / self.mu, self._distance * share / count)

    def _spend(self, share: float) -> None:
        if not 0.0 < share <= self.left + _ROUNDING:
            raise CertificateError(
                f"share={share!r}: expected a positive share of the budget, at most the {self.left!r} that is left; "
                "this is a defect of the plan, please report it."
            )
        self.left = max(self.left - share, 0.0)

    def _free(self, what: str, count: int) -> float:
        self.releases.append(Release(what, "none", 0.0, NotPrivateEvent(), count))
        return 0.0
