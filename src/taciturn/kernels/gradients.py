r"""Sums of clipped gradients in one pass over 32-bit rows: product, derivative, integer weight, accumulation.

A few rows stay in a cache from the first of these to the last. Products of rows with coefficients are sums of integers
below 2**53, and so are sums of weighted rows over as many rows as a public rule allows, after which they are added to
64-bit integers: both are exact in any order, and may be done in vectors with fused operations. What lies between, from
the margin to the weight, is rounded; it is done record by record without fusing anything, so that a record's weight is
a function of that record alone, to the last bit, and of the same bits as in the numpy twin,
:meth:`taciturn.fitting.clipped_records.ClippedRecords.sums_at`. Nothing is skipped: time does not depend on the data.

Rows may be shared out to threads: sums of integers do not depend on how.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from taciturn.core.arrays import FloatArray, Int32Array, IntArray
from taciturn.kernels.compiled import compiled
from taciturn.kernels.exponentials import exponential, logistic

__all__ = ["DerivativeCurve", "gradient_sums", "rows_at_once", "softmax_gradient_sums", "warm_up", "weigh_rows"]

# Entries and rows that are looked at at once.
_ENTRIES, _MOST_ROWS, _LEAST_ROWS = 1 << 14, 128, 8
_LARGEST = float(np.finfo(np.float64).max)
_ROUNDING = 1.5 * 2.0**52


class DerivativeCurve(NamedTuple):
    """The derivative of a loss as the loops here compute it.

    ``kind`` is "residual", which is clipped to a threshold, "logistic" or "softmax", probabilities less labels.
    """

    kind: str
    threshold: float = math.inf


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
    is_logistic: bool,
    threshold: float,
) -> None:  # pragma: no cover (compiled)
    """Integer weights of rows in place of the products of their entries; see :func:`gradient_sums`."""
    # One loop for each, which compilers turn into vectors.
    if is_logistic:
        for i in range(factors.size):
            margin = _margin(weights[i], shift, unit, constant, factors[i])
            weights[i] = _weight(logistic(margin) - targets[i], scales[i], bounds[i])
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
    is_logistic: bool,
    threshold: float,
    exact_rows: int,
    weights: FloatArray,
    sums: FloatArray,
    out: IntArray,
) -> None:  # pragma: no cover (compiled)
    """Add the rows from ``start`` to ``stop`` times their weights to ``out``, and last the weights themselves.

    With ``z = ((x . vector - shift) * unit + constant) * factor`` and the derivative psi at z, the weight of a row is
    ``rint(psi * scale)`` within plus or minus ``bound``. ``exact_rows`` is how many rows with weights within their
    bounds add up to at most 2**53. ``sums`` are zeros; as many rows are looked at at once as ``weights`` has room for.
    """
    step, n_added = weights.size, 0
    for first in range(start, stop, step):
        last = min(first + step, stop)
        _products(X, first, last, vector, weights)
        weigh_rows(
            weights, shift, unit, constant, factors[first:last], scales[first:last], bounds[first:last],
            targets[first:last], is_logistic, threshold,
        )  # fmt: skip
        _accumulate(X, first, last, weights, sums)
        n_added += step
        if n_added + step > exact_rows or last == stop:
            for j in range(sums.size):
                out[j] += np.int64(sums[j])
                sums[j] = 0.0
            n_added = 0


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
    # As in the twin: bounds must not rest on rounding.
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

    ``rule`` holds the numbers of :meth:`~taciturn.fitting.clipped_records.ClippedRecords.weights`.
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
def warm_up(*, sparse: bool, several_classes: bool) -> None:
    """Compile the sums of one margin or of several, or for sparse rows the weights alone, once a process."""
    X, row, one = np.zeros((1, 1), dtype=np.int32), np.zeros(1), np.ones(1)
    if sparse:
        weigh_rows(np.zeros(1), 0.0, 1.0, 0.0, one, one, one, row, True, 1.0)
    elif several_classes:
        codes, outs, table = np.zeros(1, dtype=np.int64), np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2))
        softmax_gradient_sums(
            X, 0, 1, np.zeros((1, 1)), row, 1.0, row, one, one, one, codes, np.ones(9), 1, np.zeros((1, 1)),
            np.zeros((4, 1)), table, outs,
        )  # fmt: skip
    else:
        out = np.zeros(2, dtype=np.int64)
        gradient_sums(X, 0, 1, row, 0.0, 1.0, 0.0, one, one, one, row, True, 1.0, 1, row + 0.0, np.zeros(2), out)
