"""What a fit asks of a table: exact sums of integers over its partitions.

Integers add up to the same sum in any order. A fit that reads its data through :meth:`Source.total` alone therefore
gives the same coefficients for the same seed, whatever the partitions are and wherever they are stored. Sums are exact
and as sensitive as the records: they belong to the driver, which adds the noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Protocol

import numpy as np

from taciturn.core.arrays import IndexArray, IntArray
from taciturn.core.rng import Stream
from taciturn.sources.blocks import Block

__all__ = ["Source", "Task", "add_partitions", "check_task"]


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

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""


def check_task(task: Task) -> Task:
    """Refuse a task that holds a random stream, at any depth.

    Raises
    ------
    TypeError
        If it holds one.
    """
    if _holds_stream(task):
        raise TypeError(f"{type(task).__name__} holds a random stream: draw noise in the driver, after the sum")
    return task


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


def _holds_stream(task: object) -> bool:
    pending, seen = [task], set()
    while pending:
        value = pending.pop()
        if isinstance(value, Stream):
            return True
        if id(value) not in seen:
            seen.add(id(value))
            pending.extend(_contents(value))
    return False


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
