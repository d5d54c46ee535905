"""Ledgers that commands read: of an account in a database, or exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taciturn.accounts.chain import LedgerEntry

__all__ = ["read_ledger"]

# About a million entries.
_MOST_CHARACTERS = 1 << 30


def read_ledger(where: str) -> list[LedgerEntry]:
    """The entries of an account, from its database by ``URL#NAME`` or from a file of JSON lines."""
    from taciturn.accounts import Account
    from taciturn.accounts.chain import entry_from_json
    from taciturn.accounts.location import location_of
    from taciturn.cli.table_facts import read_text

    if "://" in where:
        return Account(*location_of(where)).entries()
    lines = read_text(Path(where), "ledger", _MOST_CHARACTERS).removesuffix("\n").split("\n")
    return [entry_from_json(line) for line in lines]
