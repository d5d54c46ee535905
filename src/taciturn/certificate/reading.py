"""From JSON text to the fields of a certificate: every value is looked at before it is used.

The text may come from anybody. Whatever is wrong with it is one sentence, found in bounded time; nothing is guessed and
nothing is passed over, a field that is not known included: it could change what the others mean.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from typing import Any

from taciturn._version import __version__
from taciturn.certificate.disclosures import DERIVED
from taciturn.certificate.release import Part, Release, event_of_releases
from taciturn.certificate.status import STATUSES, status_of
from taciturn.core.errors import CertificateError
from taciturn.core.strict_json import refuse_constant, without_duplicates
from taciturn.data.sensitivity import RELATIONS, UNITS
from taciturn.events import event_from_dict

__all__ = ["ARITHMETICS", "BOUNDS", "FORMAT", "SCHEMA", "is_head", "read_fields"]

FORMAT = "taciturn-certificate"
SCHEMA = 1
ARITHMETICS = ("exact", "float64")
BOUNDS = ("gdp", "rdp", "pure", "sum", "none")

_NOT_STATED = object()
_MOST_CHARACTERS = 16_000_000
_MOST_DIGITS = 20
_DEEPEST_FACT = 100
_DEEPEST_EVENT = 32
_RELEASE = ("what", "noise", "scale", "count", "event", "remaining", "half")
_PART = ("epsilon", "delta", "releases", "ordered")


def read_fields(text: str) -> dict[str, Any]:
    """What a certificate is made of, from what ``to_json`` wrote in this version or an earlier one."""
    content = _envelope(text)
    delta = _number(content, "delta")
    status = _word(content, "status", STATUSES)
    # Version 0.1 did not write down how far samplers are from their laws. Pure mechanisms have no such distance, and
    # a published claim neglects it by assumption.
    exact = delta == 0.0 or status == "as published"
    events = tuple(_release(entry, exact) for entry in _list(content, "events"))
    if status == "proved" and status_of(event_of_releases(events)) == STATUSES[1]:
        # Version 0.1 had no name for it.
        status = STATUSES[1]
    proved = content["proved_epsilon"]
    public = content["public"]
    if not isinstance(public, dict) or _deeper_than(public, _DEEPEST_FACT):
        raise _unexpected("public", public, "an object of facts")
    return {
        "epsilon": _number_or_infinity(content, "epsilon"),
        "delta": delta,
        "relation": _word(content, "relation", RELATIONS),
        "status": status,
        "events": events,
        "public": public,
        "assumptions": _texts(content, "assumptions"),
        "seeded": _truth(content, "seeded"),
        "arithmetic": _word(content, "arithmetic", ARITHMETICS),
        "bound": _word(content, "bound", BOUNDS),
        "group_size": _whole(content, "group_size"),
        "ordered": _truth(content, "ordered"),
        "proved_epsilon": None if proved is None else _number_or_infinity(content, "proved_epsilon"),
        "errata": _texts(content, "errata"),
        "parts": tuple(map(_part, _list(content, "parts"))),
        "unit": _word(content, "unit", UNITS),
        "account_head": _head(content),
        **{name: None if content[name] is _NOT_STATED else _texts(content, name) for name in DERIVED},
    }


_KEYS = frozenset(
    [
        "format",
        "schema",
        "taciturn",
        "epsilon",
        "delta",
        "relation",
        "status",
        "events",
        "public",
        "assumptions",
        "seeded",
        "arithmetic",
        "bound",
        "group_size",
        "ordered",
        "proved_epsilon",
        "errata",
        "parts",
        "unit",
        "account_head",
        *DERIVED,
    ]
)


def _envelope(text: str) -> dict[str, Any]:
    """The content of a certificate of this schema, with no key too few or too many."""
    content = None
    if isinstance(text, str | bytes | bytearray) and len(text) <= _MOST_CHARACTERS:
        try:
            content = json.loads(
                text,
                parse_constant=refuse_constant,
                parse_float=_finite,
                parse_int=_short_integer,
                object_pairs_hook=without_duplicates,
            )
            # Half a surrogate pair is no text: it can be neither printed nor written.
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CertificateError(
            f"text: expected JSON with format {FORMAT!r}, got something else; pass what Certificate.to_json() returned."
        )
    schema = content.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise CertificateError(
            f"schema={_shown(schema)}: expected {SCHEMA}, the one this version of taciturn "
            f"({__version__}) writes; read the certificate with taciturn {named}."
        )
    # Version 0.1 did not write these: it knew neither persons nor accounts.
    content.setdefault("parts", [])
    content.setdefault("unit", "record")
    content.setdefault("account_head", None)
    for name in DERIVED:
        content.setdefault(name, _NOT_STATED)
    _check_keys(content, _KEYS, "a certificate")
    if not isinstance(content["taciturn"], str):
        raise _unexpected("taciturn", content["taciturn"], "the version that wrote it")
    return content


def _check_keys(content: dict[str, Any], keys: frozenset[str], whose: str) -> None:
    for key in sorted(keys - content.keys()):
        raise CertificateError(
            f"text: expected a complete certificate, found a problem with {key!r}; "
            "the file is damaged, ask for a fresh copy."
        )
    for key in content.keys() - keys:
        raise CertificateError(
            f"text: expected the fields of {whose}, got also {_shown(key)}; read it with the version of taciturn that "
            "wrote it."
        )


def _release(entry: Any, exact: bool) -> Release:
    if not isinstance(entry, dict):
        raise _unexpected("events", entry, "an object for each release")
    # Version 0.1 did not write down what remained of a privacy filter.
    entry.setdefault("remaining", None)
    # Earlier versions did not split records.
    entry.setdefault("half", None)
    _check_keys(entry, frozenset(_RELEASE), "a release")
    if _deeper_than(entry["event"], _DEEPEST_EVENT):
        raise _unexpected("event", entry["event"], f"at most {_DEEPEST_EVENT} events inside one another")
    return Release(
        what=_text(entry, "what"),
        noise=_text(entry, "noise"),
        scale=_number(entry, "scale"),
        event=event_from_dict(entry["event"], exact=exact),
        count=_whole(entry, "count"),
        remaining=None if entry["remaining"] is None else _number(entry, "remaining"),
        half=_half(entry),
    )


def _half(entry: dict[str, Any]) -> int | None:
    if entry["half"] is not None and _whole(entry, "half") not in (1, 2):
        raise _unexpected("half", entry["half"], "1, 2 or null")
    half: int | None = entry["half"]
    return half


def is_head(value: Any) -> bool:
    """Whether a value has the form of an account's head: a hash in hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _head(content: dict[str, Any]) -> str | None:
    head = content["account_head"]
    if head is not None and not is_head(head):
        raise _unexpected("account_head", head, "64 hexadecimal digits or null")
    found: str | None = head
    return found


