"""A table in memory."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from taciturn.core.arrays import IntArray
from taciturn.core.validation import check_integer
from taciturn.data.admission import PresentRecords
from taciturn.data.design import Design
from taciturn.sources.base import Task, add_partitions, check_task
from taciturn.sources.blocks import Block

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
        Partitions of about equally many rows of the table, null records included. Sums are the same for any number.
    """

    def __init__(
        self, records: PresentRecords, x_bound: float, n_records: int | None, *, n_partitions: int = 1
    ) -> None:
        check_integer(1, n_partitions=n_partitions)
        self.records, self.x_bound, self.n_records = records, x_bound, n_records
        self._designs: dict[bool, Design] = {}
        self._edges: IntArray = np.arange(n_partitions + 1, dtype=np.int64) * records.n_slots // n_partitions

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.records.n_features

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition."""
        return self._edges[:-1]

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions."""
        check_task(task)
        return add_partitions(task(block) for block in self._blocks)

    def design(self, *, intercept: bool = False) -> Design:
        """All features on the lattice, for solvers that need more than sums; made once."""
        if intercept not in self._designs:
            self._designs[intercept] = Design(self.records.X, self.x_bound, intercept=intercept)
        return self._designs[intercept]

    @cached_property
    def _blocks(self) -> list[Block]:
        whole = self.design()
        if self._edges.size == 2:
            return [Block(whole, self.records.y)]
        places = np.searchsorted(self.records.slots, self._edges)
        return [Block(whole.rows(start, stop), self.records.y[start:stop]) for start, stop in pairwise(places.tolist())]
