"""Sums over clipped records as tasks: what a fit asks of a source beside counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.data.design import Design
from taciturn.fitting.clipped_records import ClippedRecords
from taciturn.fitting.row_statistics import row_norms
from taciturn.losses import Loss
from taciturn.sources import Block

__all__ = [
    "ClippedRowSum",
    "Clipping",
    "CorrelationSum",
    "CurvatureSum",
    "EntryCorrelationSum",
    "ExcessLossSums",
    "GradientSum",
    "GramMatrix",
    "record_losses",
]

# Squared residuals count up to this many residual clips.
_LARGEST_RESIDUAL = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Clipping:
    """How records are clipped: public and released numbers.

    Parameters
    ----------
    columns : ndarray of int or None
        The features that are read; None for all.
    n_features : int
        How many they are.
    loss : Loss
        The loss of one record.
    n_outputs : int
        Rows of the coefficient matrix.
    row_squared, constant, weight_bound, derivative_bound, centre
        As in :class:`~taciturn.fitting.clipped_records.ClippedRecords`.
    target_mean : int, default=0
        Taken from a numeric target, in lattice units.
    layout : str or None, default="csr"
        As in :meth:`~taciturn.sources.Block.design`.
    """

    columns: IndexArray | None
    n_features: int
    loss: Loss
    n_outputs: int
    row_squared: int
    constant: int
    weight_bound: int
    derivative_bound: float
    centre: FloatArray | None = None
    target_mean: int = 0
    layout: str | None = "csr"

    @property
    def width(self) -> int:
        """Columns of the coefficient matrix."""
        return self.n_features + (self.constant > 0)

    @property
    def norm(self) -> float:
        """The bound on a clipped row, in units of scaled features."""
        return math.sqrt(self.row_squared) / ONE

    def records(self, block: Block) -> ClippedRecords:
        """The records of a block, clipped; the block remembers them."""
        norms = row_norms(block, self.columns, self.centre, self.layout)
        design = block.design(self.columns, self.layout)
        centre = None if self.centre is None else self.centre.tobytes()
        key = (
            self.loss, self.n_outputs, self.row_squared, self.constant, self.weight_bound, self.derivative_bound,
            centre, self.target_mean,
        )  # fmt: skip
        return block.recall("clipped records", key, lambda: self.clip(design, self.target(block), norms))

    def passes(self, block: Block) -> Iterator[ClippedRecords]:
        """The same a few rows at a time, for a sum that is made once: only the row norms are kept."""
        norms = row_norms(block, self.columns, self.centre, self.layout, one_pass=True)
        target = self.target(block)
        for rows, design in block.design(self.columns, self.layout).blocks():
            yield self.clip(design, target[rows], norms[rows])

    def clip(self, design: Design, target: FloatArray | IntArray, norms: FloatArray) -> ClippedRecords:
        """Some records, clipped."""
        return ClippedRecords(
            design, target, self.loss, self.n_outputs, norms, self.row_squared, self.constant, self.weight_bound,
            self.derivative_bound, self.centre,
        )  # fmt: skip

    def target(self, block: Block) -> FloatArray | IntArray:
        """The target less its mean."""
        return block.target - self.target_mean if self.target_mean else block.target


@dataclass(frozen=True, slots=True, eq=False)
class _ClippedSum:
    clipping: Clipping

    @property
    def columns(self) -> IndexArray | None:
        """The features that are read."""
        return self.clipping.columns


@dataclass(frozen=True, slots=True, eq=False)
class GradientSum(_ClippedSum):
    """The sum of clipped gradients at some coefficients, one row per output, the intercept last."""

    coefficients: FloatArray

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).sums(self.coefficients)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRowSum(_ClippedSum):
    """The sum of clipped rows times a weight, rounded down row by row."""

    weight: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).row_sums(self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class GramMatrix(_ClippedSum):
    """The Gram matrix of clipped rows, in units where a row has a norm of at most 2**13."""

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).gram_matrix()


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureSum(_ClippedSum):
    """The sum of squared margins of a unit direction, each in [0, 1] before it is put on the lattice."""

    direction: FloatArray
    term_bound: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        terms = self.clipping.records(block).curvature_terms(self.direction)
        integers = np.clip(np.rint(terms * self.term_bound), 0, self.term_bound).astype(np.int64)
        return np.array([integers.sum()], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CorrelationSum(_ClippedSum):
    """The sum of clipped gradients at margins that are the same for every record, in one pass over the features."""

    margins: FloatArray

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros((self.clipping.n_outputs, self.clipping.width), dtype=np.int64)
        for records in self.clipping.passes(block):
            total += records.sums_at(np.broadcast_to(self.margins, (records.design.shape[0], self.margins.size)))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class EntryCorrelationSum(_ClippedSum):
    """The sum of entries, clipped to a share of their bound, times clipped derivatives at constant margins.

    One row per feature. Rows are not clipped to a norm: of ``clipping`` the loss and the bounds on derivatives count.
    """

    margins: FloatArray
    entry: float

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        design = block.design(self.clipping.columns, self.clipping.layout)
        # Without columns rows are never clipped, and weights are the derivatives themselves.
        bare = design.columns(np.zeros(0, dtype=np.intp))
        records = self.clipping.clip(bare, self.clipping.target(block), np.zeros(block.n_rows))
        weights = records.weights(np.broadcast_to(self.margins, (block.n_rows, self.margins.size)))
        total = np.zeros((design.n_features, self.margins.size), dtype=np.int64)
        for rows, part in design.clipped(self.entry).blocks():
            total += part.rmatvec(weights[rows], self.clipping.weight_bound)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ExcessLossSums(_ClippedSum):
    """Sums over records of clipped differences between the losses of some models and of a reference.

    Parameters
    ----------
    models : tuple of ndarray
        Coefficients of the models.
    reference : ndarray
        Those of the reference.
    clip : float
        Differences are clipped to this.
    unit : float
        What a difference of one becomes.
    """

    models: tuple[FloatArray, ...]
    reference: FloatArray
    clip: float
    unit: float

    def __call__(self, block: Block) -> IntArray:
        """One sum per model."""
        records = self.clipping.records(block)
        base = record_losses(records, self.reference)
        excesses = (record_losses(records, model) - base for model in self.models)
        return np.array(
            [int(np.rint(np.clip(excess, -self.clip, self.clip) * self.unit).sum()) for excess in excesses],
            dtype=np.int64,
        )


def record_losses(records: ClippedRecords, coefficients: FloatArray) -> FloatArray:
    """The loss of each record: half a squared residual in units of the clip, up to a bound, or the log-loss of a class.

    Each number is a function of one record alone, to the last bit.
    """
    if records.loss.labelled:
        return records.losses(coefficients)
    residuals = np.abs(records.residuals(coefficients)) / records.derivative_bound
    return 0.5 * np.square(np.minimum(residuals, _LARGEST_RESIDUAL))
