r"""Plans for the default model: its strategy, and what the privacy filter that pays for it starts with.

The strategy follows from public facts: the numbers of records n and features d, the number k of nonzero coefficients,
and the Gaussian parameter :math:`\mu` of the budget. What counts is :math:`\varphi = n \mu^2 / k`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.losses import HuberLoss, Loss
from taciturn.methods.descent import DescentRule, rule_for_labels, rule_for_numbers
from taciturn.methods.schedule import Problem
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event
from taciturn.privacy.filter import PrivacyFilter
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

METHODS = ("auto", "two-phase", "one-shot")
"""Names of the strategies that can be asked for."""

COLUMNS_PER_NONZERO = 5
"""Columns kept by screening per nonzero coefficient where rows have few large entries."""

LEAST_NONZERO = 3
"""A number of nonzero coefficients that is chosen privately is zero or no smaller, unless there are fewer columns."""

MOST_CHOSEN = 500
"""A number of nonzero coefficients that is chosen privately is no larger."""

# Below this phi a selection phase tells less than correlations do.
_LEAST_PHI = 3.0
_LEAST_SCREENED = 20
# The share of the budget for screening, by the number of columns kept per nonzero coefficient.
_KEPT_PER_NONZERO = (1.3, 2.0, 3.0, 5.0)
_SCREENING_SHARES = (0.5, 0.4, 0.3, 0.25)
_ONE_SHOT_SHARE = 0.6
# With so many records times the Gaussian parameter per column a descent on all of them needs no screening before it.
_ENOUGH_PER_COLUMN = 1.5
# Below this many records times the Gaussian parameter a constant is all that can be told.
_LEAST_FOR_COLUMNS = 15.0
# Gaussian values per coefficient, the constant's included: two descents of two legs with up to 150 steps each,
# correlations and the centre; and the entries of two Gram matrices and of recalibration.
_MOST_VALUES = 602
_FURTHER_VALUES = 2 * 1501 * 751 + 80
# Noise beyond this could leave the 64 bits of its sums.
_LEAST_MU = 2.0**-16
# Below this many records times the budget's Gaussian parameter fits may be worse than a constant.
_LEAST_INFORMATION = 40.0


@dataclass(frozen=True, slots=True)
class Strategy:
    r"""How columns are chosen, and a sentence with the public facts that decided.

    The method "dense" is one descent on all columns, after which some may be left out; "two-phase" has a selection
    phase on all (screened) columns before the estimation phase on those chosen; "one-shot" has the latter alone, on
    columns of large noisy correlations; "constant" has no columns at all. ``n_nonzero`` is a guess until it is chosen,
    ``n_screened`` the columns left by screening (None where all are kept), and ``strength`` is :math:`n \mu^2 / k`.
    """

    method: str
    reason: str
    n_nonzero: int
    n_screened: int | None
    screening_share: float
    strength: float


@dataclass(frozen=True, slots=True)
class SparsePlan:
    """Public facts of a fit of the default model, its strategy, and the budget for everything together.

    Parameters
    ----------
    problem : Problem
        With an intercept columns are centred, and a constant is fitted. The Huber loss of a regression gets its
        threshold from a clip.
    row_bound : float or None
        Public L2 norm of a row over all features, in scaled units; None for a private median.
    residual_clip : float or None
        Public size of residuals in mapped units; None for the private median magnitude of the target.
    huber : bool
        Whether residuals beyond their size count as if they were that large, at every budget.
    chooses_n_nonzero : bool
        Whether the number of nonzero coefficients is chosen privately, the strategy's being a guess.
    enough_records : int
        With fewer than these a fit may be worse than a constant.
    columns : tuple of int or None
        Columns that the caller fixed, in increasing order; None where all may be used.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    problem: Problem
    row_bound: float | None
    residual_clip: float | None
    huber: bool
    strategy: Strategy
    chooses_n_nonzero: bool
    enough_records: int
    columns: tuple[int, ...] | None = None

    @property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return not self.problem.loss.labelled

    def loss_at(self, derivative_bound: float) -> Loss:
        """The loss of a record whose derivative is clipped to ``derivative_bound``."""
        return HuberLoss(derivative_bound) if self.regression else self.problem.loss

    def rule(self, mu: float, width: int, *, selects: bool = False) -> DescentRule:
        """Clips and time of a descent that spends a Gaussian parameter on so many columns, or selects some of them."""
        if self.regression:
            return rule_for_numbers(self.problem.n_records, mu, width)
        return rule_for_labels(self.problem.n_records, mu, width, selects=selects)

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""
        return self.open_filter().event

    def open_filter(self, distance: float = 0.0) -> PrivacyFilter:
        """The whole budget, to be spent along the way; ``distance`` is for samplers of releases besides the fit's."""
        return _open_filter(self.budget, self.problem, distance)


