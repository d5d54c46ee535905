"""A step of private hard thresholding on sparse data against the product it cannot do without."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from taciturn.datasets import make_power_law_sparse
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier

TARGET = 2.0
"""Margins, derivatives, exact sums, noise and thresholding may cost as much again as ``X.T @ r``."""

FEW, MANY = 5, 45


def rows(repeats: int = 7) -> list[dict[str, object]]:
    """One row; ``ratio`` is the time of a step, from fits of different length, over that of the product."""
    X, y, _ = make_power_law_sparse(random_state=0)
    return [_row(X, y, repeats)]


def _row(X: sp.csr_array, y: np.ndarray, repeats: int) -> dict[str, object]:
    residuals = np.random.default_rng(0).uniform(-1.0, 1.0, len(y))
    times: dict[str, list[float]] = {"few": [], "many": [], "product": []}
    for _ in range(repeats + 1):
        times["few"].append(_seconds(lambda: _fit(X, y, FEW)))
        times["many"].append(_seconds(lambda: _fit(X, y, MANY)))
        times["product"].append(_seconds(lambda: [X.T @ residuals for _ in range(MANY - FEW)]))
    # The smallest of each: a difference of medians would carry the noise of whatever else the machine does.
    few, many, product = (min(times[part]) for part in ("few", "many", "product"))
    ours, baseline = (many - few) / (MANY - FEW), product / (MANY - FEW)
    case = f"HardThresholdClassifier, a step on {X.shape[0]:,} x {X.shape[1]:,} sparse, against X.T @ r"
    ratio, setup = ours / baseline, few - FEW * ours
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ratio, "target": TARGET, "setup": setup}


def _fit(X: sp.csr_array, y: np.ndarray, n_steps: int) -> HardThresholdClassifier:
    return HardThresholdClassifier(x_bound=1.0, classes=(0, 1), row_bound=1.0, n_steps=n_steps, random_state=0).fit(
        X, y
    )


def _seconds(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - start
