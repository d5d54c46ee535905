"""Plans for fits of hazards: shares of the budget for each release, from public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.methods.inference.plan import MOST_COLUMNS
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event
from taciturn.privacy.filter import PrivacyFilter
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

MOST_INTERVALS = 100
"""Most intervals of a model: each has a hazard of its own, which the records have to tell."""

# A smaller Gaussian parameter needs noise that sums in 64 bits have no room for.
_LEAST_MU = 1e-5
# With less of the number of records times the Gaussian parameter a fit may be worse than a constant hazard.
_LEAST_INFORMATION = 40.0


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Tuned constants, chosen by the coverage of simulated intervals."""

    # ---- shares of the budget: the first hazards, quantiles, coordinates, the matrix of scores
    exit_share: float = 0.04
    quantile_share: float = 0.007
    gram_shares: tuple[float, float] = (0.012, 0.05)
    score_share: float = 0.08
    # Of what is left for three Newton steps, for matrices and gradients; those of the last step count.
    matrices: tuple[float, ...] = (0.06, 0.08, 0.20)
    gradients: tuple[float, ...] = (0.05, 0.11, 0.50)

    # ---- whitening, as for other models with standard errors
    wanted_gain: float = 8.0
    enough_for_two: float = 25.0
    enough_for_three: float = 2.0
    gain_per_room: float = 8.0
    most_room: float = 3.0
    whitening_quantile: float = 0.7
    length_grid: tuple[float, float] = (0.02, 20.0)

    # ---- bounds on scores and information: quantiles of what rows could add, and the space beyond
    bound_quantile: float = 0.9
    trace_room: float = 1.3
    bound_grid: tuple[float, float] = (2.0**-6, 2.0**12)
    grid_ratio: float = 1.06
    # The norm of the contrasts of intervals, and how far their information is to be above its noise: intervals with
    # fewer events share a contrast.
    contrast_norm: float = 1.5
    contrast_clarity: float = 2.5

    # ---- steps: the longest one in margins, and from where on the last one leaves the error unknown
    longest_step: float = 1.5
    longest_last_step: float = 0.5
    most_left_out: float = 0.25

    # ---- estimability
    most_allowance: float = 0.5
    least_degrees: float = 3.0
    least_clarity: float = 1.0
    largest_log_hazards: float = 3.0

    # ---- without noise
    noiseless_steps: int = 200
    least_step: float = 1e-10
    least_eigenvalue: float = 1e-9
    least_events: float = 1e-12


TUNING = _Tuning()


