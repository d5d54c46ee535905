"""The numbers of records in public cells of target and prediction, as a sum over a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.data.prediction_cells import PredictionCells
from taciturn.sources import Block

__all__ = ["CellCounts", "LinearOutputs"]

# Entries of a block of rows that stays in a cache.
_CACHED_ENTRIES = 1 << 17


@dataclass(frozen=True, slots=True)
class LinearOutputs:
    """The outputs of a linear model, each a function of one record to the last bit.

    Products of matrices round by position. Here the features of a record are multiplied and added one after the other.

    Parameters
    ----------
    columns : tuple of int
        Features with a coefficient that is not zero, in increasing order.
    weights : tuple of tuple of float
        Their coefficients: for each feature one per output.
    constants : tuple of float
        The intercepts.
    """

    columns: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]
    constants: tuple[float, ...]

    @classmethod
    def of_model(cls, model: Any) -> LinearOutputs:
        """The outputs of a fitted linear model with ``coef_`` and ``intercept_``."""
        stored = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
        weights = np.atleast_2d(stored).T
        columns = np.flatnonzero(weights.any(axis=1))
        constants = np.broadcast_to(model.intercept_, weights.shape[1])
        chosen = tuple(tuple(row) for row in weights[columns].tolist())
        return cls(tuple(columns.tolist()), chosen, tuple(constants.astype(float).tolist()))

    def __call__(self, features: Any) -> FloatArray:
        """One row of outputs for each row of these columns."""
        weights = np.array(self.weights).reshape(len(self.columns), len(self.constants))
        if sp.issparse(features):
            # Rows are added up entry by entry.
            sums: FloatArray = np.asarray(features.tocsr() @ weights) + np.array(self.constants)
            return sums
        outputs = np.zeros((features.shape[0], len(self.constants)))
        step = max(1, _CACHED_ENTRIES // max(1, len(self.columns)))
        for start in range(0, features.shape[0], step):
            rows, part = features[start : start + step], outputs[start : start + step]
            for column, weight in enumerate(weights):
                part += rows[:, column, None] * weight
        outputs += np.array(self.constants)
        return outputs


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Task: the numbers of records in cells, times ``unit``.

    Rows of a person are equal parts of one record.

    Parameters
    ----------
    cells : PredictionCells
        The public cells.
    unit : int
        The integer that stands for one record.
    model : LinearOutputs or None
        Makes outputs of features; None where the features are the outputs of a model already.
    """

    cells: PredictionCells
    unit: int = 1
    model: LinearOutputs | None = None

    @property
    def columns(self) -> IndexArray | None:
        """The features with a coefficient."""
        return None if self.model is None else np.array(self.model.columns, dtype=np.intp)

    def __call__(self, block: Block) -> IntArray:
        """One number per cell."""
        features: Any = block.values(self.columns)
        # A worker has no guard of its own, and a warning would tell of a record.
        with np.errstate(all="ignore"):
            cells = self.cells.cells(features if self.model is None else self.model(features), block.target)
        if block.persons is not None:
            return block.persons.cell_shares(cells, self.cells.n_cells, self.unit)
        counts = np.bincount(cells[cells >= 0], minlength=self.cells.n_cells)
        return self.unit * counts.astype(np.int64)
