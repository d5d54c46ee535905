"""Compiled Frank-Wolfe steps on sparse rows, whose cost follows the cells that change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.core.validation import ONE, AnyArray, FloatArray, Int32Array, IntArray, WordArray
from taciturn.kernels.compiled import compiled
from taciturn.kernels.vertex_sampler import (
    RETRY,
    WORDS_PER_PROPOSAL,
    Sampler,
    best_vertex,
    fit_table,
    level_of,
    lower_level,
    propose,
    raise_range,
    set_range,
    settle,
)

# ---- A sparse matrix of lattice integers, by row and by column: what compiled loops over both walk through.

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


# ---- Loss derivatives of one record as continuous piecewise linear functions of its margin, on a lattice.
# With features in [-1, 1] and coefficients of L1 norm at most lambda, a record with margin m and target y
# contributes ``x psi(m, y)`` to the gradient:
#
# ========  ================================  ======  ======================================
# loss      psi                               pieces  bound on psi
# ========  ================================  ======  ======================================
# squared   m - y                             1       lambda + 1
# huber     clip(m - y, -C, C)                3       min(C, lambda + 1)
# logistic  L(m) - y with y in {0, 1}         21      min(1, sigma(lambda) + 1e-3)
# ========  ================================  ======  ======================================
#
# L approximates the logistic function sigma on fixed knots, with equal errors of both signs below 1e-3: half the
# error of chords over the same knots. It is odd about (0, 1/2), inside (0, 1) and, but for the rounding of its
# coefficients, increasing: the derivative of a convex loss, which depends on nothing but the current margin.
#
# Integers. Everything is in units of 2**-16. On piece s, ``psi = P + c q`` with ``P = intercept[s] - keeps[s] * y``
# and ``q = trunc(slope[s] * r / 2**18)``, where c r is the margin: r is an integer that belongs to the record and c a
# public number. Truncation is towards zero, so that ``|c q| <= |slope| |m|`` without rounding terms.

_SLOPE_BITS = 18
_LOGISTIC_ERROR = 0.97e-3
_ALLOWED_ERROR = 1e-3
# The curve of the exact logistic derivative: step 1/128 on [-16, 16], error below 1e-6.
_CURVE_STEPS = 128
_CURVE_END = 16.0


class ResidualPieces(NamedTuple):
    """A continuous piecewise linear psi; all fields are public. Compiled functions take a plain tuple.

    ``knots`` are ascending positions of ``m - shift * y`` in lattice units; piece s is ``(knots[s - 1], knots[s]]``.
    ``intercepts``, ``slopes`` and ``keeps``, one more than knots, are those of the formula above; slopes are in units
    of 2**-18. ``shift`` is 1 where psi is a function of ``m - y``, 0 where y is only subtracted.
    """

    knots: FloatArray
    intercepts: IntArray
    slopes: IntArray
    keeps: IntArray
    shift: float


def _sigmoid(m: float) -> float:
    return 1.0 / (1.0 + math.exp(-m))


def _bisect(low: float, high: float, below: object) -> float:
    for _ in range(80):
        middle = 0.5 * (low + high)
        if below(middle):  # type: ignore[operator]
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@cache
def logistic_pieces(error: float = _LOGISTIC_ERROR) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r"""Positive knots of L, and its slopes between them, starting with the piece that holds 0.

    On m > 0 the logistic function is concave. A piece starts ``error`` above it (the first one at the origin,
    on it), falls to ``error`` below it where the tangents agree, and ends where it is ``error`` above again.
    The last one ends at height 1 - ``error``, from where L is constant.
    """
    knots: list[float] = []
    slopes: list[float] = []
    start, height = 0.0, 0.5

    def largest_gap(slope: float) -> float:
        # Where sigma' = slope: sigma (1 - sigma) = slope.
        touching = 0.5 * (1.0 + math.sqrt(max(0.0, 1.0 - 4.0 * slope)))
        at = math.log(touching / (1.0 - touching))
        return touching - height - slope * (at - start)

    while True:
        steepest = min(0.25, _sigmoid(start) * (1.0 - _sigmoid(start)))
        slope = _bisect(1e-9, steepest, lambda s: largest_gap(s) > error)
        slopes.append(slope)
        ceiling = start + (1.0 - error - height) / slope
        if _sigmoid(ceiling) >= 1.0 - 2.0 * error:
            return (*knots, ceiling), tuple(slopes)
        touching = 0.5 * (1.0 + math.sqrt(1.0 - 4.0 * slope))
        low = math.log(touching / (1.0 - touching))
        begin, level = start, height
        end = _bisect(low, low + 20.0, lambda m, a=begin, b=level, s=slope: b + s * (m - a) < _sigmoid(m) + error)
        height += slope * (end - start)
        start = end
        knots.append(end)


@dataclass(frozen=True, slots=True)
class LatticeDerivative:
    r"""How compiled loops compute the derivative of a loss over the ball of one radius; all of it is public.

    ``bound`` is R, the bound on :math:`|\psi|` in lattice units. ``pieces`` are the piecewise linear form of psi, as
    computed within ``pieces_error`` of the derivative of the loss. ``logistic``: psi is a function of the margin,
    minus the label, instead of the residual.
    """

    bound: int
    pieces: ResidualPieces
    logistic: bool
    pieces_error: float

    @property
    def quadratic(self) -> bool:
        """Whether psi is linear in the residual."""
        return self.pieces.knots.size == 0

    def targets(self, targets: AnyArray) -> IntArray:
        """Targets in lattice units: labels 0 and 1 become 0 and ONE, numbers are on the lattice already."""
        integers: IntArray = np.asarray(targets).astype(np.int64)
        return integers * ONE if self.logistic else integers


def residual_derivative(radius: float, threshold: float = math.inf) -> LatticeDerivative:
    """The residual, clipped at a threshold: the derivative of the squared and of the Huber loss.

    *Proof of the bound.* The margin is at most ``radius`` in size, so the residual at most ``radius + 1``, rounded up;
    the threshold is rounded down.
    """
    bound = math.ceil((radius + 1.0) * ONE)
    # A few units of r, each worth at most four of the lattice.
    error = 2.0**-13
    if math.isinf(threshold):
        return LatticeDerivative(bound, _as_pieces([], [0], [1.0], [1], 1.0), False, error)
    edge = min(bound, math.floor(threshold * ONE))
    pieces = _as_pieces([-edge, edge], [-edge, 0, edge], [0.0, 1.0, 0.0], [0, 1, 0], 1.0)
    return LatticeDerivative(edge, pieces, False, error)


def logistic_derivative(radius: float) -> LatticeDerivative:
    r"""Predicted probability minus label.

    *Proof of the bound.* L is increasing and :math:`1 - L(-m) = L(m)`, so for y = 0 and y = 1 alike psi is at most
    :math:`L(\lambda) \le \sigma(\lambda) + 10^{-3}`, the rounding of intercepts and slopes included; and L stays inside
    (0, 1).
    """
    bound = min(ONE, math.ceil((_sigmoid(radius) + _ALLOWED_ERROR) * ONE))
    # Chords of the logistic curve.
    return LatticeDerivative(bound, _logistic_pieces(), True, 2.0**-9)


@cache
def _logistic_pieces() -> ResidualPieces:
    positive, slopes = logistic_pieces()
    knots, intercepts, height = [], [0.5], 0.5
    for i, knot in enumerate(positive):
        height += slopes[i] * (knot - (positive[i - 1] if i else 0.0))
        knots.append(knot * ONE)
        following = slopes[i + 1] if i + 1 < len(slopes) else 0.0
        intercepts.append(height - following * knot)
    upper = [round(value * ONE) for value in intercepts[1:]]
    outer = [*slopes[1:], 0.0]
    return _as_pieces(
        [-knot for knot in reversed(knots)] + knots,
        [ONE - value for value in reversed(upper)] + [ONE // 2] + upper,
        [*reversed(outer), slopes[0], *outer],
        [1] * (2 * len(knots) + 1),
        0.0,
    )


def _as_pieces(
    knots: list[float], intercepts: list[int], slopes: list[float], keeps: list[int], shift: float
) -> ResidualPieces:
    return ResidualPieces(
        np.array(knots, dtype=np.float64),
        np.array(intercepts, dtype=np.int64),
        np.array([round(slope * 2**_SLOPE_BITS) for slope in slopes], dtype=np.int64),
        np.array(keeps, dtype=np.int64),
        shift,
    )


@compiled
def locate(position: float, knots: FloatArray) -> int:  # pragma: no cover (compiled)
    """The number of the piece that holds ``position``."""
    piece = 0
    while piece < knots.size and position > knots[piece]:
        piece += 1
    return piece


@compiled
def slope_part(slope: int, r: int) -> int:  # pragma: no cover (compiled)
    """``trunc(slope * r / 2**18)``."""
    product = slope * r
    return product >> _SLOPE_BITS if product >= 0 else -(-product >> _SLOPE_BITS)


@cache
def curve_table() -> FloatArray:
    """The logistic function on the grid of :func:`exact_residual`, in lattice units."""
    grid = np.arange(-_CURVE_END * _CURVE_STEPS, _CURVE_END * _CURVE_STEPS + 1) / _CURVE_STEPS
    table: FloatArray = ONE / (1.0 + np.exp(-grid))
    table.setflags(write=False)
    return table


@compiled
def exact_residual(
    margin: float, y: int, logistic: bool, curve: FloatArray, bound: int
) -> int:  # pragma: no cover (compiled)
    """Psi rounded to an integer and clipped to ``[-bound, bound]``, for a margin in lattice units.

    The logistic function is interpolated linearly in a fine table: additions and products only, which give
    the same bits for a record wherever it stands among the others.
    """
    if logistic:
        at = min(max(margin / ONE, -_CURVE_END), _CURVE_END) * _CURVE_STEPS + _CURVE_END * _CURVE_STEPS
        cell = min(np.int64(at), np.int64(curve.size - 2))
        value = curve[cell] + (at - cell) * (curve[cell + 1] - curve[cell])
    else:
        value = margin
    psi: Any = np.int64(np.rint(value)) - y
    return min(max(psi, -bound), bound)


# ---- Scores of a Frank-Wolfe run on sparse data, kept up to date at the cost of the rows that change.
# Iterate
#     With steps :math:`\mu_t = 2/(t+2)` from zero, the iterate before step t is :math:`w_t = \lambda v_t / S_t`,
#     :math:`S_t = t(t+1)/2`, where :math:`v_t = \sum_{s<t} \pm(s+1) e_{j_s}` is an *integer* vector: a step changes
#     one entry of v and one public number, and nothing is rounded. Rows hold the integers ``u_i = x_i . v``, of size
#     at most ``ONE * S_t``, which change where the chosen column is not zero.
# Scores
#     A record's derivative is piecewise linear in its margin (see the pieces above). On one piece it is
#     ``P_i + c_t q_i`` with integers P and q, so the score of column k is ``A_k + c_t B_k`` with the exact integer
#     sums ``A = X' P``, ``B = X' q``. A row is *recut* when it is touched, and at the iteration, known in
#     advance from its own u and y and the public c, at which its shrinking margin enters the next piece. The rows due
#     at an iteration are chained in a list. All of them are recut then: work put off because there is much of it
#     would make one row's terms depend on the others.
#     A and B may wait, since nothing is rounded in them: P and q of all rows say what they are, whenever somebody asks.
#     Where a step changes so many rows that walking through their entries takes longer than :func:`sum_column` for the
#     columns that will be asked for, A and B are *left behind*.
# Precision
#     ``r_i = trunc(u_i / 2**shift)`` and ``c_t = lambda 2**shift / S_t``, with a shift that is a public function of t
#     and keeps ``n ONE |r|`` below 2**62. Where it changes, every row is recut, a handful of times in a run.
#
# One row enters A and B through its own terms ``x_ik P_i`` and ``x_ik q_i``, functions of that row and the public
# history, and ``|P + c q|`` is bounded: ``data.sensitivity.lattice_gradient_scores`` has the statement and its proof.

N_ROWS, SUM_NOW, SUM_FAR, PEAK_NOW, PEAK_FAR = 0, 1, 2, 3, 4
"""Fields of the tally of a step: rows changed, and sum and maximum of their changes at either end of a range of c."""

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


class StepScales(NamedTuple):
    """Public: for each iteration c, the shift, and the last iteration with the same shift."""

    scales: FloatArray
    shifts: IntArray
    last: IntArray


def schedule_of(n_rows: int, radius: float, n_steps: int) -> StepScales:
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
    return StepScales(radius * np.exp2(shifts.astype(np.float64)) / sums, shifts, last)


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
def reset(t: int, rows: Rows, pieces: ResidualPieces, schedule: StepScales) -> None:  # pragma: no cover (compiled)
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
    schedule: StepScales,
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


# ---- Columns in groups of like weight, and how long the sampler's bounds on their scores hold.
# The sampler (:mod:`~taciturn.kernels.vertex_sampler`) needs an upper bound on :math:`|x_k|`, ``x = gamma (A + c B)``
# for an inverse temperature gamma, for every column at every step. Rows change at almost every step, and c always does.
# Columns with many entries move a lot and are few; those with few entries hardly move and are many. So columns, which
# are numbered by falling number of entries, are cut into groups within which that number halves, and each group has an
# *epoch* of its own:
#
# Shrinking c
#     ``|A + c B|`` is convex in c, so its values at both ends of the epoch bound it.
# Changing rows
#     A step that changes the derivative of row i by :math:`\delta_i` moves no score of a group by more than
#     :math:`\min(\sum_i |\delta_i|, w \max_i |\delta_i|)`, where w is the largest sum of absolute entries of its
#     columns. Levels are set a little too high, and a group is charged for every step; when that *spare* room is used
#     up, the levels of the whole group go up, which looks at no row. The changes :math:`\delta_i` are
#     linear in c: known at two values of it, they are bounded in between.
# The whole range
#     No score is larger than w R for a derivative bound R. Groups for which that is next to nothing never change.
# Scores left behind
#     Where A and B of a column are behind, they are summed up when the column is proposed, and its level becomes what
#     it should be; or when the epoch of its group begins.
#
# A group whose levels cause more rejected proposals than new levels would cost gets new ones, and a shorter epoch.
#
# All of that decides how long a step takes. A, B, P and q do not depend on any of it, and neither do the probabilities.

# Fields of the integers of a group: its first column and the one after its last; the largest sum of absolute entries of
# a column and the number of entries of all; first and last iteration of the epoch, and how long it was meant to be;
# proposals rejected in it, a level that none is above, and whether a step has left scores behind in it.
_START, _STOP, _WEIGHT, _ENTRIES, _BEGIN, _END, _LENGTH, _WASTED, _HIGHEST, _BEHIND = range(10)
_N_INTEGERS = 10
# Fields of its numbers: the bound that always holds, and what is left of the room above the scores, which is infinite
# for groups that never change.
_CAP, _SPARE = 0, 1
# Room that levels have above the scores, in units of x, when they are set and when they are raised.
_ROOM = 0.5
# For the rounding of x, which is below 2**-18 as long as |x| < 2**32, and of charges.
_RESERVE = 2.0**-12
# Bounds that are no larger than this hold for ever.
_NEXT_TO_NOTHING = 0.25
# A group that is charged more than this at once gets new levels at the next draw.
_MOST_RAISED = 8.0
# Iterations of a first epoch.
_FIRST_LENGTH = 8
# Wasted proposals that are no reason to look closer.
_FEW = 16
# Room above the scores that makes levels useless, and the share of all entries that proposals ask for.
_LOOSE = 6.0
_PROPOSED_SHARE = 1.0 / 128.0


class Groups(NamedTuple):
    """Groups of columns that follow one another; compiled functions take a plain tuple.

    ``integers`` and ``numbers`` are what is known about each group, in few arrays: each costs every function that takes
    it time to compile. ``group_of`` is the group of each column. ``seen`` counts the steps that had left scores behind
    when A and B of a column were last right, and ``left`` those that have so far.
    """

    integers: IntArray
    numbers: FloatArray
    group_of: NDArray[np.uint8]
    seen: Int32Array
    left: Int32Array


def group_columns(matrix: tuple[IntArray, ...], inverse_temperature: float, bound: int) -> Groups:
    """Groups of a matrix before their first epochs, with all scores behind; no derivative is larger than ``bound``."""
    counts = np.diff(matrix[2])
    sizes = np.frexp(counts.astype(np.float64))[1]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(sizes)) + 1, [counts.size])).astype(np.int64)
    starts, stops = edges[:-1], edges[1:]
    integers = np.zeros((starts.size, _N_INTEGERS), dtype=np.int64)
    integers[:, _START], integers[:, _STOP] = starts, stops
    integers[:, _WEIGHT] = np.maximum.reduceat(weigh_columns(matrix), starts)
    integers[:, _ENTRIES] = np.add.reduceat(counts, starts)
    integers[:, _END], integers[:, _LENGTH] = _NONE, _FIRST_LENGTH
    numbers = np.zeros((starts.size, 2))
    if math.isfinite(inverse_temperature):
        numbers[:, _CAP] = integers[:, _WEIGHT] * (inverse_temperature * bound)
    return Groups(
        integers,
        numbers,
        np.repeat(np.arange(starts.size), stops - starts).astype(np.uint8),
        np.zeros(counts.size, dtype=np.int32),
        np.ones(1, dtype=np.int32),
    )


@compiled
def catch_up(
    k: int, sums: IntArray, matrix: Matrix, terms: IntArray, seen: Int32Array, left: Int32Array
) -> None:  # pragma: no cover (compiled)
    """A and B of one column, for which ``seen[k] != left[0]``: a call with so many arrays costs more than that test."""
    sums[0, k], sums[1, k] = sum_column(matrix[2], matrix[3], k, terms)
    seen[k] = left[0]


@compiled
def catch_up_all(
    sums: IntArray, matrix: Matrix, terms: IntArray, groups: Groups
) -> None:  # pragma: no cover (compiled)
    """A and B of all columns."""
    seen, left = groups[3], groups[4]
    for k in range(sums.shape[1]):
        if seen[k] != left[0]:
            catch_up(k, sums, matrix, terms, seen, left)


@compiled
def _largest(k: int, now: float, then: float, sums: IntArray) -> float:  # pragma: no cover (compiled)
    """The largest absolute score of a column for any c between two."""
    return max(abs(sums[0, k] + now * sums[1, k]), abs(sums[0, k] + then * sums[1, k]))


@compiled
def end_epochs(integers: IntArray) -> None:  # pragma: no cover (compiled)
    """Have every group get new levels before the next draw."""
    for g in range(len(integers)):
        integers[g, _END] = _NONE


@compiled
def leave_behind(integers: IntArray, left: Int32Array) -> None:  # pragma: no cover (compiled)
    """Take note that rows have changed and A and B have not."""
    for g in range(len(integers)):
        integers[g, _BEHIND] = 1
    left[0] += 1


@compiled
def waste(g: int, integers: IntArray) -> None:  # pragma: no cover (compiled)
    """Count a rejected proposal."""
    integers[g, _WASTED] += 1


@compiled
def furthest(t: int, integers: IntArray, numbers: FloatArray) -> np.int64:  # pragma: no cover (compiled)
    """The last iteration that levels now hold for, where they are not for ever; t at least."""
    end = np.int64(t)
    for g in range(len(integers)):
        if numbers[g, _SPARE] != math.inf:
            end = max(end, integers[g, _END])
    return end


@compiled
def _fit_table(sampler: Sampler, integers: IntArray) -> None:  # pragma: no cover (compiled)
    """Have the table reach the levels of all groups."""
    most = np.int64(0)
    for g in range(len(integers)):
        most = max(most, integers[g, _HIGHEST])
    fit_table(sampler, most)


@compiled
def renew(
    t: int,
    once: bool,
    inverse_temperature: float,
    sums: IntArray,
    matrix: Matrix,
    terms: IntArray,
    schedule: StepScales,
    groups: Groups,
    sampler: Sampler,
    bounds: FloatArray,
    names: Int32Array,
) -> None:  # pragma: no cover (compiled)
    """New levels for groups whose epoch is over, or has wasted proposals worth more than that.

    Columns that are no candidates get the least level there is. ``once`` asks for levels of all groups that hold for
    this iteration alone, and fit it as well as any.
    """
    integers, numbers, _, seen, left = groups
    scales, _, lasts = schedule
    n_looked_at = sampler[1].size + (1 << sampler[5])
    for g in range(len(integers)):
        start, stop, end, wasted = integers[g, _START], integers[g, _STOP], integers[g, _END], integers[g, _WASTED]
        worth = (4 * (stop - start) + integers[g, _BEHIND] * integers[g, _ENTRIES]) // n_looked_at + _FEW
        if not once and t <= end and wasted <= worth:
            continue
        age = max(1, t - integers[g, _BEGIN])
        if wasted > worth:
            integers[g, _LENGTH] = max(1, 3 * age // 4)
        elif end != _NONE and 2 * wasted < worth and not once:
            integers[g, _LENGTH] = 2 * age
        end = np.int64(t) if once else min(t + integers[g, _LENGTH], lasts[t])
        cap = numbers[g, _CAP] + _RESERVE
        highest = level_of(cap)
        numbers[g, _SPARE] = _ROOM
        if numbers[g, _CAP] <= _NEXT_TO_NOTHING:
            end, numbers[g, _SPARE] = np.int64(scales.size), math.inf
            for k in range(start, stop):
                bounds[k] = cap
        else:
            largest = 0.0
            for k in range(start, stop):
                if names[k] >= 0:
                    if seen[k] != left[0]:
                        catch_up(k, sums, matrix, terms, seen, left)
                    bounds[k] = inverse_temperature * _largest(k, scales[t], scales[end], sums) + _ROOM + _RESERVE
                    largest = max(largest, bounds[k])
            highest = min(highest, level_of(largest))
        integers[g, _BEGIN], integers[g, _END], integers[g, _HIGHEST] = t, end, highest
        integers[g, _WASTED] = integers[g, _BEHIND] = 0
        _fit_table(sampler, integers)
        set_range(sampler, start, stop, bounds, highest, names)


@compiled
def tighten(
    k: int, t: int, inverse_temperature: float, sums: IntArray, scales: FloatArray, groups: Groups, sampler: Sampler
) -> None:  # pragma: no cover (compiled)
    """Lower the level of a column, whose A and B are right, if it is much higher than it needs to be."""
    integers, numbers, group_of, _, _ = groups
    g = group_of[k]
    if numbers[g, _SPARE] != math.inf:
        largest = _largest(k, scales[t], scales[integers[g, _END]], sums)
        lower_level(sampler, k, inverse_temperature * largest + numbers[g, _SPARE] + _RESERVE)


@compiled
def charge(
    t: int,
    far: float,
    inverse_temperature: float,
    tally: IntArray,
    scales: FloatArray,
    integers: IntArray,
    numbers: FloatArray,
    sampler: Sampler,
    names: Int32Array,
) -> None:  # pragma: no cover (compiled)
    """Make levels hold at iteration t and later, after a step with the changes of ``tally``, given for t and ``far``.

    The changes are linear in c, so that their sums and maxima are convex in it.
    """
    now = scales[t]
    sum_now, peak_now = float(tally[SUM_NOW]), float(tally[PEAK_NOW])
    more_sum, more_peak = tally[SUM_FAR] - sum_now, tally[PEAK_FAR] - peak_now
    for g in range(len(integers)):
        spare, end = numbers[g, _SPARE], integers[g, _END]
        if spare == math.inf or end < t:
            continue
        share = (now - scales[end]) / (now - far) if now > far else 0.0
        total = sum_now + max(0.0, share * more_sum)
        peak = peak_now + max(0.0, share * more_peak)
        spare -= inverse_temperature * min(ONE * total, integers[g, _WEIGHT] * peak)
        if spare < -_MOST_RAISED:
            integers[g, _END] = _NONE
        elif spare < 0.0:
            n_levels = np.int64(math.ceil(4.0 * (_ROOM - spare)))
            spare += 0.25 * n_levels
            cap = level_of(numbers[g, _CAP] + _RESERVE)
            integers[g, _HIGHEST] = min(integers[g, _HIGHEST] + n_levels, cap)
            _fit_table(sampler, integers)
            start, stop = integers[g, _START], integers[g, _STOP]
            raise_range(sampler, start, stop, n_levels, integers[g, _HIGHEST], names)
        numbers[g, _SPARE] = spare


@compiled
def worth_leaving(
    n_moved: int, n_entries: float, jump: float, inverse_temperature: float, integers: IntArray, numbers: FloatArray
) -> bool:  # pragma: no cover (compiled)
    """Whether to leave scores behind rather than to walk through the entries of the rows that change.

    These are about ``n_entries``. After a step that changes the derivatives of ``n_moved`` rows by up to ``jump``,
    columns will have to be summed up again in so far as their levels have become useless, and those that are proposed
    in any case.
    """
    cost, total = 0.0, 0
    for g in range(len(integers)):
        entries = integers[g, _ENTRIES]
        total += entries
        if numbers[g, _CAP] > _NEXT_TO_NOTHING:
            change = inverse_temperature * jump * min(integers[g, _WEIGHT], ONE * n_moved)
            cost += entries * min(1.0, change / _LOOSE)
    return n_entries > cost + total * _PROPOSED_SHARE


# ---- Private Frank-Wolfe on sparse data, at a cost per step that follows the chosen column and not the matrix.
# Scores and their bounds are those above; :mod:`~taciturn.kernels.vertex_sampler` draws vertices from the bounds.

_MOST_REJECTIONS = 64


@compiled
def advance(
    t: int,
    inverse_temperature: float,
    row_length: float,
    sums: IntArray,
    matrix: Matrix,
    rows: Rows,
    pieces: ResidualPieces,
    schedule: StepScales,
    groups: Groups,
    sampler: Sampler,
    bounds: FloatArray,
    names: Int32Array,
    vertices: IntArray,
    words: WordArray,
) -> int:  # pragma: no cover (compiled)
    """Run from iteration t until the last one or until the words run out; returns the iteration reached.

    ``inverse_temperature`` is one over the noise scale in units of the scores; infinity takes the best vertex.
    ``row_length`` is about how many entries stand in a row, and ``sums`` are A and B. ``bounds`` is work space.
    ``names`` are the caller's column numbers, which break ties without noise; negative for columns that are no
    candidates. ``vertices`` is filled with k for the vertex +e_k and ``~k`` for -e_k. Fresh words that are left over
    are not used again.
    """
    scales, shifts, _ = schedule
    integers, numbers, group_of, seen, left = groups
    terms = rows[2]
    slopes, steepest = pieces[2], 0.0
    for piece in range(slopes.size):
        steepest = max(steepest, slopes[piece] * 2.0**-18 * ONE)
    n_steps, at = vertices.size, 0
    k: Any
    while t < n_steps:
        now = scales[t]
        if inverse_temperature == math.inf:
            catch_up_all(sums, matrix, terms, groups)
            for k in range(sums.shape[1]):
                bounds[k] = sums[0, k] + now * sums[1, k]
            k, sign = best_vertex(bounds, names)
        else:
            rejections = 0
            while True:
                # After many rejections with bounds for this iteration alone: most proposals are kept.
                once = rejections == _MOST_REJECTIONS
                renew(t, once, inverse_temperature, sums, matrix, terms, schedule, groups, sampler, bounds, names)
                if at + WORDS_PER_PROPOSAL > words.size:
                    return t
                k = propose(sampler, words[at])
                at += 1
                if k == RETRY:
                    continue
                sign = 0
                if names[k] >= 0:
                    if seen[k] != left[0]:
                        catch_up(k, sums, matrix, terms, seen, left)
                    sign = settle(sampler, k, inverse_temperature * (sums[0, k] + now * sums[1, k]), words, at)
                at += WORDS_PER_PROPOSAL - 1
                if sign != 0:
                    break
                rejections += 1
                waste(group_of[k], integers)
                if names[k] >= 0:
                    tighten(k, t, inverse_temperature, sums, scales, groups, sampler)
        vertices[t] = k if sign > 0 else ~k
        t += 1
        n_moved, n_rows = touch(t, k, sign * t, matrix, rows)
        if shifts[t] != shifts[t - 1]:
            reset(t, rows, pieces, schedule)
            leave_behind(integers, left)
            end_epochs(integers)
        elif inverse_temperature == math.inf:
            recut(t, n_rows, 0.0, False, sums, matrix, rows, pieces, schedule)
        else:
            far = scales[furthest(t, integers, numbers)]
            jump = steepest * t * scales[t] * 2.0 ** -shifts[t]
            leave = worth_leaving(n_moved, n_rows * row_length, jump, inverse_temperature, integers, numbers)
            recut(t, n_rows, far, leave, sums, matrix, rows, pieces, schedule)
            if leave:
                leave_behind(integers, left)
            charge(t, far, inverse_temperature, rows[9], scales, integers, numbers, sampler, names)
    return t
