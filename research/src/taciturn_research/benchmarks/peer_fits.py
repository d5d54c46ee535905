"""One fit of one method on one synthetic table, timed: run as a script by the Python of the library's environment.

``python -P taciturn_research/benchmarks/peer_fits.py METHOD TASK TABLE`` prints one JSON line: the least processor
seconds and seconds of several fits after a first one, or the library's own error. It needs numpy, scipy and the
library, not taciturn. ``-P`` keeps the folders beside this file from being taken for packages.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

TASKS = ("classification", "regression")
N_SIGNALS = 10
ENTRIES_PER_ROW = 50
EPSILON, DELTA = 1.0, 1e-6
REPEATS, LONG = 5, 20.0
"""Fits after the first one, and the processor seconds from which on the first one is the only one."""


class Shape(NamedTuple):
    """Rows and columns of a table, and whether it is a sparse matrix."""

    rows: int
    columns: int
    sparse: bool = False


TABLES = {
    "small": Shape(2_000, 20),
    "medium": Shape(100_000, 50),
    "wide": Shape(5_000, 2_000),
    "sparse": Shape(20_000, 20_000, sparse=True),
}


class PeerMethod(NamedTuple):
    """A method: the environment and the package it lives in, whether it is private, and one unfitted model a task."""

    environment: str
    package: str
    private: bool
    models: dict[str, Callable[[Shape], Callable[[Any, Any], object]]]


def table(task: str, shape: Shape) -> tuple[Any, Any]:
    """Entries in [-1, 1], ten columns matter; a sparse table has 50 entries in each row."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    coef = np.zeros(shape.columns)
    coef[:N_SIGNALS] = np.where(np.arange(N_SIGNALS) % 2, -1.0, 1.0)
    if shape.sparse:
        columns = rng.integers(0, shape.columns, (shape.rows, ENTRIES_PER_ROW))
        # The columns that matter are frequent, as words are in text.
        frequent = rng.random((shape.rows, N_SIGNALS)) < 0.2
        columns[:, :N_SIGNALS] = np.where(frequent, np.arange(N_SIGNALS), columns[:, :N_SIGNALS])
        rows = np.repeat(np.arange(shape.rows), ENTRIES_PER_ROW)
        X = sp.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), shape=(shape.rows, shape.columns))
        X.data[:] = 1.0
    else:
        X = rng.uniform(-1.0, 1.0, (shape.rows, shape.columns))
    margin = X @ coef
    noisy = margin + margin.std() * rng.standard_normal(shape.rows)
    if task == "classification":
        return X, (noisy > np.median(noisy)).astype(np.int64)
    return X, np.clip(noisy / 8.0, -1.0, 1.0)


def _scikit_learn(module: str, name: str, **setting: Any) -> Callable[[Shape], Callable[[Any, Any], object]]:
    """A model with scikit-learn's interface."""

    def unfitted(shape: Shape) -> Callable[[Any, Any], object]:
        kind = getattr(importlib.import_module(module), name)
        return lambda X, y: kind(**setting).fit(X, y)

    return unfitted


def _ours(kind: str, size: int | str, **setting: Any) -> Callable[[Shape], Callable[[Any, Any], object]]:
    return _scikit_learn("taciturn", kind, epsilon=EPSILON, delta=DELTA, x_bound=1.0, n_nonzero=size, **setting)


def _statsmodels(name: str) -> Callable[[Shape], Callable[[Any, Any], object]]:
    def unfitted(shape: Shape) -> Callable[[Any, Any], object]:
        api = importlib.import_module("statsmodels.api")
        setting = {"disp": 0} if name == "Logit" else {}
        return lambda X, y: getattr(api, name)(y, api.add_constant(X)).fit(**setting)

    return unfitted


def _diffprivlib_logistic(shape: Shape) -> Callable[[Any, Any], object]:
    models = importlib.import_module("diffprivlib.models")
    # The largest norm that a row can have: the guarantee does not hold with less.
    bound = float(ENTRIES_PER_ROW if shape.sparse else shape.columns) ** 0.5
    return lambda X, y: models.LogisticRegression(epsilon=EPSILON, data_norm=bound).fit(X, y)


def _trees(kind: str, **setting: Any) -> Callable[[Shape], Callable[[Any, Any], object]]:
    def unfitted(shape: Shape) -> Callable[[Any, Any], object]:
        privacy = importlib.import_module("interpret.privacy")
        ranges = dict.fromkeys(range(shape.columns), (-1.0, 1.0))
        types = ["continuous"] * shape.columns
        return lambda X, y: getattr(privacy, kind)(
            epsilon=EPSILON, delta=DELTA, feature_types=types, privacy_bounds=ranges, n_jobs=1, **setting
        ).fit(X, y)

    return unfitted


