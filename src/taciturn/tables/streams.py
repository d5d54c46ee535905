"""The bytes of text tables: read once, from first to last, within stated limits, and checked as they go by."""

from __future__ import annotations

import gzip
import io
import os
import re
from typing import IO

from taciturn.core.errors import DataError

__all__ = ["MOST_UNPACKED", "TableStream", "memory_of_the_machine", "opened_plainly"]

MOST_UNPACKED = 1 << 34
"""A gzip file may unpack to as many bytes. It can claim a thousand times its size, and that costs nobody anything."""


def memory_of_the_machine() -> int:
    """Its bytes; what is larger than that is refused before the system has to end the process."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 1 << 62


def opened_plainly(path: str | os.PathLike[str], *, gzipped: bool) -> IO[bytes]:
    """The bytes of a file, decompressed, without any check."""
    return gzip.open(path) if gzipped else open(path, "rb")


class TableStream(io.RawIOBase):
    """A text table as a stream of bytes, decompressed.

    A file that grows or shrinks while it is read, a gzip file that unpacks to more than it may, and quotes that are
    opened and never closed are refused: each of them would make a table of other rows than are there.

    Parameters
    ----------
    path : path-like
        A regular file.
    name : str
        Its name for messages.
    gzipped : bool
        Whether it is compressed as a whole.
    delimiter : str, default=None
        Between cells that may stand in quotes; None where quotes mean nothing.
    most : int, default=MOST_UNPACKED
        As many bytes may come out of a compressed file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        *,
        gzipped: bool,
        delimiter: str | None = None,
        most: int = MOST_UNPACKED,
    ) -> None:
        self._file = opened_plainly(path, gzipped=gzipped)
        self._name = name
        self._most = min(most, MOST_UNPACKED) if gzipped else None
        self._size = None if gzipped else os.fstat(self._file.fileno()).st_size
        self._count = 0
        self._quotes = None if delimiter is None else _Quotes(delimiter)

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, none at the end of a table that is whole."""
        data = self._file.read(size)
        self._count += len(data)
        if self._most is not None and self._count > self._most:
            raise DataError(
                f"{self._name}: expected a gzip file that unpacks to at most {self._most:,} bytes, got a larger one; "
                "unpack it, or write it as Parquet."
            )
        if self._size is not None and (self._count > self._size or (not data and size and self._count < self._size)):
            raise DataError(
                f"{self._name}: expected a file that stays as it is while it is read, got one that changed; wait until "
                "it is written, or copy it."
            )
        if self._quotes is not None:
            self._quotes.see(data)
            if self._quotes.broken or (not data and size and self._quotes.opened):
                raise DataError(
                    f"{self._name}: expected quotes around whole cells, each closed before the next delimiter, got "
                    "others; close them, and double a quote that stands inside a cell."
                )
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class _Quotes:
    """Whether cells in quotes are whole, told from one block of bytes after another.

    A quote opens a cell at its beginning only, elsewhere outside quotes it is a character like others. Inside quotes
    two stand for one. After the closing one comes a delimiter or the end of the line.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = delimiter.encode() + b"\r\n"
        ends = b"[" + re.escape(delimiter.encode()) + b"\r\n]"
        inside = rb'[^"]*+(?:""[^"]*+)*+"'
        self._inside = re.compile(inside)
        # As many cells at once as there are; it stops before a quote that opens something that is not whole.
        self._outside = re.compile(
            rb'[^"]*+(?:(?:(?<=' + ends + rb')"' + inside + rb"(?=" + ends + rb")|(?<!" + ends + rb')")[^"]*+)*+'
        )
        # Before the first cell there is, as it were, the end of a line.
        self._last = b"\n"
        self._first = True
        self.opened = self._just_closed = self.broken = False

    def see(self, data: bytes) -> None:
        """Take the next block into account."""
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
                    # The second of two, which fell into the next block.
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
