"""The source that runs on dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.validation import (
    DIFFERENT_LENGTHS,
    NO_COLUMNS,
    NOT_ONE_COLUMN,
    NOT_TWO_DIMENSIONS,
    BoolArray,
    IndexArray,
    IntArray,
)
from taciturn.data.persons import KeyForms, column_of_keys, key_forms
from taciturn.data.records import Outcomes, declares_truth_values
from taciturn.engines.interface import (
    Block,
    BlockBuilder,
    OpenTable,
    Partition,
    PartitionFacts,
    Refusal,
    Task,
    accepted,
    add_partitions,
    answer_of,
    check_task,
    is_dask,
    quietly,
)
from taciturn.engines.partitions import PartitionedSource

# ---- Partitions on dask: blocks stay on the workers, tasks go there, integers come back.

# Partial sums that a worker adds before they come to the driver.
_ADDED_TOGETHER = 16

_FAILED = (
    "X or y: expected partitions that dask can compute, got one that fails; compute it by itself to see why, since "
    "what is said of it may quote records."
)

_LOST = (
    "dask: expected a cluster that keeps running, got one whose scheduler or workers were lost; start it again, then "
    "fit again: what was reserved in an account counts as spent."
)


class DaskSource(PartitionedSource):
    """A table whose blocks lie on the workers of dask: of the current client, or in threads where there is none.

    A block that is lost with its worker is made again, from the files or the collection that it was made of, and is the
    same. Settings of the cluster (encryption, dashboards, spilling to disks) are those of whoever started it.
    ``blocks`` are those that are made of a dask collection; None: the partitions load them.
    """

    reads_elsewhere = True
    """Whether other processes, maybe on other machines, open the files."""

    def __init__(
        self, partitions: Sequence[Partition], facts: PartitionFacts, *, blocks: list[Any] | None = None
    ) -> None:
        super().__init__(partitions, facts)
        if blocks is None:
            blocks = [lazily(partition.load) for partition in self.partitions]
        self._blocks = keep_on_workers(blocks)

    def each(self, function: Task) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        check_task(function)
        yield from compute_all(self._answers(function))

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions, added on the workers first."""
        check_task(task)
        answers = self._answers(task)
        groups = [answers[start : start + _ADDED_TOGETHER] for start in range(0, len(answers), _ADDED_TOGETHER)]
        return add_partitions(accepted(added) for added in compute_all([lazily(_add, group) for group in groups]))

    def _answers(self, function: Task) -> list[Any]:
        # One node of the graph holds the function, whatever the number of blocks.
        run = delayed(partial(answer_of, function))
        return [run(block) for block in self._blocks]

    def _part(self, rows: list[BoolArray], facts: PartitionFacts) -> Self:
        partitions = [partition.take(kept) for partition, kept in zip(self.partitions, rows, strict=True)]
        blocks = [lazily(_rows_of_block, block, kept) for block, kept in zip(self._blocks, rows, strict=True)]
        return type(self)(partitions, facts, blocks=blocks)


def _add(answers: list[IntArray | Refusal]) -> IntArray | Refusal:
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    if refusals:
        return refusals[0]
    parts = [answer for answer in answers if not isinstance(answer, Refusal)]
    # An error of a worker is not passed on: the driver refuses an answer of another type.
    wrong = [part for part in parts if part.dtype != np.int64]
    return wrong[0] if wrong else add_partitions(parts)


def _rows_of_block(block: Block | Refusal, kept: BoolArray) -> Block | Refusal:
    return block if isinstance(block, Refusal) else block.keep(kept)


def delayed(function: Any) -> Any:
    """The function as a node of a graph of dask."""
    # Here and below: dask is an extra, and takes a while to import.
    try:
        from dask import delayed as wrap
    except ImportError:
        raise ModuleNotFoundError("tables on dask need dask; run pip install 'taciturn[dask]'.") from None
    return wrap(function, pure=False)


def lazily(function: Any, *arguments: Any) -> Any:
    """The call as a node of a graph of dask."""
    return delayed(function)(*arguments)


def connect(address: str) -> Callable[[], None]:
    """Make the cluster of a scheduler the one that sources run on; what is returned leaves it."""
    try:
        from distributed import Client
    except ImportError:
        raise ModuleNotFoundError("tables on dask need dask; run pip install 'taciturn[dask]'.") from None
    make: Callable[..., Any] = Client
    try:
        client = make(address, set_as_default=True)
    except (OSError, ValueError, TypeError):
        raise ParameterError(
            "dask", address, "the address of a dask scheduler that answers", "start one, or check the address"
        ) from None

    def leave() -> None:
        # A scheduler that is gone need not be left, and what the fit ended with counts.
        with suppress(Exception):
            client.close()

    return leave


def keep_on_workers(nodes: list[Any]) -> list[Any]:
    """The nodes with their results kept where they are computed."""
    from dask import persist

    return list(_without_records(lambda: persist(*nodes)))


def compute_all(nodes: list[Any]) -> list[Any]:
    """The results of nodes of a graph of dask."""
    from dask import compute

    return list(_without_records(lambda: compute(*nodes)))


def _without_records(run: Any) -> Any:
    """The results; what a graph that is not ours says where it fails may quote records, and is not passed on."""
    try:
        return run()
    except TaciturnError:
        raise
    except Exception as error:
        # Errors of dask about its workers, and about futures that are lost with their scheduler.
        lost = type(error).__module__.partition(".")[0] == "distributed" or isinstance(error, CancelledError)
    raise DataError(_LOST if lost else _FAILED)


