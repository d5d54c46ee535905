"""Sums of clipped gradients over dense rows, as a fit asks for them, against the same sums in plain numpy."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.engines import Block
from taciturn.losses import LogisticLoss
from taciturn.methods.clipped_records import Clipping
from taciturn_research.benchmarks.bench_default import table
from taciturn_research.benchmarks.measuring import Row, medians_in_turn

__all__ = ["rows"]

N_ROWS = 200_000
CASES = ((100, 2.9), (10, 1.4))
"""Columns, and how many times faster than numpy a prototype was."""
WEIGHT_BOUND = ONE
BLOCK_ENTRIES = 1 << 18


def rows(repeats: int = 7) -> list[Row]:
    """One row a number of columns; ``ratio`` is numpy's processor time over ours, both in one thread."""
    with threadpool_limits(1):
        return [_row(n_columns, target, repeats) for n_columns, target in CASES]


def _row(n_columns: int, target: float, repeats: int) -> Row:
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
