"""A table in memory."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from taciturn.core.arrays import BoolArray, IntArray
from taciturn.core.validation import check_integer
from taciturn.data.admission import PresentRecords
from taciturn.data.design import Design
from taciturn.data.persons import PERSON_WEIGHT, PersonRows
from taciturn.sources.interface import Block, Task, add_partitions, check_task

__all__ = ["ArraySource"]


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
