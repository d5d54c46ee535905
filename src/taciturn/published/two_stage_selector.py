"""Two-stage selection: features counted over LASSO fits on slices of the records, as its users describe it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.linear_model import Lasso

from taciturn.certificate import Certificate, Release
from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import check_claimed_epsilon, check_integer, check_positive
from taciturn.data.reading import read_records
from taciturn.data.sensitivity import block_votes
from taciturn.data.target import target_numbers
from taciturn.events import NotPrivateEvent
from taciturn.fitting.blocks import blocks_by_slot
from taciturn.mechanisms import LaplaceTopK
from taciturn.published._base import Reproduction
from taciturn.selectors.base import FeatureMask

__all__ = ["TwoStageSelector", "lasso_counts"]

SHIFTED_SLICES = (
    "blocks are slices of the list of records and their number is the root of its length: where a record is missing "
    "rather than blanked out every block may change, and a count may move by their number"
)
UNPRINTED_NOISE = (
    "the paper does not print how the counts are made private; Laplace noise of scale 2 k / epsilon on every count is "
    "inferred"
)
SHARED_SCALE = (
    "the experiments centre and scale features and target by all the data before they are cut into blocks, so that one "
    "record sways every block; the claimed epsilon does not pay for it"
)
COMPARED_PENALTIES = "the penalty was settled on after comparing results for several on the same data"


@guarded
def lasso_counts(X: Any, y: FloatArray, n_blocks: int, alpha: float) -> IntArray:
    """In how many slices of the records each coefficient of a LASSO is not zero."""
    table = X.tocsr() if sp.issparse(X) else X
    model = Lasso(alpha=alpha)
    counts = np.zeros(X.shape[1], dtype=np.int64)
    for rows in blocks_by_slot(y.size, n_blocks):
        counts += model.fit(table[rows], y[rows]).coef_ != 0.0
    return counts


class TwoStageSelector(FeatureMask, Reproduction, BaseEstimator):
    r"""The selection of the two-stage method, as the authors of DP-SIS use it for a baseline.

    The n records are cut into :math:`\lfloor\sqrt n\rfloor` slices. On each of them,

    .. math:: \hat w_b = \arg\min_{w, w_0} \frac{1}{2 n_b} \sum_{i \in b} (y_i - w_0 - x_i \cdot w)^2
              + \lambda \|w\|_1,

    and the k features with the largest :math:`\#\{b : \hat w_{bj} \ne 0\} + \mathrm{Lap}(2k / \varepsilon)` are
    selected. Nothing is clipped or checked. For use, see :class:`taciturn.BlockVoteSelector`.

    **Privacy.** As published, epsilon-DP. Under zero-out, for blocks that are scaled by public constants, that is
    proved: every count moves by at most 1 (``data.sensitivity.block_votes``), however many features a block
    counts for, because only the set is released and not the counts. Where a record is missing rather than blanked out,
    every block changes, and the bound is worse by their number.

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` counts without noise and settles ties at random.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the number of records, rounded down.
    alpha : float, default=0.1
        :math:`\lambda`, the printed value.
    n_features_to_select : int, default=10
        k. All features cost nothing.
    %(published_seed)s

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        The selected features.
    %(published_statement)s

    Errata
    ------
    * Slices of the list, and their number from the true n: with a record more or less, every slice shifts and a count
      can move by the number of blocks.
    * How the counts are made private is not printed. Laplace noise of scale :math:`2k/\varepsilon` on every count, the
      largest noisy counts taken, is inferred.
    * Features and target are centred and scaled by all the data before they are cut.
    * :math:`\lambda` was chosen after results for several values had been compared.

    References
    ----------
    Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*, Sections 2.2, 3
    and 5. Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression*
    (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import TwoStageSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = X[:, 3] - X[:, 17]
    >>> selector = TwoStageSelector(n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [3, 17]
    >>> selector.certificate_.status, selector.certificate_.epsilon, selector.certificate_.proved_epsilon
    ('as published', 1.0, 1.0)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        n_blocks: int | str = "auto",
        alpha: float = 0.1,
        n_features_to_select: int = 10,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.n_blocks = n_blocks
        self.alpha = alpha
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        records = read_records(self, X, y, invalid="raise", numeric=False)
        X, y = records.X, target_numbers(records.y, remedy="code labels as numbers")
        n_rows, n_columns = X.shape
        n_blocks = self._number_of_blocks(n_rows)
        k = self._count(n_columns)
        counts = lasso_counts(X, y, n_blocks, self.alpha)
        self.support_ = np.zeros(n_columns, dtype=bool)
        self.support_[self._selected(counts, k, stream.spawn("top-k"))] = True
        return self._claim(n_rows, n_columns, n_blocks, k, stream.seeded)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_claimed_epsilon(epsilon=self.epsilon)
        check_positive(alpha=self.alpha)
        check_integer(1, n_features_to_select=self.n_features_to_select)
        if self.n_blocks != "auto":
            check_integer(1, n_blocks=self.n_blocks)
        Stream.of(self.random_state)

    def _number_of_blocks(self, n_rows: int) -> int:
        if isinstance(self.n_blocks, str):
            return math.isqrt(n_rows)
        if self.n_blocks > n_rows:
            raise ParameterError("n_blocks", self.n_blocks, f"at most {n_rows}, one per record", "take fewer blocks")
        return int(self.n_blocks)

    def _selected(self, counts: IntArray, k: int, stream: Stream) -> IndexArray:
        if math.isinf(self.epsilon):
            # Many counts are equal; the first columns are no better than the others.
            return np.lexsort((stream.uniforms(counts.size), -counts))[:k]
        return self._mechanism(k).release(counts, stream)

    def _mechanism(self, k: int) -> LaplaceTopK:
        return LaplaceTopK(block_votes("zero-out"), k, float(self.epsilon))

    def _claim(self, n_rows: int, n_columns: int, n_blocks: int, k: int, seeded: bool) -> Certificate:
        private = not math.isinf(self.epsilon)
        what = f"which {k:,} of {n_columns:,} features are counted most often"
        if k == n_columns:
            releases: tuple[Release, ...] = ()
        elif private:
            noise = self._mechanism(k)
            releases = (Release(what, "Laplace", noise.scale, noise.event),)
        else:
            releases = (Release(what, "none", 0.0, NotPrivateEvent()),)
        return Certificate(
            epsilon=float(self.epsilon),
            delta=0.0,
            relation="zero-out",
            status="as published" if private else "not private",
            events=releases,
            public={
                "features": n_columns,
                "selected": k,
                "records": n_rows,
                "blocks": n_blocks,
                "alpha": float(self.alpha),
            },
            assumptions=("features and target were scaled by public constants",),
            seeded=seeded,
            arithmetic="exact",
            bound="none",
            proved_epsilon=(float(self.epsilon) if releases else 0.0) if private else None,
            errata=(SHIFTED_SLICES, UNPRINTED_NOISE, SHARED_SCALE, COMPARED_PENALTIES),
        )
