r"""Exact draws from the exponential mechanism over signed coordinates, without weighing all of them.

The candidates are the 2 d vertices :math:`\pm e_k` with probabilities proportional to :math:`e^{\mp x_k}`, where
:math:`x_k` is a score divided by the noise scale; a coordinate has weight :math:`2\cosh x_k`.

Upper bounds
    Coordinate k has an integer *level* l with :math:`|x_k| < l/4`. Its bound, in a unit common to all, is an
    integer ``table[l]`` >= :math:`2\cosh(l/4)`. Bounds are summed in about :math:`\sqrt d` blocks. Integer
    sums are exact: they can be updated for ever and do not drift, and the bits of the unit are chosen so
    that no sum can pass 2**63.
Proposal
    A uniform integer below the grand total, without modulo bias, names a block and a coordinate in it.
Acceptance
    The proposal is kept with probability :math:`2\cosh(x_k)` / bound, and then gets its sign. A level that
    is too high costs time, never exactness; one that is too low would cost exactness, so levels are raised
    before the next draw.

So levels, rejections and rebuilt tables decide how long a draw takes and not what it returns. Every
coordinate is a candidate, whatever its column holds, but for those that the caller has excluded by name.

Arithmetic
----------
A proposal reads five words: one for the place, two for the acceptance test, two for the sign. It starts only
if five words are left, so that running out of words says nothing about those that were read. Comparisons of
a uniform number with a probability p use 64 bits if these start with no more than ten zeros and 128 bits
otherwise: the event has probability p (1 + r), :math:`|r| \le 2^{-52}`, as long as p > 2**-76, and else it is
off by less than 2**-127. Exponentials have arguments above -1024, whose rounding is at most 2**-44, or
underflow. Altogether each vertex is returned with its weight at the computed x_k within a factor
:math:`e^{\pm\eta}`, :math:`\eta` = :data:`WEIGHT_ERROR`, but for events of probability :data:`LEFTOVER`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.core.validation import FloatArray, Int32Array, IntArray, WordArray
from taciturn.kernels.compiled import compiled

WEIGHT_ERROR = 2.0**-43
"""Largest relative error of a vertex's weight, given its computed score. It enters a ratio of probabilities four
times: weight and normaliser, on both neighbours."""

LEFTOVER = 2.0**-110
"""Total-variation distance of one selection from a law that keeps that statement. The 128 bits of the tests leave
2**-127 per comparison, and a draw would have to make 2**16 proposals on average to reach this."""

WORDS_PER_PROPOSAL = 5
DRY = np.int64(-1)
"""There are not enough words left for a proposal."""
RETRY = np.int64(-2)
"""The integer drawn was beyond the total."""

# Levels per unit of x, and how many of them are told apart below the highest.
_FINENESS = 4.0
_N_LEVELS = 256
# Room above the largest level, so that a score may grow without a new table.
_HEADROOM = 8
# A level this much too high is lowered.
_SLACK = 2
# Room that is too much: bounds are integers, and those of low levels would lose their digits.
_MOST_HEADROOM = 40
_BASE, _TOP = 0, 1
_SHORT = np.uint64(1 << 53)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO64 = 2.0**64


class Sampler(NamedTuple):
    """What the sampler remembers between draws; compiled functions take it as a plain tuple.

    ``levels`` has the level of each coordinate, counted from ``facts[0]``, the absolute number of level 0; ``facts[1]``
    is that of the highest level in ``table``, which has the bound of each level. ``blocks`` are sums of bounds, of
    ``2**log2_block`` coordinates each, and ``total`` is their sum. The largest bound has ``bits`` bits, where
    ``d * 2**bits <= 2**62``.
    """

    levels: NDArray[np.uint8]
    blocks: WordArray
    total: WordArray
    table: WordArray
    facts: IntArray
    log2_block: int
    bits: int


def new_sampler(n_features: int) -> Sampler:
    """An empty sampler; :func:`set_levels` fills it."""
    log2_block = max(3, round(math.log2(n_features) / 2.0))
    n_blocks = -(-n_features // (1 << log2_block))
    return Sampler(
        levels=np.zeros(n_features, dtype=np.uint8),
        blocks=np.zeros(n_blocks, dtype=np.uint64),
        total=np.zeros(1, dtype=np.uint64),
        table=np.zeros(_N_LEVELS, dtype=np.uint64),
        facts=np.full(2, -1, dtype=np.int64),
        log2_block=log2_block,
        bits=62 - n_features.bit_length(),
    )


@compiled
def level_of(bound: float) -> np.int64:  # pragma: no cover (compiled)
    """The lowest level above a bound on ``|x|``."""
    return np.int64(_FINENESS * bound) + 1


@compiled
def _top_over(level: int) -> int:  # pragma: no cover (compiled)
    return (level // _HEADROOM + 2) * _HEADROOM


@compiled
def _fill_table(top: int, table: WordArray, facts: IntArray, bits: int) -> None:  # pragma: no cover (compiled)
    """Bounds of the levels up to ``top``."""
    base = max(np.int64(0), np.int64(top) - (_N_LEVELS - 1))
    facts[_TOP] = top
    facts[_BASE] = base
    unit = 2.0**bits * (1.0 + 2.0**-40) / (1.0 + math.exp(-2.0 * top / _FINENESS))
    for i in range(top - base + 1):
        level = base + i
        bound = math.exp((level - top) / _FINENESS) * (1.0 + math.exp(-2.0 * level / _FINENESS))
        table[i] = np.uint64(np.int64(unit * bound)) + _ONE


@compiled
def fit_table(sampler: Sampler, highest: int) -> None:  # pragma: no cover (compiled)
    """A table that reaches the highest level there is or will be, and not far beyond; levels stay what they are."""
    levels, blocks, grand_total, table, facts, log2_block, bits = sampler
    if highest <= facts[_TOP] < highest + _MOST_HEADROOM:
        return
    old = max(facts[_BASE], np.int64(0))
    _fill_table(_top_over(highest), table, facts, bits)
    # Levels below the table are raised to its lowest one. Those above it are about to be set anew.
    down, most = facts[_BASE] - old, facts[_TOP] - facts[_BASE]
    size: Any = np.int64(1) << log2_block
    total = _ZERO
    for b in range(blocks.size):
        subtotal = _ZERO
        for k in range(b * size, min((b + 1) * size, levels.size)):
            level = min(max(np.int64(levels[k]) - down, np.int64(0)), most)
            levels[k] = level
            subtotal += table[level]
        blocks[b] = subtotal
        total += subtotal
    grand_total[0] = total


@compiled
def set_range(
    sampler: Sampler, start: int, stop: int, bounds: FloatArray, highest: int, names: Int32Array
) -> None:  # pragma: no cover (compiled)
    """:func:`set_levels` for some coordinates that follow one another, none above ``highest``, which the table reaches.

    Those with a negative name get the least level there is.
    """
    levels, blocks, total, table, facts, log2_block, _ = sampler
    base = facts[_BASE]
    while start < stop:
        # Sums are changed once a block. Unsigned differences wrap and come back: sums stay between 0 and 2**63.
        block = start >> log2_block
        end = min((block + 1) << log2_block, stop)
        change = _ZERO
        for k in range(start, end):
            new = max(min(level_of(bounds[k]), highest) - base, np.int64(0)) if names[k] >= 0 else np.int64(0)
            change += table[new] - table[levels[k]]
            levels[k] = new
        blocks[block] += change
        total[0] += change
        start = end


@compiled
def raise_range(
    sampler: Sampler, start: int, stop: int, n_levels: int, highest: int, names: Int32Array
) -> None:  # pragma: no cover (compiled)
    """Raise the levels of some coordinates, but not above ``highest``, which the table reaches."""
    levels, blocks, total, table, facts, log2_block, _ = sampler
    most = max(highest - facts[_BASE], np.int64(0))
    while start < stop:
        block = start >> log2_block
        end = min((block + 1) << log2_block, stop)
        change = _ZERO
        for k in range(start, end):
            if names[k] >= 0:
                new = min(np.int64(levels[k]) + n_levels, most)
                change += table[new] - table[levels[k]]
                levels[k] = new
        blocks[block] += change
        total[0] += change
        start = end


@compiled
def lower_level(sampler: Sampler, k: int, bound: float) -> None:  # pragma: no cover (compiled)
    """Make the level of one coordinate fit a bound that it is much too high for."""
    levels, blocks, total, table, facts, log2_block, _ = sampler
    new = max(level_of(bound) - facts[_BASE], np.int64(0))
    if new < np.int64(levels[k]) - _SLACK:
        change = table[new] - table[levels[k]]
        blocks[k >> log2_block] += change
        total[0] += change
        levels[k] = new


@compiled
def set_levels(sampler: Sampler, bounds: FloatArray, largest: float) -> None:  # pragma: no cover (compiled)
    """Give every coordinate the lowest level above ``bounds``, of which ``largest`` is the maximum."""
    levels, blocks, grand_total, table, facts, log2_block, bits = sampler
    # A table is kept while its top fits, rounded to two units of x.
    top = _top_over(level_of(largest))
    if facts[_TOP] != top:
        _fill_table(top, table, facts, bits)
    base = facts[_BASE]
    total = _ZERO
    size: Any = np.int64(1) << log2_block
    for b in range(blocks.size):
        subtotal = _ZERO
        for k in range(b * size, min((b + 1) * size, levels.size)):
            level = max(level_of(bounds[k]) - base, np.int64(0))
            levels[k] = level
            subtotal += table[level]
        blocks[b] = subtotal
        total += subtotal
    grand_total[0] = total


@compiled
def propose(sampler: Sampler, word: np.uint64) -> np.int64:  # pragma: no cover (compiled)
    """The coordinate that a word names, in proportion to the bounds, or RETRY."""
    levels, blocks, grand_total, table, _, log2_block, _ = sampler
    total = grand_total[0]
    left = total - _ONE
    shift = np.uint64(64)
    for half in (32, 16, 8, 4, 2, 1):
        if left >> np.uint64(half) != _ZERO:
            left >>= np.uint64(half)
            shift -= np.uint64(half)
    rest = word >> (shift - _ONE)
    if rest >= total:
        return RETRY
    b = 0
    while rest >= blocks[b]:
        rest -= blocks[b]
        b += 1
    k = b << log2_block
    while rest >= table[levels[k]]:
        rest -= table[levels[k]]
        k += 1
    return np.int64(k)


@compiled
def _happens(probability: float, word: np.uint64, tail: np.uint64) -> bool | np.bool_:  # pragma: no cover (compiled)
    """Whether a uniform number, of which ``tail`` holds the lower 64 bits, is below ``probability``."""
    if word >= _SHORT:
        return np.float64(word) + 0.5 < probability * _TWO64
    return np.float64(word) + (np.float64(tail) + 0.5) / _TWO64 < probability * _TWO64


@compiled
def settle(sampler: Sampler, k: int, x: float, words: WordArray, start: int) -> int:  # pragma: no cover (compiled)
    """The sign of the vertex, from four words, or 0 where the proposal of k is rejected."""
    levels, _, _, table, facts, _, bits = sampler
    size = abs(x)
    top = facts[_TOP] / _FINENESS
    twice = math.exp(-2.0 * size)
    weight = math.exp(size - top) * (1.0 + twice) / (1.0 + math.exp(-2.0 * top)) * 2.0**bits
    if not _happens(weight / np.float64(table[levels[k]]), words[start], words[start + 1]):
        return 0
    uphill = _happens(twice / (1.0 + twice), words[start + 2], words[start + 3])
    return 1 if (x > 0.0) == uphill else -1


@compiled
def best_vertex(scores: FloatArray, names: Int32Array) -> tuple[int, int]:  # pragma: no cover (compiled)
    """The vertex with the smallest ``sign * score``; ties go to the lower ``names[k]``, then to the sign +1.

    Columns with a negative name are no candidates; one at least is.
    """
    winner = -1
    for k in range(scores.size):
        if names[k] < 0:
            continue
        ahead = abs(scores[k]) - (abs(scores[winner]) if winner >= 0 else -1.0)
        if ahead > 0.0 or (ahead == 0.0 and names[k] < names[winner]):
            winner = k
    return winner, (-1 if scores[winner] > 0.0 else 1)


@compiled
def choose_vertex(
    scores: FloatArray,
    inverse_temperature: float,
    sampler: Sampler,
    bounds: FloatArray,
    names: Int32Array,
    words: WordArray,
    cursor: IntArray,
) -> tuple[int | np.int64, int]:  # pragma: no cover (compiled)
    """One draw in O(d), from bounds that fit these scores: at least three proposals in four are kept.

    Vertex (k, sign) has probability proportional to ``exp(-sign * inverse_temperature * scores[k])``; an infinite
    inverse temperature means no noise and takes :func:`best_vertex`. The sampler is overwritten, and ``bounds`` is work
    space. Columns with a negative name are no candidates: they get the least weight there is, and proposals of them are
    rejected. ``cursor`` holds where the unread words begin. Returns k and the sign, or (DRY, 0).
    """
    if inverse_temperature == math.inf:
        return best_vertex(scores, names)
    largest = 0.0
    for k in range(scores.size):
        bounds[k] = abs(inverse_temperature * scores[k]) if names[k] >= 0 else 0.0
        largest = max(largest, bounds[k])
    set_levels(sampler, bounds, largest)
    while cursor[0] + WORDS_PER_PROPOSAL <= words.size:
        vertex = propose(sampler, words[cursor[0]])
        cursor[0] += 1
        if vertex == RETRY:
            continue
        score = inverse_temperature * scores[vertex]
        sign = settle(sampler, vertex, score, words, cursor[0]) if names[vertex] >= 0 else 0
        cursor[0] += WORDS_PER_PROPOSAL - 1
        if sign != 0:
            return vertex, sign
    return DRY, 0
