"""Cells converted by the stated type of their column, one by one, and encoded as features."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError
from taciturn.core.validation import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.data.design import to_unit_range
from taciturn.data.records import Outcomes
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import (
    Column,
    Fill,
    MeasuredColumn,
    Notation,
    Target,
    is_missing,
    kind_of,
    normal_text,
    quoted,
    read_day,
    read_number,
    read_text,
    read_truth,
    truth_code,
)
from taciturn.tables.terms import Term


def widened(block: FloatArray, places: IndexArray, n_features: int) -> FloatArray:
    """All features, with those of the block at their places and zeros elsewhere."""
    if places.size == n_features:
        return block
    whole = np.zeros((block.shape[0], n_features))
    whole[:, places] = block
    return whole


@dataclass(frozen=True, slots=True)
class Cells:
    """A column whose cells have no declared type in common, in place of an Arrow array.

    Each cell is read by itself, by the type that the bounds state. Arrow would find one type for all cells together, so
    that one of them would decide how the others are read. ``values`` are the cells or, where there are ``codes``, the
    distinct ones; codes are the places of the cells among them, -1 for a missing one.
    """

    values: NDArray[Any]
    codes: IndexArray | None = None

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    def __getitem__(self, rows: slice) -> Cells:
        return Cells(self.values[rows]) if self.codes is None else Cells(self.values, self.codes[rows])

    def distinct(self) -> tuple[list[Any], IndexArray]:
        """The cells to read, and the place of every row among them."""
        if self.codes is None:
            return self._without_repeated_text()
        used, at = np.unique(self.codes, return_inverse=True)
        return [None if code < 0 else self.values[code] for code in used.tolist()], at

    def _without_repeated_text(self) -> tuple[list[Any], IndexArray]:
        # Text repeats itself. Other cells may refuse to be compared, or equal one of another type.
        distinct: list[Any] = []
        texts: dict[str, int] = {}
        at = np.empty(len(self.values), dtype=np.intp)
        for row, cell in enumerate(self.values):
            at[row] = place = texts.setdefault(cell, len(distinct)) if type(cell) is str else len(distinct)
            if place == len(distinct):
                distinct.append(cell)
        return distinct, at


class Encoding:
    """The map from the columns that enter the model to features, by the bounds for a table.

    A cell that is missing without a stated value to fill in, or that is not a value of its column, refuses the table
    with ``invalid="raise"`` and becomes NaN with "null".
    """

    def __init__(self, bounds: TableBounds, *, invalid: str = "raise") -> None:
        self._strict = invalid == "raise"
        self._columns = list(bounds.used)
        self._fills = {name: bounds.fill_of(name) for name, _ in self._columns}
        self._notations = {name: bounds.notation(name) for name, _ in self._columns}
        self._terms = bounds.design_terms if bounds.terms else ()
        self._lower, self._upper = feature_bounds(bounds)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._lower.size

    def fill(self, columns: Sequence[Any], out: FloatArray) -> None:
        """Encode columns, as Arrow arrays or :class:`Cells` and in order, into an array (n_rows, n_features)."""
        # One feature after the other, as Arrow stores them: this is faster than writing into every row again and again.
        block = _arrow_empty(out.shape[::-1])
        position = 0
        starts = []
        sources: dict[str, tuple[FloatArray, BoolArray]] = {}
        needed = {name for term in self._terms for name in term.columns}
        for (name, column), values in zip(self._columns, columns, strict=True):
            fill = self._fills[name]
            width = len(column.ranges)
            starts.append(position)
            own = block[position : position + width].T
            gaps = self._fill_column(name, column, values, own)
            self._fill_gaps(column, fill, gaps, own, position)
            if name in needed:
                sources[name] = block[position : position + width], gaps
            position += width
            if fill is not None and fill.indicator:
                block[position] = gaps
                position += 1
        for term in self._terms:
            self._fill_term(term, sources, block[position : position + term.width], position)
            position += term.width
        to_unit_range(block, self._lower[:, None], self._upper[:, None], out=block)
        # All other values are within [-1, 1] now, so the sum is NaN if and only if a value is.
        if self._strict and np.isnan(block.sum()):
            at = next(i for i, start in enumerate(starts) if np.isnan(block[start]).any())
            raise DataError(missing_value(self._columns[at][0]))
        out[...] = block.T

    def check(self, at: int, values: Any) -> None:
        """Raise if a value of one column, given by its place, is none of that column; gaps are no matter here."""
        name, column = self._columns[at]
        self._fill_column(name, column, values, np.empty((len(values), len(column.ranges))))

    def numbers(self, name: str, values: Any) -> FloatArray:
        """One column of numbers or dates neither clipped nor scaled, with stated values for missing cells."""
        column, fill = dict(self._columns)[name], self._fills[name]
        numbers = column_numbers(name, column, values, self._notations[name], strict=self._strict)
        return numbers if fill is None or fill.value is None else np.where(np.isnan(numbers), fill.value, numbers)

    def _fill_term(
        self, term: Term, sources: Mapping[str, tuple[FloatArray, BoolArray]], block: FloatArray, position: int
    ) -> None:
        """Write the features of a term, which lacks a value where a column of it does."""
        term.fill({name: sources[name][0] for name in term.columns}, block)
        ends = slice(position, position + term.width)
        for name in term.columns:
            fill, gaps = self._fills[name], sources[name][1]
            if fill is None:
                block[:, gaps] = np.nan
            elif fill.value is None:
                middle = self._lower[ends] / 2.0 + self._upper[ends] / 2.0
                block[:, gaps] = np.where(np.isnan(block[:, gaps]), np.nan, middle[:, None])

    def _fill_column(self, name: str, column: Column, values: Any, block: FloatArray) -> BoolArray:
        """Write the features of one column; return where cells are missing or, unless strict, cannot be used."""
        notation = self._notations[name]
        if column.type == "category":
            block[...] = 0.0
            codes, gaps = _category_codes(name, values, column, notation, strict=self._strict)
            (listed,) = np.nonzero(codes >= 0)
            block[listed, codes[listed]] = 1.0
            return gaps
        if column.type == "date" and column.parts:
            return _fill_parts(column, _days(name, column, values, notation, strict=self._strict), block)
        numbers = (
            _to_truth_values(name, values, notation, strict=self._strict)
            if column.type == "boolean"
            else column_numbers(name, column, values, notation, strict=self._strict)
        )
        block[:, 0] = numbers
        return np.isnan(numbers)

    def _fill_gaps(self, column: Column, fill: Fill | None, gaps: BoolArray, block: FloatArray, position: int) -> None:
        """Write what stands for missing cells: NaN, the middle of the range, or the stated value."""
        if fill is None:
            # Numbers and truth values are NaN already.
            if column.type == "category" or column.parts:
                block[gaps, 0] = np.nan
        elif fill.value is None:
            ends = slice(position, position + block.shape[1])
            block[gaps] = self._lower[ends] / 2.0 + self._upper[ends] / 2.0
        elif column.type == "category":
            block[gaps, _places(column)[column.code(fill.value)]] = 1.0
        else:
            block[gaps, 0] = float(fill.value)


def _fill_parts(column: Column, days: NDArray[Any], block: FloatArray) -> BoolArray:
    """Write years and months of dates; return where dates are missing."""
    block[...] = 0.0
    gaps: BoolArray = np.isnat(days)
    (known,) = np.nonzero(~gaps)
    at = 0
    for part in column.parts:
        if part == "year":
            block[known, at] = days[known].astype("datetime64[Y]").astype(np.int64) + 1970.0
        else:
            block[known, at + days[known].astype("datetime64[M]").astype(np.int64) % 12] = 1.0
        at += 1 if part == "year" else 12
    return gaps


def _places(column: Column) -> dict[str, int]:
    """The place of every category of a column, by the text that it is compared with."""
    return {column.code(category): place for place, category in enumerate(column.categories)}


def _arrow_empty(shape: tuple[int, ...]) -> FloatArray:
    """An array with any content in memory of Arrow, which keeps what is freed for the next one.

    numpy returns large arrays to the system, and getting new pages takes as long as to encode what they hold.
    """
    from pyarrow import allocate_buffer

    return np.ndarray(shape, buffer=allocate_buffer(8 * math.prod(shape)))


def feature_bounds(bounds: TableBounds) -> tuple[FloatArray, FloatArray]:
    """The range of every feature; the range -1 to 1 leaves zeros and ones unchanged."""
    ranges = np.array(bounds.require_bounds().feature_ranges, dtype=np.float64).reshape(-1, 2)
    return ranges[:, 0].copy(), ranges[:, 1].copy()


def missing_value(name: str) -> str:
    """Message about a column with a missing value and no stated value to fill in."""
    return (
        f"column {quoted(name)}: expected a value in every row, got missing ones; say in [missing] of the bounds what "
        "to fill in, or leave the column out."
    )


def not_boolean(name: str) -> str:
    """Message about a column that is stated as boolean and holds other values."""
    return (
        f"column {quoted(name)}: expected true and false, or 1 and 0, or yes and no, got other values; state another "
        "type."
    )


def not_numbers(name: str, *, censored: bool) -> str:
    """Message about a column that is stated as one of numbers and holds other text or objects."""
    if censored:
        expected, remedy = "numbers, also with < or > before them", "correct the column, or leave it out"
    else:
        expected, remedy = (
            "numbers",
            "correct the column, or state censored = true if numbers such as <5 are among them, or missing_values",
        )
    return f"column {quoted(name)}: expected {expected}, got other values; {remedy}."


def not_dates(name: str, format: str | None) -> str:
    """Message about a column that is stated as one of dates and holds other text or objects."""
    shape = "dates as in 2020-12-31" if format is None else f"dates of the format {quoted(format)}"
    return f"column {quoted(name)}: expected {shape}, got other values; state the format, or leave the column out."


def not_categories(name: str) -> str:
    """Message about a column that is stated as one of categories and holds objects that cannot be compared."""
    return (
        f"column {quoted(name)}: expected text, numbers or truth values, got other values; make them text, or leave "
        "the column out."
    )


def _wrong_type(name: str, expected: str, values: Any) -> DataError:
    hint = {
        "date": 'dates; state type = "date", which makes them days since a public day',
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
        if types.is_decimal(values.type):
            # One by one: Arrow rounds by the scale, which one cell with more digits changes for all.
            cells = values.to_pylist()
            return np.array([math.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
        # Integers beyond 2**53 are rounded silently.
        values = compute.cast(values, "float64", safe=False)
    numbers: FloatArray = values.to_numpy(zero_copy_only=False)
    return numbers


def column_numbers(name: str, column: Column, values: Any, notation: Notation, *, strict: bool) -> FloatArray:
    """A column of numbers, or of dates as days since a public day, with NaN for gaps.

    A cell that is no number or no date refuses the column if ``strict``, and becomes NaN otherwise.
    """
    if column.type == "date":
        days = _days(name, column, values, notation, strict=strict)
        since = np.datetime64(column.since, "D")
        numbers: FloatArray = np.where(np.isnat(days), np.nan, (days - since).astype(np.float64))
        return numbers
    # Text is a number only where the bounds have a rule for it.
    has_rule = column.censored or notation != Notation()
    if isinstance(values, Cells) or (has_rule and kind_of(values.type) == "category"):
        read = partial(read_number, parse=partial(notation.parse, censored=column.censored) if has_rule else None)
        codes = frozenset(notation.codes)

        def is_gap(cell: Any) -> bool:
            # A limit such as "<999" is a number, not the code 999.
            return notation.is_missing(cell) or (bool(codes) and read_number(cell, notation.parse) in codes)

        numbers, gaps = _distinct_values(name, values, read, np.nan, is_gap)
        if strict and (np.isnan(numbers) & ~gaps).any():
            raise DataError(not_numbers(name, censored=column.censored))
        return numbers
    return _without_codes(to_numbers(name, values), notation)


def _without_codes(numbers: FloatArray, notation: Notation) -> FloatArray:
    """Numbers with NaN in the place of those that stand for a missing cell."""
    codes = notation.codes
    return np.where(np.isin(numbers, codes), np.nan, numbers) if codes else numbers


def _days(name: str, column: Column, values: Any, notation: Notation, *, strict: bool) -> NDArray[Any]:
    """Dates as days of numpy, with NaT for gaps. Of a moment the day counts, in the time that the table states."""
    from pyarrow import compute, types

    if not isinstance(values, Cells):
        if types.is_dictionary(values.type) and kind_of(values.type) == "date":
            values = values.dictionary_decode()
        if types.is_date(values.type) or types.is_timestamp(values.type):
            known: NDArray[Any] = compute.cast(values, "date32", safe=False).to_numpy(zero_copy_only=False)
            return known.astype("datetime64[D]")
        if types.is_null(values.type):
            return np.full(len(values), np.datetime64("NaT", "D"))
        if kind_of(values.type) != "category":
            raise _wrong_type(name, "dates", values)
    days: NDArray[Any]
    days, gaps = _distinct_values(
        name,
        values,
        lambda cell: np.datetime64(read_day(cell, column.format) or "NaT", "D"),
        np.datetime64("NaT", "D"),
        notation.is_missing,
    )
    if strict and (np.isnat(days) & ~gaps).any():
        raise DataError(not_dates(name, column.format))
    return days


def _to_truth_values(name: str, values: Any, notation: Notation, *, strict: bool) -> FloatArray:
    """Zeros and ones, with NaN for gaps."""
    if isinstance(values, Cells) or kind_of(values.type) == "category":
        codes, gaps = _distinct_values(name, values, read_truth, -1, notation.is_missing)
        numbers = np.where(gaps, np.nan, codes)
    elif kind_of(values.type) == "date":
        raise DataError(not_boolean(name))
    else:
        numbers = _without_codes(to_numbers(name, values), notation)
    other = ~np.isin(numbers, (0.0, 1.0)) & ~np.isnan(numbers)
    if strict and other.any():
        raise DataError(not_boolean(name))
    return np.where(other, np.nan, numbers)


_NO_CATEGORY = -2


def _category_codes(
    name: str, values: Any, column: Column, notation: Notation, *, strict: bool
) -> tuple[IntArray, BoolArray]:
    """The place of every value among the listed ones, a negative number for others, and where values are missing.

    A cell that is neither text nor a number nor a truth value refuses the column if ``strict``, and is missing
    otherwise.
    """
    if not isinstance(values, Cells) and kind_of(values.type) == "date":
        raise _wrong_type(name, "categories", values)
    places = _places(column)

    def place_of(cell: Any) -> int:
        text = read_text(cell)
        return _NO_CATEGORY if text is None else places.get(column.code(text), -1)

    codes, gaps = _distinct_values(name, values, place_of, -1, notation.is_missing)
    wrong = codes == _NO_CATEGORY
    if strict and wrong.any():
        raise DataError(not_categories(name))
    return codes, gaps | wrong


def _distinct_values(
    name: str, values: Any, convert: Callable[[Any], Any], gap: Any, stands_for_missing: Callable[[Any], bool]
) -> tuple[Any, BoolArray]:
    """What ``convert`` makes of every value, computed once for each distinct one, and where values are missing."""
    distinct, at = values.distinct() if isinstance(values, Cells) else _arrow_distinct(name, values)
    is_gap = [is_missing(value) or stands_for_missing(value) for value in distinct]
    table = np.array(
        [gap if missing else convert(value) for value, missing in zip(distinct, is_gap, strict=True)] + [gap]
    )
    return table[at], np.array([*is_gap, True])[at]


def _arrow_distinct(name: str, values: Any) -> tuple[list[Any], IndexArray]:
    """The distinct values of an Arrow array, and the place of every value among them: one beyond them for null."""
    from pyarrow import array, compute, large_string, types

    if kind_of(values.type) == "unknown" and not types.is_null(values.type):
        raise _wrong_type(name, "text or numbers", values)
    if not types.is_dictionary(values.type):
        if types.is_string_view(values.type):
            # Older versions of Arrow cannot encode a view.
            values = array(values.to_pylist(), large_string())
        values = values.dictionary_encode()
    distinct = values.dictionary.to_pylist()
    at = compute.fill_null(compute.cast(values.indices, "int64"), len(distinct)).to_numpy(zero_copy_only=False)
    return distinct, at


class Labels:
    """Map the labels of records to the public classes; a label that matches none becomes a value that is no class.

    A missing label is that of the class ``fill``; for None it matches no class.
    """

    def __init__(self, target: Target, fill: Any, notation: Notation) -> None:
        classes = list(target.classes or ())
        self._name, self._notation = target.name, notation
        self._kind = type(classes[0])
        self._places = {self._parsed(label): i for i, label in enumerate(classes)}
        self._gap = -1 if fill is None else self._places[self._parsed(fill)]
        # There is no third truth value for other labels, so that truth values are stored as the equal numbers.
        plain = [int(label) for label in classes] if self._kind is bool else classes
        candidates = ("?" * (i + 1) if self._kind is str else -i - 1 for i in range(len(classes) + 1))
        self._values = np.array([*plain, next(label for label in candidates if label not in plain)])

    def from_arrow(self, values: Any) -> NDArray[Any]:
        """Labels from an Arrow array of any type."""
        codes, gaps = _distinct_values(
            self._name,
            values,
            lambda value: self._places.get(self._parsed(value), -1),
            -1,
            self._notation.is_missing,
        )
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
            return {0: False, 1: True}.get(truth_code(value))
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        whole = int(number) if number.is_integer() else None
        return whole if self._kind is int else {0: False, 1: True}.get(-1 if whole is None else whole)


def target_reader(
    target: Target, fill: Any, notation: Notation, *, invalid: str = "raise"
) -> Callable[[Any], NDArray[Any]]:
    """Return the function that converts Arrow arrays of the target to numbers or labels."""
    if target.task == "regress":

        def bounded(values: Any) -> NDArray[Any]:
            numbers = column_numbers(target.name, Column("number"), values, notation, strict=invalid == "raise")
            return bounded_target(target, fill, numbers, invalid=invalid)

        return bounded
    if target.classes is not None:
        return Labels(target, fill, notation).from_arrow
    return lambda values: _unlisted_labels(target.name, values, notation)


class OutcomeReader:
    """Reads what a fit predicts, and what goes with it: targets, or times and events; weights and exposures.

    Every column is read by itself, and every cell. With ``invalid="raise"`` a missing cell refuses the table, and so do
    a time that is not positive, a cell of an event that is neither yes nor no, and a weight or an exposure that is
    negative or infinite. With "null" such a cell is NaN, so that its record is null.
    """

    def __init__(self, bounds: TableBounds, *, invalid: str = "raise") -> None:
        target, strict = bounds.target, invalid == "raise"
        self._bounds = bounds
        notations = {name: bounds.notation(name) for name in (target.name, *bounds.beside)}
        of_times = target.task == "survive"
        if of_times:
            read: Callable[[Any], NDArray[Any]] = partial(
                _to_times, target.name, notation=notations[target.name], strict=strict
            )
        else:
            fill = bounds.missing.get(target.name)
            read = target_reader(target, fill, notations[target.name], invalid=invalid)
        self._readers = {target.name: read}
        if target.event is not None:
            self._readers[target.event] = partial(
                _to_events, target.event, notation=notations[target.event], strict=strict
            )
        for measured in filter(None, (bounds.weight, bounds.exposure)):
            name = measured.column
            self._readers[name] = partial(_to_measures, name, notation=notations[name], strict=strict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read, the target first."""
        return tuple(self._readers)

    def column(self, name: str, values: Any) -> NDArray[Any]:
        """One of the columns from an Arrow array."""
        return self._readers[name](values)

    def outcomes(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Targets from the columns that were read, in :class:`Outcomes` where weights or exposures go with them.

        Of times and events it is the time of each row, negative without an event.
        """
        target, bounds = self._bounds.target, self._bounds
        y = columns[target.name]
        if target.event is not None:
            event = columns[target.event]
            y = np.where(np.isnan(event), np.nan, np.where(event == 1.0, y, -y))
        if bounds.weight is None and bounds.exposure is None:
            return y

        def beside(measured: MeasuredColumn | None) -> Any:
            return None if measured is None else columns[measured.column]

        return Outcomes(y, beside(bounds.weight), beside(bounds.exposure))


def _to_times(name: str, values: Any, *, notation: Notation, strict: bool) -> FloatArray:
    """Positive times, with NaN for others."""
    times = column_numbers(name, Column("number"), values, notation, strict=strict)
    if strict and not np.isfinite(times).all():
        raise DataError(missing_outcome(name))
    usable = np.isfinite(times) & (times > 0.0)
    if strict and not usable.all():
        raise DataError(
            f"column {quoted(name)}: expected times above zero in every row, got others; correct them, or fit with "
            "invalid null, which leaves such records out."
        )
    return np.where(usable, times, np.nan)


def _to_events(name: str, values: Any, *, notation: Notation, strict: bool) -> FloatArray:
    """One for an event, zero for none, NaN for neither."""
    events = _to_truth_values(name, values, notation, strict=strict)
    if strict and np.isnan(events).any():
        raise DataError(missing_outcome(name))
    return events


def _to_measures(name: str, values: Any, *, notation: Notation, strict: bool) -> FloatArray:
    """Weights or exposures, with NaN for what is none."""
    numbers = column_numbers(name, Column("number"), values, notation, strict=strict)
    usable = np.isfinite(numbers) & (numbers >= 0.0)
    if strict and not usable.all():
        raise DataError(
            f"column {quoted(name)}: expected finite numbers of at least zero in every row, got others; correct them, "
            "or fit with invalid null, which leaves such records out."
        )
    return np.where(usable, numbers, np.nan)


def missing_outcome(name: str) -> str:
    """Message about a missing time or event."""
    return (
        f"column {quoted(name)}: expected a value in every row, got missing ones; correct them, or fit with invalid "
        "null, which leaves such records out."
    )


def bounded_target(target: Target, fill: Any, numbers: FloatArray, *, invalid: str = "raise") -> FloatArray:
    """Fill in missing numbers and clip infinite ones to the bounds; the estimator clips the others."""
    numbers = np.nan_to_num(
        numbers.astype(np.float64), nan=np.nan if fill is None else fill, posinf=target.upper, neginf=target.lower
    )
    if invalid == "raise" and np.isnan(numbers).any():
        raise DataError(missing_value(target.name))
    return numbers


def target_numbers(target: Target, fill: Any, values: Any, notation: Notation) -> FloatArray:
    """The target of a regression neither clipped nor scaled, with a stated value for missing cells."""
    numbers = column_numbers(target.name, Column("number"), values, notation, strict=False)
    return numbers if fill is None else np.where(np.isnan(numbers), fill, numbers)


def _unlisted_labels(name: str, values: Any, notation: Notation) -> NDArray[Any]:
    """Labels of any type, where no classes are stated."""
    from pyarrow import compute

    kind = kind_of(values.type)
    texts = values.to_pylist() if kind == "category" else []
    if kind not in ("number", "boolean", "category"):
        raise _wrong_type(name, "labels", values)
    if values.null_count or "" in texts or any(map(notation.is_missing, compute.unique(values).to_pylist())):
        raise DataError(
            f"column {quoted(name)}: expected a label in every row, got missing ones; list the classes in [target] of "
            "the bounds, and such records count as null records."
        )
    return np.array(texts) if kind == "category" else values.to_numpy(zero_copy_only=False)
