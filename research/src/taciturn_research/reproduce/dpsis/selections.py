"""What published and sound selectors choose, when only their noise is drawn anew."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray, IntArray
from taciturn.data.design import Design
from taciturn.data.sensitivity import block_votes, correlation_scores
from taciturn.data.target import numeric_target
from taciturn.mechanisms import LaplaceTopK
from taciturn.methods.selection.plan import plan_top_k
from taciturn.methods.selection.run import blocks_by_slot, count_votes, select_top_k
from taciturn.published.dpsis import printed_top_k
from taciturn.published.two_stage import lasso_counts
from taciturn_research.reproduce.dpsis.common import ALPHA

__all__ = ["BLOCK_VOTE", "CORRELATION", "DP_SIS", "TWO_STAGE", "Scored", "by_correlation", "choose", "score"]

DP_SIS, TWO_STAGE = "DP-SIS (published)", "two-stage (published)"
CORRELATION, BLOCK_VOTE = "CorrelationSelector", "BlockVoteSelector"

_RELATION = "zero-out"
# The printed weight between the worst member and the best outsider.
_GAMMA = 0.5


@dataclass(frozen=True, slots=True)
class Scored:
    """What the methods score, count and vote on a table with values in [-1, 1]: none of it is random.

    Absolute correlation sums as DP-SIS computes them, and on the lattice of CorrelationSelector; in how many slices a
    LASSO has the feature; and for each k how many slices have it among their first k.
    """

    sums: FloatArray
    exact_sums: IntArray
    counts: IntArray
    votes: dict[int, IntArray]


def score(X: FloatArray, y: FloatArray, sizes: tuple[int, ...]) -> Scored:
    """Everything that is done before the noise, for each number of features to select."""
    n_blocks = math.isqrt(y.size)
    blocks = blocks_by_slot(y.size, n_blocks)
    target = numeric_target(y, (-1.0, 1.0))[:, None]
    votes = {k: count_votes(X, 1.0, target / ONE, blocks, k, logistic=False) for k in sizes}
    exact = np.abs(Design(X, 1.0).rmatvec(target, ONE)).max(axis=1)
    return Scored(np.abs(X.T @ y), exact, lasso_counts(X, y, n_blocks, ALPHA), votes)


def by_correlation(scored: Scored, k: int, epsilon: float, seed: int) -> dict[str, IntArray]:
    """The selections of DP-SIS and of CorrelationSelector: those of fits with this seed, with delta = 0."""
    unit = correlation_scores(ONE, ONE, _RELATION)
    plan = plan_top_k(Budget(epsilon, 0.0), scored.sums.size, k, unit)
    return {
        DP_SIS: printed_top_k(scored.sums, k, epsilon, _GAMMA, Stream.of(seed).spawn("top-k")),
        CORRELATION: select_top_k(plan, scored.exact_sums, Stream.of(seed)),
    }


def choose(scored: Scored, k: int, epsilon: float, seed: int) -> dict[str, IntArray]:
    """The selections of all methods at pure epsilon, each that of a fit with this seed."""
    chosen = by_correlation(scored, k, epsilon, seed)
    laplace = LaplaceTopK(block_votes(_RELATION), k, epsilon)
    vote = plan_top_k(Budget(epsilon, 0.0), scored.sums.size, k, block_votes(_RELATION))
    return {
        DP_SIS: chosen[DP_SIS],
        TWO_STAGE: laplace.release(scored.counts, Stream.of(seed).spawn("top-k")),
        CORRELATION: chosen[CORRELATION],
        BLOCK_VOTE: select_top_k(vote, scored.votes[k], Stream.of(seed)),
    }
