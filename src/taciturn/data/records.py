"""Records as a fit reads them: which cells are admitted, and how sparse rows are laid out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import DataError, SeveralProblemsError, visible
from taciturn.core.guard import warn_caller
from taciturn.core.validation import (
    DIFFERENT_LENGTHS,
    NO_COLUMNS,
    NO_RECORDS,
    NOT_FINITE,
    NOT_NUMBERS,
    NOT_ONE_COLUMN,
    NOT_REAL,
    NOT_TWO_DIMENSIONS,
    AnyArray,
    BoolArray,
    FloatArray,
    IndexArray,
    check_choice,
    without_data_values,
)
from taciturn.data.persons import PersonKeys
from taciturn.kernels.gradients import exact_logarithm

# ---- Sparse tables before anything reads them: places inside the table, one entry per cell, no stored zeros.
# scipy builds a matrix from three arrays and trusts them ever after. Compiled loops, its own included, then read and
# write memory at whatever places these arrays name.

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


# ---- Which records of a table are usable, each judged by itself against a public schema: numbers, and a target.
# A record with a cell that is no finite number, or without a usable target, is a *null record*: it keeps its slot in
# the public count and is absent from every statistic. No type is inferred from a column, where one cell would decide
# how all others are read.


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a table that are not null.

    ``X``, finite, and ``y`` are their features and targets. ``slots`` are their rows in the table, in increasing order;
    of rows of persons, the slots of these. ``n_slots`` counts the rows of the table, null records included, or the
    persons, null persons included: it is public, except under add-remove. ``persons``: a record is a person, whose rows
    lie together and share a slot. ``weight`` are numbers in [0, 1] by which their terms count, ``offset`` what is added
    to their margins, at most 0; None: ones and zeros.
    """

    X: Any
    y: Any
    slots: IndexArray
    n_slots: int
    persons: bool = False
    weight: FloatArray | None = None
    offset: FloatArray | None = None

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

    def keep(self, present: BoolArray) -> Records:
        """Some of the records; the others become null."""
        if present.all():
            return self
        return self._take(np.flatnonzero(present), self.slots, self.n_slots, self.persons)

    def _take(self, places: IndexArray, slots: IndexArray, n_slots: int, persons: bool) -> Records:
        """Some of the rows by their places, each in its slot of ``slots``."""
        y, weight, offset = (None if each is None else each[places] for each in (self.y, self.weight, self.offset))
        return Records(self.X[places], y, slots[places], n_slots, persons, weight, offset)

    def of_persons(self, keys: PersonKeys) -> Records:
        """The same rows, those of each person together and in their order; rows without a key become null."""
        return self._take(keys.order(self.slots), keys.slots[self.slots], keys.n_persons, True)

    def measured(self, outcomes: Outcomes, measures: Measures, *, invalid: str) -> Records:
        """The same with the weights and exposures of the rows of the table; rows without a usable one become null."""
        n_rows = self.n_slots
        weight = measures.read_weights(outcomes.weight, n_rows, invalid=invalid)
        exposure = measures.read_exposures(outcomes.exposure, n_rows, invalid=invalid)
        known = np.ones(n_rows, dtype=bool)
        offset = None
        for each in (weight, exposure):
            known &= True if each is None else np.isfinite(each)
        if exposure is not None:
            # An exposure of zero adds nothing, whatever was counted.
            observed = exposure > 0.0
            weight = np.where(observed, 1.0 if weight is None else weight, 0.0)
            offset = exact_logarithm(np.where(observed & known, exposure, 1.0))
        found = replace(
            self,
            weight=None if weight is None else np.nan_to_num(weight)[self.slots],
            offset=None if offset is None else offset[self.slots],
        )
        return found.keep(known[self.slots])


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Targets of some rows with their weights and exposures: what a reader gives in the place of targets alone."""

    y: Any
    weight: Any = None
    exposure: Any = None

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def of(cls, y: Any) -> Outcomes:
        """Targets with whatever a reader gave beside them."""
        return y if isinstance(y, cls) else cls(y)

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Outcomes:
        """Those of some rows after one another."""
        columns = zip(*((each.y, each.weight, each.exposure) for each in parts), strict=True)
        return cls(*(None if column[0] is None else np.concatenate(column) for column in columns))

    @property
    def given(self) -> dict[str, Any]:
        """Weights and exposures by the names that ``fit`` has for them, where there are any."""
        given = {"sample_weight": self.weight, "exposure": self.exposure}
        return {name: values for name, values in given.items() if values is not None}


@dataclass(frozen=True, slots=True)
class Measures:
    """Public upper bounds on the weights and on the exposures of records; None for records that have none."""

    weight_bound: float | None = None
    exposure_bound: float | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a certificate has to assume."""
        found = []
        if self.weight_bound is not None:
            found.append(WEIGHTS_OF_RECORDS)
        if self.exposure_bound is not None:
            found.append("the exposure of a record is a function of that record alone; above the bound it is trimmed")
        return tuple(found)

    def read_weights(self, weight: Any, n_rows: int, *, invalid: str) -> FloatArray | None:
        """Weights over their bound, trimmed to [0, 1], NaN where there is none that can be used."""
        return (
            None if self.weight_bound is None else _shares("sample_weight", weight, n_rows, self.weight_bound, invalid)
        )

    def read_exposures(self, exposure: Any, n_rows: int, *, invalid: str) -> FloatArray | None:
        """The same for exposures."""
        bound = self.exposure_bound
        return None if bound is None else _shares("exposure", exposure, n_rows, bound, invalid)


