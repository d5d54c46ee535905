"""Plans for gradient descent with hard thresholding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn.accounting import Budget, calibrate
from taciturn.accounting.gdp import mu_of_budget
from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity.descent import proposal_scores
from taciturn.events import Event, ExponentialEvent, GaussianEvent, NotPrivateEvent
from taciturn.fitting.clipped_records import ClippedRecords, squared_row_norms
from taciturn.fitting.hard_threshold import (
    CurvatureRelease,
    Descent,
    GaussianRelease,
    GradientRelease,
    PeelingRelease,
)
from taciturn.losses import HuberLoss, Loss
from taciturn.mechanisms import DISTANCE_PER_VALUE, GumbelTopK, PrivateQuantile
from taciturn.planning.lattice import LARGEST_WEIGHT, gradient_noise, term_noise

__all__ = ["NOISELESS_STEPS", "HardThresholdPlan", "hard_threshold_steps", "plan_hard_threshold"]


NOISELESS_STEPS = 500
"""Steps without privacy."""

# Without privacy residuals are clipped only where they pass eight times the range of the target.
_NOISELESS_CLIP = 16.0
# Below this share of x_bound a row clip would be coarse on the lattice of the entries.
_LEAST_ROW_BOUND = 2.0**-8
_GRID_POINTS = 40
# A clip at half the median target keeps most of the signal of the first step and little of the noise of the others.
_CLIP_PER_MEDIAN = 0.5
# The constant column is as large as others of the same row, but not so small that the intercept drowns in noise.
_MOST_COLUMNS_FOR_CONSTANT = 1000
# Of what peeling spends on its steps, half goes to the choice of columns.
_PEELING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HardThresholdPlan:
    """How many steps will be made, what is found out about the data first, and with how much noise.

    Parameters
    ----------
    budget : Budget
        What everything together may cost.
    loss : Loss
        The loss of one record; the threshold of a Huber loss is the residual clip, if that is given.
    relation : str
        What one record more or less means.
    n_rows : int
        The public number of records.
    n_nonzero, n_steps : int
        Columns kept, and steps.
    row_bound : float or None
        L2 bound on rows in units of scaled features; None for a private median.
    step, radius, average
        As in :class:`~taciturn.fitting.hard_threshold.Descent`.
    auto_clip : bool
        Whether the residual clip follows from a private median.
    peeling : bool
        Whether columns are chosen before their gradients are released.
    scale : float
        The common noise scale of all parts; 0 without privacy.
    parts : Parts
        What each release gets of the sum of squares.
    releases : tuple of Release
        For the certificate.
    """

    ordered: ClassVar[bool] = False

    budget: Budget
    loss: Loss
    relation: str
    n_rows: int
    n_nonzero: int
    n_steps: int
    row_bound: float | None
    step: float | None
    radius: float | None
    average: bool
    auto_clip: bool
    peeling: bool
    scale: float
    parts: Parts
    releases: tuple[Release, ...]

    def solve(
        self, design: Design, target: FloatArray | IntArray, n_outputs: int, intercept: bool, stream: Stream
    ) -> FloatArray:
        """The coefficients in mapped units, one row per output, the intercept last."""
        norms = squared_row_norms(design)
        present = self.loss.present(target)
        widest = math.sqrt(design.n_features)
        bound = self.row_bound
        if bound is None:
            grid = np.geomspace(4.0 * _LEAST_ROW_BOUND, widest, _GRID_POINTS)
            lengths = np.sqrt(norms[present]) / ONE
            bound = self._median(lengths, grid, stream.spawn("row bound"), np.max(lengths, initial=_LEAST_ROW_BOUND))
        row_squared = math.floor((min(bound, widest) * ONE) ** 2)
        loss = self.loss
        if self.auto_clip:
            grid = np.geomspace(2.0 * _LEAST_ROW_BOUND, 1.0, _GRID_POINTS)
            sizes = np.abs(target.astype(np.float64)) / ONE
            noiseless = _NOISELESS_CLIP / _CLIP_PER_MEDIAN
            loss = HuberLoss(_CLIP_PER_MEDIAN * self._median(sizes, grid, stream.spawn("residual clip"), noiseless))
        columns = min(design.n_features + 1, _MOST_COLUMNS_FOR_CONSTANT)
        constant = max(1, round(math.sqrt(row_squared / columns))) if intercept else 0
        weight_bound, gradient = self._gradient(row_squared, constant, design.n_features)
        records = ClippedRecords(design, target, loss, n_outputs, norms, row_squared, constant, weight_bound)
        descent = Descent(
            self.n_nonzero,
            self.n_steps,
            self.n_rows,
            self.step,
            self.radius,
            self.average,
            gradient,
            None if self.step is not None else self._curvature(),
        )
        coefficients = descent.run(records, stream.spawn("descent"))
        if not intercept:
            return np.column_stack((coefficients, np.zeros(n_outputs)))
        coefficients[:, -1] *= constant / ONE
        return coefficients

    def check_lattice(self, n_features: int) -> None:
        """Refuse a budget whose noise does not fit the lattice for the longest rows there can be."""
        self._gradient(n_features * ONE * ONE, ONE, n_features)

    def _median(self, values: FloatArray, grid: FloatArray, stream: Stream, noiseless: float) -> float:
        if self.scale == 0.0:
            return float(noiseless)
        epsilon = self.parts.quantile_range / self.scale
        return PrivateQuantile(tuple(grid), 0.5, self.relation, epsilon).release(values, stream)

    def _gradient(self, row_squared: int, constant: int, n_features: int) -> tuple[int, GradientRelease]:
        """The integer that stands for the largest derivative, and the noise on sums of its multiples."""
        if self.scale == 0.0:
            return ONE if self.loss.labelled else LARGEST_WEIGHT, GaussianRelease(None)
        multiplier = self.parts.gradient_noise * self.scale
        if self.peeling:
            row_squared_chosen = min(row_squared, self.n_nonzero * ONE * ONE + constant * constant)
            weight_bound, noise = gradient_noise(self.loss, row_squared_chosen, self.relation, multiplier)
            entry = min(ONE, math.isqrt(row_squared) + 1)
            scores = proposal_scores(entry, math.ceil(self.loss.l1_factor * weight_bound), self.relation)
            top_k = GumbelTopK(scores, self.n_nonzero, self.parts.selection_range / self.scale)
            return weight_bound, PeelingRelease(top_k, noise, n_features)
        weight_bound, noise = gradient_noise(self.loss, row_squared, self.relation, multiplier)
        return weight_bound, GaussianRelease(noise)

    def _curvature(self) -> CurvatureRelease:
        if self.scale == 0.0:
            return CurvatureRelease(ONE, None)
        return CurvatureRelease(*term_noise(self.relation, self.parts.curvature_noise * self.scale))


@dataclass(frozen=True, slots=True)
class Parts:
    """Costs and noises at a common scale b of one: ranges fall as 1 / b, noise multipliers grow as b.

    Parameters
    ----------
    quantile_range, selection_range : float
        Of one quantile, and of one of the selections of a step; 0 for none.
    curvature_noise, gradient_noise : float
        Noise multipliers; infinite for none.
    """

    quantile_range: float
    selection_range: float
    curvature_noise: float
    gradient_noise: float

    @classmethod
    def split(cls, share: float, n_quantiles: int, step_auto: bool, n_steps: int, n_selections: int) -> Parts:
        r"""Each "auto" gets ``share`` of the sum of squares, the steps the rest.

        One selection of range e counts :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each, Gaussian noise of multiplier m
        :math:`1 / m^2`.
        """
        rest = 1.0 - share * (n_quantiles + step_auto)
        chosen = _PEELING_SHARE * rest if n_selections else 0.0
        return cls(
            quantile_range=math.sqrt(8.0 / math.pi * share) if n_quantiles else 0.0,
            selection_range=math.sqrt(4.0 * chosen / (n_selections * n_steps)) if n_selections else 0.0,
            curvature_noise=math.sqrt(1.0 / share) if step_auto else math.inf,
            gradient_noise=math.sqrt(n_steps / (rest - chosen)),
        )


def plan_hard_threshold(
    budget: Budget,
    loss: Loss,
    *,
    relation: str,
    n_rows: int,
    n_features: int,
    n_outputs: int,
    intercept: bool,
    n_nonzero: int,
    row_bound: float | None,
    auto_clip: bool,
    clip_share: float,
    threshold: str,
    n_steps: int | str,
    step: float | None,
    radius: float | None,
    average: bool,
) -> HardThresholdPlan:
    """Plan gradient descent with hard thresholding.

    Parameters
    ----------
    budget : Budget
        For all releases together; an infinite epsilon means no noise.
    loss : Loss
        The loss of one record.
    relation : str
        What one record more or less means.
    n_rows : int
        The public number of records.
    n_features, n_outputs : int
        Columns without the intercept's, and rows of the coefficient matrix.
    intercept : bool
        Whether there is a constant column.
    n_nonzero : int
        Columns kept.
    row_bound : float or None
        L2 bound on rows in units of scaled features; None for a private median.
    auto_clip : bool
        Whether the residual clip follows from a private median.
    clip_share : float
        A third of it goes to each median, and to the length of the steps where it is not given.
    threshold : {"gaussian", "peeling"}
        Noise on all coordinates, or a private choice of columns and noise on these.
    n_steps : int or "auto"
        Number of steps; "auto" is a function of public facts.
    step : float or None
        Length of a step in units of scaled features; None: from the curvature.
    radius : float or None
        L2 bound on the coefficients in units of scaled features.
    average : bool
        Whether to average the second half of the iterates.
    """
    if row_bound is not None and row_bound < _LEAST_ROW_BOUND:
        raise ParameterError("row_bound", row_bound, "at least x_bound / 256", "lower x_bound to what features can be")
    private = not math.isinf(budget.epsilon)
    n_nonzero = min(n_nonzero, n_features)
    peeling = threshold == "peeling" and n_nonzero < n_features
    if n_steps != "auto":
        steps = int(n_steps)
    else:
        steps = hard_threshold_steps(budget, loss, n_rows, n_features + intercept) if private else NOISELESS_STEPS
    n_quantiles = (row_bound is None) + auto_clip
    parts = Parts.split(clip_share / 3.0, n_quantiles, step is None, steps, n_nonzero if peeling else 0)
    costs = _costs(parts, row_bound is None, auto_clip, steps, n_nonzero, n_outputs, n_features, intercept)
    if private:
        scale = calibrate(budget, lambda b: _whole(costs, b), ordered=False)
        releases = tuple(
            Release(what, noise, _noise_of(event(scale)), event(scale), count) for what, noise, event, count in costs
        )
    else:
        budget, scale = Budget(math.inf, 0.0), 0.0
        releases = tuple(Release(what, "none", 0.0, NotPrivateEvent(), count) for what, _, _, count in costs)
    plan = HardThresholdPlan(
        budget, loss, relation, n_rows, n_nonzero, steps, row_bound, step, radius, average,
        auto_clip, peeling, scale, parts, releases,
    )  # fmt: skip
    if private:
        # Whether the noise fits its lattice must not turn out when a median has been released already.
        plan.check_lattice(n_features)
    return plan


_Cost = tuple[str, str, Callable[[float], Event], int]


def _costs(
    parts: Parts,
    median_row: bool,
    median_target: bool,
    n_steps: int,
    n_nonzero: int,
    n_outputs: int,
    n_features: int,
    intercept: bool,
) -> list[_Cost]:
    def quantile(b: float) -> Event:
        return ExponentialEvent(parts.quantile_range / b)

    costs: list[_Cost] = []
    if median_row:
        costs.append(("the median length of a row", "Gumbel", quantile, 1))
    if median_target:
        costs.append(("the median size of the target", "Gumbel", quantile, 1))
    if not math.isinf(parts.curvature_noise):
        costs.append(
            (
                "the curvature along one direction",
                "Gaussian",
                lambda b: GaussianEvent(parts.curvature_noise * b, DISTANCE_PER_VALUE),
                1,
            )
        )
    n_released = n_outputs * (n_features + intercept)
    if parts.selection_range:
        what = f"one of {n_features:,} columns, {n_nonzero:,} times a step"
        costs.append((what, "Gumbel", lambda b: ExponentialEvent(parts.selection_range / b), n_nonzero * n_steps))
        n_released = n_outputs * (n_nonzero + intercept)
    what = f"a gradient with {n_released:,} coordinates per step"
    distance = n_released * DISTANCE_PER_VALUE
    costs.append((what, "Gaussian", lambda b: GaussianEvent(parts.gradient_noise * b, distance), n_steps))
    return costs


def _whole(costs: list[_Cost], scale: float) -> Event:
    events = [event(scale) * count for _, _, event, count in costs]
    return sum(events[1:], events[0])


def _noise_of(event: Event) -> float:
    """The noise scale in units of the sensitivity."""
    return event.noise_multiplier if isinstance(event, GaussianEvent) else 2.0 / event.epsilon  # type: ignore[attr-defined]


def hard_threshold_steps(budget: Budget, loss: Loss, n_rows: int, n_columns: int) -> int:
    r"""The number of steps from public facts alone.

    :math:`T = 4 \sqrt{c\, n \mu / d}` within 4 and 20, for a budget of :math:`\mu`-GDP and a loss whose second
    derivative is at most c: each step costs the others noise, and pays where the noise is small.
    """
    signal = loss.smoothness * n_rows * mu_of_budget(budget) / n_columns
    return round(min(max(4.0 * math.sqrt(signal), 4.0), 20.0))
