"""Pictures of what pages explain, drawn from the package's own numbers: docs/pictures/NAME.svg for each name below.

``fit``, how a fit runs; ``relations``, the three neighbouring relations; ``persons``, what a person with several rows
is guaranteed; ``study``, the budget of the study on accounts.md; ``forecasts``, planned and obtained standard errors
of the study of forecasts; ``coverage``, how often intervals cover in the studies of coverage. Without arguments, or
with ``--write``, they are written; ``--check`` exits with 1 if a file holds another one.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from in_page import run_picture
from intervals import GROUPS, cells_of

from taciturn import SparseRegressor
from taciturn.charts import Markup, element

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
FORECASTS = ROOT / "research" / "src" / "taciturn_research" / "benchmarks" / "study_forecast.md"

# Colours for the light scheme and for the dark one, each with a contrast of at least 4.5 where it is that of text.
STYLE = """
svg { --ink: #1f2328; --pale: #59636e; --line: #b8c0c8; --main: #00695c; --other: #b3261e; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6e8ea; --pale: #9aa4ad; --line: #4a525a; --main: #4db6ac; --other: #f2857d; }
}
text { fill: var(--ink); font: 14px system-ui, sans-serif; }
.small { font-size: 12px; fill: var(--pale); }
.strong { font-weight: 600; }
.code { font-family: ui-monospace, monospace; font-size: 13px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.main { fill: var(--main); }
.other { fill: var(--other); }
.box { fill: var(--main); fill-opacity: .1; stroke: var(--main); }
.private { fill: var(--other); fill-opacity: .1; stroke: var(--other); }
.mark { fill: var(--main); fill-opacity: .75; }
.mark2 { fill: var(--other); fill-opacity: .75; }
.before { fill: var(--main); fill-opacity: .25; }
.plain { fill: var(--pale); fill-opacity: .6; }
.rest { fill: var(--line); fill-opacity: .45; }
.empty { fill: none; stroke: var(--other); stroke-dasharray: 4 3; }
.line { fill: none; stroke: var(--line); }
.arrow { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.head { fill: var(--ink); }
"""


def drawing(title: str, width: float, height: float, shapes: Sequence[Markup]) -> str:
    """A picture with its styles as the text of a file."""
    body = (element("title", title), element("style", Markup(STYLE)), *shapes)
    box = f"0 0 {width:g} {height:g}"
    return element("svg", *body, xmlns="http://www.w3.org/2000/svg", viewBox=box, width=width, height=height) + "\n"


def text(x: float, y: float, words: str, classes: str | None = None) -> Markup:
    """A line of words."""
    return element("text", words, x=x, y=y, class_=classes)


def rectangle(x: float, y: float, width: float, height: float, classes: str, *, round_by: float = 0.0) -> Markup:
    """A rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, rx=round_by or None, class_=classes)


def arrow(*points: tuple[float, float]) -> Markup:
    """A line through points, with a head at the last one."""
    (x0, y0), (x, y) = points[-2:]
    across, down = np.sign([x - x0, y - y0])
    sides = ((x - 8 * across - 4 * turn * down, y - 8 * down - 4 * turn * across) for turn in (-1, 1))
    path = "M" + "L".join(f"{a:g} {b:g}" for a, b in points)
    corners = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), *sides))
    return Markup(element("path", d=path, class_="arrow") + element("polygon", points=corners, class_="head"))


def fit() -> str:
    """Three rows of steps, read like a snake: what is public, what is private, what is released."""
    wide, high, gap, left, step = 180.0, 58.0, 38.0, 12.0, 112.0
    rows = (
        ("public, before any record is read", "box", (
            ("Parameters", "bounds, epsilon, relation"),
            ("Plan", "releases, noise, price"),
            ("Account, if any", "reserves the price"),
        )),
        ("private, inside the fit", "private", (
            ("Noise", "drawn for each release"),
            ("Exact integer sums", "a bounded term each record"),
            ("Table", "records become integers"),
        )),
        ("released", "box", (
            ("Noisy values", "steer the next question"),
            ("Model", "coefficients, intervals"),
            ("Certificate", "releases and their price"),
        )),
    )  # fmt: skip
    shapes = []
    for number, (label, classes, boxes) in enumerate(rows):
        top = 28.0 + number * step
        shapes.append(text(left, top - 9, label, "small"))
        for place, (name, words) in enumerate(boxes):
            x = left + place * (wide + gap)
            shapes.append(rectangle(x, top, wide, high, classes, round_by=6))
            shapes.append(text(x + wide / 2, top + 24, name, "strong middle"))
            shapes.append(text(x + wide / 2, top + 44, words, "small middle"))
    ends = [left + place * (wide + gap) for place in range(3)]
    for number, forwards in ((0, True), (1, False), (2, True)):
        y = 28.0 + number * step + high / 2
        for place in (0, 1):
            points = ((ends[place] + wide, y), (ends[place + 1], y))
            shapes.append(arrow(*(points if forwards else points[::-1])))
    right, first = ends[2] + wide / 2, ends[0] + wide / 2
    shapes.append(arrow((right, 28 + high), (right, 28 + step)))
    shapes.append(arrow((first, 28 + step + high), (first, 28 + 2 * step)))
    # From the noisy values back to the sums.
    out, middle, between = ends[0] + wide - 20, ends[1] + wide / 2, 6 + 2 * step
    shapes.append(arrow((out, 28 + 2 * step), (out, between), (middle, between), (middle, 28 + step + high)))
    shapes.append(text(middle + 10, 11 + 2 * step, "next step", "small"))
    return drawing("How a fit runs", 2 * left + 3 * wide + 2 * gap, 28 + 2 * step + high + 10, shapes)


