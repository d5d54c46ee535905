"""Selectors: the plan is made once, and its selection is run again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from taciturn.accounting import Budget
from taciturn.audit.catalogue.entry import Case, Entry, ExactCase, case_of_fit, exact_case_of_fit
from taciturn.audit.catalogue.laws import Law, law_of
from taciturn.audit.neighbours import near_tie, rank_reversal, turncoat_block
from taciturn.audit.pair import Pair
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity import block_votes, correlation_scores
from taciturn.data.target import numeric_target
from taciturn.plan import TOP_K_MECHANISMS, KendallPlan, TopKPlan, plan_kendall, plan_top_k
from taciturn.selectors import BlockVoteSelector, CorrelationSelector, KendallSelector
from taciturn.selectors.block_vote import blocks_by_slot, count_votes
from taciturn.selectors.kendall import RankCorrelations

__all__ = ["SELECTORS"]

Table = tuple[np.ndarray, np.ndarray]
Selected = tuple[int, ...]

_RELATION = "add-remove"
_DELTA = 1e-6
_TRIALS, _FIT_TRIALS, _FEW_TRIALS = 20_000, 3_000, 2_000
# For the canonical Lipschitz mechanism, whose utilities see gamma times the lead.
_GAMMA = 0.9
# In units of 1 / epsilon, like the noise: a candidate that trails by so much is chosen now and then, or seldom.
_SHORT_LEAD, _LONG_LEAD = 4.0, 10.0
_PRIVATE_MECHANISMS = TOP_K_MECHANISMS[1:]
# Of so many records, and so many of them in reverse order, which leaves the reversed column behind.
_RANKED, _REVERSED = 30, 15
_N_PAIRS = 1


@dataclass(frozen=True, slots=True)
class Correlations:
    """A selection by correlation sums.

    Parameters
    ----------
    plan : TopKPlan
        How.
    """

    plan: TopKPlan

    def __call__(self, data: Table, random_state: int) -> Selected:
        X, y = data
        sums = Design(X, 1.0).rmatvec(numeric_target(y, (-1.0, 1.0)), ONE)
        return _in_order(self.plan.select(np.abs(sums), Stream.of(random_state)))


@dataclass(frozen=True, slots=True)
class CorrelationLaw:
    """The law of a selection by correlation sums, as a set.

    Parameters
    ----------
    plan : TopKPlan
        How; of it only the mechanism's public numbers are used.
    """

    plan: TopKPlan

    def __call__(self, data: Table) -> Law:
        X, y = data
        sets: Law = {}
        for chosen, probability in law_of(self.plan.mechanism, np.abs(X.T @ y) * float(ONE) ** 2).items():
            key = _in_order(chosen)
            sets[key] = sets.get(key, 0.0) + probability
        return sets


@dataclass(frozen=True, slots=True)
class Ranks:
    """A selection by rank correlation.

    Parameters
    ----------
    plan : KendallPlan
        How.
    """

    plan: KendallPlan

    def __call__(self, data: Table, random_state: int) -> Selected:
        X, y = data
        taus = RankCorrelations(X, y, np.ones(y.size, dtype=bool), self.plan.steps)
        return _in_order(self.plan.select(X.shape[1], taus, Stream.of(random_state)))


@dataclass(frozen=True, slots=True)
class Votes:
    """A selection by the votes of blocks.

    Parameters
    ----------
    plan : TopKPlan
        How.
    n_blocks : int
        Into how many blocks the records are cut.
    """

    plan: TopKPlan
    n_blocks: int

    def __call__(self, data: Table, random_state: int) -> Selected:
        X, y = data
        targets = numeric_target(y, (-1.0, 1.0))[:, None] / ONE
        blocks = blocks_by_slot(len(y), self.n_blocks)
        votes = count_votes(X, 1.0, targets, blocks, self.plan.k, logistic=False)
        return _in_order(self.plan.select(votes, Stream.of(random_state)))


def _in_order(indices: np.ndarray | tuple[int, ...]) -> Selected:
    return tuple(sorted(int(index) for index in indices))


def _correlation_parts(mechanism: str, k: int, epsilon: float) -> tuple[CorrelationSelector, TopKPlan]:
    selector = CorrelationSelector(
        epsilon=epsilon,
        delta=_DELTA if mechanism == "gumbel" else 0.0,
        relation=_RELATION,
        n_features_to_select=k,
        mechanism=mechanism,
        gamma=_GAMMA,
    )
    plan = plan_top_k(
        Budget(selector.epsilon, selector.delta),
        2 * k,
        k,
        correlation_scores(ONE, ONE, _RELATION),
        method=mechanism,
        gamma=_GAMMA,
    )
    return selector, plan


def _leading_by(lead: float, k: int) -> Pair:
    return near_tie(lead, math.ceil(lead) + 2, _RELATION, n_each=k)


def _correlation(mechanism: str, epsilon: float) -> Case:
    selector, plan = _correlation_parts(mechanism, 1, epsilon)
    return case_of_fit(selector, _leading_by(_SHORT_LEAD / epsilon, 1), _TRIALS, run=Correlations(plan))


def _correlation_order(mechanism: str, epsilon: float) -> Case:
    selector, plan = _correlation_parts(mechanism, 1, epsilon)
    return case_of_fit(selector, _leading_by(1.0, 1), _FEW_TRIALS, run=Correlations(plan))


def _correlation_law(mechanism: str, epsilon: float) -> ExactCase:
    selector, plan = _correlation_parts(mechanism, 2, epsilon)
    return exact_case_of_fit(selector, _leading_by(_LONG_LEAD / epsilon, 2), CorrelationLaw(plan))


def _kendall(delta: float, n_reversed: int, epsilon: float, *, trials: int = _TRIALS) -> Case:
    pair = rank_reversal(_RANKED, n_reversed)
    selector = KendallSelector(epsilon=epsilon, delta=delta, relation=pair.relation, n_features_to_select=1)
    plan = plan_kendall(Budget(epsilon, delta), 2, 1, pair.relation, _RANKED)
    return case_of_fit(selector, pair, trials, run=Ranks(plan))


def _block_vote(epsilon: float) -> Case:
    pair = turncoat_block(_N_PAIRS)
    selector = BlockVoteSelector(
        epsilon=epsilon,
        delta=0.0,
        relation=pair.relation,
        n_features_to_select=1,
        n_blocks=2 * _N_PAIRS,
        mechanism="peeling",
    )
    plan = plan_top_k(Budget(epsilon, 0.0), 2, 1, block_votes(pair.relation), method="peeling")
    return case_of_fit(selector, pair, _FIT_TRIALS, run=Votes(plan, 2 * _N_PAIRS))


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
    Entry("BlockVoteSelector", "selector", "a block that changes its vote", _block_vote),
)
"""Every selector."""
