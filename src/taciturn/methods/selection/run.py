"""Feature selection: top-k scores, votes of blocks, rank correlation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from taciturn.core.errors import DataError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    ONE,
    AnyArray,
    FloatArray,
    IndexArray,
    Int32Array,
    IntArray,
    NumberArray,
    check_finite,
    check_integer,
)
from taciturn.data.design import Design, map_entries
from taciturn.data.persons import PersonRows
from taciturn.data.records import Records
from taciturn.data.target import class_signs
from taciturn.engines.interface import ArraySource, Block, Source
from taciturn.kernels.ranks import ranks_of, scaled_tau, sparse_ranks_of
from taciturn.methods.descent import one_thread
from taciturn.methods.objective.run import one_against_rest
from taciturn.methods.selection.plan import BlockVotePlan, CorrelationPlan, KendallPlan, TopKPlan
from taciturn.methods.sums import cut_mean
from taciturn.privacy.mechanisms import first_k_of
from taciturn.privacy.transcript import coupling

# ---- The selection of k of d scores, or of the k largest columns of coefficients.


def select_top_k(plan: TopKPlan, scores: object, stream: Stream) -> IntArray:
    """Release the indices of the k largest scores, by the mechanism of the plan."""
    if plan.mechanism is not None:
        return plan.mechanism.release(scores, stream.spawn("top-k"))
    exact = check_finite(scores=scores)
    return first_k_of(exact, np.zeros(exact.size), plan.k)


def keep_largest_columns(coefficients: FloatArray, k: int) -> FloatArray:
    """Zero all but the k columns with the largest absolute sums, ties by index: post-processing, at no cost."""
    k = check_integer(1, k=k)
    kept = np.zeros_like(coefficients)
    largest = np.argsort(-np.abs(coefficients).sum(axis=0), kind="stable")[:k]
    kept[:, largest] = coefficients[:, largest]
    return kept


# ---- The features that enter the LASSO path of a small block of records first.
# The path is followed from the penalty at which nothing is active downwards, by prediction and correction: along the
# tangent to the next penalty at which a coefficient appears or vanishes, then Newton steps on the active coefficients.
# For the squared loss the path is straight between these points and the prediction exact; for the logistic loss it is
# curved and the Newton steps bring the solution back onto it. scikit-learn follows the first of these paths, with
# warnings that would tell of the data, and not the second.
#
# A vote must be a function of the block's records and of nothing else. So every sum over records that has to do with
# all features runs on integers: no layout, chunk or thread can change it. Nothing here raises an error or a warning on
# account of the values, and there is no randomness.

# Weights of records are rounded to a millionth of the largest, so that sums of products are exact.
_WEIGHT_BOUND = 1 << 20
# In squared lattice units: what rounding can leave of a constant column's variance is smaller.
_LEAST_VARIANCE = 2.0**-18
# A feature whose gradient falls with the penalty, to within rounding and more, is a copy of active ones.
_COLLINEAR = 1e-4
_CORRECTIONS = 2
_LAST_PENALTY = 1e-3
_LARGEST_COEFFICIENT = 1e3


def first_features(
    X: Any, x_bound: float, targets: FloatArray, k: int, *, logistic: bool, weights: FloatArray | None = None
) -> IntArray:
    r"""The k features that come first on the way down the path, fewer if the path ends before.

    For one target, those active as soon as k are:

    .. math:: \min_{b, w} \sum_i \phi(b + z_i \cdot w, y_i) + \alpha \|w\|_1, \qquad \alpha \downarrow,

    with the columns z of the block centred and divided by their standard deviations *in the block*, and
    :math:`\phi` half the squared residual or the logistic loss. With several targets, one path each; the k features
    that became active at the largest penalties are taken. Ties go to the lower column.

    The targets have a column each, of numbers or of 0 and 1 for the logistic loss; entries of X are clipped to
    ``x_bound``. Column numbers are in increasing order. ``weights`` are those of the records in the loss and in the
    moments of the columns; None for equal ones.
    """
    seen = None
    if sp.issparse(X):
        # A column without entries is constant and never enters.
        seen, places = np.unique(X.indices, return_inverse=True)
        X = sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], seen.size))
    if X.shape[0] < 2 or X.shape[1] == 0:
        return np.zeros(0, dtype=np.int64)
    columns = _Columns(Design(X, x_bound), weights)
    penalties: dict[int, float] = {}
    with np.errstate(all="ignore"):
        for target in targets.T:
            for feature, penalty in _path(columns, target, k, logistic, weights).items():
                penalties[feature] = max(penalty, penalties.get(feature, 0.0))
    first = sorted(penalties, key=lambda feature: (-penalties[feature], feature))[:k]
    chosen = np.sort(np.array(first, dtype=np.int64))
    return chosen if seen is None else seen[chosen].astype(np.int64)


class _Columns:
    """The columns of a block, centred and divided by their standard deviations; constant ones become zero."""

    def __init__(self, design: Design, weights: FloatArray | None = None) -> None:
        lattice = design.lattice
        n_rows = lattice.shape[0]
        squares = lattice.multiply(lattice) if sp.issparse(lattice) else lattice * lattice
        self._design, self._lattice = design, lattice
        # Where rows are those of persons their number must not be told by a refusal; a vote may be any function of its
        # block, so that sums beyond 64 bits, which no memory holds the rows for, would do no harm.
        self._n_records = None if weights is None else 1
        if weights is None:
            self._mean = design.rmatvec(np.ones(n_rows), 1) / n_rows
            variance = np.asarray(squares.sum(axis=0)).ravel() / n_rows - self._mean**2
        else:
            parts = np.rint(weights * (_WEIGHT_BOUND / float(weights.max())))
            self._mean = design.rmatvec(parts, _WEIGHT_BOUND, self._n_records) / float(parts.sum())
            variance = np.asarray(squares.T @ parts).ravel() / float(parts.sum()) - self._mean**2
        self.constant = variance < _LEAST_VARIANCE
        self._inverse = np.where(self.constant, 0.0, 1.0 / np.sqrt(np.where(self.constant, 1.0, variance)))

    def column(self, feature: int) -> FloatArray:
        """One of them."""
        raw = self._lattice[:, [feature]]
        dense = raw.toarray() if sp.issparse(raw) else raw
        return np.asarray((dense.ravel() - self._mean[feature]) * self._inverse[feature])

    def products(self, weights: FloatArray) -> FloatArray:
        """``Z.T @ weights`` for a few columns of weights, each rounded to a lattice of its own."""
        units = np.abs(weights).max(axis=0) / _WEIGHT_BOUND
        units[units == 0.0] = 1.0
        rounded = np.rint(weights / units)
        sums = self._design.rmatvec(rounded, _WEIGHT_BOUND, self._n_records)
        centred = sums - np.outer(self._mean, rounded.sum(axis=0))
        return np.asarray(centred * units * self._inverse[:, None])


def _path(
    columns: _Columns, target: FloatArray, k: int, logistic: bool, weights: FloatArray | None
) -> dict[int, float]:
    """The active features when k of them are, or at the end, with the penalty at which each became active."""
    level = float(target.mean() if weights is None else np.average(target, weights=weights))
    if (target == target[0]).all():
        return {}
    # Intercept first; one column and one coefficient more for each active feature.
    basis = np.ones((target.size, 1))
    theta = np.array([logit(level) if logistic else level])
    signs = np.zeros(1)
    active: dict[int, float] = {}
    residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
    largest = penalty = float(np.abs(columns.products(residual[:, None])).max())
    dropped: list[int] = []
    # Coefficients seldom vanish again and few steps are halved; the bound is for blocks in which they do not stop.
    for _ in range(8 * k + 32):
        if len(active) == min(k, target.size - 1) or penalty <= _LAST_PENALTY * largest:
            break
        try:
            direction = np.linalg.solve(_gram(basis, curvature), signs)
        except np.linalg.LinAlgError:
            break
        moving = curvature * (basis @ direction)
        gradient, change = columns.products(np.column_stack((residual, moving))).T
        waits = _steps_to(penalty, gradient, change)
        waits[columns.constant] = np.inf
        waits[[*active, *dropped]] = np.inf
        dropped = []
        entering = int(np.argmin(waits))
        shrinking = direction * signs < 0.0
        ends = np.full(theta.size, np.inf)
        ends[shrinking] = np.maximum(-theta[shrinking] / direction[shrinking], 0.0)
        leaving = int(np.argmin(ends))
        step = min(waits[entering], ends[leaving], penalty / 2.0)
        penalty -= step
        theta = theta + step * direction
        try:
            for _ in range(_CORRECTIONS):
                residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
                theta = theta + np.linalg.solve(_gram(basis, curvature), basis.T @ residual - penalty * signs)
        except np.linalg.LinAlgError:
            break
        if not (np.abs(theta) < _LARGEST_COEFFICIENT).all():
            break
        if step == ends[leaving]:
            feature = list(active)[leaving - 1]
            dropped = [feature]
            del active[feature]
            basis, theta, signs = (
                np.delete(basis, leaving, axis=1),
                np.delete(theta, leaving),
                np.delete(signs, leaving),
            )
        elif step == waits[entering]:
            active[entering] = penalty
            basis = np.column_stack((basis, columns.column(entering)))
            theta = np.append(theta, 0.0)
            signs = np.append(signs, np.sign(gradient[entering] - step * change[entering]))
        residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
    return active


def _derivatives(
    margins: FloatArray, target: FloatArray, logistic: bool, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Minus the first and the second derivative of the loss, one each per record, times the weights."""
    if logistic:
        probability = expit(margins)
        first, second = target - probability, probability * (1.0 - probability)
    else:
        first, second = target - margins, np.ones(margins.size)
    return (first, second) if weights is None else (first * weights, second * weights)


