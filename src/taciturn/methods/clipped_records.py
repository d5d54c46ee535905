"""Records whose contributions are clipped, and compiled sums over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.validation import (
    FRACTION_BITS,
    ONE,
    FloatArray,
    IndexArray,
    Int32Array,
    IntArray,
    NumberArray,
    check_positive,
    sum_magnitude,
)
from taciturn.data.design import Design, exact_block_rows
from taciturn.data.persons import PersonRows
from taciturn.engines.interface import Block
from taciturn.kernels import gradients
from taciturn.kernels.gradients import (
    DerivativeCurve,
    excess_loss_sums,
    gradient_sums,
    log_sum_exp,
    logistic_numpy,
    rows_at_once,
    softmax_gradient_sums,
    squared_distances,
    squared_norms,
    weigh_rows,
)
from taciturn.losses import LogLinkLoss, Loss
from taciturn.methods.descent import add_shares

# ---- Norms of rows on the lattice, exactly.


def squared_row_norms(design: Design, centre: FloatArray | None = None) -> FloatArray:
    """Squared L2 norms of the rows less a centre, in lattice units. Exact: below 2**53 for half a million columns."""
    norms = np.empty(design.shape[0])
    if not design.is_sparse:
        integers = design.compact()
        if integers.dtype == np.int32:
            if centre is None:
                squared_norms(integers, norms)
            else:
                squared_distances(integers, centre, norms)
            return norms
    for rows, part in design.pieces():
        if sp.issparse(part):
            norms[rows] = np.asarray(part.power(2).sum(axis=1)).ravel()
        else:
            norms[rows] = np.einsum("ij,ij->i", part, part)
        if centre is not None:
            norms[rows] -= 2.0 * np.asarray(part @ centre).ravel() - float(centre @ centre)
    return norms


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


# ---- Sums of outer products of rows, in integers that are the same in any order.
# Every term is the outer product of a vector that is cut to integers first. Cutting keeps a bound on its norm.

Rows = Callable[[int, int], FloatArray]
"""Some rows of a table, by the first one and the one after the last: a matrix that may be changed."""

# Entries of a block of rows that is looked at at once.
_BLOCK_ENTRIES = 1 << 17
# Products of a Gram matrix that take as long as reading an entry.
_COLUMNS_PER_ENTRY = 16


def sum_outer_products(rows: Rows, scales: FloatArray, width: int, row_squared: int) -> IntArray:
    """The Gram matrix of rows times scales, whose squared norms are at most ``row_squared``."""
    # Sums over a block of rows stay below 2**53, where doubles are exact.
    step = max(1, min(_BLOCK_ENTRIES // width, (1 << 53) // row_squared))

    def part(first: int, last: int) -> IntArray:
        gram = np.zeros((width, width), dtype=np.int64)
        for start in range(first, last, step):
            stop = min(start + step, last)
            block = rows(start, stop)
            block *= scales[start:stop, None]
            np.trunc(block, out=block)
            gram += (block.T @ block).astype(np.int64)
        return gram

    return add_shares(part, scales.size, width * width // _COLUMNS_PER_ENTRY)


def whole_persons(persons: PersonRows, step: int) -> Iterator[tuple[PersonRows, int, int]]:
    """Persons that have about ``step`` rows together, and the first of these rows and the one after the last."""
    ends = np.cumsum(persons.counts)
    first = 0
    while first < ends.size:
        begin = int(ends[first] - persons.counts[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + step, side="right")))
        yield PersonRows(persons.counts[first:last]), begin, int(ends[last - 1])
        first = last


# ---- Sums of clipped gradients over dense rows by compiled loops, in the threads that machine and user allow.


@dataclass(frozen=True, slots=True, eq=False)
class LatticeCoefficients:
    """Coefficients as integers for exact products: margins are ``(x . integers - shifts) * unit + constants``."""

    integers: FloatArray
    shifts: FloatArray
    unit: float
    constants: FloatArray

    @classmethod
    def of(cls, coefficients: FloatArray, constant: int, centre: FloatArray | None) -> LatticeCoefficients:
        """One row per output, the constant's column last; exact margins stay below 2**53, rounding included."""
        weights = coefficients[:, :-1] if constant else coefficients
        largest = float(np.abs(weights).sum(axis=1).max(initial=0.0))
        bits = 36 - math.frexp(largest)[1] if largest > 0.0 else 0
        integers = np.ascontiguousarray(np.rint(np.ldexp(weights, bits)))
        nothing = np.zeros(len(coefficients))
        return cls(
            integers,
            nothing if centre is None else integers @ centre,
            2.0 ** -(bits + FRACTION_BITS),
            coefficients[:, -1] * (constant / ONE) if constant else nothing,
        )


