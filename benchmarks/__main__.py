"""Run every benchmark, print the table and keep it: ``python -m benchmarks``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import (
    bench_accounting,
    bench_design,
    bench_frank_wolfe,
    bench_hard_threshold,
    bench_kendall,
    bench_randomness,
    bench_screening,
    bench_selectors,
    bench_table,
    bench_top_k,
)

SLOWER = "cost of ours / cost of the baseline"
FASTER = "cost of the baseline / cost of ours"

SUITES = (
    ("randomness, against numpy's PCG64", bench_randomness.rows, SLOWER),
    ("top-k selection", bench_top_k.rows, FASTER),
    ("accounting", bench_accounting.rows, FASTER),
    ("exact sums", bench_design.rows, SLOWER),
    ("Frank-Wolfe, a step", bench_frank_wolfe.rows, FASTER),
    ("hard thresholding, a step", bench_hard_threshold.rows, SLOWER),
    ("columns dropped for good", bench_screening.rows, FASTER),
    ("correlation selector", bench_selectors.rows, SLOWER),
    ("Kendall selector", bench_kendall.rows, FASTER),
    ("a table on disk", bench_table.rows, SLOWER),
)


def _met(row: Mapping[str, Any], meaning: str) -> bool:
    met: bool = row["ratio"] <= row["target"] if meaning == SLOWER else row["ratio"] >= row["target"]
    return met


def main() -> int:
    """Print every ratio with its target; exit 1 if one is missed."""
    results: list[tuple[str, str, Mapping[str, Any]]] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name, rows, meaning in SUITES:
            task = progress.add_task(name, total=1)
            results += [(name, meaning, row) for row in rows()]
            progress.update(task, completed=1)

    table = Table(title="Ratios measured in one run")
    lines = ["# Benchmarks", "", "The last run of `make bench`. Only ratios within one run mean anything.", ""]
    headings = ("case", "ratio", "target", "met", "what the ratio is", "set-up, s")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("ratio", "target") else "left")
    lines += ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    for _, meaning, row in results:
        target = f"{'<=' if meaning == SLOWER else '>='} {row['target']:g}"
        met = "yes" if _met(row, meaning) else "NO"
        setup = f"{row['setup']:.2f}" if "setup" in row else ""
        cells = (str(row["case"]), f"{row['ratio']:.3g}", target, met, meaning, setup)
        table.add_row(*cells)
        lines.append("| " + " | ".join(cells) + " |")
    Console(width=160).print(table)
    Path(__file__).with_name("results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if all(_met(row, meaning) for _, meaning, row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
