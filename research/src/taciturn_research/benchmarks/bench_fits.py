"""Whole fits: the default, its growth, selectors, accounting, imports and first fits."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dp_accounting
import numpy as np
import scipy.sparse as sp
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

from taciturn import CorrelationSelector, SparseClassifier
from taciturn.accounting import Budget, calibrate
from taciturn.datasets import make_power_law_sparse
from taciturn.engines import ArraySource
from taciturn.events import GaussianEvent
from taciturn.methods.options import TopKMechanism
from taciturn.methods.selection.estimator import KendallSelector
from taciturn_research.benchmarks.measuring import Row, growth_exponent, run_python

# ---------------------------------------------------------------------
# The default on dense tables in memory: against one read of X a step, by threads, and what it holds beside X.


N_ROWS, N_COLUMNS, MANY_ROWS = 200_000, 100, 1_000_000
READ_TARGET, THREADS_TARGET, MEMORY_TARGET = 2.5, 1.1, 0.6

_TABLE = """
import numpy as np
from taciturn import SparseClassifier
def table(n, d):
    rng = np.random.default_rng(0)
    X = np.empty((n, d))
    for start in range(0, n, 10_000):
        X[start:start + 10_000] = rng.uniform(-1.0, 1.0, X[start:start + 10_000].shape)
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.0).astype(int)
def fit(X, y):
    return SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
fit(*table(1000, 10))
"""
_THREADS = f"""{_TABLE}
X, y = table({N_ROWS}, {N_COLUMNS})
start = time.process_time()
fit(X, y)
say(fit=time.process_time() - start)
"""
_MEMORY_OF_DEFAULT = f"""{_TABLE}
X, y = table({MANY_ROWS}, {N_COLUMNS})
before = held()
fit(X, y)
say(share=(peak() - before) / X.nbytes)
"""


def table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform entries, two of the columns matter."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_columns))
    return X, (X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n_rows) > 0.0).astype(np.int64)


def default_rows(repeats: int = 3) -> list[Row]:
    """Three rows: processor time of a fit over that of products with X, threads, memory."""
    with threadpool_limits(1):
        found = [_against_reading(repeats)]
    name = f"SparseClassifier, {N_ROWS:.0e} x {N_COLUMNS} dense"
    by_threads = {threads: min(_fit_with(threads) for _ in range(2)) for threads in (1, 2)}
    found.append(
        {
            "case": f"{name}, two BLAS threads against one",
            "ratio": by_threads[2] / by_threads[1],
            "target": THREADS_TARGET,
            "what": "processor time with two threads / with one",
        }
    )
    found.append(
        {
            "case": f"SparseClassifier, {MANY_ROWS:.0e} x {N_COLUMNS} dense, memory beside X",
            "ratio": run_python(_MEMORY_OF_DEFAULT).said["share"],
            "target": MEMORY_TARGET,
            "what": "peak memory of the fit beside X / bytes of X",
        }
    )
    return found


def _against_reading(repeats: int) -> Row:
    X, y = table(N_ROWS, N_COLUMNS)
    weights = np.full(N_COLUMNS, 0.5)
    model = SparseClassifier(classes=(0, 1), random_state=0)
    n_reads = _rounds_of_full_width(model, X, y)
    ours, reads = [], []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        ours.append(time.process_time() - start)
        start = time.process_time()
        for _ in range(20):
            X @ weights
        reads.append((time.process_time() - start) / 20)
    return {
        "case": f"SparseClassifier, {N_ROWS:.0e} x {N_COLUMNS} dense, {n_reads} full sums against reading X",
        "ratio": statistics.median(ours) / (n_reads * statistics.median(reads)),
        "target": READ_TARGET,
        "what": "processor time of the fit / of as many products X @ w",
    }


def _rounds_of_full_width(model: SparseClassifier, X: np.ndarray, y: np.ndarray) -> int:
    """How often a fit asks for a sum over all columns; those over the columns that it keeps are not counted."""
    asked, total = [], ArraySource.total

    def counted(source: ArraySource, task: Any) -> Any:
        asked.append(task.columns is None)
        return total(source, task)

    with patch.object(ArraySource, "total", counted):
        model.fit(X, y)
    return sum(asked)


def _fit_with(threads: int) -> float:
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    return float(run_python(_THREADS, **limits).said["fit"])


# ---------------------------------------------------------------------
# How the default's time grows with records, columns and columns kept, and its memory with records.
#
# Exponents are slopes of log cost over log size. A step reads the table once, so that time should grow with n and d as
# the table does; how many steps there are follows from public numbers and is part of it. A Gram matrix adds up to d**2
# a record where one is released, which brings exponents in d above 1. Columns kept are chosen once.


RECORDS = (100_000, 200_000, 400_000, 800_000)
COLUMNS = (50, 100, 200, 400, 800)
KEPT = (5, 10, 20, 40, 80)
# How far a measured slope may be above what is expected.
TOLERANCE = 0.25

_MEMORY_OF_GROWTH = """
import numpy as np
from taciturn import SparseClassifier
def fit(n):
    rng = np.random.default_rng(0)
    X = np.empty((n, 50))
    for start in range(0, n, 10_000):
        X[start:start + 10_000] = rng.uniform(-1.0, 1.0, X[start:start + 10_000].shape)
    y = (X[:, 0] > 0.0).astype(int)
    before = held()
    SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
    return before
