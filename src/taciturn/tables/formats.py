"""File formats: Arrow, CSV, Parquet, workbooks, SQLite, Stata and libsvm, read in bounded memory."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import os
import re
import sqlite3
import stat
import threading
import warnings
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.validation import FloatArray, IntArray
from taciturn.data.design import to_unit_range
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.cells import Labels, bounded_target, feature_bounds, missing_value, not_boolean
from taciturn.tables.columns import (
    DELIMITERS,
    LABEL,
    MOST_COLUMNS,
    Notation,
    TableLayout,
    TableSchema,
    Target,
    closest_name,
    did_you_mean,
    find_value,
    is_index,
    kind_of,
    listed_names,
    parse_number,
    quoted,
    refusal,
)
from taciturn.tables.terms import PLACE

if TYPE_CHECKING:
    import pyarrow as pa


# ---- The bytes of text tables: read once, from first to last, within stated limits, and checked as they go by.

T = TypeVar("T")

MOST_UNPACKED = 1 << 34
"""Largest size in bytes of a table that is unpacked or computed as it is read: a small file can unpack to a thousand
times its size, and a view of a database may have no last row."""

_RECODED = 1 << 18
"""Bytes of a text table that are recoded at a time."""

_WAIT = 0.5
"""Seconds between two looks at pending signals; on Windows they do not end a wait."""


def machine_memory() -> int:
    """Memory of the machine in bytes; larger tables are refused before the system ends the process."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 1 << 62


def changed_file(name: str) -> str:
    """Message about a file that is written while a table is read from it."""
    return (
        f"{name}: expected a file that does not change while it is read, got one that did; wait until it is written, "
        "or copy it."
    )


class StoppableStream(io.RawIOBase):
    """A stream of bytes that is read in one thread and may be stopped from another.

    A stopped stream is at its end, since an error would leave Arrow with reads under way; nobody uses what was read.
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def readable(self) -> bool:
        """True."""
        return True

    def stop(self) -> None:
        """End the stream for every read from now on, one that has begun included."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether the stream was stopped."""
        return self._stopped.is_set()

    def check_stop(self) -> None:
        """Raise in the middle of a read if the stream was stopped."""
        if self.stopped:
            raise InterruptedError("the stream was stopped")

    def close(self) -> None:
        """Stop whoever reads, and close the stream."""
        self.stop()
        super().close()


