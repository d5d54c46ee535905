"""``python -m taciturn.audit``: the same as ``taciturn audit``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from taciturn.audit.run import show_audits
from taciturn.core.errors import TaciturnError

__all__ = ["app"]

app = typer.Typer(name="taciturn.audit", add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Example: python -m taciturn.audit FrankWolfeRegressor --epsilon 0.5")
def main(
    name: Annotated[
        str, typer.Argument(help="A class, one of its entries, all, or list to see what there is.")
    ] = "all",
    epsilon: Annotated[float, typer.Option(help="Privacy budget, > 0.")] = 1.0,
    trials: Annotated[
        int | None, typer.Option(min=8, help="Runs on each of two data sets. [default: the entry's own]")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
) -> None:
    """Try to refute what mechanisms, selectors, estimators and scalers claim; exit code 1 if that succeeds."""
    try:
        sound = show_audits(name, epsilon, trials, jobs)
    except TaciturnError as error:
        Console(stderr=True).print(f"taciturn: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from None
    if not sound:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
