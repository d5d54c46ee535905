"""Sums of clipped gradients over dense rows by compiled loops, in as many threads as the machine and the user allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import FloatArray, Int32Array, IntArray
from taciturn.core.lattice import FRACTION_BITS, ONE
from taciturn.data.fixed_point import exact_block_rows
from taciturn.fitting.threads import add_shares
from taciturn.kernels import gradients, softmax
from taciturn.kernels.gradients import DerivativeCurve, gradient_sums, rows_at_once, softmax_gradient_sums, weigh_rows

__all__ = ["LatticeCoefficients", "compiled_softmax_sums", "compiled_sums", "compiled_weights", "warm_up"]


@dataclass(frozen=True, slots=True, eq=False)
class LatticeCoefficients:
    """Coefficients as integers, so that products with lattice rows are exact.

    With x a row, an output's margin is ``(x . integers - shifts) * unit + constants``.
    """

    integers: FloatArray
    shifts: FloatArray
    unit: float
    constants: FloatArray

    @classmethod
    def of(cls, coefficients: FloatArray, constant: int, centre: FloatArray | None) -> LatticeCoefficients:
        """One row per output; the last is that of a constant column, if it is not zero.

        The lattice leaves room for exact margins: half of what they allow, and rounding adds less than the other half,
        so that partial sums stay below 2**53.
        """
        weights = coefficients[:, :-1] if constant else coefficients
        largest = float(np.abs(weights).sum(axis=1).max(initial=0.0))
        bits = 36 - math.frexp(largest)[1] if largest > 0.0 else 0
        integers = np.ascontiguousarray(np.rint(np.ldexp(weights, bits)))
        nothing = np.zeros(len(coefficients))
        return cls(
            integers,
            nothing if centre is None else integers @ centre,
            2.0 ** -(bits + FRACTION_BITS),
            coefficients[:, -1] * (constant / ONE) if constant else nothing,
        )


def compiled_sums(
    X: Int32Array,
    at: LatticeCoefficients,
    factors: FloatArray,
    scales: FloatArray,
    bounds: FloatArray,
    target: FloatArray,
    curve: DerivativeCurve,
    weight_bound: int,
) -> IntArray:
    """Rows times their integer weights, and last the sum of the weights; see :func:`gradient_sums`."""
    exact_rows = exact_block_rows(weight_bound)
    step = rows_at_once(X.shape[1], exact_rows)

    def part(start: int, stop: int) -> IntArray:
        sums, weights = np.zeros(X.shape[1] + 1), np.empty(step)
        out = np.zeros(sums.size, dtype=np.int64)
        gradient_sums(
            X, start, stop, at.integers[0], float(at.shifts[0]), at.unit, float(at.constants[0]), factors, scales,
            bounds, target, curve.kind == "logistic", curve.threshold, exact_rows, weights, sums, out,
        )  # fmt: skip
        return out

    return add_shares(part, *X.shape)[None]


def compiled_softmax_sums(
    X: Int32Array,
    at: LatticeCoefficients,
    factors: FloatArray,
    units: FloatArray,
    bounds: FloatArray,
    codes: IntArray,
    rule: FloatArray,
    weight_bound: int,
) -> IntArray:
    """The same for several classes, one row each; see :func:`softmax_gradient_sums`."""
    exact_rows, n_classes = exact_block_rows(weight_bound), len(at.integers)
    step = rows_at_once(X.shape[1], exact_rows)

    def part(start: int, stop: int) -> IntArray:
        weights, room, sums = np.empty((n_classes, step)), np.empty((4, step)), np.zeros((n_classes, X.shape[1] + 1))
        out = np.zeros(sums.shape, dtype=np.int64)
        softmax_gradient_sums(
            X, start, stop, at.integers, at.shifts, at.unit, at.constants, factors, units, bounds, codes, rule,
            exact_rows, weights, room, sums, out,
        )  # fmt: skip
        return out

    return add_shares(part, X.shape[0], n_classes * X.shape[1])


def compiled_weights(
    margins: FloatArray, scales: FloatArray, bounds: FloatArray, target: FloatArray, curve: DerivativeCurve
) -> FloatArray:
    """The integer weights of rows at some margins, one column."""
    weights, whole = margins[:, 0].copy(), np.ones(len(margins))
    is_logistic = curve.kind == "logistic"
    weigh_rows(weights, 0.0, 1.0, 0.0, whole, scales, bounds, target, is_logistic, curve.threshold)
    return weights[:, None]


def warm_up(*, sparse: bool, n_classes: int | None) -> None:
    """Compile what sums of clipped gradients call; ``n_classes`` is 0 for a regression, None where it is not known."""
    if n_classes is None or n_classes > 2:
        softmax.warm_up()
        if not sparse:
            gradients.warm_up(sparse=False, several_classes=True)
    if n_classes is None or n_classes <= 2:
        gradients.warm_up(sparse=sparse, several_classes=False)
