r"""The default model, release by release.

Everything that depends on the data is a sum over records which is released with noise before it is used: medians by the
exponential mechanism, means, gradients and eigenvalues with Gaussian noise, columns by noisy correlations, the number
of nonzero coefficients by a private criterion. Every release draws on one privacy filter, and later ones may depend on
earlier ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.gradient_descent import (
    Constraint,
    GradientDescent,
    heaviest_columns,
)
from taciturn.fitting.releases import Releases, list_spends
from taciturn.fitting.sparse_choices import (
    LABEL_CLIP,
    MEDIAN_SHARE,
    choose_n_nonzero,
    clip_records,
    column_centre,
    release_target_mean,
    residual_clip,
    screen_columns,
    squared_in_lattice,
)
from taciturn.fitting.sums import GradientSum, RowNorms
from taciturn.planning.sparse import SparsePlan
from taciturn.sources import Source

__all__ = ["NOISELESS_STEPS", "SparseResult", "run_sparse"]

NOISELESS_STEPS = 500
"""Steps of each phase without privacy."""

# Shares of the budget; the rest is halved between the two phases.
_NORM_SHARE = 0.03
_EIGENVALUE_SHARE = 0.015
_N_NONZERO_SHARE = 0.06
_PRUNING_SHARE = 0.04
# Columns that were fitted and are still worthless increase the loss, so that a small penalty removes them.
_PRUNING_SEVERITY = 0.25
# Share of the estimation phase.
_SECOND_EIGENVALUE = 0.03

# Half the median of the target keeps most of the signal of the selection phase, and half of its noise.
_SELECTION_CLIP = 0.5
# The estimation phase clips fewer rows.
_ROOM_FOR_ROWS = 1.3
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more in the steepest.
_LEAST_CURVATURE = 1.3
_SHRINKING_CURVATURE = 0.6
# Lower bound on the shrinkage factor, so that weights never collapse to zero.
_LEAST_KEPT = 0.01
_ENOUGH_FOR_MOMENTUM = 60.0
_ENOUGH_TO_PRUNE = 60.0


@dataclass(frozen=True, slots=True)
class SparseResult:
    """What a fit releases: the coefficients, in mapped units and the intercept last, and the steps of both phases.

    ``releases`` are what the privacy filter paid for, for the certificate.
    """

    coefficients: FloatArray
    n_steps: int
    releases: tuple[Release, ...]


def run_sparse(plan: SparsePlan, source: Source, stream: Stream) -> SparseResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    return _SparseRun(plan, source, stream).run()


@dataclass(frozen=True, slots=True)
class _Model:
    """Columns that are still in (None for all), where they are centred, and their weights.

    ``constants`` are margins of the constant.
    """

    columns: IndexArray | None
    centre: FloatArray | None
    weights: FloatArray
    constants: FloatArray
    n_steps: int = 0

    @property
    def n_columns(self) -> int:
        """How many columns are in."""
        return int(self.weights.shape[1])

    def keep_heaviest(self, k: int) -> _Model:
        """The same with the k heaviest columns alone."""
        places = heaviest_columns(self.weights, k)
        return replace(
            self,
            columns=places if self.columns is None else self.columns[places],
            centre=None if self.centre is None else self.centre[places],
            weights=self.weights[:, places],
        )

    def shrink(self, deviation: float, n_steps: int, curvature: float) -> _Model:
        """Weights less half of what the noise of an average of steps adds to their square at a typical curvature."""
        k = max(self.n_columns, 1)
        typical = _SHRINKING_CURVATURE * curvature / k
        added = k * deviation**2 * 2.0 / (n_steps * typical**2)
        square = float(np.sum(np.square(self.weights)))
        kept = max(_LEAST_KEPT, 1.0 - added / (2.0 * square)) if square > 0.0 else 1.0
        return replace(self, weights=self.weights * kept)


@dataclass(frozen=True, slots=True)
class _Phase:
    """What distinguishes the two phases; ``bound`` is public, or None, and ``reach`` bounds margins.

    ``label`` names the random stream and never changes: seeded results depend on it.
    """

    name: str
    label: str
    share: float
    eigenvalue_share: float
    derivative_bound: float
    bound: float | None
    room: float
    momentum: float
    n_steps: int
    average: bool
    reach: float | None


class _SparseRun:
    """One fit of the default model."""

    def __init__(self, plan: SparsePlan, source: Source, stream: Stream) -> None:
        self._plan, self._source, self._stream = plan, source, stream
        self._budget = plan.open_filter()
        self._releases = Releases(self._budget, plan.relation, source, stream.spawn("releases"))
        self._target_mean = 0

    def run(self) -> SparseResult:
        """Spend the budget and return the model."""
        plan, releases = self._plan, self._releases
        self._target_mean, start = release_target_mean(plan, releases)
        clip = residual_clip(plan, releases, self._target_mean)
        derivative_bound = _SELECTION_CLIP * clip if plan.regression else LABEL_CLIP
        columns = screen_columns(plan, releases, self._target_mean, start, derivative_bound)
        centre = column_centre(plan, releases, columns)
        n_columns = plan.n_features if columns is None else columns.size
        model = _Model(columns, centre, np.zeros((plan.n_outputs, n_columns)), start)
        if plan.strategy.method == "two-phase":
            model = self._descend(self._selection_phase(model, derivative_bound), model)
            k = plan.strategy.n_nonzero
            if plan.chooses_n_nonzero:
                k = self._choose_n_nonzero(_N_NONZERO_SHARE, 1.0, clip, model)
            model = model.keep_heaviest(k)
        model = self._descend(self._estimation_phase(model, clip), model)
        if plan.chooses_n_nonzero and self._prunes(model):
            model = model.keep_heaviest(self._choose_n_nonzero(_PRUNING_SHARE, _PRUNING_SEVERITY, clip, model))
        return self._result(model)

    def _selection_phase(self, model: _Model, derivative_bound: float) -> _Phase:
        plan = self._plan
        screened = plan.strategy.n_screened is not None
        bound = None if screened else plan.row_bound
        later = _NORM_SHARE + (_N_NONZERO_SHARE + _PRUNING_SHARE) * plan.chooses_n_nonzero
        now = _EIGENVALUE_SHARE + _NORM_SHARE * (bound is None)
        share = (self._budget.remaining - now - later) / 2.0
        width = model.n_columns + plan.intercept
        n_steps = self._n_steps(2.0 * plan.n_rows * math.sqrt(share) * self._budget.mu / width, 3, 30)
        momentum = 0.5 if screened and plan.strategy.strength > _ENOUGH_FOR_MOMENTUM else 0.0
        return _Phase(
            "selection", "first descent", share, _EIGENVALUE_SHARE, derivative_bound, bound, 1.0, momentum, n_steps,
            average=False, reach=None,
        )  # fmt: skip

    def _estimation_phase(self, model: _Model, derivative_bound: float) -> _Phase:
        plan = self._plan
        bound = plan.row_bound if plan.strategy.method == "all columns" else None
        pruning = _PRUNING_SHARE * (plan.chooses_n_nonzero and self._prunes(model))
        rest = self._budget.remaining - pruning - _NORM_SHARE * (bound is None)
        share, k = (1.0 - _SECOND_EIGENVALUE) * rest, model.n_columns
        signal = plan.n_rows * math.sqrt(share) * self._budget.mu / k
        momentum = 0.7 if signal > _ENOUGH_FOR_MOMENTUM else 0.0
        n_steps = self._n_steps(signal / 4.0, 10, 60)
        reach = 2.0 * derivative_bound * math.sqrt(k) if plan.regression else None
        return _Phase(
            "estimation", "second descent", share, rest - share, derivative_bound, bound, _ROOM_FOR_ROWS, momentum,
            n_steps, average=True, reach=reach,
        )  # fmt: skip

    def _n_steps(self, wanted: float, least: int, most: int) -> int:
        return round(min(max(wanted, least), most)) if self._budget.private else NOISELESS_STEPS

    def _descend(self, phase: _Phase, model: _Model) -> _Model:
        """Gradient descent from the model, and the model at its end."""
        plan, releases, d = self._plan, self._releases, model.n_columns
        width, bound = d + plan.intercept, phase.bound
        loss = plan.loss_at(phase.derivative_bound)
        if bound is None:
            what = f"the median row norm in the {phase.name} phase"
            norms = RowNorms(loss, model.columns, model.centre)
            bound = releases.median_row_norm(what, MEDIAN_SHARE, norms, 2.0 * math.sqrt(d))
        bound *= phase.room
        clipping = clip_records(
            plan, model.columns, bound, phase.derivative_bound, ONE, centre=model.centre, target_mean=self._target_mean
        )
        what = f"the largest eigenvalue of the Gram matrix of {width:,} columns"
        steepness = releases.eigenvalue(what, phase.eigenvalue_share, clipping)
        steepness = min(max(steepness, _LEAST_CURVATURE * plan.n_rows / width), float(plan.n_rows)) * bound**2
        step = 1.0 / (loss.smoothness * steepness)

        n_values = plan.n_outputs * width
        what = f"a gradient with {n_values:,} coordinates per step of the {phase.name} phase"
        row_squared = squared_in_lattice(bound)
        weight, noise = releases.noise(loss, row_squared, what, phase.share, n_values, phase.n_steps)
        clipping = replace(clipping, weight_bound=weight)
        constant = clipping.constant / ONE
        start = np.column_stack((model.weights, model.constants / constant)) if constant else model.weights
        descent = GradientDescent(
            n_steps=phase.n_steps,
            unit=step * phase.derivative_bound / (float(ONE) * weight),
            noise=noise,
            step=1.0,
            constraint=Constraint(d, radius=None if phase.reach is None else phase.reach / bound),
            momentum=phase.momentum,
            average=phase.average,
        )
        weights = descent.run(
            lambda current: self._source.total(GradientSum(clipping, current)), start, self._stream.spawn(phase.label)
        )

        deviation = 0.0 if noise is None else 2.0**noise.log2_scale * phase.derivative_bound / (float(ONE) * weight)
        model = replace(
            model,
            weights=weights[:, :d],
            constants=weights[:, d] * constant if constant else model.constants,
            n_steps=model.n_steps + phase.n_steps,
        )
        return model if phase.reach is None else model.shrink(deviation, phase.n_steps, plan.n_rows * bound**2)

    def _prunes(self, model: _Model) -> bool:
        return self._plan.n_rows * self._budget.mu**2 / model.n_columns >= _ENOUGH_TO_PRUNE

    def _choose_n_nonzero(self, share: float, severity: float, clip: float, model: _Model) -> int:
        plan, columns = self._plan, model.columns
        # No row is clipped: what a record can add is bounded by the clip of the differences alone.
        bound = 2.0 * math.sqrt(model.n_columns + 1)
        clipping = clip_records(plan, columns, bound, clip, ONE, centre=model.centre, target_mean=self._target_mean)
        return choose_n_nonzero(plan, self._releases, share, severity, clipping, model.weights, model.constants)

    def _result(self, model: _Model) -> SparseResult:
        plan = self._plan
        columns = slice(plan.n_features) if model.columns is None else model.columns
        coefficients = np.zeros((plan.n_outputs, plan.n_features + 1))
        coefficients[:, columns] = model.weights
        if plan.intercept:
            coefficients[:, -1] = model.constants + self._target_mean / ONE
        if model.centre is not None:
            coefficients[:, -1] -= model.weights @ model.centre / ONE
        return SparseResult(coefficients, model.n_steps, list_spends(self._budget.spent()))
