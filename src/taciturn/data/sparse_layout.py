"""Sparse tables before anything reads them: places inside the table, one entry per cell, no stored zeros.

scipy builds a matrix from three arrays and trusts them ever after. Compiled loops, its own included, then read and
write memory at whatever places these arrays name.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import DataError

__all__ = ["canonical_layout", "checked_layout"]

_COMPRESSED = ("csr", "csc", "bsr")


def checked_layout(X: Any) -> Any:
    """A sparse table in CSR or CSC format whose places all lie inside it; what is not sparse passes as it is.

    The caller's arrays are shared where possible and never changed. Formats other than CSR and CSC become CSR. Arrays
    that do not describe a table of its shape are a DataError.
    """
    if not sp.issparse(X):
        return X
    if X.ndim != 2:
        raise DataError("X: expected a table with two dimensions, got another shape; pass one row per record.")
    checked = None
    # scipy's own checks quote places, which are data.
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        checked = _checked(X)
    if checked is None:
        raise DataError(
            "X: expected a sparse table whose indices lie inside its shape and whose indptr rises from 0 to the number "
            "of stored entries, got other ones; build the table anew from its parts."
        )
    return checked


def _checked(X: Any) -> Any:
    """The table as CSR or CSC, or None if its arrays do not describe one."""
    if X.format == "lil" and [len(row) for row in X.rows] != [len(row) for row in X.data]:
        return None
    if X.format not in _COMPRESSED:
        X = X.tocoo()
    if not (_sound_places(X) if X.format == "coo" else _sound_lines(X)):
        return None
    if X.format in ("csr", "csc"):
        # A new object: what the old one remembers of its own order may be out of date.
        kind = getattr(sp, f"{X.format}_array" if isinstance(X, sp.sparray) else f"{X.format}_matrix")
        n_stored = int(X.indptr[-1])
        # Compiled loops are made for each width of integers, and some for the smaller one alone.
        width = np.int32 if max(*X.shape, n_stored) < 2**31 else np.int64
        places = (array.astype(width, copy=False) for array in (X.indices[:n_stored], X.indptr))
        return kind((X.data[:n_stored], *places), shape=X.shape, copy=False)
    if X.dtype.kind in "biu":
        # Entries of one cell are added up, which must not wrap around.
        X = X.astype(np.float64)
    return X.tocsr()


def _sound_lines(X: Any) -> bool:
    """Whether CSR, CSC or BSR arrays name places inside the table and nothing else."""
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_rows, n_columns = X.shape[0] // height, X.shape[1] // width
    n_lines, n_places = (n_columns, n_rows) if X.format == "csc" else (n_rows, n_columns)
    starts, places = X.indptr, X.indices
    return (
        (n_rows * height, n_columns * width) == X.shape
        and X.data.ndim == (3 if X.format == "bsr" else 1)
        and starts.ndim == places.ndim == 1
        and starts.dtype.kind in "iu"
        and starts.size == n_lines + 1
        and starts[0] == 0
        # Not by differences, which could wrap around.
        and bool((starts[1:] >= starts[:-1]).all())
        and starts[-1] <= min(places.size, len(X.data))
        and _inside(places[: starts[-1]], n_places)
    )


def _sound_places(X: Any) -> bool:
    """Whether every stored entry of COO arrays has a row and a column inside the table."""
    sizes = {len(X.row), len(X.col), len(X.data)}
    return len(sizes) == 1 and _inside(X.row, X.shape[0]) and _inside(X.col, X.shape[1])


def _inside(places: Any, size: int) -> bool:
    return places.dtype.kind in "iu" and (places.size == 0 or bool(places.min() >= 0 and places.max() < size))


def canonical_layout(X: Any) -> Any:
    """The same CSR or CSC table with sorted places, one entry per cell and no stored zeros; a copy if that changes it.

    How a table is stored is no part of what it says, so that nothing computed from it may depend on that.
    """
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not np.all(X.data):
        X = X.copy()
        X.eliminate_zeros()
    return X