fit(1000)
before = fit(int(sys.argv[1]))
say(beside=peak() - before)
"""


def growth_rows(repeats: int = 3) -> list[Row]:
    """One row an exponent; ``ratio`` is the exponent."""
    with threadpool_limits(1):
        found = [
            _growth_row("time", "records n, d = 50", 1.0, RECORDS, lambda n: _seconds(n, 50, 10, repeats)),
            _growth_row("time", "columns d, n = 20,000", 1.5, COLUMNS, lambda d: _seconds(20_000, d, 10, repeats)),
            _growth_row(
                "time", "columns kept k, n = 20,000, d = 200", 0.0, KEPT, lambda k: _seconds(20_000, 200, k, repeats)
            ),
        ]
    beside = _growth_row("memory", "records n, d = 50, beside X", 1.0, RECORDS, _memory)
    return [*found, beside]


def _growth_row(
    cost: str, sizes_of: str, expected: float, sizes: Sequence[int], measure: Callable[[int], float]
) -> Row:
    costs = [measure(size) for size in sizes]
    unit, scale = ("s", 1.0) if cost == "time" else ("MB", 1e-6)
    ends = f"{scale * costs[0]:.2g} {unit} to {scale * costs[-1]:.2g} {unit}"
    return {
        "case": f"SparseClassifier, growth of {cost} in {sizes_of}, {sizes[0]:,} to {sizes[-1]:,} ({ends})",
        "ratio": growth_exponent(sizes, costs),
        "target": expected + TOLERANCE,
        "what": f"exponent; {expected:g} expected",
    }


def _seconds(n_rows: int, n_columns: int, n_nonzero: int, repeats: int) -> float:
    """The least processor time of a fit."""
    X, y = table(n_rows, n_columns)
    model = SparseClassifier(classes=(0, 1), n_nonzero=n_nonzero, random_state=0)
    model.fit(X[:1000], y[:1000])
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def _memory(n_rows: int) -> float:
    return float(run_python(_MEMORY_OF_GROWTH, str(n_rows)).said["beside"])


# ---------------------------------------------------------------------
# A private selection among a million sparse columns against what the selection without privacy takes.


SELECTOR_TARGET = 2.0
"""Bounds, exact sums, noise and certificate may cost as much again as ``X.T @ y`` and a sort of the scores."""

SPARSE_ROWS, SPARSE_COLUMNS, PER_ROW, K = 100_000, 1_000_000, 100, 100


def selectors_rows(repeats: int = 7) -> list[dict[str, object]]:
    """One row a mechanism; ``ratio`` is the time of a whole fit over that of the product and the sort."""
    X, labels, _ = make_power_law_sparse(SPARSE_ROWS, SPARSE_COLUMNS, PER_ROW, exponent=1.0, random_state=0)
    y = np.where(labels > 0, 0.7, -0.4)
    mechanisms: tuple[TopKMechanism, ...] = ("auto", "gumbel")
    return [_selector_row(mechanism, X, y, repeats) for mechanism in mechanisms]


def _selector_row(mechanism: TopKMechanism, X: sp.csr_array, y: np.ndarray, repeats: int) -> dict[str, object]:
    selector = CorrelationSelector(
        epsilon=1.0, delta=1e-6, x_bound=1.0, y_bounds=(-1.0, 1.0), mechanism=mechanism, n_features_to_select=K
    )
    sides: dict[str, Callable[[sp.csr_array], object]] = {
        "ours": lambda X: selector.fit(X, y),
        "baseline": lambda X: np.argsort(np.abs(X.T @ y)),
    }
    times: dict[str, list[float]] = {side: [] for side in sides}
    for repeat in range(repeats + 1):
        for side, run in sides.items():
            # A matrix remembers what was found out about it; a fresh one does not.
            fresh = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=False)
            start = time.perf_counter()
            run(fresh)
            if repeat:
                times[side].append(time.perf_counter() - start)
    ours, baseline = (statistics.median(times[side]) for side in ("ours", "baseline"))
    of = f"top {K} of {SPARSE_COLUMNS:.0e} sparse columns"
    case = f"CorrelationSelector ({mechanism}), {of}, against X.T @ y and argsort"
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ours / baseline, "target": SELECTOR_TARGET}


# ---------------------------------------------------------------------
# Selection by Kendall's tau against a loop over scipy's.
#
# Both sides rank and select without noise, round by round; scipy is asked for the same pairs of columns.


CASES = ((1_000, 40, "numbers", 5.0), (100_000, 20, "numbers", 2.0), (100_000, 20, "zeros and ones", 2.0))
"""Records, features, what the features are, and how many times faster than scipy the selector has to be."""
N_SELECTED = 5


def _median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _by_scipy(X: np.ndarray, y: np.ndarray) -> None:
    anchor, left = y, list(range(X.shape[1]))
    relevance, redundancy = np.zeros(len(left)), np.zeros(len(left))
    for n_selected in range(N_SELECTED):
        taus = [abs(kendalltau(X[:, column], anchor).statistic) for column in left]
        (redundancy if n_selected else relevance)[left] += taus
        scores = relevance - redundancy / max(n_selected, 1)
        winner = left[int(np.argmax(scores[left]))]
        left.remove(winner)
        anchor = X[:, winner]


def kendall_rows(repeats: int = 3) -> list[dict[str, object]]:
    """One row a case; ``ratio`` is scipy's time over ours, so larger is better."""
    table: list[dict[str, object]] = []
    for n_rows, n_columns, kind, target in CASES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_columns))
        y = X[:, :N_SELECTED].sum(axis=1) + rng.standard_normal(n_rows)
        X = X if kind == "numbers" else (X > 0).astype(np.float64)
        selector = KendallSelector(epsilon=float("inf"), n_features_to_select=N_SELECTED)
        selector.fit(X[:100], y[:100])
        ours = _median_seconds(partial(selector.fit, X, y), repeats)
        baseline = _median_seconds(partial(_by_scipy, X, y), repeats)
        case = f"Kendall selection, {N_SELECTED} of {n_columns} columns of {kind}, {n_rows:.0e} records, against scipy"
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": baseline / ours, "target": target})
    return table


