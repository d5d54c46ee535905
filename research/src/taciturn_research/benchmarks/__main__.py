"""Run the benchmarks, or those that are named, and keep the table: ``python -m taciturn_research.benchmarks``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from taciturn_research.benchmarks import (
    bench_accounting,
    bench_default,
    bench_design,
    bench_files,
    bench_frank_wolfe,
    bench_gradients,
    bench_gram,
    bench_growth,
    bench_hard_threshold,
    bench_kendall,
    bench_peers,
    bench_randomness,
    bench_screening,
    bench_selectors,
    bench_starting,
    bench_table,
    bench_top_k,
)
from taciturn_research.benchmarks.measuring import Row
from taciturn_research.benchmarks.table import FASTER, HEADINGS, SLOWER, cells_of, excused, section_of, with_sections

RESULTS = Path(__file__).with_name("results.md")


class Suite(NamedTuple):
    """Rows that are measured together, and what their ratios are unless they say otherwise."""

    title: str
    rows: Callable[[], Iterable[Any]]
    meaning: str
    by_name_only: bool = False
    """Whether the suite needs more than ``make bench`` installs."""


SUITES = {
    "randomness": Suite("randomness, against numpy's PCG64", bench_randomness.rows, SLOWER),
    "top_k": Suite("top-k selection", bench_top_k.rows, FASTER),
    "accounting": Suite("accounting", bench_accounting.rows, FASTER),
    "design": Suite("exact sums", bench_design.rows, SLOWER),
    "gradients": Suite("gradients over dense rows", bench_gradients.rows, FASTER),
    "default": Suite("the default on dense tables", bench_default.rows, SLOWER),
    "growth": Suite("growth of the default", bench_growth.rows, SLOWER),
    "gram": Suite("Gram matrices in sparse fits", bench_gram.rows, SLOWER),
    "frank_wolfe": Suite("Frank-Wolfe, a step", bench_frank_wolfe.rows, FASTER),
    "hard_threshold": Suite("hard thresholding, a step", bench_hard_threshold.rows, SLOWER),
    "screening": Suite("columns dropped for good", bench_screening.rows, FASTER),
    "selectors": Suite("correlation selector", bench_selectors.rows, SLOWER),
    "kendall": Suite("Kendall selector", bench_kendall.rows, FASTER),
    "starting": Suite("imports and first fits", bench_starting.rows, SLOWER),
    "table": Suite("a table on disk", bench_table.rows, SLOWER),
    "files": Suite("files larger than memory", bench_files.rows, SLOWER),
    "peers": Suite("fits beside other libraries", bench_peers.rows, SLOWER, by_name_only=True),
}


def main() -> int:
    """Print every number with its target; exit 1 if one is missed and nothing says why."""
    parser = argparse.ArgumentParser(prog="python -m taciturn_research.benchmarks", description=main.__doc__)
    parser.add_argument("suites", nargs="*", metavar="NAME", help=f"suites to run (all but peers): {', '.join(SUITES)}")
    names = parser.parse_args().suites or [name for name, suite in SUITES.items() if not suite.by_name_only]
    unknown = sorted(set(names) - set(SUITES))
    if unknown:
        parser.error(f"no suite is called {', '.join(unknown)}; there are {', '.join(SUITES)}")
    results: dict[str, list[Row]] = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name in names:
            task = progress.add_task(SUITES[name].title, total=1)
            results[name] = list(SUITES[name].rows())
            progress.update(task, completed=1)

    table = Table(title="Measured in one run")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("measured", "target") else "left")
    for name, rows in results.items():
        for row in rows:
            table.add_row(*cells_of(row, SUITES[name].meaning))
    Console(width=200).print(table)
    sections = {SUITES[name].title: section_of(rows, SUITES[name].meaning) for name, rows in results.items()}
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    order = [suite.title for suite in SUITES.values()]
    RESULTS.write_text(with_sections(text, sections, order), encoding="utf-8")
    return 0 if all(excused(row, SUITES[name].meaning) for name, rows in results.items() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
