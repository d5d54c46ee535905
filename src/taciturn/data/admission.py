"""Which records of a table are usable, each judged by itself against a public schema: numbers, and a target.

A record with a cell that is no finite number, or without a usable target, is a *null record*: it keeps its slot in the
public count and is absent from every statistic. No type is inferred from a column, where one cell would decide how all
others are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import BoolArray, FloatArray, IndexArray
from taciturn.core.errors import DataError
from taciturn.core.validation import NOT_REAL
from taciturn.data.persons import PersonKeys
from taciturn.data.sparse_layout import canonical_layout, checked_layout

__all__ = [
    "PresentRecords",
    "blanked",
    "declares_truth_values",
    "finite_rows",
    "judged_labels",
    "judged_numbers",
    "judged_table",
    "plain_labels",
    "unusable_columns",
]


@dataclass(frozen=True, slots=True)
class PresentRecords:
    """The records of a table that are not null.

    Parameters
    ----------
    X : ndarray or CSR or CSC matrix of shape (n_present, n_features)
        Their features, finite.
    y : ndarray of shape (n_present,) or None
        Their targets.
    slots : ndarray of int, shape (n_present,)
        The rows that they have in the table, in increasing order; of rows of persons, the slots of these.
    n_slots : int
        Rows of the table, null records included, or persons, null persons included. Public, except under add-remove.
    persons : bool, default=False
        Whether a record is a person, whose rows lie together and share a slot.
    """

    X: Any
    y: Any
    slots: IndexArray
    n_slots: int
    persons: bool = False

    @property
    def n_features(self) -> int:
        """Columns of the table."""
        return int(self.X.shape[1])

    def columns(self, chosen: IndexArray) -> Any:
        """Some of the features; dense ones row by row in memory, since products round by layout."""
        return self.X[:, chosen] if sp.issparse(self.X) else np.ascontiguousarray(self.X[:, chosen])

    def in_slots(self, rows: Any) -> Any:
        """Something with one row per record in the rows of the table, with zeros for null records."""
        if self.slots.size == self.n_slots:
            return rows
        if sp.issparse(rows):
            entries = rows.tocoo()
            places = self.slots[entries.row], entries.col
            return type(rows)((entries.data, places), shape=(self.n_slots, rows.shape[1]))
        table = np.zeros((self.n_slots, *rows.shape[1:]))
        table[self.slots] = rows
        return table

    def keep(self, present: BoolArray) -> PresentRecords:
        """Some of the records; the others become null."""
        if present.all():
            return self
        places = np.flatnonzero(present)
        y = None if self.y is None else self.y[places]
        return PresentRecords(self.X[places], y, self.slots[places], self.n_slots, self.persons)

    def of_persons(self, keys: PersonKeys) -> PresentRecords:
        """The same rows, those of each person together and in their order; rows without a key become null."""
        order = keys.order(self.slots)
        y = None if self.y is None else self.y[order]
        return PresentRecords(self.X[order], y, keys.slots[self.slots[order]], keys.n_persons, True)


def judged_table(X: Any) -> Any:
    """A table of doubles with NaN in place of every cell that is no finite number.

    DataError if it is no table at all: that is not for one record to decide.
    """
    if sp.issparse(X):
        X = checked_layout(X)
        table = canonical_layout(_with_data(X, _numbers(X.data)))
        # A sum of parts may be infinite.
        finite = np.isfinite(table.data)
        return table if finite.all() else _with_data(table, np.where(finite, table.data, np.nan))
    columns = _columns_of(X)
    if columns is None:
        return _numbers(_cells(X))
    table = np.empty((len(columns[0]) if columns else 0, len(columns)))
    for j, column in enumerate(columns):
        table[:, j] = _numbers(_values(column))
    return table


def unusable_columns(X: Any) -> tuple[list[str], list[str]]:
    """The names of a data frame's columns with text or objects among their cells, and with missing or infinite ones.

    Both are empty for a table without names.
    """
    columns = _columns_of(X)
    names = [] if columns is None else [str(name) for name in getattr(X, "column_names", X.columns)]
    with_text, with_gaps = [], []
    for name, column in zip(names, columns or (), strict=True):
        missing = ~np.isfinite(_numbers(_values(column)))
        text = missing & judged_labels(column)[1]
        if text.any():
            with_text.append(name)
        elif missing.any():
            with_gaps.append(name)
    return with_text, with_gaps


def finite_rows(table: Any) -> BoolArray:
    """Which rows of :func:`judged_table` have no NaN."""
    if not sp.issparse(table):
        finite: BoolArray = np.isfinite(table).all(axis=1)
        return finite
    present = np.ones(table.shape[0], dtype=bool)
    missing = np.flatnonzero(~np.isfinite(table.data))
    rows = table.indices[missing] if table.format == "csc" else np.searchsorted(table.indptr, missing, "right") - 1
    present[rows] = False
    return present


def blanked(table: Any, present: BoolArray) -> Any:
    """A table of finite doubles: zeros in place of the records that are not present, which keep their rows."""
    if not sp.issparse(table):
        return np.where(present[:, None], table, 0.0)
    rows = table.indices if table.format == "csc" else np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return _with_data(table, np.where(present[rows], table.data, 0.0))


def judged_numbers(y: Any) -> FloatArray:
    """Targets as doubles, with NaN in place of every one that is no finite number."""
    return _numbers(_target_cells(y))


def judged_labels(y: Any) -> tuple[NDArray[Any], BoolArray]:
    """Labels as they are, and which of them are there: neither missing nor infinite."""
    labels = _target_cells(y)
    if labels.dtype.kind == "f":
        # Whole numbers, of which a missing one made doubles: large ones would be rounded.
        declared = _declared_type(y)
        if declared == "category" and hasattr(y, "cat"):
            distinct = y.cat.categories.tolist()
            labels = np.array([None if code < 0 else distinct[code] for code in y.cat.codes], dtype=object)
        elif declared.startswith(("int", "uint", "dictionary")) and not hasattr(y, "iloc"):
            labels = np.array(y.to_pylist() if hasattr(y, "to_pylist") else y.to_list(), dtype=object)
    if labels.dtype.kind != "O":
        return labels, np.isfinite(labels) if labels.dtype.kind == "f" else np.ones(labels.shape, dtype=bool)
    return labels, np.array([_is_label(label) for label in labels.ravel()], dtype=bool).reshape(labels.shape)


def plain_labels(labels: NDArray[Any], *, with_text: bool = False) -> NDArray[Any]:
    """Numbers and truth values that arrive as objects, in a type of their own, if all of them stay what they are.

    ``with_text`` gives text a type of its own too, as numpy does with lists; a data frame's text stays objects. Only
    for labels that are public as a set. Elsewhere one record would decide in which type the labels of others are.
    """
    if labels.dtype.kind != "O":
        return labels
    try:
        packed = np.asarray(labels.tolist())
    except ValueError:
        return labels
    kinds = "biufU" if with_text else "biuf"
    return packed if packed.dtype.kind in kinds and packed.tolist() == labels.tolist() else labels


def declares_truth_values(y: Any) -> bool:
    """Whether the column is of a boolean type, of numpy, pandas, polars or pyarrow; its values are not looked at."""
    return getattr(getattr(y, "dtype", None), "kind", None) == "b" or _declared_type(y) in ("bool", "boolean")


def _declared_type(y: Any) -> str:
    return str(getattr(y, "dtype", getattr(y, "type", None))).lower()


def _with_data(table: Any, data: FloatArray) -> Any:
    return type(table)((data, table.indices, table.indptr), shape=table.shape, copy=False)


def _columns_of(X: Any) -> list[Any] | None:
    """The columns of a data frame of pandas, polars or pyarrow; None for anything else."""
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        return [X.iloc[:, j] for j in range(X.shape[1])]
    for listed in ("get_columns", "itercolumns"):
        if hasattr(X, listed):
            return list(getattr(X, listed)())
    return None


def _values(column: Any) -> NDArray[Any]:
    """A column as an array in which every cell still is what it was."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind in ("b", "i", "u", "f") and not isinstance(column.dtype, np.dtype):
        # pandas' columns with a mask for missing values.
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return _cells(column)


