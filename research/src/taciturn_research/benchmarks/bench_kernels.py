"""Kernels beside named baselines: random numbers, top-k selection, exact sums, gradients, Gram matrices."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from threadpoolctl import threadpool_limits

from taciturn import SparseClassifier
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.sensitivity import Sensitivity
from taciturn.datasets import make_power_law_sparse
from taciturn.engines import Block
from taciturn.losses import LogisticLoss
from taciturn.mechanisms import CanonicalLipschitz
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.releases import Releases
from taciturn.methods.sparse import run as sparse_run
from taciturn.privacy.mechanisms import rounded_normals
from taciturn_research.benchmarks.bench_fits import table
from taciturn_research.benchmarks.measuring import Row, medians_in_turn

# ---------------------------------------------------------------------
# Cost of secure noise relative to numpy's generator: time of ours over time of numpy's.
#
# Both sides run in one process and in turn, so that a busy machine slows both; the ratio of the medians is what is
# reported, never a time by itself.


Draw = Callable[[], object]


RANDOMNESS_TARGET = 1.5
"""Secure noise may cost this many times numpy's, and no more."""


def _medians(ours: Draw, baseline: Draw, repeats: int) -> tuple[float, float]:
    """Median seconds of each, measured in turn after one run that compiles and allocates."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats + 1):
        for draw, times in zip((ours, baseline), seconds, strict=True):
            start = time.perf_counter()
            draw()
            if repeat:
                times.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def randomness_rows(repeats: int = 5) -> list[dict[str, object]]:
    """One row a case: ``case``, ``ours`` and ``baseline`` in seconds, ``ratio`` and its ``target``."""
    stream = Stream.of()
    numpy_generator = np.random.Generator(np.random.PCG64())
    many, fewer = 10_000_000, 1_000_000
    cases: list[tuple[str, Draw, Draw]] = [
        ("Gumbel, 1e7 values", lambda: stream.gumbels(many), lambda: numpy_generator.gumbel(size=many)),
        ("Laplace, 1e7 values", lambda: stream.laplaces(many), lambda: numpy_generator.laplace(size=many)),
        (
            "rounded normal, 1e6 values, k=20",
            lambda: rounded_normals(stream, fewer, 20),
            lambda: numpy_generator.standard_normal(fewer),
        ),
        (
            "rounded normal, 1e6 values, k=40",
            lambda: rounded_normals(stream, fewer, 40),
            lambda: numpy_generator.standard_normal(fewer),
        ),
    ]
    table: list[dict[str, object]] = []
    for case, draw_ours, draw_baseline in cases:
        ours, baseline = _medians(draw_ours, draw_baseline, repeats)
        ratio = ours / baseline
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": ratio, "target": RANDOMNESS_TARGET})
    return table


# ---------------------------------------------------------------------
# The merged sampler of the canonical Lipschitz mechanism against the class-by-class kernel.
#
# Both sides make whole releases, ranking included, of the same scores.


TOP_K_CASES = ((100_000, 50, 30.0), (1_000_000, 100, 100.0))
"""Candidates, how many are selected, and how many times faster the merged sampler has to be."""


def _median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def top_k_rows(repeats: int = 3) -> list[dict[str, object]]:
    """One row a case; ``ratio`` is plain time over merged time, so larger is better."""
    stream = Stream.of()
    table: list[dict[str, object]] = []
    for d, k, target in TOP_K_CASES:
        # Sums over 10,000 records of which the first k columns carry a signal.
        scores = np.abs(np.random.default_rng(0).standard_normal(d)) * 100.0
        scores[:k] += 1000.0
        mechanism = CanonicalLipschitz(Sensitivity(1.0, "linf", "zero-out"), k, 1.0)
        for release in (mechanism.release, mechanism.release_plainly):
            release(scores[:1000], stream)
        ours = _median_seconds(partial(mechanism.release, scores, stream), 5 * repeats)
        baseline = _median_seconds(partial(mechanism.release_plainly, scores, stream), repeats)
        case = f"canonical Lipschitz top {k} of {d:.0e}, merged against O(dk)"
        table.append({"case": case, "ours": ours, "baseline": baseline, "ratio": baseline / ours, "target": target})
    return table


# ---------------------------------------------------------------------
# Exact integer sums against the floating-point products they replace: ``X.T @ r``, dense and sparse.


SUMS_TARGET = 1.1
"""Exactness may not cost more than rounding does, but for the noise of a measurement."""


def design_rows(repeats: int = 9) -> list[dict[str, object]]:
    """One row a layout; ``ratio`` is exact time over floating-point time."""
    rng = np.random.default_rng(0)
    dense = rng.uniform(-1.0, 1.0, (20_000, 1000))
    sparse, _, _ = make_power_law_sparse(100_000, 50_000, 50, random_state=0)
    return [
        _sum_row("dense 20000 x 1000", dense, repeats),
        _sum_row("CSR 100000 x 50000, 5e6 entries", sparse, repeats),
    ]


def _sum_row(name: str, X: Any, repeats: int) -> dict[str, object]:
    design, bound = Design(X, 1.0), 1 << 16
    integers = np.random.default_rng(1).integers(-bound, bound, X.shape[0]).astype(float)
    plain = integers / bound
    times: dict[str, list[float]] = {"ours": [], "baseline": []}
    for repeat in range(repeats + 1):
        for side, run in (("ours", lambda: design.rmatvec(integers, bound)), ("baseline", lambda: X.T @ plain)):
            start = time.perf_counter()
            run()
            if repeat:
                times[side].append(time.perf_counter() - start)
    ours, baseline = (statistics.median(times[side]) for side in ("ours", "baseline"))
    case = f"exact X.T @ r, {name}, against plain doubles"
    return {"case": case, "ours": ours, "baseline": baseline, "ratio": ours / baseline, "target": SUMS_TARGET}


# ---------------------------------------------------------------------
# Sums of clipped gradients over dense rows, as a fit asks for them, against the same sums in plain numpy.


N_ROWS = 200_000
GRADIENT_CASES = ((100, 2.9), (10, 1.4))
"""Columns, and how many times faster than numpy a prototype was."""
WEIGHT_BOUND = ONE
BLOCK_ENTRIES = 1 << 18


def gradients_rows(repeats: int = 7) -> list[Row]:
    """One row a number of columns; ``ratio`` is numpy's processor time over ours, both in one thread."""
    with threadpool_limits(1):
        return [_gradient_row(n_columns, target, repeats) for n_columns, target in GRADIENT_CASES]


