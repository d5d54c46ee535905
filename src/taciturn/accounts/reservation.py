"""The price of one fit, set aside before its first random bit is drawn."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, Self

from taciturn.accounts.chain import LedgerEntry
from taciturn.core.errors import AccountError, AccountWarning
from taciturn.core.guard import warn_caller

__all__ = ["Reservation"]


class Reservation:
    """What a fit may spend, as a context: entered when the price is reserved, left when the fit ends.

    A reservation is spent when the context is left. It is given back if the context fails before :meth:`begin` was
    called, which says that data are read from here on, and only by the process that reserved. In every other case (a
    failure later on, a crash, a killed process) it stays as it is and counts as spent. No clock and no age changes
    that. Nobody else begins with it: a copy in a forked process could read data that this one believes were never read.

    If the ledger cannot be told how a context ended, this is a warning. What was reserved counts as spent, which is
    what happened, or more.

    Parameters
    ----------
    entry : LedgerEntry or None
        The entry of the reservation; None for a fit without an account, of which nothing is recorded.
    settle : callable, default=None
        ``(entry, kind)``: appends that the reservation was "spent" or "released".
    """

    def __init__(self, entry: LedgerEntry | None, settle: Callable[[LedgerEntry, str], None] | None = None) -> None:
        self._entry, self._settle = entry, settle
        self._process = os.getpid()
        self._begun = self._ended = False

    @property
    def head(self) -> str | None:
        """The hash of the entry, which the certificate states; None without an account."""
        return None if self._entry is None else self._entry.hash

    def begin(self) -> None:
        """State that data are read from here on: what is reserved is not given back any more.

        Raises
        ------
        AccountError
            In a process that did not reserve, and behind the end of the context.
        """
        self._check_usable()
        self._begun = True

    def __enter__(self) -> Self:
        self._check_usable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entry is None or self._settle is None or self._process != os.getpid():
            return
        self._ended = True
        if kind is not None and self._begun:
            return
        outcome = "spent" if kind is None else "released"
        try:
            self._settle(self._entry, outcome)
        except AccountError as failure:
            warn_caller(
                f"account={self._entry.account!r}: entry {self._entry.sequence} could not be recorded as {outcome}, "
                f"and counts as spent; {failure}",
                AccountWarning,
            )

    def _check_usable(self) -> None:
        if self._entry is not None and (self._ended or self._process != os.getpid()):
            raise AccountError(
                f"account={self._entry.account!r}: expected one use of entry {self._entry.sequence}, by the process "
                "that reserved it; reserve for every fit, where it runs."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a reservation belongs to the process that made it")
