"""Figures after the axes of the papers', drawn if matplotlib is there."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from taciturn_research.reproduce.experiment import Experiment, Picture
from taciturn_research.reproduce.numbers import Numbers
from taciturn_research.reproduce.pages.blocks import Image
from taciturn_research.reproduce.pages.panels import (
    LONGEST_LINE,
    draw_bars,
    draw_curves,
    draw_heat_map,
    labels_overlap,
    styles_of,
)
from taciturn_research.reproduce.pages.points import Point, distinct, label, points_of, stand_in_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["can_draw", "draw_picture", "house_style", "images_of"]

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
