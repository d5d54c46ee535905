"""Columns of a table: their types, dates, texts, missing cells, and the problems found in them."""

from __future__ import annotations

import codecs
import difflib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from taciturn.core.errors import DataError, ParameterError, SeveralProblemsError, TaciturnError, visible
from taciturn.core.validation import check_truth, is_width
from taciturn.data.survival import check_cuts

# ---- Names and values in messages about tables: short, on one line, and never a cell.

_LONGEST = 60


def shorten(value: object) -> object:
    """Shorten a public value for a message."""
    if isinstance(value, list | tuple) and len(value) > _LONGEST:
        # Longer than a message even so.
        value = value[:_LONGEST]
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a very long number"
    if len(text) <= _LONGEST:
        return value
    return (value if isinstance(value, str) else text)[: _LONGEST - 3] + "..."


def quoted(name: str, longest: int | None = _LONGEST) -> str:
    """Quote a name as TOML and JSON do, and shorten it to ``longest`` characters."""
    short = name if longest is None or len(name) <= longest else name[: longest - 3] + "..."
    # JSON does not escape the delete character, which TOML refuses, nor invisible characters.
    return visible(json.dumps(short, ensure_ascii=False))


def refusal(place: str, value: object, expected: str, remedy: str) -> ParameterError:
    """Make the error about a public value that cannot be used; long values are shortened."""
    return ParameterError(place, shorten(value), expected, remedy)


# ---- Problems that are told together, so that a table or a bounds file is mended once and not once per run.

_MOST_NAMES = 10
_MOST_TOLD = 20
# Names are not searched for among more, nor similar ones among more or among longer ones, which would take seconds.
_MOST_KNOWN, _MOST_COMPARED, _LONGEST_COMPARED = 50_000, 2000, 100


class Problems:
    """Errors that are gathered one by one and raised together."""

    def __init__(self) -> None:
        self.found: list[TaciturnError] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep an error of the block for :meth:`raise_all`."""
        try:
            yield
        except SeveralProblemsError as error:
            self.found += error.errors
        except TaciturnError as error:
            self.found.append(error)

    def raise_all(self) -> None:
        """Raise what was found: one error as it is, several as one."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            rest = len(self.found) - _MOST_TOLD
            told = self.found[:_MOST_TOLD]
            if rest > 0:
                told.append(DataError(f"table: expected none of the above, got {rest:,} more; mend these first."))
            raise SeveralProblemsError(told)


class KnownNames:
    """Names among which the meant one is searched for, and a similar one at most as often as problems are told."""

    def __init__(self, names: Collection[str]) -> None:
        self._plain = {_plain(other): other for other in names} if len(names) <= _MOST_KNOWN else {}
        short = [plain for plain in self._plain if len(plain) <= _LONGEST_COMPARED]
        self._short = short if len(short) <= _MOST_COMPARED else []
        self._searches = 0

    def closest(self, name: str, *, alike: bool = True) -> str | None:
        """The name that was probably meant, as :func:`closest_name` finds it."""
        plain = _plain(name)
        if (same := self._plain.get(plain)) is not None:
            return same
        if not alike or len(plain) > _LONGEST_COMPARED or self._searches >= _MOST_TOLD:
            return None
        self._searches += 1
        similar = difflib.get_close_matches(plain, self._short, n=1)
        return self._plain[similar[0]] if similar else None


def closest_name(name: str, names: Collection[str], *, alike: bool = True) -> str | None:
    """The name that was probably meant: the same but for capitals, spaces and signs, or with ``alike`` a similar one.

    >>> closest_name("Age", ["age", "dose"]), closest_name("Body mass", ["body_mass"]), closest_name("x", ["age"])
    ('age', 'body_mass', None)
    """
    return KnownNames(names).closest(name, alike=alike)


def did_you_mean(name: str | None) -> str:
    """The beginning of a remedy, if there is a name to propose."""
    return "" if name is None else f"did you mean {quoted(name)}? "


