"""What a fit takes: the interface of a source of exact integer sums, arrays in memory, and open tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar, cast, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    AnyArray,
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    NumberArray,
    check_integer,
    without_data_values,
)
from taciturn.data.design import Design
from taciturn.data.persons import MANY_ROWS, PERSON_WEIGHT, KeyForms, PersonKeys, PersonRows, slots_in_parts
from taciturn.data.records import (
    LAYOUTS,
    Measures,
    Outcomes,
    Records,
    declares_truth_values,
    has_truth_values,
    judged_labels,
    plain_labels,
    public_labels,
    read_part,
)
from taciturn.data.survival import SurvivalMap
from taciturn.data.target import LabelMap, NumberMap

# ---- What a source is: a table in partitions that answers with exact integer sums over its records.
# Integers add up to the same sum in any order. A fit that reads its data through :meth:`Source.total` alone therefore
# gives the same coefficients for the same seed, whatever the partitions are and wherever they are stored. Sums are
# exact and as sensitive as the records: they belong to the driver, which adds the noise.

Value = TypeVar("Value")


class Block:
    """The records of one partition on the lattice, and what tasks need again in the next round.

    ``design`` holds the features, without an intercept column, and ``target`` lattice numbers, or class codes with -1
    for null records. ``weight`` are numbers in [0, 1] by which terms of rows count (None: ones), ``offset`` what is
    added to their margins (None: zeros). Where a record is a person, ``persons`` says whose rows they are: rows of a
    person lie together, and all in one block. ``columns`` are the features that ``design`` holds, in increasing order
    (None: all); a task reads no others than its ``columns`` name. ``rows`` are the rows of the partition without null
    records (None: all).

    A fit asks many sums of the same columns in a row, for instance one gradient per step. The block remembers what they
    share: the columns, and one value per name that :meth:`recall` is called with. Keys are compared by content, so that
    a task which was pickled finds what its predecessor left. Other columns begin another phase: everything that belongs
    to the earlier ones is forgotten, and memory stays bounded. A block that is pickled leaves it behind.
    """

    def __init__(
        self,
        design: Design,
        target: NumberArray,
        persons: PersonRows | None = None,
        columns: IndexArray | None = None,
        rows: IndexArray | None = None,
        weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        self._whole, self.target, self.persons, self.columns = design, target, persons, columns
        self._rows, self.weight, self.offset = rows, weight, offset
        self._by_size: tuple[Block, tuple[Block, ...]] | None = None
        self._counting: tuple[int | None, Block] | None = None
        self._measured: tuple[object, int] = None, 0
        self._phase: tuple[bytes | None, str | None] | None = None
        self._design = design
        self._memo: dict[str, tuple[Hashable, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        forgotten: dict[str, Any] = {"_phase": None, "_memo": {}, "_by_size": None, "_counting": None}
        return vars(self) | {"_design": self._whole} | forgotten

    @property
    def n_rows(self) -> int:
        """The number of rows that are stored here."""
        return self._whole.shape[0]

    @property
    def rows(self) -> IndexArray:
        """The rows of the partition that are stored here."""
        return np.arange(self.n_rows) if self._rows is None else self._rows

    @property
    def row_counts(self) -> IntArray | None:
        """For each row the number of rows of its person; None where every row is a record."""
        return None if self.persons is None else self.persons.of_rows

    @property
    def n_persons(self) -> int | None:
        """The number of persons that have rows here; None where every row is a record."""
        return None if self.persons is None else int(self.persons.counts.size)

    def cell_shares(self, cells: IntArray, n_cells: int, unit: int) -> IntArray:
        """Sums of ``unit`` times the weight of each row in its cell, in whole numbers; rows of a person share one."""
        weights = np.ones(self.n_rows) if self.weight is None else self.weight
        if self.persons is not None:
            return self.persons.cell_shares(cells, n_cells, unit, self.weight)
        sums = np.zeros(n_cells, dtype=np.int64)
        inside = cells >= 0
        np.add.at(sums, cells[inside], np.trunc(unit * weights[inside]).astype(np.int64))
        return sums

    def weighed(self, terms: Any) -> Any:
        """Terms of rows, numbers or vectors, times the weights of the rows."""
        if self.weight is None:
            return terms
        return terms * self.weight.reshape(-1, *([1] * (np.ndim(terms) - 1)))

    def by_record(self, terms: IntArray) -> IntArray:
        """One term per record: those of the rows, or for a person the mean of its rows' terms, cut towards zero."""
        return terms if self.persons is None else self.persons.mean_terms(terms)

    def by_size(self) -> tuple[Block, tuple[Block, ...]]:
        """The records with few rows, and one block for each person with many, whose rows are records there."""
        if self.persons is None or not self.persons.large.size:
            return self, ()
        if self._by_size is None:
            persons = self.persons
            few = np.flatnonzero(persons.of_rows <= MANY_ROWS)
            many = (np.arange(own.start, own.stop) for own in persons.slices(persons.large))
            self._by_size = (
                self._take(few, PersonRows(persons.counts[persons.counts <= MANY_ROWS])),
                tuple(self._take(own, None) for own in many),
            )
        return self._by_size

    def counting_rows(self, most: int | None) -> Block:
        """The same block, in which a person counts by its rows, as many as ``most``: m / most of a record's weight.

        With None every row is a record by itself.
        """
        if self.persons is None:
            raise TypeError("a record is a row here")
        if self._counting is None or self._counting[0] != most:
            weight, persons = self.weight, None
            if most is not None:
                shares, persons = np.minimum(self.persons.of_rows, most) / most, self.persons
                weight = shares if weight is None else shares * weight
            whole = Block(self._whole, self.target, persons, self.columns, self._rows, weight, self.offset)
            self._counting = most, whole
        return self._counting[1]

    def design(self, columns: IndexArray | None, layout: str | None = None) -> Design:
        """Some of the features, None for all; sparse ones in a layout, "csr" or "csc", or as they are for None."""
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

    def keep(self, kept: BoolArray) -> Block:
        """The same block with those of its records whose rows are true in ``kept``, which is over the partition."""
        places = np.flatnonzero(kept[self.rows])
        persons = None
        if self.persons is not None:
            owners = np.repeat(np.arange(self.persons.counts.size), self.persons.counts)
            persons = PersonRows.of_slots(owners[places])
        return self._take(places, persons)

    def _take(self, places: IndexArray, persons: PersonRows | None) -> Block:
        design = self._whole.take(places)
        weight, offset = (None if each is None else each[places] for each in (self.weight, self.offset))
        return Block(design, self.target[places], persons, self.columns, self.rows[places], weight, offset)

    def narrow(self, columns: IndexArray) -> Block:
        """The same block with some of its features alone."""
        if not self._whole.is_compacted or (self.columns is not None and np.array_equal(self.columns, columns)):
            # Features in their own units stay as they were read.
            return self
        kept = self.persons, columns, self.rows, self.weight, self.offset
        return Block(self._features(columns), self.target, *kept)

    def n_bytes(self) -> int:
        """The memory of the block, with what it remembers for the next round."""
        contents = self._contents()
        if self._measured[0] != contents:
            self._measured = contents, self._measure()
        return self._measured[1]

    def _contents(self) -> tuple[object, ...]:
        """What is held, by names: it tells whether the memory has to be measured again."""
        parts = [] if self._by_size is None else [self._by_size[0], *self._by_size[1]]
        parts += [] if self._counting is None else [self._counting[1]]
        return (self._phase, tuple(self._memo), *(part._contents() for part in parts))

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

    @property
    def n_slots(self) -> int:
        """Rows of the table, null records included, or persons. Public, except under add-remove."""

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""

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


