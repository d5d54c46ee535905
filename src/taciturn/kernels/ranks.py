"""Compiled rank statistics: Kendall's pairs and the canonical Lipschitz top-k."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.validation import AnyArray, FloatArray, Int32Array
from taciturn.kernels.compiled import compiled

# ---- Kendall's rank statistic with ties, in O(n log n) and exact integers, for fewer than 2**31 records.
# :math:`K = \sum_{i < l} \mathrm{sign}(a_i - a_l)\,\mathrm{sign}(b_i - b_l)` is the number of concordant less that of
# discordant pairs; tied ones count nothing. Of all n (n - 1) / 2 pairs those tied in a, in b and in both are counted
# from the ranks, and the discordant ones while merging (Knight 1966): ``K = pairs - tied_a - tied_b + tied_both - 2
# discordant``.
#
# Records are laid out by one ranking, each of its ties as a run in order of the other. What remains is to merge the
# runs, and the ranking with fewer distinct values gives fewer of them: a column of zeros and ones takes one merge.


def ranks_of(values: AnyArray) -> Int32Array:
    """Each value's place among the distinct values, from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def sparse_ranks_of(values: FloatArray, places: NDArray[np.integer], n_rows: int) -> Int32Array:
    """:func:`ranks_of` for a column that is zero but for ``values`` at ``places``; zero has a rank in any case."""
    ranks = ranks_of(np.append(values, 0.0))
    column = np.full(n_rows, ranks[-1], dtype=np.int32)
    column[places] = ranks[:-1]
    return column


def scaled_tau(first: Int32Array, second: Int32Array, n_rows: int, steps: int) -> int:
    """``|K| / (n_rows - 1)`` in steps, rounded down, exactly; ``n_rows`` counts records that are in no pair too."""
    return abs(int(concordance(first, second))) * steps // max(n_rows - 1, 1)


@cache
def warm_up() -> None:
    """Compile :func:`concordance`, once a process."""
    nothing = np.zeros(0, dtype=np.int32)
    scaled_tau(nothing, nothing, 0, 1)


@compiled
def _starts_of(ranks: Int32Array, n_ranks: int) -> Int32Array:  # pragma: no cover (compiled)
    """Where the records of each rank begin once sorted, and n at the end."""
    starts = np.zeros(n_ranks + 1, dtype=np.int32)
    for rank in ranks:
        starts[rank + 1] += 1
    for rank in range(n_ranks):
        starts[rank + 1] += starts[rank]
    return starts


@compiled
def _tied_pairs(starts: Int32Array) -> int:  # pragma: no cover (compiled)
    pairs = 0
    for rank in range(starts.size - 1):
        count: Any = np.int64(starts[rank + 1] - starts[rank])
        pairs += count * (count - 1) // 2
    return pairs


@compiled
def _lay_out(
    runs: Int32Array, run_starts: Int32Array, values: Int32Array, value_starts: Int32Array
) -> Int32Array:  # pragma: no cover (compiled)
    """The values of each run, in order."""
    n_rows = runs.size
    laid_out = np.empty(n_rows, dtype=np.int32)
    if _tied_pairs(run_starts) == 0:
        for i in range(n_rows):
            laid_out[run_starts[runs[i]]] = values[i]
        return laid_out
    by_value = np.empty(n_rows, dtype=np.int32)
    free = value_starts.copy()
    for i in range(n_rows):
        value = values[i]
        by_value[free[value]] = i
        free[value] += 1
    free = run_starts.copy()
    for record in by_value:
        run = runs[record]
        laid_out[free[run]] = values[record]
        free[run] += 1
    return laid_out


@compiled
def _jointly_tied_pairs(laid_out: Int32Array, run_starts: Int32Array) -> int:  # pragma: no cover (compiled)
    pairs = 0
    for run in range(run_starts.size - 1):
        before = 0
        for place in range(run_starts[run] + 1, run_starts[run + 1]):
            before = before + 1 if laid_out[place] == laid_out[place - 1] else 0
            pairs += before
    return pairs


@compiled
def _merge(
    source: Int32Array, target: Int32Array, start: int, middle: int, stop: int
) -> int:  # pragma: no cover (compiled)
    """Merge two sorted stretches; returns how many pairs were in the wrong order."""
    # Unsigned, since signed indices would be tested for counting from the end.
    left, right, place = np.uint64(start), np.uint64(middle), np.uint64(start)
    left_stop, right_stop, one = np.uint64(middle), np.uint64(stop), np.uint64(1)
    inversions = np.uint64(0)
    while left < left_stop and right < right_stop:
        # Arithmetic instead of branches: which side comes next cannot be foreseen.
        first, second = source[left], source[right]
        overtakes = np.uint64(second < first)
        target[place] = second if second < first else first
        inversions += overtakes * (left_stop - left)
        right += overtakes
        left += one - overtakes
        place += one
    while left < left_stop:
        target[place] = source[left]
        left += one
        place += one
    while right < right_stop:
        target[place] = source[right]
        right += one
        place += one
    merged: Any = np.int64(inversions)
    return merged