def interruptible(stream: StoppableStream, call: Callable[[], T]) -> T:
    """Return ``call()``, which reads a stream and may take long, in a way that an interrupt can end.

    Python runs the handlers of signals in the main thread, between two instructions. Arrow waits there without one, and
    reads the stream in another thread. So the call is made in a thread of its own, while the main thread waits where a
    handler can run. If the handler raises, the stream is stopped, and the error goes on once the call has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: Future[T] = Future()
    ended = threading.Event()

    def run() -> None:
        try:
            stream.check_stop()
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)
        ended.set()

    # The place inside or outside of a guard goes along.
    worker = threading.Thread(target=copy_context().run, args=(run,), name="taciturn reader", daemon=True)
    try:
        worker.start()
        # Not by join, which takes a thread for ended once an interrupt has come (Python 3.11).
        while not ended.wait(_WAIT):
            pass
    except BaseException:
        stream.stop()
        # A thread that has not begun makes no call any more, and may never begin.
        ended.wait(_WAIT if worker.ident is None else None)
        # Nobody uses what was read, and the traceback does not hold it.
        outcome = Future()
        raise
    finally:
        if worker.ident is not None:
            worker.join()
    return outcome.result()


class TableStream(StoppableStream):
    """A text table as a stream of bytes, decompressed if it is gzipped as a whole.

    Three kinds of files are refused, because they would give other rows than the table has: a file that grows or
    shrinks while it is read, a gzip file that unpacks to more than ``most`` bytes, and a file with unclosed quotes,
    which have no meaning where there is no delimiter. Messages call the file ``name``. Text in another ``encoding`` is
    handed on as UTF-8.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        *,
        gzipped: bool,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        most: int = MOST_UNPACKED,
    ) -> None:
        super().__init__()
        self._stored = io.BufferedReader(io.FileIO(os.fspath(path)))
        self._stored_size = os.fstat(self._stored.fileno()).st_size
        self._file: Any = gzip.GzipFile(fileobj=self._stored) if gzipped else self._stored
        self._recoded = None if encoding == "utf-8" else _Recoded(self._file, encoding)
        self._file = self._recoded or self._file
        self._name = name
        self._ahead = b""
        self._most = min(most, MOST_UNPACKED) if gzipped else None
        self._size = None if gzipped else self._stored_size
        self._count = 0
        self._quotes = None if delimiter is None else _Quotes(delimiter)

    def first_line(self, longest: int) -> bytes:
        """Look at the first line, before anything is read; :meth:`read` returns it again."""
        self._ahead = self._file.readline(longest)
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes; no bytes mean the end of a complete table."""
        if self.stopped:
            return b""
        data, self._ahead = self._ahead, b""
        if size < 0 or len(data) < size:
            # In full blocks: types of columns are inferred from the first one.
            data += self._file.read(size - len(data) if size >= 0 else -1)
        else:
            data, self._ahead = data[:size], data[size:]
        self._count = self._count + len(data) if self._recoded is None else self._recoded.count
        if self._most is not None and self._count > self._most:
            raise DataError(
                f"{self._name}: expected a gzip file that unpacks to at most {self._most:,} bytes, got a larger one; "
                "unpack it, or write it as Parquet."
            )
        if self._size is not None and (self._count > self._size or (not data and size and self._count < self._size)):
            raise DataError(changed_file(self._name))
        if self._quotes is not None:
            self._quotes.check(data)
            if self._quotes.broken or (not data and size and self._quotes.opened):
                raise DataError(
                    f"{self._name}: expected quotes around whole cells, each closed before the next delimiter, got "
                    "others; close them, and double a quote that stands inside a cell."
                )
        return data

    @property
    def fraction(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return 1.0 if self._stored.closed else min(1.0, self._stored.tell() / max(1, self._stored_size))

    def close(self) -> None:
        """Close the file."""
        self.stop()
        self._file.close()
        self._stored.close()
        super().close()


class _Recoded:
    """The text of a file in some encoding, as bytes in UTF-8; bytes without a meaning in it raise an error."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)("strict")
        self._ahead, self._ended = b"", False
        self.count = 0
        """Bytes that were read of the file."""

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or fewer at the end; all of them for a negative size."""
        parts, length = [self._ahead], len(self._ahead)
        while not self._ended and (size < 0 or length < size):
            parts.append(self._next())
            length += len(parts[-1])
        data = b"".join(parts)
        cut = len(data) if size < 0 else size
        self._ahead = data[cut:]
        return data[:cut]

    def readline(self, longest: int) -> bytes:
        """Read to the end of the line, but no more than so many bytes."""
        while not self._ended and b"\n" not in self._ahead and len(self._ahead) < longest:
            self._ahead += self._next()
        return self.read(min(self._ahead.find(b"\n") + 1 or len(self._ahead), longest))

    def _next(self) -> bytes:
        data = self._file.read(_RECODED)
        self.count += len(data)
        self._ended = not data
        return self._decoder.decode(data, final=self._ended).encode()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Quotes:
    """Check of quoted cells, block of bytes by block.

    A quote opens a quoted cell only at the beginning of the cell; elsewhere outside quotes it is an ordinary character.
    Inside quotes, two quotes stand for one. A delimiter or the end of the line follows the closing quote.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = delimiter.encode() + b"\r\n"
        ends = b"[" + re.escape(delimiter.encode()) + b"\r\n]"
        inside = rb'[^"]*+(?:""[^"]*+)*+"'
        self._inside = re.compile(inside)
        # Matches as many cells as possible, and stops before a quote that opens an incomplete cell.
        self._outside = re.compile(
            rb'[^"]*+(?:(?:(?<=' + ends + rb')"' + inside + rb"(?=" + ends + rb")|(?<!" + ends + rb')")[^"]*+)*+'
        )
        # The first cell begins as if a line had ended before it.
        self._last = b"\n"
        self._first = True
        self.opened = self._just_closed = self.broken = False

    def check(self, data: bytes) -> None:
        """Check the next block."""
        if self._first and data:
            self._first = False
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data:
            return
        if not (self.opened or self._just_closed) and b'"' not in data:
            self._last = data[-1:]
            return
        text, at = self._last + data, 1
        self._last = data[-1:]
        while at < len(text):
            if self._just_closed:
                self._just_closed = False
                if text[at] in b'"':
                    # The second of two quotes is the first byte of the next block.
                    self.opened = True
                    at += 1
                elif text[at] not in self._ends:
                    self.broken = True
                    return
            elif self.opened:
                whole = self._inside.match(text, at)
                if whole is None:
                    return
                at = whole.end()
                self.opened, self._just_closed = False, True
            else:
                rest = self._outside.match(text, at)
                at = len(text) if rest is None else rest.end()
                if at < len(text):
                    self.opened = True
                    at += 1


