"""Plans for gradient descent with hard thresholding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from taciturn.accounting import Budget
from taciturn.accounting.gdp import mu_of_budget
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.data.sensitivity.descent import proposal_scores
from taciturn.events import Event, ExponentialEvent, GaussianEvent
from taciturn.losses import Loss
from taciturn.mechanisms import DISTANCE_PER_VALUE, GumbelTopK, RoundedGaussian
from taciturn.planning.calibrated import PlannedRelease, calibrate_releases
from taciturn.planning.lattice import LARGEST_WEIGHT, gradient_noise, term_noise
from taciturn.planning.listed import ListedReleases

__all__ = ["LEAST_ROW_BOUND", "NOISELESS_STEPS", "HardThresholdPlan", "hard_threshold_steps", "plan_hard_threshold"]


NOISELESS_STEPS = 500
"""Steps without privacy."""

LEAST_ROW_BOUND = 2.0**-8
"""Below this share of x_bound a row clip would be coarse on the lattice of the entries."""

_CLIP_SHARE = 0.06

# The share of the budget for the steps that peeling spends on the choice of columns.
_PEELING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HardThresholdPlan(ListedReleases):
    """How many steps will be made, what is found out about the data first, and with how much noise.

    Parameters
    ----------
    budget : Budget
        What everything together may cost.
    loss : Loss
        The loss of one record; the threshold of a Huber loss is the residual clip, if that is given.
    n_rows, n_features, n_outputs : int
        The public number of records, columns without the intercept's, and rows of the coefficient matrix.
    row_bound : float or None
        L2 bound on rows in units of scaled features; None for a private median.
    step : float or None
        Length of a step for the mean gradient in units of scaled features. None: from the curvature.
    radius : float or None
        L2 bound on the coefficients, the intercept's apart.
    average : bool
        Whether to return the mean of the second half of the iterates, thresholded once more.
    auto_clip : bool
        Whether the residual clip follows from a private median.
    peeling : bool
        Whether columns are chosen before their gradients are released.
    releases : tuple of Release
        For the certificate; the noise of all mechanisms follows from their events.
    """

    ordered: ClassVar[bool] = False
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    loss: Loss
    relation: str
    n_rows: int
    n_features: int
    n_outputs: int
    intercept: bool
    n_nonzero: int
    n_steps: int
    row_bound: float | None
    step: float | None
    radius: float | None
    average: bool
    auto_clip: bool
    peeling: bool
    releases: tuple[Release, ...]

    @property
    def n_iterations(self) -> int:
        """Gradient steps altogether."""
        return self.n_steps

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return not math.isinf(self.budget.epsilon)

    @property
    def median_range(self) -> float:
        """The range of the selection that a median is."""
        return _selection_range(self.releases[0])

    def gradient_mechanisms(
        self, row_squared: int, constant: int
    ) -> tuple[int, RoundedGaussian | None, GumbelTopK | None]:
        """The integer that stands for the largest derivative, the noise on sums, and the choice of columns, if any.

        ``row_squared`` bounds the squared norm of a row, the entry of the constant column included, in lattice units.
        """
        if not self.private:
            return ONE if self.loss.labelled else LARGEST_WEIGHT, None, None
        multiplier = _noise_multiplier(self.releases[-1])
        if not self.peeling:
            return *gradient_noise(self.loss, row_squared, self.relation, multiplier), None
        row_squared_chosen = min(row_squared, self.n_nonzero * ONE * ONE + constant * constant)
        weight_bound, noise = gradient_noise(self.loss, row_squared_chosen, self.relation, multiplier)
        entry = min(ONE, math.isqrt(row_squared) + 1)
        scores = proposal_scores(entry, math.ceil(self.loss.l1_factor * weight_bound), self.relation)
        return weight_bound, noise, GumbelTopK(scores, self.n_nonzero, _selection_range(self.releases[-2]))

    def curvature_mechanism(self) -> tuple[int, RoundedGaussian | None]:
        """The integer that stands for a curvature term of one, and the noise on their sum."""
        if not self.private:
            return ONE, None
        return term_noise(self.relation, _noise_multiplier(self.releases[(self.row_bound is None) + self.auto_clip]))


def _selection_range(release: Release) -> float:
    if not isinstance(release.event, ExponentialEvent):
        raise TypeError("expected a selection")
    return release.event.epsilon


def _noise_multiplier(release: Release) -> float:
    if not isinstance(release.event, GaussianEvent):
        raise TypeError("expected a Gaussian release")
    return release.event.noise_multiplier


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
    clip_share: float | None,
    mechanism: str,
    n_steps: int | str,
    step: float | None,
    radius: float | None,
    average: bool,
) -> HardThresholdPlan:
    """Plan gradient descent with hard thresholding; other parameters are those of :class:`HardThresholdPlan`.

    An infinite epsilon means no noise. A third of ``clip_share``, 0.06 for None, goes to each median, and to the length
    of the steps where it is not given. The mechanism "gaussian" adds noise to all coordinates, "peeling" chooses
    columns privately and adds noise to these. The number of steps "auto" is a function of public facts.
    """
    # Sums of more records could leave 64 bits: partitions check their own rows, and nobody checks the total.
    check_integer(0, MOST_PRIVATE_ROWS, n_rows=n_rows)
    if row_bound is not None and row_bound < LEAST_ROW_BOUND:
        raise ParameterError("row_bound", row_bound, "at least x_bound / 256", "lower x_bound to what features can be")
    private = not math.isinf(budget.epsilon)
    n_nonzero = min(n_nonzero, n_features)
    peeling = mechanism == "peeling" and n_nonzero < n_features
    if n_steps != "auto":
        steps = int(n_steps)
    else:
        steps = hard_threshold_steps(budget, loss, n_rows, n_features + intercept) if private else NOISELESS_STEPS
    medians = ["the median row norm"] * (row_bound is None) + ["the median magnitude of the target"] * auto_clip
    planned = _planned_releases(
        (_CLIP_SHARE if clip_share is None else clip_share) / 3.0,
        medians,
        step is None,
        steps,
        n_outputs,
        n_features,
        intercept,
        n_nonzero if peeling else None,
    )
    plan = HardThresholdPlan(
        budget=budget if private else Budget(math.inf, 0.0),
        loss=loss,
        relation=relation,
        n_rows=n_rows,
        n_features=n_features,
        n_outputs=n_outputs,
        intercept=intercept,
        n_nonzero=n_nonzero,
        n_steps=steps,
        row_bound=row_bound,
        step=step,
        radius=radius,
        average=average,
        auto_clip=auto_clip,
        peeling=peeling,
        releases=calibrate_releases(budget, planned, ordered=HardThresholdPlan.ordered),
    )
    # A budget whose noise does not fit the lattice for the longest rows there can be is refused now: it must not turn
    # out when a median has been released already.
    plan.gradient_mechanisms(n_features * ONE * ONE, ONE)
    return plan


def _planned_releases(
    share: float,
    medians: Sequence[str],
    step_auto: bool,
    n_steps: int,
    n_outputs: int,
    n_features: int,
    intercept: bool,
    n_peeled: int | None,
) -> list[PlannedRelease]:
    r"""Each median and the curvature get ``share`` of the sum of squared Gaussian parameters, the steps the rest.

    One selection of range e counts :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each, Gaussian noise of multiplier m
    :math:`1 / m^2`. These are weights, no costs: :func:`calibrate_releases` finds the common scale that the exact cost
    allows.
    """
    rest = 1.0 - share * (len(medians) + step_auto)
    median_range = math.sqrt(8.0 / math.pi * share)
    planned = [PlannedRelease(what, "Gumbel", partial(_selection, median_range)) for what in medians]
    if step_auto:
        event = partial(_gaussian, math.sqrt(1.0 / share), DISTANCE_PER_VALUE)
        planned.append(PlannedRelease("the curvature along one direction", "Gaussian", event))
    n_released, chosen = n_outputs * (n_features + intercept), 0.0
    if n_peeled is not None:
        chosen = _PEELING_SHARE * rest
        what = f"one of {n_features:,} columns, {n_peeled:,} times a step"
        selection_range = math.sqrt(4.0 * chosen / (n_peeled * n_steps))
        planned.append(PlannedRelease(what, "Gumbel", partial(_selection, selection_range), n_peeled * n_steps))
        n_released = n_outputs * (n_peeled + intercept)
    what = f"a gradient with {n_released:,} coordinates per step"
    event = partial(_gaussian, math.sqrt(n_steps / (rest - chosen)), n_released * DISTANCE_PER_VALUE)
    planned.append(PlannedRelease(what, "Gaussian", event, n_steps))
    return planned


def _selection(selection_range: float, b: float) -> Event:
    return ExponentialEvent(selection_range / b)


def _gaussian(noise_multiplier: float, distance: float, b: float) -> Event:
    return GaussianEvent(noise_multiplier * b, distance)


def hard_threshold_steps(budget: Budget, loss: Loss, n_rows: int, n_columns: int) -> int:
    r"""The number of steps from public facts alone.

    :math:`T = 4 \sqrt{c\, n \mu / d}` within 4 and 20, for a budget of :math:`\mu`-GDP and a loss whose second
    derivative is at most c: each step costs the others noise, and pays where the noise is small.
    """
    signal = loss.smoothness * n_rows * mu_of_budget(budget) / n_columns
    return round(min(max(4.0 * math.sqrt(signal), 4.0), 20.0))
