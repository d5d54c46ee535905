"""Large sparse tables in the manner of text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer, check_positive

__all__ = ["make_power_law_sparse"]


# Below this, rows with distinct columns are waited for too long.
_LEAST_FREE_SHARE = 0.05


def make_power_law_sparse(
    n_samples: int = 20_242,
    n_features: int = 47_236,
    nnz_per_row: int = 75,
    *,
    exponent: float = 1.35,
    offset: float = 100.0,
    n_informative: int = 20,
    random_state: Any = None,
) -> tuple[sp.csr_array, IntArray, FloatArray]:
    r"""Sparse rows in the manner of text: a few columns are everywhere, most are almost nowhere.

    Every row has ``nnz_per_row`` different columns, drawn one after another with probabilities proportional to

    .. math:: (\text{rank} + \text{offset})^{-\text{exponent}}

    (the law of Zipf and Mandelbrot; the ranks are a random order of the columns). The values are uniform on
    (0, 1], then each row is divided by its Euclidean norm. The ``n_informative`` most popular columns have
    weights +1 and -1 in turn, and :math:`y = 1` where :math:`x_i \cdot w^* > 0`.

    Not from a paper. The defaults have the size of RCV1's training part, and the shape of its column counts
    to within a fifth or so, the ten most popular columns aside. For news20:
    ``make_power_law_sparse(19_996, 1_355_191, 455, exponent=1.0)``.

    Parameters
    ----------
    n_samples, n_features, nnz_per_row : int
        Rows, columns, and non-zero entries of every row.
    exponent : float, default=1.35
        How fast popularity falls with rank.
    offset : float, default=100.0
        How many leading ranks are of about the same popularity.
    n_informative : int, default=20
        Columns with a non-zero weight.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features)
        Values in (0, 1], rows of Euclidean norm 1, column indices sorted.
    y : ndarray of shape (n_samples,)
        0 or 1.
    coef : ndarray of shape (n_features,)
        The true weights.
    """
    check_integer(1, n_samples=n_samples)
    check_integer(1, n_features=n_features)
    check_integer(1, n_features, nnz_per_row=nnz_per_row)
    check_integer(0, n_features, n_informative=n_informative)
    check_positive(exponent=exponent)
    check_positive(offset=offset)
    popularity = (np.arange(1.0, n_features + 1.0) + offset) ** -exponent
    cumulative = np.cumsum(popularity)
    free = 1.0 - cumulative[nnz_per_row - 1] / cumulative[-1]
    if free < _LEAST_FREE_SHARE and nnz_per_row > 1:
        raise ParameterError(
            "nnz_per_row",
            nnz_per_row,
            f"so few that the most popular columns leave {_LEAST_FREE_SHARE:.0%} of all draws to the others",
            "take fewer entries per row or a smaller exponent",
        )
    rng = np.random.default_rng(random_state)
    column_of_rank = rng.permutation(n_features).astype(np.int32)
    columns = column_of_rank[_distinct_ranks(rng, cumulative, n_samples, nnz_per_row)]
    columns.sort(axis=1)
    values = 1.0 - rng.random((n_samples, nnz_per_row))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    # scipy widens all indices if any are wide, and 32-bit ones are what most kernels read without a copy.
    width = np.int32 if values.size <= np.iinfo(np.int32).max else np.int64
    starts = np.arange(0, values.size + 1, nnz_per_row, dtype=width)
    X = sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_samples, n_features))
    coef = np.zeros(n_features)
    coef[column_of_rank[:n_informative]] = np.where(np.arange(n_informative) % 2, -1.0, 1.0)
    return X, (X @ coef > 0.0).astype(np.int64), coef


def _distinct_ranks(rng: np.random.Generator, cumulative: FloatArray, n_rows: int, n_per_row: int) -> IntArray:
    """Ranks from 0, different within each row, drawn in turn from the popularities not yet taken."""

    def draw(size: int) -> IntArray:
        return np.asarray(np.searchsorted(cumulative, rng.random(size) * cumulative[-1]))

    ranks = draw(n_rows * n_per_row).reshape(n_rows, n_per_row)
    pending = np.arange(n_rows)
    while pending.size:
        # Drawing anew where a rank came up again is drawing without replacement.
        block = ranks[pending]
        block.sort(axis=1)
        again = np.zeros(block.shape, dtype=bool)
        np.equal(block[:, 1:], block[:, :-1], out=again[:, 1:])
        block[again] = draw(int(again.sum()))
        ranks[pending] = block
        pending = pending[again.any(axis=1)]
    return ranks