def _gram(basis: FloatArray, curvature: FloatArray) -> FloatArray:
    return (basis * curvature[:, None]).T @ basis


def _steps_to(penalty: float, gradient: FloatArray, change: FloatArray) -> FloatArray:
    """By how much the penalty may fall until ``|gradient - step * change|`` reaches it, for each feature."""
    steps = np.full(gradient.size, np.inf)
    for sign in (1.0, -1.0):
        closing = 1.0 - sign * change
        possible = closing > _COLLINEAR
        reached = np.maximum(penalty - sign * gradient[possible], 0.0) / closing[possible]
        steps[possible] = np.minimum(steps[possible], reached)
    return steps


# ---- Disjoint blocks of records, assigned so that one record more or less changes one block, and their votes.
# Sample and aggregate: every block votes for features, and the most voted ones are selected.

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
    blocks = assign_blocks(plan.problem.relation, records, plan.n_blocks, stream, keys)
    selection = plan.selection
    if selection.method == "all":
        return np.arange(records.n_features)
    logistic = plan.problem.loss.labelled
    targets = one_against_rest(records.y, plan.problem.n_outputs) if logistic else records.y[:, None] / ONE
    weights = 1.0 / PersonRows.of_slots(records.slots).of_rows if records.persons else None
    votes = count_votes(
        records.X, source.x_bound, targets, blocks, selection.k, logistic=logistic, n_jobs=n_jobs, weights=weights
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
    """Count for each feature the blocks that have it among their :func:`first_features`; weights of None are equal."""
    table = X.tocsr() if sp.issparse(X) else X
    n_parcels = min(len(blocks), _PARCELS)
    parcels = (blocks[parcel::n_parcels] for parcel in range(n_parcels))
    with one_thread():
        from sklearn.utils.parallel import Parallel, delayed

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
    relation: str, records: Records, n_blocks: int, stream: Stream, keys: Iterable[Any] | None = None
) -> list[IndexArray]:
    """The positions, among the records present, of the records of each block, in increasing order.

    Blocks are slots of the table, or random under add-remove, where slots shift. A null record keeps its slot, so
    that the others stay in their blocks, and is in no block itself. All rows of a person are in one block, and so
    are, under add-remove, records of one of the ``keys``, numbers or texts, one per row of the table.
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


# ---- Selection by rank correlation, one feature per round.


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
    """Rank correlations in steps of the plan's lattice; null records are in no pair, but they count in n."""

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


