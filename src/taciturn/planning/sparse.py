r"""Plans for the default model: which road is taken, and what every part of it may spend.

Roads are chosen from public facts: the numbers of records n and features d, the size k of the model, and the Gaussian
parameter :math:`\mu` of the budget. What counts is :math:`\varphi = n \mu^2 / k`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.accounting import Budget, PrivacyFilter
from taciturn.core.errors import ParameterError
from taciturn.mechanisms import DISTANCE_PER_VALUE

__all__ = ["KEPT_OF_FEW", "METHODS", "Road", "choose_road", "guessed_size", "open_filter"]

METHODS = ("auto", "two-phase", "one-shot")
"""Names of the roads."""

KEPT_OF_FEW = 5
"""Columns kept per column wanted where rows have few entries."""

# Below this phi a first descent tells less than correlations do.
_LEAST_PHI = 3.0
_LEAST_SCREENED = 20
# What screening gets, by the number of columns kept per column wanted.
_KEPT_PER_WANTED = (1.3, 2.0, 3.0, 5.0)
_SCREENING_SHARES = (0.5, 0.4, 0.3, 0.25)
_ONE_SHOT_SHARE = 0.6
# A descent looks at all pairs of its columns once.
_MOST_COLUMNS = 8191
# Gaussian values per coefficient, the constant's included: at most 30 and 60 steps of the two descents, correlations,
# the mean of the target, the centre, and two eigenvalues.
_MOST_VALUES = 95
# Noise beyond this could leave the 64 bits of its sums.
_LEAST_MU = 2.0**-16


@dataclass(frozen=True, slots=True)
class Road:
    r"""How columns are chosen.

    Parameters
    ----------
    method : {"two-phase", "one-shot", "all columns"}
        Whether a descent on all (screened) columns comes before the one on those chosen.
    reason : str
        One sentence with the public facts that decided.
    k : int
        The size of the model, or what stands for it.
    n_screened : int or None
        Columns left by screening; None where all are kept.
    screening_share : float
        Its part of the budget.
    strength : float
        :math:`n \mu^2 / k`.
    """

    method: str
    reason: str
    k: int
    n_screened: int | None
    screening_share: float
    strength: float


def open_filter(budget: Budget, n_features: int, n_outputs: int) -> PrivacyFilter:
    """The budget to spend, refused where noise would not fit its sums."""
    whole = PrivacyFilter(budget, _MOST_VALUES * n_outputs * (n_features + 1) * DISTANCE_PER_VALUE)
    if whole.mu < _LEAST_MU:
        raise ParameterError(
            "epsilon", budget.epsilon, "a budget that sums in 64 bits can meet", "raise epsilon or delta"
        )
    return whole


def guessed_size(n_rows: int, n_features: int, mu: float) -> int:
    """What stands for the size of the model until it is chosen."""
    largest = max(1, min(n_features // 2, 150))
    return int(min(max(n_rows * mu / 25.0, 5.0), largest)) if math.isfinite(mu) else largest


def choose_road(method: str, n_rows: int, n_features: int, k: int, mu: float, *, size_known: bool = True) -> Road:
    """The road, from public facts.

    Parameters
    ----------
    method : {"auto", "two-phase", "one-shot"}
        A road by name, or "auto".
    n_rows, n_features : int
        Public numbers of records and features.
    k : int
        The size of the model, or what stands for it.
    mu : float
        Gaussian parameter of the budget.
    size_known : bool, default=True
        Whether k is final; if not, only a first descent can tell.
    """
    strength = n_rows * mu * mu / k
    facts = f"n mu^2 / k = {strength:.3g} with {n_rows:,} records, mu = {mu:.3g} and k = {k:,}"
    if k >= n_features:
        _check_width(k, n_features)
        return Road("all columns", "every feature may stay, so none is chosen", n_features, None, 0.0, strength)
    one_shot = method == "one-shot" or (method == "auto" and strength < _LEAST_PHI and size_known)
    if one_shot:
        reason = f"{facts}: too little for a first descent" if method == "auto" else "chosen by name"
        _check_width(k, k)
        return Road("one-shot", reason, k, k, _ONE_SHOT_SHARE, strength)
    wanted = k * min(max(math.sqrt(strength) / 2.5, 1.5), 5.0)
    n_screened = max(_LEAST_SCREENED, math.ceil(wanted))
    reason = (
        f"{facts}: enough for a first descent"
        if method == "auto" and size_known
        else ("only a first descent tells how many features there should be" if method == "auto" else "chosen by name")
    )
    _check_width(k, min(n_features, 3 * max(n_screened, KEPT_OF_FEW * k)))
    if n_features <= 3 * n_screened:
        return Road("two-phase", reason, k, None, 0.0, strength)
    return Road(
        "two-phase",
        reason,
        k,
        n_screened,
        float(np.interp(n_screened / k, _KEPT_PER_WANTED, _SCREENING_SHARES)),
        strength,
    )


def _check_width(k: int, n_columns: int) -> None:
    if n_columns > _MOST_COLUMNS:
        raise ParameterError(
            "n_nonzero",
            k,
            f"a model whose descents have at most {_MOST_COLUMNS:,} columns, not {n_columns:,}",
            "lower it, or take HardThresholdRegressor or HardThresholdClassifier",
        )
