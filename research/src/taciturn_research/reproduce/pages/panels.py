"""What stands in one panel of a figure: curves, bars or a heat map."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.core.validation import FloatArray
from taciturn_research.reproduce.experiment import Picture
from taciturn_research.reproduce.pages.points import Point, are_numbers, axis, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LONGEST_LINE", "Style", "draw_bars", "draw_curves", "draw_heat_map", "labels_overlap", "styles_of"]

# The colours of Okabe and Ito, which most people with a colour vision deficiency can tell apart; yellow comes last and
# darker, since it stands on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#B8A900")
# As many as make no pair of colour and marker come twice among the first 72.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_FROM_ELSEWHERE = ("(published)", "(non-private)")
_MOST_MARKERS = 12
_MOST_TICKS = 8
_MOST_LETTERS = 90
LONGEST_LINE = 24
"""Number of letters from which on the name of a place is broken."""
_MOST_CELLS_WITH_NUMBERS = 200


@dataclass(frozen=True, slots=True)
class Style:
    """How one series is drawn in every panel."""

    colour: str
    marker: str
    dashed: bool


def styles_of(series: Sequence[Any]) -> dict[Any, Style]:
    """Published and non-private methods solid, the others beside them dashed; all solid where there are only others."""
    from_elsewhere = {value for value in series if str(value).endswith(_FROM_ELSEWHERE)}
    return {
        value: Style(
            _COLOURS[place % len(_COLOURS)],
            _MARKERS[place % len(_MARKERS)],
            bool(from_elsewhere) and value not in from_elsewhere,
        )
        for place, value in enumerate(series)
    }


def labels_overlap(xs: Sequence[Any], across: int) -> bool:
    """Whether horizontal labels of an axis would overlap, with so many panels side by side."""
    return not are_numbers(xs) and across * len(xs) * max(len(label(x)) for x in xs) > _MOST_LETTERS


def draw_curves(
    axes: Axes, picture: Picture, points: Sequence[Point], order: Sequence[Any], styles: Mapping[Any, Style]
) -> None:
    """A curve for each series, with a band of one standard deviation; ``order`` is that of the horizontal axis."""
    xs = axis(order, (point.x for point in points))
    numeric = are_numbers(xs)
    place = {x: x if numeric else number for number, x in enumerate(xs)}
    lowest = min((point.mean for point in points if point.mean > 0.0), default=1.0)
    for series, style in styles.items():
        own = sorted((point for point in points if point.series == series), key=lambda point: place[point.x])
        if not own:
            continue
        x = [place[point.x] for point in own]
        mean = np.array([point.mean for point in own])
        spread = np.array([point.sd or 0.0 for point in own])
        axes.plot(
            x,
            mean,
            color=style.colour,
            marker=style.marker,
            markersize=4.5,
            markevery=math.ceil(len(own) / _MOST_MARKERS),
            linestyle="--" if style.dashed else "-",
            linewidth=1.4,
            label=label(series),
        )
        low = mean - spread
        if picture.y_scale == "log":
            # A band that reaches zero has no lower end there.
            low = np.maximum(low, lowest / 2.0)
        axes.fill_between(x, low, mean + spread, color=style.colour, alpha=0.13, linewidth=0)
    _scales(axes, picture)
    if not numeric:
        _name_places(axes, xs)
    elif picture.x_scale == "log" and len(xs) <= _MOST_TICKS:
        axes.set_xticks(xs, [label(x) for x in xs])
        axes.minorticks_off()


def draw_bars(
    axes: Axes, picture: Picture, points: Sequence[Point], order: Sequence[Any], styles: Mapping[Any, Style]
) -> None:
    """A group of bars for each value of the horizontal axis, with whiskers of one standard deviation."""
    xs = axis(order, (point.x for point in points))
    width = 0.84 / len(styles)
    for number, (series, style) in enumerate(styles.items()):
        own = [point for point in points if point.series == series]
        if not own:
            continue
        spread = [point.sd or 0.0 for point in own]
        axes.bar(
            [xs.index(point.x) + (number - (len(styles) - 1) / 2.0) * width for point in own],
            [point.mean for point in own],
            width,
            yerr=spread if any(spread) else None,
            color=style.colour,
            edgecolor="white",
            hatch="////" if style.dashed else None,
            linewidth=0.4,
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "ecolor": "#333333"},
            label=label(series),
        )
    _scales(axes, picture)
    _name_places(axes, xs)
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.02)


def draw_heat_map(
    figure: Figure,
    used: Sequence[Axes],
    picture: Picture,
    panels: Sequence[Sequence[Point]],
    x_order: Sequence[Any],
    y_order: Sequence[Any],
) -> None:
    """Means as colours, in all panels by the same scale; differences by colours that part at 0."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    means = [point.mean for panel in panels for point in panel if math.isfinite(point.mean)]
    least, most = min(means, default=0.0), max(means, default=1.0)
    norm, colours = Normalize(least, most), colormaps["cividis"]
    if picture.subtract or least < 0.0 < most:
        most = max(abs(least), abs(most)) or 1.0
        norm, colours = Normalize(-most, most), colormaps["RdBu"]
    for axes, points in zip(used, panels, strict=True):
        xs = axis(x_order, (point.x for point in points))
        series = axis(y_order, (point.series for point in points))
        cells = np.full((len(series), len(xs)), np.nan)
        for point in points:
            cells[series.index(point.series), xs.index(point.x)] = point.mean
        axes.set_facecolor("#d9d9d9")
        drawn = axes.pcolormesh(np.ma.masked_invalid(cells), norm=norm, cmap=colours, edgecolors="white", linewidth=0.6)
        _name_places(axes, xs, shift=0.5)
        axes.set_yticks(np.arange(len(series)) + 0.5, [label(value) for value in series])
        axes.set_ylim(len(series), 0)
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        if cells.size <= _MOST_CELLS_WITH_NUMBERS:
            _write_numbers(axes, cells, lambda value: colours(norm(value)))
    figure.colorbar(drawn, ax=list(used), label=picture.y_label, fraction=0.04, pad=0.02)


