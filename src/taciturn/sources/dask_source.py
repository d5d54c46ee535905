"""Partitions on dask: blocks stay on the workers, tasks go there, integers come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Any, Self

import numpy as np

from taciturn.core.arrays import BoolArray, IntArray
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.sources.blocks import BlockFunction, Partition, PartitionBlock, Refusal, accepted, answer_of
from taciturn.sources.interface import Task, add_partitions, check_task
from taciturn.sources.partitions import PartitionedSource, PartitionFacts

__all__ = ["DaskSource", "compute_all", "connect", "lazily"]

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

    Parameters
    ----------
    partitions, facts
        As in :class:`~taciturn.sources.PartitionedSource`.
    blocks : list of dask.delayed.Delayed, default=None
        The blocks, where they are made of a dask collection; None: the partitions load them.
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

    def each(self, function: BlockFunction) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        check_task(function)
        yield from compute_all(self._answers(function))

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all partitions, added on the workers first."""
        check_task(task)
        answers = self._answers(task)
        groups = [answers[start : start + _ADDED_TOGETHER] for start in range(0, len(answers), _ADDED_TOGETHER)]
        return add_partitions(accepted(added) for added in compute_all([lazily(_add, group) for group in groups]))

    def _answers(self, function: BlockFunction) -> list[Any]:
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


def _rows_of_block(block: PartitionBlock | Refusal, kept: BoolArray) -> PartitionBlock | Refusal:
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
