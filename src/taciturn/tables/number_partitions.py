"""Columns of numbers of a table on disk as they are, for bounds that are found privately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.tables.partitions import TablePartitions

__all__ = ["NumberPartitions"]


class NumberPartitions:
    """Some columns of numbers of a table in partitions, neither clipped nor scaled, and without a target.

    Where cells of a column may be missing without a value in their place (``{indicator = true}``), a missing one is NaN
    and takes nothing else out, and all numbers of a record with another cell that cannot be used are NaN. It can be
    pickled and holds no cell. What it reads is as sensitive as the table.

    Parameters
    ----------
    table : TablePartitions
        The table.
    names : sequence of str
        Its columns of numbers, as :meth:`TablePartitions.read_numbers` takes them.
    """

    sparse = False

    def __init__(self, table: TablePartitions, names: Sequence[str]) -> None:
        self._table = table
        self.names = list(names)
        self.n_rows, self.n_features = table.n_rows, len(self.names)
        self.offsets: IntArray = table.offsets
        self.assumptions = table.assumptions
        fills = [table.bounds.fill_of(name) for name in self.names]
        self._lacking = [fill is not None and fill.value is None for fill in fills]

    def read(self, index: int, columns: IndexArray | None = None) -> tuple[FloatArray, None, list[Any] | None]:
        """Read the numbers of one partition, all columns or some by their places, and the keys of its persons."""
        names = self.names if columns is None else [self.names[place] for place in columns]
        keys = None
        if self._table.bounds.person is not None or not names:
            _, y, keys = self._table.read(index, np.zeros(0, dtype=np.intp))
            if not names:
                return np.zeros((len(y), 0)), None, keys
        if not any(self._lacking):
            return self._table.read_numbers(index, names), None, keys
        numbers = self._table.read_numbers(index, self.names)
        wrong = np.where(self._lacking, np.isinf(numbers), ~np.isfinite(numbers))
        numbers[wrong.any(axis=1)] = np.nan
        return numbers if columns is None else numbers[:, columns], None, keys
