"""Public facts about the columns of a table: bounds, categories, classes, and values that replace missing ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from taciturn.core.errors import DataError
from taciturn.tables.bounds_toml import parse_toml
from taciturn.tables.columns import KEYS, Column, Target, find_repeated
from taciturn.tables.schema import LABEL, TableSchema, is_index
from taciturn.tables.words import quoted, refusal

__all__ = ["TableBounds", "missing_column"]


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
        Values that replace missing ones, by column. Other columns may not have missing values.
    order : tuple of str, default=None
        The columns that enter the model, in the order of the table. None until :meth:`for_table` has seen its names.
    found_privately : tuple of str, default=()
        Columns whose bounds were found privately; the target may be one of them.
    person : str, default=None
        The column with the key of the person that each row is about, where a person may have several rows. It never
        enters the model. None: every row is a record of its own.

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
    Column(type='number', lower=0.0, upper=110.0, categories=())
    """

    target: Target
    columns: Mapping[str, Column] = field(default_factory=dict)
    defaults: Column | None = None
    missing: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] | None = None
    found_privately: tuple[str, ...] = ()
    person: str | None = None

    def __post_init__(self) -> None:
        target = self.target.checked()
        columns = {name: column.checked(f"columns.{quoted(name)}") for name, column in self.columns.items()}
        if target.name in columns:
            raise refusal(
                "target.name",
                target.name,
                "a column without a section in [columns]",
                "describe the target in [target] alone",
            )
        if self.person is not None:
            self._check_person(columns)
        # The only way to set attributes of a frozen dataclass.
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "columns", MappingProxyType(columns))
        if self.defaults is not None:
            object.__setattr__(self, "defaults", self.defaults.checked("defaults"))
        fills = {name: self._checked_fill(name, value) for name, value in self.missing.items()}
        object.__setattr__(self, "missing", MappingProxyType(fills))
        for place, names in (("order", self.order or ()), ("found_privately", self.found_privately)):
            for name in names:
                paid_for = place == "found_privately" and name == target.name and target.lower is not None
                if not paid_for and not self._describes(name):
                    raise refusal(place, name, "columns that enter the model", "describe it in [columns]")

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views cannot be pickled.
        parts = (self.target, dict(self.columns), self.defaults, dict(self.missing), self.order, self.found_privately)
        return (TableBounds, (*parts, self.person))

    def __repr__(self) -> str:
        listed = len(self.columns) if self.order is None else len(self.order)
        return f"TableBounds(target={quoted(self.target.name)}, {listed} columns)"

    def _check_person(self, columns: Mapping[str, Column]) -> None:
        if not isinstance(self.person, str) or self.person == self.target.name:
            raise refusal("person.column", self.person, "the name of a column other than the target", "name one")
        if columns.get(self.person, Column("ignore")).type != "ignore":
            raise refusal(
                "person.column",
                self.person,
                "a column that does not enter the model",
                "take its section in [columns] out: a key is no feature",
            )

    def column(self, name: str) -> Column | None:
        """Facts about a column, if any are stated; none about the key of a person."""
        return None if name == self.person else self.columns.get(name, self.defaults)

    @property
    def used(self) -> Iterator[tuple[str, Column]]:
        """Names and facts of the columns that enter the model, in the order of the table."""
        for name in self.order or ():
            yield name, self.columns.get(name) or self.defaults  # type: ignore[misc]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the coefficients."""
        return [feature for name, column in self.used for feature in column.features(name)]

    @property
    def feature_units(self) -> list[float]:
        """How many units of its column one unit of each feature is: half the width of the bounds of numbers, else 1."""
        return [column.unit for name, column in self.used for _ in column.features(name)]

    def for_table(self, schema: TableSchema) -> TableBounds:
        """Resolve the bounds for a table: check its columns and fill in ``order``.

        If ``order`` is known already, the table must have these columns; others are ignored.
        """
        present = set(schema.names)
        if self.order is not None:
            for name in self.order:
                if name not in present and not (schema.sparse and is_index(name)):
                    raise DataError(missing_column(name, schema))
            return self
        named = () if self.person is None else (self.person,)
        for place, names in (("columns", self.columns), ("missing", self.missing), ("person.column", named)):
            for name in names:
                if name not in present and name != self.target.name:
                    raise refusal(
                        place,
                        name,
                        "the name of a column of the table",
                        f"check the spelling, or take the entry out{_delimiter_hint(schema)}",
                    )
        self._check_described(schema)
        order = tuple(name for name in schema.names if name != self.target.name and self._describes(name))
        if not order:
            raise refusal("columns", list(self.columns), "at least one column that enters the model", "describe one")
        resolved = replace(self, order=order)
        twice = find_repeated(resolved.feature_names)
        if twice is not None:
            raise refusal("columns", twice, "features with different names", "rename a column or a category")
        return resolved

    def _check_described(self, schema: TableSchema) -> None:
        """Raise if nothing is stated about a column of the table."""
        # If none of the names is known, the table may have no header, and the names may be cells.
        known = bool(self.columns) or self.target.name in schema.names
        for position, (name, kind) in enumerate(zip(schema.names, schema.kinds, strict=True), start=1):
            if name in self.columns or name in (self.target.name, self.person):
                continue
            if self.defaults is not None and kind == "number":
                continue
            beyond = "" if self.defaults is None else " that is not plainly one of numbers"
            raise refusal(
                "columns",
                list(self.columns),
                f"a section for every column of the table{beyond}, such as {quoted(name) if known else position}",
                f'add one, with type = "ignore" to leave the column out{_delimiter_hint(schema)}',
            )

    def _describes(self, name: str) -> bool:
        column = self.column(name)
        return column is not None and column.type != "ignore"

    def _checked_fill(self, name: str, value: Any) -> Any:
        place = f"missing.{quoted(name)}"
        if name == self.target.name:
            return self.target.checked_fill(place, value)
        column = self.column(name)
        if column is None or column.type == "ignore":
            raise refusal(place, value, "a column that enters the model", "describe it in [columns], or take it out")
        return column.checked_fill(place, value)

    # ------------------------------------------------------------------ text

    @classmethod
    def from_toml(cls, text: str) -> TableBounds:
        """Read ``bounds.toml``; raise an error of one sentence that names the place of a mistake."""
        return cls._from_content(parse_toml(text), ())

    @classmethod
    def from_json(cls, text: str) -> TableBounds:
        """Read what :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        return cls._from_content(content, ("order", "found_privately"))

    def to_json(self) -> str:
        """Return the bounds as JSON text; :meth:`from_json` restores them."""
        content: dict[str, Any] = {
            "target": _to_fields(self.target),
            "columns": {name: _to_fields(column) for name, column in self.columns.items()},
            "missing": dict(self.missing),
            "found_privately": list(self.found_privately),
        }
        if self.defaults is not None:
            content["defaults"] = _to_fields(self.defaults)
            if self.defaults.type == "number":
                del content["defaults"]["type"]
        if self.order is not None:
            content["order"] = list(self.order)
        if self.person is not None:
            content["person"] = {"column": self.person}
        return json.dumps(content, ensure_ascii=False, allow_nan=False)

    @classmethod
    def _from_content(cls, content: Any, more: tuple[str, ...]) -> TableBounds:
        sections = _section("bounds", content, ("target", "columns", "defaults", "missing", "person", *more))
        target = _section("target", sections.get("target"), ("name", "lower", "upper", "classes"))
        if "classes" in target:
            target = target | {"classes": _to_tuple("target.classes", target["classes"])}
        columns = _section("columns", sections.get("columns", {}), None)
        return cls(
            target=Target(**({"name": None} | target)),
            columns={name: _column(f"columns.{quoted(name)}", stated) for name, stated in columns.items()},
            defaults=_defaults(sections["defaults"]) if "defaults" in sections else None,
            missing=_section("missing", sections.get("missing", {}), None),
            order=_to_names("order", sections["order"]) if "order" in sections else None,
            found_privately=_to_names("found_privately", sections.get("found_privately", [])),
            person=_person(sections["person"]) if "person" in sections else None,
        )


def missing_column(name: str, schema: TableSchema) -> str:
    """Message about a column that a table does not have."""
    remedy = f"check the names in its header{_delimiter_hint(schema)}"
    if schema.sparse:
        remedy = f"the target of a libsvm file is called {quoted(LABEL)}, and its columns go by their indices"
    return f"table: expected a column {quoted(name)}, got a table without it; {remedy}."


def _delimiter_hint(schema: TableSchema) -> str:
    if len(schema.names) != 1:
        return ""
    return ", and check the delimiter, as there is one column only (commas for .csv, tabs for .tsv)"


def _to_fields(stated: Column | Target) -> dict[str, Any]:
    """The fields of a column for a file, without those that are not set."""
    values = {name: getattr(stated, name) for name in stated.__slots__}
    return {name: value for name, value in values.items() if value is not None and value != ()}


def _section(place: str, content: Any, allowed: tuple[str, ...] | None) -> dict[str, Any]:
    """Return a table of TOML or an object of JSON; raise if it has other keys than ``allowed``. None allows all."""
    if not isinstance(content, dict):
        raise refusal(place, content, "a section with keys and values", "write it as docs/model-file.md shows")
    for key in content:
        if allowed is not None and key not in allowed:
            listed = ", ".join(allowed)
            raise refusal(
                place, key, f"no key but {listed}", "check the spelling, and put column names with dots in quotes"
            )
    return content


def _person(content: Any) -> str:
    column = _section("person", content, ("column",)).get("column")
    if not isinstance(column, str):
        raise refusal("person.column", column, "the name of a column", "name the one with the keys of the persons")
    return column


def _column(place: str, content: Any) -> Column:
    stated = _section(place, content, None)
    kind = stated.get("type")
    allowed = KEYS.get(kind) if isinstance(kind, str) else None
    if allowed is None:
        return Column(kind).checked(place)  # type: ignore[arg-type]
    _section(place, stated, ("type", *allowed))
    if "categories" in stated:
        stated = stated | {"categories": _to_tuple(f"{place}.categories", stated["categories"])}
    return Column(**stated)


def _defaults(content: Any) -> Column:
    """Facts about columns that hold numbers: their bounds, or that they are codes."""
    stated = {"type": "number"} | _section("defaults", content, ("type", "lower", "upper", "categories"))
    if stated["type"] not in ("number", "code", "category"):
        expected = 'one of "number", "code", "category", as these columns hold numbers'
        raise refusal("defaults.type", stated["type"], expected, "describe other columns in [columns]")
    return _column("defaults", stated)


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
