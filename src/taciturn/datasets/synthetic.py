"""Synthetic data sets of the papers.

Every generator takes ``random_state``, a seed (int, numpy Generator or None), and returns X of shape (n_samples,
n_features), y of shape (n_samples,) and the true weights ``coef`` of shape (n_features,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray, IntArray, check_integer, check_positive, check_real

# ---- The synthetic sets of *Feature Selection from Differentially Private Correlations* (DP-SIS).


def make_dpsis_instability(
    n_samples: int = 100, n_features: int = 100, *, outliers: bool = False, random_state: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""The sets behind Figure 1 of DP-SIS: W1, and W1/W2 with ``outliers``.

    Section 3: standard normal rows and :math:`y = X w_1 + e`, :math:`e_i \sim N(0, 0.1)` with 0.1 read as a variance;
    :math:`w_1` is 1 in the first five places, 0 elsewhere. With outliers, every tenth row follows :math:`w_2` instead,
    which is 1 in the last five places, so that each of ten slices holds one outlier in ten rows.

    Parameters
    ----------
    n_samples, n_features : int
        The paper's are the defaults; at least 10 features.
    outliers : bool, default=False
        Whether every tenth row follows the other weights.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X, y, coef : ndarrays of shape (n_samples, n_features), (n_samples,) and (n_features,)
        X and y are not scaled; ``coef`` are the weights of all rows but the outliers.
    """
    check_integer(1, n_samples=n_samples)
    check_integer(10, n_features=n_features)
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features))
    coef = np.zeros(n_features)
    coef[:5] = 1.0
    y = X @ coef
    if outliers:
        y[9::10] = X[9::10] @ coef[::-1]
    return X, y + np.sqrt(0.1) * rng.standard_normal(n_samples), coef


