"""Compiled samplers of the standard normal law by strips, in doubles and exactly."""

from __future__ import annotations

import decimal
import math
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from taciturn.core.validation import FloatArray, IntArray, WordArray
from taciturn.kernels.compiled import compiled

# ---- Normal numbers on a lattice, from strips: the fast half of the sampler.
# For a scale :math:`s = 2^k`, :math:`5 \le k \le 55`, the sampler returns integers distributed as
#
# * ``round(N(0, s**2))`` (rounded, the law the library releases), or
# * ``P(x)`` proportional to :math:`e^{-x^2/2s^2}` (discrete),
#
# each within total-variation distance :math:`2^{-118}`. The second half of this file describes the
# strips, the layout of a proposal and the tables.
#
# Both functions below read proposals of two words and write the accepted values in order. A proposal
# whose acceptance bits lie below the smallest acceptance probability of its strip needs no exponential;
# these are 95 %. The others are compared with an exponential in double precision and decided if
# they are farther from it than 2**-44, which is far more than its error. What the leading
# bits leave open, one proposal in 10 million, is *slow*: it is given its place in the output, reported,
# and settled there by :func:`resolve`. The place is kept because slow
# proposals hold the far tail: appended at the end, they would tell where the large noise is.
#
# Rounding needs no carry: ``floor(|X| + 1/2)`` is the integer part of ``|X|`` plus the first bit behind it.
#
# References
# ----------
# G. Marsaglia, "Expressing a random variable in terms of uniform random variables", Annals of
# Mathematical Statistics 32, 1961 (table, rectangles, squeeze).

Propose = Callable[[WordArray, int, bool, IntArray, IntArray, IntArray, float, IntArray, IntArray], tuple[int, int]]
"""``(words, log2_scale, discrete, heads, guide, squeeze, margin, out, slow) -> (n_out, n_slow)``"""

_ACCEPTANCE_MASK = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


def _acceptance(strip: int, offset: float) -> float:
    """``2**32 exp(-u (2 j + u) / 512)``: the acceptance probability, in units of the 32 bits."""
    return math.exp(-offset * (2.0 * strip + offset) / 512.0) * 4294967296.0


acceptance: Callable[[int, float], float] = compiled(_acceptance)


def acceptance_numpy(strip: IntArray, offset: FloatArray) -> FloatArray:
    """:data:`acceptance` for arrays."""
    return np.exp(-offset * (2.0 * strip + offset) / 512.0) * 4294967296.0


