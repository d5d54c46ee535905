"""Sheets of workbooks and tables of SQLite files, handed on as the text of a CSV file.

Their cells have types of their own, and two cells of one column may differ. As text they are read by the types that the
bounds state, cell by cell, as the cells of a CSV file are.
"""

from __future__ import annotations

import csv
import io
import math
import sqlite3
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from taciturn.core.errors import DataError
from taciturn.tables.problems import closest_name, did_you_mean, listed_names
from taciturn.tables.streams import MOST_UNPACKED, machine_memory

__all__ = ["SheetStream"]

_ROWS = 1000
"""Rows that are written as text at a time."""

_WHAT = {"xlsx": "sheet", "sqlite": "table"}


class SheetStream(io.RawIOBase):
    """One sheet or table as a stream of bytes: the names of its columns, then its rows, with commas between cells.

    Cells to the right of the last name and rows without any cell are left out, as blank lines of a CSV file are.
    Messages call the file ``name``.
    """

    def __init__(self, path: Path, name: str, format: str, part: str | None) -> None:
        self._rows = _without_blanks(_READERS[format](path, name, part))
        self._ahead = b""

    def readable(self) -> bool:
        """True."""
        return True

    def first_line(self, longest: int) -> bytes:
        """Look at the line of names, before anything is read; :meth:`read` returns it again."""
        self._ahead = _as_text(islice(self._rows, 1))[:longest]
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes; no bytes mean the end of the sheet."""
        parts, length = [self._ahead], len(self._ahead)
        while size < 0 or length < size:
            text = _as_text(islice(self._rows, _ROWS))
            if not text:
                break
            parts.append(text)
            length += len(text)
        data = b"".join(parts)
        self._ahead = b"" if size < 0 else data[size:]
        return data if size < 0 else data[:size]

    def close(self) -> None:
        """Close the file."""
        self._rows.close()
        super().close()


def _without_blanks(rows: Iterable[Sequence[Any]]) -> Any:
    """The rows as wide as the first one without empty cells at its end; longer ones stay, to be refused."""
    width = 0
    for row in rows:
        used = next((at for at in range(len(row), 0, -1) if row[at - 1] is not None), 0)
        if used:
            width = width or used
            yield [*row[: max(width, used)], *[None] * (width - len(row))]


def _as_text(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    # Cells with either character of this line end are quoted.
    csv.writer(text, lineterminator="\r\n").writerows([_cell_text(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def _cell_text(cell: Any) -> str:
    """The text of one cell, from which its value can be read again exactly."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return str(cell.date() if cell == datetime.combine(cell.date(), datetime.min.time()) else cell)
    if isinstance(cell, date):
        return cell.isoformat()
    return cell.hex() if isinstance(cell, bytes) else repr(cell) if isinstance(cell, float) else str(cell)


def _choose(file: str, format: str, part: str | None, present: Sequence[str]) -> str:
    """The named part, or the only one."""
    if part is None and len(present) == 1:
        return present[0]
    if part is not None and part in present:
        return part
    what = _WHAT[format]
    if not present:
        raise DataError(f"{file}: expected a {what} in it, got none; write the table again.")
    proposed = "" if part is None else did_you_mean(closest_name(part, present))
    raise DataError(
        f"{file}: expected the name of one of its {what}s, {listed_names(list(present))}; {proposed}state it as name "
        "in [table] of the bounds file, or behind the name of the file and a #."
    )


def _workbook_rows(path: Path, name: str, part: str | None) -> Iterator[Sequence[Any]]:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: expected openpyxl for a file named .xlsx; run pip install 'taciturn[excel]'."
        ) from None
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(each.file_size for each in packed.infolist())
    if unpacked > min(MOST_UNPACKED, machine_memory()):
        raise DataError(f"{name}: expected a workbook that fits into memory, got a larger one; write it as .csv.")
    with warnings.catch_warnings():
        # Of parts of a workbook that hold no cells.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        with closing(book):
            sheet = book[_choose(name, "xlsx", part, book.sheetnames)]
            yield from sheet.iter_rows(values_only=True)


def _database_rows(path: Path, name: str, part: str | None) -> Iterator[Sequence[Any]]:
    # Arrow may read from another thread than the one that opened the file.
    with closing(
        sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, check_same_thread=False)
    ) as database:
        # The message about text in another encoding would quote it.
        database.text_factory = bytes.decode
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        present = [table for (table,) in tables if not table.startswith("sqlite_")]
        chosen = _choose(name, "sqlite", part, present).replace('"', '""')
        rows = database.execute(f'SELECT * FROM "{chosen}"')
        yield [column[0] for column in rows.description]
        yield from rows


_READERS: Mapping[str, Callable[[Path, str, str | None], Iterator[Sequence[Any]]]] = {
    "xlsx": _workbook_rows,
    "sqlite": _database_rows,
}
