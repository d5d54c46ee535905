"""Row groups of Parquet files and record batches of Arrow files, which are read one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import DataError
from taciturn.tables.files import TableFile, without_cells
from taciturn.tables.schema import kind_of
from taciturn.tables.streams import changed_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileStamp", "GroupReader", "RowRange", "StoredFile", "cut_rows", "split_ranges", "store_facts"]

_READ_SIZE = 1 << 16
"""Bytes of a column that are read from a Parquet file at a time; without it the column of a row group is read whole."""

_PAGE_MEMORY = 3 << 20
"""Bytes that a Parquet file has in memory for each column while a row group is read: a page, packed and unpacked, and a
list of distinct values. Writers make pages and lists of 1 MiB."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Size and time of the last change of a file."""

    size: int
    changed: int
    number: int

    @classmethod
    def take(cls, file: TableFile) -> FileStamp:
        """The stamp of a file as it is now."""
        found = without_cells(file, lambda: os.stat(file.path))
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def check(self, file: TableFile) -> None:
        """Raise if the file has changed since."""
        if FileStamp.take(file) != self:
            raise DataError(changed_file(file.name))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A Parquet or Arrow file, its state when it was opened, and the rows of its row groups or record batches."""

    file: TableFile
    stamp: FileStamp
    group_rows: tuple[int, ...]

    @property
    def column_memory(self) -> int:
        """Bytes of memory for one column of doubles of the largest group while ranges of it are read, about."""
        whole = 8 * max(self.group_rows, default=0)
        # A record batch is read as a whole, a row group page by page.
        return min(whole, _PAGE_MEMORY) if self.file.format == "parquet" else whole


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows that lie together in a file: ``n_rows`` of some groups in a row, after the first ``skip`` of them."""

    place: int
    groups: range
    skip: int
    n_rows: int


def store_facts(file: TableFile) -> StoredFile | None:
    """What the file says of its groups; None for an Arrow stream, which has to be read from its beginning."""
    stamp = FileStamp.take(file)
    if file.format == "parquet":
        rows = without_cells(file, lambda: _parquet_group_rows(file))
    else:
        found = without_cells(file, lambda: _arrow_group_rows(file))
        if found is None:
            return None
        rows = found
    return StoredFile(file, stamp, rows)


def _parquet_group_rows(file: TableFile) -> tuple[int, ...]:
    from pyarrow import parquet

    facts = parquet.read_metadata(file.path)
    return tuple(facts.row_group(i).num_rows for i in range(facts.num_row_groups))


def _arrow_group_rows(file: TableFile) -> tuple[int, ...] | None:
    import pyarrow as pa

    reader = _open_arrow_file(file, [])
    if reader is None:
        return None
    # The number of rows is known from any column: the first one whose cells have a fixed size is read soonest.
    kinds = [kind_of(kind) for kind in reader.schema.types]
    at = next((i for i, kind in enumerate(kinds) if kind in ("number", "boolean", "date")), 0)
    reader = pa.ipc.open_file(pa.OSFile(str(file.path)), options=pa.ipc.IpcReadOptions(included_fields=[at]))
    return tuple(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))


def _open_arrow_file(file: TableFile, fields: list[int]) -> Any:
    """A reader of some columns, or of all for none; None if the file is an Arrow stream."""
    import pyarrow as pa

    try:
        # Not mapped into memory: the system would end the process if the file became shorter meanwhile.
        source = pa.OSFile(str(file.path))
        return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=fields))
    except pa.ArrowInvalid:
        source.seek(0)
        pa.ipc.open_stream(source)
        return None