def compiled_sums(
    X: Int32Array,
    at: LatticeCoefficients,
    factors: FloatArray,
    scales: FloatArray,
    bounds: FloatArray,
    target: FloatArray,
    curve: DerivativeCurve,
    weight_bound: int,
    offsets: FloatArray,
) -> IntArray:
    """Rows times their integer weights, and last the sum of the weights; see :func:`gradient_sums`."""
    exact_rows = exact_block_rows(weight_bound)
    step = rows_at_once(X.shape[1], exact_rows)

    def part(start: int, stop: int) -> IntArray:
        sums, weights = np.zeros(X.shape[1] + 1), np.empty(step)
        out = np.zeros(sums.size, dtype=np.int64)
        gradient_sums(
            X, start, stop, at.integers[0], float(at.shifts[0]), at.unit, float(at.constants[0]), factors, scales,
            bounds, target, curve.code, curve.numbers, offsets, exact_rows, weights, sums, out,
        )  # fmt: skip
        return out

    return add_shares(part, *X.shape)[None]


def compiled_softmax_sums(
    X: Int32Array,
    at: LatticeCoefficients,
    factors: FloatArray,
    units: FloatArray,
    bounds: FloatArray,
    codes: IntArray,
    rule: FloatArray,
    weight_bound: int,
) -> IntArray:
    """The same for several classes, one row each; see :func:`softmax_gradient_sums`."""
    exact_rows, n_classes = exact_block_rows(weight_bound), len(at.integers)
    step = rows_at_once(X.shape[1], exact_rows)

    def part(start: int, stop: int) -> IntArray:
        weights, room, sums = np.empty((n_classes, step)), np.empty((4, step)), np.zeros((n_classes, X.shape[1] + 1))
        out = np.zeros(sums.shape, dtype=np.int64)
        softmax_gradient_sums(
            X, start, stop, at.integers, at.shifts, at.unit, at.constants, factors, units, bounds, codes, rule,
            exact_rows, weights, room, sums, out,
        )  # fmt: skip
        return out

    return add_shares(part, X.shape[0], n_classes * X.shape[1])


def compiled_weights(
    margins: FloatArray, scales: FloatArray, bounds: FloatArray, target: FloatArray, curve: DerivativeCurve
) -> FloatArray:
    """The integer weights of rows at some margins, one column."""
    weights, whole = margins[:, 0].copy(), np.ones(len(margins))
    weigh_rows(weights, 0.0, 1.0, 0.0, whole, scales, bounds, target, curve.code, curve.numbers, 0.0 * whole)
    return weights[:, None]


def excess_integers(losses: FloatArray, base: FloatArray, clip: float, unit: float) -> IntArray:
    """Differences of losses record by record, clipped, times ``unit`` and rounded."""
    # Of two losses beyond all doubles neither is more.
    excess = np.nan_to_num(losses - base)
    return np.rint(np.clip(excess, -clip, clip) * unit).astype(np.int64)


def warm_up(*, sparse: bool, n_classes: int | None) -> None:
    """Compile what sums of clipped gradients call; ``n_classes`` is 0 for a regression, None where it is not known."""
    if n_classes is None or n_classes > 2:
        gradients.warm_up()
        if not sparse:
            gradients.warm_up_gradients(sparse=False, several_classes=True)
    if n_classes is None or n_classes <= 2:
        gradients.warm_up_gradients(sparse=sparse, several_classes=False)


