"""Whether two results are the same to the bit.

A result is taken apart: attributes, entries, arrays, closures, and what pickling would write of everything else. What
cannot be taken apart is not taken to be the same.
"""

from __future__ import annotations

import enum
import struct
import sys
import types
import weakref
from collections.abc import Generator, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np

from taciturn.certificate import Certificate

__all__ = ["Facts", "differing_facts", "differing_names", "facts_of"]

Facts = dict[str, list[object]]
"""What there is to compare, by the ways that lead to it."""

_TEXT = (str, bytes, bool, int, type(None), enum.Enum, type(NotImplemented), type(...))
_OPAQUE = "cannot be compared"


class _Incomparable:
    """A value that equals nothing, not even itself."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def differing_facts(first: Any, second: Any) -> list[str]:
    """Names of the differing parts of two objects: attributes, entries, bits of arrays, certificates as text."""
    return differing_names(facts_of(first), facts_of(second))


def facts_of(thing: Any) -> Facts:
    """Return a snapshot of all that an object holds; later changes in place do not affect it."""
    facts: Facts = {}
    for name, content in _facts(thing, "", ()):
        facts.setdefault(name, []).append(content)
    return facts


def differing_names(one: Facts, other: Facts) -> list[str]:
    """Names of the parts that differ or cannot be compared."""
    names = [*one, *(name for name in other if name not in one)]
    return [name or "the result" for name in names if one.get(name) != other.get(name)]


def _facts(thing: Any, name: str, above: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    """Iterate over the parts to compare, each with its path."""
    if id(thing) in above:
        yield f"{name} (loop)", above.index(id(thing))
        return
    inside = (*above, id(thing))
    yield f"{name} (type)" if name else "type", _name_of(type(thing))
    if isinstance(thing, type | types.ModuleType):
        yield name, _name_of(thing) if isinstance(thing, type) else thing.__name__
        return
    if isinstance(thing, Certificate):
        yield name, thing.to_json()
        return
    hidden = yield from _contents(thing, name, inside)
    attributes = [] if isinstance(thing, enum.Enum | types.FunctionType) else list(_attributes(thing))
    for key, content in attributes:
        yield from _facts(content, _joined(name, key), inside)
    if hidden:
        yield from _state(thing, name, inside, seen=bool(attributes))


def _contents(thing: Any, name: str, inside: tuple[int, ...]) -> Generator[tuple[str, object], None, bool]:
    """Iterate over the contents of known kinds; return whether an object may hold more, besides attributes."""
    if isinstance(thing, _TEXT):
        yield name, repr(thing)
    elif isinstance(thing, float | complex) and not isinstance(thing, np.generic):
        # Signed zeros, and NaNs of different payload, differ in their bits.
        yield name, struct.pack("<2d", thing.real, thing.imag)
    elif isinstance(thing, np.generic | np.ndarray) and not thing.dtype.hasobject:
        yield name, (thing.dtype.str, str(thing.dtype), thing.shape, np.asarray(thing).tobytes())
    elif isinstance(thing, np.ndarray):
        yield from _facts([thing.dtype.str, thing.shape, thing.ravel().tolist()], name, inside)
    elif isinstance(thing, Mapping):
        yield f"{name} (order)", [repr(key) for key in thing]
        for place, (key, content) in enumerate(thing.items()):
            yield from _facts(key, f"{name} (key {place})", inside)
            yield from _facts(content, f"{name}[{key!r}]", inside)
        # A read-only view shows nothing but its entries.
        return type(thing) not in (dict, types.MappingProxyType)
    elif isinstance(thing, list | tuple | KeysView | ValuesView | ItemsView):
        yield f"{name} (length)", len(thing)
        for place, content in enumerate(thing):
            yield from _facts(content, f"{name}[{place}]", inside)
    elif isinstance(thing, set | frozenset):
        yield from _facts(sorted(thing, key=repr), name, inside)
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, name, inside)
    elif isinstance(thing, types.MethodType):
        yield from _facts([thing.__func__, thing.__self__], name, inside)
    elif isinstance(thing, memoryview):
        yield name, (thing.format, thing.shape, thing.tobytes())
    elif isinstance(thing, weakref.ref):
        yield from _facts([thing()], name, inside)
    else:
        return True
    return False


def _function(thing: types.FunctionType, name: str, inside: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    """A function by its code, closure, defaults and attributes, without globals."""
    yield name, (thing.__module__, thing.__qualname__)
    cells = thing.__closure__ or ()
    carried = {
        "code": _code(thing.__code__),
        "closure": [_within(cell) for cell in cells],
        "defaults": [thing.__defaults__, thing.__kwdefaults__],
        "attributes": vars(thing),
    }
    for part, content in carried.items():
        yield from _facts(content, f"{name} ({part})", inside)


def _code(code: types.CodeType) -> list[object]:
    constants = [_code(each) if isinstance(each, types.CodeType) else each for each in code.co_consts]
    return [code.co_filename, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, constants]


def _within(cell: Any) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _state(thing: Any, name: str, inside: tuple[int, ...], *, seen: bool) -> Iterator[tuple[str, object]]:
    """One level of what pickling would write, for objects that may hold more than their attributes."""
    kind: Any = type(thing)
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception:
        yield f"{name} ({_OPAQUE})" if name else _OPAQUE, _Incomparable()
        return
    if seen and kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
        # The state of an ordinary object is its attributes, which were compared already.
        return
    if isinstance(reduced, str):
        yield f"{name} (global)", reduced
        return
    for place, part in enumerate(reduced):
        content = list(part) if place in (3, 4) and part is not None else part
        if content is not thing:
            yield from _facts(content, f"{name} (state {place})", inside)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object with a dictionary, with slots, or with both."""
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for key in (slots,) if isinstance(slots, str) else slots:
            own = f"_{kind.__name__.lstrip('_')}{key}" if key.startswith("__") and not key.endswith("__") else key
            if hasattr(thing, own) and own not in ("__dict__", "__weakref__"):
                yield own, getattr(thing, own)
    yield from getattr(thing, "__dict__", {}).items()


def _name_of(kind: type) -> tuple[str, int]:
    """The name of a class; a class that cannot be imported by its name equals only itself."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return f"{kind.__module__}.{kind.__qualname__}", 0 if found is kind else id(kind)


def _joined(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part
