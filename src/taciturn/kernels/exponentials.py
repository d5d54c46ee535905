r"""The exponential function by additions and products alone: the same bits on every processor.

The C library and vector units round :math:`e^x` each in their own way, numpy differently on every kind of processor.
A sum that is made on two machines, or in two parts of an array, must not depend on that. Here :math:`x = k \ln 2 + r`
with an integer k and :math:`|r| \le 0.347`, and

.. math:: e^r = 1 + \bigl(r + r^2 (1/2! + r/3! + \dots + r^{11}/13!)\bigr),

whose remainder is below :math:`2^{-57}`. Every operation is rounded as IEEE 754 says and none is fused with another, so
that the compiled functions and their numpy twins agree to the bit, in vectors or one by one.

*Error.* k times the upper part of ln 2, which has 32 bits, is exact, and so is its difference from x but for half a
unit of r. What follows is smaller than one by a factor of three or more, apart from the last addition: the result is
within 2**-52 of :math:`e^x`, relatively. A logistic function adds two roundings and is within 2**-51.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.kernels.compiled import compiled

__all__ = ["exponential", "exponential_numpy", "log_sum_exp", "logistic", "logistic_numpy", "softmax_numpy"]

_PER_HALVING = 1.4426950408889634
# ln 2 in two parts, the first with 21 zeros at its end.
_UPPER, _LOWER = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Added to a number of moderate size it leaves the nearest integer in the last bits.
_ROUNDING = 1.5 * 2.0**52
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(n) for n in range(2, 14))
_TERMS = (_C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, _C2)
# Below this the result counts as zero: no subnormal number is ever made, which processors may treat differently.
_LEAST = -708.0
_EXPONENT_BITS = 52
_ROOT_OF_HALF = math.sqrt(0.5)
# Of the series of artanh up to 0.172.
_LAST_TERM = 23
# Numbers that stay in a cache from the first operation to the last.
_PIECE = 1 << 12


# Put into their callers by numba, which compiles them once then. Callers need numpy's error model: with Python's every
# divisor is tested, which keeps loops from being done in vectors.
@compiled(error_model="numpy", inline="always")
def exponential(x: float) -> float:  # pragma: no cover (compiled; its twin below is covered)
    """``exp(x)`` for x of at most zero; zero from -708 downwards, NaN for NaN."""
    inside = x if x > _LEAST else _LEAST
    shifted = inside * _PER_HALVING + _ROUNDING
    k = shifted - _ROUNDING
    r = (inside - k * _UPPER) - k * _LOWER
    q = _C13 * r + _C12
    q = q * r + _C11
    q = q * r + _C10
    q = q * r + _C9
    q = q * r + _C8
    q = q * r + _C7
    q = q * r + _C6
    q = q * r + _C5
    q = q * r + _C4
    q = q * r + _C3
    q = q * r + _C2
    power = 1.0 + (r + (q * r) * r)
    # k is added to the exponent; of the shifted number only its last bits are left.
    bits = np.float64(power).view(np.int64) + (np.float64(shifted).view(np.int64) << _EXPONENT_BITS)
    scaled = np.int64(bits).view(np.float64)
    value = scaled if x > _LEAST else 0.0
    return value if x == x else x


@compiled(error_model="numpy", inline="always")
def logistic(z: float) -> float:  # pragma: no cover (compiled; its twin below is covered)
    """``1 / (1 + exp(-z))`` from :func:`exponential` of a negative number, so that nothing overflows."""
    small = exponential(-abs(z))
    return (small if z < 0.0 else 1.0) / (1.0 + small)


def exponential_numpy(x: Any) -> FloatArray:
    """The numpy twin of :func:`exponential`, for arrays: the same bits."""
    return _in_pieces(_exponential, x)


def logistic_numpy(z: Any) -> FloatArray:
    """The numpy twin of :func:`logistic`, for arrays: the same bits."""

    def logistic_of(piece: FloatArray) -> FloatArray:
        small = _exponential(-np.abs(piece))
        above = np.where(piece < 0.0, small, 1.0)
        small += 1.0
        above /= small
        return above

    return _in_pieces(logistic_of, z)


def softmax_numpy(margins: FloatArray) -> FloatArray:
    """``exp(z_k) / sum_l exp(z_l)`` in each row, with sums over the columns in their order."""
    powers, totals, _ = _shifted_powers(margins)
    return powers / totals[:, None]


def log_sum_exp(margins: FloatArray) -> FloatArray:
    """``log sum_k exp(z_k)`` of each row of finite numbers."""
    _, totals, tops = _shifted_powers(margins)
    return tops + _in_pieces(_logarithm, totals)


def _shifted_powers(margins: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Powers in units of the largest of each row, their sums, and the exponents of the largest."""
    tops = margins.max(axis=1)
    powers = exponential_numpy(margins - tops[:, None])
    totals = np.zeros(tops.shape)
    for column in powers.T:
        totals += column
    return powers, totals, tops


def _logarithm(x: FloatArray) -> FloatArray:
    """``log(x)`` for normal numbers x = 2**k m, by ``2 artanh((m - 1) / (m + 1))``; within 2**-51 of it, relatively."""
    m, k = np.frexp(x)
    below = m < _ROOT_OF_HALF
    m = np.where(below, 2.0 * m, m)
    exponents = k - below.astype(np.float64)
    share = (m - 1.0) / (m + 1.0)
    square = share * share
    series = np.full(x.shape, 1.0 / _LAST_TERM)
    for n in range(_LAST_TERM - 2, 0, -2):
        series *= square
        series += 1.0 / n
    return exponents * _UPPER + (exponents * _LOWER + 2.0 * share * series)


def _exponential(x: FloatArray) -> FloatArray:
    inside = np.fmax(x, _LEAST)
    shifted = inside * _PER_HALVING
    shifted += _ROUNDING
    k = shifted - _ROUNDING
    inside -= k * _UPPER
    k *= _LOWER
    inside -= k
    r, value = inside, inside * _C13
    for term in _TERMS:
        value += term
        value *= r
    value *= r
    value += r
    value += 1.0
    bits = shifted.view(np.int64)
    bits <<= _EXPONENT_BITS
    powers = value.view(np.int64)
    powers += bits
    np.copyto(value, 0.0, where=x <= _LEAST)
    np.copyto(value, x, where=np.isnan(x))
    return value


def _in_pieces(function: Callable[[FloatArray], FloatArray], x: Any) -> FloatArray:
    numbers = np.ascontiguousarray(x, dtype=np.float64)
    values = np.empty(numbers.shape)
    flat, filled = numbers.reshape(-1), values.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        filled[start : start + _PIECE] = function(flat[start : start + _PIECE])
    return values.reshape(np.shape(x))
