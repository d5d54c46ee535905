"""A fit to the tables of several sites, beside the same fit in memory."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn_research.benchmarks.measuring import Row, run_python

# ---------------------------------------------------------------------
# Three sites in threads of one process, over Arrow Flight on loopback with mutual TLS, masks included.
#
# Processor time is that of the coordinator and of all sites together. It is the time of a process of its own, since
# sites wait for their coordinator until the process ends.


N_SITES, N_ROWS, N_COLUMNS = 3, 60_000, 20

CODE = """
import socket, tempfile, threading
from pathlib import Path
import numpy as np
from taciturn import SparseClassifier
from taciturn.engines import PartitionedTable, open_sites
from taciturn.engines.sites.flight import serve
from taciturn.engines.sites.plan import PartyKeys, SitePlan, create_keys
from taciturn.engines.sites.session import Site
from taciturn.methods.tasks import tasks_of

n_sites, n_rows, n_columns = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (n_rows, n_columns))
y = np.where(X[:, 0] - X[:, 7] + rng.logistic(size=n_rows) > 0, "yes", "no")
edges = np.linspace(0, n_rows, n_sites + 1).astype(int)

class Rows:
    names, offsets = None, np.zeros(1, dtype=np.int64)
    def __init__(self, start, stop):
        self.X, self.y = X[start:stop], y[start:stop]
        self.n_rows, self.n_features = self.X.shape
    def read(self, index, columns):
        return self.X if columns is None else self.X[:, columns], self.y, None

folder = Path(tempfile.mkdtemp())
names = [f"site-{place}" for place in range(n_sites)]
for name in ("coordinator", *names):
    create_keys(name, folder)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{free.getsockname()[1]}"
parts = ['[study]', 'name = "bench"', 'methods = ["SparseClassifier"]', 'bounds = "' + 64 * "0" + '"']
parts.append((folder / "coordinator.toml").read_text().replace('address = ""', f'address = "{address}"'))
for name, start, stop in zip(names, edges, edges[1:]):
    parts.append((folder / f"{name}.toml").read_text().replace("rows = 0", f"rows = {stop - start}"))
plan = SitePlan.from_toml("\\n".join(parts))
for name, start, stop in zip(names, edges, edges[1:]):
    keys = PartyKeys.read(folder / f"{name}.keys")
    site = Site(plan, keys, PartitionedTable(Rows(start, stop), classes=("no", "yes")), tasks_of(plan.methods))
    threading.Thread(target=serve, args=(site, keys, lambda words: None), daemon=True).start()

settings = {"classes": ("no", "yes"), "n_nonzero": 5, "x_bound": 1.0, "random_state": 0}
def cost(fit):
    fit()
    found = []
    for _ in range(3):
        start = time.process_time()
        model = fit()
        found.append(time.process_time() - start)
    return float(np.median(found)), model

with open_sites(plan, folder / "coordinator.keys", timeout=120.0) as table:
    numbers = []
    def fit_sites():
        before = table.session.n_requests
        model = SparseClassifier(**settings).fit(table)
        numbers.append(table.session.n_requests - before)
        return model
    cpu, model = cost(fit_sites)
of_memory, whole = cost(lambda: SparseClassifier(**settings).fit(X, y))
assert np.array_equal(model.coef_, whole.coef_)
say(cpu=cpu, of_memory=of_memory, rounds=numbers[-1])
"""


def sites_rows() -> Iterator[Row]:
    """Processor time against memory, and what a round takes beyond a sum in memory."""
    said = run_python(CODE, str(N_SITES), str(N_ROWS), str(N_COLUMNS), OMP_NUM_THREADS="1").said
    size = f"{N_ROWS:,} x {N_COLUMNS}, {said['rounds']} rounds"
    yield {
        "case": f"a fit to {N_SITES} sites on loopback, {size}, against memory",
        "ratio": said["cpu"] / said["of_memory"],
        "target": None,
    }
    yield {
        "case": f"a round of {N_SITES} sites on loopback, beyond a sum in memory",
        "ratio": 1e3 * (said["cpu"] - said["of_memory"]) / said["rounds"],
        "target": None,
        "what": "milliseconds of processor time",
    }
