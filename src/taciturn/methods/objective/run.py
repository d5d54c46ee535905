"""Objective perturbation: the minimiser, its precision, and the noise of its objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray
from taciturn.data.sensitivity import Sensitivity, objective_tilt
from taciturn.engines.interface import ArraySource
from taciturn.losses import Loss
from taciturn.methods.descent import one_thread_if_small
from taciturn.methods.objective.plan import (
    MAGNITUDE,
    ObjectivePlan,
    Resolution,
    StoppingCriterion,
    noiseless_criterion,
    objective_event,
)
from taciturn.privacy import mechanisms
from taciturn.privacy.events import ObjectivePerturbationEvent
from taciturn.privacy.transcript import Call, answer

# ---- The minimiser of a regularised sum of losses with a linear term, to a verified gradient tolerance.
# .. math:: J(w) = \sum_i \phi(x_i \cdot w; y_i) + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w
#
# Newton's method with a line search, with an explicit Hessian for few columns and conjugate gradients for many. J is
# strongly convex, so that it converges to the one minimiser from any point. The stopping criterion is checked on a
# gradient that is summed again, with more digits than the steps use. Newton's method has no proof in double precision;
# should it fail to meet the criterion, gradient descent meets it, which has one (:func:`descend`).

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
    loss: Loss,
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
    loss: Loss,
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
    loss: Loss,
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
    computed norm is at most :math:`(\sqrt2 + 1) e_0`. :mod:`taciturn.methods.objective.plan` chooses the tolerance
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
    rows: Any, targets: FloatArray, loss: Loss, regularisation: float, margins: FloatArray, grad: FloatArray
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
    rows: Any, targets: FloatArray, loss: Loss, regularisation: float, linear_term: FloatArray, weights: FloatArray
) -> FloatArray:
    """The gradient of J, from short sums over rows with compensated summation."""
    return data_gradient(rows, targets, loss, weights, regularisation * weights, linear_term)


def data_gradient(rows: Any, targets: FloatArray, loss: Loss, weights: FloatArray, *more: FloatArray) -> FloatArray:
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


# ---- Objective perturbation: the release of a perturbed objective's minimiser.
# .. math:: \theta^* = \arg\min_\theta \sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2} \|\theta\|^2
#           + (b + o) \cdot \theta, \qquad b \sim N(0, \sigma^2 I),
#
# with a public o. What leaves is :math:`h \cdot (\mathrm{rint}(\theta / h) + \text{noise})` for a computed point
# :math:`\theta` near :math:`\theta^*`, on a lattice of public step h, a power of two.

# Slightly below one, so that rounded rows do not exceed the bound, however many columns they have.
_WITHIN = 1.0 - 2.0**-36
# The lattice of the linear term is so fine that its rounding is below that of a product of doubles.
_NOISE_BITS = 50


def run_objective(plan: ObjectivePlan, source: ArraySource, stream: Stream) -> FloatArray:
    """Release the minimiser of every objective of a plan.

    The target is numeric on the lattice for Huber's loss, and of class codes for the logistic loss. Coefficients are in
    mapped units, the intercept last (0 without one): one row for two classes, for more one each.
    """
    records = source.records
    rows, factors = bounded_rows(records.X, source.x_bound, plan.row_bound, intercept=plan.problem.intercept)
    if plan.problem.loss.labelled:
        targets = one_against_rest(records.y, plan.problem.n_outputs)
    else:
        # The record is scaled as a whole, so that it stays on the hyperplane that the model is looking for.
        targets = records.y[:, None] / ONE * factors[:, None]
    noise = stream.spawn("minimiser")
    weights = np.zeros((plan.problem.n_outputs, plan.problem.n_features + 1))
    offset = np.zeros(plan.problem.n_columns)
    with one_thread_if_small(*rows.shape):
        for output, target in enumerate(targets.T):
            weights[output, : plan.problem.n_columns] = release_minimiser(
                plan, rows, np.ascontiguousarray(target), offset, noise
            )
    return weights


def release_minimiser(
    plan: ObjectivePlan, rows: Any, targets: FloatArray, offset: FloatArray, stream: Stream
) -> FloatArray:
    """Release the minimiser of one objective next to a known linear term ``offset``, for rows within the bound."""
    norm = float(np.linalg.norm(offset))
    if plan.noise_scale == 0.0:
        criterion = noiseless_criterion(plan.problem.loss, plan.row_bound, plan.n_records, norm)
        return minimise(rows, targets, plan.problem.loss, plan.regularisation, offset, criterion)
    return PerturbedObjective(plan, plan.resolution(norm)).release(rows, targets, offset, stream)


@dataclass(frozen=True, slots=True)
class PerturbedObjective:
    r"""One such release: the plan's objective, to the resolution's tolerance, on its lattice of step h.

    **Privacy.** :math:`\theta^*` costs what :mod:`taciturn.privacy.budget` says. Given :math:`\theta^*`, the
    rounded :math:`\theta / h` moves by at most the ``l2_sensitivity`` of ``resolution.output``
    (``data.sensitivity.approximate_minimiser``), which adds noise for that.
    """

    plan: ObjectivePlan
    resolution: Resolution

    @property
    def tilt(self) -> Sensitivity:
        """Of the gradient of the losses."""
        problem = self.plan.problem
        return objective_tilt(problem.loss.lipschitz(math.inf), self.plan.row_bound, problem.relation)

    def release(self, rows: Any, targets: FloatArray, offset: FloatArray, stream: Stream) -> FloatArray:
        """The coefficients, next to a known linear term o, the ``offset``."""
        noise, output = stream.spawn("objective"), stream.spawn("output")
        losses = rows, targets, self.plan.problem.loss
        ridge, criterion = self.plan.regularisation, self.resolution.criterion
        drawn: list[FloatArray] = []

        def draw() -> FloatArray:
            unit = math.ldexp(self.plan.noise_scale, -_NOISE_BITS)
            drawn.append(unit * mechanisms.rounded_normals(noise, offset.size, _NOISE_BITS) + offset)
            return minimise(*losses, ridge, drawn[0], criterion)

        def moved(outcome: FloatArray) -> FloatArray:
            # Given the minimiser, one record moves b. For a computed point b is known; for a forced one it follows
            # from the data. Where no gradient vanishes at the point, the two are far apart.
            return -(ridge * outcome + drawn[0]) if drawn else data_gradient(*losses, outcome)

        # The computed point differs from the minimiser, and the sums are rounded, each within the tolerance.
        limit = self.tilt.value + 2.0 * criterion.tolerance
        point = answer(lambda: Call(self, (("l2", limit),), moved), draw)
        if not drawn:
            # A transcript forces the minimiser, not the point that is computed for it.
            point = minimise(*losses, ridge, -data_gradient(*losses, point, ridge * point), criterion)
        step = self.resolution.step
        lattice = np.clip(np.rint(point / step), -MAGNITUDE, MAGNITUDE).astype(np.int64)
        return np.asarray(self.resolution.output.release(lattice, output) * step, dtype=np.float64)

    def event_of(self, n_values: int) -> ObjectivePerturbationEvent:
        r"""The cost of :math:`\theta^*` with ``n_values`` coordinates, from the noise that is drawn."""
        shift = self.tilt.value / self.plan.noise_scale
        return objective_event(self.plan.problem, self.plan.regularisation, self.plan.row_bound, shift, n_values)


def one_against_rest(codes: Any, n_outputs: int) -> FloatArray:
    """Targets of the logistic loss, from class codes: one column for two classes, one each for more."""
    classes = np.arange(1, 2) if n_outputs == 1 else np.arange(n_outputs)
    targets: FloatArray = (codes[:, None] == classes).astype(np.float64)
    return targets


def bounded_rows(X: Any, x_bound: float, row_bound: float, *, intercept: bool) -> tuple[Any, FloatArray]:
    """Rows in units of ``x_bound`` with L2 norm at most ``row_bound``, and the factor by which each was multiplied.

    Entries are clipped first; sparse input stays sparse. An ``intercept`` appends an entry of 1, which counts towards
    the norm and shrinks with its row.
    """
    if sp.issparse(X):
        rows = sp.csr_array(X, copy=True)
        rows.sum_duplicates()
        # Clipped, then divided: the quotient of a cell and a small bound may be beyond all doubles.
        rows.data = np.clip(rows.data, -x_bound, x_bound) / x_bound
        if intercept:
            rows = sp.hstack((rows, np.ones((rows.shape[0], 1))), format="csr")
        norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    else:
        # Row by row in memory, whatever the table was: sums over a row round by layout, and which records are null
        # must not decide that for all the others.
        rows = np.clip(np.ascontiguousarray(X, dtype=np.float64), -x_bound, x_bound) / x_bound
        if intercept:
            rows = np.column_stack((rows, np.ones(rows.shape[0])))
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    shrunk = np.minimum(1.0, row_bound / np.maximum(norms, row_bound)) * _WITHIN
    return (sp.diags_array(shrunk) @ rows if sp.issparse(rows) else rows * shrunk[:, None]), shrunk
