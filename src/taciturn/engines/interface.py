"""The interface of a source of exact integer sums, and the source that holds arrays in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import BoolArray, IndexArray, IntArray, NumberArray, check_integer
from taciturn.data.design import Design
from taciturn.data.persons import PERSON_WEIGHT, PersonKeys, PersonRows
from taciturn.data.records import LAYOUTS, PresentRecords, declares_truth_values, read_part
from taciturn.data.target import LabelMap, NumberMap

# -----------------------------------------------------------------------------
# What a source is: a table in partitions that answers with exact integer sums over its records.
#
# Integers add up to the same sum in any order. A fit that reads its data through :meth:`Source.total` alone therefore
# gives the same coefficients for the same seed, whatever the partitions are and wherever they are stored. Sums are
# exact and as sensitive as the records: they belong to the driver, which adds the noise.

Value = TypeVar("Value")


class Block:
    """The records of one partition on the lattice, and what tasks need again in the next round.

    Parameters
    ----------
    design : Design
        The features, without an intercept column.
    target : ndarray of shape (n_rows,)
        The mapped target: lattice numbers, or class codes with -1 for null records.
    persons : PersonRows, default=None
        Whose rows they are, where a record is a person. Rows of a person lie together, and all in one block.
    columns : ndarray of int, default=None
        The features that ``design`` holds, in increasing order, where these are not all: a task reads no others than
        its ``columns`` name.

    Notes
    -----
    A fit asks many sums of the same columns in a row, for instance one gradient per step. The block remembers what
    they share: the columns, and one value per name that :meth:`recall` is called with. Keys are compared by content, so
    that a task which was pickled finds what its predecessor left. Other columns begin another phase: everything that
    belongs to the earlier ones is forgotten, and memory stays bounded. A block that is pickled leaves it behind.
    """

    def __init__(
        self,
        design: Design,
        target: NumberArray,
        persons: PersonRows | None = None,
        columns: IndexArray | None = None,
    ) -> None:
        self._whole, self.target, self.persons, self.columns = design, target, persons, columns
        self._phase: tuple[bytes | None, str | None] | None = None
        self._design = design
        self._memo: dict[str, tuple[Hashable, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_phase": None, "_design": self._whole, "_memo": {}}

    @property
    def n_rows(self) -> int:
        """The number of rows that are stored here."""
        return self._whole.shape[0]

    @property
    def row_counts(self) -> IntArray | None:
        """For each row the number of rows of its person; None where every row is a record."""
        return None if self.persons is None else self.persons.of_rows

    @property
    def n_persons(self) -> int | None:
        """The number of persons that have rows here; None where every row is a record."""
        return None if self.persons is None else int(self.persons.counts.size)

    def by_record(self, terms: IntArray) -> IntArray:
        """One term per record: those of the rows, or for a person the mean of its rows' terms, cut towards zero."""
        return terms if self.persons is None else self.persons.mean_terms(terms)

    def design(self, columns: IndexArray | None, layout: str | None = None) -> Design:
        """Some of the features, or all of them for None.

        Sparse features are stored as ``layout`` says, "csr" or "csc"; None for as they are.
        """
        phase = None if columns is None else columns.tobytes(), layout
        if phase != self._phase:
            # What belongs to the last phase is let go before the next one takes room.
            self._phase, self._design, self._memo = None, self._whole, {}
            chosen = self._features(columns)
            self._design = chosen if layout is None else chosen.in_layout(layout)
            self._phase = phase
        return self._design

    def values(self, columns: IndexArray | None) -> Any:
        """Some of the features in their own units, or all of them for None; a block of integers alone has none."""
        places, values = self._places(columns), self._whole.values
        return values if places is None else values[:, places]

    def _features(self, columns: IndexArray | None) -> Design:
        places = self._places(columns)
        return self._whole if places is None else self._whole.columns(places)

    def _places(self, columns: IndexArray | None) -> IndexArray | None:
        """Where the block holds these features; None for all that it holds."""
        if self.columns is None:
            return columns
        if columns is None or not np.isin(columns, self.columns).all():
            raise TypeError("a task read features that its columns do not name")
        return None if columns.size == self.columns.size else np.searchsorted(self.columns, columns)

    def recall(self, name: str, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What ``compute`` returned for this name and key since the columns of :meth:`design` were last changed.

        One value is kept per name, that of the latest key. The key has to determine the value, by its content.
        """
        if name not in self._memo or self._memo[name][0] != key:
            # The old value is let go before the new one takes room.
            self._memo.pop(name, None)
            self._memo[name] = key, compute()
        value: Value = self._memo[name][1]
        return value


class Task(Protocol):
    """A sum over the records of a block.

    Tasks are frozen dataclasses of public and released numbers. They are pickled to reach a worker, they are
    deterministic, and they hold no :class:`~taciturn.core.rng.Stream`: the driver draws all noise, after the sum.
    """

    @property
    def columns(self) -> IndexArray | None:
        """The features that the task reads, in increasing order; None for all, an empty array for the target alone."""

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of one block, of the same shape for every block."""


class Source(Protocol):
    """A table in partitions."""

    @property
    def n_records(self) -> int | None:
        """The public number of records, or None under add-remove."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition, so that halves and folds are the same on every engine."""

    @property
    def rank_weight(self) -> int:
        """The integer that stands for one record in counts of values: 1, or what the rows of a person share."""

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""


class DivisibleSource(Source, Protocol):
    """A source whose records have slots by which they can be divided."""

    @property
    def n_slots(self) -> int:
        """Rows of the table, null records included, or persons. Public, except under add-remove."""

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """The records in two: those of the slots that are true in ``first``, and the others."""


def add_partitions(parts: Iterable[IntArray]) -> IntArray:
    """The sum of what a task returned for each of at least one partition.

    Raises
    ------
    TypeError
        If a part is not an array of 64-bit integers: sums of floating-point numbers depend on their order.
    """
    total: IntArray | None = None
    for part in parts:
        if part.dtype != np.int64:
            raise TypeError(f"a task returned {part.dtype} numbers, expected int64: other sums depend on their order")
        # Never in place: a part may be what a block remembers.
        total = part if total is None else total + part
    if total is None:
        raise ValueError("a source has at least one partition, which may be empty")
    return total


def check_task(task: Task) -> Task:
    """Refuse a task that holds a random stream, at any depth, with a TypeError."""
    pending: list[object] = [task]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, Stream):
            raise TypeError(f"{type(task).__name__} holds a random stream: draw noise in the driver, after the sum")
        if id(value) not in seen:
            seen.add(id(value))
            pending.extend(_contents(value))
    return task


