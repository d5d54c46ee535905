"""What is known about a table before it is read: bounds, target, task, and which bounds are still to be found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.cli.methods import Task
from taciturn.cli.screen import stage
from taciturn.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    from taciturn.tables import TableBounds, TableSchema

__all__ = ["Statement", "read_text", "state"]


_MOST_BOUNDS = 1 << 24
"""In bytes: hundreds for each of as many columns as a table may have."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Public facts about a table.

    Parameters
    ----------
    bounds : TableBounds
        Without those that are still to be found.
    task : {"regress", "classify"}
        What the target asks for.
    to_find : tuple of str
        Columns of numbers without public bounds, in the order of the table, the target last if it is one of them.
    schema : TableSchema
        Names and types of the table's columns.
    """

    bounds: TableBounds
    task: Task
    to_find: tuple[str, ...]
    schema: TableSchema

    def with_found(self, lower: Any, upper: Any) -> TableBounds:
        """The bounds with those that were found privately, for the table at hand."""
        from taciturn.tables import Column

        bounds = self.bounds
        found = dict(zip(self.to_find, zip(map(float, lower), map(float, upper), strict=True), strict=True))
        if bounds.target.name in found:
            low, high = found.pop(bounds.target.name)
            bounds = replace(bounds, target=replace(bounds.target, lower=low, upper=high))
        columns = dict(bounds.columns) | {name: Column("number", *ends) for name, ends in found.items()}
        return replace(bounds, columns=columns, found_privately=self.to_find).for_table(self.schema)


def state(table: Path, target: str | None, task: Task | None, bounds_file: Path | None, *, find: bool) -> Statement:
    """Bring together what the options, the bounds file and the header of the table say.

    ``find`` tells whether bounds that nobody stated may be found privately; if not, all must be stated.
    """
    from taciturn.tables import TableBounds, Target, read_schema
    from taciturn.tables.bounds import lacking

    stated = None if bounds_file is None else TableBounds.from_toml(read_text(bounds_file, "bounds", _MOST_BOUNDS))
    if stated is None and not find:
        raise ParameterError(
            "bounds",
            None,
            "public bounds of the columns",
            "write a template with taciturn init and fill it in, or give --private-bounds a share of the budget",
        )
    with stage(f"reading the columns of {table.name}"):
        schema = read_schema(table)
    if stated is None:
        if target is None:
            raise ParameterError("target", None, "the name of a column", "say which one with --target")
        stated = TableBounds(target=Target(target))
    elif target is not None and target != stated.target.name:
        raise ParameterError(
            "target", target, f"the column that the bounds file names, {stated.target.name!r}", "change one of the two"
        )
    task = _task(task, stated)
    if not schema.sparse and stated.target.name not in schema.names:
        # Before anything else about the columns: where there is no header, their names are cells.
        raise DataError(lacking(stated.target.name, schema))
    if not find:
        if task == "regress" and stated.target.lower is None:
            raise ParameterError("target", stated.target.name, "bounds in the bounds file", "state lower and upper")
        return Statement(stated.for_table(schema), task, (), schema)
    return _lacking(stated, task, schema)


def _task(task: Task | None, stated: TableBounds) -> Task:
    from_bounds: Task | None = None
    if stated.target.classes:
        from_bounds = "classify"
    elif stated.target.lower is not None:
        from_bounds = "regress"
    if task is None and from_bounds is None:
        raise ParameterError("task", None, "regress or classify", "say which with --task, or describe the target")
    if task is not None and from_bounds is not None and task != from_bounds:
        raise ParameterError("task", task, f"{from_bounds}, as the bounds file describes the target", "change one")
    return task or from_bounds or "regress"


def _lacking(stated: TableBounds, task: Task, schema: TableSchema) -> Statement:
    """What remains to be found: numbers that no section and no default describes."""
    from taciturn.tables import Column

    columns, to_find = dict(stated.columns), []
    for name, kind in zip(schema.names, schema.kinds, strict=True):
        if name == stated.target.name or name in columns or (stated.defaults is not None and kind == "number"):
            continue
        if kind == "number":
            to_find.append(name)
        elif kind == "boolean":
            columns[name] = Column("boolean")
        else:
            raise DataError(
                f"column {name[:60]!r}: expected numbers or truth values where nothing is stated, got a {kind} column; "
                'list its public categories or leave it out (type = "ignore") in a bounds file.'
            )
    if task == "regress" and stated.target.lower is None:
        to_find.append(stated.target.name)
    return Statement(replace(stated, columns=columns), task, tuple(to_find), schema)


def read_text(path: Path, what: str, most: int) -> str:
    """A text file of at most so many bytes, or one sentence."""
    from taciturn.tables.files import check_readable

    check_readable(what, path)
    try:
        size = path.stat().st_size
        if size <= most:
            with path.open("rb") as file:
                # No more than was there: it may be growing.
                return file.read(size).decode("utf-8-sig")
        problem = f"more than {most:,} bytes"
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except OSError as error:
        problem = (error.strerror or "an error").lower()
    raise DataError(f"{what} {path.name!r}: expected a text file that can be read ({problem}); check the name.")
