"""How the default's time grows with records, columns and columns kept, and its memory with records.

Exponents are slopes of log cost over log size. A step reads the table once, so that time should grow with n and d as
the table does; how many steps there are follows from public numbers and is part of it. A Gram matrix adds up to d**2 a
record where one is released, which brings exponents in d above 1. Columns kept are chosen once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from threadpoolctl import threadpool_limits

from taciturn import SparseClassifier
from taciturn_research.benchmarks.bench_default import table
from taciturn_research.benchmarks.measuring import Row, growth_exponent, run_python

__all__ = ["rows"]

RECORDS = (100_000, 200_000, 400_000, 800_000)
COLUMNS = (50, 100, 200, 400, 800)
KEPT = (5, 10, 20, 40, 80)
# How far a measured slope may be above what is expected.
TOLERANCE = 0.25

_MEMORY = """
import numpy as np
from taciturn import SparseClassifier
def fit(n):
    rng = np.random.default_rng(0)
    X = np.empty((n, 50))
    for start in range(0, n, 10_000):
        X[start:start + 10_000] = rng.uniform(-1.0, 1.0, X[start:start + 10_000].shape)
    y = (X[:, 0] > 0.0).astype(int)
    before = held()
    SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
    return before
fit(1000)
before = fit(int(sys.argv[1]))
say(beside=peak() - before)
"""


def rows(repeats: int = 3) -> list[Row]:
    """One row an exponent; ``ratio`` is the exponent."""
    with threadpool_limits(1):
        found = [
            _row("time", "records n, d = 50", 1.0, RECORDS, lambda n: _seconds(n, 50, 10, repeats)),
            _row("time", "columns d, n = 20,000", 1.5, COLUMNS, lambda d: _seconds(20_000, d, 10, repeats)),
            _row("time", "columns kept k, n = 20,000, d = 200", 0.0, KEPT, lambda k: _seconds(20_000, 200, k, repeats)),
        ]
    beside = _row("memory", "records n, d = 50, beside X", 1.0, RECORDS, _memory)
    return [*found, beside]


def _row(cost: str, sizes_of: str, expected: float, sizes: Sequence[int], measure: Callable[[int], float]) -> Row:
    costs = [measure(size) for size in sizes]
    unit, scale = ("s", 1.0) if cost == "time" else ("MB", 1e-6)
    ends = f"{scale * costs[0]:.2g} {unit} to {scale * costs[-1]:.2g} {unit}"
    return {
        "case": f"SparseClassifier, growth of {cost} in {sizes_of}, {sizes[0]:,} to {sizes[-1]:,} ({ends})",
        "ratio": growth_exponent(sizes, costs),
        "target": expected + TOLERANCE,
        "what": f"exponent; {expected:g} expected",
    }


def _seconds(n_rows: int, n_columns: int, n_nonzero: int, repeats: int) -> float:
    """The least processor time of a fit."""
    X, y = table(n_rows, n_columns)
    model = SparseClassifier(classes=(0, 1), n_nonzero=n_nonzero, random_state=0)
    model.fit(X[:1000], y[:1000])
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def _memory(n_rows: int) -> float:
    return float(run_python(_MEMORY, str(n_rows)).said["beside"])
