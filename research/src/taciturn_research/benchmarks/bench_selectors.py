"""A private selection among a million sparse columns against what the selection without privacy takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from taciturn import CorrelationSelector
from taciturn.datasets import make_power_law_sparse
from taciturn.methods.options import TopKMechanism

TARGET = 2.0
"""Bounds, exact sums, noise and certificate may cost as much again as ``X.T @ y`` and a sort of the scores."""

N_ROWS, N_COLUMNS, PER_ROW, K = 100_000, 1_000_000, 100, 100


def rows(repeats: int = 7) -> list[dict[str, object]]:
    """One row a mechanism; ``ratio`` is the time of a whole fit over that of the product and the sort."""
    X, labels, _ = make_power_law_sparse(N_ROWS, N_COLUMNS, PER_ROW, exponent=1.0, random_state=0)
    y = np.where(labels > 0, 0.7, -0.4)
    mechanisms: tuple[TopKMechanism, ...] = ("auto", "gumbel")
    return [_row(mechanism, X, y, repeats) for mechanism in mechanisms]


def _row(mechanism: TopKMechanism, X: sp.csr_array, y: np.ndarray, repeats: int) -> dict[str, object]:
    selector = CorrelationSelector(
        epsilon=1.0, delta=1e-6, x_bound=1.0, y_bounds=(-1.0, 1.0), mechanism=mechanism, n_features_to_select=K
    )
    sides: dict[str, Callable[[sp.csr_array], object]] = {
        "ours": lambda X: selector.fit(X, y),
        "baseline": lambda X: np.argsort(np.abs(X.T @ y)),
    }
    times: dict[str, list[float]] = {side: [] for side in sides}
    for repeat in range(repeats + 1):
        for side, run in sides.items():
            # A matrix remembers what was found out about it; a fresh one does not.
            fresh = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=False)
            start = time.perf_counter()
            run(fresh)
            if repeat:
                times[side].append(time.perf_counter() - start)
    ours, baseline = (statistics.median(times[side]) for side in ("ours", "baseline"))
    case = f"CorrelationSelector ({mechanism}), top {K} of {N_COLUMNS:.0e} sparse columns, against X.T @ y and argsort"
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ours / baseline, "target": TARGET}
