"""``taciturn fit`` on a CSV file of a gigabyte against pyarrow's own read of the file, and what it holds in memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

__all__ = ["rows"]

N_ROWS, N_COLUMNS = 1_000_000, 100
TIME_TARGET, MEMORY_TARGET = 2.0, 3.0

READ = "import sys\nfrom pyarrow import csv\ncsv.read_csv(sys.argv[1])\n"
FIT = "import sys\nfrom taciturn.app.cli.main import main\nsys.argv[0] = 'taciturn'\nmain()\n"


def rows(repeats: int = 3) -> list[dict[str, object]]:
    """Time over that of a process that only reads the file; memory over that of the table as doubles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, bounds = folder / "table.csv", folder / "bounds.toml"
        _write(table)
        found = []
        for task, target in (("regress", "lower = -2\nupper = 2"), ("classify", "classes = [0, 1]")):
            column = "y" if task == "regress" else "label"
            other = "label" if task == "regress" else "y"
            bounds.write_text(
                f'[target]\nname = "{column}"\n{target}\n[defaults]\nlower = -1\nupper = 1\n'
                f'[columns.{other}]\ntype = "ignore"\n',
                encoding="utf-8",
            )
            read, ours, peak = [], [], 0.0
            for repeat in range(repeats):
                read.append(_seconds([sys.executable, "-c", READ, str(table)])[0])
                output = folder / f"{task}-{repeat}"
                arguments = ["fit", str(table), "--bounds", str(bounds), "-o", str(output)]
                seconds, memory = _seconds([sys.executable, "-c", FIT, *arguments])
                ours.append(seconds)
                peak = max(peak, memory)
            size = f"{N_ROWS:.0e} x {N_COLUMNS} CSV of {table.stat().st_size / 1e9:.2f} GB"
            ratio = min(ours) / min(read)
            found.append(
                {"case": f"taciturn fit ({task}), {size}, time against pyarrow's read", "ratio": ratio,
                 "target": TIME_TARGET}
            )  # fmt: skip
            found.append(
                {"case": f"taciturn fit ({task}), {size}, peak memory against the table as doubles",
                 "ratio": peak / (8.0 * N_ROWS * N_COLUMNS), "target": MEMORY_TARGET}
            )  # fmt: skip
    return found


def _write(path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(N_COLUMNS)]
    step = N_ROWS // 10
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]] + [("label", pa.int64())])
    with csv.CSVWriter(str(path), schema) as writer:
        for _ in range(10):
            X = rng.uniform(-1, 1, (step, N_COLUMNS)).round(7)
            y = 0.6 * X[:, 0] - 0.4 * X[:, 7] + 0.2 * X[:, 50] + 0.3 * rng.normal(size=step)
            writer.write_table(pa.table([*X.T, y.round(7), (y > 0).astype(np.int64)], schema=schema))


def _seconds(command: list[str]) -> tuple[float, float]:
    """Wall time of a process, and the largest memory of any process so far: those that only read come first."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0
