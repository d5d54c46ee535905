"""Canonical text of categories and labels, the same for a text table and for a typed one."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

__all__ = ["normal_text"]

# A number with leading zeros is a code, and stays as it is.
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_WHOLE = 2.0**53
# Whole decimals with more digits than any code are compared as doubles: one could have a billion of them.
_MOST_DIGITS = 100


def normal_text(value: Any) -> str:
    """Return the canonical text by which categories and labels are compared.

    A text table has "1.0", "1" or "True" where a typed table has a number or a truth value; both must be equal. So must
    decimals of all scales: one decimal with a fraction gives all others of its column a scale.

    Examples
    --------
    >>> from taciturn.tables.texts import normal_text
    >>> [normal_text(value) for value in ("1.0", 1, 1.0, "1.50", 1.5, "True", False, "007", "north")]
    ['1', '1', '1', '1.5', '1.5', 'true', 'false', '007', 'north']
    >>> from decimal import Decimal
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
