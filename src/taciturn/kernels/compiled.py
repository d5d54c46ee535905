"""Compilation by numba, on the first call, with a cache on disk that cannot make a fit fail.

Importing numba takes longer than importing the rest of the package, and people who load a model or read a certificate
call no kernel. So a kernel imports numba when it is first called, which ``warm_up`` of its method does before a fit
draws its first random word.

numba keeps compiled code in a folder, and raises where none can be written, where the disk is full or where a file is
damaged, possibly between two releases. Here every failure of the cache means that the code is compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast, overload

Result = TypeVar("Result")


@overload
def compiled(function: Callable[..., Result]) -> Callable[..., Result]: ...


@overload
def compiled(**options: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``numba.njit`` on the first call, as a decorator with or without options.

    The kernel keeps the type of its result. Its arguments are numba's to check: it takes numpy's scalars for numbers.
    """
    if function is None:
        return lambda decorated: Kernel(decorated, options)
    return Kernel(function, options)


class Kernel:
    """A function that numba compiles when it is first called, by Python code or by another kernel."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options
        # What numba asks of a global that it may put into its callers, with ``inline="always"``.
        self.py_func, self.targetoptions = function, options

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*args)

    @cached_property
    def dispatcher(self) -> Any:
        """The function in numba's hands as Python calls it, with a cache where there is room for one."""
        from numba.core.caching import FunctionCache

        dispatcher = self._compiler()
        # Without a cache where numba finds no folder that can be written (RuntimeError) or cannot look (OSError).
        with suppress(Exception):
            dispatcher._cache = _Cache(cast(Any, FunctionCache)(self._function))
        return dispatcher

    @cached_property
    def inner(self) -> Any:
        """The same as other kernels call it: part of their code and of their cache, and nothing by itself."""
        return self._compiler(no_cpython_wrapper=True)

    def _compiler(self, **wrappers: Any) -> Any:
        from numba import njit

        # Nobody calls kernels from C, and a wrapper takes as long to compile as a small kernel.
        options: dict[str, Any] = {"no_cfunc_wrapper": True, **wrappers, **self._options}
        return njit(**options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of a global that compiled code calls."""
        return self.inner._numba_type_


class _Cache:
    """numba's cache of one function, whose failures say "not there" when it is read and nothing when it is written.

    After a failure the index is emptied, if that is possible. A damaged one would fail for ever, and one that was
    written just before the disk was full may name a file with the code of an earlier version.
    """

    def __init__(self, files: Any) -> None:
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
