"""Sums over records of which scores are made, exact and with noise.

The source of a score has one feature, the mapped prediction of each record, beside the mapped target: class codes, or
numbers on the lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, NumberArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.planning.score import ScorePlan
from taciturn.sources import Block, Source

__all__ = ["ErrorSum", "OutcomeCounts", "release_sums", "total_error"]

# Sums of this many terms fit 64-bit integers. Beyond the largest sum further terms make no difference.
_BLOCK, _LARGEST_SUM = 1 << 28, 1 << 62
# An error sum is passed on as its upper and its lower bits, so that the sum over partitions cannot overflow.
_LOW_BITS = 31


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Task: the numbers of right and of wrong predictions in each class, times ``unit``.

    Rows of a person are equal parts of one record.
    """

    n_classes: int
    unit: int = 1
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """One row per class: right, wrong."""
        codes = np.asarray(block.target, dtype=np.int64)
        right = np.asarray(block.target == _predictions(block), dtype=bool)
        if block.persons is not None:
            cells = np.where(codes >= 0, 2 * codes + ~right, -1)
            return block.persons.cell_shares(cells, 2 * self.n_classes, self.unit).reshape(self.n_classes, 2)
        counts = [np.bincount(codes[(codes >= 0) & side], minlength=self.n_classes) for side in (right, ~right)]
        return self.unit * np.column_stack(counts).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ErrorSum:
    """Task: the sum of powers of distances between target and prediction; see :func:`total_error`.

    Parameters
    ----------
    term_bound : int
        The integer to which the largest possible term is scaled.
    """

    power: int
    term_bound: int
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """The upper and the lower bits of the sum."""
        distances = np.abs(block.target - _predictions(block))
        # A prediction that is not a number is as wrong as can be.
        terms = np.where(np.isnan(distances), 2.0 * ONE, distances) ** self.power
        largest = (2 * ONE) ** self.power
        if self.term_bound != largest:
            terms = np.rint(terms * (self.term_bound / largest))
        integers = block.by_record(terms.astype(np.int64))
        parts = np.add.reduceat(integers, np.arange(0, integers.size, _BLOCK))
        total = sum(parts.tolist())
        return np.array([total >> _LOW_BITS, total & ((1 << _LOW_BITS) - 1)], dtype=np.int64)


def total_error(source: Source, power: int, term_bound: int) -> IntArray:
    """The :class:`ErrorSum` of all records, as one number."""
    high, low = source.total(ErrorSum(power, term_bound)).tolist()
    return np.array([min((high << _LOW_BITS) + low, _LARGEST_SUM)])


def release_sums(plan: ScorePlan, sums: IntArray, stream: Stream) -> FloatArray:
    """Release sums of integers between 0 and ``plan.term_bound``, in units of that bound."""
    noisy: IntArray = sums if plan.mechanism is None else plan.mechanism.release(sums, stream.spawn("score"))
    released: FloatArray = noisy / plan.term_bound
    return released


def _predictions(block: Block) -> NumberArray:
    features: Any = block.values(None)
    predictions: NumberArray = features[:, 0]
    return predictions
