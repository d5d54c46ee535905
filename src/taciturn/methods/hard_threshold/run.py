"""Private hard thresholding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray, IndexArray, IntArray
from taciturn.engines.interface import Block, Source
from taciturn.losses import HuberLoss, Loss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.descent import Constraint, CurvatureStep, GradientDescent, heaviest_columns, one_thread
from taciturn.methods.frank_wolfe.plan import CLIP_PER_MEDIAN
from taciturn.methods.frank_wolfe.run import MAGNITUDES, release_middle
from taciturn.methods.hard_threshold.plan import LEAST_ROW_BOUND, TUNING, HardThresholdPlan, PursuitPlan, ThresholdPlan
from taciturn.methods.releases import ScheduledMedians
from taciturn.methods.sums import ClippedSum, CurvatureSum, GradientSum, RowNorms, TargetMagnitudes, largest_row_norm
from taciturn.privacy.mechanisms import RoundedGaussian

# ---- Pursuit: columns join in rounds by private choices, with private gradient steps on those chosen between them.
# A round clips the entries of all columns to less than half their typical size and residuals to a share of their
# median, and lets the columns with the largest sums :math:`|\sum_i \psi_i \tilde x_{ij}|` join. As the residuals shrink
# from round to round, so does the clip, and with it the noise: columns that were hidden by others at first are found
# later. Gradients have noise on the chosen columns only, for rows as long as these make them.


@dataclass(frozen=True, slots=True, eq=False)
class EntryGradientSum(ClippedSum):
    """The sum of clipped entries times derivatives at some coefficients, one row per feature, one column per output."""

    coefficients: FloatArray
    entry: float

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        records = self.clipping.records(block)
        weights = records.weights(records.margins(self.coefficients))
        total = np.zeros((self.clipping.n_features, self.clipping.n_outputs), dtype=np.int64)
        for rows, part in block.design(self.columns, self.clipping.layout).clipped(self.entry).blocks():
            total += part.rmatvec(weights[rows], self.clipping.weight_bound, block.n_persons)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class MappedResiduals(ClippedSum):
    """The absolute residuals at some coefficients, in mapped units."""

    coefficients: FloatArray

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
        self.plan, self.problem, self.settings = plan, plan.problem, plan.settings
        self.source, self.stream = source, stream
        self.medians = ScheduledMedians(plan.schedule, plan.problem.relation, source, stream)
        self.weights = np.zeros((self.problem.n_outputs, self.problem.n_features + 1))
        self.chosen: IndexArray = np.zeros(0, dtype=np.intp)
        self.middle = release_middle(self.medians) if plan.centred else 0
        # The typical size of an entry, in the mean over columns.
        self.entry = min(self._row_norm(None) / math.sqrt(self.problem.n_features), 1.0)
        self.loss: Loss = self.problem.loss

    def join(self, n_joining: int) -> None:
        """Choose columns by their clipped sums at the residuals of those chosen so far."""
        n_features = self.problem.n_features
        # Rows as they are: noise is for entries here, not for norms.
        whole = self._clipping(None, n_features * ONE * ONE + ONE * ONE, ONE, ONE)
        if self.settings.auto_clip:
            residuals = MappedResiduals(whole, self._in_columns(whole))
            median = self.medians.release("residual", residuals, MAGNITUDES, "residual clip")
            self.loss = HuberLoss(CLIP_PER_MEDIAN * median)
            whole = self._clipping(None, whole.row_squared, whole.constant, whole.weight_bound)
        is_left = np.ones(n_features, dtype=bool)
        is_left[self.chosen] = False
        left = np.flatnonzero(is_left)
        if left.size > n_joining:
            entry = TUNING.entry_share * self.entry
            sums = self.source.total(EntryGradientSum(whole, self._in_columns(whole), entry))
            mechanism = self.plan.choice(n_joining, whole.weight_bound)
            left = left[mechanism.release(np.abs(sums).sum(axis=1)[left], self.stream.spawn("columns"))]
        self.chosen = np.sort(np.concatenate((self.chosen, left)))

    def descend(self, *, last: bool) -> None:
        """Gradient steps on the chosen columns, and what is known of their noise taken from the coefficients."""
        plan, d = self.plan, self.chosen.size
        row_squared = math.floor((self._row_bound() * ONE) ** 2)
        constant = max(1, round(math.sqrt(row_squared / (d + 1)))) if self.problem.intercept else 0
        weight_bound, noise = plan.gradient_noise(row_squared, last=last)
        clipping = self._clipping(self.chosen, row_squared, constant, weight_bound)
        within = TUNING.share_within if self.settings.auto_clip else 1.0
        shortest = TUNING.damping / (clipping.loss.smoothness * within * clipping.norm**2)
        descent = _open_descent(plan, self.source, clipping, Constraint(d, None, self.settings.radius), noise, shortest)
        if not last:
            descent = replace(descent, n_steps=1, average=False)
        steps: list[float] = []
        weights = descent.run(
            lambda current: self.source.total(GradientSum(clipping, current)),
            self._in_columns(clipping),
            self.stream.spawn("descent"),
            steps.append,
        )
        for part in (weights[:, :d], weights[:, d:]):
            part *= _kept_share(part, steps, 2.0**noise.log2_scale * descent.unit)
        self.weights[:, self.chosen] = weights[:, :d]
        if self.problem.intercept:
            self.weights[:, -1] = weights[:, -1] * (constant / ONE)

    def _clipping(self, columns: IndexArray | None, row_squared: int, constant: int, weight_bound: int) -> Clipping:
        return Clipping(
            columns,
            self.problem.n_features if columns is None else columns.size,
            self.loss,
            self.problem.n_outputs,
            row_squared,
            constant if self.problem.intercept else 0,
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
        """The L2 bound on rows of the chosen columns, at least that of as many typical entries: rows may be empty."""
        typical = max(self._row_norm(self.chosen), self.entry * math.sqrt(self.chosen.size))
        if self.settings.row_bound is not None:
            return typical
        return min(self.plan.opening * typical, math.sqrt(self.chosen.size))

    def _row_norm(self, columns: IndexArray | None) -> float:
        """The L2 bound on rows of some columns: public, or their private median norm."""
        widest = math.sqrt(self.problem.n_features if columns is None else columns.size)
        if self.settings.row_bound is not None:
            return min(self.settings.row_bound, widest)
        grid = np.geomspace(LEAST_ROW_BOUND, max(widest, 1.0), TUNING.grid_points)
        norms = RowNorms(self.problem.loss, columns)
        return min(self.medians.release("row norm", norms, grid, "row bound"), widest)


def _kept_share(weights: FloatArray, steps: list[float], deviation: float) -> float:
    """What is left of coefficients when the noise of the steps, whose size is known, is taken from their norm.

    By the rule of James and Stein; later steps undo a part of the noise of earlier ones.
    """
    variance = 0.0
    for step in steps:
        variance = (1.0 - 0.5 * TUNING.damping) ** 2 * variance + (step * deviation) ** 2
    size = float(np.square(weights).sum())
    return max(1.0 - weights.size * variance / size, 0.0) if size > 0.0 else 0.0


# ---- Gradient steps on clipped records, each followed by hard thresholding.
# One step is :math:`w \leftarrow H_k(w - \eta\, \tilde g / n)` with :math:`\tilde g` a noisy version of
# :math:`\sum_i \psi_i \tilde x_i`, an exact sum of integers (:mod:`~taciturn.methods.clipped_records`).


@one_thread()
def run_hard_threshold(plan: HardThresholdPlan, source: Source, stream: Stream) -> FloatArray:
    """The coefficients in mapped units, one row per output, the intercept last, for a source with a mapped target."""
    problem, settings = plan.problem, plan.settings
    d, n_outputs = problem.n_features, problem.n_outputs
    layout = "csc" if problem.n_records <= TUNING.most_rows_by_columns else None
    medians = ScheduledMedians(plan.schedule, problem.relation, source, stream)
    row_squared = math.floor((_row_bound(plan, medians, RowNorms(problem.loss, None, layout=layout)) * ONE) ** 2)
    loss = _clipped_loss(plan, medians) if settings.auto_clip else problem.loss
    n_columns = min(d + 1, TUNING.most_columns_for_constant)
    constant = max(1, round(math.sqrt(row_squared / n_columns))) if problem.intercept else 0
    weight_bound, noise, top_k = plan.gradient_mechanisms(row_squared, constant)
    derivative_bound = loss.lipschitz(math.inf)
    clipping = Clipping(None, d, loss, n_outputs, row_squared, constant, weight_bound, derivative_bound, layout=layout)
    # No direction has more curvature than all rows along it would have.
    shortest = 1.0 / (clipping.loss.smoothness * clipping.norm**2)
    constraint = Constraint(d, plan.n_nonzero, settings.radius)
    descent = replace(_open_descent(plan, source, clipping, constraint, noise, shortest), top_k=top_k)
    coefficients = descent.run(
        lambda current: source.total(GradientSum(clipping, current)),
        np.zeros((n_outputs, clipping.width)),
        stream.spawn("descent"),
    )
    if not problem.intercept:
        return np.column_stack((coefficients, np.zeros(n_outputs)))
    coefficients[:, -1] *= constant / ONE
    return coefficients


def _row_bound(plan: HardThresholdPlan, medians: ScheduledMedians, norms: RowNorms) -> float:
    """The L2 bound on rows in units of scaled features: public, or the private median row norm."""
    widest = math.sqrt(plan.problem.n_features)
    if plan.settings.row_bound is not None:
        return min(plan.settings.row_bound, widest)
    if not plan.schedule.private:
        return min(max(largest_row_norm(medians.source, norms), LEAST_ROW_BOUND), widest)
    grid = np.geomspace(4.0 * LEAST_ROW_BOUND, widest, TUNING.grid_points)
    return min(medians.release("row norm", norms, grid, "row bound"), widest)


def _clipped_loss(plan: HardThresholdPlan, medians: ScheduledMedians) -> Loss:
    """The loss with a residual clip that is a share of the private median magnitude of the target."""
    if not plan.schedule.private:
        return HuberLoss(TUNING.noiseless_clip)
    grid = np.geomspace(2.0 * LEAST_ROW_BOUND, 1.0, TUNING.grid_points)
    return HuberLoss(TUNING.clip_per_median * medians.release("residual", TargetMagnitudes(), grid, "residual clip"))


def _open_descent(
    plan: ThresholdPlan,
    source: Source,
    clipping: Clipping,
    constraint: Constraint,
    noise: RoundedGaussian | None,
    shortest: float,
) -> GradientDescent:
    """The steps of a plan; a length that is not given follows from the curvature, and is never below ``shortest``."""
    n_records, settings = plan.problem.n_records, plan.settings
    unit = clipping.derivative_bound / (float(ONE) * clipping.weight_bound * n_records)
    step: float | CurvatureStep
    if settings.step is not None:
        step = settings.step
    else:
        term_bound, curvature_noise = plan.curvature_mechanism()

        def curvature(direction: FloatArray, stream: Stream) -> float:
            """An underestimate on purpose: overshooting is noticed, creeping is not."""
            total, doubt = source.total(CurvatureSum(clipping, direction, term_bound)), 0.0
            if curvature_noise is not None:
                total = curvature_noise.release(total, stream)
                doubt = 2.0 * 2.0**curvature_noise.log2_scale
            return (float(total[0]) - doubt) / term_bound / n_records

        deviation = 0.0 if noise is None else 2.0**noise.log2_scale * unit
        step = CurvatureStep(constraint, curvature, TUNING.least_curvature / clipping.width, shortest, deviation)
    return GradientDescent(plan.n_steps, unit, noise, step, constraint, average=settings.average)
