"""``taciturn reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.app.cli.screen import console, print_line


def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment, or all; list prints the names.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Trials on each case. [default: the paper's]")] = None,
    data: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Folder of the data sets, before TACITURN_DATA and the cache."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials: minutes instead of hours.")] = False,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", file_okay=False, help="Folder of the results; a killed run continues."),
    ] = Path("reproduction"),
) -> None:
    """Regenerate tables and figures of papers, with the sound methods beside the published ones.

    Example: taciturn reproduce dpsis-microarrays --quick --data ../data
    """
    from taciturn.core.errors import DataError
    from taciturn_research.reproduce import EXPERIMENTS, find_experiment, run_experiment, write_report

    if name == "list":
        _print_list()
        return
    experiments = EXPERIMENTS if name == "all" else (find_experiment(name),)
    out = console()
    reasons: dict[str, None] = {}
    for place, each in enumerate(experiments, start=1):
        if len(experiments) > 1:
            print_line(f"{place} of {len(experiments)}: {each.paper}, {each.summary}")
        skipped = run_experiment(each, output, trials=trials, data=data, jobs=jobs, quick=quick, console=out)
        if name != "all" and len(skipped) == len(each.cases_of(quick=quick)):
            raise DataError(f"{name}: none of its data sets can be used. {skipped[0]}")
        reasons |= dict.fromkeys(skipped)
    for reason in reasons:
        out.print(f"skipped: {reason}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    print_line(f"written: {write_report(EXPERIMENTS, output)}")


def _print_list() -> None:
    from itertools import groupby

    from rich.table import Table

    from taciturn_research.reproduce import EXPERIMENTS

    out = console()
    width = max(len(each.name) for each in EXPERIMENTS)
    for paper, experiments in groupby(EXPERIMENTS, key=lambda each: each.paper):
        table = Table(title=paper, title_justify="left", box=None, pad_edge=False, expand=True)
        table.add_column("name", style="bold", no_wrap=True, min_width=width)
        table.add_column("what it measures", ratio=1)
        table.add_column("trials (quick)", justify="right", no_wrap=True)
        for each in experiments:
            what = f"{each.summary} ({', '.join(each.items)})"
            table.add_row(each.name, what, f"{each.trials} ({each.quick_trials})")
        out.print(table)
        out.print()
