"""Table files and their formats, and error messages about them that quote no cell."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.tables.layouts import TableLayout
from taciturn.tables.streams import MOST_UNPACKED, TableStream, machine_memory
from taciturn.tables.words import quoted, refusal

if TYPE_CHECKING:
    from taciturn.tables.sheets import SheetStream

__all__ = [
    "TableFile",
    "check_readable",
    "each_without_cells",
    "larger_than_memory",
    "split_part",
    "table_file",
    "without_cells",
    "wrong_numbers",
]

T = TypeVar("T")

_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".xlsx": "xlsx",
    ".dta": "stata",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}


# Programs and formats that are not read, with what to do about them.
_REMEDIES = {
    ".sav": "save it in SPSS as .csv or as Stata's .dta",
    ".zsav": "save it in SPSS as .csv or as Stata's .dta",
    ".por": "save it in SPSS as .csv or as Stata's .dta",
    ".xls": "save it in the spreadsheet program as .xlsx or .csv",
    ".xlsb": "save it in the spreadsheet program as .xlsx or .csv",
    ".xlsm": "save it in the spreadsheet program as .xlsx or .csv",
    ".ods": "save it in the spreadsheet program as .xlsx or .csv",
    ".numbers": "save it in the spreadsheet program as .xlsx or .csv",
    ".sas7bdat": "write it in SAS with proc export as .csv or .dta",
    ".xpt": "write it in SAS with proc export as .csv or .dta",
    ".rds": "write it in R with write.csv or arrow::write_parquet",
    ".rdata": "write it in R with write.csv or arrow::write_parquet",
    ".json": "write it as .csv or .parquet: pandas.read_json(..).to_parquet(..)",
    ".jsonl": "write it as .csv or .parquet: pandas.read_json(.., lines=True).to_parquet(..)",
    ".xml": "write it as .csv or .parquet",
    ".mdb": "export the table from Access as .csv or .xlsx",
    ".accdb": "export the table from Access as .csv or .xlsx",
    ".txt": "name it .csv, and state its delimiter in [table] of the bounds file",
    ".dat": "name it .csv, and state its delimiter in [table] of the bounds file",
    ".zip": "unpack it first",
    ".bz2": "unpack it first, or pack it with gzip",
    ".xz": "unpack it first, or pack it with gzip",
    ".zst": "unpack it first, or pack it with gzip",
}
_SHEETS = ("xlsx", "sqlite")
"""Formats of files with several tables."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """An existing file, with the format that its name states; ``gzipped``: it is compressed as a whole.

    ``part`` is the table of a file that may hold several, an SQLite table or the sheet of a workbook. ``header``: the
    first line is stated to hold names, whatever they look like.
    """

    path: Path
    format: str
    delimiter: str
    gzipped: bool
    decimal: str = "."
    part: str | None = None
    header: bool = False

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return quoted(self.path.name)

    @property
    def is_text(self) -> bool:
        """Whether cells have no types of their own, and are read by the types that are stated."""
        return self.format == "csv" or self.format in _SHEETS

    @property
    def has_groups(self) -> bool:
        """Whether rows are stored in groups that can be read one by one; Arrow streams have the same name."""
        return self.format in ("parquet", "arrow")

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed as a whole."""
        return self.gzipped or self.format == "xlsx"

    def open(self, *, whole: bool = False) -> TableStream | SheetStream:
        """Open a text table as a stream of decompressed bytes.

        With ``whole``, which is for a table that is held in memory, a file that is larger than memory is refused.
        """
        memory = machine_memory()
        if whole and self.path.stat().st_size > memory:
            raise DataError(larger_than_memory(self.name))
        if self.format in _SHEETS:
            from taciturn.tables import sheets

            most = memory if whole else MOST_UNPACKED
            return sheets.SheetStream(self.path, self.name, self.format, self.part, most=most)
        return TableStream(
            self.path,
            self.name,
            gzipped=self.gzipped,
            delimiter=self.delimiter if self.format == "csv" else None,
            most=memory if whole else MOST_UNPACKED,
        )


def table_file(path: str | os.PathLike[str], layout: TableLayout | None = None) -> TableFile:
    """Return the file and its format; raise if the name states no known format or the file cannot be read.

    ``layout`` states how the file is written. A part of a file may be named in the path: ``study.sqlite#visits``.
    """
    layout = TableLayout() if layout is None else layout
    path, part = split_part(Path(path))
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = "".join((suffixes[:-1] if gzipped else suffixes)[-1:])
    kind = _FORMATS.get(suffix)
    if kind is None or (gzipped and kind not in ("csv", "libsvm")):
        raise refusal(
            "table",
            path.name,
            "a file named .csv, .tsv or .libsvm (each also with .gz), .parquet, .feather, .arrow, .xlsx, .dta or "
            ".sqlite",
            _REMEDIES.get(suffix, "save the table in one of these formats"),
        )
    delimiter = layout.delimiter or ("\t" if suffix == ".tsv" else ",")
    # The rows of a sheet are handed on with commas and points.
    if kind in _SHEETS:
        file = TableFile(path, kind, ",", gzipped, part=part or layout.name, header=layout.header)
    else:
        file = TableFile(path, kind, delimiter, gzipped, layout.decimal, header=layout.header)
    check_readable("table", path)
    return file


