"""Private selection by sample and aggregate: disjoint blocks of records vote for features.

The first of the two stages of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force and a
top-k mechanism that needs to know no more than that one record sways one block.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.parallel import Parallel, delayed

from taciturn.accounting import Budget
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive, check_real
from taciturn.data.admission import PresentRecords
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity import block_votes, public_rows
from taciturn.data.target import check_classes, check_y_bounds, label_records, numeric_target
from taciturn.fitting.block_lasso import first_features
from taciturn.fitting.threads import one_thread
from taciturn.mechanisms.transcript import coupling
from taciturn.planning import plan_top_k
from taciturn.planning.top_k import TOP_K_MECHANISMS
from taciturn.selectors._base import PrivateSelector, labels_or_numbers

__all__ = [
    "BlockVoteSelector",
    "blocks_by_key",
    "blocks_by_slot",
    "blocks_for",
    "check_n_jobs",
    "count_votes",
    "number_of_blocks",
    "random_blocks",
]

# Sixteen bytes.
_SECRET_WORDS = 2
# Blocks are handed to workers in this many parcels: enough to share them out evenly, few enough to be cheap.
_PARCELS = 32


class BlockVoteSelector(PrivateSelector):
    r"""Select the features for which most blocks of records vote, privately.

    The records are cut into disjoint blocks :math:`B_1, \dots, B_m`. Each follows its own LASSO path, from the
    penalty at which no coefficient is active downwards, until k of them are:

    .. math:: \min_{b, w} \sum_{i \in B} \phi(b + z_i \cdot w, y_i) + \alpha \|w\|_1, \qquad \alpha \downarrow,

    and votes for these k features, :math:`v_j = \#\{B : j \text{ active in } B\}`. :math:`\phi` is half the squared
    residual for a numeric target and the logistic loss for labels (with more than two classes one path each, one
    against the rest, and the k features that came first on any). There is no penalty to choose. Columns are centred
    and scaled by the block's own moments, which costs nothing: a vote may be any function of its block.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the set of selected features, nothing else.
    Sensitivity: ``data.sensitivity.block_votes`` (1 under each relation, since one record belongs to one
    block). Votes are integers. Public: the numbers of features, of blocks and, except under add-remove, of records,
    the bounds and the classes. A block that cannot be fitted votes for nothing, silently.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` takes the most voted features and certifies nothing.
    delta : float, default=1e-6
        Probability beyond epsilon. Left unused, and certified as 0, where the mechanism is pure.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means. Blocks are slices of the list of records, except under add-remove, where
        each record is assigned at random.
    n_public : int, default=None
        A public row count. Needed for ``n_blocks="auto"`` under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of a numeric target.
    classes : sequence, default=None
        Public labels of a categorical target; records with another label count as null records: they keep their slots
        and have no part in the vote. None: y is a numeric target, or true and false. Whole numbers that are codes of
        categories need their ``classes``.
    n_features_to_select : int, default=10
        How many features to select, and for how many a block votes. All of them cost nothing.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the public number of records, rounded down. The noise is of the order of
        ``n_features_to_select / epsilon`` votes: more and smaller blocks drown it where features are easy to find.
    mechanism : {"auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"}, default="auto"
        "auto" takes the one that tells the smallest differences apart; with delta = 0 only the pure ones compete.
    gamma : float, default=0.5
        Parameter of the canonical Lipschitz mechanism, in [0, 1).
    n_jobs : int, default=None
        Number of joblib workers over which the blocks are shared. The result is the same for any number.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only, and the certificate
        says so.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        The selected features.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where X has string names.

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Park and Hastie, *L1-regularization path algorithm for generalized linear models* (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import BlockVoteSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = np.clip(X[:, 3] - X[:, 17], -1, 1)
    >>> selector = BlockVoteSelector(epsilon=1.0, n_features_to_select=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(selector.support_).tolist()
    [3, 17]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        classes: Any = None,
        n_features_to_select: int = 10,
        n_blocks: int | str = "auto",
        mechanism: str = "auto",
        gamma: float = 0.5,
        n_jobs: int | None = None,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.classes = classes
        self.n_features_to_select = n_features_to_select
        self.n_blocks = n_blocks
        self.mechanism = mechanism
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any, keys: Any = None) -> BlockVoteSelector:
        """Bound, plan, vote, select, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            A numeric or categorical target.
        keys : array-like of shape (n_samples,), default=None
            Under add-remove only: who each record is about, as numbers or text. Records of one key then stand in one
            block, so that the guarantee of this selection covers all records of a person together. Keys are hashed
            under a key of the fit's own, drawn independently of the data.
        """
        self._check_public()
        if keys is not None and self.relation != "add-remove":
            raise ParameterError(
                "relation",
                self.relation,
                "'add-remove' where keys are given, since a replaced record would move between two blocks",
                "leave keys out, or set relation='add-remove'",
            )
        records = self._read(X, y)
        records, targets, logistic, facts = self._targets(records)
        n_rows, n_columns = records.n_slots, records.n_features
        n_blocks = number_of_blocks(self.n_blocks, public_rows(self.relation, n_rows, self.n_public))
        stream = Stream.of(self.random_state)
        plan = plan_top_k(
            Budget(self.epsilon, self.delta),
            n_columns,
            self._count(n_columns),
            block_votes(self.relation),
            method=self.mechanism,
            gamma=self.gamma,
        )
        blocks = self._blocks(records, n_blocks, keys, stream)
        if plan.method == "all":
            selected = np.arange(n_columns)
        else:
            votes = count_votes(records.X, self.x_bound, targets, blocks, plan.k, logistic=logistic, n_jobs=self.n_jobs)
            selected = plan.select(votes, stream)
        public = self._public_facts(n_rows, n_columns) | {"method": plan.method, "blocks": n_blocks}
        self._conclude(
            selected,
            plan.releases,
            plan.budget,
            public=public | {"x_bound": float(self.x_bound), **facts},
            assumptions=("the bounds and the number of blocks were chosen without looking at these data",),
            seeded=stream.seeded,
            arithmetic=plan.arithmetic,
        )
        return self

    def _check_public(self) -> None:
        super()._check_public()
        check_positive(x_bound=self.x_bound)
        check_choice(TOP_K_MECHANISMS, mechanism=self.mechanism)
        check_real(0.0, 1.0, closed="left", gamma=self.gamma)
        check_y_bounds(self.y_bounds)
        if self.classes is not None:
            check_classes(self.classes)
        check_n_jobs(self.n_jobs)
        if self.n_blocks != "auto":
            check_integer(1, n_blocks=self.n_blocks)
        elif self.relation == "add-remove" and self.n_public is None:
            raise ParameterError(
                "n_public",
                None,
                "a public number of records, of which n_blocks='auto' is the root, since the true one is private",
                "give n_public or n_blocks",
            )

    def _blocks(self, records: PresentRecords, n_blocks: int, keys: Any, stream: Stream) -> list[np.ndarray]:
        """The records of each block, in increasing order."""
        if keys is None:
            return blocks_for(self.relation, records, n_blocks, stream)
        # One by one: a common type for all keys would let one of them change what the others say.
        listed = list(keys)
        if len(listed) != records.n_slots:
            raise DataError("keys: expected one key per record, got another number; pass a list as long as y.")
        return blocks_by_key((listed[slot] for slot in records.slots), n_blocks, stream.spawn("blocks"))

    def _targets(self, records: PresentRecords) -> tuple[PresentRecords, np.ndarray, bool, dict[str, Any]]:
        """Records that are not null, one column of targets per path, whether the loss is logistic, public facts."""
        labels, y = labels_or_numbers(records.y, self.classes)
        if labels is not None:
            records, codes = label_records(records, labels, self.invalid)
            own = np.arange(1, 2) if labels.size == 2 else np.arange(labels.size)
            return records, (codes[:, None] == own).astype(np.float64), True, {"classes": labels}
        bounds = check_y_bounds(self.y_bounds)
        return records, numeric_target(y, bounds)[:, None] / ONE, False, {"y_bounds": bounds}


def check_n_jobs(n_jobs: int | None) -> None:
    """Refuse what joblib would not understand."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ParameterError("n_jobs", n_jobs, "None or an integer other than 0", "set -1 for all processors")


def number_of_blocks(n_blocks: int | str, records: int | None) -> int:
    """As many as were asked for, or the root of the public number of records for "auto"."""
    if n_blocks == "auto":
        return math.isqrt(records)
    if records is not None and n_blocks > records:
        raise ParameterError(
            "n_blocks",
            n_blocks,
            f"at most {records}, the public number of records",
            "take fewer blocks, or leave it at 'auto'",
        )
    return int(n_blocks)


def blocks_for(relation: str, records: PresentRecords, n_blocks: int, stream: Stream) -> list[np.ndarray]:
    """The records of each block, by slots of the table, or drawn one by one where a record more would shift the slots.

    A null record keeps its slot, so that the others stay in their blocks, and is in no block itself.
    """
    if relation == "add-remove":
        return random_blocks(records.slots.size, n_blocks, stream.spawn("blocks"))
    ends = np.cumsum([rows.size for rows in blocks_by_slot(records.n_slots, n_blocks)])
    return np.split(np.arange(records.slots.size), np.searchsorted(records.slots, ends[:-1]))


def blocks_by_slot(n_rows: int, n_blocks: int) -> list[np.ndarray]:
    """Slices of the list of records, for relations under which every record keeps its slot."""
    edges = [block * n_rows // n_blocks for block in range(n_blocks + 1)]
    return [np.arange(start, stop) for start, stop in pairwise(edges)]


def random_blocks(n_rows: int, n_blocks: int, stream: Stream) -> list[np.ndarray]:
    """Each record in a block drawn for it alone."""
    with coupling():
        return _rows_of(stream.integers(n_blocks, n_rows), n_blocks)


def blocks_by_key(keys: Iterable[Any], n_blocks: int, stream: Stream) -> list[np.ndarray]:
    """Each record in the block of its key, by a hash that is keyed from the stream."""
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


def _rows_of(block_of: np.ndarray, n_blocks: int) -> list[np.ndarray]:
    order = np.argsort(block_of, kind="stable")
    return np.split(order, np.searchsorted(block_of[order], np.arange(1, n_blocks)))


def count_votes(
    X: Any,
    x_bound: float,
    targets: np.ndarray,
    blocks: Sequence[np.ndarray],
    k: int,
    *,
    logistic: bool,
    n_jobs: int | None = None,
) -> np.ndarray:
    """For each feature, the number of blocks that have it among their first k; see ``fitting.block_lasso``."""
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
    table: Any, x_bound: float, targets: np.ndarray, blocks: Iterable[np.ndarray], k: int, logistic: bool
) -> np.ndarray:
    with one_thread():
        return np.concatenate(
            [first_features(table[rows], x_bound, targets[rows], k, logistic=logistic) for rows in blocks]
        )