# ---------------------------------------------------------------------
# Calibrating a plan by the closed form against dp-accounting's privacy-loss distributions.


ACCOUNTING_TARGET = 100.0
"""How many times faster a calibration has to be."""


def accounting_rows() -> list[dict[str, object]]:
    """One row; ``ratio`` is dp-accounting's time over ours, so larger is better."""
    n_steps, epsilon, delta = 1000, 1.0, 1e-5

    def ours() -> float:
        return calibrate(Budget(epsilon, delta), lambda scale: GaussianEvent(scale) * n_steps)

    def theirs() -> float:
        found: float = dp_accounting.calibrate_dp_mechanism(
            dp_accounting.pld.PLDAccountant,
            lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), n_steps),
            epsilon,
            delta,
            bracket_interval=dp_accounting.LowerEndpointAndGuess(50.0, 150.0),
            tol=0.01,
        )
        return found

    ours()
    start = time.perf_counter()
    for _ in range(20):
        ours()
    mine = (time.perf_counter() - start) / 20
    start = time.perf_counter()
    theirs()
    baseline = time.perf_counter() - start
    case = f"calibrate {n_steps} Gaussian releases, closed form against dp-accounting's PLD"
    return [{"case": case, "ours": mine, "baseline": baseline, "ratio": baseline / mine, "target": ACCOUNTING_TARGET}]


