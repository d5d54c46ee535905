"""Models of other libraries, and of our own first edition, fitted by Pythons of their own (``make arena-other``).

diffprivlib's linear models (pure DP, all features) have their defaults and the same public bounds. DP-EBM (interpret)
gets each category as one feature and the public range of every other one. The first edition is the package at the
commit before its default was changed. Without their environments they are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn_research.arena.elsewhere import ask, is_there
from taciturn_research.arena.methods import DELTA, Fitted, Method, Setting
from taciturn_research.arena.sets import DataSet, FloatArray, Problem

__all__ = ["FIRST_EDITION", "OTHER_LIBRARIES", "with_categories"]

BOTH = ("regression", "classification")

# diffprivlib's linear regression draws noise for every pair of columns, one number at a time; tables are passed dense.
MOST_COLUMNS = {"regression": 300, "classification": 20_000}
MOST_TREES_COLUMNS = 280

_DIFFPRIVLIB = """
from diffprivlib.models import LinearRegression, LogisticRegression

def fit(X, y, X_test, facts):
    if facts["task"] == "regression":
        model = LinearRegression(
            epsilon=facts["epsilon"], bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=facts["seed"]
        )
    else:
        model = LogisticRegression(epsilon=facts["epsilon"], data_norm=facts["row_bound"], random_state=facts["seed"])
    model.fit(X, y)
    return {"coef": np.ravel(model.coef_).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}
"""

_FIRST_EDITION = """
from taciturn import SparseClassifier, SparseRegressor

def fit(X, y, X_test, facts):
    own = {"y_bounds": (-1.0, 1.0)} if facts["task"] == "regression" else {"classes": (0, 1)}
    kind = SparseRegressor if facts["task"] == "regression" else SparseClassifier
    model = kind(
        epsilon=facts["epsilon"], delta=facts["delta"], x_bound=1.0, n_nonzero=facts["n_nonzero"],
        random_state=facts["seed"], **own
    ).fit(X, y)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return {"coef": np.ravel(coef).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}
"""

_TREES = """
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

def fit(X, y, X_test, facts):
    ranges = {int(column): tuple(bounds) for column, bounds in facts["ranges"].items()}
    setting = dict(
        epsilon=facts["epsilon"], delta=facts["delta"], feature_types=facts["types"], privacy_bounds=ranges, n_jobs=1,
        random_state=facts["seed"], **facts["setting"]
    )
    if facts["task"] == "regression":
        model = DPExplainableBoostingRegressor(privacy_target_min=-1.0, privacy_target_max=1.0, **setting).fit(X, y)
        return {"predicted": np.ravel(model.predict(X_test)).tolist()}
    model = DPExplainableBoostingClassifier(**setting).fit(X, y)
    return {"predicted": np.ravel(model.decision_function(X_test)).tolist()}
"""


def _dense(X: Any) -> FloatArray:
    table: FloatArray = X.toarray() if sp.issparse(X) else X
    return table


def _linear(answer: dict[str, Any], X_test: Any) -> Fitted:
    coef = np.array(answer["coef"])
    return Fitted(np.ravel(X_test @ coef) + answer["intercept"], coef != 0.0)


def _diffprivlib(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
    facts = {"task": data_set.task, "epsilon": epsilon, "seed": seed, "row_bound": data_set.row_bound}
    return _linear(ask("diffprivlib", _DIFFPRIVLIB, _dense(problem.X), problem.y, facts), problem.X_test)


def _first_edition(size: str | None) -> Callable[..., Fitted]:
    def fit(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
        facts = {
            "task": data_set.task, "epsilon": epsilon, "delta": DELTA, "seed": seed, "n_nonzero": size or data_set.k
        }  # fmt: skip
        return _linear(ask("first", _FIRST_EDITION, problem.X, problem.y, facts), problem.X_test)

    return fit


def with_categories(data_set: DataSet, X: Any) -> FloatArray:
    """The table with each block of indicators as one column of codes, after the other columns; 0 is none of them."""
    table = _dense(X)
    inside = [column for first, size in data_set.blocks for column in range(first, first + size)]
    codes = [table[:, first : first + size] @ np.arange(1.0, size + 1.0) for first, size in data_set.blocks]
    return np.column_stack((np.delete(table, inside, axis=1), *codes))


def _trees(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    X, X_test = (with_categories(data_set, table) for table in (problem.X, problem.X_test))
    n_numbers = X.shape[1] - len(data_set.blocks)
    facts = {
        "task": data_set.task, "epsilon": epsilon, "delta": DELTA, "seed": seed, "setting": setting,
        "types": ["continuous"] * n_numbers + ["nominal"] * len(data_set.blocks),
        "ranges": dict.fromkeys(range(n_numbers), (-1.0, 1.0)),
    }  # fmt: skip
    answer = ask("interpret", _TREES, X, problem.y, facts, X_test)
    return Fitted(np.array(answer["predicted"]), np.ones(data_set.n_columns, dtype=bool))


def _tree_settings(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return ({}, {"max_rounds": 100}, {"max_bins": 8})


def _without(environment: str, most_columns: dict[str, int] | None = None) -> Callable[[DataSet], str | None]:
    def refuses(data_set: DataSet) -> str | None:
        if not is_there(environment):
            return f"build/{environment} is not there; run make arena-other"
        most = most_columns[data_set.task] if most_columns else data_set.n_columns
        return f"more than {most:,} columns" if data_set.n_columns > most else None

    return refuses


OTHER_LIBRARIES = (
    Method("diffprivlib", "practice", BOTH, _diffprivlib, refuses=_without("diffprivlib", MOST_COLUMNS), few=True),
    Method(
        "DP-EBM", "practice", BOTH, _trees, _tree_settings,
        refuses=_without("interpret", dict.fromkeys(BOTH, MOST_TREES_COLUMNS)), few=True,
    ),
)  # fmt: skip
FIRST_EDITION = (
    Method("first edition", "first edition", BOTH, _first_edition(None), refuses=_without("first")),
    Method("first edition, k auto", "first edition", BOTH, _first_edition("auto"), refuses=_without("first")),
)
