"""Sources that read partitions of a table: streams, files and open tables."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, cast, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import guarded
from taciturn.core.validation import (
    AnyArray,
    BoolArray,
    IndexArray,
    IntArray,
    Invalid,
    check_choice,
    check_integer,
    without_data_values,
)
from taciturn.data.persons import PERSON_WEIGHT, KeyForms, PersonKeys, key_forms, slots_in_parts
from taciturn.data.records import has_truth_values, judged_labels, plain_labels, public_labels
from taciturn.engines.interface import (
    BlockBuilder,
    BlockFunction,
    Partition,
    PartitionBlock,
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
from taciturn.tables.formats import machine_memory
from taciturn.tables.partitions import TablePartitions, open_partitions

# -----------------------------------------------------------------------------
# Sources over partitions that lie somewhere else, whatever runs them.


@dataclass(frozen=True, slots=True, eq=False)
class PartitionFacts:
    """What the driver knows of a table in partitions.

    Parameters
    ----------
    n_records : int or None
        The public number of records, or None under add-remove.
    n_features : int
        The number of features.
    lengths : ndarray of int
        The number of rows of each partition, null records included.
    n_persons : int or None
        The number of persons, where a record is one.
    """

    n_records: int | None
    n_features: int
    lengths: IntArray
    n_persons: int | None = None


@dataclass(frozen=True, slots=True)
class _Admission:
    """Nothing of a block but that it was made, which takes all features."""

    columns: ClassVar[None] = None

    def __call__(self, block: PartitionBlock) -> IntArray:
        return np.zeros(1, dtype=np.int64)


class PartitionedSource:
    """A source whose partitions are run by an engine: derive from it and say how in :meth:`each`.

    The driver holds no records, only what the engine returns: exact sums, which are as sensitive as the records. Noise
    is drawn by the driver, after the sum.

    Parameters
    ----------
    partitions : sequence of Partition
        How the blocks are made.
    facts : PartitionFacts
        What the driver knows.
    """

    def __init__(self, partitions: Sequence[Partition], facts: PartitionFacts) -> None:
        self.partitions, self.facts = tuple(partitions), facts

    def each(self, function: BlockFunction) -> Iterable[Any]:
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


# -----------------------------------------------------------------------------
# A table that is read partition after partition, in bounded memory.

DEFAULT_MEMORY = 1 << 30
"""Bytes of blocks that are held between rounds, unless another number is given."""


class StreamedSource(PartitionedSource):
    """A table that is read partition after partition, each time a sum is asked for.

    Blocks stay in memory as far as they fit a limit: a table that fits is read once. From one that does not, a sum
    reads the features that its task names, and no others. One partition is read ahead of the one that is worked on.

    Parameters
    ----------
    partitions, facts
        As in :class:`~taciturn.engines.PartitionedSource`.
    memory : int, default=2**30
        Bytes of blocks to hold between rounds. The two partitions at work come on top of that.
    watch : callable, default=None
        Called as ``watch(done, n_partitions)`` after each partition of each round, for a progress bar.
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
        self._held: dict[int, PartitionBlock] = {}
        self._sizes: dict[int, int] = {}
        self._n_bytes = 0
        # Which rows of a partition are not null: known when all of its features were read.
        self._present: dict[int, NDArray[np.uint8]] = {}

    def each(self, function: BlockFunction) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        n_partitions = len(self.partitions)
        self._make_room(function.columns)
        # As it is now: blocks may be let go of on the way.
        held = dict(self._held)
        missing = [index for index in range(n_partitions) if index not in held]
        with closing(self._read_ahead(missing, function.columns)) as coming:
            for index in range(n_partitions):
                block: PartitionBlock | Refusal = held.pop(index) if index in held else next(coming)
                yield answer_of(function, block)
                if isinstance(block, PartitionBlock):
                    self._hold(index, block)
                if self._watch is not None:
                    self._watch(index + 1, n_partitions)

    def _read_ahead(
        self, missing: list[int], columns: IndexArray | None
    ) -> Generator[PartitionBlock | Refusal, None, None]:
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

    def _begin(
        self, thread: ThreadPoolExecutor, index: int, columns: IndexArray | None
    ) -> Future[PartitionBlock | Refusal]:
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

    def _hold(self, index: int, block: PartitionBlock) -> None:
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


