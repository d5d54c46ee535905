"""Steps of iterative methods beside named baselines."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from taciturn import FrankWolfeClassifier, FrankWolfeRegressor, ScreenedClassifier, ScreenedRegressor
from taciturn.accounting import Budget, calibrate
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, NumberArray
from taciturn.data.design import Design
from taciturn.datasets import make_power_law_sparse, make_screening_linear, make_screening_logistic
from taciturn.events import ExponentialEvent
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.methods.frank_wolfe import run
from taciturn.methods.frank_wolfe.plan import number_of_steps
from taciturn.methods.frank_wolfe.run import FrankWolfeProblem, choose_path, open_path
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier
from taciturn.methods.options import RuleOfScreening
from taciturn_research.benchmarks.measuring import Row

# ---------------------------------------------------------------------
# Private Frank-Wolfe, per step, against plain vectorised numpy and scipy.
#
# The baseline makes a step as one would write it: one product with X, one with its transpose, Laplace noise for every
# coordinate, the largest of them. Ours is timed over 1,000 steps after set-up, which is reported apart. Both sides have
# one thread, and what counts is processor time: on a busy machine clocks tell more about the others. Sparse data has
# power-law columns, tf-idf-like values and rows of unit length, as text collections come; targets are those of a sparse
# planted model over frequent words.
#
# Rows of zeros and ones, or of counts, with columns as popular as one over their rank are harder: entries are large, a
# few columns have an entry in almost every row, and the steps towards these change almost every score. Where noise is
# small against what one such step changes, as it is for few steps, the least that a step can cost is one walk through
# all entries; the baseline walks through them twice.


N_STEPS, BASELINE_STEPS, RADIUS, DELTA = 1000, 30, 10.0, 1e-6
LOSSES = {"squared": SquaredLoss(), "huber": HuberLoss(1.0), "logistic": LogisticLoss()}

RCV1 = ("RCV1-like 20242 x 47236", 20_242, 47_236, 75)
NEWS20 = ("news20-like 19996 x 1355191", 19_996, 1_355_191, 455)
POPULAR = "one step in eight moves the margins of most rows, which alone takes two thirds of the time"
LARGEST_EPSILON = 30.0
# So much of its noise makes runs that are all but not private.
NEARLY_NOTHING = 1e-3


class Case(NamedTuple):
    """Epsilon (None for next to no noise), loss, target of the ratio; steps, and why the target is missed if it is."""

    epsilon: float | None
    loss: str
    target: float
    n_steps: int = N_STEPS
    why: str | None = None


class Data(NamedTuple):
    """X with entries in [-1, 1], and the noiseless predictor of a planted model, of unit variance."""

    X: Any
    signal: np.ndarray


def text_like(n_rows: int, n_columns: int, row_entries: int, seed: int = 0) -> Data:
    """Rows of unit length; column k of rank r has a frequency proportional to 1 / (r + 30)."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / (np.arange(n_columns) + 30.0))
    words = np.searchsorted(popularity / popularity[-1], rng.random((n_rows, int(1.35 * row_entries))))
    keys = np.unique(np.arange(n_rows)[:, None] * n_columns + words)
    keys = keys[rng.random(keys.size) < n_rows * row_entries / keys.size]
    rows, words = keys // n_columns, keys % n_columns
    frequency = np.bincount(words, minlength=n_columns)
    values = (1.0 + np.log(rng.geometric(0.6, size=keys.size))) * np.log(n_rows / frequency[words])
    length = np.sqrt(np.bincount(rows, weights=values**2, minlength=n_rows))
    values /= np.maximum(length[rows], 1e-9)
    names = rng.permutation(n_columns)
    X = sp.csr_array((values, (rows, names[words])), shape=(n_rows, n_columns))
    model = np.zeros(n_columns)
    model[rng.choice(names[:2000], 100, replace=False)] = rng.standard_normal(100)
    signal = X @ model
    return Data(X, signal / signal.std())


