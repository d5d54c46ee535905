"""Pictures in SVG: strips of dots over a logarithmic axis, with colours for light and for dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

# Pixels.
_WIDTH, _LEFT, _RIGHT, _TOP, _STRIP, _FOOT = 860, 190, 20, 46, 46, 74
_RADIUS = 3.4
_INK, _GRID = "#222222", "#d5d5d0"
# A browser takes the scheme of the page around the picture, which has no ground of its own.
_DARK = (
    "<style>@media (prefers-color-scheme: dark) { svg { fill: #e6e8ea } "
    f'[stroke="{_INK}"] {{ stroke: #e6e8ea }} [stroke="{_GRID}"] {{ stroke: #3b424a }} '
    "circle { filter: brightness(1.4) } }</style>"
)


@dataclass(frozen=True, slots=True)
class Dot:
    """One number.

    Parameters
    ----------
    value : float
        Its place on the axis.
    colour : str
        Of the dot.
    label : str
        What a browser shows under the pointer.
    strong : bool
        Drawn large and with a rim.
    """

    value: float
    colour: str
    label: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Strip:
    """A line of dots.

    Parameters
    ----------
    name : str
        At its left end.
    dots : tuple of Dot
        The numbers.
    note : str
        Below the name, in small letters.
    """

    name: str
    dots: tuple[Dot, ...]
    note: str = ""


def strips(
    rows: Sequence[Strip],
    *,
    title: str,
    sides: tuple[str, str],
    key: Sequence[tuple[str, str, bool]],
    ends: tuple[float, float],
) -> str:
    """Draw strips of ratios over one logarithmic axis.

    Parameters
    ----------
    rows : sequence of Strip
        From top to bottom.
    title : str
        What the numbers are.
    sides : pair of str
        What it means to be below 1 and above it.
    key : sequence of (colour, words, strong)
        What the dots mean.
    ends : pair of float
        Of the axis. Numbers beyond are drawn at its ends, with the label telling them.
    """
    height = _TOP + len(rows) * _STRIP + _FOOT
    low, high = (math.log10(end) for end in ends)

    def across(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return _LEFT + min(1.0, max(0.0, share)) * (_WIDTH - _LEFT - _RIGHT)

    bottom = _TOP + len(rows) * _STRIP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="13" fill="{_INK}" role="img">',
        f"<title>{escape(title)}</title>",
        _DARK,
        _words(14, 20, title),
    ]
    for tick in _ticks(ends):
        x = across(tick)
        one = tick == 1.0
        lines.append(
            f'<path stroke="{_INK if one else _GRID}" stroke-width="{1.4 if one else 1}" d="M{x:.1f} {_TOP}V{bottom}"/>'
        )
        lines.append(_words(x, bottom + 16, f"{tick:g}", anchor="middle"))
    lines.append(_words(_LEFT, bottom + 36, f"← {sides[0]}"))
    lines.append(_words(_WIDTH - _RIGHT, bottom + 36, f"{sides[1]} →", anchor="end"))
    for place, row in enumerate(rows):
        middle = _TOP + (place + 0.5) * _STRIP
        lines.append(f'<path stroke="{_GRID}" d="M14 {middle + _STRIP / 2:.1f}H{_WIDTH - _RIGHT}"/>')
        lines.append(_words(14, middle - (2 if row.note else -4), row.name))
        if row.note:
            lines.append(_words(14, middle + 13, row.note, size=11))
        lines += _row_of_dots(row, middle, across)
    x = 14.0
    for colour, words, strong in key:
        lines += [_dot(x + 6, bottom + 58, colour, strong, ""), _words(x + 16, bottom + 62, words)]
        x += 34 + 7.2 * len(words)
    return "\n".join([*lines, "</svg>", ""])


def _row_of_dots(row: Strip, middle: float, across: Callable[[float], float]) -> list[str]:
    """Dots that would cover each other are moved up and down in turn; strong ones are drawn last."""
    steps = (0.0, -6.5, 6.5, -13.0, 13.0)
    taken: list[list[float]] = [[] for _ in steps]
    drawn = []
    for dot in sorted(row.dots, key=lambda dot: dot.value):
        x = across(dot.value)
        free = [place for place, xs in enumerate(taken) if not xs or x - xs[-1] >= 2 * _RADIUS]
        lane = free[0] if free else min(range(len(steps)), key=lambda place: taken[place][-1])
        taken[lane].append(x)
        drawn.append((dot.strong, _dot(x, middle + steps[lane], dot.colour, dot.strong, dot.label)))
    return [picture for _, picture in sorted(drawn, key=lambda pair: pair[0])]


def _dot(x: float, y: float, colour: str, strong: bool, label: str) -> str:
    rim = f' stroke="{_INK}" stroke-width="1.6"' if strong else ""
    radius = _RADIUS * 1.4 if strong else _RADIUS
    said = f"<title>{escape(label)}</title>" if label else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity=".85"{rim}>{said}</circle>'


def _words(x: float, y: float, words: str, *, anchor: str = "start", size: int = 13) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _ticks(ends: tuple[float, float]) -> list[float]:
    """1, 2 and 5 times powers of ten; over more than three decades the powers alone."""
    decades = math.log10(ends[1] / ends[0])
    steps = (1.0,) if decades > 3.0 else (1.0, 2.0, 5.0)
    exponents = range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
    found = [step * 10.0**exponent for exponent in exponents for step in steps]
    return [round(tick, 12) for tick in found if ends[0] <= tick * (1 + 1e-9) and tick <= ends[1] * (1 + 1e-9)]
