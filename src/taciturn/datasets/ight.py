"""The synthetic sets of *Differentially Private Iterative Gradient Hard Thresholding for Sparse Learning* (DP-IGHT)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.validation import check_integer

__all__ = ["make_ight_linear", "make_ight_logistic"]


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
    X : ndarray of shape (n_samples, n_features)
        Values in [-2, 2].
    y : ndarray of shape (n_samples,)
        Not scaled.
    coef : ndarray of shape (n_features,)
        The true weights.
    """
    X, coef, rng = _rows(n_samples, n_features, n_informative, random_state)
    return X, X @ coef + np.sqrt(0.1) * rng.standard_normal(n_samples), coef


def make_ight_logistic(
    n_samples: int = 1000, n_features: int = 1000, n_informative: int = 10, *, random_state: Any = None
) -> tuple[FloatArray, IntArray, FloatArray]:
    r"""The synthetic classification set of DP-IGHT.

    The rows and weights of :func:`make_ight_linear`, and :math:`y = 1` with probability :math:`1 / (1 + e^{-x \cdot
    w})`. The paper prints the sign of the exponent the other way round, which no method could fit.

    Parameters
    ----------
    n_samples, n_features, n_informative : int
        The paper's are the defaults.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Values in [-2, 2].
    y : ndarray of shape (n_samples,)
        0 or 1.
    coef : ndarray of shape (n_features,)
        The true weights.
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