WEIGHTS_OF_RECORDS = (
    "the weight of a record is a function of that record and of public facts alone, and not raked, calibrated, "
    "normalised or estimated from other records; weights above the bound are trimmed to it"
)
"""An assumption wherever records have weights."""


def _shares(name: str, values: Any, n_rows: int, bound: float, invalid: str) -> FloatArray:
    found = without_data_values(name, lambda: judged_numbers(values))
    if found.shape != (n_rows,):
        raise DataError(f"{name}: expected one number per row of X, got something else; pass a list as long as y.")
    usable = np.isfinite(found) & (found >= 0.0)
    if invalid == "raise" and not usable.all():
        raise DataError(
            f"{name}: expected finite numbers of at least zero, got others; correct them, or use invalid='null'."
        )
    return np.where(usable, np.minimum(found, bound) / bound, np.nan)


def judged_table(X: Any) -> Any:
    """Doubles with NaN in place of every cell that is no finite number; DataError if it is no table at all."""
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
    """Names of a data frame's columns with text or objects, and with missing or infinite cells; none without names."""
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


# ---- The one door through which every table enters: checked, finite, in one layout.

LAYOUTS = ("csr", "csc")
"""Layouts in which sparse tables reach solvers."""

ADMISSIBLE = (
    "every record is admissible: its cells are finite numbers, and its target, if there is one, can be used; a table "
    "with any other record is refused, and the refusal tells of it"
)
"""What the guarantee of a fit with ``invalid="raise"`` rests on."""

_DENSE_REQUIRED = "X: Sparse data was passed, but dense data is required; use toarray() to make it dense."

PUBLIC_LABELS = "the set of labels is public"
"""An assumption wherever labels are taken from the target: one record could change their set."""


def check_invalid(invalid: object) -> str:
    """What becomes of records that are not admissible."""
    return check_choice(("raise", "null"), invalid=invalid)


def admission_assumptions(invalid: str) -> tuple[str, ...]:
    """For the certificate: nothing has to be assumed of records where those that are not admissible are null."""
    return () if invalid == "null" else (ADMISSIBLE,)


def table_shape(X: Any) -> tuple[int, int]:
    """The numbers of rows and columns, from the container alone: no cell is looked at."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        shape = np.asarray(X, dtype=object).shape
    if len(shape) != 2:
        raise DataError(f"X: {NOT_TWO_DIMENSIONS}.")
    if shape[1] == 0:
        raise DataError(f"X: {NO_COLUMNS}.")
    return int(shape[0]), int(shape[1])


def count_rows(values: Any) -> int | None:
    """The number of rows of a table or target, from the container alone; None where it does not tell."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    return len(values) if hasattr(values, "__len__") else None


def check_lengths(X: Any, y: Any) -> None:
    """Raise where there is not one target per row, from the containers alone: no cell is looked at."""
    # What is no table at all is refused when it is read.
    n_rows, n_targets = None if len(getattr(X, "shape", (0, 0))) != 2 else count_rows(X), count_rows(y)
    if n_rows is not None and n_targets is not None and n_rows != n_targets:
        raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")


def has_truth_values(y: Any, *, invalid: str) -> bool:
    """Whether a target holds truth values, on the assumption that this is public.

    The type of its column tells. Where every record is admissible, so do the values of a column without a type.
    """
    if declares_truth_values(y):
        return True
    if invalid == "null" or y is None:
        return False
    values = without_data_values("y", lambda: np.asarray(y))
    return values.dtype.kind == "b" or (
        values.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in values.ravel())
    )


