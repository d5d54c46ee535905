"""The picture of the strategies on docs/default.md, drawn from the plans of the package.

A panel per size, k = 10, "auto" and "all": the strategy by n mu and the number of columns, at epsilon 1 and delta 1e-6.
Without arguments, or with ``--write``, the picture is written; ``--check`` exits with 1 if the file holds another one.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from itertools import groupby
from pathlib import Path

from in_page import run_picture

from taciturn.accounting import Budget
from taciturn.losses import LogisticLoss
from taciturn.methods.schedule import Problem
from taciturn.methods.sparse.plan import SparsePlan, plan_sparse
from taciturn.methods.sparse.run import recalibration_share

PICTURE = Path(__file__).parents[1] / "strategies.svg"
BUDGET = Budget(1.0, 1e-6)
PANELS = (("n_nonzero=10", 10), ('n_nonzero="auto"', None), ('n_nonzero="all"', math.inf))

# Decades of n mu and of the number of columns, and cells per decade.
SIGNALS, COLUMNS = (0.5, 5.5), (0.0, 6.0)
FINENESS = 12

COLOURS = {
    "constant": "#bdbdbd",
    "one-shot": "#f2c14e",
    "two-phase, screened": "#5fa8a0",
    "two-phase, all columns": "#9fd3c7",
    "dense": "#7b9ed1",
}

# Pixels.
SIDE, LEFT, TOP, GAP, FOOT = 250, 58, 34, 22, 92
WIDTH, HEIGHT = LEFT + len(PANELS) * SIDE + (len(PANELS) - 1) * GAP + 14, TOP + SIDE + FOOT


def plan_for(n_rows: int, n_features: int, size: float | None) -> SparsePlan:
    """The plan of a classifier for two classes with nothing set but its size."""
    n_nonzero = None if size is None else int(min(size, n_features))
    problem = Problem(LogisticLoss(), "zero-out", n_rows, n_features, intercept=True)
    return plan_sparse(BUDGET, problem, n_nonzero=n_nonzero, method="auto", row_bound=None, residual_clip=None)


def name_of(plan: SparsePlan) -> str:
    """The strategy as the picture calls it."""
    strategy = plan.strategy
    if strategy.method != "two-phase":
        return strategy.method
    return "two-phase, all columns" if strategy.n_screened is None else "two-phase, screened"


def points(decades: tuple[float, float]) -> list[float]:
    """The middles of the cells, as powers of ten."""
    low, high = decades
    return [low + (place + 0.5) / FINENESS for place in range(round((high - low) * FINENESS))]


def across(exponent: float) -> float:
    """Pixels from the left end of a panel to a power of ten."""
    return SIDE * (exponent - SIGNALS[0]) / (SIGNALS[1] - SIGNALS[0])


def above(exponent: float) -> float:
    """Pixels from the top to a power of ten."""
    return TOP + SIDE * (1.0 - (exponent - COLUMNS[0]) / (COLUMNS[1] - COLUMNS[0]))


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    """A line of words."""
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escaped}</text>'


def raised(exponent: int) -> str:
    """A power of ten in digits."""
    return f"10{''.join('⁰¹²³⁴⁵⁶'[int(digit)] for digit in str(exponent))}" if exponent > 1 else str(10**exponent)


def regions(size: float | None, mu: float) -> dict[str, str]:
    """A path per strategy: a strip of cells for each number of records, in runs of columns."""
    strips: dict[str, str] = {}
    height, width = SIDE / len(points(COLUMNS)), SIDE / len(points(SIGNALS))
    for signal in points(SIGNALS):
        names = [name_of(plan_for(round(10.0**signal / mu), round(10.0**d), size)) for d in points(COLUMNS)]
        start, x = 0, across(signal) - width / 2.0
        for name, run in groupby(names):
            length = len(list(run))
            bottom = TOP + SIDE - start * height
            strips[name] = (
                strips.get(name, "") + f"M{x:.1f} {bottom:.1f}v{-length * height:.1f}h{width + 0.3:.1f}V{bottom:.1f}z"
            )
            start += length
    return strips


def panel(place: int, title: str, size: float | None, mu: float) -> list[str]:
    """The strategies for one size, with axes, and where warnings end and recalibration begins."""
    left = LEFT + place * (SIDE + GAP)
    lines = [f'<g transform="translate({left} 0)">', text(SIDE / 2, TOP - 12, title, more=' font-family="monospace"')]
    paths = regions(size, mu)
    lines += [f'<path fill="{COLOURS[name]}" d="{path}"/>' for name, path in paths.items()]
    for n_rows in (warning_ends(), recalibration_begins(mu)):
        x = across(math.log10(n_rows * mu))
        lines.append(f'<path stroke="#222" stroke-dasharray="3 3" d="M{x:.1f} {TOP}v{SIDE}"/>')
    lines.append(f'<rect x="0" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#222"/>')
    for exponent in range(math.ceil(SIGNALS[0]), math.floor(SIGNALS[1]) + 1):
        x = across(exponent)
        lines.append(f'<path stroke="#222" d="M{x:.1f} {TOP + SIDE}v4"/>')
        lines.append(text(x, TOP + SIDE + 17, raised(exponent)))
    for exponent in range(int(COLUMNS[0]), int(COLUMNS[1]) + 1):
        y = above(exponent)
        lines.append(f'<path stroke="#222" d="M0 {y:.1f}h-4"/>')
        if place == 0:
            lines.append(text(-8, y + 4, raised(exponent), "end"))
    lines += [text(SIDE / 2, TOP + SIDE + 36, "n μ"), "</g>"]
    return lines


def warning_ends() -> int:
    """The number of records from which on a fit does not warn."""
    return plan_for(1, 10, 10).enough_records


def recalibration_begins(mu: float) -> int:
    """The number of records from which on slope and constant are recalibrated."""
    return bisect_left(range(1 << 20), True, key=lambda n_rows: recalibration_share(plan_for(n_rows, 10, 10), mu) > 0.0)


def draw() -> str:
    """The whole picture."""
    mu = plan_for(1, 10, 10).open_filter().mu
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
    ]
    for place, (title, size) in enumerate(PANELS):
        lines += panel(place, title, size, mu)
    middle = TOP + SIDE / 2
    lines.append(text(16, middle, "columns d", more=f' transform="rotate(-90 16 {middle})"'))
    x, y = float(LEFT), TOP + SIDE + 58
    for name, colour in COLOURS.items():
        lines.append(f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" fill="{colour}" stroke="#222"/>')
        lines.append(text(x + 18, y, name, "start"))
        x += 40 + 6.6 * len(name)
    rule = (
        f"Dashed: a fit warns left of n μ = {warning_ends() * mu:.0f}, and is recalibrated right of "
        f"{recalibration_begins(mu) * mu:.0f}. Epsilon 1 and delta 1e-6, so that μ = {mu:.3f}."
    )
    return "\n".join([*lines, text(LEFT, y + 22, rule, "start"), "</svg>", ""])


if __name__ == "__main__":
    sys.exit(run_picture(sys.argv[1:], PICTURE, draw))