def make_dpsis_linear(
    n_samples: int = 100, n_features: int = 2000, *, random_state: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""The synthetic regression set of DP-SIS.

    Section 5, Equations 5 and 6, after Fan and Lv (2008): standard normal rows, eight weights
    :math:`(-1)^u (4 \log(n) / \sqrt n + |z|)` at random places with u a coin that shows 1 with probability 0.4 and z
    standard normal, and :math:`y = X w + e`, :math:`e_i \sim N(0, 1.5)` with 1.5 read as a variance. Then every column
    and the target are centred and divided by their largest absolute value.

    Parameters
    ----------
    n_samples, n_features : int
        The paper's are the defaults; at least 8 features and 2 samples.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X, y, coef : ndarrays of shape (n_samples, n_features), (n_samples,) and (n_features,)
        Columns and target are centred values in [-1, 1], each touching -1 or 1; ``coef`` are the weights before
        scaling.
    """
    check_integer(2, n_samples=n_samples)
    check_integer(8, n_features=n_features)
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features))
    coef = np.zeros(n_features)
    least = 4.0 * np.log(n_samples) / np.sqrt(n_samples)
    signs = np.where(rng.random(8) < 0.4, -1.0, 1.0)
    coef[rng.choice(n_features, 8, replace=False)] = signs * (least + np.abs(rng.standard_normal(8)))
    y = X @ coef + np.sqrt(1.5) * rng.standard_normal(n_samples)
    return _centred(X), _centred(y), coef


def _centred(values: FloatArray) -> FloatArray:
    values = values - values.mean(axis=0)
    centred: FloatArray = values / np.abs(values).max(axis=0)
    return centred


# ---- The synthetic sets of *Differentially Private Iterative Gradient Hard Thresholding [...]* (DP-IGHT).


def make_ight_linear(
    n_samples: int = 1000, n_features: int = 1000, n_informative: int = 10, *, random_state: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""The synthetic regression set of DP-IGHT.

    Section 6: entries uniform on (-2, 2), rows scaled down to an L2 norm of at most twice the number of weights; that
    many weights, uniform on (-1, 1), at random places; :math:`y = X w + e`, :math:`e_i \sim N(0, 0.1)` with 0.1 read as
    a variance.

    Parameters
    ----------
    n_samples, n_features, n_informative : int
        The paper's are the defaults.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X, y, coef : ndarrays of shape (n_samples, n_features), (n_samples,) and (n_features,)
        Features in [-2, 2], the target, which is not scaled, and the true weights.
    """
    X, coef, rng = _rows(n_samples, n_features, n_informative, random_state)
    return X, X @ coef + np.sqrt(0.1) * rng.standard_normal(n_samples), coef


def make_ight_logistic(
    n_samples: int = 1000, n_features: int = 1000, n_informative: int = 10, *, random_state: Any = None
) -> tuple[FloatArray, IntArray, FloatArray]:
    r"""The synthetic classification set of DP-IGHT.

    The rows and weights of :func:`make_ight_linear`, and :math:`y = 1` with probability :math:`1 / (1 + e^{-x \cdot
    w})`. The paper prints the sign of the exponent the other way round, which no method could fit.

    Parameters and results are those of :func:`make_ight_linear`, but y is 0 or 1.
    """
    X, coef, rng = _rows(n_samples, n_features, n_informative, random_state)
    return X, (rng.random(n_samples) < expit(X @ coef)).astype(np.int64), coef


def _rows(
    n_samples: int, n_features: int, n_informative: int, random_state: Any
) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    check_integer(1, n_samples=n_samples)
    check_integer(1, n_features, n_informative=n_informative)
    rng = np.random.default_rng(random_state)
    coef = np.zeros(n_features)
    coef[rng.choice(n_features, n_informative, replace=False)] = rng.uniform(-1.0, 1.0, n_informative)
    X = rng.uniform(-2.0, 2.0, (n_samples, n_features))
    X *= np.minimum(1.0, 2.0 * n_informative / np.linalg.norm(X, axis=1))[:, None]
    return X, coef, rng


# ---- Large sparse tables in the manner of text.

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
    y, coef : ndarrays of shape (n_samples,) and (n_features,)
        Labels 0 or 1, and the true weights.
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
        expected = f"so few that the most popular columns leave {_LEAST_FREE_SHARE:.0%} of all draws to the others"
        raise ParameterError("nnz_per_row", nnz_per_row, expected, "take fewer entries per row or a smaller exponent")
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


# ---- The synthetic sets of the Sparsifier paper and of the screening papers: normal rows, weights at the front.

_SPARSIFIER_WEIGHTS = (10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 0.5)
_SCREENING_WEIGHTS = (1.0,) * 35 + (-1.0,) * 35


def make_sparsifier_logistic(
    n_samples: int = 10_000, n_features: int = 100, *, random_state: Any = None
) -> tuple[FloatArray, IntArray, FloatArray]:
    r"""The synthetic classification set of *Sparse Private LASSO Logistic Regression* (Sparsifier).

    Section 4.2, "Synthetic Data", behind its Figures 1 to 4 and the rows SYNTHETIC of Tables 1 and 2, after
    Wang and Zhang (2020). Rows are normal with mean zero and covariance :math:`\Sigma_{ij} = 0.5^{|i-j|}`; each
    column is divided by its largest absolute value; then

    .. math:: w^* = (10, 9, 8, 7, 6, 5, 4, 0.5, 0, \dots, 0), \qquad
              y_i = 1 \text{ if } \sigma(w^* \cdot x_i) > 1/2 \text{ else } 0.

    Labels are a function of the scaled row, without noise. The paper's held-out fifth is left to the caller.

    Parameters
    ----------
    n_samples, n_features : int
        The paper's are the defaults; at least 8 features.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X, y, coef : ndarrays of shape (n_samples, n_features), (n_samples,) and (n_features,)
        Features in [-1, 1], every column touching -1 or 1, labels 0 or 1, and the true weights.
    """
    check_integer(len(_SPARSIFIER_WEIGHTS), n_features=n_features)
    X = _normal_rows(n_samples, n_features, 0.5, random_state)
    X /= np.abs(X).max(axis=0)
    coef = _leading(_SPARSIFIER_WEIGHTS, n_features)
    return X, _positive(X @ coef), coef


def make_screening_linear(
    n_samples: int = 3000, n_features: int = 600, *, correlation: float = 0.0, random_state: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""The synthetic regression sets of the screening papers (ADP-Screen, RNM-Screen).

    ADP-Screen, Section 4 (Figure 1), and RNM-Screen, Section 6.1 (Figure 1, Table 1) and its appendix on
    ADP-Screen, after Raj et al. (2016): standard normal rows, or, for the correlated set of RNM-Screen,
    covariance :math:`\Sigma_{ij} = 0.5^{|i-j|}`, scaled so that :math:`\|x_i\|_\infty \le 1`; 35 weights of +1,
    35 of -1, the others 0; :math:`y = X w^*` without noise.

    The papers leave two things open. Here the whole matrix is divided by its largest absolute value, and the
    non-zero weights are one block at the front, +1 before -1; of the readings tried, this one comes closest to
    the printed Table 1. Where the block stands matters with correlation only.

    Parameters
    ----------
    n_samples, n_features : int
        The papers' are the defaults; at least 70 features.
    correlation : float, default=0.0
        Between neighbouring features, in [0, 1); 0.5 for the correlated set.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X, y, coef : ndarrays of shape (n_samples, n_features), (n_samples,) and (n_features,)
        Features in [-1, 1], one of which is -1 or 1; ``y = X @ coef``, always within (-70, 70); and the true weights.
    """
    check_integer(len(_SCREENING_WEIGHTS), n_features=n_features)
    check_real(0.0, 1.0, closed="left", correlation=correlation)
    X = _normal_rows(n_samples, n_features, correlation, random_state)
    X /= np.abs(X).max()
    coef = _leading(_SCREENING_WEIGHTS, n_features)
    return X, X @ coef, coef


def make_screening_logistic(
    n_samples: int = 3000, n_features: int = 600, *, correlation: float = 0.0, random_state: Any = None
) -> tuple[FloatArray, IntArray, FloatArray]:
    r"""The synthetic classification set of ADP-Screen.

    Section 4: the rows and weights of :func:`make_screening_linear`, uncorrelated in the paper, with
    :math:`y = 1` where :math:`x_i \cdot w^* > 0` and 0 elsewhere. Parameters and results are those of
    :func:`make_screening_linear` otherwise.
    """
    X, margins, coef = make_screening_linear(n_samples, n_features, correlation=correlation, random_state=random_state)
    return X, _positive(margins), coef


def _normal_rows(n_samples: int, n_features: int, correlation: float, random_state: Any) -> FloatArray:
    """Normal rows of unit variances and correlations ``correlation ** |i - j|``."""
    check_integer(1, n_samples=n_samples)
    X = np.random.default_rng(random_state).standard_normal((n_samples, n_features))
    if correlation > 0.0:
        # Each column from the one before it, which is the same law as a d x d root and takes O(n d).
        fresh = np.sqrt(1.0 - correlation**2)
        for j in range(1, n_features):
            X[:, j] *= fresh
            X[:, j] += correlation * X[:, j - 1]
    return X


def _leading(weights: tuple[float, ...], n_features: int) -> FloatArray:
    coef = np.zeros(n_features)
    coef[: len(weights)] = weights
    return coef


def _positive(margins: FloatArray) -> IntArray:
    return (margins > 0.0).astype(np.int64)
