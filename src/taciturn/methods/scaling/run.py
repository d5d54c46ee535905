"""Bounds of columns from private quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import BoolArray, FloatArray, IntArray
from taciturn.engines.interface import Block, Source
from taciturn.methods.scaling.plan import BoundsPlan
from taciturn.privacy.mechanisms import PrivateQuantile, cumulative_counts

# Half the width of a column whose bounds coincide, relative to their value.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Task: how many values of each column and of its mirror image are at most each point of its grid; no NaN is."""

    grids: tuple[tuple[float, ...], ...]
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """The counts of all columns in a row: see :meth:`split`."""
        X = block.values(None)

        def count(rows: slice | BoolArray, weights: IntArray | None) -> IntArray:
            part, counts = X[rows], []
            for j, grid in enumerate(self.grids):
                if weights is None:
                    # Grids are symmetric. Both counts follow from one sorted column, at whose end NaN is.
                    values, points = np.sort(part[:, j]), np.asarray(grid)
                    there = int(np.searchsorted(values, np.nan))
                    counts += [_append(np.searchsorted(values, points, side="right"), there)]
                    counts += [_append(there - np.searchsorted(values, -points, side="left"), there)]
                    continue
                known = ~np.isnan(part[:, j])
                own = weights[known]
                counts += [cumulative_counts(values, grid, own) for values in (part[known, j], -part[known, j])]
            return np.concatenate(counts)

        return count(slice(None), None) if block.persons is None else block.persons.weighed(count)

    def split(self, total: IntArray) -> list[tuple[IntArray, IntArray]]:
        """For each column the counts of its values and those of its mirror image."""
        sizes = [len(grid) + 1 for grid in self.grids for _ in range(2)]
        parts = np.split(total, np.cumsum(sizes)[:-1])
        return list(zip(parts[::2], parts[1::2], strict=True))


def _append(counts: IntArray, total: int) -> IntArray:
    return np.append(counts, total).astype(np.int64, copy=False)


def release_bounds(plan: BoundsPlan, source: Source, stream: Stream) -> tuple[FloatArray, FloatArray]:
    """Release a lower and an upper bound of every column, the lower ones below the upper ones."""
    task = ColumnCounts(tuple(quantile.grid for quantile in plan.quantiles))
    counts = task.split(source.total(task))
    bounds = np.empty((2, len(plan.quantiles)))
    for j, (quantile, (values, mirrored)) in enumerate(zip(plan.quantiles, counts, strict=True)):
        # The grid is symmetric: a lower bound, rounded down, is an upper bound of the mirror image, rounded up.
        # A difference, since minus zero would be another zero.
        lower = 0.0 - _release_upper(plan, quantile, mirrored, stream.spawn("lower bound"))
        upper = _release_upper(plan, quantile, values, stream.spawn("upper bound"))
        least_positive = quantile.grid[len(quantile.grid) // 2 + 1]
        bounds[:, j] = _apart(lower, upper, least_positive)
    return bounds[0], bounds[1]


def _release_upper(plan: BoundsPlan, quantile: PrivateQuantile, counts: IntArray, stream: Stream) -> float:
    if plan.schedule.private:
        return quantile.release_counts(counts, stream)
    return quantile.grid[int(np.argmax(quantile.count_scores(counts)))]


def _apart(lower: float, upper: float, smallest: float) -> tuple[float, float]:
    """Order the bounds; widen them where they coincide, since nearly all values may be at that point."""
    if lower == upper:
        half = max(smallest, _LEAST_SHARE * abs(lower))
        return lower - half, upper + half
    return min(lower, upper), max(lower, upper)
