"""The design matrix on its lattice: fixed-point cells within public bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import (
    FRACTION_BITS,
    ONE,
    FloatArray,
    IndexArray,
    Int32Array,
    IntArray,
    check_integer,
    check_positive,
    sum_magnitude,
)

# ---- Integer arithmetic for sums: exact, whatever the order, the chunks or the number of threads.
# Numbers are put on a lattice once, record by record, against public bounds. Their sums are computed
# by ordinary floating-point products on integer-valued doubles, which are exact as long as no partial
# sum can pass 2**53; a public rule cuts the rows into blocks that keep it so. "One record changes only
# its own term" then holds to the last bit.

_EXACT = 1 << 53
_INT64 = 1 << 63


def to_lattice(values: ArrayLike, bound: float) -> FloatArray:
    """Clip to ``[-bound, bound]`` and round to integers in ``[-ONE, ONE]``, stored as float64."""
    bound = check_positive(bound=bound)
    clipped = np.clip(np.asarray(values, dtype=np.float64), -bound, bound)
    # A quotient of numbers within the bound lies in [-1, 1] even after rounding, and times a power of two is exact.
    clipped /= bound
    clipped *= ONE
    return np.rint(clipped, out=clipped)


def round_weights(weights: ArrayLike, scale: float, bound: int) -> FloatArray:
    """``clip(rint(weights * scale), -bound, bound)``: clipped *after* rounding, so ``bound`` is exact.

    A weight that is not a number counts as zero: its record contributes nothing.
    """
    bound = check_integer(1, bound=bound)
    scaled = np.asarray(weights, dtype=np.float64) * check_positive(scale=scale)
    np.rint(scaled, out=scaled)
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=math.inf, neginf=-math.inf)
    return np.clip(scaled, -bound, bound, out=scaled)


def clip_rows(rows: FloatArray, raw: FloatArray, row_bound_squared: int) -> FloatArray:
    """Lattice rows whose integer squared norms do not exceed ``row_bound_squared``.

    ``rows`` are rounded, ``raw`` the same rows before rounding, both in lattice units. A row that
    fails is truncated towards zero instead; one that fails still is scaled and truncated until it
    passes. Every step looks at one row alone.
    """
    bound = check_integer(1, row_bound_squared=row_bound_squared)
    widest = rows.shape[1] * ONE * ONE
    if widest >= _INT64:
        expected = f"fewer than {_INT64 >> (2 * FRACTION_BITS)} columns for an L2 row bound in 64-bit integers"
        raise ParameterError("n_features", rows.shape[1], expected, "select columns first")
    out = rows.copy()

    def norms(block: FloatArray) -> IntArray:
        integers = block.astype(np.int64)
        found: IntArray = np.einsum("ij,ij->i", integers, integers)
        return found

    failing = np.flatnonzero(norms(out) > bound)
    if failing.size:
        out[failing] = np.clip(np.trunc(raw[failing]), -ONE, ONE)
        failing = failing[norms(out[failing]) > bound]
    while failing.size:
        squared = norms(out[failing])
        factors = np.sqrt(bound / squared) * (1.0 - 2.0**-40)
        out[failing] = np.trunc(out[failing] * factors[:, None])
        failing = failing[norms(out[failing]) > bound]
    return out


def exact_block_rows(weight_bound: int) -> int:
    """How many rows a floating-point product sums without rounding: ``rows * ONE * weight_bound <= 2**53``."""
    check_integer(1, weight_bound=weight_bound)
    rows = _EXACT // (ONE * weight_bound)
    if rows < 1:
        expected = f"at most {_EXACT // ONE}, so that one product is exact in double precision"
        raise ParameterError("weight_bound", weight_bound, expected, "use a coarser weight scale")
    return rows


# ---- The map from public bounds to [-1, 1], stated once for everything that applies it.


def centre_and_half(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and half width of every column, neither overflowing nor, for the width, vanishing."""
    centre = lower / 2.0 + upper / 2.0
    return centre, np.maximum(upper - centre, centre - lower)


