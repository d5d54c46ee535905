"""Compiled gradients of the losses on fixed-point rows, and the exponentials that they need."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from taciturn.core.validation import FloatArray, Int32Array, IntArray
from taciturn.kernels.compiled import compiled

# ---- The exponential function by additions and products alone: the same bits on every processor.
# The C library and vector units round :math:`e^x` each in their own way, numpy differently on every kind of processor.
# A sum that is made on two machines, or in two parts of an array, must not depend on that. Here :math:`x = k \ln 2 + r`
# with an integer k and :math:`|r| \le 0.347`, and
#
# .. math:: e^r = 1 + \bigl(r + r^2 (1/2! + r/3! + \dots + r^{11}/13!)\bigr),
#
# whose remainder is below :math:`2^{-57}`. Every operation is rounded as IEEE 754 says and none is fused with another,
# so that the compiled functions and their numpy versions agree to the bit, in vectors or one by one.
#
# *Error.* k times the upper part of ln 2, which has 32 bits, is exact, and so is its difference from x but for half a
# unit of r. What follows is smaller than one by a factor of three or more, apart from the last addition: the result is
# within 2**-52 of :math:`e^x`, relatively. A logistic function adds two roundings and is within 2**-51.

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
def exponential(x: float) -> float:  # pragma: no cover (compiled; its numpy version below is covered)
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
def logistic(z: float) -> float:  # pragma: no cover (compiled; its numpy version below is covered)
    """``1 / (1 + exp(-z))`` from :func:`exponential` of a negative number, so that nothing overflows."""
    small = exponential(-abs(z))
    return (small if z < 0.0 else 1.0) / (1.0 + small)


_MANTISSA, _EXPONENT_OF_HALF = (1 << 52) - 1, 1022


@compiled(error_model="numpy", inline="always")
def logarithm(x: float) -> float:  # pragma: no cover (compiled; its numpy version below is covered)
    """``log(x)`` of a positive normal number; the same bits as :func:`exact_logarithm`."""
    bits = np.float64(x).view(np.int64)
    m = np.int64((bits & _MANTISSA) | (_EXPONENT_OF_HALF << _EXPONENT_BITS)).view(np.float64)
    below = m < _ROOT_OF_HALF
    m = 2.0 * m if below else m
    exponent = np.float64((bits >> _EXPONENT_BITS) - _EXPONENT_OF_HALF) - (1.0 if below else 0.0)
    share = (m - 1.0) / (m + 1.0)
    square = share * share
    series = 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return exponent * _UPPER + (exponent * _LOWER + 2.0 * share * series)


def exponential_numpy(x: Any) -> FloatArray:
    """The numpy version of :func:`exponential`, for arrays: the same bits."""
    return _in_pieces(_exponential, x)


def logistic_numpy(z: Any) -> FloatArray:
    """The numpy version of :func:`logistic`, for arrays: the same bits."""

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


def exact_logarithm(x: FloatArray) -> FloatArray:
    """``log(x)`` of positive normal numbers, the same bits everywhere."""
    return _in_pieces(_logarithm, x)


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


# ---- Softmax residuals on the lattice, one record at a time.
# A record's residual is a function of its own margins and label alone, to the last bit, and the same on every
# processor: the exponential function is our own, and sums over classes are made in their order.


@compiled(error_model="numpy")
def softmax_residuals(
    margins: IntArray, unit: float, codes: IntArray, bound: int, out: FloatArray
) -> None:  # pragma: no cover (compiled; its numpy version below is covered)
    """``out = rint(bound * (softmax(unit * margins) - onehot))``; rows with a negative code are null and give zero."""
    n_rows, n_classes = margins.shape
    for i in range(n_rows):
        code = codes[i]
        if code < 0:
            for k in range(n_classes):
                out[i, k] = 0.0
            continue
        top = margins[i, 0]
        for k in range(1, n_classes):
            top = max(top, margins[i, k])
        total = 0.0
        for k in range(n_classes):
            out[i, k] = exponential((margins[i, k] - top) * unit)
            total += out[i, k]
        for k in range(n_classes):
            residual = out[i, k] / total - (1.0 if k == code else 0.0)
            out[i, k] = min(max(np.rint(residual * bound), -bound), bound)


@cache
def warm_up() -> None:
    """Compile :func:`softmax_residuals`, once a process."""
    softmax_residuals(np.zeros((1, 1), dtype=np.int64), 1.0, np.zeros(1, dtype=np.int64), 1, np.zeros((1, 1)))


def softmax_residuals_numpy(margins: IntArray, unit: float, codes: IntArray, bound: int, out: FloatArray) -> None:
    """The numpy version of :func:`softmax_residuals`: the same bits."""
    weights = softmax_numpy((margins - margins.max(axis=1, keepdims=True)) * unit)
    known = codes >= 0
    weights[np.flatnonzero(known), codes[known]] -= 1.0
    weights[~known] = 0.0
    np.clip(np.rint(weights * bound), -bound, bound, out=out)


# ---- Sums of clipped gradients in one pass over 32-bit rows: product, derivative, integer weight, accumulation.
# A few rows stay in a cache from the first of these to the last. Products of rows with coefficients are sums of
# integers below 2**53, and so are sums of weighted rows over as many rows as a public rule allows, after which they are
# added to 64-bit integers: both are exact in any order, and may be done in vectors with fused operations. What lies
# between, from the margin to the weight, is rounded; it is done record by record without fusing anything, so that a
# record's weight is a function of that record alone, to the last bit, and of the same bits as in the numpy version,
# :meth:`taciturn.methods.clipped_records.ClippedRecords.sums_at`. Nothing is skipped: time does not depend on the data.
#
# Rows may be shared out to threads: sums of integers do not depend on how.

# Entries and rows that are looked at at once.
_ENTRIES, _MOST_ROWS, _LEAST_ROWS = 1 << 14, 128, 8
_LARGEST = float(np.finfo(np.float64).max)


class DerivativeCurve(NamedTuple):
    """The derivative of a loss as the loops here compute it.

    ``kind`` is "residual", which is clipped to the first of the ``numbers``; "logistic" or "softmax", probabilities
    less labels; "poisson" or "gamma", those of a mean whose margin less the first number lies between the second one
    and zero, and for "poisson" in units of the third.
    """

    kind: str
    numbers: tuple[float, float, float] = (math.inf, 0.0, 1.0)

    @property
    def code(self) -> int:
        """What the loops know it by."""
        return ("residual", "logistic", "poisson", "gamma").index(self.kind)


def rows_at_once(n_columns: int, exact_rows: int) -> int:
    """How many rows are looked at at once: few enough to stay in a cache and to add up exactly."""
    return min(max(min(_ENTRIES // max(n_columns, 1), _MOST_ROWS), _LEAST_ROWS), exact_rows)


# Integers that are exact in doubles: the order of additions does not show, nor whether products are fused with them.
_EXACT = {"reassoc", "contract", "nsz"}


@compiled(fastmath=_EXACT)
def _products(
    X: Int32Array, start: int, stop: int, vector: FloatArray, out: FloatArray
) -> None:  # pragma: no cover (compiled)
    """``out = X[start:stop] @ vector``."""
    for i in range(start, stop):
        row = X[i]
        total = 0.0
        for j in range(vector.size):
            total += np.float64(row[j]) * vector[j]
        out[i - start] = total


@compiled(fastmath=_EXACT)
def squared_norms(X: Int32Array, norms: FloatArray) -> None:  # pragma: no cover (compiled)
    """``norms = (X**2).sum(axis=1)``, below 2**53 and therefore exact."""
    for i in range(norms.size):
        row = X[i]
        total = 0.0
        for j in range(row.size):
            entry = np.float64(row[j])
            total += entry * entry
        norms[i] = total


@compiled(fastmath=_EXACT)
def squared_distances(X: Int32Array, centre: FloatArray, norms: FloatArray) -> None:  # pragma: no cover (compiled)
    """The same of rows less a centre of integers: the square is below 2**53, as are the sums that it is made of."""
    for i in range(norms.size):
        row = X[i]
        total, product = 0.0, 0.0
        for j in range(row.size):
            entry = np.float64(row[j])
            total += entry * entry
            product += entry * centre[j]
        norms[i] = total - 2.0 * product
    norms += np.sum(centre * centre)


@compiled(fastmath=_EXACT)
def _accumulate(
    X: Int32Array, start: int, stop: int, weights: FloatArray, sums: FloatArray
) -> None:  # pragma: no cover (compiled)
    """``sums += weights @ X[start:stop]``, and last the sum of the weights."""
    n_columns = X.shape[1]
    for i in range(start, stop):
        row = X[i]
        weight = weights[i - start]
        for j in range(n_columns):
            sums[j] += weight * np.float64(row[j])
        sums[n_columns] += weight


@compiled(inline="always")
def _margin(
    product: float, shift: float, unit: float, constant: float, factor: float
) -> float:  # pragma: no cover (compiled)
    """A margin within all doubles; zero for what is no number."""
    margin = ((product - shift) * unit + constant) * factor
    margin = margin if margin < _LARGEST else (_LARGEST if margin > 0.0 else 0.0)
    return margin if margin > -_LARGEST else -_LARGEST


@compiled(inline="always")
def _weight(psi: float, scale: float, bound: float) -> float:  # pragma: no cover (compiled)
    """A derivative as an integer within its bound, which is one too."""
    weight = psi * scale
    weight = weight if weight < bound else bound
    weight = weight if weight > -bound else -bound
    # Rounded to the nearest integer, by way of a number whose last bit is worth one.
    return (weight + _ROUNDING) - _ROUNDING


@compiled(error_model="numpy", inline="always")
def _mean(margin: float, offset: float, least: float) -> float:  # pragma: no cover (compiled)
    """What a log link makes of a margin, which is clipped to a public range."""
    inside = margin - offset
    inside = inside if inside < 0.0 else 0.0
    return exponential(inside if inside > least else least)


@compiled(error_model="numpy")
def weigh_rows(
    weights: FloatArray,
    shift: float,
    unit: float,
    constant: float,
    factors: FloatArray,
    scales: FloatArray,
    bounds: FloatArray,
    targets: FloatArray,
    curve: int,
    numbers: tuple[float, float, float],
    offsets: FloatArray,
) -> None:  # pragma: no cover (compiled)
    """Integer weights of rows in place of the products of their entries; see :func:`gradient_sums`."""
    # One loop for each, which compilers turn into vectors.
    threshold, least, scale = numbers
    if curve == 1:
        for i in range(factors.size):
            margin = _margin(weights[i], shift, unit, constant, factors[i])
            weights[i] = _weight(logistic(margin) - targets[i], scales[i], bounds[i])
    elif curve == 2:
        for i in range(factors.size):
            mean = _mean(_margin(weights[i], shift, unit, constant, factors[i]) + offsets[i], threshold, least)
            weights[i] = _weight((mean - targets[i]) / scale, scales[i], bounds[i])
    elif curve == 3:
        for i in range(factors.size):
            mean = _mean(_margin(weights[i], shift, unit, constant, factors[i]) + offsets[i], threshold, least)
            weights[i] = _weight(1.0 - targets[i] / mean, scales[i], bounds[i])
    else:
        for i in range(factors.size):
            residual = _margin(weights[i], shift, unit, constant, factors[i]) - targets[i]
            residual = residual if residual < threshold else threshold
            residual = residual if residual > -threshold else -threshold
            weights[i] = _weight(residual, scales[i], bounds[i])


@compiled(nogil=True)
def gradient_sums(
    X: Int32Array,
    start: int,
    stop: int,
    vector: FloatArray,
    shift: float,
    unit: float,
    constant: float,
    factors: FloatArray,
    scales: FloatArray,
    bounds: FloatArray,
    targets: FloatArray,
    curve: int,
    numbers: tuple[float, float, float],
    offsets: FloatArray,
    exact_rows: int,
    weights: FloatArray,
    sums: FloatArray,
    out: IntArray,
) -> None:  # pragma: no cover (compiled)
    """Add the rows from ``start`` to ``stop`` times their weights to ``out``, and last the weights themselves.

    With ``z = ((x . vector - shift) * unit + constant) * factor`` and the derivative psi at z, the weight of a row is
    ``rint(psi * scale)`` within plus or minus ``bound``. Under a log link z has its ``offsets`` added. ``exact_rows``
    is how many rows with weights within their bounds add up to at most 2**53. ``sums`` are zeros; as many rows are
    looked at at once as ``weights`` has room for.
    """
    step, n_added = weights.size, 0
    for first in range(start, stop, step):
        last = min(first + step, stop)
        _products(X, first, last, vector, weights)
        weigh_rows(
            weights, shift, unit, constant, factors[first:last], scales[first:last], bounds[first:last],
            targets[first:last], curve, numbers, offsets[first:last],
        )  # fmt: skip
        _accumulate(X, first, last, weights, sums)
        n_added += step
        if n_added + step > exact_rows or last == stop:
            for j in range(sums.size):
                out[j] += np.int64(sums[j])
                sums[j] = 0.0
            n_added = 0


# ---- Sums of clipped differences between the losses of several models, in one pass over 32-bit rows.
# As above, what lies between the products and the integers is rounded record by record, with the same bits as in the
# numpy version, :meth:`taciturn.methods.clipped_records.ClippedRecords.losses`.


@compiled(error_model="numpy")
def _label_losses(
    losses: FloatArray,
    shift: float,
    unit: float,
    constant: float,
    factors: FloatArray,
    codes: IntArray,
    class_weights: FloatArray,
) -> None:  # pragma: no cover (compiled)
    """Log-losses of two classes in place of the products of their rows; zero for records with a negative code."""
    for i in range(factors.size):
        z = _margin(losses[i], shift, unit, constant, factors[i])
        top = z if z > 0.0 else 0.0
        total = exponential(0.0 - top) + exponential(z - top)
        value = (top + logarithm(total)) - (z if codes[i] == 1 else 0.0)
        value = value * (class_weights[1] if codes[i] == 1 else class_weights[0])
        losses[i] = value if codes[i] >= 0 else 0.0


@compiled(error_model="numpy")
def _residual_losses(
    losses: FloatArray,
    shift: float,
    unit: float,
    constant: float,
    factors: FloatArray,
    targets: FloatArray,
    bound: float,
    largest: float,
) -> None:  # pragma: no cover (compiled)
    """Half the squared residuals in units of ``bound``, in place of products; residuals count up to ``largest``."""
    for i in range(factors.size):
        residual = abs(_margin(losses[i], shift, unit, constant, factors[i]) - targets[i]) / bound
        residual = residual if residual < largest else largest
        losses[i] = 0.5 * (residual * residual)


@compiled(error_model="numpy", nogil=True)
def excess_loss_sums(
    X: Int32Array,
    start: int,
    stop: int,
    vectors: FloatArray,
    shifts: FloatArray,
    units: FloatArray,
    constants: FloatArray,
    factors: FloatArray,
    targets: FloatArray,
    codes: IntArray,
    class_weights: FloatArray,
    weights: FloatArray,
    rule: FloatArray,
    room: FloatArray,
    out: IntArray,
) -> None:  # pragma: no cover (compiled)
    """Add the differences from the losses of the first model, one sum for each of the others, to ``out``.

    The rows of ``vectors`` are the models' weights, and ``rule`` holds what residuals are divided by, how large they
    may be, what differences are clipped to and what they are multiplied with before they are rounded. There are
    ``codes`` for labels alone, and ``weights`` of records where they have any.
    """
    bound, largest, clip, unit = rule
    base, losses = room[0], room[1]
    labelled, step = codes.size > 0, base.size
    for first in range(start, stop, step):
        last = min(first + step, stop)
        few = factors[first:last]
        for m in range(vectors.shape[0]):
            found = base if m == 0 else losses
            _products(X, first, last, vectors[m], found)
            if labelled:
                _label_losses(found, shifts[m], units[m], constants[m], few, codes[first:last], class_weights)
            else:
                _residual_losses(found, shifts[m], units[m], constants[m], few, targets[first:last], bound, largest)
            if weights.size:
                for i in range(last - first):
                    found[i] *= weights[first + i]
            if m == 0:
                continue
            total = np.int64(0)
            for i in range(last - first):
                excess = losses[i] - base[i]
                # Of two losses beyond all doubles neither is more.
                excess = excess if excess == excess else 0.0
                excess = excess if excess < clip else clip
                excess = excess if excess > -clip else -clip
                total += np.int64(np.rint(excess * unit))
            out[m - 1] += total


@compiled(error_model="numpy")
def _weigh_classes(
    weights: FloatArray,
    shifts: FloatArray,
    unit: float,
    constants: FloatArray,
    factors: FloatArray,
    units: FloatArray,
    bounds: FloatArray,
    codes: IntArray,
    rule: FloatArray,
    room: FloatArray,
) -> None:  # pragma: no cover (compiled)
    """Integer weights of rows, class by class, in place of products of their entries."""
    largest, grain, fine, scale, l1_room, most, most_l1, most_squared, jointly = rule
    tops, totals, sizes, squares = room[0], room[1], room[2], room[3]
    n_classes, n_rows = weights.shape[0], factors.size
    for i in range(n_rows):
        tops[i], totals[i], sizes[i], squares[i] = -largest / grain, 0.0, 0.0, 0.0
    # Margins on a fine lattice, in doubles: their differences are rounded as those of 64-bit integers would be.
    for k in range(n_classes):
        scores = weights[k]
        for i in range(n_rows):
            margin = _margin(scores[i], shifts[k], unit, constants[k], factors[i])
            margin = margin if margin < largest else largest
            margin = margin if margin > -largest else -largest
            scores[i] = np.rint(margin / grain)
            tops[i] = scores[i] if scores[i] > tops[i] else tops[i]
    for k in range(n_classes):
        powers = weights[k]
        for i in range(n_rows):
            powers[i] = exponential((powers[i] - tops[i]) * grain)
            totals[i] += powers[i]
    for k in range(n_classes):
        integers = weights[k]
        for i in range(n_rows):
            integer = np.rint((integers[i] / totals[i] - (1.0 if codes[i] == k else 0.0)) * fine)
            integers[i] = integer if codes[i] >= 0 else 0.0
            sizes[i] += abs(integers[i])
            squares[i] += integers[i] * integers[i]
    # How much the derivatives of each row are shortened, in place of the sums of powers.
    for i in range(n_rows):
        if jointly > 0.0:
            length = math.sqrt(squares[i])
            longest, factor = most * bounds[i] / (length if length > 1.0 else 1.0), scale * units[i]
            totals[i] = factor if factor < longest else longest
        else:
            factor = l1_room / (sizes[i] if sizes[i] > 1.0 else 1.0)
            totals[i] = bounds[i] * (factor if factor < scale else scale)
        sizes[i], squares[i] = 0.0, 0.0
    for k in range(n_classes):
        integers = weights[k]
        for i in range(n_rows):
            integers[i] = np.trunc(integers[i] * totals[i])
            sizes[i] += abs(integers[i])
            squares[i] += integers[i] * integers[i]
    # As in numpy: bounds must not rest on rounding.
    for k in range(n_classes):
        integers = weights[k]
        for i in range(n_rows):
            short = sizes[i] <= most_l1 * bounds[i]
            integers[i] = integers[i] if short and squares[i] <= most_squared * (bounds[i] * bounds[i]) else 0.0


@compiled(nogil=True)
def softmax_gradient_sums(
    X: Int32Array,
    start: int,
    stop: int,
    vectors: FloatArray,
    shifts: FloatArray,
    unit: float,
    constants: FloatArray,
    factors: FloatArray,
    units: FloatArray,
    bounds: FloatArray,
    codes: IntArray,
    rule: FloatArray,
    exact_rows: int,
    weights: FloatArray,
    room: FloatArray,
    sums: FloatArray,
    out: IntArray,
) -> None:  # pragma: no cover (compiled)
    """:func:`gradient_sums` of derivatives of a softmax, one row per class.

    ``rule`` holds the numbers of :meth:`~taciturn.methods.clipped_records.ClippedRecords.weights`.
    """
    step, n_added = weights.shape[1], 0
    for first in range(start, stop, step):
        last = min(first + step, stop)
        for k in range(vectors.shape[0]):
            _products(X, first, last, vectors[k], weights[k])
        _weigh_classes(
            weights, shifts, unit, constants, factors[first:last], units[first:last], bounds[first:last],
            codes[first:last], rule, room,
        )  # fmt: skip
        for k in range(vectors.shape[0]):
            _accumulate(X, first, last, weights[k], sums[k])
        n_added += step
        if n_added + step > exact_rows or last == stop:
            for k in range(vectors.shape[0]):
                for j in range(sums.shape[1]):
                    out[k, j] += np.int64(sums[k, j])
                    sums[k, j] = 0.0
            n_added = 0


@cache
def warm_up_gradients(*, sparse: bool, several_classes: bool) -> None:
    """Compile the sums of one margin or of several, or for sparse rows the weights alone, once a process."""
    X, row, one = np.zeros((1, 1), dtype=np.int32), np.zeros(1), np.ones(1)
    if not sparse:
        squared_norms(X, np.zeros(1))
        squared_distances(X, row, np.zeros(1))
    if sparse:
        weigh_rows(np.zeros(1), 0.0, 1.0, 0.0, one, one, one, row, 1, DerivativeCurve("logistic").numbers, row)
    elif several_classes:
        codes, outs, table = np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2))
        softmax_gradient_sums(
            X, 0, 1, np.zeros((1, 1)), row, 1.0, row, one, one, one, codes, np.ones(9), 1, np.zeros((1, 1)),
            np.zeros((4, 1)), table, outs,
        )  # fmt: skip
    else:
        out = np.zeros(2, dtype=np.int64)
        numbers = DerivativeCurve("logistic").numbers
        gradient_sums(X, 0, 1, row, 0.0, 1.0, 0.0, one, one, one, row, 1, numbers, row, 1, row + 0.0, np.zeros(2), out)
        no_codes = np.zeros(0, dtype=np.int64)
        excess_loss_sums(
            X, 0, 1, np.zeros((2, 1)), np.zeros(2), np.ones(2), np.zeros(2), one, row, no_codes, one, row[:0],
            np.ones(4), np.zeros((2, 1)), out[:1],
        )  # fmt: skip