def listed_names(names: list[str]) -> str:
    """Names in quotes, the first ten of them."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(map(quoted, names[:_MOST_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")


def _plain(name: str) -> str:
    """A name without capitals, spaces and signs; as it is if nothing is left."""
    return re.sub(r"[\W_]+", "", name).casefold() or name


# ---- Canonical text of categories and labels, the same for a text table and for a typed one.

# A number with leading zeros is a code, and stays as it is.
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_WHOLE = 2.0**53
# Whole decimals with more digits than any code are compared as doubles: one could have a billion of them.
_MOST_DIGITS = 100


def normal_text(value: Any) -> str:
    """Return the canonical text by which categories and labels are compared.

    A text table has "1.0", "1" or "True" where a typed table has a number or a truth value; both must be equal. So must
    decimals of all scales: one decimal with a fraction gives all others of its column a scale.

    >>> [normal_text(value) for value in ("1.0", 1, 1.0, "1.50", 1.5, "True", False, "007", "north")]
    ['1', '1', '1', '1.5', '1.5', 'true', 'false', '007', 'north']
    >>> [normal_text(Decimal(text)) for text in ("1", "1.00", "1.50")]
    ['1', '1', '1.5']
    """
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower()
        if not _DECIMAL.fullmatch(value):
            return value
        value = float(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        whole = value.is_finite() and value.adjusted() < _MOST_DIGITS and value == value.to_integral_value()
        value = int(value) if whole else float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return str(value)


# ---- Cells as numbers, truth values and text by public rules. Every function here looks at one cell.
# Functions named ``read_...`` take a cell of any kind, such as one of an object column of pandas. The type that the
# bounds state decides how it is read, never the other cells of its column.

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_NUMBERS: Any = Real | Decimal | np.bool_

_TRUE = ("true", "1", "yes", "y", "ja", "j", "oui", "si", "sí", "sim")
_FALSE = ("false", "0", "no", "n", "nein", "non", "não", "nao", "nee")
TRUTHS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
"""Words for true and false, in small letters: a fixed list, so that no table is asked for its words."""

_LIMIT = re.compile(r"\s*[<>≤≥]=?\s*(.*)", re.DOTALL)


THOUSANDS = (".", ",", " ", "'")
"""Signs between groups of three digits."""

# Programs write spaces that do not break a line, and typographic apostrophes.
_SIGNS = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}


@cache
def _grouped(decimal: str, thousands: str) -> re.Pattern[str]:
    sign = _SIGNS.get(thousands, re.escape(thousands))
    # Groups of three digits alone: in 1.5 the point is none of thousands.
    return re.compile(rf"(\s*[-+]?)(\d{{1,3}}(?:{sign}\d{{3}})+)((?:{re.escape(decimal)}\d*)?\s*)", re.ASCII)


def parse_number(text: str, decimal: str = ".", thousands: str | None = None) -> float:
    """The number that a cell states, or NaN.

    >>> parse_number("1,5", ","), parse_number("1.5", ","), parse_number("forty")
    (1.5, nan, nan)
    >>> parse_number("1.234.567,5", ",", "."), parse_number("1.5", ",", "."), parse_number("12,34", ".", ",")
    (1234567.5, nan, nan)
    """
    if thousands is not None and (found := _grouped(decimal, thousands).fullmatch(text)):
        text = found[1] + re.sub(r"\D", "", found[2]) + found[3]
    if decimal != ".":
        text = "" if "." in text else text.replace(decimal, ".")
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_censored(text: str, decimal: str = ".", thousands: str | None = None) -> float:
    """The number that a cell states, or that follows a sign such as "<" in it; NaN if there is none.

    >>> parse_censored("<5"), parse_censored("> 0,5", ","), parse_censored("7"), parse_censored("low")
    (5.0, 0.5, 7.0, nan)
    """
    limit = _LIMIT.fullmatch(text)
    return parse_number(limit[1] if limit else text, decimal, thousands)


def truth_code(text: str) -> int:
    """1 or 0 for a word that means true or false, and -1 for every other text.

    >>> [truth_code(text) for text in ("Yes", "NEIN", " true", "1", "maybe")]
    [1, 0, 1, 1, -1]
    """
    found = TRUTHS.get(text.strip().lower())
    return -1 if found is None else int(found)


def never_raises(otherwise: S) -> Callable[[Callable[P, R]], Callable[P, R | S]]:
    """Make a function return ``otherwise`` where it raises: a cell may be an object whose every method does."""

    def decorate(function: Callable[P, R]) -> Callable[P, R | S]:
        @wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R | S:
            try:
                return function(*args, **kwargs)
            except Exception:
                return otherwise

        return inside

    return decorate


@never_raises(False)
def is_missing(cell: Any) -> bool:
    """Whether a cell stands for a missing value: None, NaN, or the missing values of numpy and pandas."""
    if cell is None:
        return True
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    # Whoever has such a cell has imported pandas.
    pandas = sys.modules.get("pandas")
    return pandas is not None and (cell is pandas.NA or cell is pandas.NaT)


@never_raises(math.nan)
def read_number(cell: Any, parse: Callable[[str], float] | None = None) -> float:
    """The number that a cell is, or NaN; a number beyond all doubles is infinite.

    Text is parsed where there is a rule for it, and is no number otherwise.

    >>> [read_number(cell) for cell in (True, Decimal("1.50"), -10**400, "1.5", b"1")]
    [1.0, 1.5, -inf, nan, nan]
    """
    if isinstance(cell, str):
        return math.nan if parse is None else parse(str.__str__(cell))
    if not isinstance(cell, _NUMBERS) or isinstance(cell, np.timedelta64):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


@never_raises(-1)
def read_truth(cell: Any) -> int:
    """1 or 0 for a cell that means true or false, as a word, a number or a truth value, and -1 for every other one."""
    if isinstance(cell, str):
        return truth_code(str.__str__(cell))
    return {0.0: 0, 1.0: 1}.get(read_number(cell), -1)


@never_raises(None)
def read_text(cell: Any) -> str | None:
    """The text by which a cell is compared with categories; None unless it is text, a number or a truth value.

    >>> [read_text(cell) for cell in ("north", 1, 1.0, Decimal("1.0"), True, b"1")]
    ['north', '1', '1', '1', 'true', None]
    """
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, bool | np.bool_):
        return normal_text(bool(cell))
    if isinstance(cell, np.timedelta64):
        return None
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Decimal):
        return normal_text(cell)
    return normal_text(float(cell)) if isinstance(cell, Real) else None


_MOST_MISSING = 1000


@dataclass(frozen=True, slots=True)
class Notation:
    """How the cells of one column are written.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal point of numbers in text.
    thousands : {".", ",", " ", "'"}, default=None
        The sign between groups of three digits of numbers in text.
    missing : frozenset of str, default=frozenset()
        Texts that stand for a missing cell, in the form of :func:`normal_text`: "999" is the number 999, too.
    """

    decimal: str = "."
    thousands: str | None = None
    missing: frozenset[str] = frozenset()

    @property
    def codes(self) -> list[float]:
        """The numbers among what stands for a missing cell."""
        numbers = (parse_number(text) for text in self.missing)
        return [number for number in numbers if math.isfinite(number)]

    def is_missing(self, cell: Any) -> bool:
        """Whether a cell of any kind is one of the texts that stand for a missing one.

        >>> [Notation(missing=frozenset({"k.A.", "999"})).is_missing(cell) for cell in ("k.A.", " 999", 999.0, "99")]
        [True, True, True, False]
        """
        text = read_text(cell) if self.missing else None
        return text is not None and normal_text(text.strip()) in self.missing

    def parse(self, text: str, *, censored: bool = False) -> float:
        """The number that a text states, or NaN."""
        return (parse_censored if censored else parse_number)(text, self.decimal, self.thousands)


def check_missing_values(place: str, stated: Any) -> tuple[str, ...]:
    """Return texts that stand for missing cells; raise if they are none. Numbers become text."""
    listed = stated if isinstance(stated, tuple) else ()
    texts = tuple(normal_text(text) if type(text) in (int, float) else text for text in listed)
    usable = isinstance(stated, tuple) and all(isinstance(text, str) and text.strip() for text in texts)
    if not usable or len(texts) > _MOST_MISSING:
        expected = f"a list of at most {_MOST_MISSING:,} texts, none of them empty"
        raise refusal(place, stated, expected, 'write it as ["k.A.", "999"]; an empty cell is missing in any case')
    return texts


# ---- Dates by a public rule: text and typed cells as days, each cell by itself.

PARTS = ("year", "month")
"""Parts of a date that can be features."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?", re.DOTALL)
_SAMPLES = (datetime(1999, 12, 31), datetime(2004, 2, 29), datetime(2021, 3, 1))


