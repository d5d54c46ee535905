"""Fits of the default beside fits of other libraries on the same synthetic tables, each in a process of its own.

The measurements are stored in ``peers.json``, from which ``docs/compare.md`` is written. All have one thread.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taciturn_research.arena.peers import BUILD
from taciturn_research.benchmarks.measuring import Row
from taciturn_research.benchmarks.peer_fits import METHODS, TABLES, TASKS

STORED = Path(__file__).with_name("peers.json")
OURS = ('taciturn, n_nonzero="all"', "taciturn, n_nonzero=10")
BASELINE = "scikit-learn, L2"
LIMIT = 180.0
"""Seconds for a process: the table, the first fit and those that follow."""

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
_SCRIPT = Path(__file__).with_name("peer_fits.py")

Measurement = dict[str, Any]
"""``method``, ``task`` and ``table``; then ``cpu``, ``wall``, ``first`` and ``fits``, or ``error``."""


def rows() -> list[Row]:
    """Measure everything, store it, and compare processor times."""
    missing = [
        name for name in sorted({method.environment for method in METHODS.values()}) if not _python(name).exists()
    ]
    if missing:
        raise SystemExit(f"build has no {', '.join(missing)}; run make comparisons")
    stored: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        # Above the number of cores the machine had other work to do, and seconds mean less than processor seconds.
        "load": {"before": round(os.getloadavg()[0], 2)},
        "versions": {},
        "measurements": [],
    }
    for found in _measured():
        said = found.pop("version", None)
        if said is not None:
            stored["versions"][METHODS[found["method"]].package] = said
        stored["measurements"].append(found)
    stored["load"]["after"] = round(os.getloadavg()[0], 2)
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return rows_of(stored["measurements"])


def rows_of(measurements: Sequence[Measurement]) -> list[Row]:
    """Processor time of the default with all columns over that of every peer which can fit the table."""
    return [
        {"case": f"{table}, {task}, against {name}", "ratio": quotient, "target": None}
        for table in TABLES
        for task in TASKS
        for name in METHODS
        if name not in OURS and (quotient := ratio(measurements, OURS[0], name, task, table, "cpu")) is not None
    ]


def ratio(
    measurements: Sequence[Measurement], name: str, baseline: str, task: str, table: str, clock: str
) -> float | None:
    """The time of one method over that of another; None if either has none."""
    times = {m["method"]: m.get(clock) for m in measurements if (m["task"], m["table"]) == (task, table)}
    ours, theirs = times.get(name), times.get(baseline)
    return None if ours is None or theirs is None else float(ours) / float(theirs)


def _python(environment: str) -> Path:
    return Path(sys.executable) if environment == "taciturn" else BUILD / environment / "bin" / "python"


def _measured() -> Iterator[Measurement]:
    for table in TABLES:
        for task in TASKS:
            for name, method in METHODS.items():
                said = _ask(_python(method.environment), (name, task, table))
                yield {"method": name, "task": task, "table": table, **said}


def _ask(python: Path, arguments: Sequence[str]) -> Mapping[str, Any]:
    """What one process says about its fits; a process beyond the limit is ended."""
    command = [str(python), "-P", str(_SCRIPT), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, **_ONE_THREAD}
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not finished after {LIMIT:.0f} seconds"}
    last = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not last:
        return {"error": f"the process ended with {done.returncode}"}
    said: dict[str, Any] = json.loads(last[0])
    return said
