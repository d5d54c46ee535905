"""Read a table file into encoded features: whole for a fit, in blocks for predictions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.core.validation import check_choice
from taciturn.data.persons import NamedKeys
from taciturn.tables.arrow_tables import ColumnSelection, arrow_schema, stream_batches, whole_batches
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.columns import Column
from taciturn.tables.diagnosis import raise_file_problems
from taciturn.tables.encoding import Encoding, target_numbers, target_reader, widened
from taciturn.tables.files import TableFile, larger_than_memory, table_file
from taciturn.tables.folders import folder_schema, table_files
from taciturn.tables.layouts import TableLayout
from taciturn.tables.libsvm import SparseEncoding, libsvm_blocks, libsvm_schema, numeric_target
from taciturn.tables.problems import Problems
from taciturn.tables.schema import LABEL, TableSchema
from taciturn.tables.streams import machine_memory
from taciturn.tables.words import quoted, refusal

if TYPE_CHECKING:
    from taciturn.tables.encoder import TableEncoder

__all__ = ["read_batches", "read_person_keys", "read_schema", "read_table", "read_unbounded_table"]

Path = str | os.PathLike[str]


def read_schema(path: Path, layout: TableLayout | None = None) -> TableSchema:
    """Read names and kinds of the columns of a table on disk, never a value.

    Parameters
    ----------
    path : str or path-like
        A file named .csv, .tsv or .libsvm (.svm), each also with .gz, or .parquet (.pq), .feather, .arrow or .ipc, or
        .xlsx (with openpyxl), .dta (Stata, with pandas), or .sqlite (.sqlite3, .db). The columns of a libsvm file are
        called "label", "1", "2" and so on. ``study.sqlite#visits`` names a table or a sheet. A folder of Parquet or of
        Arrow files is a table, too, which :func:`open_partitions` reads.
    layout : TableLayout, default=None
        How the file is written, where its name does not say so (:attr:`TableBounds.layout`).
    """
    return files_schema(table_files(path, layout))


def read_table(
    path: Path, bounds: TableBounds, target: str, *, schema: TableSchema | None = None, invalid: str = "raise"
) -> tuple[Any, NDArray[Any]]:
    """Read a whole table, encoded for a fit.

    **Privacy.** The result is as sensitive as the table. Values beyond the bounds are clipped silently, and labels that
    are no class become a value that is no class. With ``invalid="raise"``, a column with a cell that cannot be used is
    refused by its name.

    Parameters
    ----------
    path : str or path-like
        The file, as in :func:`read_schema`.
    bounds : TableBounds
        Public bounds of its columns.
    target : str
        The column to predict, which must be the one that the bounds describe.
    schema : TableSchema, default=None
        The schema of this file, for which the bounds were resolved (:meth:`TableBounds.for_table`). None: it is read
        from the file, and the bounds are resolved for it.
    invalid : {"raise", "null"}, default="raise"
        What happens to a cell that is missing without a stated value to fill in, or that is not a value of its column:
        "raise" refuses the table; "null" makes it NaN, so that an estimator with the same setting leaves its record
        out. "null" takes stated bounds or classes of the target.

    Returns
    -------
    X : ndarray, or CSR matrix for a libsvm file, of shape (n_rows, n_features)
        The features, as :class:`TableEncoder` encodes them.
    y : ndarray of shape (n_rows,)
        Numbers or labels.
    """
    check_target(bounds, target, invalid)
    file = table_file(path, bounds.layout)
    if file.format == "libsvm":
        return _read_libsvm(file, bounds, invalid)
    if schema is None:
        schema = _read_schema(file)
        bounds = bounds.for_table(schema)
    X, y, _ = _read_dense(file, schema, bounds, (), invalid)
    return X, y


def read_unbounded_table(
    path: Path, bounds: TableBounds, names: Sequence[str], schema: TableSchema, *, invalid: str = "raise"
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Read a whole table as :func:`read_table` does, and some columns of numbers neither clipped nor scaled.

    **Privacy.** The result is as sensitive as the table. With ``invalid="raise"``, a named column with a cell that is
    no finite number is refused by its name.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`read_schema`, except libsvm.
    bounds : TableBounds
        Bounds of its columns, resolved for the table; those of the named columns are provisional.
    names : sequence of str
        Columns of numbers whose bounds are to be found. The target may be one of them.
    schema : TableSchema
        The schema of this file.
    invalid : {"raise", "null"}, default="raise"
        As in :func:`read_table`.

    Returns
    -------
    X, y : ndarray
        As :func:`read_table` returns them.
    numbers : ndarray of shape (n_rows, n_names)
        The named columns, in the order of ``names``: with the stated values for missing cells, and NaN where there is
        none (``{indicator = true}``).
    """
    check_target(bounds, bounds.target.name, invalid)
    X, y, numbers = _read_dense(table_file(path, bounds.layout), schema, bounds, names, invalid)
    if invalid == "raise":
        refuse_columns(unusable_columns(names, numbers, bounds))
    return X, y, numbers


