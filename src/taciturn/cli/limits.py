"""The memory that the process may have (``ulimit -v``), looked at before anything large is loaded."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from taciturn.core.errors import ParameterError

__all__ = ["check_memory_limit", "within_memory_limit"]

_LEAST = 3 << 29
"""Bytes of address space: half as much again as a small fit takes. With less, libraries end the process themselves."""

# Libraries reserve much more than they use: buffers and stacks for each processor, and a gigabyte at once.
_MODEST = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def within_memory_limit(command: Callable[..., None]) -> Callable[..., None]:
    """The command, refused where the process may not have the memory that its libraries need to load."""

    @functools.wraps(command)
    def checked(*arguments: Any, **options: Any) -> None:
        check_memory_limit()
        command(*arguments, **options)

    return checked


def check_memory_limit() -> None:
    """Refuse a limit that is too low; under one that is not, libraries are told to be modest."""
    limit = _limit()
    if limit is None:
        return
    if limit < _LEAST:
        raise ParameterError(
            "ulimit -v", limit >> 10, f"at least {_LEAST >> 10} kilobytes, or no limit", "raise it, or ask who set it"
        )
    for name, value in _MODEST.items():
        os.environ.setdefault(name, value)


def _limit() -> int | None:
    """Bytes of address space that the process may have, if that is limited."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
