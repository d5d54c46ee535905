"""The non-private twin: an L1 fit of k features, refitted without penalty. Its support is the truth of real data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, lars_path, lars_path_gram

from benchmarks.utility.methods import Fitted, Method
from benchmarks.utility.sets import DataSet, Problem
from taciturn.core.arrays import BoolArray, FloatArray

__all__ = ["NON_PRIVATE", "l1_support"]

_HALVINGS = 14
# What asks scikit-learn for an L1 penalty: a ratio from 1.8 on.
_L1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}


def l1_support(data_set: DataSet, X: Any, y: NDArray[Any]) -> BoolArray:
    """The k features of an L1 fit: at the strongest penalty that leaves k, or their k largest coefficients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        coef = _lasso(X, y, data_set.k) if data_set.task == "regression" else _logistic(X, y, data_set.k)
    support = np.zeros(X.shape[1], dtype=bool)
    support[np.argsort(-np.abs(coef), kind="stable")[: data_set.k]] = True
    kept: BoolArray = support & (coef != 0.0)
    return kept


def _lasso(X: Any, y: NDArray[Any], k: int) -> FloatArray:
    X, y = X - X.mean(axis=0), y - y.mean()
    steps = {"max_iter": 4 * k, "return_path": True, "method": "lasso"}
    if X.shape[0] > X.shape[1]:
        _, _, path = lars_path_gram(X.T @ y, X.T @ X, n_samples=y.size, **steps)
    else:
        _, _, path = lars_path(X, y, **steps)
    counts = np.count_nonzero(path, axis=0)
    enough = np.flatnonzero(counts >= k)
    coef: FloatArray = path[:, enough[0] if enough.size else -1]
    return coef


def _logistic(X: Any, y: NDArray[Any], k: int) -> FloatArray:
    """Bisection of the inverse penalty from the point where nothing is left."""
    centred = y - y.mean()
    least = 1.0 / float(np.abs(np.asarray(X.T @ centred)).max())
    low, high = np.log(least), np.log(least) + np.log(1e4)
    coef = np.zeros(X.shape[1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        model = LogisticRegression(
            C=float(np.exp(middle)), solver="liblinear", tol=1e-3, intercept_scaling=10.0, random_state=0, **_L1
        )
        found = model.fit(X, y).coef_.ravel()
        count = np.count_nonzero(found)
        if count >= k:
            coef, high = found, middle
        else:
            low = middle
        if count == k:
            break
    return coef


def _fit(data_set: DataSet, problem: Problem, epsilon: None, seed: int) -> Fitted:
    support = l1_support(data_set, problem.X, problem.y)
    X, X_test = (table[:, support] for table in (problem.X, problem.X_test))
    if data_set.task == "regression":
        return Fitted(LinearRegression().fit(X, problem.y).predict(X_test), support)
    # Next to no penalty: some of the sets can be separated.
    model = LogisticRegression(C=1e3, max_iter=2000).fit(sp.csr_array(X) if sp.issparse(X) else X, problem.y)
    return Fitted(model.decision_function(X_test), support)


NON_PRIVATE = Method("L1, not private", "non-private", ("regression", "classification"), _fit)
