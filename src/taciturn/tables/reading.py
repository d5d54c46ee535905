"""Tables read whole or in blocks, and the encoder for data frames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError, DataTypeError
from taciturn.core.guard import Guarded
from taciturn.core.sklearn_base import BaseEstimator, TransformerMixin, check_is_fitted
from taciturn.core.validation import BoolArray, FloatArray, Invalid, check_choice
from taciturn.data.persons import NamedKeys
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.cells import Cells, Encoding, widened
from taciturn.tables.columns import LABEL, PUBLIC_COLUMNS, STATED_TERMS, TableLayout, TableSchema, kind_of, refusal
from taciturn.tables.formats import ColumnSelection, table_file, table_files
from taciturn.tables.partitions import (
    DensePart,
    SparsePart,
    check_has_keys,
    check_present,
    check_target,
    file_batches,
    files_schema,
    no_rows,
    open_partitions,
    raise_column_problems,
    raise_problems,
    select_columns,
)

# ---- Tables on disk as encoded features: whole for a fit, in blocks for predictions.

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
    with open_partitions(path, bounds, schema=schema, invalid=invalid, in_memory=True, with_keys=False) as table:
        X, y, _ = table.read_all(release=True)
    return X, y


def read_unbounded_table(
    path: Path, bounds: TableBounds, names: Sequence[str], schema: TableSchema, *, invalid: str = "raise"
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Read a whole table as :func:`read_table` does, and some columns of numbers neither clipped nor scaled.

    **Privacy.** The result is as sensitive as the table. With ``invalid="raise"``, a named column with a cell that is
    no finite number is refused by its name.

    Parameters
    ----------
    path, schema, invalid
        As in :func:`read_table`, except libsvm.
    bounds : TableBounds
        Bounds of its columns, resolved for the table; those of the named columns are provisional.
    names : sequence of str
        Columns of numbers whose bounds are to be found. The target may be one of them.

    Returns
    -------
    X, y, numbers : ndarray
        X and y as :func:`read_table` returns them, and the named columns, in the order of ``names``: with the stated
        values for missing cells, and NaN where there is none (``{indicator = true}``).
    """
    check_target(bounds, bounds.target.name, invalid)
    with open_partitions(path, bounds, schema=schema, invalid=invalid, in_memory=True, with_keys=False) as table:
        X, y, _ = table.read_all()
        return X, y, np.vstack([table.read_numbers(index, names) for index in range(table.offsets.size)])


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
    files = table_files(path, bounds.layout)
    schema = files_schema(files) if schema is None else schema
    check_present(name, schema)
    check_has_keys(bounds, schema)
    batches = file_batches(files, schema, ColumnSelection({name: "text"}, {name: frozenset()}))
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
    bounds = replace(encoder.bounds_, person=None, weight=None, exposure=None)
    invalid, with_target = encoder.invalid, target is not None
    if target is not None:
        check_target(bounds, target, invalid)
    file, n_features, places = table_file(path, bounds.layout), len(bounds.feature_names), None
    part: DensePart | SparsePart
    if file.format == "libsvm":
        if key is not None:
            raise refusal("key", key, "a table with named columns", "leave it out: a libsvm file has no other columns")
        schema = TableSchema((LABEL,), ("number",), sparse=True)
    else:
        schema = files_schema((file,))
        if encoder.used_ is not None:
            bounds, places = bounds.of_features(encoder.used_)
        bounds.for_table(schema)
    for name in ((bounds.target.name,) if with_target else ()) + ((key,) if key is not None else ()):
        check_present(name, schema)
    selection = select_columns(bounds, with_target=with_target, invalid=invalid)
    if schema.sparse:
        part = SparsePart(bounds, None, invalid, with_target=with_target)
    else:
        part = DensePart(bounds, None, invalid, with_target=with_target)
    if key is not None and key not in selection.types:
        from pyarrow import csv

        # Handed on as it is, also where it looks like a missing cell.
        every = {key: frozenset(csv.ConvertOptions().null_values)}
        selection = replace(selection, types={**selection.types, key: "text"}, listed={**selection.listed, **every})
    empty, refused = True, None
    try:
        for batch in file_batches((file,), schema, selection):
            if batch.num_rows:
                X, y, _ = part.encode([batch])
                found = [X if places is None else widened(X, places, n_features), *((y,) if with_target else ())]
                if key is not None:
                    found.append([_key_text(cell) for cell in batch.column(key).to_pylist()])
                empty = False
                yield tuple(found) if len(found) > 1 else found[0]
    except DataError as error:
        refused = error
    if refused is not None:
        raise_problems((file,), schema, bounds, invalid=invalid, with_target=with_target)
        raise refused
    if empty:
        raise DataError(no_rows(file.name))


