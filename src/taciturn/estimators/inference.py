"""Standard errors, intervals and p-values of a fitted model, in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from taciturn.accounting import PrivacyFilter, epsilon_of
from taciturn.core.arrays import BoolArray, FloatArray, IndexArray
from taciturn.events import GaussianEvent
from taciturn.fitting.inference import InferenceResult
from taciturn.planning.inference import InferencePlan

__all__ = ["Inference", "adjusted_p_values", "infer"]

# Finite budgets end here.
_MOST_EPSILON = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What a fit with ``inference=True`` says about the errors of its coefficients.

    Standard errors are those of the coefficients of ``columns``, with that of the intercept last (NaN without one).

    Parameters
    ----------
    columns : ndarray of int
        The features of the model.
    std_error : ndarray of shape (n_columns + 1,)
        Standard errors; NaN where there are none.
    sampling, privacy : ndarray of shape (n_columns + 1,)
        The parts of the standard error that are due to the sample and to the noise. Their squares add up.
    confidence_level : float
        Of the intervals.
    n_records : int
        The public number of records that the coefficients were estimated from.
    split : bool
        Whether other records chose the columns.
    reason : str or None
        Why there are no standard errors, in a sentence; None if there are.
    """

    columns: IndexArray
    std_error: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    confidence_level: float
    n_records: int
    split: bool
    reason: str | None = None

    @property
    def quantile(self) -> float:
        """Of the normal distribution, for the confidence level."""
        return float(ndtri(0.5 + 0.5 * self.confidence_level))

    def intervals(self, coefficients: FloatArray) -> FloatArray:
        """Lower and upper ends for coefficients with these standard errors, one row each."""
        reach = self.quantile * self.std_error
        return np.column_stack((coefficients - reach, coefficients + reach))

    def p_values(self, coefficients: FloatArray) -> FloatArray:
        """Two-sided p-values of the hypotheses that coefficients are zero."""
        values: FloatArray = 2.0 * ndtr(-np.abs(coefficients / self.std_error))
        return values

    def spread(self, values: FloatArray, n_features: int) -> FloatArray:
        """Values of the columns in the places of all features; NaN elsewhere."""
        spread = np.full((n_features, *values.shape[1:]), np.nan)
        spread[self.columns] = values[: self.columns.size]
        return spread


def infer(
    plan: InferencePlan, outcome: InferenceResult, scale: float, intercept_scale: float, confidence_level: float
) -> Inference:
    """The standard errors of a fit, given what one mapped unit is for coefficients and for the intercept."""
    n_columns, intercept = outcome.columns.size, plan.start.intercept
    units = np.full(n_columns + 1, scale)
    units[-1] = intercept_scale if intercept else math.nan

    def deviations(covariance: FloatArray | None) -> FloatArray:
        found = np.full(n_columns + 1, math.nan)
        if covariance is not None:
            found[: len(covariance)] = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scaled: FloatArray = found * units
        return scaled

    sampling, privacy = deviations(outcome.sampling), deviations(outcome.privacy)
    reason = None if outcome.sampling is not None else _reason(plan, outcome)
    return Inference(
        outcome.columns, np.hypot(sampling, privacy), sampling, privacy, confidence_level, plan.n_step_rows, plan.split,
        reason,
    )  # fmt: skip


def _reason(plan: InferencePlan, outcome: InferenceResult) -> str:
    """Why there are no standard errors, and what would give some, from public facts and released numbers."""
    width = outcome.columns.size + plan.start.intercept
    if not width:
        return "no column was chosen and there is no intercept."
    budget = plan.budget
    if math.isinf(budget.epsilon):
        return "the information matrix is singular: columns are collinear, or they separate the classes."
    # Eigenvalues below the noise cannot be told from it, nor from zero.
    least = 1.0 / (math.sqrt(2.0 * width) + 1.0)
    if outcome.clarity > 1.0:
        # The room grows with the root of records times the Gaussian parameter.
        needed = _needed(plan, outcome.room**-2, "about")
        return (
            "residuals have tails that are long for this budget, and noise leaves no room for more than a large "
            f"quantile of them; by what was released it takes {needed} for intervals that a skewed tail does not "
            "shift, or the logarithm of the target."
        )
    seen = outcome.clarity > least
    needed = _needed(plan, 1.0 / max(outcome.clarity, least), "about" if seen else "more than")
    collinear = "; collinear columns, such as all categories of one column, never are" * bool(outcome.columns.size)
    return (
        f"the released information matrix of {width} coefficient{'s' * (width > 1)} is not clear of its noise; by what "
        f"was released it takes {needed} to be so{collinear}."
    )


def _needed(plan: InferencePlan, factor: float, how: str) -> str:
    """How many records, or which epsilon, are so many times the number of records times the Gaussian parameter."""
    n_records = plan.start.n_rows + (plan.n_step_rows if plan.split else 0)
    mu = factor * PrivacyFilter(plan.budget).mu
    epsilon = epsilon_of(GaussianEvent(1.0 / mu), plan.budget.delta)
    needed = f"{how} {_rounded_up(factor * n_records):,} records"
    return f"{needed}, or epsilon {epsilon:.2g}," if epsilon <= _MOST_EPSILON else needed


def _rounded_up(number: float) -> int:
    """Two digits, no fewer than the number."""
    step: int = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / step) * step


def adjusted_p_values(p_values: FloatArray) -> FloatArray:
    """Adjust p-values by Benjamini and Hochberg: reject up to a level to bound the false discovery rate by it.

    Values that are NaN stay so and do not count.
    """
    adjusted = np.full(p_values.shape, np.nan)
    known: BoolArray = ~np.isnan(p_values)
    order = np.argsort(p_values[known], kind="stable")[::-1]
    n_tests = order.size
    ranks = np.arange(n_tests, 0, -1)
    smallest = np.minimum.accumulate(np.minimum(p_values[known][order] * (n_tests / ranks), 1.0))
    values = np.empty(n_tests)
    values[order] = smallest
    adjusted[known] = values
    return adjusted
