"""The one door through which every table enters: checked, finite, in one layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from taciturn.core.errors import DataError
from taciturn.core.validation import NOT_FINITE, without_data_values
from taciturn.data.sparse_layout import canonical_layout, checked_layout

__all__ = ["LAYOUTS", "read_columns", "read_records", "read_table"]

LAYOUTS = ("csr", "csc")
"""Layouts in which sparse tables reach solvers."""


def read_table(estimator: Any, X: Any, *, reset: bool, layouts: Any = LAYOUTS) -> Any:
    """A table of finite doubles; ``reset`` for the one that the estimator is fitted to."""

    def read() -> Any:
        return validate_data(estimator, checked_layout(X), reset=reset, accept_sparse=layouts, dtype=np.float64)

    return _canonical(without_data_values("X", read))


def read_records(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """A table of finite doubles to fit to, and as many targets, numbers or labels."""

    def read() -> tuple[Any, np.ndarray]:
        return validate_data(estimator, checked_layout(X), y, accept_sparse=LAYOUTS, dtype=np.float64)

    table, target = without_data_values("X or y", read)
    return _canonical(table), target


def read_columns(estimator: Any, X: Any, *, layouts: Any = LAYOUTS) -> Any:
    """A table of finite doubles that need not have the names of the one that the estimator was fitted to."""

    def read() -> Any:
        return check_array(
            checked_layout(X), accept_sparse=layouts, dtype=np.float64, input_name="X", estimator=estimator
        )

    return _canonical(without_data_values("X", read))


def _canonical(X: Any) -> Any:
    if not sp.issparse(X):
        return X
    X = canonical_layout(X)
    # A sum of finite entries of one cell may be infinite.
    if not np.isfinite(X.data).all():
        raise DataError(f"X: {NOT_FINITE}.")
    return X
