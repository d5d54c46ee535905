"""Selectors: every run is the public ``fit``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np

from taciturn.accounting import Budget
from taciturn.audit.engine import Pair
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import Relation
from taciturn.methods.options import TopKMechanism
from taciturn.methods.selection.estimator import BlockVoteSelector, CorrelationSelector, KendallSelector
from taciturn.methods.selection.plan import CorrelationPlan, plan_correlation
from taciturn_research.attacks.entry import Entry, ExactCase, SampledCase, case_of_fit, exact_case_of_fit
from taciturn_research.attacks.laws import Law, law_of
from taciturn_research.attacks.neighbours import near_tie, rank_reversal, turncoat_block

__all__ = ["SELECTORS"]

Table = tuple[np.ndarray, np.ndarray]
Selected = tuple[int, ...]

_RELATION: Relation = "add-remove"
_DELTA = 1e-6
_TRIALS, _FEW_TRIALS = 6_000, 500
# Plans under pure differential privacy are fast.
_PURE_TRIALS = 20_000
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
    trials = _TRIALS if selector.delta > 0.0 else _PURE_TRIALS
    return case_of_fit(selector, _leading_by(_SHORT_LEAD / epsilon, 1, epsilon), trials)


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
