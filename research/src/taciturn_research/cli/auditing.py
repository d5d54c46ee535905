"""``taciturn audit``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.app.cli.screen import console

if TYPE_CHECKING:
    from rich.table import Table

    from taciturn.audit import AuditResult
    from taciturn_research.attacks import Entry


def audit(
    name: Annotated[str, typer.Argument(help="A class, or all; list prints the names.")],
    epsilon: Annotated[float, typer.Option(help="The budget to attack, from 0.01 to 10.")] = 1.0,
    trials: Annotated[
        int | None, typer.Option(min=8, help="Runs on each of two data sets. [default: that of the entry]")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
) -> None:
    """Attack this library's own guarantees; exit code 1 if a claim is refuted.

    Example: taciturn audit HardThresholdRegressor --epsilon 2 --jobs 2
    """
    from taciturn_research.attacks import all_entries, find_entries
    from taciturn_research.attacks.run import audit_all

    out = console()
    if name == "list":
        out.print(entry_table(all_entries()))
        return
    results = list(audit_all(find_entries(name), epsilon, trials=trials, n_jobs=jobs, progress=True))
    out.print(verdict_table(results))
    violated = [result for result in results if result.verdict == "violated"]
    for result in violated:
        out.print(str(result), style="red", markup=False, highlight=False)
    if violated:
        raise typer.Exit(1)


def entry_table(entries: Iterable[Entry]) -> Table:
    """What can be audited."""
    from rich.table import Table

    table = Table(title="Audits")
    for heading in ("name", "kind", "what is looked at"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        table.add_row(entry.name, entry.kind, entry.summary)
    return table


def verdict_table(results: Iterable[AuditResult]) -> Table:
    """Claims, what was found and verdicts."""
    from rich.table import Table

    table = Table(title="Epsilon, claimed and found", caption="An audit can refute a claim. It cannot prove one.")
    table.add_column("name", style="bold", overflow="fold")
    for heading in ("claimed", "at least", "delta", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in results:
        violated = result.verdict == "violated"
        table.add_row(
            result.name,
            f"{result.claimed:.4g}",
            _bound_in_words(result),
            f"{result.delta:g}",
            f"{result.trials:,}" if result.trials else "law",
            result.verdict,
            style="red" if violated else None,
        )
    return table


def _bound_in_words(result: AuditResult) -> str:
    """Three decimals; what runs have shown is rounded down, since a lower bound that is rounded up is none."""
    bound = result.lower_bound
    return f"{bound if result.route == 'exact' else math.floor(bound * 1000.0) / 1000.0:.3f}"
