"""Public bounds of a table's columns and target, and the TOML file that states them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import BoolArray, IndexArray
from taciturn.tables.columns import (
    KEYS,
    KINDS_OF_TARGETS,
    LABEL,
    N_MONTHS,
    Column,
    Fill,
    KnownNames,
    MeasuredColumn,
    Notation,
    Problems,
    TableLayout,
    TableSchema,
    Target,
    checked_fill,
    closest_name,
    did_you_mean,
    fill_to_content,
    find_repeated,
    is_fill_of,
    is_index,
    is_row_number,
    listed_names,
    normal_text,
    quoted,
    refusal,
    shorten,
)
from taciturn.tables.terms import PLACE, Term, check_list, parse_terms

# ---- The parser of ``bounds.toml``, which names the place of a mistake.

_BLANK = re.compile(r"^\s*(\w+)\s*=\s*(?:#.*)?$")
_HEADER = re.compile(r"^\s*\[(.+)\]\s*(?:#.*)?$")
# Comments and texts, in which dots mean nothing, and then keys of many parts.
_NO_KEYS = re.compile(
    r'''#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*+"""|"(?:[^"\\\n]|\\.)*+"|'''
    r"""'''(?:[^']|'(?!''))*+'''|'[^'\n]*+'""",
    re.DOTALL,
)
_DEEP = re.compile(r"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){20}")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the sections of ``bounds.toml``; the error about a value that was not filled in names its place."""
    # The parser takes time and memory by the square of the number of parts.
    if _DEEP.search(_NO_KEYS.sub("text", text)):
        raise refusal(
            "bounds", "", "keys of at most 20 parts with dots between them", "put column names with dots in quotes"
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _PLACE.search(str(error))
    line = int(found[1]) if found and found[1] else None
    problems = Problems()
    for place, number in _blanks(text, line):
        with problems.gathering():
            expected = f"a value, got a blank in line {number}"
            raise ParameterError(place, "", expected, "fill it in from knowledge of the column, not from the table")
    problems.raise_all()
    # The message does not quote the line: the file may be a table.
    expected = "TOML" if line is None else f"TOML, found a mistake in line {line}"
    raise refusal("bounds", "", expected, "write names and text in quotes, and lists in square brackets")


def _blanks(text: str, first: int | None) -> list[tuple[str, int]]:
    """Sections and line numbers of the keys without a value, if the mistake in line ``first`` is one of them."""
    section, found = "", []
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            section = f"{header[1]}."
        elif blank := _BLANK.match(line):
            found.append((str(shorten(section + blank[1])), number))
    return found if found and (first is None or found[0][1] <= first) else []


# ---- The content of ``bounds.toml`` and of the bounds in ``model.json``: sections, keys and types.

_MOST_FILE = 1 << 24
"""Largest size of a file of categories in bytes, which is that of a bounds file."""

_MEASURES = ("weight", "exposure")
_SECTIONS = ("target", "columns", "defaults", "missing", "person", *_MEASURES, "table", "terms")

_PLAN = "plan"
"""A section of ``bounds.toml`` for forecasts alone: a fit does not look at it, and no model keeps it."""

_PAIR = 3
_EXPECTED = ("target", "columns", "effects", "explained", "correlation")


class _BrokenColumnError(Exception):
    """A term is about a column whose own statement is refused."""


def read_statements(content: Any, more: tuple[str, ...], folder: Path | None) -> dict[str, Any]:
    """The parameters of :class:`~taciturn.tables.TableBounds` from sections; all mistakes are raised together.

    ``more`` are sections beyond those of ``bounds.toml``. Files of categories are looked for in ``folder``; None allows
    no such file.
    """
    problems = Problems()
    allowed = (*_SECTIONS, *more)
    sections = {name: part for name, part in _section("bounds", content, None).items() if name in allowed}
    with problems.gathering():
        _section("bounds", content, allowed)
    parts: dict[str, Any] = {"columns": {}, "missing": {}}
    with problems.gathering():
        parts["target"] = _target(sections.get("target"))
    with problems.gathering():
        for name, stated in _section("columns", sections.get("columns", {}), None).items():
            with problems.gathering():
                place = f"columns.{quoted(name)}"
                parts["columns"][name] = _checked_column(place, stated, folder)
    with problems.gathering():
        parts |= _defaults(sections)
    with problems.gathering():
        parts["missing"] = _section("missing", sections.get("missing", {}), None)
    for key in ("order", "found_privately"):
        if key in sections:
            with problems.gathering():
                parts[key] = _to_names(key, sections[key])
    if "person" in sections:
        with problems.gathering():
            parts["person"] = _person(sections["person"])
    for name in _MEASURES:
        if name in sections:
            with problems.gathering():
                parts[name] = _measured(name, sections[name])
    if "table" in sections:
        with problems.gathering():
            parts["layout"] = _layout(sections["table"])
    if "terms" in sections:
        with problems.gathering():
            parts["terms"] = _terms(sections["terms"])
    if problems.found:
        # The bounds as a whole, which check what is filled in and the terms, are not made.
        for name, column in parts["columns"].items():
            if name in parts["missing"]:
                with problems.gathering():
                    checked_fill(f"missing.{quoted(name)}", parts["missing"][name], column.checked_fill)
        if "defaults" not in sections:
            _check_terms(parts, sections.get("columns"), problems)
    problems.raise_all()
    return parts


def read_expectations(text: str) -> dict[str, Any]:
    """The section ``[plan]`` of ``bounds.toml``: what is expected of the table, for a forecast.

    ``target`` and ``columns`` have means, spreads and shares, ``effects`` coefficients by column, ``explained`` is the
    share of the target's variance that columns explain, and ``correlation`` lists two columns and a number each.
    """
    found = _section(_PLAN, parse_toml(text).get(_PLAN, {}), _EXPECTED)
    for name in ("target", "columns", "effects"):
        for key, value in _section(f"{_PLAN}.{name}", found.get(name, {}), None).items():
            if name == "columns":
                _section(f"{_PLAN}.{name}.{quoted(key)}", value, ("mean", "spread", "share", "shares"))
            elif name == "effects" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise refusal(f"{_PLAN}.effects", value, "numbers", "state the effect of one unit of the column")
    for pair in found.get("correlation", ()):
        if not isinstance(pair, list) or len(pair) != _PAIR:
            raise refusal(f"{_PLAN}.correlation", pair, "lists of two columns and a number", 'write ["age", "bmi", .3]')
    return found


def fields_to_content(stated: Column | Target | MeasuredColumn) -> dict[str, Any]:
    """The fields of a column for a file, without those that are not set."""
    values = {name: getattr(stated, name) for name in stated.__slots__}
    # Identities, because False equals 0.0.
    kept = {name: value for name, value in values.items() if value is not None and value is not False and value != ()}
    return kept | ({"since": kept["since"].isoformat()} if "since" in kept else {})


def target_to_content(target: Target) -> dict[str, Any]:
    """The entries of ``[target]`` in JSON's types, in which the name of a target of times is that of the times."""
    content = fields_to_content(target)
    return {"time": content.pop("name")} | content if target.task == "survive" else content


