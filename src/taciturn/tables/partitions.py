"""Tables on disk that are read one partition at a time, in bounded memory."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.validation import check_integer
from taciturn.data.persons import canonical_key
from taciturn.tables.arrow_tables import ColumnSelection
from taciturn.tables.bounds import TableBounds
from taciturn.tables.encoding import Encoding, target_numbers
from taciturn.tables.folders import table_files
from taciturn.tables.part_encoding import DensePart, EncodedPart, SparsePart
from taciturn.tables.reading import (
    check_has_keys,
    check_present,
    check_target,
    files_schema,
    no_rows,
    raise_problems,
    refuse_columns,
    select_columns,
    unusable_columns,
)
from taciturn.tables.schema import LABEL, TableSchema, file_assumptions
from taciturn.tables.spool import Spool, copy_table
from taciturn.tables.stored import GroupReader, RowRange, StoredFile, cut_rows, split_ranges, store_facts
from taciturn.tables.streams import machine_memory
from taciturn.tables.words import refusal

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TablePartitions", "open_partitions"]

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

    Partitions one after the other are what :func:`~taciturn.tables.read_table` returns, to the bit. The object holds
    public facts and the places of rows in files, no cell, and can be pickled; a copy reads the same files.

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
    n_rows, n_features : int
        The shape of the features.
    names : list of str
        Names of the features.
    offsets : ndarray of int64
        The first row of each partition.
    sparse : bool
        Whether features are CSR matrices, which those of a libsvm file are.
    assumptions : tuple of str
        What every certificate of a release from the table has to assume, in words.
    """

    def __init__(
        self,
        files: Sequence[StoredFile],
        partitions: Sequence[tuple[RowRange, ...]],
        bounds: TableBounds,
        schema: TableSchema,
        invalid: str,
        spool: Spool | None = None,
    ) -> None:
        self._files, self._partitions = tuple(files), tuple(partitions)
        self.bounds, self.schema, self.invalid = bounds, schema, invalid
        self.names = bounds.feature_names
        self.n_features = len(self.names)
        counts = [sum(rows.n_rows for rows in ranges) for ranges in partitions]
        self.n_rows = sum(counts)
        self.offsets: IntArray = np.array([0, *accumulate(counts)][:-1], dtype=np.int64)
        self.sparse = schema.sparse
        self.assumptions = file_assumptions(invalid, bounds.layout, sparse=schema.sparse)
        # Rows that were copied are checked on the way.
        self._checked = spool is not None
        self._spool = spool
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
        X : ndarray, or CSR matrix for a libsvm file
            The features, as :func:`~taciturn.tables.read_table` encodes them.
        y : ndarray
            Numbers or labels.
        keys : list or None
            The keys of the persons that the rows are about; None where the bounds name no column of keys.
        """
        part = self._encoding(columns)
        return part.encode(self._batches(index, part.names))

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
            replace(self.bounds, order=tuple(name for name in names if name != target.name)), invalid=self.invalid
        )

        def numbers(name: str, values: Any) -> FloatArray:
            if name == target.name:
                return target_numbers(target, self.bounds.missing.get(name), values)
            return encoding.numbers(name, values)

        batches = self._batches(index, list(names))
        columns = [np.concatenate([numbers(name, batch.column(name)) for batch in batches]) for name in names]
        return np.column_stack(columns).astype(np.float64, copy=False)

    def with_bounds(self, bounds: TableBounds, found: Sequence[str] = ()) -> TablePartitions:
        """The same partitions by other bounds of the same columns, such as those that were found privately.

        ``found`` are columns whose bounds were found without the records with an infinite number in them, which
        ``invalid="null"`` made null: these cells are NaN from now on.
        """
        if bounds.order != self.bounds.order or _selection(bounds, self.invalid) != _selection(
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
        spool = Spool([stored.file for stored in self._files])
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

    def _with(self, partitions: Sequence[tuple[RowRange, ...]], bounds: TableBounds) -> TablePartitions:
        other = TablePartitions(self._files, partitions, bounds, self.schema, self.invalid, self._spool)
        other._checked, other._found = self._checked, self._found
        return other

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
        if not hasattr(self._opened, "reader"):
            kinds = dict(zip(self.schema.names, self.schema.kinds, strict=True))
            asked = _selection(self.bounds, self.invalid).types
            texts = [name for name, kind in asked.items() if kind == "text" and kinds.get(name) == "category"]
            self._opened.reader = GroupReader(self._files, texts)
        return [batch for rows in self._partitions[index] for batch in self._opened.reader.read(rows, names)]


def open_partitions(
    path: str | os.PathLike[str],
    bounds: TableBounds,
    *,
    schema: TableSchema | None = None,
    invalid: str = "raise",
    memory: int | None = None,
    progress: Callable[[float], None] | None = None,
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
    check_integer(_LEAST_MEMORY, memory=memory)
    # A worker may have another folder to start from.
    files = tuple(replace(file, path=file.path.absolute()) for file in table_files(path, bounds.layout))
    if schema is None or bounds.order is None:
        schema = files_schema(files) if schema is None else schema
        bounds = bounds.for_table(schema)
    # The first number of a line is the target of a libsvm file, and no other.
    check_present(bounds.target.name, TableSchema((LABEL,), ("number",), sparse=True) if schema.sparse else schema)
    check_has_keys(bounds.person, schema)
    n_cells = min(_CELLS, memory // _MEMORY_PER_CELL)
    most = max(1, n_cells // max(1, len(bounds.feature_names)))
    found = [store_facts(file) if file.has_groups else None for file in files]
    stored = [facts for facts in found if facts is not None]
    spool = None
    if len(stored) == len(files):
        if bounds.person is None:
            # How many rows a person has is private, and must not refuse a table.
            _check_groups(stored, len(_selection(bounds, invalid).types), memory)
        partitions = cut_rows(stored, most)
    else:
        spool = copy_table(files, schema, bounds, _selection(bounds, invalid), most, progress)
        stored = spool.files
        partitions = [(RowRange(place, range(1), 0, *facts.group_rows),) for place, facts in enumerate(stored)]
    if not partitions:
        raise DataError(no_rows(files[0].name))
    return TablePartitions(stored, partitions, bounds, schema, invalid, spool)


def _digest(form: str) -> int:
    return zlib.crc32(form.encode("utf-8", "surrogatepass"))


def _selection(bounds: TableBounds, invalid: str) -> ColumnSelection:
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
