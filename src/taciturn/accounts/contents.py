"""What entries have to say: terms of an account, descriptions of fits, and totals that follow from the terms."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Any

from taciturn.accounting import Budget
from taciturn.accounts.chain import LedgerEntry, replay_entries
from taciturn.accounts.price import DELTA_UNITS, EPSILON_UNITS, Price, decimal_units, totals_of
from taciturn.core.errors import AccountError, ParameterError
from taciturn.core.validation import check_choice, check_integer
from taciturn.data.sensitivity import UNITS, check_relation

__all__ = ["check_entries"]

# Totals are rounded down by as much as prices are raised, so that another machine's last digits do no harm.
_RAISED = 1 + Fraction(1, 2**40)


def check_entries(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Check what entries say by themselves: the chain, the sums, and that the totals follow from the terms.

    Returns
    -------
    list of LedgerEntry
        All of them, the opening first.

    Raises
    ------
    AccountError
        Naming the first entry that is wrong, and how.
    """
    _, found = replay_entries(entries)
    for entry in found:
        flaw = _find_flaw(entry)
        if flaw is not None:
            raise AccountError(
                f"entry {entry.sequence} ({entry.kind!r}): expected {flaw}, found something else; do not rely on this "
                "ledger, restore a backup and compare."
            )
    columns = [(entry, entry.facts.get("person_column")) for entry in found if entry.kind in ("opened", "reserved")]
    named = [(entry, column) for entry, column in columns if column is not None]
    for entry, column in named:
        if column != named[0][1]:
            raise AccountError(
                f"entry {entry.sequence} ({entry.kind!r}): expected persons by the column of entry "
                f"{named[0][0].sequence}, found another; do not rely on this ledger, restore a backup and compare."
            )
    return found


def _find_flaw(entry: LedgerEntry) -> str | None:
    """What was expected of the contents of an entry and is not there; None if all is well."""
    try:
        facts = json.loads(entry.details)
        datetime.fromisoformat(entry.clock)
        if entry.kind == "opened":
            return None if _are_allowed(entry.price, facts) else "totals that its epsilon and delta allow"
        if entry.kind == "reserved":
            _check_description(facts)
            return None if _is_stated(entry.price, facts) else "a price of the second pot that is the budget of the fit"
    except (KeyError, TypeError, ValueError, RecursionError):
        return "a time, and the terms of an account or the description of a fit"
    return None


def _are_allowed(totals: Price, facts: dict[str, Any]) -> bool:
    check_relation(facts["relation"])
    check_choice(UNITS, unit=facts["unit"])
    _check_column(facts)
    if facts["n"] is not None or facts["relation"] != "add-remove":
        check_integer(1, n=facts["n"])
    allowed = totals_of(facts["epsilon"], facts["delta"], facts["approximate"])
    return all(mine <= its * _RAISED + 1 for mine, its in zip(totals.values, allowed.values, strict=True))


def _is_stated(price: Price, facts: dict[str, Any]) -> bool:
    """Whether a price of the second pot is the budget of the fit, without its delta where the release is pure."""
    if not price.epsilon and not price.delta:
        return True
    epsilon, delta = decimal_units(facts["epsilon"], EPSILON_UNITS), decimal_units(facts["delta"], DELTA_UNITS)
    return price in (Price(epsilon=epsilon, delta=delta), Price(epsilon=epsilon))


def _check_description(facts: dict[str, Any]) -> None:
    Budget(facts["epsilon"], facts["delta"])
    _check_column(facts)
    if facts["n"] is not None:
        check_integer(0, n=facts["n"])
    if not isinstance(facts["what"], str) or not isinstance(facts["ordered"], bool):
        raise ParameterError("details", facts["what"], "a class, and whether its releases are ordered", "state both")


def _check_column(facts: dict[str, Any]) -> None:
    # Earlier versions wrote none.
    if not isinstance(facts.get("person_column", ""), str):
        raise ParameterError("person_column", facts["person_column"], "the name of a column", "state that")
