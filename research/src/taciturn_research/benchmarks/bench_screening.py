"""Frank-Wolfe with columns dropped for good, against the same run with all of them.

The safe rule drops columns that are proved to be zero in the solution; ``permanent=True`` those that were screened
privately. For the squared loss steps run on the Gram matrix and cost next to nothing, so that there is little to save.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from taciturn import ScreenedClassifier, ScreenedRegressor
from taciturn.datasets import make_power_law_sparse, make_screening_linear, make_screening_logistic
from taciturn.methods.options import RuleOfScreening

REPEATS = 3
NEVER = 1_000_000


def seconds(model: Any, X: Any, y: np.ndarray) -> float:
    """The shortest of a few fits."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        model.fit(X, y)
        times.append(perf_counter() - start)
    return min(times)


def rows() -> Iterator[dict[str, Any]]:
    """Fits without dropping over fits with it."""
    safe: dict[str, Any] = {"epsilon": float("inf"), "x_bound": 1.0, "rule": "adp", "permanent": True}
    safe["fit_intercept"] = False
    dense, labels, _ = make_screening_logistic(random_state=0)
    sparse, codes, _ = make_power_law_sparse(20_000, 50_000, 75, random_state=0)
    table, target, _ = make_screening_linear(random_state=0)
    squared: dict[str, Any] = {
        "loss": "squared",
        "y_bounds": (-6.0, 6.0),
        "radius": 5.0,
        "n_steps": 5000,
        "screen_at": 100,
    }
    by_sparse: dict[str, Any] = {"radius": 3.0, "n_steps": 1000, "screen_at": 20}
    by_dense: dict[str, Any] = {"radius": 2.0, "n_steps": 5000, "screen_at": 100}
    cases = (
        ("logistic, 3000 x 600", ScreenedClassifier(**safe, **by_dense), dense, labels, 2.0),
        ("logistic, sparse 20000 x 50000", ScreenedClassifier(**safe, **by_sparse), sparse, codes, 2.0),
        ("squared, 3000 x 600", ScreenedRegressor(**safe, **squared), table, target, 0.3),
        (
            "squared, sparse 20000 x 50000",
            ScreenedRegressor(loss="squared", y_bounds=(-1.0, 1.0), **safe, **by_sparse),
            sparse,
            2.0 * codes - 1.0,
            0.3,
        ),
    )
    for name, model, X, y, least in cases:
        ratio = seconds(clone(model).set_params(screen_at=NEVER), X, y) / seconds(model, X, y)
        yield {"case": f"safe rule: {name}", "ratio": ratio, "target": least}
    rules: tuple[tuple[RuleOfScreening, int, float], ...] = (("adp", 20, 2.0), ("select", 2, 1.1))
    for rule, every, least in rules:
        model = ScreenedClassifier(x_bound=1.0, n_steps=1000, rule=rule, screen_at=every, radius=5.0, random_state=0)
        ratio = seconds(model, dense, labels) / seconds(clone(model).set_params(permanent=True), dense, labels)
        case = f"permanent=True: {rule}, logistic, 3000 x 600, {1000 // every} screenings"
        yield {"case": case, "ratio": ratio, "target": least}
