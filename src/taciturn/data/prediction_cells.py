r"""Public cells in which a record falls by its target and by what a public model predicts for it.

A score releases the number of records in each cell once, and every measure of the model is made of these numbers. Cells
are fixed before the data are read, by the number of records and the noise; the cell of a record is a function of that
record alone. Bins of predicted probabilities are bins of log-odds, so that a margin is compared with public numbers and
no exponential is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from taciturn.core.arrays import BoolArray, FloatArray, IntArray, NumberArray
from taciturn.core.lattice import ONE
from taciturn.core.validation import check_integer
from taciturn.data.target import numeric_target

__all__ = ["N_DECILES", "ClassCells", "ErrorCells", "MarginCells", "PredictionCells", "margin_edges"]

N_DECILES = 10
"""Predicted probabilities are told apart by tenths at least."""

# The outer tenths have twice as many bins as the others, since rare outcomes are there.
_OUTER = 2
_MOST_LEAST = 0.01
_WIDTH = 2 * ONE
# The smallest bin of absolute errors reaches to this power of one half of the width, times one for four bins more.
_COARSEST, _BINS_A_HALF, _FINEST = 4, 4, 16


class PredictionCells(Protocol):
    """A public partition of targets and predictions."""

    @property
    def n_cells(self) -> int:
        """The number of cells."""

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, -1 for a null record, from one row of a model's outputs each and the target."""

    def coarser(self) -> tuple[Self, IntArray]:
        """The partition with neighbouring bins merged in pairs, and for each of its own cells the merged one."""


