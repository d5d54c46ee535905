"""A sparse matrix of lattice integers, by row and by column: what compiled loops over both walk through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taciturn.core.arrays import Int32Array, IntArray
from taciturn.kernels.compiled import compiled

__all__ = ["Matrix", "count_columns", "keep_columns", "pack", "span", "sum_column", "weigh_columns"]

_NONE = -1


class Matrix(NamedTuple):
    """Lattice entries by row and by column, each packed into one word: ``value << 32 | index``.

    Columns are numbered by falling number of entries, which keeps what is used most in the cache. Numbers are names:
    the order changes which words lead to which vertex, and not a single probability.

    The compiled functions take this and the following as plain tuples: a class in a compiled signature ends up in
    numba's cache by name, and renaming it would break caches that are already on disk.
    """

    row_starts: IntArray
    row_entries: IntArray
    column_starts: IntArray
    column_entries: IntArray


@compiled
def span(starts: IntArray, i: int) -> range:  # pragma: no cover (compiled)
    """Places of the entries of row or column i; unsigned, which spares every use a test for negative indices."""
    return range(np.uint64(starts[i]), np.uint64(starts[i + 1]))


@compiled
def count_columns(indices: Int32Array, n_columns: int) -> IntArray:  # pragma: no cover (compiled)
    """Entries per column."""
    counts = np.zeros(n_columns, dtype=np.int64)
    for k in indices:
        counts[k] += 1
    return counts


@compiled
def pack(
    row_starts: IntArray, indices: Int32Array, values: Int32Array, ranks: Int32Array
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # pragma: no cover (compiled)
    """The fields of :class:`Matrix` from CSR arrays with integer values; column k becomes column ``ranks[k]``."""
    row_entries = np.empty(indices.size, dtype=np.int64)
    column_entries = np.empty(indices.size, dtype=np.int64)
    # Two places ahead, so that the pass that fills the columns leaves the starts where they belong.
    column_starts = np.zeros(ranks.size + 2, dtype=np.int64)
    for place in range(indices.size):
        column = np.int64(ranks[indices[place]])
        row_entries[place] = np.int64(values[place]) << 32 | column
        column_starts[column + 2] += 1
    for k in range(ranks.size):
        column_starts[k + 2] += column_starts[k + 1]
    for i in range(row_starts.size - 1):
        for place in span(row_starts, i):
            entry = row_entries[place]
            place_of = np.uint32(entry)
            column_entries[column_starts[place_of + 1]] = entry >> 32 << 32 | i
            column_starts[place_of + 1] += 1
    return row_starts, row_entries, column_starts[:-1], column_entries


@compiled
def keep_columns(
    matrix: Matrix, places: IntArray, n_kept: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # pragma: no cover (compiled)
    """The matrix with some of its columns, in order: column k becomes ``places[k]``, or goes where that is -1."""
    row_starts, row_entries, column_starts, column_entries = matrix
    n_entries = 0
    for k in range(places.size):
        if places[k] != _NONE:
            n_entries += column_starts[k + 1] - column_starts[k]
    new_row_starts = np.zeros_like(row_starts)
    new_row_entries = np.empty(n_entries, dtype=np.int64)
    filled = 0
    for i in range(row_starts.size - 1):
        for place in span(row_starts, i):
            entry = row_entries[place]
            k = places[np.uint32(entry)]
            if k != _NONE:
                new_row_entries[filled] = entry >> 32 << 32 | k
                filled += 1
        new_row_starts[i + 1] = filled
    new_column_starts = np.zeros(n_kept + 1, dtype=np.int64)
    new_column_entries = np.empty(n_entries, dtype=np.int64)
    filled = 0
    for k in range(places.size):
        if places[k] != _NONE:
            for place in span(column_starts, k):
                new_column_entries[filled] = column_entries[place]
                filled += 1
            new_column_starts[places[k] + 1] = filled
    return new_row_starts, new_row_entries, new_column_starts, new_column_entries


@compiled
def weigh_columns(matrix: Matrix) -> IntArray:  # pragma: no cover (compiled)
    """Sums of absolute entries, column by column."""
    _, _, column_starts, column_entries = matrix
    weights = np.zeros(column_starts.size - 1, dtype=np.int64)
    for k in range(weights.size):
        for place in span(column_starts, k):
            weights[k] += abs(column_entries[place] >> 32)
    return weights


@compiled
def sum_column(
    column_starts: IntArray, column_entries: IntArray, k: int, terms: IntArray
) -> tuple[np.int64, np.int64]:  # pragma: no cover (compiled)
    """``x_k . p`` and ``x_k . q`` for the columns p and q of ``terms``, exact."""
    a, b = np.int64(0), np.int64(0)
    for place in span(column_starts, k):
        entry = column_entries[place]
        i, x = np.uint32(entry), entry >> 32
        a += x * terms[i, 0]
        b += x * terms[i, 1]
    return a, b
