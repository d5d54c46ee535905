"""Privacy budgets that last: accounts in a database, from which fits reserve before they draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.core.lazy import lazy_names

if TYPE_CHECKING:
    from taciturn.accounts.account import Account, open_account
    from taciturn.accounts.reservation import Reservation
    from taciturn.accounts.state import AccountState, Charge

__all__ = ["Account", "AccountState", "Charge", "Reservation", "open_account"]

_HOMES = {
    "Account": "account",
    "AccountState": "state",
    "Charge": "state",
    "Reservation": "reservation",
    "open_account": "account",
}

__getattr__ = lazy_names(__name__, _HOMES)
