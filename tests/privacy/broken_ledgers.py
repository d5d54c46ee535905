"""The real account, and the same with one mistake each: the harness has to tell them apart."""

from __future__ import annotations

import copy
import os
import time
from contextlib import suppress
from typing import Any
from unittest.mock import patch

from taciturn import Account
from taciturn.core.errors import BudgetExceededError
from taciturn.privacy.ledger import LedgerEntry, Pages, Price, open_ledger

__all__ = ["LEDGERS"]


class CheckOutside(Account):
    """Looks at what is spent in one transaction, and reserves in another."""

    def reserve(self, *args: Any, **terms: Any) -> Any:
        with open_ledger(self.url).reading(self.name) as pages:
            seen = pages.spent()
        time.sleep(0.02)
        with patch.object(Pages, "spent", lambda _: seen):
            return super().reserve(*args, **terms)


class RecordLate(Account):
    """Looks whether there is enough, and writes when the noise is drawn."""

    def reserve(self, *args: Any, **terms: Any) -> Any:
        with patch.object(Pages, "append", lambda *_: None):
            super().reserve(*args, **terms)
        return _Afterwards(lambda: Account.reserve(self, *args, **terms))


class _Afterwards:
    head = None

    def __init__(self, record: Any) -> None:
        self._record, self._begun = record, False

    def begin(self) -> None:
        self._begun = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        if self._begun:
            with suppress(BudgetExceededError), self._record():
                pass


class RefundOrphans(Account):
    """Gives back what a process reserved that is no longer there."""

    def reserve(self, *args: Any, **terms: Any) -> Any:
        for charge in self.history():
            if charge.state == "reserved" and self._is_lost(charge):
                with open_ledger(self.url).writing(self.name) as pages:
                    if not pages.settled(charge.sequence):
                        facts = (self.name, "released", charge.sequence, charge.price, "{}", charge.clock)
                        pages.append(LedgerEntry.append(pages.last(), *facts))
        return super().reserve(*args, **terms)

    def _is_lost(self, charge: Any) -> bool:
        try:
            os.kill(int(charge.what), 0)
        except ProcessLookupError:
            return True
        return False


class RefundOld(RefundOrphans):
    """Gives back what was not spent in time: at the next occasion."""

    def _is_lost(self, charge: Any) -> bool:
        return charge.what != "0"


class Floats(Account):
    """Adds prices up as numbers of epsilon and delta, and compares these."""

    def reserve(self, *args: Any, **terms: Any) -> Any:
        exact = Pages.spent
        with patch.object(Pages, "spent", lambda pages: _FloatSums(pages.all(), exact(pages))):
            return super().reserve(*args, **terms)


class _FloatSums:
    def __init__(self, entries: list[LedgerEntry], exact: Price) -> None:
        self.values = exact.values
        self.sums = [0.0] * 4
        for entry in entries:
            if entry.kind in ("reserved", "released"):
                self.sums = (self + entry.price if entry.kind == "reserved" else self - entry.price).sums

    def __add__(self, price: Price) -> _FloatSums:
        return self._changed(price, 1.0)

    def __sub__(self, price: Price) -> _FloatSums:
        return self._changed(price, -1.0)

    def _changed(self, price: Price, sign: float) -> _FloatSums:
        other = copy.copy(self)
        other.sums = [mine + sign * its for mine, its in zip(self.sums, _numbers(price), strict=True)]
        return other

    def fits(self, total: Price) -> bool:
        return all(mine <= its for mine, its in zip(self.sums, _numbers(total), strict=True))


def _numbers(price: Price) -> list[float]:
    units = (1e15, 1e15, 1e18, 1e30)
    return [value / unit for value, unit in zip(price.values, units, strict=True)]


LEDGERS: dict[str, type[Account]] = {
    "account": Account,
    "check outside the transaction": CheckOutside,
    "record after the noise": RecordLate,
    "refund of orphans": RefundOrphans,
    "refund by age": RefundOld,
    "floats": Floats,
}