def _key_text(cell: Any) -> str:
    """The text of a cell; a column of numbers that enters the model was read as doubles."""
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


# ---- Encode a table with named columns as the matrix of features that a model takes.

# Rows that are encoded at a time: the columns of a block fit into the processor's cache.
_ROWS = 1 << 13

_STATED = "the bounds were chosen without looking at these data"
_READABLE = (
    "every cell of the table can be read as its column is stated, or is missing where the bounds say what to fill in; "
    "a table with any other cell is refused, and the refusal tells of it"
)


class TableEncoder(Guarded, TransformerMixin, BaseEstimator):
    """Encode the columns of a table by public facts about them.

    Numbers are clipped to their bounds and mapped linearly to [-1, 1], as by :class:`taciturn.BoundedScaler`, and so
    are dates, as days since a public day. Truth values become 0 and 1. A column of categories becomes one 0/1 feature
    per listed category; an unlisted category gives zeros. Text that the bounds give a rule for (dates, "<5", decimal
    commas, yes and no) is read by it, cell by cell. What is wrong with a table is told of all columns at once.

    **Privacy.** Costs nothing: no fitted attribute depends on a value of the table, only on the names and types of its
    columns, and each record is encoded by itself. The types are those that the table declares. Columns without one,
    such as those of objects in pandas, are read cell by cell as the bounds state, whatever their other cells are.
    Values beyond the bounds and unlisted categories cause no warning, since their number would be a release. With
    ``invalid="raise"`` one cell that cannot be read refuses the table; the certificate of a pipeline states the
    assumption that there is none (:func:`~taciturn.privacy.pipeline.certificate_of`).

    Parameters
    ----------
    bounds : TableBounds
        Public bounds of the columns.
    invalid : {"raise", "null"}, default="raise"
        What becomes of a cell that is missing without a stated value to fill in, or that is no value of its column.
        "raise" refuses the table, which tells of the record. "null" leaves NaN among the features of its record, so
        that an estimator with the same setting makes it a null record.

    Attributes
    ----------
    bounds_ : TableBounds
        The same bounds, resolved for the table (:meth:`TableBounds.for_table`).
    n_features_in_ : int
        Number of columns that enter the model.
    feature_names_in_ : ndarray of str
        Names of these columns. ``get_feature_names_out`` returns the names of the features.
    used_ : ndarray of bool, or None
        The features that a model uses: tables need the columns of these alone, and other features are 0. None after
        :meth:`fit`: all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from taciturn.tables import TableBounds, TableEncoder
    >>> bounds = TableBounds.from_toml('''
    ... target = {name = "ill", classes = ["no", "yes"]}
    ... [columns]
    ... age = {type = "number", lower = 0, upper = 100}
    ... region = {type = "category", categories = ["north", "south"]}
    ... ''')
    >>> table = pa.table({"age": [25, 130], "region": ["south", "elsewhere"], "ill": ["no", "no"]})
    >>> encoder = TableEncoder(bounds=bounds).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'region=north', 'region=south']
    >>> encoder.transform(table)
    array([[-0.5,  0. ,  1. ],
           [ 1. ,  0. ,  0. ]])
    """

    def __init__(self, *, bounds: TableBounds, invalid: Invalid = "raise") -> None:
        self.bounds = bounds
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Check the bounds against the names of the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table or RecordBatch, or TableSchema
            Only names and types are used.
        y : None
            Ignored.
        """
        check_choice(("raise", "null"), invalid=self.invalid)
        if not isinstance(self.bounds, TableBounds):
            raise DataTypeError("bounds: expected a TableBounds, got something else; read them with from_toml.")
        self.bounds_ = self.bounds.for_table(_schema_of(X)).require_bounds()
        names = self.bounds_.order or ()
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.used_: BoolArray | None = None
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table or RecordBatch
            A table with the columns that enter the model, in any order; other columns are ignored. A model that was
            read from a file needs the columns whose coefficients are not all zero.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Doubles in [-1, 1], and NaN for cells that cannot be used with ``invalid="null"``.
        """
        check_is_fitted(self)
        bounds, places = self.bounds_, None
        if self.used_ is not None:
            bounds, places = bounds.of_features(self.used_)
        encoding = Encoding(bounds, invalid=self.invalid)
        columns = _columns_of(X, bounds.order or ())
        out = np.zeros((len(columns[0]), encoding.n_features))
        start = 0
        try:
            for block in _blocks(columns):
                stop = start + len(block[0])
                encoding.fill(block, out[start:stop])
                start = stop
            return out if places is None else widened(out, places, len(self.bounds_.feature_names))
        except DataError as error:
            refused = error
        raise_column_problems(bounds, _blocks(columns), strict=self.invalid == "raise")
        raise refused

    def encodes_as(self, other: TableEncoder) -> bool:
        """Whether another fitted encoder gives the same features, by the bounds of both."""
        pairs = ((each.bounds_.feature_names, each.bounds_.feature_ranges) for each in (self, other))
        return len({str(pair) for pair in pairs}) == 1

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What has to be assumed of a table for the encoder to cost nothing, in words, for the certificate."""
        chosen = (STATED_TERMS,) if self.bounds.terms else ()
        return (_STATED, *chosen, PUBLIC_COLUMNS, *((_READABLE,) if self.invalid == "raise" else ()))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features, such as "age" and "region=north".

        Parameters
        ----------
        input_features : None
            Ignored: the names of the columns are known.
        """
        check_is_fitted(self)
        return np.array(self.bounds_.feature_names, dtype=object)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "TableEncoder needs pyarrow; run pip install 'taciturn[cli]'.", name="pyarrow"
        ) from None
    return pyarrow


