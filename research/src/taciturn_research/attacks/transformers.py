"""Attacks on scalers and selectors."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import get_args

import numpy as np

from taciturn.accounting import Budget
from taciturn.audit.engine import Pair
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import Relation
from taciturn.methods.options import TopKMechanism
from taciturn.methods.scaling.estimator import BoundedScaler, PrivateScaler
from taciturn.methods.scaling.plan import BoundsPlan, decimal_grid, plan_bounds
from taciturn.methods.selection.estimator import BlockVoteSelector, CorrelationSelector, KendallSelector
from taciturn.methods.selection.plan import CorrelationPlan, plan_correlation
from taciturn_research.attacks.entry import Entry, ExactCase, SampledCase, case_of_fit, exact_case_of_fit
from taciturn_research.attacks.laws import Law, law_of
from taciturn_research.attacks.neighbours import beyond_all_others, near_tie, rank_reversal, turncoat_block, wide_gap

# ---------------------------------------------------------------------
# Scalers: the law of the bounds that PrivateScaler releases, and that BoundedScaler depends on no record.


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
        """The law of both bounds."""
        column = data[0][:, 0]
        upper, lower = law_of(self.plan.quantiles[0], column), law_of(self.plan.quantiles[0], -column)
        return {(low, high): p * q for (low, p), (high, q) in product(lower.items(), upper.items())}


@dataclass(frozen=True, slots=True)
class Scaled:
    """The attributes of a fitted scaler and its transform of other rows, which are deterministic."""

    scaler: BoundedScaler

    def __call__(self, data: tuple[np.ndarray]) -> dict[Hashable, float]:
        """All weight on the one outcome."""
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


# ---------------------------------------------------------------------
# Selectors: every run is the public ``fit``.


Table = tuple[np.ndarray, np.ndarray]
Selected = tuple[int, ...]

_RELATION: Relation = "add-remove"
_DELTA = 1e-6
# A part of the budget pays for the mean of the target, so that half of the claim takes many runs to see.
_MANY_TRIALS = 20_000
# For the canonical Lipschitz mechanism, whose utilities scale the lead by gamma.
_GAMMA = 0.9
# In units of 1 / epsilon, like the noise: distances to the leader at which a candidate is chosen sometimes, or rarely.
_SHORT_LEAD, _LONG_LEAD = 4.0, 10.0
# Records that hold the released mean of the target near zero, in units of 1 / epsilon, like the noise on it.
_IDLE = 500.0
_PRIVATE_MECHANISMS: tuple[TopKMechanism, ...] = get_args(TopKMechanism)[1:]
# Number of records, and of those in reverse order, which put the reversed column behind.
_RANKED, _REVERSED = 30, 15
_N_PAIRS = 1


@dataclass(frozen=True, slots=True)
class CorrelationLaw:
    """The law of a selection by correlation sums, as a set, given that the mean of the target was released as zero.

    By the public numbers of the plan's mechanism. The release of the mean before it has a claim of its own.
    """

    plan: CorrelationPlan

    def __call__(self, data: Table) -> Law:
        """The law of the selected set."""
        X, y = data
        sets: Law = {}
        for chosen, probability in law_of(self.plan.selection.mechanism, np.abs(X.T @ y) * float(ONE) ** 2).items():
            key = _in_order(chosen)
            sets[key] = sets.get(key, 0.0) + probability
        return sets


def _in_order(indices: np.ndarray | tuple[int, ...]) -> Selected:
    return tuple(sorted(int(index) for index in indices))


def _correlation_parts(mechanism: TopKMechanism, k: int, epsilon: float) -> tuple[CorrelationSelector, CorrelationPlan]:
    selector = CorrelationSelector(
        epsilon=epsilon,
        delta=_DELTA if mechanism == "gumbel" else 0.0,
        relation=_RELATION,
        x_bound=1.0,
        y_bounds=(-1.0, 1.0),
        n_features_to_select=k,
        mechanism=mechanism,
        gamma=_GAMMA,
    )
    plan = plan_correlation(
        Budget(selector.epsilon, selector.delta),
        2 * k,
        k,
        _RELATION,
        labelled=False,
        part_unit=2 * ONE,
        method=mechanism,
        gamma=_GAMMA,
    )
    return selector, plan


def _leading_by(lead: float, k: int, epsilon: float) -> Pair:
    return near_tie(lead, math.ceil(lead) + 2, _RELATION, n_each=k, n_idle=math.ceil(_IDLE / epsilon))


def _correlation(mechanism: TopKMechanism, epsilon: float) -> SampledCase:
    selector, _ = _correlation_parts(mechanism, 1, epsilon)
    return case_of_fit(selector, _leading_by(_SHORT_LEAD / epsilon, 1, epsilon), _MANY_TRIALS)


def _correlation_order(mechanism: TopKMechanism, epsilon: float) -> SampledCase:
    selector, _ = _correlation_parts(mechanism, 1, epsilon)
    return case_of_fit(selector, _leading_by(1.0, 1, epsilon), _FEW_TRIALS)


def _correlation_law(mechanism: TopKMechanism, epsilon: float) -> ExactCase:
    selector, plan = _correlation_parts(mechanism, 2, epsilon)
    return exact_case_of_fit(selector, _leading_by(_LONG_LEAD / epsilon, 2, epsilon), CorrelationLaw(plan))


def _kendall(delta: float, n_reversed: int, epsilon: float, *, trials: int = _TRIALS) -> SampledCase:
    pair = rank_reversal(_RANKED, n_reversed)
    selector = KendallSelector(epsilon=epsilon, delta=delta, relation=pair.relation, n_features_to_select=1)
    return case_of_fit(selector, pair, trials)


def _block_vote(decisive: bool, epsilon: float) -> SampledCase:
    pair = turncoat_block(_N_PAIRS, decisive=decisive)
    selector = BlockVoteSelector(
        epsilon=epsilon,
        delta=0.0,
        relation=pair.relation,
        x_bound=1.0,
        y_bounds=(-1.0, 1.0),
        n_features_to_select=1,
        n_blocks=2 * _N_PAIRS + decisive,
        mechanism="peeling",
    )
    return case_of_fit(selector, pair, _FEW_TRIALS if decisive else _TRIALS)


SELECTORS = (
    *(
        Entry(f"CorrelationSelector/{name}", "selector", "one of two columns, nearly tied", partial(_correlation, name))
        for name in _PRIVATE_MECHANISMS
    ),
    *(
        Entry(f"CorrelationSelector/{name}-exact", "selector", "law of all pairs", partial(_correlation_law, name))
        for name in _PRIVATE_MECHANISMS
    ),
    *(
        Entry(f"CorrelationSelector/{name}-order", "selector", "the order changes", partial(_correlation_order, name))
        for name in _PRIVATE_MECHANISMS
    ),
    Entry("KendallSelector", "selector", "pure: a record that reverses ranks", partial(_kendall, 0.0, 0)),
    Entry("KendallSelector/gumbel", "selector", "with a delta", partial(_kendall, _DELTA, _REVERSED)),
    Entry(
        "KendallSelector/gumbel-order",
        "selector",
        "with a delta, the order changes",
        partial(_kendall, _DELTA, 0, trials=_FEW_TRIALS),
    ),
    Entry("BlockVoteSelector", "selector", "a block that changes its vote", partial(_block_vote, False)),
    Entry("BlockVoteSelector/order", "selector", "the majority changes", partial(_block_vote, True)),
)
"""Every selector."""
