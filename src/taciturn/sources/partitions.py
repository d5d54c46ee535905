"""Sources over partitions that lie somewhere else, whatever runs them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from taciturn.core.arrays import BoolArray, IntArray
from taciturn.data.persons import PERSON_WEIGHT
from taciturn.sources.blocks import BlockFunction, Partition, PartitionBlock, accepted
from taciturn.sources.interface import Task, add_partitions, check_task

__all__ = ["PartitionFacts", "PartitionedSource"]


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