def margin_edges(n_bins: int, most_odds: int) -> tuple[float, ...]:
    """Log-odds between which predicted probabilities share a bin.

    Every tenth has ``n_bins`` equal bins, an even number. The first and the last tenth have twice as many, equal on the
    logarithmic scale, down to a probability of 1 / most_odds, and one more for all that is beyond.
    """
    check_integer(2, n_bins=n_bins)
    least = min(1.0 / most_odds, _MOST_LEAST)
    outer = np.geomspace(least, 1.0 / N_DECILES, _OUTER * n_bins + 1)
    inner = np.linspace(1.0 / N_DECILES, 0.5, (N_DECILES // 2 - 1) * n_bins + 1)[1:-1]
    lower = np.concatenate((outer, inner))
    below = np.log(lower) - np.log1p(-lower)
    return tuple(np.concatenate((below, [0.0], -below[::-1])).tolist())


@dataclass(frozen=True, slots=True)
class MarginCells:
    """Two classes: the bin of the predicted log-odds of the second class, and the class.

    Parameters
    ----------
    edges : tuple of float
        See :func:`margin_edges`. A bin contains its upper edge.
    """

    edges: tuple[float, ...]

    @property
    def n_bins(self) -> int:
        """Bins of the prediction."""
        return len(self.edges) + 1

    @property
    def n_cells(self) -> int:
        """The number of cells: the bins of the first class, then those of the second."""
        return 2 * self.n_bins

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from its log-odds."""
        codes = np.asarray(target, dtype=np.int64)
        # A prediction that is not a number is as wrong as can be.
        margins = np.where(np.isnan(outputs[:, 0]), np.where(codes == 1, -math.inf, math.inf), outputs[:, 0])
        bins = np.searchsorted(np.asarray(self.edges), margins, side="left")
        return np.where(codes < 0, -1, codes * self.n_bins + bins)

    def coarser(self) -> tuple[MarginCells, IntArray]:
        """Bins merged in pairs, but for the two at the ends; no tenth is cut."""
        coarse = MarginCells(self.edges[::2])
        bins = (np.arange(self.n_bins) + 1) // 2
        return coarse, np.concatenate((bins, coarse.n_bins + bins))


@dataclass(frozen=True, slots=True)
class ClassCells:
    """More than two classes: the class, whether it is the predicted one, and the bin of its predicted log-odds.

    Parameters
    ----------
    edges : tuple of float
        See :func:`margin_edges`.
    n_classes : int
        The number of classes.
    """

    edges: tuple[float, ...]
    n_classes: int

    @property
    def n_bins(self) -> int:
        """Bins of the prediction."""
        return len(self.edges) + 1

    @property
    def n_cells(self) -> int:
        """The number of cells: for each class the bins of right predictions, then those of wrong ones."""
        return 2 * self.n_classes * self.n_bins

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from one margin per class."""
        codes = np.asarray(target, dtype=np.int64)
        rows = np.arange(codes.size)
        own = outputs[rows, np.maximum(codes, 0)]
        others = np.full(codes.size, -math.inf)
        for code in range(self.n_classes):
            # One by one and in this order: sums of exponentials by vector units depend on the place of a record.
            among = np.logaddexp(others, outputs[:, code] - own)
            others = np.where(codes == code, others, among)
        # Infinite margins have no difference.
        lost = np.isnan(outputs).any(axis=1) | np.isnan(others)
        bins = np.searchsorted(np.asarray(self.edges), np.where(lost, -math.inf, -others), side="left")
        wrong = lost | (outputs.argmax(axis=1) != codes)
        return np.where(codes < 0, -1, (2 * codes + wrong) * self.n_bins + bins)

    def coarser(self) -> tuple[ClassCells, IntArray]:
        """Bins merged in pairs, but for the two at the ends."""
        coarse = ClassCells(self.edges[::2], self.n_classes)
        bins = (np.arange(self.n_bins) + 1) // 2
        return coarse, (np.arange(2 * self.n_classes)[:, None] * coarse.n_bins + bins).ravel()


@dataclass(frozen=True, slots=True)
class ErrorCells:
    """Numbers: the bin of the target, and that of the absolute error.

    Targets and predictions are clipped to ``y_bounds`` and put on the lattice, of ``2 * ONE`` steps. Cells that no
    record can fall in, since the error would lead beyond the bounds, do not exist.

    Parameters
    ----------
    y_bounds : tuple of float
        Public range of the target.
    targets : tuple of int
        Edges of the bins of targets, from ``-ONE`` to ``ONE``. A bin contains its lower edge; the last, both.
    errors : tuple of int
        Edges of the bins of absolute errors, from 0 to ``2 * ONE``. A bin contains its upper edge; the first, both.
    """

    y_bounds: tuple[float, float]
    targets: tuple[int, ...]
    errors: tuple[int, ...]

    @classmethod
    def of_bins(cls, y_bounds: tuple[float, float], n_targets: int, n_errors: int) -> ErrorCells:
        """Equal bins of targets, and bins of errors in geometric progression; even numbers of both."""
        halves = min(_COARSEST + n_errors / _BINS_A_HALF, _FINEST)
        steps = np.geomspace(_WIDTH * 2.0**-halves, _WIDTH, n_errors)
        targets = [round(-ONE + _WIDTH * k / n_targets) for k in range(n_targets + 1)]
        errors = np.unique(np.concatenate(([0], np.rint(steps).astype(np.int64)))).tolist()
        # Small steps coincide on the lattice; pairs need an even number.
        return cls(y_bounds, tuple(targets), tuple(errors if len(errors) % 2 else errors[:1] + errors[2:]))

    @property
    def possible(self) -> BoolArray:
        """For every bin of targets and of errors, whether a record can be in both."""
        farthest = [max(upper + ONE, ONE - lower) for lower, upper in pairwise(self.targets)]
        return np.asarray(self.errors[:-1])[None, :] < np.array(farthest)[:, None]

    @property
    def n_cells(self) -> int:
        """The number of cells: the possible bins of errors for each bin of targets."""
        return int(self.possible.sum())

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from the predicted number."""
        predicted = numeric_target(outputs[:, 0], self.y_bounds)
        # A prediction that is not a number is as wrong as can be.
        wrong = np.where(np.isnan(predicted), ONE + np.abs(target), np.abs(target - predicted))
        rows = np.searchsorted(np.asarray(self.targets[1:-1]), target, side="right")
        columns = np.searchsorted(np.asarray(self.errors[1:-1]), wrong, side="left")
        places = np.where(self.possible, np.cumsum(self.possible).reshape(self.possible.shape) - 1, -1)
        cells: IntArray = places[rows, columns]
        return cells

    def coarser(self) -> tuple[ErrorCells, IntArray]:
        """Both kinds of bins merged in pairs."""
        coarse = ErrorCells(self.y_bounds, self.targets[::2], self.errors[::2])
        places = np.cumsum(coarse.possible).reshape(coarse.possible.shape) - 1
        rows, columns = np.nonzero(self.possible)
        return coarse, places[rows // 2, columns // 2]
