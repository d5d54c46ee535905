"""``taciturn init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.endings import complete
from taciturn.cli.options import TableFile
from taciturn.cli.output import replace_file
from taciturn.cli.screen import print_line, stage
from taciturn.core.errors import ParameterError

__all__ = ["init"]


def init(
    table: TableFile,
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the template.")] = Path("bounds.toml"),
) -> None:
    """Write a template for the bounds file: names and types of the columns, no value of the table.

    Fill in the blanks from public knowledge: the range of each column from its nature, the lists of categories, the
    classes or the range of the target. Do not take them from the table.

    Example: taciturn init patients.csv --target diagnosis
    """
    from taciturn.tables import bounds_template, read_schema

    if output.exists():
        raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
    with stage(f"reading the columns of {table.name}"):
        schema = read_schema(table)
    replace_file(output, bounds_template(schema, target), public=True)
    with complete(f"the template {output} is complete"):
        print_line(f"written: {output}, with {len(schema.names)} columns; fill in the blanks, then: taciturn fit")
