"""Tables on disk, open for reading in partitions: streamed in this process, or read by the workers of dask."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import check_choice
from taciturn.sources.open_tables import Engine, PartitionedTable
from taciturn.sources.streamed import StreamedSource
from taciturn.tables.bounds import TableBounds
from taciturn.tables.partitions import TablePartitions, open_partitions
from taciturn.tables.schema import TableSchema
from taciturn.tables.streams import machine_memory

__all__ = ["FileTable", "held_memory", "open_table"]

_WORK = 1 << 28
"""Bytes for the partitions at work and for what a fit makes of them, beside blocks that are held."""

_USUAL_RESIDENT = 3 << 26
"""Bytes of a process with the libraries of a fit, where the system does not tell."""


class FileTable(PartitionedTable):
    """A table on disk with its bounds, which ``fit`` takes in place of arrays; made by :func:`open_table`.

    Parameters
    ----------
    partitions : TablePartitions
        Reads the table.
    engine : callable
        As in :class:`~taciturn.sources.PartitionedTable`.

    Attributes
    ----------
    bounds : TableBounds
        Bounds of the columns, resolved for the table.
    """

    def __init__(self, partitions: TablePartitions, engine: Engine) -> None:
        self.partitions, self.bounds = partitions, partitions.bounds
        target = self.bounds.target
        regress = target.lower is not None and target.upper is not None
        super().__init__(
            partitions,
            engine=engine,
            has_persons=self.bounds.person is not None,
            classes=target.classes,
            y_bounds=(float(target.lower), float(target.upper)) if regress else None,  # type: ignore[arg-type]
            # Encoded features are within the unit interval.
            x_bound=1.0,
        )
        self.invalid, self.person_column = partitions.invalid, self.bounds.person
        # Files that other machines read cannot be copied here.
        self.gathers_persons = not getattr(engine, "reads_elsewhere", False)

    @classmethod
    def of_files(
        cls,
        path: str | os.PathLike[str],
        bounds: TableBounds,
        engine: Engine,
        *,
        schema: TableSchema | None = None,
        invalid: str = "raise",
        memory: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Open files for an engine; the other parameters are those of :func:`~taciturn.tables.open_partitions`."""
        partitions = open_partitions(path, bounds, schema=schema, invalid=invalid, memory=memory, progress=progress)
        if partitions.is_copy and getattr(engine, "reads_elsewhere", False):
            partitions.close()
            raise DataError(
                "table: expected Parquet or Arrow files for dask, whose workers read them themselves, got another "
                "table; write it as Parquet where all workers can read it."
            )
        if partitions.bounds.person is not None:
            elsewhere = getattr(engine, "reads_elsewhere", False)
            partitions = partitions.cut_between_persons() if elsewhere else partitions.gather_persons()
        return cls(partitions, engine)

    def __repr__(self) -> str:
        return f"FileTable({self.n_features} features, target={self.bounds.target.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy of a text table; other files stay as they are."""
        self.partitions.close()


def open_table(
    path: str | os.PathLike[str],
    bounds: TableBounds | str | os.PathLike[str] = "bounds.toml",
    *,
    invalid: str = "raise",
    memory: int | None = None,
    engine: str = "stream",
    progress: Callable[[float], None] | None = None,
) -> FileTable:
    r"""Open a table on disk, for ``fit`` in place of arrays: it is read in partitions and never in memory as a whole.

    ``SparseClassifier().fit(open_table("big.parquet"))`` gives the coefficients, to the bit, that a fit to the arrays
    of :func:`~taciturn.tables.read_table` gives with the same seed. Public bounds and classes of the target, and the
    column of persons, are those of the bounds file; an estimator that states others is refused.

    **Privacy.** Opening a table reads no cell of a Parquet or Arrow file, unless it has persons, whose keys are read. A
    text table is copied once to a private temporary folder and refused here for a cell that cannot be used; no account
    is charged for such a refusal, which tells of the data. The command ``taciturn fit --account`` charges it. So is a
    table in which rows of a person do not lie together, unless workers of dask read it: they have to find them so.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`~taciturn.tables.read_schema`, or a folder of Parquet or Arrow files with the same columns,
        which are read in the order of their names.
    bounds : TableBounds, str or path-like, default="bounds.toml"
        Public bounds of the columns and the target, or the file that states them; ``taciturn init`` writes a template.
    invalid : {"raise", "null"}, default="raise"
        Whether a cell that cannot be used refuses the table or makes its record null; as that of the estimator.
    memory : int, default=None
        Bytes of memory for the whole process. A table that fits is read once and held, in half the room that it takes
        as doubles; of a larger one, every sum reads the columns that it needs. None: half of the machine's.
    engine : {"stream", "dask"}, default="stream"
        Whether this process reads the partitions one after the other, or the workers of the current client of dask,
        which have to find the files under the same path.
    progress : callable, default=None
        Told how much of a text table is copied, from 0 to 1.

    Returns
    -------
    table : FileTable
        A context manager: the copy of a text table is removed when it is closed, and at the latest with the process.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from taciturn import SparseRegressor, open_table
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "table.csv").write_text("y,x" + 200 * "\n0.5,1\n-0.5,-1" + "\n")
    >>> _ = (folder / "bounds.toml").write_text(
    ...     '[target]\nname = "y"\nlower = -1\nupper = 1\n[defaults]\nlower = -1\nupper = 1\n'
    ... )
    >>> with open_table(folder / "table.csv", folder / "bounds.toml") as table:
    ...     model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1)).fit(table)
    >>> model.certificate_.public["records"]
    400
    """
    check_choice(("stream", "dask"), engine=engine)
    if not isinstance(bounds, TableBounds):
        if not os.fspath(bounds):
            raise ParameterError("bounds", bounds, "the name of a file", "name it, or write one with taciturn init")
        bounds = _read_bounds(Path(bounds))
    memory = machine_memory() // 2 if memory is None else memory
    runs: Engine = partial(StreamedSource, memory=held_memory(memory))
    if engine == "dask":
        # Here rather than above: dask is an extra.
        from taciturn.sources.dask_source import DaskSource

        runs = DaskSource
    return FileTable.of_files(path, bounds, runs, invalid=invalid, memory=memory, progress=progress)


def held_memory(memory: int) -> int:
    """Bytes of blocks that a process with so much memory may hold.

    Two thirds of what it neither has nor works with: blocks grow by what tasks remember of their rows.
    """
    return max(0, (memory - _resident() - _WORK) * 2 // 3)


def _resident() -> int:
    """Bytes of memory that the process has now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as facts:
            return int(facts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):  # not every system tells
        return _USUAL_RESIDENT


def _read_bounds(path: Path) -> TableBounds:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"bounds {(path.name or str(path))!r}: expected a text file that can be read, got none; check the name, or "
            "write a template with taciturn init."
        ) from None
    return TableBounds.from_toml(text, folder=path.parent)
