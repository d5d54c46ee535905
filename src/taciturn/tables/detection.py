"""What ``taciturn init`` proposes for every column, from its name and from the shapes of the cells in the first rows.

**Privacy.** Cells are looked at to choose one type from a fixed list, for each column by itself, with the format of its
dates or the length of its groups of codes, and the delimiter and the decimal point of the file. Nothing else leaves
this module: no value, no count, no range. The certificates of fits assume that names and types of the columns are
public, and this choice is such a type.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taciturn.tables.arrow_tables import ColumnSelection, arrow_schema, read_first_texts, stream_batches
from taciturn.tables.conversions import parse_censored, parse_number, truth_code
from taciturn.tables.dates import parse_day
from taciturn.tables.files import TableFile, table_file, without_cells
from taciturn.tables.identifiers import names_a_person, names_an_identifier
from taciturn.tables.layouts import DELIMITERS, TableLayout
from taciturn.tables.libsvm import libsvm_schema
from taciturn.tables.schema import TableSchema

__all__ = ["ColumnProposal", "TableProposal", "detect_table", "propose_column"]

_FIRST_BYTES = 1 << 16
_FIRST_LINES = 20
_MANY = 30
"""More different texts than this are not typed into a list by hand."""
_LONG, _WORDS = 40, 4
"""Text of so many characters or words is free text, where it is more than half of the cells."""

_DATES = (
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%d.%m.%y",
)
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+")
_ICD = re.compile(r"[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?")
_ICD_GROUP = 3
"""Characters of an ICD-10 code that name the category of a disease."""


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """The type that a column probably has.

    ``kind`` is "person", "identifier", "number", "censored", "boolean", "date", "category", "codes", "free text" or
    "unknown". ``format`` is that of dates in text; ``ambiguous`` ones may have day and month the other way round.
    ``group`` is the number of characters that make a class of codes, where the shape of the codes tells it.
    """

    kind: str
    format: str | None = None
    ambiguous: bool = False
    group: int | None = None


@dataclass(frozen=True, slots=True)
class TableProposal:
    """Names, proposals for all columns by name, and how the file is written."""

    schema: TableSchema
    columns: dict[str, ColumnProposal]
    layout: TableLayout


def detect_table(path: str | Path, *, header: bool = False) -> TableProposal:
    """Read the names and the first rows of a table on disk, and propose a type for every column.

    ``header`` states that the first line holds names, whatever they look like.
    """
    file = table_file(path, TableLayout(header=header))
    if file.format == "libsvm":
        schema = libsvm_schema(file)
        return TableProposal(schema, dict.fromkeys(schema.names, ColumnProposal("number")), TableLayout())
    layout = TableLayout(name=file.part, header=header)
    if file.format == "csv":
        delimiter = _detect_delimiter(file)
        if delimiter != file.delimiter:
            layout = replace(layout, delimiter=delimiter)
            file = replace(file, delimiter=delimiter)
    schema = arrow_schema(file)
    cells = _first_cells(file, schema)
    decimal = _detect_decimal(cells.values()) if file.format == "csv" else "."
    layout = replace(layout, decimal=decimal)
    columns = {
        name: propose_column(name, kind, cells.get(name), decimal)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
    }
    return TableProposal(schema, columns, layout)


def propose_column(name: str, kind: str, cells: Sequence[str] | None, decimal: str = ".") -> ColumnProposal:
    """The type of one column; ``cells`` are those of the first rows that are text and not missing, None if none are.

    Examples
    --------
    >>> from taciturn.tables.detection import propose_column
    >>> [propose_column("x", "category", cells).kind for cells in (["<5", "7"], ["ja", "nein"], ["a", "b"])]
    ['censored', 'boolean', 'category']
    """
    if names_a_person(name):
        return ColumnProposal("person")
    if names_an_identifier(name):
        return ColumnProposal("identifier")
    if cells is None:
        return ColumnProposal(kind)
    if not cells:
        return ColumnProposal("unknown")
    distinct = set(cells)
    if all(_is_number(cell, decimal) for cell in distinct):
        return ColumnProposal("number")
    if all(truth_code(cell) >= 0 for cell in distinct):
        return ColumnProposal("boolean")
    if all(_is_censored(cell, decimal) for cell in distinct):
        return ColumnProposal("censored")
    formats = _date_formats(distinct)
    if formats:
        turned = {format.replace("%d", "%").replace("%m", "%") for format in formats if format is not None}
        return ColumnProposal("date", formats[0], ambiguous=len(formats) > len(turned) > 0)
    if sum(len(cell) > _LONG or cell.count(" ") >= _WORDS - 1 for cell in cells) > len(cells) / 2:
        return ColumnProposal("free text")
    if len(distinct) > _MANY:
        return ColumnProposal("codes", group=_ICD_GROUP if all(map(_ICD.fullmatch, distinct)) else None)
    return ColumnProposal("category")


def _is_number(cell: str, decimal: str) -> bool:
    number = parse_number(cell, decimal)
    return number == number


def _is_censored(cell: str, decimal: str) -> bool:
    number = parse_censored(cell, decimal)
    return number == number


def _date_formats(cells: Collection[str]) -> list[str | None]:
    """Formats by which all cells are dates; None is that of 2020-12-31."""
    if all(parse_day(cell, None) for cell in cells):
        return [None]
    formats = [day + time for time in _TIMES for day in _DATES]
    return [format for format in formats if all(parse_day(cell, format) for cell in cells)]


def _first_cells(file: TableFile, schema: TableSchema) -> dict[str, list[str]]:
    """The cells of the first rows that are not missing, of the columns that are text."""
    if file.is_text:
        return read_first_texts(file, schema)
    texts = {name: "as it is" for name, kind in zip(schema.names, schema.kinds, strict=True) if kind == "category"}
    if not texts:
        return {}
    first = next(iter(stream_batches(file, schema, ColumnSelection(texts))), None)
    columns: Sequence[Any] = [] if first is None else first.slice(0, _FIRST_BYTES // len(texts)).columns
    return {
        name: [cell.strip() for cell in column.to_pylist() if cell is not None and cell.strip()]
        for name, column in zip(texts, columns, strict=bool(columns))
    }


def _detect_delimiter(file: TableFile) -> str:
    """The delimiter by which the first lines have the same number of cells, more than one."""

    def first_lines() -> list[str]:
        with file.open() as stream:
            text = stream.read(_FIRST_BYTES).decode("utf-8-sig", errors="ignore")
        return text.splitlines()[:_FIRST_LINES]

    lines = without_cells(file, first_lines)

    def fitness(delimiter: str) -> tuple[bool, int, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return False, 0, 0
        width = widths[0] if widths else 0
        return width > 1, sum(each == width for each in widths), width

    # The delimiter that the name of the file states comes first among equals.
    return max(dict.fromkeys((file.delimiter, *DELIMITERS)), key=fitness)


def _detect_decimal(columns: Iterable[Sequence[str]]) -> str:
    """A comma if numbers have one and none has a point."""
    commas = False
    for cells in columns:
        plain = [cell.lstrip("<>≤≥= ") for cell in cells]
        if any(map(_DECIMAL_POINT.fullmatch, plain)) and all(_is_number(cell, ".") for cell in plain):
            return "."
        with_comma = [cell for cell in plain if _DECIMAL_COMMA.fullmatch(cell)]
        whole = all(_is_number(cell, ",") for cell in plain)
        commas = commas or (whole and not all(map(_THOUSANDS.fullmatch, with_comma)))
    return "," if commas else "."
