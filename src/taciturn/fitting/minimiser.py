r"""The minimiser of a regularised sum of losses with a linear term, to a gradient tolerance that is verified.

.. math:: J(w) = \sum_i \phi(x_i \cdot w; y_i) + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w

Damped Newton steps, with the Hessian written out for few columns and conjugate gradients for many. J is strongly
convex, so they lead to the one minimiser from anywhere. Whether they have arrived is decided by a gradient that is
summed anew, with more digits than the steps themselves use. Newton's steps have no proof in double precision; should
they not arrive, gradient descent does, which has one (:func:`descend`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from taciturn.core.arrays import FloatArray
from taciturn.losses import ScalarLoss
from taciturn.planning.precision import Goal

__all__ = ["ACCEPTED", "data_gradient", "descend", "gradient", "minimise"]

Pair = tuple[float, float]

ACCEPTED = 0.7
"""The part of a tolerance that a computed norm may use. The rest is for what rounding makes of it."""

# A dozen are usual, and some hundred the most that hostile tables have made them take.
_NEWTON_STEPS = 2000
_MOST_DENSE_COLUMNS = 500
_MOST_HALVINGS = 40
# Sums over this many rows lose at most eight bits; they are added up without losing any.
_VERIFIED_ROWS = 256


def minimise(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    tilt: FloatArray,
    goal: Goal,
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
    goal : Goal
        Where to stop.

    Returns
    -------
    ndarray
        A point whose exact gradient is within the tolerance, if the goal states how many descents lead there.
    """
    weights = np.zeros(tilt.size)
    for _ in range(_NEWTON_STEPS):
        margins = rows @ weights
        slope = rows.T @ loss.derivative(margins, targets) + regularisation * weights + tilt
        if float(np.linalg.norm(slope)) <= goal.tolerance and _arrived(
            rows, targets, loss, regularisation, tilt, weights, goal
        ):
            return weights
        step = -_newton(rows, targets, loss, regularisation, margins, slope)
        start = float(slope @ step)
        if not -math.inf < start < 0.0:
            break
        along = rows @ step
        known = float((regularisation * weights + tilt) @ step), regularisation * float(step @ step)

        def rise(share: float, at: FloatArray = margins, along: FloatArray = along, known: Pair = known) -> float:
            return float(loss.derivative(at + share * along, targets) @ along) + known[0] + share * known[1]

        weights = weights + _share(rise, start) * step
    if goal.descents == 0 or _arrived(rows, targets, loss, regularisation, tilt, weights, goal):
        return weights
    return descend(rows, targets, loss, regularisation, tilt, goal)


def _share(rise: Callable[[float], float], start: float) -> float:
    """How far to go along a step: all of it, or to where the value hardly falls any more.

    A convex function falls as long as its derivative along the step, ``rise``, is negative, as it is at the ``start``.
    Derivatives tell next to the minimum too, where values agree in all their digits.
    """
    low, high, share = 0.0, 1.0, 1.0
    for _ in range(_MOST_HALVINGS):
        here = rise(share)
        if abs(here) <= -0.1 * start or (share == 1.0 and here < 0.0):
            break
        low, high = (share, high) if here < 0.0 else (low, share)
        share = 0.5 * (low + high)
    return share


def _arrived(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    tilt: FloatArray,
    weights: FloatArray,
    goal: Goal,
) -> bool:
    norm = float(np.linalg.norm(gradient(rows, targets, loss, regularisation, tilt, weights)))
    return norm <= ACCEPTED * goal.tolerance and float(np.linalg.norm(weights)) <= goal.reach


def descend(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    tilt: FloatArray,
    goal: Goal,
) -> FloatArray:
    r"""The goal, by gradient descent in doubles with a public step and at most a public number of steps.

    *Proof that it arrives.* Let L be the goal's curvature, g the exact gradient of J at a point, and let the computed
    next point be :math:`\theta - (g + e)/L`, where e holds all that rounding does to the gradient and to the step,
    :math:`\|e\| \le e_0`. J is L-smooth, so that

    .. math:: J(\theta^+) \le J(\theta) - \frac{\|g\|^2 - \|e\|^2}{2L} .

    While :math:`\|g\| > \sqrt2 e_0` the value falls by more than :math:`\|g\|^2 / 4L`. First, J stays below J(0), which
    bounds the points. Second, :math:`J - J^* \le \|g\|^2 / 2\Lambda` by strong convexity, so the distance of J from its
    minimum shrinks by a factor of :math:`1 - \Lambda / 2L` a step. It begins at :math:`L \|\theta^*\|^2/2` at most, and
    is more than :math:`e_0^2 / L` since :math:`\|g\|^2 \le 2L (J - J^*)`. So after
    :math:`2 (L/\Lambda) \ln(L^2 \|\theta^*\|^2 / 2 e_0^2)` steps at the latest :math:`\|g\| \le \sqrt2 e_0`, where the
    computed norm is at most :math:`(\sqrt2 + 1) e_0`. Whoever states a goal sees to it that this is accepted
    (:mod:`taciturn.planning.precision`). \square
    """
    weights = np.zeros(tilt.size)
    step = 1.0 / goal.curvature
    for _ in range(goal.descents):
        slope = gradient(rows, targets, loss, regularisation, tilt, weights)
        if float(np.linalg.norm(slope)) <= ACCEPTED * goal.tolerance:
            break
        weights = weights - step * slope
    return weights


def _newton(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    margins: FloatArray,
    slope: FloatArray,
) -> FloatArray:
    """The Hessian's solution for the gradient."""
    curvatures = loss.second_derivative(margins, targets)
    n_columns = slope.size
    if n_columns <= _MOST_DENSE_COLUMNS:
        weighted = sp.diags_array(curvatures) @ rows if sp.issparse(rows) else rows * curvatures[:, None]
        gram = rows.T @ weighted
        hessian = gram.toarray() if sp.issparse(gram) else gram
        hessian[np.diag_indices(n_columns)] += regularisation
        try:
            return np.asarray(cho_solve(cho_factor(hessian), slope))
        except (LinAlgError, ValueError):
            # Too ill-conditioned for doubles, which nobody must learn: a short step downhill, and verification decides.
            return np.asarray(slope / np.trace(hessian))

    def product(v: FloatArray) -> FloatArray:
        return np.asarray(rows.T @ (curvatures * (rows @ v)) + regularisation * v)

    norm = float(np.linalg.norm(slope))
    hessian = LinearOperator((n_columns, n_columns), matvec=product, dtype=np.float64)
    solution, _ = cg(hessian, slope, rtol=min(0.1, math.sqrt(norm)), maxiter=1000)
    return np.asarray(solution)


def gradient(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    tilt: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """J's gradient, from short sums over rows that are added up with what rounding would lose of them."""
    return data_gradient(rows, targets, loss, weights, regularisation * weights, tilt)


def data_gradient(
    rows: Any, targets: FloatArray, loss: ScalarLoss, weights: FloatArray, *more: FloatArray
) -> FloatArray:
    """The gradient of the losses alone, and ``more`` terms, added up in the same way."""
    total, lost = np.zeros(weights.size), np.zeros(weights.size)
    for term in more:
        total, lost = _two_sum(total, lost, term)
    for start in range(0, targets.size, _VERIFIED_ROWS):
        block, y = rows[start : start + _VERIFIED_ROWS], targets[start : start + _VERIFIED_ROWS]
        total, lost = _two_sum(total, lost, block.T @ loss.derivative(block @ weights, y))
    return total + lost


def _two_sum(total: FloatArray, lost: FloatArray, part: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = total + part
    other = both - total
    return both, lost + ((total - (both - other)) + (part - other))
