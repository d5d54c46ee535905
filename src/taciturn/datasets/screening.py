"""The synthetic sets of the Sparsifier paper and of the screening papers: normal rows, weights at the front."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.validation import check_integer, check_real

__all__ = ["make_screening_linear", "make_screening_logistic", "make_sparsifier_logistic"]


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
    X : ndarray of shape (n_samples, n_features)
        Values in [-1, 1]; every column touches -1 or 1.
    y : ndarray of shape (n_samples,)
        0 or 1.
    coef : ndarray of shape (n_features,)
        The true weights.
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
    X : ndarray of shape (n_samples, n_features)
        Values in [-1, 1], one of which is -1 or 1.
    y : ndarray of shape (n_samples,)
        ``X @ coef``. Public bounds that always hold are (-70, 70).
    coef : ndarray of shape (n_features,)
        The true weights.
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
    :math:`y = 1` where :math:`x_i \cdot w^* > 0` and 0 elsewhere.

    Parameters
    ----------
    n_samples, n_features : int
        The paper's are the defaults; at least 70 features.
    correlation : float, default=0.0
        Between neighbouring features, in [0, 1).
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Values in [-1, 1], one of which is -1 or 1.
    y : ndarray of shape (n_samples,)
        0 or 1.
    coef : ndarray of shape (n_features,)
        The true weights.
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
