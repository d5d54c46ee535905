"""Cells as numbers, truth values and text by public rules. Every function here looks at one cell.

Functions named ``read_...`` take a cell of any kind, such as one of an object column of pandas. The type that the
bounds state decides how it is read, never the other cells of its column.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from taciturn.tables.texts import normal_text

__all__ = [
    "TRUTHS",
    "is_missing",
    "never_raises",
    "parse_censored",
    "parse_number",
    "read_number",
    "read_text",
    "read_truth",
    "truth_code",
]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_NUMBERS: Any = Real | Decimal | np.bool_

_TRUE = ("true", "1", "yes", "y", "ja", "j", "oui", "si", "sí", "sim")
_FALSE = ("false", "0", "no", "n", "nein", "non", "não", "nao", "nee")
TRUTHS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
"""Words for true and false, in small letters: a fixed list, so that no table is asked for its words."""

_LIMIT = re.compile(r"\s*[<>≤≥]=?\s*(.*)", re.DOTALL)


def parse_number(text: str, decimal: str = ".") -> float:
    """The number that a cell states, or NaN.

    Examples
    --------
    >>> from taciturn.tables.conversions import parse_number
    >>> parse_number("1,5", ","), parse_number("1.5", ","), parse_number("forty")
    (1.5, nan, nan)
    """
    if decimal != ".":
        text = "" if "." in text else text.replace(decimal, ".")
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_censored(text: str, decimal: str = ".") -> float:
    """The number that a cell states, or that follows a sign such as "<" in it; NaN if there is none.

    Examples
    --------
    >>> from taciturn.tables.conversions import parse_censored
    >>> parse_censored("<5"), parse_censored("> 0,5", ","), parse_censored("7"), parse_censored("low")
    (5.0, 0.5, 7.0, nan)
    """
    limit = _LIMIT.fullmatch(text)
    return parse_number(limit[1] if limit else text, decimal)


def truth_code(text: str) -> int:
    """1 or 0 for a word that means true or false, and -1 for every other text.

    Examples
    --------
    >>> from taciturn.tables.conversions import truth_code
    >>> [truth_code(text) for text in ("Yes", "NEIN", " true", "1", "maybe")]
    [1, 0, 1, 1, -1]
    """
    found = TRUTHS.get(text.strip().lower())
    return -1 if found is None else int(found)


# ------------------------------------------------------------------ cells of any kind


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

    Examples
    --------
    >>> from decimal import Decimal
    >>> from taciturn.tables.conversions import read_number
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

    Examples
    --------
    >>> from decimal import Decimal
    >>> from taciturn.tables.conversions import read_text
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
