"""``taciturn audit``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["audit"]


def audit(
    name: Annotated[str, typer.Argument(help="A class, or all, or list to see what there is.")],
    epsilon: Annotated[float, typer.Option(help="The budget that is attacked, from 0.01 to 10.")] = 1.0,
    trials: Annotated[
        int | None, typer.Option(min=8, help="Runs on each of two data sets. [default: the entry's own]")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
) -> None:
    """Attack this library's own guarantees; exit code 1 if a claim is refuted.

    Example: taciturn audit HardThresholdRegressor --epsilon 2 --jobs 2
    """
    from taciturn.audit.run import show_audits

    if not show_audits(name, epsilon, trials, jobs):
        raise typer.Exit(1)
