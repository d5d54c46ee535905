"""Public facts about a table, known before its rows are read: bounds, target, task, and bounds still to be found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.cli.methods import Task
from taciturn.cli.screen import stage
from taciturn.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    from taciturn.tables import TableBounds, TableSchema

__all__ = ["TableFacts", "gather_table_facts", "read_text"]


_MOST_BOUNDS = 1 << 24
"""Largest size of a bounds file in bytes: hundreds for each column of the widest admissible table."""

_PROVISIONAL = (-1.0, 1.0)
"""Bounds of a column until its bounds are found."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Public facts about a table.

    The bounds are resolved for the table; those of the columns ``to_find`` are provisional. These are columns of
    numbers without public bounds, in the order of the table, the target last if it is one of them.
    """

    bounds: TableBounds
    task: Task
    to_find: tuple[str, ...]
    schema: TableSchema

    def with_found(self, lower: Any, upper: Any) -> TableBounds:
        """The bounds with those that were found privately in place of the provisional ones."""
        bounds = self.bounds
        found = dict(zip(self.to_find, zip(map(float, lower), map(float, upper), strict=True), strict=True))
        if bounds.target.name in found:
            low, high = found.pop(bounds.target.name)
            bounds = replace(bounds, target=replace(bounds.target, lower=low, upper=high))
        columns = dict(bounds.columns)
        for name, (low, high) in found.items():
            columns[name] = replace(columns[name], lower=low, upper=high)
        return replace(bounds, columns=columns)


def gather_table_facts(
    table: Path, target: str | None, task: Task | None, bounds_file: Path | None, *, find: bool
) -> TableFacts:
    """Combine the options, the bounds file and the header of the table.

    With ``find``, bounds that the bounds file does not state may be found privately; otherwise it must state all.
    """
    from taciturn.tables import TableBounds, Target, read_schema
    from taciturn.tables.bounds import missing_column

    stated = None
    if bounds_file is not None:
        text = read_text(bounds_file, "bounds", _MOST_BOUNDS)
        stated = TableBounds.from_toml(text, folder=bounds_file.parent)
    if stated is None and not find:
        raise ParameterError(
            "bounds",
            None,
            "public bounds of the columns",
            "write a template with taciturn init and fill it in, or give --private-bounds a share of the budget",
        )
    with stage(f"reading the columns of {table.name}"):
        schema = read_schema(table, None if stated is None else stated.layout)
    if stated is None:
        if target is None:
            raise ParameterError("target", None, "the name of a column", "name one with --target")
        stated = TableBounds(target=Target(target))
    elif target is not None and target != stated.target.name:
        raise ParameterError(
            "target", target, f"the column that the bounds file names, {stated.target.name!r}", "change one of the two"
        )
    task = _choose_task(task, stated)
    if not schema.sparse and stated.target.name not in schema.names:
        # Checked first: the other messages name columns, and in a table without a header these names are cells.
        raise DataError(missing_column(stated.target.name, schema))
    to_find: tuple[str, ...] = ()
    if find:
        stated, to_find = _add_provisional_bounds(stated, task, schema)
    elif task == "regress" and stated.target.lower is None:
        raise ParameterError("target", stated.target.name, "bounds in the bounds file", "state lower and upper")
    return TableFacts(stated.for_table(schema).require_bounds(), task, to_find, schema)


def _choose_task(task: Task | None, stated: TableBounds) -> Task:
    """The task that the option names or the bounds file implies; raise if they contradict."""
    from_bounds: Task | None = None
    if stated.target.classes:
        from_bounds = "classify"
    elif stated.target.lower is not None:
        from_bounds = "regress"
    if task is None and from_bounds is None:
        raise ParameterError("task", None, "regress or classify", "choose one with --task, or describe the target")
    if task is not None and from_bounds is not None and task != from_bounds:
        raise ParameterError("task", task, f"{from_bounds}, as the bounds file describes the target", "change one")
    return task or from_bounds or "regress"


def _add_provisional_bounds(
    stated: TableBounds, task: Task, schema: TableSchema
) -> tuple[TableBounds, tuple[str, ...]]:
    """The bounds with provisional ones for every column of numbers that they do not describe, and these columns."""
    from taciturn.tables import Column
    from taciturn.tables.problems import Problems

    columns, to_find, target, problems = dict(stated.columns), [], stated.target, Problems()
    lower, upper = _PROVISIONAL
    for name, kind in zip(schema.names, schema.kinds, strict=True):
        if name in (target.name, stated.person):
            continue
        if name in columns:
            if not columns[name].is_bounded:
                columns[name] = replace(columns[name], lower=lower, upper=upper)
                to_find.append(name)
        elif stated.defaults is not None and kind == "number":
            continue
        elif kind == "number":
            columns[name] = Column("number", *_PROVISIONAL)
            to_find.append(name)
        elif kind == "boolean":
            columns[name] = Column("boolean")
        else:
            with problems.gathering():
                raise DataError(
                    f"column {name[:60]!r}: expected numbers or truth values where nothing is stated, got a {kind} "
                    'column; describe it or leave it out (type = "ignore") in a bounds file.'
                )
    problems.raise_all()
    if task == "regress" and target.lower is None:
        target = replace(target, lower=lower, upper=upper)
        to_find.append(target.name)
    # At once, because what is filled in for missing cells need not lie within provisional bounds.
    found = tuple(to_find)
    return replace(stated, target=target, columns=columns, found_privately=found), found


def read_text(path: Path, what: str, most: int) -> str:
    """Read a UTF-8 file of at most ``most`` bytes; raise with one sentence if that fails."""
    from taciturn.tables.files import check_readable

    check_readable(what, path)
    try:
        size = path.stat().st_size
        if size <= most:
            with path.open("rb") as file:
                # At most the size that was checked: the file may be growing.
                return file.read(size).decode("utf-8-sig")
        problem = f"more than {most:,} bytes"
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except OSError as error:
        problem = (error.strerror or "an error").lower()
    raise DataError(f"{what} {path.name!r}: expected a text file that can be read ({problem}); check the name.")
