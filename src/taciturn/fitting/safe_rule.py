r"""The safe screening rule of Raj et al. for linear models over an L1 ball, with the radius where it belongs.

Problem: :math:`\min_{\|w\|_1 \le \lambda} f(Xw)`, f with a gradient that is L-Lipschitz, and :math:`\mu`-strongly
convex, in :math:`u = Xw`. With :math:`g = X^\top \nabla f(u)` and the Wolfe gap
:math:`G = w^\top g + \lambda \|g\|_\infty`, the score of column i is

.. math:: s_i = \lambda |g_i| + w^\top g + L (\lambda \|x_{(i)}\|_2 + \|Xw\|_2) \sqrt{G / \mu},

and :math:`s_i < 0` implies that :math:`w^*_i = 0` in every solution.

*Proof.* Let :math:`u^* = X w^*`. Optimality gives :math:`\nabla f(u^*)^\top (u - u^*) \ge 0`, so
:math:`G \ge \nabla f(u)^\top (u - u^*) \ge (\nabla f(u) - \nabla f(u^*))^\top (u - u^*) \ge \mu \|u - u^*\|^2`, and the
gradients at u and u* differ by at most :math:`\rho = L \sqrt{G/\mu}` in norm. Hence
:math:`\lambda |g^*_i| \le \lambda |g_i| + \lambda \|x_{(i)}\| \rho`, and
:math:`w^{*\top} g^* = u^\top \nabla f(u^*) + (u^* - u)^\top \nabla f(u^*) \le w^\top g + \|u\| \rho`. If the sum of the
right-hand sides is negative, then :math:`\lambda |g^*_i| < -w^{*\top} g^* = \lambda \|g^*\|_\infty`: column i is not
among those of the largest gradient, and only these carry weight at an optimum. ∎

Without the factor :math:`\lambda` in front of :math:`|g_i|` and :math:`\|x_{(i)}\|` this holds for the unit ball only.

References
----------
Raj, Olbrich, Gärtner, Schölkopf and Jaggi, *Screening rules for convex problems* (2016), Theorem 11.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import BoolArray, FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_positive, check_real
from taciturn.losses import LogisticLoss, Loss, SquaredLoss

__all__ = ["column_norms", "rule_scores", "safe_rule_scores"]

# Of a block of rows whose squares are held at a time.
_BLOCK_ENTRIES = 1 << 18


def safe_rule_scores(X: Any, y: Any, coef: Any, *, radius: float, loss: str = "squared") -> FloatArray:
    r"""Scores of the safe rule: a negative one proves that the coefficient is zero in every solution.

    Not private: a plain function of the data.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The features.
    y : array-like of shape (n_samples,)
        Numbers, or labels 0 and 1 for the logistic loss.
    coef : array-like of shape (n_features,)
        Any point of the ball.
    radius : float
        :math:`\lambda`.
    loss : {"squared", "logistic"}, default="squared"
        Half the squared residual, or the logistic loss; summed over records. For the logistic loss X must lie in
        [-1, 1], which bounds the margins and with them the curvature.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> scores = safe_rule_scores(X, [4.0, 1.0], [1.0, 0.0], radius=1.0)
    >>> (scores < 0).tolist()
    [False, True]
    """
    check_positive(radius=radius)
    kinds: dict[str, Loss] = {"squared": SquaredLoss(), "logistic": LogisticLoss()}
    phi = kinds[check_choice(tuple(kinds), loss=loss)]
    check_real(0.0, phi.largest_radius, radius=radius)
    weights = np.asarray(coef, dtype=np.float64)
    if np.abs(weights).sum() > radius * (1.0 + 1e-9):
        raise ParameterError("coef", "a point outside", "a point of the L1 ball", "project it onto the ball first")
    margins = np.asarray(X @ weights).ravel()
    residuals = phi.derivative(margins, np.asarray(y, dtype=np.float64))
    gradient = np.asarray(X.T @ residuals).ravel()
    norms = column_norms(X)
    # Rounding must not screen what is exactly on the edge, as the support is at a solution.
    error = 2.0**-40 * float(norms.max() * np.linalg.norm(residuals))
    inner = float(weights @ gradient) + radius * error
    return rule_scores(
        np.abs(gradient) + error,
        norms,
        inner=inner,
        gap=max(inner + radius * (float(np.abs(gradient).max()) + error), 0.0),
        margin_norm=float(np.linalg.norm(margins)),
        radius=radius,
        condition=phi.condition(radius),
    )


def rule_scores(
    sizes: FloatArray,
    norms: FloatArray,
    *,
    inner: float,
    gap: float,
    margin_norm: float,
    radius: float,
    condition: float,
) -> FloatArray:
    r"""The scores from their parts, in sums or in means over records.

    ``sizes`` hold :math:`|g_i|`, ``norms`` :math:`\|x_{(i)}\|_2`; ``inner`` is :math:`w^\top g`, ``gap`` G,
    ``margin_norm`` :math:`\|Xw\|_2` and ``condition`` :math:`L/\sqrt\mu`. For means divide sizes, inner product and gap
    by n, the norms by its root.
    """
    third = condition * (radius * norms + margin_norm) * math.sqrt(gap)
    scores: FloatArray = radius * sizes + inner + third
    return scores


def column_norms(X: Any, present: BoolArray | None = None) -> FloatArray:
    """Euclidean norms of the columns, over the rows that are present; sums of squared integers are exact to 2**53."""
    rows = np.ones(X.shape[0]) if present is None else present.astype(np.float64)
    if sp.issparse(X):
        return np.sqrt(np.asarray(X.astype(np.float64).power(2).T @ rows, dtype=np.float64))
    total = np.zeros(X.shape[1])
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = slice(start, start + step)
        total += rows[block] @ np.square(X[block], dtype=np.float64)
    return np.sqrt(total)
