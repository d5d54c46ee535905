"""Coefficients with their intervals as inline SVG: a forest plot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from taciturn.drawing.charts import MOST_BARS, round_ticks
from taciturn.drawing.formats import format_estimate
from taciturn.drawing.markup import Markup, element
from taciturn.drawing.svg import NARROW, Drawing, Layout, draw_ticks, in_both_widths

__all__ = ["Estimate", "find_reach", "forest_chart"]

_WIDE = Layout(640.0, 180.0, 185.0, 24.0)
_NARROW = replace(NARROW, row=40.0)
_TOP, _FOOT = 24.0, 26.0
_RADIUS, _CAP = 4.0, 4.0
# An interval of so many times the typical one is cut, so that the others can be read.
_MOST_HALVES = 3.0
# Exponentials beyond are not finite.
_MOST_LOG = 690.0
# Odds ratios on an axis: powers of ten, with more numbers between them the shorter the axis is.
_MANTISSAS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
_FEWEST_TICKS, _MOST_TICKS = 4, 7


@dataclass(frozen=True, slots=True)
class Estimate:
    """One coefficient with its interval, and how far the interval would reach for the sampling error alone."""

    name: str
    value: float
    lower: float
    upper: float
    sampling: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.lower > 0.0 or self.upper < 0.0


def forest_chart(estimates: Sequence[Estimate], title: str, *, odds: bool) -> Drawing:
    """Draw a point and an interval for each coefficient, at most 40, in the order given.

    With ``odds`` the numbers are their exponentials, on a logarithmic axis with a line at 1; else the line is at zero.
    """
    estimates = estimates[:MOST_BARS]
    low, high = find_reach(estimates)

    def draw(layout: Layout) -> Drawing:
        def place(value: float) -> float:
            return layout.left + (min(max(value, low), high) - low) * (layout.span / (high - low))

        bottom = _TOP + layout.row * len(estimates)
        ticks = _odds_ticks(low, high) if odds else _plain_ticks(low, high, layout.ticks)
        shapes = draw_ticks(layout, [(place(at), label, at == 0.0) for at, label in ticks], _TOP, bottom)
        shapes += [
            _row(estimate, _TOP + layout.row * i, layout, place, (low, high), _numbers(estimate, odds=odds))
            for i, estimate in enumerate(estimates)
        ]
        middle = layout.left + layout.span / 2.0
        what = "odds ratio (logarithmic)" if odds else "coefficient"
        shapes.append(element("text", what, x=middle, y=bottom + 18.0, class_="small middle"))
        return Drawing(title, layout.width, bottom + _FOOT, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def find_reach(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Ends of the axis: they hold zero, all points, and all intervals but those much wider than most."""
    if not estimates:
        return -1.0, 1.0
    points = [estimate.value for estimate in estimates]
    typical = statistics.median(0.5 * (estimate.upper - estimate.lower) for estimate in estimates)
    low = max(min(0.0, *(e.lower for e in estimates)), min(0.0, *points) - _MOST_HALVES * typical, -_MOST_LOG)
    high = min(max(0.0, *(e.upper for e in estimates)), max(0.0, *points) + _MOST_HALVES * typical, _MOST_LOG)
    return (low, high) if low < high else (-1.0, 1.0)


def _numbers(estimate: Estimate, *, odds: bool) -> str:
    numbers = (estimate.value, estimate.lower, estimate.upper)
    return format_estimate(*((math.exp(min(number, _MOST_LOG)) for number in numbers) if odds else numbers))


def _row(
    estimate: Estimate,
    top: float,
    layout: Layout,
    place: Callable[[float], float],
    reach: tuple[float, float],
    numbers: str,
) -> Markup:
    left, right, value = place(estimate.lower), place(estimate.upper), place(estimate.value)
    inner = (place(estimate.value - estimate.sampling), place(estimate.value + estimate.sampling))
    middle = layout.middle(top)
    name, number = layout.labels(top, estimate.name, numbers)
    shapes = [
        element("title", f"{estimate.name}: {numbers}"),
        name,
        element("line", x1=left, x2=right, y1=middle, y2=middle, class_="interval"),
        element("line", x1=inner[0], x2=inner[1], y1=middle, y2=middle, class_="sampling"),
        _end(left, middle, -1.0, cut=estimate.lower < reach[0]),
        _end(right, middle, 1.0, cut=estimate.upper > reach[1]),
        element("circle", cx=value, cy=middle, r=_RADIUS, class_="estimate clear" if estimate.is_clear else "estimate"),
        number,
    ]
    return element("g", *shapes)


def _end(x: float, middle: float, side: float, *, cut: bool) -> Markup:
    """The end of an interval: a bar across it, or an arrow where it goes on beyond the axis."""
    tip, back = (x + 2.0 * side, x - 4.0 * side) if cut else (x, x)
    top, bottom = middle - _CAP, middle + _CAP
    d = f"M{back:.2f} {top:.2f}L{tip:.2f} {middle:.2f}L{back:.2f} {bottom:.2f}"
    return element("path", d=d, class_="interval cut" if cut else "interval")


def _plain_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    return [(tick, f"{tick:g}") for tick in round_ticks(low, high, most)]


def _odds_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Places and labels of round odds ratios, among them 1."""
    first, last = math.floor(low / math.log(10.0)), math.ceil(high / math.log(10.0))
    if last - first > _MOST_TICKS:
        step = math.ceil((last - first) / (_MOST_TICKS - 1))
        powers = [k * step for k in range(math.ceil(first / step), math.floor(last / step) + 1)]
        ticks = [(k * math.log(10.0), f"1e{k}" if k else "1") for k in powers]
        return [tick for tick in ticks if low <= tick[0] <= high]
    for mantissas in _MANTISSAS:
        ratios = [m * 10.0**k for k in range(first, last + 1) for m in mantissas]
        found = [(math.log(ratio), f"{ratio:g}") for ratio in ratios if low <= math.log(ratio) <= high]
        if _FEWEST_TICKS <= len(found) <= _MOST_TICKS:
            return found
    ratios = [ratio for ratio in round_ticks(math.exp(low), math.exp(high)) if ratio > 0.0]
    if not any(math.isclose(ratio, 1.0) for ratio in ratios):
        ratios.append(1.0)
    return [(0.0 if math.isclose(ratio, 1.0) else math.log(ratio), f"{ratio:g}") for ratio in sorted(ratios)]
