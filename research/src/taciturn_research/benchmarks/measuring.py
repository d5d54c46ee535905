"""What benchmarks share: clocks, processes and their memory, growth exponents, and the table of results."""

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

from taciturn_research.pages import table

# ---------------------------------------------------------------------
# What benchmarks share: clocks that take turns, processes with their processor time and memory, growth exponents.


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


# ---------------------------------------------------------------------
# The table of results: which targets are met, and its file, in which every suite has a section of its own.


SLOWER = "cost of ours / cost of the baseline"
FASTER = "cost of the baseline / cost of ours"

HEADINGS = ("case", "measured", "target", "met", "what it is", "set-up, s", "why not")
_TITLE = """# Benchmarks

The last run of `make bench`, section by section; `python -m taciturn_research.benchmarks NAME` renews one of them.
Only ratios within one run mean anything.
"""


def met(row: Row, meaning: str) -> bool | None:
    """Whether a row meets its target; None where it has none."""
    if row["target"] is None:
        return None
    return bool(row["ratio"] >= row["target"] if _at_least(row, meaning) else row["ratio"] <= row["target"])


def excused(row: Row, meaning: str) -> bool:
    """Whether a row meets its target, or has none, or says why it does not."""
    return met(row, meaning) is not False or "why" in row


def cells_of(row: Row, meaning: str) -> tuple[str, ...]:
    """The row in words, for :data:`HEADINGS`."""
    fulfilled = met(row, meaning)
    target = "" if fulfilled is None else f"{'>=' if _at_least(row, meaning) else '<='} {row['target']:g}"
    return (
        str(row["case"]),
        f"{row['ratio']:.3g}",
        target,
        {None: "", True: "yes", False: "NO"}[fulfilled],
        str(row.get("what", meaning)),
        f"{row['setup']:.2f}" if "setup" in row else "",
        str(row["why"]) if fulfilled is False and "why" in row else "",
    )


def section_of(rows: Sequence[Row], meaning: str) -> str:
    """A suite as a table in Markdown."""
    return table(HEADINGS, (cells_of(row, meaning) for row in rows))


def with_sections(text: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """The file with some sections renewed, the others as they were, and those of no suite left out."""
    kept = {}
    for part in text.split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        kept[name] = body.strip()
    kept |= sections
    found = "".join(f"\n## {name}\n\n{kept[name]}\n" for name in order if name in kept)
    return _TITLE + found


def _at_least(row: Row, meaning: str) -> bool:
    return meaning == FASTER and "what" not in row
