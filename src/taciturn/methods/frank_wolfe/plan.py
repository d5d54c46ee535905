"""Plans of private Frank-Wolfe and of the medians that centre its target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import clipped_count, gradient_scores, record_sum
from taciturn.kernels.vertex_sampler import LEFTOVER
from taciturn.losses import HuberLoss
from taciturn.methods.schedule import Problem, Schedule, ScheduledPlan
from taciturn.privacy.budget import Budget
from taciturn.privacy.claim import Release
from taciturn.privacy.events import ExponentialEvent
from taciturn.privacy.gdp import mu_of_budget
from taciturn.privacy.mechanisms import ExponentialMechanism, TwoSidedGeometric

# ---- Tuned constants, measured in research's ``study_siblings``, and limits. Those of the numbers of steps and of the
# radius are beside their formulas.

CLIP_PER_MEDIAN = 0.35
"""Residuals are clipped at this share of the median distance of the target from its middle.

Noise falls with the clip. The correlation of clipped residuals with a column falls by less: to 0.8 of that of normal
residuals as they are, where only signs are left.
"""

# Below this strength the noise of a median is as large as the spread of the target: the middle is that of its range.
_LEAST_STRENGTH = 200.0
# Pure budgets in units of those with a delta, at the least number of steps.
_PURE_STEPS = 20.0
# With a centred target the column of the intercept has this entry.
_CENTRED_CONSTANT = ONE // 8

NOISELESS_STEPS = 5000
"""Frank-Wolfe steps without privacy, where nothing limits them but time."""

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-9, float(1 << 14)
"""Radii for which derivatives fit 32-bit integers and scores keep their digits."""

SELECTION_LEFTOVER = LEFTOVER
"""Bound on the total variation distance of one sampled selection from its law, for the event of a step."""

# ---- Plans for two medians of a numeric target: where its middle is, and how far from it targets are.
# Everything is in units of a target mapped to [-1, 1]. The strength of a fit is :math:`M = n \mu`, half of that under
# replace-one: the number of records in units of the noise on a sum over them.


def signal_strength(budget: Budget, n_rows: int | None, relation: str) -> float:
    """The number of records in units of the noise on sums; infinite where it is private."""
    if n_rows is None or math.isinf(budget.epsilon):
        return math.inf
    mu = mu_of_budget(budget) if budget.delta > 0.0 else budget.epsilon / (2.0 * math.sqrt(_PURE_STEPS))
    return n_rows * mu / record_sum(1.0, "linf", relation).value


def radius_per_median(strength: float, n_columns: int) -> float:
    r"""The radius of an L1 ball in units of the median distance: :math:`(M / 180)^{1.3}`, and 40 at most.

    A ball that is too large for the number of steps that the budget allows is filled with noise. With few columns it is
    :math:`4 \sqrt d` at most, since no more than d coefficients share the target.
    """
    return max(min(math.pow(min(strength, 1e6) / 180.0, 1.3), 40.0, 4.0 * math.sqrt(n_columns)), 1e-3)


@dataclass(frozen=True, slots=True)
class TargetMedians:
    """The medians that are released before the first step, each for a ``share`` of the squared costs.

    Without a delta it is a share of epsilon. ``centred``: the median of the target is released, and taken from it.
    ``scales_radius``: the radius of the ball is in units of the median distance, as the residual clip is.
    """

    centred: bool
    scales_radius: bool
    share: float

    @classmethod
    def at(cls, strength: float, *, intercept: bool, scales_radius: bool) -> TargetMedians:
        """The medians for a strength: low M takes a larger share; no centre unless an intercept can make up for it."""
        share = min(max((20.0 / max(strength, 1.0)) ** 2, 0.01), 0.1)
        return cls(intercept and strength >= _LEAST_STRENGTH, scales_radius, share)

    def list_in(self, schedule: Schedule, others: float) -> None:
        r"""List the medians, for others whose ranges have ``others`` as sum of squares, or as sum without a delta.

        One selection of range e counts :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each.
        """
        total = others * self.share / (1.0 - self.share * (1 + self.centred))
        selection_range = math.sqrt(2.0 / math.pi * total) if schedule.budget.delta > 0.0 else total
        if self.centred:
            schedule.add("middle", "the median of the target", lambda b: ExponentialEvent(selection_range / b))
        what = "the median distance of the target from its middle"
        schedule.add("distance", what, lambda b: ExponentialEvent(selection_range / b))


# ---- Plans for Frank-Wolfe over an L1 ball.


@dataclass(frozen=True, slots=True)
class ClippedCount:
    """A count, clipped to a public range of integers and released with two-sided geometric noise.

    Ends that are not integers would show in the fractional part whether clipping was active. Sensitivity:
    ``data.sensitivity.clipped_count``. An infinite ``epsilon`` is for no noise.
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

    def list_in(self, schedule: Schedule) -> None:
        """List the count; a range of one number releases nothing."""
        if self.low < self.high:
            schedule.add(
                "count",
                f"a count of coefficients between {self.low:,} and {self.high:,}",
                lambda b: self.mechanism.event,
                noise="two-sided geometric",
                scale_at=lambda b: 1.0 / self.epsilon,
            )

    @property
    def mechanism(self) -> TwoSidedGeometric:
        """The noise, where the range has more than one number and epsilon is finite."""
        return TwoSidedGeometric(int(clipped_count(self.low, self.high, self.relation).value), self.epsilon)