def zipf_like(n_rows: int, n_columns: int, row_draws: int, most: int, seed: int = 0) -> Data:
    """Columns with a popularity of one over their rank, entries that are counts over ``most``; 1 for zeros and ones."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / (np.arange(n_columns) + 1.0))
    words = np.searchsorted(popularity / popularity[-1], rng.random((n_rows, row_draws)))
    keys = np.unique(np.arange(n_rows)[:, None] * n_columns + words)
    rows, words = keys // n_columns, keys % n_columns
    names = rng.permutation(n_columns)
    values = np.minimum(rng.geometric(0.5, keys.size), most) / most
    X = sp.csr_array((values, (rows, names[words])), shape=(n_rows, n_columns))
    model = np.zeros(n_columns)
    model[rng.choice(names[:2000], 100, replace=False)] = rng.standard_normal(100)
    signal = X @ model
    return Data(X, signal / signal.std())


def dense_like(n_rows: int, n_columns: int, seed: int = 0) -> Data:
    """Uniform entries, ten of the columns matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_columns))
    signal = X[:, :10] @ rng.standard_normal(10)
    return Data(X, signal / signal.std())


def targets_of(data: Data, loss: str, seed: int = 1) -> NumberArray:
    """Lattice targets for a regression, labels for the logistic loss."""
    noisy = data.signal + 0.5 * np.random.default_rng(seed).standard_normal(data.signal.size)
    if loss == "logistic":
        return (noisy > 0.0).astype(np.int64)
    return np.rint(np.clip(0.4 * noisy, -1.0, 1.0) * ONE)


def noise_of(epsilon: float | None, loss: str, n_rows: int, n_steps: int) -> float:
    """The noise scale of a run within the budget, or of one that is all but not private."""
    budget = Budget(LARGEST_EPSILON if epsilon is None else epsilon, DELTA)
    per_sensitivity = calibrate(budget, lambda scale: ExponentialEvent(2.0 / scale) * n_steps)
    per_sensitivity *= 1.0 if epsilon is not None else NEARLY_NOTHING
    problem = FrankWolfeProblem(LOSSES[loss], RADIUS, n_steps, 0.0, n_rows)
    return per_sensitivity * problem.sensitivity("zero-out").value


def baseline_step(X: Any, y: NumberArray, loss: str, noise: float) -> float:
    """Median seconds of a step in numpy and scipy."""
    rng = np.random.default_rng(2)
    weights = np.zeros(X.shape[1])
    seconds = []
    for t in range(BASELINE_STEPS):
        start = time.process_time()
        margins = X @ weights
        residuals = 1.0 / (1.0 + np.exp(-margins)) - y if loss == "logistic" else margins - y
        gradient = X.T @ residuals
        j = int(np.argmax(np.abs(gradient) + rng.laplace(scale=noise, size=gradient.size)))
        share = 2.0 / (t + 2.0)
        weights *= 1.0 - share
        weights[j] -= share * RADIUS * np.sign(gradient[j])
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def ours_step(X: Any, y: NumberArray, problem: FrankWolfeProblem, repeats: int) -> tuple[float, float]:
    """Median seconds of a step over a whole run, and of its set-up."""
    per_step, setups = [], []
    for repeat in range(repeats + 1):
        start = time.process_time()
        path = open_path(X, y, problem)
        ready = time.process_time()
        path.run(Stream.of())
        if repeat:
            per_step.append((time.process_time() - ready) / problem.n_steps)
            setups.append(ready - start)
    return statistics.median(per_step), statistics.median(setups)


def _measured(name: str, data: Data, cases: tuple[Case, ...], repeats: int) -> list[Row]:
    lattice = Design(data.X, 1.0).lattice
    n_rows, n_columns = data.X.shape
    table: list[Row] = []
    for case in cases:
        loss = case.loss
        noise_scale = noise_of(case.epsilon, loss, n_rows, case.n_steps)
        problem = FrankWolfeProblem(LOSSES[loss], RADIUS, case.n_steps, noise_scale, n_rows)
        y = targets_of(data, loss)
        ours, setup = ours_step(lattice, y, problem, repeats)
        baseline = baseline_step(data.X, y if loss == "logistic" else y / ONE, loss, problem.noise_scale)
        path = choose_path(problem, n_columns, sparse=sp.issparse(data.X))
        noise = "next to no noise" if case.epsilon is None else f"eps={case.epsilon:g}"
        steps = "" if case.n_steps == N_STEPS else f", {case.n_steps} steps"
        row: Row = {
            "case": f"Frank-Wolfe, {name}, {noise}{steps}, {loss} ({path})",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "target": case.target,
            "setup": setup,
        }
        table.append(row if case.why is None else row | {"why": case.why})
    return table