class DaskTable(OpenTable):
    """An array or data frame ``X`` of dask with its target ``y``, and with the keys of its ``persons``.

    Chunks of columns are put together; chunks of rows become partitions. Data frames do not know how many rows their
    partitions have. They are counted, once, which computes the frame. That number is public, except under add-remove,
    where it is counted after the fit has been paid for.
    """

    def __init__(self, X: Any, y: Any = None, persons: Any = None) -> None:
        if X.ndim != 2:
            raise DataError(f"X: {NOT_TWO_DIMENSIONS}.")
        self.n_features = len(X.columns) if hasattr(X, "columns") else int(X.shape[1])
        if self.n_features == 0:
            raise DataError(f"X: {NO_COLUMNS}.")
        names = list(getattr(X, "columns", ()))
        self.names = tuple(names) if names and all(isinstance(name, str) for name in names) else None
        self.is_sparse = bool(sp.issparse(getattr(X, "_meta", None)))
        self.has_target, self.has_persons = y is not None, persons is not None
        self.person_column = column_of_keys(persons)
        self._X = X if hasattr(X, "columns") else X.rechunk({1: -1})
        self._y, self._persons = _one_column("y", y), _one_column("persons", persons)
        self._weight: Any = None
        self._exposure: Any = None

    def add_measures(self, weight: Any, exposure: Any) -> None:
        """Take columns of weights and exposures."""
        self._weight, self._exposure = _one_column("sample_weight", weight), _one_column("exposure", exposure)
        self.has_weight, self.has_exposure = weight is not None, exposure is not None

    @cached_property
    def _features(self) -> list[Any]:
        return _pieces(self._X)

    @cached_property
    def lengths(self) -> IntArray:
        """The number of rows of each partition."""
        return _lengths(self._X, self._features)

    @cached_property
    def _targets(self) -> list[Any]:
        pieces = self._alongside("y", self._y)
        if not declares_truth_values(self._y):
            return pieces
        return [lazily(quietly, _truth_values, piece) for piece in pieces]

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition."""
        return _each_quietly(function, self._targets)

    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition."""
        keys = self._alongside("persons", self._persons)
        return _each_quietly(key_forms, keys, self.lengths.tolist())

    def _source(self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts) -> DaskSource:
        targets = self._targets if builder.target is not None else [None] * facts.lengths.size
        if builder.measures is not None:
            beside = [
                [None] * facts.lengths.size if column is None else self._alongside(name, column)
                for name, column in (("sample_weight", self._weight), ("exposure", self._exposure))
            ]
            targets = [lazily(Outcomes, *each) for each in zip(targets, *beside, strict=True)]
        partitions = [Partition(builder, None, index, own) for index, own in enumerate(owners)]
        blocks = [
            lazily(partition.build, features, target)
            for partition, features, target in zip(partitions, self._features, targets, strict=True)
        ]
        return DaskSource(partitions, facts, blocks=blocks)

    def _alongside(self, name: str, column: Any) -> list[Any]:
        """The pieces of a column beside those of the features, row for row."""
        if hasattr(column, "chunks") and not _unknown(column):
            if column.shape[0] != self.lengths.sum():
                raise DataError(_lengths_differ(name))
            return _pieces(column.rechunk((tuple(self.lengths.tolist()),)))
        pieces = _pieces(column)
        if len(pieces) != self.lengths.size or not np.array_equal(_lengths(column, pieces), self.lengths):
            raise DataError(
                f"{name}: expected partitions of as many rows as those of X, got others; take both from one frame, or "
                "repartition them alike."
            )
        return pieces


def _truth_values(piece: Any) -> Any:
    """A partition of a column of truth values in a type for them: with a gap in it, it arrives as objects."""
    if declares_truth_values(piece):
        return piece
    # As above: pandas comes with data frames of dask.
    import pandas as pd

    known = [isinstance(cell, bool | np.bool_ | int | float) and cell in (0, 1) for cell in piece]
    cells = [bool(cell) if is_known else None for cell, is_known in zip(piece, known, strict=True)]
    return pd.Series(pd.array(cells, dtype="boolean"))


def _one_column(name: str, column: Any) -> Any:
    if column is None:
        return None
    if not is_dask(column):
        raise DataError(
            f"{name}: expected an array or series of dask beside a dask X, got something else; pass one, for instance "
            "by dask.array.from_array."
        )
    if column.ndim != 1:
        raise DataError(f"{name}: {NOT_ONE_COLUMN}.")
    return column


def _lengths_differ(name: str) -> str:
    if name == "y":
        return f"X or y: {DIFFERENT_LENGTHS}."
    what = "key" if name == "persons" else "number"
    return f"{name}: expected one {what} per row of X, got another number; pass as many as there are rows."


def _unknown(array: Any) -> bool:
    return any(np.isnan(length) for length in array.chunks[0])


def _pieces(collection: Any) -> list[Any]:
    """The partitions of a collection, or the chunks of rows of an array."""
    return list(np.ravel(collection.to_delayed()))


def _lengths(collection: Any, pieces: list[Any]) -> IntArray:
    if hasattr(collection, "chunks") and not _unknown(collection):
        return np.array(collection.chunks[0], dtype=np.int64)
    return np.array(_each_quietly(_n_rows, pieces), dtype=np.int64)


def _each_quietly(function: Callable[..., Any], *pieces: list[Any]) -> list[Any]:
    """What a function gives for each piece, computed on the workers."""
    answers = compute_all([lazily(partial(quietly, function), *each) for each in zip(*pieces, strict=True)])
    return [accepted(answer) for answer in answers]


def _n_rows(piece: Any) -> int:
    return int(piece.shape[0])
