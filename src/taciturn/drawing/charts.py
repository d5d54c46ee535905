"""Charts as inline SVG: coefficients as bars, and the posterior beliefs of an attacker as a region."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taciturn.drawing.formats import format_number
from taciturn.drawing.markup import Markup, element
from taciturn.drawing.odds import posterior_range
from taciturn.drawing.squares import SIDE, draw_square, square_axes, square_point
from taciturn.drawing.svg import Drawing, Layout, draw_ticks, in_both_widths

__all__ = [
    "MOST_BARS",
    "Bar",
    "coefficient_chart",
    "find_scale",
    "odds_chart",
    "round_ticks",
    "select_largest",
]

MOST_BARS = 40

_BAR, _TOP = 12.0, 24.0
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

    def draw(layout: Layout) -> Drawing:
        def place(value: float) -> float:
            return layout.left + (value - low) * (layout.span / (high - low))

        bottom = _TOP + layout.row * len(bars)
        ticks = [(place(tick), f"{tick:g}", tick == 0.0) for tick in round_ticks(low, high, layout.ticks)]
        shapes = draw_ticks(layout, ticks, _TOP, bottom)
        shapes += [_row(bar, _TOP + layout.row * i, layout, place) for i, bar in enumerate(bars)]
        return Drawing(title, layout.width, bottom + 6.0, Markup("".join(shapes)))

    return in_both_widths(draw)


def find_scale(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the smallest range that holds zero and all bars."""
    values = [0.0, *(bar.value for bar in bars)]
    low, high = min(values), max(values)
    return (low, high) if low < high else (-1.0, 1.0)


def _row(bar: Bar, top: float, layout: Layout, place: Callable[[float], float]) -> Markup:
    zero, end = place(0.0), place(bar.value)
    name, number = layout.labels(top, bar.name, format_number(bar.value))
    shape = element(
        "rect",
        x=min(zero, end),
        y=layout.middle(top) - _BAR / 2.0,
        width=abs(end - zero),
        height=_BAR,
        class_="minus" if bar.value < 0.0 else "plus",
    )
    return element("g", element("title", f"{bar.name}: {format_number(bar.value)}"), name, shape, number)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between the ends, including zero: about ``most``."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def odds_chart(epsilon: float, title: str, side: float = SIDE) -> Drawing:
    """Draw the range of posterior beliefs against the prior belief at this epsilon, in a square of a side in pixels."""

    def at(prior: float, posterior: float) -> str:
        return "{:.2f} {:.2f}".format(*square_point(prior, posterior, side))

    # Points are denser at the ends, where the curves are steep for a large epsilon.
    priors = [(1.0 - math.cos(math.pi * k / _CURVE_POINTS)) / 2.0 for k in range(_CURVE_POINTS + 1)]
    lower = [at(prior, posterior_range(prior, epsilon)[0]) for prior in priors]
    upper = [at(prior, posterior_range(prior, epsilon)[1]) for prior in priors]
    return draw_square(
        title,
        [
            element("path", d="M" + "L".join(upper + lower[::-1]) + "Z", class_="region"),
            *square_axes("believed before", "believed afterwards", side),
            element("path", d=f"M{at(0.0, 0.0)}L{at(1.0, 1.0)}", class_="none"),
            element("path", d="M" + "L".join(upper), class_="curve"),
            element("path", d="M" + "L".join(lower), class_="curve"),
        ],
        side,
    )
