"""Proposals for a bounds file, from column names and the types of cells."""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from taciturn.tables.columns import (
    DELIMITERS,
    LABEL,
    TableLayout,
    TableSchema,
    closest_name,
    did_you_mean,
    is_row_number,
    parse_censored,
    parse_day,
    parse_number,
    quoted,
    refusal,
    truth_code,
)
from taciturn.tables.formats import (
    ColumnSelection,
    TableFile,
    TableStream,
    arrow_schema,
    libsvm_schema,
    read_first_texts,
    stream_batches,
    table_file,
    without_cells,
)

# ---- Columns that identify somebody or something, told by their names alone: no value is looked at.

_PERSONS = re.compile(
    "account|child|citizen|client|customer|donor|employee|individual|insured|member|mother|participant|patient|person|"
    "proband|pupil|resident|respondent|student|subject|taxpayer|user|voter|worker"
)
_KEYS = re.compile("code|guid|id|ident|identifier|key|no|nr|num|number|pseudonym|uid|uuid")
# Words that are a person's key by themselves, and those of anything.
_PERSON_KEYS = re.compile(
    "(client|customer|member|participant|pat|patient|person|subj|subject|user|usubj)id|mrn|nhsnumber|nino|pid|"
    "pseudonym|ssn|(patienten?|personen?|probanden?)(id|nr|nummer)"
)
_THINGS = re.compile("admission|case|encounter|episode|invoice|order|record|row|sample|specimen|stay|visit")
_OTHER_KEYS = re.compile("guid|iban|id|identifier|recordid|rowid|uid|uuid|fall(id|nr|nummer)")
# What tells who somebody is, and is no key.
_WHO = re.compile("(first|last|full|family|sur)?name|(e?mail|address|phone|telephone|street)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def names_a_person(name: str) -> bool:
    """Whether a column is named like the key of a person, such as "patient_id" or "PersonNr".

    >>> [names_a_person(name) for name in ("patient_id", "SubjectID", "id", "age", "number of patients")]
    [True, True, False, False, False]
    """
    words = _words(name)
    if _PERSON_KEYS.fullmatch("".join(words)):
        return True
    return len(words) > 1 and all(
        kind.fullmatch(word) for kind, word in zip((_PERSONS, _KEYS), words[-2:], strict=True)
    )


def names_an_identifier(name: str) -> bool:
    """Whether a column is named like a key of anything, or like what tells who somebody is: neither is a feature.

    >>> [names_an_identifier(name) for name in ("patient_id", "id", "visit no", "last name", "age", "idea", "zip code")]
    [True, True, True, True, False, False, False]
    """
    words = _words(name)
    candidates = ("".join(words), *words[-1:])
    if names_a_person(name) or any(_OTHER_KEYS.fullmatch(candidate) for candidate in candidates):
        return True
    of_a_thing = len(words) > 1 and _THINGS.fullmatch(words[-2]) and _KEYS.fullmatch(words[-1])
    return bool(of_a_thing or _WHO.fullmatch("".join(words)))


# Times under observation, and what they end with.
_TIMES_TO = re.compile("(.* )?(time|days|weeks|months|years|duration|follow ?up|futime|tte|survival)( .*)?")
_EVENTS = re.compile("(.* )?(event|died|dead|death|deceased|status|fustat|relapsed?)")
# Not the weight of a body, and not what somebody was exposed to.
_WEIGHTS = re.compile("((sampling|sample|survey|design|probability|ip) ?weights?|pweights?)( .*)?")
_EXPOSURES = re.compile("(person|patient|bed) ?(years?|months?|weeks?|days?|time)|time at risk")


def names_a_time_to_an_event(target: str, names: Iterable[str]) -> tuple[str, str] | None:
    """The columns with times and events, where the target is named like one of them and another column like the other.

    >>> names_a_time_to_an_event("died", ["age", "months", "died"]), names_a_time_to_an_event("age", ["age", "died"])
    (('months', 'died'), None)
    """
    patterns = _TIMES_TO, _EVENTS
    for own, other in ((0, 1), (1, 0)):
        if patterns[own].fullmatch(" ".join(_words(target))):
            found = next((n for n in names if n != target and patterns[other].fullmatch(" ".join(_words(n)))), None)
            if found is not None:
                return (target, found) if own == 0 else (found, target)
    return None


def names_a_measure(name: str) -> str | None:
    """Whether a column is named like a "weight" of rows or like an "exposure" of counts; None for neither.

    >>> [names_a_measure(name) for name in ("survey_weight", "weight", "person_years", "exposure")]
    ['weight', None, 'exposure', None]
    """
    words = " ".join(_words(name))
    return "weight" if _WEIGHTS.fullmatch(words) else "exposure" if _EXPOSURES.fullmatch(words) else None


def _words(name: str) -> list[str]:
    """The words of a name in lower case: apart by signs, or by capitals."""
    return [word.lower() for word in _WORD.findall(name)]


# ---- What ``taciturn init`` proposes for a column, from its name and the shapes of the cells in the first rows.
# **Privacy.** Cells are looked at to choose one type from a fixed list, for each column by itself, with the format of
# its dates or the length of its groups of codes, and whether it has marks for missing cells; and the delimiter, the
# encoding, the decimal point and the sign of thousands of the file. Nothing else leaves this module: no value, no
# count, no range. The certificates of fits assume that names and types of the columns are public, and this choice is
# such a type. Marks for missing cells are a fixed list, which is proposed as a whole.

_FIRST_BYTES = 1 << 16
_FIRST_LINES = 20
_MANY = 30
"""More different texts than this are not typed into a list by hand."""
_LONG, _WORDS = 40, 4
"""Text of so many characters or words is free text, where it is more than half of the cells."""

_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+")
_COUNT = re.compile(r"\d{1,9}")
_POINTS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+")
_ICD = re.compile(r"[A-Z]\d[0-9A-Z](?:\.?[0-9A-Z]{1,4})?")
_ICD_GROUP = 3
"""Characters of an ICD-10 code that name the category of a disease."""

_POSTAL = re.compile("(zip|post(al)?)(code)?|plz|postleitzahl")
_LEADING_ZERO = re.compile(r"0\d+")

MARKS = (
    *(".", "-", "--", "?", "*", "k.A.", "k. A.", "keine Angabe", "n.a.", "n. a.", "n.b.", "unbekannt", "fehlt"),
    *("unknown", "missing", "not known", "none", "nd", "inconnu", "desconocido"),
)
"""Texts that stand for missing cells in tables of all kinds: a fixed list, so that no table is asked for its words."""


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """The type that a column probably has.

    ``kind`` is "person", "identifier", "row numbers", "number", "censored", "boolean", "date", "category", "codes",
    "free text" or "unknown". ``format`` is that of dates in text; ``ambiguous`` ones may have day and month the other
    way round. ``group`` is the number of characters that make a class of codes, where the shape of the codes tells it.
    ``marked``: cells that are no values of the type are among :data:`MARKS`. ``counts``: numbers are whole
    and from zero on, as counts are.
    """

    kind: str
    format: str | None = None
    ambiguous: bool = False
    group: int | None = None
    marked: bool = False
    counts: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TableProposal:
    """Names, proposals for all columns by name, and how the file is written."""

    schema: TableSchema
    columns: dict[str, ColumnProposal]
    layout: TableLayout


def detect_table(path: str | Path, *, header: bool = False) -> TableProposal:
    """Read the names and the first rows of a table on disk, and propose a type for every column.

    ``header`` states that the first line holds names, whatever they look like.
    """
    file = table_file(path, TableLayout(header=header))
    if file.format == "libsvm":
        schema = libsvm_schema(file)
        return TableProposal(schema, dict.fromkeys(schema.names, ColumnProposal("number")), TableLayout())
    layout = TableLayout(name=file.part, header=header)
    if file.format == "csv":
        encoding = _detect_encoding(file)
        if encoding is not None:
            layout = replace(layout, encoding=encoding)
            file = replace(file, encoding=encoding)
        delimiter = _detect_delimiter(file)
        if delimiter != file.delimiter:
            layout = replace(layout, delimiter=delimiter)
            file = replace(file, delimiter=delimiter)
    schema = arrow_schema(file)
    cells = _first_cells(file, schema)
    decimal, thousands = _detect_numbers(cells.values()) if file.format == "csv" else (".", None)
    layout = replace(layout, decimal=decimal, thousands=thousands)
    columns = {
        name: ColumnProposal("row numbers")
        if is_row_number(name, schema.names)
        else propose_column(name, kind, cells.get(name), decimal, thousands)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
    }
    return TableProposal(schema, columns, layout)


def propose_column(
    name: str, kind: str, cells: Sequence[str] | None, decimal: str = ".", thousands: str | None = None
) -> ColumnProposal:
    """The type of one column; ``cells`` are those of the first rows that are text and not missing, None if none are.

    >>> shown = ["<5", "7"], ["ja", "nein"], ["a", "b"], ["01067", "99998"], ["1", "k.A."]
    >>> [propose_column("x", "category", cells).kind for cells in shown]
    ['censored', 'boolean', 'category', 'category', 'number']
    """
    if names_a_person(name):
        return ColumnProposal("person")
    if names_an_identifier(name):
        return ColumnProposal("identifier")
    if cells is None:
        return ColumnProposal("codes" if kind == "number" and _names_places(name) else kind)
    if not cells:
        return ColumnProposal("unknown")
    if _names_places(name) or _are_codes(cells):
        return ColumnProposal("codes" if len(set(cells)) > _MANY else "category")
    found = _propose_type(cells, decimal, thousands)
    values = [cell for cell in cells if cell not in MARKS]
    if found.kind in ("category", "codes", "free text") and values and len(values) < len(cells):
        without = _propose_type(values, decimal, thousands)
        if without.kind in ("number", "censored", "boolean", "date"):
            return replace(without, marked=True)
    return found


def _names_places(name: str) -> bool:
    """Whether a column is named like a code of places."""
    return any(_POSTAL.fullmatch(candidate) for candidate in ("".join(_words(name)), *_words(name)))


def _are_codes(cells: Sequence[str]) -> bool:
    """Whether digits are no numbers: all cells have the same length, and some begin with a zero."""
    same = len({len(cell) for cell in cells}) == 1
    return same and all(map(str.isdecimal, cells)) and any(map(_LEADING_ZERO.fullmatch, cells))


def _propose_type(cells: Sequence[str], decimal: str, thousands: str | None) -> ColumnProposal:
    """The type of a column by the shapes of its cells alone."""
    distinct = set(cells)
    if all(_is_number(cell, decimal, thousands) for cell in distinct):
        return ColumnProposal("number", counts=all(map(_COUNT.fullmatch, distinct)))
    if all(truth_code(cell) >= 0 for cell in distinct):
        return ColumnProposal("boolean")
    if not any(math.isnan(parse_censored(cell, decimal, thousands)) for cell in distinct):
        return ColumnProposal("censored")
    formats = _date_formats(distinct)
    if formats:
        turned = {format.replace("%d", "%").replace("%m", "%") for format in formats if format is not None}
        return ColumnProposal("date", formats[0], ambiguous=len(formats) > len(turned) > 0)
    if sum(len(cell) > _LONG or cell.count(" ") >= _WORDS - 1 for cell in cells) > len(cells) / 2:
        return ColumnProposal("free text")
    if len(distinct) > _MANY:
        return ColumnProposal("codes", group=_ICD_GROUP if all(map(_ICD.fullmatch, distinct)) else None)
    return ColumnProposal("category")


def _is_number(cell: str, decimal: str, thousands: str | None = None) -> bool:
    return not math.isnan(parse_number(cell, decimal, thousands))


def _date_formats(cells: Collection[str]) -> list[str | None]:
    """Formats by which all cells are dates; None is that of 2020-12-31."""
    if all(parse_day(cell, None) for cell in cells):
        return [None]
    formats = [day + time for time in _TIMES for day in _DATES]
    return [format for format in formats if all(parse_day(cell, format) for cell in cells)]


def _first_cells(file: TableFile, schema: TableSchema) -> dict[str, list[str]]:
    """The cells of the first rows that are not missing, of the columns that are text."""
    if file.is_text:
        return read_first_texts(file, schema)
    texts = {name: "as it is" for name, kind in zip(schema.names, schema.kinds, strict=True) if kind == "category"}
    if not texts:
        return {}
    first = next(iter(stream_batches(file, schema, ColumnSelection(texts))), None)
    columns: Sequence[Any] = [] if first is None else first.slice(0, _FIRST_BYTES // len(texts)).columns
    return {
        name: [cell.strip() for cell in column.to_pylist() if cell is not None and cell.strip()]
        for name, column in zip(texts, columns, strict=bool(columns))
    }


def _first_bytes(file: TableFile, encoding: str = "utf-8") -> bytes:
    """The beginning of a text table, in UTF-8 if its encoding is given. Quotes have no meaning without a delimiter."""

    def read() -> bytes:
        with TableStream(file.path, file.name, gzipped=file.gzipped, encoding=encoding) as stream:
            return stream.read(_FIRST_BYTES)

    return without_cells(file, read)


def _detect_encoding(file: TableFile) -> str | None:
    """None for UTF-8, UTF-16 by its mark, and else the encoding of Windows where all bytes have a meaning in it."""
    data = _first_bytes(file)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            # The last character may be cut.
            codecs.getincrementaldecoder(encoding)("strict").decode(data)
        except UnicodeDecodeError:
            continue
        return None if encoding == "utf-8" else encoding
    return "iso8859-1"


def _detect_delimiter(file: TableFile) -> str:
    """The delimiter by which the first lines have the same number of cells, more than one."""
    text = _first_bytes(file, file.encoding).decode("utf-8-sig", errors="ignore")
    lines = text.splitlines()[:_FIRST_LINES]

    def fitness(delimiter: str) -> tuple[bool, int, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return False, 0, 0
        width = widths[0] if widths else 0
        return width > 1, sum(each == width for each in widths), width

    # The delimiter that the name of the file states comes first among equals.
    return max(dict.fromkeys((file.delimiter, *DELIMITERS)), key=fitness)


def _detect_numbers(columns: Iterable[Sequence[str]]) -> tuple[str, str | None]:
    """The decimal point, and the sign of thousands if a column of numbers has one."""
    plain = [[cell.lstrip("<>≤≥= ") for cell in cells if cell not in MARKS] for cells in columns]
    decimal = _detect_decimal(plain)
    # One sign alone makes numbers of what is none without it; a number like 1.234,5 tells both.
    for point, thousands in ((decimal, "."), (decimal, ","), (",", "."), *_RARE_SIGNS):
        others = point == decimal or not any(map(_DECIMAL_POINT.fullmatch, chain(*plain)))
        if thousands != point and others and any(_has_groups(cells, point, thousands) for cells in plain):
            return point, thousands
    return decimal, None


_RARE_SIGNS = tuple((decimal, thousands) for thousands in (" ", "'") for decimal in (",", "."))


def _has_groups(cells: Sequence[str], decimal: str, thousands: str) -> bool:
    """Whether all cells are numbers with a sign of thousands, and some are none without it."""
    with_sign = all(_is_number(cell, decimal, thousands) for cell in cells)
    return with_sign and not all(_is_number(cell, decimal) for cell in cells)


def _detect_decimal(columns: Iterable[Sequence[str]]) -> str:
    """A comma if numbers have one and none has a point, but for points that may be those of thousands."""
    commas = False
    for plain in columns:
        with_point = [cell for cell in plain if _DECIMAL_POINT.fullmatch(cell)]
        groups = all(map(_POINTS.fullmatch, with_point))
        if not groups and all(_is_number(cell, ".") for cell in plain):
            return "."
        with_comma = [cell for cell in plain if _DECIMAL_COMMA.fullmatch(cell)]
        whole = all(_is_number(cell, ",") for cell in plain)
        commas = commas or (whole and not all(map(_THOUSANDS.fullmatch, with_comma)))
    return "," if commas else "."


# ---- The template of ``bounds.toml`` that the owner of a table fills in.

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
        lines = [f"{_CHECKS.get(key, '')}{key} = {value}\n" for key, value in stated.items()]
        parts.append(f"[table]\n{''.join(lines)}")
    found = _kind(target, kinds.pop(target), proposals)
    counts = found == "number" and proposals is not None and target in proposals and proposals[target].counts
    of_times = None if schema.sparse else names_a_time_to_an_event(target, schema.names)
    parts.append(_target(target, "count" if counts else found, of_times))
    person = next((name for name in kinds if names_a_person(name)), None)
    if person is not None:
        del kinds[person]
        parts.append(_PERSON.format(column=_key(person)))
    if shared:
        parts.append(_DEFAULTS if schema.sparse else _DEFAULTS + "# missing = {indicator = true}\n")
    for name, kind in kinds.items():
        found = _kind(name, kind, proposals)
        proposal = None if proposals is None else proposals.get(name)
        # Such numbers are not plainly numbers, for which the defaults are.
        special = (proposal is not None and proposal.marked) or (layout is not None and layout.thousands is not None)
        if not (shared and found == "number" and not special):
            body = _section(name, found, proposal)
            parts.append(f"[columns.{_key(name)}]\n{body}")
    return "\n".join([*parts, *([] if shared else [_MISSING_DEFAULT]), _MISSING])


def _kind(name: str, kind: str, proposals: Mapping[str, ColumnProposal] | None) -> str:
    if names_an_identifier(name):
        return "identifier"
    if (measure := names_a_measure(name)) is not None:
        return measure
    return kind if proposals is None or name not in proposals else proposals[name].kind


def _section(name: str, kind: str, proposal: ColumnProposal | None) -> str:
    marked = proposal is not None and proposal.marked and kind not in ("person", "identifier", "weight", "exposure")
    return _body(name, kind, proposal) + (_MARKED if marked else "")


def _body(name: str, kind: str, proposal: ColumnProposal | None) -> str:
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


def _target(name: str, kind: str, of_times: tuple[str, str] | None) -> str:
    hint = ""
    if of_times is not None:
        time, event = map(_key, of_times)
        hint = _SURVIVAL.format(time=time, event=event)
    return f"[target]\nname = {_key(name)}\n{_TARGETS.get(kind, _TARGETS['category'])}{hint}"


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
    "count": f"""\
# To count: these are whole numbers from zero on, and kind = "count" estimates rate ratios, where lower is 0. To predict
# a number: the range that it can have. To tell classes apart: a list of the labels in the place of lower and upper,
# such as classes = [0, 1].
# kind = "count"
{_RANGE}""",
    "censored": f"# Numbers with < or > before them cannot be predicted: correct them, and state the range.\n{_RANGE}",
    "boolean": "classes = [false, true]\n",
    "category": '# Every label that a record may carry, such as ["case", "control"].\n# classes =\n',
}

_SURVIVAL = """\
# By their names {time} is how long a row was observed and {event} whether that ended with an event. For hazard ratios
# and a survival curve write these lines in the place of the others of [target], with public times in the list, the last
# one being the end of follow-up, and take the section of the other column out.
# kind = "survival"
# time = {time}
# event = {event}
# cuts = []
"""

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

_MARKED = f"""\
# Texts of this list, which is the same for all tables, stand for missing cells here: take out what does not. A missing
# cell needs an entry in [missing].
missing_values = [{", ".join(_key(mark) for mark in MARKS)}]
"""

_CHECKS = {
    "encoding": "# The file is not in UTF-8: check that letters with accents in names and categories are right.\n",
    "thousands": "# The sign between groups of three digits: check that it is no decimal point.\n",
}

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
    "weight": f"""\
# By its name the weight of each row. To weigh rows by it, write in the place of this section [weight] with column and
# upper, the largest weight that there can be, if a row's weight follows from that row and from public facts alone:
# raked, calibrated and normalised weights do not.
{_IGNORED}""",
    "exposure": f"""\
# By its name for how long a row counts. For rates write in the place of this section [exposure] with column and upper,
# the largest that there can be, beside kind = "count" in [target].
{_IGNORED}""",
    "row numbers": f"# Without a name, as the row numbers of R and pandas: no feature.\n{_IGNORED}",
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
