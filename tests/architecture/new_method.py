"""A method as somebody adds it: a plan, which sees no data, a run, and an estimator."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn.core.validation import ONE
from taciturn.events import GaussianEvent
from taciturn.losses import HuberLoss
from taciturn.methods.base import PrivateRegressor
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.releases import ListedReleases, PlannedRelease, calibrate_releases, gradient_noise
from taciturn.methods.sums import GradientSum
from taciturn.privacy.budget import Budget
from taciturn.privacy.claim import Release


@dataclass(frozen=True, slots=True)
class MarginalPlan(ListedReleases):
    arithmetic: ClassVar[str] = "exact"
    ordered: ClassVar[bool] = True
    budget: Budget
    relation: str
    n_rows: int
    n_features: int
    releases: tuple[Release, ...]


def plan_marginal(budget, relation, n_rows, n_features):
    releases = calibrate_releases(budget, (PlannedRelease("a sum of rows", "Gaussian", GaussianEvent),))
    spent = budget if math.isfinite(budget.epsilon) else Budget(math.inf, 0.0)
    return MarginalPlan(spent, relation, n_rows, n_features, releases)


def run_marginal(plan, source, stream):
    """Return minus the mean gradient of rows of norm one at zero, which goes with the target."""
    loss, weight, noise = HuberLoss(1.0), ONE, None
    if math.isfinite(plan.budget.epsilon):
        weight, noise = gradient_noise(loss, ONE * ONE, plan.relation, plan.releases[0].event.noise_multiplier)
    clipping = Clipping(None, plan.n_features, loss, 1, ONE * ONE, 0, weight, 1.0)
    sums = source.total(GradientSum(clipping, np.zeros((1, plan.n_features))))
    released = sums if noise is None else noise.release(sums, stream.spawn("sums"))
    return np.column_stack((-released / (float(ONE) * weight * plan.n_rows), np.zeros(1)))


class MarginalRegressor(PrivateRegressor):
    """Coefficients that are covariances with the target."""

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, relation="zero-out", n_public=None, x_bound=None, y_bounds=None,
        residual_clip=1.0, fit_intercept=True, invalid="raise", account=None, random_state=None,
    ):  # fmt: skip
        self.epsilon, self.delta, self.relation, self.n_public = epsilon, delta, relation, n_public
        self.x_bound, self.y_bounds, self.residual_clip = x_bound, y_bounds, residual_clip
        self.fit_intercept, self.invalid, self.account = fit_intercept, invalid, account
        self.random_state = random_state

    def check_parameters(self):
        super().check_parameters()
        self._require_public_count()
        self._require_delta()

    def _plan(self, facts):
        return plan_marginal(Budget(self.epsilon, self.delta), self.relation, facts.stated_records, facts.n_features)

    def _run(self, plan, source, stream):
        return run_marginal(plan, source, stream)