# ---- Scores of features by their sums of products with the target.

# Sums of products of two numbers below 2**450 are far from the largest double.
_MOST_BITS = 450


@dataclass(frozen=True, slots=True)
class TargetParts:
    """Task: the sums of the parts of the target, as ``data.sensitivity.target_parts`` has them.

    ``n_classes`` is 0 for a target of numbers. The parts of one record add up to ``unit``; of numbers half of the
    unit stands for a sign (``signed_target``), or they are integers up to that half.
    """

    n_classes: int
    unit: int
    signed_target: bool

    @property
    def columns(self) -> IndexArray:
        """No features."""
        return np.zeros(0, dtype=np.intp)

    def __call__(self, block: Block) -> IntArray:
        """One number per class, or two numbers: those of the upper and of the lower end of the range."""
        target = np.asarray(block.target, dtype=np.int64)
        if self.n_classes > 0:
            if block.persons is not None:
                return block.persons.cell_shares(target, self.n_classes, self.unit)
            return self.unit * np.bincount(target[target >= 0], minlength=self.n_classes).astype(np.int64)
        half = self.unit // 2
        numbers = (target * half if self.signed_target else target)[:, None]
        parts: IntArray = block.by_record(np.hstack((half + numbers, half - numbers))).sum(axis=0)
        return parts


