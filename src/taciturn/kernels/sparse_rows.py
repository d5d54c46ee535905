r"""Scores of a Frank-Wolfe run on sparse data, kept up to date at the cost of the rows that change.

Iterate
    With steps :math:`\mu_t = 2/(t+2)` from zero, the iterate before step t is :math:`w_t = \lambda v_t / S_t`,
    :math:`S_t = t(t+1)/2`, where :math:`v_t = \sum_{s<t} \pm(s+1) e_{j_s}` is an *integer* vector: a step changes
    one entry of v and one public number, and nothing is rounded. Rows hold the integers ``u_i = x_i . v``, of size
    at most ``ONE * S_t``, which change where the chosen column is not zero.
Scores
    A record's derivative is piecewise linear in its margin (:mod:`~taciturn.kernels.residual_pieces`). On one piece
    it is ``P_i + c_t q_i`` with integers P and q, so the score of column k is ``A_k + c_t B_k`` with the exact
    integer sums ``A = X' P``, ``B = X' q``. A row is *recut* when it is touched, and at the iteration, known in
    advance from its own u and y and the public c, at which its shrinking margin enters the next piece. The rows due
    at an iteration are chained in a list. All of them are recut then: work put off because there is much of it
    would make one row's terms depend on the others.
Precision
    ``r_i = trunc(u_i / 2**shift)`` and ``c_t = lambda 2**shift / S_t``, with a shift that is a public function of t and
    keeps ``n ONE |r|`` below 2**62. Where it changes, every row is recut; that happens a handful of times in a run.

One row enters A and B through its own terms ``x_ik P_i`` and ``x_ik q_i``, functions of that row and the public
history, and ``|P + c q|`` is bounded: ``data.sensitivity.lattice_gradient_scores`` has the statement and
its proof.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from taciturn.core.arrays import FloatArray, Int32Array, IntArray
from taciturn.core.lattice import ONE
from taciturn.kernels.compiled import compiled
from taciturn.kernels.residual_pieces import ResidualPieces, locate, slope_part

__all__ = [
    "DRIFT",
    "N_ENTRIES",
    "N_ROWS",
    "Matrix",
    "Rows",
    "Schedule",
    "count_columns",
    "keep_columns",
    "move",
    "new_rows",
    "pack",
    "reset",
    "schedule_of",
    "span",
]

N_ROWS, N_ENTRIES, DRIFT = 0, 1, 2
"""Fields of the tally of a step: rows changed, their entries, and the sum of their largest changes."""

_NONE = -1
_R_LIMIT = 1 << 44
_SUM_LIMIT = 1 << 62


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


class Rows(NamedTuple):
    """State of the records: margins u, targets y, ``P + c q``, and their places in the queue.

    ``due`` is the iteration a row waits for (-1 for none), ``after`` and ``before`` its neighbours in that list,
    ``heads`` the first row of each list. ``touched`` and ``tally`` describe the last step.
    """

    u: IntArray
    y: IntArray
    p: IntArray
    q: IntArray
    due: Int32Array
    after: Int32Array
    before: Int32Array
    heads: Int32Array
    touched: Int32Array
    tally: IntArray


class Schedule(NamedTuple):
    """Public: for each iteration c, the shift, and the last iteration with the same shift."""

    scales: FloatArray
    shifts: IntArray
    last: IntArray


def schedule_of(n_rows: int, radius: float, n_steps: int) -> Schedule:
    """The public schedule of a run over ``n_rows`` records.

    The shift grows where sums could otherwise pass 2**62. It starts anew with a unit of r that is worth at most
    four lattice units of the margin.
    """
    t = np.arange(n_steps + 1, dtype=np.int64)
    sums = np.maximum(t * (t + 1) // 2, 1)
    limit = min(_R_LIMIT, _SUM_LIMIT // (max(n_rows, 1) * ONE))
    shifts, last = np.zeros_like(t), np.zeros_like(t)
    start = 0
    while start <= n_steps:
        enough = math.ceil(math.log2(int(sums[-1]) * ONE / limit))
        shift = min(enough, math.floor(math.log2(4.0 * int(sums[start]) / radius)))
        # One step at least, whatever the precision.
        while int(sums[min(start + 1, n_steps)]) * ONE > limit * 2.0**shift:
            shift += 1
        stop = int(np.searchsorted(sums * ONE, limit * 2.0**shift, side="right"))
        shifts[start:stop], last[start:stop] = shift, stop - 1
        start = stop
    return Schedule(radius * np.exp2(shifts.astype(np.float64)) / sums, shifts, last)


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


def new_rows(targets: IntArray, n_steps: int) -> Rows:
    """Records before the first step; :func:`reset` cuts them."""
    n = targets.size

    def nothing(size: int) -> Int32Array:
        return np.full(size, _NONE, dtype=np.int32)

    return Rows(
        u=np.zeros(n, dtype=np.int64),
        y=targets,
        p=np.zeros(n, dtype=np.int64),
        q=np.zeros(n, dtype=np.int64),
        due=nothing(n),
        after=nothing(n),
        before=nothing(n),
        heads=nothing(n_steps + 1),
        touched=nothing(2 * n),
        tally=np.zeros(3, dtype=np.int64),
    )


@compiled
def _coarse(u: int, shift: int) -> int:  # pragma: no cover (compiled)
    """``trunc(u / 2**shift)``."""
    if shift <= 0:
        return u << -shift
    return u >> shift if u >= 0 else -(-u >> shift)


# Helpers take arrays and not tuples: taking an array out of a tuple counts a reference, at a cost that rows
# with few entries would feel.


@compiled
def _due(
    r: int, y: int, piece: int, t: int, last: int, knots: FloatArray, shift: float, scales: FloatArray
) -> int:  # pragma: no cover (compiled)
    """The first iteration after t, up to ``last``, at which the margin c r has left its piece, or -1."""
    edge = piece - 1 if r > 0 else piece
    if r == 0 or edge < 0 or edge >= knots.size:
        return _NONE
    # The margin shrinks towards zero and leaves the piece where it passes this.
    leaving = knots[edge] + shift * y
    if leaving * r <= 0.0 or scales[last] * abs(r) > abs(leaving):
        return _NONE
    # c is proportional to 1 / (t (t + 1)).
    product = scales[t] * r / leaving * max(t * (t + 1), 2)
    due: Any = min(max(np.int64(math.ceil(0.5 * (math.sqrt(1.0 + 4.0 * product) - 1.0))), t + 1), last)
    # The formula rounds; what counts is that the row is on its piece until then.
    while due > t + 1 and locate(scales[due - 1] * r - shift * y, knots) != piece:
        due -= 1
    return due


@compiled
def _enqueue(
    i: int, new: int, due: Int32Array, after: Int32Array, before: Int32Array, heads: Int32Array
) -> None:  # pragma: no cover (compiled)
    """Move row i from the list it waits in to that of another iteration (-1 for none)."""
    if due[i] != _NONE:
        if before[i] == _NONE:
            heads[due[i]] = after[i]
        else:
            after[before[i]] = after[i]
        if after[i] != _NONE:
            before[after[i]] = before[i]
    due[i] = new
    if new != _NONE:
        after[i], before[i] = heads[new], _NONE
        if heads[new] != _NONE:
            before[heads[new]] = i
        heads[new] = i


@compiled
def reset(
    t: int, a: IntArray, b: IntArray, matrix: Matrix, rows: Rows, pieces: ResidualPieces, schedule: Schedule
) -> None:  # pragma: no cover (compiled)
    """Cut every row for iteration t, where the unit of q may be new; A and P start as zeros."""
    row_starts, row_entries, _, _ = matrix
    u, y, p, q, due, after, before, heads, _, _ = rows
    knots, intercepts, slopes, keeps, shift = pieces
    scales, shifts, lasts = schedule
    heads[:] = _NONE
    due[:] = _NONE
    b[:] = 0
    for i in range(u.size):
        r = _coarse(u[i], shifts[t])
        piece = locate(scales[t] * r - shift * y[i], knots)
        change_p = intercepts[piece] - keeps[piece] * y[i] - p[i]
        p[i] += change_p
        q[i] = slope_part(slopes[piece], r)
        _enqueue(i, _due(r, y[i], piece, t, lasts[t], knots, shift, scales), due, after, before, heads)
        if q[i] != 0:
            for place in span(row_starts, i):
                entry = row_entries[place]
                b[np.uint32(entry)] += (entry >> 32) * q[i]
        if change_p != 0:
            for place in span(row_starts, i):
                entry = row_entries[place]
                a[np.uint32(entry)] += (entry >> 32) * change_p


@compiled
def move(
    t: int,
    k: int,
    amount: int,
    then: float,
    a: IntArray,
    b: IntArray,
    matrix: Matrix,
    rows: Rows,
    pieces: ResidualPieces,
    schedule: Schedule,
) -> bool:  # pragma: no cover (compiled)
    """Add a multiple of ``e_k`` to v and bring rows and scores to iteration t, which may be the current one.

    ``then`` is the smallest c that the changes in ``tally`` must hold for. Returns whether the unit of B has changed.
    """
    row_starts, row_entries, column_starts, column_entries = matrix
    u, y, p, q, due, after, before, heads, touched, tally = rows
    knots, intercepts, slopes, keeps, shift = pieces
    scales, shifts, lasts = schedule
    n_rows = 0
    for place in span(column_starts, k):
        entry = column_entries[place]
        i = np.uint32(entry)
        u[i] += amount * (entry >> 32)
        touched[n_rows] = i
        n_rows += 1
    if shifts[t] != shifts[t - 1]:
        tally[:] = 0
        reset(t, a, b, matrix, rows, pieces, schedule)
        return True
    waiting = heads[t]
    while waiting != _NONE:
        touched[n_rows] = waiting
        n_rows += 1
        waiting = after[waiting]

    now, last, halvings = scales[t], lasts[t], shifts[t]
    n_changed = n_entries = 0
    drift: Any = 0
    for number in range(n_rows):
        i = touched[number]
        r = _coarse(u[i], halvings)
        piece = locate(now * r - shift * y[i], knots)
        new_p = intercepts[piece] - keeps[piece] * y[i]
        new_q = slope_part(slopes[piece], r)
        if knots.size:
            new_due = _due(r, y[i], piece, t, last, knots, shift, scales)
            if new_due != due[i]:
                _enqueue(i, new_due, due, after, before, heads)
        change_p, change_q = new_p - p[i], new_q - q[i]
        if change_p == 0 and change_q == 0:
            continue
        p[i], q[i] = new_p, new_q
        for place in span(row_starts, i):
            entry = row_entries[place]
            b[np.uint32(entry)] += (entry >> 32) * change_q
        if change_p != 0:
            for place in span(row_starts, i):
                entry = row_entries[place]
                a[np.uint32(entry)] += (entry >> 32) * change_p
        touched[n_changed] = i
        n_changed += 1
        n_entries += row_starts[i + 1] - row_starts[i]
        # Integers, so that the order of rows cannot show.
        drift += np.int64(max(abs(change_p + now * change_q), abs(change_p + then * change_q))) + 1
    tally[N_ROWS], tally[N_ENTRIES], tally[DRIFT] = n_changed, n_entries, drift
    return False