# ---- Sheets of workbooks and tables of SQLite files, handed on as the text of a CSV file.
# Their cells have types of their own, and two cells of one column may differ. As text they are read by the types that
# the bounds state, cell by cell, as the cells of a CSV file are.

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

    ``rows`` are the names and the rows, as long as the stream is not stopped. Cells to the right of the last name and
    rows without any cell are left out, as blank lines of a CSV file are. More than ``most`` bytes are refused. Messages
    call the file ``name``.
    """

    def __init__(
        self, name: str, rows: Callable[[StoppableStream], Iterator[Sequence[Any]]], *, most: int = MOST_UNPACKED
    ) -> None:
        super().__init__()
        self._rows = _without_blanks(rows(self), self)
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

    First by the sizes that the file states; then each part is unpacked, because zipfile refuses one of another size.
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
    with closing(open_sqlite(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        present = [table for (table,) in tables if not table.startswith("sqlite_")]
        chosen = _choose(name, "sqlite", part, present).replace('"', '""')
        yield from query_rows(database, f'SELECT * FROM "{chosen}"', (), name, stream)


def open_sqlite(path: Path) -> sqlite3.Connection:
    """A connection that reads an SQLite file and cannot write to it."""
    # Arrow may read from another thread than the one that opened the file.
    database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, check_same_thread=False)
    # The message about text in another encoding would quote it.
    database.text_factory = bytes.decode
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
    return database


def query_rows(
    database: sqlite3.Connection, query: str, values: Sequence[Any], name: str, stream: StoppableStream
) -> Iterator[Sequence[Any]]:
    """The names of the columns of a query, then its rows; ``name`` is that of the file in messages."""
    # A view may compute for ever before it has a row, and rows that are larger than memory.
    database.set_progress_handler(lambda: stream.stopped, _STEPS)
    try:
        rows = database.execute(query, tuple(values))
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


# ---- Table files and their formats, and error messages about them that quote no cell.

_FORMATS = {
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow"),
    **dict.fromkeys((".libsvm", ".svm"), "libsvm"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite"),
    ".xlsx": "xlsx",
    ".dta": "stata",
}

# Programs and formats that are not read, with what to do about them.
_REMEDIES = {
    **dict.fromkeys((".sav", ".zsav", ".por"), "save it in SPSS as .csv or as Stata's .dta"),
    **dict.fromkeys(
        (".xls", ".xlsb", ".xlsm", ".ods", ".numbers"), "save it in the spreadsheet program as .xlsx or .csv"
    ),
    **dict.fromkeys((".sas7bdat", ".xpt"), "write it in SAS with proc export as .csv or .dta"),
    **dict.fromkeys((".rds", ".rdata"), "write it in R with write.csv or arrow::write_parquet"),
    ".json": "write it as .csv or .parquet: pandas.read_json(..).to_parquet(..)",
    ".jsonl": "write it as .csv or .parquet: pandas.read_json(.., lines=True).to_parquet(..)",
    ".xml": "write it as .csv or .parquet",
    **dict.fromkeys((".mdb", ".accdb"), "export the table from Access as .csv or .xlsx"),
    **dict.fromkeys((".txt", ".dat"), "name it .csv, and state its delimiter in [table] of the bounds file"),
    ".zip": "unpack it first",
    **dict.fromkeys((".bz2", ".xz", ".zst"), "unpack it first, or pack it with gzip"),
}
_SHEETS = ("xlsx", "sqlite")
"""Formats of files with several tables."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """An existing file, with the format that its name states; ``gzipped``: it is compressed as a whole.

    ``part`` is the table of a file that may hold several, an SQLite table or the sheet of a workbook. ``header``: the
    first line is stated to hold names, whatever they look like. ``encoding``: that of a text table. ``missing_values``
    are further texts that stand for a missing number.
    """

    path: Path
    format: str
    delimiter: str
    gzipped: bool
    decimal: str = "."
    part: str | None = None
    header: bool = False
    encoding: str = "utf-8"
    missing_values: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return quoted(self.path.name)

    @property
    def is_text(self) -> bool:
        """Whether cells have no types of their own, and are read by the types that are stated."""
        return self.format == "csv" or self.format in _SHEETS

    @property
    def is_stream(self) -> bool:
        """Whether the file is read as a stream of bytes, from the first to the last."""
        return self.is_text or self.format == "libsvm"

    @property
    def has_groups(self) -> bool:
        """Whether rows are stored in groups that can be read one by one; Arrow streams have the same name."""
        return self.format in ("parquet", "arrow")

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed as a whole."""
        return self.gzipped or self.format == "xlsx"

    def open(self, *, whole: bool = False) -> TableStream | SheetStream:
        """Open a text table as a stream of decompressed bytes; ``whole`` refuses a file that is larger than memory."""
        memory = machine_memory()
        if whole and self.path.stat().st_size > memory:
            raise DataError(larger_than_memory(self.name))
        if self.format in _SHEETS:
            most = memory if whole else MOST_UNPACKED
            return SheetStream(self.name, partial(_READERS[self.format], self.path, self.name, self.part), most=most)
        return TableStream(
            self.path,
            self.name,
            gzipped=self.gzipped,
            delimiter=self.delimiter if self.format == "csv" else None,
            encoding=self.encoding,
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
    stated: dict[str, Any] = {"header": layout.header, "missing_values": layout.missing_values}
    if kind in _SHEETS:
        file = TableFile(path, kind, ",", gzipped, part=part or layout.name, **stated)
    else:
        encoding = "utf-8" if layout.encoding is None or kind != "csv" else layout.encoding
        file = TableFile(path, kind, delimiter, gzipped, layout.decimal, encoding=encoding, **stated)
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
    "numbers such as <5, decimal or thousands in [table], or missing_values for marks of missing cells"
)


def wrong_numbers(file: TableFile, name: str) -> str:
    """Message about a column of a text table that is stated as one of numbers and holds something else."""
    return f"{file.name}: {_NO_NUMBERS.format(column=quoted(name))}."