def release_centres(
    plan: CorrelationPlan, source: Source, n_classes: int, *, signed_target: bool, stream: Stream
) -> tuple[int, ...]:
    """Release the means of the columns of the target, on the lattice; zeros where none is needed or all is noise."""
    n_columns = n_classes if n_classes > 2 else 1
    if plan.centre is None:
        return (0,) * n_columns
    sums = source.total(TargetParts(n_classes, plan.part_unit, signed_target))
    # What follows is post-processing.
    parts = np.maximum(plan.centre.release(sums, stream.spawn("centre")), 0).astype(np.float64)
    of_columns = parts[:1] if n_classes == 0 else parts[-n_columns:]
    means = 2.0 * of_columns / parts.sum() - 1.0 if parts.any() else np.zeros(n_columns)
    return tuple(int(centre) for centre in np.rint(ONE * means))


@dataclass(frozen=True, slots=True)
class CorrelationSums:
    """Task: the sums over records of products of all features with the centred columns of the target.

    ``n_classes`` is 0 for a target of numbers. ``centres``, between -ONE and ONE, are taken off its columns.
    Features count by their values or ``signs``; with a ``signed_target`` ONE stands for a sign.
    """

    n_classes: int
    centres: tuple[int, ...]
    signs: bool = False
    signed_target: bool = False
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """One row of sums per feature, one column per column of the target."""
        few, persons = block.by_size()
        total = self._of_records(few)
        for person in persons:
            total = total + cut_mean(self._of_records(person), person.n_rows)
        return total

    def _of_records(self, block: Block) -> IntArray:
        design = block.design(None)
        weights = self._centred(target_columns(block.target, self.n_classes))
        if block.row_counts is not None:
            # Each of a person's m rows has at most the m-th part of the unit, in integers.
            bounds = (ONE // block.row_counts)[:, None]
            weights = np.clip(np.rint(weights / block.row_counts[:, None]), -bounds, bounds)
        return (design.signs() if self.signs else design).rmatvec(weights, ONE, block.n_persons)

    def _centred(self, columns: FloatArray) -> FloatArray:
        """The columns minus their centres, in units of the most that is left: integers in [-ONE, ONE]."""
        centres = np.array(self.centres, dtype=np.float64)
        most = ONE + float(np.abs(centres).max())
        # Integers below 2**34 and a quotient of at most ONE: the same bits everywhere.
        weights: FloatArray = np.rint(((ONE if self.signed_target else 1) * columns - centres) * ONE / most)
        return weights


def target_columns(target: NumberArray, n_classes: int) -> FloatArray:
    """One column of signs per class (one for two classes), or the column of numbers for ``n_classes=0``."""
    if n_classes > 0:
        return class_signs(np.asarray(target, dtype=np.int64), n_classes)
    return np.asarray(target, dtype=np.float64)[:, None]


def plain_scores(records: Records, n_classes: int, *, signs: bool) -> FloatArray:
    """The largest absolute sum of each feature with the centred target, not private; exact up to a power of two."""
    X = map_entries(np.sign, records.X) if signs else records.X
    weights = np.nan_to_num(target_columns(records.y, n_classes))
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)), float(np.abs(weights).max(initial=0.0))
    of_x, of_weights = (max(0, math.frexp(value)[1] - _MOST_BITS) for value in largest)
    if of_x or of_weights:
        X = map_entries(lambda entries: np.ldexp(entries, -of_x), X)
        weights = np.ldexp(weights, -of_weights)
    shares = 1.0 / PersonRows.of_slots(records.slots).of_rows if records.persons else np.ones(weights.shape[0])
    weights = shares[:, None] * (weights - (shares @ weights) / max(float(shares.sum()), 1.0))
    scores: FloatArray = np.abs(np.asarray(X.T @ weights)).max(axis=1)
    return scores


def declared_scores(
    score_func: Callable[..., Any], source: ArraySource, weights: FloatArray, *, clip: bool, in_slots: bool
) -> FloatArray:
    """The scores of a callable with a declared sensitivity; its errors, which may quote data, are not passed on.

    ``weights`` are the columns of the mapped target; a single one is passed on as a vector. ``clip`` clips the features
    to their bound. ``in_slots`` makes null records rows of zeros: a callable may divide by the number of rows, where
    that is public.
    """
    X, bound = source.records.X, source.x_bound
    if clip:
        X = map_entries(lambda entries: np.clip(entries, -bound, bound), X)
    if in_slots:
        X, weights = source.records.in_slots(X), source.records.in_slots(weights)
    scores = None
    with suppress(Exception):
        scores = np.asarray(score_func(X, weights[:, 0] if weights.shape[1] == 1 else weights), dtype=np.float64)
    if scores is None or scores.shape != X.shape[1:] or not np.isfinite(scores).all():
        raise DataError(
            "score_func: expected one finite number per feature, and the callable failed or returned something "
            "else; try it on made-up data within the bounds."
        )
    return scores
