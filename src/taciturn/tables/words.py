"""Names and values in messages about tables: short, on one line, and never a cell."""

from __future__ import annotations

import json

from taciturn.core.errors import ParameterError
from taciturn.core.visible import visible

__all__ = ["quoted", "refusal", "shorten"]

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
