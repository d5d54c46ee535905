"""``--account``: which account pays for a command, and what it says about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.screen import print_line, print_note
from taciturn.core.errors import AccountError, TaciturnError

if TYPE_CHECKING:
    from taciturn.accounts import Account
    from taciturn.tables import TableBounds

__all__ = ["AccountOption", "charge_refusals", "open_payer", "print_payer"]

AccountOption = Annotated[
    str | None,
    typer.Option("--account", help="Account that pays, such as sqlite:///study.db#patients-2026 (taciturn budget)."),
]


def open_payer(account: str | None, seed: int | None) -> Account | None:
    """The account that an option names, before anything is read; raise if it cannot pay for this command."""
    if account is None:
        return None
    from taciturn.accounts import Account
    from taciturn.accounts.location import location_of

    opened = Account.open(*location_of(account))
    if seed is not None:
        raise AccountError(
            f"seed: expected none for what account={opened.name!r} pays for, got one, which undoes the noise; leave it "
            "out, or leave the account out."
        )
    return opened


@contextmanager
def charge_refusals(
    opened: Account | None, epsilon: float, delta: float, *, what: str, relation: str, bounds: TableBounds
) -> Iterator[None]:
    """Read a table inside: a refusal there is charged the budget of the command, since it tells of the data.

    Where the account cannot pay, that is what is said, as it would be of a table without a fault.
    """
    try:
        yield
    except TaciturnError:
        if opened is not None:
            from taciturn.accounting import Budget, PrivacyFilter
            from taciturn.events import PureEvent

            budget = Budget(epsilon, delta)
            event = PrivacyFilter(budget).event if delta else PureEvent(epsilon)
            unit = "record" if bounds.person is None else "person"
            # It is never settled: what is reserved counts as spent.
            opened.reserve(
                event, budget, what=what, relation=relation, unit=unit, n=None, person_column=bounds.person
            ).begin()
            print_note(f"the refusal tells of the data: account {opened.name} was charged for it.")
        raise


def print_payer(opened: Account | None) -> None:
    """Print in one line what an account has left, or that nothing keeps count."""
    if opened is None:
        print_line("no account: nothing keeps count of several fits (--account, taciturn budget)")
        return
    from taciturn.accounts.pots import pots_of
    from taciturn.report.account_words import format_share

    left = "; ".join(f"{pot.title}: {format_share(pot.shares[2])}" for pot in pots_of(opened.state()))
    print_line(f"left in account {opened.name}: {left}")
