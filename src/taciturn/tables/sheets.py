"""Sheets of workbooks and tables of SQLite files, handed on as the text of a CSV file.

Their cells have types of their own, and two cells of one column may differ. As text they are read by the types that the
bounds state, cell by cell, as the cells of a CSV file are.
"""

from __future__ import annotations

import csv
import io
import math
import sqlite3
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from taciturn.core.errors import DataError
from taciturn.tables.problems import closest_name, did_you_mean, listed_names
from taciturn.tables.streams import MOST_UNPACKED, StoppableStream, machine_memory

__all__ = ["SheetStream"]

_ROWS, _TEXT = 1000, 1 << 20
"""Rows that are written as text at a time, and about the most bytes of them."""

_WHAT = {"xlsx": "sheet", "sqlite": "table"}

_LAST_ROW = 1 << 20
"""The last row of a sheet, as spreadsheet programs number them."""

_MOST_SHEETS = 1 << 32
"""Largest size in bytes of a workbook as it is unpacked: forty for each cell of a sheet of a hundred full columns."""

_MOST_HELD = 1 << 28
"""Largest size in bytes of a part that is no sheet: such parts, as the list of distinct texts, are held in memory."""

_MOST_RATIO, _SMALL = 200, 1 << 24
"""How many times its packed size a part of a workbook may have, if it is not small in bytes. Sheets have about ten."""

_LONGEST_CELL = 1 << 20
"""Largest size of a cell of an SQLite table in bytes; a longer line of text would be refused, too."""

_STEPS = 100_000
"""Instructions of SQLite between two looks at a request to stop: milliseconds."""


