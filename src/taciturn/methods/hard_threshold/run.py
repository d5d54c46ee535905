"""Private hard thresholding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray, IndexArray, IntArray
from taciturn.engines.interface import Block, Source
from taciturn.losses import HuberLoss, Loss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.descent import Constraint, CurvatureStep, GradientDescent, heaviest_columns, one_thread
from taciturn.methods.frank_wolfe.plan import CLIP_PER_MEDIAN
from taciturn.methods.frank_wolfe.run import MAGNITUDES, middle_of
from taciturn.methods.hard_threshold.plan import LEAST_ROW_BOUND, HardThresholdPlan, PursuitPlan
from taciturn.methods.sums import (
    CurvatureSum,
    GradientSum,
    RowNorms,
    TargetMagnitudes,
    largest_row_norm,
    private_median,
)

# -----------------------------------------------------------------------------
# Pursuit: columns join in rounds by private choices, with private gradient steps on those chosen so far between them.
#
# A round clips the entries of all columns to less than half their typical size and residuals to a share of their
# median, and lets the columns with the largest sums :math:`|\sum_i \psi_i \tilde x_{ij}|` join. As the residuals shrink
# from round to round, so does the clip, and with it the noise: columns that were hidden by others at first are found
# later. Gradients have noise on the chosen columns only, for rows as long as these make them.

_GRID_POINTS = 40
# Entries of isotropic rows of norm R have the size R / sqrt(d). Clipped at less than half of that they tell little more
# than signs, which is what a choice needs, and noise is for the clip.
_ENTRY_SHARE = 0.4
# The share of residuals of a round that are within the clip, and so have curvature.
_SHARE_WITHIN = 0.53 * CLIP_PER_MEDIAN
# Of the step that would be the best along the direction of the first gradient: other directions have more curvature.
_DAMPING = 0.8
_LEAST_CURVATURE = 1.3


@dataclass(frozen=True, slots=True, eq=False)
class _EntryGradientSum:
    """The sum of clipped entries times derivatives at some coefficients, one row per feature, one column per output."""

    clipping: Clipping
    coefficients: FloatArray
    entry: float

    @property
    def columns(self) -> IndexArray | None:
        """All features are read."""
        return self.clipping.columns

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        records = self.clipping.records(block)
        weights = records.weights(records.margins(self.coefficients))
        total = np.zeros((self.clipping.n_features, self.clipping.n_outputs), dtype=np.int64)
        for rows, part in block.design(self.columns, self.clipping.layout).clipped(self.entry).blocks():
            total += part.rmatvec(weights[rows], self.clipping.weight_bound, block.n_persons)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """The absolute residuals at some coefficients, in mapped units."""

    clipping: Clipping
    coefficients: FloatArray

    @property
    def columns(self) -> IndexArray | None:
        """The features that they depend on."""
        return self.clipping.columns

    def values(self, block: Block) -> FloatArray:
        """The residuals of a block."""
        margins = self.clipping.records(block).margins(self.coefficients)
        return np.abs(margins[:, 0] - np.asarray(self.clipping.target(block), dtype=np.float64) / ONE)


@one_thread()
def run_pursuit(plan: PursuitPlan, source: Source, stream: Stream) -> FloatArray:
    """The coefficients in mapped units, one row per output, the intercept last, for a source with a mapped target."""
    run = _Pursuit(plan, source, stream)
    for number, n_joining in enumerate(plan.rounds, start=1):
        run.join(n_joining)
        run.descend(last=number == len(plan.rounds))
    weights = plan.trust * run.weights
    kept = heaviest_columns(weights[:, :-1], plan.n_nonzero)
    thinned = np.zeros_like(weights)
    thinned[:, kept], thinned[:, -1] = weights[:, kept], weights[:, -1] + run.middle / ONE
    return thinned


class _Pursuit:
    """A run in progress; ``weights`` has a column for every feature and the intercept last, in mapped units."""

    def __init__(self, plan: PursuitPlan, source: Source, stream: Stream) -> None:
        self.plan, self.source, self.stream = plan, source, stream
        self.weights = np.zeros((plan.n_outputs, plan.n_features + 1))
        self.chosen: IndexArray = np.zeros(0, dtype=np.intp)
        self.middle = 0
        if plan.centred:
            self.middle = middle_of(source, plan.relation, plan.middle_range, stream.spawn("middle of the target"))
        # The typical size of an entry, in the mean over columns.
        self.entry = min(self._row_norm(None) / math.sqrt(plan.n_features), 1.0)
        self.loss: Loss = plan.loss

    def join(self, n_joining: int) -> None:
        """Choose columns by their clipped sums at the residuals of those chosen so far."""
        # Rows as they are: noise is for entries here, not for norms.
        whole = self._clipping(None, self.plan.n_features * ONE * ONE + ONE * ONE, ONE, ONE)
        if self.plan.auto_clip:
            statistic = _Residuals(whole, self._in_columns(whole))
            median = private_median(
                self.source,
                statistic,
                MAGNITUDES,
                self.plan.relation,
                self.plan.residual_range,
                self.stream.spawn("residual clip"),
            )
            self.loss = HuberLoss(CLIP_PER_MEDIAN * median)
            whole = self._clipping(None, whole.row_squared, whole.constant, whole.weight_bound)
        is_left = np.ones(self.plan.n_features, dtype=bool)
        is_left[self.chosen] = False
        left = np.flatnonzero(is_left)
        if left.size > n_joining:
            sums = self.source.total(_EntryGradientSum(whole, self._in_columns(whole), _ENTRY_SHARE * self.entry))
            mechanism = self.plan.choice(n_joining, whole.weight_bound)
            left = left[mechanism.release(np.abs(sums).sum(axis=1)[left], self.stream.spawn("columns"))]
        self.chosen = np.sort(np.concatenate((self.chosen, left)))

    def descend(self, *, last: bool) -> None:
        """Gradient steps on the chosen columns, and what is known of their noise taken from the coefficients."""
        plan, d = self.plan, self.chosen.size
        row_squared = math.floor((self._row_bound() * ONE) ** 2)
        constant = max(1, round(math.sqrt(row_squared / (d + 1)))) if plan.intercept else 0
        weight_bound, noise = plan.gradient_noise(row_squared, last=last)
        clipping = self._clipping(self.chosen, row_squared, constant, weight_bound)
        unit = clipping.derivative_bound / (float(ONE) * weight_bound * plan.n_rows)
        deviation = 2.0**noise.log2_scale * unit
        constraint = Constraint(d, None, plan.radius)
        descent = GradientDescent(
            n_steps=plan.n_steps if last else 1,
            unit=unit,
            noise=noise,
            step=self._step_rule(clipping, constraint, deviation),
            constraint=constraint,
            average=plan.average and last,
        )
        steps: list[float] = []
        weights = descent.run(
            lambda current: self.source.total(GradientSum(clipping, current)),
            self._in_columns(clipping),
            self.stream.spawn("descent"),
            steps.append,
        )
        for part in (weights[:, :d], weights[:, d:]):
            part *= _kept_share(part, steps, deviation)
        self.weights[:, self.chosen] = weights[:, :d]
        if plan.intercept:
            self.weights[:, -1] = weights[:, -1] * (constant / ONE)

    def _clipping(self, columns: IndexArray | None, row_squared: int, constant: int, weight_bound: int) -> Clipping:
        plan = self.plan
        return Clipping(
            columns,
            plan.n_features if columns is None else columns.size,
            self.loss,
            plan.n_outputs,
            row_squared,
            constant if plan.intercept else 0,
            weight_bound,
            self.loss.lipschitz(math.inf),
            target_mean=self.middle,
        )

    def _in_columns(self, clipping: Clipping) -> FloatArray:
        """The weights of the features that are read, and of the intercept column where there is one."""
        features = self.weights[:, :-1] if clipping.columns is None else self.weights[:, clipping.columns]
        if not clipping.constant:
            return features.copy()
        return np.column_stack((features, self.weights[:, -1] * (ONE / clipping.constant)))

    def _row_bound(self) -> float:
        """The L2 bound on rows of the chosen columns, and not below what as many typical entries make up.

        The median row of a few rare columns is empty.
        """
        typical = max(self._row_norm(self.chosen), self.entry * math.sqrt(self.chosen.size))
        if self.plan.row_bound is not None:
            return typical
        return min(self.plan.opening * typical, math.sqrt(self.chosen.size))

    def _row_norm(self, columns: IndexArray | None) -> float:
        """The L2 bound on rows of some columns: public, or their private median norm."""
        plan = self.plan
        widest = math.sqrt(plan.n_features if columns is None else columns.size)
        if plan.row_bound is not None:
            return min(plan.row_bound, widest)
        grid = np.geomspace(LEAST_ROW_BOUND, max(widest, 1.0), _GRID_POINTS)
        norms = RowNorms(plan.loss, columns)
        child = self.stream.spawn("row bound")
        return min(private_median(self.source, norms, grid, plan.relation, plan.norm_range, child), widest)

    def _step_rule(self, clipping: Clipping, constraint: Constraint, deviation: float) -> float | CurvatureStep:
        plan = self.plan
        if plan.step is not None:
            return plan.step
        term_bound, noise = plan.curvature_mechanism()

        def curvature(direction: FloatArray, stream: Stream) -> float:
            """An underestimate on purpose: overshooting is noticed, creeping is not."""
            total = noise.release(self.source.total(CurvatureSum(clipping, direction, term_bound)), stream)
            return (float(total[0]) - 2.0 * 2.0**noise.log2_scale) / term_bound / plan.n_rows

        within = _SHARE_WITHIN if plan.auto_clip else 1.0
        shortest = _DAMPING / (clipping.loss.smoothness * within * clipping.norm**2)
        return CurvatureStep(constraint, curvature, _LEAST_CURVATURE / clipping.width, shortest, deviation)


def _kept_share(weights: FloatArray, steps: list[float], deviation: float) -> float:
    """What is left of coefficients when the noise of the steps, whose size is known, is taken from their norm.

    The rule of James and Stein: coefficients that noise alone explains become zero. Later steps undo a part of the
    noise of earlier ones.
    """
    variance = 0.0
    for step in steps:
        variance = (1.0 - 0.5 * _DAMPING) ** 2 * variance + (step * deviation) ** 2
    size = float(np.square(weights).sum())
    return max(1.0 - weights.size * variance / size, 0.0) if size > 0.0 else 0.0


# -----------------------------------------------------------------------------
# Gradient steps on clipped records, each followed by hard thresholding.
#
# One step is :math:`w \leftarrow H_k(w - \eta\, \tilde g / n)` with :math:`\tilde g` a noisy version of
# :math:`\sum_i \psi_i \tilde x_i`, an exact sum of integers (:mod:`~taciturn.methods.clipped_records`).

# Without privacy residuals are clipped only where they pass eight times the range of the target.
_NOISELESS_CLIP = 16.0
# A clip at half the median target keeps most of the signal of the first step and little of the noise of the others.
_CLIP_PER_MEDIAN = 0.5
# The constant column is as large as others of the same row, but not so small that the intercept drowns in noise.
_MOST_COLUMNS_FOR_CONSTANT = 1000
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more along chosen ones.
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
