r"""Loss derivatives of one record as continuous piecewise linear functions of its margin, on a lattice.

With features in [-1, 1] and coefficients of L1 norm at most lambda, a record with margin m and target y
contributes ``x psi(m, y)`` to the gradient:

========  ================================  ======  ======================================
loss      psi                               pieces  bound on psi
========  ================================  ======  ======================================
squared   m - y                             1       lambda + 1
huber     clip(m - y, -C, C)                3       min(C, lambda + 1)
logistic  L(m) - y with y in {0, 1}         21      min(1, sigma(lambda) + 1e-3)
========  ================================  ======  ======================================

L approximates the logistic function sigma on fixed knots, with equal errors of both signs below 1e-3: half the
error of chords over the same knots. It is odd about (0, 1/2), inside (0, 1) and, but for the rounding of its
coefficients, increasing: the derivative of a convex loss, which depends on nothing but the current margin.

Integers. Everything is in units of 2**-16. On piece s, ``psi = P + c q`` with ``P = intercept[s] - keeps[s] * y``
and ``q = trunc(slope[s] * r / 2**18)``, where c r is the margin: r is an integer that belongs to the record and c a
public number. Truncation is towards zero, so that ``|c q| <= |slope| |m|`` without rounding terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.kernels.compiled import compiled

__all__ = [
    "LatticeDerivative",
    "ResidualPieces",
    "curve_table",
    "exact_residual",
    "locate",
    "logistic_derivative",
    "residual_derivative",
    "slope_part",
]

_SLOPE_BITS = 18
_LOGISTIC_ERROR = 0.97e-3
_ALLOWED_ERROR = 1e-3
# The curve of the exact logistic derivative: step 1/128 on [-16, 16], error below 1e-6.
_CURVE_STEPS = 128
_CURVE_END = 16.0


class ResidualPieces(NamedTuple):
    """A continuous piecewise linear psi; all fields are public. Compiled functions take a plain tuple.

    Attributes
    ----------
    knots : ndarray of float64, shape (K,)
        Ascending, positions of ``m - shift * y`` in lattice units; piece s is ``(knots[s - 1], knots[s]]``.
    intercepts, slopes, keeps : ndarray of int64, shape (K + 1,)
        As in the module's formula; slopes in units of 2**-18.
    shift : float
        1 where psi is a function of ``m - y``, 0 where y is only subtracted.
    """

    knots: FloatArray
    intercepts: IntArray
    slopes: IntArray
    keeps: IntArray
    shift: float


def _sigmoid(m: float) -> float:
    return 1.0 / (1.0 + math.exp(-m))


def _bisect(low: float, high: float, below: object) -> float:
    for _ in range(80):
        middle = 0.5 * (low + high)
        if below(middle):  # type: ignore[operator]
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@cache
def logistic_pieces(error: float = _LOGISTIC_ERROR) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r"""Positive knots of L, and its slopes between them, starting with the piece that holds 0.

    On m > 0 the logistic function is concave. A piece starts ``error`` above it (the first one at the origin,
    on it), falls to ``error`` below it where the tangents agree, and ends where it is ``error`` above again.
    The last one ends at height 1 - ``error``, from where L is constant.
    """
    knots: list[float] = []
    slopes: list[float] = []
    start, height = 0.0, 0.5

    def largest_gap(slope: float) -> float:
        # Where sigma' = slope: sigma (1 - sigma) = slope.
        touching = 0.5 * (1.0 + math.sqrt(max(0.0, 1.0 - 4.0 * slope)))
        at = math.log(touching / (1.0 - touching))
        return touching - height - slope * (at - start)

    while True:
        steepest = min(0.25, _sigmoid(start) * (1.0 - _sigmoid(start)))
        slope = _bisect(1e-9, steepest, lambda s: largest_gap(s) > error)
        slopes.append(slope)
        ceiling = start + (1.0 - error - height) / slope
        if _sigmoid(ceiling) >= 1.0 - 2.0 * error:
            return (*knots, ceiling), tuple(slopes)
        touching = 0.5 * (1.0 + math.sqrt(1.0 - 4.0 * slope))
        low = math.log(touching / (1.0 - touching))
        begin, level = start, height
        end = _bisect(low, low + 20.0, lambda m, a=begin, b=level, s=slope: b + s * (m - a) < _sigmoid(m) + error)
        height += slope * (end - start)
        start = end
        knots.append(end)


@dataclass(frozen=True, slots=True)
class LatticeDerivative:
    r"""How compiled loops compute the derivative of a loss over the ball of one radius; all of it is public.

    Parameters
    ----------
    bound : int
        R, the bound on :math:`|\psi|` in lattice units.
    pieces : ResidualPieces
        Its piecewise linear form.
    logistic : bool
        Whether psi is a function of the margin, minus the label, instead of the residual.
    pieces_error : float
        How far the pieces, as computed, can be from the derivative of the loss.
    """

    bound: int
    pieces: ResidualPieces
    logistic: bool
    pieces_error: float

    @property
    def quadratic(self) -> bool:
        """Whether psi is linear in the residual."""
        return self.pieces.knots.size == 0

    def targets(self, targets: AnyArray) -> IntArray:
        """Targets in lattice units: labels 0 and 1 become 0 and ONE, numbers are on the lattice already."""
        integers: IntArray = np.asarray(targets).astype(np.int64)
        return integers * ONE if self.logistic else integers


def residual_derivative(radius: float, threshold: float = math.inf) -> LatticeDerivative:
    """The residual, clipped at a threshold: the derivative of the squared and of the Huber loss.

    *Proof of the bound.* The margin is at most ``radius`` in size, so the residual at most ``radius + 1``, rounded up;
    the threshold is rounded down.
    """
    bound = math.ceil((radius + 1.0) * ONE)
    # A few units of r, each worth at most four of the lattice.
    error = 2.0**-13
    if math.isinf(threshold):
        return LatticeDerivative(bound, _as_pieces([], [0], [1.0], [1], 1.0), False, error)
    edge = min(bound, math.floor(threshold * ONE))
    pieces = _as_pieces([-edge, edge], [-edge, 0, edge], [0.0, 1.0, 0.0], [0, 1, 0], 1.0)
    return LatticeDerivative(edge, pieces, False, error)


def logistic_derivative(radius: float) -> LatticeDerivative:
    r"""Predicted probability minus label.

    *Proof of the bound.* L is increasing and :math:`1 - L(-m) = L(m)`, so for y = 0 and y = 1 alike psi is at most
    :math:`L(\lambda) \le \sigma(\lambda) + 10^{-3}`, the rounding of intercepts and slopes included; and L stays inside
    (0, 1).
    """
    bound = min(ONE, math.ceil((_sigmoid(radius) + _ALLOWED_ERROR) * ONE))
    # Chords of the logistic curve.
    return LatticeDerivative(bound, _logistic_pieces(), True, 2.0**-9)


@cache
def _logistic_pieces() -> ResidualPieces:
    positive, slopes = logistic_pieces()
    knots, intercepts, height = [], [0.5], 0.5
    for i, knot in enumerate(positive):
        height += slopes[i] * (knot - (positive[i - 1] if i else 0.0))
        knots.append(knot * ONE)
        following = slopes[i + 1] if i + 1 < len(slopes) else 0.0
        intercepts.append(height - following * knot)
    upper = [round(value * ONE) for value in intercepts[1:]]
    outer = [*slopes[1:], 0.0]
    return _as_pieces(
        [-knot for knot in reversed(knots)] + knots,
        [ONE - value for value in reversed(upper)] + [ONE // 2] + upper,
        [*reversed(outer), slopes[0], *outer],
        [1] * (2 * len(knots) + 1),
        0.0,
    )


def _as_pieces(
    knots: list[float], intercepts: list[int], slopes: list[float], keeps: list[int], shift: float
) -> ResidualPieces:
    return ResidualPieces(
        np.array(knots, dtype=np.float64),
        np.array(intercepts, dtype=np.int64),
        np.array([round(slope * 2**_SLOPE_BITS) for slope in slopes], dtype=np.int64),
        np.array(keeps, dtype=np.int64),
        shift,
    )


@compiled
def locate(position: float, knots: FloatArray) -> int:  # pragma: no cover (compiled)
    """The number of the piece that holds ``position``."""
    piece = 0
    while piece < knots.size and position > knots[piece]:
        piece += 1
    return piece


@compiled
def slope_part(slope: int, r: int) -> int:  # pragma: no cover (compiled)
    """``trunc(slope * r / 2**18)``."""
    product = slope * r
    return product >> _SLOPE_BITS if product >= 0 else -(-product >> _SLOPE_BITS)


@cache
def curve_table() -> FloatArray:
    """The logistic function on the grid of :func:`exact_residual`, in lattice units."""
    grid = np.arange(-_CURVE_END * _CURVE_STEPS, _CURVE_END * _CURVE_STEPS + 1) / _CURVE_STEPS
    table: FloatArray = ONE / (1.0 + np.exp(-grid))
    table.setflags(write=False)
    return table


@compiled
def exact_residual(
    margin: float, y: int, logistic: bool, curve: FloatArray, bound: int
) -> int:  # pragma: no cover (compiled)
    """Psi rounded to an integer and clipped to ``[-bound, bound]``, for a margin in lattice units.

    The logistic function is interpolated linearly in a fine table: additions and products only, which give
    the same bits for a record wherever it stands among the others.
    """
    if logistic:
        at = min(max(margin / ONE, -_CURVE_END), _CURVE_END) * _CURVE_STEPS + _CURVE_END * _CURVE_STEPS
        cell = min(np.int64(at), np.int64(curve.size - 2))
        value = curve[cell] + (at - cell) * (curve[cell + 1] - curve[cell])
    else:
        value = margin
    psi: Any = np.int64(np.rint(value)) - y
    return min(max(psi, -bound), bound)