def relations() -> str:
    """Two neighbouring tables for each relation."""
    shapes = []
    panels = (
        ("zero-out", "one record is blanked out", "the number of records is public"),
        ("add-remove", "one record is there or not", "the number of records is protected"),
        ("replace-one", "one record is another one", "the number of records is public"),
    )
    for number, (name, words, count) in enumerate(panels):
        left = 32.0 + number * 240.0
        shapes.append(text(left + 92, 20, f'"{name}"', "code middle strong"))
        shapes.append(text(left + 92, 160, words, "middle"))
        shapes.append(text(left + 92, 180, count, "small middle"))
        for table in (0, 1):
            for row in range(5):
                x, y = left + 104 * table, 34 + 21 * row
                classes = "mark"
                if row == 2 and (table == 1 or name == "replace-one"):
                    classes = {"zero-out": "empty", "add-remove": "", "replace-one": "mark2" if table else "mark"}[name]
                if name == "add-remove" and table == 1 and row > 2:
                    y -= 21
                if classes:
                    shapes.append(rectangle(x, y, 80, 16, classes, round_by=3))
        shapes.append(text(left + 92, 92, "~", "middle strong"))
    return drawing("The three neighbouring relations", 728, 192, shapes)


def persons() -> str:
    """Epsilon for a person with several rows, where records are rows and where they are persons."""
    rng = np.random.default_rng(0)
    model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1), epsilon=1.0, delta=1e-6, random_state=0)
    certificate = model.fit(rng.uniform(-1, 1, (500, 2)), rng.uniform(-1, 1, 500)).certificate_
    epsilons = [certificate.for_group(rows).epsilon for rows in range(1, 10)]
    left, bottom, high, step = 60.0, 196.0, 150.0, 41.0

    def above(epsilon: float) -> float:
        return bottom - high * epsilon / 12.0

    shapes = [text(left - 44, 20, "epsilon for all rows of a person, at delta 1e-6", "strong")]
    for tick in (0, 2, 4, 6, 8, 10, 12):
        shapes.append(element("path", d=f"M{left} {above(tick):g}H{left + 9 * step}", class_="line"))
        shapes.append(text(left - 8, above(tick) + 4, str(tick), "small end"))
    for place, epsilon in enumerate(epsilons):
        x = left + 6 + place * step
        shapes.append(rectangle(x, above(epsilon), 15, bottom - above(epsilon), "mark2"))
        shapes.append(rectangle(x + 16, above(1.0), 15, bottom - above(1.0), "mark"))
        shapes.append(text(x + 15.5, bottom + 16, str(place + 1), "small middle"))
    end = left + 9 * step
    shapes.append(text(left + 4.5 * step, bottom + 36, "rows of the person", "middle small"))
    shapes.append(text(end + 12, above(epsilons[-1]) + 5, "a row is a record", "other"))
    shapes.append(text(end + 12, above(epsilons[-1]) + 22, f"9 rows: {epsilons[-1]:.1f}", "small"))
    shapes.append(text(end + 12, above(1.0) + 5, "a person is a record", "main"))
    shapes.append(text(end + 12, above(1.0) + 22, "any number of rows: 1", "small"))
    return drawing("Epsilon for a person with several rows", 640, 242, shapes)


