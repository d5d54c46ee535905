"""Public facts about one column: its type, and its bounds, categories or classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from taciturn.tables.texts import normal_text
from taciturn.tables.words import refusal

__all__ = ["KEYS", "Column", "Target", "find_repeated"]

KEYS = {
    "number": ("lower", "upper"),
    "boolean": (),
    "category": ("categories",),
    "code": ("lower", "upper"),
    "ignore": (),
}
"""Types of columns, with the facts that each type needs."""

# Each code becomes a feature. Lists this long are written down, not counted through.
_MOST_CODES = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """Public facts about one column.

    Parameters
    ----------
    type : {"number", "boolean", "category", "code", "ignore"}
        How the column enters the model; "ignore" leaves it out. "code": whole numbers that stand for categories, a
        short form of "category" with the numbers from lower to upper as categories.
    lower, upper : float, default=None
        Bounds of a column of numbers, from the nature of the column; or the first and the last code.
    categories : tuple of str, default=()
        Values of a column of categories; each becomes a feature.
    """

    type: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper bound of a column of numbers."""
        if self.lower is None or self.upper is None:
            raise TypeError(f"a {self.type} column has no bounds")
        return self.lower, self.upper

    def features(self, name: str) -> list[str]:
        """Names of the features of the column."""
        if self.type == "category":
            return [f"{name}={category}" for category in self.categories]
        return [] if self.type == "ignore" else [name]

    @property
    def unit(self) -> float:
        """How many units of the column one unit of its features is: numbers are mapped from their bounds to [-1, 1]."""
        if self.lower is None or self.upper is None:
            return 1.0
        return self.upper / 2.0 - self.lower / 2.0

    def checked(self, place: str) -> Column:
        """Return the column with bounds as floats and codes as categories; raise if a fact cannot be used.

        The error names the place.
        """
        if not isinstance(self.type, str) or self.type not in KEYS:
            raise refusal(
                f"{place}.type",
                self.type,
                'one of "number", "boolean", "category", "code", "ignore"',
                "set it to one of them, and put names with dots in quotes",
            )
        if self.type == "number":
            lower, upper = _range(place, self.lower, self.upper)
            return replace(self, lower=lower, upper=upper)
        if self.type == "code":
            return Column("category", categories=_codes(place, self.lower, self.upper))
        if self.type == "category":
            _check_categories(f"{place}.categories", self.categories)
        return self

    def checked_fill(self, place: str, value: Any) -> Any:
        """Return the value that replaces missing ones; raise if it is no value of this column."""
        if self.type == "number":
            return _inside(place, value, self.lower, self.upper)
        if self.type == "boolean" and not isinstance(value, bool):
            raise refusal(place, value, "true or false, as the column is boolean", "fill in one of them")
        if self.type == "category" and type(value) is int:
            value = str(value)
        if self.type == "category" and value not in self.categories:
            raise refusal(place, value, "one of the categories of the column", "fill in one of them, or add it there")
        return value


@dataclass(frozen=True, slots=True)
class Target:
    """Public facts about the column to predict: its bounds, or its classes.

    Parameters
    ----------
    name : str
        Name of the column.
    lower, upper : float, default=None
        Bounds of a target of numbers.
    classes : tuple of str, of int or of bool, default=None
        Labels of a target of classes. None, without bounds: the labels are taken from the table, and their set counts
        as public.
    """

    name: str
    lower: float | None = None
    upper: float | None = None
    classes: tuple[Any, ...] | None = None

    @property
    def task(self) -> str:
        """The learning task: "regress" or "classify"."""
        return "classify" if self.lower is None else "regress"

    def checked(self) -> Target:
        """Return the target with bounds as floats; raise if a fact cannot be used, and name its place."""
        if not isinstance(self.name, str):
            raise refusal("target.name", self.name, "the name of the column to predict", "write it in quotes")
        if self.lower is None and self.upper is None:
            if self.classes is not None:
                _check_labels(self.classes)
            return self
        if self.classes is not None:
            raise refusal(
                "target.classes",
                list(self.classes),
                "no classes beside lower and upper",
                "take out what does not apply",
            )
        lower, upper = _range("target", self.lower, self.upper)
        return replace(self, lower=lower, upper=upper)

    def checked_fill(self, place: str, value: Any) -> Any:
        """Return the value that replaces missing ones; raise if it is no value of the target."""
        if self.task == "regress":
            return _inside(place, value, self.lower, self.upper)
        if self.classes is None or (type(value), value) not in [(type(label), label) for label in self.classes]:
            raise refusal(place, value, "one of the classes that [target] lists", "fill in a class, or take it out")
        return value


def find_repeated(values: Iterable[Any]) -> Any:
    """Return the first value that occurs more than once, or None."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


def _check_labels(classes: tuple[Any, ...]) -> None:
    kinds = {type(label) for label in classes}
    plain = len(kinds) == 1 and kinds <= {str, int, bool}
    if not plain or len(classes) < 2 or find_repeated(map(normal_text, classes)) is not None:
        raise refusal(
            "target.classes",
            list(classes),
            "at least two different labels, all text, all whole numbers or all true and false",
            "list every label that a record may carry, once",
        )
    # Doubles represent all smaller integers exactly.
    if kinds == {int} and max(map(abs, classes)) >= 2**53:
        raise refusal("target.classes", list(classes), "labels below 2**53", "rename them, or write them in quotes")


def _check_categories(place: str, categories: tuple[Any, ...]) -> None:
    if not categories:
        raise refusal(place, [], "at least one category", "list the public categories of the column")
    for category in categories:
        if not isinstance(category, str):
            raise refusal(place, category, "text", "write every category in quotes, numbers too")
    twice = find_repeated(map(normal_text, categories))
    if twice is not None:
        raise refusal(place, twice, "every category once, 1.0 being 1 and True being true", "take the second one out")


def _codes(place: str, lower: Any, upper: Any) -> tuple[str, ...]:
    """The whole numbers from the first code to the last, as categories."""
    for name, value in (("lower", lower), ("upper", upper)):
        if type(value) is not int:
            raise refusal(f"{place}.{name}", value, "a whole number, as the column holds codes", "give one")
    if not 0 < upper - lower < _MOST_CODES:
        raise refusal(
            f"{place}.upper",
            upper,
            f"a code above lower={lower}, and at most {_MOST_CODES:,} codes",
            'correct the range, or list those that get a feature with type = "category"',
        )
    return tuple(map(str, range(lower, upper + 1)))


def _range(place: str, lower: Any, upper: Any) -> tuple[float, float]:
    low, high = _number(f"{place}.lower", lower), _number(f"{place}.upper", upper)
    # Half of the width must be positive, too.
    if not high / 2.0 - low / 2.0 > 0.0:
        raise refusal(
            f"{place}.lower",
            lower,
            f"a number below {place}.upper={high!r}",
            "exchange or widen the bounds, or leave out a column that can have one value only",
        )
    return low, high


def _inside(place: str, value: Any, lower: Any, upper: Any) -> float:
    number = _number(place, value)
    if not lower <= number <= upper:
        raise refusal(place, value, f"a number within the bounds, from {lower!r} to {upper!r}", "fill in another")
    return number


def _number(place: str, value: Any) -> float:
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise refusal(place, value, "a finite number", "give what the values can be by their nature, without quotes")
    return number
