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
    A and B may wait, since nothing is rounded in them: P and q of all rows say what they are, whenever somebody asks.
    Where a step changes so many rows that walking through their entries takes longer than :func:`sum_column` for the
    columns that will be asked for, A and B are *left behind*.
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
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, Int32Array, IntArray
from taciturn.core.lattice import ONE
from taciturn.kernels.compiled import compiled
from taciturn.kernels.residual_pieces import ResidualPieces, locate, slope_part
from taciturn.kernels.sparse_matrix import Matrix, span

__all__ = [
    "N_ROWS",
    "PEAK_FAR",
    "PEAK_NOW",
    "SUM_FAR",
    "SUM_NOW",
    "Rows",
    "Schedule",
    "new_rows",
    "recut",
    "reset",
    "schedule_of",
    "touch",
]

N_ROWS, SUM_NOW, SUM_FAR, PEAK_NOW, PEAK_FAR = 0, 1, 2, 3, 4
"""Fields of the tally of a step: rows changed, and sum and maximum of their changes at either end of a range of c."""

_NONE = -1
_R_LIMIT = 1 << 44
_SUM_LIMIT = 1 << 62
# Beyond every r.
_FAR = 1 << 62


class Rows(NamedTuple):
    """State of the records: margins u, targets y, P and q side by side, and their places in the queue.

    ``piece`` is the one that a row was found on last, ``due`` the iteration it waits for (-1 for none), ``after`` and
    ``before`` its neighbours in that list, ``heads`` the first row of each list. ``touched`` and ``tally`` describe the
    last step. As long as r is within ``reach``, the row is on that piece until it is due.
    """

    u: IntArray
    y: IntArray
    terms: IntArray
    piece: NDArray[np.uint8]
    due: Int32Array
    after: Int32Array
    before: Int32Array
    heads: Int32Array
    touched: Int32Array
    tally: IntArray
    reach: IntArray


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