def to_day(value: Any) -> date | None:
    """A day of TOML or JSON as a date; None for everything else."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    return parse_day(value, None) if isinstance(value, str) else None


def parse_day(text: str, format: str | None) -> date | None:
    """The day that a cell states; None if it states none.

    >>> [str(parse_day(text, "%d.%m.%Y")) for text in ("31.12.2020", "31.02.2020", "2020-12-31")]
    ['2020-12-31', 'None', 'None']
    >>> str(parse_day("2020-12-31 23:59", None))
    '2020-12-31'
    """
    text = text.strip()
    try:
        if format is not None:
            return datetime.strptime(text, format).date()
        return date.fromisoformat(text[:10]) if _ISO.fullmatch(text) else None
    except ValueError:
        return None


@never_raises(None)
def read_day(cell: Any, format: str | None) -> date | None:
    """The day of a cell of any kind, in the time that the cell itself states; None if it states none."""
    if isinstance(cell, str):
        return parse_day(str.__str__(cell), format)
    if isinstance(cell, np.datetime64):
        # A number of days for years that dates do not have.
        cell = cell.astype("datetime64[D]").item()
    day = to_day(cell)
    # An object may call itself a moment and have something else for its day.
    return day if type(day) is date else None


def check_format(place: str, format: Any) -> None:
    """Raise if a format does not tell year, month and day."""
    if format is None:
        return
    try:
        told = isinstance(format, str) and all(
            parse_day(day.strftime(format), format) == day.date() for day in _SAMPLES
        )
    except (ValueError, re.error):
        told = False
    if not told:
        raise refusal(place, format, "a format with year, month and day", 'write it as "%d.%m.%Y" or "%m/%d/%Y"')


# ---- How the file of a table is written: ``[table]`` in ``bounds.toml``.

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Delimiters of text tables, with their names."""

