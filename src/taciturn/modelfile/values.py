"""Values of ``model.json``: numbers, labels and parameters, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, ParameterError

__all__ = [
    "damaged",
    "foreign",
    "from_plain",
    "public_facts",
    "read_classes",
    "read_numbers",
    "read_truth",
    "to_plain",
]


def damaged(problem: str) -> str:
    """Message about a file that cannot be what a fit wrote."""
    return f"model: expected a complete model.json, found {problem}; the file is damaged, ask for a fresh copy."


def foreign(problem: str) -> str:
    """Message about a certificate of another model."""
    return f"model: expected a certificate of this model, found {problem}; ask for a fresh copy of the file."


def public_facts(name: str, public: Mapping[str, Any]) -> Iterator[Any]:
    """Every public fact of this name, in a composed certificate those of all its parts."""
    for key, fact in public.items():
        if key == name:
            yield fact
        elif isinstance(fact, Mapping):
            yield from public_facts(name, fact)


def read_truth(key: str, content: dict[str, Any]) -> bool:
    """Read true or false."""
    if not isinstance(content[key], bool):
        raise DataError(damaged(f"{key!r} that is neither true nor false"))
    return bool(content[key])


def read_numbers(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Convert nested lists to an array of finite numbers of this shape; text is refused even if it looks like one."""
    if _lengths(value) != shape:
        raise DataError(damaged(f"{key!r} of another shape, or not finite"))
    if not all(type(entry) in (int, float) for entry in _leaves(value)):
        raise DataError(damaged(f"{key!r} without numbers"))
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise DataError(damaged(f"{key!r} of another shape, or not finite"))
    return array


def _lengths(value: Any) -> tuple[int, ...]:
    """The shape of nested lists by the first of each."""
    return (len(value), *_lengths(value[0] if value else None)) if isinstance(value, list) else ()


def _leaves(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        return [value]
    return (leaf for row in value for leaf in (row if isinstance(row, list) else [row]))


def read_classes(value: Any) -> np.ndarray:
    """Read different labels of one type."""
    listed = value if isinstance(value, list) else []
    kinds = {type(label) for label in listed}
    if len(listed) < 2 or len(kinds) != 1 or not kinds <= {str, int, bool, float} or len(set(listed)) < len(listed):
        raise DataError(damaged("classes that are not different labels of one type"))
    return np.array(listed)


def to_plain(name: str, value: Any) -> Any:
    """Convert a parameter to JSON's types, which have no infinity."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif name == "columns" and value is not None:
        # Any iterable of names and places, also numpy's integers.
        value = [item.item() if isinstance(item, np.generic) else item for item in value]
    elif isinstance(value, Mapping):
        # Pairs, since JSON's keys are text.
        return [to_plain(name, (label, weight)) for label, weight in value.items()]
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(item is None or isinstance(item, str | bool | int | float) for item in items):
        raise ParameterError(name, value, "a number, a text, a list of them or None", "fit again with such a value")
    return "inf" if value == math.inf else items if isinstance(value, list | tuple) else value


def from_plain(value: Any) -> Any:
    """Restore a parameter from JSON's types."""
    if isinstance(value, list):
        pairs = all(isinstance(item, list) and len(item) == 2 for item in value) and value
        return dict(value) if pairs else tuple(value)
    # Labels are in lists, so that a class may be called "inf".
    return math.inf if value == "inf" else value