# -----------------------------------------------------------------------------
# Tables that ``fit`` takes in place of arrays: open for reading in partitions, with their target and their persons.

ONE_PARTITION = (
    "the rows of each person lie in one partition of the table; a table in which they do not is refused, and the "
    "refusal tells of it"
)
"""What the guarantee for persons rests on where a table is read in partitions."""

Engine = Callable[[Sequence[Partition], PartitionFacts], PartitionedSource]


class OpenTable(ABC):
    """A table in partitions, open for reading: ``fit`` takes it in place of arrays, and no record is in memory yet."""

    names: tuple[str, ...] | None
    """The names of the features, or None."""
    n_features: int
    has_target: bool
    has_persons: bool
    is_sparse: bool
    classes: Any = None
    """The public labels of the target, where the table states them."""
    y_bounds: tuple[float, float] | None = None
    """The public range of the target, where the table states it."""
    x_bound: float | None = None
    """The public bound on every feature, where the table states it."""
    person_column: str | None = None
    """The name of the column with the keys of the persons, where the table has one."""
    invalid: str | None = None
    """What becomes of cells that cannot be used, where the table decides that."""
    gathers_persons: bool = False
    """Whether rows of a person are in one partition wherever they are in the table, so that it is never refused."""
    assumptions: tuple[str, ...] = ()
    """What every certificate of a release from this table has to assume, in words."""

    @property
    @abstractmethod
    def lengths(self) -> IntArray:
        """The number of rows of each partition: private under add-remove, and where a record is a person."""

    @abstractmethod
    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition, in their order."""

    @abstractmethod
    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition, in their order."""

    @abstractmethod
    def _source(
        self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts
    ) -> PartitionedSource:
        """The source of the blocks that the builder makes."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features. The former is private as that of each partition is."""
        return int(self.lengths.sum()), self.n_features

    def read(
        self, estimator: Any, builder: BlockBuilder, n_records: int | None, persons: Callable[[], PersonKeys] | None
    ) -> PartitionedSource:
        """The source of the records that are not null; every partition is read once, and refused if it must be.

        Parameters
        ----------
        estimator : estimator
            Learns the names and the number of the columns.
        builder : BlockBuilder
            What becomes of the rows.
        n_records : int or None
            The public number of records, or None under add-remove.
        persons : callable or None
            Tells whose rows they are.
        """
        if builder.target is not None and not self.has_target:
            raise DataError(f"y: {type(estimator).__name__} requires y to be passed, but the target y is None.")
        self.name_features(estimator)
        owners: list[IndexArray | None] = [None] * self.lengths.size
        keys = None if persons is None else persons()
        if keys is not None:
            owners = list(np.split(keys.slots, np.cumsum(self.lengths)[:-1]))
        n_persons = None if keys is None else keys.n_persons
        facts = PartitionFacts(n_records, self.n_features, self.lengths, n_persons)
        return self._source(builder, owners, facts).admit()

    def name_features(self, estimator: Any) -> None:
        """Set what an estimator learns of the columns."""
        estimator.n_features_in_ = self.n_features
        if self.names is not None:
            estimator.feature_names_in_ = np.asarray(self.names, dtype=object)
        else:
            vars(estimator).pop("feature_names_in_", None)


@dataclass(frozen=True, slots=True)
class PartitionedTarget:
    """The target of an open table, in the place of ``y``."""

    table: OpenTable


