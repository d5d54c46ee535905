"""How many threads matrix products and compiled sums get.

Products of small blocks are done sooner by one thread than they could be shared out: BLAS wakes all of its threads for
them, which then wait at full speed. Where there are enough rows, they are shared out instead, a part to each thread,
and every thread multiplies by itself. Sums of integers are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from typing import Any

from threadpoolctl import ThreadpoolController

from taciturn.core.arrays import IntArray

__all__ = ["add_shares", "all_threads_if_large", "n_threads", "one_thread", "one_thread_if_small"]

# Multiplications that take about a tenth of a second.
_SMALL = 1e9
# Entries of a share that is worth a thread: about a millisecond of work.
_LEAST_SHARE = 1 << 21

# What may be used inside of one_thread, where BLAS is told to use one.
_allowed: ContextVar[int | None] = ContextVar("allowed threads", default=None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products in one thread, so that no worker computes otherwise than another."""
    before = _allowed.set(n_threads())
    try:
        with _thread_pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _allowed.reset(before)


def one_thread_if_small(n_rows: int, n_columns: int) -> AbstractContextManager[Any]:
    """One thread for Gram matrices of this size, unless they are worth sharing."""
    return one_thread() if float(n_rows) * n_columns * n_columns < _SMALL else nullcontext()


def all_threads_if_large(n_columns: int) -> AbstractContextManager[Any]:
    """Inside of :func:`one_thread`, for a decomposition of so many columns: as many as outside if it is large."""
    if float(n_columns) ** 3 < _SMALL:
        return nullcontext()
    context: AbstractContextManager[Any] = _thread_pools().limit(limits=n_threads(), user_api="blas")
    return context


def n_threads() -> int:
    """How many threads may run: the least of the processors of this process, ``OMP_NUM_THREADS`` and BLAS's limit.

    Facts about the machine and its settings, never about data.
    """
    allowed = _allowed.get()
    if allowed is not None:
        return allowed
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    limits += [int(stated)] if stated.isdigit() else []
    limits += [pool.num_threads for pool in _thread_pools().lib_controllers if pool.user_api == "blas"]
    return max(1, min(limits))


def add_shares(part: Callable[[int, int], IntArray], n_rows: int, n_columns: int) -> IntArray:
    """The sum of ``part(start, stop)`` over shares of the rows, one to each thread; one share of a small table."""
    n_shares = min(n_threads(), max(1, n_rows * n_columns // _LEAST_SHARE))
    if n_shares == 1:
        return part(0, n_rows)
    edges = [n_rows * share // n_shares for share in range(n_shares + 1)]
    # Opened anew each time: threads that wait for work do not outlive a fork.
    with ThreadPoolExecutor(n_shares) as pool:
        # In the context of the caller, so that what it says of floating-point errors holds in every thread.
        shares = [pool.submit(copy_context().run, part, start, stop) for start, stop in pairwise(edges)]
        first, *others = (share.result() for share in shares)
    for other in others:
        first += other
    return first


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()