STATED_NAMES = "the first line of the table holds names and no record, though names in it may look like values"
"""What a certificate assumes where ``header`` is stated."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    r"""How the file of a table is written, where its name does not say so.

    Parameters
    ----------
    delimiter : {",", ";", "\t", "|"}, default=None
        Between the cells of a text table. None: tabs in a file named .tsv, commas in others.
    decimal : {".", ","}, default="."
        The decimal point of a text table.
    name : str, default=None
        The table of an SQLite file, or the sheet of a workbook. None: the only one.
    header : bool, default=False
        Whether the first line of a text table or sheet is stated to hold names, whatever they look like. Otherwise
        names that look like values are refused, since they would publish the first record. Certificates assume it.
    encoding : str, default=None
        The encoding of a text table, such as "utf-16", "latin-1" or "windows-1252". None: UTF-8.
    thousands : {".", ",", " ", "'"}, default=None
        The sign between groups of three digits of the numbers of a text table.
    missing_values : tuple of str, default=()
        Texts and numbers that stand for a missing cell in every column that does not list them as a category or class.
    """

    delimiter: str | None = None
    decimal: str = "."
    name: str | None = None
    header: bool = False
    encoding: str | None = None
    thousands: str | None = None
    missing_values: tuple[str, ...] = ()

    def checked(self) -> TableLayout:
        """Return the layout, with the usual name of the encoding; raise everything that cannot be used."""
        problems, encoding, missing_values = Problems(), self.encoding, self.missing_values
        with problems.gathering():
            if self.delimiter is not None and self.delimiter not in tuple(DELIMITERS):
                expected = 'one of ",", ";", "\\t" and "|"'
                raise refusal("table.delimiter", self.delimiter, expected, "write the table with one of them")
        with problems.gathering():
            if self.decimal not in (".", ","):
                raise refusal("table.decimal", self.decimal, '"." or ","', "write numbers with one of them")
        with problems.gathering():
            if self.name is not None and (not isinstance(self.name, str) or not self.name):
                raise refusal("table.name", self.name, "the name of a table or sheet", "write it in quotes")
        with problems.gathering():
            check_truth(header=self.header)
        with problems.gathering():
            encoding = _codec(self.encoding)
        with problems.gathering():
            if self.thousands is not None and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
                expected = 'one of ".", ",", " " and "\'", and not the decimal point'
                raise refusal("table.thousands", self.thousands, expected, "change it or take it out")
        with problems.gathering():
            missing_values = check_missing_values("table.missing_values", self.missing_values)
        problems.raise_all()
        return replace(self, encoding=encoding, missing_values=missing_values)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a certificate has to assume of a table that is read so."""
        return (STATED_NAMES,) if self.header else ()

    def to_content(self) -> dict[str, Any]:
        """The stated keys, without those that have their defaults."""
        stated = {name: getattr(self, name) for name in self.__slots__}
        kept = {name: value for name, value in stated.items() if value not in (None, False, ())}
        kept |= {"missing_values": list(self.missing_values)} if self.missing_values else {}
        return {name: value for name, value in kept.items() if (name, value) != ("decimal", ".")}


_CODECS = (
    *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"),
    *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
    *(f"cp{page}" for page in (437, 850, 852, 858, *range(1250, 1259))),
    *("koi8-r", "mac-roman"),
)
"""Encodings by the names of Python's codecs: in none of them can the bytes of a cell hide a delimiter or an end."""