def to_unit_range(
    values: FloatArray, lower: FloatArray, upper: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    r"""Values clipped to ``[lower, upper]`` and mapped linearly to [-1, 1], the ends exactly.

    .. math:: \frac{\min(\max(x, l), u) - (l + u) / 2}{(u - l) / 2}

    The bounds are public and broadcast against ``values``. NaN stays NaN; infinity is clipped like everything else.
    ``out`` is where to put the result, and may be ``values`` itself.
    """
    centre, half = centre_and_half(lower, upper)
    # The centre is rounded, so the quotient may miss an end by one unit in the last place. Where it does not, clipped
    # values arrive at the end by themselves, and two passes are saved.
    rounded_low, rounded_high = (lower - centre) / half != -1.0, (upper - centre) / half != 1.0
    at_lower = (values <= lower) & rounded_low if rounded_low.any() else None
    at_upper = (values >= upper) & rounded_high if rounded_high.any() else None
    out = np.clip(values, lower, upper, out=out)
    out -= centre
    out /= half
    if at_lower is not None:
        np.copyto(out, -1.0, where=at_lower)
    if at_upper is not None:
        np.copyto(out, 1.0, where=at_upper)
    return out


# ---- X behind a few exact products: dense or sparse inside, the same integers outside.

_BLOCK_ENTRIES = 1 << 22
# Of a piece that stays in a cache while it is put on the lattice or turned into doubles and multiplied.
_CACHED_ENTRIES = 1 << 17


class Design:
    """A feature matrix, clipped to ``[-x_bound, x_bound]`` and put on the lattice.

    X is an array, or a sparse matrix in CSR or CSC format, of finite numbers (checked by the caller). Sparse input
    stays sparse: clipping keeps zeros. With ``intercept`` a column is appended whose entries are all ``constant``, in
    lattice units; by default it stands at the bound.

    Entries are integers in ``[-ONE, ONE]`` in units of ``x_bound / ONE``. Dense ones are held in 32 bits each, half of
    what X takes, and become doubles a few rows at a time where BLAS multiplies them; sparse ones are held as doubles,
    for scipy. Weights are integer-valued too. Results are exact 64-bit integers.
    """

    __slots__ = ("_built", "_cap", "_constant", "_intercept", "_source", "x_bound")

    def __init__(self, X: Any, x_bound: float, *, intercept: bool = False, constant: int = ONE) -> None:
        self.x_bound = x_bound
        self._source = X
        self._intercept, self._constant = intercept, constant
        # Integers as they are before entries are clipped to the cap, in lattice units.
        self._built: Any = None
        self._cap = ONE

    def _like(self, source: Any, built: Any) -> Design:
        """Other records of the same kind: their table, their integers, or both."""
        design = Design(source, self.x_bound, intercept=self._intercept, constant=self._constant)
        design._built, design._cap = built, self._cap
        return design

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, the intercept's included."""
        return int(self._held.shape[0]), self.n_features + self._intercept

    @property
    def n_features(self) -> int:
        """Columns without the intercept's."""
        return int(self._held.shape[1]) - (self._source is None and self._intercept)

    @property
    def values(self) -> Any:
        """The features in their own units, neither clipped nor rounded; a compacted design has none."""
        if self._source is None:
            raise TypeError("a compacted design holds integers alone: keep the table where its own values are needed")
        return self._source

    @property
    def is_compacted(self) -> bool:
        """Whether the integers are all that is held."""
        return self._source is None

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored sparsely."""
        return bool(sp.issparse(self._held))

    @property
    def lattice(self) -> Any:
        """The integers as a dense or sparse matrix of doubles, for exact products; not to be changed.

        Sparse ones are built once. Dense ones are made anew each time and take the memory of X: :meth:`pieces` has them
        a few rows at a time.
        """
        return _doubles(self._clip(self._integers()))

    def compact(self) -> Any:
        """The integers in the smallest form, 32 bits an entry; not to be changed."""
        if self.is_sparse and self._source is not None:
            # What is remembered are doubles.
            return self._clip(self._build(np.int32))
        return self._clip(self._integers())

    def compacted(self) -> Design:
        """The same design with its integers alone, 32 bits an entry: the table in its own units is let go.

        Every sum and product is the same to the bit, and so are those of its rows, columns and clipped entries. What
        goes back to the features' own units is gone: :attr:`values` and :meth:`signs`.
        """
        design = Design(None, self.x_bound, intercept=self._intercept, constant=self._constant)
        design._built = self.compact()
        return design

    @property
    def _held(self) -> Any:
        return self._built if self._source is None else self._source

    def _integers(self) -> Any:
        """The integers before the cap, built once: dense in 32 bits; sparse as doubles, or as they were compacted."""
        if self._built is None:
            self._built = self._build(np.float64 if self.is_sparse else np.int32)
        return self._built

    def _clip(self, integers: Any) -> Any:
        """Entries clipped to the cap, which becomes ONE."""
        if self._cap == ONE:
            return integers
        cap, dtype = float(self._cap), _entries(integers).dtype

        def clipped(entries: NDArray[Any]) -> NDArray[Any]:
            # Integers below 2**33 and a quotient of at most ONE: the same bits everywhere.
            scaled: FloatArray = np.clip(entries, -cap, cap).astype(np.float64, copy=False)
            scaled *= ONE
            scaled /= cap
            rounded: NDArray[Any] = np.rint(scaled, out=scaled).astype(dtype, copy=False)
            return rounded

        return map_entries(clipped, integers)

    def _build(self, dtype: type) -> Any:
        X = self._source
        if not sp.issparse(X):
            return self._dense(X.shape[1], lambda rows: X[rows])
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        # The places of the entries are X's own: they are not changed, so they need not be copied.
        entries: NDArray[Any] = to_lattice(X.data, self.x_bound).astype(dtype, copy=False)
        indices, indptr, shape = X.indices, X.indptr, X.shape
        if self._intercept:
            n_rows, n_columns = shape
            shape = (n_rows, n_columns + 1)
            if X.format == "csr":
                # The last entry of every row; sp.hstack would take three times the memory.
                entries = np.insert(entries, indptr[1:], self._constant)
                indices = np.insert(indices, indptr[1:], n_columns)
                indptr = indptr + np.arange(n_rows + 1, dtype=np.int64 if X.nnz + n_rows >= 2**31 else indptr.dtype)
            else:
                entries = np.append(entries, np.full(n_rows, self._constant, dtype=dtype))
                indices = np.append(indices, np.arange(n_rows, dtype=indices.dtype))
                indptr = np.append(indptr, indptr[-1] + n_rows)
        return type(X)((entries, indices, indptr), shape=shape, copy=False)

    def _dense(self, n_columns: int, table: Callable[[slice], FloatArray], *, intercept: bool = True) -> Int32Array:
        """The integers of a dense table of this many features, put on the lattice a few rows at a time."""
        n_rows, width = self._source.shape[0], n_columns + (self._intercept and intercept)
        lattice = np.empty((n_rows, width), dtype=np.int32)
        for rows in _in_cache(n_rows, n_columns):
            lattice[rows, :n_columns] = to_lattice(table(rows), self.x_bound)
        lattice[:, n_columns:] = self._constant
        return lattice

    def rows(self, start: int, stop: int) -> Design:
        """The design of a contiguous block of rows; dense integers that are there already are shared."""
        shared = self._built is not None and (self._source is None or not self.is_sparse)
        return self._like(
            None if self._source is None else self._source[start:stop], self._built[start:stop] if shared else None
        )

    def take(self, places: IndexArray) -> Design:
        """The design of some rows, in the order in which their places are given."""
        if self._source is None:
            return self._like(None, self._built[places])
        return self._like(self._source[places], None)

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Contiguous blocks of rows of a few million stored entries, for passes that keep nothing."""
        n_rows = self.shape[0]
        stored = self._held.nnz if self.is_sparse else self._held.size
        step = max(1, _BLOCK_ENTRIES * n_rows // max(1, stored))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows)), self.rows(start, start + step)

    def pieces(self, columns: IndexArray | None = None, most_rows: int | None = None) -> Iterator[tuple[slice, Any]]:
        """The integers as doubles, dense ones a few rows at a time, which stay in a cache while they are multiplied.

        Of some columns where they are given; no piece has more than ``most_rows``.
        """
        integers, n_rows = self._integers(), self.shape[0]
        if self.is_sparse:
            integers = _doubles(self._clip(integers))
            integers = integers if columns is None else integers[:, columns]
            step = n_rows if most_rows is None else most_rows
            if n_rows <= step:
                yield slice(0, n_rows), integers
                return
            integers = integers.tocsr()
            for start in range(0, n_rows, step):
                yield slice(start, min(start + step, n_rows)), integers[start : start + step]
            return
        for rows in _in_cache(n_rows, self.shape[1] if columns is None else columns.size, most_rows):
            part = integers[rows] if columns is None else np.take(integers[rows], columns, axis=1)
            yield rows, _doubles(self._clip(part))

    def dense_rows(self, start: int, stop: int) -> FloatArray:
        """Some rows as a dense matrix of doubles."""
        part = _doubles(self._clip(self._integers()[start:stop]))
        rows: FloatArray = part.toarray() if sp.issparse(part) else part
        return rows

    def columns(self, indices: IndexArray) -> Design:
        """The design of some of the features, without an intercept column; dense ones without their own units.

        Where the table is at hand, dense integers of all features are let go. Who goes on with some of the columns
        rarely comes back for the others, which are then built again.
        """
        X, source, built = self._source, None, None
        if X is None:
            built = self._built[:, indices] if self.is_sparse else np.take(self._built, indices, axis=1)
        elif self.is_sparse:
            source = X[:, indices]
        else:
            self._built = None
            built = self._dense(len(indices), lambda rows: np.take(X[rows], indices, axis=1), intercept=False)
        part = Design(source, self.x_bound)
        part._built, part._cap = built, self._cap
        return part

    def in_layout(self, layout: str) -> Design:
        """The same features, sparse ones stored by rows ("csr") or by columns ("csc")."""
        if not self.is_sparse or self._held.format == layout:
            return self
        if self._source is None:
            return self._like(None, self._built.asformat(layout))
        return self._like(self._source.asformat(layout), None)

    def signs(self) -> Design:
        """The design of the signs of all features, which are bounded by 1."""
        return Design(map_entries(np.sign, self.values), 1.0, intercept=self._intercept, constant=self._constant)

    def clipped(self, share: float) -> Design:
        """The same features with entries clipped to a share of their bound, which ONE then stands for.

        With a cap of about ``share * ONE`` an entry l becomes ``rint(clip(l, -cap, cap) * ONE / cap)``: an integer in
        ``[-ONE, ONE]`` again, and a function of one cell. Sensitivities of sums of entries in these units, as
        ``data.sensitivity.proposal_scores`` has them, therefore hold as they are stated.
        """
        if self._intercept:
            raise TypeError("entries are clipped before an intercept column is added")
        design = self._like(self._source, self._built)
        # Never zero, which the product of a very small cap and a share may be rounded to.
        design._cap = max(1, round(self._cap * share))
        return design

    def rmatvec(self, weights: FloatArray, weight_bound: int, n_records: int | None = None) -> IntArray:
        """``X.T @ weights`` for integer weights in ``[-weight_bound, weight_bound]``.

        ``weights`` may be a matrix with one column per sum. ``n_records`` is the number of persons that the rows belong
        to, where absolute weights of one person add up to no more than the bound; None for one row each.
        """
        n_rows, n_columns = self.shape
        sum_magnitude(n_rows if n_records is None else n_records, weight_bound)
        total = np.zeros((n_columns, *weights.shape[1:]), dtype=np.int64)
        for rows, part in self.pieces(most_rows=exact_block_rows(weight_bound)):
            total += np.asarray(part.T @ weights[rows]).astype(np.int64)
        return total

    def matvec(self, coefficients: FloatArray) -> IntArray:
        """``X @ coefficients`` for integer coefficients with ``ONE * ||coefficients||_1 <= 2**53``.

        ``coefficients`` may be a matrix with one column per margin; the bound then holds for each column.
        """
        if ONE * float(np.max(np.abs(coefficients).sum(axis=0))) > 2.0**53:
            raise DataError(
                "coefficients: expected an L1 norm of at most 2**37 lattice units, got more; "
                "quantise them on a coarser lattice."
            )
        margins = np.empty((self.shape[0], *coefficients.shape[1:]), dtype=np.int64)
        for rows, part in self.pieces():
            margins[rows] = part @ coefficients
        return margins


def _in_cache(n_rows: int, n_columns: int, most_rows: int | None = None) -> Iterator[slice]:
    """Contiguous rows that stay in a cache together."""
    step = max(1, _CACHED_ENTRIES // max(1, n_columns))
    step = step if most_rows is None else min(step, most_rows)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _entries(X: Any) -> NDArray[Any]:
    entries: NDArray[Any] = X.data if sp.issparse(X) else X
    return entries


def _doubles(X: Any) -> Any:
    """Integers as doubles; sparse places are shared."""
    return map_entries(lambda entries: entries.astype(np.float64, copy=False), X)


def map_entries(function: Callable[[Any], Any], X: Any) -> Any:
    """X with a function that keeps zeros applied to every entry; the places of sparse entries are shared."""
    if not sp.issparse(X):
        return function(X)
    return type(X)((function(X.data), X.indices, X.indptr), shape=X.shape, copy=False)
