r"""Sums over records in whitened coordinates: rows u = A z of public A, weighted by what rows alone say.

z is a row with a constant 1 last, where the model has an intercept, and A was made of earlier releases. Coefficients
:math:`\theta` of u are coefficients :math:`\beta = A^\top \theta` of z. Margins are :math:`z^\top \beta`.

Records are weighted and not cut, by numbers that never look at a target: with :math:`\|\psi\|` at most s(u) for every
target and a curvature of trace at most c(u),

.. math:: w = \min(1, B / a, h / q), \qquad a = s(u) \|u\|, \; q = c(u) \|u\|^2 ,

so that :math:`\|w \psi u\| \le B` and the trace of :math:`w \phi'' u u^\top` is at most h. Of a person with several
rows a, q and the terms are means over its rows, and the weight is one for all of them. A weight that looked at targets,
as a clip of a person's sum does, would move what is estimated.

Everything is a function of one record, to the last bit, in any block and place: rows u are integers from exact
products, weights are quotients of these, and vectors are rounded to integers whose norms are checked before they are
added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.core.validation import FRACTION_BITS, ONE, BoolArray, FloatArray, IndexArray, IntArray, NumberArray
from taciturn.data.persons import PersonRows
from taciturn.data.sensitivity import gram_room
from taciturn.engines.interface import Block
from taciturn.kernels.gradients import logistic_numpy, softmax_numpy
from taciturn.losses import LogLinkLoss, Loss
from taciturn.methods.clipped_records import LatticeCoefficients, whole_persons

# Products of A and z are exact doubles.
_EXACT_BITS = 53
# Squared norms of u fit 64 bits.
_SQUARE_BITS = 62
# Entries of the rows that are looked at at once.
_PIECE_ENTRIES = 1 << 17
# Measures of a person's rows are whole numbers of this part of their bound, up to a limit that no row should reach:
# sums of them are exact doubles.
_MEASURE_UNIT, _LARGEST_MEASURE = 2.0**-12, 2.0**40
# Terms of a person's rows are whole numbers of this part of their bound, so that their sums are exact.
_TERM_BITS = 45
# Covers the rounding of products and quotients: bounds on integers hold exactly, which is checked besides.
_ROOM = 1.0 - 2.0**-28
# Vectors of outer products are so much shorter than their bound, in units of which rounding them adds something.
MATRIX_SCALE = 1.0 - 2.0**-7
# Nothing is shorter, in units of u.
_LEAST = 2.0**-200


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows u = A z on a lattice.

    ``columns`` are the features (None for all ``n_features``); z has a constant 1 last if ``intercept``. ``integers``
    are those of A, integer-valued doubles; a unit of them is ``2**-log2_scale``, and products lose ``dropped`` bits.
    """

    columns: IndexArray | None
    n_features: int
    intercept: bool
    integers: FloatArray
    log2_scale: int
    dropped: int

    @classmethod
    def of(cls, matrix: FloatArray, columns: IndexArray | None, *, intercept: bool) -> Coordinates:
        """Those of a square matrix, rounded so that products are exact."""
        width = len(matrix)
        largest = float(np.abs(matrix).sum(axis=1).max())
        log2_scale = _EXACT_BITS - FRACTION_BITS - 1 - math.frexp(largest)[1]
        integers = np.rint(np.ldexp(matrix, log2_scale))
        # Entries of u stay below 2**kept, and their squares add up to less than 2**62.
        kept = (_SQUARE_BITS - math.ceil(math.log2(width))) // 2 - 1
        return cls(columns, width - intercept, intercept, integers, log2_scale, max(_EXACT_BITS - kept, 0))

    @property
    def width(self) -> int:
        """Coefficients of one output."""
        return self.n_features + self.intercept

    @property
    def matrix(self) -> FloatArray:
        """A, as it is after rounding."""
        return np.ldexp(self.integers, -self.log2_scale)

    @property
    def unit(self) -> float:
        """What one unit of u is."""
        return 2.0 ** (self.dropped - self.log2_scale - FRACTION_BITS)

    def rows(self, z: FloatArray) -> FloatArray:
        """The integers of u for rows z in lattice units."""
        found: FloatArray = z @ self.integers.T
        # Exact, and quicker than a change of exponents.
        found *= 2.0**-self.dropped
        return np.rint(found, out=found)


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    """Some rows of a block in whitened coordinates, whole persons where rows belong to some.

    ``weight`` and ``offset`` are those of the block. Rules for weights of records do not look at the former.
    """

    at: Coordinates
    z: FloatArray
    target: NumberArray
    present: BoolArray
    persons: PersonRows | None
    weight: FloatArray | None = None
    offset: FloatArray | None = None

    @cached_property
    def u(self) -> FloatArray:
        """Integers, exact."""
        return self.at.rows(self.z)

    @cached_property
    def lengths(self) -> FloatArray:
        """Norms of u in its own units, 0 for null rows."""
        integers = self.u.astype(np.int64)
        squares: IntArray = np.einsum("ij,ij->i", integers, integers)
        found: FloatArray = np.sqrt(squares.astype(np.float64)) * (self.at.unit * self.present)
        return found

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """One column per output."""
        on_lattice = LatticeCoefficients.of(coefficients, ONE if self.at.intercept else 0, None)
        products = self.z[:, : self.at.n_features] @ on_lattice.integers.T
        return products * on_lattice.unit + on_lattice.constants

    def means(self, measure: FloatArray, bound: float) -> FloatArray:
        """A measure of rows over its bound: for each record its own, for each person the mean over its rows."""
        shares = measure / bound
        if self.persons is None:
            return shares
        whole = np.ceil(np.minimum(shares, _LARGEST_MEASURE) / _MEASURE_UNIT)
        means: FloatArray = self.persons.totals(whole) * _MEASURE_UNIT / self.persons.counts
        return means

    def spread(self, by_record: FloatArray) -> FloatArray:
        """One number per row from one per record, times the weight of the row."""
        rows = by_record if self.persons is None else np.repeat(by_record, self.persons.counts)
        return rows if self.weight is None else rows * self.weight

    @property
    def counts(self) -> FloatArray | float:
        """How many rows the record of each row has."""
        return 1.0 if self.persons is None else self.persons.of_rows.astype(np.float64)

    def totals(self, terms: FloatArray) -> FloatArray:
        """Sums of the terms of each record, which are at most one in norm together; exact for persons."""
        if self.persons is None:
            return terms
        totals: FloatArray = np.ldexp(self.persons.totals(np.rint(np.ldexp(terms, _TERM_BITS))), -_TERM_BITS)
        return totals


