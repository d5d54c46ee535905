"""Disjoint blocks of records, assigned so that one record more or less changes one block, and their votes.

Sample and aggregate: every block votes for features, and the most voted ones are selected.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.parallel import Parallel, delayed

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.guard import guarded
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.admission import PresentRecords
from taciturn.data.persons import PersonRows
from taciturn.fitting.block_lasso import first_features
from taciturn.fitting.objective_perturbation import one_against_rest
from taciturn.fitting.threads import one_thread
from taciturn.fitting.top_k import select_top_k
from taciturn.mechanisms.transcript import coupling
from taciturn.planning.block_vote import BlockVotePlan
from taciturn.sources import ArraySource

__all__ = [
    "assign_blocks",
    "blocks_by_key",
    "blocks_by_slot",
    "count_votes",
    "random_blocks",
    "run_block_vote",
]

# Sixteen bytes.
_SECRET_WORDS = 2
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
    weights = 1.0 / PersonRows.of_slots(records.slots).of_rows if records.persons else None
    votes = count_votes(
        records.X,
        source.x_bound,
        targets,
        blocks,
        selection.k,
        logistic=plan.logistic,
        n_jobs=n_jobs,
        weights=weights,
    )
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
    weights: FloatArray | None = None,
) -> IntArray:
    """Count for each feature the blocks that have it among their first k (:func:`first_features`).

    ``weights`` are one per record; None for equal ones.
    """
    table = X.tocsr() if sp.issparse(X) else X
    n_parcels = min(len(blocks), _PARCELS)
    parcels = (blocks[parcel::n_parcels] for parcel in range(n_parcels))
    with one_thread():
        chosen = Parallel(n_jobs=n_jobs)(
            delayed(_votes_of)(table, x_bound, targets, parcel, k, logistic, weights) for parcel in parcels
        )
    return np.bincount(np.concatenate(chosen), minlength=X.shape[1])


@guarded
def _votes_of(
    table: Any,
    x_bound: float,
    targets: FloatArray,
    blocks: Iterable[IndexArray],
    k: int,
    logistic: bool,
    weights: FloatArray | None,
) -> IntArray:
    def vote(rows: IndexArray) -> IntArray:
        of_rows = None if weights is None else weights[rows]
        return first_features(table[rows], x_bound, targets[rows], k, logistic=logistic, weights=of_rows)

    with one_thread():
        return np.concatenate([vote(rows) for rows in blocks])


def assign_blocks(
    relation: str, records: PresentRecords, n_blocks: int, stream: Stream, keys: Iterable[Any] | None = None
) -> list[IndexArray]:
    """Assign records to blocks by their slots in the table, or at random under add-remove, where slots shift.

    A null record keeps its slot, so that the others stay in their blocks. It is in no block itself. All rows of a
    person are in one block.

    ``keys`` are numbers or texts, one per row of the table, under add-remove: records of one key are in one block. For
    each block the positions of its records among those present are returned, in increasing order.
    """
    if keys is not None:
        # One by one: a common type for all keys would let one of them change what the others say.
        listed = list(keys)
        if len(listed) != records.n_slots:
            raise DataError("keys: expected one key per record, got another number; pass a list as long as y.")
        return blocks_by_key((listed[slot] for slot in records.slots), n_blocks, stream.spawn("blocks"))
    if relation == "add-remove":
        if records.persons:
            with coupling():
                block_of = stream.spawn("blocks").integers(n_blocks, records.n_slots)
            return _rows_of(block_of[records.slots], n_blocks)
        return random_blocks(records.slots.size, n_blocks, stream.spawn("blocks"))
    ends = np.cumsum([rows.size for rows in blocks_by_slot(records.n_slots, n_blocks)])
    return np.split(np.arange(records.slots.size), np.searchsorted(records.slots, ends[:-1]))


def blocks_by_slot(n_rows: int, n_blocks: int) -> list[IndexArray]:
    """Slices of the table, for relations under which every record keeps its slot."""
    edges = [block * n_rows // n_blocks for block in range(n_blocks + 1)]
    return [np.arange(start, stop) for start, stop in pairwise(edges)]


def random_blocks(n_rows: int, n_blocks: int, stream: Stream) -> list[IndexArray]:
    """Assign each record to a block at random, independently of the others."""
    with coupling():
        return _rows_of(stream.integers(n_blocks, n_rows), n_blocks)


def blocks_by_key(keys: Iterable[Any], n_blocks: int, stream: Stream) -> list[IndexArray]:
    """Assign each record to the block of its key, by a hash with a secret from the stream."""
    with coupling():
        secret = stream.words(_SECRET_WORDS).tobytes()
    digests = (hashlib.blake2b(_canonical(key), key=secret, digest_size=16).digest() for key in keys)
    block_of = [int.from_bytes(digest, "little") % n_blocks for digest in digests]
    return _rows_of(np.array(block_of, dtype=np.int64), n_blocks)


def _canonical(key: Any) -> bytes:
    """The same bytes for equal keys, whatever the type in which a number came."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, str):
        return b"text " + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"bytes " + key
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    if isinstance(key, int):
        return f"number {int(key)}".encode()
    if isinstance(key, float) and math.isfinite(key):
        return f"number {key!r}".encode()
    raise DataError("keys: expected a number or text for every record, got something else; write the keys as text.")


def _rows_of(block_of: IntArray, n_blocks: int) -> list[IndexArray]:
    order = np.argsort(block_of, kind="stable")
    return np.split(order, np.searchsorted(block_of[order], np.arange(1, n_blocks)))
