"""What benchmarks share: clocks that take turns, processes with their processor time and memory, growth exponents."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Row", "Usage", "growth_exponent", "medians_in_turn", "run_python"]

Row = dict[str, Any]
"""``case``, ``ratio`` and ``target``; where they apply ``what`` the number is if it is not what its suite says,
``at_least`` (which end the target is), ``setup`` in seconds, and ``why`` a target is missed."""

FEWEST_SIZES = 4
_REPORT = "TACITURN_BENCHMARK_REPORT"
# The peak is that of the new program: rusage would count what its parent held when it was started.
_PRELUDE = f"""
import atexit, json, os, sys, time
said = {{}}
def say(**facts):
    said.update(facts)
def peak():
    with open("/proc/self/status") as status:
        return max(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
def held():
    with open("/proc/self/status") as status:
        return max(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
def _tell():
    with open(os.environ["{_REPORT}"], "w") as report:
        json.dump({{"cpu": time.process_time(), "peak": peak(), "said": said}}, report)
atexit.register(_tell)
"""


class Usage(NamedTuple):
    """What a process took: processor seconds of all threads, seconds, the largest memory in bytes, what it said."""

    cpu: float
    wall: float
    peak: int
    said: dict[str, Any]


def run_python(code: str, *arguments: str, **environment: str) -> Usage:
    """Run code in a fresh interpreter; in it, ``say(name=number)`` reports, ``held()`` and ``peak()`` are bytes."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", _PRELUDE + code, *arguments],
            check=True,
            capture_output=True,
            env={**os.environ, **environment, _REPORT: str(report)},
        )
        wall = time.perf_counter() - start
        found = json.loads(report.read_text(encoding="utf-8"))
    return Usage(float(found["cpu"]), wall, int(found["peak"]), found["said"])


def medians_in_turn(
    calls: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Median seconds of each call, taken in turn after one round that compiles and allocates."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            start = clock()
            call()
            if repeat:
                seconds[name].append(clock() - start)
    return {name: statistics.median(found) for name, found in seconds.items()}


def growth_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of a straight line through log cost over log size, by least squares."""
    if len(sizes) != len(costs) or len(set(sizes)) < FEWEST_SIZES:
        raise ValueError(f"a growth exponent needs a cost for each of at least {FEWEST_SIZES} sizes")
    if min(*sizes, *costs) <= 0.0:
        raise ValueError("sizes and costs have to be positive")
    x = np.log(np.asarray(sizes, dtype=np.float64))
    y = np.log(np.asarray(costs, dtype=np.float64))
    x -= x.mean()
    return float(x @ (y - y.mean()) / (x @ x))
