"""The synthetic sets of *Feature Selection from Differentially Private Correlations* (DP-SIS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.validation import check_integer

__all__ = ["make_dpsis_instability", "make_dpsis_linear"]


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
    X : ndarray of shape (n_samples, n_features)
        Not scaled.
    y : ndarray of shape (n_samples,)
        Not scaled.
    coef : ndarray of shape (n_features,)
        The weights of all rows but the outliers.
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
    X : ndarray of shape (n_samples, n_features)
        Centred values in [-1, 1]; every column touches -1 or 1.
    y : ndarray of shape (n_samples,)
        Likewise.
    coef : ndarray of shape (n_features,)
        The true weights, before scaling.
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
