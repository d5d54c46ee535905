"""Where entries are kept: one append-only table of a database, the same in every kind of database.

Plain ``sqlite3`` and ``psycopg`` rather than a layer above both. There is one table and a handful of statements, and
what matters about them is when a transaction begins, what it locks and when it is on disk; a layer would decide that
by itself. The default needs nothing that is not in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, Protocol

from taciturn.accounts.chain import LedgerEntry
from taciturn.accounts.location import sqlite_path
from taciturn.accounts.price import Price
from taciturn.core.errors import AccountError

__all__ = ["COLUMNS", "TABLE", "Ledger", "Pages", "open_ledger"]

COLUMNS = tuple(field.name for field in fields(LedgerEntry))
"""Columns of the table, named as the fields of an entry are."""

_LISTED = ", ".join(COLUMNS)

TABLE = """
CREATE TABLE IF NOT EXISTS taciturn_entries (
    account TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    kind TEXT NOT NULL,
    reservation BIGINT NOT NULL,
    gaussian BIGINT NOT NULL,
    epsilon BIGINT NOT NULL,
    delta BIGINT NOT NULL,
    distance BIGINT NOT NULL,
    details TEXT NOT NULL,
    clock TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (account, sequence),
    CHECK (kind IN ('opened', 'reserved', 'spent', 'released')),
    CHECK (gaussian >= 0 AND epsilon >= 0 AND delta >= 0 AND distance >= 0)
)
"""
"""The table, in words that both databases know."""


class Pages:
    """The entries of one account inside one transaction.

    Parameters
    ----------
    execute : callable
        Runs a statement with question marks for its parameters and returns all rows.
    account : str
        The name of the account.
    """

    def __init__(self, execute: Callable[[str, Sequence[Any]], list[Any]], account: str) -> None:
        self._execute, self._account = execute, account

    def opened(self) -> LedgerEntry:
        """The first entry, with the totals.

        Raises
        ------
        AccountError
            If there is no such account.
        """
        found = self.entry(1)
        if found is not None:
            return found
        raise AccountError(
            f"account={self._account!r}: expected an account that was created, found none of this name; create it "
            "with Account.create or 'taciturn budget create', or check the name."
        )

    def entry(self, sequence: int) -> LedgerEntry | None:
        """The entry in this place, if there is one."""
        found = self._select("sequence = ?", sequence)
        return found[0] if found else None

    def last(self) -> LedgerEntry | None:
        """The entry that the next one follows; None where the account does not exist."""
        found = self._select("sequence = (SELECT max(sequence) FROM taciturn_entries WHERE account = ?)", self._account)
        return found[0] if found else None

    def all(self) -> list[LedgerEntry]:
        """Every entry, in order."""
        return self._select("1 = 1")

    def openings(self) -> list[LedgerEntry]:
        """The first entries of all accounts of the database."""
        rows = self._execute(f"SELECT {_LISTED} FROM taciturn_entries WHERE sequence = 1 ORDER BY account", ())
        return [LedgerEntry(*row) for row in rows]

    def spent(self) -> Price:
        """The sum of all reservations that were not given back: integers, added up without rounding."""
        of_kind = "coalesce(sum(CASE kind WHEN 'reserved' THEN {0} WHEN 'released' THEN -{0} ELSE 0 END), 0)"
        sums = ", ".join(of_kind.format(name) for name in ("gaussian", "epsilon", "delta", "distance"))
        (row,) = self._execute(f"SELECT {sums} FROM taciturn_entries WHERE account = ?", (self._account,))
        if min(row) < 0:
            raise AccountError(f"account={self._account!r}: expected sums that are not negative; verify this ledger.")
        return Price(*(int(value) for value in row))

    def settled(self, reservation: int) -> bool:
        """Whether a reservation was spent or given back."""
        return bool(self._select("reservation = ?", reservation))

    def append(self, entry: LedgerEntry) -> None:
        """Add an entry; it is there for others when the transaction ends."""
        marks = ", ".join("?" * len(COLUMNS))
        values = tuple(getattr(entry, name) for name in COLUMNS)
        self._execute(f"INSERT INTO taciturn_entries ({_LISTED}) VALUES ({marks})", values)

    def _select(self, condition: str, *values: Any) -> list[LedgerEntry]:
        rows = self._execute(
            f"SELECT {_LISTED} FROM taciturn_entries WHERE account = ? AND {condition} ORDER BY sequence",
            (self._account, *values),
        )
        return [LedgerEntry(*row) for row in rows]


class Ledger(Protocol):
    """A database with accounts in it. Connections are opened for one transaction each, so that none is shared."""

    def prepare(self) -> None:
        """Make the table, unless it is there."""

    def writing(self, account: str) -> AbstractContextManager[Pages]:
        """A transaction that excludes every other one on the account, and is on disk when it ends."""

    def reading(self, account: str) -> AbstractContextManager[Pages]:
        """A transaction that sees one state."""


def open_ledger(url: str) -> Ledger:
    """The database of a URL; nothing is connected to yet."""
    path = sqlite_path(url)
    if path is not None:
        from taciturn.accounts.sqlite import SQLiteLedger

        return SQLiteLedger(path)
    from taciturn.accounts.postgresql import PostgreSQLLedger

    return PostgreSQLLedger(url)
