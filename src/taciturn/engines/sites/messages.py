"""Messages between a coordinator and sites: values in a closed form, from which nothing but listed classes is made."""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from taciturn.core.errors import DataError

# A message is the length of a head, the head in JSON, and then the contents of its arrays one after the other.
_LENGTH = 8
_LONGEST_HEAD = 1 << 26
_DEEPEST = 32
# Numbers, truth values and text; no objects, from which numpy would unpickle code.
_KINDS = "biufU"

_BROKEN = "sites: expected a message of this version of taciturn, got another; run the same version at all sites."


class Vocabulary:
    """The classes and functions that a message may name, by their import paths.

    Reading a message imports nothing and calls nothing but constructors of these dataclasses: whoever writes messages
    chooses from a list, and runs no code. Every field is checked against its annotation, and so are the arguments that
    a function may come with.
    """

    def __init__(
        self, classes: Iterable[type], functions: Mapping[Callable[..., Any], Mapping[str, Any]] | None = None
    ) -> None:
        self._classes = {_path(each): each for each in classes}
        self._functions: _Functions = {_path(each): (each, hints) for each, hints in (functions or {}).items()}

    def read(self, message: bytes) -> Any:
        """The value of a message; DataError for a message that holds anything else than this vocabulary has."""
        try:
            size = int.from_bytes(message[:_LENGTH], "little")
            if not 0 < size <= min(_LONGEST_HEAD, len(message) - _LENGTH):
                raise DataError(_BROKEN)
            head = json.loads(message[_LENGTH : _LENGTH + size])
            return _Reader(self._classes, self._functions, memoryview(message)[_LENGTH + size :]).value(head, 0)
        except DataError:
            raise
        except Exception:
            # What is wrong with a message is no concern of whoever sent it.
            pass
        raise DataError(_BROKEN)


_Functions = Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]]


def write(value: Any) -> bytes:
    """A value as a message; TypeError for one that has no closed form."""
    writer = _Writer()
    head = json.dumps(writer.value(value, 0), separators=(",", ":"), allow_nan=False).encode()
    return b"".join((len(head).to_bytes(_LENGTH, "little"), head, *writer.contents))


class _Writer:
    def __init__(self) -> None:
        self.contents: list[bytes] = []

    def value(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise TypeError("a message holds values in values in values without end")
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            # JSON has no infinities.
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if isinstance(value, tuple):
            return [self.value(each, depth + 1) for each in value]
        if isinstance(value, dict):
            if not all(isinstance(name, str) for name in value):
                raise TypeError("a message names the entries of a dictionary by text")
            return {"entries": {name: self.value(each, depth + 1) for name, each in value.items()}}
        if is_dataclass(value) and not isinstance(value, type):
            stated = {name: self.value(getattr(value, name), depth + 1) for name in _hints(type(value))}
            return {"class": _path(type(value)), "fields": stated}
        if isinstance(value, partial) and not value.args:
            stated = {name: self.value(each, depth + 1) for name, each in value.keywords.items()}
            return {"function": _path(value.func), "arguments": stated}
        if callable(value) and hasattr(value, "__qualname__"):
            return {"function": _path(value)}
        raise TypeError(f"{type(value).__name__} cannot be written into a message between sites")

    def _array(self, value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"arrays of {array.dtype} cannot be written into a message between sites")
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        self.contents.append(array.tobytes("F" if by_columns else "C"))
        flags = {"by columns": by_columns, "scalar": isinstance(value, np.generic)}
        return {"array": array.dtype.str, "shape": list(array.shape)} | {name: True for name in flags if flags[name]}


class _Reader:
    def __init__(self, classes: Mapping[str, type], functions: _Functions, contents: memoryview) -> None:
        self._classes, self._functions, self._contents, self._place = classes, functions, contents, 0

    def value(self, head: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise DataError(_BROKEN)
        if isinstance(head, list):
            return tuple(self.value(each, depth + 1) for each in head)
        if not isinstance(head, dict):
            return head
        if "float" in head:
            return float(head["float"])
        if "array" in head:
            return self._array(head)
        if "entries" in head:
            return {name: self.value(each, depth + 1) for name, each in head["entries"].items()}
        if "class" in head:
            return self._object(head, depth)
        return self._function(head, depth)

    def _array(self, head: dict[str, Any]) -> Any:
        dtype, shape = np.dtype(head["array"]), tuple(head["shape"])
        if dtype.kind not in _KINDS or not all(type(length) is int and length >= 0 for length in shape):
            raise DataError(_BROKEN)
        size = dtype.itemsize * math.prod(shape)
        content = self._contents[self._place : self._place + size]
        if len(content) != size:
            raise DataError(_BROKEN)
        self._place += size
        # A copy: what is read from a message may be changed.
        array = np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if head.get("by columns") else "C")
        array = array.copy("K")
        return array[()] if head.get("scalar") else array

    def _object(self, head: dict[str, Any], depth: int) -> Any:
        kind = self._classes.get(head["class"])
        if kind is None:
            raise DataError(_unknown(head["class"]))
        return kind(**self._stated(head["fields"], _hints(kind), depth))

    def _function(self, head: dict[str, Any], depth: int) -> Any:
        function, hints = self._functions.get(head["function"], (None, None))
        if function is None or hints is None:
            raise DataError(_unknown(head["function"]))
        stated = self._stated(head.get("arguments", {}), hints, depth)
        return partial(function, **stated) if stated else function

    def _stated(self, heads: Mapping[str, Any], hints: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Values by name, all of those that are expected and no others, each of the kind that is expected."""
        stated = {name: self.value(each, depth + 1) for name, each in heads.items()}
        if stated.keys() != hints.keys() or not all(_fits(stated[name], hint) for name, hint in hints.items()):
            raise DataError(_BROKEN)
        return stated


def _unknown(path: object) -> str:
    name = str(path).rpartition(".")[2][:60]
    return f"sites: expected a task of the methods that the plan lists, got {name!r}; list its method in the plan."


def _path(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The annotations of what a class is made with."""
    found = typing.get_type_hints(kind)
    return {each.name: found[each.name] for each in fields(kind) if each.init}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation names."""
    if hint is Any:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_fits(each, inner[0]) for each in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _has_kind(value.dtype, inner[-1])
    if origin is not None:
        # What can be called: a function of the vocabulary.
        return callable(value)
    if hint is float:
        return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if getattr(hint, "_is_protocol", False):
        # Its members are looked up when they are called.
        return is_dataclass(value)
    return isinstance(value, hint)


def _has_kind(dtype: np.dtype[Any], hint: Any) -> bool:
    """Whether an array's type is that of an annotation, ``dtype[T]``; T may be a union or any type."""
    wanted = typing.get_args(hint)
    if not wanted or wanted[0] is Any:
        return True
    kinds = typing.get_args(wanted[0]) or (wanted[0],)
    return any(isinstance(each, type) and issubclass(dtype.type, each) for each in kinds)