def read_person_keys(path: Path, bounds: TableBounds, *, schema: TableSchema | None = None) -> NamedKeys | None:
    """Read the keys of the persons, one for every row; None where the bounds name no column of keys.

    **Privacy.** The result is as sensitive as the table. Keys are read cell by cell and refuse no table: an empty cell
    is a missing key.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`read_schema`, except libsvm.
    bounds : TableBounds
        Public bounds of its columns.
    schema : TableSchema, default=None
        The schema of this file. None: it is read from the file.
    """
    name = bounds.person
    if name is None:
        return None
    file = table_file(path, bounds.layout)
    schema = _read_schema(file) if schema is None else schema
    check_present(name, schema)
    check_has_keys(name, schema)
    _, batches = whole_batches(file, schema, ColumnSelection({name: "text"}, {name: frozenset()}))
    return NamedKeys((key for batch in batches for key in batch.column(0).to_pylist()), name)


def read_batches(
    path: Path, encoder: TableEncoder, target: str | None = None, *, key: str | None = None
) -> Iterator[Any]:
    """Read a table in encoded blocks of rows, one of which is in memory at a time.

    The table needs the columns of the features that the encoder uses.

    Parameters
    ----------
    path : str or path-like
        The file, as in :func:`read_schema`.
    encoder : TableEncoder
        A fitted encoder, which decides what becomes of cells that cannot be used.
    target : str, default=None
        The column to predict. None: it is not read.
    key : str, default=None
        A column that is handed on as text.

    Yields
    ------
    X, or X and y
        As :func:`read_table` returns them, for some of the rows.
    keys : list of str
        With a key: beside X, or X and y; empty where the cell is missing.
    """
    bounds, invalid = encoder.bounds_, encoder.invalid
    if target is not None:
        check_target(bounds, target, invalid)
    file = table_file(path, bounds.layout)
    with_target = target is not None
    if file.format == "libsvm":
        if key is not None:
            raise refusal("key", key, "a table with named columns", "leave it out: a libsvm file has no other columns")
        pairs = _libsvm_pairs(file, bounds, with_target=with_target, invalid=invalid)
        blocks: Iterator[tuple[Any, Any, list[str] | None]] = ((*pair, None) for pair in pairs)
    else:
        blocks = _arrow_blocks(file, encoder, with_target=with_target, key=key)
    empty = True
    for X, y, keys in blocks:
        empty = False
        found = (X, *((y,) if with_target else ()), *((keys,) if key is not None else ()))
        yield found if len(found) > 1 else X
    if empty:
        raise DataError(no_rows(file.name))


def files_schema(files: tuple[TableFile, ...]) -> TableSchema:
    """The schema of one file, or of the files of a folder."""
    return folder_schema(files) if len(files) > 1 else _read_schema(files[0])


def _read_schema(file: TableFile) -> TableSchema:
    return libsvm_schema(file) if file.format == "libsvm" else arrow_schema(file)