def _codec(encoding: Any) -> str | None:
    if encoding is None:
        return None
    try:
        found = codecs.lookup(encoding).name if isinstance(encoding, str) else None
    except (LookupError, ValueError):
        found = None
    if found not in _CODECS:
        expected = 'an encoding such as "utf-16", "latin-1" or "windows-1252"'
        raise refusal("table.encoding", encoding, expected, "correct it, or save the table as UTF-8")
    return found


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands for a missing cell of one column.

    Parameters
    ----------
    value : object, default=None
        A value of the column. None: the features of the column are 0, which is the middle of the bounds of a number.
    indicator : bool, default=False
        Whether the column has one more feature, named "age missing" for a column "age", with 1 where a cell is missing.
    """

    value: Any = None
    indicator: bool = False


def checked_fill(place: str, stated: Any, check: Callable[[str, Any], Any]) -> Fill:
    """Read an entry of ``[missing]``; ``check`` returns a value of the column, or raises."""
    if isinstance(stated, dict):
        for key in stated:
            if key not in ("value", "indicator"):
                raise refusal(place, key, "no key but value, indicator", "check the spelling")
        stated = Fill(stated.get("value"), stated.get("indicator", False))
    if not isinstance(stated, Fill):
        return Fill(check(place, stated))
    if not isinstance(stated.indicator, bool) or (stated.value is None and not stated.indicator):
        expected = "true, or a value beside it"
        raise refusal(f"{place}.indicator", stated.indicator, expected, "write {indicator = true}, or a value")
    return Fill(None if stated.value is None else check(place, stated.value), stated.indicator)


def fill_to_content(fill: Fill) -> Any:
    """The entry of ``[missing]`` in the types of JSON and TOML."""
    if not fill.indicator:
        return fill.value
    return ({} if fill.value is None else {"value": fill.value}) | {"indicator": True}


def is_fill_of(stated: Any, kind: str) -> bool:
    """Whether a default for all columns is meant for those of a type: numbers for numbers, text for categories."""
    value = stated.get("value") if isinstance(stated, dict) else stated.value if isinstance(stated, Fill) else stated
    if value is None:
        return True
    kinds = {"number": (int, float), "boolean": (bool,), "category": (str,)}.get(kind, ())
    return type(value) in kinds


# ---- The schema of a table: names and kinds of its columns, never a value.

LABEL = "label"
"""Name of the target of a libsvm file, the number at the beginning of a line."""

PUBLIC_COLUMNS = "the names and types of the table's columns are public"
"""An assumption wherever a table with named columns is encoded: some of them are found by their types."""

STATED_TERMS = "the terms and their knots were chosen without looking at these data"
"""An assumption wherever bounds have terms."""

_PUBLIC_WIDTH = "the largest column number of the table is public"
_PARSED = "the file can be parsed as a table; one that cannot is refused, and the refusal tells of it"

MOST_COLUMNS = 50_000
"""Largest number of columns of a dense table; libsvm files may have more."""

_FEWEST_POSITIONS = 5
"""Fewer whole numbers in a row than this may be the answers of a person."""

_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
# Values with a letter in them: numbers with an exponent, days and times, truths and gaps, and addresses.
_VALUE = re.compile(
    rf"[<>≤≥=+\-\s]*[\d.,]*\d[e][+\-]?\d+|\d{{4}}-\d\d?-\d\d?[t\s].*|\d\d?:\d\d.*"
    rf"|\d\d?[-./\s]*{_MONTHS}[-./,\s]*\d{{2,4}}|{_MONTHS}[-./\s]*\d\d?[-./,\s]+\d{{2,4}}"
    r"|true|false|yes|nan|null|n/a|#n/a|\S+@\S+",
    re.IGNORECASE,
)
_NO_VALUES = ("#", "%")
_RENAMED = re.compile(r"(.*)\.\d+", re.DOTALL)
_UNNAMED = re.compile(r"Unnamed: \d+")


@dataclass(frozen=True)
class TableSchema:
    """Names and kinds of the columns of a table, which count as public.

    Parameters
    ----------
    names : tuple of str
        Names of the columns, in the order of the table.
    kinds : tuple of str
        Kinds of the columns: "number", "boolean", "category" (text), "date" or "unknown".
    sparse : bool, default=False
        Whether the table stores nonzero cells only.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    sparse: bool = False

    def __post_init__(self) -> None:
        if not self.sparse and len(self.names) > MOST_COLUMNS:
            raise DataError(
                f"table: expected at most {MOST_COLUMNS:,} columns, got {len(self.names):,}; write so wide a table as "
                "a libsvm file, or leave columns out."
            )
        if len(set(self.names)) < len(self.names):
            # The message gives positions: in a table without a header the names are cells.
            first, second = _find_repeated(self.names)
            raise DataError(
                f"table: expected every column name once, got the same one for columns {first} and {second}; rename "
                "one of them, or add a line of names if there is none."
            )

    def __repr__(self) -> str:
        return f"TableSchema({len(self.names)} columns{', sparse' if self.sparse else ''})"


def file_assumptions(
    invalid: str, layout: TableLayout | None, *, sparse: bool, terms: Sequence[str] = ()
) -> tuple[str, ...]:
    """What a release from a table on disk takes for granted, beyond what it assumes of single records.

    A ``sparse`` table, one in a libsvm file, has as many columns as its largest column number says. ``terms`` are those
    of the bounds.
    """
    # With "raise" the certificate assumes more: that no record of the file is refused.
    parsed = (_PARSED,) if invalid == "null" else ()
    stated = () if layout is None else layout.assumptions
    chosen = (STATED_TERMS,) if terms else ()
    return PUBLIC_COLUMNS, *((_PUBLIC_WIDTH,) if sparse else ()), *parsed, *stated, *chosen


