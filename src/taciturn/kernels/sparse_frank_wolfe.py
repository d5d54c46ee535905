r"""Private Frank-Wolfe on sparse data, at a cost per step that follows the chosen column and not the matrix.

Scores are those of :mod:`~taciturn.kernels.sparse_rows`. Vertices are drawn by
:mod:`~taciturn.kernels.vertex_sampler`, whose levels hold for an epoch of iterations: ``|A + c B|`` is convex in c,
so its values at both ends of the epoch bound it. Levels are set a little too high, and as long as the rows' changes
since then, summed over rows, cannot have used that up, no column is looked at. A step too large for this has the
columns of its own rows checked, or all of them if these are many. Epochs last until the proposals they waste have
cost as much as new levels.

All of that decides how long a step takes. A, B, P and q do not depend on any of it, and neither do the probabilities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray, Int32Array, IntArray, WordArray
from taciturn.core.lattice import ONE
from taciturn.kernels.compiled import compiled
from taciturn.kernels.residual_pieces import ResidualPieces
from taciturn.kernels.sparse_rows import DRIFT, N_ENTRIES, N_ROWS, Matrix, Rows, Schedule, move, span
from taciturn.kernels.vertex_sampler import (
    RETRY,
    WORDS_PER_PROPOSAL,
    Sampler,
    best_vertex,
    propose,
    raise_level,
    set_levels,
    settle,
)

__all__ = ["advance", "new_pace"]

_NONE = -1
_MOST_REJECTIONS = 64
# How far, in units of x, levels may be overtaken by small changes before anyone looks, and what is a small change.
_ALLOWANCE = 0.25
_SMALL = 0.0625
# On top of that, for the rounding of x, which is below 2**-18 as long as |x| < 2**32.
_RESERVE = 2.0**-12
# Fields of the pace: first and last iteration of the epoch, its planned length, proposals wasted in it.
_BEGAN, _END, _LENGTH, _WASTED = 0, 1, 2, 3


def new_pace() -> IntArray:
    """The pace of sampler epochs at the start of a run."""
    return np.array([0, _NONE, 8, 0], dtype=np.int64)


@compiled
def _refresh(
    inverse_temperature: float,
    now: float,
    then: float,
    a: IntArray,
    b: IntArray,
    sampler: Sampler,
    bounds: FloatArray,
    names: Int32Array,
) -> None:  # pragma: no cover (compiled)
    """Levels that hold while c is between ``now`` and ``then``, with the allowance on top; least for the excluded."""
    largest = 0.0
    for k in range(a.size):
        bound = _ALLOWANCE + _RESERVE
        if names[k] >= 0:
            bound += inverse_temperature * max(abs(a[k] + now * b[k]), abs(a[k] + then * b[k]))
        bounds[k] = bound
        largest = max(largest, bound)
    set_levels(sampler, bounds, largest)


@compiled
def _check(
    inverse_temperature: float,
    now: float,
    then: float,
    spare: float,
    a: IntArray,
    b: IntArray,
    matrix: Matrix,
    rows: Rows,
    sampler: Sampler,
    names: Int32Array,
) -> bool:  # pragma: no cover (compiled)
    """Levels of the columns that the last step touched; False where the table is too short."""
    row_starts, row_entries, _, _ = matrix
    touched, tally = rows[8], rows[9]
    fits = True
    for number in range(tally[N_ROWS]):
        i = touched[number]
        for place in span(row_starts, i):
            k = np.uint32(row_entries[place])
            if names[k] < 0:
                continue
            bound = inverse_temperature * max(abs(a[k] + now * b[k]), abs(a[k] + then * b[k])) + spare + _RESERVE
            fits &= raise_level(sampler, np.int64(k), bound)
    return fits


@compiled
def advance(
    t: int,
    inverse_temperature: float,
    a: IntArray,
    b: IntArray,
    matrix: Matrix,
    rows: Rows,
    pieces: ResidualPieces,
    schedule: Schedule,
    sampler: Sampler,
    pace: IntArray,
    spare: FloatArray,
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
    a, b, matrix, rows, pieces, schedule, sampler
        Scores, data, state and public tables.
    pace : ndarray of int64, from :func:`new_pace`
        Sampler epochs.
    spare : ndarray of float64, shape (1,)
        What is left of the allowance; negative before the first draw.
    bounds : ndarray of float64, shape (d,)
        Work space.
    names : ndarray of int32, shape (d,)
        The caller's column numbers, which break ties without noise; negative for columns that are no candidates.
    vertices : ndarray of int64, shape (n_steps,)
        Filled with k for the vertex +e_k and ``~k`` for -e_k.
    words : ndarray of uint64
        Fresh random words; those left over are not used again.
    """
    scales, _, lasts = schedule
    tally = rows[9]
    n_steps, d = vertices.size, a.size
    at = 0
    k: Any
    # What a walk over all columns costs, in proposals.
    worth = 2 * d // (sampler[1].size + (1 << sampler[5])) + 8
    while t < n_steps:
        now = scales[t]
        then = now
        if inverse_temperature == math.inf:
            for k in range(d):
                bounds[k] = a[k] + now * b[k]
            k, sign = best_vertex(bounds, names)
        else:
            if spare[0] < 0.0 or t > pace[_END] or pace[_WASTED] > worth:
                age = max(1, t - pace[_BEGAN])
                if pace[_WASTED] > worth:
                    pace[_LENGTH] = max(1, 3 * age // 4)
                elif spare[0] < 0.0:
                    pace[_LENGTH] = min(2 * age, pace[_LENGTH])
                elif 2 * pace[_WASTED] < worth:
                    pace[_LENGTH] = 2 * age
                pace[_BEGAN], pace[_WASTED], spare[0] = t, 0, _ALLOWANCE
                pace[_END] = min(t + pace[_LENGTH], lasts[t], n_steps - 1)
                _refresh(inverse_temperature, now, scales[pace[_END]], a, b, sampler, bounds, names)
            then = scales[pace[_END]]
            rejections = 0
            while True:
                if at + WORDS_PER_PROPOSAL > words.size:
                    return t
                k = propose(sampler, words[at])
                at += 1
                if k == RETRY:
                    continue
                sign = settle(sampler, k, inverse_temperature * (a[k] + now * b[k]), words, at) if names[k] >= 0 else 0
                at += WORDS_PER_PROPOSAL - 1
                if sign != 0:
                    break
                rejections += 1
                if rejections == _MOST_REJECTIONS:
                    # Bounds for this iteration alone: most proposals are kept.
                    _refresh(inverse_temperature, now, now, a, b, sampler, bounds, names)
                    pace[_WASTED] = worth
            pace[_WASTED] += rejections
        vertices[t] = k if sign > 0 else ~k
        rebased = move(t + 1, k, sign * (t + 1), then, a, b, matrix, rows, pieces, schedule)
        t += 1
        if inverse_temperature == math.inf or t > pace[_END] or pace[_WASTED] > worth:
            continue
        drift = inverse_temperature * ONE * tally[DRIFT]
        if rebased or (6 * tally[N_ENTRIES] > d and drift > 0.25 * _ALLOWANCE):
            spare[0] = -1.0
        elif drift <= _SMALL:
            spare[0] -= drift
        elif not _check(inverse_temperature, scales[t], then, spare[0], a, b, matrix, rows, sampler, names):
            spare[0] = -1.0
    return t
