"""Sources that read partitions of a table: streams, files and open tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import BoolArray, IndexArray, IntArray, Invalid, check_choice, check_integer
from taciturn.data.persons import PERSON_WEIGHT, KeyForms, key_forms
from taciturn.data.records import Outcomes
from taciturn.engines.interface import (
    Block,
    BlockBuilder,
    OpenTable,
    Partition,
    PartitionFacts,
    PartitionReader,
    Refusal,
    Task,
    accepted,
    add_partitions,
    answer_of,
    check_task,
    quietly,
)
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import TableSchema
from taciturn.tables.databases import is_database, open_database
from taciturn.tables.formats import machine_memory
from taciturn.tables.partitions import NumberPartitions, TablePartitions, open_partitions

# ---- Sources over partitions that lie somewhere else, whatever runs them.


@dataclass(frozen=True, slots=True)
class _Admission:
    """Nothing of a block but that it was made, which takes all features."""

    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        return np.zeros(1, dtype=np.int64)


class PartitionedSource:
    """A source whose partitions are run by an engine: derive from it and say how in :meth:`each`.

    The driver holds no records, only what the engine returns: exact sums, which are as sensitive as the records. Noise
    is drawn by the driver, after the sum. ``partitions`` make the blocks; ``facts`` are what the driver knows.
    """

    def __init__(self, partitions: Sequence[Partition], facts: PartitionFacts) -> None:
        self.partitions, self.facts = tuple(partitions), facts

    def each(self, function: Task) -> Iterable[Any]:
        """What ``answer_of(function, partition.load())`` is for each partition, in any order and each of them once.

        Partitions and functions can be pickled. An engine may keep blocks where they were made, and may make them
        again where they were lost.
        """
        raise NotImplementedError

    @property
    def n_records(self) -> int | None:
        """The public number of records, or None under add-remove."""
        return self.facts.n_records

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.facts.n_features

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition."""
        offsets: IntArray = np.cumsum(self.facts.lengths) - self.facts.lengths
        return offsets

    @property
    def rank_weight(self) -> int:
        """The integer that stands for one record in counts of values: 1, or what the rows of a person share."""
        return 1 if self.facts.n_persons is None else PERSON_WEIGHT

    @property
    def n_slots(self) -> int:
        """Rows of the table, null records included, or persons."""
        return int(self.facts.lengths.sum()) if self.facts.n_persons is None else self.facts.n_persons

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""
        check_task(task)
        return self._sum(self.each(task))

    def admit(self) -> Self:
        """Make every block once, and refuse the table for what one of them is refused for, before anything is drawn."""
        self._sum(self.each(_Admission()))
        return self

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """The records in two: those of the slots that are true in ``first``, and the others."""
        counts: tuple[int | None, int | None] = None, None
        if self.n_records is not None:
            counts = int(first.sum()), int(first.size - first.sum())
        of_first, of_others = (
            self._part(self._rows_of(slots), replace(self.facts, n_records=n_records))
            for slots, n_records in zip((first, ~first), counts, strict=True)
        )
        return of_first, of_others

    def _part(self, rows: list[BoolArray], facts: PartitionFacts) -> Self:
        """The source of some rows of each partition."""
        return type(self)([partition.take(kept) for partition, kept in zip(self.partitions, rows, strict=True)], facts)

    def _rows_of(self, slots: BoolArray) -> list[BoolArray]:
        """For each partition the rows whose slots are chosen; rows of nobody are in none."""
        if self.facts.n_persons is None:
            return np.split(slots, self.offsets[1:])
        # The last place is that of rows without a person.
        chosen = np.append(slots, False)
        return [chosen[partition.owners] for partition in self.partitions]

    def _sum(self, answers: Iterable[Any]) -> IntArray:
        try:
            return add_partitions(self._accepted(answers))
        finally:
            # An engine that reads ahead ends its threads now, rather than when its garbage is collected.
            if isinstance(answers, Generator):
                answers.close()

    def _accepted(self, answers: Iterable[Any]) -> Iterator[IntArray]:
        """The answers of all partitions, unless one is refused or the engine lost or repeated some."""
        found = 0
        for answer in answers:
            found += 1
            yield accepted(answer)
        if found != len(self.partitions):
            raise RuntimeError(f"an engine gave {found} answers for {len(self.partitions)} partitions")


