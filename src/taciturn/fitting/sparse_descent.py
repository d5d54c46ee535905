r"""One descent of the default model: jointly clipped gradients on some columns, preconditioned where that pays.

The plan's rule (:mod:`~taciturn.planning.descent`) says what is clipped and for how long the descent goes on. Its steps
are as long as the curvature allows. No record has more of it than its squared norm, so that n R**2 bounds it without a
look at the data; where that would take too many steps, a noisy Gram matrix is released and steps are taken in its
metric. In a regression the residual size is measured again on the way, and clips follow it: residuals of a good model
are smaller than the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.special import erf, softmax

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.gradient_descent import Constraint, GradientDescent, ShrinkingStep
from taciturn.fitting.releases import Releases
from taciturn.fitting.sums import GradientSum, ResidualMagnitudes, RowNorms
from taciturn.fitting.threads import all_threads_if_large
from taciturn.fitting.weight_noise import LinearDescent, WeightNoise
from taciturn.planning.descent import LEAST_CLIP, MOST_STEPS, DescentRule, step_rule
from taciturn.planning.sparse import SparsePlan
from taciturn.sources import Source

__all__ = ["ColumnModel", "Descent", "Gram", "least_share"]

# Shares of a descent.
_GRAM_SHARE = 0.05
_FIRST_LEG = 0.3
# Steps that public bounds on the curvature may ask for before a Gram matrix is released instead.
_STEPS_WITHOUT_GRAM = 120.0
# A Gram matrix costs n p**2 multiplications, and its eigenvectors p**3.
_MOST_PRODUCTS = 2e10
_MOST_WIDTH = 1500
_MOST_WIDTH_WITHOUT_PRIVACY = 8191
# R is a quantile: longer rows add to the curvature too.
_LONG_ROWS = 2.0
# The largest curvature of many columns, as a share of what n rows of that length could have: a guess, as if rows were
# spread evenly over all directions but for so many columns' worth.
_MANY_COLUMNS = 200
_STEEP_COLUMNS = 20.0
_USUAL_CURVATURE = 0.01
# The spectral norm of its noise has to be below this share of n R**2.
_LARGEST_NOISE = 0.5
# Ridge of the preconditioner without noise, as a share of the largest eigenvalue.
_NOISELESS_RIDGE = 1e-7
# The median magnitude of a normal residual in standard deviations, and what a fit leaves of the curvature of labels.
_NORMAL_MEDIAN = 0.6745
_FITTED_CURVATURE = 0.6
# Grid of residual sizes, in mapped units.
_LEAST_SIZE, _MOST_SIZE = 2.0**-8, 2.0
# Residuals of a first fit are expected to be this share of the target.
_USUAL_GAIN = 0.7
# Derivatives of rows that are this much shorter than R are clipped as theirs are.
_SHORT_ROW = 8.0
_MOST_RESIDUAL = 16.0


def least_share(n_rows: int, mu: float, wanted: float, low: float, high: float) -> float:
    """A share of the budget that is the larger, the less there is: ``(wanted / n mu)**2`` within two ends."""
    return min(max((wanted / (n_rows * mu)) ** 2, low), high)


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """A released Gram matrix of the columns and the constant, scaled units, and the deviation on its diagonal."""

    matrix: FloatArray
    deviation: float

    @property
    def noise(self) -> float:
        """About the spectral norm of the noise."""
        return self.deviation * math.sqrt(2.0 * len(self.matrix))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnModel:
    """Columns that are still in (None for all), where they are centred, their weights and margins of the constant.

    ``target_mean`` is taken from a numeric target, in lattice units. ``size`` is how large residuals are, 1 for labels;
    ``gram`` was released for these columns; ``noise`` is the law of the errors of weights and constants, the latter as
    a last column.
    """

    columns: IndexArray | None
    centre: FloatArray | None
    weights: FloatArray
    constants: FloatArray
    target_mean: int = 0
    size: float = 1.0
    gram: Gram | None = None
    n_steps: int = 0
    noise: WeightNoise | None = None

    @property
    def n_columns(self) -> int:
        """How many columns are in."""
        return int(self.weights.shape[1])

    def coefficients(self, constant: int) -> FloatArray:
        """The weights, and last that of a constant column with this entry in lattice units, if it is not zero."""
        return np.column_stack((self.weights, self.constants / (constant / ONE))) if constant else self.weights

    def keep(self, places: IndexArray, weights: FloatArray | None = None) -> ColumnModel:
        """The same with some of the columns alone, in increasing order, at weights that are theirs or given."""
        return replace(
            self,
            columns=places if self.columns is None else self.columns[places],
            centre=None if self.centre is None else self.centre[places],
            weights=self.weights[:, places] if weights is None else weights,
            gram=None,
            noise=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Clips, the inverse of the preconditioner, the largest curvature that is left, and the time of a descent.

    ``linear`` is what is known of it near its end.
    """

    rule: DescentRule
    bound: float
    metric: FloatArray | None
    curvature: float
    time: float
    linear: LinearDescent


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What all descents of a fit share."""

    plan: SparsePlan
    source: Source
    releases: Releases
    stream: Stream
    mu: float

    def run(self, model: ColumnModel, share: float, name: str, *, selects: bool = False) -> ColumnModel:
        """The model after a descent that costs a share of the budget, to be used or to select columns by."""
        plan, p = self.plan, model.n_columns + self.plan.intercept
        private = self.releases.private
        rule = plan.rule(self.mu * math.sqrt(share) if private else math.inf, p, selects=selects)
        end = self.releases.remaining - share
        bound = self._bound(model, rule, self._small_share(share), name)
        metric, curvature, gram, linear = self._metric(model, rule, bound, share, name)
        model, rest = replace(model, gram=gram, noise=None), self.releases.remaining - end
        time = rule.time * self.mu * math.sqrt(rest) / bound**2 if private else math.inf
        path = _Path(rule, bound, metric, curvature, time, linear)
        if not plan.regression or not private or plan.huber or plan.residual_clip is not None:
            return self._leg(model, path, 1.0, rest, name)
        size_share = self._small_share(share)
        model = self._leg(model, path, _FIRST_LEG, _FIRST_LEG * (rest - size_share), name)
        model = self._measure(model, bound, size_share)
        rest = self.releases.remaining - end
        return self._leg(model, path, 1.0 - _FIRST_LEG, rest, name, ", after residuals were measured")

    def clipping(self, model: ColumnModel, bound: float, derivative_bound: float) -> Clipping:
        """Records whose rows have norms of up to a bound, the constant's entry included."""
        plan = self.plan
        width = model.n_columns + plan.intercept
        row_squared = max(1, math.floor((bound * ONE) ** 2))
        entry = min(max(1, round(math.sqrt(row_squared / width))), ONE) if plan.intercept else 0
        return Clipping(
            model.columns, model.n_columns, plan.loss_at(derivative_bound), plan.n_outputs, row_squared, entry, ONE,
            derivative_bound, model.centre, model.target_mean,
        )  # fmt: skip

    def _small_share(self, share: float) -> float:
        """What a quantile may cost: more of a small budget, and at most a fifth of the descent."""
        return min(least_share(self.plan.n_rows, self.mu, 8.0, 0.01, 0.08), 0.2 * share)

    def _bound(self, model: ColumnModel, rule: DescentRule, share: float, name: str) -> float:
        """R with the constant's entry."""
        plan, p = self.plan, model.n_columns + self.plan.intercept
        # A public bound holds for rows over all columns, and about as well for those less a centre.
        bound = plan.row_bound if model.columns is None else None
        if bound is None:
            norms = RowNorms(plan.loss_at(1.0), model.columns, model.centre)
            what = f"a quantile of row norms in the {name}"
            widest = 2.0 * math.sqrt(model.n_columns)
            bound = self.releases.row_norm(what, share, norms, widest, rule.norm_quantile)
        entry = min(bound / math.sqrt(p), 1.0) if plan.intercept else 0.0
        return math.hypot(bound, entry)

    def _metric(
        self, model: ColumnModel, rule: DescentRule, bound: float, share: float, name: str
    ) -> tuple[FloatArray | None, float, Gram | None, LinearDescent]:
        """The inverse of the preconditioner, the curvature where it ends to matter, and the Gram matrix if released.

        And the descent near its end; without a Gram matrix, as if rows were spread evenly over all directions.
        """
        plan, p = self.plan, model.n_columns + self.plan.intercept
        smoothness = plan.loss_at(1.0).smoothness
        usual = smoothness * self._curved_share(model, rule)
        largest = _LONG_ROWS * plan.n_rows * bound**2
        private, steps = self.releases.private, math.inf
        if private:
            steps = rule.time * self.mu * math.sqrt(share) / bound**2 * smoothness * largest
            noise = math.sqrt(2.0 * p) / (self.mu * math.sqrt(_GRAM_SHARE * share))
            useful = steps > _STEPS_WITHOUT_GRAM and noise < _LARGEST_NOISE * plan.n_rows and p <= _MOST_WIDTH
        else:
            useful = p <= _MOST_WIDTH_WITHOUT_PRIVACY
        # With no more columns than a descent has steps, the matrix costs less than the steps that it saves.
        if not useful or (p > MOST_STEPS and plan.n_rows * float(p) ** 2 > _MOST_PRODUCTS):
            guess = steps > _STEPS_WITHOUT_GRAM and p >= _MANY_COLUMNS
            steepest = smoothness * largest * (max(_USUAL_CURVATURE, _STEEP_COLUMNS / p) if guess else 1.0)
            even = np.full(1, usual * plan.n_rows * bound**2 / p)
            return None, steepest, None, LinearDescent(np.ones(1), even)
        # Rows are clipped less where the clip of gradients has opened.
        room = math.sqrt(max(1.0, rule.clip / LEAST_CLIP)) if plan.regression and private else 1.0
        clipping = self.clipping(model, bound * room, 1.0)
        clipping = replace(clipping, constant=self.clipping(model, bound, 1.0).constant)
        what = f"the Gram matrix of {p:,} columns in the {name}"
        matrix, deviation = self.releases.gram_matrix(what, _GRAM_SHARE * share, clipping)
        gram = Gram(matrix, deviation)
        with all_threads_if_large(len(matrix)):
            values, vectors = eigh(matrix)
        ridge = gram.noise if private else _NOISELESS_RIDGE * max(float(values[-1]), 1.0)
        inverse = 1.0 / (smoothness * (np.maximum(values, 0.0) + ridge))
        # Of eigenvalues within the noise only the sum is known.
        clear = np.maximum(values - gram.noise, 0.0)
        linear = LinearDescent(inverse, usual * (clear + max(float(np.mean(values - clear)), 0.0)), vectors)
        return (vectors * inverse) @ vectors.T, smoothness * ridge, gram, linear

    def _curved_share(self, model: ColumnModel, rule: DescentRule) -> float:
        """About the curvature that clips and nearly certain labels leave, as a share of the largest."""
        if self.plan.regression:
            return float(erf(_NORMAL_MEDIAN * rule.clip / math.sqrt(2.0)))
        margins = model.constants if self.plan.n_outputs > 1 else np.append(0.0, model.constants)
        most = float(softmax(margins).max())
        return min(rule.clip, 1.0) * _FITTED_CURVATURE * 4.0 * most * (1.0 - most)

    def _leg(
        self,
        model: ColumnModel,
        path: _Path,
        part: float,
        share: float,
        name: str,
        when: str = "",
    ) -> ColumnModel:
        """Gradient steps with the same clips, for a part of the time."""
        plan, d = self.plan, model.n_columns
        p, rule, bound = d + plan.intercept, path.rule, path.bound
        # Tables that are too wide for a Gram matrix are mostly sparse.
        n_entries = plan.n_rows * p / part if path.metric is not None else 1.0
        steps = step_rule(part * path.time * path.curvature, n_entries)
        derivative_bound = self._largest_derivative(rule, model.size)
        clip = min(rule.clip * (model.size if plan.regression else derivative_bound), derivative_bound)
        clipping = self.clipping(model, bound, derivative_bound)
        n_values = plan.n_outputs * p
        what = f"a gradient with {n_values:,} coordinates per step of the {name}{when}"
        product = bound * ONE * clip / derivative_bound
        weight, product_bound, noise = self.releases.joint_noise(product, what, share, n_values, steps.n_steps)
        clipping = replace(clipping, weight_bound=weight, product_bound=product_bound)
        constant = clipping.constant / ONE
        start = model.coefficients(clipping.constant)
        descent = GradientDescent(
            n_steps=steps.n_steps,
            unit=derivative_bound / (float(ONE) * weight),
            noise=noise,
            step=steps.step if path.metric is not None else self._step(steps.step / path.curvature, p),
            constraint=Constraint(d),
            momentum=steps.momentum,
            average=self.releases.private,
            metric=path.metric,
        )
        lengths: list[float] = []
        weights = descent.run(
            lambda current: self.source.total(GradientSum(clipping, current)),
            start,
            self.stream.spawn(name),
            lengths.append,
        )
        law = None
        if noise is not None and plan.strategy.method == "dense":
            deviation = 2.0**noise.log2_scale * descent.unit
            law = path.linear.noise(lengths, steps.momentum, deviation, model.noise)
        return replace(
            model,
            weights=weights[:, :d],
            constants=weights[:, d] * constant if constant else model.constants,
            n_steps=model.n_steps + steps.n_steps,
            noise=law,
        )

    def _step(self, step: float, width: int) -> float | ShrinkingStep:
        # Along the noise of a few columns curvature cannot be told.
        return ShrinkingStep(step) if width >= _MANY_COLUMNS else step

    def _largest_derivative(self, rule: DescentRule, size: float) -> float:
        if not self.plan.regression:
            return math.sqrt(self.plan.loss_at(1.0).squared_l2_factor)
        if self.plan.huber:
            return size
        return _MOST_RESIDUAL if not self.releases.private else min(_SHORT_ROW * rule.clip * size, _MOST_RESIDUAL)

    def _measure(self, model: ColumnModel, bound: float, share: float) -> ColumnModel:
        """The model with the size of its residuals: their private median, no larger than before."""
        clipping = self.clipping(model, bound, _MOST_RESIDUAL)
        clipping = replace(clipping, product_bound=1)
        residuals = ResidualMagnitudes(clipping, model.coefficients(clipping.constant))
        what = "the median magnitude of residuals"
        size = self.releases.quantile(what, share, residuals, _LEAST_SIZE, _MOST_SIZE, typical=_USUAL_GAIN * model.size)
        return replace(model, size=min(size, model.size))
