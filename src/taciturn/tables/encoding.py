"""Encode the columns of a table as numbers: each record by itself, by public facts about the columns."""

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
    "target_reader",
    "to_numbers",
]


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class Encoding:
    """The map from the columns that enter the model to features, by the bounds for a table.

    A cell that is missing without a stated value to fill in, or that is not a value of its column, refuses the table
    with ``invalid="raise"`` and becomes NaN with "null".
    """

    def __init__(self, bounds: TableBounds, *, invalid: str = "raise") -> None:
        self._strict = invalid == "raise"
        self._columns = list(bounds.used)
        self._fills = bounds.missing
        self._lower, self._upper = feature_bounds(bounds)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._lower.size

    def fill(self, columns: Sequence[Any], out: FloatArray) -> None:
        """Encode Arrow arrays, one per column in order, into an array of shape (n_rows, n_features)."""
        # One feature after the other, as Arrow stores them: this is faster than writing into every row again and again.
        block = _arrow_empty(out.shape[::-1])
        position = 0
        starts = []
        for (name, column), values in zip(self._columns, columns, strict=True):
            fill = self._fills.get(name)
            starts.append(position)
            if column.type == "category":
                block[position : position + len(column.categories)] = 0.0
                places = {normal_text(text): i for i, text in enumerate(column.categories)}
                codes, gaps = _category_codes(name, values, places)
                if fill is not None:
                    codes[gaps] = places[normal_text(fill)]
                else:
                    block[position, gaps] = np.nan
                (listed,) = np.nonzero(codes >= 0)
                block[position + codes[listed], listed] = 1.0
                position += len(column.categories)
            else:
                numbers = to_numbers(name, values) if column.type == "number" else self._to_truth_values(name, values)
                block[position] = numbers if fill is None else np.where(np.isnan(numbers), float(fill), numbers)
                position += 1
        to_unit_range(block, self._lower[:, None], self._upper[:, None], out=block)
        # All other values are within [-1, 1] now, so the sum is NaN if and only if a value is.
        if self._strict and np.isnan(block.sum()):
            at = next(i for i, start in enumerate(starts) if np.isnan(block[start]).any())
            raise DataError(missing_value(self._columns[at][0]))
        out[...] = block.T

    def _to_truth_values(self, name: str, values: Any) -> FloatArray:
        """Zeros and ones, with NaN for gaps."""
        if kind_of(values.type) == "category":
            codes, gaps = _codes_by_value(name, values, lambda text: int(_TRUTHS.get(text.strip().lower(), -1)))
            numbers = np.where(gaps, np.nan, codes)
        elif kind_of(values.type) == "date":
            raise DataError(not_boolean(name))
        else:
            numbers = to_numbers(name, values)
        other = ~np.isin(numbers, (0.0, 1.0)) & ~np.isnan(numbers)
        if self._strict and other.any():
            raise DataError(not_boolean(name))
        return np.where(other, np.nan, numbers)


def _arrow_empty(shape: tuple[int, ...]) -> FloatArray:
    """An array with any content in memory of Arrow, which keeps what is freed for the next one.

    numpy returns large arrays to the system, and getting new pages takes as long as to encode what they hold.
    """
    from pyarrow import allocate_buffer

    return np.ndarray(shape, buffer=allocate_buffer(8 * math.prod(shape)))


def feature_bounds(bounds: TableBounds) -> tuple[FloatArray, FloatArray]:
    """The range of every feature; the range -1 to 1 leaves zeros and ones unchanged."""
    lower, upper = [], []
    for _, column in bounds.used:
        if column.type == "number":
            low, high = column.ends
            lower.append(low)
            upper.append(high)
        else:
            width = len(column.categories) or 1
            lower += [-1.0] * width
            upper += [1.0] * width
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)


def missing_value(name: str) -> str:
    """Message about a column with a missing value and no stated value to fill in."""
    return (
        f"column {quoted(name)}: expected a value in every row, got missing ones; say in [missing] of the bounds what "
        "to fill in, or leave the column out."
    )


def not_boolean(name: str) -> str:
    """Message about a column that is stated as boolean and holds other values."""
    return f"column {quoted(name)}: expected true and false, or 1 and 0, got other values; state another type."


def _wrong_type(name: str, expected: str, values: Any) -> DataError:
    hint = {
        "date": "dates; derive a number first, such as an age or the days since a public day",
        "category": 'text; state type = "category", or correct the column',
    }.get(kind_of(values.type), "something else; state another type, or leave the column out")
    return DataError(f"column {quoted(name)}: expected {expected}, got {hint}.")


def to_numbers(name: str, values: Any) -> FloatArray:
    """Doubles, with NaN for gaps."""
    from pyarrow import compute, types

    if not types.is_floating(values.type):
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if kind_of(values.type) not in ("number", "boolean") and not types.is_null(values.type):
            raise _wrong_type(name, "numbers", values)
        # Integers beyond 2**53 are rounded silently.
        values = compute.cast(values, "float64", safe=False)
    numbers: FloatArray = values.to_numpy(zero_copy_only=False)
    return numbers