def new_rows(targets: IntArray, n_steps: int) -> Rows:
    """Records before the first step; :func:`reset` cuts them."""
    n = targets.size

    def nothing(size: int) -> Int32Array:
        return np.full(size, _NONE, dtype=np.int32)

    return Rows(
        u=np.zeros(n, dtype=np.int64),
        y=targets,
        terms=np.zeros((n, 2), dtype=np.int64),
        piece=np.zeros(n, dtype=np.uint8),
        due=nothing(n),
        after=nothing(n),
        before=nothing(n),
        heads=nothing(n_steps + 1),
        touched=nothing(2 * n),
        tally=np.zeros(5, dtype=np.int64),
        reach=np.zeros((n, 2), dtype=np.int64),
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
def _stays(
    piece: int, r: int, y: int, until: int, knots: FloatArray, shift: float, scales: FloatArray
) -> bool:  # pragma: no cover (compiled)
    """Whether the margin is on its piece still at an iteration, and so at all before it."""
    position = scales[until] * r - shift * y
    return (piece == knots.size or position <= knots[piece]) and (piece == 0 or position > knots[piece - 1])


@compiled
def _reach(
    piece: int, y: int, now: float, then: float, knots: FloatArray, shift: float
) -> tuple[np.int64, np.int64]:  # pragma: no cover (compiled)
    """The least and the largest r whose margin is on a piece for both c, and so for all between them.

    Two units inside, which is more than margins are rounded by.
    """
    low, high = np.int64(-_FAR), np.int64(_FAR)
    if piece > 0:
        edge = knots[piece - 1] + shift * y
        low = np.int64(math.ceil(max(edge / now, edge / then))) + 2
    if piece < knots.size:
        edge = knots[piece] + shift * y
        high = np.int64(math.floor(min(edge / now, edge / then))) - 2
    return low, high


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
    while due > t + 1 and not _stays(piece, r, y, due - 1, knots, shift, scales):
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
def reset(t: int, rows: Rows, pieces: ResidualPieces, schedule: Schedule) -> None:  # pragma: no cover (compiled)
    """Cut every row for iteration t, where the unit of q may be new. A and B of all columns are left behind."""
    u, y, terms, piece_of, due, after, before, heads, _, tally, reach = rows
    knots, intercepts, slopes, keeps, shift = pieces
    scales, shifts, lasts = schedule
    tally[:] = 0
    heads[:] = _NONE
    due[:] = _NONE
    for i in range(u.size):
        r = _coarse(u[i], shifts[t])
        piece = locate(scales[t] * r - shift * y[i], knots)
        piece_of[i] = piece
        terms[i, 0] = intercepts[piece] - keeps[piece] * y[i]
        terms[i, 1] = slope_part(slopes[piece], r)
        _enqueue(i, _due(r, y[i], piece, t, lasts[t], knots, shift, scales), due, after, before, heads)
        until = lasts[t] if due[i] == _NONE else due[i] - 1
        reach[i, 0], reach[i, 1] = _reach(piece, y[i], scales[t], scales[until], knots, shift)


@compiled
def touch(t: int, k: int, amount: int, matrix: Matrix, rows: Rows) -> tuple[int, int]:  # pragma: no cover (compiled)
    """Add a multiple of ``e_k`` to v, for iteration t, which may be the current one.

    Returns how many rows have to be recut because their margins have changed, and how many in all (some count twice).
    """
    column_starts, column_entries = matrix[2], matrix[3]
    u, after, heads, touched = rows[0], rows[5], rows[7], rows[8]
    n_rows = 0
    for place in span(column_starts, k):
        entry = column_entries[place]
        i = np.uint32(entry)
        u[i] += amount * (entry >> 32)
        touched[n_rows] = i
        n_rows += 1
    n_moved = n_rows
    waiting = heads[t]
    while waiting != _NONE:
        touched[n_rows] = waiting
        n_rows += 1
        waiting = after[waiting]
    return n_moved, n_rows


@compiled
def recut(
    t: int,
    n_rows: int,
    far: float,
    leave: bool,
    sums: IntArray,
    matrix: Matrix,
    rows: Rows,
    pieces: ResidualPieces,
    schedule: Schedule,
) -> None:  # pragma: no cover (compiled)
    """Bring the touched rows to iteration t, and A and B with them unless these are left behind.

    ``far`` is the smallest c that the changes in ``tally`` are wanted for. For iterations with the same shift only.
    """
    row_starts, row_entries, _, _ = matrix
    u, y, terms, piece_of, due, after, before, heads, touched, tally, reach = rows
    knots, intercepts, slopes, keeps, shift = pieces
    scales, shifts, lasts = schedule
    now, last, halvings = scales[t], lasts[t], shifts[t]
    n_changed = 0
    sum_now = sum_far = peak_now = peak_far = np.int64(0)
    for number in range(n_rows):
        i = np.uint32(touched[number])
        r = _coarse(u[i], halvings)
        piece, change_p = np.int64(piece_of[i]), np.int64(0)
        if not reach[i, 0] <= r <= reach[i, 1] or due[i] == t:
            position = now * r - shift * y[i]
            # The piece of last time is most often the right one, or next to it.
            while piece < knots.size and position > knots[piece]:
                piece += 1
            while piece > 0 and position <= knots[piece - 1]:
                piece -= 1
            piece_of[i] = piece
            change_p = intercepts[piece] - keeps[piece] * y[i] - terms[i, 0]
            new_due = _due(r, y[i], piece, t, last, knots, shift, scales)
            if new_due != due[i]:
                _enqueue(i, new_due, due, after, before, heads)
            until = last if new_due == _NONE else new_due - 1
            reach[i, 0], reach[i, 1] = _reach(piece, y[i], now, scales[until], knots, shift)
        change_q = slope_part(slopes[piece], r) - terms[i, 1]
        if change_p == 0 and change_q == 0:
            continue
        terms[i, 0] += change_p
        terms[i, 1] += change_q
        if not leave and change_p == 0:
            for place in span(row_starts, i):
                entry = row_entries[place]
                sums[1, np.uint32(entry)] += (entry >> 32) * change_q
        elif not leave:
            for place in span(row_starts, i):
                entry = row_entries[place]
                k, x = np.uint32(entry), entry >> 32
                sums[0, k] += x * change_p
                sums[1, k] += x * change_q
        touched[n_changed] = i
        n_changed += 1
        # Integers, so that the order of rows cannot show.
        change_now = np.int64(abs(change_p + now * change_q)) + 1
        change_far = np.int64(abs(change_p + far * change_q)) + 1
        sum_now += change_now
        sum_far += change_far
        peak_now = max(peak_now, change_now)
        peak_far = max(peak_far, change_far)
    tally[N_ROWS], tally[SUM_NOW], tally[SUM_FAR] = n_changed, sum_now, sum_far
    tally[PEAK_NOW], tally[PEAK_FAR] = peak_now, peak_far