DEFAULT_MEMORY = 1 << 30
"""Bytes of blocks that are held between rounds, unless another number is given."""


class StreamedSource(PartitionedSource):
    """A table that is read partition after partition, each time a sum is asked for.

    Blocks stay in memory as far as they fit a limit: a table that fits is read once. From one that does not, a sum
    reads the features that its task names, and no others. One partition is read ahead of the one that is worked on.

    ``memory`` is the number of bytes of blocks to hold between rounds; the two partitions at work come on top of that.
    ``watch(done, n_partitions)`` is called after each partition of each round, for a progress bar.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        facts: PartitionFacts,
        *,
        memory: int = DEFAULT_MEMORY,
        watch: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(partitions, facts)
        self._memory, self._watch = check_integer(0, memory=memory), watch
        self._held: dict[int, Block] = {}
        self._sizes: dict[int, int] = {}
        self._n_bytes = 0
        # Which rows of a partition are not null: known when all of its features were read.
        self._present: dict[int, NDArray[np.uint8]] = {}

    def each(self, function: Task) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        n_partitions = len(self.partitions)
        self._make_room(function.columns)
        # As it is now: blocks may be let go of on the way.
        held = dict(self._held)
        missing = [index for index in range(n_partitions) if index not in held]
        with closing(self._read_ahead(missing, function.columns)) as coming:
            for index in range(n_partitions):
                block: Block | Refusal = held.pop(index) if index in held else next(coming)
                yield answer_of(function, block)
                if isinstance(block, Block):
                    self._hold(index, block)
                if self._watch is not None:
                    self._watch(index + 1, n_partitions)

    def _read_ahead(self, missing: list[int], columns: IndexArray | None) -> Generator[Block | Refusal, None, None]:
        """The blocks of some partitions, the next of which is read while one is worked on."""
        if not missing:
            return
        thread = ThreadPoolExecutor(1)
        try:
            coming = self._begin(thread, missing[0], columns)
            for following in missing[1:]:
                block = coming.result()
                coming = self._begin(thread, following, columns)
                yield block
            yield coming.result()
        finally:
            # Nobody waits for a partition that is not needed any more.
            thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self, thread: ThreadPoolExecutor, index: int, columns: IndexArray | None) -> Future[Block | Refusal]:
        # Null records are told by all features.
        known = index in self._present or self.partitions[index].builder.invalid == "raise"
        return thread.submit(self.partitions[index].load, columns if known else None, self._present.get(index))

    def _make_room(self, columns: IndexArray | None) -> None:
        """Let go of blocks without the features that are asked for, and where room is short of other features."""
        if columns is not None and columns.size == 0:
            return
        for index, block in list(self._held.items()):
            if block.columns is not None and (columns is None or not np.isin(columns, block.columns).all()):
                self._release(index)
            elif columns is not None and len(self._held) < len(self.partitions):
                self._hold(index, block.narrow(columns))

    def _hold(self, index: int, block: Block) -> None:
        """Keep a block for the next round, if it fits."""
        partition = self.partitions[index]
        if block.columns is None and partition.builder.invalid == "null" and index not in self._present:
            present = np.zeros(int(self.facts.lengths[index]), dtype=bool)
            present[block.rows] = True
            self._present[index] = np.packbits(present)
        if block.columns is not None and block.columns.size == 0:
            return
        self._release(index)
        size = block.n_bytes()
        if self._n_bytes + size <= self._memory:
            self._held[index], self._sizes[index] = block, size
            self._n_bytes += size

    def _release(self, index: int) -> None:
        """Let go of a block, if it is held."""
        self._n_bytes -= self._sizes.pop(index, 0)
        self._held.pop(index, None)

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """The records in two: those of the slots that are true in ``first``, and the others.

        Blocks that are held go to the halves, each of which has half of the memory, and leave this source.
        """
        halves = super().divide(first)
        rows = self._rows_of(first), self._rows_of(~first)
        for index, block in list(self._held.items()):
            self._release(index)
            for half, kept in zip(halves, rows, strict=True):
                half._hold(index, block.keep(kept[index]))
        return halves

    def _part(self, rows: list[BoolArray], facts: PartitionFacts) -> Self:
        partitions = [partition.take(kept) for partition, kept in zip(self.partitions, rows, strict=True)]
        part = type(self)(partitions, facts, memory=self._memory // 2, watch=self._watch)
        part._present = dict(self._present)
        return part


# ---- Tables behind a reader: streamed in this process, or run by an engine elsewhere.

Engine = Callable[[Sequence[Partition], PartitionFacts], PartitionedSource]


class PartitionedTable(OpenTable):
    """A table behind a reader, run by an engine; :func:`open_table` makes that of a table on disk.

    Parameters
    ----------
    reader : PartitionReader
        Reads one partition at a time.
    engine : callable, default=StreamedSource
        ``engine(partitions, facts)`` gives the source that runs them: :class:`StreamedSource`, which reads one
        partition after the other in this process, :class:`DaskSource`, or an engine of one's own.
    has_target : bool, default=True
        Whether the reader gives targets.
    has_persons : bool, default=False
        Whether it gives keys of persons: the guarantee is then for all rows of a person together.
    has_weight, has_exposure : bool, default=False
        Whether it gives weights and exposures, in :class:`~taciturn.data.records.Outcomes`.
    classes, y_bounds, x_bound : default=None
        Where they are stated: the public labels or range of the target, and the public bound on every feature.

    Attributes
    ----------
    names, n_features, shape
        As the reader states them.
    bounds : TableBounds or None
        Bounds of the columns of a table on disk, resolved for it.
    """

    def __init__(
        self,
        reader: PartitionReader,
        *,
        engine: Engine = StreamedSource,
        has_target: bool = True,
        has_persons: bool = False,
        has_weight: bool = False,
        has_exposure: bool = False,
        classes: Any = None,
        y_bounds: tuple[float, float] | None = None,
        x_bound: float | None = None,
    ) -> None:
        self.reader, self.engine = reader, engine
        self.bounds: TableBounds | None = getattr(reader, "bounds", None)
        self.names = None if reader.names is None else tuple(reader.names)
        self.n_features = int(reader.n_features)
        self.is_sparse = bool(getattr(reader, "sparse", False))
        self.assumptions = tuple(getattr(reader, "assumptions", ()))
        self.has_target, self.has_persons = has_target, has_persons
        self.has_weight, self.has_exposure = has_weight, has_exposure
        self.classes, self.y_bounds, self.x_bound = classes, y_bounds, x_bound

    @classmethod
    def of_files(cls, partitions: TablePartitions | NumberPartitions, engine: Engine) -> Self:
        """The table on disk behind a reader of its partitions, with what its bounds state."""
        bounds = partitions.bounds
        target, whole = bounds.target, isinstance(partitions, TablePartitions)
        ranged = whole and target.lower is not None and target.upper is not None
        weight, exposure = (bounds.weight, bounds.exposure) if whole else (None, None)
        table = cls(
            partitions,
            engine=engine,
            has_target=whole,
            has_persons=bounds.person is not None,
            has_weight=weight is not None,
            has_exposure=exposure is not None,
            classes=target.classes if whole else None,
            y_bounds=(float(target.lower), float(target.upper)) if ranged else None,  # type: ignore[arg-type]
            # Encoded features are within the unit interval.
            x_bound=1.0 if whole else None,
        )
        table.weight_bound = None if weight is None else weight.upper
        table.exposure_bound = None if exposure is None else exposure.upper
        table.cuts = target.cuts if whole else None
        table.person_column = bounds.person
        table.groups = bounds.feature_groups if whole else None
        if isinstance(partitions, TablePartitions):
            table.invalid, table.has_row_order = partitions.invalid, partitions.has_row_order
            # Files that other machines read cannot be copied here.
            table.gathers_persons = not getattr(engine, "reads_elsewhere", False)
        return table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_features} features)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy of a text table; other files stay as they are."""
        if isinstance(self.reader, TablePartitions):
            self.reader.close()

    def _read(self, index: int) -> tuple[Any, Any, Any]:
        """One partition without its features."""
        return self.reader.read(index, np.zeros(0, dtype=np.intp))

    @cached_property
    def lengths(self) -> IntArray:
        """The number of rows of each partition."""
        edges: IntArray = np.append(self.reader.offsets, self.reader.n_rows).astype(np.int64)
        return edges[1:] - edges[:-1]

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition, read one after the other."""
        return [
            accepted(quietly(lambda i: function(Outcomes.of(self._read(i)[1]).y), index))
            for index in range(self.lengths.size)
        ]

    @cached_property
    def encoder(self) -> Any:
        """What encodes data frames with the columns of a table on disk; None for a table without named columns."""
        if not isinstance(self.reader, TablePartitions) or self.is_sparse:
            return None
        from taciturn.tables.reading import TableEncoder

        invalid: Any = self.reader.invalid
        return TableEncoder(bounds=self.reader.bounds, invalid=invalid).fit(self.reader.schema)

    def each_features(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the features of each partition, read one after the other."""
        read = self.reader.read
        return [accepted(quietly(lambda i: function(read(i, None)[0]), index)) for index in range(self.lengths.size)]

    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition, read one after the other."""
        return [
            accepted(quietly(lambda i, n: key_forms(self._read(i)[2], n), index, int(length)))
            for index, length in enumerate(self.lengths)
        ]

    def _source(
        self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts
    ) -> PartitionedSource:
        partitions = [Partition(builder, self.reader, index, own) for index, own in enumerate(owners)]
        return self.engine(partitions, facts)


_WORK = 1 << 28
"""Bytes for the partitions at work and for what a fit makes of them, beside blocks that are held."""

_USUAL_RESIDENT = 3 << 26
"""Bytes of a process with the libraries of a fit, where the system does not tell."""


def open_files(
    path: str | os.PathLike[str],
    bounds: TableBounds,
    engine: Engine,
    *,
    schema: TableSchema | None = None,
    invalid: str = "raise",
    memory: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> TablePartitions:
    """Open files, or a table in a database, for an engine.

    The other parameters are those of :func:`~taciturn.tables.open_partitions`.

    Rows of a person are in one partition, unless workers read the files and find them scattered.
    """
    elsewhere = getattr(engine, "reads_elsewhere", False)
    if is_database(path):
        if elsewhere:
            raise DataError(
                "table: expected Parquet or Arrow files for workers, got a database, which this process reads; leave "
                'engine="stream", or write the table as Parquet where all workers can read it.'
            )
        room = machine_memory() if memory is None else memory
        partitions: TablePartitions = open_database(str(path), bounds, invalid=invalid, memory=room)
    else:
        partitions = open_partitions(path, bounds, schema=schema, invalid=invalid, memory=memory, progress=progress)
    if partitions.is_copy and elsewhere:
        partitions.close()
        raise DataError(
            "table: expected Parquet or Arrow files for workers, which read them themselves, got another table; "
            "write it as Parquet where all workers can read it."
        )
    if partitions.bounds.person is None:
        return partitions
    return partitions.cut_between_persons() if elsewhere else partitions.gather_persons()


def open_table(
    path: str | os.PathLike[str],
    bounds: TableBounds | str | os.PathLike[str] = "bounds.toml",
    *,
    invalid: Invalid = "raise",
    memory: int | None = None,
    engine: Literal["stream", "dask", "spark"] = "stream",
    progress: Callable[[float], None] | None = None,
) -> PartitionedTable:
    r"""Open a table on disk or in a database, for ``fit`` in place of arrays.

    It is read in partitions and never in memory as a whole.

    ``SparseClassifier().fit(open_table("big.parquet"))`` gives the coefficients, to the bit, that a fit to the arrays
    of :func:`~taciturn.tables.read_table` gives with the same seed. Public bounds and classes of the target, and the
    column of persons, are those of the bounds file; an estimator that states others is refused.

    **Privacy.** Opening a table reads no cell of a Parquet or Arrow file, unless it has persons, whose keys are read.
    Of a table in a database it reads the keys of the rows. A text table is copied once to a private temporary folder
    and refused here for a cell that cannot be used; no account is charged for such a refusal, which tells of the data.
    The command ``taciturn fit --account`` charges it. So is a table in which rows of a person do not lie together,
    unless workers of dask read it: they have to find them so.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`~taciturn.tables.read_schema`, or a folder of Parquet or Arrow files with the same columns,
        which are read in the order of their names. Or the URL of a table in a database, which is read in ranges of its
        primary key, or of the unique columns that ``&key=`` names: ``postgresql://user@host/database?table=visits``,
        ``duckdb:///file.duckdb?table=visits`` or ``sqlite:///file.db?table=visits``. Without a key its rows have no
        order, and ``inference=True`` and persons are refused.
    bounds : TableBounds, str or path-like, default="bounds.toml"
        Public bounds of the columns and the target, or the file that states them; ``taciturn init`` writes a template.
    invalid : {"raise", "null"}, default="raise"
        Whether a cell that cannot be used refuses the table or makes its record null; as that of the estimator.
    memory : int, default=None
        Bytes of memory for the whole process. A table that fits is read once and held, in half the room that it takes
        as doubles; of a larger one, every sum reads the columns that it needs. None: half of the machine's.
    engine : {"stream", "dask", "spark"}, default="stream"
        Whether this process reads the partitions one after the other, or the workers of the current client of dask or
        of the active session of Spark, which have to find the files under the same path.
    progress : callable, default=None
        Told how much of a text table is copied, from 0 to 1.

    Returns
    -------
    table : PartitionedTable
        A context manager: the copy of a text table is removed when it is closed, and at the latest with the process.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from taciturn import SparseRegressor, open_table
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "table.csv").write_text("y,x" + 200 * "\n0.5,1\n-0.5,-1" + "\n")
    >>> _ = (folder / "bounds.toml").write_text(
    ...     '[target]\nname = "y"\nlower = -1\nupper = 1\n[defaults]\nlower = -1\nupper = 1\n'
    ... )
    >>> with open_table(folder / "table.csv", folder / "bounds.toml") as table:
    ...     model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1)).fit(table)
    >>> model.certificate_.public["records"]
    400
    """
    check_choice(("stream", "dask", "spark"), engine=engine)
    if not isinstance(bounds, TableBounds):
        if not os.fspath(bounds):
            raise ParameterError("bounds", bounds, "the name of a file", "name it, or write one with taciturn init")
        bounds = _read_bounds(Path(bounds))
    memory = machine_memory() // 2 if memory is None else memory
    runs: Engine = partial(StreamedSource, memory=held_memory(memory))
    if engine == "dask":
        # Here rather than above: dask is an extra.
        from taciturn.engines.dask import DaskSource

        runs = DaskSource
    elif engine == "spark":
        from taciturn.engines.spark import SparkSource

        runs = SparkSource
    opened = open_files(path, bounds, runs, invalid=invalid, memory=memory, progress=progress)
    return PartitionedTable.of_files(opened, runs)


def held_memory(memory: int) -> int:
    """Bytes of blocks that a process with so much memory may hold.

    Two thirds of what it neither has nor works with: blocks grow by what tasks remember of their rows.
    """
    return max(0, (memory - _resident() - _WORK) * 2 // 3)


def _resident() -> int:
    """Bytes of memory that the process has now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as facts:
            return int(facts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):  # not every system tells
        return _USUAL_RESIDENT


def _read_bounds(path: Path) -> TableBounds:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"bounds {(path.name or str(path))!r}: expected a text file that can be read, got none; check the name, or "
            "write a template with taciturn init."
        ) from None
    return TableBounds.from_toml(text, folder=path.parent)
