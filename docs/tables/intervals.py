"""The table of README.md on confidence intervals, from the stored results of the coverage studies.

Prints the table; ``--write`` puts it into the page, ``--check`` compares.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from in_page import run

STUDIES = Path(__file__).parents[2] / "research" / "src" / "taciturn_research" / "coverage"
# What a row of the table averages: a page of results, its section, and a task of it (None: every task).
GROUPS = (
    ("regression", "results.md", "## Cells", "linear"),
    ("logistic regression", "results.md", "## Cells", "logistic"),
    ("both, on samples of real tables", "results.md", "## Real tables", None),
    ("counts, amounts, hazards, weights, persons", "families.md", "# Coverage by family", None),
)
HEADS = ("with interval", "coverage", "without privacy", "width")


def rows_of(page: str, section: str) -> Iterator[dict[str, str]]:
    """The rows of the first table below a heading, by the heads of its columns."""
    lines = iter(page[page.index(f"{section}\n") :].splitlines())
    heads: list[str] = []
    for line in lines:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not heads:
                heads = cells
                next(lines)
            else:
                yield dict(zip(heads, cells, strict=True))
        elif heads:
            return


def cells_of(file: str, section: str, task: str | None) -> list[dict[str, str]]:
    """The cells of a group; of those on simulated tables the named ones, in bold, which have the runs for a verdict."""
    page = (STUDIES / file).read_text(encoding="utf-8")
    rows = [row for row in rows_of(page, section) if task is None or row["task"] == task]
    return [row for row in rows if row.get("design", "").startswith("**")] or rows


def spread(cells: Sequence[str]) -> str:
    """The mean of cells with its extremes, written as they are; cells without a number do not count."""
    known = [cell for cell in cells if cell]
    if not known:
        return ""
    numbers = [float(cell.rstrip("%")) for cell in known]
    if known[0].endswith("%"):
        shown: Callable[[float], str] = "{:.0f}%".format
    else:
        shown = f"{{:.{len(known[0].partition('.')[2])}f}}".format
    return f"{shown(statistics.mean(numbers))} ({shown(min(numbers))} to {shown(max(numbers))})"


def table() -> str:
    """The whole table."""
    lines = [f"| intervals of | cells | {' | '.join(HEADS)} |", "|---" * (len(HEADS) + 2) + "|"]
    for name, *group in GROUPS:
        rows = cells_of(*group)
        spreads = [spread([row.get(head, "") for row in rows]) for head in HEADS]
        lines.append(f"| {' | '.join([name, str(len(rows)), *spreads])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], "intervals", "../README.md", table))
