r"""The default model, release by release.

Nothing is read off the data that is not released: medians by the exponential mechanism, means, gradients and
eigenvalues with Gaussian noise, columns by noisy correlations, the size of the model by a private criterion. Every
release draws on one privacy filter, and later ones may depend on earlier ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from taciturn.accounting import PrivacyFilter
from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.fitting.clipped_records import squared_row_norms
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_columns import (
    LABEL_CLIP,
    centred_target,
    column_centre,
    median_length,
    residual_clip,
    screened_columns,
)
from taciturn.fitting.sparse_setting import Setting, Target, lattice_square
from taciturn.fitting.sparse_size import chosen_size
from taciturn.fitting.two_phase import Descent, descent_spread, heaviest
from taciturn.planning.sparse import Road

__all__ = ["NOISELESS_STEPS", "SparseFit", "SparseResult"]

NOISELESS_STEPS = 500
"""Steps of each descent without privacy."""

# Shares of the budget; what is left is halved between the two descents.
_LENGTH_SHARE = 0.03
_EIGENVALUE_SHARE = 0.015
_SIZE_SHARE = 0.06
_PRUNING_SHARE = 0.04
# IndexArray that were fitted and are still worthless fit worse than none, so that a small price tells them.
_PRUNING_SEVERITY = 0.25
# Of the second descent's.
_SECOND_EIGENVALUE = 0.03

# Half the median of the target keeps most of the signal of a first descent, and half of its noise.
_FIRST_CLIP = 0.5
# The second descent clips fewer rows.
_ROOM_FOR_ROWS = 1.3
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more in the steepest.
_LEAST_CURVATURE = 1.3
_SHRINKING_CURVATURE = 0.6
# Of weights that are shrunk to next to nothing, so much that they are still there.
_LEAST_KEPT = 0.01
_ENOUGH_FOR_MOMENTUM = 60.0
_ENOUGH_TO_PRUNE = 60.0


@dataclass(frozen=True, slots=True)
class SparseResult:
    """What a fit releases.

    Parameters
    ----------
    coefficients : ndarray of shape (n_outputs, n_features + 1)
        In mapped units, the intercept last.
    deviations : ndarray of shape (n_outputs, n_features)
        Bounds on the standard deviation that noise gives a coefficient, 0 for features that are not in the model.
    n_steps : int
        Steps of both descents.
    """

    coefficients: FloatArray
    deviations: FloatArray
    n_steps: int


@dataclass(frozen=True, slots=True)
class _State:
    """Columns that are still in, where they are centred, what is known of their weights, and how noisy that is.

    ``constants`` are margins of the constant, ``variance`` is the bound on the noise of a weight.
    """

    design: Design
    columns: IndexArray
    centre: FloatArray | None
    weights: FloatArray
    constants: FloatArray
    variance: float = 0.0
    n_steps: int = 0

    def heaviest(self, k: int) -> _State:
        """The same with the k heaviest columns alone."""
        places = heaviest(self.weights, k)
        return replace(
            self,
            design=self.design.columns(places),
            columns=self.columns[places],
            centre=None if self.centre is None else self.centre[places],
            weights=self.weights[:, places],
        )


@dataclass(frozen=True, slots=True)
class _Phase:
    """What tells the two descents apart; ``bound`` is public, or None, and ``reach`` bounds margins."""

    name: str
    share: float
    eigenvalue_share: float
    slope: float
    bound: float | None
    room: float
    momentum: float
    n_steps: int
    average: bool
    reach: float | None


class SparseFit:
    """One fit of the default model.

    Parameters
    ----------
    road : Road
        How columns are chosen.
    budget : PrivacyFilter
        What may be spent; in the end, what was.
    setting : Setting
        Public facts.
    relation : str
        What one record more or less means.
    choose_size : bool
        Whether the size of the model is chosen, the road's being a guess.
    stream : Stream
        All randomness.
    """

    def __init__(
        self, road: Road, budget: PrivacyFilter, setting: Setting, *, relation: str, choose_size: bool, stream: Stream
    ) -> None:
        self._road, self._budget, self._setting = road, budget, setting
        self._choose_size, self._stream = choose_size, stream
        self._releases = Releases(budget, relation, stream.spawn("releases"))

    def solve(self, design: Design, target: Target) -> SparseResult:
        """Spend the budget and return the model."""
        setting, releases, road = self._setting, self._releases, self._road
        target, mean, start = centred_target(setting, releases, target)
        clip = residual_clip(setting, releases, target)
        first_slope = _FIRST_CLIP * clip if setting.regression else LABEL_CLIP
        columns = screened_columns(setting, releases, road, design, target, start, first_slope)
        whole = columns.size == design.n_features
        working = design if whole else design.columns(columns)
        centre = column_centre(setting, releases, working, target, whole=whole)
        state = _State(working, columns, centre, np.zeros((setting.n_outputs, columns.size)), start)
        if road.method == "two-phase":
            state = self._descended(target, self._first_phase(state, first_slope), state)
            k = self._size(_SIZE_SHARE, 1.0, target, clip, state, design.n_features) if self._choose_size else road.k
            state = state.heaviest(k)
        state = self._descended(target, self._second_phase(state, clip), state)
        if self._choose_size and self._prunes(state):
            state = state.heaviest(
                self._size(_PRUNING_SHARE, _PRUNING_SEVERITY, target, clip, state, design.n_features)
            )
        return self._result(state, mean, design.n_features)

    def _first_phase(self, state: _State, slope: float) -> _Phase:
        screened = self._road.n_screened is not None
        bound = None if screened else self._setting.row_bound
        later = _LENGTH_SHARE + (_SIZE_SHARE + _PRUNING_SHARE) * self._choose_size
        now = _EIGENVALUE_SHARE + _LENGTH_SHARE * (bound is None)
        share = (self._budget.remaining - now - later) / 2.0
        width = state.columns.size + self._setting.intercept
        n_steps = self._n_steps(2.0 * self._setting.n_rows * math.sqrt(share) * self._budget.mu / width, 3, 30)
        momentum = 0.5 if screened and self._road.strength > _ENOUGH_FOR_MOMENTUM else 0.0
        return _Phase(
            "first", share, _EIGENVALUE_SHARE, slope, bound, 1.0, momentum, n_steps, average=False, reach=None
        )

    def _second_phase(self, state: _State, slope: float) -> _Phase:
        bound = self._setting.row_bound if self._road.method == "all columns" else None
        pruning = _PRUNING_SHARE * (self._choose_size and self._prunes(state))
        rest = self._budget.remaining - pruning - _LENGTH_SHARE * (bound is None)
        share, k = (1.0 - _SECOND_EIGENVALUE) * rest, state.columns.size
        signal = self._setting.n_rows * math.sqrt(share) * self._budget.mu / k
        momentum = 0.7 if signal > _ENOUGH_FOR_MOMENTUM else 0.0
        n_steps = self._n_steps(signal / 4.0, 10, 60)
        reach = 2.0 * slope * math.sqrt(k) if self._setting.regression else None
        return _Phase(
            "second", share, rest - share, slope, bound, _ROOM_FOR_ROWS, momentum, n_steps, average=True, reach=reach
        )

    def _n_steps(self, wanted: float, least: int, most: int) -> int:
        return round(min(max(wanted, least), most)) if self._budget.private else NOISELESS_STEPS

    def _descended(self, target: Target, phase: _Phase, state: _State) -> _State:
        setting, releases, d = self._setting, self._releases, state.columns.size
        width, bound = d + setting.intercept, phase.bound
        norms = squared_row_norms(state.design, state.centre)
        if bound is None:
            what = f"the median length of a row in the {phase.name} descent"
            bound = median_length(setting, releases, what, np.sqrt(norms) / ONE, target, 2.0 * math.sqrt(d))
        bound *= phase.room
        records = setting.records(state.design, target, state.centre, bound, phase.slope, ONE, norms=norms)
        what = f"the largest eigenvalue of the Gram matrix of {width:,} columns"
        steepness = releases.eigenvalue(what, phase.eigenvalue_share, records)
        steepness = min(max(steepness, _LEAST_CURVATURE * setting.n_rows / width), float(setting.n_rows)) * bound**2
        loss = setting.loss_at(phase.slope)
        step = 1.0 / (loss.smoothness * steepness)

        n_values = setting.n_outputs * width
        what = f"a gradient with {n_values:,} coordinates per step of the {phase.name} descent"
        weight, noise = releases.noise(loss, lattice_square(bound), what, phase.share, n_values, phase.n_steps)
        records = setting.records(state.design, target, state.centre, bound, phase.slope, weight, norms=norms)
        constant = records.constant / ONE
        start = np.column_stack((state.weights, state.constants / constant)) if constant else state.weights
        radius = None if phase.reach is None else phase.reach / bound
        descent = Descent(phase.n_steps, step, phase.momentum, phase.average, radius, noise)
        weights = descent.run(records, start, self._stream.spawn(f"{phase.name} descent"))

        deviation = 0.0 if noise is None else 2.0**noise.log2_scale * phase.slope / (float(ONE) * weight)
        gathered = step * deviation * descent_spread(phase.n_steps, phase.momentum, phase.average)
        state = replace(
            state,
            weights=weights[:, :d],
            constants=weights[:, d] * constant if constant else state.constants,
            variance=state.variance + gathered**2,
            n_steps=state.n_steps + phase.n_steps,
        )
        return _shrunk(state, deviation, phase.n_steps, setting.n_rows * bound**2) if phase.reach is not None else state

    def _prunes(self, state: _State) -> bool:
        return self._setting.n_rows * self._budget.mu**2 / state.columns.size >= _ENOUGH_TO_PRUNE

    def _size(self, share: float, severity: float, target: Target, clip: float, state: _State, n_features: int) -> int:
        return chosen_size(
            self._setting, self._releases, share, severity, state.design, target, state.centre, clip,
            state.weights, state.constants, n_features,
        )  # fmt: skip

    def _result(self, state: _State, mean: float, n_features: int) -> SparseResult:
        coefficients = np.zeros((self._setting.n_outputs, n_features + 1))
        coefficients[:, state.columns] = state.weights
        deviations = np.zeros((self._setting.n_outputs, n_features))
        deviations[:, state.columns] = math.sqrt(state.variance)
        if self._setting.intercept:
            coefficients[:, -1] = state.constants + mean
        if state.centre is not None:
            coefficients[:, -1] -= state.weights @ state.centre / ONE
        return SparseResult(coefficients, deviations, state.n_steps)


def _shrunk(state: _State, deviation: float, n_steps: int, curvature: float) -> _State:
    """Weights less half of what the noise of an average of steps adds to their square at a typical curvature."""
    k = max(state.columns.size, 1)
    typical = _SHRINKING_CURVATURE * curvature / k
    added = k * deviation**2 * 2.0 / (n_steps * typical**2)
    square = float(np.sum(np.square(state.weights)))
    kept = max(_LEAST_KEPT, 1.0 - added / (2.0 * square)) if square > 0.0 else 1.0
    # Along the weights the derivative of w (1 - a / |w|**2) is two minus what is kept, more than one.
    return replace(state, weights=state.weights * kept, variance=state.variance * (2.0 - kept) ** 2)
