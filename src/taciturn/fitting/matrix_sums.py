"""Matrices of a Newton step as tasks: sums over records of outer products, each of bounded norm."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.fitting.sums import ClippedSum
from taciturn.sources import Block

__all__ = ["InformationMatrix", "ScoreMatrix"]


@dataclass(frozen=True, slots=True, eq=False)
class InformationMatrix(ClippedSum):
    """The Hessian of the loss at some coefficients, over its smoothness.

    Each record adds the outer product of a vector of squared norm at most ``row_squared``, which stands for that of a
    clipped row.
    """

    coefficients: FloatArray
    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).information_matrix(self.coefficients, self.row_squared)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix(ClippedSum):
    """The sum of outer products of jointly clipped gradients at some coefficients: the middle of a sandwich.

    ``row_squared`` stands for the squared ``product_bound``.
    """

    coefficients: FloatArray
    product_bound: float
    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        records = self.clipping.records(block)
        return records.score_matrix(self.coefficients, self.product_bound, self.row_squared, block.persons)