@dataclass(frozen=True, slots=True)
class TablePersons:
    """The persons of an open table, in the place of ``persons``."""

    table: OpenTable

    @property
    def name(self) -> str | None:
        """The name of the column of keys, if it is known."""
        return self.table.person_column

    def read(self) -> PersonKeys:
        """Whose rows the rows are. Raises DataError if those of one person lie in several partitions."""
        parts = self.table.each_key_forms()
        slots, n_persons, digest = slots_in_parts(parts)
        held = np.concatenate([np.unique(each[each >= 0]) for each in slots])
        if np.unique(held).size < held.size:
            raise DataError(
                "persons: expected all rows of a person in one partition, got some in several; sort the table by "
                "person and cut it between persons, or fit in memory."
            )
        return PersonKeys(np.concatenate(slots), n_persons, digest)


class PartitionedTable(OpenTable):
    """A table behind a reader, run by an engine.

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
    classes : sequence, default=None
        The public labels of the target, where they are stated.
    y_bounds : tuple of float, default=None
        The public range of the target, where it is stated.
    x_bound : float, default=None
        The public bound on every feature, where it is stated.

    Attributes
    ----------
    names, n_features, shape
        As the reader states them.
    """

    def __init__(
        self,
        reader: PartitionReader,
        *,
        engine: Engine = StreamedSource,
        has_target: bool = True,
        has_persons: bool = False,
        classes: Any = None,
        y_bounds: tuple[float, float] | None = None,
        x_bound: float | None = None,
    ) -> None:
        self.reader, self.engine = reader, engine
        self.names = None if reader.names is None else tuple(reader.names)
        self.n_features = int(reader.n_features)
        self.is_sparse = bool(getattr(reader, "sparse", False))
        self.assumptions = tuple(getattr(reader, "assumptions", ()))
        self.has_target, self.has_persons = has_target, has_persons
        self.classes, self.y_bounds, self.x_bound = classes, y_bounds, x_bound

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
        return [accepted(quietly(lambda i: function(self._read(i)[1]), index)) for index in range(self.lengths.size)]

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


# ------------------------------------------------------------------ the arguments of fit


