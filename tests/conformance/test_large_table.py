"""A table of 6 GB as doubles is fitted in bounded memory by a stream."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

N_COLUMNS = 100
N_ROWS = 7_500_000
MOST_MEMORY = 1_000_000_000
# Of processor time.
MOST_SECONDS = 720.0

FIT = """
import json, re, sys, time
from pathlib import Path
from taciturn import SparseClassifier, open_table

path, bounds, memory = sys.argv[1:]
with open_table(path, bounds, memory=int(memory)) as table:
    model = SparseClassifier(classes=(0, 1), x_bound=1.0, n_nonzero=10, random_state=1).fit(table)
# The peak that getrusage knows may be that of the process which has written the table.
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([model.coef_.ravel().tolist(), peak, time.process_time()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")
def test_six_gigabytes_are_fitted_in_one(tmp_path):
    from scale_tables import write_large_parquet

    table, bounds = tmp_path / "large.parquet", tmp_path / "bounds.toml"
    write_large_parquet(table, N_ROWS, N_COLUMNS)
    assert 8 * N_ROWS * N_COLUMNS == 6 * 10**9
    bounds.write_text('[target]\nname = "y"\nclasses = [0, 1]\n[defaults]\nlower = -1\nupper = 1\n', encoding="utf-8")
    script = Path(tmp_path / "fit.py")
    script.write_text(FIT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, table, bounds, str(MOST_MEMORY)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    coefficients, peak, seconds = json.loads(done.stdout)
    assert seconds < MOST_SECONDS
    assert peak < MOST_MEMORY
    # The five columns of the target, with alternating signs and log-odds of 3 each.
    found = np.asarray(coefficients)
    # Row groups are shifts of 250,000 rows, whose sampling error is that of the table: with squares of .031 a cell and
    # weights p (1 - p) of about .2 a coefficient deviates by 1 / sqrt(250,000 x .031 x .2), or .025.
    deviation = 1.0 / np.sqrt(250_000 * 0.031 * 0.2)
    assert np.allclose(found[:5], [3.0, -3.0, 3.0, -3.0, 3.0], atol=6.0 * deviation)
    assert np.all(np.abs(found[5:]) < 6.0 * deviation)
