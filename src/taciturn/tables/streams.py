"""The bytes of text tables: read once, from first to last, within stated limits, and checked as they go by."""

from __future__ import annotations

import gzip
import io
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

from taciturn.core.errors import DataError

__all__ = ["MOST_UNPACKED", "StoppableStream", "TableStream", "changed_file", "interruptible", "machine_memory"]

T = TypeVar("T")

MOST_UNPACKED = 1 << 34
"""Largest size in bytes of a table that is unpacked or computed as it is read: a small file can unpack to a thousand
times its size, and a view of a database may have no last row."""

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

    A stopped stream has no more bytes, as if it were at its end: whoever stops it uses nothing that was read. An error
    would leave Arrow with reads under way.
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
    which have no meaning where there is no delimiter. Messages call the file ``name``.
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
        super().__init__()
        self._stored = io.BufferedReader(io.FileIO(os.fspath(path)))
        self._stored_size = os.fstat(self._stored.fileno()).st_size
        self._file: io.BufferedIOBase = gzip.GzipFile(fileobj=self._stored) if gzipped else self._stored
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
        self._count += len(data)
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
