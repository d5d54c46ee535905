r"""Plans of private searches: what one trial may spend, and how many trials there are.

A trial draws a candidate from a public law, fits it to one part of the records, and scores it on the other part. Each
of the two costs as much as one Gaussian release of parameter :math:`\mu`; neighbours differ in one part, so that a
trial costs that too. Only the best of a random number of trials is released
(:class:`~taciturn.privacy.events.RepeatAndSelectEvent`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from taciturn.core.errors import ParameterError
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import calibrate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import Event, NotPrivateEvent, RepeatAndSelectEvent
from taciturn.privacy.gdp import gaussian_cost

LAWS = {"logarithmic": 0.0, "geometric": 1.0}
"""Shapes of the laws of the number of trials."""

# The samplers of a trial are no farther from their laws than this, which leaves room for some 2**30 values.
_TRIAL_DISTANCE = 2.0**-85
# The number of trials as sampled is no farther from its law, the trials beyond the last one included.
_NUMBER_DISTANCE = 2.0**-90
_BISECTIONS = 14


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search may spend: a ``noise_multiplier`` of 1 / mu for each trial, infinite budgets apart.

    Trials follow the law of ``shape`` with a ``mean``.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    mean: float
    shape: float
    noise_multiplier: float

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return math.isfinite(self.budget.epsilon)

    @property
    def cost(self) -> Event:
        """What the best trial costs."""
        return _event(self.noise_multiplier, self.mean, self.shape) if self.private else NotPrivateEvent()

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is released, for the certificate."""
        what = f"the best of a random number of trials, {self.mean:g} on average: its setting, its model and its score"
        noise = "Gaussian" if self.private else "none"
        return (Release(what, noise, self.noise_multiplier if self.private else 0.0, self.cost),)


def plan_search(budget: Budget, mean: float, law: str) -> SearchPlan:
    """The plan of a search that spends a whole budget on a mean number of trials."""
    shape = LAWS[law]
    if math.isinf(budget.epsilon):
        return SearchPlan(budget, mean, shape, 0.0)
    return SearchPlan(budget, mean, shape, calibrate(budget, lambda scale: _event(scale, mean, shape)))


def _event(noise_multiplier: float, mean: float, shape: float) -> RepeatAndSelectEvent:
    # Trials are exchanged for their laws one after the other, as many as are expected.
    return RepeatAndSelectEvent(noise_multiplier, mean, shape, mean * _TRIAL_DISTANCE + _NUMBER_DISTANCE)


def largest_epsilon(plan: SearchPlan, price: Callable[[float], tuple[Event, bool] | None]) -> float | None:
    """The largest epsilon, found by bisection, at which a part of a trial costs no more than a trial may.

    ``price`` gives the events of the part at an epsilon, and whether they are in order; None if it is refused. The
    answer is None if that is so at every epsilon, or if its cost is none that a trial can pay.
    """

    def payable(epsilon: float) -> bool:
        found = price(epsilon)
        if found is None:
            return False
        squared, distance = gaussian_cost(found[0], ordered=found[1])
        return squared <= plan.noise_multiplier**-2.0 and distance <= _TRIAL_DISTANCE

    # A fit that is calibrated by its Gaussian parameter can have nearly all of it.
    high = _epsilon_of(plan)
    if payable(high):
        return high
    low = high / 16.0
    if not payable(low):
        return None
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if payable(middle) else (low, middle)
    return low


def _epsilon_of(plan: SearchPlan) -> float:
    from taciturn.privacy.gdp import epsilon_of_mu

    # What is kept back of delta, and the distance of samplers, take a little of it.
    return epsilon_of_mu(1.0 / plan.noise_multiplier, plan.budget.delta) * (1.0 - 1e-6)


def check_law(law: str, mean: float) -> None:
    """Raise ParameterError for a law of the number of trials that there is none of."""
    if law not in LAWS:
        raise ParameterError("law", law, " or ".join(map(repr, LAWS)), "choose one")
    if not 1.0 < mean <= 1000.0:
        raise ParameterError("mean_trials", mean, "a number above 1 and up to 1,000", "give one, such as 10")
