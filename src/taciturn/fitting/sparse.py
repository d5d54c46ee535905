r"""The default model, release by release.

Everything that depends on the data is a sum over records which is released with noise before it is used: quantiles by
the exponential mechanism, means, gradients and Gram matrices with Gaussian noise, columns by noisy correlations, the
number of nonzero coefficients by a private comparison. Every release draws on one privacy filter, and later ones may
depend on earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.accounting import PrivacyFilter
from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.recalibration import RECALIBRATION_SHARE, recalibrate, recalibrates
from taciturn.fitting.releases import Releases, list_spends
from taciturn.fitting.shrinkage import choose_shrinkage, shrinkage_share
from taciturn.fitting.sparse_choices import (
    column_centre,
    release_constant,
    release_target_mean,
    residual_size,
    screen_columns,
)
from taciturn.fitting.sparse_columns import SIZE_SHARE, choose_columns, choose_size
from taciturn.fitting.sparse_descent import ColumnModel, Descent
from taciturn.fitting.suspicions import Suspicion
from taciturn.fitting.threads import one_thread
from taciturn.planning.sparse import SparsePlan
from taciturn.sources import Source

__all__ = ["SparseResult", "SparseRun", "run_sparse", "spread_coefficients"]

# Shares of the selection phase in what is left for both.
_SELECTION_SHARE = 0.5
_DENSE_SELECTION_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class SparseResult:
    """What a fit releases: the coefficients, in mapped units and the intercept last, and the steps of all descents.

    ``releases`` are what the privacy filter paid for, for the certificate, and ``suspicions`` what they say against
    bounds or classes.
    """

    coefficients: FloatArray
    n_steps: int
    releases: tuple[Release, ...]
    suspicions: tuple[Suspicion, ...] = ()


@one_thread()
def run_sparse(plan: SparsePlan, source: Source, stream: Stream) -> SparseResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    budget = plan.open_filter()
    run = SparseRun(plan, source, stream, budget)
    model, suspicions = run.fit(), run.releases.suspicions
    releases = list_spends(budget.spent(), suspicions=suspicions)
    return SparseResult(spread_coefficients(plan, model), model.n_steps, releases, suspicions)


def spread_coefficients(plan: SparsePlan, model: ColumnModel) -> FloatArray:
    """The coefficients of a model in mapped units, over all features and the intercept."""
    columns = slice(plan.n_features) if model.columns is None else model.columns
    coefficients = np.zeros((plan.n_outputs, plan.n_features + 1))
    coefficients[:, columns] = model.weights
    if plan.intercept:
        coefficients[:, -1] = model.constants + model.target_mean / ONE
    if model.centre is not None:
        coefficients[:, -1] -= model.weights @ model.centre / ONE
    return coefficients


class SparseRun:
    """One fit of the default model to the records of a source, paid for by a privacy filter."""

    def __init__(self, plan: SparsePlan, source: Source, stream: Stream, budget: PrivacyFilter) -> None:
        self.plan, self._budget = plan, budget
        self.releases = Releases(budget, plan.relation, source, stream.spawn("releases"))
        self.descent = Descent(plan, source, self.releases, stream, budget.mu)

    def fit(self, keep: float = 0.0) -> ColumnModel:
        """Spend the budget but for a share that is kept, and return the model."""
        plan, releases = self.plan, self.releases
        if plan.strategy.method == "constant":
            # A Newton step that follows needs to know how large residuals are.
            return self._constant(keep, residual_size(plan, releases, 0, self._budget.mu) if keep else 1.0)
        target_mean, start = release_target_mean(plan, releases, self._budget.mu)
        size = residual_size(plan, releases, target_mean, self._budget.mu)
        columns, final = self._columns(target_mean, start, size)
        centre = column_centre(plan, releases, columns, self._budget.mu)
        n_columns = plan.n_features if columns is None else columns.size
        model = ColumnModel(columns, centre, np.zeros((plan.n_outputs, n_columns)), start, target_mean, size)
        descent = self.descent
        recalibration = RECALIBRATION_SHARE * recalibrates(plan, self._budget.mu)
        later = keep + recalibration
        if plan.strategy.method == "two-phase" and not final:
            phase = _DENSE_SELECTION_SHARE if plan.strategy.n_screened is None else _SELECTION_SHARE
            share = phase * (self._budget.remaining - (later + SIZE_SHARE * plan.chooses_n_nonzero))
            model = descent.run(model, share, "selection phase", selects=True)
            if plan.chooses_n_nonzero:
                model = choose_size(plan, releases, descent, model, start)
                if not model.n_columns:
                    return self._constant(keep, size)
            else:
                model = choose_columns(model, plan.strategy.n_nonzero)
        # What is kept is for a Newton step, which starts from weights without such a bias.
        comparison = 0.0 if keep else shrinkage_share(plan, self._budget.mu)
        model = descent.run(model, self._budget.remaining - comparison - later, "estimation phase")
        if comparison:
            model = choose_shrinkage(plan, releases, descent, model, comparison)
        if recalibration:
            model = recalibrate(plan, releases, descent, model, self._budget.remaining - keep)
        return model

    def _columns(self, target_mean: int, start: FloatArray, size: float) -> tuple[IndexArray | None, bool]:
        """Columns that go on, None for all, and whether they are already those of the model."""
        if self.plan.columns is not None:
            return np.array(self.plan.columns, dtype=np.intp), True
        return screen_columns(self.plan, self.releases, target_mean, start, size)

    def _constant(self, keep: float, size: float) -> ColumnModel:
        """No column: the budget goes to the mean of the target."""
        plan = self.plan
        constants = release_constant(plan, self.releases, self._budget.remaining - keep)
        return ColumnModel(np.zeros(0, dtype=np.intp), None, np.zeros((plan.n_outputs, 0)), constants, size=size)