@compiled
def concordance(first: Int32Array, second: Int32Array) -> int:  # pragma: no cover (compiled)
    """Concordant less discordant pairs of two rankings of the same records, with ranks as of :func:`ranks_of`."""
    n_rows = first.size
    if n_rows == 0:
        return 0
    n_first, n_second = first.max() + 1, second.max() + 1
    if n_first <= n_second:
        runs, n_runs, values, n_values = first, n_first, second, n_second
    else:
        runs, n_runs, values, n_values = second, n_second, first, n_first
    run_starts, value_starts = _starts_of(runs, n_runs), _starts_of(values, n_values)
    source = _lay_out(runs, run_starts, values, value_starts)
    comparable = n_rows * (n_rows - 1) // 2 - _tied_pairs(run_starts) - _tied_pairs(value_starts)
    comparable += _jointly_tied_pairs(source, run_starts)

    discordant = 0
    bounds, n_stretches = run_starts, n_runs
    target = np.empty_like(source)
    while n_stretches > 1:
        n_merged = 0
        for number in range(0, n_stretches - 1, 2):
            start, middle, stop = bounds[number], bounds[number + 1], bounds[number + 2]
            discordant += _merge(source, target, start, middle, stop)
            n_merged += 1
            bounds[n_merged] = stop
        if n_stretches % 2 == 1:
            target[bounds[n_stretches - 1] : n_rows] = source[bounds[n_stretches - 1] : n_rows]
            n_merged += 1
            bounds[n_merged] = n_rows
        n_stretches = n_merged
        source, target = target, source
    return comparable - 2 * discordant


# ---- The canonical Lipschitz mechanism, class by class in O(d k): a plain reference for the merged sampler.
# Candidates are ranked by score. A subset of size k other than the top k belongs to the class (h, t) when
# ranks 1..h are in it, rank h + 1 is not, and t is its last rank; its other ``k - h - 1`` members lie
# anywhere in h + 2 .. t - 1, so the class has ``C(t - h - 2, k - h - 1)`` members. All members of a class have one
# utility, ``head[h] + tail[t]``, and the largest of m independent noises is drawn at once.
#
# ``best_class_of_head`` treats all classes of one h: give it the logarithm of one exponential variate per t.

# Below this, -log(-expm1(-exp(z))) equals -z to the last bit.
_SMALL = -38.0


def largest_noise(z: FloatArray, gumbel: bool) -> FloatArray:
    r"""The largest of m noises from ``z = log(E / m)``, E exponential.

    The largest of m uniforms is ``exp(-E / m)``; the noise is its image under the quantile function,
    ``-log(-log u)`` for Gumbel, ``-log(1 - u)`` for exponential noise, written so that m may be astronomical.
    """
    if gumbel:
        return -z
    small = z < _SMALL
    with np.errstate(over="ignore"):
        shrunk = np.exp(np.where(small, 0.0, z))
    return np.where(small, -z, -np.log(-np.expm1(-shrunk)))


@compiled
def best_class_of_head(
    head: float, tail: FloatArray, log_factorial: FloatArray, k: int, h: int, log_exponentials: FloatArray, gumbel: bool
) -> tuple[float, int]:  # pragma: no cover (compiled; its numpy version below is covered)
    """The best value ``head + tail[i] + noise`` over classes (h, t = k + 1 + i), and its t."""
    best, best_t = -math.inf, -1
    for i in range(tail.size):
        t = k + 1 + i
        log_size = log_factorial[t - h - 2] - log_factorial[k - h - 1] - log_factorial[t - k - 1]
        z = log_exponentials[i] - log_size
        noise = -z if gumbel or z < _SMALL else -math.log(-math.expm1(-math.exp(z)))
        value = head + tail[i] + noise
        if value > best:
            best, best_t = value, t
    return best, best_t


def best_class_of_head_numpy(
    head: float, tail: FloatArray, log_factorial: FloatArray, k: int, h: int, log_exponentials: FloatArray, gumbel: bool
) -> tuple[float, int]:
    """The numpy version of :func:`best_class_of_head`."""
    t = np.arange(k + 1, k + 1 + tail.size)
    log_sizes = log_factorial[t - h - 2] - log_factorial[k - h - 1] - log_factorial[t - k - 1]
    values = head + tail + largest_noise(log_exponentials - log_sizes, gumbel)
    winner = int(np.argmax(values))
    return float(values[winner]), int(t[winner])
