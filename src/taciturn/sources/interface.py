"""What a source is: a table in partitions that answers with exact integer sums over its records.

Integers add up to the same sum in any order. A fit that reads its data through :meth:`Source.total` alone therefore
gives the same coefficients for the same seed, whatever the partitions are and wherever they are stored. Sums are exact
and as sensitive as the records: they belong to the driver, which adds the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from taciturn.core.arrays import BoolArray, IndexArray, IntArray, NumberArray
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.persons import PersonRows

__all__ = ["Block", "DivisibleSource", "Source", "Task", "add_partitions", "check_task"]

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
