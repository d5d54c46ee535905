"""Plans for Frank-Wolfe over an L1 ball."""

from __future__ import annotations

import math
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
from taciturn.data.sensitivity import clipped_count, gradient_scores
from taciturn.events import ComposedEvent, ExponentialEvent, NotPrivateEvent
from taciturn.fitting.frank_wolfe import Run, open_run
from taciturn.fitting.frank_wolfe_task import SELECTION_LEFTOVER
from taciturn.losses import Loss
from taciturn.mechanisms import ExponentialMechanism, TwoSidedGeometric

__all__ = [
    "NOISELESS_STEPS",
    "ClippedCount",
    "FrankWolfePlan",
    "frank_wolfe_steps",
    "plan_frank_wolfe",
    "step_distance",
]

NOISELESS_STEPS = 5000
"""Frank-Wolfe steps without privacy, where nothing limits them but time."""


@dataclass(frozen=True, slots=True)
class ClippedCount:
    """A count, clipped to a public range of integers and released with two-sided geometric noise.

    Ends that are not integers would show in the fractional part whether clipping was active. Sensitivity:
    ``data.sensitivity.clipped_count``.

    Parameters
    ----------
    low, high : int
        The public range.
    relation : str
        The neighbouring relation.
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
    def releases(self) -> tuple[Release, ...]:
        """For the certificate; a range of one number releases nothing."""
        what = f"a count of coefficients between {self.low:,} and {self.high:,}"
        if self.low == self.high:
            return ()
        if math.isinf(self.epsilon):
            return (Release(what, "none", 0.0, NotPrivateEvent()),)
        return (Release(what, "two-sided geometric", 1.0 / self.epsilon, self._mechanism.event),)

    @property
    def _mechanism(self) -> TwoSidedGeometric:
        return TwoSidedGeometric(int(clipped_count(self.low, self.high, self.relation).value), self.epsilon)

    def release(self, exact: int, stream: Stream) -> int:
        """The noisy count, clipped again."""
        clipped = min(max(exact, self.low), self.high)
        if self.low < self.high and not math.isinf(self.epsilon):
            clipped = min(max(int(self._mechanism.release(clipped, stream)), self.low), self.high)
        return clipped


@dataclass(frozen=True, slots=True)
class FrankWolfePlan:
    """How many Frank-Wolfe steps will be made, and with how much noise.

    Parameters
    ----------
    budget : Budget
        What all steps together may cost.
    loss : Loss
        The loss of one record.
    radius : float
        Radius of the L1 ball in units of scaled features.
    n_steps : int
        Number of steps.
    noise_scale : float
        Gumbel scale in units of the largest influence of one record under zero-out; 0 without privacy.
    relation : str
        The neighbouring relation.
    n_rows : int or None
        The public number of records, if there is one.
    releases : tuple of Release
        For the certificate, in the order of execution.
    counting : ClippedCount or None
        How the coefficients of the noiseless solution are counted, where they are.
    """

    ordered: ClassVar[bool] = True

    budget: Budget
    loss: Loss
    radius: float
    n_steps: int
    noise_scale: float
    relation: str
    n_rows: int | None
    releases: tuple[Release, ...]
    counting: ClippedCount | None = None

    def solve(self, design: Design, target: IntArray, n_outputs: int, stream: Stream) -> FloatArray:
        """The coefficients in mapped units, one row per output."""
        run = self._open(design, target, n_outputs, self.n_steps, self.noise_scale)
        run.advance_to(self.n_steps, stream)
        return run.coefficients().reshape(n_outputs, -1)

    def _open(self, design: Design, target: IntArray, n_outputs: int, n_steps: int, noise_scale: float) -> Run:
        # The fast samplers have a distance from their law, which a delta of zero has no room for.
        plainly = self.budget.delta == 0.0 and noise_scale > 0.0
        return open_run(
            design,
            target,
            self.loss,
            self.radius,
            n_steps,
            n_outputs,
            noise_scale,
            self.n_rows,
            relation=self.relation,
            plainly=plainly,
        )

    def count(self, design: Design, target: IntArray, n_outputs: int, stream: Stream) -> int:
        """The noisy, clipped number of features that the noiseless solution uses."""
        if self.counting is None:
            raise TypeError("this plan does not count")
        run = self._open(design, target, n_outputs, NOISELESS_STEPS, 0.0)
        run.advance_to(NOISELESS_STEPS, stream)
        used = run.coefficients().reshape(n_outputs, -1)[:, : design.n_features].any(axis=0)
        return self.counting.release(int(np.count_nonzero(used)), stream)


def plan_frank_wolfe(
    budget: Budget,
    loss: Loss,
    *,
    radius: float,
    relation: str,
    n_rows: int | None,
    n_vertices: int,
    n_steps: int | str,
    count: ClippedCount | None = None,
) -> FrankWolfePlan:
    """Plan private Frank-Wolfe over an L1 ball.

    Parameters
    ----------
    budget : Budget
        For all releases together; an infinite epsilon means no noise.
    loss : Loss
        The loss of one record.
    radius : float
        Radius of the ball in units of scaled features.
    relation : str
        The neighbouring relation.
    n_rows : int or None
        The public number of records, if there is one.
    n_vertices : int
        How many vertices compete in a step.
    n_steps : int or "auto"
        Number of steps; "auto" is a function of public facts.
    count : ClippedCount, default=None
        A count that shares the budget.
    """
    others = () if count is None else count.releases
    # What is said of a private number of records may guide the number of steps; arithmetic cannot rely on it.
    known = None if relation == "add-remove" else n_rows
    what = f"one of {n_vertices:,} directions (a coefficient and a sign) per step"
    if math.isinf(budget.epsilon):
        steps = NOISELESS_STEPS if n_steps == "auto" else int(n_steps)
        exact = Release(what, "none", 0.0, NotPrivateEvent(), steps)
        return FrankWolfePlan(Budget(math.inf, 0.0), loss, radius, steps, 0.0, relation, known, (exact, *others), count)
    steps = frank_wolfe_steps(budget, n_rows, n_vertices, radius) if n_steps == "auto" else int(n_steps)
    sensitivity = gradient_scores(1.0, 1.0, relation)
    after = ComposedEvent(tuple(release.total for release in others))
    distance = step_distance(budget)
    scale = calibrate(budget, lambda b: ExponentialEvent(1.0 / b, distance) * steps + after)
    selection = ExponentialMechanism(sensitivity, 1.0 / scale)
    cost = ExponentialEvent(1.0 / scale, distance)
    release = Release(what, "Gumbel", selection.scale / sensitivity.value, cost, steps)
    return FrankWolfePlan(budget, loss, radius, steps, selection.scale, relation, known, (release, *others), count)


def step_distance(budget: Budget) -> float:
    """How far the sampled direction of a step may be from its law; without a delta all vertices get noise instead."""
    return SELECTION_LEFTOVER if budget.delta > 0.0 else 0.0


def frank_wolfe_steps(budget: Budget, n_rows: int | None, n_vertices: int, radius: float) -> int:
    r"""The number of steps that does best, from public facts alone.

    :math:`T = 0.315\,(n \mu r / \log V)^{2/3}` for V vertices and a budget of :math:`\mu`-GDP, within 20 and 640: the
    form of Talwar, Thakurta and Zhang with a constant measured in ``benchmarks/study_steps.py``. Without a public
    number of records it is 80, the best single number of the same study; without a delta, 20.
    """
    if n_rows is None:
        return 80
    signal = n_rows * mu_of_budget(budget) * radius / math.log(n_vertices)
    return round(min(max(0.315 * math.pow(signal, 2.0 / 3.0), 20.0), 640.0))
