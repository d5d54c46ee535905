"""``bounds.toml``: the template that the owner of a table fills in, and its parser."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from taciturn.core.errors import ParameterError
from taciturn.tables.identifiers import names_a_person, names_an_identifier
from taciturn.tables.schema import TableSchema
from taciturn.tables.words import quoted, refusal, shorten

__all__ = ["bounds_template", "parse_toml"]

_MOST_SECTIONS = 500
"""The template of a wider table has one pair of bounds for all columns of numbers."""

_BLANK = re.compile(r"^\s*(\w+)\s*=\s*(?:#.*)?$")
_HEADER = re.compile(r"^\s*\[(.+)\]\s*(?:#.*)?$")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the sections of ``bounds.toml``; the error about a value that was not filled in names its place."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _PLACE.search(str(error))
    line = int(found[1]) if found and found[1] else None
    blank = _first_blank(text, line)
    if blank is not None:
        place, number = blank
        raise ParameterError(
            place,
            "",
            f"a value, got a blank in line {number}",
            "fill it in from knowledge of the column, not from the table",
        )
    # The message does not quote the line: the file may be a table.
    raise refusal(
        "bounds",
        "",
        "TOML" if line is None else f"TOML, found a mistake in line {line}",
        "write names and text in quotes, and lists in square brackets",
    )


def _first_blank(text: str, last: int | None) -> tuple[str, int] | None:
    """Section and line number of the first key without a value, up to line ``last``."""
    section = ""
    for number, line in enumerate(text.split("\n")[:last], start=1):
        if header := _HEADER.match(line):
            section = f"{header[1]}."
        elif blank := _BLANK.match(line):
            return str(shorten(section + blank[1])), number
    return None


def bounds_template(schema: TableSchema, target: str) -> str:
    """Write a template of ``bounds.toml``: names and types of the columns, no value from the data.

    Parameters
    ----------
    schema : TableSchema
        Names and kinds of the columns.
    target : str
        The column to predict.

    Examples
    --------
    >>> from taciturn.tables import TableSchema, bounds_template
    >>> schema = TableSchema(("age", "born", "ill"), ("number", "date", "boolean"))
    >>> print(bounds_template(schema, "ill"))  # doctest: +ELLIPSIS
    # What is public about this table...
    """
    if target not in schema.names:
        raise refusal("target", target, "the name of a column of the table", "check the names in its header")
    shared = schema.sparse or len(schema.names) > _MOST_SECTIONS
    kinds = dict(zip(schema.names, schema.kinds, strict=True))
    parts = [_OPENING, _target(target, kinds.pop(target))]
    person = next((name for name in kinds if names_a_person(name)), None)
    if person is not None:
        del kinds[person]
        parts.append(_PERSON.format(column=_key(person)))
    if shared:
        parts.append(_DEFAULTS)
    for name, kind in kinds.items():
        if names_an_identifier(name):
            parts.append(f"[columns.{_key(name)}]\n{_IDENTIFIER}")
        elif not (shared and kind == "number"):
            parts.append(f"[columns.{_key(name)}]\n{_SECTIONS[kind]}")
    return "\n".join([*parts, _MISSING])


def _key(name: str) -> str:
    # Not shortened: the file needs the whole name.
    return quoted(name, longest=None)


def _target(name: str, kind: str) -> str:
    return f"[target]\nname = {_key(name)}\n{_TARGETS.get(kind, _TARGETS['category'])}"


_OPENING = """\
# What is public about this table. Fill in every blank after an equals sign, from what you know about the columns by
# their nature and not by looking at the table: bounds that one record can move would tell of that record. Values
# beyond the bounds are clipped.
"""

_TARGETS = {
    "number": """\
# To predict a number: the range that it can have. To tell classes apart: put a list of the labels in the place of
# lower and upper, such as classes = [0, 1].
lower =
upper =
""",
    "boolean": "classes = [false, true]\n",
    "category": '# Every label that a record may carry, such as ["case", "control"].\nclasses =\n',
}

_PERSON = """\
# The column that tells whom a row is about, if a person may have several rows: the guarantee is then for all rows of a
# person together, and each person counts once. Take this section out if every row is about another person, and write
# a section with type = "ignore" for the column instead.
[person]
column = {column}
"""

_IDENTIFIER = """\
# By its name a key, which says nothing about other records: no feature.
type = "ignore"
"""

_DEFAULTS = """\
# For every column of numbers that has no section of its own.
[defaults]
lower =
upper =
"""

_SECTIONS = {
    "number": 'type = "number"\nlower =\nupper =\n',
    "boolean": 'type = "boolean"\n',
    "category": """\
type = "category"
# Every category that gets a feature of its own, such as ["north", "south"].
categories =
""",
    "date": """\
# A date cannot enter a model as it is: derive a number first, such as an age or the days since a public day.
type = "ignore"
""",
    "unknown": """\
# The first rows do not tell what this column holds: write "number" (with lower and upper), "boolean" or "category"
# (with categories) to use it.
type = "ignore"
""",
}

_MISSING = """\
# What to fill in where a value is missing, such as age = 50; a column without an entry here must have every value.
[missing]
"""
