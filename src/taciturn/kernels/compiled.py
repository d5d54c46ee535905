"""Compilation by numba, with a cache on disk that cannot make a fit fail.

numba keeps compiled code beside the package or in the user's cache folder, and raises where it cannot: on import where
neither folder can be written (a container without a home), and inside the call of a kernel, possibly between two
releases, where the disk is full or a file is damaged. A cache saves time and decides nothing else: here every failure
of it means that the code is compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, NullCache

__all__ = ["compiled"]


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``numba.njit`` with a cache where there is room for one; as a decorator, with or without options."""
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    kernel = njit(**options)(function)
    try:
        kernel._cache = _Cache(FunctionCache(function))
    except Exception:
        # numba finds no folder that can be written (RuntimeError) or cannot look (OSError): no cache.
        kernel._cache = NullCache()
    return kernel


class _Cache(NullCache):  # type: ignore[misc]
    """Numba's cache of one function, whose failures say "not there" when it is read and nothing when it is written.

    After a failure the index is emptied, if that is possible. A damaged one would fail for ever, and one that was
    written just before the disk was full may name a file with the code of an earlier version.
    """

    def __init__(self, files: FunctionCache) -> None:
        self._files = files

    @property
    def cache_path(self) -> Any:
        return self._files.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return self._files.load_overload(sig, target_context)
        except Exception:
            self.flush()
            return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        try:
            self._files.save_overload(sig, cres)
        except Exception:
            self.flush()

    def flush(self) -> None:
        with suppress(Exception):
            self._files.flush()
