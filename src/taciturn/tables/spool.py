"""A copy of a text table in Arrow's format, in a private temporary folder, for tables that are read many times."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import DataError
from taciturn.tables.arrow_tables import ColumnSelection, infer_types, stream_batches
from taciturn.tables.bounds import TableBounds
from taciturn.tables.files import TableFile
from taciturn.tables.libsvm import libsvm_blocks
from taciturn.tables.part_encoding import DensePart, SparsePart, sparse_batch
from taciturn.tables.reading import raise_problems
from taciturn.tables.schema import TableSchema
from taciturn.tables.stored import FileStamp, StoredFile
from taciturn.tables.streams import TableStream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Spool", "copy_table"]

_PACKED_RATIO = 4
"""Typical size of a text table against that of its gzip file."""


class _NoSpaceError(DataError):
    """There is no space for temporary files, whatever the table holds."""


class Spool:
    """A private temporary folder with parts of a table as Arrow files.

    The folder belongs to this process and this user. It is removed by :meth:`close`, when the object is collected, and
    when the process ends by itself or by an exception; not when the system ends the process.

    Parameters
    ----------
    files : sequence of TableFile
        The files whose rows are to be written. Free space for as many bytes is checked.
    """

    def __init__(self, files: Sequence[TableFile]) -> None:
        self._name = files[0].name
        needed = sum(file.path.stat().st_size * (_PACKED_RATIO if file.is_packed else 1) for file in files)
        try:
            parent = tempfile.gettempdir()
            free = shutil.disk_usage(parent).free
            # Only the owner may look into it.
            folder = tempfile.mkdtemp(prefix="taciturn-", dir=parent) if free > needed else None
        except OSError:
            folder = None
        if folder is None:
            raise _NoSpaceError(self._no_space())
        self._folder = Path(folder)
        self._finalizer = weakref.finalize(self, _remove, folder, os.getpid())
        self.files: list[StoredFile] = []

    @property
    def closed(self) -> bool:
        """Whether the folder is removed."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write rows as one file with one record batch."""
        import pyarrow as pa

        table = _merge(batches)
        path = self._folder / f"{len(self.files):06d}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            # The size of the file says little about a packed table, and nothing about a view of a database.
            written = shutil.disk_usage(self._folder).free > table.nbytes
            if written:
                with pa.ipc.new_file(path, table.schema, options=options) as writer:
                    writer.write_table(table)
        except OSError:
            written = False
        if not written:
            raise _NoSpaceError(self._no_space())
        file = TableFile(path, "arrow", ",", gzipped=False)
        self.files.append(StoredFile(file, FileStamp.take(file), (table.num_rows,)))

    def write_groups(self, pieces: Iterable[tuple[int, pa.RecordBatch]]) -> list[tuple[int, ...]]:
        """Write pieces of rows, each to the file with its number; return the places of the files of each number.

        Pieces of one number that have different types are in files of their own.
        """
        import pyarrow as pa

        opened: dict[tuple[int, Any], tuple[Path, Any, list[int]]] = {}
        try:
            with ExitStack() as writers:
                for number, piece in pieces:
                    # A file has one list of distinct texts, and pieces have their own.
                    texts = {place for place, kind in enumerate(piece.schema.types) if pa.types.is_dictionary(kind)}
                    columns = [
                        each.dictionary_decode() if place in texts else each for place, each in enumerate(piece.columns)
                    ]
                    plain = pa.RecordBatch.from_arrays(columns, names=piece.schema.names)
                    key = number, plain.schema
                    if key not in opened:
                        path = self._folder / f"{len(opened):06d}.arrow"
                        options = pa.ipc.IpcWriteOptions(compression="lz4")
                        writer = writers.enter_context(pa.ipc.new_file(path, plain.schema, options=options))
                        opened[key] = path, writer, []
                    _, writer, lengths = opened[key]
                    writer.write_batch(plain)
                    lengths.append(plain.num_rows)
            written = True
        except OSError:
            written = False
        if not written:
            raise DataError(self._no_space())
        places: dict[int, list[int]] = {}
        for (number, _), (path, _, lengths) in opened.items():
            file = TableFile(path, "arrow", ",", gzipped=False)
            places.setdefault(number, []).append(len(self.files))
            self.files.append(StoredFile(file, FileStamp.take(file), tuple(lengths)))
        return [tuple(places[number]) for number in sorted(places)]

    def _no_space(self) -> str:
        return (
            f"{self._name}: expected free space for temporary files of its size, got less; set TMPDIR to a folder on "
            "another disk, or write the table as Parquet."
        )


