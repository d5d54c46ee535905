"""Selection by Kendall's tau against a loop over scipy's.

Both sides rank and select without noise, round by round; scipy is asked for the same pairs of columns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import kendalltau

from taciturn.methods.selection.estimator import KendallSelector

CASES = ((1_000, 40, "numbers", 5.0), (100_000, 20, "numbers", 2.0), (100_000, 20, "zeros and ones", 2.0))
"""Records, features, what the features are, and how many times faster than scipy the selector has to be."""
N_SELECTED = 5


def _median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _by_scipy(X: np.ndarray, y: np.ndarray) -> None:
    anchor, left = y, list(range(X.shape[1]))
    relevance, redundancy = np.zeros(len(left)), np.zeros(len(left))
    for n_selected in range(N_SELECTED):
        taus = [abs(kendalltau(X[:, column], anchor).statistic) for column in left]
        (redundancy if n_selected else relevance)[left] += taus
        scores = relevance - redundancy / max(n_selected, 1)
        winner = left[int(np.argmax(scores[left]))]
        left.remove(winner)
        anchor = X[:, winner]


def rows(repeats: int = 3) -> list[dict[str, object]]:
    """One row a case; ``ratio`` is scipy's time over ours, so larger is better."""
    table: list[dict[str, object]] = []
    for n_rows, n_columns, kind, target in CASES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_columns))
        y = X[:, :N_SELECTED].sum(axis=1) + rng.standard_normal(n_rows)
        X = X if kind == "numbers" else (X > 0).astype(np.float64)
        selector = KendallSelector(epsilon=float("inf"), n_features_to_select=N_SELECTED)
        selector.fit(X[:100], y[:100])
        ours = _median_seconds(partial(selector.fit, X, y), repeats)
        baseline = _median_seconds(partial(_by_scipy, X, y), repeats)
        case = f"Kendall selection, {N_SELECTED} of {n_columns} columns of {kind}, {n_rows:.0e} records, against scipy"
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": baseline / ours, "target": target})
    return table
