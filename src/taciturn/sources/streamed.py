"""A table that is read partition after partition, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from taciturn.core.arrays import BoolArray, IndexArray
from taciturn.core.validation import check_integer
from taciturn.sources.blocks import BlockFunction, Partition, PartitionBlock, Refusal, answer_of
from taciturn.sources.partitions import PartitionedSource, PartitionFacts

__all__ = ["DEFAULT_MEMORY", "StreamedSource"]

DEFAULT_MEMORY = 1 << 30
"""Bytes of blocks that are held between rounds, unless another number is given."""


class StreamedSource(PartitionedSource):
    """A table that is read partition after partition, each time a sum is asked for.

    Blocks stay in memory as far as they fit a limit: a table that fits is read once. From one that does not, a sum
    reads the features that its task names, and no others. One partition is read ahead of the one that is worked on.

    Parameters
    ----------
    partitions, facts
        As in :class:`~taciturn.sources.PartitionedSource`.
    memory : int, default=2**30
        Bytes of blocks to hold between rounds. The two partitions at work come on top of that.
    watch : callable, default=None
        Called as ``watch(done, n_partitions)`` after each partition of each round, for a progress bar.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        facts: PartitionFacts,
        *,
        memory: int = DEFAULT_MEMORY,
        watch: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(partitions, facts)
        self._memory, self._watch = check_integer(0, memory=memory), watch
        self._held: dict[int, PartitionBlock] = {}
        self._sizes: dict[int, int] = {}
        self._n_bytes = 0
        # Which rows of a partition are not null: known when all of its features were read.
        self._present: dict[int, NDArray[np.uint8]] = {}

    def each(self, function: BlockFunction) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        n_partitions = len(self.partitions)
        self._make_room(function.columns)
        # As it is now: blocks may be let go of on the way.
        held = dict(self._held)
        missing = [index for index in range(n_partitions) if index not in held]
        with closing(self._read_ahead(missing, function.columns)) as coming:
            for index in range(n_partitions):
                block: PartitionBlock | Refusal = held.pop(index) if index in held else next(coming)
                yield answer_of(function, block)
                if isinstance(block, PartitionBlock):
                    self._hold(index, block)
                if self._watch is not None:
                    self._watch(index + 1, n_partitions)

    def _read_ahead(
        self, missing: list[int], columns: IndexArray | None
    ) -> Generator[PartitionBlock | Refusal, None, None]:
        """The blocks of some partitions, the next of which is read while one is worked on."""
        if not missing:
            return
        thread = ThreadPoolExecutor(1)
        try:
            coming = self._begin(thread, missing[0], columns)
            for following in missing[1:]:
                block = coming.result()
                coming = self._begin(thread, following, columns)
                yield block
            yield coming.result()
        finally:
            # Nobody waits for a partition that is not needed any more.
            thread.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self, thread: ThreadPoolExecutor, index: int, columns: IndexArray | None
    ) -> Future[PartitionBlock | Refusal]:
        # Null records are told by all features.
        known = index in self._present or self.partitions[index].builder.invalid == "raise"
        return thread.submit(self.partitions[index].load, columns if known else None, self._present.get(index))

    def _make_room(self, columns: IndexArray | None) -> None:
        """Let go of blocks without the features that are asked for, and where room is short of other features."""
        if columns is not None and columns.size == 0:
            return
        for index, block in list(self._held.items()):
            if block.columns is not None and (columns is None or not np.isin(columns, block.columns).all()):
                self._release(index)
            elif columns is not None and len(self._held) < len(self.partitions):
                self._hold(index, block.narrow(columns))

    def _hold(self, index: int, block: PartitionBlock) -> None:
        """Keep a block for the next round, if it fits."""
        partition = self.partitions[index]
        if block.columns is None and partition.builder.invalid == "null" and index not in self._present:
            present = np.zeros(int(self.facts.lengths[index]), dtype=bool)
            present[block.rows] = True
            self._present[index] = np.packbits(present)
        if block.columns is not None and block.columns.size == 0:
            return
        self._release(index)
        size = block.n_bytes()
        if self._n_bytes + size <= self._memory:
            self._held[index], self._sizes[index] = block, size
            self._n_bytes += size

    def _release(self, index: int) -> None:
        """Let go of a block, if it is held."""
        self._n_bytes -= self._sizes.pop(index, 0)
        self._held.pop(index, None)

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """The records in two: those of the slots that are true in ``first``, and the others.

        Blocks that are held go to the halves, each of which has half of the memory, and leave this source.
        """
        halves = super().divide(first)
        rows = self._rows_of(first), self._rows_of(~first)
        for index, block in list(self._held.items()):
            self._release(index)
            for half, kept in zip(halves, rows, strict=True):
                half._hold(index, block.keep(kept[index]))
        return halves

    def _part(self, rows: list[BoolArray], facts: PartitionFacts) -> Self:
        partitions = [partition.take(kept) for partition, kept in zip(self.partitions, rows, strict=True)]
        part = type(self)(partitions, facts, memory=self._memory // 2, watch=self._watch)
        part._present = dict(self._present)
        return part