# ---- What is fitted: derivatives and curvatures of one record's loss at coefficients beta.


@dataclass(frozen=True, slots=True, eq=False)
class LocalLoss:
    """A loss at the coefficients that margins are taken at, one row per margin."""

    coefficients: FloatArray

    @property
    def n_outputs(self) -> int:
        """Derivatives of one record."""
        return len(self.coefficients)

    @property
    def directions(self) -> list[FloatArray]:
        """What the curvature in the margins is made of: the sum of c t t' over these t, c as :meth:`curvatures` has."""
        return [np.ones(1)]

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """Of the loss in the margins, one column per output."""
        raise NotImplementedError

    def steepness(self, rows: WhitenedRows) -> FloatArray:
        """The largest norm that derivatives can have, over all targets."""
        raise NotImplementedError

    def curvatures(self, rows: WhitenedRows) -> FloatArray:
        """One column per direction."""
        return np.ones((len(rows.z), 1))

    def traces(self, rows: WhitenedRows) -> FloatArray:
        """The largest trace of the curvature, over all targets."""
        return np.ones(len(rows.z))


@dataclass(frozen=True, slots=True, eq=False)
class NumberLoss(LocalLoss):
    """Half the squared residual, with a clipped derivative; ``bends``: Huber's loss, whose curvature ends at the clip.

    The clip is one number for all rows. Errors that are skewed and do not depend on the row then move the constant
    alone.
    """

    clip: float = math.inf
    bends: bool = False

    def residuals(self, rows: WhitenedRows) -> FloatArray:
        """Margin less target."""
        return rows.margins(self.coefficients)[:, 0] - np.asarray(rows.target, dtype=np.float64) / ONE

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """The clipped residual."""
        return np.clip(self.residuals(rows), -self.clip, self.clip)[:, None]

    def steepness(self, rows: WhitenedRows) -> FloatArray:
        """The clip."""
        return np.full(len(rows.z), self.clip)

    def curvatures(self, rows: WhitenedRows) -> FloatArray:
        """One, or none beyond the clip where the loss is linear there."""
        if not self.bends:
            return np.ones((len(rows.z), 1))
        return (np.abs(self.residuals(rows)) <= self.clip).astype(np.float64)[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class MarginLoss(LocalLoss):
    """Half the squared norm of several margins, without a target: how far rows are from a null space."""

    clip: float = math.inf

    def norms(self, rows: WhitenedRows) -> FloatArray:
        """Norms of the margins."""
        total = np.zeros(len(rows.z))
        for column in rows.margins(self.coefficients).T:
            total += np.square(column)
        return np.sqrt(total)

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """The margins, cut to a norm."""
        scales = np.minimum(1.0, self.clip * _ROOM / np.maximum(self.norms(rows), _LEAST))
        return rows.margins(self.coefficients) * scales[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class LabelLoss(LocalLoss):
    r"""Log-loss, times the weight of the record's class.

    Of two classes the second one has a margin. Of K there are K rows of coefficients; derivatives in their margins add
    up to zero, and are taken along the K - 1 orthonormal rows of ``coding``, which do so too. The curvature
    :math:`\mathrm{diag}(\pi) - \pi \pi^\top` is the sum of :math:`\pi_k \pi_l t t^\top` over pairs of classes, t
    being the difference of their unit vectors.
    """

    weights: FloatArray
    coding: FloatArray | None = None

    @property
    def n_outputs(self) -> int:
        """One less than there are classes."""
        return 1 if self.coding is None else len(self.coding)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(j, k) for k in range(self.weights.size) for j in range(k)]

    @property
    def directions(self) -> list[FloatArray]:
        """One per pair of classes."""
        if self.coding is None:
            return [np.ones(1)]
        return [self.coding[:, j] - self.coding[:, k] for j, k in self._pairs]

    def _probabilities(self, rows: WhitenedRows) -> FloatArray:
        margins = rows.margins(self.coefficients)
        if self.coding is not None:
            return softmax_numpy(margins)
        second = logistic_numpy(margins[:, 0])
        return np.column_stack((1.0 - second, second))

    def _of_records(self, rows: WhitenedRows) -> FloatArray:
        """The weights of the records; of null ones, which add nothing, any."""
        return self.weights[np.maximum(np.asarray(rows.target, dtype=np.int64), 0)]

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """Probabilities less labels."""
        codes, probabilities = np.asarray(rows.target, dtype=np.int64), self._probabilities(rows)
        if self.coding is None:
            return np.asarray(((probabilities[:, 1] - (codes == 1)) * self._of_records(rows))[:, None])
        found = np.zeros((codes.size, self.n_outputs))
        # In the order of the classes: a product of matrices may add up in another order in another block.
        for k, column in enumerate(self.coding.T):
            found += (probabilities[:, k] - (codes == k))[:, None] * column
        found *= self._of_records(rows)[:, None]
        return found

    def steepness(self, rows: WhitenedRows) -> FloatArray:
        """Over all labels."""
        probabilities = self._probabilities(rows)
        if self.coding is None:
            of_two: FloatArray = np.maximum(
                self.weights[0] * probabilities[:, 1], self.weights[1] * probabilities[:, 0]
            )
            return of_two
        rest, largest = np.ones(len(probabilities)), np.zeros(len(probabilities))
        for column in probabilities.T:
            rest += np.square(column)
        for weight, column in zip(self.weights, probabilities.T, strict=True):
            largest = np.maximum(largest, weight**2 * (rest - 2.0 * column))
        return np.sqrt(largest)

    def curvatures(self, rows: WhitenedRows) -> FloatArray:
        """Products of probabilities, one column per pair of classes."""
        probabilities = self._probabilities(rows)
        found = np.column_stack([probabilities[:, j] * probabilities[:, k] for j, k in self._pairs])
        return found * self._of_records(rows)[:, None]

    def traces(self, rows: WhitenedRows) -> FloatArray:
        """Of the curvature of the heaviest class, whose weight is one."""
        probabilities = self._probabilities(rows)
        if self.coding is None:
            return probabilities[:, 0] * probabilities[:, 1]
        total = np.zeros(len(probabilities))
        for column in probabilities.T:
            total += column * (1.0 - column)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class LogLinkModel(LocalLoss):
    """A loss under a log link, with a clipped derivative.

    The curvature is what is expected of it, which does not look at the target; ``observed``: it does, for sums without
    noise.
    """

    loss: LogLinkLoss
    clip: float = math.inf
    observed: bool = False

    def residuals(self, rows: WhitenedRows) -> FloatArray:
        """Derivatives that are not clipped."""
        return self.loss.derivative(self._margins(rows), self._targets(rows))

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """The clipped derivative."""
        return np.clip(self.residuals(rows), -self.clip, self.clip)[:, None]

    def steepness(self, rows: WhitenedRows) -> FloatArray:
        """Over all targets, no larger than the clip."""
        return np.minimum(self.loss.steepest(self._margins(rows)), self.clip)

    def curvatures(self, rows: WhitenedRows) -> FloatArray:
        """One column."""
        margins = self._margins(rows)
        if self.observed:
            return self.loss.second_derivative(margins, self._targets(rows))[:, None]
        return self.loss.information(margins)[:, None]

    def traces(self, rows: WhitenedRows) -> FloatArray:
        """What is expected of the curvature."""
        return self.loss.information(self._margins(rows))

    def _margins(self, rows: WhitenedRows) -> FloatArray:
        margins = rows.margins(self.coefficients)[:, 0]
        return margins if rows.offset is None else margins + rows.offset

    def _targets(self, rows: WhitenedRows) -> FloatArray:
        return np.asarray(rows.target, dtype=np.float64) / ONE


# ---- Weights of records.


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """A rule for weights of records, one per record: all 1, for sums without noise."""

    def weights(self, rows: WhitenedRows) -> FloatArray:
        """Numbers in [0, 1]."""
        return np.ones(_n_records(rows))


@dataclass(frozen=True, slots=True, eq=False)
class LengthWeighing(Weighing):
    """Weights from lengths: the mean of w |u| is at most ``norm``, that of w |u|^2 at most ``room * norm**2``."""

    norm: float
    room: float

    @property
    def trace(self) -> float:
        """The bound on the trace of a record's term in a Gram matrix."""
        return self.room * self.norm**2

    def weights(self, rows: WhitenedRows) -> FloatArray:
        """``min(1, R / a) min(1, k R a / q)``: for a single row both factors are powers of R / |u|."""
        lengths = rows.means(rows.lengths, self.norm)
        squares = rows.means(np.square(rows.lengths), self.norm**2)
        first = 1.0 / np.maximum(lengths, 1.0)
        return first * np.minimum(1.0, self.room * lengths / np.maximum(squares, _LEAST)) * _ROOM


@dataclass(frozen=True, slots=True, eq=False)
class ScoreWeighing(Weighing):
    """Weights of labels: norms of scores are at most ``score`` for every label, traces of information ``trace``."""

    model: LocalLoss
    score: float
    trace: float = math.inf

    def weights(self, rows: WhitenedRows) -> FloatArray:
        """``min(1, B / a, h / q)``."""
        excess = np.maximum(rows.means(self.model.steepness(rows) * rows.lengths, self.score), 1.0)
        if math.isfinite(self.trace):
            squares = self.model.traces(rows) * np.square(rows.lengths)
            excess = np.maximum(excess, rows.means(squares, self.trace))
        return _ROOM / excess


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedTask:
    """What tasks in whitened coordinates share."""

    at: Coordinates
    loss: Loss

    @property
    def columns(self) -> IndexArray | None:
        """The features that are read."""
        return self.at.columns

    def pieces(self, block: Block, n_vectors: int = 1) -> Iterator[WhitenedRows]:
        """The rows of a block, some at a time: fewer if each has several vectors that are as long as it."""
        design, step = block.design(self.at.columns, "csr"), max(1, _PIECE_ENTRIES // max(self.at.width * n_vectors, 1))
        parts: Iterator[tuple[PersonRows | None, int, int]]
        if block.persons is None:
            parts = ((None, start, min(start + step, block.n_rows)) for start in range(0, block.n_rows, step))
        else:
            parts = whole_persons(block.persons, step)
        for persons, start, stop in parts:
            z = np.empty((stop - start, self.at.width))
            z[:, : self.at.n_features] = design.dense_rows(start, stop)
            z[:, self.at.n_features :] = ONE
            target = block.target[start:stop]
            weight, offset = (None if each is None else each[start:stop] for each in (block.weight, block.offset))
            yield WhitenedRows(self.at, z, target, self.loss.present(target), persons, weight, offset)


# ---- Numbers of rows, for private quantiles.


@dataclass(frozen=True, slots=True, eq=False)
class _WhitenedStatistic(WhitenedTask):
    """One number per row that is not null; of rows of persons all are listed, NaN for a null row."""

    def of_rows(self, rows: WhitenedRows) -> FloatArray:
        """The numbers of some rows."""
        raise NotImplementedError

    def values(self, block: Block) -> FloatArray:
        """The numbers of a block."""
        found = [np.where(rows.present, self.of_rows(rows), np.nan) for rows in self.pieces(block)]
        values = np.concatenate(found) if found else np.zeros(0)
        return values if block.persons is not None else values[~np.isnan(values)]


@dataclass(frozen=True, slots=True, eq=False)
class Lengths(_WhitenedStatistic):
    """Norms of u."""

    def of_rows(self, rows: WhitenedRows) -> FloatArray:
        """The norms of some rows."""
        return rows.lengths


@dataclass(frozen=True, slots=True, eq=False)
class Residuals(_WhitenedStatistic):
    """Absolute residuals of numbers, or derivatives under a log link."""

    model: NumberLoss | LogLinkModel

    def of_rows(self, rows: WhitenedRows) -> FloatArray:
        """The residuals of some rows."""
        return np.abs(self.model.residuals(rows))


@dataclass(frozen=True, slots=True, eq=False)
class MarginNorms(_WhitenedStatistic):
    """Norms of several margins."""

    model: MarginLoss

    def of_rows(self, rows: WhitenedRows) -> FloatArray:
        """The norms of some rows."""
        return self.model.norms(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Traces(_WhitenedStatistic):
    """The largest traces of the information of rows, over all targets."""

    model: LocalLoss

    def of_rows(self, rows: WhitenedRows) -> FloatArray:
        """The traces of some rows."""
        return self.model.traces(rows) * np.square(rows.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedDerivatives(WhitenedTask):
    """The number of records whose derivative is clipped, times ``unit``; rows of a person are parts of one record."""

    model: LogLinkModel
    unit: int

    def __call__(self, block: Block) -> IntArray:
        """The number of a block."""
        total = np.zeros(1, dtype=np.int64)
        for rows in self.pieces(block):
            clipped = (np.abs(self.model.residuals(rows)) > self.model.clip) & rows.present
            if rows.persons is None:
                total += self.unit * int(np.count_nonzero(clipped))
            else:
                total += rows.persons.cell_shares(np.where(clipped, 0, -1), 1, self.unit)
        return total


# ---- Sums of vectors and of outer products, which are integers within their bounds.


@dataclass(frozen=True, slots=True, eq=False)
class InformationSum(WhitenedTask):
    """The sum of w phi'' u u' over all outputs, for a bound ``trace`` on a record's trace.

    A record adds one vector per pair of classes, and their squared norms add up to no more than ``row_squared``. That
    stands for the bound over the square of :data:`MATRIX_SCALE`.
    """

    model: LocalLoss
    weighing: Weighing
    trace: float
    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        size, directions = self.model.n_outputs * self.at.width, self.model.directions
        total = np.zeros((size, size), dtype=np.int64)
        for rows in self.pieces(block, self.model.n_outputs * len(directions)):
            scales = integer_scale(self.row_squared, size * len(directions) * rows.counts)
            scales = scales * (rows.present * (self.at.unit / math.sqrt(self.trace)))
            shares = rows.spread(self.weighing.weights(rows)) / rows.counts
            roots = np.sqrt(self.model.curvatures(rows) * shares[:, None]) * scales[:, None]
            vectors = [
                np.rint(root[:, None, None] * direction[:, None] * rows.u[:, None, :]).reshape(len(root), size)
                for direction, root in zip(directions, roots.T, strict=True)
            ]
            squares = squared_norms(vectors)
            if rows.persons is not None:
                squares = np.repeat(rows.persons.totals(squares), rows.persons.counts)
            # Only measures beyond all reason could get here; the bound must not rest on that.
            kept = squares <= self.row_squared
            if rows.persons is not None and rows.persons.large.size:
                whole = np.sqrt(self.model.curvatures(rows) * rows.spread(self.weighing.weights(rows))[:, None])
                whole *= (rows.present * (self.at.unit / math.sqrt(self.trace)))[:, None]
                for own in rows.persons.slices(rows.persons.large):
                    kept[own] = False
                    total += self._of_many_rows(rows.u[own], whole[own])
            for vector in vectors:
                total += add_outer_products(vector[kept], self.row_squared)
        return total

    def _of_many_rows(self, u: FloatArray, roots: FloatArray) -> IntArray:
        """The mean of the outer products of one person's rows, cut towards zero (``data.sensitivity.gram_matrix``)."""
        directions, size = self.model.directions, self.model.n_outputs * self.at.width
        room, total = gram_room(size), np.zeros((size, size), dtype=np.int64)
        if self.row_squared < 2 * room:
            return total
        most = self.row_squared - room
        roots = roots * integer_scale(most, size * len(directions))
        vectors = [
            np.rint(root[:, None, None] * direction[:, None] * u[:, None, :]).reshape(len(u), size)
            for direction, root in zip(directions, roots.T, strict=True)
        ]
        # Of doubles that are no longer exact none is near the bound.
        if not math.fsum(squared_norms(vectors).tolist()) <= len(u) * most * (1.0 - 2.0**-40):
            return total
        products = sum(exact_products(vector) for vector in vectors)
        means: IntArray = (np.sign(products) * (np.abs(products) // len(u))).astype(np.int64)
        return means


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreTask(WhitenedTask):
    """Scores w psi u of norm at most ``bound``, one vector per record over all outputs."""

    model: LocalLoss
    weighing: Weighing
    bound: float

    def scores(self, block: Block, norm: float, most: int) -> Iterator[FloatArray]:
        """Scores as integers, ``norm`` standing for their bound and ``most`` bounding their squared norms."""
        for rows in self.pieces(block, self.model.n_outputs):
            shares = rows.spread(self.weighing.weights(rows)) * rows.present / rows.counts * (self.at.unit / self.bound)
            psi = self.model.derivatives(rows) * shares[:, None]
            terms = (psi[:, :, None] * rows.u[:, None, :]).reshape(len(psi), -1)
            vectors = np.rint(rows.totals(terms) * norm)
            vectors[~(np.einsum("ij,ij->i", vectors, vectors) <= most * (1.0 - 2.0**-40))] = 0.0
            yield vectors


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSum(_ScoreTask):
    """The sum of scores, ``norm`` standing for their bound."""

    norm: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros(self.model.n_outputs * self.at.width, dtype=np.int64)
        # Norms are large, and rounding adds next to nothing to them.
        for vectors in self.scores(block, self.norm - 0.5 * math.sqrt(total.size), self.norm**2):
            total += vectors.astype(np.int64).sum(axis=0)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ScoreProducts(_ScoreTask):
    """The sum of outer products of scores, of squared norms up to ``row_squared``.

    That stands for their squared bound over the square of :data:`MATRIX_SCALE`.
    """

    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        size = self.model.n_outputs * self.at.width
        total = np.zeros((size, size), dtype=np.int64)
        for vectors in self.scores(block, float(integer_scale(self.row_squared, size)), self.row_squared):
            total += add_outer_products(vectors, self.row_squared)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSquares(WhitenedTask):
    """The sum of squared entries of rows times w min(1, R / |u|), R being the norm of the weighing.

    Entries of a record add up to no more than the bound ``trace`` of the weighing, for which ``norm`` stands, and its
    vector is no longer than that.
    """

    weighing: LengthWeighing
    norm: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros(self.at.width, dtype=np.int64)
        for rows in self.pieces(block):
            clips = np.minimum(1.0, self.weighing.norm / np.maximum(rows.lengths, _LEAST)) * rows.present
            shares = rows.spread(self.weighing.weights(rows)) / rows.counts * clips
            terms = np.square(rows.u * self.at.unit) * (shares / self.weighing.trace)[:, None]
            vectors = np.trunc(rows.totals(terms) * self.norm)
            vectors[~(np.einsum("ij,ij->i", vectors, vectors) <= self.norm**2 * (1.0 - 2.0**-40))] = 0.0
            total += vectors.astype(np.int64).sum(axis=0)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class LongRows(WhitenedTask):
    """How many rows are long along each entry of u: between each of ``levels``, increasing, and the next one.

    One number per level and entry. A record adds a vector of norm at most one, for which ``norm`` stands: the root of
    one over ``n_entries`` for each entry along which it is long, and less where these are more.
    """

    levels: tuple[float, ...]
    n_entries: float
    norm: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        n_levels = len(self.levels)
        total = np.zeros(n_levels * self.at.width, dtype=np.int64)
        for rows in self.pieces(block, n_levels):
            sizes = np.abs(rows.u) * self.at.unit
            beyond = np.stack([sizes > level for level in self.levels], axis=1)
            between = beyond.astype(np.float64)
            between[:, :-1] -= beyond[:, 1:]
            counts = np.maximum(np.count_nonzero(beyond[:, 0], axis=1), self.n_entries)
            shares = rows.spread(np.full(_n_records(rows), _ROOM)) * rows.present / rows.counts / np.sqrt(counts)
            terms = (between * shares[:, None, None]).reshape(len(between), -1)
            vectors = np.trunc(rows.totals(terms) * self.norm)
            vectors[~(np.einsum("ij,ij->i", vectors, vectors) <= self.norm**2 * (1.0 - 2.0**-40))] = 0.0
            total += vectors.astype(np.int64).sum(axis=0)
        return total


def _n_records(rows: WhitenedRows) -> int:
    return len(rows.z) if rows.persons is None else rows.persons.counts.size


def squared_norms(vectors: Sequence[FloatArray]) -> FloatArray:
    """Of the vectors of each row together."""
    squares = np.zeros(len(vectors[0]))
    for vector in vectors:
        squares += np.einsum("ij,ij->i", vector, vector)
    return squares


def exact_products(vectors: FloatArray) -> Any:
    """The Gram matrix of any number of integer rows, in integers without a limit."""
    total = np.zeros((vectors.shape[1],) * 2, dtype=object)
    largest = max(float(np.einsum("ij,ij->i", vectors, vectors).max(initial=0.0)), 1.0)
    step = int(2.0**_EXACT_BITS // largest)
    for start in range(0, len(vectors), max(step, 1)):
        part = vectors[start : start + max(step, 1)]
        if step:
            # Sums over so many rows stay below 2**53, where doubles are exact.
            total += (part.T @ part).astype(np.int64)
        else:
            whole = part.astype(np.int64).astype(object)
            total += whole.T @ whole
    return total


def integer_scale(row_squared: int, n_entries: FloatArray | float) -> FloatArray:
    """What stands for a bound on vectors: with what rounding adds to so many entries, squares are within a bound."""
    root = math.sqrt(row_squared)
    return np.clip(root - 0.5 * np.sqrt(np.asarray(n_entries, dtype=np.float64)), 0.0, MATRIX_SCALE * root)


def add_outer_products(vectors: FloatArray, row_squared: int) -> IntArray:
    """The Gram matrix of integer rows whose squared norms are within a bound, exactly."""
    width = vectors.shape[1]
    total = np.zeros((width, width), dtype=np.int64)
    # Sums over so many rows stay below 2**53, where doubles are exact.
    step = max(1, (1 << _EXACT_BITS) // row_squared)
    for start in range(0, len(vectors), step):
        part = vectors[start : start + step]
        total += (part.T @ part).astype(np.int64)
    return total