def _write_numbers(axes: Axes, cells: FloatArray, colour_of: Any) -> None:
    decimals = 2 if np.nanmax(np.abs(cells), initial=0.0) < 100.0 else 0
    for (row, column), value in np.ndenumerate(cells):
        if math.isfinite(value):
            red, green, blue, _ = colour_of(value)
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            # Without the sign of what rounds to zero.
            text = f"{round(value, decimals) + 0.0:.{decimals}f}"
            place = column + 0.5, row + 0.5
            axes.text(*place, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")


def _scales(axes: Axes, picture: Picture) -> None:
    axes.set_yscale(picture.y_scale)
    if picture.y_scale == "log":
        _name_heights(axes)
    if picture.kind == "curves":
        axes.set_xscale(picture.x_scale)
    for height in picture.marks:
        axes.axhline(height, color="#555555", linewidth=0.8, linestyle=":")


def _name_heights(axes: Axes) -> None:
    """Plain numbers on a logarithmic axis; between powers of ten only where there are few of these."""

    def power(height: float, _: float) -> str:
        return f"{height:g}"

    def between(height: float, _: float) -> str:
        low, high = axes.get_ylim()
        leading = f"{height:.0e}"[0]
        return f"{height:g}" if leading in "25" and high < 30.0 * low else ""

    axes.yaxis.set_major_formatter(power)
    axes.yaxis.set_minor_formatter(between)


def _name_places(axes: Axes, xs: Sequence[Any], shift: float = 0.0) -> None:
    grid = axes.get_gridspec()
    rotated = labels_overlap(xs, 1 if grid is None else grid.ncols)
    places = [number + shift for number in range(len(xs))]
    names = [textwrap.fill(label(x), LONGEST_LINE) for x in xs]
    axes.set_xticks(places, names, rotation=40 if rotated else 0, ha="right" if rotated else "center")
    axes.tick_params(axis="x", length=0)
