"""Cells as numbers and truth values by public rules. Every function here looks at one cell."""

from __future__ import annotations

import math
import re

__all__ = ["TRUTHS", "parse_censored", "parse_number", "truth_code"]

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