def _find_repeated(names: tuple[str, ...]) -> tuple[int, int]:
    """Positions, from 1, of the first two columns with the same name."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            return seen[name], position
        seen[name] = position
    raise AssertionError("unreachable")


def find_value(names: Sequence[str]) -> int | None:
    """The position, from 1, of the first name that looks like a value, or None.

    Such names are those without a letter, which are numbers, days and empty cells, and numbers, days, times, truths,
    gaps and addresses with letters in them; a name that is another one with a number behind it, as programs rename what
    occurs twice; and "Unnamed: 3", as they rename what is empty. The name of the first column may be empty, since
    indices of tables have none. Whole numbers in a row from 0 or 1, at least five, are positions of columns.

    >>> find_value(["male", "63"]), find_value(["sex", "age"]), find_value(["0", "1", "2", "3", "4", "sex"])
    (2, None, None)
    """
    present = set(names)
    found = [
        place
        for place, name in enumerate(names)
        if _is_value(name, present) and not (place == 0 and (not name or _UNNAMED.fullmatch(name)))
    ]
    numbers = [names[place] for place in found]
    if len(numbers) >= _FEWEST_POSITIONS and any(
        numbers == [str(first + at) for at in range(len(numbers))] for first in (0, 1)
    ):
        return None
    return found[0] + 1 if found else None


def is_row_number(name: str, names: Sequence[str]) -> bool:
    """Whether a column is the first one and has no name, as the row numbers that R and pandas write.

    >>> is_row_number("", ["", "age"]), is_row_number("Unnamed: 0", ["Unnamed: 0", "age"]), is_row_number("", ["a", ""])
    (True, True, False)
    """
    return name == names[0] and (not name.strip() or _UNNAMED.fullmatch(name) is not None)


def _is_value(name: str, present: set[str]) -> bool:
    text = name.strip()
    if not any(map(str.isalpha, text)):
        return text not in _NO_VALUES
    renamed = _RENAMED.fullmatch(name)
    return (
        text == "NA"
        or _VALUE.fullmatch(text) is not None
        or _UNNAMED.fullmatch(text) is not None
        or (renamed is not None and renamed[1] in present)
    )


def is_index(name: str) -> bool:
    """Whether the name is an index of a libsvm file. Such a file has a column, maybe of zeros, for every index."""
    return name.isdecimal() and name.isascii() and name == str(int(name[:20]))


def kind_of(arrow_type: Any) -> str:
    """Kind of a column of this Arrow type."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "category"
    return "date" if types.is_temporal(arrow_type) else "unknown"


# ---- Public facts about one column: its type, and its bounds, categories or classes.

KEYS = {
    "number": ("lower", "upper", "censored", "per", "missing_values"),
    "boolean": ("missing_values",),
    "category": ("categories", "categories_file", "group", "reference", "missing_values"),
    "code": ("lower", "upper", "reference", "missing_values"),
    "date": ("since", "lower", "upper", "parts", "format", "per", "missing_values"),
    "ignore": (),
}
"""Types of columns, with the facts that each type may have."""

N_MONTHS = 12
"""Features of the month of a date."""