def _category_codes(name: str, values: Any, places: dict[str, int]) -> tuple[IntArray, BoolArray]:
    """The place of every value among the listed ones, -1 for others, and where values are missing."""
    if kind_of(values.type) == "date":
        raise _wrong_type(name, "categories", values)
    return _codes_by_value(name, values, lambda value: places.get(normal_text(value), -1))


def _codes_by_value(name: str, values: Any, code: Callable[[Any], int]) -> tuple[IntArray, BoolArray]:
    """Codes of an array, computed once for each distinct value, and where values are missing."""
    from pyarrow import array, compute, large_string, types

    if kind_of(values.type) == "unknown" and not types.is_null(values.type):
        raise _wrong_type(name, "text or numbers", values)
    if not types.is_dictionary(values.type):
        if types.is_string_view(values.type):
            # Older versions of Arrow cannot encode a view.
            values = array(values.to_pylist(), large_string())
        values = values.dictionary_encode()
    distinct = values.dictionary.to_pylist()
    is_gap = [value is None or (isinstance(value, float) and math.isnan(value)) for value in distinct]
    table = np.array([-1 if gap else code(value) for value, gap in zip(distinct, is_gap, strict=True)] + [-1])
    at = compute.fill_null(compute.cast(values.indices, "int64"), len(distinct)).to_numpy(zero_copy_only=False)
    return table[at], np.array([*is_gap, True])[at]


# ---------------------------------------------------------------------- targets


class Labels:
    """Map the labels of records to the public classes; a label that matches none becomes a value that is no class.

    A missing label is that of the class ``fill``; for None it matches no class.
    """

    def __init__(self, target: Target, fill: Any) -> None:
        classes = list(target.classes or ())
        self._name = target.name
        self._kind = type(classes[0])
        self._places = {self._parsed(label): i for i, label in enumerate(classes)}
        self._gap = -1 if fill is None else self._places[self._parsed(fill)]
        # There is no third truth value for other labels, so that truth values are stored as the equal numbers.
        plain = [int(label) for label in classes] if self._kind is bool else classes
        candidates = ("?" * (i + 1) if self._kind is str else -i - 1 for i in range(len(classes) + 1))
        self._values = np.array([*plain, next(label for label in candidates if label not in plain)])

    def from_arrow(self, values: Any) -> NDArray[Any]:
        """Labels from an Arrow array of any type."""
        codes, gaps = _codes_by_value(self._name, values, lambda value: self._places.get(self._parsed(value), -1))
        return self._values[np.where(gaps, self._gap, codes)]

    def from_numbers(self, values: FloatArray) -> NDArray[Any]:
        """Labels from doubles."""
        distinct, at = np.unique(values, return_inverse=True)
        codes = [self._gap if np.isnan(v) else self._places.get(self._parsed(float(v)), -1) for v in distinct]
        return self._values[np.array(codes, dtype=np.int64)[at]]

    def _parsed(self, value: Any) -> Any:
        """Convert a value to the type of the classes, or to None."""
        if self._kind is str:
            return normal_text(value)
        if self._kind is bool and isinstance(value, str):
            return _TRUTHS.get(value.strip().lower())
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        whole = int(number) if number.is_integer() else None
        return whole if self._kind is int else {0: False, 1: True}.get(-1 if whole is None else whole)


def target_reader(target: Target, fill: Any, *, invalid: str = "raise") -> Callable[[Any], NDArray[Any]]:
    """Return the function that converts Arrow arrays of the target to numbers or labels."""
    if target.task == "regress":
        return lambda values: bounded_target(target, fill, to_numbers(target.name, values), invalid=invalid)
    if target.classes is not None:
        return Labels(target, fill).from_arrow
    return lambda values: _unlisted_labels(target.name, values)


def bounded_target(target: Target, fill: Any, numbers: FloatArray, *, invalid: str = "raise") -> FloatArray:
    """Fill in missing numbers and clip infinite ones to the bounds; the estimator clips the others."""
    numbers = np.nan_to_num(
        numbers.astype(np.float64), nan=np.nan if fill is None else fill, posinf=target.upper, neginf=target.lower
    )
    if invalid == "raise" and np.isnan(numbers).any():
        raise DataError(missing_value(target.name))
    return numbers


def _unlisted_labels(name: str, values: Any) -> NDArray[Any]:
    """Labels of any type, where no classes are stated."""
    kind = kind_of(values.type)
    texts = values.to_pylist() if kind == "category" else []
    if kind not in ("number", "boolean", "category"):
        raise _wrong_type(name, "labels", values)
    if values.null_count or "" in texts:
        raise DataError(
            f"column {quoted(name)}: expected a label in every row, got missing ones; list the classes in [target] of "
            "the bounds, and such records count as null records."
        )
    return np.array(texts) if kind == "category" else values.to_numpy(zero_copy_only=False)
