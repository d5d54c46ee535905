"""Sums over records that a fit asks its source for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taciturn.core.validation import ONE, BoolArray, FloatArray, IndexArray, IntArray
from taciturn.data.design import map_entries
from taciturn.data.sensitivity import gram_room
from taciturn.engines.interface import Block, Source, Task
from taciturn.kernels.gradients import exponential_numpy, softmax_numpy
from taciturn.losses import Loss
from taciturn.methods.clipped_records import ClippedRecords, Clipping, excess_integers, row_norms
from taciturn.privacy.mechanisms import cumulative_counts

# ---- Sums over records as tasks: what a fit asks of a source.
# A median by the exponential mechanism needs no more than how many values are at most each point of a public grid,
# which is a sum over records too.

# Thresholds of one round of the search for the largest row norm.
_SEARCH_POINTS = 255
_LARGEST_MARGIN = 2.0**100


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Several sums in one pass over the records, one after the other in one vector."""

    tasks: tuple[Task, ...]

    @property
    def columns(self) -> IndexArray | None:
        """The features that any of them reads."""
        columns = [task.columns for task in self.tasks]
        named = [each for each in columns if each is not None]
        return None if len(named) < len(columns) else np.unique(np.concatenate(named))

    def __call__(self, block: Block) -> IntArray:
        """The sums over the records of a block."""
        return np.concatenate([task(block).ravel() for task in self.tasks])


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """A sum over clipped records.

    What a person with many rows adds is the mean of what its rows add, cut towards zero: all entries become smaller, so
    that it keeps every bound that its rows keep.
    """

    clipping: Clipping

    @property
    def columns(self) -> IndexArray | None:
        """The features that are read."""
        return self.clipping.columns

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        few, persons = block.by_size()
        total = self.of_records(few)
        for person in persons:
            total = total + cut_mean(self.of_rows(person), person.n_rows)
        return total

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block that has no person with many rows."""
        raise NotImplementedError

    def of_rows(self, block: Block) -> IntArray:
        """The sum over the rows of one person, each of them as if it were a record."""
        return self.of_records(block)


def cut_mean(sums: IntArray, n_rows: int) -> IntArray:
    """Integer sums over so many rows, divided by their number and cut towards zero."""
    means: IntArray = np.sign(sums) * (np.abs(sums) // n_rows)
    return means


@dataclass(frozen=True, slots=True, eq=False)
class GradientSum(ClippedSum):
    """The sum of clipped gradients at some coefficients, one row per output, the intercept last."""

    coefficients: FloatArray

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).sums(self.coefficients)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRowSum(ClippedSum):
    """The sum of clipped rows times a weight, rounded down row by row."""

    weight: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).row_sums(self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class GramMatrix(ClippedSum):
    """The Gram matrix of clipped rows, in units where the squared norm of a row is at most ``row_squared``.

    At ``coefficients`` of two classes it is their information matrix, in units of the largest curvature of a label.
    """

    row_squared: int
    coefficients: FloatArray | None = None

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        return self.clipping.records(block).gram_matrix(self.row_squared, self.coefficients)

    def of_rows(self, block: Block) -> IntArray:
        """The sum over the rows of one person, shorter by what cutting a mean may add."""
        room = gram_room(self.clipping.width)
        if self.row_squared < 2 * room:
            return np.zeros((self.clipping.width, self.clipping.width), dtype=np.int64)
        return self.clipping.records(block).gram_matrix(self.row_squared - room, self.coefficients)


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureSum(ClippedSum):
    """The sum of squared margins of a unit direction, each in [0, 1] before it is put on the lattice."""

    direction: FloatArray
    term_bound: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        terms = self.clipping.records(block).curvature_terms(self.direction)
        integers = np.clip(np.rint(terms * self.term_bound), 0, self.term_bound).astype(np.int64)
        return np.array([block.by_record(integers).sum()], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CorrelationSum(ClippedSum):
    """The sum of clipped gradients at margins that are the same for every record, in one pass over the features."""

    margins: FloatArray

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros((self.clipping.n_outputs, self.clipping.width), dtype=np.int64)
        for records in self.clipping.passes(block):
            total += records.sums_of_constants(self.margins)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class EntryCorrelationSum(ClippedSum):
    """The sum of entries, clipped to a share of their bound, times clipped derivatives at constant margins.

    One row per feature. Rows are not clipped to a norm: of ``clipping`` the loss and the bounds on derivatives count.
    """

    margins: FloatArray
    entry: float

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        design = block.design(self.clipping.columns, self.clipping.layout)
        # Without columns rows are never clipped, and weights are the derivatives themselves.
        bare = design.columns(np.zeros(0, dtype=np.intp))
        norms = np.zeros(block.n_rows)
        by_row = block.row_counts, block.weight, block.offset
        records = ClippedRecords(self.clipping, bare, self.clipping.target(block), norms, *by_row)
        weights = records.weights_of_constants(self.margins)
        total = np.zeros((design.n_features, self.margins.size), dtype=np.int64)
        for rows, part in design.clipped(self.entry).blocks():
            total += part.rmatvec(weights[rows], self.clipping.weight_bound, block.n_persons)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ExcessLossSums(ClippedSum):
    """Per model the sum of differences from the losses of a reference, each clipped to ``clip`` and times ``unit``."""

    models: tuple[FloatArray, ...]
    reference: FloatArray
    clip: float
    unit: float

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        records = self.clipping.records(block)
        if block.persons is None:
            return records.excess_loss_sums(self.models, self.reference, self.clip, self.unit)
        base = records.losses(self.reference)
        terms = (excess_integers(records.losses(model), base, self.clip, self.unit) for model in self.models)
        return np.array([block.by_record(each).sum() for each in terms], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualMagnitudes(ClippedSum):
    """The absolute derivative of a record's loss at some coefficients: the residual, where the loss is squared."""

    coefficients: FloatArray

    def values(self, block: Block) -> FloatArray:
        """The magnitudes of a block."""
        records = self.clipping.records(block)
        present = self.clipping.loss.present(block.target)
        return _left_in(np.abs(records.residuals(self.coefficients)[1]), present, block)


