"""Records on which a fitted model is scored: its predictions beside the true targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from taciturn.core.arrays import AnyArray, BoolArray, NumberArray
from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.validation import DIFFERENT_LENGTHS, NO_RECORDS, without_data_values
from taciturn.data.admission import PresentRecords, blanked, finite_rows
from taciturn.data.reading import read_judged_table, read_target
from taciturn.data.sparse_layout import checked_layout

__all__ = ["read_scored"]


def read_scored(
    estimator: Any,
    X: Any,
    y: Any,
    mapped: Callable[[AnyArray], NumberArray],
    *,
    numeric: bool,
    invalid: str,
    relation: str,
    outputs: Callable[[Any], Any] | None = None,
    n_outputs: int | None = 1,
) -> PresentRecords:
    """What is known of predictions, in the columns of X, and mapped targets of the records that are not null.

    ``mapped`` maps numbers to the lattice or labels to class codes, -1 for labels that are none of the classes.
    ``outputs`` makes rows of ``n_outputs`` numbers of a table, or of as many as it has columns if that is None; by
    default these are mapped predictions, in one column.
    """

    def predicted(table: Any) -> Any:
        predictions = np.asarray(column_or_1d(estimator.predict(table)))
        return mapped(predictions.astype(np.float64) if numeric else predictions)[:, None]

    compute = predicted if outputs is None else outputs
    if invalid == "raise":
        features, truth = _read_all(compute, X, y, numeric=numeric)
        present = np.ones(truth.size, dtype=bool)
    else:
        table = read_judged_table(estimator, X, reset=False)
        truth, present = _read_present(table, y, numeric=numeric, relation=relation)
        features = _compute_present(compute, table, present, relation, n_outputs)
    target = mapped(truth)
    records = PresentRecords(features, target, np.flatnonzero(present), present.size)
    return records if numeric else records.keep(target >= 0)


def _read_all(compute: Callable[[Any], Any], X: Any, y: Any, *, numeric: bool) -> tuple[Any, AnyArray]:
    """What is computed of the table, and targets."""
    truth, _ = read_target(y, invalid="raise", numeric=numeric)
    if truth.size == 0:
        raise DataError(f"y: {NO_RECORDS}.")
    features = _computed(compute, checked_layout(X))
    without_data_values("X or y", lambda: check_consistent_length(features, truth))
    return features, truth


def _read_present(table: Any, y: Any, *, numeric: bool, relation: str) -> tuple[AnyArray, BoolArray]:
    """Targets of the records that are not null, and which of all records these are."""
    truth, known = read_target(y, invalid="null", numeric=numeric)
    n_slots = table.shape[0]
    if truth.size != n_slots:
        raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
    if n_slots == 0 and relation != "add-remove":
        raise DataError(f"X: {NO_RECORDS}.")
    present: BoolArray = known & finite_rows(table)
    return truth[present], present


def _compute_present(
    compute: Callable[[Any], Any], table: Any, present: BoolArray, relation: str, n_outputs: int | None
) -> Any:
    """What is computed of the records that are not null."""
    if not present.any():
        return np.zeros((0, table.shape[1] if n_outputs is None else n_outputs))
    if relation == "add-remove":
        return _computed(compute, table[np.flatnonzero(present)])
    # In their places, since products of matrices round by position.
    return _computed(compute, blanked(table, present))[np.flatnonzero(present)]


def _computed(compute: Callable[[Any], Any], X: Any) -> Any:
    """What a model says of a table; neither its errors nor its warnings, which may quote data, are passed on."""
    features = None
    try:
        features = guarded(without_data_values, silent=True)("X", lambda: compute(X))
    except TaciturnError:
        raise
    except Exception:
        pass
    if features is None:
        raise DataError(
            "X: expected records that the estimator can predict, and it failed; try it on made-up records of this form."
        )
    return features