_COLUMNS_MONTHS = range(1, N_MONTHS + 1)

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
    reference : str, default=None
        Of categories and codes: the one with which others are compared. None: the first one that is listed.
    per : float, default=None
        Of numbers and days: the change for which effects are shown, such as 10 for an odds ratio per 10 years. None: 1.
    missing_values : tuple of str, default=()
        Texts and numbers that stand for a missing cell of this column, beside those of the table.
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
    reference: str | None = None
    per: float | None = None
    missing_values: tuple[str, ...] = ()

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
            months = [f"{name} month={month}" for month in _COLUMNS_MONTHS]
            return [feature for part in self.parts for feature in ([f"{name} year"] if part == "year" else months)]
        return [] if self.type == "ignore" else [name]

    def reference_feature(self, name: str) -> str | None:
        """The feature with which others of the column are compared, as all of them are collinear with the intercept."""
        if self.type == "category":
            return f"{name}={self.categories[0] if self.reference is None else self.reference}"
        return f"{name} month={_COLUMNS_MONTHS[0]}" if "month" in self.parts else None

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """The range of every feature, which is mapped to [-1, 1]; zeros and ones have the range -1 to 1 and stay."""
        if self.is_numeric:
            return [self.ends]
        if self.type == "date":
            months = [(-1.0, 1.0)] * len(_COLUMNS_MONTHS)
            return [ends for part in self.parts for ends in ([self.ends] if part == "year" else months)]
        return [(-1.0, 1.0)] * len(self.features(""))

    def checked(self, place: str) -> Column:
        """The column with bounds as floats and codes as categories; raise every fact that is unusable, by its place."""
        if not isinstance(self.type, str) or self.type not in KEYS:
            expected = 'one of "number", "boolean", "category", "code", "date", "ignore"'
            remedy = "set it to one of them, and put names with dots in quotes"
            raise refusal(f"{place}.type", self.type, expected, remedy)
        problems, column = Problems(), self
        with problems.gathering():
            column = self._checked_values(place)._with_reference(place)
        with problems.gathering():
            column = column._with_per(place)
        with problems.gathering():
            column = column._with_missing_values(place)
        if self.type == "number":
            with problems.gathering():
                _check_truth(f"{place}.censored", self.censored)
        problems.raise_all()
        return column

    def _checked_values(self, place: str) -> Column:
        """The column with checked bounds or categories."""
        if self.type == "number":
            return self._with_range(place, self.lower, self.upper)
        if self.type == "code":
            listed = _codes(place, self.lower, self.upper)
            return replace(self, type="category", lower=None, upper=None, categories=listed)
        if self.type == "date":
            return self._checked_date(place)
        return self._checked_categories(place) if self.type == "category" else self

    def _with_missing_values(self, place: str) -> Column:
        place = f"{place}.missing_values"
        texts = check_missing_values(place, self.missing_values)
        twice = {normal_text(text.strip()) for text in texts}.intersection(map(normal_text, self.categories))
        if twice:
            expected = "texts that are no categories of the column"
            raise refusal(place, min(twice), expected, "take it out of one of the two lists")
        return replace(self, missing_values=texts)

    def _with_per(self, place: str) -> Column:
        if self.per is None:
            return self
        if self.type == "date" and self.parts:
            raise refusal(f"{place}.per", self.per, "no such key beside parts", "take it out")
        per = _number(f"{place}.per", self.per)
        if not per > 0.0:
            raise refusal(
                f"{place}.per", self.per, "a number above zero", "state the change to show effects for, as 10"
            )
        return replace(self, per=per)

    def _with_reference(self, place: str) -> Column:
        if self.reference is None:
            return self
        # Of codes: a whole number, as their bounds are.
        stated: Any = self.reference
        level = self.code(str(stated)) if type(stated) in (str, int) else None
        same = [category for category in self.categories if self.code(category) == level]
        if not same:
            expected = "one of the categories of the column"
            raise refusal(f"{place}.reference", self.reference, expected, "state one of them, or add it to the list")
        return replace(self, reference=same[0])

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


KINDS_OF_TARGETS = ("count", "amount", "survival")
"""Targets that have a family of their own: two of numbers, and times to an event."""


