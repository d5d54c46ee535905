"""The default on dense tables in memory: against one read of X a step, by threads, and what it holds beside X."""

from __future__ import annotations

import statistics
import time
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from taciturn import SparseClassifier
from taciturn.engines import ArraySource
from taciturn_research.benchmarks.measuring import Row, run_python

__all__ = ["rows", "table"]

N_ROWS, N_COLUMNS, MANY_ROWS = 200_000, 100, 1_000_000
READ_TARGET, THREADS_TARGET, MEMORY_TARGET = 2.5, 1.1, 0.6

_TABLE = """
import numpy as np
from taciturn import SparseClassifier
def table(n, d):
    rng = np.random.default_rng(0)
    X = np.empty((n, d))
    for start in range(0, n, 10_000):
        X[start:start + 10_000] = rng.uniform(-1.0, 1.0, X[start:start + 10_000].shape)
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.0).astype(int)
def fit(X, y):
    return SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
fit(*table(1000, 10))
"""
_THREADS = f"""{_TABLE}
X, y = table({N_ROWS}, {N_COLUMNS})
start = time.process_time()
fit(X, y)
say(fit=time.process_time() - start)
"""
_MEMORY = f"""{_TABLE}
X, y = table({MANY_ROWS}, {N_COLUMNS})
before = held()
fit(X, y)
say(share=(peak() - before) / X.nbytes)
"""


def table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform entries, two of the columns matter."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_columns))
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n_rows) > 0.0).astype(np.int64)


def rows(repeats: int = 3) -> list[Row]:
    """Three rows: processor time of a fit over that of products with X, threads, memory."""
    with threadpool_limits(1):
        found = [_against_reading(repeats)]
    name = f"SparseClassifier, {N_ROWS:.0e} x {N_COLUMNS} dense"
    by_threads = {threads: min(_fit_with(threads) for _ in range(2)) for threads in (1, 2)}
    found.append(
        {
            "case": f"{name}, two BLAS threads against one",
            "ratio": by_threads[2] / by_threads[1],
            "target": THREADS_TARGET,
            "what": "processor time with two threads / with one",
        }
    )
    found.append(
        {
            "case": f"SparseClassifier, {MANY_ROWS:.0e} x {N_COLUMNS} dense, memory beside X",
            "ratio": run_python(_MEMORY).said["share"],
            "target": MEMORY_TARGET,
            "what": "peak memory of the fit beside X / bytes of X",
        }
    )
    return found


def _against_reading(repeats: int) -> Row:
    X, y = table(N_ROWS, N_COLUMNS)
    weights = np.full(N_COLUMNS, 0.5)
    model = SparseClassifier(classes=(0, 1), random_state=0)
    n_reads = _rounds_of_full_width(model, X, y)
    ours, reads = [], []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        ours.append(time.process_time() - start)
        start = time.process_time()
        for _ in range(20):
            X @ weights
        reads.append((time.process_time() - start) / 20)
    return {
        "case": f"SparseClassifier, {N_ROWS:.0e} x {N_COLUMNS} dense, {n_reads} full sums against reading X",
        "ratio": statistics.median(ours) / (n_reads * statistics.median(reads)),
        "target": READ_TARGET,
        "what": "processor time of the fit / of as many products X @ w",
    }


def _rounds_of_full_width(model: SparseClassifier, X: np.ndarray, y: np.ndarray) -> int:
    """How often a fit asks for a sum over all columns; those over the columns that it keeps are not counted."""
    asked, total = [], ArraySource.total

    def counted(source: ArraySource, task: Any) -> Any:
        asked.append(task.columns is None)
        return total(source, task)

    with patch.object(ArraySource, "total", counted):
        model.fit(X, y)
    return sum(asked)


def _fit_with(threads: int) -> float:
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    return float(run_python(_THREADS, **limits).said["fit"])
