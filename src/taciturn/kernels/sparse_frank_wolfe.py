r"""Private Frank-Wolfe on sparse data, at a cost per step that follows the chosen column and not the matrix.

Scores are those of :mod:`~taciturn.kernels.sparse_rows`. Vertices are drawn by
:mod:`~taciturn.kernels.vertex_sampler` from bounds that :mod:`~taciturn.kernels.column_groups` keeps.
"""

from __future__ import annotations

import math
from typing import Any

from taciturn.core.arrays import FloatArray, Int32Array, IntArray, WordArray
from taciturn.core.lattice import ONE
from taciturn.kernels.column_groups import (
    Groups,
    catch_up,
    catch_up_all,
    charge,
    end_epochs,
    furthest,
    leave_behind,
    renew,
    tighten,
    waste,
    worth_leaving,
)
from taciturn.kernels.compiled import compiled
from taciturn.kernels.residual_pieces import ResidualPieces
from taciturn.kernels.sparse_matrix import Matrix
from taciturn.kernels.sparse_rows import Rows, Schedule, recut, reset, touch
from taciturn.kernels.vertex_sampler import RETRY, WORDS_PER_PROPOSAL, Sampler, best_vertex, propose, settle

__all__ = ["advance"]

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
    schedule: Schedule,
    groups: Groups,
    sampler: Sampler,
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
    row_length : float
        About how many entries stand in a row.
    sums : ndarray of int64, shape (2, d)
        A and B.
    matrix, rows, pieces, schedule, groups, sampler
        Data, state and public tables.
    bounds : ndarray of float64, shape (d,)
        Work space.
    names : ndarray of int32, shape (d,)
        The caller's column numbers, which break ties without noise; negative for columns that are no candidates.
    vertices : ndarray of int64, shape (n_steps,)
        Filled with k for the vertex +e_k and ``~k`` for -e_k.
    words : ndarray of uint64
        Fresh random words; those left over are not used again.
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
