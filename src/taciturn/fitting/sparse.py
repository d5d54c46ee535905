r"""The default model, release by release.

Everything that depends on the data is a sum over records which is released with noise before it is used: quantiles by
the exponential mechanism, means, gradients and Gram matrices with Gaussian noise, columns by noisy correlations, the
number of nonzero coefficients by a private comparison. Every release draws on one privacy filter, and later ones may
depend on earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray
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
from taciturn.planning.sparse import SparsePlan
from taciturn.sources import Source

__all__ = ["SparseResult", "run_sparse"]

# Shares of the selection phase in what is left for both.
_SELECTION_SHARE = 0.5
_DENSE_SELECTION_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class SparseResult:
    """What a fit releases: the coefficients, in mapped units and the intercept last, and the steps of all descents.

    ``releases`` are what the privacy filter paid for, for the certificate.
    """

    coefficients: FloatArray
    n_steps: int
    releases: tuple[Release, ...]


def run_sparse(plan: SparsePlan, source: Source, stream: Stream) -> SparseResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    return _SparseRun(plan, source, stream).run()


class _SparseRun:
    """One fit of the default model."""

    def __init__(self, plan: SparsePlan, source: Source, stream: Stream) -> None:
        self._plan, self._source, self._stream = plan, source, stream
        self._budget = plan.open_filter()
        self._releases = Releases(self._budget, plan.relation, source, stream.spawn("releases"))

    def run(self) -> SparseResult:
        """Spend the budget and return the model."""
        plan, releases = self._plan, self._releases
        if plan.strategy.method == "constant":
            return self._constant()
        target_mean, start = release_target_mean(plan, releases, self._budget.mu)
        size = residual_size(plan, releases, target_mean, self._budget.mu)
        columns, final = screen_columns(plan, releases, target_mean, start, size)
        centre = column_centre(plan, releases, columns, self._budget.mu)
        n_columns = plan.n_features if columns is None else columns.size
        model = ColumnModel(columns, centre, np.zeros((plan.n_outputs, n_columns)), start, size)
        descent = Descent(plan, self._source, releases, self._stream, target_mean, self._budget.mu)
        later = RECALIBRATION_SHARE * recalibrates(plan, self._budget.mu)
        if plan.strategy.method == "two-phase" and not final:
            later += SIZE_SHARE * plan.chooses_n_nonzero
            phase = _DENSE_SELECTION_SHARE if plan.strategy.n_screened is None else _SELECTION_SHARE
            model = descent.run(model, phase * (self._budget.remaining - later), "selection phase", selects=True)
            if plan.chooses_n_nonzero:
                model = choose_size(plan, releases, descent, model, start)
                later -= SIZE_SHARE
                if not model.n_columns:
                    return self._constant()
            else:
                model = choose_columns(model, plan.strategy.n_nonzero)
        comparison = shrinkage_share(plan, self._budget.mu)
        model = descent.run(model, self._budget.remaining - comparison - later, "estimation phase")
        if comparison:
            model = choose_shrinkage(plan, releases, descent, model, comparison)
        if later:
            model = recalibrate(plan, releases, descent, model, self._budget.remaining)
        return self._result(model, target_mean)

    def _constant(self) -> SparseResult:
        """No column: the whole budget goes to the mean of the target."""
        plan = self._plan
        coefficients = np.zeros((plan.n_outputs, plan.n_features + 1))
        coefficients[:, -1] = release_constant(plan, self._releases, self._budget.remaining)
        return SparseResult(coefficients, 0, list_spends(self._budget.spent()))

    def _result(self, model: ColumnModel, target_mean: int) -> SparseResult:
        plan = self._plan
        columns = slice(plan.n_features) if model.columns is None else model.columns
        coefficients = np.zeros((plan.n_outputs, plan.n_features + 1))
        coefficients[:, columns] = model.weights
        if plan.intercept:
            coefficients[:, -1] = model.constants + target_mean / ONE
        if model.centre is not None:
            coefficients[:, -1] -= model.weights @ model.centre / ONE
        return SparseResult(coefficients, model.n_steps, list_spends(self._budget.spent()))
