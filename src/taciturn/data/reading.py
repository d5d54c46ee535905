"""The one door through which every table enters: checked, finite, in one layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from taciturn.core.arrays import AnyArray
from taciturn.core.errors import DataError, SeveralProblemsError
from taciturn.core.guard import warn_caller
from taciturn.core.validation import (
    DIFFERENT_LENGTHS,
    NO_COLUMNS,
    NO_RECORDS,
    NOT_FINITE,
    NOT_NUMBERS,
    NOT_ONE_COLUMN,
    NOT_TWO_DIMENSIONS,
    check_choice,
    without_data_values,
)
from taciturn.core.visible import visible
from taciturn.data.admission import (
    PresentRecords,
    declares_truth_values,
    finite_rows,
    judged_labels,
    judged_numbers,
    judged_table,
    plain_labels,
    unusable_columns,
)
from taciturn.data.sparse_layout import canonical_layout, checked_layout

__all__ = [
    "ADMISSIBLE",
    "LAYOUTS",
    "PUBLIC_LABELS",
    "admission_assumptions",
    "check_invalid",
    "check_lengths",
    "count_rows",
    "has_truth_values",
    "public_labels",
    "read_judged_table",
    "read_part",
    "read_records",
    "read_scaled",
    "read_table",
    "read_target",
    "table_shape",
]

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
        return validate_data(estimator, checked_layout(X), reset=reset, accept_sparse=layouts, dtype=np.float64)

    return _canonical(_naming_columns(X, read))


def read_scaled(scaler: Any, X: Any, *, layouts: Any = LAYOUTS) -> Any:
    """A table of doubles that need not have the names of the one that the scaler was fitted to."""

    def read() -> Any:
        if scaler.invalid == "null":
            return checked_shape(judged_table(X), layouts)
        return check_array(checked_layout(X), accept_sparse=layouts, dtype=np.float64, input_name="X", estimator=scaler)

    table = _naming_columns(X, read)
    return table if scaler.invalid == "null" else _canonical(table)


def read_judged_table(estimator: Any, X: Any, *, reset: bool, layouts: Any = LAYOUTS) -> Any:
    """A table of doubles with NaN in place of every cell that is no finite number."""

    def read() -> Any:
        table = checked_shape(judged_table(X), layouts)
        # Names and the number of columns, which are public.
        validate_data(estimator, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)
        return table

    return without_data_values("X", read)


def checked_shape(table: Any, layouts: Any = LAYOUTS) -> Any:
    """The table, if it is one: what no record decides."""
    if table.ndim != 2:
        raise DataError(f"X: {NOT_TWO_DIMENSIONS}.")
    if table.shape[1] == 0:
        raise DataError(f"X: {NO_COLUMNS}.")
    if sp.issparse(table) and not layouts:
        raise DataError(_DENSE_REQUIRED)
    return table


def read_records(estimator: Any, X: Any, y: Any, *, invalid: str, numeric: bool, empty: bool = False) -> PresentRecords:
    """The records to fit to, with numbers or labels for targets.

    Parameters
    ----------
    estimator : estimator
        Learns the names and the number of the columns.
    X, y : array-like
        The table and its targets.
    invalid : {"raise", "null"}
        Whether a record that is not admissible is refused, or null.
    numeric : bool
        Whether targets are numbers, or whatever labels they are.
    empty : bool, default=False
        Whether a table without any record is admissible where no record is refused: the number of records is private.
    """
    read = read_table if invalid == "raise" else read_judged_table
    table = read(estimator, X, reset=True)
    if y is None:
        raise DataError(f"y: {type(estimator).__name__} requires y to be passed, but the target y is None.")
    if table.shape[0] == 0 and not empty:
        raise DataError(f"X: {NO_RECORDS}.")
    return _admitted(table, y, invalid=invalid, numeric=numeric)


def read_part(
    X: Any, y: Any, *, invalid: str, numeric: bool, layouts: Any = LAYOUTS, gaps: bool = False
) -> PresentRecords:
    """The records among some rows of a table, with numbers or labels for targets, each judged as in the whole table.

    ``y=None`` is for tables without a target, whose records get zeros. There may be no rows, and no columns. With
    ``gaps`` a record that ``invalid="null"`` would leave out for a cell stays, with NaN in its place.
    """

    def read() -> Any:
        if invalid == "null":
            return judged_table(X)
        part, rules = checked_layout(X), {"ensure_min_samples": 0, "ensure_min_features": 0}
        return check_array(part, accept_sparse=layouts, dtype=np.float64, input_name="X", **rules)

    table = _naming_columns(X, read)
    if sp.issparse(table) and not layouts:
        raise DataError(_DENSE_REQUIRED)
    if invalid == "raise":
        table = _canonical(table)
    target = np.zeros(table.shape[0]) if y is None else y
    return _admitted(table, target, invalid=invalid, numeric=numeric, gaps=gaps)


def _admitted(table: Any, y: Any, *, invalid: str, numeric: bool, gaps: bool = False) -> PresentRecords:
    """The records of a table that is read, with their targets."""
    target, known = read_target(y, invalid=invalid, numeric=numeric)
    n_rows = table.shape[0]
    if target.size != n_rows:
        raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
    present = known if gaps or invalid == "raise" else known & finite_rows(table)
    return PresentRecords(table, target, np.arange(n_rows), n_rows).keep(present)


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