@dataclass(frozen=True, slots=True)
class SurvivalPlan:
    """Public facts of a fit of hazards in so many intervals, for the columns that the caller fixed (None: all)."""

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"
    n_outputs: ClassVar[int] = 1
    intercept: ClassVar[bool] = False
    split: ClassVar[bool] = False

    budget: Budget
    relation: str
    n_step_rows: int
    n_features: int
    n_intervals: int
    inference: bool
    columns: tuple[int, ...] | None = None

    @property
    def n_columns(self) -> int:
        """Columns of the model."""
        return self.n_features if self.columns is None else len(self.columns)

    @property
    def size(self) -> int:
        """Coefficients, and one logarithm of a hazard per interval."""
        return self.n_columns + self.n_intervals

    @property
    def enough_records(self) -> int:
        """With fewer of them a fit may be worse than a hazard that is the same for all."""
        return math.ceil(_LEAST_INFORMATION / self.open_filter().mu)

    @property
    def cost(self) -> Event:
        """What everything costs together."""
        return self.open_filter().event

    @property
    def conditions(self) -> str:
        """What the coverage of intervals rests on, besides many records; the guarantee of privacy does not."""
        return (
            "records are independent, censoring is independent of the event given the row, hazards are constant in "
            "each interval and proportional, and coefficients of columns in [-1, 1] with the logarithms of hazards, "
            f"less their start, have a norm of at most {TUNING.largest_log_hazards:g}"
        )

    @property
    def gain(self) -> float:
        """How far a round of whitening with all of the budget tells directions of rows apart."""
        width = self.n_columns + 1
        return self._n_matrices / (1.2 * width * math.sqrt(2.0 * width))

    @property
    def gram_share(self) -> float:
        """The share of a round of whitening."""
        low, high = TUNING.gram_shares
        return min(max((TUNING.wanted_gain / self.gain) ** 2, low), high)

    @property
    def rounds(self) -> int:
        """Rounds of whitening."""
        t, gain = TUNING, math.sqrt(self.gram_share) * self.gain
        return 2 if gain > t.enough_for_two else 3 if gain > t.enough_for_three else 1

    @property
    def room(self) -> float:
        """What bounds the squared length of a row in a Gram matrix, in units of its clip."""
        t = TUNING
        return min(max(math.sqrt(self.gram_share) * self.gain / t.gain_per_room, 1.0), t.most_room)

    @property
    def clear(self) -> float:
        """How far the last information matrix is above its noise if every record has an event.

        It is at least one if any interval is to exist.
        """
        noise = 2.0 * self.size * (math.sqrt(2.0 * self.size) + 1.0)
        return math.sqrt(self.step_shares[-1][0]) * self._n_matrices / noise

    @property
    def step_shares(self) -> tuple[tuple[float, float], ...]:
        """Shares of the information matrix and of the gradient of each step."""
        t = TUNING
        n_quantiles = self.rounds + 1 + 2 * len(t.matrices)
        rest = 1.0 - t.exit_share - t.quantile_share * n_quantiles - self.gram_share * self.rounds
        rest -= t.score_share * self.inference
        unit = rest / (sum(t.matrices) + sum(t.gradients))
        return tuple((unit * matrix, unit * gradient) for matrix, gradient in zip(t.matrices, t.gradients, strict=True))

    @property
    def matrix_noise(self) -> float:
        """The noise of the last information matrix, in units of the bound on a record's trace."""
        return max(self.n_step_rows, 1) / (math.sqrt(self.step_shares[-1][0]) * self._n_matrices)

    @property
    def _n_matrices(self) -> float:
        """Records times the Gaussian parameter; replacing one moves sums of such matrices by the root of two."""
        mu = self.open_filter().mu if math.isfinite(self.budget.epsilon) else 1e9
        return max(self.n_step_rows, 1) * mu / (math.sqrt(2.0) if self.relation == "replace-one" else 1.0)

    def open_filter(self) -> PrivacyFilter:
        """The whole budget, to be spent along the way."""
        size, width, n_steps = self.size, self.n_columns + 1, len(TUNING.matrices)
        values = 3 * self.n_intervals + 3 * width * (width + 1) // 2
        values += (n_steps + 1) * size * (size + 1) // 2 + n_steps * size
        return PrivacyFilter(self.budget, values * DISTANCE_PER_VALUE)


def plan_survival(
    budget: Budget,
    *,
    relation: str,
    n_records: int | None,
    n_features: int,
    n_intervals: int,
    inference: bool,
    columns: tuple[int, ...] | None,
) -> SurvivalPlan:
    """Plan a fit; an infinite epsilon means no noise.

    Raises ParameterError where public facts say that there are too many coefficients, or that no interval would exist.
    """
    # Sums have room for so many, and whether more are there must not be noticed on the way.
    n_rows = check_integer(0, MOST_PRIVATE_ROWS, n_rows=n_records)
    budget = budget if math.isfinite(budget.epsilon) else Budget(math.inf, 0.0)
    plan = SurvivalPlan(budget, relation, n_rows, n_features, n_intervals, inference, columns)
    if plan.n_columns > MOST_COLUMNS:
        raise ParameterError(
            "columns", columns, f"at most {MOST_COLUMNS} columns (got {plan.n_columns:,})", "name those of the model"
        )
    if n_intervals > MOST_INTERVALS:
        raise ParameterError("cuts", f"{n_intervals:,} cuts", f"at most {MOST_INTERVALS}", "give fewer")
    if math.isinf(budget.epsilon):
        return plan
    if plan.open_filter().mu < _LEAST_MU:
        raise ParameterError(
            "epsilon", budget.epsilon, "a budget that sums in 64 bits can meet", "raise epsilon or delta"
        )
    if inference and plan.clear < 1.0:
        n_enough = math.ceil(n_rows / plan.clear) if n_rows else math.ceil(1.0 / plan.clear)
        step = 10 ** max(math.floor(math.log10(n_enough)) - 1, 0)
        raise ParameterError(
            "inference",
            True,
            f"about {math.ceil(n_enough / step) * step:,} records for {plan.n_columns} coefficients and {n_intervals} "
            "hazards at this budget",
            "give fewer columns or cuts, raise epsilon, add records, or fit without it; nothing was spent",
        )
    return plan
