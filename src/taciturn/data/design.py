"""X behind a few exact products: dense or sparse inside, the same integers outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.lattice import ONE, sum_magnitude
from taciturn.data.fixed_point import exact_block_rows, to_lattice

__all__ = ["Design", "map_entries"]


_BLOCK_ENTRIES = 1 << 22
# Of a block that stays in a cache while it is put on the lattice.
_CACHED_ENTRIES = 1 << 18


class Design:
    """A feature matrix, clipped to ``[-x_bound, x_bound]`` and put on the lattice.

    Parameters
    ----------
    X : ndarray or sparse matrix/array in CSR or CSC format, shape (n_samples, n_features)
        Finite numbers (checked by the caller). Sparse input stays sparse: clipping keeps zeros.
    x_bound : float
        Public bound on every entry.
    intercept : bool, default=False
        Whether to append a column whose entries are all the same.
    constant : int, default=ONE
        That entry in lattice units; by default it stands at the bound.

    Notes
    -----
    Entries are integers in ``[-ONE, ONE]`` in units of ``x_bound / ONE``, held as doubles so that BLAS
    and scipy do the products. Weights are integer-valued too. Results are exact 64-bit integers.
    """

    __slots__ = ("_built", "_constant", "_intercept", "_source", "x_bound")

    def __init__(self, X: Any, x_bound: float, *, intercept: bool = False, constant: int = ONE) -> None:
        self.x_bound = x_bound
        self._source = X
        self._intercept, self._constant = intercept, constant
        self._built: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, the intercept's included."""
        n_rows, n_columns = self._source.shape
        return int(n_rows), int(n_columns) + self._intercept

    @property
    def n_features(self) -> int:
        """Columns without the intercept's."""
        return int(self._source.shape[1])

    @property
    def values(self) -> Any:
        """The features in their own units, neither clipped nor rounded."""
        return self._source

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored sparsely."""
        return bool(sp.issparse(self._source))

    @property
    def lattice(self) -> Any:
        """The integers as a dense or sparse matrix of doubles, for exact products; built once, not to be changed."""
        if self._built is None:
            self._built = self._build(np.float64)
        return self._built

    def compact(self) -> Any:
        """The integers in the smallest form, 32 bits an entry, for solvers that make an arrangement of their own."""
        return self._build(np.int32)

    def _build(self, dtype: type) -> Any:
        X = self._source
        if not sp.issparse(X):
            lattice: NDArray[Any] = np.empty(self.shape, dtype=dtype)
            step = max(1, _CACHED_ENTRIES // max(1, self.shape[1]))
            for start in range(0, self.shape[0], step):
                lattice[start : start + step, : self.n_features] = to_lattice(X[start : start + step], self.x_bound)
            lattice[:, self.n_features :] = self._constant
            return lattice
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

    def rows(self, start: int, stop: int) -> Design:
        """The design of a contiguous block of rows; dense integers that are there already are shared."""
        block = Design(self._source[start:stop], self.x_bound, intercept=self._intercept, constant=self._constant)
        if self._built is not None and not self.is_sparse:
            block._built = self._built[start:stop]
        return block

    def take(self, places: IndexArray) -> Design:
        """The design of some rows, in the order in which their places are given."""
        return Design(self._source[places], self.x_bound, intercept=self._intercept, constant=self._constant)

    def blocks(self) -> Iterator[tuple[slice, Design]]:
        """Contiguous blocks of rows of a few million stored entries, for passes that keep nothing."""
        n_rows = self.shape[0]
        stored = self._source.nnz if self.is_sparse else self._source.size
        step = max(1, _BLOCK_ENTRIES * n_rows // max(1, stored))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows)), self.rows(start, start + step)

    def columns(self, indices: IndexArray) -> Design:
        """The design of some of the features, without an intercept column."""
        part = Design(self._source[:, indices], self.x_bound)
        if self._built is not None and not self.is_sparse:
            part._built = self._built[:, indices]
        return part

    def in_layout(self, layout: str) -> Design:
        """The same features, sparse ones stored by rows ("csr") or by columns ("csc")."""
        if not self.is_sparse or self._source.format == layout:
            return self
        return Design(self._source.asformat(layout), self.x_bound, intercept=self._intercept, constant=self._constant)

    def signs(self) -> Design:
        """The design of the signs of all features, which are bounded by 1."""
        return Design(map_entries(np.sign, self._source), 1.0, intercept=self._intercept, constant=self._constant)

    def clipped(self, share: float) -> Design:
        """The same features clipped to a share of their bound, which becomes the new one."""
        # Never zero, which the product of a very small bound and a share may be rounded to.
        bound = max(self.x_bound * share, math.ulp(0.0))
        return Design(self._source, bound, intercept=self._intercept, constant=self._constant)

    def rmatvec(self, weights: FloatArray, weight_bound: int, n_records: int | None = None) -> IntArray:
        """``X.T @ weights`` for integer weights in ``[-weight_bound, weight_bound]``.

        ``weights`` may be a matrix with one column per sum. ``n_records`` is the number of persons that the rows belong
        to, where absolute weights of one person add up to no more than the bound; None for one row each.
        """
        n_rows, n_columns = self.shape
        sum_magnitude(n_rows if n_records is None else n_records, weight_bound)
        step = exact_block_rows(weight_bound)
        if n_rows <= step:
            return np.asarray(self.lattice.T @ weights).astype(np.int64)
        lattice = self.lattice.tocsr() if sp.issparse(self.lattice) else self.lattice
        total = np.zeros((n_columns, *weights.shape[1:]), dtype=np.int64)
        for start in range(0, n_rows, step):
            block = lattice[start : start + step]
            total += np.asarray(block.T @ weights[start : start + step]).astype(np.int64)
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
        return np.asarray(self.lattice @ coefficients).astype(np.int64)


def map_entries(function: Callable[[FloatArray], FloatArray], X: Any) -> Any:
    """X with a function that keeps zeros applied to every entry; the places of sparse entries are shared."""
    if not sp.issparse(X):
        return function(X)
    return type(X)((function(X.data), X.indices, X.indptr), shape=X.shape, copy=False)
