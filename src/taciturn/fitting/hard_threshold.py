r"""Gradient steps on clipped records, each followed by hard thresholding.

One step is :math:`w \leftarrow H_k(w - \eta\, \tilde g / n)` with :math:`\tilde g` a noisy version of
:math:`\sum_i \psi_i \tilde x_i`, an exact sum of integers (:mod:`~taciturn.fitting.clipped_records`).
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.gradient_descent import Constraint, CurvatureStep, GradientDescent
from taciturn.fitting.sums import (
    CurvatureSum,
    GradientSum,
    RowNorms,
    TargetMagnitudes,
    largest_row_norm,
    private_median,
)
from taciturn.fitting.threads import one_thread
from taciturn.losses import HuberLoss, Loss
from taciturn.planning.hard_threshold import LEAST_ROW_BOUND, HardThresholdPlan
from taciturn.sources import Source

__all__ = ["run_hard_threshold"]

# Without privacy residuals are clipped only where they pass eight times the range of the target.
_NOISELESS_CLIP = 16.0
_GRID_POINTS = 40
# A clip at half the median target keeps most of the signal of the first step and little of the noise of the others.
_CLIP_PER_MEDIAN = 0.5
# The constant column is as large as others of the same row, but not so small that the intercept drowns in noise.
_MOST_COLUMNS_FOR_CONSTANT = 1000
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more along chosen ones.
_LEAST_CURVATURE = 1.3
# Sparse features are stored by columns, of which margins read few, up to this many rows: sums over more are made in
# blocks of rows.
_MOST_ROWS_BY_COLUMNS = 1 << 19


@one_thread()
def run_hard_threshold(plan: HardThresholdPlan, source: Source, stream: Stream) -> FloatArray:
    """The coefficients in mapped units, one row per output, the intercept last, for a source with a mapped target."""
    row_squared = math.floor((_row_bound(plan, source, stream) * ONE) ** 2)
    loss = _clipped_loss(plan, source, stream)
    n_columns = min(plan.n_features + 1, _MOST_COLUMNS_FOR_CONSTANT)
    constant = max(1, round(math.sqrt(row_squared / n_columns))) if plan.intercept else 0
    weight_bound, noise, top_k = plan.gradient_mechanisms(row_squared, constant)
    derivative_bound = loss.lipschitz(math.inf)
    d, n_outputs, layout = plan.n_features, plan.n_outputs, _layout(plan)
    clipping = Clipping(None, d, loss, n_outputs, row_squared, constant, weight_bound, derivative_bound, layout=layout)
    unit = derivative_bound / (float(ONE) * weight_bound * plan.n_rows)
    deviation = 0.0 if noise is None else 2.0**noise.log2_scale * unit
    constraint = Constraint(plan.n_features, plan.n_nonzero, plan.radius)
    descent = GradientDescent(
        n_steps=plan.n_steps,
        unit=unit,
        noise=noise,
        step=_step_rule(plan, source, clipping, constraint, deviation),
        constraint=constraint,
        average=plan.average,
        top_k=top_k,
    )
    start = np.zeros((plan.n_outputs, clipping.width))
    coefficients = descent.run(
        lambda current: source.total(GradientSum(clipping, current)), start, stream.spawn("descent")
    )
    if not plan.intercept:
        return np.column_stack((coefficients, np.zeros(plan.n_outputs)))
    coefficients[:, -1] *= constant / ONE
    return coefficients


def _layout(plan: HardThresholdPlan) -> str | None:
    return "csc" if plan.n_rows <= _MOST_ROWS_BY_COLUMNS else None


def _row_bound(plan: HardThresholdPlan, source: Source, stream: Stream) -> float:
    """The L2 bound on rows in units of scaled features: public, or the private median row norm."""
    widest = math.sqrt(plan.n_features)
    if plan.row_bound is not None:
        return min(plan.row_bound, widest)
    norms, child = RowNorms(plan.loss, None, layout=_layout(plan)), stream.spawn("row bound")
    if not plan.private:
        return min(max(largest_row_norm(source, norms), LEAST_ROW_BOUND), widest)
    grid = np.geomspace(4.0 * LEAST_ROW_BOUND, widest, _GRID_POINTS)
    return min(private_median(source, norms, grid, plan.relation, plan.median_range, child), widest)


def _clipped_loss(plan: HardThresholdPlan, source: Source, stream: Stream) -> Loss:
    """The loss; a residual clip that is not given is a share of the private median magnitude of the target."""
    if not plan.auto_clip:
        return plan.loss
    child = stream.spawn("residual clip")
    if not plan.private:
        return HuberLoss(_NOISELESS_CLIP)
    grid = np.geomspace(2.0 * LEAST_ROW_BOUND, 1.0, _GRID_POINTS)
    median = private_median(source, TargetMagnitudes(), grid, plan.relation, plan.median_range, child)
    return HuberLoss(_CLIP_PER_MEDIAN * median)


def _step_rule(
    plan: HardThresholdPlan, source: Source, clipping: Clipping, constraint: Constraint, deviation: float
) -> float | CurvatureStep:
    if plan.step is not None:
        return plan.step
    term_bound, noise = plan.curvature_mechanism()

    def curvature(direction: FloatArray, stream: Stream) -> float:
        """An underestimate on purpose: overshooting is noticed, creeping is not."""
        total, doubt = source.total(CurvatureSum(clipping, direction, term_bound)), 0.0
        if noise is not None:
            total = noise.release(total, stream)
            doubt = 2.0 * 2.0**noise.log2_scale
        return (float(total[0]) - doubt) / term_bound / plan.n_rows

    # No direction has more curvature than all rows along it would have.
    shortest = 1.0 / (clipping.loss.smoothness * clipping.norm**2)
    return CurvatureStep(constraint, curvature, _LEAST_CURVATURE / clipping.width, shortest, deviation)