def missing_to_content(missing: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of ``[missing]`` in JSON's types."""
    return {name: fill_to_content(stated) if isinstance(stated, Fill) else stated for name, stated in missing.items()}


def _target(content: Any) -> Target:
    target = dict(_section("target", content, None))
    if "kind" in target and target["kind"] not in KINDS_OF_TARGETS:
        Target("", kind=target["kind"]).checked()
    of_times = target.get("kind") == "survival"
    named = "time" if of_times else "name"
    known = (named, "lower", "upper", "classes", "kind", *(("event", "cuts") if of_times else ()))
    if not of_times and (stated := sorted({"time", "event", "cuts"}.intersection(target))):
        expected = 'kind = "survival" beside it'
        raise refusal(f"target.{stated[0]}", target[stated[0]], expected, "add it, or take this key out")
    _section("target", target, known)
    for key in ("classes", "cuts"):
        if key in target:
            target[key] = _to_tuple(f"target.{key}", target[key])
    return Target(**({"name": target.pop(named, None)} | target)).checked()


def _measured(name: str, content: Any) -> MeasuredColumn:
    stated = _section(name, content, ("column", "upper"))
    return MeasuredColumn(stated.get("column"), stated.get("upper")).checked(name)  # type: ignore[arg-type]


def _defaults(sections: dict[str, Any]) -> dict[str, Any]:
    if "defaults" not in sections:
        return {}
    stated = dict(_section("defaults", sections["defaults"], ("type", "lower", "upper", "categories", "missing")))
    fill = {"missing_default": stated.pop("missing")} if "missing" in stated else {}
    if fill and not stated:
        return fill
    stated = {"type": "number"} | stated
    if stated["type"] not in ("number", "code", "category"):
        raise refusal("defaults.type", stated["type"], '"number" or "code"', "describe other columns by their names")
    column = _checked_column("defaults", stated, None)
    if column.type == "number" and column.lower is None and column.upper is None:
        raise refusal("defaults.lower", None, "a finite number", "state lower and upper, or take the section out")
    return fill | {"defaults": column}


def _section(place: str, content: Any, allowed: tuple[str, ...] | None) -> dict[str, Any]:
    """Return a table of TOML or an object of JSON; raise if it has other keys than ``allowed``. None allows all."""
    if not isinstance(content, dict):
        raise refusal(place, content, "a section with keys and values", "write it as docs/model-file.md shows")
    problems = Problems()
    for key in content:
        if allowed is not None and key not in allowed:
            listed = ", ".join(allowed)
            proposed = did_you_mean(closest_name(key, allowed))
            remedy = f"{proposed}check the spelling, and put column names with dots in quotes"
            with problems.gathering():
                raise refusal(place, key, f"no key but {listed}", remedy)
    problems.raise_all()
    return content


def _layout(content: Any) -> TableLayout:
    allowed = ("delimiter", "decimal", "name", "header", "encoding", "thousands", "missing_values")
    stated, problems, layout = _section("table", content, None), Problems(), TableLayout()
    with problems.gathering():
        _section("table", content, allowed)
    stated = {key: value for key, value in stated.items() if key in allowed}
    with problems.gathering():
        if stated.get("header", True) is not True:
            remedy = "add a line of names to the table, or take the key out"
            raise refusal("table.header", stated.pop("header"), "true", remedy)
    with problems.gathering():
        if "missing_values" in stated:
            stated |= {"missing_values": _to_tuple("table.missing_values", stated.pop("missing_values"))}
    with problems.gathering():
        layout = TableLayout(**stated).checked()
    problems.raise_all()
    return layout


def _terms(content: Any) -> tuple[str, ...]:
    return check_list(_to_tuple(PLACE, _section("terms", content, ("list",)).get("list")))


def _check_terms(parts: dict[str, Any], stated: Any, problems: Problems) -> None:
    """Gather what is wrong with terms of the columns whose own statements can be used."""
    columns = parts["columns"]

    def describe(name: str) -> Column | None:
        if name not in columns and isinstance(stated, dict) and name in stated:
            raise _BrokenColumnError
        column = columns.get(name)
        return None if column is None or column.type == "ignore" else column

    for text in parts.get("terms", ()):
        with problems.gathering(), suppress(_BrokenColumnError):
            parse_terms((text,), describe, KnownNames(columns))


def _person(content: Any) -> str:
    column = _section("person", content, ("column",)).get("column")
    if not isinstance(column, str):
        raise refusal("person.column", column, "the name of a column", "name the one with the keys of the persons")
    return column


def _checked_column(place: str, content: Any, folder: Path | None) -> Column:
    """One column; everything that is wrong with it is raised together."""
    problems, column = Problems(), Column("ignore")
    with problems.gathering():
        column = _column(place, content, folder, problems).checked(place)
    problems.raise_all()
    return column


def _column(place: str, content: Any, folder: Path | None, problems: Problems) -> Column:
    """One column before its facts are checked; keys that it cannot have are gathered.

    They are read as those that were probably meant, so that nothing else is said to be missing.
    """
    stated = _section(place, content, None)
    kind = stated.get("type")
    allowed = KEYS.get(kind) if isinstance(kind, str) else None
    if allowed is None:
        return Column(kind)  # type: ignore[arg-type]
    with problems.gathering():
        _section(place, stated, ("type", *allowed))
    meant = {closest_name(key, allowed): value for key, value in stated.items() if key not in ("type", *allowed)}
    stated = {key: value for key, value in (meant | stated).items() if key in ("type", *allowed)}
    with problems.gathering():
        if "missing_values" in stated:
            stated |= {"missing_values": _to_tuple(f"{place}.missing_values", stated.pop("missing_values"))}
    for key in ("categories", "parts"):
        if key in stated:
            stated = stated | {key: _to_tuple(f"{place}.{key}", stated[key])}
    if "categories_file" in stated:
        listed = _read_categories(f"{place}.categories_file", stated["categories_file"], folder)
        if "categories" in stated:
            expected = "no list of categories beside it"
            raise refusal(f"{place}.categories_file", stated["categories_file"], expected, "take out one of the two")
        stated = {key: value for key, value in stated.items() if key != "categories_file"} | {"categories": listed}
    return Column(**stated)


def _read_categories(place: str, name: Any, folder: Path | None) -> tuple[str, ...]:
    """The lines of a text file, which become part of the statement; blank lines and repetitions are skipped."""
    if not isinstance(name, str) or not name.lower().endswith(".txt"):
        # The lines are published with the model: a table must not be taken for a list by mistake.
        raise refusal(place, name, "the name of a text file, .txt", "write one category per line into such a file")
    if folder is None:
        raise refusal(place, name, "a list of categories here", "read the bounds from a file, or list them")
    path = folder / name
    try:
        if path.stat().st_size <= _MOST_FILE:
            text = path.read_text(encoding="utf-8-sig")
            return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
        problem = f"a file of at most {_MOST_FILE:,} bytes"
    except (OSError, ValueError):
        problem = "a readable text file in UTF-8 beside the bounds file"
    raise refusal(place, name, problem, "write one category per line, from a public list and not from the table")


def _to_tuple(place: str, content: Any) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise refusal(place, content, "a list", "put the values in square brackets")
    # Lists cannot be hashed, which the search for repeated values needs.
    return tuple(tuple(value) if isinstance(value, list) else value for value in content)


def _to_names(place: str, content: Any) -> tuple[str, ...]:
    listed = _to_tuple(place, content)
    if not all(isinstance(name, str) for name in listed) or find_repeated(listed) is not None:
        raise refusal(place, content, "names, each once", "ask for a fresh copy")
    return listed


@dataclass(frozen=True)
class TableBounds:
    """Public facts about the columns of a table, as in ``bounds.toml``.

    **Privacy.** All of it counts as public: it must come from knowledge of the columns, not from the table. Bounds that
    were found privately are listed as such; the certificate states their cost.

    Parameters
    ----------
    target : Target
        The column to predict.
    columns : mapping of str to Column, default={}
        Facts about the columns, by name.
    defaults : Column, default=None
        Facts about the columns that hold numbers and that ``columns`` does not list: bounds, or that they are codes.
    missing : mapping, default={}
        What stands for missing cells, by column: a value, or a :class:`~taciturn.tables.columns.Fill`. Other columns
        may not have missing cells.
    order : tuple of str, default=None
        The columns that enter the model, in the order of the table. None until :meth:`for_table` has seen its names.
    found_privately : tuple of str, default=()
        Columns whose bounds were found privately; the target may be one of them.
    person : str, default=None
        The column with the key of the person that each row is about, where a person may have several rows. It never
        enters the model. None: every row is a record of its own.
    layout : TableLayout, default=None
        How the file of the table is written (``[table]``). None: as its name says.
    missing_default : object, default=None
        What stands for missing cells of the columns that ``missing`` does not list: of all of them with ``{"indicator":
        True}``, of those of its type with a value. :meth:`for_table` writes it into ``missing``.
    terms : tuple of str, default=()
        Features that are computed from several columns or from one in another form, as they are written in
        ``[terms]``: "age^2", "age:sex", "spline(age, 30, 50, 70)", "log(crp)". They follow the features of the columns.
    weight, exposure : MeasuredColumn, default=None
        The columns with the weight of each row, and with the exposure of a count or amount, and their public upper
        bounds. They never enter the model. None: all rows count the same, and for an exposure of one.

    Examples
    --------
    >>> from taciturn.tables import TableBounds
    >>> bounds = TableBounds.from_toml('''
    ... [target]
    ... name = "ill"
    ... classes = [false, true]
    ... [columns.age]
    ... type = "number"
    ... lower = 0
    ... upper = 110
    ... ''')
    >>> bounds.column("age")
    Column(type='number', lower=0.0, upper=110.0)
    """

    target: Target
    columns: Mapping[str, Column] = field(default_factory=dict)
    defaults: Column | None = None
    missing: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] | None = None
    found_privately: tuple[str, ...] = ()
    person: str | None = None
    layout: TableLayout | None = None
    missing_default: Any = None
    terms: tuple[str, ...] = ()
    weight: MeasuredColumn | None = None
    exposure: MeasuredColumn | None = None

    def __post_init__(self) -> None:
        target = self.target.checked()
        columns = {name: column.checked(f"columns.{quoted(name)}") for name, column in self.columns.items()}
        if target.name in columns:
            expected = "a column without a section in [columns]"
            raise refusal("target.name", target.name, expected, "describe the target in [target] alone")
        if self.person is not None:
            self._check_person(columns)
        for name in _MEASURES:
            if (measured := getattr(self, name)) is not None:
                object.__setattr__(self, name, measured.checked(name))
        self._check_beside(target, columns)
        # The only way to set attributes of a frozen dataclass.
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "columns", MappingProxyType(columns))
        if self.defaults is not None:
            object.__setattr__(self, "defaults", self.defaults.checked("defaults"))
        if self.layout is not None:
            object.__setattr__(self, "layout", self.layout.checked())
        problems = Problems()
        with problems.gathering():
            object.__setattr__(self, "missing", MappingProxyType(self._checked_fills()))
        for place, names in (("order", self.order or ()), ("found_privately", self.found_privately)):
            for name in names:
                paid_for = place == "found_privately" and name == target.name and target.lower is not None
                if not paid_for and not self._describes(name):
                    with problems.gathering():
                        raise refusal(place, name, "columns that enter the model", "describe it in [columns]")
        with problems.gathering():
            check_list(self.terms)
            # Names of columns that the defaults describe are known with the table.
            if self.terms and (self.order is not None or self.defaults is None):
                _ = self.design_terms
        problems.raise_all()

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views cannot be pickled.
        parts = (self.target, dict(self.columns), self.defaults, dict(self.missing), self.order, self.found_privately)
        more = self.person, self.layout, self.missing_default, self.terms, self.weight, self.exposure
        return (TableBounds, (*parts, *more))

    def __repr__(self) -> str:
        listed = len(self.columns) if self.order is None else len(self.order)
        return f"TableBounds(target={quoted(self.target.name)}, {listed} columns)"

    def _check_person(self, columns: Mapping[str, Column]) -> None:
        if not isinstance(self.person, str) or self.person == self.target.name:
            raise refusal("person.column", self.person, "the name of a column other than the target", "name one")
        if columns.get(self.person, Column("ignore")).type != "ignore":
            remedy = "take its section in [columns] out: a key is no feature"
            raise refusal("person.column", self.person, "a column that does not enter the model", remedy)

    def _check_beside(self, target: Target, columns: Mapping[str, Column]) -> None:
        """Raise where events, weights and exposures are not columns of their own, or do not go with the target."""
        problems = Problems()
        taken = [target.name, *(() if self.person is None else (self.person,))]
        for place, name in self.places_beside:
            with problems.gathering():
                if name in taken:
                    raise refusal(place, name, "a column of its own, not the target or the person", "name another")
                if columns.get(name, Column("ignore")).type != "ignore":
                    remedy = "take its section in [columns] out"
                    raise refusal(place, name, "a column that does not enter the model", remedy)
            taken.append(name)
        with problems.gathering():
            if self.exposure is not None and target.kind not in ("count", "amount"):
                remedy = "state the kind of the target, or take [exposure] out"
                expected = 'kind = "count" or "amount" in [target] beside an exposure'
                raise refusal("exposure.column", self.exposure.column, expected, remedy)
        problems.raise_all()

    @property
    def places_beside(self) -> list[tuple[str, str]]:
        """The columns that are read with the target, each after the key that names it."""
        stated = [("target.event", self.target.event)]
        stated += [(f"{name}.column", each.column) for name in _MEASURES if (each := getattr(self, name)) is not None]
        return [(place, name) for place, name in stated if name is not None]

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are read with the target: events, weights and exposures."""
        return tuple(name for _, name in self.places_beside)

    @property
    def _apart(self) -> tuple[str, ...]:
        """The columns that never enter the model: the target and what is read with it, and keys of persons."""
        return (self.target.name, *self.beside, *(() if self.person is None else (self.person,)))

    def column(self, name: str) -> Column | None:
        """Facts about a column, if any are stated; none about keys of persons, events, weights and exposures."""
        return None if name == self.person or name in self.beside else self.columns.get(name, self.defaults)

    @property
    def used(self) -> Iterator[tuple[str, Column]]:
        """Names and facts of the columns that enter the model, in the order of the table."""
        for name in self.order or ():
            yield name, self.columns.get(name) or self.defaults  # type: ignore[misc]

    def fill_of(self, name: str) -> Fill | None:
        """What stands for a missing cell of a column, or None."""
        stated = self.missing.get(name)
        return stated if stated is None or isinstance(stated, Fill) else Fill(stated)

    def notation(self, name: str) -> Notation:
        """How the cells of a column or of the target are written, and what stands for missing ones."""
        layout = TableLayout() if self.layout is None else self.layout
        if name == self.target.name:
            column, listed = Column("ignore"), self.target.classes or ()
        else:
            column = self.column(name) or Column("ignore")
            listed = column.categories
        missing = {normal_text(text.strip()) for text in (*layout.missing_values, *column.missing_values)}
        return Notation(layout.decimal, layout.thousands, frozenset(missing.difference(map(normal_text, listed))))

    def is_plain(self, column: Column) -> bool:
        """Whether a column of numbers can be read as numbers of a text table, without a rule for single cells."""
        layout = TableLayout() if self.layout is None else self.layout
        plain = column.type == "number" and not column.censored and not column.missing_values
        return plain and layout.thousands is None

    @property
    def unbounded(self) -> list[str]:
        """Columns of numbers and dates that enter the model without bounds, in the order of the table."""
        return [name for name, column in self.used if not column.is_bounded]

    def require_bounds(self) -> TableBounds:
        """Return the bounds; raise if a column that needs lower and upper has none."""
        if names := self.unbounded:
            remedy = "state them from the nature of the columns, or give --private-bounds a share of the budget"
            raise refusal("bounds", "", f"lower and upper of {listed_names(names)}", remedy)
        return self

    def column_features(self, name: str, column: Column) -> list[str]:
        """Names of the features of a column, with the one that says that a cell is missing."""
        fill = self.fill_of(name)
        return column.features(name) + ([f"{name} missing"] if fill is not None and fill.indicator else [])

    @cached_property
    def design_terms(self) -> tuple[Term, ...]:
        """The terms, read by the columns that enter the model."""
        entering = None if self.order is None else frozenset(self.order)

        def describe(name: str) -> Column | None:
            if not (name in self.columns if entering is None else name in entering) or not self._describes(name):
                return None
            column = self.column(name)
            # Bounds that are still to be found could make a logarithm impossible when they are paid for.
            found = column is not None and name in self.found_privately
            return replace(column, lower=None, upper=None) if column is not None and found else column

        return parse_terms(self.terms, describe, KnownNames(self.columns if entering is None else entering))

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the coefficients: those of the columns, then those of the terms."""
        names = [feature for name, column in self.used for feature in self.column_features(name, column)]
        return names + [label for term in self.design_terms for label in term.labels] if self.terms else names

    @property
    def feature_groups(self) -> list[list[int]]:
        """The places of the features of each column and term: ``groups`` of models that choose whole variables."""
        sizes = [len(self.column_features(name, column)) for name, column in self.used]
        ends = np.cumsum([*sizes, *(len(term.labels) for term in self.design_terms)], dtype=int).tolist()
        return [list(range(start, end)) for start, end in pairwise([0, *ends]) if end > start]

    @property
    def indicator_blocks(self) -> list[list[int]]:
        """The places of indicators of which every record has exactly one, the reference level at the front."""
        blocks, start = [], 0
        for name, column in self.used:
            own = self.column_features(name, column)
            fill = self.fill_of(name)
            # A missing cell without a value has no level, but its indicator.
            n_more = int(fill is not None and fill.indicator and fill.value is None)
            levels = [start + at for at, feature in enumerate(own) if "=" in feature.removeprefix(name)]
            if len(levels) == (len(column.categories) if column.type == "category" else N_MONTHS):
                reference = column.reference_feature(name)
                first = [at for at in levels if own[at - start] == reference]
                others = [at for at in levels if own[at - start] != reference]
                blocks.append([*first, *others, *([start + len(own) - 1] if n_more else [])])
            start += len(own)
        return blocks

    @property
    def feature_ranges(self) -> list[tuple[float, float]]:
        """The range of every feature; zeros and ones have the range -1 to 1, which leaves them unchanged."""
        ranges = []
        for name, column in self.used:
            ranges += column.ranges
            ranges += [(-1.0, 1.0)] * (len(self.column_features(name, column)) - len(column.ranges))
        return ranges + [ends for term in self.design_terms for ends in term.ranges] if self.terms else ranges

    @property
    def feature_units(self) -> list[float]:
        """How many units of its column one unit of each feature is: half the width of the bounds of numbers, else 1."""
        return [upper / 2.0 - lower / 2.0 for lower, upper in self.feature_ranges]

    @property
    def feature_steps(self) -> list[float | None]:
        """The change of the column for which the effect of each feature is shown (``per``); None where none is stated.

        It is in the units of the column: divided by :attr:`feature_units` it is a change of the feature.
        """
        steps: list[float | None] = []
        for name, column in self.used:
            own = self.column_features(name, column)
            steps += [column.per if column.is_numeric and feature == name else None for feature in own]
        return steps + [None] * sum(term.width for term in self.design_terms) if self.terms else steps

    @property
    def references(self) -> dict[str, str]:
        """The feature with which the others of a column of categories, or of months, are compared, by column."""
        found = ((name, column.reference_feature(name)) for name, column in self.used)
        return {name: reference for name, reference in found if reference is not None}

    def of_features(self, used: BoolArray) -> tuple[TableBounds, IndexArray]:
        """The bounds of the columns and terms that some features come from, and the places of their features among all.

        The columns include those from which the terms are computed.
        """
        order, terms = self.order or (), self.design_terms if self.terms else ()
        widths = [len(self.column_features(name, column)) for name, column in self.used]
        widths += [term.width for term in terms]
        owners = np.repeat(np.arange(len(widths)), widths)
        needed = set(np.unique(owners[used]).tolist())
        kept = [at for at in range(len(terms)) if len(order) + at in needed]
        if kept:
            sources = {name for at in kept for name in terms[at].columns}
            needed |= {at for at, name in enumerate(order) if name in sources}
        places = np.flatnonzero(np.isin(owners, sorted(needed)))
        chosen = tuple(name for at, name in enumerate(order) if at in needed)
        return replace(self, order=chosen, terms=tuple(self.terms[at] for at in kept)), places

    def for_table(self, schema: TableSchema) -> TableBounds:
        """Resolve the bounds for a table: check its columns and fill in ``order``.

        If ``order`` is known already, the table must have these columns; others are ignored. What is wrong with the
        names is told at once.
        """
        present, problems = set(schema.names), Problems()
        if self.order is not None:
            known = _known_names(schema)
            for name in self.order:
                if name not in present and not (schema.sparse and is_index(name)):
                    with problems.gathering():
                        raise DataError(missing_column(name, schema, known))
            problems.raise_all()
            return self
        proposed = self._check_names(schema, present, problems)
        self._check_described(schema, problems, proposed)
        problems.raise_all()
        numbers = self.row_numbers(schema)
        order = tuple(name for name in schema.names if name not in (*self._apart, numbers) and self._describes(name))
        if not order:
            raise refusal("columns", list(self.columns), "at least one column that enters the model", "describe one")
        resolved = self._with_order(order)
        twice = find_repeated(resolved.feature_names)
        if twice is not None:
            raise refusal("columns", twice, "features with different names", "rename a column or a category")
        return resolved

    def row_numbers(self, schema: TableSchema) -> str | None:
        """The first column of a table if it has no name and no section: row numbers, which are left out."""
        first = schema.names[0] if schema.names else None
        stated = (*self.columns, *self._apart)
        return first if first is not None and first not in stated and is_row_number(first, schema.names) else None

    def _with_order(self, order: tuple[str, ...]) -> TableBounds:
        """The bounds with an order, and with the default for missing cells written out."""
        fills = dict(self.missing)
        if self.missing_default is not None:
            for name in order:
                column = self.column(name)
                if name not in fills and column is not None and is_fill_of(self.missing_default, column.type):
                    fills[name] = self.missing_default
        return replace(self, order=order, missing=fills, missing_default=None)

    def _check_names(self, schema: TableSchema, present: set[str], problems: Problems) -> set[str]:
        """Gather stated names that the table does not have; return the names that were probably meant."""
        proposed = set()
        known, header = _known_names(schema), self._has_header(schema)
        named = () if self.person is None else (self.person,)
        places = [("columns", self.columns), ("missing", self.missing), ("person.column", named)]
        for place, names in (*places, *((place, (name,)) for place, name in self.places_beside)):
            for name in names:
                if name in present or name == self.target.name:
                    continue
                meant = known.closest(name, alike=header)
                proposed |= {meant} - {None}
                with problems.gathering():
                    remedy = f"{did_you_mean(meant)}check the spelling, or take the entry out{_delimiter_hint(schema)}"
                    raise refusal(place, name, "the name of a column of the table", remedy)
        return {name for name in proposed if name is not None}

    def _has_header(self, schema: TableSchema) -> bool:
        """Whether the table has a stated name. If it has none, it may have no header, and its names may be cells."""
        return not {*self._apart, *self.columns}.isdisjoint(schema.names)

    def _check_described(self, schema: TableSchema, problems: Problems, proposed: set[str]) -> None:
        """Gather columns of the table about which nothing is stated; ``proposed`` ones were told already."""
        if problems.found and not self._has_header(schema):
            return
        known = {*self.columns, *self._apart, self.row_numbers(schema), *proposed}
        unknown = [
            name
            for name, kind in zip(schema.names, schema.kinds, strict=True)
            if name not in known and not (self.defaults is not None and kind == "number")
        ]
        if not unknown:
            return
        beyond = "" if self.defaults is None else " that is not plainly one of numbers"
        header = self._has_header(schema)
        which = listed_names(unknown) if header else str(schema.names.index(unknown[0]) + 1)
        with problems.gathering():
            expected = f"a section for every column of the table{beyond}, such as {which}"
            remedy = f'add one, with type = "ignore" to leave the column out{_delimiter_hint(schema)}'
            raise refusal("columns", list(self.columns), expected, remedy)

    def _describes(self, name: str) -> bool:
        column = self.column(name)
        return column is not None and column.type != "ignore"

    def _checked_fills(self) -> dict[str, Any]:
        """The entries of ``missing``: a value, or a Fill where there is an indicator."""
        problems, fills, known = Problems(), dict[str, Any](), KnownNames(self.columns)
        for name, stated in self.missing.items():
            with problems.gathering():
                fill = self._checked_fill(name, stated, known)
                fills[name] = fill if fill.indicator else fill.value
        problems.raise_all()
        return fills

    def _checked_fill(self, name: str, stated: Any, known: KnownNames) -> Fill:
        place, found = f"missing.{quoted(name)}", name in self.found_privately
        if name == self.target.name:
            fill = checked_fill(place, stated, lambda at, value: self.target.checked_fill(at, value, found=found))
            if fill.indicator:
                raise refusal(place, "indicator", "a value, as this is the target", "fill in a value, or take it out")
            return fill
        column = self.column(name)
        if column is None or column.type == "ignore":
            meant = did_you_mean(known.closest(name) if column is None else None)
            remedy = f"{meant}describe it in [columns], or take it out"
            raise refusal(place, stated, "a column that enters the model", remedy)
        return checked_fill(place, stated, lambda at, value: column.checked_fill(at, value, found=found))

    # ------------------------------------------------------------------ text

    @classmethod
    def from_toml(cls, text: str, *, folder: str | Path = ".") -> TableBounds:
        """Read ``bounds.toml``; raise an error with a sentence for every mistake, which names its place.

        Files of categories (``categories_file``) are looked for in ``folder``. Their lines become part of the bounds.
        """
        content = parse_toml(text)
        content.pop(_PLAN, None)
        return cls(**read_statements(content, (), Path(folder)))

    @classmethod
    def from_json(cls, text: str) -> TableBounds:
        """Read what :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        return cls(**read_statements(content, ("order", "found_privately"), None))

    def to_json(self) -> str:
        """Return the bounds as JSON text; :meth:`from_json` restores them."""
        content: dict[str, Any] = {
            "target": target_to_content(self.target),
            "columns": {name: fields_to_content(column) for name, column in self.columns.items()},
            "missing": missing_to_content(self.missing),
            "found_privately": list(self.found_privately),
        }
        if self.defaults is not None:
            content["defaults"] = fields_to_content(self.defaults)
            if self.defaults.type == "number":
                del content["defaults"]["type"]
        if self.missing_default is not None:
            content.setdefault("defaults", {})["missing"] = self.missing_default
        if self.order is not None:
            content["order"] = list(self.order)
        if self.person is not None:
            content["person"] = {"column": self.person}
        for name in _MEASURES:
            if (measured := getattr(self, name)) is not None:
                content[name] = fields_to_content(measured)
        if self.layout is not None:
            content["table"] = self.layout.to_content()
        if self.terms:
            content["terms"] = {"list": list(self.terms)}
        return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _known_names(schema: TableSchema) -> KnownNames:
    """The names of a table, for proposals; the indices of a libsvm file are none."""
    return KnownNames((LABEL,) if schema.sparse else schema.names)


def missing_column(name: str, schema: TableSchema, known: KnownNames | None = None) -> str:
    """Message about a column that a table does not have; ``known`` are its names, if several are searched for."""
    # Similar names are not proposed: if no name is known, the names of the table may be cells.
    proposed = did_you_mean((_known_names(schema) if known is None else known).closest(name, alike=False))
    remedy = f"{proposed}check the names in its header{_delimiter_hint(schema)}"
    if schema.sparse:
        remedy = f"the target of a libsvm file is called {quoted(LABEL)}, and its columns go by their indices"
    return f"table: expected a column {quoted(name)}, got a table without it; {remedy}."


def _delimiter_hint(schema: TableSchema) -> str:
    if len(schema.names) != 1:
        return ""
    return ", and check the delimiter, as there is one column only ([table] delimiter in the bounds states another)"
