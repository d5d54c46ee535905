"""Figures that follow the axes of the papers' figures."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.core.validation import FloatArray
from taciturn_research.reproduce.experiment import Experiment, Numbers, Picture, Summary
from taciturn_research.reproduce.pages.blocks import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ---------------------------------------------------------------------
# What stands where in a picture or a table: points, their order and their names.


@dataclass(frozen=True, slots=True)
class Point:
    """One mean, and the standard deviation of a trial if there is any."""

    panel: Any
    series: Any
    x: Any
    mean: float
    sd: float | None


def points_of(picture: Picture, numbers: Numbers) -> list[Point]:
    """All points of a picture, in the order of the trials' rows."""
    found = numbers.summaries(picture.where)
    if picture.subtract is not None:
        found = _differences(*picture.subtract, picture.where, numbers)
    needed = {picture.across, picture.series} | ({picture.panels} if picture.panels else set())
    points: dict[tuple[Any, Any, Any], Point] = {}
    for summary in found:
        if not needed <= summary.of.keys():
            continue
        panel = summary.of[picture.panels] if picture.panels else None
        place = panel, summary.of[picture.series], summary.of[picture.across]
        if place in points:
            raise ValueError(f"{picture.item}: two numbers at one point, such as {summary.of}; choose one in 'where'")
        points[place] = Point(*place, summary.mean, summary.sd)
    return list(points.values())


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers by size, anything else in the order of its first appearance."""
    once = list(dict.fromkeys(values))
    return sorted(once) if are_numbers(once) else once


def axis(order: Sequence[Any], values: Iterable[Any]) -> list[Any]:
    """Those of the values that occur, in an order that all panels share."""
    occurring = set(values)
    return [value for value in order if value in occurring]


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether the values can stand on an axis by their size."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def label(value: Any) -> str:
    """What a key holds, in words."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def stand_in_note(shown: Iterable[Any], stand_ins: Mapping[str, str]) -> str:
    """For a caption: which of the names shown is in place of another data set.

    Examples
    --------
    >>> stand_in_note(["alon", "yeoh_filtered"], {"yeoh_filtered": "Yeoh", "farm_ads": "E2006"})
    '; yeoh_filtered is a stand-in for Yeoh'
    """
    seen = set(shown)
    return "".join(f"; {name} is a stand-in for {other}" for name, other in stand_ins.items() if name in seen)


def _differences(key: str, of_this: Any, less_that: Any, where: Mapping[str, Any], numbers: Numbers) -> list[Summary]:
    """Differences within trials, so that what both share does not count as spread."""
    others = {
        frozenset((summary.of | {key: of_this}).items()): summary
        for summary in numbers.summaries({**where, key: less_that})
    }
    found = []
    for summary in numbers.summaries({**where, key: of_this}):
        other = others.get(frozenset(summary.of.items()))
        if other is not None:
            of = {name: value for name, value in summary.of.items() if name != key}
            pairs = zip(numbers.values(summary.of), numbers.values(other.of), strict=False)
            within = [this - that for this, that in pairs]
            spread = stdev(within) or None if len(within) > 1 else None
            found.append(Summary(of, summary.mean - other.mean, spread, len(within)))
    return found


# ---------------------------------------------------------------------
# What stands in one panel of a figure: curves, bars or a heat map.


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


# ---------------------------------------------------------------------
# Figures after the axes of the papers', drawn if matplotlib is there.


# All figures have this width, in inches: that of a page on which they stand at their own size.
_WIDTH = 8.5
# Of a letter, on average, and of a line.
_LETTER = 0.075
_LINE = 0.21
_MOST_ACROSS = 3
_LOOK = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 9.0,
    "figure.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    # The same numbers give the same file.
    "svg.hashsalt": "taciturn",
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def house_style() -> AbstractContextManager[None]:
    """Within it figures look like those of the report, whatever the user's own settings are."""
    import matplotlib.style

    return matplotlib.style.context(["default", _LOOK])


def images_of(experiment: Experiment, numbers: Numbers, stand_ins: Mapping[str, str]) -> dict[int, Image]:
    """The figures of an experiment, by the place of their picture; those without a number are left out."""
    images: dict[int, Image] = {}
    taken: set[str] = set()
    for place, picture in enumerate(experiment.pictures):
        points = points_of(picture, numbers)
        if not points:
            continue
        stem = _stem(experiment.name, picture.item, taken)
        shown = (name for point in points for name in (point.panel, point.series, point.x))
        caption = f"{picture.item}: {picture.title}{stand_in_note(shown, stand_ins)}.{_spread_note(picture, points)}"
        images[place] = Image(f"figures/{stem}", _alt(picture, points), caption, *_files(picture, points))
    return images


