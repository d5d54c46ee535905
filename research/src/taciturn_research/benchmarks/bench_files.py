"""Tables on disk, and files larger than memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from taciturn_research.benchmarks.measuring import Row, Usage, run_python

# ---------------------------------------------------------------------
# ``taciturn fit`` on a CSV file of a gigabyte against pyarrow's own read of the file, and what it holds in memory.


TABLE_ROWS, TABLE_COLUMNS = 1_000_000, 100
TIME_TARGET, CSV_MEMORY_TARGET = 2.0, 3.0

READ = "import sys\nfrom pyarrow import csv\ncsv.read_csv(sys.argv[1])\n"
FIT = "import sys\nfrom taciturn.app.cli.main import main\nsys.argv[0] = 'taciturn'\nmain()\n"


def table_rows(repeats: int = 3) -> list[dict[str, object]]:
    """Time over that of a process that only reads the file; memory over that of the table as doubles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, bounds = folder / "table.csv", folder / "bounds.toml"
        _write_csv(table)
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
                read.append(_process_cost([sys.executable, "-c", READ, str(table)])[0])
                output = folder / f"{task}-{repeat}"
                arguments = ["fit", str(table), "--bounds", str(bounds), "-o", str(output)]
                seconds, memory = _process_cost([sys.executable, "-c", FIT, *arguments])
                ours.append(seconds)
                peak = max(peak, memory)
            size = f"{TABLE_ROWS:.0e} x {TABLE_COLUMNS} CSV of {table.stat().st_size / 1e9:.2f} GB"
            ratio = min(ours) / min(read)
            found.append(
                {"case": f"taciturn fit ({task}), {size}, time against pyarrow's read", "ratio": ratio,
                 "target": TIME_TARGET}
            )  # fmt: skip
            found.append(
                {"case": f"taciturn fit ({task}), {size}, peak memory against the table as doubles",
                 "ratio": peak / (8.0 * TABLE_ROWS * TABLE_COLUMNS), "target": CSV_MEMORY_TARGET}
            )  # fmt: skip
    return found


def _write_csv(path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(TABLE_COLUMNS)]
    step = TABLE_ROWS // 10
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]] + [("label", pa.int64())])
    with csv.CSVWriter(str(path), schema) as writer:
        for _ in range(10):
            X = rng.uniform(-1, 1, (step, TABLE_COLUMNS)).round(7)
            y = 0.6 * X[:, 0] - 0.4 * X[:, 7] + 0.2 * X[:, 50] + 0.3 * rng.normal(size=step)
            writer.write_table(pa.table([*X.T, y.round(7), (y > 0).astype(np.int64)], schema=schema))


def _process_cost(command: list[str]) -> tuple[float, float]:
    """Wall time of a process, and the largest memory of any process so far: those that only read come first."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0


# ---------------------------------------------------------------------
# ``taciturn fit`` on files that are larger than it may hold: against reading them, and what it holds in memory.
#
# Readers go through a file as a stream and keep nothing. Times are processor times of whole processes.


CSV_ROWS, PARQUET_ROWS, N_COLUMNS, N_BATCHES = 2_000_000, 1_250_000, 100, 20
MEMORY_TARGET = 1.0
_BOUNDS = """[target]
name = "label"
classes = [0, 1]
[defaults]
lower = -1
upper = 1
"""

ARROW_CSV = "from pyarrow import csv\nfor batch in csv.open_csv(sys.argv[1]):\n    batch.num_rows\n"
POLARS_CSV = "import polars as pl\npl.scan_csv(sys.argv[1]).select(pl.all().sum()).collect(engine='streaming')\n"
ARROW_PARQUET = "import pyarrow.dataset as ds\nfor batch in ds.dataset(sys.argv[1]).to_batches():\n    batch.num_rows\n"
CASES = (
    ("CSV", CSV_ROWS, (("pyarrow's stream", ARROW_CSV, 1.5), ("polars' scan", POLARS_CSV, None))),
    ("Parquet", PARQUET_ROWS, (("pyarrow's stream", ARROW_PARQUET, 3.0),)),
)
"""File format, records, and readers with how many times their time a fit may take; None where a number is all."""


def files_rows() -> Iterator[Row]:
    """A row a reader, and the peak memory in gigabytes."""
    for kind, n_rows, readers in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table, bounds = folder / f"table.{kind.lower()}", folder / "bounds.toml"
            _write(table, n_rows)
            bounds.write_text(_BOUNDS, encoding="utf-8")
            size = f"{kind} of {table.stat().st_size / 1e9:.2f} GB"
            read = {reader: run_python(code, str(table)) for reader, code, _ in readers}
            ours = _fit(table, bounds, folder / "model")
            again = _fit(table, bounds, folder / "with little", "400MB")
        for reader, _, target in readers:
            yield {
                "case": f"taciturn fit, {size}, against {reader}",
                "ratio": ours.cpu / read[reader].cpu,
                "target": target,
                "what": "processor time of ours / of the reader",
            }
        reader, *_ = readers[0]
        yield {
            "case": f"taciturn fit --memory 400MB, {size}, against {reader}",
            "ratio": again.cpu / read[reader].cpu,
            "target": None,
            "what": "processor time of ours / of the reader",
        }
        yield {
            "case": f"taciturn fit, {size}, peak memory",
            "ratio": ours.peak / 1e9,
            "target": MEMORY_TARGET,
            "what": "gigabytes",
        }


def _fit(table: Path, bounds: Path, output: Path, memory: str = "1GB") -> Usage:
    arguments = ["fit", str(table), "--bounds", str(bounds), "-o", str(output), "--memory", memory]
    return run_python(FIT, *arguments)


def _write(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names] + [("label", pa.int64())])
    writer = csv.CSVWriter(str(path), schema) if path.suffix == ".csv" else pq.ParquetWriter(str(path), schema)
    step = n_rows // N_BATCHES
    with writer:
        for _ in range(N_BATCHES):
            X = rng.uniform(-1.0, 1.0, (step, N_COLUMNS)).round(7)
            y = 0.6 * X[:, 0] - 0.4 * X[:, 7] + 0.2 * X[:, 50] + 0.3 * rng.normal(size=step)
            writer.write_table(pa.table([*X.T, (y > 0).astype(np.int64)], schema=schema))
