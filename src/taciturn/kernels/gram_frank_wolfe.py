r"""Private Frank-Wolfe for the squared loss on columns of the Gram matrix: O(d) per step, whatever the rows.

With the integer iterate v of :mod:`~taciturn.kernels.sparse_rows`, the gradient of the squared loss is ``A + c_t
B`` with ``A = -X' y``, ``B = G v``, ``G = X' X``, and a step adds a multiple of one column of G to B. Columns are
kept as ``floor(G / 2**halvings)``, with the least public number of halvings for which B cannot pass 2**62. One row
changes an entry of G by at most ``ONE**2`` and, through the floor, by one unit more, which is ``radius *
2**halvings`` in the score.

For dense data with few features all columns are there from the start. Otherwise they are computed when they are
first needed, and as many as there are slots for are kept, those used last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from taciturn.core.arrays import FloatArray, Int32Array, IntArray, WordArray
from taciturn.kernels.compiled import compiled
from taciturn.kernels.sparse_matrix import Matrix, span
from taciturn.kernels.vertex_sampler import Sampler, choose_vertex

__all__ = ["advance_by_columns", "all_columns", "fetch_column", "halvings_of", "no_columns"]

_NONE = -1
_SUM_BITS = 62


class Columns(NamedTuple):
    """Columns of the Gram matrix in slots; compiled functions take a plain tuple.

    ``slots[k]`` is where column k is kept (-1 for nowhere), ``owners`` and ``used`` tell which column a slot holds and
    when it was last asked for. The last slot belongs to nobody: columns that are cheap to compute pass through it.
    """

    values: IntArray
    slots: Int32Array
    owners: IntArray
    used: IntArray


def halvings_of(n_rows: int, n_steps: int) -> int:
    """How often entries of G are halved: ``n ONE**2 S / 2**halvings <= 2**62``, from public numbers."""
    largest = max(n_rows, 1) * (n_steps * (n_steps + 1) // 2) << 32
    return max(0, (largest - 1).bit_length() - _SUM_BITS)


def all_columns(gram: IntArray, halvings: int) -> Columns:
    """Every column of a symmetric G."""
    d = gram.shape[0]
    everyone = np.arange(d, dtype=np.int64)
    return Columns(gram >> halvings, everyone.astype(np.int32), everyone, np.zeros(d, dtype=np.int64))


def no_columns(n_features: int, n_slots: int) -> Columns:
    """Empty slots."""
    return Columns(
        np.zeros((n_slots, n_features), dtype=np.int64),
        np.full(n_features, _NONE, dtype=np.int32),
        np.full(n_slots, _NONE, dtype=np.int64),
        np.full(n_slots, _NONE, dtype=np.int64),
    )


@compiled
def fetch_column(k: int, t: int, halvings: int, matrix: Matrix, columns: Columns) -> int:  # pragma: no cover (compiled)
    """The slot that holds column k, which is computed if need be."""
    row_starts, row_entries, column_starts, column_entries = matrix
    values, slots, owners, used = columns
    if slots[k] != _NONE:
        used[slots[k]] = t
        kept: Any = np.int64(slots[k])
        return kept
    n_slots, d = values.shape
    slot: Any = n_slots - 1
    mean_row = row_entries.size // max(row_starts.size - 1, 1) + 1
    if 4 * mean_row * (column_starts[k + 1] - column_starts[k]) > d:
        slot = np.int64(0)
        for other in range(1, n_slots - 1):
            if used[other] < used[slot]:
                slot = np.int64(other)
        if owners[slot] != _NONE:
            slots[owners[slot]] = _NONE
        owners[slot], used[slot], slots[k] = k, t, slot
    column = values[slot]
    column[:] = 0
    for place in span(column_starts, k):
        i = np.uint32(column_entries[place])
        x = column_entries[place] >> 32
        for neighbour in span(row_starts, i):
            entry = row_entries[neighbour]
            column[np.uint32(entry)] += (entry >> 32) * x
    for j in range(d):
        column[j] >>= halvings
    return slot


@compiled
def advance_by_columns(
    t: int,
    inverse_temperature: float,
    halvings: int,
    scales: FloatArray,
    a: IntArray,
    b: IntArray,
    matrix: Matrix,
    columns: Columns,
    sampler: Sampler,
    scores: FloatArray,
    bounds: FloatArray,
    names: Int32Array,
    vertices: IntArray,
    words: WordArray,
) -> int:  # pragma: no cover (compiled)
    """Run from iteration t until the last one or until the words run out; returns the iteration reached.

    Parameters
    ----------
    t : int
        Where the last call stopped.
    inverse_temperature : float
        One over the noise scale in units of the scores; infinity takes the best vertex.
    halvings, scales : int, ndarray of float64
        Public: those of G, and ``c_t = radius * 2**halvings / S_t``.
    a, b : ndarray of int64, shape (d,)
        The sums A and B.
    matrix, columns, sampler
        Data and state.
    scores, bounds : ndarray of float64, shape (d,)
        Work space.
    names : ndarray of int32, shape (d,)
        The caller's column numbers, which break ties without noise; negative for columns that are no candidates.
    vertices : ndarray of int64, shape (n_steps,)
        Filled with k for the vertex +e_k and ``~k`` for -e_k.
    words : ndarray of uint64
        Fresh random words.
    """
    values = columns[0]
    cursor = np.zeros(1, dtype=np.int64)
    k: Any
    while t < vertices.size:
        for k in range(a.size):
            scores[k] = a[k] + scales[t] * b[k]
        k, sign = choose_vertex(scores, inverse_temperature, sampler, bounds, names, words, cursor)
        if sign == 0:
            return t
        vertices[t] = k if sign > 0 else ~k
        column = values[fetch_column(k, t, halvings, matrix, columns)]
        step = sign * (t + 1)
        for k in range(a.size):
            b[k] += step * column[k]
        t += 1
    return t
