"""Charts of one share against another: a square with axes from 0 to 100%."""

from __future__ import annotations

from taciturn.drawing.markup import Markup, element
from taciturn.drawing.svg import Drawing

__all__ = ["SIDE", "draw_square", "square_axes", "square_point"]

SIDE = 300.0
"""The side of a square in pixels, unless another one is asked for."""

_MARGIN_LEFT, _MARGIN = 62.0, 14.0


def square_point(x: float, y: float, side: float = SIDE) -> tuple[float, float]:
    """The place of two shares on the drawing."""
    return _MARGIN_LEFT + side * x, _MARGIN + side * (1.0 - y)


def square_axes(x_label: str, y_label: str, side: float = SIDE) -> list[Markup]:
    """Lines at quarters, their numbers, and the names of both axes."""
    left, right, top, bottom = _MARGIN_LEFT, _MARGIN_LEFT + side, _MARGIN, _MARGIN + side
    shapes = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = square_point(share, share, side)
        kind = "grid" if share else "axis"
        shapes += [
            element("line", x1=x, x2=x, y1=top, y2=bottom, class_=kind),
            element("line", x1=left, x2=right, y1=y, y2=y, class_=kind),
            element("text", f"{share:.0%}", x=x, y=bottom + 18.0, class_="small middle"),
            element("text", f"{share:.0%}", x=left - 7.0, y=y + 4.0, class_="small number"),
        ]
    turned = f"translate(14 {top + side / 2.0:g}) rotate(-90)"
    return [
        *shapes,
        element("text", x_label, x=left + side / 2.0, y=bottom + 38.0, class_="middle"),
        element("text", y_label, x=0.0, y=0.0, transform=turned, class_="middle"),
    ]


def draw_square(title: str, shapes: list[Markup], side: float = SIDE) -> Drawing:
    """The drawing of these shapes."""
    return Drawing(title, _MARGIN_LEFT + side + 20.0, _MARGIN + side + 46.0, Markup("".join(shapes)))