# Of these types nothing is looked at: they hold no objects.
_LEAVES = frozenset({bool, int, float, complex, str, bytes, type(None), np.bool_, np.int64, np.float64})


def check_task(task: Task) -> Task:
    """Refuse a task that holds a random stream, at any depth, with a TypeError."""
    pending: list[object] = [task]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if type(value) in _LEAVES or (type(value) is np.ndarray and not value.dtype.hasobject):
            continue
        if isinstance(value, Stream):
            raise TypeError(f"{type(task).__name__} holds a random stream: draw noise in the driver, after the sum")
        if id(value) not in seen:
            seen.add(id(value))
            pending.extend(_contents(value))
    return task


def _contents(value: object) -> Iterable[object]:
    """What a container or an object holds; nothing for classes and arrays of numbers."""
    # Asking abstract classes takes long beside a step of a small fit: of a class that is known to be none of these
    # nobody asks again.
    if type(value) in _SLOTS:
        return _held(value)
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if isinstance(value, np.ndarray):
        return value.flat if value.dtype == object else ()
    if isinstance(value, type | ModuleType):
        return ()
    return _held(value)


def _held(value: object) -> list[object]:
    """What an object holds in its slots, its dictionary and its closure."""
    held = [getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)]
    closure = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return [*held, *getattr(value, "__dict__", {}).values(), *closure]


