r"""Slope and constant of a fitted model, recalibrated privately.

Clips, noise and a short descent leave weights too long or too short as a whole, and means a little off. A few sums over
records, released once, tell the two parameters a and b of the margins :math:`a\, w \cdot x + b` (Platt, 1999, for
labels); what remains is post-processing. Where noise is large against what the two usually are off by, they are shrunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from taciturn.core.arrays import FloatArray
from taciturn.core.lattice import ONE
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_descent import ColumnModel, Descent
from taciturn.fitting.sums import MarginCounts, MarginMagnitudes, ResidualMoments
from taciturn.planning.sparse import SparsePlan

__all__ = ["RECALIBRATION_SHARE", "recalibrate", "recalibrates"]

RECALIBRATION_SHARE = 0.05
"""Share of the budget for recalibration."""

# With less than this many records times the Gaussian parameter the step would be noise.
_LEAST_INFORMATION = 100.0
_QUANTILE_SHARE = 0.15
# Margins are clipped at this many times the quantile: in sparse designs most of them may be zero.
_QUANTILE, _REACH = 0.9, 1.5
_LEAST_MARGIN, _MOST_MARGIN = 2.0**-10, 64.0
# What slope and constant are expected to be off by, the constant in units of the residual size.
_SLOPE_PRIOR = 0.3
_CONSTANT_PRIOR = 0.3
_LEAST_SLOPE, _MOST_SLOPE = 0.1, 8.0
# Residuals are clipped at 1.5 to 8 times their size, and beyond that only as noise falls below sampling error: an open
# clip is needed where targets are skewed, and its noise is that of the slope.
_LEAST_ROOM, _USUAL_ROOM = 1.5, 8.0
# Descents that were shorter than this leave weights that are too short in proportion.
_SHORT_TIME = 3.0
_LEAST_SQUARE = 0.01
_LEAST_BINS, _MOST_BINS = 8, 40
_NEWTON_STEPS = 30


def recalibrates(plan: SparsePlan, mu: float) -> bool:
    """Whether public facts say that recalibration pays."""
    return math.isfinite(mu) and plan.n_outputs == 1 and plan.intercept and plan.n_rows * mu >= _LEAST_INFORMATION


def recalibrate(
    plan: SparsePlan, releases: Releases, descent: Descent, model: ColumnModel, share: float
) -> ColumnModel:
    """The model with slope and constant recalibrated; a share of the budget pays for it."""
    clipping = replace(descent.clipping(model, 1.0, 16.0 if plan.regression else 1.0), product_bound=1)
    coefficients = np.column_stack((model.weights, model.constants * (ONE / clipping.constant)))
    magnitudes = MarginMagnitudes(clipping, coefficients)
    large = releases.quantile(
        "a large magnitude of margins", _QUANTILE_SHARE * share, magnitudes, _LEAST_MARGIN, _MOST_MARGIN,
        quantile=_QUANTILE, typical=2.0 * model.size,
    )  # fmt: skip
    step = _Step(releases, clipping, coefficients, _REACH * large, (1.0 - _QUANTILE_SHARE) * share, plan, model)
    slope, shift = step.for_numbers(descent.mu) if plan.regression else step.for_labels(descent.mu)
    slope = min(max(slope, _LEAST_SLOPE), _MOST_SLOPE)
    return replace(model, weights=model.weights * slope, constants=model.constants + shift)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What both kinds of targets need."""

    releases: Releases
    clipping: Clipping
    coefficients: FloatArray
    reach: float
    share: float
    plan: SparsePlan
    model: ColumnModel

    def for_numbers(self, mu: float) -> tuple[float, float]:
        """Least squares of residuals on margins: the slope, and what is added to the constant."""
        n_rows, size, reach = self.plan.n_rows, self.model.size, self.reach
        room = max(_LEAST_ROOM, min(n_rows * mu / 100.0, max(_USUAL_ROOM, 0.5 * mu * math.sqrt(self.share * n_rows))))
        clip = size if self.plan.huber else min(room * size, 2.0)

        def moments(unit: int) -> ResidualMoments:
            return ResidualMoments(self.clipping, self.coefficients, reach, clip, unit)

        sums, deviation = self.releases.moments("moments of margins and residuals", self.share, moments, 4)
        gradient, noise = 2.0 * sums[:2] * clip, 2.0 * deviation * clip
        mean = min(max(2.0 * sums[3] / n_rows, -1.0), 1.0)
        square = max(2.0 * sums[2] / n_rows, _LEAST_SQUARE, 1.1 * mean * mean)
        hessian = n_rows * np.array([[square, mean], [mean, 1.0]])
        prior = np.array([_SLOPE_PRIOR * reach, _CONSTANT_PRIOR * size])
        ridge = noise**2 / np.square(prior) / np.diag(hessian)
        step = np.linalg.solve(hessian + np.diag(ridge), gradient)
        return 1.0 - float(step[0]) / reach, -float(step[1])

    def for_labels(self, mu: float) -> tuple[float, float]:
        """Logistic regression on binned margins: the slope, and what is added to the constant."""
        n_rows, reach = self.plan.n_rows, self.reach
        n_bins = 2 * round(min(max(0.2 * math.sqrt(n_rows * mu), _LEAST_BINS / 2), _MOST_BINS / 2))

        def cells(unit: int) -> MarginCounts:
            return MarginCounts(self.clipping, self.coefficients, reach, n_bins, unit)

        what = "numbers of records by margin and label"
        counts, deviation = self.releases.counts(what, self.share, cells, 2 * n_bins)
        middles = (np.arange(n_bins) + 0.5) * (2.0 / n_bins) - 1.0
        design = np.column_stack((middles, np.ones(n_bins)))
        of_labels = self.plan.loss_at(1.0).class_weights(2)
        unweighted = max(float(np.maximum(counts.sum(axis=0), 0.0).sum()), 1.0)
        # Records of a class count by its weight, and so does the noise on their numbers.
        counts = counts * of_labels[:, None]
        totals = np.maximum(counts.sum(axis=0), 0.0)
        totals *= n_rows / unweighted
        expected = max(1.0, _SHORT_TIME / self.plan.rule(mu, self.clipping.width).time)
        start, units = np.array([expected * reach, float(self.model.constants[0])]), np.array([reach, 1.0])
        parameters, prior = start.copy(), np.array([_SLOPE_PRIOR * expected**1.5, _CONSTANT_PRIOR]) * units
        for _ in range(_NEWTON_STEPS):
            rates = expit(design @ parameters)
            gradient = (counts[0] * rates - counts[1] * (1.0 - rates)) @ design
            hessian = (design.T * (totals * rates * (1.0 - rates))) @ design + 1e-6 * n_rows * np.eye(2)
            moves = np.square(of_labels[0] * rates) + np.square(of_labels[1] * (1.0 - rates))
            noise = deviation**2 * moves @ np.square(design)
            ridge = noise / np.square(prior) / np.diag(hessian)
            step = np.linalg.solve(hessian + np.diag(ridge), gradient + ridge * (parameters - start))
            parameters -= np.clip(step, -0.5 * units, 0.5 * units)
        return float(parameters[0]) / reach, float(parameters[1] - start[1])
