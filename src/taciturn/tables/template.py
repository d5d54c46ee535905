"""The template of ``bounds.toml`` that the owner of a table fills in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from taciturn.tables.identifiers import names_a_person, names_an_identifier
from taciturn.tables.problems import closest_name, did_you_mean
from taciturn.tables.schema import LABEL, TableSchema
from taciturn.tables.words import quoted, refusal

if TYPE_CHECKING:
    from taciturn.tables.detection import ColumnProposal
    from taciturn.tables.layouts import TableLayout

__all__ = ["bounds_template"]

_MOST_SECTIONS = 500
"""The template of a wider table has one pair of bounds for all columns of numbers."""


def bounds_template(
    schema: TableSchema,
    target: str,
    proposals: Mapping[str, ColumnProposal] | None = None,
    layout: TableLayout | None = None,
) -> str:
    """Write a template of ``bounds.toml``: names and types of the columns, no value from the data.

    The template is TOML as it is. What has to be filled in stands in comments.

    Parameters
    ----------
    schema : TableSchema
        Names and kinds of the columns.
    target : str
        The column to predict.
    proposals : mapping of str to ColumnProposal, default=None
        Types of the columns, as ``taciturn init`` tells them from the first rows. None: from names and kinds alone.
    layout : TableLayout, default=None
        How the file is written, where its name does not say so.

    Examples
    --------
    >>> from taciturn.tables import TableSchema, bounds_template
    >>> schema = TableSchema(("age", "born", "ill"), ("number", "date", "boolean"))
    >>> print(bounds_template(schema, "ill"))  # doctest: +ELLIPSIS
    # What is public about this table...
    """
    if target not in schema.names:
        proposed = did_you_mean(closest_name(target, schema.names, alike=False))
        raise refusal("target", target, "the name of a column of the table", f"{proposed}check the names in its header")
    shared = schema.sparse or len(schema.names) > _MOST_SECTIONS
    # The columns of a libsvm file are numbers without names, and may be millions.
    kinds = (
        dict.fromkeys((LABEL, target), "number")
        if schema.sparse
        else dict(zip(schema.names, schema.kinds, strict=True))
    )
    parts = [_OPENING]
    if layout is not None and layout.to_content():
        stated = {key: "true" if value is True else _key(value) for key, value in layout.to_content().items()}
        lines = [f"{key} = {value}\n" for key, value in stated.items()]
        parts.append(f"[table]\n{''.join(lines)}")
    parts.append(_target(target, _kind(target, kinds.pop(target), proposals)))
    person = next((name for name in kinds if names_a_person(name)), None)
    if person is not None:
        del kinds[person]
        parts.append(_PERSON.format(column=_key(person)))
    if shared:
        parts.append(_DEFAULTS if schema.sparse else _DEFAULTS + "# missing = {indicator = true}\n")
    for name, kind in kinds.items():
        found = _kind(name, kind, proposals)
        if not (shared and found == "number"):
            body = _section(name, found, None if proposals is None else proposals.get(name))
            parts.append(f"[columns.{_key(name)}]\n{body}")
    return "\n".join([*parts, *([] if shared else [_MISSING_DEFAULT]), _MISSING])


def _kind(name: str, kind: str, proposals: Mapping[str, ColumnProposal] | None) -> str:
    if names_an_identifier(name):
        return "identifier"
    return kind if proposals is None or name not in proposals else proposals[name].kind


def _section(name: str, kind: str, proposal: ColumnProposal | None) -> str:
    if kind == "date":
        return _date(proposal)
    if kind == "codes":
        grouped = proposal is not None and proposal.group is not None
        group = f"group = {proposal.group}\n" if proposal is not None and grouped else "# group = 3\n"
        return _CODES.format(file=quoted(_file_name(name), longest=None)) + group
    return _SECTIONS[kind]


def _date(proposal: ColumnProposal | None) -> str:
    if proposal is None or proposal.format is None:
        return _DATE
    unsure = "# The first rows do not tell day and month apart: check it.\n" if proposal.ambiguous else ""
    return f"{_DATE}{unsure}format = {quoted(proposal.format)}\n"


def _file_name(name: str) -> str:
    """The name of a text file for the categories of a column."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") + ".txt"


def _key(name: str) -> str:
    # Not shortened: the file needs the whole name.
    return quoted(name, longest=None)


def _target(name: str, kind: str) -> str:
    return f"[target]\nname = {_key(name)}\n{_TARGETS.get(kind, _TARGETS['category'])}"


_OPENING = """\
# What is public about this table. Types were told from names and from the shapes of the first cells; no value of the
# table is in here. Fill in what the comments ask for and take their # away, from what you know about the columns by
# their nature and not by looking at the table: bounds that one record can move would tell of that record. Values beyond
# the bounds are clipped. Numbers and dates without bounds are for --private-bounds, which finds them at a cost.
"""

_RANGE = "# lower =\n# upper =\n"

_TARGETS = {
    "number": f"""\
# To predict a number: the range that it can have. To tell classes apart: a list of the labels in the place of lower
# and upper, such as classes = [0, 1].
{_RANGE}""",
    "censored": f"# Numbers with < or > before them cannot be predicted: correct them, and state the range.\n{_RANGE}",
    "boolean": "classes = [false, true]\n",
    "category": '# Every label that a record may carry, such as ["case", "control"].\n# classes =\n',
}

_PERSON = """\
# The column that tells whom a row is about, if a person may have several rows: the guarantee is then for all rows of a
# person together, and each person counts once. Take this section out if every row is about another person, and write
# a section with type = "ignore" for the column instead.
[person]
column = {column}
"""

_DEFAULTS = """\
# For every column of numbers that has no section of its own.
# [defaults]
# lower =
# upper =
"""

_DATE = f"""\
# Days since a public day. lower and upper are days, such as 2015-01-01. In the place of since, parts = ["year",
# "month"] makes features of the year, with lower and upper such as 2015 and 2025, and of the month.
type = "date"
since = 2000-01-01
{_RANGE}"""

_CODES = """\
# Many different codes: a text file beside this one has one category per line, from a public list and not from the
# table. With group, so many first characters of a code count.
type = "category"
categories_file = {file}
"""

_IGNORED = 'type = "ignore"\n'

_SECTIONS = {
    "number": f'type = "number"\n{_RANGE}',
    "censored": f"""\
# Some numbers have a sign before them: <5 counts as 5, and >100 as 100.
type = "number"
censored = true
{_RANGE}""",
    "boolean": 'type = "boolean"\n',
    "category": """\
# Every category that gets a feature of its own, such as ["north", "south"].
type = "category"
# categories =
""",
    "free text": f"# Free text, which cannot enter a model.\n{_IGNORED}",
    "identifier": f"# By its name a key, or what tells who somebody is: no feature.\n{_IGNORED}",
    "unknown": f"""\
# The first rows do not tell what this column holds: write "number", "boolean", "date" or "category" to use it.
{_IGNORED}""",
}

_MISSING_DEFAULT = """\
# What stands for missing cells in every column without an entry in [missing].
# [defaults]
# missing = {indicator = true}
"""

_MISSING = """\
# What stands for a missing cell, such as age = 50, or age = {indicator = true}, which makes a feature "age missing". A
# column without an entry, here or in [defaults], must have every value.
[missing]
"""