def cut_rows(files: Sequence[StoredFile], most: int) -> list[tuple[RowRange, ...]]:
    """Divide the rows of files into partitions of at most ``most`` rows, in order.

    Neighbouring groups that fit into a partition together are merged. A larger group is cut into ranges of equal size.
    The rule takes the numbers of rows in the groups, and no cell.
    """
    partitions: list[tuple[RowRange, ...]] = []
    merged: list[RowRange] = []

    def finish() -> None:
        if merged:
            partitions.append(tuple(merged))
            merged.clear()

    for place, stored in enumerate(files):
        for group, n_rows in enumerate(stored.group_rows):
            if sum(rows.n_rows for rows in merged) + n_rows > most:
                finish()
            if n_rows > most:
                n_parts = -(-n_rows // most)
                size = -(-n_rows // n_parts)
                for start in range(0, n_rows, size):
                    part = RowRange(place, range(group, group + 1), start, min(size, n_rows - start))
                    partitions.append((part,))
            elif n_rows and merged and merged[-1].place == place:
                last = merged.pop()
                merged.append(RowRange(place, range(last.groups.start, group + 1), 0, last.n_rows + n_rows))
            elif n_rows:
                merged.append(RowRange(place, range(group, group + 1), 0, n_rows))
    finish()
    return partitions


def split_ranges(ranges: Sequence[RowRange], n_rows: int) -> tuple[tuple[RowRange, ...], tuple[RowRange, ...]]:
    """The first ``n_rows`` rows of some ranges, and the others."""
    first: list[RowRange] = []
    others: list[RowRange] = []
    for rows in ranges:
        n_first = min(n_rows, rows.n_rows)
        n_rows -= n_first
        if n_first:
            first.append(replace(rows, n_rows=n_first))
        if n_first < rows.n_rows:
            others.append(replace(rows, skip=rows.skip + n_first, n_rows=rows.n_rows - n_first))
    return tuple(first), tuple(others)


class GroupReader:
    """Reads row ranges of files. Each thread needs its own.

    It keeps the last file open, and the place where the last range ended: ranges of one large group that are asked for
    in order are read in one pass over the group. ``texts`` are columns of text, whose cells Parquet hands out as places
    in a list of distinct ones.
    """

    def __init__(self, files: Sequence[StoredFile], texts: Sequence[str]) -> None:
        self._files, self._texts = files, list(texts)
        self._parquet: tuple[int, Any] | None = None
        self._cursor: tuple[Any, _Cursor] | None = None

    def read(self, rows: RowRange, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Read columns of a range, in batches."""
        stored = self._files[rows.place]
        stored.stamp.check(stored.file)
        return without_cells(stored.file, lambda: self._read(rows, list(names)), names)

    def _read(self, rows: RowRange, names: list[str]) -> list[pa.RecordBatch]:
        key = rows.place, rows.groups, names
        # Dropped first: it holds what it has read ahead.
        kept, self._cursor = self._cursor, None
        if kept is not None and kept[0] == key and kept[1].position <= rows.skip:
            cursor = kept[1]
        else:
            cursor = _Cursor(self._batches(rows, names))
        found = cursor.take(rows.skip, rows.n_rows)
        if cursor.position < sum(self._files[rows.place].group_rows[group] for group in rows.groups):
            self._cursor = key, cursor
        return found

    def _batches(self, rows: RowRange, names: list[str]) -> Iterator[pa.RecordBatch]:
        file = self._files[rows.place].file
        if file.format == "parquet":
            opened = self._open_parquet(rows.place, file)
            # Parquet takes a name for every column that begins with it and a dot, hence the second selection.
            batches = opened.iter_batches(batch_size=rows.n_rows, row_groups=list(rows.groups), columns=names)
            return (batch.select(names) for batch in batches)
        return _arrow_batches(file, rows, names)

    def _open_parquet(self, place: int, file: TableFile) -> Any:
        from pyarrow import parquet

        if self._parquet is None or self._parquet[0] != place:
            # Arrow would read all columns of a row group into memory before it decodes the first.
            options = {"pre_buffer": False, "buffer_size": _READ_SIZE}
            opened = parquet.ParquetFile(file.path, read_dictionary=self._texts, **options)
            self._parquet = place, opened
        return self._parquet[1]


def _arrow_batches(file: TableFile, rows: RowRange, names: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.OSFile(str(file.path)) as source:
        places = {name: place for place, name in enumerate(pa.ipc.open_file(source).schema.names)}
        options = pa.ipc.IpcReadOptions(included_fields=[places[name] for name in names])
        reader = pa.ipc.open_file(source, options=options)
        for group in rows.groups:
            batch = reader.get_batch(group).select(names)
            # Dictionary indices come from the file, and those of a damaged file may be out of range.
            batch.validate(full=True)
            yield batch


class _Cursor:
    """A place in a sequence of batches."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: Any = None
        self.position = 0

    def take(self, start: int, n_rows: int) -> list[pa.RecordBatch]:
        """The rows from ``start`` on, which is not before the present place."""
        taken = []
        stop = start + n_rows
        while self.position < stop:
            batch = next(self._batches) if self._rest is None else self._rest
            self._rest = None
            first, last = max(start - self.position, 0), min(stop - self.position, batch.num_rows)
            if first < last:
                taken.append(batch.slice(first, last - first))
            if last < batch.num_rows:
                self._rest = batch.slice(last)
            self.position += last
        return taken
