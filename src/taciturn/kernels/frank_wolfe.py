"""Compiled Frank-Wolfe steps on a dense Gram matrix and on margins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.core.validation import AnyArray, FloatArray, Int32Array, IntArray, WordArray
from taciturn.kernels.compiled import compiled
from taciturn.kernels.frank_wolfe_sparse import Matrix, exact_residual, span
from taciturn.kernels.vertex_sampler import Sampler, choose_vertex

# ---- Private Frank-Wolfe for the squared loss on columns of the Gram matrix: O(d) per step, whatever the rows.
# With the integer iterate v of :mod:`~taciturn.kernels.frank_wolfe_sparse`, the gradient of the squared loss is
# ``A + c_t B`` with ``A = -X' y``, ``B = G v``, ``G = X' X``, and a step adds a multiple of one column of G to B.
# Columns are kept as ``floor(G / 2**halvings)``, with the least public number of halvings for which B cannot pass
# 2**62. One row changes an entry of G by at most ``ONE**2`` and, through the floor, by one unit more, which is
# ``radius * 2**halvings`` in the score.
#
# For dense data with few features all columns are there from the start. Otherwise they are computed when they are
# first needed, and as many as there are slots for are kept, those used last.

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
    """:func:`~taciturn.kernels.frank_wolfe_sparse.advance` on columns of G, with sums A and B in ``a`` and ``b``.

    Public: ``halvings`` of G, and ``scales``, ``c_t = radius * 2**halvings / S_t``. ``scores`` and ``bounds`` are work
    space.
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


# ---- Private Frank-Wolfe with exact margins and a full gradient per step: one pass over the data, any loss.
# With the integer iterate v of :mod:`~taciturn.kernels.frank_wolfe_sparse`, a step changes the margins
# ``u = X v`` by a multiple of one column, in integers, so a step needs one product with X' and none with X.
# Derivatives are rounded to integers and clipped after that, record by record
# (:func:`~taciturn.kernels.frank_wolfe_sparse.exact_residual`), so the scores are exact integer sums.
#
# Dense columns are stored in single precision, which holds 17-bit integers exactly, and multiplied in double
# precision. Sums run over blocks of rows short enough for every partial sum to be an exact integer, so the compiler
# may add in any order.


@compiled
def residuals(
    u: IntArray, y: IntArray, c: float, logistic: bool, curve: FloatArray, bound: int, psi: AnyArray
) -> None:  # pragma: no cover (compiled)
    """Integer derivatives of all records, at margins c u in lattice units."""
    for i in range(u.size):
        psi[i] = exact_residual(c * u[i], y[i], logistic, curve, bound)


@compiled
def sparse_gradient(matrix: Matrix, psi: Int32Array, scores: FloatArray) -> None:  # pragma: no cover (compiled)
    """``X' psi`` over the columns of a sparse matrix."""
    _, _, column_starts, column_entries = matrix
    for k in range(scores.size):
        total = np.int64(0)
        for place in span(column_starts, k):
            entry = column_entries[place]
            total += (entry >> 32) * psi[np.uint32(entry)]
        scores[k] = total


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _dots(
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    third: NDArray[np.float32],
    fourth: NDArray[np.float32],
    psi: FloatArray,
) -> tuple[float, float, float, float]:  # pragma: no cover (compiled)
    """Inner products of four columns with psi, integers all and so exact in any order."""
    a = b = c = d = 0.0
    for i in range(psi.size):
        weight = psi[i]
        a += np.float64(first[i]) * weight
        b += np.float64(second[i]) * weight
        c += np.float64(third[i]) * weight
        d += np.float64(fourth[i]) * weight
    return a, b, c, d