def public_labels(y: Any) -> AnyArray:
    """The distinct labels of a target, sorted, on the assumption that their set is public."""

    def distinct() -> AnyArray:
        # Whether a label is missing is not public. The target is refused for that when it is read, if at all.
        labels, known = judged_labels(y)
        _check_one_column(labels)
        _check_rows(y)
        plain = plain_labels(labels[known], with_text=isinstance(y, list | tuple))
        if len({isinstance(label, str) for label in plain.tolist()}) > 1:
            raise DataError(
                "y: expected labels that are all text or all numbers, got both; pass the public labels as "
                "classes=(...), and a record with another label is a null record."
            )
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(plain)
        return np.unique(plain)

    if y is None:
        raise DataError("y: a classifier requires y to be passed, but the target y is None.")
    found = without_data_values("y", distinct)
    if found.size < 2:
        raise DataError(
            "y: expected at least two classes, got one class; pass the public labels as classes=(...) if the "
            "others merely did not occur."
        )
    return found


def read_table(estimator: Any, X: Any, *, reset: bool, layouts: Any = LAYOUTS) -> Any:
    """A table of finite doubles; ``reset`` for the one that the estimator is fitted to."""

    def read() -> Any:
        from sklearn.utils.validation import validate_data

        # scikit-learn looks for cells that are not finite by their sum, which large cells of both signs overflow.
        with np.errstate(invalid="ignore", over="ignore"):
            return validate_data(estimator, checked_layout(X), reset=reset, accept_sparse=layouts, dtype=np.float64)

    return _canonical(_naming_columns(X, read))


def read_scaled(scaler: Any, X: Any, *, layouts: Any = LAYOUTS) -> Any:
    """A table of doubles that need not have the names of the one that the scaler was fitted to."""

    def read() -> Any:
        if scaler.invalid == "null":
            return checked_shape(judged_table(X), layouts)
        from sklearn.utils.validation import check_array

        return check_array(checked_layout(X), accept_sparse=layouts, dtype=np.float64, input_name="X", estimator=scaler)

    table = _naming_columns(X, read)
    return table if scaler.invalid == "null" else _canonical(table)


def read_judged_table(estimator: Any, X: Any, *, reset: bool, layouts: Any = LAYOUTS) -> Any:
    """A table of doubles with NaN in place of every cell that is no finite number."""

    def read() -> Any:
        from sklearn.utils.validation import validate_data

        table = checked_shape(judged_table(X), layouts)
        # Names and the number of columns, which are public.
        validate_data(estimator, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)
        return table

    return without_data_values("X", read)


def names_of_columns(X: Any) -> Any:
    """The names of the columns of a data frame, as scikit-learn reads them; None for a table without names."""
    from sklearn.utils.validation import _get_feature_names

    return _get_feature_names(X)


def checked_shape(table: Any, layouts: Any = LAYOUTS) -> Any:
    """The table, if it is one: what no record decides."""
    if table.ndim != 2:
        raise DataError(f"X: {NOT_TWO_DIMENSIONS}.")
    if table.shape[1] == 0:
        raise DataError(f"X: {NO_COLUMNS}.")
    if sp.issparse(table) and not layouts:
        raise DataError(_DENSE_REQUIRED)
    return table


def read_records(estimator: Any, X: Any, y: Any, *, invalid: str, numeric: bool, empty: bool = False) -> Records:
    """The records to fit to, with targets that are numbers (``numeric``) or whatever labels they are.

    The estimator learns the names and the number of the columns. ``invalid`` says whether a record that is not
    admissible is refused, or null. With ``empty`` a table without any record is admissible where no record is refused,
    because the number of records is private.
    """
    read = read_table if invalid == "raise" else read_judged_table
    table = read(estimator, X, reset=True)
    if y is None:
        raise DataError(f"y: {type(estimator).__name__} requires y to be passed, but the target y is None.")
    if table.shape[0] == 0 and not empty:
        raise DataError(f"X: {NO_RECORDS}.")
    return _admitted(table, y, invalid=invalid, numeric=numeric)