# ---------------------------------------------------------------------
# What a fresh process waits for: imports, and compilation where numba's cache is empty.


_DATA = """
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.uniform(-1.0, 1.0, (500, 20)), rng.integers(0, 2, 500)
"""
FIRST_FITS = (
    ("SparseClassifier", "SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)", 2.0),
    (
        "FrankWolfeClassifier, sparse",
        "FrankWolfeClassifier(classes=(0, 1), random_state=0).fit(scipy.sparse.csr_array(X), y)",
        4.0,
    ),
    ("KendallSelector", "KendallSelector(n_features_to_select=3, random_state=0).fit(X, y)", 4.0),
)
"""Class, its fit, and the most seconds that may take in a process that has compiled nothing."""
OURS = "from taciturn import SparseClassifier\nSparseClassifier()\n"
THEIRS = "import sklearn.linear_model\n"
IMPORT_TARGETS = {"processor time": 1.25, "memory": 1.25}
"""An estimator of scikit-learn's kind cannot do without scikit-learn; a quarter more is for numerics of our own."""

ANSWER_TARGET = 12.0
"""Of commands that read: typer, rich, scipy.special and scipy.sparse, and no scikit-learn."""


def starting_rows(repeats: int = 5) -> list[Row]:
    """Seconds of first fits; processor time and memory of an import over those of scikit-learn's linear models."""
    found: list[Row] = []
    for name, fit, target in FIRST_FITS:
        kind = fit.partition("(")[0]
        code = f"import scipy.sparse\nfrom taciturn import {kind}\n{_DATA}start = time.perf_counter()\n{fit}\n"
        with tempfile.TemporaryDirectory() as cache:
            seconds = run_python(f"{code}say(fit=time.perf_counter() - start)\n", NUMBA_CACHE_DIR=cache).said["fit"]
        found.append(
            {
                "case": f"first fit of {name}, numba's cache empty",
                "ratio": seconds,
                "target": target,
                "what": "seconds of the fit in a fresh process",
            }
        )
    # In turn, and once before: files have to be read from disk the first time.
    usages = [(run_python(OURS), run_python(THEIRS)) for _ in range(repeats + 1)][1:]
    cpu = min(ours.cpu for ours, _ in usages) / min(theirs.cpu for _, theirs in usages)
    memory = min(ours.peak for ours, _ in usages) / min(theirs.peak for _, theirs in usages)
    for what, ratio in (("processor time", cpu), ("memory", memory)):
        found.append(
            {
                "case": f"import of SparseClassifier against sklearn.linear_model, {what}",
                "ratio": ratio,
                "target": IMPORT_TARGETS[what],
                "what": f"{what} of a process that imports ours / scikit-learn's",
            }
        )
    return [*found, *_answer_rows(repeats)]