_SLOTS: dict[type, tuple[str, ...]] = {}


def _slots(kind: type) -> tuple[str, ...]:
    """The names of what objects of a class hold outside of their dictionary, looked up once."""
    if kind not in _SLOTS:
        names = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
        _SLOTS[kind] = tuple(name for name in names if name != "__dict__")
    return _SLOTS[kind]


# ---- One partition of a table becomes one block: its rows are read, judged, mapped and put in slots.
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

    It can be pickled and holds no records. Reading a partition again, on any worker, gives the same rows in the same
    order.
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
        are, with weights and exposures in :class:`~taciturn.data.records.Outcomes`, or None. Keys are those of the
        persons, or None.
        """


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition cannot be used, in words that quote no record.

    Workers return it, since an exception would be logged there with the arguments of the call, which are records.
    """

    error: TaciturnError


@dataclass(frozen=True, slots=True, eq=False)
class BlockBuilder:
    """What becomes of the rows of any partition, by public rules alone.

    Parameters
    ----------
    x_bound : float
        Public bound on every entry; infinity for features in their own units.
    invalid : {"raise", "null"}
        Whether a record that is not admissible is refused, or null.
    target : NumberMap, LabelMap, SurvivalMap or None
        Maps the targets; None for tables without one, whose blocks hold zeros.
    numeric, sparse : bool
        Whether targets are read as numbers, not as whatever labels they are, and whether partitions may be sparse.
    truth_values, own_units : bool, default=False
        Whether a column of a boolean type holds truth values, even where it arrives as numbers, and whether tasks read
        features in their own units, so that integers alone do not do.
    gaps : bool, default=False
        Whether ``invalid="null"`` leaves cells out, which are NaN then, and not their records; with ``own_units``.
    measures : Measures, default=None
        Bounds on weights and exposures, which the reader gives in :class:`~taciturn.data.records.Outcomes`; None for
        records without any.
    """

    x_bound: float
    invalid: str
    target: NumberMap | LabelMap | SurvivalMap | None
    numeric: bool
    sparse: bool = True
    truth_values: bool = False
    own_units: bool = False
    gaps: bool = False
    measures: Measures | None = None

    def read(self, X: Any, y: Any) -> Records:
        """The records of a partition with mapped targets."""
        layouts = LAYOUTS if self.sparse else False
        outcomes = Outcomes.of(y)
        y = outcomes.y
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
        if self.measures is not None:
            records = records.measured(outcomes, self.measures, invalid=self.invalid)
        return records if self.target is None else self.target(records)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """How the block of one partition is made: it can be pickled, and making the block again gives the same one.

    ``reader`` reads the rows (None: they are handed to :meth:`build`), and ``index`` is the place of the partition
    among all. ``owners`` has the slot of the person of each row, -1 for nobody; None where every row is a record.
    ``taken`` are the rows that take part, as packed bits; None for all.
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

    def load(self, columns: IndexArray | None = None, present: NDArray[np.uint8] | None = None) -> Block | Refusal:
        """The block with all features, or with some of them.

        With ``invalid="null"`` it takes all features to tell which records are null: a block of some is right only if
        ``present`` are the rows, as packed bits, that a block of all had.
        """
        if self.reader is None:
            raise TypeError("a partition without a reader is built from rows that are given")
        reader = self.reader

        def read() -> Block:
            X, y, keys = reader.read(self.index, columns)
            if keys is not None and self.owners is None:
                raise DataError(_UNUSED_KEYS)
            return self._built(X, y, columns, present)

        block: Block | Refusal = quietly(read)
        return block

    def build(self, X: Any, y: Any) -> Block | Refusal:
        """The block of rows that are given, with all features."""
        block: Block | Refusal = quietly(self._built, X, y, None, None)
        return block

    def _built(self, X: Any, y: Any, columns: IndexArray | None, present: NDArray[np.uint8] | None) -> Block:
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
        return Block(design, records.y, persons, columns, rows, records.weight, records.offset)


def _unpacked(bits: NDArray[np.uint8], n_rows: int) -> BoolArray:
    """A mask over some rows from its packed bits."""
    return np.unpackbits(bits, count=n_rows).astype(bool)


def answer_of(function: Task, block: Block | Refusal) -> Any:
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


class ArraySource:
    """A table in memory, in one partition or in several.

    Parameters
    ----------
    records : Records
        The records that are not null, with the mapped target: lattice numbers, or class codes.
    x_bound : float
        Public bound on every entry.
    n_records : int or None
        The public number of records, or None under add-remove.
    n_partitions : int, default=1
        Partitions of about equally many rows, or persons, null records included. Sums are the same for any number.
    """

    def __init__(self, records: Records, x_bound: float, n_records: int | None, *, n_partitions: int = 1) -> None:
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
            persons = PersonRows.of_slots(records.slots) if records.persons else None
            return [Block(whole, records.y, persons, weight=records.weight, offset=records.offset)]
        # Rows of one person have one slot, which no edge cuts.
        edges = np.searchsorted(records.slots, self._edges).tolist()
        return [
            Block(
                whole.rows(start, stop),
                records.y[start:stop],
                PersonRows.of_slots(records.slots[start:stop]) if records.persons else None,
                weight=None if records.weight is None else records.weight[start:stop],
                offset=None if records.offset is None else records.offset[start:stop],
            )
            for start, stop in pairwise(edges)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class ByRows:
    """A task in which persons count by their rows, up to so many."""

    task: Task
    most: int | None

    @property
    def columns(self) -> IndexArray | None:
        """The features that the task reads."""
        return self.task.columns

    def __call__(self, block: Block) -> IntArray:
        """The sums of the task over a block."""
        return self.task(block.counting_rows(self.most))


class RowsCounted:
    """A source of persons that count by their rows, each row for ``1 / most``, and by no more than ``most`` of them.

    The weight of a person, in [0, 1], is a function of its rows and of ``most``, which is public or released. It
    multiplies what the person adds to sums, so that no sensitivity grows. None for ``most``, without privacy alone:
    every row is a record.
    """

    def __init__(self, source: Source, most: int | None) -> None:
        self._source, self._most = source, most if most is None else check_integer(1, most=most)

    @property
    def n_records(self) -> int | None:
        """The public number of records, or None under add-remove."""
        return self._source.n_records

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self._source.n_features

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition."""
        return self._source.offsets

    @property
    def rank_weight(self) -> int:
        """The integer that stands for one record in counts of values."""
        return 1 if self._most is None else self._source.rank_weight

    @property
    def n_slots(self) -> int:
        """The number of persons, null persons included."""
        return self._source.n_slots

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""
        return self._source.total(ByRows(task, self._most))

    def divide(self, first: BoolArray) -> tuple[RowsCounted, RowsCounted]:
        """The records in two: those of the slots that are true in ``first``, and the others."""
        one, other = self._source.divide(first)
        return RowsCounted(one, self._most), RowsCounted(other, self._most)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionFacts:
    """What the driver knows of a table in partitions.

    ``n_records`` is public, and None under add-remove. ``lengths`` are the numbers of rows of the partitions, null
    records included. ``n_persons`` is None unless a record is a person.
    """

    n_records: int | None
    n_features: int
    lengths: IntArray
    n_persons: int | None = None