@compiled
def dense_gradient(
    columns: NDArray[np.float32], psi: FloatArray, block: int, scores: FloatArray
) -> None:  # pragma: no cover (compiled)
    """``X' psi`` for columns stored one after the other, in exact blocks of rows.

    ``columns`` has a multiple of four rows; those beyond the size of ``scores`` are not used.
    """
    totals = np.zeros(columns.shape[0], dtype=np.int64)
    for k in range(0, columns.shape[0], 4):
        for start in range(0, psi.size, block):
            stop = min(start + block, psi.size)
            a, b, c, d = _dots(
                columns[k][start:stop],
                columns[k + 1][start:stop],
                columns[k + 2][start:stop],
                columns[k + 3][start:stop],
                psi[start:stop],
            )
            totals[k] += np.int64(a)
            totals[k + 1] += np.int64(b)
            totals[k + 2] += np.int64(c)
            totals[k + 3] += np.int64(d)
    for k in range(scores.size):
        scores[k] = totals[k]


@compiled
def move_sparse(matrix: Matrix, k: int, step: int, u: IntArray) -> None:  # pragma: no cover (compiled)
    """Add a multiple of column k to the margins."""
    _, _, column_starts, column_entries = matrix
    for place in span(column_starts, k):
        entry = column_entries[place]
        u[np.uint32(entry)] += step * (entry >> 32)


@compiled
def move_dense(columns: NDArray[np.float32], k: int, step: int, u: IntArray) -> None:  # pragma: no cover (compiled)
    """Add a multiple of column k to the margins."""
    for i in range(u.size):
        u[i] += step * np.int64(columns[k, i])


@compiled
def advance_sparse(
    t: int,
    inverse_temperature: float,
    scales: FloatArray,
    u: IntArray,
    y: IntArray,
    logistic: bool,
    curve: FloatArray,
    bound: int,
    matrix: Matrix,
    sampler: Sampler,
    psi: Int32Array,
    scores: FloatArray,
    bounds: FloatArray,
    names: Int32Array,
    vertices: IntArray,
    words: WordArray,
) -> int:  # pragma: no cover (compiled)
    """:func:`~taciturn.kernels.frank_wolfe_sparse.advance` with exact margins u, which are updated, and targets y.

    Public: ``scales``, ``c_t = radius / S_t``, and the derivative in ``logistic``, ``curve`` and ``bound``
    (:func:`~taciturn.kernels.frank_wolfe_sparse.exact_residual`). ``psi``, ``scores`` and ``bounds`` are work space.
    """
    cursor = np.zeros(1, dtype=np.int64)
    while t < vertices.size:
        residuals(u, y, scales[t], logistic, curve, bound, psi)
        sparse_gradient(matrix, psi, scores)
        k, sign = choose_vertex(scores, inverse_temperature, sampler, bounds, names, words, cursor)
        if sign == 0:
            return t
        vertices[t] = k if sign > 0 else ~k
        move_sparse(matrix, k, sign * (t + 1), u)
        t += 1
    return t


@compiled
def advance_dense(
    t: int,
    inverse_temperature: float,
    scales: FloatArray,
    u: IntArray,
    y: IntArray,
    logistic: bool,
    curve: FloatArray,
    bound: int,
    columns: NDArray[np.float32],
    block: int,
    sampler: Sampler,
    psi: FloatArray,
    scores: FloatArray,
    bounds: FloatArray,
    names: Int32Array,
    vertices: IntArray,
    words: WordArray,
) -> int:  # pragma: no cover (compiled)
    """:func:`advance_sparse` for dense columns, with ``psi`` in doubles; ``block`` rows of it can be summed exactly."""
    cursor = np.zeros(1, dtype=np.int64)
    while t < vertices.size:
        residuals(u, y, scales[t], logistic, curve, bound, psi)
        dense_gradient(columns, psi, block, scores)
        k, sign = choose_vertex(scores, inverse_temperature, sampler, bounds, names, words, cursor)
        if sign == 0:
            return t
        vertices[t] = k if sign > 0 else ~k
        move_dense(columns, k, sign * (t + 1), u)
        t += 1
    return t
