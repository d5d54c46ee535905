"""Inline SVG images, and where the rows of a chart have their names, marks and numbers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from taciturn.core.visible import visible
from taciturn.drawing.markup import Markup, element

__all__ = ["NARROW", "WIDE", "Drawing", "Layout", "draw_ticks", "in_both_widths", "shorten", "text_width"]

_FONT, _SMALL, _GAP = 13.0, 12.0, 10.0
_NARROWEST = 0.64
_BASELINE = 4.5
# Between two labels of an axis.
_BETWEEN = 4.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """An inline SVG image of a size in pixels.

    ``body`` is made by :func:`taciturn.drawing.markup.element`. ``narrow`` is the same image for a narrow window. An
    image that has one fills the width of the page, and one without it keeps its size.
    """

    title: str
    width: float
    height: float
    body: Markup
    narrow: Drawing | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in a chart of rows: margins of the marks, height of a row, number of ticks.

    With ``stacked`` the name and the number of a row stand above its mark, so that both are seen in a narrow window;
    else they stand in the margins to its left and right.
    """

    width: float
    left: float
    right: float
    row: float
    ticks: int = 6
    stacked: bool = False

    @property
    def span(self) -> float:
        """Width of the marks."""
        return self.width - self.left - self.right

    def middle(self, top: float) -> float:
        """Height of the mark of a row that begins at ``top``."""
        return top + self.row - 13.0 if self.stacked else top + self.row / 2.0

    def labels(self, top: float, name: str, number: str) -> tuple[Markup, Markup]:
        """The name and the number of a row that begins at ``top``."""
        base = top + _FONT if self.stacked else self.middle(top) + _BASELINE
        right = element("text", number, x=self.width - 2.0, y=base, class_="number")
        if self.stacked:
            room = self.width - 2.0 - text_width(number) - _GAP
            return element("text", shorten(visible(name), room), x=0.0, y=base), right
        room = self.left - _GAP
        return element("text", shorten(visible(name), room), x=room, y=base, class_="number"), right


WIDE = Layout(640.0, 205.0, 75.0, 22.0)
NARROW = Layout(320.0, 12.0, 12.0, 36.0, ticks=3, stacked=True)


def in_both_widths(draw: Callable[[Layout], Drawing], wide: Layout = WIDE, narrow: Layout = NARROW) -> Drawing:
    """Draw a chart for a wide window and for a narrow one."""
    return replace(draw(wide), narrow=draw(narrow))


def draw_ticks(layout: Layout, ticks: list[tuple[float, str, bool]], top: float, bottom: float) -> list[Markup]:
    """Lines across a chart with their labels above it: place, label, and whether the line is the axis.

    Labels lie inside the image. Of two that would overlap the second is left out with its line, unless it is the axis.
    """
    places: dict[float, tuple[float, float]] = {}
    for x, label, _ in sorted(ticks, key=lambda tick: not tick[2]):
        half = text_width(label, _SMALL) / 2.0
        middle = min(max(x, half), layout.width - half)
        if all(abs(middle - other) >= half + reach + _BETWEEN for other, reach in places.values()):
            places[x] = middle, half
    shapes = []
    for x, label, is_axis in ticks:
        if x in places:
            shapes.append(element("line", x1=x, x2=x, y1=top - 4.0, y2=bottom, class_="axis" if is_axis else "grid"))
            shapes.append(element("text", label, x=places[x][0], y=top - 9.0, class_="small middle"))
    return shapes


def shorten(name: str, room: float) -> str:
    """Shorten a name to the width ``room``; the middle is left out, as names often differ at both ends."""
    if text_width(name) <= room:
        return name
    # At most as many letters as fit if all are narrow, so that very long names take no more time.
    kept = min(len(name), math.ceil(room / (_FONT * _NARROWEST)))
    while kept > 2 and text_width(name[: kept - kept // 2]) + text_width("…" + name[len(name) - kept // 2 :]) > room:
        kept -= 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"


def text_width(text: str, font: float = _FONT) -> float:
    """Upper estimate of the width of a text: that of wide fonts, as it is not known which one is used."""
    widths = (
        1.05
        if unicodedata.east_asian_width(c) in "WF"
        else 1.0
        if c in "mwMW@%"
        else 0.79
        if c.isupper()
        else _NARROWEST
        for c in text
    )
    return font * sum(widths)