def _gradient_row(n_columns: int, target: float, repeats: int) -> Row:
    X, y = table(N_ROWS, n_columns)
    row_squared = (n_columns // 2 + 1) * ONE * ONE
    clipping = Clipping(None, n_columns, LogisticLoss(), 1, row_squared, 0, WEIGHT_BOUND, 1.0)
    records = clipping.records(Block(Design(X, 1.0), y))
    weights = np.random.default_rng(1).uniform(-0.2, 0.2, (1, n_columns))
    lattice = np.rint(X * ONE)
    norms = np.sqrt(np.square(lattice).sum(axis=1))
    row_bounds = np.floor(WEIGHT_BOUND * np.minimum(np.sqrt(row_squared) / norms, 1.0))
    numpy_sums = _NumpySums(lattice, row_bounds, y, weights[0])
    ours, theirs = records.sums(weights)[0], numpy_sums()
    if np.abs(ours - theirs).max() > 1e-6 * np.abs(theirs).max():
        raise AssertionError("the two sums are not of the same gradients")
    seconds = medians_in_turn({"ours": lambda: records.sums(weights), "numpy": numpy_sums}, repeats)
    return {
        "case": f"a gradient over {N_ROWS:.0e} x {n_columns} dense rows, against numpy",
        "ratio": seconds["numpy"] / seconds["ours"],
        "target": target,
    }


class _NumpySums:
    """Margins, derivatives, integer weights and sums in blocks of rows."""

    def __init__(self, lattice: np.ndarray, row_bounds: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        self.lattice, self.row_bounds, self.y, self.weights = lattice, row_bounds, y, weights / ONE

    def __call__(self) -> np.ndarray:
        step = BLOCK_ENTRIES // self.lattice.shape[1]
        total = np.zeros(self.lattice.shape[1], dtype=np.int64)
        for start in range(0, len(self.y), step):
            part = slice(start, start + step)
            block, bounds = self.lattice[part], self.row_bounds[part]
            margins = bounds / WEIGHT_BOUND * (block @ self.weights)
            terms = np.rint((expit(margins) - self.y[part]) * bounds)
            total += (terms @ block).astype(np.int64)
        return total


# ---------------------------------------------------------------------
# What Gram matrices and their eigenvectors take of a fit to sparse rows.
#
# Nothing else in a fit looks at curvature: no largest eigenvalue of the data is computed, whose cost used to be most of
# such a fit. Wide tables are screened first, so that matrices are those of the columns that are left. A table that is
# narrow enough to be fitted whole has a Gram matrix of all its columns, which is then most of the work.


GRAM_TARGET = 0.15
WHOLE = "no column is screened out: d**2 products a record and d**3 for eigenvectors, against d a record and step"


def one_hot(n_rows: int, n_columns: int, n_codes: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Columns of ``n_codes`` categories each, of which the first are popular; one category in twenty matters."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / np.arange(1.0, n_codes + 1.0))
    codes = np.searchsorted(popularity / popularity[-1], rng.random((n_rows, n_columns)))
    places = codes + n_codes * np.arange(n_columns)
    starts = np.arange(0, places.size + 1, n_columns)
    X = sp.csr_array((np.ones(places.size), places.ravel(), starts), shape=(n_rows, n_columns * n_codes))
    effects = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.05)
    signal = X @ effects + 0.5 * rng.standard_normal(n_rows)
    return X, (signal > np.median(signal)).astype(np.int64)


def gram_rows(repeats: int = 3) -> Iterator[Row]:
    """One row a table; ``ratio`` is the share of the fit's processor time."""
    text, labels, _ = make_power_law_sparse(random_state=0)
    cases = (
        ("RCV1-like 20242 x 47236", text, labels, None),
        ("one-hot 20000 x 47010", *one_hot(20_000, 30, 1567), None),
        ("one-hot 20000 x 600, not screened", *one_hot(20_000, 30, 20), WHOLE),
    )
    with threadpool_limits(1):
        for name, X, y, why in cases:
            yield {
                "case": f"SparseClassifier, {name}: Gram matrices and eigenvectors",
                "ratio": min(share_of_fit(X, y) for _ in range(repeats)),
                "target": GRAM_TARGET,
                "what": "share of the fit's processor time",
                **({"why": why} if why else {}),
            }


def share_of_fit(X: Any, y: np.ndarray) -> float:
    """The share of one fit."""
    spent = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            result = function(*args, **options)
            spent[0] += time.process_time() - start
            return result

        return call

    with ExitStack() as stack:
        for owner, name in ((Releases, "gram_matrix"), (sparse_run, "eigh"), (sparse_run, "_denoised")):
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        start = time.process_time()
        SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
        whole = time.process_time() - start
    return spent[0] / whole
