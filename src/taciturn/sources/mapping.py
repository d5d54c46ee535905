"""Predictions and transformations of dask collections, partition by partition."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import DataError
from taciturn.core.guard import guarded
from taciturn.sources.open_tables import OpenTable, is_dask

__all__ = ["partitionwise"]

Result = TypeVar("Result")

# A seed would let workers draw the noise of a fit again, and an account is nothing to them.
_STAYS_WITH_THE_DRIVER = ("random_state", "account")


def partitionwise(method: Callable[[Any, Any], Result]) -> Callable[[Any, Any], Any]:
    """A method of a fitted object that maps row by row: of a dask collection it gives a dask array, not yet computed.

    Workers get a copy without the seed and the account of the fit. An open table is refused.
    """

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        if isinstance(X, OpenTable):
            raise DataError(
                f"X: expected an array, a data frame or a dask collection for {method.__name__}, got an open table; "
                "pass its partitions one by one."
            )
        return _map_partitions(method, self, X) if is_dask(X) else method(self, X)

    return mapped


def _map_partitions(method: Callable[[Any, Any], Any], fitted: Any, X: Any) -> Any:
    # A row of zeros tells the type and the width of the result.
    probe = np.asarray(guarded(method, silent=True)(fitted, np.zeros((1, fitted.n_features_in_))))
    away = copy(fitted)
    for name in _STAYS_WITH_THE_DRIVER:
        if hasattr(away, name):
            setattr(away, name, None)
    call = _Call(away, method.__name__)
    if hasattr(X, "columns"):
        return X.map_partitions(call, meta=probe[:0])
    X = X.rechunk({1: -1})
    if probe.ndim == 1:
        return X.map_blocks(call, dtype=probe.dtype, drop_axis=1, meta=probe[:0])
    # dask has no public name for what chunks are made of.
    kind = getattr(X, "_meta", None)
    meta = kind if sp.issparse(kind) else probe[:0]
    return X.map_blocks(call, dtype=probe.dtype, chunks=(X.chunks[0], (probe.shape[1],)), meta=meta)


class _Call:
    """A method of an object by its name, which can be pickled though methods are wrapped."""

    def __init__(self, fitted: Any, name: str) -> None:
        self.fitted, self.name = fitted, name

    def __call__(self, X: Any) -> Any:
        return getattr(self.fitted, self.name)(X)
