"""JSON that every program reads alike: no name twice in an object, no NaN, nothing nested beyond reason."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["parse_strictly"]


def parse_strictly(text: str) -> Any:
    """The content of a text; None where it is not such JSON."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_without_duplicates)
    except (ValueError, TypeError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(len(pairs))
    return content
