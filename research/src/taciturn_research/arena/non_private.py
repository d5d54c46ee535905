"""What is possible without privacy: an L1 fit of k features, refitted without penalty, ridge and gradient boosting.

The support of the L1 fit is the truth of real data. The settings of ridge are chosen by an oracle, as others' are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, lars_path, lars_path_gram

from taciturn.core.validation import BoolArray, FloatArray
from taciturn_research.arena.methods import Fitted, Method, Setting, fitted
from taciturn_research.arena.sets import DataSet, Problem

__all__ = ["CEILINGS", "NON_PRIVATE", "l1_support"]

_HALVINGS = 14
# Trees are fitted to dense tables.
MOST_TREES_COLUMNS = 1000
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


def _ridge(data_set: DataSet, problem: Problem, epsilon: None, seed: int, strength: float) -> Fitted:
    if data_set.task == "regression":
        model = Ridge(alpha=strength).fit(problem.X, problem.y)
    else:
        model = LogisticRegression(C=1.0 / strength, max_iter=300).fit(problem.X, problem.y)
    return fitted(model, problem.X_test, problem.X.shape[1])


def _strengths(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"strength": strength} for strength in (0.03, 1.0, 30.0))


def _boosting(data_set: DataSet, problem: Problem, epsilon: None, seed: int) -> Fitted:
    X, X_test = (table.toarray() if sp.issparse(table) else table for table in (problem.X, problem.X_test))
    kind = HistGradientBoostingRegressor if data_set.task == "regression" else HistGradientBoostingClassifier
    model = kind(random_state=seed).fit(X, problem.y)
    predicted = model.predict(X_test) if data_set.task == "regression" else model.decision_function(X_test)
    return Fitted(np.ravel(predicted), np.ones(X.shape[1], dtype=bool))


def _too_wide(data_set: DataSet) -> str | None:
    wide = data_set.n_columns > MOST_TREES_COLUMNS
    return f"more than {MOST_TREES_COLUMNS:,} columns" if wide else None


BOTH = ("regression", "classification")
NON_PRIVATE = Method("L1, not private", "non-private", BOTH, _fit)
CEILINGS = (
    Method("ridge, not private", "non-private", BOTH, _ridge, _strengths, few=True),
    Method("boosting, not private", "non-private", BOTH, _boosting, refuses=_too_wide, few=True),
)
