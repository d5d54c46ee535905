r"""Objective perturbation: the release of a perturbed objective's minimiser.

.. math:: \theta^* = \arg\min_\theta \sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2} \|\theta\|^2
          + (b + o) \cdot \theta, \qquad b \sim N(0, \sigma^2 I),

with a public o. What leaves is :math:`h \cdot (\mathrm{rint}(\theta / h) + \text{noise})` for a computed point
:math:`\theta` near :math:`\theta^*`, on a lattice of public step h, a power of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity, objective_tilt
from taciturn.events import ObjectivePerturbationEvent
from taciturn.fitting.minimiser import data_gradient, minimise
from taciturn.fitting.threads import one_thread_if_small
from taciturn.mechanisms import rounded_gaussian
from taciturn.mechanisms.transcript import Call, answer
from taciturn.planning.objective_perturbation import ObjectivePlan, objective_event
from taciturn.planning.precision import MAGNITUDE, Resolution, noiseless_criterion
from taciturn.sources import ArraySource

__all__ = ["bounded_rows", "one_against_rest", "release_minimiser", "run_objective"]

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
    rows, factors = bounded_rows(records.X, source.x_bound, plan.row_bound, intercept=plan.intercept)
    if plan.loss.labelled:
        targets = one_against_rest(records.y, plan.n_outputs)
    else:
        # The record is scaled as a whole, so that it stays on the hyperplane that the model is looking for.
        targets = records.y[:, None] / ONE * factors[:, None]
    noise = stream.spawn("minimiser")
    weights = np.zeros((plan.n_outputs, plan.n_features + 1))
    offset = np.zeros(plan.n_coefficients)
    with one_thread_if_small(*rows.shape):
        for output, target in enumerate(targets.T):
            weights[output, : plan.n_coefficients] = release_minimiser(
                plan, rows, np.ascontiguousarray(target), offset, noise
            )
    return weights


def release_minimiser(
    plan: ObjectivePlan, rows: Any, targets: FloatArray, offset: FloatArray, stream: Stream
) -> FloatArray:
    """Release the minimiser of one objective next to a known linear term ``offset``, for rows within the bound."""
    norm = float(np.linalg.norm(offset))
    if plan.noise_scale == 0.0:
        criterion = noiseless_criterion(plan.loss, plan.row_bound, plan.n_records, norm)
        return minimise(rows, targets, plan.loss, plan.regularisation, offset, criterion)
    return PerturbedObjective(plan, plan.resolution(norm)).release(rows, targets, offset, stream)


@dataclass(frozen=True, slots=True)
class PerturbedObjective:
    r"""One such release: the plan's objective, to the resolution's tolerance, on its lattice of step h.

    **Privacy.** :math:`\theta^*` costs what :mod:`taciturn.accounting.objective` says. Given :math:`\theta^*`, the
    rounded :math:`\theta / h` moves by at most the ``l2_sensitivity`` of ``resolution.output``
    (``data.sensitivity.approximate_minimiser``), which adds noise for that.
    """

    plan: ObjectivePlan
    resolution: Resolution

    @property
    def tilt(self) -> Sensitivity:
        """Of the gradient of the losses."""
        return objective_tilt(self.plan.loss.lipschitz(math.inf), self.plan.row_bound, self.plan.relation)

    def release(self, rows: Any, targets: FloatArray, offset: FloatArray, stream: Stream) -> FloatArray:
        """The coefficients, next to a known linear term o, the ``offset``."""
        noise, output = stream.spawn("objective"), stream.spawn("output")
        losses, ridge, criterion = (rows, targets, self.plan.loss), self.plan.regularisation, self.resolution.criterion
        drawn: list[FloatArray] = []

        def draw() -> FloatArray:
            unit = math.ldexp(self.plan.noise_scale, -_NOISE_BITS)
            drawn.append(unit * rounded_gaussian.rounded_normals(noise, offset.size, _NOISE_BITS) + offset)
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
        return objective_event(
            self.plan.loss, self.plan.regularisation, self.plan.row_bound, shift, self.plan.relation, n_values
        )


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