def check_target(bounds: TableBounds, target: str, invalid: str = "raise") -> None:
    """Raise if the target is not the one of the bounds, or has no stated classes where ``invalid`` needs them."""
    if target != bounds.target.name:
        raise refusal(
            "target",
            target,
            f"the column that [target] of the bounds describes, {bounds.target.name!r}",
            "name that one, or describe the other in the bounds",
        )
    check_choice(("raise", "null"), invalid=invalid)
    if invalid == "null" and bounds.target.task == "classify" and bounds.target.classes is None:
        # Classes that are read from the table would depend on a record that is to be judged by them.
        raise refusal("invalid", invalid, "stated classes of the target", "list the classes in the bounds file")


def check_present(name: str, schema: TableSchema) -> None:
    """Raise if a table does not have this column."""
    if name not in schema.names:
        raise DataError(missing_column(name, schema))


def unusable_columns(names: Sequence[str], numbers: FloatArray, bounds: TableBounds) -> list[str]:
    """Those of the columns, given as numbers, of which bounds are to be found and that have a cell for which none are.

    A missing cell is one unless the bounds say what stands for it.
    """
    usable = (
        ~np.isinf(column) if bounds.fill_of(name) is not None else np.isfinite(column)
        for name, column in zip(names, numbers.T, strict=True)
    )
    return [name for name, cells in zip(names, usable, strict=True) if not cells.all()]


def refuse_columns(names: Sequence[str]) -> None:
    """Raise if bounds are to be found of columns with cells that cannot be used, which are named."""
    problems = Problems()
    for name in names:
        with problems.gathering():
            raise DataError(
                f"column {quoted(name)}: expected a finite number in every row where bounds are to be found, got "
                "others; state its bounds, and what to fill in for missing values in [missing], in a bounds file."
            )
    problems.raise_all()


def check_has_keys(person: str | None, schema: TableSchema) -> None:
    """Raise if the bounds name a column of keys and the table cannot have one."""
    if person is not None and schema.sparse:
        raise refusal("person.column", person, "a table with named columns", "a libsvm file has no keys of persons")


def _zeros(n_rows: int, n_features: int) -> FloatArray:
    if 8 * n_rows * n_features <= machine_memory():
        try:
            return np.zeros((n_rows, n_features))
        except (MemoryError, ValueError):
            pass
    # Without the number of rows, which may be private.
    raise DataError(larger_than_memory("table"))


def no_rows(name: str) -> str:
    """Message about a table without a row; ``name`` is that of its file."""
    return f"{name}: expected at least one row below the header, got none; add records."


def select_columns(bounds: TableBounds, *, with_target: bool, invalid: str = "raise") -> ColumnSelection:
    """The columns that enter the model, and the target, each with the type that the bounds state."""
    # What is converted by a rule of its own is read as text.
    types = {name: "number" if _is_plain_number(column) else "text" for name, column in bounds.used}
    listed = {name: frozenset(column.categories) for name, column in bounds.used if column.type == "category"}
    if with_target:
        target = bounds.target
        types[target.name] = "as it is" if target.classes is None else "text"
        if target.task == "regress":
            types[target.name] = "number"
        listed[target.name] = frozenset(map(str, target.classes or ()))
    return ColumnSelection(types, listed, invalid)


def _is_plain_number(column: Column) -> bool:
    return column.type == "number" and not column.censored


