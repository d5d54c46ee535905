"""Sample and aggregate: every block of records votes for features, and the most voted ones are selected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.parallel import Parallel, delayed

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.guard import guarded
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.block_lasso import first_features
from taciturn.fitting.blocks import assign_blocks
from taciturn.fitting.objective_perturbation import one_against_rest
from taciturn.fitting.threads import one_thread
from taciturn.fitting.top_k import select_top_k
from taciturn.planning.block_vote import BlockVotePlan
from taciturn.sources import ArraySource

__all__ = ["count_votes", "run_block_vote"]

# Blocks are handed to workers in this many parcels: enough to share them out evenly, few enough to be cheap.
_PARCELS = 32


def run_block_vote(
    plan: BlockVotePlan, source: ArraySource, stream: Stream, *, keys: Any = None, n_jobs: int | None = None
) -> IntArray:
    """Let blocks of records vote, and release the features with the most votes.

    The target is numeric on the lattice, or of class codes where the plan is logistic. Records of one of the ``keys``,
    which are one per row of the table, are in one block. ``n_jobs`` joblib workers share the blocks.
    """
    records = source.records
    blocks = assign_blocks(plan.relation, records, plan.n_blocks, stream, keys)
    selection = plan.selection
    if selection.method == "all":
        return np.arange(records.n_features)
    targets = one_against_rest(records.y, plan.n_outputs) if plan.logistic else records.y[:, None] / ONE
    votes = count_votes(records.X, source.x_bound, targets, blocks, selection.k, logistic=plan.logistic, n_jobs=n_jobs)
    return select_top_k(selection, votes, stream)


def count_votes(
    X: Any,
    x_bound: float,
    targets: FloatArray,
    blocks: Sequence[IndexArray],
    k: int,
    *,
    logistic: bool,
    n_jobs: int | None = None,
) -> IntArray:
    """Count for each feature the blocks that have it among their first k (:func:`first_features`)."""
    table = X.tocsr() if sp.issparse(X) else X
    n_parcels = min(len(blocks), _PARCELS)
    parcels = (blocks[parcel::n_parcels] for parcel in range(n_parcels))
    with one_thread():
        chosen = Parallel(n_jobs=n_jobs)(
            delayed(_votes_of)(table, x_bound, targets, parcel, k, logistic) for parcel in parcels
        )
    return np.bincount(np.concatenate(chosen), minlength=X.shape[1])


@guarded
def _votes_of(
    table: Any, x_bound: float, targets: FloatArray, blocks: Iterable[IndexArray], k: int, logistic: bool
) -> IntArray:
    with one_thread():
        return np.concatenate(
            [first_features(table[rows], x_bound, targets[rows], k, logistic=logistic) for rows in blocks]
        )
