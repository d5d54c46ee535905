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
    header: Annotated[
        bool, typer.Option("--header", help="The first line holds names, even where they look like values.")
    ] = False,
) -> None:
    """Write a template for the bounds file: names and types of the columns, no value of the table.

    Types are told from the names and from the shapes of the cells in the first rows: numbers, also with <5 or decimal
    commas, dates, yes and no, categories, many codes, free text, keys. One type from this list is written for each
    column, and no value, count or range. Certificates assume that such types are public.

    A table whose names look like values is refused: without a header, its first record would be published as names.
    With --header the template states that they are names, and certificates assume it.

    Fill in what the comments ask for from public knowledge: the range of each column from its nature, the lists of
    categories, the classes or the range of the target. Do not take them from the table.

    Example: taciturn init patients.csv --target diagnosis
    """
    from taciturn.tables import bounds_template, detect_table

    if output.exists():
        raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
    with stage(f"reading the columns of {table.name}"):
        found = detect_table(table, header=header)
    replace_file(output, bounds_template(found.schema, target, found.columns, found.layout), public=True)
    with complete(f"the template {output} is complete"):
        print_line(
            f"written: {output}, with {len(found.schema.names)} columns; fill in what its comments ask for, then: "
            "taciturn fit"
        )
