"""One partition of a table becomes one block: its rows are read, judged, mapped and put in slots.

That is what :func:`~taciturn.data.reading.read_records` does with a whole table. Whatever is decided here is decided
record by record, so that the blocks of a table hold the same records for every division into partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import BoolArray, IndexArray, IntArray
from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.data.admission import PresentRecords, declares_truth_values
from taciturn.data.design import Design
from taciturn.data.persons import PersonKeys, PersonRows
from taciturn.data.reading import LAYOUTS, read_part
from taciturn.data.target import LabelMap, NumberMap
from taciturn.sources.interface import Block

__all__ = [
    "BlockBuilder",
    "BlockFunction",
    "Partition",
    "PartitionBlock",
    "PartitionReader",
    "Refusal",
    "accepted",
    "answer_of",
    "quietly",
]

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
        """The features that it reads, as in :class:`~taciturn.sources.Task`."""

    def __call__(self, block: Any) -> Any:
        """The result for one block."""


class PartitionBlock(Block):
    """A block that knows which rows of its partition it holds.

    Parameters
    ----------
    design, target, persons, columns
        As in :class:`~taciturn.sources.Block`.
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