def _merge(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Batches as one, with one list of distinct texts for each column of texts."""
    import pyarrow as pa

    columns = []
    for place, kind in enumerate(batches[0].schema.types):
        pieces = [batch.column(place) for batch in batches]
        if pa.types.is_dictionary(kind):
            # Arrow does not merge lists with a null in them, and CSV tables have such.
            texts = pa.concat_arrays([piece.dictionary_decode() for piece in pieces])
            columns.append(texts.dictionary_encode())
        else:
            columns.append(pa.concat_arrays(pieces))
    return pa.Table.from_arrays(columns, names=batches[0].schema.names)


def _remove(folder: str, process: int) -> None:
    # A process that was forked has a copy of the object, and does not own the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _regroup(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[list[pa.RecordBatch]]:
    """The same rows in groups of ``n_rows``, but for the last."""
    waiting: list[Any] = []
    room = n_rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, room)
            waiting.append(piece)
            start += piece.num_rows
            room -= piece.num_rows
            if not room:
                yield waiting
                waiting, room = [], n_rows
    if waiting:
        yield waiting


def _typed_batches(
    files: Sequence[TableFile],
    schema: TableSchema,
    selection: ColumnSelection,
    progress: Callable[[float], None] | None,
) -> Generator[pa.RecordBatch, None, None]:
    """Read files from the first row to the last; tell ``progress`` how much of a text table is read, from 0 to 1."""
    for file in files:
        stamp = FileStamp.take(file)
        stream = file.open() if file.is_text or file.format == "libsvm" else None
        batches = (
            (sparse_batch(rows, labels) for rows, labels in libsvm_blocks(file, stream))
            if file.format == "libsvm"
            else stream_batches(file, schema, selection, stream)
        )
        try:
            for batch in batches:
                yield batch
                if progress is not None and isinstance(stream, TableStream):
                    progress(stream.fraction)
        finally:
            if stream is not None:
                stream.close()
        stamp.check(file)


def copy_table(
    files: Sequence[TableFile],
    schema: TableSchema,
    bounds: TableBounds,
    selection: ColumnSelection,
    most: int,
    progress: Callable[[float], None] | None,
) -> Spool:
    """Copy a table that can be read from the beginning only, and check every cell on the way.

    ``selection`` are the columns of the copy, and ``most`` is the largest number of rows in one of its files.
    """
    invalid = selection.invalid
    part = SparsePart(bounds, None, invalid) if schema.sparse else DensePart(bounds, None, invalid)
    spool = Spool(files)
    try:
        if not schema.sparse:
            selection = infer_types(files[0], schema, selection)
        with closing(_typed_batches(files, schema, selection, progress)) as batches:
            for rows in _groups(batches, files[0].format, most):
                part.encode(rows)
                spool.write(rows)
        return spool
    except DataError as error:
        refused = error
        spool.close()
        if isinstance(error, _NoSpaceError):
            raise
    except BaseException:
        spool.close()
        raise
    raise_problems(files, schema, bounds, invalid=invalid)
    raise refused


def _groups(batches: Iterable[pa.RecordBatch], format: str, most: int) -> Iterator[list[pa.RecordBatch]]:
    if format == "libsvm":
        # Blocks of such a file have a bounded number of entries, which rows have not.
        return ([batch] for batch in batches)
    return _regroup(batches, most)