class SheetStream(StoppableStream):
    """One sheet or table as a stream of bytes: the names of its columns, then its rows, with commas between cells.

    Cells to the right of the last name and rows without any cell are left out, as blank lines of a CSV file are. More
    than ``most`` bytes are refused. Messages call the file ``name``.
    """

    def __init__(self, path: Path, name: str, format: str, part: str | None, *, most: int = MOST_UNPACKED) -> None:
        super().__init__()
        self._rows = _without_blanks(_READERS[format](path, name, part, self), self)
        self._name, self._most, self._count = name, min(most, MOST_UNPACKED), 0
        self._ahead = b""
        # Arrow may still read ahead when the stream is closed.
        self._reading = threading.Lock()

    def first_line(self, longest: int) -> bytes:
        """Look at the line of names, before anything is read; :meth:`read` returns it again."""
        with self._reading:
            self._ahead = self._next_text(1)[:longest]
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes; no bytes mean the end of the sheet."""
        try:
            return self._read(size)
        except (InterruptedError, sqlite3.OperationalError):
            # SQLite has an error of its own for a query that is stopped.
            if not self.stopped:
                raise
            return b""

    def _read(self, size: int) -> bytes:
        with self._reading:
            parts, length = [self._ahead], len(self._ahead)
            while size < 0 or length < size:
                text = self._next_text(_ROWS)
                if not text:
                    break
                parts.append(text)
                length += len(text)
            data = b"".join(parts)
            self._ahead = b"" if size < 0 else data[size:]
        return data if size < 0 else data[:size]

    def _next_text(self, n_rows: int) -> bytes:
        """The text of the next rows, as far as they are not too many."""
        self.check_stop()
        text = _as_text(islice(self._rows, n_rows))
        self._count += len(text)
        if self._count > self._most:
            raise DataError(
                f"{self._name}: expected a table of at most {self._most:,} bytes as text, got a larger one, or a view "
                "without an end; leave rows or columns out, or write it as Parquet."
            )
        return text

    def close(self) -> None:
        """Close the file, once whoever reads it has stopped."""
        self.stop()
        with self._reading:
            self._rows.close()
        super().close()


def _without_blanks(rows: Iterable[Sequence[Any]], stream: StoppableStream) -> Any:
    """The rows as wide as the first one without empty cells at its end; longer ones stay, to be refused."""
    width = 0
    for row in rows:
        stream.check_stop()
        used = next((at for at in range(len(row), 0, -1) if row[at - 1] is not None), 0)
        if used:
            width = width or used
            yield [*row[: max(width, used)], *[None] * (width - len(row))]


def _as_text(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    # Cells with either character of this line end are quoted.
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow([_cell_text(cell) for cell in row])
        if text.tell() > _TEXT:
            break
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


class _WatchedFile(io.FileIO):
    """A file whose reads raise once a stream is stopped: between two of them little of a workbook is unpacked."""

    def __init__(self, path: Path, stream: StoppableStream) -> None:
        super().__init__(path)
        self._stream = stream

    def read(self, size: int | None = -1) -> bytes:
        """Read the next bytes."""
        self._stream.check_stop()
        return super().read(-1 if size is None else size)


def _check_unpacked(packed: zipfile.ZipFile, name: str) -> None:
    """Raise if a workbook unpacks to more than its limits, before anything is parsed.

    What the file states of its parts is checked first, and then each part is unpacked piece by piece: zipfile refuses a
    part that has another size than it states.
    """
    parts = packed.infolist()
    most = min(_MOST_SHEETS, machine_memory())
    if sum(part.file_size for part in parts) > most:
        raise DataError(
            f"{name}: expected a workbook that unpacks to at most {most:,} bytes, got a larger one; write the table as "
            ".csv."
        )
    if any(part.file_size > max(_SMALL, _MOST_RATIO * part.compress_size) for part in parts):
        raise DataError(
            f"{name}: expected a workbook whose parts unpack to at most {_MOST_RATIO} times their size, got a larger "
            "one; write the table as .csv."
        )
    for part in parts:
        with packed.open(part) as opened:
            while opened.read(_TEXT):
                pass
    large = [part.filename for part in parts if part.file_size > _MOST_HELD]
    if large and not _sheet_parts(packed).issuperset(large):
        raise DataError(
            f"{name}: expected at most {_MOST_HELD:,} bytes of distinct texts in a workbook, got more; write the table "
            "as .csv."
        )


def _sheet_parts(packed: zipfile.ZipFile) -> set[str]:
    """Names of the parts that are sheets and nothing else, by the list of types in the file."""
    sheets, others = set[str](), set[str]()
    for entry in ElementTree.fromstring(packed.read("[Content_Types].xml")):
        is_sheet = entry.get("ContentType", "").endswith(".worksheet+xml")
        (sheets if is_sheet else others).add(entry.get("PartName", "").lstrip("/"))
    return sheets - others


def _workbook_rows(path: Path, name: str, part: str | None, stream: StoppableStream) -> Iterator[Sequence[Any]]:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: expected openpyxl for a file named .xlsx; run pip install 'taciturn[excel]'."
        ) from None
    with _WatchedFile(path, stream) as file, warnings.catch_warnings():
        # Of parts of a workbook that hold no cells.
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(file) as packed:
            _check_unpacked(packed, name)
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            sheet = book[_choose(name, "xlsx", part, book.sheetnames)]
            # One stray cell would make every row as wide as the sheet, with empty cells.
            sheet.reset_dimensions()
            for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                if number > _LAST_ROW:
                    raise DataError(
                        f"{name}: expected at most {_LAST_ROW:,} rows, the last of a sheet, got a row behind them; "
                        "write the table as .csv."
                    )
                yield row


def _database_rows(path: Path, name: str, part: str | None, stream: StoppableStream) -> Iterator[Sequence[Any]]:
    # Arrow may read from another thread than the one that opened the file.
    with closing(
        sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, check_same_thread=False)
    ) as database:
        # The message about text in another encoding would quote it.
        database.text_factory = bytes.decode
        # A view may compute for ever before it has a row, and rows that are larger than memory.
        database.set_progress_handler(lambda: stream.stopped, _STEPS)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        present = [table for (table,) in tables if not table.startswith("sqlite_")]
        chosen = _choose(name, "sqlite", part, present).replace('"', '""')
        try:
            rows = database.execute(f'SELECT * FROM "{chosen}"')
            yield [column[0] for column in rows.description]
            yield from rows
            return
        except sqlite3.DataError:
            pass
    raise DataError(
        f"{name}: expected cells of at most {_LONGEST_CELL:,} bytes, got a larger one; leave its column out of the "
        "table, or make a view without it."
    )


_READERS: Mapping[str, Callable[[Path, str, str | None, StoppableStream], Iterator[Sequence[Any]]]] = {
    "xlsx": _workbook_rows,
    "sqlite": _database_rows,
}
