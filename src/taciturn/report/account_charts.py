"""The budget of an account as inline SVG: what is left of each pot, what each fit took, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from taciturn.accounts.pots import Pot, cumulate
from taciturn.accounts.state import Charge
from taciturn.core.visible import visible
from taciturn.drawing.markup import Markup, element
from taciturn.drawing.svg import NARROW, Drawing, Layout, draw_ticks, in_both_widths
from taciturn.report.account_words import format_share

__all__ = ["MOST_FITS", "dates_chart", "fits_chart", "pots_chart"]

MOST_FITS = 40
"""Fits that a chart shows."""

_WIDE = Layout(640.0, 205.0, 75.0, 24.0)
_NARROW = replace(NARROW, row=38.0)
_BAR, _TOP = 14.0, 24.0
_HIGH, _AXIS = 180.0, 52.0
_KINDS = {"spent": "plus", "reserved": "minus", "left": "region"}
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def pots_chart(pots: Sequence[Pot], title: str) -> Drawing:
    """Draw one bar for each pot: spent, reserved and left."""

    def draw(layout: Layout) -> Drawing:
        first = _TOP + 10.0
        shapes = _legend(layout)
        for row, pot in enumerate(pots):
            top, x = first + layout.row * row, layout.left
            shapes += layout.labels(top, pot.title, f"{format_share(pot.shares[2])} left")
            for share, (name, kind) in zip(pot.shares, _KINDS.items(), strict=True):
                width = share * layout.span
                shapes.append(_bar(x, layout.middle(top), width, kind, f"{pot.title}: {format_share(share)} {name}"))
                x += width
        return Drawing(title, layout.width, first + layout.row * len(pots) + 6.0, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def fits_chart(charges: Sequence[Charge], pot: Pot, title: str) -> Drawing:
    """Draw what each fit took of a pot; a bar begins where the one before it ends. The last 40 are shown.

    A fit that gave its reservation back is drawn as an outline and takes nothing.
    """
    earlier, shown = charges[:-MOST_FITS], charges[-MOST_FITS:]
    taken = sum(pot.share(charge.price) for charge in earlier if charge.state != "released")

    def draw(layout: Layout) -> Drawing:
        bottom, at = _TOP + layout.row * len(shown), taken
        ticks = [(layout.left + share * layout.span, f"{share:.0%}", share == 0.0) for share in _SHARES]
        shapes = draw_ticks(layout, ticks, _TOP, bottom)
        for row, charge in enumerate(shown):
            top, share = _TOP + layout.row * row, pot.share(charge.price)
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


def dates_chart(charges: Sequence[Charge], pot: Pot, opened: str, title: str) -> Drawing:
    """Draw the share of a pot that was spent or reserved against the date, in steps."""
    steps = cumulate(charges, pot)
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
