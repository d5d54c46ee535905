"""The command of the coverage study: ``python -m taciturn_research.coverage``, or ``make coverage``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from taciturn_research.coverage.designs import DESIGNS, WELL_SPECIFIED
from taciturn_research.coverage.run import DELTA, Cell, Outcome, cells, load, run
from taciturn_research.places import REPOSITORY

REPORT = Path(__file__).with_name("results.md")
PAGE = REPOSITORY / "docs" / "inference.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
# A cell counts where at least this share of its runs has intervals.
ENOUGH = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and report."""
    parser = argparse.ArgumentParser(prog="python -m taciturn_research.coverage", description=main.__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs per cell (40; 200 for the full study)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--tasks", nargs="+", help="linear, logistic (default: both)")
    parser.add_argument("--designs", nargs="+", help="names (default: all)")
    parser.add_argument("--out", type=Path, default=Path("build/coverage"), help="folder of the runs (build/coverage)")
    parser.add_argument("--report-only", action="store_true", help="write the report on what is there")
    options = parser.parse_args(arguments)
    path = options.out / "runs.jsonl"
    chosen = [
        cell
        for cell in cells()
        if cell.task in (options.tasks or (cell.task,)) and cell.design in (options.designs or (cell.design,))
    ]
    console = Console(stderr=True)
    if not options.report_only:
        run(path, chosen, options.runs, options.jobs, console)
    outcomes = list(load(path).values())
    table = report(outcomes)
    REPORT.write_text(f"{_head(outcomes)}\n{table}\n", encoding="utf-8")
    write_page(overview(outcomes))
    console.print(f"report: {REPORT}")
    return 0


def write_page(table: str) -> None:
    """Put a table between the marks of the page on inference."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE.name}: expected the marks {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def _head(outcomes: Sequence[Outcome]) -> str:
    described = "\n".join(f"* *{name}*: {words}." for name, words in DESIGNS.items())
    return f"""# Coverage of the intervals

`make coverage` (`FULL=1` for 200 runs per cell) fits `SparseRegressor(inference=True)` and
`SparseClassifier(inference=True)` with k columns of 60 and nothing else set, at delta = {DELTA:g}, and compares
intervals of nominal 95 % with the population's coefficients of the columns that were chosen. n is the number of all
records, of which one half chooses the columns and the other one estimates.

{described}

*With intervals*: the share of runs that give any. *Coverage*: over all coefficients of these runs; its standard error
is that of the mean over runs, whose coefficients are dependent. *Width*: the median. *Relative*: to intervals without
privacy from as many records, the median.

{judged(outcomes)}
"""


def _cell_rows(outcomes: Iterable[Outcome]) -> dict[Cell, list[Outcome]]:
    by_cell: dict[Cell, list[Outcome]] = {cell: [] for cell in cells()}
    for outcome in outcomes:
        by_cell[outcome.cell].append(outcome)
    return {cell: found for cell, found in by_cell.items() if found}


def coverage(found: Sequence[Outcome]) -> tuple[float, float, float]:
    """The share of runs with intervals, coverage, and its standard error."""
    rates = np.array([o.covered / o.n_columns for o in found if o.covered is not None])
    share = rates.size / len(found)
    if not rates.size:
        return share, np.nan, np.nan
    return share, float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(rates.size)) if rates.size > 1 else np.nan


def report(outcomes: Sequence[Outcome]) -> str:
    """One row per cell."""
    lines = [
        "| task | design | n | k | epsilon | runs | with intervals | coverage | std error | width | relative |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell, found in _cell_rows(outcomes).items():
        share, rate, error = coverage(found)
        numbers = "-", "-", "-", "-"
        if share:
            width = np.median([o.width for o in found if o.width is not None])
            relative = np.median([o.relative_width for o in found if o.relative_width is not None])
            numbers = f"{rate:.3f}", f"{error:.3f}", f"{width:.3g}", f"{relative:.2f}"
        lines.append(
            f"| {cell.task} | {cell.design} | {cell.n:,} | {cell.k} | {cell.epsilon:g} | {len(found)} | {share:.0%} | "
            f"{' | '.join(numbers)} |"
        )
    return "\n".join(lines)


def judged(outcomes: Sequence[Outcome]) -> str:
    """What is asked of coverage, and whether it holds."""
    rated = {cell: coverage(found) for cell, found in _cell_rows(outcomes).items()}
    counted = {cell: rate for cell, (share, rate, _) in rated.items() if share >= ENOUGH}
    well = {cell: rate for cell, rate in counted.items() if cell.design in WELL_SPECIFIED}
    other = {cell: rate for cell, rate in counted.items() if cell.design not in WELL_SPECIFIED}
    if not well or not other:
        return "Too few cells were run for a verdict."
    outside = [cell for cell, rate in well.items() if not 0.92 <= rate <= 0.98]
    named = "; ".join(
        f"{c.task}, {c.design}, n {c.n:,}, k {c.k}, epsilon {c.epsilon:g}: {well[c]:.3f}" for c in outside
    )
    return (
        f"Cells with intervals in at least half of the runs: {len(counted)} of {len(rated)}. Of {len(well)} of them "
        f"with well-specified designs coverage is between {min(well.values()):.3f} and {max(well.values()):.3f}, on "
        f"average {np.mean(list(well.values())):.3f}; {len(outside)} are outside of .92 to .98"
        f"{': ' if named else ''}{named}. "
        f"Of {len(other)} with a model that does not hold it is at least {min(other.values()):.3f}, on average "
        f"{np.mean(list(other.values())):.3f}."
    )


def overview(outcomes: Sequence[Outcome]) -> str:
    """A shorter table for the page: coverage by task, design, n and epsilon, over both k."""
    groups: dict[tuple[str, str], dict[tuple[int, float], list[Outcome]]] = {}
    for cell, found in _cell_rows(outcomes).items():
        groups.setdefault((cell.task, cell.design), {}).setdefault((cell.n, cell.epsilon), []).extend(found)
    heads = sorted({key for columns in groups.values() for key in columns})
    lines = [
        "| task | design | " + " | ".join(f"n {n:,}, epsilon {epsilon:g}" for n, epsilon in heads) + " |",
        "| --- | --- |" + " --- |" * len(heads),
    ]
    for (task, design), columns in groups.items():
        cells_ = []
        for head in heads:
            share, rate, _ = coverage(columns[head]) if head in columns else (0.0, np.nan, np.nan)
            cells_.append(f"{rate:.3f} ({share:.0%})" if share else "none")
        lines.append(f"| {task} | {design} | {' | '.join(cells_)} |")
    note = (
        "Coverage of nominal 95 % intervals, and the share of runs that give any, over k = 5 and 10; "
        f"{len(outcomes):,} runs. `taciturn_research/coverage/results.md` has every cell with standard errors "
        "and widths."
    )
    return "\n".join((*lines, "", note))


if __name__ == "__main__":
    sys.exit(main())
