"""From a file to encoded features: whole for a fit, in blocks for predictions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.tables.arrow_tables import Wanted, arrow_schema, stream_batches, whole_batches
from taciturn.tables.bounds import TableBounds, lacking
from taciturn.tables.encoding import Encoding, read_target
from taciturn.tables.files import TableFile, larger_than_memory, table_file
from taciturn.tables.libsvm import SparseEncoding, libsvm_blocks, libsvm_schema, numeric_target
from taciturn.tables.schema import LABEL, TableSchema
from taciturn.tables.streams import memory_of_the_machine
from taciturn.tables.words import refusal

if TYPE_CHECKING:
    from taciturn.tables.encoder import TableEncoder

__all__ = ["read_batches", "read_schema", "read_table"]

Path = str | os.PathLike[str]


def read_schema(path: Path) -> TableSchema:
    """Names and kinds of the columns of a table on disk, never a value.

    Parameters
    ----------
    path : str or path-like
        A file named .csv, .tsv or .libsvm (.svm), each also with .gz, or .parquet (.pq), .feather, .arrow or .ipc. The
        columns of a libsvm file are called "label", "1", "2" and so on.
    """
    return _schema(table_file(path))


def read_table(path: Path, bounds: TableBounds, target: str) -> tuple[Any, NDArray[Any]]:
    """A whole table, encoded for a fit.

    **Privacy.** What is returned is as sensitive as the table. Values beyond the bounds are clipped and labels that are
    no class made into something that is none, without a word; a column that does not hold what was stated is refused
    by its name.

    Parameters
    ----------
    path : str or path-like
        The file, as in :func:`read_schema`.
    bounds : TableBounds
        The public statement about its columns.
    target : str
        The column to predict, which must be the one that the bounds describe.

    Returns
    -------
    X : ndarray, or CSR matrix for a libsvm file, of shape (n_rows, n_features)
        The features, as :class:`TableEncoder` encodes them.
    y : ndarray of shape (n_rows,)
        Numbers or labels.
    """
    _check_target(bounds, target)
    file = table_file(path)
    if file.format == "libsvm":
        return _read_libsvm(file, bounds)
    schema = _schema(file)
    bounds = bounds.for_table(schema)
    _check_present(target, schema)
    encoding, to_target = Encoding(bounds), read_target(bounds.target, bounds.missing.get(target))
    n_rows, batches = whole_batches(file, schema, _wanted(bounds, with_target=True))
    if n_rows == 0:
        raise DataError(_no_rows(file))
    X = _zeros(n_rows, encoding.n_features)
    targets = []
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        if stop > n_rows:
            break
        *columns, values = batch.columns
        encoding.fill(columns, X[start:stop])
        targets.append(to_target(values))
        start = stop
    if start != n_rows:
        raise DataError(f"{file.name}: expected the number of rows that the file states, got another; write it again.")
    return X, np.concatenate(targets)


def read_batches(path: Path, encoder: TableEncoder, target: str | None = None) -> Iterator[Any]:
    """A table in encoded blocks of rows, of which one is held at a time.

    Parameters
    ----------
    path : str or path-like
        The file, as in :func:`read_schema`.
    encoder : TableEncoder
        Fitted.
    target : str, default=None
        The column to predict. None: it is not read.

    Yields
    ------
    X, or X and y
        As :func:`read_table` returns them, for some of the rows.
    """
    bounds = encoder.bounds_
    if target is not None:
        _check_target(bounds, target)
    file = table_file(path)
    pairs = _libsvm_pairs if file.format == "libsvm" else _arrow_pairs
    empty = True
    for X, y in pairs(file, bounds, with_target=target is not None):
        empty = False
        yield X if target is None else (X, y)
    if empty:
        raise DataError(_no_rows(file))


def _schema(file: TableFile) -> TableSchema:
    return libsvm_schema(file) if file.format == "libsvm" else arrow_schema(file)


def _check_target(bounds: TableBounds, target: str) -> None:
    if target != bounds.target.name:
        raise refusal(
            "target",
            target,
            f"the column that [target] of the bounds describes, {bounds.target.name!r}",
            "name that one, or describe the other in the bounds",
        )


def _check_present(target: str, schema: TableSchema) -> None:
    if target not in schema.names:
        raise DataError(lacking(target, schema))


def _zeros(n_rows: int, n_features: int) -> FloatArray:
    if 8 * n_rows * n_features <= memory_of_the_machine():
        try:
            return np.zeros((n_rows, n_features))
        except (MemoryError, ValueError):
            pass
    # Without the number of rows, which may be one of the things to protect.
    raise DataError(larger_than_memory("table"))


def _no_rows(file: TableFile) -> str:
    return f"{file.name}: expected at least one row below the header, got none; add records."


def _wanted(bounds: TableBounds, *, with_target: bool) -> Wanted:
    texts = {"number": "number", "boolean": "boolean", "category": "text"}
    types = {name: texts[column.type] for name, column in bounds.used}
    listed = {name: frozenset(column.categories) for name, column in bounds.used if column.type == "category"}
    if with_target:
        target = bounds.target
        types[target.name] = "as it is" if target.classes is None else "text"
        if target.task == "regress":
            types[target.name] = "number"
        listed[target.name] = frozenset(map(str, target.classes or ()))
    return Wanted(types, listed)


def _arrow_pairs(file: TableFile, bounds: TableBounds, *, with_target: bool) -> Iterator[tuple[Any, Any]]:
    schema = _schema(file)
    bounds.for_table(schema)
    if with_target:
        _check_present(bounds.target.name, schema)
    encoding = Encoding(bounds)
    to_target = read_target(bounds.target, bounds.missing.get(bounds.target.name))
    for batch in stream_batches(file, schema, _wanted(bounds, with_target=with_target)):
        if batch.num_rows:
            columns = batch.columns
            y = to_target(columns.pop()) if with_target else None
            X = np.zeros((batch.num_rows, encoding.n_features))
            encoding.fill(columns, X)
            yield X, y


def _read_libsvm(file: TableFile, bounds: TableBounds) -> tuple[Any, NDArray[Any]]:
    if bounds.order is None:
        bounds = bounds.for_table(libsvm_schema(file))
    pairs = list(_libsvm_pairs(file, bounds, with_target=True))
    if not pairs:
        raise DataError(_no_rows(file))
    return sp.vstack([X for X, _ in pairs], format="csr"), np.concatenate([y for _, y in pairs])


def _libsvm_pairs(file: TableFile, bounds: TableBounds, *, with_target: bool) -> Iterator[tuple[Any, Any]]:
    target = bounds.target
    if with_target:
        _check_present(target.name, TableSchema((LABEL,), ("number",), sparse=True))
    encoding = SparseEncoding(bounds)
    for rows, labels in libsvm_blocks(file):
        y = numeric_target(target, bounds.missing.get(target.name), labels) if with_target else None
        yield encoding.encode(rows), y
