"""Whether two results are the same to the bit."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.certificate import Certificate

__all__ = ["differing_facts"]

_SCALARS = (str, bytes, bool, int, float, complex, np.generic, type(None), enum.Enum)


def differing_facts(first: Any, second: Any) -> list[str]:
    """Names of what differs between two objects: attributes, entries, arrays bit by bit, certificates as text."""
    one, other = dict(_facts(first, "", ())), dict(_facts(second, "", ()))
    names = [*one, *(name for name in other if name not in one)]
    return [name or "the result" for name in names if one.get(name) != other.get(name)]


def _facts(thing: Any, name: str, above: tuple[int, ...]) -> Iterator[tuple[str, Hashable]]:
    """What there is to compare, each with the way that leads to it."""
    if id(thing) in above:
        return
    inside = (*above, id(thing))
    yield f"{name} (type)" if name else "type", f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, _SCALARS):
        # -0.0 and 0.0 are different bits, and their text says so.
        yield name, repr(thing)
    elif isinstance(thing, np.ndarray):
        content = repr(thing.tolist()) if thing.dtype.hasobject else np.ascontiguousarray(thing).tobytes()
        yield name, (thing.dtype.str, thing.shape, content)
    elif sp.issparse(thing):
        rows = sp.coo_array(thing)
        parts = [("shape", thing.shape), ("data", rows.data), ("row", rows.row), ("col", rows.col)]
        for part, content in parts:
            yield from _facts(content, _joined(name, part), inside)
    elif isinstance(thing, Certificate):
        yield name, thing.to_json()
    elif isinstance(thing, Mapping):
        for key, content in thing.items():
            yield from _facts(content, f"{name}[{key!r}]", inside)
    elif isinstance(thing, list | tuple):
        yield f"{name} (length)", len(thing)
        for place, content in enumerate(thing):
            yield from _facts(content, f"{name}[{place}]", inside)
    elif isinstance(thing, set | frozenset):
        yield name, tuple(sorted(repr(each) for each in thing))
    else:
        for key, content in _attributes(thing):
            yield from _facts(content, _joined(name, key), inside)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Of an object with a dictionary, with slots, or with both; functions have neither that matters."""
    if isinstance(thing, type):
        return
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for key in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, key) and not key.startswith("__"):
                yield key, getattr(thing, key)
    yield from getattr(thing, "__dict__", {}).items()


def _joined(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part
