"""``taciturn arena``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.app.cli.screen import console, print_line

if TYPE_CHECKING:
    from taciturn_research.arena.methods import Method


class Study(StrEnum):
    """What ``--study`` runs instead of the whole arena."""

    coefficients = "coefficients"


class Measure(StrEnum):
    """What ``--compare`` shows."""

    error = "error"
    log_loss = "log_loss"


def arena(
    study: Annotated[
        Study | None, typer.Option(help="Coefficients on raw tables, beside the version before; its own page.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Large grids, all rows, six epsilons: many hours.")] = False,
    method: Annotated[list[str] | None, typer.Option(help="A method or family; repeatable. [default: all]")] = None,
    data_set: Annotated[list[str] | None, typer.Option(help="A data set; repeatable. [default: all]")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="A budget; repeatable. [default: .5, 1, 5]")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds at the best setting. [default: 10]")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    data: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of the data sets on disk.")
    ] = None,
    with_file: Annotated[
        list[Path] | None,
        typer.Option("--with", exists=True, dir_okay=False, help="Python file that adds methods or data sets."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", file_okay=False, help="Folder of fits and report; a killed run continues.")
    ] = Path("build/arena"),
    publish: Annotated[
        bool, typer.Option("--publish", help="Write the report over the one that the repository holds.")
    ] = False,
    forget: Annotated[list[str] | None, typer.Option(help="A method or family to be run anew; repeatable.")] = None,
    report_only: Annotated[bool, typer.Option("--report-only", help="Report on what is there; fit nothing.")] = False,
    compare: Annotated[
        Measure | None, typer.Option(help="Print ours beside the first edition and the best peer; no report.")
    ] = None,
) -> None:
    """Compare methods on data sets at equal budgets.

    Example: taciturn arena --method default --data-set diabetes --epsilon 1 --seeds 5
    """
    from dataclasses import replace

    from taciturn.core.errors import ParameterError
    from taciturn_research.arena import study as coefficients
    from taciturn_research.arena.catalogue import DATA_SETS, METHODS
    from taciturn_research.arena.report import PUBLISHED, compared, write_report
    from taciturn_research.arena.run import FULL, QUICK, results_in, run
    from taciturn_research.harness import read_additions

    if publish and with_file:
        raise ParameterError("--publish", True, "no --with: pages are about the repository's methods", "leave one out")
    additions = tuple(path.resolve() for path in with_file or ())
    for path in additions:
        read_additions(path)
    plan = FULL if full else QUICK if study is None else coefficients.PLAN
    if epsilon:
        plan = replace(plan, epsilons=tuple(epsilon))
    if seeds:
        plan = replace(plan, seeds=seeds, search_seeds=min(seeds, plan.search_seeds))
    for name in data_set or ():
        if name not in DATA_SETS:
            raise ParameterError("--data-set", name, f"one of {', '.join(DATA_SETS)}", "choose one of them")
    known = DATA_SETS if study is None else [each.name for each in coefficients.DATA_SETS]
    data_sets = [DATA_SETS[name] for name in data_set or known]
    methods = _chosen("--method", method, METHODS.values() if study is None else coefficients.METHODS)
    forgotten = _chosen("--forget", forget or (), METHODS.values())
    results = results_in(out)
    if forgotten:
        results.forget({each.name for each in forgotten})
    if not report_only:
        screen = console(stderr=True)
        for sentence in run(
            plan, data_sets, methods, results, folder=data, jobs=jobs, console=screen, additions=additions
        ):
            print_line(sentence)
    if compare is not None:
        for line in compared(results, plan, data_sets, list(METHODS.values()), compare.value).splitlines():
            print_line(line)
        return
    # The report is about everything that is there, whatever was run now.
    folder = PUBLISHED if publish else out
    if study is not None:
        print_line(f"written: {coefficients.write_study(results, plan, coefficients.DATA_SETS, folder)}")
        return
    print_line(f"written: {write_report(results, plan, list(DATA_SETS.values()), list(METHODS.values()), folder)}")


def _chosen(option: str, names: Iterable[str] | None, methods: Iterable[Method]) -> list[Method]:
    """Methods by their names or families; None: all."""
    from taciturn.core.errors import ParameterError

    methods = list(methods)
    if names is None:
        return methods
    chosen: dict[str, Method] = {}
    for name in names:
        found = {each.name: each for each in methods if name in (each.name, each.family)}
        if not found:
            known = ", ".join(each.name for each in methods)
            raise ParameterError(option, name, f"a family, or one of {known}", "choose one of them")
        chosen |= found
    return list(chosen.values())