def _propose(
    words: WordArray,
    log2_scale: int,
    discrete: bool,
    heads: IntArray,
    guide: IntArray,
    squeeze: IntArray,
    margin: float,
    out: IntArray,
    slow: IntArray,
) -> tuple[int, int]:
    """Turn pairs of random words into values, until either runs out.

    Parameters
    ----------
    words : ndarray of uint64, shape (2 * n_proposals,)
        Random words, two for each proposal.
    log2_scale : int
        k, for the scale 2**k.
    discrete : bool
        False for the rounded Gaussian, True for the discrete one.
    heads, guide, squeeze, margin
        Fields of :class:`StripTables`.
    out : ndarray of int64
        Filled from the front. Slow proposals occupy a place, with an arbitrary value.
    slow : ndarray of int64, shape (n_proposals, 2)
        Filled from the front with (place in ``out``, number of the proposal).

    Returns
    -------
    n_out, n_slow : int
        How many entries of ``out`` and rows of ``slow`` were filled.
    """
    step_shift = np.uint64(68 - log2_scale)
    round_shift = np.uint64(67 - log2_scale)
    step = 2.0 ** (4 - log2_scale)
    n_out = 0
    n_slow = 0
    for i in range(words.size // 2):
        if n_out == out.size:
            break
        first = words[2 * i]
        offset = words[2 * i + 1]
        # Everything but the raw words is int64: mixed with uint64 it would become float64.
        selection = np.int64(first >> np.uint64(33))
        bits = np.int64(first & _ACCEPTANCE_MASK)
        strip = guide[selection >> 20]
        while selection >= heads[strip]:
            strip += 1
        steps = np.int64(offset >> step_shift)
        undecided = strip > 0 and selection == heads[strip - 1]
        if not undecided and bits >= squeeze[strip]:
            fraction = steps * step if discrete else np.int64(offset >> np.uint64(11)) * 2.0**-53
            probability = acceptance(strip, fraction)
            if bits >= probability + margin:
                continue
            undecided = bits + 1 > probability - margin
        if undecided:
            slow[n_slow, 0] = n_out
            slow[n_slow, 1] = i
            n_slow += 1
            n_out += 1
            continue
        size = (strip << (log2_scale - 4)) + steps
        negative = np.int64((first >> np.uint64(32)) & _ONE)
        if discrete:
            if size == 0 and negative == 1:
                continue
        else:
            size += np.int64((offset >> round_shift) & _ONE)
        # Two's complement, without a branch that would be mispredicted every other time.
        out[n_out] = (size ^ -negative) + negative
        n_out += 1
    return n_out, n_slow


propose: Propose = compiled(_propose)


def propose_numpy(
    words: WordArray,
    log2_scale: int,
    discrete: bool,
    heads: IntArray,
    guide: IntArray,
    squeeze: IntArray,
    margin: float,
    out: IntArray,
    slow: IntArray,
) -> tuple[int, int]:
    """:data:`propose` in numpy: the same output from the same words.

    A binary search over ``heads`` stands in for ``guide``, which is accepted and not needed.
    """
    first, offset = words[0::2], words[1::2]
    selection = (first >> np.uint64(33)).astype(np.int64)
    bits = (first & _ACCEPTANCE_MASK).astype(np.int64)
    negative = (first >> np.uint64(32) & _ONE).astype(np.int64)
    strip = np.searchsorted(heads, selection, side="right")
    undecided = (strip > 0) & (selection == heads[strip - 1])
    steps = (offset >> np.uint64(68 - log2_scale)).astype(np.int64)

    leading, unit = offset >> np.uint64(11), 2.0**-53
    if discrete:
        leading, unit = steps.view(np.uint64), 2.0 ** (4 - log2_scale)
    fraction = leading.astype(np.float64) * unit
    probability = acceptance_numpy(strip, fraction)
    tested = ~undecided & (bits >= squeeze[strip])
    rejected = tested & (bits >= probability + margin)
    undecided |= tested & ~rejected & (bits + 1 > probability - margin)

    size = (strip << (log2_scale - 4)) + steps
    if discrete:
        rejected |= ~undecided & (size == 0) & (negative == 1)
    else:
        size += (offset >> np.uint64(67 - log2_scale) & _ONE).astype(np.int64)

    kept = np.flatnonzero(~rejected)[: out.size]
    out[: kept.size] = ((size ^ -negative) + negative)[kept]
    places = np.flatnonzero(undecided[kept])
    slow[: places.size, 0] = places
    slow[: places.size, 1] = kept[places]
    return kept.size, places.size


# ---- The exact half of the strip sampler: its tables, and the proposals that 64 bits cannot decide.
# The half-normal density on [0, 14) is cut into 224 strips of width 1/16. Within strip j, at the offset
# u in [0, 1), it is :math:`e^{-(j+u)^2/512}`, which factors into a choice of the strip, with probability
# proportional to :math:`e^{-j^2/512}`, and an acceptance test of probability
# :math:`e^{-u(2j+u)/512}`. A proposal is two words:
#
# ======  ======  ========================================================================
# word    bits    use
# ======  ======  ========================================================================
# first   63-33   the leading 31 of 127 bits that choose the strip
# first   32      the sign
# first   31-0    the leading 32 of 160 bits of the acceptance test
# second  63-0    the offset u, of 192 bits in all
# ======  ======  ========================================================================
#
# The leading bits decide all but about one proposal in 10 million; the remaining 96, 128 and 128 bits
# are drawn for that one alone and :func:`resolve` decides it in decimal arithmetic of 100 digits (332
# bits). Rounding the strip table to 127 bits moves the law of one value by less than
# :math:`2^{-118.9}`, cutting the tail at 14 standard deviations by less than :math:`2^{-145}` and
# stopping at 160 bits by less than :math:`2^{-158}`: in all less than :math:`2^{-118}`.
#
# References
# ----------
# Lazily extended comparison of a uniform number with a real one: D. Knuth and A. Yao, "The complexity
# of nonuniform random number generation", 1976. Exactness as a privacy matter: I. Mironov, "On
# significance of the least significant bits for differential privacy", CCS 2012.

N_STRIPS = 224
EXTRA_WORDS = 6
"""Words that :func:`resolve` takes for one proposal: 384 bits, of which it uses 352."""
MARGIN = 2.0**-12
"""Tolerated error of an acceptance probability in double precision, in units of 2**-32."""

_SELECTION_BITS = 127
_HEAD_BITS = 31
_GUIDE_BITS = 11
_MORE_SELECTION = _SELECTION_BITS - _HEAD_BITS
_MORE_ACCEPTANCE = 128
_MORE_OFFSET = 128


class StripTables(NamedTuple):
    """What the sampler looks up; the same for every scale.

    Attributes
    ----------
    cumulative : tuple of int
        ``floor(2**127 * P(strip <= j))``.
    heads : ndarray of int64
        The leading 31 bits of ``cumulative``.
    guide : ndarray of int64
        For each value of the leading 11 selection bits, the first strip it can lead to.
    squeeze : ndarray of int64
        Acceptance bits below this accept wherever in the strip the offset lies.
    margin : float
        How far from a double-precision acceptance probability, times 2**32, a decision may be taken.
    """

    cumulative: tuple[int, ...]
    heads: IntArray
    guide: IntArray
    squeeze: IntArray
    margin: float


def _digits(n_digits: int) -> decimal.Context:
    """Decimal arithmetic that owes nothing to the settings of the calling program."""
    return decimal.Context(
        prec=n_digits,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-99_999,
        Emax=99_999,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


@cache
def strip_tables() -> StripTables:
    """The tables, computed on first use from ``decimal``'s correctly rounded exponential."""
    with decimal.localcontext(_digits(200)):
        weights = [(decimal.Decimal(-j * j) / 512).exp() for j in range(N_STRIPS)]
        total = sum(weights)
        cumulative = []
        reached = decimal.Decimal(0)
        for weight in weights:
            reached += weight
            cumulative.append(int(reached / total * 2**_SELECTION_BITS))
        lowest = [(decimal.Decimal(-2 * j - 1) / 512).exp() for j in range(N_STRIPS)]
        # Two units below the true minimum: one for the bits that follow the leading 32, one to spare.
        squeeze = [int(probability * 2**32) - 2 for probability in lowest]
    heads = [value >> _MORE_SELECTION for value in cumulative]
    cell = 1 << (_HEAD_BITS - _GUIDE_BITS)
    guide = [bisect_right(heads, start) for start in range(0, 1 << _HEAD_BITS, cell)]
    return StripTables(tuple(cumulative), _frozen(heads), _frozen(guide), _frozen(squeeze), MARGIN)


def _frozen(values: list[int]) -> IntArray:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array


def resolve(
    first: int, offset: int, extra: int, log2_scale: int, discrete: bool, cumulative: tuple[int, ...]
) -> int | None:
    """Decide one proposal from all of its bits.

    Parameters
    ----------
    first, offset : int
        The two words of the proposal.
    extra : int
        At least 352 further random bits; from the lowest up, 96 for the strip, 128 for the
        acceptance test and 128 for the offset.
    log2_scale : int
        k, for the scale 2**k.
    discrete : bool
        False for the rounded Gaussian, True for the discrete one.
    cumulative : tuple of int
        The strip table of :func:`strip_tables`.

    Returns
    -------
    int or None
        The value, or None where the proposal is rejected.
    """
    selection = (first >> 33) << _MORE_SELECTION | _low_bits(extra, _MORE_SELECTION)
    extra >>= _MORE_SELECTION
    acceptance = _low_bits(first, 32) << _MORE_ACCEPTANCE | _low_bits(extra, _MORE_ACCEPTANCE)
    extra >>= _MORE_ACCEPTANCE
    negative = first >> 32 & 1
    strip = bisect_right(cumulative, selection)
    steps = offset >> 68 - log2_scale
    size = (strip << log2_scale - 4) + steps
    if discrete:
        fraction, n_bits = steps, log2_scale - 4
    else:
        fraction, n_bits = offset << _MORE_OFFSET | _low_bits(extra, _MORE_OFFSET), 64 + _MORE_OFFSET
        size += offset >> 67 - log2_scale & 1
    with decimal.localcontext(_digits(100)):
        exponent = decimal.Decimal(fraction * ((2 * strip << n_bits) + fraction)) / 2 ** (2 * n_bits + 9)
        accepted = acceptance < (-exponent).exp() * 2 ** (32 + _MORE_ACCEPTANCE)
    if not accepted or (discrete and negative and size == 0):
        return None
    return -size if negative else size


def _low_bits(value: int, n_bits: int) -> int:
    return value & (1 << n_bits) - 1
