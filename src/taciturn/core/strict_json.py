"""JSON that every program reads alike: no name twice in an object, no NaN, nothing nested or long beyond reason."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["parse_strictly", "refuse_constant", "without_duplicates"]

_MOST_VALUES = 1 << 26
"""Largest number of values, which take seconds and gigabytes: sixteen for each column of the widest libsvm file."""


def parse_strictly(text: str) -> Any:
    """The content of a text; None where it is not such JSON."""
    # Commas stand between values. The parser cannot be interrupted.
    if text.count(",") >= _MOST_VALUES:
        return None
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=without_duplicates)
    except (ValueError, TypeError, RecursionError):
        return None


def refuse_constant(constant: str) -> NoReturn:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values for one name are read differently by different programs."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(len(pairs))
    return content