def _contents(value: object) -> Iterable[object]:
    """What a container or an object holds; nothing for numbers, words, classes and arrays of numbers."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if isinstance(value, np.ndarray):
        return value.flat if value.dtype == object else ()
    if isinstance(value, type | ModuleType):
        return ()
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name != "__dict__"]
    held = [getattr(value, name) for name in names if hasattr(value, name)]
    closure = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return [*held, *getattr(value, "__dict__", {}).values(), *closure]


# -----------------------------------------------------------------------------
# One partition of a table becomes one block: its rows are read, judged, mapped and put in slots.
#
# That is what :func:`~taciturn.data.records.read_records` does with a whole table. Whatever is decided here is decided
# record by record, so that the blocks of a table hold the same records for every division into partitions.

_UNREADABLE = (
    "X or y: expected partitions that can be read, got one that cannot; read it by itself to see why, since what is "
    "said of it may quote records."
)
_UNUSED_KEYS = (
    "persons: expected a table that is opened with has_persons=True, as its reader gives keys of persons; open it so, "
    "or leave the keys out."
)


class PartitionReader(Protocol):
    """A table in partitions that lie somewhere else.

    It can be pickled and holds no records: a worker that has a reader can read every partition. Reading one again
    gives the same rows in the same order.
    """

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition; the first one begins at 0, and a partition may be empty."""

    @property
    def names(self) -> Sequence[str] | None:
        """The names of the features, or None."""

    def read(self, index: int, columns: IndexArray | None) -> tuple[Any, Any, Any]:
        """The features, the targets and the keys of the persons of one partition.

        Features are an array of doubles or a CSR matrix with one column for each of ``columns``, in increasing order,
        or for all features where that is None; cells that are no numbers are NaN. Targets are numbers or labels as they
        are, or None. Keys are those of the persons, or None.
        """


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition cannot be used, in words that quote no record.

    Workers return it. An exception would be logged where they run, with the arguments of the call: records.
    """

    error: TaciturnError


class BlockFunction(Protocol):
    """Something that is computed from each block by itself, such as a task."""

    @property
    def columns(self) -> IndexArray | None:
        """The features that it reads, as in :class:`~taciturn.engines.Task`."""

    def __call__(self, block: Any) -> Any:
        """The result for one block."""


class PartitionBlock(Block):
    """A block that knows which rows of its partition it holds.

    Parameters
    ----------
    design, target, persons, columns
        As in :class:`~taciturn.engines.Block`.
    rows : ndarray of int
        The rows of the partition, null records left out, in the order of the block.
    """

    def __init__(
        self,
        design: Design,
        target: Any,
        persons: PersonRows | None,
        columns: IndexArray | None,
        rows: IndexArray,
    ) -> None:
        super().__init__(design, target, persons, columns)
        self.rows = rows
        self._measured: tuple[object, int] = None, 0

    def keep(self, kept: BoolArray) -> PartitionBlock:
        """The same block with those of its records whose rows are true in ``kept``, which is over the partition."""
        places = np.flatnonzero(kept[self.rows])
        persons = None
        if self.persons is not None:
            owners = np.repeat(np.arange(self.persons.counts.size), self.persons.counts)
            persons = PersonRows.of_slots(owners[places])
        design = self._whole.take(places)
        return PartitionBlock(design, self.target[places], persons, self.columns, self.rows[places])

    def narrow(self, columns: IndexArray) -> PartitionBlock:
        """The same block with some of its features alone."""
        if not self._whole.is_compacted or (self.columns is not None and np.array_equal(self.columns, columns)):
            # Features in their own units stay as they were read.
            return self
        return PartitionBlock(self._features(columns), self.target, self.persons, columns, self.rows)

    def n_bytes(self) -> int:
        """The memory of the block, with what it remembers for the next round."""
        contents = self._phase, tuple(self._memo)
        if self._measured[0] != contents:
            self._measured = contents, self._measure()
        return self._measured[1]

    def _measure(self) -> int:
        buffers: dict[int, int] = {}
        pending: list[object] = [vars(self)]
        seen: set[int] = set()
        while pending:
            value = pending.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, np.ndarray):
                whole = value if value.base is None else value.base
                buffers[id(whole)] = getattr(whole, "nbytes", value.nbytes)
            else:
                pending.extend(_parts_of(value))
        return sum(buffers.values())


def _parts_of(value: object) -> Iterable[object]:
    if sp.issparse(value):
        return value.data, value.indices, value.indptr  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, tuple | list):
        return value
    if not type(value).__module__.startswith("taciturn."):
        return ()
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


@dataclass(frozen=True, slots=True, eq=False)
class BlockBuilder:
    """What becomes of the rows of any partition, by public rules alone.

    Parameters
    ----------
    x_bound : float
        Public bound on every entry; infinity for features in their own units.
    invalid : {"raise", "null"}
        Whether a record that is not admissible is refused, or null.
    target : NumberMap, LabelMap or None
        Maps the targets; None for tables without one, whose blocks hold zeros.
    numeric : bool
        Whether targets are read as numbers, or as whatever labels they are.
    sparse : bool, default=True
        Whether partitions may be sparse.
    truth_values : bool, default=False
        Whether a column of a boolean type holds truth values, even where it arrives as numbers.
    own_units : bool, default=False
        Whether tasks read features in their own units, so that integers alone do not do.
    gaps : bool, default=False
        Whether ``invalid="null"`` leaves cells out, which are NaN then, and not their records; with ``own_units``.
    """

    x_bound: float
    invalid: str
    target: NumberMap | LabelMap | None
    numeric: bool
    sparse: bool = True
    truth_values: bool = False
    own_units: bool = False
    gaps: bool = False

    def read(self, X: Any, y: Any) -> PresentRecords:
        """The records of a partition with mapped targets."""
        layouts = LAYOUTS if self.sparse else False
        records = read_part(
            X,
            y if self.target is not None else None,
            invalid=self.invalid,
            numeric=self.numeric,
            layouts=layouts,
            gaps=self.gaps,
        )
        if self.truth_values and declares_truth_values(y):
            records = replace(records, y=records.y.astype(bool))
        return records if self.target is None else self.target(records)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """How the block of one partition is made: it can be pickled, and making the block again gives the same one.

    Parameters
    ----------
    builder : BlockBuilder
        What becomes of the rows.
    reader : PartitionReader or None
        Reads the rows; None where they are handed to :meth:`build`.
    index : int
        The place of the partition among all.
    owners : ndarray of int or None
        For each row the slot of its person, -1 for nobody; None where every row is a record.
    taken : ndarray of uint8 or None
        The rows that take part, as packed bits; None for all.
    """

    builder: BlockBuilder
    reader: PartitionReader | None
    index: int
    owners: IndexArray | None = None
    taken: NDArray[np.uint8] | None = None

    def take(self, rows: BoolArray) -> Partition:
        """The same partition with some of its rows alone."""
        taken = rows if self.taken is None else rows & _unpacked(self.taken, rows.size)
        return replace(self, taken=np.packbits(taken))

    def load(
        self, columns: IndexArray | None = None, present: NDArray[np.uint8] | None = None
    ) -> PartitionBlock | Refusal:
        """The block with all features, or with some of them.

        With ``invalid="null"`` it takes all features to tell which records are null: a block of some is right only if
        ``present`` are the rows, as packed bits, that a block of all had.
        """
        if self.reader is None:
            raise TypeError("a partition without a reader is built from rows that are given")
        reader = self.reader

        def read() -> PartitionBlock:
            X, y, keys = reader.read(self.index, columns)
            if keys is not None and self.owners is None:
                raise DataError(_UNUSED_KEYS)
            return self._built(X, y, columns, present)

        block: PartitionBlock | Refusal = quietly(read)
        return block

    def build(self, X: Any, y: Any) -> PartitionBlock | Refusal:
        """The block of rows that are given, with all features."""
        block: PartitionBlock | Refusal = quietly(self._built, X, y, None, None)
        return block

    def _built(self, X: Any, y: Any, columns: IndexArray | None, present: NDArray[np.uint8] | None) -> PartitionBlock:
        records = self.builder.read(X, y)
        n_rows = records.n_slots
        for mask in (self.taken, present):
            if mask is not None:
                records = records.keep(_unpacked(mask, n_rows)[records.slots])
        rows, persons = records.slots, None
        if self.owners is not None:
            keys = PersonKeys(self.owners, 0)
            rows = rows[keys.order(rows)]
            records = records.of_persons(keys)
            persons = PersonRows.of_slots(records.slots)
        # The one place where blocks of partitions get their features: integers, half of what the table takes.
        design = Design(records.X, self.builder.x_bound)
        if not self.builder.own_units:
            design = design.compacted()
        return PartitionBlock(design, records.y, persons, columns, rows)


def _unpacked(bits: NDArray[np.uint8], n_rows: int) -> BoolArray:
    """A mask over some rows from its packed bits."""
    return np.unpackbits(bits, count=n_rows).astype(bool)


def answer_of(function: BlockFunction, block: PartitionBlock | Refusal) -> Any:
    """What a function gives for a block, or why there is no such block; for workers, where nothing may be said."""
    if isinstance(block, Refusal):
        return block
    try:
        return guarded(function, silent=True)(block)
    except TaciturnError as error:
        return Refusal(error)


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of rows returns, or a refusal where it fails: what is said of that could quote them."""
    try:
        return guarded(function, silent=True)(*arguments)
    except TaciturnError as error:
        return Refusal(error)
    except Exception:
        return Refusal(DataError(_UNREADABLE))


