"""Fits beside plain solvers: lbfgs, ridge regression, and what else people would run on the same table."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from taciturn import PrivateScaler, SparseClassifier, SparseRegressor, WeakBudgetWarning
from taciturn.datasets import DATA_VARIABLE, make_power_law_sparse
from taciturn_research.arena.sets import REAL, draw
from taciturn_research.benchmarks.measuring import Row, run_python

# ---------------------------------------------------------------------
# Whole fits against solvers of scikit-learn on the same arrays.
#
# Both sides have one thread, and what counts is processor time, the least of some runs that take turns.


NUMBER_BOUNDS = (-2.5, 2.5)
CLASSIFIERS: tuple[tuple[int, int, int, dict[Literal["all"] | int, float | None]], ...] = (
    (2_000, 20, 15, {"all": 6.0, 10: None}),
    (20_000, 100, 7, {"all": 4.0, 10: None}),
    (100_000, 50, 4, {"all": 4.0, 10: None}),
    (1_000_000, 20, 3, {"all": 3.0, 10: None}),
    (5_000, 2_000, 2, {"all": None, 10: None}),
)
"""Rows, columns, repeats, and how many times the time of lbfgs a fit may take, by the number of nonzero coefficients;
None where the number is all."""
REGRESSIONS = (
    (2_000, 20, 15, None),
    (20_000, 100, 7, 6.0),
    (100_000, 50, 4, 6.0),
    (1_000_000, 20, 3, 6.0),
    (5_000, 2_000, 2, None),
)
"""The same for ridge regression."""
SPARSE: tuple[tuple[int, int, int, dict[Literal["all"] | int, float | None]], ...] = (
    (20_000, 20_000, 3, {"all": None, 10: None}),
    (20_000, 1_000_000, 1, {"all": 5.0}),
)
"""As for classifiers, on sparse tables; of the first one with ridge regression besides."""
SPARSE_PER_ROW = 100
SCALER_ROWS, SCALER_COLUMNS, SCALER_TARGET = 100_000, 50, 5.0
LOSS_TARGET = 0.001
THREADS_ROWS, THREADS_COLUMNS, THREADS_TARGET = 1_000_000, 20, 0.6
FIRST_FIT_TARGET = 3.0


def numbers(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform entries of which four columns matter: the table, labels, and numbers."""
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_columns))
    for start in range(0, n_rows, 10_000):
        X[start : start + 10_000] = rng.uniform(-1.0, 1.0, X[start : start + 10_000].shape)
    signal = X[:, :4] @ np.array([1.0, -0.5, 0.3, 0.2])
    labels = (signal + 0.5 * rng.standard_normal(n_rows) > 0.0).astype(np.int64)
    return X, labels, np.clip(signal + 0.3 * rng.standard_normal(n_rows), *NUMBER_BOUNDS)


