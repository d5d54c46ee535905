r"""The exact half of the strip sampler: its tables, and the proposals that 64 bits cannot decide.

The half-normal density on [0, 14) is cut into 224 strips of width 1/16. Within strip j, at the offset
u in [0, 1), it is :math:`e^{-(j+u)^2/512}`, which factors into a choice of the strip, with probability
proportional to :math:`e^{-j^2/512}`, and an acceptance test of probability
:math:`e^{-u(2j+u)/512}`. A proposal is two words:

======  ======  ========================================================================
word    bits    use
======  ======  ========================================================================
first   63-33   the leading 31 of 127 bits that choose the strip
first   32      the sign
first   31-0    the leading 32 of 160 bits of the acceptance test
second  63-0    the offset u, of 192 bits in all
======  ======  ========================================================================

The leading bits decide all but about one proposal in 10 million; the remaining 96, 128 and 128 bits
are drawn for that one alone and :func:`resolve` decides it in decimal arithmetic of 100 digits (332
bits). Rounding the strip table to 127 bits moves the law of one value by less than
:math:`2^{-118.9}`, cutting the tail at 14 standard deviations by less than :math:`2^{-145}` and
stopping at 160 bits by less than :math:`2^{-158}`: in all less than :math:`2^{-118}`.

References
----------
Lazily extended comparison of a uniform number with a real one: D. Knuth and A. Yao, "The complexity
of nonuniform random number generation", 1976. Exactness as a privacy matter: I. Mironov, "On
significance of the least significant bits for differential privacy", CCS 2012.
"""

from __future__ import annotations

import decimal
from bisect import bisect_right
from functools import cache
from typing import NamedTuple

import numpy as np

from taciturn.core.arrays import IntArray

__all__ = ["EXTRA_WORDS", "MARGIN", "N_STRIPS", "StripTables", "resolve", "strip_tables"]

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
