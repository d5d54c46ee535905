"""Encode a table with named columns as the matrix of features that a model takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taciturn.core.arrays import BoolArray
from taciturn.core.errors import DataError, DataTypeError
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.diagnosis import raise_column_problems
from taciturn.tables.encoding import Encoding, widened
from taciturn.tables.schema import TableSchema, kind_of
from taciturn.tables.words import quoted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableEncoder"]

# Rows that are encoded at a time: the columns of a block fit into the processor's cache.
_ROWS = 1 << 13
# Number of rows from which the kinds of the columns of a pandas table are inferred.
_FIRST_ROWS = 1000


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table by public facts about them.

    Numbers are clipped to their bounds and mapped linearly to [-1, 1], as by :class:`taciturn.BoundedScaler`, and so
    are dates, as days since a public day. Truth values become 0 and 1. A column of categories becomes one 0/1 feature
    per listed category; an unlisted category gives zeros. Text that the bounds give a rule for (dates, "<5", decimal
    commas, yes and no) is read by it, cell by cell. What is wrong with a table is told of all columns at once.

    **Privacy.** Costs nothing: no fitted attribute depends on a value of the table, only on the names and types of its
    columns, and each record is encoded by itself. Values beyond the bounds and unlisted categories cause no warning,
    since their number would be a release.

    Parameters
    ----------
    bounds : TableBounds
        Public bounds of the columns.

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

    def __init__(self, *, bounds: TableBounds) -> None:
        self.bounds = bounds

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Check the bounds against the names of the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table or RecordBatch, or TableSchema
            Only names and types are used.
        y : None
            Ignored.
        """
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
            Doubles in [-1, 1].
        """
        check_is_fitted(self)
        bounds, places = self.bounds_, None
        if self.used_ is not None:
            bounds, places = bounds.of_features(self.used_)
        encoding = Encoding(bounds)
        table = _arrow_table(X, bounds.order or ())
        out = np.zeros((table.num_rows, encoding.n_features))
        start = 0
        try:
            for batch in table.to_batches(max_chunksize=_ROWS):
                stop = start + batch.num_rows
                encoding.fill(batch.columns, out[start:stop])
                start = stop
            return out if places is None else widened(out, places, len(self.bounds_.feature_names))
        except DataError as error:
            refused = error
        raise_column_problems(bounds, (batch.columns for batch in table.to_batches(max_chunksize=_ROWS)))
        raise refused

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
    """Names and kinds of the columns of a table in memory."""
    if isinstance(X, TableSchema):
        return X
    if _is_pandas(X):
        first = X.head(_FIRST_ROWS)
        kinds = (_pandas_kind(first.iloc[:, i]) for i in range(X.shape[1]))
        return TableSchema(tuple(map(str, X.columns)), tuple(kinds))
    schema = _as_arrow(X).schema
    return TableSchema(tuple(schema.names), tuple(map(kind_of, schema.types)))


def _arrow_table(X: Any, names: tuple[str, ...]) -> pa.Table:
    """The named columns of a table in memory, in that order."""
    pa = _pyarrow()
    if not _is_pandas(X):
        table = _as_arrow(X)
        schema = TableSchema(tuple(table.schema.names), ("unknown",) * len(table.schema.names))
        _check_present(names, schema)
        return table.select(list(names))
    given = tuple(map(str, X.columns))
    schema = TableSchema(given, ("unknown",) * len(given))
    _check_present(names, schema)
    places = {name: i for i, name in enumerate(given)}
    return pa.table({name: _pandas_column(name, X.iloc[:, places[name]]) for name in names})


def _check_present(names: tuple[str, ...], schema: TableSchema) -> None:
    present = set(schema.names)
    for name in names:
        if name not in present:
            raise DataError(missing_column(name, schema))


def _as_arrow(X: Any) -> Any:
    pa = _pyarrow()
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if not hasattr(X, "__arrow_c_stream__"):
        raise DataTypeError(
            "X: expected a table with named columns, got something else; pass a DataFrame of pandas or polars or a "
            "pyarrow Table."
        )
    return pa.table(X)


def _pandas_kind(column: Any) -> str:
    try:
        return kind_of(_pandas_column("", column).type)
    except DataError:
        return "unknown"


def _pandas_column(name: str, column: Any) -> Any:
    """One column as Arrow, with NaN as a gap."""
    pa = _pyarrow()
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    # Outside the handler: what Arrow says quotes a value.
    raise DataError(
        f"column {quoted(name)}: expected values of one type, got several; make them all numbers or all text."
    )