# ---- Records with clipped rows and clipped derivatives, and the exact sums that gradient descent makes of them.
# Rows are clipped to an L2 norm without being changed: a row beyond the bound gets a smaller weight instead, which is
# the same sum. Or row and derivative are clipped together, to a bound on the product of their norms, which touches
# fewer records: margins are then those of the rows as they are, and only long rows with large derivatives count less. A
# public centre is taken from rows in the same way, in the sums. Weights, entries and centre are integers, so are the
# sums, and one record changes nothing but its own term.
#
# Where a record is a person with m rows, bounds on the weights of its rows are divided by m, rounded down, so that the
# terms of its rows together keep the bound of one. Rows of a Gram matrix are divided by the root of m instead.

# Covers the rounding of norms, roots and quotients, so that bounds on integers hold exactly.
_ROOM = 1.0 - 2.0**-28
# Probabilities are zero or one long before.
_LARGEST_MARGIN = 2.0**24
# No bound: that of one row, times this, no weights reach.
_BOUNDLESS = 2.0**64
# Rows whose losses are looked at at once.
_MOST_ROWS = 128
# Squared residuals count up to this many residual clips.
_LARGEST_RESIDUAL = 2.0
# Derivatives in several margins and the margins themselves are integers in these units before they are scaled.
_FINE = 1 << 40
_GRAIN = 2.0**-32


def _finite(values: FloatArray) -> FloatArray:
    """The values, with zero for what is no number. Only steps beyond all reason overflow: their sum is tried first."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(values.sum())
    return values if math.isfinite(total) else np.nan_to_num(values)


@dataclass(frozen=True, slots=True, eq=False)
class Clipping:
    """How records are clipped: public and released numbers, lengths in lattice units.

    ``columns`` are the features that are read (None for all). Each clipped row, with the entry ``constant`` of the
    intercept column (0 for none), has a squared norm of at most ``row_squared``. The integer ``weight_bound``
    stands for a derivative at ``derivative_bound``; for several classes predicted probabilities minus the label are
    scaled down to at most twice this sum of absolute values. Every row loses ``centre``, integers of at most ONE in
    absolute value, and a numeric target loses ``target_mean``. ``layout`` is as in
    :meth:`~taciturn.engines.Block.design`. ``product_bound`` bounds the product of the norms of a row and of its
    integer weights; None: both are clipped by themselves.
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
    product_bound: int | None = None

    def __post_init__(self) -> None:
        check_positive(derivative_bound=self.derivative_bound)

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
            centre, self.target_mean, self.product_bound,
        )  # fmt: skip
        rows = block.row_counts, block.weight, block.offset
        return block.recall(
            "clipped records", key, lambda: ClippedRecords(self, design, self.target(block), norms, *rows)
        )

    def passes(self, block: Block) -> Iterator[ClippedRecords]:
        """The same a few rows at a time, for a sum that is made once: only the row norms are kept."""
        norms = row_norms(block, self.columns, self.centre, self.layout, one_pass=True)
        target = self.target(block)

        def few(values: Any, rows: Any) -> Any:
            return None if values is None else values[rows]

        for rows, design in block.design(self.columns, self.layout).blocks():
            counts, weights, offsets = (few(each, rows) for each in (block.row_counts, block.weight, block.offset))
            yield ClippedRecords(self, design, target[rows], norms[rows], counts, weights, offsets)

    def target(self, block: Block) -> NumberArray:
        """The target less its mean."""
        return block.target - self.target_mean if self.target_mean else block.target


