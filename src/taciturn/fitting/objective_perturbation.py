"""Objective perturbation: a plan is run on the arrays of a table in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import objective_tilt
from taciturn.fitting.minimiser import minimise
from taciturn.fitting.perturbed_objective import PerturbedObjective
from taciturn.fitting.threads import one_thread_if_small
from taciturn.planning.objective_perturbation import ObjectivePlan
from taciturn.planning.precision import noiseless_criterion
from taciturn.sources import ArraySource

__all__ = ["bounded_rows", "one_against_rest", "release_minimiser", "run_objective"]

# Slightly below one, so that rounded rows do not exceed the bound, however many columns they have.
_WITHIN = 1.0 - 2.0**-36


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
    found = plan.resolution(norm)
    tilt = objective_tilt(plan.loss.lipschitz(np.inf), plan.row_bound, plan.relation)
    objective = PerturbedObjective(
        plan.loss, plan.regularisation, plan.noise_scale, tilt, found.criterion, found.step, found.output
    )
    return objective.release(rows, targets, offset, stream)


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
