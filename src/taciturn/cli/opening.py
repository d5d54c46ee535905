"""Tables for a fit: in memory where the method or the table asks for it, and else read in partitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.passes import StreamEngine, show_passes
from taciturn.cli.records import EncodedTable, check_labels, read_encoded_table
from taciturn.cli.screen import share_bar, stage
from taciturn.cli.table_facts import TableFacts
from taciturn.core.errors import DataError, ParameterError
from taciturn.tables.words import refusal

__all__ = ["Dask", "Memory", "OpenedTable", "check_opening", "open_records", "parse_memory"]

Memory = Annotated[
    str | None,
    typer.Option(help="Memory for the command, such as 1GB; larger tables are streamed. [default: half of all]"),
]
Dask = Annotated[
    str | None, typer.Option(help="Address of a dask scheduler whose workers read the table, such as tcp://host:8786.")
]

_DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# A packed text table unpacks to about this many times its size.
_UNPACKED = 4


def parse_memory(memory: str | None) -> int:
    """Bytes of memory; half of the machine's for None."""
    from taciturn.tables.streams import machine_memory

    if memory is None:
        return machine_memory() // 2
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([KMGT]?)(I?)B?", memory.strip().upper())
    units = _BINARY if found is not None and found[3] else _DECIMAL
    if found is None or found[2] not in units:
        raise refusal("memory", memory, "a size such as 800MB or 1.5GB", "change it or leave it out")
    return int(float(found[1]) * units[found[2]])


@dataclass(slots=True)
class OpenedTable(EncodedTable):
    """A table on disk that a fit reads in partitions; ``X`` is the open table, which has its target and persons.

    ``engine`` runs its partitions, and ``disconnect`` ends what the engine needs.
    """

    engine: Any = None
    disconnect: Callable[[], None] | None = None

    def labels(self) -> list[Any]:
        """The labels in the table, which count as public where the bounds file lists no classes."""
        from taciturn.sources import target_labels
        from taciturn.sources.open_tables import PartitionedTarget

        labels: list[Any] = target_labels(PartitionedTarget(self.X)).tolist()
        return labels

    def _encode(self, scaler: Any) -> None:
        from taciturn.sources import FileTable

        self.X = FileTable(self.X.partitions.with_bounds(self.bounds, found=self.facts.to_find), self.engine)

    def _leave_out(self, lacking: list[bool]) -> None:
        """Partitions are read with the cells of such records missing, by :class:`~taciturn.tables.NumberPartitions`."""

    def _run(self, estimator: Any) -> None:
        refused = None
        with show_passes("fitting", self.engine, estimator, self.X):
            try:
                estimator.fit(self.X)
            except DataError as error:
                refused = error
        if refused is not None:
            self.X.partitions.raise_problems()
            raise refused
        # As after a fit to the arrays of a table in memory; the names are in the bounds of the model.
        vars(estimator).pop("feature_names_in_", None)

    def close(self) -> None:
        """Remove the copy of a text table, and leave the cluster."""
        self.X.close()
        if self.disconnect is not None:
            self.disconnect()


def check_opening(model: Any, facts: TableFacts, table: Path, memory: str | None, dask: str | None) -> None:
    """Raise if the method needs all records in memory and the options or the size of the table forbid it."""
    limit = parse_memory(memory)
    if model.partitions_refused is None:
        return
    remedy = "choose auto, hard-threshold or, for a selection, correlation"
    if dask is not None:
        raise ParameterError("dask", dask, f"a method that reads tables in partitions (not {_name(model)})", remedy)
    # How many rows a person has is private, and must not refuse a table.
    if facts.bounds.person is None and _size(table, facts) > limit:
        raise DataError(
            f"table: expected one that fits the memory for {_name(model)}, which needs all records at once, got a "
            f"larger one; {remedy}, which stream it."
        )


def open_records(
    table: Path, facts: TableFacts, model: Any, *, invalid: str, memory: str | None, dask: str | None
) -> EncodedTable:
    """The records of a table for a fit: in memory, or read in partitions where the method can.

    Rows of persons may be scattered over a table, which costs a copy of it where it is read in partitions, so that a
    table of persons is read so only where it has to be. No size of it is refused: how many rows a person has is
    private. The result has to be closed.
    """
    limit = parse_memory(memory)
    whole = model.partitions_refused is not None
    if facts.bounds.person is not None:
        whole = whole or _size(table, facts) <= limit
    if dask is None and whole and not table.is_dir():
        with stage(f"reading {table.name}"):
            return read_encoded_table(table, facts, invalid=invalid)
    from taciturn.sources import FileTable, PartitionedTable
    from taciturn.tables import NumberPartitions

    engine, disconnect = _connect(dask) if dask is not None else (StreamEngine(limit), None)
    with share_bar(f"reading {table.name}") as progress:
        opened = FileTable.of_files(
            table, facts.bounds, engine, schema=facts.schema, invalid=invalid, memory=limit, progress=progress
        )
        if facts.to_find:
            # Else a cell that cannot be used would be found when the bounds are paid for.
            opened.partitions.check(progress, facts.to_find)
    unbounded = None
    if facts.to_find:
        numbers, persons = NumberPartitions(opened.partitions, facts.to_find), opened.has_persons
        unbounded = PartitionedTable(numbers, engine=engine, has_target=False, has_persons=persons)
        unbounded.person_column = opened.person_column
    records = OpenedTable(opened, None, facts.bounds, facts, invalid, unbounded, None, engine, disconnect)
    if facts.task == "classify" and facts.bounds.target.classes is None:
        check_labels(facts.bounds.target.name, records.labels())
    return records


def _connect(address: str) -> tuple[Any, Callable[[], None]]:
    """The engine on a cluster, and what leaves the cluster."""
    from taciturn.sources.dask_source import DaskSource, connect

    with stage("connecting to dask"):
        return DaskSource, connect(address)


def _size(table: Path, facts: TableFacts) -> int:
    """About the bytes of a table as doubles: by its rows and features, or by the size of its text."""
    from taciturn.tables.folders import table_files
    from taciturn.tables.stored import store_facts

    size = 0
    for file in table_files(table, facts.bounds.layout):
        stored = store_facts(file) if file.has_groups else None
        if stored is not None:
            size += 8 * sum(stored.group_rows) * len(facts.bounds.feature_names)
        else:
            size += file.path.stat().st_size * (_UNPACKED if file.is_packed else 1)
    return size


def _name(model: Any) -> str:
    return type(model).__name__
