"""The report of an account."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from taciturn.app.report.page import render
from taciturn.charts import NARROW, Drawing, Layout, Markup, draw_ticks, element, in_both_widths, round_safely
from taciturn.core.errors import AccountError, visible
from taciturn.privacy.account import AccountState, Balance, Charge, affordable_epsilon, charges_of, cumulate, state_of
from taciturn.privacy.ledger import LedgerEntry, check_entries

_USUAL_DELTA = 1e-6


def explain_account(state: AccountState) -> tuple[str, str, str]:
    """Three sentences: the guarantee, that fits may be chosen along the way, and what is not covered."""
    whose = "one record" if state.unit == "record" else "all records of one person"
    change = f"leaving {whose} out of the data"
    if state.relation == "replace-one":
        change = f"replacing {whose} by any others" if state.unit == "person" else "replacing one record by any other"
    beyond = f", up to an additional probability of {state.delta:.6g}" if state.delta else ""
    return (
        f"Everything that this account ever pays for is together differentially private (epsilon = "
        f"{state.epsilon:.6g}, delta = {state.delta:.6g}, relation: {state.relation}): {change} changes the "
        f"probability of any outcome by a factor of at most {round_safely(math.exp(state.epsilon), up=True)}{beyond}.",
        "This also holds if each fit, its budget included, is chosen after looking at earlier results.",
        "It covers what the account pays for and nothing else: a fit, a score or a look at the data outside the "
        "account is not in it.",
    )


def list_affordable(state: AccountState) -> list[tuple[float, str]]:
    """The largest epsilon of a Gaussian fit that can still be paid for, at the usual delta and at the account's."""
    deltas = dict.fromkeys(delta for delta in (_USUAL_DELTA, state.delta) if delta)
    return [(delta, round_safely(affordable_epsilon(state.left, delta), up=False)) for delta in deltas]


def format_charge(charge: Charge, state: AccountState) -> str:
    """The share of its budget that a charge is; of an (epsilon, delta) budget, the larger of the two shares."""
    share = max(balance.share(charge.price) for balance in state.balances)
    return f"{format_share(share)} of (epsilon, delta)" if charge.price.epsilon else format_share(share)


def format_share(share: float) -> str:
    """A share of a budget as a percentage with one decimal; a small one does not become nothing.

    Examples
    --------
    >>> [format_share(share) for share in (0.0, 0.00001, 0.12345, 1.0)]
    ['0%', '<0.1%', '12.3%', '100%']
    """
    if 0.0 < share < 0.001:
        return "<0.1%"
    return f"{100.0 * share:.1f}".removesuffix(".0") + "%"


# --- The budget of an account as inline SVG: what is left of each part, what each fit took, and when.

MOST_FITS = 40
"""Fits that a chart shows."""