def plan_sparse(
    budget: Budget,
    problem: Problem,
    *,
    n_nonzero: int | None,
    method: str,
    row_bound: float | None,
    residual_clip: float | None,
    huber: bool = False,
    columns: tuple[int, ...] | None = None,
) -> SparsePlan:
    """Plan a fit of the default model by one of :data:`METHODS`; other parameters are those of :class:`SparsePlan`.

    An infinite epsilon means no noise. An ``n_nonzero`` of None is chosen privately. With ``columns`` the model has
    these, whatever ``n_nonzero`` says. A ``row_bound`` beyond what a row can have is lowered.
    """
    # Sums have room for so many, and whether more are there must not be noticed on the way.
    n_rows, n_features = check_integer(0, MOST_PRIVATE_ROWS, n_rows=problem.n_rows), problem.n_features
    mu = _open_filter(budget, problem).mu
    width = n_features if columns is None else len(columns)
    # Of three columns or fewer all are kept.
    chooses = n_nonzero is None and columns is None and n_features > LEAST_NONZERO
    if chooses:
        k = _guess_n_nonzero(n_rows, n_features, mu)
    else:
        k = width if n_nonzero is None or columns is not None else min(n_nonzero, n_features)
    return SparsePlan(
        budget=budget if math.isfinite(budget.epsilon) else Budget(math.inf, 0.0),
        problem=problem,
        row_bound=None if row_bound is None else min(row_bound, math.sqrt(n_features)),
        residual_clip=residual_clip,
        huber=huber,
        strategy=_choose_strategy(method, n_rows, width, k, mu, n_nonzero_known=not chooses),
        chooses_n_nonzero=chooses,
        enough_records=math.ceil(_LEAST_INFORMATION / mu),
        columns=columns,
    )


def _open_filter(budget: Budget, problem: Problem, distance: float = 0.0) -> PrivacyFilter:
    """The budget to spend, refused where noise would not fit its sums."""
    n_values = _MOST_VALUES * problem.n_outputs * (problem.n_features + 1) + _FURTHER_VALUES
    whole = PrivacyFilter(budget, n_values * DISTANCE_PER_VALUE + distance)
    if whole.mu < _LEAST_MU:
        expected = "a budget that sums in 64 bits can meet"
        raise ParameterError("epsilon", budget.epsilon, expected, "raise epsilon or delta")
    return whole


def _guess_n_nonzero(n_rows: int, n_features: int, mu: float) -> int:
    """A guess of the number of nonzero coefficients until it is chosen."""
    largest = max(1, min(n_features // 2, 150))
    return int(min(max(n_rows * mu / 25.0, 5.0), largest)) if math.isfinite(mu) else largest


def _choose_strategy(
    method: str, n_rows: int, n_features: int, k: int, mu: float, *, n_nonzero_known: bool
) -> Strategy:
    """The strategy, from public facts; if k is a guess, a descent on many columns tells more."""
    strength, signal = n_rows * mu * mu / k, n_rows * mu
    if method == "auto" and signal < _LEAST_FOR_COLUMNS:
        reason = f"n mu = {signal:.3g} with {n_rows:,} records and mu = {mu:.3g}: too little for any column"
        return Strategy("constant", reason, 0, None, 0.0, strength)
    if k >= n_features:
        return Strategy("dense", "every feature may stay, so none is chosen", n_features, None, 0.0, strength)
    facts = f"n mu^2 / k = {strength:.3g} with {n_rows:,} records, mu = {mu:.3g} and k = {k:,}"
    per_column = signal / n_features
    one_shot = method == "one-shot" or (
        method == "auto" and strength < _LEAST_PHI and n_nonzero_known and per_column < _ENOUGH_PER_COLUMN
    )
    if one_shot:
        reason = f"{facts}: too little for a selection phase" if method == "auto" else "chosen by name"
        return Strategy("one-shot", reason, k, k, _ONE_SHOT_SHARE, strength)
    wanted = k * min(max(math.sqrt(strength) / 2.5, 1.5), 5.0)
    n_screened = max(_LEAST_SCREENED, math.ceil(wanted))
    if method != "auto":
        reason = "chosen by name"
    elif n_nonzero_known:
        reason = f"{facts}: enough for a selection phase"
    else:
        reason = "only a selection phase tells how many features there should be"
    if n_features <= 3 * n_screened or per_column >= _ENOUGH_PER_COLUMN:
        return Strategy("two-phase", reason, k, None, 0.0, strength)
    share = float(np.interp(n_screened / k, _KEPT_PER_NONZERO, _SCREENING_SHARES))
    return Strategy("two-phase", reason, k, n_screened, share, strength)
