"""The arena's command: ``python -m benchmarks.utility``, or ``make arena``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.utility.catalogue import DATA_SETS, METHODS
from benchmarks.utility.compare import compared
from benchmarks.utility.methods import Method
from benchmarks.utility.report import write_report
from benchmarks.utility.results import Results
from benchmarks.utility.run import FULL, QUICK, run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description="Every method on every data set.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="an hour on two cores (the default)")
    size.add_argument("--full", action="store_true", help="large grids, all rows, five epsilons")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="names or families (default: all)")
    parser.add_argument("--data-sets", nargs="+", metavar="NAME", help="names (default: all)")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E", help="budgets (default: .5 1 5)")
    parser.add_argument("--seeds", type=int, help="seeds at the best setting (default: 10)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--data", type=Path, help="folder of filed data sets")
    parser.add_argument("--out", type=Path, default=Path("build/arena"), help="folder of the results (build/arena)")
    parser.add_argument("--forget", nargs="+", metavar="NAME", help="methods or families to be run anew")
    parser.add_argument("--report", type=Path, default=Path(__file__).parent, help="folder of the report (this one)")
    parser.add_argument("--report-only", action="store_true", help="write the report on what is there")
    parser.add_argument(
        "--compare",
        choices=("error", "log_loss"),
        help="print ours beside the first edition and the best peer; no report",
    )
    return parser


def chosen_methods(names: Iterable[str] | None) -> list[Method]:
    """Methods by their names or families; None: all."""
    if names is None:
        return list(METHODS.values())
    chosen = []
    for name in names:
        found = [method for method in METHODS.values() if name in (method.name, method.family)]
        if not found:
            raise SystemExit(f"--methods: no {name!r}; there are {', '.join(METHODS)}")
        chosen += found
    return list(dict.fromkeys(chosen))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and report."""
    options = _parser().parse_args(arguments)
    plan = FULL if options.full else QUICK
    if options.epsilons:
        plan = replace(plan, epsilons=tuple(options.epsilons))
    if options.seeds:
        plan = replace(plan, seeds=options.seeds, search_seeds=min(options.seeds, plan.search_seeds))
    unknown = [name for name in options.data_sets or () if name not in DATA_SETS]
    if unknown:
        raise SystemExit(f"--data-sets: no {unknown[0]!r}; there are {', '.join(DATA_SETS)}")
    data_sets = [DATA_SETS[name] for name in options.data_sets or DATA_SETS]
    results = Results(options.out)
    if options.forget:
        results.forget({method.name for method in chosen_methods(options.forget)})
    console = Console(stderr=True)
    if not options.report_only:
        methods = chosen_methods(options.methods)
        for sentence in run(plan, data_sets, methods, results, folder=options.data, jobs=options.jobs, console=console):
            console.print(sentence)
    if options.compare:
        print(compared(results, plan, data_sets, list(METHODS.values()), options.compare))
        return 0
    # The report is about everything that is there, whatever was run now.
    path = write_report(results, plan, list(DATA_SETS.values()), list(METHODS.values()), options.report)
    console.print(f"report: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
