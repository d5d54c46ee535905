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

from taciturn_research.benchmarks import bench_peers
from taciturn_research.benchmarks.bench_engines import engines_rows
from taciturn_research.benchmarks.bench_files import files_rows, table_rows
from taciturn_research.benchmarks.bench_fits import (
    accounting_rows,
    default_rows,
    growth_rows,
    kendall_rows,
    planning_rows,
    selectors_rows,
    starting_rows,
)
from taciturn_research.benchmarks.bench_kernels import (
    design_rows,
    gradients_rows,
    gram_rows,
    randomness_rows,
    top_k_rows,
)
from taciturn_research.benchmarks.bench_sites import sites_rows
from taciturn_research.benchmarks.bench_solvers import solvers_rows
from taciturn_research.benchmarks.bench_steps import frank_wolfe_rows, hard_threshold_rows, screening_rows
from taciturn_research.benchmarks.measuring import (
    FASTER,
    HEADINGS,
    SLOWER,
    Row,
    cells_of,
    excused,
    section_of,
    with_sections,
)

RESULTS = Path(__file__).with_name("results.md")


class Suite(NamedTuple):
    """Rows that are measured together, and what their ratios are unless they say otherwise."""

    title: str
    rows: Callable[[], Iterable[Any]]
    meaning: str
    by_name_only: bool = False
    """Whether the suite needs more than ``make bench`` installs."""


SUITES = {
    "randomness": Suite("randomness, against numpy's PCG64", randomness_rows, SLOWER),
    "top_k": Suite("top-k selection", top_k_rows, FASTER),
    "accounting": Suite("accounting", accounting_rows, FASTER),
    "design": Suite("exact sums", design_rows, SLOWER),
    "gradients": Suite("gradients over dense rows", gradients_rows, FASTER),
    "default": Suite("the default on dense tables", default_rows, SLOWER),
    "solvers": Suite("fits beside plain solvers", solvers_rows, SLOWER),
    "growth": Suite("growth of the default", growth_rows, SLOWER),
    "gram": Suite("Gram matrices in sparse fits", gram_rows, SLOWER),
    "frank_wolfe": Suite("Frank-Wolfe, a step", frank_wolfe_rows, FASTER),
    "hard_threshold": Suite("hard thresholding, a step", hard_threshold_rows, SLOWER),
    "screening": Suite("columns dropped for good", screening_rows, FASTER),
    "selectors": Suite("correlation selector", selectors_rows, SLOWER),
    "kendall": Suite("Kendall selector", kendall_rows, FASTER),
    "starting": Suite("imports and first fits", starting_rows, SLOWER),
    "planning": Suite("a plan before a fit", planning_rows, SLOWER),
    "table": Suite("a table on disk", table_rows, SLOWER),
    "files": Suite("files larger than memory", files_rows, SLOWER),
    "engines": Suite("engines, a round", engines_rows, SLOWER, by_name_only=True),
    "sites": Suite("several sites", sites_rows, SLOWER),
    "peers": Suite("fits beside other libraries", bench_peers.rows, SLOWER, by_name_only=True),
}


def main() -> int:
    """Print every number with its target; exit 1 if one is missed and nothing says why."""
    parser = argparse.ArgumentParser(prog="python -m taciturn_research.benchmarks", description=main.__doc__)
    parser.add_argument(
        "suites", nargs="*", metavar="NAME", help=f"suites to run (all but engines and peers): {', '.join(SUITES)}"
    )
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