class ClippedRecords:
    """Some records, every row clipped to an L2 norm and every derivative to a bound, and sums over them.

    The design has no intercept column. The target holds lattice values for a regression, class codes (-1 for null
    records) for a classification. ``norms`` are squared norms of the rows less the centre, in lattice units, and
    ``counts`` how many rows the person of each row has; None where every row is a record. ``weights`` in [0, 1]
    multiply what rows add to sums, after they were clipped without them; ``offsets`` are added under a log link.
    """

    def __init__(
        self,
        clipping: Clipping,
        design: Design,
        target: NumberArray,
        norms: FloatArray,
        counts: IntArray | None = None,
        weights: FloatArray | None = None,
        offsets: FloatArray | None = None,
    ) -> None:
        self.clipping, self.design, self._squares = clipping, design, norms
        weight_bound, loss = clipping.weight_bound, clipping.loss
        # Bounds on the weights of a row, rounded down: times its norm they are in bounds.
        if clipping.product_bound is None:
            factors = np.sqrt(clipping.row_squared / self._whole_squares()) * _ROOM
            self._row_bounds = np.floor(weight_bound * np.minimum(factors, 1.0))
            self._factors = self._row_bounds / weight_bound
        else:
            lengths = np.sqrt(self._whole_squares())
            self._row_bounds = np.minimum(np.floor(clipping.product_bound / lengths * _ROOM), weight_bound)
            self._factors = np.ones(lengths.size)
        self._counts = counts
        # What stands for a derivative at its bound, in each row, and how many such weights there can be in a sum.
        self._units: float | FloatArray = float(weight_bound)
        self._n_terms: int | None = None
        if counts is not None:
            self._row_bounds = np.floor(self._row_bounds / counts)
            self._units = weight_bound / counts
            self._n_terms = math.ceil(float((1.0 / counts).sum()))
        # As in compiled loops, an offset is that of a logarithm.
        self._weights, self._offsets = weights, offsets if loss.log_link else None
        if weights is not None:
            self._row_bounds, self._units = np.floor(self._row_bounds * weights), self._units * weights
        null = ~loss.present(target)
        self._row_bounds[null], self._factors[null] = 0.0, 0.0
        self._present = ~null
        self._codes = target.astype(np.int64, copy=False) if loss.labelled else np.zeros(0, dtype=np.int64)
        self._target = np.where(null, 0.0, target) if loss.labelled else target.astype(np.float64) / ONE

    def _whole_squares(self) -> FloatArray:
        """Squared norms of the rows with the constant, of at least one."""
        return np.maximum(self._squares + float(self.clipping.constant) ** 2, 1.0)

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """Products of clipped rows with coefficients, one column per output."""
        at, n_features = self._on_lattice(coefficients), self.design.n_features
        integers, columns = at.integers.T, None
        if not self.design.is_sparse and 2 * (support := np.flatnonzero(at.integers.any(axis=0))).size <= n_features:
            # Of sparse rows taking columns out would be slower than a product with all of them.
            integers, columns = integers[support], support
        products = np.empty((self._factors.size, self.clipping.n_outputs))
        for rows, part in self.design.pieces(columns):
            products[rows] = part @ integers
        products -= at.shifts
        products *= at.unit
        products += at.constants
        products *= self._factors[:, None]
        return self._moved(products)

    def _moved(self, margins: FloatArray) -> FloatArray:
        """Margins with the offsets of the rows."""
        return margins if self._offsets is None else margins + self._offsets[:, None]

    def _on_lattice(self, coefficients: FloatArray) -> LatticeCoefficients:
        return LatticeCoefficients.of(coefficients, self.clipping.constant, self.clipping.centre)

    def weights(self, margins: FloatArray) -> FloatArray:
        """Derivatives at some margins as integer weights of the rows as they are, one column per output."""
        loss, bound, margins = self.clipping.loss, self.clipping.derivative_bound, _finite(margins)
        if not loss.multiclass:
            psi = loss.derivative(margins[:, 0], self._target)
            with np.errstate(over="ignore"):
                psi *= (self._row_bounds if self.clipping.product_bound is None else self._units) / bound
            psi = _finite(np.rint(psi, out=psi))
            return np.clip(psi, -self._row_bounds, self._row_bounds, out=psi)[:, None]
        margins = np.clip(margins, -_LARGEST_MARGIN, _LARGEST_MARGIN)
        lattice = np.rint(margins / _GRAIN).astype(np.int64)
        integers = loss.integer_derivatives(lattice, _GRAIN, self._codes, math.inf, _FINE)
        scale = _ROOM * loss.lipschitz(math.inf) / (_FINE * bound)
        if self.clipping.product_bound is not None:
            return self._joint_weights(integers, scale)
        if bound < 1.0:
            # For softmax the sum of absolute values is twice the missing probability of the label.
            scale = np.minimum(scale, loss.l1_factor * _ROOM / np.maximum(np.abs(integers).sum(axis=1), 1.0))
        integers *= (self._row_bounds * scale)[:, None]
        np.trunc(integers, out=integers)
        # Never the case but for a defect of the exponential function; the bound must not rest on that.
        beyond = np.square(integers).sum(axis=1) > loss.squared_l2_factor * np.square(self._row_bounds)
        integers[beyond | (np.abs(integers).sum(axis=1) > loss.l1_factor * self._row_bounds)] = 0.0
        return integers

    def _joint_weights(self, integers: FloatArray, scale: float) -> FloatArray:
        """Derivatives in several margins, scaled down to the norm that a row leaves room for."""
        lengths = np.sqrt(np.square(integers).sum(axis=1))
        scales = np.minimum(scale * self._units, _ROOM * self._row_bounds / np.maximum(lengths, 1.0))
        integers *= scales[:, None]
        np.trunc(integers, out=integers)
        # As above: the bound must not rest on rounding.
        integers[np.square(integers).sum(axis=1) > np.square(self._row_bounds)] = 0.0
        return integers

    def sums(self, coefficients: FloatArray) -> IntArray:
        """:meth:`sums_at` the margins of these coefficients; compiled loops, if there are, give the same integers."""
        clipping, curve = self.clipping, self.clipping.loss.curve
        if self.design.is_sparse or curve is None:
            margins = self.margins(coefficients)
            if curve is None or curve.kind == "softmax":
                return self.sums_at(margins)
            return self._sums_of(compiled_weights(margins, self._scales, self._row_bounds, self._target, curve))
        sum_magnitude(self._factors.size if self._n_terms is None else self._n_terms, clipping.weight_bound)
        rows, at = self.design.compact(), self._on_lattice(coefficients)
        by_row = self._factors, self._scales, self._row_bounds
        if curve.kind == "softmax":
            sums = compiled_softmax_sums(rows, at, *by_row, self._codes, self._rule, clipping.weight_bound)
        else:
            sums = compiled_sums(rows, at, *by_row, self._target, curve, clipping.weight_bound, self._row_offsets)
        return self._placed(sums[:, :-1], sums[:, -1])

    @cached_property
    def _scales(self) -> FloatArray:
        """What derivatives are multiplied with, row by row: to become weights, or for several classes units of them."""
        bound = 1.0 if self.clipping.loss.multiclass else self.clipping.derivative_bound
        scales = (self._row_bounds if self.clipping.product_bound is None else self._units) / bound
        return scales if isinstance(scales, np.ndarray) else np.full(self._factors.size, scales)

    @cached_property
    def _row_offsets(self) -> FloatArray:
        """The offsets of the rows, for compiled loops, which read them under a log link alone."""
        n_read = self._factors.size if self.clipping.loss.log_link else 0
        return np.zeros(n_read) if self._offsets is None else self._offsets

    @cached_property
    def _rule(self) -> FloatArray:
        """The numbers of :meth:`weights` for several classes, as compiled loops take them."""
        loss, bound, jointly = (
            self.clipping.loss,
            self.clipping.derivative_bound,
            self.clipping.product_bound is not None,
        )
        scale = _ROOM * loss.lipschitz(math.inf) / (_FINE * bound)
        l1_room = loss.l1_factor * _ROOM if bound < 1.0 else math.inf
        most_l1, most_squared = (_BOUNDLESS, 1.0) if jointly else (loss.l1_factor, loss.squared_l2_factor)
        return np.array(
            [_LARGEST_MARGIN, _GRAIN, _FINE, scale, l1_room, _ROOM, most_l1, most_squared, jointly], dtype=np.float64
        )

    def sums_of_constants(self, margins: FloatArray) -> IntArray:
        """:meth:`sums_at` margins that are the same for every record but for their offsets."""
        return self.sums_at(self._moved(np.broadcast_to(margins, (self.design.shape[0], margins.size))))

    def weights_of_constants(self, margins: FloatArray) -> FloatArray:
        """:meth:`weights` at margins that are the same for every record but for their offsets."""
        return self.weights(self._moved(np.broadcast_to(margins, (self._factors.size, margins.size))))

    def sums_at(self, margins: FloatArray) -> IntArray:
        """``sum_i r_i x_i`` with the integers of :meth:`weights`, one row per output, the intercept last."""
        return self._sums_of(self.weights(margins))

    def _sums_of(self, weights: FloatArray) -> IntArray:
        sums = self.design.rmatvec(weights, self.clipping.weight_bound, self._n_terms).T
        return self._placed(sums, weights.sum(axis=0).astype(np.int64))

    def _placed(self, products: IntArray, totals: IntArray) -> IntArray:
        """Sums of weighted rows and of the weights, put together."""
        sums = np.empty((self.clipping.n_outputs, self.clipping.width), dtype=np.int64)
        sums[:, : self.design.n_features] = products
        if self.clipping.centre is not None:
            sums[:, : self.design.n_features] -= totals[:, None] * self.clipping.centre.astype(np.int64)
        if self.clipping.constant:
            sums[:, -1] = totals * self.clipping.constant
        return sums

    def row_sums(self, weight_bound: int) -> IntArray:
        """The sum of clipped rows times ``weight_bound``, rounded down row by row; null records add nothing."""
        weights = self._factors * weight_bound
        weights = weights if self._weights is None else weights * self._weights
        weights = np.floor(weights if self._counts is None else weights / self._counts)
        sums = self.design.rmatvec(weights, weight_bound, self._n_terms)
        centre = self.clipping.centre
        return sums if centre is None else sums - int(weights.sum()) * centre.astype(np.int64)

    def residuals(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Margins less constant and offset, and derivatives, for one output: each of one record alone, 0 if null."""
        loss = self.clipping.loss
        margins = _finite(self.margins(coefficients))[:, 0]
        constant = float(coefficients[0, -1]) * (self.clipping.constant / ONE) if self.clipping.constant else 0.0
        without = margins - constant if self._offsets is None else margins - (constant + self._offsets)
        return without * self._present, loss.derivative(margins, self._target) * self._present

    def information(self, coefficients: FloatArray) -> FloatArray:
        """The expected second derivative of each record's loss under a log link."""
        loss = self.clipping.loss
        if not isinstance(loss, LogLinkLoss):
            raise TypeError("the information of a record is asked for under a log link alone")
        return loss.information(_finite(self.margins(coefficients))[:, 0]) * self._present

    def margins_and_codes(self, coefficients: FloatArray) -> tuple[FloatArray, IntArray]:
        """Margins of all classes and the codes of labels: each of one record alone, a code of -1 for null ones."""
        return _finite(self.margins(coefficients)), self._codes

    def losses(self, coefficients: FloatArray) -> FloatArray:
        """The loss of each record times its weight, 0 for null ones: half a bounded squared residual, or log-loss."""
        found = self._unweighted_losses(coefficients)
        return found if self._weights is None else found * self._weights

    def _unweighted_losses(self, coefficients: FloatArray) -> FloatArray:
        margins = _finite(self.margins(coefficients))
        if self.clipping.loss.log_link:
            return self.clipping.loss.value(margins[:, 0], self._target) / self.clipping.derivative_bound**2
        if not self.clipping.loss.labelled:
            residuals = np.abs(margins[:, 0] - self._target) / self.clipping.derivative_bound
            return 0.5 * np.square(np.minimum(residuals, _LARGEST_RESIDUAL))
        if self.clipping.n_outputs == 1:
            margins = np.column_stack((np.zeros(len(margins)), margins))
        codes = np.maximum(self._codes, 0)
        values = log_sum_exp(margins) - margins[np.arange(codes.size), codes]
        values *= self.clipping.loss.class_weights(margins.shape[1])[codes]
        return np.where(self._codes < 0, 0.0, values)

    def excess_loss_sums(
        self, models: Sequence[FloatArray], reference: FloatArray, clip: float, unit: float
    ) -> IntArray:
        """Sums of differences from the losses of a reference, clipped, times ``unit`` and rounded; one per model.

        Rows are records here. Compiled loops, if there are, give the same integers.
        """
        loss = self.clipping.loss
        if self.design.is_sparse or loss.log_link or self.clipping.n_outputs > 1:
            base = self.losses(reference)
            return np.array(
                [excess_integers(self.losses(model), base, clip, unit).sum() for model in models], dtype=np.int64
            )
        at = [self._on_lattice(coefficients) for coefficients in (reference, *models)]
        vectors = np.concatenate([each.integers for each in at])
        shifts, units, constants = np.array([(each.shifts[0], each.unit, each.constants[0]) for each in at]).T
        class_weights = loss.class_weights(2) if loss.labelled else np.ones(2)
        weights = np.zeros(0) if self._weights is None else self._weights
        rule = np.array([self.clipping.derivative_bound, _LARGEST_RESIDUAL, clip, unit])
        rows, targets = self.design.compact(), self._target.astype(np.float64, copy=False)
        step = rows_at_once(rows.shape[1], _MOST_ROWS)

        def part(start: int, stop: int) -> IntArray:
            out = np.zeros(len(models), dtype=np.int64)
            excess_loss_sums(
                rows, start, stop, vectors, np.ascontiguousarray(shifts), np.ascontiguousarray(units),
                np.ascontiguousarray(constants), self._factors, targets, self._codes, class_weights, weights, rule,
                np.empty((2, step)), out,
            )  # fmt: skip
            return out

        return add_shares(part, rows.shape[0], rows.shape[1] * len(at))

    def curvature_terms(self, direction: FloatArray) -> FloatArray:
        """Per record the squared margin of a unit direction over its bound: numbers in [0, 1]."""
        terms: FloatArray = np.square(self.margins(direction)).sum(axis=1) / self.clipping.norm**2
        return np.minimum(terms, 1.0)

    def gram_matrix(self, row_squared: int, coefficients: FloatArray | None = None) -> IntArray:
        """The Gram matrix of clipped rows in units where the squared norm of a row is at most ``row_squared``.

        The m rows of a person are divided by the root of m. At ``coefficients`` of two classes rows are multiplied with
        the root of the curvature of their loss over the largest there is, so that none becomes longer.
        """
        scales = self._factors * (_ROOM * math.sqrt(row_squared / self.clipping.row_squared))
        if coefficients is not None:
            scales = scales * np.sqrt(self._curvature_shares(coefficients))
        if self._counts is not None:
            scales = scales / np.sqrt(self._counts)
        if self._weights is not None:
            scales = scales * np.sqrt(self._weights)
        return sum_outer_products(self._dense_rows, scales, self.clipping.width, row_squared)

    def _curvature_shares(self, coefficients: FloatArray) -> FloatArray:
        """The curvature of each record's log-loss at some coefficients over the largest that labels can have."""
        likely = logistic_numpy(_finite(self.margins(coefficients))[:, 0])
        weights = self.clipping.loss.class_weights(2)[np.maximum(self._codes, 0)]
        shares: FloatArray = np.clip(4.0 * likely * (1.0 - likely), 0.0, 1.0) * weights
        return shares

    def _dense_rows(self, start: int, stop: int) -> FloatArray:
        """Some rows less the centre, the constant last."""
        block = self.design.dense_rows(start, stop)
        rows = np.empty((block.shape[0], self.clipping.width))
        rows[:, : self.design.n_features] = block
        if self.clipping.centre is not None:
            rows[:, : self.design.n_features] -= self.clipping.centre
        if self.clipping.constant:
            rows[:, -1] = self.clipping.constant
        return rows