def automatic_steps() -> int:
    """What ``n_steps="auto"`` is for the sparse sets at epsilon 1."""
    return number_of_steps("auto", Budget(1.0, DELTA), RCV1[1], 2 * RCV1[2], RADIUS)


def frank_wolfe_rows(repeats: int = 3) -> list[Row]:
    """One row a case; ``ratio`` is the baseline's time per step over ours, ``setup`` our seconds before the first."""
    sparse_cases = (
        Case(1.0, "squared", 60.0),
        Case(1.0, "logistic", 40.0),
        Case(LARGEST_EPSILON, "squared", 20.0),
        Case(LARGEST_EPSILON, "logistic", 12.0),
    )
    limit = (Case(None, "squared", 8.0), Case(None, "logistic", 2.0))
    both = (Case(1.0, "squared", 150.0), Case(1.0, "logistic", 150.0))
    few = automatic_steps()
    popular = (
        Case(1.0, "squared", 60.0),
        Case(1.0, "logistic", 40.0, why=POPULAR),
        # No worse than before scores could be left behind.
        Case(1.0, "squared", 10.0, few),
        Case(1.0, "logistic", 2.0, few),
    )
    suites: tuple[tuple[str, Callable[[], Data], tuple[Case, ...]], ...] = (
        (RCV1[0], lambda: text_like(*RCV1[1:]), sparse_cases + limit),
        (NEWS20[0], lambda: text_like(*NEWS20[1:]), both),
        ("Zipf 20242 x 47236, zeros and ones", lambda: zipf_like(*RCV1[1:], 1), popular),
        ("Zipf 20242 x 47236, counts", lambda: zipf_like(*RCV1[1:], 4), popular),
        (
            "dense 3000 x 600",
            lambda: dense_like(3000, 600),
            (Case(1.0, "squared", 20.0), Case(1.0, "logistic", 2.0)),
        ),
    )
    table: list[Row] = []
    with threadpool_limits(1):
        for name, make, cases in suites:
            table += _measured(name, make(), cases, repeats)
        for name, make in (("Zipf, counts", lambda: zipf_like(*RCV1[1:], 4)), (RCV1[0], lambda: text_like(*RCV1[1:]))):
            table += _whole_fits(name, make(), repeats)
    return table


def _whole_fits(name: str, data: Data, repeats: int) -> list[Row]:
    """Fits at automatic settings, set-up and clips included, by the fast path and with all vertices weighed."""
    found: list[Row] = []
    models = (
        ("squared", FrankWolfeRegressor(y_bounds=(-1.0, 1.0), random_state=0), ONE),
        ("logistic", FrankWolfeClassifier(classes=(0, 1), random_state=0), 1),
    )
    for loss, model, unit in models:
        model.set_params(x_bound=float(abs(data.X).max()))
        y = targets_of(data, loss) / unit
        fast = _processor_seconds(partial(model.fit, data.X, y), repeats)
        with patch.object(run, "_fits", lambda *facts: False):
            plain = _processor_seconds(partial(model.fit, data.X, y), repeats)
        case = f"{type(model).__name__}, {name}, automatic settings, whole fits against weighing all vertices"
        found.append({"case": case, "ratio": plain / fast, "target": 1.0})
    return found


def _processor_seconds(call: Callable[[], object], repeats: int) -> float:
    """The least processor time of some calls, after one that compiles."""
    call()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


# ---------------------------------------------------------------------
# A step of private hard thresholding on sparse data against the product it cannot do without.


TARGET = 2.0
"""Margins, derivatives, exact sums, noise and thresholding may cost as much again as ``X.T @ r``."""

FEW, MANY = 5, 45


def hard_threshold_rows(repeats: int = 7) -> list[dict[str, object]]:
    """One row; ``ratio`` is the time of a step, from fits of different length, over that of the product."""
    X, y, _ = make_power_law_sparse(random_state=0)
    return [_row(X, y, repeats)]


