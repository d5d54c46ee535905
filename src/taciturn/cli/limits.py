"""The memory limit of the process (``ulimit -v``), checked before a large library is loaded."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from taciturn.core.errors import ParameterError

__all__ = ["check_memory_limit", "within_memory_limit"]

_LEAST = 3 << 29
"""Least limit in bytes of address space: one and a half times what a small fit takes. Below it, libraries crash."""

# By default libraries reserve much more than they use: buffers and stacks for each processor, and a gigabyte at once.
_RESERVE_LESS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def within_memory_limit(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: raise if the memory limit is too low for the libraries that it loads."""

    @functools.wraps(command)
    def checked(*arguments: Any, **options: Any) -> None:
        check_memory_limit()
        command(*arguments, **options)

    return checked


def check_memory_limit() -> None:
    """Raise if the limit is too low; under any other limit, make libraries reserve less."""
    limit = _limit()
    if limit is None:
        return
    if limit < _LEAST:
        raise ParameterError(
            "ulimit -v", limit >> 10, f"at least {_LEAST >> 10} kilobytes, or no limit", "raise it, or ask who set it"
        )
    for name, value in _RESERVE_LESS.items():
        os.environ.setdefault(name, value)


def _limit() -> int | None:
    """Limit of the address space in bytes, or None."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
