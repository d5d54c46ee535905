"""Bounds of columns from private quantiles."""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.mechanisms import PrivateQuantile
from taciturn.planning.quantiles import BoundsPlan

__all__ = ["release_bounds"]

# Half the width of a column whose bounds coincide, relative to their value.
_LEAST_SHARE = 0.01


def release_bounds(plan: BoundsPlan, X: FloatArray, stream: Stream) -> tuple[FloatArray, FloatArray]:
    """Release a lower and an upper bound of every column, the lower ones below the upper ones."""
    bounds = np.empty((2, len(plan.quantiles)))
    for j, quantile in enumerate(plan.quantiles):
        values = X[:, j]
        # The grid is symmetric: a lower bound, rounded down, is an upper bound of the mirror image, rounded up.
        # A difference, since minus zero would be another zero.
        lower = 0.0 - _upper(plan, quantile, -values, stream.spawn("lower bound"))
        upper = _upper(plan, quantile, values, stream.spawn("upper bound"))
        bounds[:, j] = _apart(lower, upper, _smallest(quantile.grid))
    return bounds[0], bounds[1]


def _upper(plan: BoundsPlan, quantile: PrivateQuantile, values: FloatArray, stream: Stream) -> float:
    if plan.private:
        return quantile.release(values, stream)
    return quantile.grid[int(np.argmax(quantile.scores(values)))]


def _smallest(grid: tuple[float, ...]) -> float:
    """The least positive point of a grid."""
    return grid[len(grid) // 2 + 1]


def _apart(lower: float, upper: float, smallest: float) -> tuple[float, float]:
    """Order the bounds; widen them where they coincide, since nearly all values may be at that point."""
    if lower == upper:
        half = max(smallest, _LEAST_SHARE * abs(lower))
        return lower - half, upper + half
    return min(lower, upper), max(lower, upper)
