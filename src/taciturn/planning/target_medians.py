r"""Plans for two medians of a numeric target: where its middle is, and how far from it targets are.

Everything is in units of a target mapped to [-1, 1]. The strength of a fit is :math:`M = n \mu`, half of that under
replace-one: the number of records in units of the noise on a sum over them. Constants are measured in
``benchmarks/study_siblings.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.accounting import Budget
from taciturn.accounting.gdp import mu_of_budget
from taciturn.data.sensitivity import record_sum
from taciturn.events import ExponentialEvent
from taciturn.planning.calibrated import PlannedRelease

__all__ = ["CLIP_PER_MEDIAN", "TargetMedians", "radius_per_median", "signal_strength"]

CLIP_PER_MEDIAN = 0.35
"""Residuals are clipped at this share of the median distance of the target from its middle.

Noise falls with the clip. The correlation of clipped residuals with a column falls by less: to 0.8 of that of normal
residuals as they are, where only signs are left.
"""

# Below this strength the noise of a median is as large as the spread of the target: the middle is that of its range.
_LEAST_STRENGTH = 200.0
# Pure budgets in units of those with a delta, at the least number of steps.
_PURE_STEPS = 20.0


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
    """The medians that are released before the first step.

    Parameters
    ----------
    centred : bool
        Whether the median of the target is released, and taken from it.
    scales_radius : bool
        Whether the radius of the ball is in units of the median distance, as the residual clip is.
    share : float
        What each of them costs, as a share of the sum of squared costs, or of epsilon without a delta.
    """

    centred: bool
    scales_radius: bool
    share: float

    @classmethod
    def at(cls, strength: float, *, intercept: bool, scales_radius: bool) -> TargetMedians:
        """The medians that a strength allows. Their ranks are known to a few per cent, which takes more where M is low.

        Without an intercept nothing could make up for a middle that was taken from the target.
        """
        share = min(max((20.0 / max(strength, 1.0)) ** 2, 0.01), 0.1)
        return cls(intercept and strength >= _LEAST_STRENGTH, scales_radius, share)

    def planned(self, budget: Budget, others: float) -> tuple[PlannedRelease, ...]:
        r"""The releases, for others whose ranges have ``others`` as sum of squares, or as sum without a delta.

        One selection of range e counts :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each.
        """
        words = ("the median of the target",) * self.centred + ("the median distance of the target from its middle",)
        total = others * self.share / (1.0 - self.share * len(words))
        selection_range = math.sqrt(2.0 / math.pi * total) if budget.delta > 0.0 else total
        return tuple(PlannedRelease(what, "Gumbel", lambda b: ExponentialEvent(selection_range / b)) for what in words)