_LINEAR = "sklearn.linear_model"
_ROUNDS = {"max_rounds": 100}
_BOTH_SIDES = {"privacy_target_min": -1.0, "privacy_target_max": 1.0}
METHODS = {
    'taciturn, n_nonzero="all"': PeerMethod(
        "taciturn", "taciturn", True,
        {
            "classification": _ours("SparseClassifier", "all", classes=(0, 1)),
            "regression": _ours("SparseRegressor", "all", y_bounds=(-1.0, 1.0)),
        },
    ),
    "taciturn, n_nonzero=10": PeerMethod(
        "taciturn", "taciturn", True,
        {
            "classification": _ours("SparseClassifier", 10, classes=(0, 1)),
            "regression": _ours("SparseRegressor", 10, y_bounds=(-1.0, 1.0)),
        },
    ),
    "diffprivlib": PeerMethod(
        "diffprivlib", "diffprivlib", True,
        {
            "classification": _diffprivlib_logistic,
            "regression": _scikit_learn(
                "diffprivlib.models", "LinearRegression", epsilon=EPSILON, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)
            ),
        },
    ),
    "DP-EBM (interpret)": PeerMethod(
        "interpret", "interpret-core", True,
        {
            "classification": _trees("DPExplainableBoostingClassifier", **_ROUNDS),
            "regression": _trees("DPExplainableBoostingRegressor", **_ROUNDS, **_BOTH_SIDES),
        },
    ),
    "scikit-learn, L2": PeerMethod(
        "taciturn", "scikit-learn", False,
        {
            "classification": _scikit_learn(_LINEAR, "LogisticRegression", max_iter=1000),
            "regression": _scikit_learn(_LINEAR, "Ridge"),
        },
    ),
    "scikit-learn, L1": PeerMethod(
        "taciturn", "scikit-learn", False,
        {
            "classification": _scikit_learn(_LINEAR, "LogisticRegression", l1_ratio=1.0, C=0.1, solver="liblinear"),
            "regression": _scikit_learn(_LINEAR, "Lasso", alpha=0.005),
        },
    ),
    "scikit-learn, L1 by cross-validation": PeerMethod(
        "taciturn", "scikit-learn", False,
        {
            "classification": _scikit_learn(
                _LINEAR, "LogisticRegressionCV", l1_ratios=(1.0,), solver="liblinear", use_legacy_attributes=False
            ),
            "regression": _scikit_learn(_LINEAR, "LassoCV"),
        },
    ),
    "statsmodels": PeerMethod(
        "taciturn", "statsmodels", False, {"classification": _statsmodels("Logit"), "regression": _statsmodels("OLS")}
    ),
    "skglm, L1": PeerMethod(
        "solvers", "skglm", False,
        {
            "classification": _scikit_learn("skglm", "SparseLogisticRegression", alpha=0.005),
            "regression": _scikit_learn("skglm", "Lasso", alpha=0.005),
        },
    ),
    "glum, L1": PeerMethod(
        "solvers", "glum", False,
        {
            "classification": _scikit_learn(
                "glum", "GeneralizedLinearRegressor", family="binomial", alpha=0.005, l1_ratio=1.0
            ),
            "regression": _scikit_learn("glum", "GeneralizedLinearRegressor", alpha=0.005, l1_ratio=1.0),
        },
    ),
}  # fmt: skip


def timed(method: PeerMethod, task: str, shape: Shape) -> dict[str, Any]:
    """The least times of several fits after the first; a fit of minutes is not repeated."""
    X, y = table(task, shape)
    fit = method.models[task](shape)
    found = []
    for _ in range(REPEATS + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        fit(X, y)
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
        if found[0][0] > LONG:
            break
    kept = found[1:] or found
    return {
        "first": round(found[0][0], 5),
        "cpu": round(min(cpu for cpu, _ in kept), 5),
        "wall": round(min(wall for _, wall in kept), 5),
        "fits": len(kept),
    }


def main(name: str, task: str, size: str) -> int:
    """Print what a fit takes, or why there is none."""
    warnings.simplefilter("ignore")
    method = METHODS[name]
    said: dict[str, Any] = {}
    try:
        said["version"] = version(method.package)
        said |= timed(method, task, TABLES[size])
    except Exception as error:
        # Whatever a peer raises is what the page quotes.
        said["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
