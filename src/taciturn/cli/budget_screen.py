"""An account on one screen: the guarantee, bars for its pots, spending by date, the last fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from taciturn.accounts.pots import Pot, cumulate, pots_of
from taciturn.accounts.state import AccountState, Charge, charges_of, state_of
from taciturn.cli.screen import console, print_line, shown_text
from taciturn.report.account_words import explain_account, format_charge, format_share, list_affordable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from taciturn.accounts.chain import LedgerEntry

__all__ = ["history_as_json", "print_account", "print_history"]

_LAST = 5
_MOST_DATES = 6
_WIDTH = 30
_STYLES = ("blue", "yellow", "bright_black")
_BLOCKS, _LETTERS = "█▓░", "#=."


def print_account(entries: Sequence[LedgerEntry]) -> None:
    """Print the state of an account."""
    from rich.panel import Panel

    state, charges = state_of(entries[0], list(entries)), charges_of(list(entries))
    screen = console()
    screen.print(Panel(shown_text(" ".join(explain_account(state))), title=shown_text(f"Account {state.name}")))
    screen.print(_pots_table(pots_of(state)))
    if state.total.gaussian:
        said = ", or ".join(f"epsilon {epsilon} at delta {delta:g}" for delta, epsilon in list_affordable(state))
        print_line(f"A Gaussian fit can still take {said}.")
    if any(charge.state != "released" for charge in charges):
        screen.print(_dates_table(charges, pots_of(state)))
    if charges:
        shown = f"The last {_LAST} of {len(charges)} charges" if len(charges) > _LAST else "All charges"
        screen.print(_charges_table(charges[-_LAST:], state, shown))
    print_line(f"chain: {state.entries} {'entry' if state.entries == 1 else 'entries'}, intact, head {state.head}")


def print_history(entries: Sequence[LedgerEntry]) -> None:
    """Print every charge of an account."""
    state, charges = state_of(entries[0], list(entries)), charges_of(list(entries))
    console().print(
        _charges_table(charges, state, f"{state.name}: {len(charges)} {'charge' if len(charges) == 1 else 'charges'}")
    )


def history_as_json(entries: Sequence[LedgerEntry]) -> str:
    """Every charge of an account as a list of objects."""
    pots = pots_of(state_of(entries[0], list(entries)))
    charges = [
        asdict(charge) | {"share": max(pot.share(charge.price) for pot in pots)} for charge in charges_of(list(entries))
    ]
    return json.dumps(charges, indent=2)


def _pots_table(pots: Sequence[Pot]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1))
    for heading in ("", "", "spent", "reserved", "left"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for pot in pots:
        table.add_row(pot.title, _bar(pot.shares, _WIDTH), *map(format_share, pot.shares))
    return table


def _dates_table(charges: Sequence[Charge], pots: Sequence[Pot]) -> Table:
    """What was spent or reserved by the end of each day, month or year: the finest that fits on a screen."""
    from rich.table import Table

    times = [datetime.fromisoformat(charge.clock).astimezone(UTC) for charge in charges]
    form = next((form for form in ("%Y-%m-%d", "%Y-%m") if len({f"{t:{form}}" for t in times}) <= _MOST_DATES), "%Y")
    table = Table(box=None, padding=(0, 1), title="Spent or reserved by date", title_justify="left")
    table.add_column("", no_wrap=True)
    for pot in pots:
        table.add_column(pot.title, no_wrap=True)
    reached = [{f"{time.astimezone(UTC):{form}}": share for time, share in cumulate(charges, pot)} for pot in pots]
    width = _WIDTH // len(pots)
    for date in sorted(reached[0])[-_MOST_DATES:]:
        shares = [each[date] for each in reached]
        table.add_row(date, *(_bar((s, 0.0, 1.0 - s), width).append(f" {format_share(s)}") for s in shares))
    return table


def _charges_table(charges: Sequence[Charge], state: AccountState, title: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), title=shown_text(title), title_justify="left")
    for heading in ("entry", "date", "what", "epsilon", "delta", "share", "state"):
        right = heading in ("entry", "epsilon", "delta", "share")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for charge in charges:
        ended = "given back" if charge.state == "released" else charge.state
        numbers = (f"{charge.epsilon:g}", f"{charge.delta:g}", format_charge(charge, state))
        table.add_row(str(charge.sequence), charge.clock[:10], shown_text(charge.what), *numbers, ended)
    return table


def _bar(shares: tuple[float, float, float], width: int) -> Text:
    """Spent, reserved and left; what is not nothing takes a character at least."""
    from rich.text import Text

    ascii_only = console().options.ascii_only
    spent, reserved = (max(round(share * width), int(share > 0.0)) for share in shares[:2])
    bar = Text()
    for count, character, style in zip(
        (spent, reserved, max(width - spent - reserved, 0)), _LETTERS if ascii_only else _BLOCKS, _STYLES, strict=True
    ):
        bar.append(character * count, style=style)
    return bar
