"""Charts as inline SVG: coefficients as bars, and the posterior beliefs of an attacker as a region."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taciturn.core.visible import visible
from taciturn.report.formats import format_number
from taciturn.report.markup import Markup, element
from taciturn.report.odds import posterior_range
from taciturn.report.page import Drawing
from taciturn.report.squares import draw_square, square_axes, square_point

__all__ = [
    "MOST_BARS",
    "Bar",
    "coefficient_chart",
    "find_scale",
    "odds_chart",
    "round_ticks",
    "select_largest",
    "shorten",
]

MOST_BARS = 40

_WIDTH, _LEFT, _RIGHT = 640.0, 205.0, 75.0
_ROW, _BAR, _TOP = 22.0, 12.0, 24.0
_TICKS = 6
_FONT, _GAP = 13.0, 10.0
_NARROWEST = 0.58
_CURVE_POINTS = 100


@dataclass(frozen=True, slots=True)
class Bar:
    """One coefficient: its name and its value."""

    name: str
    value: float


def select_largest(bars: Sequence[Bar]) -> list[Bar]:
    """Return the bars that a chart shows: the largest in absolute value, in descending order."""
    return sorted(bars, key=lambda bar: -abs(bar.value))[:MOST_BARS]


def coefficient_chart(bars: Sequence[Bar], title: str, reach: tuple[float, float]) -> Drawing:
    """Draw horizontal bars by size, positive values to the right of zero and negative ones to the left, at most 40.

    ``reach`` are the ends of the scale: :func:`find_scale` of the bars of all charts that are to be compared.
    """
    bars = select_largest(bars)
    low, high = reach
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def place(value: float) -> float:
        return _LEFT + (value - low) * scale

    bottom = _TOP + _ROW * len(bars)
    shapes = []
    for tick in round_ticks(low, high):
        x = place(tick)
        kind = "axis" if tick == 0.0 else "grid"
        shapes.append(element("line", x1=x, x2=x, y1=_TOP - 4.0, y2=bottom, class_=kind))
        shapes.append(element("text", f"{tick:g}", x=x, y=_TOP - 9.0, class_="small middle"))
    shapes += [_row(bar, _TOP + _ROW * (i + 0.5), place) for i, bar in enumerate(bars)]
    return Drawing(title, _WIDTH, bottom + 6.0, Markup("".join(shapes)))


def find_scale(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the smallest range that holds zero and all bars."""
    values = [0.0, *(bar.value for bar in bars)]
    low, high = min(values), max(values)
    return (low, high) if low < high else (-1.0, 1.0)


def _row(bar: Bar, middle: float, place: Callable[[float], float]) -> Markup:
    zero, end = place(0.0), place(bar.value)
    shapes = [
        element("title", f"{bar.name}: {format_number(bar.value)}"),
        element("text", shorten(visible(bar.name), _LEFT - _GAP), x=_LEFT - _GAP, y=middle + 4.5, class_="number"),
        element(
            "rect",
            x=min(zero, end),
            y=middle - _BAR / 2.0,
            width=abs(end - zero),
            height=_BAR,
            class_="minus" if bar.value < 0.0 else "plus",
        ),
        element("text", format_number(bar.value), x=_WIDTH - 2.0, y=middle + 4.5, class_="number"),
    ]
    return element("g", *shapes)


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends, including zero."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def shorten(name: str, room: float) -> str:
    """Shorten a name to the width ``room``; the middle is left out, as names often differ at both ends."""
    if _extent(name) <= room:
        return name
    # At most as many letters as fit if all are narrow, so that very long names take no more time.
    kept = min(len(name), math.ceil(room / (_FONT * _NARROWEST)))
    while kept > 2 and _extent(name[: kept - kept // 2]) + _extent("…" + name[len(name) - kept // 2 :]) > room:
        kept -= 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"


def _extent(text: str) -> float:
    """Upper estimate of the width of a text, as fonts differ."""
    widths = (
        1.05
        if unicodedata.east_asian_width(c) in "WF"
        else 0.9
        if c in "mwMW@%"
        else 0.74
        if c.isupper()
        else _NARROWEST
        for c in text
    )
    return _FONT * sum(widths)


def odds_chart(epsilon: float, title: str) -> Drawing:
    """Draw the range of posterior beliefs against the prior belief at this epsilon."""

    def at(prior: float, posterior: float) -> str:
        return "{:.2f} {:.2f}".format(*square_point(prior, posterior))

    # Points are denser at the ends, where the curves are steep for a large epsilon.
    priors = [(1.0 - math.cos(math.pi * k / _CURVE_POINTS)) / 2.0 for k in range(_CURVE_POINTS + 1)]
    lower = [at(prior, posterior_range(prior, epsilon)[0]) for prior in priors]
    upper = [at(prior, posterior_range(prior, epsilon)[1]) for prior in priors]
    return draw_square(
        title,
        [
            element("path", d="M" + "L".join(upper + lower[::-1]) + "Z", class_="region"),
            *square_axes("believed before", "believed afterwards"),
            element("path", d=f"M{at(0.0, 0.0)}L{at(1.0, 1.0)}", class_="none"),
            element("path", d="M" + "L".join(upper), class_="curve"),
            element("path", d="M" + "L".join(lower), class_="curve"),
        ],
    )
