r"""Columns in groups of like weight, and how long the sampler's bounds on their scores hold.

The sampler (:mod:`~taciturn.kernels.vertex_sampler`) needs an upper bound on :math:`|x_k|`, ``x = gamma (A + c B)`` for
an inverse temperature gamma, for every column at every step. Rows change at almost every step, and c always does.
Columns with many entries move a lot and are few; those with few entries hardly move and are many. So columns, which are
numbered by falling number of entries, are cut into groups within which that number halves, and each group has an
*epoch* of its own:

Shrinking c
    ``|A + c B|`` is convex in c, so its values at both ends of the epoch bound it.
Changing rows
    A step that changes the derivative of row i by :math:`\delta_i` moves no score of a group by more than
    :math:`\min(\sum_i |\delta_i|, w \max_i |\delta_i|)`, where w is the largest sum of absolute entries of its
    columns. Levels are set a little too high, and a group is charged for every step; when that *spare* room is used
    up, the levels of the whole group go up, which looks at no row. The changes :math:`\delta_i` are
    linear in c: known at two values of it, they are bounded in between.
The whole range
    No score is larger than w R for a derivative bound R. Groups for which that is next to nothing never change.
Scores left behind
    Where A and B of a column are behind (:mod:`~taciturn.kernels.sparse_rows`), they are summed
    up when the column is proposed, and its level becomes what it should be; or when the epoch of its group begins.

A group whose levels cause more rejected proposals than new levels would cost gets new ones, and a shorter epoch.

All of that decides how long a step takes. A, B, P and q do not depend on any of it, and neither do the probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, Int32Array, IntArray
from taciturn.core.lattice import ONE
from taciturn.kernels.compiled import compiled
from taciturn.kernels.sparse_matrix import Matrix, sum_column, weigh_columns
from taciturn.kernels.sparse_rows import PEAK_FAR, PEAK_NOW, SUM_FAR, SUM_NOW, Schedule
from taciturn.kernels.vertex_sampler import Sampler, fit_table, level_of, lower_level, raise_range, set_range

__all__ = [
    "Groups",
    "catch_up",
    "catch_up_all",
    "charge",
    "end_epochs",
    "furthest",
    "group_columns",
    "leave_behind",
    "renew",
    "tighten",
    "waste",
    "worth_leaving",
]

_NONE = -1
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

    Attributes
    ----------
    integers, numbers : ndarray of int64 and of float64, shape (n_groups, n_fields)
        What is known about each group, in few arrays: each costs every function that takes it time to compile.
    group_of : ndarray of uint8, shape (d,)
        The group of each column.
    seen : ndarray of int32, shape (d,)
        How many steps had left scores behind when A and B of this column were last right.
    left : ndarray of int32, shape (1,)
        How many have so far.
    """

    integers: IntArray
    numbers: FloatArray
    group_of: NDArray[np.uint8]
    seen: Int32Array
    left: Int32Array


def group_columns(matrix: tuple[IntArray, ...], inverse_temperature: float, bound: int) -> Groups:
    """The groups of a matrix, whose derivatives are at most ``bound`` in size, before their first epochs.

    All scores are behind.
    """
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
    schedule: Schedule,
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
