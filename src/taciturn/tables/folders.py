"""Tables that are a folder of files."""

from __future__ import annotations

import os
from pathlib import Path

from taciturn.core.errors import DataError
from taciturn.tables.arrow_tables import arrow_schema
from taciturn.tables.files import TableFile, table_file
from taciturn.tables.layouts import TableLayout
from taciturn.tables.schema import TableSchema
from taciturn.tables.words import refusal

__all__ = ["folder_schema", "table_files"]


def table_files(path: str | os.PathLike[str], layout: TableLayout | None = None) -> tuple[TableFile, ...]:
    """The file of a table, or those of a folder of Parquet or of Arrow files in the order of their names.

    ``layout`` states how a single file is written. Files whose names begin with a dot or an underscore are left out:
    writers of such folders put their notes there.
    """
    folder = Path(path)
    if not os.path.isdir(folder):
        return (table_file(path, layout),)
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    if not names:
        raise refusal("table", folder.name, "a folder with Parquet or Arrow files, got none", "name another folder")
    if any((folder / name).is_dir() for name in names):
        raise refusal(
            "table",
            folder.name,
            "a folder of files, got one with folders in it, whose names may be columns",
            "write the table as files in one folder, with all columns in each",
        )
    files = tuple(table_file(folder / name) for name in names)
    formats = {file.format for file in files}
    if len(formats) > 1 or not files[0].has_groups:
        raise refusal(
            "table",
            folder.name,
            "a folder of Parquet files alone, or of Arrow files alone",
            "name one file, or write the table in one of these formats",
        )
    return files


def folder_schema(files: tuple[TableFile, ...]) -> TableSchema:
    """The schema that all files of a folder have; raise if they disagree."""
    first = arrow_schema(files[0])
    for file in files[1:]:
        if arrow_schema(file) != first:
            raise DataError(
                f"{file.name}: expected the columns of {files[0].name}, with the same names, order and types, got "
                "others; write all files of the folder alike."
            )
    return first
