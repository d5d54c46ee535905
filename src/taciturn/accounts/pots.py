"""The pots of an account as shares, for pictures: by pot, by fit and by date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from taciturn.accounts.price import Price
from taciturn.accounts.state import AccountState, Charge

__all__ = ["Pot", "cumulate", "pots_of"]

_TITLES = {"gaussian": "first pot", "epsilon": "second pot (epsilon)", "delta": "second pot (delta)"}


@dataclass(frozen=True, slots=True)
class Pot:
    """One of the totals of an account, in integers.

    Parameters
    ----------
    kind : {"gaussian", "epsilon", "delta"}
        Which field of a price it is.
    total, spent, reserved : int
        What there was, what fits that ended took, and what others hold.
    """

    kind: str
    total: int
    spent: int
    reserved: int

    @property
    def title(self) -> str:
        """Its name in words."""
        return _TITLES[self.kind]

    @property
    def shares(self) -> tuple[float, float, float]:
        """Spent, reserved and left, as shares of the total."""
        left = self.total - self.spent - self.reserved
        return self.spent / self.total, self.reserved / self.total, left / self.total

    def share(self, price: Price) -> float:
        """The share of the total that a price is."""
        paid: int = getattr(price, self.kind)
        return paid / self.total


def pots_of(state: AccountState) -> list[Pot]:
    """The pots that are not empty from the start."""
    pots = (
        Pot(kind, *(getattr(price, kind) for price in (state.total, state.spent, state.reserved))) for kind in _TITLES
    )
    return [pot for pot in pots if pot.total]


def cumulate(charges: Iterable[Charge], pot: Pot) -> list[tuple[datetime, float]]:
    """The share of a pot that was spent or reserved by the time of each charge, in the order of the clock."""
    found, sum_of_shares = [], 0.0
    dated = [(datetime.fromisoformat(charge.clock), charge) for charge in charges if charge.state != "released"]
    for time, charge in sorted(dated, key=lambda each: each[0].timestamp()):
        sum_of_shares += pot.share(charge.price)
        found.append((time, sum_of_shares))
    return found