def accepted(answer: Any) -> Any:
    """The answer, unless it is a refusal, which is raised: for the driver."""
    if isinstance(answer, Refusal):
        raise answer.error
    return answer


# -----------------------------------------------------------------------------
# A table in memory.


class ArraySource:
    """A table in memory, in one partition or in several.

    Parameters
    ----------
    records : PresentRecords
        The records that are not null, with the mapped target: lattice numbers, or class codes.
    x_bound : float
        Public bound on every entry.
    n_records : int or None
        The public number of records, or None under add-remove.
    n_partitions : int, default=1
        Partitions of about equally many rows of the table, or persons, null records included. Sums are the same for
        any number.
    """

    def __init__(
        self, records: PresentRecords, x_bound: float, n_records: int | None, *, n_partitions: int = 1
    ) -> None:
        check_integer(1, n_partitions=n_partitions)
        self.records, self.x_bound, self.n_records = records, x_bound, n_records
        self.n_features: int = records.n_features
        self._designs: dict[int, Design] = {}
        self._edges: IntArray = np.arange(n_partitions + 1, dtype=np.int64) * records.n_slots // n_partitions

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition, or the first person."""
        return self._edges[:-1]

    @property
    def n_slots(self) -> int:
        """Rows of the table, null records included, or persons."""
        return self.records.n_slots

    @property
    def rank_weight(self) -> int:
        """The integer that stands for one record in counts of values: 1, or what the rows of a person share."""
        return PERSON_WEIGHT if self.records.persons else 1

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""
        check_task(task)
        return add_partitions(task(block) for block in self._blocks)

    def design(self, *, constant: int = 0) -> Design:
        """All features on the lattice, for solvers that need more than sums; made once.

        ``constant`` is the entry of an intercept column in lattice units; 0 for no such column.
        """
        if constant not in self._designs:
            self._designs[constant] = Design(self.records.X, self.x_bound, intercept=constant > 0, constant=constant)
        return self._designs[constant]

    def divide(self, first: BoolArray) -> tuple[ArraySource, ArraySource]:
        """The records in two: those of the slots that are true in ``first``, and the others."""
        chosen = first[self.records.slots]
        counts: tuple[int | None, int | None] = None, None
        if self.n_records is not None:
            counts = int(first.sum()), int(first.size - first.sum())
        n_partitions = self._edges.size - 1
        of_first, of_others = (
            ArraySource(self.records.keep(kept), self.x_bound, n_records, n_partitions=n_partitions)
            for kept, n_records in zip((chosen, ~chosen), counts, strict=True)
        )
        return of_first, of_others

    @cached_property
    def _blocks(self) -> list[Block]:
        whole, records = self.design(), self.records
        if self._edges.size == 2:
            return [Block(whole, records.y, PersonRows.of_slots(records.slots) if records.persons else None)]
        # Rows of one person have one slot, which no edge cuts.
        edges = np.searchsorted(records.slots, self._edges).tolist()
        return [
            Block(
                whole.rows(start, stop),
                records.y[start:stop],
                PersonRows.of_slots(records.slots[start:stop]) if records.persons else None,
            )
            for start, stop in pairwise(edges)
        ]
