"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from taciturn.cli.limits import check_memory_limit

__all__ = [
    "Bounds",
    "Delta",
    "Epsilon",
    "NPublic",
    "PrivateBounds",
    "Public",
    "Relation",
    "Seed",
    "TableFile",
    "Target",
    "checked_budget",
]


def checked_budget(epsilon: float | None) -> float | None:
    """Refuse a whole budget before anything is read: its parts may each be small enough."""
    if epsilon is not None:
        # The check of a number loads numpy, which comes before the command itself.
        check_memory_limit()
        from taciturn.core.validation import check_epsilon

        check_epsilon(epsilon=epsilon)
    return epsilon


TableFile = Annotated[
    Path, typer.Argument(help="CSV, TSV or libsvm file, also .gz, or Parquet, Feather or Arrow.", show_default=False)
]
Target = Annotated[str | None, typer.Option(help="Column to predict. [default: the one that the bounds file names]")]
Bounds = Annotated[
    Path | None, typer.Option(help="Public bounds of the columns (TOML); taciturn init writes a template.")
]
Epsilon = Annotated[float, typer.Option(callback=checked_budget, help="Privacy budget, > 0 and at most 30, or inf.")]
Delta = Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")]
PrivateBounds = Annotated[
    float | None, typer.Option(help="Share of the budget, in (0, 1), that finds bounds which nobody stated.")
]
Relation = Annotated[
    Literal["zero-out", "add-remove", "replace-one"], typer.Option(help="What one record more or less means.")
]
NPublic = Annotated[int | None, typer.Option(min=1, help="A public number of records, for add-remove.")]
Seed = Annotated[int | None, typer.Option(help="Reproduce a run; whoever knows the seed can undo the noise.")]
Public = Annotated[
    bool, typer.Option("--public", help="Let others read what is written, not its owner alone (permissions 0600).")
]