_WIDE = Layout(640.0, 205.0, 75.0, 24.0)
_NARROW = replace(NARROW, row=38.0)
_BAR, _TOP = 14.0, 24.0
_HIGH, _AXIS = 180.0, 52.0
_KINDS = {"spent": "plus", "reserved": "minus", "left": "region"}
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def balances_chart(balances: Sequence[Balance], title: str) -> Drawing:
    """Draw one bar for each balance: spent, reserved and left."""

    def draw(layout: Layout) -> Drawing:
        first = _TOP + 10.0
        shapes = _legend(layout)
        for row, balance in enumerate(balances):
            top, x = first + layout.row * row, layout.left
            shapes += layout.labels(top, balance.title, f"{format_share(balance.shares[2])} left")
            for share, (name, kind) in zip(balance.shares, _KINDS.items(), strict=True):
                width = share * layout.span
                shapes.append(
                    _bar(x, layout.middle(top), width, kind, f"{balance.title}: {format_share(share)} {name}")
                )
                x += width
        return Drawing(title, layout.width, first + layout.row * len(balances) + 6.0, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def fits_chart(charges: Sequence[Charge], balance: Balance, title: str) -> Drawing:
    """Draw what each fit took of a budget; a bar begins where the one before it ends. The last 40 are shown.

    A fit that gave its reservation back is drawn as an outline and takes nothing.
    """
    earlier, shown = charges[:-MOST_FITS], charges[-MOST_FITS:]
    taken = sum(balance.share(charge.price) for charge in earlier if charge.state != "released")

    def draw(layout: Layout) -> Drawing:
        bottom, at = _TOP + layout.row * len(shown), taken
        ticks = [(layout.left + share * layout.span, f"{share:.0%}", share == 0.0) for share in _SHARES]
        shapes = draw_ticks(layout, ticks, _TOP, bottom)
        for row, charge in enumerate(shown):
            top, share = _TOP + layout.row * row, balance.share(charge.price)
            kind = "estimate" if charge.state == "released" else _KINDS[charge.state]
            name = f"{charge.sequence}: {visible(charge.what)}"
            label, number = layout.labels(
                top, name, "given back" if charge.state == "released" else format_share(share)
            )
            told = f"{name}, {format_share(share)} {charge.state}"
            bar = _bar(layout.left + at * layout.span, layout.middle(top), share * layout.span, kind, told)
            shapes += [label, bar, number]
            at += 0.0 if charge.state == "released" else share
        return Drawing(title, layout.width, bottom + 6.0, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def dates_chart(charges: Sequence[Charge], balance: Balance, opened: str, title: str) -> Drawing:
    """Draw the share of a budget that was spent or reserved against the date, in steps."""
    steps = cumulate(charges, balance)
    times = [datetime.fromisoformat(opened), *(time for time, _ in steps)]
    first, last = min(times, key=datetime.timestamp), max(times, key=datetime.timestamp)
    # A little beyond the last step, so that it can be seen.
    length = max((last - first) * 1.05, timedelta(minutes=1))
    bottom = _TOP + _HIGH

    def height(share: float) -> float:
        return bottom - _HIGH * share

    def draw(layout: Layout) -> Drawing:
        left, right = _AXIS, layout.width - 14.0

        def place(time: datetime) -> float:
            return left + (right - left) * ((time - first) / length)

        shapes = []
        for share in _SHARES:
            y = height(share)
            shapes.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="grid" if share else "axis"))
            shapes.append(element("text", f"{share:.0%}", x=left - 7.0, y=y + 4.0, class_="small number"))
        path, reached = f"M{left:.2f} {bottom:.2f}", 0.0
        for time, share in steps:
            path += f"L{place(time):.2f} {height(reached):.2f}L{place(time):.2f} {height(share):.2f}"
            reached = share
        path += f"L{right:.2f} {height(reached):.2f}"
        shapes += [
            element("path", d=f"{path}L{right:.2f} {bottom:.2f}Z", class_="region"),
            element("path", d=path, class_="curve"),
        ]
        most = layout.ticks - 1
        for number in range(most):
            time = first + length * (number / (most - 1))
            x = place(time)
            edge = " number" if number == most - 1 else " middle" if number else ""
            shapes.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5.0, class_="axis"))
            shapes.append(element("text", _date(time, length), x=x, y=bottom + 20.0, class_=f"small{edge}"))
        return Drawing(title, layout.width, bottom + 30.0, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def _date(time: datetime, length: timedelta) -> str:
    utc = time.astimezone(UTC)
    return f"{utc:%Y-%m-%d}" if length > timedelta(days=5) else f"{utc:%m-%d %H:%M}"


def _bar(x: float, middle: float, width: float, kind: str, told: str) -> Markup:
    shape = element("rect", x=x, y=middle - _BAR / 2.0, width=width, height=_BAR, class_=kind)
    return element("g", element("title", told), shape)


def _legend(layout: Layout) -> list[Markup]:
    shapes, x = [], layout.left
    for name, kind in _KINDS.items():
        shapes.append(element("rect", x=x, y=6.0, width=12.0, height=12.0, class_=kind))
        shapes.append(element("text", name, x=x + 18.0, y=16.5, class_="small"))
        x += 95.0
    return shapes


_PARTS = ("spent", "reserved", "left")
_STATES = {"spent": "spent", "reserved": "reserved", "released": "given back"}


def account_page(entries: Sequence[LedgerEntry]) -> str:
    """Write the page of an account, from all its entries, as the text of one HTML file.

    It holds nothing that the ledger does not: prices, times and the classes that were fitted. A ledger that is damaged
    gets a page that says so and lists the entries as they stand.
    """
    try:
        found = check_entries(entries)
    except AccountError as error:
        rows = [
            (e.sequence, e.clock, e.account, e.kind, e.reservation, e.details, f"{e.hash[:12]}...") for e in entries
        ]
        title = "Privacy account: the ledger is damaged"
        return render("damaged_account.html.j2", title, problem=str(error), rows=rows)
    state, charges = state_of(found[0], found), charges_of(found)
    balances, opened = state.balances, found[0].clock
    return render(
        "account.html.j2",
        f"Privacy account \u201c{state.name}\u201d",
        state=state,
        opened=_minute(opened),
        last=_minute(found[-1].clock),
        guarantee=explain_account(state),
        terms=_terms(state),
        chart=balances_chart(balances, "Spent, reserved and left"),
        told="; ".join(
            f"{balance.title}: " + ", ".join(map(" ".join, zip(map(format_share, balance.shares), _PARTS, strict=True)))
            for balance in balances
        ),
        affordable=list_affordable(state),
        charged=[
            _by_fit_and_date(balance, charges, opened)
            for balance in balances
            if any(balance.share(c.price) for c in charges)
        ],
        most_fits=MOST_FITS,
        charges=[
            (
                _minute(charge.clock),
                charge.sequence,
                charge.what,
                f"{charge.epsilon:.6g}",
                f"{charge.delta:.6g}",
                format_charge(charge, state),
                _STATES[charge.state],
            )
            for charge in charges
        ],
    )


def _terms(state: AccountState) -> list[tuple[str, str]]:
    epsilon, delta = state.approximate
    return [
        ("relation", state.relation),
        ("unit", state.unit if state.person_column is None else f"{state.unit}, by the column {state.person_column}"),
        (f"number of {state.unit}s", "private" if state.n is None else f"at most {state.n:,}"),
        ("Gaussian budget", f"mu = {state.total.mu:.4g}" if state.total.gaussian else "none"),
        ("(epsilon, delta) budget", f"epsilon = {epsilon:.6g}, delta = {delta:.6g}" if epsilon else "none"),
    ]


def _by_fit_and_date(balance: Balance, charges: Sequence[Charge], opened: str) -> dict[str, Any]:
    concerned = [charge for charge in charges if balance.share(charge.price)]
    return {
        "title": balance.title,
        "n_fits": len(concerned),
        "by_fit": fits_chart(concerned, balance, f"By fit: {balance.title}"),
        "by_date": dates_chart(charges, balance, opened, f"By date: {balance.title}"),
        "used": format_share(balance.shares[0] + balance.shares[1]),
    }


def _minute(clock: str) -> str:
    return clock[:16].replace("T", " ")