@dataclass(frozen=True, slots=True)
class FrankWolfePlan(ScheduledPlan):
    """How many Frank-Wolfe steps will be made, and with how much noise.

    The schedule has "steps", the medians "middle" and "distance", and a "count", the last three where they are
    released. ``radius`` is that of the L1 ball for scaled features. Where medians come first, the clip of the loss
    is in units of their distance, and the radius may be. ``noise_scale`` is the Gumbel scale in units of the
    largest influence of one record under zero-out, 0 without privacy. ``counting`` counts the coefficients of the
    noiseless solution.
    """

    problem: Problem
    schedule: Schedule
    radius: float
    n_steps: int
    noise_scale: float
    counting: ClippedCount | None = None
    medians: TargetMedians | None = None

    @property
    def constant(self) -> int:
        """The entry of the intercept column in lattice units, 0 for none; small if the target is centred already."""
        if not self.problem.intercept:
            return 0
        # Little is left for it then, and steps along a column at the bound would drown all others.
        return _CENTRED_CONSTANT if self.medians is not None and self.medians.centred else ONE


def plan_frank_wolfe(
    budget: Budget,
    problem: Problem,
    *,
    radius: float,
    n_steps: int | str,
    auto_clip: bool = False,
    auto_radius: bool = False,
    count: ClippedCount | None = None,
) -> FrankWolfePlan:
    """Plan private Frank-Wolfe over an L1 ball.

    An infinite epsilon means no noise. ``n_steps="auto"`` is a function of public facts; a ``count`` shares the budget,
    and so do the medians of :func:`plan_target`, whose arguments ``auto_clip`` and ``auto_radius`` are.
    """
    problem, radius, medians = plan_target(budget, problem, radius, auto_clip, auto_radius)
    steps = choose_steps(n_steps, budget, problem, radius, medians)
    schedule = Schedule(budget)
    if medians is not None:
        medians.list_in(schedule, float(steps))
    list_steps(schedule, problem, 1.0, steps)
    if count is not None:
        count.list_in(schedule)
    schedule.calibrate()
    return FrankWolfePlan(
        problem, schedule, radius, steps, influences(schedule["steps"], problem.relation), count, medians
    )


def plan_target(
    budget: Budget, problem: Problem, radius: float, auto_clip: bool, auto_radius: bool
) -> tuple[Problem, float, TargetMedians | None]:
    """The problem, the radius and, with ``auto_clip`` and privacy, the medians of the target that scale both."""
    if not auto_clip or math.isinf(budget.epsilon):
        return problem, radius, None
    strength = signal_strength(budget, problem.n_rows, problem.relation)
    if auto_radius:
        radius = radius_per_median(strength, problem.n_columns)
    medians = TargetMedians.at(strength, intercept=problem.intercept, scales_radius=auto_radius)
    return replace(problem, loss=HuberLoss(CLIP_PER_MEDIAN)), radius, medians


def count_vertices(problem: Problem) -> int:
    """Vertices of the ball: a coefficient and a sign."""
    return 2 * problem.n_outputs * problem.n_columns


def list_steps(schedule: Schedule, problem: Problem, selection_range: float, n_steps: int) -> None:
    """List the steps; without a delta every vertex gets noise, and no sampler is off its law."""
    what = f"one of {count_vertices(problem):,} directions (a coefficient and a sign) per step"
    distance = SELECTION_LEFTOVER if schedule.budget.delta > 0.0 else 0.0
    list_selection(schedule, "steps", what, problem.relation, selection_range, n_steps, distance)


def list_selection(
    schedule: Schedule, name: str, what: str, relation: str, selection_range: float, count: int, distance: float = 0.0
) -> None:
    """List selections by gradient, each with a bounded range of ``selection_range / b`` at a common noise scale b."""
    sensitivity = gradient_scores(1.0, 1.0, relation)

    schedule.add(
        name,
        what,
        lambda b: ExponentialEvent(selection_range / b, distance),
        count,
        scale_at=lambda b: ExponentialMechanism(sensitivity, selection_range / b).scale / sensitivity.value,
    )


def influences(release: Release, relation: str) -> float:
    """The noise of a selection by gradient in units of the largest influence of one record under zero-out."""
    return release.scale * gradient_scores(1.0, 1.0, relation).value


def choose_steps(
    n_steps: int | str, budget: Budget, problem: Problem, radius: float, medians: TargetMedians | None
) -> int:
    """The number of steps of a problem; see :func:`number_of_steps`."""
    scaled = None if medians is None else problem.relation
    return number_of_steps(n_steps, budget, problem.n_rows, count_vertices(problem), radius, scaled)


def number_of_steps(
    n_steps: int | str, budget: Budget, n_rows: int | None, n_vertices: int, radius: float, scaled: str | None = None
) -> int:
    r"""The number of steps that is asked for, or for "auto" the one that does best, from public facts alone.

    :math:`T = 0.315\,(n \mu r / \log V)^{2/3}` for V vertices and a budget of :math:`\mu`-GDP, within 20 and 640: the
    form of Talwar, Thakurta and Zhang with a constant measured in research's ``study_steps``. Without a public
    number of records it is 80, the best single number of the same study; without a delta, 20.

    Where residuals are clipped by medians of the target, ``scaled`` is the neighbouring relation. Then noise is small
    against them whatever their units are, and :math:`T = 0.27\,M / \log V` for a :func:`signal_strength` of M, within
    the same ends (research's ``study_siblings``).
    """
    if n_steps != "auto":
        return int(n_steps)
    if math.isinf(budget.epsilon):
        return NOISELESS_STEPS
    if n_rows is None:
        return 80
    if scaled is not None:
        steps = 0.27 * signal_strength(budget, n_rows, scaled) / math.log(n_vertices)
    else:
        signal = n_rows * mu_of_budget(budget) * radius / math.log(n_vertices)
        steps = 0.315 * math.pow(signal, 2.0 / 3.0)
    return round(min(max(steps, 20.0), 640.0))
