"""Measures of regressors from the numbers of records by target and error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.data.prediction_cells import ErrorCells
from taciturn.fitting.score_ratios import Measure, Ratio, cell_variances, mean_ratio

__all__ = ["measure_errors"]


@dataclass(frozen=True, slots=True, eq=False)
class _CellNumbers:
    """For each cell, in widths of the bounds: the target from the middle, its square, the error and its square."""

    target: FloatArray
    square: FloatArray
    error: FloatArray
    error_square: FloatArray

    @classmethod
    def of_cells(cls, cells: ErrorCells) -> _CellNumbers:
        rows, columns = np.nonzero(cells.possible)
        width = 2.0 * ONE
        targets, low, high = (
            np.asarray(cells.targets) / width,
            np.asarray(cells.errors[:-1]) / width,
            np.asarray(cells.errors[1:]) / width,
        )
        middles = (targets[:-1] + targets[1:]) / 2.0
        squares = (low * low + low * high + high * high) / 3.0
        return cls(middles[rows], middles[rows] ** 2, ((low + high) / 2.0)[columns], squares[columns])


def measure_errors(cells: ErrorCells, counts: FloatArray, deviation: float) -> tuple[Measure, ...]:
    """R2, mean absolute and mean squared error, from counts with noise of a standard deviation."""
    fine = _CellNumbers.of_cells(cells)
    merged, groups = cells.coarser()
    coarse = _CellNumbers.of_cells(merged)
    variances = cell_variances(counts, deviation)
    low, high = cells.y_bounds
    width = high - low
    total = float(counts.sum())
    squares = fine.square + (fine.square - coarse.square[groups]) / 3.0
    spread, distance = 0.25, 0.5
    if total > 0.0:
        mean = min(max(float(counts @ fine.target) / total, -0.5), 0.5)
        spread = min(max(float(counts @ squares) / total - mean * mean, 0.0), 0.25)
        around = _distances(cells, mean)
        around += (around - _distances(merged, mean)[groups]) / 3.0
        distance = min(max(float(counts @ around) / total, 0.0), 0.5)
    left = _unexplained(counts, fine, coarse, groups, deviation).measured("", variances, 0.0, math.inf, 1.0)
    absolute = mean_ratio(counts, fine.error, coarse.error[groups]).measured("", variances, 0.0, 1.0, distance)
    squared = mean_ratio(counts, fine.error_square, coarse.error_square[groups]).measured(
        "", variances, 0.0, 1.0, spread
    )
    return (
        Measure("R2", 1.0 - left.value, 1.0 - left.upper, 1.0 - left.lower, 0.0, left.is_open),
        _scaled(absolute, "mean absolute error", width),
        _scaled(squared, "mean squared error", width * width),
    )


def _distances(cells: ErrorCells, mean: float) -> FloatArray:
    """For each cell the mean distance of its targets from a number, if they are spread evenly over their bin."""
    targets = np.asarray(cells.targets) / (2.0 * ONE)
    low, high = targets[:-1] - mean, targets[1:] - mean
    distances = (high * np.abs(high) - low * np.abs(low)) / (2.0 * (high - low))
    return distances[np.nonzero(cells.possible)[0]]


def _scaled(found: Measure, name: str, unit: float) -> Measure:
    ends = found.lower * unit, found.upper * unit
    return Measure(name, found.value * unit, *ends, found.baseline * unit, found.is_open)


def _unexplained(
    counts: FloatArray, fine: _CellNumbers, coarse: _CellNumbers, groups: IntArray, deviation: float
) -> Ratio:
    """The sum of squared errors over that of squared distances from the mean, both times the number of records."""
    corrections = (fine.error_square - coarse.error_square[groups]) / 3.0, (fine.square - coarse.square[groups]) / 3.0
    errors, squares, target = fine.error_square + corrections[0], fine.square + corrections[1], fine.target
    total, error, square, first = (
        float(counts.sum()), float(counts @ errors), float(counts @ squares), float(counts @ target),
    )  # fmt: skip
    # Products of two noisy sums are too large by what their noise has in common.
    noise = deviation**2
    top = total * error - noise * float(errors.sum())
    bottom = total * square - first * first - noise * float(np.sum(squares - target * target))
    shift = total * float(counts @ corrections[0]), total * float(counts @ corrections[1])
    correction = shift[0] - shift[1] * top / bottom if bottom > 0.0 else 0.0
    return Ratio(top, bottom, error + total * errors, square + total * squares - 2.0 * first * target, correction)