def read_part(X: Any, y: Any, *, invalid: str, numeric: bool, layouts: Any = LAYOUTS, gaps: bool = False) -> Records:
    """The records among some rows of a table, with numbers or labels for targets, each judged as in the whole table.

    ``y=None`` is for tables without a target, whose records get zeros. There may be no rows, and no columns. With
    ``gaps`` a record that ``invalid="null"`` would leave out for a cell stays, with NaN in its place.
    """

    def read() -> Any:
        if invalid == "null":
            return judged_table(X)
        part, rules = checked_layout(X), {"ensure_min_samples": 0, "ensure_min_features": 0}
        from sklearn.utils.validation import check_array

        return check_array(part, accept_sparse=layouts, dtype=np.float64, input_name="X", **rules)

    table = _naming_columns(X, read)
    if sp.issparse(table) and not layouts:
        raise DataError(_DENSE_REQUIRED)
    if invalid == "raise":
        table = _canonical(table)
    target = np.zeros(table.shape[0]) if y is None else y
    return _admitted(table, target, invalid=invalid, numeric=numeric, gaps=gaps)


def _admitted(table: Any, y: Any, *, invalid: str, numeric: bool, gaps: bool = False) -> Records:
    """The records of a table that is read, with their targets."""
    target, known = read_target(y, invalid=invalid, numeric=numeric)
    n_rows = table.shape[0]
    if target.size != n_rows:
        raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
    present = known if gaps or invalid == "raise" else known & finite_rows(table)
    return Records(table, target, np.arange(n_rows), n_rows).keep(present)


def read_target(y: Any, *, invalid: str, numeric: bool) -> tuple[Any, Any]:
    """Targets in one column, each read by itself, and which of them can be used: with ``invalid="raise"`` all."""

    def read() -> tuple[Any, Any]:
        if numeric:
            found = judged_numbers(y)
            return found, np.isfinite(found)
        return judged_labels(y)

    target, known = without_data_values("y", read)
    _check_one_column(target)
    if invalid == "raise":
        _check_rows(y)
    if invalid == "raise" and not known.all():
        # What is there but is no number, where numbers are expected.
        is_text = numeric and bool((judged_labels(y)[1] & ~known).any())
        raise DataError(f"y: {NOT_NUMBERS if is_text else NOT_FINITE}.")
    if target.ndim == 2:
        from sklearn.exceptions import DataConversionWarning

        warn_caller("A column-vector y was passed when a 1d array was expected; pass y.ravel().", DataConversionWarning)
    return target.ravel(), known.ravel()


def _check_one_column(target: AnyArray) -> None:
    """Raise unless there is one target per row, from the shape alone."""
    if target.ndim != 1 and not (target.ndim == 2 and target.shape[1] == 1):
        raise DataError(f"y: {NOT_ONE_COLUMN}.")


def _check_rows(y: Any) -> None:
    """Raise if a list of targets has a row of several. Elsewhere its record is null, as for any other odd target."""
    rows = (cell for cell in y if isinstance(cell, list | tuple | np.ndarray)) if isinstance(y, list | tuple) else ()
    if any((row.size if isinstance(row, np.ndarray) else len(row)) != 1 for row in rows):
        raise DataError(f"y: {NOT_ONE_COLUMN}.")


def _naming_columns(X: Any, read: Callable[[], Any]) -> Any:
    """The table that is read; where cells of a data frame refuse it, the refusal names their columns, all at once.

    A certificate assumes that every record is admissible where this may happen, see :data:`ADMISSIBLE`.
    """
    try:
        return without_data_values("X", read)
    except DataError as error:
        refusal = error
    if str(refusal) in (f"X: {NOT_FINITE}.", f"X: {NOT_NUMBERS}."):
        columns = without_data_values("X", lambda: unusable_columns(X))
        problems = [
            type(refusal)(f"X: {sentence.replace('numbers,', f'numbers in {_list_names(names)},', 1)}.")
            for sentence, names in zip((NOT_NUMBERS, NOT_FINITE), columns, strict=True)
            if names
        ]
        if len(problems) > 1:
            raise SeveralProblemsError(problems)
        refusal = problems[0] if problems else refusal
    raise refusal


def _list_names(names: list[str]) -> str:
    """Names of columns as an error lists them: the first ten."""
    listed = ", ".join(visible(repr(name)) for name in names[:10])
    more = f" and {len(names) - 10} others" if len(names) > 10 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{more}"


def _canonical(X: Any) -> Any:
    if not sp.issparse(X):
        return X
    X = canonical_layout(X)
    # A sum of finite entries of one cell may be infinite.
    if not np.isfinite(X.data).all():
        raise DataError(f"X: {NOT_FINITE}.")
    return X