# Messages of the readers with a known cause. Any of them may quote a cell.
_CAUSES = (
    (r"MemoryError", "expected a table that fits into memory, got a larger one; leave columns out"),
    (r"PermissionError", "expected a file that may be read; ask for the permission to read it"),
    (
        r"^OperationalError: database (?:table |schema )?is locked",
        "expected a database that can be read, got one that another program has locked; wait until that program has "
        "finished writing or end it, then try again",
    ),
    (r"conversion error to (?:double|float)", _NO_NUMBERS),
    (
        r"utf-?8|utf-?16|codec",
        "expected text in {encoding}, got another encoding; state it as encoding in [table] of the bounds file, or "
        "save the table as UTF-8",
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
    (r"empty csv|cannot infer number of columns", "expected a header and rows, got none; write the table again"),
    (
        r"straddl",
        "expected rows of ordinary length, got one of millions of characters; check the quotes and the ends of lines",
    ),
    (
        r"zlib|gzip|crc|compressed|decompress|EOFError",
        "expected a complete gzip file, got a damaged one or another format; write the table again",
    ),
    (r"sorted and unique", "expected the indices of every line in ascending order, got others; sort them"),
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
            encoding = file.encoding.replace("utf", "UTF")
            return f"{file.name}: {sentence.format(column=column, encoding=encoding)}."
    return (
        f"{file.name}: expected a complete {file.format} file, got a damaged one or another format; write the table "
        "again, or name it after its format."
    )


# ---- Stata files (.dta) as record batches, read by pandas.

_DATES = ("%tc", "%td", "%d", "%tw", "%tm", "%tq", "%th", "%ty")
"""Formats of dates. Moments with leap seconds, %tC, stay numbers."""


@dataclass(frozen=True, slots=True)
class _StataColumn:
    """The type of a column, from the head of the file, and the labels of its values."""

    type: Any
    labels: Mapping[int, str] | None

    def cells(self, values: Any) -> Any:
        """An Arrow array of the stated type; every cell is converted by itself."""
        import pyarrow as pa

        if self.labels is not None:
            return pa.array([self._label(value) for value in values.tolist()], pa.string()).dictionary_encode()
        if pa.types.is_string(self.type):
            # Stata has no missing text but the empty one, so that it counts as missing.
            return pa.array([value or None for value in values.tolist()], self.type)
        return pa.array(values, self.type, from_pandas=True, safe=not pa.types.is_timestamp(self.type))

    def _label(self, value: float) -> str | None:
        """The label of a value; one without a label is the text of its number."""
        if value != value:
            return None
        # Whole numbers arrive as doubles where a cell beside them is missing.
        whole = int(value) if value == int(value) else None
        if whole is None or self.labels is None:
            return repr(float(value))
        return self.labels.get(whole, str(whole))


def stata_schema(file: TableFile) -> Any:
    """The Arrow schema, which the head of the file states; no row is read. Columns with labelled values are text."""
    import pyarrow as pa

    return pa.schema([(name, column.type) for name, column in _columns(file).items()])


def _stata_rows(
    file: TableFile, schema: TableSchema, selection: ColumnSelection, n_rows: int
) -> Iterator[pa.RecordBatch]:
    """Blocks of rows of a Stata file, all of the same types."""
    import pyarrow as pa

    columns, names = _columns(file), selection.names
    types = pa.schema([(name, columns[name].type) for name in names])
    with _open(file, chunksize=n_rows, columns=names) as reader:
        while True:
            # What pandas warns of may tell of a cell.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = next(reader, None)
            if frame is None:
                return
            arrays = [columns[name].cells(frame[name].to_numpy()) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, schema=types)


def _open(file: TableFile, **options: Any) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise DataError(
            f"{file.name}: expected pandas for a file named .dta; run pip install 'taciturn[stata]'."
        ) from None
    # pandas would make categories of all values of a block together, and refuse labels that two values share.
    return pd.read_stata(file.path, convert_categoricals=False, **options)


def _columns(file: TableFile) -> dict[str, _StataColumn]:
    """The columns by name, from the head of the file and the labels at its end."""
    # A reader that has read labels does not find long texts any more, so that rows are read by another one.
    with _open(file, iterator=True) as reader:
        labels = reader.value_labels()
        # pandas has no public way to tell types and which labels belong to which column.
        facts = zip(reader._varlist, reader._dtyplist, reader._fmtlist, reader._lbllist, strict=True)
        return {name: _column(dtype, form, labels.get(label)) for name, dtype, form, label in facts}


def _column(dtype: Any, form: str, labels: Mapping[Any, str] | None) -> _StataColumn:
    import pyarrow as pa

    if form.startswith(_DATES):
        return _StataColumn(pa.timestamp("ms"), None)
    # Long texts, strL, have no type of their own.
    if dtype is None or np.dtype(dtype).kind not in "if":
        return _StataColumn(pa.string(), None)
    if labels:
        known = {int(value): text for value, text in labels.items()}
        return _StataColumn(pa.dictionary(pa.int32(), pa.string()), known)
    return _StataColumn(pa.from_numpy_dtype(dtype), None)


# ---- Files of all formats as record batches of selected columns, in the types that the bounds state.

_CELLS = 1 << 22
"""Approximate number of cells in one batch."""

# Larger blocks are slower, because they do not fit into the processor's cache.
_LEAST_BLOCK, _MOST_BLOCK = 1 << 20, 1 << 30
# More than the batches that Arrow reads ahead, and the longest wait for the end of its threads in seconds.
_MOST_AHEAD, _ARROW_TABLES_WAIT = 256, 1.0
_LONGEST_HEADER = 1 << 24


@dataclass(frozen=True)
class ColumnSelection:
    """The columns to read, in order, each with its type: "number", "text", or "as it is".

    Texts that are ``listed`` are values of a column even where they look like a missing one, such as the category "NA".
    A cell of a text table that is not of the stated type refuses the table, or is missing with ``invalid="null"``.
    ``inferred`` are Arrow types of columns that are read as they are; without one, a text table that is streamed has
    the type of its first rows.
    """

    types: Mapping[str, str]
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    invalid: str = "raise"
    inferred: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return list(self.types)


def arrow_schema(file: TableFile) -> TableSchema:
    """Read names and kinds of the columns; the kinds of a text table are inferred from its first rows."""
    schema = without_cells(file, lambda: _SCHEMAS[file.format](file))
    names = tuple(without_cells(file, lambda: schema.names))
    if file.is_text:
        _check_delimiter(file, names)
    if file.format in ("csv", "xlsx") and not file.header:
        _check_names(file, names)
    return TableSchema(names, tuple(map(kind_of, schema.types)))


def infer_types(file: TableFile, schema: TableSchema, selection: ColumnSelection) -> ColumnSelection:
    """The selection with the types that columns of a text table have, read as they are; takes a pass over the file."""
    names = [name for name, kind in selection.types.items() if kind == "as it is"]
    if not file.is_text or not names:
        return selection
    import pyarrow as pa
    from pyarrow import csv

    options = _csv_options(file, schema, ColumnSelection(dict.fromkeys(names, "as it is")))

    def read() -> Any:
        with closing(file.open()) as stream:
            return interruptible(stream, lambda: csv.read_csv(pa.PythonFile(stream, "r"), **options)).schema

    found = without_cells(file, read, schema.names)
    return replace(selection, inferred=dict(zip(found.names, found.types, strict=True)))


def stream_batches(
    file: TableFile, schema: TableSchema, selection: ColumnSelection, stream: TableStream | SheetStream | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows in batches, one in memory at a time; ``stream`` is an opened text table that the caller watches."""
    if not file.is_text:
        n_rows = max(1, _CELLS // max(1, len(selection.types)))
        yield from each_without_cells(file, lambda: _TYPED[file.format](file, schema, selection, n_rows))
        return
    options = _csv_options(file, schema, selection)
    with (
        closing(stream or without_cells(file, file.open)) as opened,
        closing(without_cells(file, lambda: _CsvReader(opened, options), schema.names)) as reader,
    ):
        for batch in each_without_cells(file, lambda: reader, schema.names):
            yield _with_gaps(batch, selection, file)


def read_first_texts(file: TableFile, schema: TableSchema) -> dict[str, list[str]]:
    """The cells of the first block of a text table, by column and as text, without those that are missing."""
    from pyarrow import csv

    options = _csv_options(file, schema, ColumnSelection(dict.fromkeys(schema.names, "text")))
    with (
        closing(without_cells(file, file.open)) as stream,
        closing(without_cells(file, lambda: _CsvReader(stream, options), schema.names)) as reader,
    ):
        batch = without_cells(file, lambda: next(reader, None), schema.names)
    if batch is None:
        return {}
    gaps = set(csv.ConvertOptions().null_values)
    return {
        name: [cell.strip() for cell in column.to_pylist() if cell is not None and cell not in gaps and cell.strip()]
        for name, column in zip(schema.names, batch.columns, strict=True)
    }


# ---- CSV files.


def _csv_schema(file: TableFile) -> Any:
    """Infer the Arrow schema of a text table from its first block."""
    from pyarrow import csv

    with closing(file.open()) as stream:
        header = interruptible(stream, lambda: stream.first_line(_LONGEST_HEADER))
        _check_header(file, header)
        width = header.count(file.delimiter.encode()) + 1
        if width > MOST_COLUMNS:
            raise DataError(
                f"{file.name}: expected at most {MOST_COLUMNS:,} columns, got {width:,}; write so wide a table as a "
                "libsvm file, or leave columns out."
            )
        options = {
            "read_options": csv.ReadOptions(block_size=_block_size(width, len(header))),
            "parse_options": csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(decimal_point=file.decimal, null_values=_null_values(file)),
        }
        with closing(_CsvReader(stream, options)) as reader:
            return reader.schema


def _csv_options(file: TableFile, schema: TableSchema, selection: ColumnSelection) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    text = pa.dictionary(pa.int32(), pa.string())
    # Arrow refuses a column with a cell that it cannot convert, so that numbers are read as text where one may be.
    types = {"number": pa.string() if selection.invalid == "null" else pa.float64(), "text": text}
    # A header of quoted names is at most twice as long as the names.
    header_size = sum(len(name.encode()) + 1 for name in schema.names)
    # Only text has line breaks in cells, and the search for them takes time.
    has_text = not set(schema.kinds) <= {"number", "boolean", "date"}
    return {
        "read_options": csv.ReadOptions(block_size=_block_size(len(schema.names), header_size)),
        "parse_options": csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=has_text),
        "convert_options": csv.ConvertOptions(
            include_columns=selection.names,
            column_types={name: types[kind] for name, kind in selection.types.items() if kind in types}
            | dict(selection.inferred),
            decimal_point=file.decimal,
            null_values=_null_values(file),
        ),
    }


def _null_values(file: TableFile) -> list[str]:
    """Texts that stand for a missing number in every column."""
    from pyarrow import csv

    return [*csv.ConvertOptions().null_values, *file.missing_values]


def _block_size(width: int, header_size: int) -> int:
    """Bytes that Arrow parses at a time: a row has to fit into one block."""
    return min(max(_LEAST_BLOCK, 64 * width, 4 * header_size), _MOST_BLOCK)


def _check_header(file: TableFile, line: bytes) -> None:
    """Raise if the first line is not a line of UTF-8 text."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(
            f"{file.name}: expected text in UTF-8, got UTF-16; state it as encoding in [table] of the bounds file, or "
            "save the table as UTF-8."
        )
    if b"\x00" in line or len(line) == _LONGEST_HEADER:
        raise DataError(
            f"{file.name}: expected a line of text with the names of the columns, got a binary file; write the table "
            "again, or name it after its format."
        )


def _check_delimiter(file: TableFile, names: tuple[str, ...]) -> None:
    if file.format == "csv" and len(names) == 1 and any(other in names[0] for other in DELIMITERS):
        raise DataError(
            f"{file.name}: expected columns separated by {DELIMITERS[file.delimiter]}, got one column whose name holds "
            "another delimiter; state it as delimiter in [table] of the bounds file, which taciturn init does."
        )


def _check_names(file: TableFile, names: tuple[str, ...]) -> None:
    """Raise if the first line looks like a record, whose cells would be published as names. No name is quoted."""
    place = find_value(names)
    if place is not None:
        raise DataError(
            f"{file.name}: expected names of columns, got one for column {place} that looks like a value, as in a "
            "table without a header; add a line of names, or, if they are names, state header = true in [table] of "
            "the bounds file, which taciturn init --header does."
        )


class _CsvReader:
    """The batches of a stream that is read while they are asked for; a pending interrupt ends a read."""

    def __init__(self, stream: TableStream | SheetStream, options: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self._stream = stream
        handle = _Handle(stream)
        # Called without an instruction of Python, after which another thread could run.
        self._released: SimpleQueue[Any] = SimpleQueue()
        self._handle = weakref.ref(handle, self._released.put)
        file = pa.PythonFile(handle, "r")
        del handle
        try:
            self._reader = interruptible(stream, lambda: csv.open_csv(file, **options))
        except BaseException:
            del file
            stream.stop()
            self._wait()
            raise
        self.schema = self._reader.schema

    def __iter__(self) -> _CsvReader:
        return self

    def __next__(self) -> Any:
        batch = interruptible(self._stream, lambda: next(self._reader, None))
        if batch is None:
            raise StopIteration
        return batch

    def close(self) -> None:
        """Stop the stream, and take what Arrow has read ahead, until it has nothing under way.

        Else the process could end in the middle of a read, or wait for one that is never made.
        """
        self._stream.stop()
        for _ in range(_MOST_AHEAD):
            with suppress(Exception):
                if next(self._reader, None) is None:
                    break
        self._reader = iter(())
        self._wait()

    def _wait(self) -> None:
        """Wait until nobody holds the handle: then the last thread of Arrow has left the interpreter."""
        with suppress(Empty):
            self._released.get(timeout=_ARROW_TABLES_WAIT)


class _Handle:
    """What Arrow reads of a stream, and holds as long as it may read."""

    __slots__ = ("__weakref__", "_stream", "closed")

    def __init__(self, stream: TableStream | SheetStream) -> None:
        self._stream, self.closed = stream, False

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        return self._stream.read(size)

    def close(self) -> None:
        """Leave the stream to whoever opened it."""
        self.closed = True


def _with_gaps(batch: pa.RecordBatch, selection: ColumnSelection, file: TableFile) -> pa.RecordBatch:
    """Replace texts that stand for a missing value, such as an empty cell, by nulls."""
    import pyarrow as pa
    from pyarrow import compute, csv

    columns = batch.columns
    for i, (name, kind) in enumerate(selection.types.items()):
        if kind == "text":
            listed = selection.listed.get(name, frozenset())
            gaps = [text for text in csv.ConvertOptions().null_values if text not in listed]
            texts = columns[i].dictionary
            cleared = compute.if_else(compute.is_in(texts, pa.array(gaps, texts.type)), None, texts)
            columns[i] = pa.DictionaryArray.from_arrays(columns[i].indices, cleared)
        elif kind == "number" and selection.invalid == "null":
            columns[i] = _parsed_numbers(columns[i], file)
    return pa.RecordBatch.from_arrays(columns, names=selection.names)


def _parsed_numbers(texts: pa.Array, file: TableFile) -> pa.Array:
    """Parse every cell by itself: a missing one becomes null and what is no number NaN, whatever the others are."""
    import pyarrow as pa
    from pyarrow import compute

    gaps = pa.array(_null_values(file), texts.type)
    texts = compute.if_else(compute.is_in(texts, gaps), None, texts)
    if file.decimal != ".":
        # A point is then no part of a number, as for Arrow.
        with_point = compute.match_substring(texts, ".")
        texts = compute.if_else(with_point, "a point", compute.replace_substring(texts, file.decimal, "."))
    try:
        # Python reads every text that Arrow reads as the same number, so that the choice changes the time alone.
        return compute.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        pass
    return pa.array([None if text is None else parse_number(text) for text in texts.to_pylist()], pa.float64())


# ---- Files with a schema of their own.


def _parquet_schema(file: TableFile) -> Any:
    from pyarrow import parquet

    return parquet.read_schema(file.path)


def _parquet_rows(
    file: TableFile, schema: TableSchema, selection: ColumnSelection, n_rows: int
) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    kinds = dict(zip(schema.names, schema.kinds, strict=True))
    texts = [name for name, kind in selection.types.items() if kind == "text" and kinds[name] == "category"]
    return parquet_batches(parquet.ParquetFile(file.path, read_dictionary=texts), selection.names, n_rows)


def parquet_batches(opened: Any, names: list[str], n_rows: int, **options: Any) -> Iterator[pa.RecordBatch]:
    """Columns of an opened Parquet file, in batches of at most ``n_rows`` rows."""
    # Parquet takes a name for every column that begins with it and a dot, hence the second selection.
    return (batch.select(names) for batch in opened.iter_batches(batch_size=n_rows, columns=names, **options))


def _ipc_schema(file: TableFile) -> Any:
    with open_ipc(file) as (reader, _):
        return reader.schema


@contextmanager
def open_ipc(file: TableFile, fields: Sequence[int] = ()) -> Iterator[tuple[Any, bool]]:
    """A reader of columns (no ``fields``: all) of an Arrow or Feather file, and whether it is an Arrow stream."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=list(fields))
    # Not mapped into memory: the system would end the process if the file became shorter meanwhile.
    with pa.OSFile(str(file.path)) as source:
        is_stream = False
        try:
            reader = pa.ipc.open_file(source, options=options)
        except pa.ArrowInvalid:
            is_stream = True
        if is_stream:
            source.seek(0)
            reader = pa.ipc.open_stream(source, options=options)
        yield reader, is_stream


def ipc_batches(file: TableFile, names: list[str], groups: Iterable[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Columns of some of the record batches of an Arrow file, or of all."""
    with open_ipc(file) as (reader, _):
        places = {name: place for place, name in enumerate(reader.schema.names)}
    with open_ipc(file, [places[name] for name in names]) as (reader, is_stream):
        chosen = range(0 if is_stream else reader.num_record_batches) if groups is None else groups
        for batch in reader if is_stream else map(reader.get_batch, chosen):
            selected = batch.select(names)
            # Dictionary indices come from the file, and those of a damaged file may be out of range.
            selected.validate(full=True)
            yield selected


def _ipc_rows(
    file: TableFile, schema: TableSchema, selection: ColumnSelection, n_rows: int
) -> Iterator[pa.RecordBatch]:
    for batch in ipc_batches(file, selection.names):
        for start in range(0, batch.num_rows, n_rows):
            yield batch.slice(start, n_rows)


_SCHEMAS: Mapping[str, Callable[[TableFile], Any]] = {
    "csv": _csv_schema,
    "parquet": _parquet_schema,
    "arrow": _ipc_schema,
    "stata": stata_schema,
    "xlsx": _csv_schema,
    "sqlite": _csv_schema,
}
_TYPED: Mapping[str, Callable[[TableFile, TableSchema, ColumnSelection, int], Iterator[Any]]] = {
    "parquet": _parquet_rows,
    "arrow": _ipc_rows,
    "stata": _stata_rows,
}


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
        expected = "a folder of files, got one with folders in it, whose names may be columns"
        remedy = "write the table as files in one folder, with all columns in each"
        raise refusal("table", folder.name, expected, remedy)
    files = tuple(table_file(folder / name) for name in names)
    formats = {file.format for file in files}
    if len(formats) > 1 or not files[0].has_groups:
        expected = "a folder of Parquet files alone, or of Arrow files alone"
        raise refusal("table", folder.name, expected, "name one file, or write the table in one of these formats")
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


# ---- libsvm files: sparse rows of numbers, with the target in front.

_BLOCK = 1 << 23
"""Approximate number of bytes that are parsed at a time."""

_LONGEST_LINE = 1 << 26
"""In bytes: an entry for each of the columns that a file may have."""

_MOST_INDEX = 4_000_000


def libsvm_blocks(file: TableFile, stream: TableStream | SheetStream | None = None) -> Iterator[tuple[Any, FloatArray]]:
    """Read rows, by the column numbers of the file, and labels in blocks; ``stream`` is the file, if it is watched."""
    from sklearn.datasets import load_svmlight_file

    def blocks() -> Iterator[tuple[Any, FloatArray]]:
        with stream or file.open() as opened:
            for lines in _whole_lines(file, opened):
                rows, labels = load_svmlight_file(io.BytesIO(lines), zero_based=True)
                if rows.shape[1] > _MOST_INDEX + 1:
                    raise DataError(
                        f"{file.name}: expected indices up to {_MOST_INDEX:,}, got larger ones; number the columns "
                        "from 1 on."
                    )
                if labels.size:
                    yield rows, labels

    return each_without_cells(file, blocks)


def _whole_lines(file: TableFile, opened: TableStream | SheetStream) -> Iterator[bytes]:
    """Read blocks of bytes that end at the end of a line."""
    rest: list[bytes] = []
    length = 0
    while data := opened.read(_BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, data[:cut]])
            rest, length = [], 0
        rest.append(data[cut:])
        length += len(data) - cut
        if length > _LONGEST_LINE:
            raise DataError(
                f"{file.name}: expected lines of at most {_LONGEST_LINE:,} bytes, got a longer one; check the ends of "
                "lines."
            )
    if length:
        yield b"".join(rest)


def libsvm_schema(file: TableFile) -> TableSchema:
    """The target and one column for every index up to the largest, which takes a pass over the file."""
    first, last = 1, 0
    for rows, _ in libsvm_blocks(file):
        if rows.nnz:
            last = max(last, int(rows.indices.max()))
            first = min(first, int(rows.indices.min()))
    names = (LABEL, *map(str, range(first, last + 1)))
    return TableSchema(names, ("number",) * len(names), sparse=True)


class SparseEncoding:
    """The map from entries with an index to features.

    The bounds are those for a table (:meth:`TableBounds.for_table`): names are indices, and the encoding of every
    column maps zero to zero. ``invalid`` is that of :class:`~taciturn.tables.cells.Encoding`, for entries.
    """

    def __init__(self, bounds: TableBounds, *, invalid: str = "raise") -> None:
        self._strict = invalid == "raise"
        bounds.require_bounds()
        if bounds.terms:
            expected = "none for a libsvm table, whose zeros would fill up"
            raise refusal(PLACE, list(bounds.terms), expected, "take them out, or write the table in another format")
        coded = bounds.layout is not None and bounds.layout.missing_values
        if coded or any(column.missing_values for _, column in bounds.used):
            expected = "none for a libsvm table, in which entries that are not stored are zeros"
            raise refusal("missing_values", "", expected, "take them out, or write the table in another format")
        self._names = bounds.order or ()
        for name, column in bounds.used:
            if not is_index(name):
                raise DataError(missing_column(name, TableSchema((LABEL,), ("number",), sparse=True)))
            other = column.type not in ("number", "boolean")
            if other or (column.type == "number" and column.ends[0] != -column.ends[1]):
                raise refusal(
                    f"columns.{quoted(name)}",
                    column.type if other else (column.lower, column.upper),
                    "numbers with lower = -upper in a libsvm table, whose zeros would fill up otherwise",
                    "widen the bounds until they are symmetric about zero",
                )
            fill = bounds.fill_of(name)
            if fill is not None and fill.indicator:
                expected = "a value in a libsvm table"
                raise refusal(f"missing.{quoted(name)}", "indicator", expected, "fill in a value, or take it out")
        self._upper = feature_bounds(bounds)[1]
        self._truths = np.array([column.type == "boolean" for _, column in bounds.used])
        self._fills = np.array([float(bounds.missing.get(name, math.nan)) for name in self._names])
        # Indices beyond the largest admissible one share one more place.
        indices = np.array([min(int(name), _MOST_INDEX + 1) for name in self._names])
        self._place = np.full(int(indices.max()) + 2, -1, dtype=np.int64)
        self._place[indices] = np.arange(indices.size)

    def encode(self, rows: Any) -> sp.csr_matrix:
        """Encode rows; indices that do not enter the model are dropped."""
        columns = self._place[np.minimum(rows.indices, self._place.size - 1)]
        kept = columns >= 0
        at_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[kept]
        columns, entries = columns[kept], rows.data[kept]
        gaps = np.isnan(entries)
        entries[gaps] = self._fills[columns[gaps]]
        if self._strict:
            self._check(columns[np.isnan(entries)], missing_value)
        wrong = self._truths[columns] & (entries != 0.0) & (entries != 1.0)
        if self._strict:
            self._check(columns[wrong], not_boolean)
        entries[wrong] = np.nan
        bounds = self._upper[columns]
        entries = to_unit_range(entries, -bounds, bounds, out=entries)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(at_row, minlength=rows.shape[0]))))
        out = sp.csr_matrix((entries, columns, indptr), shape=(rows.shape[0], len(self._names)))
        out.sort_indices()
        return out

    def _check(self, wrong: IntArray, sentence: Callable[[str], str]) -> None:
        """Raise if there is a column with a wrong entry, and name the first one."""
        if wrong.size:
            raise DataError(sentence(self._names[wrong.min()]))


def numeric_target(target: Target, fill: Any, labels: FloatArray, *, invalid: str = "raise") -> NDArray[Any]:
    """Convert the numbers at the beginnings of the lines to targets."""
    if target.task == "regress":
        return bounded_target(target, fill, labels, invalid=invalid)
    if target.classes is None:
        return labels
    return Labels(target, fill, Notation()).from_numbers(labels)