@dataclass(frozen=True, slots=True)
class Target:
    """Public facts about the column to predict: its bounds, its classes, or of times to an event where they are cut.

    Parameters
    ----------
    name : str
        Name of the column; of times to an event that of the times.
    lower, upper : float, default=None
        Bounds of a target of numbers.
    classes : tuple of str, of int or of bool, default=None
        Labels of a target of classes. None, without bounds: the labels are taken from the table, and their set counts
        as public.
    kind : {"count", "amount", "survival"}, default=None
        What the target is: counts are modelled with rate ratios, positive amounts with ratios of means, times to an
        event with hazard ratios. None: classes, or numbers with differences.
    event : str, default=None
        Of times: the column that says whether observation ended with the event (yes or no, 1 or 0, true or false).
    cuts : tuple of float, default=None
        Of times: the public times at which intervals end; the last one ends follow-up.
    """

    name: str
    lower: float | None = None
    upper: float | None = None
    classes: tuple[Any, ...] | None = None
    kind: str | None = None
    event: str | None = None
    cuts: tuple[float, ...] | None = None

    @property
    def task(self) -> str:
        """The learning task: "regress", "classify" or "survive"."""
        if self.kind == "survival":
            return "survive"
        return "classify" if self.lower is None else "regress"

    def checked(self) -> Target:
        """Return the target with bounds as floats; raise if a fact cannot be used, and name its place."""
        if self.kind is not None and self.kind not in KINDS_OF_TARGETS:
            listed = " or ".join(map(quoted, KINDS_OF_TARGETS))
            raise refusal("target.kind", self.kind, listed, "leave it out for other numbers and for classes")
        if self.kind == "survival":
            return self._checked_times()
        if not isinstance(self.name, str):
            raise refusal("target.name", self.name, "the name of the column to predict", "write it in quotes")
        for key, stated in (("event", self.event), ("cuts", self.cuts)):
            if stated is not None:
                raise refusal(f"target.{key}", stated, 'kind = "survival" beside it', "state it, or take the key out")
        if self.lower is None and self.upper is None:
            if self.kind is not None:
                raise refusal("target.lower", None, f"a range beside kind = {quoted(self.kind)}", "state both ends")
            if self.classes is not None:
                _check_labels(self.classes)
            return self
        if self.classes is not None:
            expected = "no classes beside lower and upper"
            raise refusal("target.classes", list(self.classes), expected, "take out what does not apply")
        lower, upper = _range("target", self.lower, self.upper)
        if self.kind is not None and (lower < 0.0 or (lower == 0.0 and self.kind == "amount")):
            least = "at least 0 for counts" if self.kind == "count" else "above 0 for amounts"
            raise refusal("target.lower", self.lower, least, "state the range that they can have")
        return replace(self, lower=lower, upper=upper)

    def _checked_times(self) -> Target:
        """The target with cuts as floats; everything that cannot be used is raised together."""
        problems, cuts = Problems(), self.cuts
        for key, stated, what in (("time", self.name, "times"), ("event", self.event, "events")):
            with problems.gathering():
                if not isinstance(stated, str):
                    raise refusal(f"target.{key}", stated, f"the name of the column with the {what}", "name it")
        with problems.gathering():
            if isinstance(self.name, str) and self.event == self.name:
                raise refusal("target.event", self.event, "another column than that of the times", "name it")
        others = {"lower": self.lower, "upper": self.upper, "classes": self.classes}
        for key, value in others.items():
            with problems.gathering():
                if value is not None:
                    remedy = "take it out: times end at the last one of cuts"
                    raise refusal(f"target.{key}", value, 'no such key beside kind = "survival"', remedy)
        with problems.gathering():
            try:
                cuts = check_cuts(self.cuts)
            except ParameterError:
                expected = "a list of positive times in increasing order"
                remedy = "state the public times at which intervals end, such as [6, 12, 24]; the last ends follow-up"
                raise refusal("target.cuts", self.cuts, expected, remedy) from None
        problems.raise_all()
        return replace(self, cuts=cuts)

    def checked_fill(self, place: str, value: Any, *, found: bool = False) -> Any:
        """Return the value that replaces missing ones; raise if it is no value of the target."""
        if self.task == "survive":
            expected, remedy = "no value for a missing time", "take it out, and fit with --invalid null to leave it out"
            raise refusal(place, value, expected, remedy)
        if self.task == "regress":
            return _number(place, value) if found else _inside(place, value, self.lower, self.upper)
        if self.classes is None or (type(value), value) not in [(type(label), label) for label in self.classes]:
            raise refusal(place, value, "one of the classes that [target] lists", "fill in a class, or take it out")
        return value


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column with the weight or the exposure of each row, and its public upper bound, to which it is trimmed."""

    column: str
    upper: float

    def checked(self, place: str) -> MeasuredColumn:
        """Return it with the bound as a float; raise what cannot be used."""
        problems, upper = Problems(), math.nan
        with problems.gathering():
            if not isinstance(self.column, str):
                raise refusal(f"{place}.column", self.column, "the name of a column", "write it in quotes")
        with problems.gathering():
            upper = _number(f"{place}.upper", self.upper)
            if not is_width(upper):
                remedy = "state the largest that there can be; larger ones are trimmed"
                raise refusal(f"{place}.upper", self.upper, "a positive number", remedy)
        problems.raise_all()
        return MeasuredColumn(self.column, upper)


def find_repeated(values: Iterable[Any]) -> Any:
    """Return the first value that occurs more than once, or None."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


def _check_labels(classes: tuple[Any, ...]) -> None:
    kinds = {type(label) for label in classes}
    plain = len(kinds) == 1 and kinds <= {str, int, bool}
    if not plain or len(classes) < 2 or find_repeated(map(normal_text, classes)) is not None:
        expected = "at least two different labels, all text, all whole numbers or all true and false"
        raise refusal("target.classes", list(classes), expected, "list every label that a record may carry, once")
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
        remedy = 'correct the range, or list those that get a feature with type = "category"'
        raise refusal(f"{place}.upper", upper, f"a code above lower={lower}, and at most {_MOST_CODES:,} codes", remedy)
    return tuple(map(str, range(lower, upper + 1)))


def _check_truth(place: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise refusal(place, value, "true or false", "write one of them, without quotes")


def _range(place: str, lower: Any, upper: Any) -> tuple[float, float]:
    low, high = _number(f"{place}.lower", lower), _number(f"{place}.upper", upper)
    if high - low > 0.0 and not is_width(high - low):
        expected = f"a number that differs from {place}.upper={high!r} by 1e-301 to 1e301"
        remedy = "state the range that the column can have by its nature, or change its unit"
        raise refusal(f"{place}.lower", lower, expected, remedy)
    if not high > low:
        remedy = "exchange or widen the bounds, or leave out a column that can have one value only"
        raise refusal(f"{place}.lower", lower, f"a number below {place}.upper={high!r}", remedy)
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
