"""Memory of tables that are read in partitions: it does not grow with the table."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from scale_tables import LEVELS, write_large_parquet
from taciturn.tables import Column, TableBounds, Target, open_partitions, read_table

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")

READ = """
import re, sys, tempfile
from pathlib import Path
from taciturn.tables import Column, TableBounds, Target, open_partitions, read_table

def peak():
    # The peak that getrusage knows may be that of the parent process.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

bounds = TableBounds(Target("y", 0, 1), defaults=Column("number", -1, 1))
path, way = sys.argv[1:]
# Everything is imported that reading imports.
small = Path(tempfile.mkdtemp()) / "small.csv"
small.write_text("y,x\\n0,1\\n")
with open_partitions(small, bounds) as table:
    table.read(0)
base = peak()
total = 0.0
if way == "whole":
    total = read_table(path, bounds, "y")[0].sum()
else:
    with open_partitions(path, bounds) as table:
        for index in range(table.offsets.size):
            X, y, _ = table.read(index)
            total += X.sum()
print(peak() - base, total)
"""


def read(path, way, folder):
    """Megabytes over the base at the peak, and the sum of all features."""
    environment = dict(os.environ) | {"TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", READ, path, way], env=environment, capture_output=True, text=True, check=True
    )
    megabytes, total = map(float, done.stdout.split())
    return megabytes, total


@pytest.mark.slow
def test_a_table_takes_the_memory_of_a_partition(tmp_path):
    """400 MB as doubles, in one row group: below 200 MB in partitions, above 400 MB as a whole.

    Partitions of 8 MB take some 60 MB on their way. The rest is memory that Arrow keeps for the next one.
    """
    path = tmp_path / "t.parquet"
    write_large_parquet(path, 500_000, 100, group_rows=500_000)
    assert parquet.read_metadata(path).num_row_groups == 1
    assert path.stat().st_size < 10e6
    streamed, total = read(path, "partitions", tmp_path)
    assert streamed < 200.0
    whole, same = read(path, "whole", tmp_path)
    assert whole > 400.0
    # Sums of multiples of a half are exact.
    assert total == same != 0.0


def test_a_large_table_is_what_its_description_says(tmp_path):
    path = tmp_path / "t.parquet"
    write_large_parquet(path, 5_300, 7, group_rows=1_000, density=0.4)
    bounds = TableBounds(Target("y", 0, 1), defaults=Column("number", -1, 1))
    X, y = read_table(path, bounds, "y")
    assert X.shape == (5_300, 7)
    assert set(np.unique(X)) == set(LEVELS)
    assert (X != 0.0).mean() == pytest.approx(0.4, abs=0.02)
    # Groups are not copies of one another, and rows keep their target.
    assert not any(np.array_equal(X[:1000], X[start : start + 1000]) for start in (1000, 2000, 3000, 4000))
    found = np.linalg.lstsq(X, y - 0.5, rcond=None)[0]
    assert np.sign(found[:5]).tolist() == [1, -1, 1, -1, 1]
    assert np.abs(found[:5]).min() > 4 * np.abs(found[5:]).max()
    assert open_partitions(path, bounds, memory=1 << 26).n_rows == 5_300


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv"])
def test_doubles_that_cannot_be_compressed_take_little_memory_too(tmp_path, name):
    n_rows, n_columns = 2_500_000, 20
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.uniform(-1, 1, n_rows) for j in range(n_columns)} | {"y": rng.random(n_rows)})
    path = tmp_path / name
    if name == "t.parquet":
        parquet.write_table(table, path, row_group_size=n_rows)
    elif name == "t.csv":
        csv.write_csv(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=100_000)
    assert path.stat().st_size > 400e6
    # Pages of a column take 3 MB, and Arrow reads up to 32 blocks of a text table ahead.
    assert read(path, "partitions", tmp_path)[0] < 250.0
    assert read(path, "whole", tmp_path)[0] > 400.0
