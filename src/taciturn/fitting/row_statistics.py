"""Statistics of single records whose counts a fit asks for, and their medians.

A median by the exponential mechanism needs no more than how many values are at most each point of a public grid, which
is a sum over records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.fitting.clipped_records import squared_row_norms
from taciturn.losses import Loss
from taciturn.mechanisms import PrivateQuantile
from taciturn.mechanisms.quantile import cumulative_counts
from taciturn.sources import Block, Source

__all__ = [
    "CumulativeCounts",
    "KeptShares",
    "LabelSum",
    "RowNorms",
    "RowStatistic",
    "TargetMagnitudes",
    "TargetSum",
    "kept_shares",
    "largest_row_norm",
    "private_median",
    "row_norms",
]

# Thresholds of one round of the search for the largest row norm.
_SEARCH_POINTS = 255


def _no_columns() -> IndexArray:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class TargetSum:
    """The sum of a numeric target, in lattice units."""

    columns: IndexArray = field(default_factory=_no_columns)

    def __call__(self, block: Block) -> IntArray:
        """One number."""
        return np.array([block.target.astype(np.int64).sum()], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LabelSum:
    """The sum of one-hot labels over some class codes, in lattice units."""

    codes: tuple[int, ...]
    columns: IndexArray = field(default_factory=_no_columns)

    def __call__(self, block: Block) -> IntArray:
        """One number per code."""
        return ONE * np.array([np.count_nonzero(block.target == code) for code in self.codes], dtype=np.int64)


class RowStatistic(Protocol):
    """One number per record that is not null."""

    @property
    def columns(self) -> IndexArray | None:
        """The features that it depends on."""

    def values(self, block: Block) -> FloatArray:
        """The numbers of the records of a block."""


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeCounts:
    """How many values of a statistic are at most each point of a public grid, and last how many there are."""

    statistic: RowStatistic
    grid: tuple[float, ...]

    @property
    def columns(self) -> IndexArray | None:
        """The features that are read."""
        return self.statistic.columns

    def __call__(self, block: Block) -> IntArray:
        """The counts of a block."""
        return cumulative_counts(self.statistic.values(block), self.grid)


@dataclass(frozen=True, slots=True, eq=False)
class TargetMagnitudes:
    """The absolute value of the target less a public mean, in mapped units; ``mean`` is in lattice units."""

    mean: int = 0
    columns: IndexArray = field(default_factory=_no_columns)

    def values(self, block: Block) -> FloatArray:
        """The magnitudes of a block."""
        return np.abs((block.target - self.mean).astype(np.float64)) / ONE


@dataclass(frozen=True, slots=True, eq=False)
class RowNorms:
    """L2 norms of the rows, in units of scaled features.

    Parameters
    ----------
    loss : Loss
        Decides which records are null.
    columns : ndarray of int or None
        The features that count.
    centre : ndarray or None
        Public integers that are taken from every row first.
    layout : str or None
        As in :meth:`~taciturn.sources.Block.design`.
    one_pass : bool
        Whether the lattice is built for this sum alone, a few rows at a time.
    """

    loss: Loss
    columns: IndexArray | None
    centre: FloatArray | None = None
    layout: str | None = "csr"
    one_pass: bool = False

    def values(self, block: Block) -> FloatArray:
        """The norms of a block."""
        squares = row_norms(block, self.columns, self.centre, self.layout, one_pass=self.one_pass)
        norms: FloatArray = np.sqrt(squares[self.loss.present(block.target)]) / ONE
        return norms


@dataclass(frozen=True, slots=True, eq=False)
class KeptShares:
    """``sum_j |x_ij| min(|x_ij|, entry) / |x_i|**2``: what a row keeps of its squared norm when entries are clipped.

    Zero rows keep everything. Sums are exact, so that a row's share does not depend on the rows around it.
    """

    loss: Loss
    entry: float
    columns: IndexArray | None = None

    def values(self, block: Block) -> FloatArray:
        """The shares of a block."""
        norms = row_norms(block, self.columns, None, "csr", one_pass=True)
        shares = kept_shares(block.design(self.columns, "csr"), norms, self.entry)
        return shares[self.loss.present(block.target)]


def kept_shares(design: Design, norms: FloatArray, entry: float) -> FloatArray:
    """The shares of :class:`KeptShares`, by blocks of rows, from squared row norms."""
    kept, cap = np.ones(design.shape[0]), math.floor(entry * ONE)
    for rows, block in design.blocks():
        lattice = block.lattice
        if design.is_sparse:
            products = lattice.copy()
            sizes = np.abs(lattice.data)
            products.data = sizes * np.minimum(sizes, cap)
        else:
            sizes = np.abs(lattice)
            products = sizes * np.minimum(sizes, cap)
        np.divide(np.asarray(products.sum(axis=1)).ravel(), norms[rows], out=kept[rows], where=norms[rows] > 0.0)
    return kept


def row_norms(
    block: Block, columns: IndexArray | None, centre: FloatArray | None, layout: str | None, *, one_pass: bool = False
) -> FloatArray:
    """Squared L2 norms of the rows less a centre, in lattice units, which the block remembers."""
    design = block.design(columns, layout)

    def compute() -> FloatArray:
        if not one_pass:
            return squared_row_norms(design, centre)
        norms = np.empty(block.n_rows)
        for rows, part in design.blocks():
            norms[rows] = squared_row_norms(part, centre)
        return norms

    return block.recall("row norms", None if centre is None else centre.tobytes(), compute)


def private_median(
    source: Source, statistic: RowStatistic, grid: FloatArray, relation: str, selection_range: float, stream: Stream
) -> float:
    """A point of the grid near the median of a statistic, by the exponential mechanism.

    Parameters
    ----------
    source : Source
        Counts the records.
    statistic : RowStatistic
        What is counted.
    grid : ndarray
        Public points in increasing order.
    relation : str
        The neighbouring relation.
    selection_range : float
        The range of the selection: what it costs.
    stream : Stream
        Its noise.
    """
    mechanism = PrivateQuantile(tuple(grid), 0.5, relation, selection_range)
    return mechanism.release_counts(source.total(CumulativeCounts(statistic, mechanism.grid)), stream)


def largest_row_norm(source: Source, norms: RowNorms) -> float:
    """The largest row norm, exactly; 0 without any record. For fits without privacy.

    Squared norms are integers in lattice units. The search counts how many rows are beyond some of them, and goes on
    between the largest that some row passes and the smallest that none does.
    """
    n_columns = source.n_features if norms.columns is None else norms.columns.size
    # Entries less a centre are at most two.
    below, above = -1, 4 * ONE * ONE * n_columns
    while above - below > 1:
        squares = np.rint(np.linspace(below + 1, above, min(_SEARCH_POINTS, above - below))).astype(np.int64)
        counts = source.total(CumulativeCounts(norms, tuple((np.sqrt(squares) / ONE).tolist())))
        place = int(np.searchsorted(counts[:-1], counts[-1]))
        above = int(squares[place])
        below = int(squares[place - 1]) if place else below
    return math.sqrt(above) / ONE
