"""Columns of a table as numbers: every record by itself, by what was stated in public."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.arrays import BoolArray, FloatArray, IntArray
from taciturn.core.errors import DataError
from taciturn.data.unit_range import to_unit_range
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import Target
from taciturn.tables.schema import kind_of
from taciturn.tables.texts import normal_text
from taciturn.tables.words import quoted

__all__ = [
    "Encoding",
    "Labels",
    "bounded_target",
    "feature_bounds",
    "missing_value",
    "not_boolean",
    "numbers_of",
    "read_target",
]


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class Encoding:
    """The map from the columns that enter the model to features.

    Parameters
    ----------
    bounds : TableBounds
        With its ``order`` known.
    """

    def __init__(self, bounds: TableBounds) -> None:
        self._columns = list(bounds.used)
        self._fills = bounds.missing
        self._lower, self._upper = feature_bounds(bounds)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self._lower.size

    def fill(self, columns: Sequence[Any], out: FloatArray) -> None:
        """Encode Arrow arrays, one per column in order, into zeros of shape (n_rows, n_features)."""
        position = 0
        starts = []
        for (name, column), values in zip(self._columns, columns, strict=True):
            fill = self._fills.get(name)
            starts.append(position)
            if column.type == "category":
                places = {normal_text(text): i for i, text in enumerate(column.categories)}
                codes = _codes_of(name, values, places, None if fill is None else normal_text(fill))
                (listed,) = np.nonzero(codes >= 0)
                out[listed, position + codes[listed]] = 1.0
                position += len(column.categories)
            else:
                numbers = numbers_of(name, values) if column.type == "number" else _truths_of(name, values)
                out[:, position] = numbers if fill is None else np.where(np.isnan(numbers), float(fill), numbers)
                position += 1
        to_unit_range(out, self._lower, self._upper, out=out)
        # All values are within [-1, 1] now, so a sum that is no number tells of one that is none.
        if np.isnan(out.sum()):
            at = next(i for i, start in enumerate(starts) if np.isnan(out[:, start]).any())
            raise DataError(missing_value(self._columns[at][0]))


def feature_bounds(bounds: TableBounds) -> tuple[FloatArray, FloatArray]:
    """The range of every feature; zeros and ones of other columns stay as they are between -1 and 1."""
    lower, upper = [], []
    for _, column in bounds.used:
        if column.type == "number":
            lower.append(column.lower)
            upper.append(column.upper)
        else:
            width = len(column.categories) or 1
            lower += [-1.0] * width
            upper += [1.0] * width
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)


def missing_value(name: str) -> str:
    """The sentence for a column with a gap that nothing was stated for."""
    return (
        f"column {quoted(name)}: expected a value in every row, got missing ones; say in [missing] of the bounds what "
        "to fill in, or leave the column out."
    )


def not_boolean(name: str) -> str:
    """The sentence for a column that was stated as boolean and is not."""
    return f"column {quoted(name)}: expected true and false, or 1 and 0, got other values; state another type."


def _refused(name: str, expected: str, values: Any) -> DataError:
    hint = {
        "date": "dates; derive a number first, such as an age or the days since a public day",
        "category": 'text; state type = "category", or correct the column',
    }.get(kind_of(values.type), "something else; state another type, or leave the column out")
    return DataError(f"column {quoted(name)}: expected {expected}, got {hint}.")


def numbers_of(name: str, values: Any) -> FloatArray:
    """Doubles, with NaN for gaps."""
    from pyarrow import compute, types

    if not types.is_floating(values.type):
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if kind_of(values.type) not in ("number", "boolean") and not types.is_null(values.type):
            raise _refused(name, "numbers", values)
        # Integers beyond 2**53 are rounded without a word.
        values = compute.cast(values, "float64", safe=False)
    return values.to_numpy(zero_copy_only=False)


def _truths_of(name: str, values: Any) -> FloatArray:
    """Zeros and ones, with NaN for gaps."""
    if kind_of(values.type) == "category":
        codes, gaps = _codes_by_value(name, values, lambda text: int(_TRUTHS.get(text.strip().lower(), -1)))
        numbers = np.where(gaps, np.nan, codes)
    elif kind_of(values.type) == "date":
        raise DataError(not_boolean(name))
    else:
        numbers = numbers_of(name, values)
    if not np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
        raise DataError(not_boolean(name))
    return numbers


def _codes_of(name: str, values: Any, places: dict[str, int], fill: str | None) -> IntArray:
    """The place of every value among the listed ones, -1 for others; gaps are filled or refused."""
    if kind_of(values.type) == "date":
        raise _refused(name, "categories", values)
    codes, gaps = _codes_by_value(name, values, lambda value: places.get(normal_text(value), -1))
    if gaps.any():
        if fill is None:
            raise DataError(missing_value(name))
        codes[gaps] = places[fill]
    return codes


def _codes_by_value(name: str, values: Any, code: Callable[[Any], int]) -> tuple[IntArray, BoolArray]:
    """Codes of an array, found once for each distinct value, and where it has gaps."""
    from pyarrow import array, compute, large_string, types

    if kind_of(values.type) == "unknown" and not types.is_null(values.type):
        raise _refused(name, "text or numbers", values)
    if not types.is_dictionary(values.type):
        if types.is_string_view(values.type):
            # Older versions of Arrow can do nothing else with a view.
            values = array(values.to_pylist(), large_string())
        values = values.dictionary_encode()
    distinct = values.dictionary.to_pylist()
    is_gap = [value is None or (isinstance(value, float) and math.isnan(value)) for value in distinct]
    table = np.array([-1 if gap else code(value) for value, gap in zip(distinct, is_gap, strict=True)] + [-1])
    at = compute.fill_null(compute.cast(values.indices, "int64"), len(distinct)).to_numpy(zero_copy_only=False)
    return table[at], np.array([*is_gap, True])[at]


# ---------------------------------------------------------------------- targets


class Labels:
    """Labels of records among the public classes; those that match none become something that is no class.

    Parameters
    ----------
    target : Target
        With classes.
    fill : object
        The class of records whose label is missing; None: they match none.
    """

    def __init__(self, target: Target, fill: Any) -> None:
        classes = list(target.classes or ())
        self._name = target.name
        self._kind = type(classes[0])
        self._places = {self._parsed(label): i for i, label in enumerate(classes)}
        self._gap = -1 if fill is None else self._places[self._parsed(fill)]
        # True and false leave no room for a third label; as numbers they still equal themselves.
        plain = [int(label) for label in classes] if self._kind is bool else classes
        candidates = ("?" * (i + 1) if self._kind is str else -i - 1 for i in range(len(classes) + 1))
        self._values = np.array([*plain, next(label for label in candidates if label not in plain)])

    def of_arrow(self, values: Any) -> NDArray[Any]:
        """Labels from an Arrow array of any type."""
        codes, gaps = _codes_by_value(self._name, values, lambda value: self._places.get(self._parsed(value), -1))
        return self._values[np.where(gaps, self._gap, codes)]

    def of_numbers(self, values: FloatArray) -> NDArray[Any]:
        """Labels from doubles."""
        distinct, at = np.unique(values, return_inverse=True)
        codes = [self._gap if np.isnan(v) else self._places.get(self._parsed(float(v)), -1) for v in distinct]
        return self._values[np.array(codes, dtype=np.int64)[at]]

    def _parsed(self, value: Any) -> Any:
        """A value in the type of the classes, or None where it has no place there."""
        if self._kind is str:
            return normal_text(value)
        if self._kind is bool and isinstance(value, str):
            return _TRUTHS.get(value.strip().lower())
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        whole = int(number) if number.is_integer() else None
        return {0: False, 1: True}.get(whole) if self._kind is bool else whole


def read_target(target: Target, fill: Any) -> Callable[[Any], NDArray[Any]]:
    """What turns the target's Arrow arrays into an array of numbers or labels."""
    if target.task == "regress":
        return lambda values: bounded_target(target, fill, numbers_of(target.name, values))
    if target.classes is not None:
        return Labels(target, fill).of_arrow
    return lambda values: _labels_as_they_are(target.name, values)


def bounded_target(target: Target, fill: Any, numbers: FloatArray) -> FloatArray:
    """Numbers without gaps; infinity stands at the bound, as an estimator would put it."""
    numbers = np.nan_to_num(
        numbers.astype(np.float64), nan=np.nan if fill is None else fill, posinf=target.upper, neginf=target.lower
    )
    if np.isnan(numbers).any():
        raise DataError(missing_value(target.name))
    return numbers


def _labels_as_they_are(name: str, values: Any) -> NDArray[Any]:
    """Labels of any type, where none were stated."""
    kind = kind_of(values.type)
    texts = values.to_pylist() if kind == "category" else []
    if kind not in ("number", "boolean", "category"):
        raise _refused(name, "labels", values)
    if values.null_count or "" in texts:
        raise DataError(
            f"column {quoted(name)}: expected a label in every row, got missing ones; list the classes in [target] of "
            "the bounds, and such records count as null records."
        )
    return np.array(texts) if kind == "category" else values.to_numpy(zero_copy_only=False)