def _target_cells(y: Any) -> NDArray[Any]:
    """A target as an array in which every cell still is what it was.

    A list may hold lists of one cell each. numpy would nest them only if all are, so that one record would decide.
    """
    if not isinstance(y, list | tuple):
        return _values(y)
    cells = np.empty(len(y), dtype=object)
    for place, cell in enumerate(y):
        cells[place] = _only_cell(cell) if isinstance(cell, list | tuple | np.ndarray) else cell
    return cells


def _only_cell(cells: Any) -> Any:
    """The cell of a row that has one; None, which is a missing target, for others."""
    found = np.asarray(cells, dtype=object) if isinstance(cells, np.ndarray) else cells
    if isinstance(found, np.ndarray):
        return found.item() if found.size == 1 else None
    return found[0] if len(found) == 1 and not isinstance(found[0], list | tuple | np.ndarray) else None


def _cells(X: Any) -> NDArray[Any]:
    # A list is read cell by cell: numpy would turn all numbers beside one text into text.
    array = None if isinstance(X, list | tuple) else np.asarray(X)
    if array is None:
        try:
            array = np.array(X, dtype=object)
        except ValueError:
            array = np.empty(0, dtype=object)
    return array


def _numbers(cells: NDArray[Any]) -> FloatArray:
    """Finite numbers, and NaN for everything else."""
    if cells.dtype.kind == "c":
        raise DataError(f"X or y: {NOT_REAL}.")
    if cells.dtype.kind in "biuf":
        found = cells.astype(np.float64, copy=False)
    elif cells.dtype.kind in "mM":
        # Dates are no numbers, though numpy would count nanoseconds.
        return np.full(cells.shape, np.nan)
    else:
        # One by one, as Python reads them: numpy reads a date as a number if all other cells are numbers.
        found = np.array([_number(cell) for cell in cells.astype(object).ravel()], dtype=np.float64).reshape(
            cells.shape
        )
    finite = np.isfinite(found)
    return found if finite.all() else np.where(finite, found, np.nan)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except Exception:
        return math.nan


def _is_label(label: Any) -> bool:
    try:
        # Missing values of all packages differ from themselves, or refuse to say whether they do.
        return label is not None and bool(label == label) and label not in (math.inf, -math.inf)
    except Exception:
        return False