def draw_picture(picture: Picture, points: Sequence[Point]) -> Figure:
    """Draw a picture of which there is at least one point."""
    from matplotlib.figure import Figure

    panels = distinct(point.panel for point in points)
    xs, series = distinct(point.x for point in points), distinct(point.series for point in points)
    across, height = _grid_shape(picture, xs, series, len(panels))
    rows = math.ceil(len(panels) / across)
    title = textwrap.fill(f"{picture.item}: {picture.title}", round(_WIDTH / _LETTER * 0.8))
    n_columns = max(1, int(_WIDTH / (max(len(label(value)) for value in series) * _LETTER + 0.55)))
    n_lines = 0 if picture.kind == "heat map" else 1 + math.ceil(len(series) / n_columns)
    figure = Figure(figsize=(_WIDTH, rows * height + _LINE * (2 + title.count("\n") + n_lines)), layout="constrained")
    same_x, same_y = _shared(picture, points, panels)
    grid = figure.subplots(rows, across, sharex=same_x, sharey=same_y, squeeze=False).ravel()
    inside = [[point for point in points if point.panel == panel] for panel in panels]
    used = list(grid[: len(panels)])
    if picture.kind == "heat map":
        draw_heat_map(figure, used, picture, inside, xs, series)
    else:
        draw = draw_curves if picture.kind == "curves" else draw_bars
        for axes, part in zip(used, inside, strict=True):
            draw(axes, picture, part, xs, styles_of(series))
        _legend(figure, used, picture, math.ceil(len(series) / (n_lines - 1)))
    # A bare number says nothing.
    before = f"{picture.panels} = " if any(label(panel)[:1].isdigit() for panel in panels) else ""
    for place, (axes, panel) in enumerate(zip(used, panels, strict=True)):
        if picture.panels:
            axes.set_title(textwrap.fill(before + label(panel), round(_WIDTH / across / _LETTER)))
        _outer_labels(axes, picture, place, across, len(panels), same_x, same_y)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(title)
    return figure


def _files(picture: Picture, points: Sequence[Point]) -> tuple[bytes, bytes]:
    with house_style():
        figure = draw_picture(picture, points)
        # Once for both files: finding the places takes longer than drawing.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=144)
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return png.getvalue(), svg.getvalue()


def _grid_shape(picture: Picture, xs: Sequence[Any], series: Sequence[Any], n_panels: int) -> tuple[int, float]:
    """How many panels stand side by side, and the height of each in inches."""
    width = _WIDTH
    if picture.kind == "curves":
        needed, height = _WIDTH / _MOST_ACROSS, 2.4
    elif picture.kind == "bars":
        needed, height = 0.7 + len(xs) * max(0.12 * (len(series) + 1), 0.4), 2.6
    else:
        # The names of the rows and the scale of the colours take their part of the width once.
        width -= 1.2 + _LETTER * max(len(label(value)) for value in series)
        needed, height = 0.15 + 0.42 * len(xs), 0.7 + 0.26 * len(series)
    across = max(1, min(_MOST_ACROSS, n_panels, int(width / needed)))
    if picture.kind != "heat map":
        # One panel may be higher, many rows of them must be lower to stand on one sheet of paper.
        height = height + 0.7 if n_panels == 1 else max(1.8, min(height, 10.5 / math.ceil(n_panels / across)))
    if labels_overlap(xs, across):
        height += 0.6 * _LETTER * min(max(len(label(x)) for x in xs), LONGEST_LINE)
    return across, height


def _shared(picture: Picture, points: Sequence[Point], panels: Sequence[Any]) -> tuple[bool, bool]:
    """Whether all panels have the same axes: where one of them would be flattened by that, they have not."""
    places = [{point.x for point in points if point.panel == panel} for panel in panels]
    same_x = all(place == places[0] for place in places)
    if picture.kind == "heat map":
        rows = [{point.series for point in points if point.panel == panel} for panel in panels]
        return same_x, all(row == rows[0] for row in rows)
    heights = [max(abs(point.mean) for point in points if point.panel == panel) for panel in panels]
    return same_x, max(heights) <= 4.0 * min(heights)


def _outer_labels(
    axes: Axes, picture: Picture, place: int, across: int, n_panels: int, same_x: bool, same_y: bool
) -> None:
    """Name the axes at the left and at the bottom, and leave out numbers that stand there already."""
    first, last = place % across == 0, place + across >= n_panels
    if last:
        axes.set_xlabel(picture.x_label)
    if first:
        axes.set_ylabel(picture.series if picture.kind == "heat map" else picture.y_label)
    axes.tick_params(labelbottom=last or not same_x, labelleft=first or not same_y)


def _legend(figure: Figure, used: Sequence[Axes], picture: Picture, n_columns: int) -> None:
    """Below all panels, where it hides nothing; a series may be missing in some of them."""
    handles: dict[str, Any] = {}
    for axes in used:
        for handle, series in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(series, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=n_columns, title=picture.series)


def _stem(experiment: str, item: str, taken: set[str]) -> str:
    """A name for the files, from the experiment and the item."""
    stem = name = re.sub("[^a-z0-9]+", "-", f"{experiment} {item}".lower()).strip("-")
    number = 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def _spread_note(picture: Picture, points: Sequence[Point]) -> str:
    if picture.kind == "heat map" or all(point.sd is None for point in points):
        return ""
    return f" {'Bands' if picture.kind == 'curves' else 'Whiskers'}: one standard deviation of a trial."


def _alt(picture: Picture, points: Sequence[Point]) -> str:
    series = ", ".join(label(value) for value in distinct(point.series for point in points))
    where = ""
    if picture.panels:
        panels = ", ".join(label(value) for value in distinct(point.panel for point in points))
        where = f", a panel for each {picture.panels}: {panels}"
    if picture.kind == "heat map":
        return f"Heat map of {picture.y_label}: {picture.series} ({series}) against {picture.x_label}{where}."
    what = "Curves" if picture.kind == "curves" else "Bars"
    return f"{what} of {picture.y_label} against {picture.x_label} for each {picture.series}: {series}{where}."
