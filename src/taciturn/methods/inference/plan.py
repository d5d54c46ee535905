"""Plans for fits of the default model with standard errors: which records are read for what, and what each part costs.

Columns that the data choose need records of their own. One half of the records chooses columns, starting coefficients
and clips; the other half makes one or two Newton steps. Neighbours differ in one of the halves, so that each may
spend the whole budget. Columns that the caller fixed are known without the data, and all records do both.

A step releases the information matrix and the gradient, the last one the matrix of scores too, the middle of the
sandwich.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from taciturn.core.errors import ParameterError
from taciturn.methods.schedule import Problem
from taciturn.methods.sparse.plan import LEAST_NONZERO, SparsePlan, plan_sparse
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event, ParallelEvent
from taciturn.privacy.filter import PrivacyFilter
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

MOST_COLUMNS = 500
"""Most columns of a model with standard errors: matrices of more are noise, and cost too much time."""

CLIP_SHARE = 0.06
"""Share of the first half's budget for the clips of the second half."""

SCORE_SHARE = 0.15
"""Share of the steps' budget for the matrix of scores."""


class StepShares(NamedTuple):
    """Shares of the steps' budget for the information matrix and for the gradient of one step."""

    information: float
    gradient: float


SQUARED_STEP = StepShares(0.25, 0.6)
FIRST_STEP = StepShares(0.12, 0.13)
"""Of a loss whose curvature depends on where it is taken, so that the last step starts nearer to its end."""
CURVED_STEP = StepShares(0.2, 0.4)

# Share of the start, clips included, where all records do both.
_START_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Tuned constants of a fit."""

    # ---- the Newton step
    # Derivatives of short rows are clipped at this many times what those of long rows are.
    short_row: float = 8.0
    most_residual: float = 16.0
    # Steps without noise, and when to end: convergence is quadratic.
    noiseless_steps: int = 50
    least_step: float = 1e-12
    # Without noise a smaller eigenvalue, as a share of the largest, is rounding.
    least_eigenvalue: float = 1e-9

    # ---- clips
    # Quantiles of row norms and of residuals that clips are, and how far below them noise in ranks may take them.
    quantile: float = 0.98
    least_quantile: float = 0.7
    ranks: float = 8.0
    # The residual clip opens until the noise in the gradient is this share of the sampling error, and that in the
    # matrix of scores this share of its entries; and not beyond a multiple of the quantile, which few residuals reach.
    # What lies beyond the clip is a bias that no standard error has: errors of counts, costs and durations are skewed.
    noise_per_error: float = 1.0
    noise_per_score: float = 0.3
    most_room: float = 2.0
    # With less room than this the tails of residuals are long for the budget, and there are no standard errors.
    least_room: float = 1.3
    # Deviation of a normal variable over its median magnitude.
    deviation_per_median: float = 1.4826
    least_clip: float = 2.0**-8
    most_clip: float = 4.0


TUNING = _Tuning()


@dataclass(frozen=True, slots=True)
class InferencePlan:
    """Public facts of a fit with standard errors; a step that reads ``n_step_rows`` records follows ``start``.

    The start is fitted to the first half of the records, or without a ``split`` to all, where columns are fixed.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    start: SparsePlan
    split: bool
    n_step_rows: int

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""
        return self.start.budget

    @property
    def start_share(self) -> float:
        """Share of the filter that the start is paid from, clips included."""
        return 1.0 if self.split else _START_SHARE

    @property
    def cost(self) -> Event:
        """What everything costs together: one filter, since a record is in one half and halves cost the same."""
        first, second = (budget.event for budget in self.open_filters())
        return first if first == second else ParallelEvent((first, second))

    def open_filters(self) -> tuple[PrivacyFilter, PrivacyFilter]:
        """What start and step draw on: a whole budget for each half, or one for both."""
        # Three symmetric matrices and two gradients at most.
        width = min(self.start.problem.n_features, MOST_COLUMNS) + 1
        step = (3 * width * (width + 1) // 2 + 2 * width) * DISTANCE_PER_VALUE
        first = self.start.open_filter(step)
        # Halves announce the same distance, so that they cost the same.
        return first, (self.start.open_filter(step) if self.split else first)


def plan_inference(
    budget: Budget, problem: Problem, *, n_nonzero: int | None, columns: tuple[int, ...] | None, **settings: Any
) -> InferencePlan:
    """Plan a fit with standard errors; :func:`~taciturn.methods.sparse.plan.plan_sparse` has the same parameters."""
    n_rows, n_features = problem.n_records, problem.n_features
    if columns is not None:
        width, fixed = len(columns), True
    else:
        width = min(MOST_COLUMNS, n_features) if n_nonzero is None else min(n_nonzero, n_features)
        fixed = width == n_features and (n_nonzero is not None or n_features <= LEAST_NONZERO)
    if width > MOST_COLUMNS:
        raise ParameterError(
            "inference", True, f"at most {MOST_COLUMNS} columns (got {width:,})", "give fewer columns, or n_nonzero"
        )
    if not fixed and n_rows < 2:
        raise ParameterError(
            "inference", True, f"at least two records to split (got n_samples={n_rows})", "fix columns or add records"
        )
    n_first = n_rows if fixed else n_rows // 2
    start = plan_sparse(budget, replace(problem, n_rows=n_first), n_nonzero=n_nonzero, columns=columns, **settings)
    return InferencePlan(start, not fixed, n_rows if fixed else n_rows - n_first)