def _part(entry: Any) -> Part:
    if not isinstance(entry, dict):
        raise _unexpected("parts", entry, "an object for each part")
    _check_keys(entry, frozenset(_PART), "a part")
    return Part(_number(entry, "epsilon"), _number(entry, "delta"), _whole(entry, "releases"), _truth(entry, "ordered"))


# ------------------------------------------------------------------ values


def _number(content: dict[str, Any], name: str) -> float:
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unexpected(name, value, "a number")
    return value


def _number_or_infinity(content: dict[str, Any], name: str) -> float:
    return math.inf if content[name] == "inf" else _number(content, name)


def _whole(content: dict[str, Any], name: str) -> int:
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unexpected(name, value, "a whole number")
    return value


def _truth(content: dict[str, Any], name: str) -> bool:
    value = content[name]
    if not isinstance(value, bool):
        raise _unexpected(name, value, "true or false")
    return value


def _text(content: dict[str, Any], name: str) -> str:
    value = content[name]
    if not isinstance(value, str):
        raise _unexpected(name, value, "text")
    return value


def _word(content: dict[str, Any], name: str, words: tuple[Any, ...]) -> Any:
    value = content[name]
    if not isinstance(value, str) or value not in words:
        raise _unexpected(name, value, "one of " + ", ".join(map(repr, words)))
    return value


def _list(content: dict[str, Any], name: str) -> list[Any]:
    value = content[name]
    if not isinstance(value, list):
        raise _unexpected(name, value, "a list")
    return value


def _texts(content: dict[str, Any], name: str) -> tuple[str, ...]:
    values = _list(content, name)
    if not all(isinstance(value, str) for value in values):
        raise _unexpected(name, values, "a list of sentences")
    return tuple(values)


def _unexpected(name: str, value: Any, expected: str) -> CertificateError:
    return CertificateError(
        f"{name}={_shown(value)}: expected {expected}; the certificate is damaged, ask for a fresh copy."
    )


def _shown(value: Any) -> str:
    """A value in a sentence, shortened."""
    return reprlib.repr(value)


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether lists and objects lie inside one another more than so many times."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [
            entry
            for outer in inside
            if isinstance(outer, dict | list)
            for entry in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not inside:
            return False
    return True


# ------------------------------------------------------------------ JSON, strictly


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _short_integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(digits)
    return int(digits)