def split_part(path: Path) -> tuple[Path, str | None]:
    """A path and the part that is named after a hash; the hash may be part of the name of a file, too."""
    before, hash_sign, part = path.name.rpartition("#")
    if hash_sign and _FORMATS.get(Path(before).suffix.lower()) in _SHEETS:
        return path.with_name(before), part
    return path, None


def larger_than_memory(name: str) -> str:
    """Message about a table that does not fit into memory."""
    return f"{name}: expected a table that fits into memory, got a larger one; leave columns or rows out."


def check_readable(parameter: str, path: Path) -> None:
    """Raise if the path is not a readable, non-empty file."""
    problem = _find_problem(path)
    if problem is not None:
        expected, remedy = problem
        raise ParameterError(parameter, str(path), expected, remedy)


def _find_problem(path: Path) -> tuple[str, str] | None:
    """Expectation and remedy, if the file cannot be read."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            # What a command makes of an empty name is this folder too.
            got = "an empty name or this folder" if path == Path() else "a folder"
            return f"a file, got {got}", "name a file in it"
        if not stat.S_ISREG(found.st_mode):
            # A pipe or a device may be endless, cannot be read twice, and may block when it is opened.
            return "a file on a disk, got a pipe or a device", "write what comes from it to a file first"
        if not os.access(path, os.R_OK):
            return "a file that may be read", "ask for the permission to read it"
        empty = found.st_size == 0
    except FileNotFoundError:
        return "a file that exists", "check the name and the folder"
    except PermissionError:
        return "a file that may be read", "ask for the permission to read it"
    except (OSError, ValueError):
        return "a file that can be read", "check the name and the disk"
    return ("a file with something in it, got one of 0 bytes", "write it again") if empty else None


_NO_NUMBERS = (
    "expected numbers in column {column}, got something else; correct it, or state another type, censored = true for "
    "numbers such as <5, or decimal in [table] for decimal commas"
)


def wrong_numbers(file: TableFile, name: str) -> str:
    """Message about a column of a text table that is stated as one of numbers and holds something else."""
    return f"{file.name}: {_NO_NUMBERS.format(column=quoted(name))}."


# Messages of the readers with a known cause. Any of them may quote a cell.
_CAUSES = (
    (
        r"MemoryError",
        "expected a table that fits into memory, got a larger one; leave columns out",
    ),
    (
        r"PermissionError",
        "expected a file that may be read; ask for the permission to read it",
    ),
    (
        r"^OperationalError: database (?:table |schema )?is locked",
        "expected a database that can be read, got one that another program has locked; wait until that program has "
        "finished writing or end it, then try again",
    ),
    (
        r"conversion error to (?:double|float)",
        _NO_NUMBERS,
    ),
    (
        r"utf-?8|codec",
        "expected text in UTF-8, got another encoding; save the table as UTF-8",
    ),
    (
        r"conversion error",
        "expected values of one type in column {column}, got several; state the classes in the bounds",
    ),
    (
        r"expected \d+ columns",
        "expected as many cells in every row as the header has names, got rows of other lengths; correct them, and put "
        "cells that hold the delimiter in quotes",
    ),
    (
        r"empty csv|cannot infer number of columns",
        "expected a header and rows, got none; write the table again",
    ),
    (
        r"straddl",
        "expected rows of ordinary length, got one of millions of characters; check the quotes and the ends of lines",
    ),
    (
        r"zlib|gzip|crc|compressed|decompress|EOFError",
        "expected a complete gzip file, got a damaged one or another format; write the table again",
    ),
    (
        r"sorted and unique",
        "expected the indices of every line in ascending order, got others; sort them",
    ),
)


def without_cells(file: TableFile, call: Callable[[], T], names: Sequence[str] = ()) -> T:
    """Return ``call()``; replace an error of a reader, which may quote a cell, by one that does not.

    The new error is raised outside the handler, so that logs do not show the original error as its context. ``names``
    are the columns of the file, for errors that give the number of a column.
    """
    try:
        return call()
    except TaciturnError:
        raise
    except Exception as error:
        message = _describe(file, f"{type(error).__name__}: {error}", names)
    raise DataError(message)


def each_without_cells(file: TableFile, items: Callable[[], Iterator[T]], names: Sequence[str] = ()) -> Iterator[T]:
    """Iterate over ``items()``; replace errors as :func:`without_cells` does."""
    iterator = without_cells(file, items, names)
    while (item := without_cells(file, lambda: next(iterator, None), names)) is not None:
        yield item


def _describe(file: TableFile, original: str, names: Sequence[str]) -> str:
    found = re.search(r"In CSV column #(\d+)", original)
    known = found is not None and int(found[1]) < len(names)
    column = quoted(names[int(found[1])]) if found is not None and known else "of that type"
    # Only the part before a quoted cell is searched, so that no cell decides on the message.
    beginning = re.split(r": invalid value|, got \d", original, maxsplit=1)[0]
    for pattern, sentence in _CAUSES:
        if re.search(pattern, beginning, re.IGNORECASE):
            return f"{file.name}: {sentence.format(column=column)}."
    return (
        f"{file.name}: expected a complete {file.format} file, got a damaged one or another format; write the table "
        "again, or name it after its format."
    )
