r"""The minimiser of a regularised sum of losses with a linear term, to a gradient tolerance that is verified.

.. math:: J(w) = \sum_i \phi(x_i \cdot w; y_i) + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w

Damped Newton steps, with the Hessian written out for few columns and conjugate gradients for many. J is strongly
convex, so they lead to the one minimiser from anywhere. Whether they have arrived is decided by a gradient that is
summed anew, with more digits than the steps themselves use.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from taciturn.losses import HuberLoss, LogisticLoss

__all__ = ["MOST_STEPS", "GeneralisedLinearLoss", "bounded_rows", "curvature_bound", "gradient_norm", "minimise"]

FloatArray = NDArray[np.float64]

GeneralisedLinearLoss = HuberLoss | LogisticLoss
"""Losses of one linear predictor with a bounded derivative and a bounded second one."""

MOST_STEPS = 10_000
"""Newton steps after which a solution is given up: far more than a strongly convex function can need."""

_MOST_DENSE_COLUMNS = 500
_MOST_HALVINGS = 40
# Sums over this many rows lose at most eight bits; they are added up without losing any.
_VERIFIED_ROWS = 256
# A hair below the bound, so that rounded rows do not exceed it, however many columns they have.
_WITHIN = 1.0 - 2.0**-36
# Values that agree to this many digits do not tell which of two points is lower.
_UNRESOLVED = 2.0**-45


def bounded_rows(X: Any, x_bound: float, row_bound: float, *, intercept: bool) -> tuple[Any, FloatArray]:
    """Rows in units of ``x_bound``, of L2 norm at most ``row_bound``, and by what each was multiplied to get there.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Finite numbers. Entries are clipped first; sparse input stays sparse.
    x_bound : float
        Bound on every entry.
    row_bound : float
        Bound on every row in units of ``x_bound``.
    intercept : bool
        Whether to append an entry of 1, which counts towards the norm and shrinks with its row.
    """
    if sp.issparse(X):
        rows = sp.csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.data = np.clip(rows.data / x_bound, -1.0, 1.0)
        if intercept:
            rows = sp.hstack((rows, np.ones((rows.shape[0], 1))), format="csr")
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    else:
        rows = np.clip(np.asarray(X, dtype=np.float64) / x_bound, -1.0, 1.0)
        if intercept:
            rows = np.column_stack((rows, np.ones(rows.shape[0])))
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    shrunk = np.minimum(1.0, row_bound / np.maximum(lengths, row_bound)) * _WITHIN
    return (sp.diags_array(shrunk) @ rows if sp.issparse(rows) else rows * shrunk[:, None]), shrunk


def curvature_bound(loss: GeneralisedLinearLoss) -> float:
    """The largest second derivative."""
    return 1.0 if isinstance(loss, HuberLoss) else 0.25


def _curvatures(loss: GeneralisedLinearLoss, margins: FloatArray, targets: FloatArray) -> FloatArray:
    if isinstance(loss, HuberLoss):
        return (np.abs(margins - targets) <= loss.threshold).astype(np.float64)
    probabilities = loss.derivative(margins, np.zeros_like(margins))
    return probabilities * (1.0 - probabilities)


def minimise(
    rows: Any,
    targets: FloatArray,
    loss: GeneralisedLinearLoss,
    regularisation: float,
    tilt: FloatArray,
    tolerance: float,
    *,
    most_steps: int = MOST_STEPS,
) -> FloatArray:
    r"""The minimiser of J, to a verified gradient norm.

    Parameters
    ----------
    rows : ndarray or sparse matrix
        One row per record.
    targets : ndarray
        As the loss needs them.
    loss : HuberLoss or LogisticLoss
        :math:`\phi`.
    regularisation : float
        :math:`\Lambda > 0`.
    tilt : ndarray
        b, one number per column.
    tolerance : float
        Bound on the gradient's norm.
    most_steps : int
        Newton steps after which to give up.

    Returns
    -------
    ndarray
        A point whose gradient is within the tolerance. Zeros if none was found, which the tolerance has to rule out:
        it must be above what rounding leaves of the gradient.
    """
    weights = np.zeros(tilt.size)
    value, gradient = _objective(rows, targets, loss, regularisation, tilt, weights)
    # Aim lower than asked for: the next step would overshoot by far anyway, and verification has its own rounding.
    aim = tolerance / 16.0
    for _ in range(most_steps):
        norm = float(np.linalg.norm(gradient))
        if norm <= aim and gradient_norm(rows, targets, loss, regularisation, tilt, weights) <= 0.5 * tolerance:
            return weights
        step = -_newton(rows, targets, loss, regularisation, weights, gradient)
        decrease = float(gradient @ step)
        share = 1.0
        for _ in range(_MOST_HALVINGS):
            further = weights + share * step
            value_there, gradient_there = _objective(rows, targets, loss, regularisation, tilt, further)
            # Steps that lower the value cannot go round in circles. Only next to the minimum, where values agree in
            # all their digits, do gradients have to tell.
            if abs(value_there - value) > _UNRESOLVED * (1.0 + abs(value)):
                lower = value_there <= value + 1e-4 * share * decrease
            else:
                lower = float(np.linalg.norm(gradient_there)) <= (1.0 - 1e-4 * share) * norm
            if lower:
                break
            share *= 0.5
        weights, value, gradient = further, value_there, gradient_there
    verified = gradient_norm(rows, targets, loss, regularisation, tilt, weights) <= 0.5 * tolerance
    return weights if verified else np.zeros(tilt.size)


def _objective(
    rows: Any, targets: FloatArray, loss: GeneralisedLinearLoss, regularisation: float, tilt: FloatArray, w: FloatArray
) -> tuple[float, FloatArray]:
    margins = rows @ w
    value = float(loss.value(margins, targets).sum() + (0.5 * regularisation * w + tilt) @ w)
    return value, rows.T @ loss.derivative(margins, targets) + regularisation * w + tilt


def _newton(
    rows: Any,
    targets: FloatArray,
    loss: GeneralisedLinearLoss,
    regularisation: float,
    weights: FloatArray,
    gradient: FloatArray,
) -> FloatArray:
    """The Hessian's solution for the gradient."""
    curvatures = _curvatures(loss, rows @ weights, targets)
    n_columns = weights.size
    if n_columns <= _MOST_DENSE_COLUMNS:
        weighted = sp.diags_array(curvatures) @ rows if sp.issparse(rows) else rows * curvatures[:, None]
        gram = rows.T @ weighted
        hessian = gram.toarray() if sp.issparse(gram) else gram
        hessian[np.diag_indices(n_columns)] += regularisation
        try:
            return np.asarray(cho_solve(cho_factor(hessian), gradient))
        except LinAlgError:
            # Too ill-conditioned for doubles, which nobody must learn: a short step downhill, and verification decides.
            return gradient / np.trace(hessian)

    def product(v: FloatArray) -> FloatArray:
        return np.asarray(rows.T @ (curvatures * (rows @ v)) + regularisation * v)

    norm = float(np.linalg.norm(gradient))
    hessian = LinearOperator((n_columns, n_columns), matvec=product, dtype=np.float64)
    solution, _ = cg(hessian, gradient, rtol=min(0.1, math.sqrt(norm)), maxiter=1000)
    return np.asarray(solution)


def gradient_norm(
    rows: Any,
    targets: FloatArray,
    loss: GeneralisedLinearLoss,
    regularisation: float,
    tilt: FloatArray,
    weights: FloatArray,
) -> float:
    """The norm of J's gradient, from short sums over rows that are added up with what rounding would lose of them."""
    total, lost = regularisation * weights, np.zeros(weights.size)
    total, lost = _two_sum(total, lost, tilt)
    for start in range(0, targets.size, _VERIFIED_ROWS):
        block, y = rows[start : start + _VERIFIED_ROWS], targets[start : start + _VERIFIED_ROWS]
        total, lost = _two_sum(total, lost, block.T @ loss.derivative(block @ weights, y))
    return float(np.linalg.norm(total + lost))


def _two_sum(total: FloatArray, lost: FloatArray, part: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = total + part
    other = both - total
    return both, lost + ((total - (both - other)) + (part - other))