def ratio_in_turn(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> float:
    """The least processor time of ours over that of theirs, taken in turn after one round that compiles."""
    ours(), theirs()
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(repeats):
        for call, found in zip((ours, theirs), seconds, strict=True):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    return min(seconds[0]) / min(seconds[1])


def solvers_rows() -> Iterator[Row]:
    """Rows of dense and sparse tables, of a scaler, of accuracy, of threads, and of first fits."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakBudgetWarning)
        yield from _classifiers()
        yield from _regressions()
        yield from _sparse()
        yield _scaler()
        yield from _log_losses()
    yield _threads()
    yield _first_fits()


def _lbfgs(X: Any, y: np.ndarray) -> object:
    return LogisticRegression(max_iter=1000).fit(X, y)


def _classifiers() -> Iterator[Row]:
    for n_rows, n_columns, repeats, targets in CLASSIFIERS:
        X, y, _ = numbers(n_rows, n_columns)
        for n_nonzero, target in targets.items():
            model = SparseClassifier(classes=(0, 1), n_nonzero=n_nonzero, random_state=0)
            yield {
                "case": f"SparseClassifier, {n_nonzero} of {n_columns:,} columns, {n_rows:,} rows, against lbfgs",
                "ratio": ratio_in_turn(partial(model.fit, X, y), partial(_lbfgs, X, y), repeats),
                "target": target,
            }


def _regressions() -> Iterator[Row]:
    for n_rows, n_columns, repeats, target in REGRESSIONS:
        X, _, y = numbers(n_rows, n_columns)
        model = SparseRegressor(y_bounds=NUMBER_BOUNDS, n_nonzero="all", random_state=0)
        yield {
            "case": f"SparseRegressor, all of {n_columns:,} columns, {n_rows:,} rows, against Ridge",
            "ratio": ratio_in_turn(partial(model.fit, X, y), partial(Ridge().fit, X, y), repeats),
            "target": target,
        }


def _sparse() -> Iterator[Row]:
    for n_rows, n_columns, repeats, targets in SPARSE:
        X, labels, _ = make_power_law_sparse(n_rows, n_columns, SPARSE_PER_ROW, exponent=1.0, random_state=0)
        X, y = sp.csr_array(X), (labels > 0).astype(np.int64)
        size = f"{n_columns:,} sparse columns, {n_rows:,} rows"
        for n_nonzero, target in targets.items():
            model = SparseClassifier(classes=(0, 1), n_nonzero=n_nonzero, random_state=0)
            yield {
                "case": f"SparseClassifier, {n_nonzero} of {size}, against lbfgs",
                "ratio": ratio_in_turn(partial(model.fit, X, y), partial(_lbfgs, X, y), repeats),
                "target": target,
            }
    n_rows, n_columns, repeats, _ = SPARSE[0]
    X, labels, _ = make_power_law_sparse(n_rows, n_columns, SPARSE_PER_ROW, exponent=1.0, random_state=0)
    X, numbers_of = sp.csr_array(X), np.where(labels > 0, 0.5, -0.5)
    regression = SparseRegressor(y_bounds=NUMBER_BOUNDS, n_nonzero="all", random_state=0)
    yield {
        "case": f"SparseRegressor, all of {n_columns:,} sparse columns, {n_rows:,} rows, against Ridge",
        "ratio": ratio_in_turn(partial(regression.fit, X, numbers_of), partial(Ridge().fit, X, numbers_of), repeats),
        "target": None,
    }


def _scaler() -> Row:
    X = np.random.default_rng(0).standard_normal((SCALER_ROWS, SCALER_COLUMNS))
    return {
        "case": f"PrivateScaler, {SCALER_ROWS:,} x {SCALER_COLUMNS}, against StandardScaler",
        "ratio": ratio_in_turn(partial(PrivateScaler(random_state=0).fit, X), partial(StandardScaler().fit, X), 5),
        "target": SCALER_TARGET,
    }


def _log_losses() -> Iterator[Row]:
    """How far the log-loss of covtype is from that of lbfgs at epsilon 1; no row where the data are not there."""
    folder = os.environ.get(DATA_VARIABLE)
    if folder is None:
        return
    data_set = next(each for each in REAL if each.name == "covtype")
    problem = draw(data_set, 0, None, Path(folder))
    losses = [
        log_loss(problem.y_test, model.fit(problem.X, problem.y).predict_proba(problem.X_test))
        for model in (
            *(SparseClassifier(classes=(0, 1), n_nonzero="all", x_bound=1.0, random_state=seed) for seed in range(3)),
            LogisticRegression(max_iter=1000),
        )
    ]
    yield {
        "case": f"SparseClassifier, covtype, all {problem.y.size:,} rows, epsilon 1: log-loss beside lbfgs",
        "ratio": float(np.mean(losses[:-1])) - losses[-1],
        "target": LOSS_TARGET,
        "what": "held-out log-loss of ours (three seeds) - that of lbfgs",
    }


# ---------------------------------------------------------------------
# Two threads against one, by the clock: the machine has to be idle.


_TWO_THREADS = f"""
from taciturn_research.benchmarks.bench_solvers import numbers
from taciturn import SparseClassifier
X, y, _ = numbers({THREADS_ROWS}, {THREADS_COLUMNS})
model = SparseClassifier(classes=(0, 1), n_nonzero="all", random_state=0)
model.fit(X, y)
seconds = []
for _ in range(3):
    start = time.perf_counter()
    model.fit(X, y)
    seconds.append(time.perf_counter() - start)
say(fit=min(seconds))
"""


def _threads() -> Row:
    seconds = {}
    for threads in (1, 2):
        limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
        seconds[threads] = float(run_python(_TWO_THREADS, **limits).said["fit"])
    return {
        "case": f"SparseClassifier, {THREADS_ROWS:.0e} x {THREADS_COLUMNS}, two threads against one",
        "ratio": seconds[2] / seconds[1],
        "target": THREADS_TARGET,
        "what": "seconds by the clock with two threads / with one",
    }


# ---------------------------------------------------------------------
# First fits in processes that have compiled nothing.


_FIRST_FIT = """
import numpy as np
import scipy.sparse
from taciturn import FrankWolfeClassifier, SparseClassifier
rng = np.random.default_rng(0)
X, y = rng.uniform(-1.0, 1.0, (500, 20)), rng.integers(0, 2, 500)
X = scipy.sparse.csr_array(X) if sys.argv[1] == "FrankWolfeClassifier" else X
start = time.process_time()
globals()[sys.argv[1]](classes=(0, 1), random_state=0).fit(X, y)
say(fit=time.process_time() - start)
"""


def _first_fits() -> Row:
    seconds = {}
    for kind in ("FrankWolfeClassifier", "SparseClassifier"):
        with tempfile.TemporaryDirectory() as cache:
            seconds[kind] = float(run_python(_FIRST_FIT, kind, NUMBA_CACHE_DIR=cache).said["fit"])
    return {
        "case": "first fit of FrankWolfeClassifier on sparse rows, numba's cache empty, against SparseClassifier's",
        "ratio": seconds["FrankWolfeClassifier"] / seconds["SparseClassifier"],
        "target": FIRST_FIT_TARGET,
        "what": "processor time of the fit / of the first fit of SparseClassifier",
    }
