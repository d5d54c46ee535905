"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from taciturn.cli.limits import check_memory_limit
from taciturn.cli.methods import Task

__all__ = [
    "Bounds",
    "Delta",
    "Epsilon",
    "Invalid",
    "NPublic",
    "PrivateBounds",
    "Public",
    "Relation",
    "Seed",
    "Sign",
    "TableFile",
    "Target",
    "TaskOption",
    "checked_budget",
]


def checked_budget(epsilon: float | None) -> float | None:
    """Check the whole budget before anything is read; the parts of a budget that is too large may pass the check."""
    if epsilon is not None:
        # The check loads numpy, before the command itself checks the memory limit.
        check_memory_limit()
        from taciturn.core.validation import check_epsilon

        check_epsilon(epsilon=epsilon)
    return epsilon


TableFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV or libsvm file, also .gz; Parquet, Feather, Arrow, .xlsx, .dta or SQLite.", show_default=False
    ),
]
Target = Annotated[str | None, typer.Option(help="Column to predict. [default: the target of the bounds file]")]
TaskOption = Annotated[
    Task | None, typer.Option(help="regress or classify. [default: the one that the bounds file implies]")
]
Bounds = Annotated[
    Path | None, typer.Option(help="Public bounds of the columns (TOML); taciturn init writes a template.")
]
Epsilon = Annotated[float, typer.Option(callback=checked_budget, help="Privacy budget, from 1e-9 to 30, or inf.")]
Delta = Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")]
PrivateBounds = Annotated[
    float | None, typer.Option(help="Share of the budget, in (0, 1), that finds bounds that the bounds file lacks.")
]
Relation = Annotated[Literal["zero-out", "add-remove", "replace-one"], typer.Option(help="The neighbouring relation.")]
NPublic = Annotated[int | None, typer.Option(min=1, help="Public number of records, for add-remove.")]
Invalid = Annotated[
    Literal["raise", "null"],
    typer.Option(
        help="A record with an unusable cell: raise refuses the table, null leaves the record out of all sums."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed for reproduction; whoever knows it can remove the noise.")]
Public = Annotated[
    bool,
    typer.Option("--public", help="Let others read the files. [default: the owner alone, permissions 0600]"),
]
Sign = Annotated[
    Path | None,
    typer.Option(help="Private Ed25519 key (PEM file) that signs the files. [default: they are not signed]"),
]
