"""The content of ``bounds.toml`` and of the bounds in ``model.json``: sections, keys and types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taciturn.tables.columns import KEYS, Column, Target, find_repeated
from taciturn.tables.layouts import TableLayout
from taciturn.tables.missing import Fill, checked_fill, fill_to_content
from taciturn.tables.problems import Problems, closest_name, did_you_mean
from taciturn.tables.words import quoted, refusal

__all__ = ["fields_to_content", "missing_to_content", "read_statements"]

_MOST_FILE = 1 << 24
"""Largest size of a file of categories in bytes, which is that of a bounds file."""

_SECTIONS = ("target", "columns", "defaults", "missing", "person", "table")


def read_statements(content: Any, more: tuple[str, ...], folder: Path | None) -> dict[str, Any]:
    """The parameters of :class:`~taciturn.tables.TableBounds` from sections; all mistakes are raised together.

    ``more`` are sections beyond those of ``bounds.toml``. Files of categories are looked for in ``folder``; None allows
    no such file.
    """
    problems = Problems()
    sections = _section("bounds", content, (*_SECTIONS, *more))
    parts: dict[str, Any] = {"columns": {}, "missing": {}}
    with problems.gathering():
        parts["target"] = _target(sections.get("target"))
    with problems.gathering():
        for name, stated in _section("columns", sections.get("columns", {}), None).items():
            with problems.gathering():
                place = f"columns.{quoted(name)}"
                parts["columns"][name] = _column(place, stated, folder).checked(place)
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
    if "table" in sections:
        with problems.gathering():
            parts["layout"] = _layout(sections["table"])
    if problems.found:
        # The bounds as a whole, which check what is filled in, are not made.
        for name, column in parts["columns"].items():
            if name in parts["missing"]:
                with problems.gathering():
                    checked_fill(f"missing.{quoted(name)}", parts["missing"][name], column.checked_fill)
    problems.raise_all()
    return parts


def fields_to_content(stated: Column | Target) -> dict[str, Any]:
    """The fields of a column for a file, without those that are not set."""
    values = {name: getattr(stated, name) for name in stated.__slots__}
    # Identities, because False equals 0.0.
    kept = {name: value for name, value in values.items() if value is not None and value is not False and value != ()}
    return kept | ({"since": kept["since"].isoformat()} if "since" in kept else {})


def missing_to_content(missing: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of ``[missing]`` in JSON's types."""
    return {name: fill_to_content(stated) if isinstance(stated, Fill) else stated for name, stated in missing.items()}


def _target(content: Any) -> Target:
    target = _section("target", content, ("name", "lower", "upper", "classes"))
    if "classes" in target:
        target = target | {"classes": _to_tuple("target.classes", target["classes"])}
    return Target(**({"name": None} | target)).checked()


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
    column = _column("defaults", stated, None)
    if column.type == "number" and column.lower is None and column.upper is None:
        raise refusal("defaults.lower", None, "a finite number", "state lower and upper, or take the section out")
    return fill | {"defaults": column.checked("defaults")}


def _section(place: str, content: Any, allowed: tuple[str, ...] | None) -> dict[str, Any]:
    """Return a table of TOML or an object of JSON; raise if it has other keys than ``allowed``. None allows all."""
    if not isinstance(content, dict):
        raise refusal(place, content, "a section with keys and values", "write it as docs/model-file.md shows")
    for key in content:
        if allowed is not None and key not in allowed:
            listed = ", ".join(allowed)
            proposed = did_you_mean(closest_name(key, allowed))
            raise refusal(
                place,
                key,
                f"no key but {listed}",
                f"{proposed}check the spelling, and put column names with dots in quotes",
            )
    return content


def _layout(content: Any) -> TableLayout:
    stated = _section("table", content, ("delimiter", "decimal", "name", "header"))
    if stated.get("header", True) is not True:
        raise refusal("table.header", stated["header"], "true", "add a line of names to the table, or take the key out")
    return TableLayout(**stated).checked()


def _person(content: Any) -> str:
    column = _section("person", content, ("column",)).get("column")
    if not isinstance(column, str):
        raise refusal("person.column", column, "the name of a column", "name the one with the keys of the persons")
    return column


def _column(place: str, content: Any, folder: Path | None) -> Column:
    stated = _section(place, content, None)
    kind = stated.get("type")
    allowed = KEYS.get(kind) if isinstance(kind, str) else None
    if allowed is None:
        return Column(kind)  # type: ignore[arg-type]
    _section(place, stated, ("type", *allowed))
    for key in ("categories", "parts"):
        if key in stated:
            stated = stated | {key: _to_tuple(f"{place}.{key}", stated[key])}
    if "categories_file" in stated:
        listed = _read_categories(f"{place}.categories_file", stated["categories_file"], folder)
        if "categories" in stated:
            raise refusal(
                f"{place}.categories_file",
                stated["categories_file"],
                "no list of categories beside it",
                "take out one of the two",
            )
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
