"""The merged sampler of the canonical Lipschitz mechanism against the class-by-class kernel.

Both sides make whole releases, ranking included, of the same scores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.mechanisms import CanonicalLipschitz

CASES = ((100_000, 50, 30.0), (1_000_000, 100, 100.0))
"""Candidates, how many are selected, and how many times faster the merged sampler has to be."""


def _median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def rows(repeats: int = 3) -> list[dict[str, object]]:
    """One row a case; ``ratio`` is plain time over merged time, so larger is better."""
    stream = Stream.of()
    table: list[dict[str, object]] = []
    for d, k, target in CASES:
        # Sums over 10,000 records of which the first k columns carry a signal.
        scores = np.abs(np.random.default_rng(0).standard_normal(d)) * 100.0
        scores[:k] += 1000.0
        mechanism = CanonicalLipschitz(Sensitivity(1.0, "linf", "zero-out"), k, 1.0)
        for release in (mechanism.release, mechanism.release_plainly):
            release(scores[:1000], stream)
        ours = _median_seconds(partial(mechanism.release, scores, stream), 5 * repeats)
        baseline = _median_seconds(partial(mechanism.release_plainly, scores, stream), repeats)
        case = f"canonical Lipschitz top {k} of {d:.0e}, merged against O(dk)"
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": baseline / ours, "target": target})
    return table
