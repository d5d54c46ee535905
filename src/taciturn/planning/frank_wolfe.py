"""Plans for Frank-Wolfe over an L1 ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget
from taciturn.accounting.gdp import mu_of_budget
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.data.sensitivity import clipped_count, gradient_scores
from taciturn.events import Event, ExponentialEvent
from taciturn.kernels.vertex_sampler import LEFTOVER
from taciturn.losses import Loss
from taciturn.mechanisms import ExponentialMechanism, TwoSidedGeometric
from taciturn.planning.calibrated import PlannedRelease, calibrate_releases

__all__ = [
    "LARGEST_RADIUS",
    "NOISELESS_STEPS",
    "SELECTION_LEFTOVER",
    "SMALLEST_RADIUS",
    "ClippedCount",
    "FrankWolfePlan",
    "influences",
    "number_of_steps",
    "plan_frank_wolfe",
    "planned_selection",
    "planned_steps",
]

NOISELESS_STEPS = 5000
"""Frank-Wolfe steps without privacy, where nothing limits them but time."""

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-9, float(1 << 14)
"""Radii for which derivatives fit 32-bit integers and scores keep their digits."""

SELECTION_LEFTOVER = LEFTOVER
"""Bound on the total variation distance of one sampled selection from its law, for the event of a step."""


@dataclass(frozen=True, slots=True)
class ClippedCount:
    """A count, clipped to a public range of integers and released with two-sided geometric noise.

    Ends that are not integers would show in the fractional part whether clipping was active. Sensitivity:
    ``data.sensitivity.clipped_count``.

    Parameters
    ----------
    epsilon : float
        Cost of the release; infinite for none of the noise.
    """

    low: int
    high: int
    relation: str
    epsilon: float

    def __post_init__(self) -> None:
        integral = all(isinstance(end, int) and not isinstance(end, bool) for end in (self.low, self.high))
        if not integral or not 1 <= self.low <= self.high:
            raise ParameterError(
                "count_range", (self.low, self.high), "two integers 1 <= low <= high", "round the ends inwards"
            )

    @property
    def planned(self) -> tuple[PlannedRelease, ...]:
        """For the certificate; a range of one number releases nothing."""
        what = f"a count of coefficients between {self.low:,} and {self.high:,}"
        if self.low == self.high:
            return ()
        return (
            PlannedRelease(
                what, "two-sided geometric", lambda b: self.mechanism.event, scale_of=lambda event: 1.0 / self.epsilon
            ),
        )

    @property
    def mechanism(self) -> TwoSidedGeometric:
        """The noise, where the range has more than one number and epsilon is finite."""
        return TwoSidedGeometric(int(clipped_count(self.low, self.high, self.relation).value), self.epsilon)


@dataclass(frozen=True, slots=True)
class FrankWolfePlan:
    """How many Frank-Wolfe steps will be made, and with how much noise.

    Parameters
    ----------
    radius : float
        Radius of the L1 ball in units of scaled features.
    noise_scale : float
        Gumbel scale in units of the largest influence of one record under zero-out; 0 without privacy.
    n_outputs : int
        Rows of the coefficient matrix: 1, or the number of classes.
    counting : ClippedCount or None
        How the coefficients of the noiseless solution are counted, where they are.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    loss: Loss
    radius: float
    n_steps: int
    noise_scale: float
    relation: str
    n_rows: int | None
    n_outputs: int
    intercept: bool
    releases: tuple[Release, ...]
    counting: ClippedCount | None = None


def plan_frank_wolfe(
    budget: Budget,
    loss: Loss,
    *,
    radius: float,
    relation: str,
    n_rows: int | None,
    n_features: int,
    n_outputs: int,
    intercept: bool,
    n_steps: int | str,
    count: ClippedCount | None = None,
) -> FrankWolfePlan:
    """Plan private Frank-Wolfe over an L1 ball.

    An infinite epsilon means no noise. ``n_steps="auto"`` is a function of public facts; a ``count`` shares the budget.
    """
    private = not math.isinf(budget.epsilon)
    n_vertices = 2 * n_outputs * (n_features + intercept)
    steps = number_of_steps(n_steps, budget, n_rows, n_vertices, radius)
    step = planned_steps(budget, n_vertices, relation, 1.0, steps)
    releases = calibrate_releases(budget, (step, *(() if count is None else count.planned)))
    return FrankWolfePlan(
        budget if private else Budget(math.inf, 0.0),
        loss,
        radius,
        steps,
        influences(releases[0], relation),
        relation,
        n_rows,
        n_outputs,
        intercept,
        releases,
        count,
    )


def planned_steps(
    budget: Budget, n_vertices: int, relation: str, selection_range: float, n_steps: int
) -> PlannedRelease:
    """Steps as planned selections; without a delta every vertex gets noise, and no sampler is off its law."""
    what = f"one of {n_vertices:,} directions (a coefficient and a sign) per step"
    distance = SELECTION_LEFTOVER if budget.delta > 0.0 else 0.0
    return planned_selection(what, relation, selection_range, distance, n_steps)


def planned_selection(what: str, relation: str, selection_range: float, distance: float, count: int) -> PlannedRelease:
    """Selections by gradient, each with a bounded range of ``selection_range / b`` at a common noise scale b."""
    sensitivity = gradient_scores(1.0, 1.0, relation)

    def scale_of(event: Event) -> float:
        if not isinstance(event, ExponentialEvent):
            raise TypeError(f"{type(event).__name__} is no selection")
        return ExponentialMechanism(sensitivity, event.epsilon).scale / sensitivity.value

    return PlannedRelease(what, "Gumbel", lambda b: ExponentialEvent(selection_range / b, distance), count, scale_of)


def influences(release: Release, relation: str) -> float:
    """The noise of a selection by gradient in units of the largest influence of one record under zero-out."""
    return release.scale * gradient_scores(1.0, 1.0, relation).value


def number_of_steps(n_steps: int | str, budget: Budget, n_rows: int | None, n_vertices: int, radius: float) -> int:
    r"""The number of steps that is asked for, or for "auto" the one that does best, from public facts alone.

    :math:`T = 0.315\,(n \mu r / \log V)^{2/3}` for V vertices and a budget of :math:`\mu`-GDP, within 20 and 640: the
    form of Talwar, Thakurta and Zhang with a constant measured in ``benchmarks/study_steps.py``. Without a public
    number of records it is 80, the best single number of the same study; without a delta, 20.
    """
    if n_steps != "auto":
        return int(n_steps)
    if math.isinf(budget.epsilon):
        return NOISELESS_STEPS
    if n_rows is None:
        return 80
    signal = n_rows * mu_of_budget(budget) * radius / math.log(n_vertices)
    return round(min(max(0.315 * math.pow(signal, 2.0 / 3.0), 20.0), 640.0))
