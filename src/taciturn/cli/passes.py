"""Passes of a fit over a table that is read in partitions: how many there will be, and a bar that counts them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from taciturn.cli.screen import pass_bar, stage

__all__ = ["StreamEngine", "expected_passes", "show_passes"]


class StreamEngine:
    """Reads partitions one after the other in this process, and tells a bar how far it is.

    Parameters
    ----------
    memory : int
        Bytes of memory for the process.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.watch: Callable[[int, int], None] | None = None

    def __call__(self, partitions: Sequence[Any], facts: Any) -> Any:
        """The source of some partitions."""
        from taciturn.sources import StreamedSource
        from taciturn.sources.files import held_memory

        return StreamedSource(partitions, facts, memory=held_memory(self._memory), watch=self._tell)

    def _tell(self, done: int, n_partitions: int) -> None:
        if self.watch is not None:
            self.watch(done, n_partitions)


@contextmanager
def show_passes(what: str, engine: Any, estimator: Any, table: Any) -> Iterator[None]:
    """Show the passes that a fit makes over an open table, and the time that is left; elsewhere that it runs."""
    if not isinstance(engine, StreamEngine):
        with stage(f"{what} on dask"):
            yield
        return
    with pass_bar(what, lambda: expected_passes(estimator, table)) as engine.watch:
        try:
            yield
        finally:
            engine.watch = None


def expected_passes(estimator: Any, table: Any) -> int | None:
    """About how many passes over a table a fit makes: as many as over one of the same public facts without records.

    No record of the table is read, and neither noise nor budget of the fit is used. Passes depend on what is released,
    so that the fit may make some more or fewer. None where that cannot be told.
    """
    from taciturn.cli.rehearsal import RehearsedTable

    parameters = estimator.get_params(deep=False) | {"random_state": 0, "account": None}
    rehearsed = RehearsedTable(table)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            type(estimator)(**parameters).fit(rehearsed)
    except Exception:
        # Whatever is wrong is told by the fit itself.
        return None
    return rehearsed.n_passes
