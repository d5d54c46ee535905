"""Public facts about one column: its type, and its bounds, categories or classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from taciturn.core.validation import is_width
from taciturn.tables.dates import PARTS, check_format, to_day
from taciturn.tables.texts import normal_text
from taciturn.tables.words import refusal

__all__ = ["KEYS", "Column", "Target", "find_repeated"]

KEYS = {
    "number": ("lower", "upper", "censored"),
    "boolean": (),
    "category": ("categories", "categories_file", "group"),
    "code": ("lower", "upper"),
    "date": ("since", "lower", "upper", "parts", "format"),
    "ignore": (),
}
"""Types of columns, with the facts that each type may have."""

_MONTHS = range(1, 13)

# Each code becomes a feature. Lists this long are written down, not counted through.
_MOST_CODES = 1000


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """Public facts about one column.

    Every conversion is a function of one cell and of these facts.

    Parameters
    ----------
    type : {"number", "boolean", "category", "code", "date", "ignore"}
        How the column enters the model; "ignore" leaves it out. "code": whole numbers that stand for categories, a
        short form of "category" with the numbers from lower to upper as categories.
    lower, upper : float, default=None
        Bounds of a column of numbers, from the nature of the column. None for both: they are to be found privately. Of
        dates they are days, as dates or as numbers of days since ``since``, or with ``parts`` years. Of codes they are
        the first and the last one.
    categories : tuple of str, default=()
        Values of a column of categories; each becomes a feature.
    censored : bool, default=False
        Of numbers: "<5" counts as 5, and ">100" as 100. Otherwise such cells are no numbers.
    group : int, default=None
        Of categories: this many first characters of a cell, and of every listed category, count.
    since : date, default=None
        Of dates without ``parts``: the feature is the number of days since this public day.
    parts : tuple of {"year", "month"}, default=()
        Of dates: the features are the year as a number, and the month as twelve categories.
    format : str, default=None
        Of dates that are text, as for ``strptime``, such as "%d.%m.%Y". None: as in 2020-12-31.
    """

    type: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    censored: bool = False
    group: int | None = None
    since: date | None = None
    parts: tuple[str, ...] = ()
    format: str | None = None

    def __repr__(self) -> str:
        stated = ((name, getattr(self, name)) for name in self.__slots__)
        # Identities, because False equals 0.0.
        said = [f"{name}={value!r}" for name, value in stated if value is not None and value is not False]
        return f"Column({', '.join(part for part in said if not part.endswith('=()'))})"

    @property
    def is_numeric(self) -> bool:
        """Whether the column is one number with bounds: a number, or the days since a date."""
        return self.type == "number" or (self.type == "date" and not self.parts)

    @property
    def is_bounded(self) -> bool:
        """Whether the bounds are known, if the column has any."""
        return not self.is_numeric or self.lower is not None

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
        if self.type == "date" and self.parts:
            months = [f"{name} month={month}" for month in _MONTHS]
            return [feature for part in self.parts for feature in ([f"{name} year"] if part == "year" else months)]
        return [] if self.type == "ignore" else [name]

    def reference(self, name: str) -> str | None:
        """The feature with which others of the column are compared, as all of them are collinear with the intercept."""
        if self.type == "category":
            return self.features(name)[0]
        return f"{name} month={_MONTHS[0]}" if "month" in self.parts else None

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """The range of every feature, which is mapped to [-1, 1]; zeros and ones have the range -1 to 1 and stay."""
        if self.is_numeric:
            return [self.ends]
        if self.type == "date":
            months = [(-1.0, 1.0)] * len(_MONTHS)
            return [ends for part in self.parts for ends in ([self.ends] if part == "year" else months)]
        return [(-1.0, 1.0)] * len(self.features(""))

    def checked(self, place: str) -> Column:
        """Return the column with bounds as floats and codes as categories; raise if a fact cannot be used.

        The error names the place.
        """
        if not isinstance(self.type, str) or self.type not in KEYS:
            raise refusal(
                f"{place}.type",
                self.type,
                'one of "number", "boolean", "category", "code", "date", "ignore"',
                "set it to one of them, and put names with dots in quotes",
            )
        if self.type == "number":
            _check_truth(f"{place}.censored", self.censored)
            return self._with_range(place, self.lower, self.upper)
        if self.type == "code":
            return Column("category", categories=_codes(place, self.lower, self.upper))
        if self.type == "date":
            return self._checked_date(place)
        if self.type == "category":
            return self._checked_categories(place)
        return self

    def _with_range(self, place: str, lower: Any, upper: Any) -> Column:
        if lower is None and upper is None:
            return self
        low, high = _range(place, lower, upper)
        return replace(self, lower=low, upper=high)

    def _checked_date(self, place: str) -> Column:
        check_format(f"{place}.format", self.format)
        if not self.parts:
            since = to_day(self.since)
            if since is None:
                raise refusal(f"{place}.since", self.since, "a public day", "write it as 2000-01-01, or state parts")
            ends = [(day - since).days if (day := to_day(end)) else end for end in (self.lower, self.upper)]
            return replace(self, since=since)._with_range(place, *ends)
        if not isinstance(self.parts, tuple) or find_repeated(self.parts) or not set(self.parts) <= set(PARTS):
            raise refusal(f"{place}.parts", list(self.parts), '"year", "month" or both', "list them in brackets")
        if self.since is not None:
            raise refusal(f"{place}.since", str(self.since), "no such key beside parts", "take out one of the two")
        if "year" not in self.parts:
            if self.lower is not None or self.upper is not None:
                raise refusal(f"{place}.lower", self.lower, "no bounds of months", "take lower and upper out")
            return self
        years = [day.year if (day := to_day(end)) else end for end in (self.lower, self.upper)]
        low, high = _range(place, *years)
        return replace(self, lower=low, upper=high)

    def _checked_categories(self, place: str) -> Column:
        if self.group is None:
            _check_categories(f"{place}.categories", self.categories)
            return self
        if type(self.group) is not int or self.group < 1:
            raise refusal(f"{place}.group", self.group, "a number of characters, at least 1", "write it as 3")
        _check_categories(f"{place}.categories", self.categories, once=False)
        return replace(self, categories=tuple(dict.fromkeys(map(self.code, self.categories))))

    def code(self, value: Any) -> str:
        """The text by which a cell is compared with the categories."""
        return normal_text(value)[: self.group]

    def checked_fill(self, place: str, value: Any, *, found: bool = False) -> Any:
        """Return the value that replaces missing ones; raise if it is no value of this column.

        Where the bounds are to be ``found``, or were, a value beyond them counts as the nearest bound.
        """
        if self.is_numeric:
            day = to_day(value) if self.type == "date" and self.since is not None else None
            value = value if day is None or self.since is None else (day - self.since).days
            if found or self.lower is None:
                return _number(place, value)
            return _inside(place, value, self.lower, self.upper)
        if self.type == "date":
            raise refusal(place, value, "indicator = true for the parts of a date", "write {indicator = true}")
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

    def checked_fill(self, place: str, value: Any, *, found: bool = False) -> Any:
        """Return the value that replaces missing ones; raise if it is no value of the target."""
        if self.task == "regress":
            return _number(place, value) if found else _inside(place, value, self.lower, self.upper)
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


def _check_categories(place: str, categories: tuple[Any, ...], *, once: bool = True) -> None:
    if not categories:
        raise refusal(place, [], "at least one category", "list the public categories of the column")
    for category in categories:
        if not isinstance(category, str):
            raise refusal(place, category, "text", "write every category in quotes, numbers too")
    twice = find_repeated(map(normal_text, categories)) if once else None
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


def _check_truth(place: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise refusal(place, value, "true or false", "write one of them, without quotes")


def _range(place: str, lower: Any, upper: Any) -> tuple[float, float]:
    low, high = _number(f"{place}.lower", lower), _number(f"{place}.upper", upper)
    if high - low > 0.0 and not is_width(high - low):
        raise refusal(
            f"{place}.lower",
            lower,
            f"a number that differs from {place}.upper={high!r} by 1e-301 to 1e301",
            "state the range that the column can have by its nature, or change its unit",
        )
    if not high > low:
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
