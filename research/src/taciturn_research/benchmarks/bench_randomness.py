"""Cost of secure noise relative to numpy's generator: time of ours over time of numpy's.

Both sides run in one process and in turn, so that a busy machine slows both; the ratio of the medians is
what is reported, never a time by itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from taciturn.core.rng import Stream
from taciturn.privacy.mechanisms import rounded_normals

Draw = Callable[[], object]

TARGET = 1.5
"""Secure noise may cost this many times numpy's, and no more."""


def _medians(ours: Draw, baseline: Draw, repeats: int) -> tuple[float, float]:
    """Median seconds of each, measured in turn after one run that compiles and allocates."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats + 1):
        for draw, times in zip((ours, baseline), seconds, strict=True):
            start = time.perf_counter()
            draw()
            if repeat:
                times.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def rows(repeats: int = 5) -> list[dict[str, object]]:
    """One row a case: ``case``, ``ours`` and ``baseline`` in seconds, ``ratio`` and its ``target``."""
    stream = Stream.of()
    numpy_generator = np.random.Generator(np.random.PCG64())
    many, fewer = 10_000_000, 1_000_000
    cases: list[tuple[str, Draw, Draw]] = [
        ("Gumbel, 1e7 values", lambda: stream.gumbels(many), lambda: numpy_generator.gumbel(size=many)),
        ("Laplace, 1e7 values", lambda: stream.laplaces(many), lambda: numpy_generator.laplace(size=many)),
        (
            "rounded normal, 1e6 values, k=20",
            lambda: rounded_normals(stream, fewer, 20),
            lambda: numpy_generator.standard_normal(fewer),
        ),
        (
            "rounded normal, 1e6 values, k=40",
            lambda: rounded_normals(stream, fewer, 40),
            lambda: numpy_generator.standard_normal(fewer),
        ),
    ]
    table: list[dict[str, object]] = []
    for case, draw_ours, draw_baseline in cases:
        ours, baseline = _medians(draw_ours, draw_baseline, repeats)
        ratio = ours / baseline
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": ratio, "target": TARGET})
    return table


if __name__ == "__main__":
    for row in rows():
        print(f"{row['case']:34} {row['ratio']:.2f} times numpy (target <= {row['target']})")
