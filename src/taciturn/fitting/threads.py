"""How many threads matrix products get: small ones are done sooner by one than they could be shared out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread", "one_thread_if_small"]

# Multiplications that take about a tenth of a second.
_SMALL = 1e9


def one_thread() -> AbstractContextManager[Any]:
    """Matrix products in one thread, so that no worker computes otherwise than another."""
    context: AbstractContextManager[Any] = _thread_pools().limit(limits=1, user_api="blas")
    return context


def one_thread_if_small(n_rows: int, n_columns: int) -> AbstractContextManager[Any]:
    """One thread for Gram matrices of this size, unless they are worth sharing."""
    return one_thread() if float(n_rows) * n_columns * n_columns < _SMALL else nullcontext()


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()
