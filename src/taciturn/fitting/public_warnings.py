"""Warnings before a fit, from parameters and public facts alone: no record has any part in them."""

from __future__ import annotations

import math

from taciturn.accounting import Budget
from taciturn.core.errors import DefaultBoundsWarning, WeakBudgetWarning, WeakGuaranteeWarning
from taciturn.core.guard import warn_caller

__all__ = ["warn_of_default_bounds", "warn_of_weak_budget", "warn_of_weak_guarantee"]

# From here on the odds of a guess about a record may change by a factor of 22,000.
_WEAK_EPSILON = 10.0

_DEFAULTS = {
    "x_bound": "the public bound on every feature value, so that cells are clipped to [-1, 1]; give x_bound, which is "
    "1.0 after BoundedScaler, PrivateScaler and TableEncoder",
    "y_bounds": "the public range of the target, so that targets and predictions are clipped to [-1, 1]; give "
    "y_bounds=(low, high)",
}


def warn_of_default_bounds(*missing: str) -> None:
    """Warn of each parameter, of x_bound and y_bounds, that was not given."""
    for name in missing:
        warn_caller(f"{name}=None: expected {_DEFAULTS[name]}.", DefaultBoundsWarning)


def warn_of_weak_budget(epsilon: float, n_records: int, enough: int, unit: str) -> None:
    """Warn that a fit of so many records may be mostly noise."""
    warn_caller(
        f"epsilon={epsilon!r}: expected {enough:,} {unit}s or more at this budget (got {n_records:,}), as fits of "
        f"fewer may be worse than a constant; raise epsilon or add {unit}s.",
        WeakBudgetWarning,
    )


def warn_of_weak_guarantee(budget: Budget, n_records: int | None, unit: str) -> None:
    """Warn of a budget that protects little.

    A delta of one over the number of records allows a mechanism that publishes a record, chosen at random: one of n
    is then exposed for certain, although each is with probability 1 / n only.
    """
    if math.isinf(budget.epsilon):
        return
    if budget.epsilon >= _WEAK_EPSILON:
        warn_caller(
            f"epsilon={budget.epsilon!r}: expected less than {_WEAK_EPSILON:g} for a guarantee that says much about "
            f"each {unit}; lower epsilon, or tell readers how weak it is.",
            WeakGuaranteeWarning,
        )
    if n_records is not None and budget.delta * n_records >= 1.0:
        warn_caller(
            f"delta={budget.delta!r}: expected less than one over the number of {unit}s ({n_records:,}), as a larger "
            f"one would allow to publish a {unit}; choose it well below, say delta={0.01 / n_records:.0e}.",
            WeakGuaranteeWarning,
        )
