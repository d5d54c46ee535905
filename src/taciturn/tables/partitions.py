"""Tables on disk: one way from a file to encoded blocks of rows, for partitions, whole tables and predictions."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.validation import FloatArray, IndexArray, IntArray, check_choice, check_integer
from taciturn.data.persons import NamedKeys, canonical_key
from taciturn.data.records import Outcomes
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.cells import Cells, Encoding, OutcomeReader, missing_value, target_numbers
from taciturn.tables.columns import (
    LABEL,
    Column,
    Notation,
    Problems,
    TableSchema,
    file_assumptions,
    is_missing,
    kind_of,
    quoted,
    refusal,
)
from taciturn.tables.formats import (
    ColumnSelection,
    SparseEncoding,
    TableFile,
    TableStream,
    arrow_schema,
    changed_file,
    folder_schema,
    infer_types,
    ipc_batches,
    larger_than_memory,
    libsvm_blocks,
    libsvm_schema,
    machine_memory,
    numeric_target,
    open_ipc,
    parquet_batches,
    stream_batches,
    table_files,
    without_cells,
    wrong_numbers,
)

if TYPE_CHECKING:
    import pyarrow as pa

# ---- What a table must have, and which of its columns are read.


def files_schema(files: tuple[TableFile, ...]) -> TableSchema:
    """The schema of one file, or of the files of a folder."""
    if len(files) > 1:
        return folder_schema(files)
    return libsvm_schema(files[0]) if files[0].format == "libsvm" else arrow_schema(files[0])


def check_target(bounds: TableBounds, target: str, invalid: str = "raise") -> None:
    """Raise if the target is not the one of the bounds, or has no stated classes where ``invalid`` needs them."""
    if target != bounds.target.name:
        expected = f"the column that [target] of the bounds describes, {bounds.target.name!r}"
        raise refusal("target", target, expected, "name that one, or describe the other in the bounds")
    check_choice(("raise", "null"), invalid=invalid)
    if invalid == "null" and bounds.target.task == "classify" and bounds.target.classes is None:
        # Classes that are read from the table would depend on a record that is to be judged by them.
        raise refusal("invalid", invalid, "stated classes of the target", "list the classes in the bounds file")


def check_present(name: str, schema: TableSchema) -> None:
    """Raise if a table does not have this column."""
    if name not in schema.names:
        raise DataError(missing_column(name, schema))


def unusable_columns(names: Sequence[str], numbers: FloatArray, bounds: TableBounds) -> list[str]:
    """Names of the columns of numbers, of which bounds are to be found, that have a cell from which none can be.

    A missing cell is one unless the bounds say what stands for it.
    """
    usable = (
        ~np.isinf(column) if bounds.fill_of(name) is not None else np.isfinite(column)
        for name, column in zip(names, numbers.T, strict=True)
    )
    return [name for name, cells in zip(names, usable, strict=True) if not cells.all()]


def refuse_columns(names: Sequence[str]) -> None:
    """Raise if bounds are to be found of columns with cells that cannot be used, which are named."""
    problems = Problems()
    for name in names:
        with problems.gathering():
            raise DataError(
                f"column {quoted(name)}: expected a finite number in every row where bounds are to be found, got "
                "others; state its bounds, and what to fill in for missing values in [missing], in a bounds file."
            )
    problems.raise_all()


def check_has_keys(bounds: TableBounds, schema: TableSchema) -> None:
    """Raise if the bounds name a column beside features and target, such as one of keys, and the table has no names."""
    named = [("person.column", bounds.person), *bounds.places_beside]
    for place, name in named if schema.sparse else ():
        if name is not None:
            remedy = "a libsvm file has a number for the target, and features"
            raise refusal(place, name, "a table with named columns", remedy)


def no_rows(name: str) -> str:
    """Message about a table without a row; ``name`` is that of its file."""
    return f"{name}: expected at least one row below the header, got none; add records."


def select_columns(bounds: TableBounds, *, with_target: bool, invalid: str = "raise") -> ColumnSelection:
    """The columns that enter the model, and the target, each with the type that the bounds state."""
    # What is converted by a rule of its own is read as text.
    types = {name: "number" if bounds.is_plain(column) else "text" for name, column in bounds.used}
    listed = {name: frozenset(column.categories) for name, column in bounds.used if column.type == "category"}
    if with_target:
        target = bounds.target
        types[target.name] = "as it is" if target.classes is None else "text"
        number = "number" if bounds.is_plain(Column("number")) else "text"
        if target.task != "classify":
            types[target.name] = number
        listed[target.name] = frozenset(map(str, target.classes or ()))
        types |= {name: "text" if name == target.event else number for name in bounds.beside}
    return ColumnSelection(types, listed, invalid)


# ---- Everything that is wrong with the columns of a table that was refused, told at once and without a cell.


def raise_problems(
    files: Sequence[TableFile],
    schema: TableSchema,
    bounds: TableBounds,
    *,
    invalid: str = "raise",
    with_target: bool = True,
) -> None:
    """Read a table that was refused again, and raise everything that is wrong with the columns of the first such file.

    Cells are read as text where they are text. Nothing is raised where the columns are not the matter.
    """
    selection = select_columns(bounds, with_target=with_target, invalid="null")
    for file in () if schema.sparse else files:
        try:
            found = _Findings(bounds, file if file.is_text else None, strict=invalid == "raise")
            n_columns = len(bounds.order or ())
            for batch in stream_batches(file, schema, selection):
                columns = batch.columns
                if with_target:
                    found.look_at_outcomes(columns[n_columns:])
                found.look_at(columns[:n_columns])
        except TaciturnError:
            # The file as a whole cannot be read, which the first refusal said.
            continue
        found.problems.raise_all()


def raise_column_problems(
    bounds: TableBounds, batches: Iterable[Sequence[Any]], *, strict: bool, with_target: bool = False
) -> None:
    """Raise everything that is wrong with the columns of a table without text, given in blocks of rows.

    ``with_target``: the target, and what is read with it, come behind the columns that enter the model.
    """
    found = _Findings(bounds, None, strict=strict)
    n_columns = len(bounds.order or ())
    for columns in batches:
        if with_target:
            found.look_at_outcomes(columns[n_columns:])
        found.look_at(columns[:n_columns] if with_target else columns)
    found.problems.raise_all()


class _Findings:
    """What is wrong with columns: once for each column that it has missing cells, and once that it has wrong ones.

    ``text`` is the file of a table of text, in which a number that is NaN was no number, and a missing one is null.
    """

    def __init__(self, bounds: TableBounds, text: TableFile | None, *, strict: bool) -> None:
        self.problems = Problems()
        self._bounds, self._text, self._strict = bounds, text, strict
        self._encoding = Encoding(bounds, invalid="raise" if strict else "null")
        self._outcomes = OutcomeReader(bounds, invalid="raise" if strict else "null")
        self._told: set[str] = set()

    def look_at(self, columns: Sequence[Any]) -> None:
        """Look at a block of the columns that enter the model."""
        for at, ((name, column), values) in enumerate(zip(self._bounds.used, columns, strict=True)):
            if self._is_wrong_number(column, values):
                self._tell(wrong_numbers(self._text, name))  # type: ignore[arg-type]
            else:
                try:
                    self._encoding.check(at, values)
                except DataError as error:
                    self._tell(str(error))
            needed = self._strict and self._bounds.fill_of(name) is None
            if needed and _has_gaps(values, self._bounds.notation(name), text=self._text is not None):
                self._tell(missing_value(name))

    def look_at_outcomes(self, columns: Sequence[Any]) -> None:
        """Look at a block of the target and of the columns that are read with it."""
        target = self._bounds.target
        no_numbers = (target.event, target.name if target.task == "classify" else None)
        for name, values in zip(self._outcomes.names, columns, strict=True):
            if name not in no_numbers and self._is_wrong_number(Column("number"), values):
                self._tell(wrong_numbers(self._text, name))  # type: ignore[arg-type]
                continue
            try:
                self._outcomes.column(name, values)
            except DataError as error:
                self._tell(str(error))

    def _is_wrong_number(self, column: Column, values: Any) -> bool:
        """Whether a plain number of a table of text is none."""
        if self._text is None or not self._strict or not self._bounds.is_plain(column):
            return False
        return bool(np.isnan(values.drop_null().to_numpy(zero_copy_only=False)).any())

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.problems.found.append(DataError(sentence))


def _has_gaps(values: Any, notation: Notation, *, text: bool) -> bool:
    """Whether cells are missing; numbers of a typed table may be NaN instead."""
    from pyarrow import compute, types

    if isinstance(values, Cells):
        return any(is_missing(cell) or notation.is_missing(cell) for cell in values.distinct()[0])
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    nan_is_null = not text and types.is_floating(values.type)
    if compute.any(compute.is_null(values, nan_is_null=nan_is_null)).as_py():
        return True
    return bool(notation.missing) and any(map(notation.is_missing, compute.unique(values).to_pylist()))


# ---- Record batches of a table as features, target and keys of persons.

EncodedPart = tuple[Any, Any, list[Any] | None]
"""Features, target (in ``Outcomes`` with weights or exposures, if there are any), and the keys of persons."""

_INDICES, _VALUES = "indices", "values"


class DensePart:
    """The features at some places, for tables with named columns.

    The bounds are resolved for the table; keys are read where they name the column of persons. ``columns`` are places
    of features, in increasing order; None for all. ``found`` are columns whose bounds were found privately, without the
    records whose number is infinite: such a cell is NaN.
    """

    def __init__(
        self,
        bounds: TableBounds,
        columns: IntArray | None,
        invalid: str,
        found: Sequence[str] = (),
        *,
        with_target: bool = True,
    ) -> None:
        self._kept: IntArray | None = None
        if columns is not None:
            used = np.zeros(len(bounds.feature_names), dtype=np.bool_)
            used[columns] = True
            bounds, read = bounds.of_features(used)
            # Places among the features of the columns that are read, which may have more than those asked for.
            kept = np.searchsorted(read, columns)
            self._kept = None if kept.size == read.size else kept
        target = bounds.target
        self._columns, self._person = bounds.order or (), bounds.person
        self._target, self._fill = target if with_target else None, bounds.missing.get(target.name)
        self._encoding = Encoding(bounds, invalid=invalid)
        self._notation = bounds.notation(target.name)
        self._outcomes = OutcomeReader(bounds, invalid=invalid) if with_target else None
        # The only feature of such a column, or the first one, where another says that a cell is missing.
        places = {name: place for place, name in enumerate(bounds.feature_names)}
        self._found = [(name, places[name]) for name in found if name in self._columns]
        self._target_found = target.name in found

    @property
    def names(self) -> list[str]:
        """The columns of the table that are read."""
        outcomes = () if self._outcomes is None else self._outcomes.names
        return [*self._columns, *outcomes, *(() if self._person is None else (self._person,))]

    def encode(self, batches: Sequence[pa.RecordBatch], out: FloatArray | None = None) -> EncodedPart:
        """Encode batches with the columns ``names`` as one block of rows, into ``out`` if it is given."""
        if out is None or self._kept is not None:
            out = np.empty((sum(batch.num_rows for batch in batches), self._encoding.n_features))
        start = 0
        for batch in batches:
            part = out[start : start + batch.num_rows]
            self._encoding.fill([batch.column(name) for name in self._columns], part)
            for name, place in self._found:
                part[np.isinf(self._encoding.numbers(name, batch.column(name))), place] = np.nan
            start += batch.num_rows
        targets = None if self._outcomes is None else self._read_outcomes(self._outcomes, batches)
        keys = None
        if self._person is not None:
            keys = [key for batch in batches for key in batch.column(self._person).to_pylist()]
        return out if self._kept is None else np.take(out, self._kept, axis=1), targets, keys

    def _read_outcomes(self, reader: OutcomeReader, batches: Sequence[pa.RecordBatch]) -> Any:
        columns = {
            name: np.concatenate([self._outcome(reader, name, batch.column(name)) for batch in batches])
            for name in reader.names
        }
        return reader.outcomes(columns)

    def _outcome(self, reader: OutcomeReader, name: str, values: Any) -> NDArray[Any]:
        targets = reader.column(name, values)
        if self._target_found and name == self._target.name:  # type: ignore[union-attr]
            numbers = target_numbers(self._target, self._fill, values, self._notation)  # type: ignore[arg-type]
            targets[np.isinf(numbers)] = np.nan
        return targets


class SparsePart:
    """The features at some places, for libsvm tables; parameters as for :class:`DensePart`."""

    names = (LABEL, _INDICES, _VALUES)

    def __init__(
        self, bounds: TableBounds, columns: IntArray | None, invalid: str, *, with_target: bool = True
    ) -> None:
        order = bounds.order or ()
        chosen = order if columns is None else tuple(order[at] for at in columns.tolist())
        self._target, self._fill, self._invalid = bounds.target, bounds.missing.get(bounds.target.name), invalid
        self._with_target = with_target
        self._encoding = SparseEncoding(replace(bounds, order=chosen), invalid=invalid) if chosen else None

    def encode(self, batches: Sequence[pa.RecordBatch]) -> EncodedPart:
        """Encode batches of :func:`sparse_batch`."""
        parts, targets = [], []
        for batch in batches:
            labels, indices, values = (batch.column(name) for name in self.names)
            if self._with_target:
                targets.append(numeric_target(self._target, self._fill, labels.to_numpy(), invalid=self._invalid))
            if self._encoding is None:
                parts.append(sp.csr_matrix((batch.num_rows, 0)))
                continue
            starts = indices.offsets.to_numpy()
            inside = slice(starts[0], starts[-1])
            entries = values.values.to_numpy()[inside], indices.values.to_numpy()[inside], starts - starts[0]
            width = int(entries[1].max(initial=0)) + 1
            parts.append(self._encoding.encode(sp.csr_matrix(entries, shape=(batch.num_rows, width))))
        return sp.vstack(parts, format="csr"), np.concatenate(targets) if self._with_target else None, None


def sparse_batch(rows: Any, labels: NDArray[Any]) -> pa.RecordBatch:
    """Rows of a libsvm file as a record batch: the label, and lists of indices and of values."""
    import pyarrow as pa

    starts = pa.array(rows.indptr, pa.int32())
    columns = [
        pa.array(labels),
        pa.ListArray.from_arrays(starts, pa.array(rows.indices, pa.int32())),
        pa.ListArray.from_arrays(starts, pa.array(rows.data)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(SparsePart.names))


# ---- Row groups of Parquet files and record batches of Arrow files, which are read one by one.

_READ_SIZE = 1 << 16
"""Bytes of a column that are read from a Parquet file at a time; without it the column of a row group is read whole."""

_PAGE_MEMORY = 3 << 20
"""Bytes that a Parquet file has in memory for each column while a row group is read: a page, packed and unpacked, and a
list of distinct values. Writers make pages and lists of 1 MiB."""


def file_stamp(file: TableFile) -> tuple[int, int, int]:
    """Size, time of the last change and number of a file, as it is now."""
    found = without_cells(file, lambda: os.stat(file.path))
    return found.st_size, found.st_mtime_ns, found.st_ino


def check_stamp(file: TableFile, stamp: tuple[int, int, int]) -> None:
    """Raise if a file has changed since its stamp was taken."""
    if file_stamp(file) != stamp:
        raise DataError(changed_file(file.name))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A Parquet or Arrow file, its stamp when it was opened, and the rows of its row groups or record batches."""

    file: TableFile
    stamp: tuple[int, int, int]
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
    stamp = file_stamp(file)
    rows = without_cells(file, lambda: (_parquet_group_rows if file.format == "parquet" else _arrow_group_rows)(file))
    return None if rows is None else StoredFile(file, stamp, rows)


