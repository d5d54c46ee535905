"""Selection by rank correlation, one feature per round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import AnyArray, Int32Array, IntArray
from taciturn.core.rng import Stream
from taciturn.kernels.kendall import ranks_of, scaled_tau, sparse_ranks_of
from taciturn.planning.kendall import KendallPlan
from taciturn.sources import ArraySource

__all__ = ["RankCorrelations", "run_kendall", "select_by_rank"]


def run_kendall(plan: KendallPlan, source: ArraySource, stream: Stream) -> IntArray:
    """Release the selected features, in order of selection, for a target of numbers or of class codes."""
    records = source.records
    # Null records keep their slots in a public count, and are no part of a private one.
    n_records = records.slots.size if plan.relation == "add-remove" else records.n_slots
    taus = RankCorrelations(records.X, records.y, n_records, plan.steps)
    return select_by_rank(plan, records.n_features, taus, stream)


def select_by_rank(
    plan: KendallPlan, n_candidates: int, taus: Callable[[int | None, IntArray], IntArray], stream: Stream
) -> IntArray:
    """Release the selected features, in order of selection.

    ``taus(s, columns)`` are the rank correlations of some columns with column s, or with the target where s is None, in
    steps of the lattice.
    """
    left = np.arange(n_candidates)
    if plan.method == "all":
        return left
    winners = np.empty(plan.k, dtype=np.int64)
    relevance = taus(None, left)
    redundancy = np.zeros_like(relevance)
    for place in range(plan.k):
        scores = max(place, 1) * relevance - redundancy
        index = plan.rounds[place].release(scores, stream.spawn("round")) if plan.rounds else int(np.argmax(scores))
        winners[place] = left[index]
        left, relevance, redundancy = (np.delete(array, index) for array in (left, relevance, redundancy))
        if place + 1 < plan.k:
            redundancy += taus(int(winners[place]), left)
    return winners


class RankCorrelations:
    """Rank correlations of columns with the target or with a column, in steps of the plan's lattice.

    Null records are in no pair, but they count in n.
    """

    def __init__(self, X: Any, target: AnyArray, n_records: int, steps: int) -> None:
        self._n_records, self._steps = n_records, steps
        self._target = ranks_of(target)
        self._table = X.tocsc() if sp.issparse(X) else X
        self._kept: dict[int, Int32Array] = {}

    def __call__(self, anchor: int | None, columns: IntArray) -> IntArray:
        """Those of some columns with column ``anchor``, or with the target for None."""
        ranks = self._target if anchor is None else self._ranks(anchor)
        taus = [scaled_tau(ranks, self._ranks(column), self._n_records, self._steps) for column in columns.tolist()]
        return np.array(taus, dtype=np.int64)

    def _ranks(self, column: int) -> Int32Array:
        if sp.issparse(self._table):
            # Kept, they would be a dense copy of a sparse table.
            entries = slice(*self._table.indptr[column : column + 2])
            return sparse_ranks_of(self._table.data[entries], self._table.indices[entries], self._target.size)
        if column not in self._kept:
            self._kept[column] = ranks_of(self._table[:, column])
        return self._kept[column]