def _row(X: sp.csr_array, y: np.ndarray, repeats: int) -> dict[str, object]:
    residuals = np.random.default_rng(0).uniform(-1.0, 1.0, len(y))
    times: dict[str, list[float]] = {"few": [], "many": [], "product": []}
    for _ in range(repeats + 1):
        times["few"].append(_seconds(lambda: _fit(X, y, FEW)))
        times["many"].append(_seconds(lambda: _fit(X, y, MANY)))
        times["product"].append(_seconds(lambda: [X.T @ residuals for _ in range(MANY - FEW)]))
    # The smallest of each: a difference of medians would carry the noise of whatever else the machine does.
    few, many, product = (min(times[part]) for part in ("few", "many", "product"))
    ours, baseline = (many - few) / (MANY - FEW), product / (MANY - FEW)
    case = f"HardThresholdClassifier, a step on {X.shape[0]:,} x {X.shape[1]:,} sparse, against X.T @ r"
    ratio, setup = ours / baseline, few - FEW * ours
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ratio, "target": TARGET, "setup": setup}


def _fit(X: sp.csr_array, y: np.ndarray, n_steps: int) -> HardThresholdClassifier:
    return HardThresholdClassifier(x_bound=1.0, classes=(0, 1), row_bound=1.0, n_steps=n_steps, random_state=0).fit(
        X, y
    )


def _seconds(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - start


# ---------------------------------------------------------------------
# Frank-Wolfe with columns dropped for good, against the same run with all of them.
#
# The safe rule drops columns that are proved to be zero in the solution; ``permanent=True`` those that were screened
# privately. For the squared loss steps run on the Gram matrix and cost next to nothing, so that there is little to
# save.


REPEATS = 3
NEVER = 1_000_000


def seconds(model: Any, X: Any, y: np.ndarray) -> float:
    """The shortest of a few fits."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        model.fit(X, y)
        times.append(perf_counter() - start)
    return min(times)


def screening_rows() -> Iterator[dict[str, Any]]:
    """Fits without dropping over fits with it."""
    safe: dict[str, Any] = {"epsilon": float("inf"), "x_bound": 1.0, "rule": "adp", "permanent": True}
    safe["fit_intercept"] = False
    dense, labels, _ = make_screening_logistic(random_state=0)
    sparse, codes, _ = make_power_law_sparse(20_000, 50_000, 75, random_state=0)
    table, target, _ = make_screening_linear(random_state=0)
    squared: dict[str, Any] = {
        "loss": "squared",
        "y_bounds": (-6.0, 6.0),
        "radius": 5.0,
        "n_steps": 5000,
        "screen_at": 100,
    }
    by_sparse: dict[str, Any] = {"radius": 3.0, "n_steps": 1000, "screen_at": 20}
    by_dense: dict[str, Any] = {"radius": 2.0, "n_steps": 5000, "screen_at": 100}
    cases = (
        ("logistic, 3000 x 600", ScreenedClassifier(**safe, **by_dense), dense, labels, 2.0),
        ("logistic, sparse 20000 x 50000", ScreenedClassifier(**safe, **by_sparse), sparse, codes, 2.0),
        ("squared, 3000 x 600", ScreenedRegressor(**safe, **squared), table, target, 0.3),
        (
            "squared, sparse 20000 x 50000",
            ScreenedRegressor(loss="squared", y_bounds=(-1.0, 1.0), **safe, **by_sparse),
            sparse,
            2.0 * codes - 1.0,
            0.3,
        ),
    )
    for name, model, X, y, least in cases:
        ratio = seconds(clone(model).set_params(screen_at=NEVER), X, y) / seconds(model, X, y)
        yield {"case": f"safe rule: {name}", "ratio": ratio, "target": least}
    rules: tuple[tuple[RuleOfScreening, int, float], ...] = (("adp", 20, 2.0), ("select", 2, 1.1))
    for rule, every, least in rules:
        model = ScreenedClassifier(x_bound=1.0, n_steps=1000, rule=rule, screen_at=every, radius=5.0, random_state=0)
        ratio = seconds(model, dense, labels) / seconds(clone(model).set_params(permanent=True), dense, labels)
        case = f"permanent=True: {rule}, logistic, 3000 x 600, {1000 // every} screenings"
        yield {"case": case, "ratio": ratio, "target": least}
