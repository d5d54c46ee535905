r"""The minimiser of a regularised sum of losses with a linear term, to a verified gradient tolerance.

.. math:: J(w) = \sum_i \phi(x_i \cdot w; y_i) + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w

Newton's method with a line search, with an explicit Hessian for few columns and conjugate gradients for many. J is
strongly convex, so that it converges to the one minimiser from any point. The stopping criterion is checked on a
gradient that is summed again, with more digits than the steps use. Newton's method has no proof in double precision;
should it fail to meet the criterion, gradient descent meets it, which has one (:func:`descend`).
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
from taciturn.planning.precision import StoppingCriterion

__all__ = ["ACCEPTED", "data_gradient", "descend", "gradient", "minimise"]

Pair = tuple[float, float]

ACCEPTED = 0.7
"""The part of a tolerance that a computed norm may use; the rest covers its rounding error."""

# A dozen are usual; adversarial tables took up to some hundred.
_NEWTON_STEPS = 2000
_MOST_DENSE_COLUMNS = 500
_MOST_HALVINGS = 40
# Sums over this many rows lose at most eight bits; these sums are added up with compensation.
_VERIFIED_ROWS = 256


def minimise(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    linear_term: FloatArray,
    criterion: StoppingCriterion,
) -> FloatArray:
    """The minimiser of J: a point whose exact gradient is within the tolerance, if the criterion has descent steps."""
    weights = np.zeros(linear_term.size)
    for _ in range(_NEWTON_STEPS):
        margins = rows @ weights
        grad = rows.T @ loss.derivative(margins, targets) + regularisation * weights + linear_term
        if float(np.linalg.norm(grad)) <= criterion.tolerance and _meets(
            rows, targets, loss, regularisation, linear_term, weights, criterion
        ):
            return weights
        step = -_newton(rows, targets, loss, regularisation, margins, grad)
        start = float(grad @ step)
        if not -math.inf < start < 0.0:
            break
        along = rows @ step
        known = float((regularisation * weights + linear_term) @ step), regularisation * float(step @ step)

        def rise(share: float, at: FloatArray = margins, along: FloatArray = along, known: Pair = known) -> float:
            return float(loss.derivative(at + share * along, targets) @ along) + known[0] + share * known[1]

        weights = weights + _share(rise, start) * step
    if criterion.descent_steps == 0 or _meets(rows, targets, loss, regularisation, linear_term, weights, criterion):
        return weights
    return descend(rows, targets, loss, regularisation, linear_term, criterion)


def _share(rise: Callable[[float], float], start: float) -> float:
    """Line search: the whole step, or the share of it at which the derivative along the step nearly vanishes.

    A convex function falls as long as its derivative along the step, ``rise``, is negative, as it is at the ``start``.
    Near the minimum values agree in all their digits, and derivatives still differ.
    """
    low, high, share = 0.0, 1.0, 1.0
    for _ in range(_MOST_HALVINGS):
        here = rise(share)
        if abs(here) <= -0.1 * start or (share == 1.0 and here < 0.0):
            break
        low, high = (share, high) if here < 0.0 else (low, share)
        share = 0.5 * (low + high)
    return share


def _meets(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    linear_term: FloatArray,
    weights: FloatArray,
    criterion: StoppingCriterion,
) -> bool:
    norm = float(np.linalg.norm(gradient(rows, targets, loss, regularisation, linear_term, weights)))
    return norm <= ACCEPTED * criterion.tolerance and float(np.linalg.norm(weights)) <= criterion.largest_norm


def descend(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    linear_term: FloatArray,
    criterion: StoppingCriterion,
) -> FloatArray:
    r"""Meet the criterion by gradient descent with a public step size and at most a public number of steps.

    *Proof.* Let L be the criterion's smoothness, g the exact gradient of J at a point, and let the computed next point
    be :math:`\theta - (g + e)/L`, where e holds all rounding errors of the gradient and of the step,
    :math:`\|e\| \le e_0`. J is L-smooth, so that

    .. math:: J(\theta^+) \le J(\theta) - \frac{\|g\|^2 - \|e\|^2}{2L} .

    While :math:`\|g\| > \sqrt2 e_0` the value falls by more than :math:`\|g\|^2 / 4L`. First, J stays below J(0), which
    bounds the points. Second, :math:`J - J^* \le \|g\|^2 / 2\Lambda` by strong convexity, so the distance of J from its
    minimum shrinks by a factor of :math:`1 - \Lambda / 2L` a step. It begins at :math:`L \|\theta^*\|^2/2` at most, and
    is more than :math:`e_0^2 / L` since :math:`\|g\|^2 \le 2L (J - J^*)`. So after
    :math:`2 (L/\Lambda) \ln(L^2 \|\theta^*\|^2 / 2 e_0^2)` steps at the latest :math:`\|g\| \le \sqrt2 e_0`, where the
    computed norm is at most :math:`(\sqrt2 + 1) e_0`. :mod:`taciturn.planning.precision` chooses the tolerance
    so that this is accepted. \square
    """
    weights = np.zeros(linear_term.size)
    step = 1.0 / criterion.smoothness
    for _ in range(criterion.descent_steps):
        grad = gradient(rows, targets, loss, regularisation, linear_term, weights)
        if float(np.linalg.norm(grad)) <= ACCEPTED * criterion.tolerance:
            break
        weights = weights - step * grad
    return weights


def _newton(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    margins: FloatArray,
    grad: FloatArray,
) -> FloatArray:
    """Newton's direction: the inverse of the Hessian times the gradient."""
    curvatures = loss.second_derivative(margins, targets)
    n_columns = grad.size
    if n_columns <= _MOST_DENSE_COLUMNS:
        weighted = sp.diags_array(curvatures) @ rows if sp.issparse(rows) else rows * curvatures[:, None]
        gram = rows.T @ weighted
        hessian = gram.toarray() if sp.issparse(gram) else gram
        hessian[np.diag_indices(n_columns)] += regularisation
        try:
            return np.asarray(cho_solve(cho_factor(hessian), grad))
        except (LinAlgError, ValueError):
            # Too ill-conditioned for doubles, which must not show: a short step downhill, and the criterion decides.
            return np.asarray(grad / np.trace(hessian))

    def product(v: FloatArray) -> FloatArray:
        return np.asarray(rows.T @ (curvatures * (rows @ v)) + regularisation * v)

    norm = float(np.linalg.norm(grad))
    hessian = LinearOperator((n_columns, n_columns), matvec=product, dtype=np.float64)
    solution, _ = cg(hessian, grad, rtol=min(0.1, math.sqrt(norm)), maxiter=1000)
    return np.asarray(solution)


def gradient(
    rows: Any,
    targets: FloatArray,
    loss: ScalarLoss,
    regularisation: float,
    linear_term: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """The gradient of J, from short sums over rows with compensated summation."""
    return data_gradient(rows, targets, loss, weights, regularisation * weights, linear_term)


def data_gradient(
    rows: Any, targets: FloatArray, loss: ScalarLoss, weights: FloatArray, *more: FloatArray
) -> FloatArray:
    """The gradient of the losses alone plus ``more`` terms, by compensated summation."""
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
