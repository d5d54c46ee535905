"""A method as somebody adds it: a plan, which sees no data, a run, and an estimator."""

from dataclasses import dataclass

import numpy as np

from taciturn.core.validation import ONE
from taciturn.events import GaussianEvent
from taciturn.losses import HuberLoss
from taciturn.methods.base import PrivateRegressor
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.releases import gradient_noise
from taciturn.methods.schedule import Problem, Schedule, ScheduledPlan
from taciturn.methods.sums import GradientSum
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget


@dataclass(frozen=True, slots=True)
class MarginalPlan(ScheduledPlan):
    problem: Problem
    schedule: Schedule


def run_marginal(plan, source, stream):
    """Return minus the mean gradient of rows of norm one at zero, which goes with the target."""
    problem, weight, noise = plan.problem, ONE, None
    if plan.schedule.private:
        weight, noise = gradient_noise(problem.loss, ONE * ONE, problem.relation, plan.schedule.multiplier("sum"))
    clipping = Clipping(None, problem.n_features, problem.loss, 1, ONE * ONE, 0, weight, 1.0)
    sums = source.total(GradientSum(clipping, np.zeros((1, problem.n_features))))
    released = sums if noise is None else noise.release(sums, stream.spawn("sums"))
    return np.column_stack((-released / (float(ONE) * weight * problem.n_records), np.zeros(1)))


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalRegressor(PrivateRegressor):
    """Coefficients that are covariances with the target."""

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    residual_clip: float = 1.0
    fit_intercept: bool = True
    invalid: str = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def check_parameters(self):
        super().check_parameters()
        self._require_public_count()
        self._require_delta()

    def _plan(self, facts):
        schedule = Schedule(Budget(self.epsilon, self.delta))
        schedule.add("sum", "a sum of rows", GaussianEvent)
        problem = Problem(HuberLoss(1.0), self.relation, facts.n_records, facts.n_features)
        return MarginalPlan(problem, schedule.calibrate())

    def _run(self, plan, source, stream):
        return run_marginal(plan, source, stream)
