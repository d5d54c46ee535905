"""Arrays and data frames of dask as tables in partitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import IndexArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.validation import DIFFERENT_LENGTHS, NO_COLUMNS, NOT_ONE_COLUMN, NOT_TWO_DIMENSIONS
from taciturn.data.persons import KeyForms, column_of_keys, key_forms
from taciturn.sources.blocks import BlockBuilder, Partition, accepted, quietly
from taciturn.sources.dask_source import DaskSource, compute_all, lazily
from taciturn.sources.open_tables import OpenTable, is_dask
from taciturn.sources.partitions import PartitionFacts

__all__ = ["DaskTable"]


class DaskTable(OpenTable):
    """An array or data frame of dask with its target, and with the keys of its persons.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask data frame
        The features. Chunks of columns are put together; chunks of rows become partitions.
    y : dask array or series of shape (n_samples,), default=None
        The target.
    persons : dask array or series of shape (n_samples,), default=None
        The keys of the persons.

    Notes
    -----
    Data frames do not know how many rows their partitions have. They are counted, once, which computes the frame. That
    number is public, except under add-remove, where it is counted after the fit has been paid for.
    """

    def __init__(self, X: Any, y: Any = None, persons: Any = None) -> None:
        if X.ndim != 2:
            raise DataError(f"X: {NOT_TWO_DIMENSIONS}.")
        self.n_features = len(X.columns) if hasattr(X, "columns") else int(X.shape[1])
        if self.n_features == 0:
            raise DataError(f"X: {NO_COLUMNS}.")
        names = list(getattr(X, "columns", ()))
        self.names = tuple(names) if names and all(isinstance(name, str) for name in names) else None
        self.is_sparse = bool(sp.issparse(getattr(X, "_meta", None)))
        self.has_target, self.has_persons = y is not None, persons is not None
        self.person_column = column_of_keys(persons)
        self._X = X if hasattr(X, "columns") else X.rechunk({1: -1})
        self._y, self._persons = _one_column("y", y), _one_column("persons", persons)

    @cached_property
    def _features(self) -> list[Any]:
        return _pieces(self._X)

    @cached_property
    def lengths(self) -> IntArray:
        """The number of rows of each partition."""
        return _lengths(self._X, self._features)

    @cached_property
    def _targets(self) -> list[Any]:
        return self._alongside("y", self._y)

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition."""
        return _each_quietly(function, self._targets)

    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition."""
        keys = self._alongside("persons", self._persons)
        return _each_quietly(key_forms, keys, self.lengths.tolist())

    def _source(self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts) -> DaskSource:
        targets = self._targets if builder.target is not None else [None] * facts.lengths.size
        partitions = [Partition(builder, None, index, own) for index, own in enumerate(owners)]
        blocks = [
            lazily(partition.build, features, target)
            for partition, features, target in zip(partitions, self._features, targets, strict=True)
        ]
        return DaskSource(partitions, facts, blocks=blocks)

    def _alongside(self, name: str, column: Any) -> list[Any]:
        """The pieces of a column beside those of the features, row for row."""
        if hasattr(column, "chunks") and not _unknown(column):
            if column.shape[0] != self.lengths.sum():
                raise DataError(_lengths_differ(name))
            return _pieces(column.rechunk((tuple(self.lengths.tolist()),)))
        pieces = _pieces(column)
        if len(pieces) != self.lengths.size or not np.array_equal(_lengths(column, pieces), self.lengths):
            raise DataError(
                f"{name}: expected partitions of as many rows as those of X, got others; take both from one frame, or "
                "repartition them alike."
            )
        return pieces


def _one_column(name: str, column: Any) -> Any:
    if column is None:
        return None
    if not is_dask(column):
        raise DataError(
            f"{name}: expected an array or series of dask beside a dask X, got something else; pass one, for instance "
            "by dask.array.from_array."
        )
    if column.ndim != 1:
        raise DataError(f"{name}: {NOT_ONE_COLUMN}.")
    return column


def _lengths_differ(name: str) -> str:
    if name == "y":
        return f"X or y: {DIFFERENT_LENGTHS}."
    return f"{name}: expected one key per row of X, got another number; pass as many as there are rows."


def _unknown(array: Any) -> bool:
    return any(np.isnan(length) for length in array.chunks[0])


def _pieces(collection: Any) -> list[Any]:
    """The partitions of a collection, or the chunks of rows of an array."""
    return list(np.ravel(collection.to_delayed()))


def _lengths(collection: Any, pieces: list[Any]) -> IntArray:
    if hasattr(collection, "chunks") and not _unknown(collection):
        return np.array(collection.chunks[0], dtype=np.int64)
    return np.array(_each_quietly(_n_rows, pieces), dtype=np.int64)


def _each_quietly(function: Callable[..., Any], *pieces: list[Any]) -> list[Any]:
    """What a function gives for each piece, computed on the workers."""
    answers = compute_all([lazily(partial(quietly, function), *each) for each in zip(*pieces, strict=True)])
    return [accepted(answer) for answer in answers]


def _n_rows(piece: Any) -> int:
    return int(piece.shape[0])
