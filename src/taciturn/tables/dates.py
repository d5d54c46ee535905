"""Dates by a public rule: text and typed cells as days, each cell by itself."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import numpy as np

from taciturn.tables.conversions import never_raises
from taciturn.tables.words import refusal

__all__ = ["PARTS", "check_format", "parse_day", "read_day", "to_day"]

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

    Examples
    --------
    >>> from taciturn.tables.dates import parse_day
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