def open_arguments(X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
    """The arguments of ``fit``, with an open table and its target and persons where X is one or a dask collection."""
    given = [name for name, value in (("y", y), ("persons", persons)) if value is not None]
    if is_dask(X):
        # Here rather than above: dask is an extra.
        from taciturn.engines.dask import DaskTable

        X = DaskTable(X, y, persons)
    elif not is_open(X):
        if is_dask(y) or is_dask(persons):
            raise DataError(
                "X: expected a dask collection beside a dask y or dask persons, got something else; compute() these, "
                "or make X one too."
            )
        return X, y, persons
    elif given:
        raise DataError(f"{given[0]}: expected None beside a table that has its own, got something; leave it out.")
    return X, PartitionedTarget(X) if X.has_target else None, TablePersons(X) if X.has_persons else None


def is_open(value: Any) -> bool:
    """Whether something is an open table, told by its type alone."""
    return issubclass(type(value), OpenTable)


def is_dask(value: Any) -> bool:
    """Whether something is an array, a data frame or a column of dask."""
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(value, "__dask_graph__")


def stated_classes(X: Any, classes: Any) -> Any:
    """The classes that are given or, for None, those that an open table states, if it does."""
    return X.classes if classes is None and isinstance(X, OpenTable) else classes


def target_labels(y: Any) -> AnyArray:
    """The distinct labels of a target, sorted, on the assumption that their set is public."""
    if isinstance(y, PartitionedTarget):
        parts = y.table.each_target(_distinct_labels)
        kinds = {part.dtype.kind for part in parts if part.size}
        kept = [part if len(kinds) == 1 else part.astype(object) for part in parts if part.size]
        y = np.concatenate(kept) if kept else np.zeros(0)
    return public_labels(y)


def target_has_truth_values(y: Any, *, invalid: str) -> bool:
    """Whether a target holds truth values, on the assumption that this is public."""
    if isinstance(y, PartitionedTarget):
        return all(y.table.each_target(_TruthValues(invalid)))
    return has_truth_values(y, invalid=invalid)


def _distinct_labels(y: Any) -> AnyArray:
    def distinct() -> AnyArray:
        labels, known = judged_labels(y)
        plain = plain_labels(labels[known], with_text=isinstance(y, list | tuple))
        if plain.dtype.kind != "O":
            return np.unique(plain)
        return np.fromiter(dict.fromkeys(plain.tolist()), dtype=object)

    return without_data_values("y", distinct)


@dataclass(frozen=True, slots=True)
class _TruthValues:
    invalid: str

    def __call__(self, y: Any) -> bool:
        return len(y) == 0 or has_truth_values(y, invalid=self.invalid)


# -----------------------------------------------------------------------------
# Tables on disk, open for reading in partitions: streamed in this process, or read by the workers of dask.

_WORK = 1 << 28
"""Bytes for the partitions at work and for what a fit makes of them, beside blocks that are held."""

_USUAL_RESIDENT = 3 << 26
"""Bytes of a process with the libraries of a fit, where the system does not tell."""


class FileTable(PartitionedTable):
    """A table on disk with its bounds, which ``fit`` takes in place of arrays; made by :func:`open_table`.

    Parameters
    ----------
    partitions : TablePartitions
        Reads the table.
    engine : callable
        As in :class:`~taciturn.engines.PartitionedTable`.

    Attributes
    ----------
    bounds : TableBounds
        Bounds of the columns, resolved for the table.
    """

    def __init__(self, partitions: TablePartitions, engine: Engine) -> None:
        self.partitions, self.bounds = partitions, partitions.bounds
        target = self.bounds.target
        regress = target.lower is not None and target.upper is not None
        super().__init__(
            partitions,
            engine=engine,
            has_persons=self.bounds.person is not None,
            classes=target.classes,
            y_bounds=(float(target.lower), float(target.upper)) if regress else None,  # type: ignore[arg-type]
            # Encoded features are within the unit interval.
            x_bound=1.0,
        )
        self.invalid, self.person_column = partitions.invalid, self.bounds.person
        # Files that other machines read cannot be copied here.
        self.gathers_persons = not getattr(engine, "reads_elsewhere", False)

    @classmethod
    def of_files(
        cls,
        path: str | os.PathLike[str],
        bounds: TableBounds,
        engine: Engine,
        *,
        schema: TableSchema | None = None,
        invalid: str = "raise",
        memory: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Open files for an engine; the other parameters are those of :func:`~taciturn.tables.open_partitions`."""
        partitions = open_partitions(path, bounds, schema=schema, invalid=invalid, memory=memory, progress=progress)
        if partitions.is_copy and getattr(engine, "reads_elsewhere", False):
            partitions.close()
            raise DataError(
                "table: expected Parquet or Arrow files for dask, whose workers read them themselves, got another "
                "table; write it as Parquet where all workers can read it."
            )
        if partitions.bounds.person is not None:
            elsewhere = getattr(engine, "reads_elsewhere", False)
            partitions = partitions.cut_between_persons() if elsewhere else partitions.gather_persons()
        return cls(partitions, engine)

    def __repr__(self) -> str:
        return f"FileTable({self.n_features} features, target={self.bounds.target.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy of a text table; other files stay as they are."""
        self.partitions.close()


def open_table(
    path: str | os.PathLike[str],
    bounds: TableBounds | str | os.PathLike[str] = "bounds.toml",
    *,
    invalid: Invalid = "raise",
    memory: int | None = None,
    engine: Literal["stream", "dask"] = "stream",
    progress: Callable[[float], None] | None = None,
) -> FileTable:
    r"""Open a table on disk, for ``fit`` in place of arrays: it is read in partitions and never in memory as a whole.

    ``SparseClassifier().fit(open_table("big.parquet"))`` gives the coefficients, to the bit, that a fit to the arrays
    of :func:`~taciturn.tables.read_table` gives with the same seed. Public bounds and classes of the target, and the
    column of persons, are those of the bounds file; an estimator that states others is refused.

    **Privacy.** Opening a table reads no cell of a Parquet or Arrow file, unless it has persons, whose keys are read. A
    text table is copied once to a private temporary folder and refused here for a cell that cannot be used; no account
    is charged for such a refusal, which tells of the data. The command ``taciturn fit --account`` charges it. So is a
    table in which rows of a person do not lie together, unless workers of dask read it: they have to find them so.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`~taciturn.tables.read_schema`, or a folder of Parquet or Arrow files with the same columns,
        which are read in the order of their names.
    bounds : TableBounds, str or path-like, default="bounds.toml"
        Public bounds of the columns and the target, or the file that states them; ``taciturn init`` writes a template.
    invalid : {"raise", "null"}, default="raise"
        Whether a cell that cannot be used refuses the table or makes its record null; as that of the estimator.
    memory : int, default=None
        Bytes of memory for the whole process. A table that fits is read once and held, in half the room that it takes
        as doubles; of a larger one, every sum reads the columns that it needs. None: half of the machine's.
    engine : {"stream", "dask"}, default="stream"
        Whether this process reads the partitions one after the other, or the workers of the current client of dask,
        which have to find the files under the same path.
    progress : callable, default=None
        Told how much of a text table is copied, from 0 to 1.

    Returns
    -------
    table : FileTable
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
    check_choice(("stream", "dask"), engine=engine)
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
    return FileTable.of_files(path, bounds, runs, invalid=invalid, memory=memory, progress=progress)


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


# -----------------------------------------------------------------------------
# Predictions and transformations of dask collections, partition by partition.

Result = TypeVar("Result", covariant=True)

# A seed would let workers draw the noise of a fit again, and an account is nothing to them.
_STAYS_WITH_THE_DRIVER = ("random_state", "account")


class Lazy(Protocol):
    """A dask collection, to a type checker."""

    def compute(self, **kwargs: Any) -> Any:
        """Return what the collection stands for."""


class RowByRow(Protocol[Result]):
    """A method that maps row by row, to a type checker."""

    @overload
    def __call__(self, X: Lazy) -> Any: ...

    @overload
    def __call__(self, X: Any) -> Result: ...


def partitionwise(method: Callable[[Any, Any], Result]) -> RowByRow[Result]:
    """A method of a fitted object that maps row by row: of a dask collection it gives a dask array, not yet computed.

    Workers get a copy without the seed and the account of the fit. An open table is refused.
    """

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        if isinstance(X, OpenTable):
            raise DataError(
                f"X: expected an array, a data frame or a dask collection for {method.__name__}, got an open table; "
                "pass its partitions one by one."
            )
        return _map_partitions(method, self, X) if is_dask(X) else method(self, X)

    return cast(RowByRow[Result], mapped)


def _map_partitions(method: Callable[[Any, Any], Any], fitted: Any, X: Any) -> Any:
    # A row of zeros tells the type and the width of the result.
    probe = np.asarray(guarded(method, silent=True)(fitted, np.zeros((1, fitted.n_features_in_))))
    away = copy(fitted)
    for name in _STAYS_WITH_THE_DRIVER:
        if hasattr(away, name):
            setattr(away, name, None)
    call = _Call(away, method.__name__)
    if hasattr(X, "columns"):
        return X.map_partitions(call, meta=probe[:0])
    X = X.rechunk({1: -1})
    if probe.ndim == 1:
        return X.map_blocks(call, dtype=probe.dtype, drop_axis=1, meta=probe[:0])
    # dask has no public name for what chunks are made of.
    kind = getattr(X, "_meta", None)
    meta = kind if sp.issparse(kind) else probe[:0]
    return X.map_blocks(call, dtype=probe.dtype, chunks=(X.chunks[0], (probe.shape[1],)), meta=meta)


class _Call:
    """A method of an object by its name, which can be pickled though methods are wrapped."""

    def __init__(self, fitted: Any, name: str) -> None:
        self.fitted, self.name = fitted, name

    def __call__(self, X: Any) -> Any:
        return getattr(self.fitted, self.name)(X)
