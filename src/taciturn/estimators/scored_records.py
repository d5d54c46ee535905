"""Records on which a fitted model is scored: its predictions beside the true targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from taciturn.core.arrays import AnyArray, BoolArray, NumberArray
from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.validation import DIFFERENT_LENGTHS, NO_RECORDS, without_data_values
from taciturn.data.admission import PresentRecords, blanked, finite_rows
from taciturn.data.reading import judged_target, read_judged_table
from taciturn.data.sparse_layout import checked_layout

__all__ = ["read_scored"]


def read_scored(
    estimator: Any,
    X: Any,
    y: Any,
    mapped: Callable[..., NumberArray],
    *,
    numeric: bool,
    invalid: str,
    relation: str,
) -> PresentRecords:
    """Mapped predictions, in the one column of X, and mapped targets of the records that are not null.

    ``mapped`` maps numbers to the lattice or labels to class codes, -1 for labels that are none of the classes.
    """
    if invalid == "raise":
        predictions, truth = _read_all(estimator, X, y, numeric=numeric)
        present = np.ones(truth.size, dtype=bool)
    else:
        predictions, truth, present = _read_present(estimator, X, y, numeric=numeric, relation=relation)
    target = mapped(truth, strict=invalid == "raise")
    records = PresentRecords(mapped(predictions)[:, None], target, np.flatnonzero(present), present.size)
    return records if numeric else records.keep(target >= 0)


def _read_all(estimator: Any, X: Any, y: Any, *, numeric: bool) -> tuple[AnyArray, AnyArray]:
    """Predictions and targets."""

    def target() -> AnyArray:
        return np.asarray(check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64 if numeric else None))

    truth = without_data_values("y", target)
    predictions = _predicted(estimator, checked_layout(X), numeric=numeric)
    without_data_values("X or y", lambda: check_consistent_length(predictions, truth))
    return predictions, truth


def _read_present(
    estimator: Any, X: Any, y: Any, *, numeric: bool, relation: str
) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Predictions and targets of the records that are not null, and which of all records these are."""
    table = read_judged_table(estimator, X, reset=False)
    truth, known = judged_target(y, numeric=numeric)
    n_slots = table.shape[0]
    if truth.size != n_slots:
        raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
    if n_slots == 0 and relation != "add-remove":
        raise DataError(f"X: {NO_RECORDS}.")
    present: BoolArray = known & finite_rows(table)
    if not present.any():
        return truth[:0], truth[:0], present
    if relation == "add-remove":
        predictions = _predicted(estimator, table[np.flatnonzero(present)], numeric=numeric)
    else:
        # In their places, since products of matrices round by position.
        predictions = _predicted(estimator, blanked(table, present), numeric=numeric)[present]
    return predictions, truth[present], present


def _predicted(estimator: Any, X: Any, *, numeric: bool) -> AnyArray:
    """What a model predicts; neither its errors nor its warnings, which may quote data, are passed on."""

    def predict() -> AnyArray:
        predictions = np.asarray(column_or_1d(estimator.predict(X)))
        return predictions.astype(np.float64) if numeric else predictions

    predictions = None
    try:
        predictions = guarded(without_data_values, silent=True)("X", predict)
    except TaciturnError:
        raise
    except Exception:
        pass
    if predictions is None:
        raise DataError(
            "X: expected records that the estimator can predict, and it failed; try it on made-up records of this form."
        )
    return predictions