@dataclass(frozen=True, slots=True, eq=False)
class MarginMagnitudes(ClippedSum):
    """The absolute margin of a record at some coefficients, less that of the constant."""

    coefficients: FloatArray

    def values(self, block: Block) -> FloatArray:
        """The magnitudes of a block."""
        records = self.clipping.records(block)
        present = self.clipping.loss.present(block.target)
        return _left_in(np.abs(records.residuals(self.coefficients)[0]), present, block)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualMoments(ClippedSum):
    r"""What slope and constant of a regression need, one vector of norm at most ``unit`` per record.

    With the margin u in units of ``reach`` and the residual r in units of ``clip``, both clipped to [-1, 1], the vector
    is :math:`(u r, r, u^2, u) / 2`.
    """

    coefficients: FloatArray
    reach: float
    clip: float
    unit: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        margins, residuals = self.clipping.records(block).residuals(self.coefficients)
        u = np.clip(margins / self.reach, -1.0, 1.0)
        r = np.clip(residuals / self.clip, -1.0, 1.0)
        terms = block.weighed(np.column_stack((u * r, r, u * u, u))) * (0.5 * self.unit)
        sums: IntArray = block.by_record(np.trunc(terms).astype(np.int64)).sum(axis=0)
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class CurvedMoments(ClippedSum):
    r"""What slope and constant need under a log link, one vector of norm at most ``unit`` per record.

    With the margin u in units of ``reach``, the derivative r in units of ``clip``, both clipped to [-1, 1], and the
    information k in units of ``most``, clipped to [0, 1], the vector is :math:`(u r, r, k u^2, k u, k) / \sqrt 5`.
    """

    coefficients: FloatArray
    reach: float
    clip: float
    most: float
    unit: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        records = self.clipping.records(block)
        margins, residuals = records.residuals(self.coefficients)
        u = np.clip(margins / self.reach, -1.0, 1.0)
        r = np.clip(residuals / self.clip, -1.0, 1.0)
        k = np.clip(records.information(self.coefficients) / self.most, 0.0, 1.0)
        scale = math.sqrt(0.2) * (1.0 - 2.0**-40) * self.unit
        terms = block.weighed(np.column_stack((u * r, r, k * u * u, k * u, k))) * scale
        sums: IntArray = block.by_record(np.trunc(terms).astype(np.int64)).sum(axis=0)
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class SlopeMoments(ClippedSum):
    r"""Derivatives of the log-loss of several classes by the logarithm of a slope of all margins, times ``unit``.

    With probabilities p of margins z and a bound b the vector of a record is :math:`((p - e_y) \cdot z,
    \mathrm{Var}_p(z)) / b`, clipped to [-1, 1] and divided by the root of two, so that its norm is at most ``unit``.
    """

    coefficients: FloatArray
    bound: float
    unit: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        margins, codes = self.clipping.records(block).margins_and_codes(self.coefficients)
        # Squares of margins stay finite.
        margins = np.clip(margins, -_LARGEST_MARGIN, _LARGEST_MARGIN)
        places, probabilities = np.maximum(codes, 0), softmax_numpy(margins)
        mean, second = np.zeros(codes.size), np.zeros(codes.size)
        # In the order of the classes: a sum along rows may add up in another order in another block.
        for p, z in zip(probabilities.T, margins.T, strict=True):
            mean += p * z
        for p, z in zip(probabilities.T, margins.T, strict=True):
            second += p * np.square(z - mean)
        first = mean - margins[np.arange(codes.size), places]
        of_classes = self.clipping.loss.class_weights(margins.shape[1])[places] * (codes >= 0)
        terms = np.column_stack((np.clip(first / self.bound, -1.0, 1.0), np.clip(second / self.bound, 0.0, 1.0)))
        terms = block.weighed(terms) * of_classes[:, None] * (self.unit * math.sqrt(0.5) * (1.0 - 2.0**-40))
        sums: IntArray = block.by_record(np.trunc(terms).astype(np.int64)).sum(axis=0)
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class ResidualSum(ClippedSum):
    """The sum of derivatives of the loss, each clipped to a size of one, times ``unit``; one output."""

    coefficients: FloatArray
    unit: int

    def of_records(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        _, residuals = self.clipping.records(block).residuals(self.coefficients)
        terms = np.trunc(block.weighed(np.clip(residuals, -1.0, 1.0)) * self.unit).astype(np.int64)
        return np.array([block.by_record(terms).sum()], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class MarginCounts(ClippedSum):
    """Numbers of records of either label by their margins, in ``n_bins`` equal bins of [-reach, reach], times ``unit``.

    Margins beyond belong to the outer bins. Rows of a person are equal parts of one record.
    """

    coefficients: FloatArray
    reach: float
    n_bins: int
    unit: int

    def of_records(self, block: Block) -> IntArray:
        """One row per label."""
        margins, _ = self.clipping.records(block).residuals(self.coefficients)
        places = np.floor((margins / self.reach + 1.0) * (0.5 * self.n_bins))
        bins = np.clip(places, 0, self.n_bins - 1).astype(np.int64)
        if block.persons is not None or block.weight is not None:
            cells = np.where(np.isin(block.target, (0, 1)), block.target * self.n_bins + bins, -1)
            return block.cell_shares(cells, 2 * self.n_bins, self.unit).reshape(2, self.n_bins)
        return self.unit * np.array(
            [np.bincount(bins[block.target == label], minlength=self.n_bins) for label in (0, 1)], dtype=np.int64
        )


def _no_columns() -> IndexArray:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class TargetSum:
    """The sum of a numeric target, or of one-hot labels over some class codes, in lattice units."""

    codes: tuple[int, ...] | None = None
    columns: IndexArray = field(default_factory=_no_columns)

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        targets = [block.target] if self.codes is None else [np.where(block.target == c, ONE, 0) for c in self.codes]
        terms = (np.trunc(block.weighed(each)).astype(np.int64) for each in targets)
        return np.array([block.by_record(each).sum() for each in terms], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class WeightSum:
    """The sum of the weights of records, or of weights times exposures over their bound, in lattice units.

    Null records, by the loss, have none.
    """

    loss: Loss
    exposures: bool = False
    columns: IndexArray = field(default_factory=_no_columns)

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        shares = np.ones(block.n_rows)
        if self.exposures and block.offset is not None:
            shares = exponential_numpy(block.offset)
        terms = block.weighed(shares * self.loss.present(block.target)) * float(ONE)
        return np.array([block.by_record(np.trunc(terms).astype(np.int64)).sum()], dtype=np.int64)


def _left_in(values: FloatArray, rows: BoolArray, block: Block) -> FloatArray:
    """Values of some rows of a block; where rows belong to persons, of all, with NaN for the others."""
    return values[rows] if block.persons is None else np.where(rows, values, np.nan)


class RowStatistic(Protocol):
    """One number per row that is not null; of rows of persons all are listed, NaN for one without a number."""

    @property
    def columns(self) -> IndexArray | None:
        """The features that it depends on."""

    def values(self, block: Block) -> FloatArray:
        """The numbers of the records of a block."""


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeCounts:
    """How many values of a statistic are at most each point of a public grid, and last how many there are.

    Values of a person count for no more than ``PERSON_WEIGHT`` together, and for equal parts of it.
    """

    statistic: RowStatistic
    grid: tuple[float, ...]

    @property
    def columns(self) -> IndexArray | None:
        """The features that are read."""
        return self.statistic.columns

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        values = self.statistic.values(block)
        if block.persons is None:
            return cumulative_counts(values, self.grid)

        def count(rows: slice | BoolArray, weights: IntArray | None) -> IntArray:
            known = ~np.isnan(values[rows])
            return cumulative_counts(values[rows][known], self.grid, None if weights is None else weights[known])

        return block.persons.weighed(count)


@dataclass(frozen=True, slots=True, eq=False)
class RowNumbers:
    """For each row how many its person has."""

    columns: IndexArray = field(default_factory=_no_columns)

    def values(self, block: Block) -> FloatArray:
        """The numbers of a block."""
        return np.ones(block.n_rows) if block.row_counts is None else block.row_counts.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class TargetMagnitudes:
    """The absolute value of the target less a released mean, in units of ``unit``; both are in lattice units."""

    mean: int = 0
    unit: int = ONE
    columns: IndexArray = field(default_factory=_no_columns)

    def values(self, block: Block) -> FloatArray:
        """The magnitudes of a block."""
        return np.abs((block.target - self.mean).astype(np.float64)) / self.unit


@dataclass(frozen=True, slots=True, eq=False)
class RowNorms:
    """L2 norms of the rows less a public centre, in scaled units; the loss decides which records are null.

    Rows of zeros are left out unless they are asked for: they say nothing about where others should be clipped.
    """

    loss: Loss
    columns: IndexArray | None
    centre: FloatArray | None = None
    layout: str | None = "csr"
    one_pass: bool = False
    zeros: bool = False

    def values(self, block: Block) -> FloatArray:
        """The norms of a block."""
        present = self.loss.present(block.target)
        if not self.zeros:
            present &= row_norms(block, self.columns, None, self.layout, one_pass=self.one_pass) > 0.0
        squares = row_norms(block, self.columns, self.centre, self.layout, one_pass=self.one_pass)
        return _left_in(np.sqrt(squares) / ONE, present, block)


@dataclass(frozen=True, slots=True, eq=False)
class KeptShares:
    """``sum_j |x_ij| min(|x_ij|, entry) / |x_i|**2``: what a row keeps of its squared norm when entries are clipped.

    Zero rows keep everything. Sums are exact, so that a row's share does not depend on the rows around it.
    """

    loss: Loss
    entry: float
    columns: IndexArray | None = None

    def values(self, block: Block) -> FloatArray:
        """The shares of a block, by blocks of rows."""
        norms = row_norms(block, self.columns, None, "csr", one_pass=True)
        shares, cap = np.ones(block.n_rows), math.floor(self.entry * ONE)
        for rows, part in block.design(self.columns, "csr").blocks():
            kept = np.empty(part.shape[0])
            for few, entries in part.pieces():
                products = map_entries(lambda entry: np.abs(entry) * np.minimum(np.abs(entry), cap), entries)
                kept[few] = np.asarray(products.sum(axis=1)).ravel()
            np.divide(kept, norms[rows], out=shares[rows], where=norms[rows] > 0.0)
        return _left_in(shares, self.loss.present(block.target), block)


def largest_row_norm(source: Source, norms: RowNorms) -> float:
    """The largest row norm, exactly, 0 without records: for fits without privacy.

    The search is a bisection over squared norms, integers in lattice units, by counts of the rows beyond them.
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
