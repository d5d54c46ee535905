"""A table with the public facts of another and without its records, which counts the passes of a fit over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taciturn.core.arrays import IndexArray, IntArray
from taciturn.sources import BlockBuilder, OpenTable, Partition, PartitionedSource, PartitionFacts, answer_of
from taciturn.sources.blocks import BlockFunction

__all__ = ["RehearsedTable"]


class RehearsedTable(OpenTable):
    """The public facts of an open table, with no record in it.

    Parameters
    ----------
    table : OpenTable
        The table; none of its partitions is read.
    """

    def __init__(self, table: OpenTable) -> None:
        self.names, self.n_features = table.names, table.n_features
        self.has_target, self.has_persons, self.is_sparse = table.has_target, False, table.is_sparse
        self.classes, self.y_bounds, self.x_bound, self.invalid = (
            table.classes, table.y_bounds, table.x_bound, table.invalid,
        )  # fmt: skip
        self._n_rows = table.shape[0]
        self.n_passes = 0

    @property
    def lengths(self) -> IntArray:
        """One partition of all rows."""
        return np.array([self._n_rows], dtype=np.int64)

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for two labels, where the table states none."""
        return [function(np.array([0, 1]))]

    def each_key_forms(self) -> list[Any]:
        """There are no persons."""
        return []

    def count(self) -> None:
        """Count one more pass."""
        self.n_passes += 1

    def _source(
        self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts
    ) -> PartitionedSource:
        return _Rehearsal([Partition(builder, None, 0)], facts, self.count)


class _Rehearsal(PartitionedSource):
    """One partition whose block is empty, and which tells of each pass over it."""

    def __init__(self, partitions: Any, facts: PartitionFacts, count: Callable[[], None]) -> None:
        super().__init__(partitions, facts)
        self._count = count

    def each(self, function: BlockFunction) -> Iterator[Any]:
        """The answer of the empty block."""
        self._count()
        X, y = np.zeros((0, self.n_features)), np.zeros(0)
        yield answer_of(function, self.partitions[0].build(X, y))

    def _part(self, rows: Any, facts: PartitionFacts) -> _Rehearsal:
        return _Rehearsal(self.partitions, facts, self._count)