def _is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns")


def _schema_of(X: Any) -> TableSchema:
    """Names and declared kinds of the columns of a table in memory; no cell is looked at."""
    if isinstance(X, TableSchema):
        return X
    if _is_pandas(X):
        columns = [_pandas_column(X.iloc[:0, i]) for i in range(X.shape[1])]
        kinds = ("unknown" if isinstance(column, Cells) else kind_of(column.type) for column in columns)
        return TableSchema(tuple(map(str, X.columns)), tuple(kinds))
    declared = {field.name: kind_of(field.type) for field in _as_arrow(X).schema}
    names = _names_of(X)
    return TableSchema(names, tuple(declared.get(name, "unknown") for name in names))


def _columns_of(X: Any, names: tuple[str, ...]) -> list[Any]:
    """The named columns of a table in memory, in that order: Arrow arrays, or :class:`Cells` without a type."""
    given = _names_of(X)
    schema = TableSchema(given, ("unknown",) * len(given))
    places = {name: i for i, name in enumerate(given)}
    for name in names:
        if name not in places:
            raise DataError(missing_column(name, schema))
    if _is_pandas(X):
        return [_pandas_column(X.iloc[:, places[name]]) for name in names]
    table, untyped = _as_arrow(X), _polars_objects(X)
    return [Cells(_objects(X[name])) if name in untyped else table.column(name) for name in names]


def _names_of(X: Any) -> tuple[str, ...]:
    if _is_pandas(X) or _polars_objects(X):
        return tuple(map(str, X.columns))
    return tuple(_as_arrow(X).schema.names)


def _blocks(columns: list[Any]) -> Iterator[list[Any]]:
    """The columns in blocks of rows."""
    pa = _pyarrow()
    # Nulls hold the places of cells without a type.
    typed = [pa.nulls(len(column)) if isinstance(column, Cells) else column for column in columns]
    start = 0
    for batch in pa.table(typed, names=list(map(str, range(len(columns))))).to_batches(max_chunksize=_ROWS):
        rows = slice(start, start + batch.num_rows)
        pairs = zip(columns, batch.columns, strict=True)
        yield [column[rows] if isinstance(column, Cells) else part for column, part in pairs]
        start = rows.stop


def _as_arrow(X: Any) -> Any:
    """The columns of a table that have a type."""
    pa = _pyarrow()
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if not hasattr(X, "__arrow_c_stream__"):
        raise DataTypeError(
            "X: expected a table with named columns, got something else; pass a DataFrame of pandas or polars or a "
            "pyarrow Table."
        )
    untyped = _polars_objects(X)
    return pa.table(X.drop(list(untyped)) if untyped else X)


def _polars_objects(X: Any) -> set[str]:
    """Names of the columns of Python objects of a polars table: Arrow is given their addresses."""
    if type(X).__module__.partition(".")[0] != "polars":
        return set()
    return {name for name, kind in X.schema.items() if str(kind) == "Object"}


def _pandas_column(column: Any) -> Any:
    """One column as Arrow, with NaN as a gap, where its type declares what every cell is; else its cells."""
    if _declares_type(column):
        return _pyarrow().array(column, from_pandas=True)
    if hasattr(column.dtype, "categories"):
        return Cells(_objects(column.cat.categories), column.cat.codes.to_numpy(dtype=np.intp))
    return Cells(column.to_numpy(dtype=object))


def _declares_type(column: Any) -> bool:
    """Whether Arrow has a type for every column of this pandas type, which no cell can change."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biufmM"
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow":
        return True
    # Moments with a time zone, and columns with a mask for missing values. Text of Python need not be UTF-8.
    return dtype.kind == "M" or (dtype.kind in "biuf" and hasattr(column.array, "__arrow_array__"))


def _objects(cells: Iterable[Any]) -> NDArray[Any]:
    # One by one: numpy would look into cells that are lists.
    return np.fromiter(cells, dtype=object)
