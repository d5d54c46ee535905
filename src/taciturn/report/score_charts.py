"""How good a model of two classes is as inline SVG: calibration by tenths, and the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from taciturn.drawing.markup import Markup, element
from taciturn.drawing.squares import draw_square, square_axes, square_point
from taciturn.drawing.svg import Drawing

if TYPE_CHECKING:
    from taciturn.fitting.class_measures import CalibrationBin

__all__ = ["calibration_chart", "roc_chart"]

_RADIUS, _CAP = 4.0, 4.0
_MOST_POINTS = 200


def calibration_chart(bins: Sequence[CalibrationBin], title: str) -> Drawing:
    """Draw how often the class occurs against its predicted probability; bins that noise leaves open are left out."""
    shapes = [*square_axes("predicted", "occurred"), _diagonal()]
    shapes += [_point(each) for each in bins if each.share is not None]
    return draw_square(title, shapes)


def roc_chart(points: Sequence[tuple[float, float]], title: str) -> Drawing:
    """Draw true against false positive rates."""
    step = max(1, len(points) // _MOST_POINTS)
    chosen = [*points[:-1:step], points[-1]]
    kept = [chosen[0], *(second for first, second in pairwise(chosen) if first != second)]
    curve = "M" + "L".join("{:.2f} {:.2f}".format(*square_point(*each)) for each in kept)
    shapes = [*square_axes("false positives", "true positives"), _diagonal(), element("path", d=curve, class_="curve")]
    return draw_square(title, shapes)


def _diagonal() -> Markup:
    start, end = ("{:.2f} {:.2f}".format(*square_point(share, share)) for share in (0.0, 1.0))
    return element("path", d=f"M{start}L{end}", class_="none")


def _point(each: CalibrationBin) -> Markup:
    x, y = square_point(each.predicted, each.share or 0.0)
    _, bottom = square_point(each.predicted, each.lower)
    _, top = square_point(each.predicted, each.upper)
    ends = "".join(f"M{x - _CAP:.2f} {end:.2f}L{x + _CAP:.2f} {end:.2f}" for end in (top, bottom))
    words = f"predicted {each.predicted:.1%}, occurred {each.share:.1%} ({each.lower:.1%} to {each.upper:.1%})"
    return element(
        "g",
        element("title", words),
        element("path", d=f"M{x:.2f} {top:.2f}L{x:.2f} {bottom:.2f}{ends}", class_="interval"),
        element("circle", cx=x, cy=y, r=_RADIUS, class_="estimate clear"),
    )