# ---- Tables that ``fit`` takes in place of arrays: read in partitions, with their target and their persons.

ONE_PARTITION = (
    "the rows of each person lie in one partition of the table; a table in which they do not is refused, and the "
    "refusal tells of it"
)
"""What the guarantee for persons rests on where a table is read in partitions."""


class OpenTable(ABC):
    """A table in partitions, open for reading: ``fit`` takes it in place of arrays, and no record is in memory yet."""

    names: tuple[str, ...] | None
    """The names of the features, or None."""
    n_features: int
    has_target: bool
    has_persons: bool
    is_sparse: bool
    has_weight: bool = False
    has_exposure: bool = False
    classes: Any = None
    """The public labels of the target, where the table states them."""
    y_bounds: tuple[float, float] | None = None
    """The public range of the target, where the table states it."""
    x_bound: float | None = None
    """The public bound on every feature, where the table states it."""
    weight_bound: float | None = None
    """The public bound on weights, where the table states it."""
    exposure_bound: float | None = None
    """The public bound on exposures, where the table states it."""
    cuts: tuple[float, ...] | None = None
    """The public ends of intervals, where the target is a time to an event."""
    groups: Sequence[Sequence[int]] | None = None
    """The places of the features of each column of a table on disk; None where they are not known."""
    person_column: str | None = None
    """The name of the column with the keys of the persons, where the table has one."""
    invalid: str | None = None
    """What becomes of cells that cannot be used, where the table decides that."""
    gathers_persons: bool = False
    """Whether rows of a person are in one partition wherever they are in the table, so that it is never refused."""
    has_row_order: bool = True
    """Whether the rows have an order that lasts, so that halves and folds of them are the same on every pass."""
    assumptions: tuple[str, ...] = ()
    """What every certificate of a release from this table has to assume, in words."""
    encoder: Any = None
    """What encodes data frames with the columns of this table as its features; None where they are not known."""

    def each_features(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the features of each partition, in their order."""
        raise DataError("X: expected a table on disk for predictions, got another open table; pass its arrays.")

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

    def read_persons(self) -> PersonKeys:
        """Whose rows the rows are. Raises DataError if those of one person lie in several partitions."""
        slots, n_persons, digest = slots_in_parts(self.each_key_forms())
        held = np.concatenate([np.unique(each[each >= 0]) for each in slots])
        if np.unique(held).size < held.size:
            raise DataError(
                "persons: expected all rows of a person in one partition, got some in several; sort the table by "
                "person and cut it between persons, or fit in memory."
            )
        return PersonKeys(np.concatenate(slots), n_persons, digest)

    @abstractmethod
    def _source(self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts) -> Any:
        """The source of the blocks that the builder makes."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features. The former is private as that of each partition is."""
        return int(self.lengths.sum()), self.n_features

    def read(
        self, estimator: Any, builder: BlockBuilder, n_records: int | None, persons: Callable[[], PersonKeys] | None
    ) -> Source:
        """The source of the records that are not null; every partition is read once, and refused if it must be.

        ``estimator`` learns the names and the number of the columns. ``n_records`` is the public number of records, or
        None under add-remove. ``persons`` tells whose rows they are, if it is not None.
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
        source: Source = self._source(builder, owners, facts).admit()
        return source

    def add_measures(self, weight: Any, exposure: Any) -> None:
        """Take weights and exposures that are given beside the table, where it has none of its own."""
        for name, given in (("sample_weight", weight), ("exposure", exposure)):
            if given is not None:
                raise DataError(f"{name}: expected None beside a table that has its own, got something; leave it out.")

    def check_method(self, names: Sequence[str], relation: str) -> None:  # noqa: B027 - most tables allow all of them
        """Raise where this table is not for a method, by its own name and those of what it derives from.

        Raise, too, where a neighbouring relation protects what is public of this table.
        """

    def name_features(self, estimator: Any) -> None:
        """Set what an estimator learns of the columns."""
        estimator.n_features_in_ = self.n_features
        if self.encoder is not None:
            setattr(estimator, ENCODER, self.encoder)
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
        return self.table.read_persons()


def open_arguments(X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
    """The arguments of ``fit``, with an open table and its target and persons where X is one or a dask collection."""
    given = [name for name, value in (("y", y), ("persons", persons)) if value is not None]
    if is_dask(X):
        # Here rather than above: dask is an extra.
        from taciturn.engines.dask import DaskTable

        X = DaskTable(X, y, persons)
    elif is_spark(X):
        # As above: Spark is an extra.
        from taciturn.engines.spark import SparkTable

        X = SparkTable(X, y, persons)
    elif not is_open(X):
        if is_dask(y) or is_dask(persons):
            raise DataError(
                "X: expected a dask collection beside a dask y or dask persons, got something else; compute() these, "
                "or make X one too."
            )
        return X, y, persons
    elif given:
        raise DataError(f"{given[0]}: expected None beside a table that has its own, got something; leave it out.")
    if X.has_persons and not X.has_row_order:
        raise DataError(
            "persons: expected a table whose rows have an order that lasts, got another; write it as Parquet, sorted "
            "by person, and open that, or state a unique key of a table in a database, &key=."
        )
    return X, PartitionedTarget(X) if X.has_target else None, TablePersons(X) if X.has_persons else None


def is_open(value: Any) -> bool:
    """Whether something is an open table, told by its type alone."""
    return issubclass(type(value), OpenTable)


def is_dask(value: Any) -> bool:
    """Whether something is an array, a data frame or a column of dask."""
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(value, "__dask_graph__")


def is_spark(value: Any) -> bool:
    """Whether something is a data frame of Spark, or a similar object of it."""
    return type(value).__module__.partition(".")[0] == "pyspark" and hasattr(value, "columns")


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
        return all(y.table.each_target(TruthValues(invalid)))
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
class TruthValues:
    """Whether the targets of a partition are truth values, or there are none."""

    invalid: str

    def __call__(self, y: Any) -> bool:
        """Whether these targets are."""
        return len(y) == 0 or has_truth_values(y, invalid=self.invalid)


# ---- Predictions and transformations of dask collections, partition by partition.

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

    Workers get a copy without the seed and the account of the fit. Of an open table it gives one array of predictions,
    with one partition in memory at a time; a table that is transformed would be as large, and is refused. What was
    fitted to an open table takes data frames as they are, with the columns of that table, and encodes them alike.
    """

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        if is_spark(X):
            raise DataError(
                f"X: expected an array, a data frame, a dask collection or an open table for {method.__name__}, got a "
                "frame of Spark; write it as Parquet and open that, or pass its partitions one by one by mapInPandas."
            )
        if isinstance(X, OpenTable):
            return _predict_open(method, self, X)
        if is_dask(X):
            return _map_partitions(method, self, X)
        encoder = vars(self).get(ENCODER)
        if encoder is not None and (hasattr(X, "columns") or hasattr(X, "column_names")):
            # Without the names of the features, which are those of the encoder.
            return guarded(method, silent=True)(self, encoder.transform(X))
        return method(self, X)

    return cast(RowByRow[Result], mapped)


ENCODER = "_table_encoder"
"""The attribute of what was fitted to an open table that holds the encoder of its columns."""


def _predict_open(method: Callable[[Any, Any], Any], fitted: Any, table: OpenTable) -> Any:
    """The results for all rows of an open table, in their order."""
    if hasattr(fitted, "transform"):
        raise DataError(
            f"X: expected an array, a data frame or a dask collection for {method.__name__}, got an open table; "
            "pass its partitions one by one."
        )
    if table.has_persons:
        raise DataError(
            "X: expected a table without persons for predictions, got one whose rows are gathered by person, in "
            "another order; leave [person] out of the bounds it is opened with, or pass a data frame."
        )
    if not table.has_row_order:
        raise DataError(
            "X: expected a table whose rows have an order that lasts for predictions, got another; state a unique key "
            "of a table in a database, &key=."
        )
    own = vars(fitted).get(ENCODER)
    known = getattr(fitted, "feature_names_in_", None)
    if own is not None and table.encoder is not None:
        same = own.encodes_as(table.encoder)
    elif known is not None and table.names is not None:
        same = tuple(known) == tuple(table.names)
    else:
        same = fitted.n_features_in_ == table.n_features
    if not same:
        raise DataError(
            "X: expected a table with the bounds and features of the one that the model was fitted to, got another; "
            "open it with the same bounds file."
        )
    return np.concatenate(table.each_features(partial(guarded(method, silent=True), fitted)))


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