def _read_dense(
    file: TableFile, schema: TableSchema, bounds: TableBounds, names: Sequence[str], invalid: str
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Features, targets, and the named columns as they are, in one pass over the file.

    A table that is refused is read again, to tell everything that is wrong with its columns.
    """
    check_present(bounds.target.name, schema)
    try:
        return _read_once(file, schema, bounds, names, invalid)
    except DataError as error:
        refused = error
    raise_problems((file,), schema, bounds, invalid=invalid)
    raise refused


def raise_problems(
    files: Sequence[TableFile],
    schema: TableSchema,
    bounds: TableBounds,
    *,
    invalid: str = "raise",
    with_target: bool = True,
) -> None:
    """Read a table that was refused again, and raise everything that is wrong with the columns of the first such file.

    Nothing is raised where the columns are not the matter.
    """
    selection = select_columns(bounds, with_target=with_target, invalid="null")
    for file in () if schema.sparse else files:
        raise_file_problems(file, schema, bounds, selection, strict=invalid == "raise")


def _read_once(
    file: TableFile, schema: TableSchema, bounds: TableBounds, names: Sequence[str], invalid: str
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    target = bounds.target
    encoding = Encoding(bounds, invalid=invalid)
    to_target = target_reader(target, bounds.missing.get(target.name), invalid=invalid)
    n_rows, batches = whole_batches(file, schema, select_columns(bounds, with_target=True, invalid=invalid))
    if n_rows == 0:
        raise DataError(no_rows(file.name))
    X, numbers = _zeros(n_rows, encoding.n_features), _zeros(n_rows, len(names))
    targets = []
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        if stop > n_rows:
            break
        *columns, values = batch.columns
        encoding.fill(columns, X[start:stop])
        targets.append(to_target(values))
        for at, name in enumerate(names):
            if name == target.name:
                numbers[start:stop, at] = target_numbers(target, bounds.missing.get(name), values)
            else:
                numbers[start:stop, at] = encoding.numbers(name, batch.column(name))
        start = stop
    if start != n_rows:
        raise DataError(f"{file.name}: expected the number of rows that the file states, got another; write it again.")
    return X, np.concatenate(targets), numbers


def _arrow_blocks(
    file: TableFile, encoder: TableEncoder, *, with_target: bool, key: str | None
) -> Iterator[tuple[Any, Any, list[str] | None]]:
    schema, bounds, invalid = _read_schema(file), encoder.bounds_, encoder.invalid
    n_features, places = len(bounds.feature_names), None
    if encoder.used_ is not None:
        bounds, places = bounds.of_features(encoder.used_)
    bounds.for_table(schema)
    target = bounds.target
    for name in ((target.name,) if with_target else ()) + ((key,) if key is not None else ()):
        check_present(name, schema)
    encoding = Encoding(bounds, invalid=invalid)
    to_target = target_reader(target, bounds.missing.get(target.name), invalid=invalid)
    selection = select_columns(bounds, with_target=with_target, invalid=invalid)
    if key is not None and key not in selection.types:
        from pyarrow import csv

        # Handed on as it is, also where it looks like a missing cell.
        every = {key: frozenset(csv.ConvertOptions().null_values)}
        selection = replace(selection, types={**selection.types, key: "text"}, listed={**selection.listed, **every})
    try:
        for batch in stream_batches(file, schema, selection):
            if batch.num_rows:
                y = to_target(batch.column(target.name)) if with_target else None
                X = np.zeros((batch.num_rows, encoding.n_features))
                encoding.fill([batch.column(name) for name in bounds.order or ()], X)
                keys = None if key is None else [_key_text(cell) for cell in batch.column(key).to_pylist()]
                yield X if places is None else widened(X, places, n_features), y, keys
        return
    except DataError as error:
        refused = error
    raise_problems((file,), schema, bounds, invalid=invalid, with_target=with_target)
    raise refused


def _key_text(cell: Any) -> str:
    """The text of a cell; a column of numbers that enters the model was read as doubles."""
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _read_libsvm(file: TableFile, bounds: TableBounds, invalid: str) -> tuple[Any, NDArray[Any]]:
    if bounds.order is None:
        bounds = bounds.for_table(libsvm_schema(file))
    pairs = list(_libsvm_pairs(file, bounds, with_target=True, invalid=invalid))
    if not pairs:
        raise DataError(no_rows(file.name))
    return sp.vstack([X for X, _ in pairs], format="csr"), np.concatenate([y for _, y in pairs])


def _libsvm_pairs(
    file: TableFile, bounds: TableBounds, *, with_target: bool, invalid: str
) -> Iterator[tuple[Any, Any]]:
    target = bounds.target
    if with_target:
        check_present(target.name, TableSchema((LABEL,), ("number",), sparse=True))
    encoding = SparseEncoding(bounds, invalid=invalid)
    fill = bounds.missing.get(target.name)
    for rows, labels in libsvm_blocks(file):
        y = numeric_target(target, fill, labels, invalid=invalid) if with_target else None
        yield encoding.encode(rows), y
