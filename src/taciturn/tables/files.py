"""Table files by name, and what is wrong with them in one sentence that quotes no cell."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.tables.streams import MOST_UNPACKED, TableStream, memory_of_the_machine, opened_plainly
from taciturn.tables.words import quoted, refusal

__all__ = ["TableFile", "check_readable", "each_without_cells", "larger_than_memory", "table_file", "without_cells"]

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
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that exists, with the format that its name states.

    Parameters
    ----------
    path : Path
        Where it is.
    format : {"csv", "parquet", "arrow", "libsvm"}
        How to read it.
    delimiter : str
        Between the cells of a text table.
    gzipped : bool
        Whether it is compressed as a whole.
    """

    path: Path
    format: str
    delimiter: str
    gzipped: bool

    @property
    def name(self) -> str:
        """For messages."""
        return quoted(self.path.name)

    def first_line(self, longest: int) -> bytes:
        """The first bytes of a text table, up to the end of a line."""
        with opened_plainly(self.path, gzipped=self.gzipped) as opened:
            return opened.readline(longest)

    def open(self, *, whole: bool = False) -> TableStream:
        """The bytes of a text table, decompressed.

        ``whole`` tells whether all of it is to be held at once, so that it must not be larger than memory.
        """
        memory = memory_of_the_machine()
        if whole and self.path.stat().st_size > memory:
            raise DataError(larger_than_memory(self.name))
        return TableStream(
            self.path,
            self.name,
            gzipped=self.gzipped,
            delimiter=self.delimiter if self.format == "csv" else None,
            most=memory if whole else MOST_UNPACKED,
        )


def table_file(path: str | os.PathLike[str]) -> TableFile:
    """What can be said about a file without reading it; refuses what is no table that can be read."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if gzipped else suffixes)[-1:]
    kind = _FORMATS.get("".join(suffix))
    if kind is None or (gzipped and kind not in ("csv", "libsvm")):
        raise refusal(
            "table",
            path.name,
            "a file named .csv, .tsv or .libsvm (each also with .gz), .parquet, .feather or .arrow",
            "save the table in one of these formats",
        )
    file = TableFile(path, kind, "\t" if suffix == [".tsv"] else ",", gzipped)
    check_readable("table", path)
    return file


def larger_than_memory(name: str) -> str:
    """The sentence for a table that cannot be held."""
    return f"{name}: expected a table that fits into memory, got a larger one; leave columns or rows out."


def check_readable(parameter: str, path: Path) -> None:
    """Refuse what is not a file with something in it that may be read."""
    problem = _problem_with(path)
    if problem is not None:
        expected, remedy = problem
        raise ParameterError(parameter, str(path), expected, remedy)


def _problem_with(path: Path) -> tuple[str, str] | None:
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            return "a file, got a folder", "name a file in it"
        if not stat.S_ISREG(found.st_mode):
            # They may be endless, and cannot be read twice; opening one may wait for ever.
            return "a file on a disk, got a pipe or a device", "write what comes from it to a file first"
        # Opened although it is not read: there may be no permission for it.
        path.open("rb").close()
        empty = found.st_size == 0
    except FileNotFoundError:
        return "a file that exists", "check the name and the folder"
    except PermissionError:
        return "a file that may be read", "ask for the permission to read it"
    except (OSError, ValueError):
        return "a file that can be read", "check the name and the disk"
    return ("a file with something in it, got one of 0 bytes", "write it again") if empty else None


# What the readers say, as far as its cause is known; a cell may stand in any of their messages.
_CAUSES = (
    (
        r"MemoryError",
        "expected a table that fits into memory, got a larger one; leave columns out",
    ),
    (
        r"conversion error to (?:double|float)",
        "expected numbers in column {column}, got something else; correct it, or state another type in the bounds",
    ),
    (
        r"conversion error to bool",
        "expected true or false (or 1 and 0) in column {column}, got something else; state it as a category",
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
    """The result of ``call``, with errors of the readers reworded so that no cell is quoted.

    The new error is raised outside the handler, so that the original does not travel along as its context into logs.
    ``names`` are the columns of the file, for messages that count them.
    """
    try:
        return call()
    except TaciturnError:
        raise
    except Exception as error:
        message = _described(file, f"{type(error).__name__}: {error}", names)
    raise DataError(message)


def each_without_cells(file: TableFile, items: Callable[[], Iterator[T]], names: Sequence[str] = ()) -> Iterator[T]:
    """The items of an iterator, with errors on the way reworded in the same way."""
    iterator = without_cells(file, items, names)
    while (item := without_cells(file, lambda: next(iterator, None), names)) is not None:
        yield item


def _described(file: TableFile, original: str, names: Sequence[str]) -> str:
    found = re.search(r"In CSV column #(\d+)", original)
    known = found is not None and int(found[1]) < len(names)
    column = quoted(names[int(found[1])]) if found is not None and known else "of that type"
    # Only what stands before a quoted cell is looked at, lest a cell choose the words.
    beginning = re.split(r": invalid value|, got \d", original, maxsplit=1)[0]
    for pattern, sentence in _CAUSES:
        if re.search(pattern, beginning, re.IGNORECASE):
            return f"{file.name}: {sentence.format(column=column)}."
    return (
        f"{file.name}: expected a complete {file.format} file, got a damaged one or another format; write the table "
        "again, or name it after its format."
    )