def study() -> str:
    """Shares of an account that the four steps of a study have spent."""
    page = (ROOT / "docs" / "accounts.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "accounts.md", "exec"), names)
    account = names["account"]
    total = account.state().total.gaussian
    charges = [(charge.what, charge.epsilon, charge.price.gaussian / total) for charge in account.history()]
    left, wide, step, spent = 12.0, 616.0, 44.0, 0.0
    shapes = [text(left, 20, "share of the account, epsilon 1 for the whole study", "strong")]
    for number, (what, epsilon, share) in enumerate(charges):
        top = 36 + number * step
        shapes.append(text(left, top + 12, f"{what}, epsilon {epsilon:g}"))
        shapes.append(text(left + wide, top + 12, f"{share:.1%}, together {spent + share:.1%}", "small end"))
        shapes.append(rectangle(left, top + 18, wide, 12, "rest", round_by=3))
        shapes.append(rectangle(left, top + 18, wide * spent, 12, "before"))
        shapes.append(rectangle(left + wide * spent, top + 18, wide * share, 12, "mark"))
        spent += share
    bottom = 36 + len(charges) * step
    left_over = f"left for later: {1 - spent:.1%} (squares of Gaussian parameters add up, not epsilons)"
    shapes.append(text(left, bottom + 12, left_over, "small"))
    return drawing("The budget of a study", 640, bottom + 24, shapes)


def forecasts() -> str:
    """How often a planned standard error is within a factor of 1.5 of the obtained one."""
    words = {
        "bounds": "bounds alone",
        "stated": "means, spreads and shares too",
        "correlated": "correlations of numbers too",
        "like": "half of the table is public",
    }
    results = FORECASTS.read_text(encoding="utf-8")
    found = re.findall(r"^\| (\w+) \| \*\*all but default\*\* \| (\d+) of (\d+) ", results, re.MULTILINE)
    left, wide, step = 276.0, 204.0, 34.0
    shapes = [text(12, 20, "planned standard errors within a factor of 1.5 of the obtained", "strong")]
    for number, (source, within, cells) in enumerate(found):
        y, share = 36 + number * step, int(within) / int(cells)
        shapes.append(text(left - 10, y + 15, words[source], "end"))
        shapes.append(rectangle(left, y, wide, 20, "rest", round_by=3))
        shapes.append(rectangle(left, y, wide * share, 20, "mark", round_by=3))
        shapes.append(text(left + wide + 10, y + 15, f"{share:.0%} of {cells} cells"))
    return drawing("Planned and obtained standard errors", 640, 36 + step * len(found), shapes)


def coverage() -> str:
    """A dot per cell of the studies of coverage, with privacy and without."""
    left, wide, high, step, top = 226.0, 384.0, 54.0, 22.0, 44.0
    cells = [cells_of(*group) for _, *group in GROUPS]
    # In steps of 5 %, the first of which lies below every cell.
    first = int(20.0 * min(float(row["coverage"]) for rows in cells for row in rows if row["coverage"]))
    low = first / 20.0 - 0.01
    shapes = [text(12, 20, "share of 95 % intervals that cover, a dot per cell", "strong")]
    bottom = top + high * len(GROUPS)

    def across(share: float) -> float:
        return left + wide * (share - low) / (1.0 - low)

    for twentieth in range(first, 21):
        tick = twentieth / 20.0
        classes = "arrow" if twentieth == 19 else "line"
        shapes.append(element("path", d=f"M{across(tick):g} {top}V{bottom:g}", class_=classes))
        shapes.append(text(across(tick), bottom + 16, f"{tick:.0%}", "small middle"))
    names = {"both, on samples of real tables": "samples of real tables"}
    names |= {"counts, amounts, hazards, weights, persons": "other families, persons"}
    for number, ((name, *_), rows) in enumerate(zip(GROUPS, cells, strict=True)):
        y = top + 18 + number * high
        shapes.append(text(left - 12, y + step / 2 + 4, names.get(name, name), "end"))
        for line, (head, classes) in enumerate((("coverage", "mark"), ("without privacy", "plain"))):
            shares = sorted(float(row[head]) for row in rows if row.get(head))
            for place, share in enumerate(shares):
                height = y + line * step + 4 * (place % 3 - 1)
                shapes.append(element("circle", cx=across(share), cy=height, r=3.5, class_=classes))
    shapes.append(element("circle", cx=left, cy=bottom + 36, r=3.5, class_="mark"))
    shapes.append(text(left + 10, bottom + 40, "with privacy", "small"))
    shapes.append(element("circle", cx=left + 130, cy=bottom + 36, r=3.5, class_="plain"))
    shapes.append(text(left + 140, bottom + 40, "without, from as many records", "small"))
    return drawing("Coverage of confidence intervals", 640, bottom + 48, shapes)


DIAGRAMS = {
    "fit": fit,
    "relations": relations,
    "persons": persons,
    "study": study,
    "forecasts": forecasts,
    "coverage": coverage,
}

if __name__ == "__main__":
    sys.exit(max(run_picture(sys.argv[1:], PICTURES / f"{name}.svg", draw) for name, draw in DIAGRAMS.items()))
