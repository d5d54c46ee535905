"""Scalers: the law of the bounds that PrivateScaler releases, and that BoundedScaler depends on no record."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product

import numpy as np

from taciturn.accounting import Budget
from taciturn.audit.engine import Pair
from taciturn.methods.scaling.estimator import BoundedScaler, PrivateScaler
from taciturn.methods.scaling.plan import BoundsPlan, decimal_grid, plan_bounds
from taciturn_research.attacks.entry import Entry, ExactCase, SampledCase, case_of_fit, exact_case_of_fit
from taciturn_research.attacks.laws import Law, law_of
from taciturn_research.attacks.neighbours import beyond_all_others, wide_gap

__all__ = ["SCALERS"]

_TRIALS, _FEW_TRIALS = 6_000, 500
# Nearly the median for both bounds, on a small grid.
_TAIL, _SMALLEST, _LARGEST = 0.49, 1.0, 5.0
# Enough for the two bounds of one column, in units of 1 / epsilon.
_HALF = 20.0
# With this many values below and above a gap, the upper quantile is anywhere in the gap.
_TIED = (51, 49)
_PROBE = np.array([[-2.0, 0.5], [0.25, 1.5]])


@dataclass(frozen=True, slots=True)
class BoundsLaw:
    """The law of the two quantiles of one column, from which the plan makes its bounds."""

    plan: BoundsPlan

    def __call__(self, data: tuple[np.ndarray]) -> Law:
        column = data[0][:, 0]
        upper, lower = law_of(self.plan.quantiles[0], column), law_of(self.plan.quantiles[0], -column)
        return {(low, high): p * q for (low, p), (high, q) in product(lower.items(), upper.items())}


@dataclass(frozen=True, slots=True)
class Scaled:
    """The attributes of a fitted scaler and its transform of other rows, which are deterministic."""

    scaler: BoundedScaler

    def __call__(self, data: tuple[np.ndarray]) -> dict[Hashable, float]:
        fitted = type(self.scaler)(**self.scaler.get_params()).fit(*data)
        arrays = fitted.lower_, fitted.upper_, fitted.transform(_PROBE)
        return {tuple(tuple(np.ravel(array).tolist()) for array in arrays): 1.0}


def _private_parts(epsilon: float, counts: tuple[int, ...] = ()) -> tuple[PrivateScaler, BoundsPlan, Pair]:
    below, above = counts or (math.ceil(_HALF / epsilon),) * 2
    values = wide_gap(below, decimal_grid(_SMALLEST, _LARGEST), above)
    pair = Pair((values.first[:, None],), (values.second[:, None],), values.relation, values.words)
    n_public = values.first.size
    scaler = PrivateScaler(
        epsilon=epsilon,
        delta=0.0,
        relation=pair.relation,
        n_public=n_public,
        smallest=_SMALLEST,
        largest=_LARGEST,
        tail=_TAIL,
    )
    plan = plan_bounds(
        Budget(epsilon, 0.0),
        relation=pair.relation,
        n_rows=n_public,
        tail=_TAIL,
        smallest=np.array([_SMALLEST]),
        largest=np.array([_LARGEST]),
    )
    return scaler, plan, pair


def _private(epsilon: float) -> SampledCase:
    scaler, _, pair = _private_parts(epsilon)
    return case_of_fit(scaler, pair, _TRIALS)


def _private_order(epsilon: float) -> SampledCase:
    scaler, _, pair = _private_parts(epsilon, tuple(math.ceil(1.0 / epsilon) * count for count in _TIED))
    return case_of_fit(scaler, pair, _FEW_TRIALS)


def _private_law(epsilon: float) -> ExactCase:
    scaler, plan, pair = _private_parts(epsilon)
    return exact_case_of_fit(scaler, pair, BoundsLaw(plan))


def _bounded(epsilon: float) -> ExactCase:
    table = beyond_all_others(10, 1e6)
    pair = Pair((table.first,), (table.second,), table.relation, table.words)
    scaler = BoundedScaler(lower=-1.0, upper=1.0)
    return ExactCase(Scaled(scaler), pair, 0.0, scaler.fit(*pair.first).certificate_.epsilon)


SCALERS = (
    Entry("PrivateScaler/exact", "scaler", "law of the bounds of one column", _private_law),
    Entry("PrivateScaler/sampled", "scaler", "bounds of one column", _private),
    Entry("PrivateScaler/order", "scaler", "a record that decides a quantile", _private_order),
    Entry("BoundedScaler", "scaler", "whether a record shows anywhere but in its own row", _bounded),
)
"""Every scaler."""
