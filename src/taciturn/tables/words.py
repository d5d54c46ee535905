"""How messages about tables name things: briefly, on one line, and never by a cell."""

from __future__ import annotations

import json

from taciturn.core.errors import ParameterError
from taciturn.core.visible import visible

__all__ = ["brief", "quoted", "refusal"]

_LONGEST = 60


def brief(value: object) -> object:
    """A public value, or the beginning of a long one."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a very long number"
    if len(text) <= _LONGEST:
        return value
    return (value if isinstance(value, str) else text)[: _LONGEST - 3] + "..."


def quoted(name: str, longest: int | None = _LONGEST) -> str:
    """A name in double quotes, as TOML and JSON write it, shortened where it is too long."""
    short = name if longest is None or len(name) <= longest else name[: longest - 3] + "..."
    # JSON leaves as it is what TOML does not take (a delete character) and what nobody sees.
    return visible(json.dumps(short, ensure_ascii=False))


def refusal(place: str, value: object, expected: str, remedy: str) -> ParameterError:
    """The sentence for a public value that cannot be used, with long values shortened."""
    return ParameterError(place, brief(value), expected, remedy)
