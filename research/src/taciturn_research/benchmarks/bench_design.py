"""Exact integer sums against the floating-point products they replace: ``X.T @ r``, dense and sparse."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from taciturn.data.design import Design
from taciturn.datasets import make_power_law_sparse

TARGET = 1.1
"""Exactness may not cost more than rounding does, but for the noise of a measurement."""


def rows(repeats: int = 9) -> list[dict[str, object]]:
    """One row a layout; ``ratio`` is exact time over floating-point time."""
    rng = np.random.default_rng(0)
    dense = rng.uniform(-1.0, 1.0, (20_000, 1000))
    sparse, _, _ = make_power_law_sparse(100_000, 50_000, 50, random_state=0)
    return [_row("dense 20000 x 1000", dense, repeats), _row("CSR 100000 x 50000, 5e6 entries", sparse, repeats)]


def _row(name: str, X: Any, repeats: int) -> dict[str, object]:
    design, bound = Design(X, 1.0), 1 << 16
    integers = np.random.default_rng(1).integers(-bound, bound, X.shape[0]).astype(float)
    plain = integers / bound
    times: dict[str, list[float]] = {"ours": [], "baseline": []}
    for repeat in range(repeats + 1):
        for side, run in (("ours", lambda: design.rmatvec(integers, bound)), ("baseline", lambda: X.T @ plain)):
            start = time.perf_counter()
            run()
            if repeat:
                times[side].append(time.perf_counter() - start)
    ours, baseline = (statistics.median(times[side]) for side in ("ours", "baseline"))
    case = f"exact X.T @ r, {name}, against plain doubles"
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ours / baseline, "target": TARGET}
