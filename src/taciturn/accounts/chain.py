"""The entries of an account and the chain of hashes over them.

An account is a list to which entries are appended and of which none is ever changed. The first one opens the account
and states its totals. A reservation is an entry; that it was spent, or given back, is another one, which refers to it.
Each entry holds the hash of the one before, and its own hash covers every field. So an entry cannot be edited, removed
or moved without changing the hashes of all that follow, and the hash of the last one, the head, stands for them all.

Whoever can write to the database can also write a new chain. They cannot make it end in a head that stands on a
certificate somewhere else. A chain that was cut off behind that entry, or an older copy that was restored, is therefore
noticed when a certificate is checked against it, and not before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from taciturn.accounts.price import Price
from taciturn.core.errors import AccountError, ParameterError

__all__ = ["KINDS", "NO_ENTRY", "LedgerEntry", "entry_from_json", "replay_entries"]

KINDS = ("opened", "reserved", "spent", "released")
"""What an entry can record."""

NO_ENTRY = "0" * 64
"""In the place of the hash before the first entry."""

_MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry of an account.

    Parameters
    ----------
    account : str
        The name of the account.
    sequence : int
        1, 2, 3 and so on: what orders the entries. The clock is information.
    kind : {"opened", "reserved", "spent", "released"}
        What it records.
    reservation : int
        The sequence number of the reservation that was spent or released; 0 for the other kinds.
    gaussian, epsilon, delta, distance : int
        The totals of an account that is opened; the price of a reservation, also where it is released; zeros where it
        is spent, since it counts from the moment at which it is reserved.
    details : str
        JSON text: the terms of an account that is opened, a description of a reservation.
    clock : str
        The time by the clock of the computer that wrote the entry.
    previous : str
        The hash of the entry before.
    hash : str
        SHA-256 of all of the above.
    """

    account: str
    sequence: int
    kind: str
    reservation: int
    gaussian: int
    epsilon: int
    delta: int
    distance: int
    details: str
    clock: str
    previous: str
    hash: str

    @classmethod
    def append(
        cls,
        before: LedgerEntry | None,
        account: str,
        kind: str,
        reservation: int,
        price: Price,
        details: str,
        clock: str,
    ) -> LedgerEntry:
        """The entry that follows another one, or the first."""
        sequence, previous = (1, NO_ENTRY) if before is None else (before.sequence + 1, before.hash)
        unsigned = (account, sequence, kind, reservation, *price.values, details, clock, previous)
        return cls(*unsigned, hash=_digest(unsigned))

    @property
    def price(self) -> Price:
        """The four integers."""
        return Price(self.gaussian, self.epsilon, self.delta, self.distance)

    @property
    def facts(self) -> dict[str, Any]:
        """What :attr:`details` say."""
        facts: dict[str, Any] = json.loads(self.details)
        return facts

    def to_json(self) -> str:
        """One line for auditors; :func:`entry_from_json` reads it back."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def is_intact(self) -> bool:
        """Whether the hash covers the fields as they stand."""
        values = tuple(getattr(self, field.name) for field in fields(self))
        return self.hash == _digest(values[:-1])


def _digest(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def entry_from_json(line: str) -> LedgerEntry:
    """Read what :meth:`LedgerEntry.to_json` wrote; :func:`replay_entries` judges what it says."""
    try:
        content = json.loads(line) if len(line) <= _MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        content = None
    kinds = {field.name: int if field.type == "int" else str for field in fields(LedgerEntry)}
    if (
        not isinstance(content, dict)
        or set(content) != set(kinds)
        or not all(type(content[name]) is kind for name, kind in kinds.items())
    ):
        raise AccountError("entries: expected one entry of an account per line, got something else; export it again.")
    return LedgerEntry(**content)


def replay_entries(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, list[LedgerEntry]]:
    """Check a whole chain: hashes, order, states and totals.

    Returns
    -------
    opened : LedgerEntry
        The first entry, with the totals.
    entries : list of LedgerEntry
        All of them.

    Raises
    ------
    AccountError
        Naming the first entry that is wrong, and how.
    """
    found = list(entries)
    try:
        return _replay(found)
    except ParameterError:
        raise AccountError(
            "entries: expected prices and totals of 64 bits, found others; do not rely on this ledger, restore a "
            "backup and compare."
        ) from None


def _replay(found: list[LedgerEntry]) -> tuple[LedgerEntry, list[LedgerEntry]]:
    if not found or found[0].kind != "opened":
        raise AccountError("entries: expected an account that begins with its opening, found none; restore a backup.")
    opened = found[0]
    before: LedgerEntry | None = None
    spent, pending = Price(), dict[int, Price]()
    for entry in found:
        _check_place(entry, before, opened.account)
        if not entry.is_intact():
            raise _wrong(entry, "a hash that covers its fields, found another: it was edited")
        if entry.kind == "opened" and before is not None:
            raise _wrong(entry, "no second opening")
        if entry.kind == "reserved":
            spent += entry.price
            if entry.reservation:
                raise _wrong(entry, "no reservation before it")
            if not spent.fits(opened.price):
                raise _wrong(entry, "totals that are not exceeded: the account is overdrawn")
            pending[entry.sequence] = entry.price
        elif entry.kind in ("spent", "released"):
            price = pending.pop(entry.reservation, None)
            expected = Price() if entry.kind == "spent" else price
            if price is None or entry.price != expected:
                raise _wrong(entry, "a reservation that is neither spent nor given back before, at its price")
            if entry.kind == "released":
                spent -= entry.price
        elif entry.kind != "opened":
            raise _wrong(entry, f"one of {', '.join(KINDS)}")
        before = entry
    return opened, found


def _check_place(entry: LedgerEntry, before: LedgerEntry | None, account: str) -> None:
    sequence = 1 if before is None else before.sequence + 1
    if entry.sequence != sequence:
        raise AccountError(
            f"entry {sequence}: expected it after entry {sequence - 1}, found entry {entry.sequence}; entries are "
            "missing or in another order, restore a backup and compare."
        )
    if entry.account != account:
        raise _wrong(entry, f"the account {account!r}")
    if entry.previous != (NO_ENTRY if before is None else before.hash):
        raise _wrong(entry, "the hash of the entry before it, found another: entries were exchanged or removed")
    if re.fullmatch("[0-9a-f]{64}", entry.hash) is None:
        raise _wrong(entry, "a hash")


def _wrong(entry: LedgerEntry, expected: str) -> AccountError:
    return AccountError(
        f"entry {entry.sequence} ({entry.kind!r:.20}): expected {expected}; do not rely on this ledger, restore a "
        "backup and compare."
    )
