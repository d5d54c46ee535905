"""Charts of one share against another: a square with axes from 0 to 100%."""

from __future__ import annotations

from taciturn.report.markup import Markup, element
from taciturn.report.page import Drawing

__all__ = ["draw_square", "square_axes", "square_point"]

_SIDE, _MARGIN_LEFT, _MARGIN = 300.0, 62.0, 14.0


def square_point(x: float, y: float) -> tuple[float, float]:
    """The place of two shares on the drawing."""
    return _MARGIN_LEFT + _SIDE * x, _MARGIN + _SIDE * (1.0 - y)


def square_axes(x_label: str, y_label: str) -> list[Markup]:
    """Lines at quarters, their numbers, and the names of both axes."""
    left, right, top, bottom = _MARGIN_LEFT, _MARGIN_LEFT + _SIDE, _MARGIN, _MARGIN + _SIDE
    shapes = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = square_point(share, share)
        kind = "grid" if share else "axis"
        shapes += [
            element("line", x1=x, x2=x, y1=top, y2=bottom, class_=kind),
            element("line", x1=left, x2=right, y1=y, y2=y, class_=kind),
            element("text", f"{share:.0%}", x=x, y=bottom + 18.0, class_="small middle"),
            element("text", f"{share:.0%}", x=left - 7.0, y=y + 4.0, class_="small number"),
        ]
    turned = f"translate(14 {top + _SIDE / 2.0:g}) rotate(-90)"
    return [
        *shapes,
        element("text", x_label, x=left + _SIDE / 2.0, y=bottom + 38.0, class_="middle"),
        element("text", y_label, x=0.0, y=0.0, transform=turned, class_="middle"),
    ]


def draw_square(title: str, shapes: list[Markup]) -> Drawing:
    """The drawing of these shapes."""
    return Drawing(title, _MARGIN_LEFT + _SIDE + 20.0, _MARGIN + _SIDE + 46.0, Markup("".join(shapes)), wide=False)
