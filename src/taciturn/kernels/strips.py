r"""Normal numbers on a lattice, from strips: the fast half of the sampler.

For a scale :math:`s = 2^k`, :math:`5 \le k \le 55`, the sampler returns integers distributed as

* ``round(N(0, s**2))`` (rounded, the law the library releases), or
* ``P(x)`` proportional to :math:`e^{-x^2/2s^2}` (discrete),

each within total-variation distance :math:`2^{-118}`. :mod:`taciturn.kernels.strips_exact` describes the
strips, the layout of a proposal and the tables.

Both functions below read proposals of two words and write the accepted values in order. A proposal
whose acceptance bits lie below the smallest acceptance probability of its strip needs no exponential;
these are 95 %. The others are compared with an exponential in double precision and decided if
they are farther from it than 2**-44, which is far more than its error. What the leading
bits leave open, one proposal in 10 million, is *slow*: it is given its place in the output, reported,
and settled there by :func:`~taciturn.kernels.strips_exact.resolve`. The place is kept because slow
proposals hold the far tail: appended at the end, they would tell where the large noise is.

Rounding needs no carry: ``floor(|X| + 1/2)`` is the integer part of ``|X|`` plus the first bit behind it.

References
----------
G. Marsaglia, "Expressing a random variable in terms of uniform random variables", Annals of
Mathematical Statistics 32, 1961 (table, rectangles, squeeze).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, WordArray
from taciturn.kernels.compiled import compiled

__all__ = ["Propose", "acceptance", "acceptance_numpy", "propose", "propose_numpy"]

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
        Fields of :class:`~taciturn.kernels.strips_exact.StripTables`.
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