def _parquet_group_rows(file: TableFile) -> tuple[int, ...]:
    from pyarrow import parquet

    facts = parquet.read_metadata(file.path)
    return tuple(facts.row_group(i).num_rows for i in range(facts.num_row_groups))


def _arrow_group_rows(file: TableFile) -> tuple[int, ...] | None:
    with open_ipc(file) as (reader, is_stream):
        if is_stream:
            return None
        # The number of rows is known from any column: the first one whose cells have a fixed size is read soonest.
        kinds = [kind_of(kind) for kind in reader.schema.types]
        at = next((i for i, kind in enumerate(kinds) if kind in ("number", "boolean", "date")), 0)
    with open_ipc(file, [at]) as (reader, _):
        return tuple(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))


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
        self._cursor: tuple[Any, Cursor] | None = None

    def read(self, rows: RowRange, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Read columns of a range, in batches."""
        stored = self._files[rows.place]
        check_stamp(stored.file, stored.stamp)
        return without_cells(stored.file, lambda: self._read(rows, list(names)), names)

    def _read(self, rows: RowRange, names: list[str]) -> list[pa.RecordBatch]:
        key = rows.place, rows.groups, names
        # Dropped first: it holds what it has read ahead.
        kept, self._cursor = self._cursor, None
        if kept is not None and kept[0] == key and kept[1].position <= rows.skip:
            cursor = kept[1]
        else:
            cursor = Cursor(self._batches(rows, names))
        found = cursor.take(rows.skip, rows.n_rows)
        if cursor.position < sum(self._files[rows.place].group_rows[group] for group in rows.groups):
            self._cursor = key, cursor
        return found

    def _batches(self, rows: RowRange, names: list[str]) -> Iterator[pa.RecordBatch]:
        file = self._files[rows.place].file
        if file.format != "parquet":
            return ipc_batches(file, names, rows.groups)
        from pyarrow import parquet

        if self._parquet is None or self._parquet[0] != rows.place:
            # Arrow would read all columns of a row group into memory before it decodes the first.
            options = {"pre_buffer": False, "buffer_size": _READ_SIZE}
            self._parquet = rows.place, parquet.ParquetFile(file.path, read_dictionary=self._texts, **options)
        return parquet_batches(self._parquet[1], names, rows.n_rows, row_groups=list(rows.groups))


class Cursor:
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


# ---- A copy of a text table in Arrow's format, in a private temporary folder, for tables that are read many times.

_PACKED_RATIO = 4
"""Typical size of a text table against that of its gzip file."""


class _NoSpaceError(DataError):
    """There is no space for temporary files, whatever the table holds."""


class Spool:
    """A private temporary folder with parts of a table as Arrow files.

    The folder belongs to this process and this user. It is removed by :meth:`close`, when the object is collected, and
    when the process ends by itself or by an exception; not when the system ends the process. Free space for as many
    bytes as are ``needed`` for the table ``name`` is checked.
    """

    def __init__(self, name: str, needed: int) -> None:
        self._name = name
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

    @classmethod
    def of_files(cls, files: Sequence[TableFile]) -> Spool:
        """A folder for the rows of some files."""
        sizes = (file.path.stat().st_size * (_PACKED_RATIO if file.is_packed else 1) for file in files)
        return cls(files[0].name, sum(sizes))

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
        self._add(path, (table.num_rows,))

    def write_groups(self, pieces: Iterable[tuple[int, pa.RecordBatch]]) -> list[tuple[int, ...]]:
        """Write pieces to files by their number and types; return the places of the files of each number."""
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
            places.setdefault(number, []).append(len(self.files))
            self._add(path, tuple(lengths))
        return [tuple(places[number]) for number in sorted(places)]

    def _add(self, path: Path, group_rows: tuple[int, ...]) -> None:
        file = TableFile(path, "arrow", ",", gzipped=False)
        self.files.append(StoredFile(file, file_stamp(file), group_rows))

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


def file_batches(
    files: Sequence[TableFile],
    schema: TableSchema,
    selection: ColumnSelection,
    progress: Callable[[float], None] | None = None,
    *,
    whole: bool = False,
) -> Generator[pa.RecordBatch, None, None]:
    """Read files from the first row to the last; tell ``progress`` how much of a text table is read, from 0 to 1.

    ``whole``, for a table that is held in memory, refuses a file of text that is larger than memory.
    """
    for file in files:
        stamp = file_stamp(file)
        stream = without_cells(file, partial(file.open, whole=whole)) if file.is_stream else None
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
        check_stamp(file, stamp)


def row_groups(
    files: Sequence[TableFile],
    schema: TableSchema,
    selection: ColumnSelection,
    most: int,
    progress: Callable[[float], None] | None,
    *,
    whole: bool,
) -> Generator[list[pa.RecordBatch], None, None]:
    """Read a table from the first row to the last, in groups of ``most`` rows; those of a libsvm file are its blocks.

    Such a file has a bounded number of entries in a block, which a number of rows has not.
    """
    if not schema.sparse:
        selection = infer_types(files[0], schema, selection)
    with closing(file_batches(files, schema, selection, progress, whole=whole)) as batches:
        yield from ([batch] for batch in batches) if schema.sparse else _regroup(batches, most)


# ---- Tables on disk that are read one partition at a time, in bounded memory or held in memory.

_CELLS = 1 << 20
"""Largest number of cells of a partition: 8 MiB of doubles. Smaller ones are slower, larger ones hardly faster."""

_LEAST_MEMORY = 1 << 26
_MEMORY_PER_CELL = 1024
"""Bytes of the memory limit for one cell of a partition, for its copies on the way through a fit in a few threads."""

_MOST_FILES = 256
"""Files that are written at a time, where rows of persons are gathered; half of what the system allows, if less."""


def _most_files() -> int:
    """How many files may be written at a time: a fact about the system, so that no table is refused for its rows."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ModuleNotFoundError:  # not on every system
        return _MOST_FILES
    allowed, _ = getrlimit(RLIMIT_NOFILE)
    return _MOST_FILES if allowed == RLIM_INFINITY else max(1, min(_MOST_FILES, allowed // 2))


class TablePartitions:
    """A table on disk, of which one partition is in memory at a time; made by :func:`open_partitions`.

    Partitions one after the other are what :func:`~taciturn.tables.read_table` returns. The object holds public facts
    and the places of rows in files, no cell unless it was opened in memory, and can be pickled; a copy reads the same
    files.

    **Privacy.** What it reads is as sensitive as the table. Cells that cannot be used are refused as in
    :func:`~taciturn.tables.read_table`, when they are read; :meth:`check` finds all of them before anything is
    released.

    Attributes
    ----------
    bounds : TableBounds
        Bounds of the columns, resolved for the table.
    schema : TableSchema
        Names and kinds of the columns.
    invalid : {"raise", "null"}
        What happens to cells that cannot be used.
    n_rows, n_features, names
        The shape of the features, and their names.
    offsets : ndarray of int64
        The first row of each partition.
    sparse : bool
        Whether features are CSR matrices, which those of a libsvm file are.
    assumptions : tuple of str
        What every certificate of a release from the table has to assume, in words.
    has_row_order : bool
        Whether the rows have an order that lasts, which those of files do.
    """

    has_row_order = True

    def __init__(
        self,
        files: Sequence[StoredFile],
        partitions: Sequence[tuple[RowRange, ...]],
        bounds: TableBounds,
        schema: TableSchema,
        invalid: str,
        spool: Spool | None = None,
        held: list[list[pa.RecordBatch]] | None = None,
    ) -> None:
        self._files, self._partitions = tuple(files), tuple(partitions)
        self.bounds, self.schema, self.invalid = bounds, schema, invalid
        self.names = bounds.feature_names
        self.n_features = len(self.names)
        counts = [sum(rows.n_rows for rows in ranges) for ranges in partitions]
        self.n_rows = sum(counts)
        self.offsets: IntArray = np.array([0, *accumulate(counts)][:-1], dtype=np.int64)
        self.sparse = schema.sparse
        self.assumptions = file_assumptions(invalid, bounds.layout, sparse=schema.sparse, terms=bounds.terms)
        # Rows that were copied are checked on the way.
        self._checked = spool is not None
        self._spool, self._held = spool, held
        self._found: tuple[str, ...] = ()
        self._scattered = False
        self._opened = threading.local()
        self._part: tuple[bytes | None, DensePart | SparsePart] | None = None

    def __repr__(self) -> str:
        return f"TablePartitions({self.n_features} features, target={self.bounds.target.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Open files stay with their process, and so does the right to remove the copy of a table.
        return self.__dict__ | {"_opened": None, "_spool": None, "_part": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._opened = threading.local()

    def __enter__(self) -> TablePartitions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy of a text table; the other files stay."""
        self._opened = threading.local()
        if self._spool is not None:
            self._spool.close()

    @property
    def is_copy(self) -> bool:
        """Whether partitions lie in a temporary copy, since the table can be read from its beginning only."""
        return self._spool is not None

    def read(self, index: int, columns: IntArray | None = None) -> EncodedPart:
        """Read one partition.

        Parameters
        ----------
        index : int
            Number of the partition.
        columns : ndarray of int, default=None
            Places of the features to read, in increasing order: only the columns of the table that they come from are
            read. None: all. An empty array: the target alone.

        Returns
        -------
        X, y : ndarray, or CSR matrix and ndarray for a libsvm file
            The features, as :func:`~taciturn.tables.read_table` encodes them, and numbers or labels.
        keys : list or None
            The keys of the persons that the rows are about; None where the bounds name no column of keys.
        """
        part = self._encoding(columns)
        return part.encode(self._batches(index, part.names))

    def read_all(self, *, release: bool = False) -> EncodedPart:
        """All partitions one after the other; raise everything that is wrong with the columns of the table.

        A table that is larger than the memory of the machine is refused. With ``release``, rows that are held in memory
        are given up as they are encoded, and the table cannot be read again.
        """
        part, parts, X = self._encoding(None), list[EncodedPart](), None
        try:
            if isinstance(part, DensePart):
                X = _zeros(self.n_rows, self.n_features)
            for index, start in enumerate(self.offsets.tolist()):
                batches = self._batches(index, part.names)
                into = {} if X is None else {"out": X[start:]}
                parts.append(part.encode(batches, **into))
                if release and self._held is not None:
                    self._held[index] = []
        except DataError as error:
            refused = error
        else:
            self._checked, person, keys = True, self.bounds.person, None
            if person is not None:
                keys = NamedKeys((key for _, _, some in parts for key in some or ()), person)
            whole = sp.vstack([part for part, _, _ in parts], format="csr") if X is None else X
            outcomes = Outcomes.joined([Outcomes.of(y) for _, y, _ in parts])
            return whole, outcomes if outcomes.given else outcomes.y, keys
        self.raise_problems()
        raise refused

    def read_numbers(self, index: int, names: Sequence[str]) -> FloatArray:
        """Read columns of numbers of one partition, neither clipped nor scaled, one column for each of ``names``.

        The names are columns that the bounds state as numbers or as days since a date, or the target of a regression.
        Missing cells have the values that the bounds state for them. With ``invalid="raise"`` another cell that is no
        finite number refuses the table, unless its column may lack cells (``{indicator = true}``).
        """
        numbers = self._numbers(index, names)
        if self.invalid == "raise":
            refuse_columns(unusable_columns(names, numbers, self.bounds))
        return numbers

    def _numbers(self, index: int, names: Sequence[str]) -> FloatArray:
        if self.sparse:
            raise refusal("table", self._name, "a table with named columns", "state the bounds of a libsvm file")
        target = self.bounds.target
        encoding = Encoding(
            replace(self.bounds, order=tuple(name for name in names if name != target.name), terms=()),
            invalid=self.invalid,
        )

        def numbers(name: str, values: Any) -> FloatArray:
            if name == target.name:
                return target_numbers(target, self.bounds.missing.get(name), values, self.bounds.notation(name))
            return encoding.numbers(name, values)

        batches = self._batches(index, list(names))
        columns = [np.concatenate([numbers(name, batch.column(name)) for batch in batches]) for name in names]
        return np.column_stack(columns).astype(np.float64, copy=False)

    def with_bounds(self, bounds: TableBounds, found: Sequence[str] = ()) -> TablePartitions:
        """The same partitions by other bounds of the same columns, such as those that were found privately.

        ``found`` are columns whose bounds were found without the records with an infinite number in them, which
        ``invalid="null"`` made null: these cells are NaN from now on.
        """
        if bounds.order != self.bounds.order or selection_of(bounds, self.invalid) != selection_of(
            self.bounds, self.invalid
        ):
            raise refusal("bounds", bounds, "the columns and types that the table was opened with", "open it again")
        other = self._with(self._partitions, bounds)
        other._found = tuple(found)
        return other

    def cut_between_persons(self) -> TablePartitions:
        """The same table with partitions that end where the rows of a person do; reads the keys of the persons.

        Rows of a person that stand together in the table then lie in one partition. It may be larger than others.
        """
        partitions: list[tuple[RowRange, ...]] = []
        last: str | None = None
        seen = set[str | None]()
        scattered = False
        for index, ranges in enumerate(self._partitions):
            keys = [canonical_key(key) for key in self.read(index, np.zeros(0, dtype=np.int64))[2] or ()]
            n_same = 0
            while last is not None and n_same < len(keys) and keys[n_same] == last:
                n_same += 1
            same, others = split_ranges(ranges, n_same)
            if same:
                partitions[-1] += same
            if others:
                found = {*keys[n_same:]} - {None}
                scattered = scattered or not seen.isdisjoint(found)
                seen |= found
                partitions.append(others)
                last = keys[-1]
        other = self._with(partitions, self.bounds)
        other._scattered = scattered
        return other

    def gather_persons(self) -> TablePartitions:
        """The same table with all rows of each person in one partition, wherever they are in the table.

        Partitions are cut between persons. If that is not enough, the rows are copied once to a private temporary
        folder, each to the file that a digest of its key names. What was wrong with a cell is found on the way.
        """
        cut = self.cut_between_persons()
        return cut._gathered() if cut._scattered else cut

    def _gathered(self) -> TablePartitions:
        part = self._encoding(None)
        spool = self._new_spool()
        n_files = min(len(self._partitions), _most_files())

        def pieces() -> Iterator[tuple[int, pa.RecordBatch]]:
            for index in range(len(self._partitions)):
                batches = self._batches(index, part.names)
                part.encode(batches)
                for batch in batches:
                    forms = map(canonical_key, batch.column(len(part.names) - 1).to_pylist())
                    # A row without a key is about nobody, and may be anywhere.
                    files = np.array(
                        [index % n_files if form is None else _digest(form) % n_files for form in forms], dtype=np.intp
                    )
                    for file in np.unique(files).tolist():
                        yield file, batch.take(np.flatnonzero(files == file))

        try:
            places = spool.write_groups(pieces())
        except DataError as error:
            refused = error
            spool.close()
        except BaseException:
            spool.close()
            raise
        else:
            partitions = [
                tuple(RowRange(at, range(len(spool.files[at].group_rows)), 0, sum(spool.files[at].group_rows))
                      for at in stored)
                for stored in places
            ]  # fmt: skip
            gathered = TablePartitions(spool.files, partitions, self.bounds, self.schema, self.invalid, spool)
            gathered._found = self._found
            self.close()
            return gathered
        self.raise_problems()
        raise refused

    def _new_spool(self) -> Spool:
        return Spool.of_files([stored.file for stored in self._files])

    def _with(self, partitions: Sequence[tuple[RowRange, ...]], bounds: TableBounds) -> TablePartitions:
        other = self._like(partitions, bounds)
        other._checked, other._found = self._checked, self._found
        return other

    def _like(self, partitions: Sequence[tuple[RowRange, ...]], bounds: TableBounds) -> TablePartitions:
        return TablePartitions(self._files, partitions, bounds, self.schema, self.invalid, self._spool, self._held)

    def check(self, progress: Callable[[float], None] | None = None, to_find: Sequence[str] = ()) -> None:
        """Read everything once, unless that was done, and raise what :func:`~taciturn.tables.read_table` would raise.

        A fit reads some columns early and others late; without this a cell that cannot be used would be found when
        part of the budget is spent. ``progress`` is told how much is read, from 0 to 1. The columns ``to_find``, whose
        bounds are to be found, are checked as :meth:`read_numbers` does.
        """
        to_find = to_find if self.invalid == "raise" else ()
        unusable, refused = set[str](), None
        try:
            for index in range(0 if self._checked and not to_find else self.offsets.size):
                if not self._checked:
                    self.read(index)
                if to_find:
                    unusable |= {*unusable_columns(to_find, self._numbers(index, to_find), self.bounds)}
                if progress is not None:
                    progress((index + 1) / self.offsets.size)
        except DataError as error:
            refused = error
        if refused is not None:
            self.raise_problems()
            raise refused
        self._checked = True
        refuse_columns([name for name in to_find if name in unusable])

    def raise_problems(self) -> None:
        """After a refusal, raise everything that is wrong with the columns, unless they were checked before."""
        if not self._checked:
            raise_problems([stored.file for stored in self._files], self.schema, self.bounds, invalid=self.invalid)

    @property
    def _name(self) -> str:
        return self._files[0].file.path.name

    def _encoding(self, columns: IntArray | None) -> DensePart | SparsePart:
        """The encoding of some features; the last one is kept, as partitions are asked for one after the other."""
        key = None if columns is None else columns.tobytes()
        kept = self._part
        if kept is None or kept[0] != key:
            kept = self._part = (
                key,
                (
                    SparsePart(self.bounds, columns, self.invalid)
                    if self.sparse
                    else DensePart(self.bounds, columns, self.invalid, self._found)
                ),
            )
        return kept[1]

    def _batches(self, index: int, names: Sequence[str]) -> list[pa.RecordBatch]:
        if self._spool is not None and self._spool.closed:
            raise DataError("table: expected an open table, got one that was closed; open it again.")
        if self._held is not None:
            return [batch.select(names) for batch in self._held[index]]
        return [batch for rows in self._partitions[index] for batch in self._read_range(rows, names)]

    def _read_range(self, rows: RowRange, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Columns of a range of rows, in batches."""
        if not hasattr(self._opened, "reader"):
            kinds = dict(zip(self.schema.names, self.schema.kinds, strict=True))
            asked = selection_of(self.bounds, self.invalid).types
            texts = [name for name, kind in asked.items() if kind == "text" and kinds.get(name) == "category"]
            self._opened.reader = GroupReader(self._files, texts)
        read: list[pa.RecordBatch] = self._opened.reader.read(rows, names)
        return read


def check_memory(memory: int) -> int:
    """The bytes of memory for a table in partitions; raise where they do not do."""
    return check_integer(_LEAST_MEMORY, memory=memory)


def most_rows(bounds: TableBounds, memory: int | None) -> int:
    """Rows of a partition at the most, in so many bytes of memory; None for a table that is held as a whole."""
    n_cells = _CELLS if memory is None else min(_CELLS, memory // _MEMORY_PER_CELL)
    return max(1, n_cells // max(1, len(bounds.feature_names)))


def open_partitions(
    path: str | os.PathLike[str],
    bounds: TableBounds,
    *,
    schema: TableSchema | None = None,
    invalid: str = "raise",
    memory: int | None = None,
    progress: Callable[[float], None] | None = None,
    in_memory: bool = False,
    with_keys: bool = True,
) -> TablePartitions:
    r"""Open a table on disk to read it in partitions.

    A partition has at most a million cells, or fewer by ``memory``: neighbouring row groups of Parquet files and record
    batches of Arrow files are merged up to that, and larger ones are cut into ranges of rows. Other files and Arrow
    streams, which can be read from the beginning only, are copied once to Arrow files in a private temporary folder,
    which is removed when the table is closed or forgotten and at the end of the process. The copy holds the columns
    that the bounds name.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`~taciturn.tables.read_schema`, or a folder of Parquet or of Arrow files with the same
        columns, which are read in the order of their names.
    bounds : TableBounds
        Public bounds of the columns, and the target.
    schema : TableSchema, default=None
        The schema of this table, for which the bounds were resolved. None: it is read, and the bounds are resolved.
    invalid : {"raise", "null"}, default="raise"
        As in :func:`~taciturn.tables.read_table`.
    memory : int, default=None
        Bytes of memory that a program which reads the table should need at the most; partitions become smaller with it.
        None: that of the machine.
    progress : callable, default=None
        Told how much of a text table is copied, from 0 to 1.
    in_memory : bool, default=False
        Whether rows that would be copied to files are held in memory, for a table that is read as a whole.
    with_keys : bool, default=True
        Whether keys of persons, weights and exposures are read, where the bounds name their columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from taciturn.tables import Column, TableBounds, Target, open_partitions
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "table.csv"
    >>> _ = path.write_text("y,x,z\n1,0,3\n2,5,4\n3,10,9\n")
    >>> bounds = TableBounds(Target("y", 0, 5), {"x": Column("number", 0, 10), "z": Column("number", 0, 10)})
    >>> with open_partitions(path, bounds) as table:
    ...     table.n_rows, table.names, table.offsets
    ...     table.read(0, np.array([0]))[0].ravel()
    (3, ['x', 'z'], array([0]))
    array([-1.,  0.,  1.])
    >>> folder.cleanup()
    """
    check_target(bounds, bounds.target.name, invalid)
    memory = machine_memory() if memory is None else memory
    if not in_memory:
        check_memory(memory)
    # A worker may have another folder to start from.
    files = tuple(replace(file, path=file.path.absolute()) for file in table_files(path, bounds.layout))
    if schema is None or bounds.order is None:
        schema = files_schema(files) if schema is None else schema
        bounds = bounds.for_table(schema)
    bounds = bounds if with_keys else replace(bounds, person=None, weight=None, exposure=None)
    # The first number of a line is the target of a libsvm file, and no other.
    check_present(bounds.target.name, TableSchema((LABEL,), ("number",), sparse=True) if schema.sparse else schema)
    check_has_keys(bounds, schema)
    for name in bounds.beside:
        check_present(name, schema)
    most = most_rows(bounds, None if in_memory else memory)
    found = [store_facts(file) if file.has_groups else None for file in files]
    stored = [facts for facts in found if facts is not None]
    if len(stored) == len(files):
        if bounds.person is None and not in_memory:
            # How many rows a person has is private, and must not refuse a table.
            _check_groups(stored, len(selection_of(bounds, invalid).types), memory)
        table = TablePartitions(stored, cut_rows(stored, most), bounds, schema, invalid)
    else:
        table = _copied(files, schema, bounds, invalid, most, progress, in_memory=in_memory)
    if not table.n_rows:
        raise DataError(no_rows(files[0].name))
    return table


def _copied(
    files: tuple[TableFile, ...],
    schema: TableSchema,
    bounds: TableBounds,
    invalid: str,
    most: int,
    progress: Callable[[float], None] | None,
    *,
    in_memory: bool,
) -> TablePartitions:
    """Copy a table that can only be read from the beginning, to memory or, with every cell checked, to files."""
    part = SparsePart(bounds, None, invalid) if schema.sparse else DensePart(bounds, None, invalid)
    spool = None if in_memory else Spool.of_files(files)
    held: list[list[pa.RecordBatch]] = []
    try:
        groups = row_groups(files, schema, selection_of(bounds, invalid), most, progress, whole=in_memory)
        with closing(groups):
            for rows in groups:
                if spool is None:
                    held.append(rows)
                else:
                    part.encode(rows)
                    spool.write(rows)
    except BaseException as error:
        if spool is not None:
            spool.close()
        if not isinstance(error, DataError) or isinstance(error, _NoSpaceError):
            raise
        refused = error
    else:
        if spool is not None:
            ranges = [(RowRange(place, range(1), 0, *facts.group_rows),) for place, facts in enumerate(spool.files)]
            return TablePartitions(spool.files, ranges, bounds, schema, invalid, spool)
        stamps = [StoredFile(file, file_stamp(file), ()) for file in files]
        counts = [sum(batch.num_rows for batch in rows) for rows in held]
        ranges = [(RowRange(0, range(0), 0, n_rows),) for n_rows in counts]
        return TablePartitions(stamps, ranges, bounds, schema, invalid, held=held)
    raise_problems(files, schema, bounds, invalid=invalid)
    raise refused


def _zeros(n_rows: int, n_features: int) -> FloatArray:
    if 8 * n_rows * n_features <= machine_memory():
        try:
            return np.zeros((n_rows, n_features))
        except (MemoryError, ValueError):
            pass
    # Without the number of rows, which may be private.
    raise DataError(larger_than_memory("table"))


def _digest(form: str) -> int:
    return zlib.crc32(form.encode("utf-8", "surrogatepass"))


def selection_of(bounds: TableBounds, invalid: str) -> ColumnSelection:
    """The columns of a table that partitions hold: features, target and keys of persons."""
    chosen = select_columns(bounds, with_target=True, invalid=invalid)
    if bounds.person is None:
        return chosen
    types, listed = {bounds.person: "text"}, {bounds.person: frozenset[str]()}
    return replace(chosen, types=dict(chosen.types) | types, listed=dict(chosen.listed) | listed)


def _check_groups(stored: Sequence[StoredFile], n_columns: int, memory: int) -> None:
    """Raise if a file has a row group or a record batch that cannot be read in so much memory."""
    for facts in stored:
        if n_columns * facts.column_memory > memory // 2:
            raise DataError(
                f"{facts.file.name}: expected row groups or record batches that can be read in half of the memory, got "
                "a larger one; write the table in groups of fewer rows, or allow more memory."
            )


class NumberPartitions:
    """Columns ``names`` of numbers of a table in partitions, neither clipped nor scaled, and without a target.

    Where cells of a column may be missing without a value in their place (``{indicator = true}``), a missing one is NaN
    and takes nothing else out, and all numbers of a record with another cell that cannot be used are NaN. It can be
    pickled and holds no cell. What it reads is as sensitive as the table.
    """

    sparse = False

    def __init__(self, table: TablePartitions, names: Sequence[str]) -> None:
        self._table, self.bounds = table, table.bounds
        self.names = list(names)
        self.n_rows, self.n_features = table.n_rows, len(self.names)
        self.offsets: IntArray = table.offsets
        self.assumptions = table.assumptions
        fills = [table.bounds.fill_of(name) for name in self.names]
        self._lacking = [fill is not None and fill.value is None for fill in fills]

    def read(self, index: int, columns: IndexArray | None = None) -> tuple[FloatArray, None, list[Any] | None]:
        """Read the numbers of one partition, all columns or some by their places, and the keys of its persons."""
        names = self.names if columns is None else [self.names[place] for place in columns]
        keys = None
        if self._table.bounds.person is not None or not names:
            _, y, keys = self._table.read(index, np.zeros(0, dtype=np.intp))
            if not names:
                return np.zeros((len(y), 0)), None, keys
        if not any(self._lacking):
            return self._table.read_numbers(index, names), None, keys
        numbers = self._table.read_numbers(index, self.names)
        wrong = np.where(self._lacking, np.isinf(numbers), ~np.isfinite(numbers))
        numbers[wrong.any(axis=1)] = np.nan
        return numbers if columns is None else numbers[:, columns], None, keys

    def read_all(self) -> FloatArray:
        """The numbers of all partitions, one after the other."""
        return np.vstack([self.read(index)[0] for index in range(self.offsets.size)])