def _answer_rows(repeats: int) -> list[Row]:
    """Processor time of commands that only read, over that of an import of numpy."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = np.random.default_rng(0)
        ages = rng.uniform(18, 90, 4000)
        lines = [f"{age:.1f},{'yes' if rng.random() < age / 120 else 'no'}" for age in ages]
        (folder / "table.csv").write_text("\n".join(["age,ill", *lines]) + "\n", encoding="utf-8")
        (folder / "bounds.toml").write_text(_BOUNDS, encoding="utf-8")
        (folder / "typo.toml").write_text(_BOUNDS.replace("lower", "lowr"), encoding="utf-8")
        fit = ("fit", str(folder / "table.csv"), "--bounds")
        run_python(_command(*fit, str(folder / "bounds.toml"), "--seed", "1", "-o", str(folder / "model")))
        for case, arguments in (
            ("show", ("show", str(folder / "model"))),
            ("verify", ("verify", str(folder / "model"))),
            ("fit with a mistake in the bounds", (*fit, str(folder / "typo.toml"))),
        ):
            usages = [(run_python(_command(*arguments)), run_python(_NUMPY)) for _ in range(repeats + 1)][1:]
            found.append(
                {
                    "case": f"taciturn {case}, against an import of numpy",
                    "ratio": min(ours.cpu for ours, _ in usages) / min(theirs.cpu for _, theirs in usages),
                    "target": ANSWER_TARGET,
                    "what": "processor time of the command / python -c 'import numpy'",
                }
            )
    return found


_BOUNDS = """
target = {name = "ill", classes = ["no", "yes"]}
[columns]
age = {type = "number", lower = 18, upper = 90}
"""
_NUMPY = "import numpy\n"


def _command(*arguments: str) -> str:
    """Code that runs a command of the program as from a shell."""
    return (
        f"import contextlib, io, sys\nsys.argv = ['taciturn', *{arguments!r}]\nfrom taciturn.__main__ import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
    )


_PLANNED_COLUMNS, _SHOWN_TARGET = 40, 10.0
_COMMAND = "import sys\nfrom taciturn.app.cli.main import app\napp(sys.argv[1:], standalone_mode=False)\n"


def planning_rows(repeats: int = 3) -> list[Row]:
    """Processor time of ``taciturn plan`` for 40 columns over that of ``taciturn show``."""
    names = [f"c{j}" for j in range(_PLANNED_COLUMNS)]
    bounds = '[target]\nname = "y"\nlower = -1\nupper = 1\n' + "".join(
        f'[columns.{name}]\ntype = "number"\nlower = -1\nupper = 1\n' for name in names
    )
    values = np.random.default_rng(0).uniform(-1.0, 1.0, (500, _PLANNED_COLUMNS + 1))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "bounds.toml").write_text(bounds, encoding="utf-8")
        np.savetxt(place / "t.csv", values, fmt="%.4f", delimiter=",", header=",".join((*names, "y")), comments="")
        stated = ("--bounds", str(place / "bounds.toml"))
        run_python(_COMMAND, "fit", str(place / "t.csv"), *stated, "--output", str(place / "model"))
        show = ("show", str(place / "model"))
        plan = ("plan", *stated, "--n", "50000", "--nonzero", "all", "--output", str(place / "plan"))
        usages = [(run_python(_COMMAND, *plan), run_python(_COMMAND, *show)) for _ in range(repeats + 1)][1:]
    return [
        {
            "case": f"taciturn plan, {_PLANNED_COLUMNS} columns and four budgets, against taciturn show",
            "ratio": min(planned.cpu for planned, _ in usages) / min(shown.cpu for _, shown in usages),
            "target": _SHOWN_TARGET,
            "what": "processor time of the command / of taciturn show",
        }
    ]
