"""What a computation on private data may say besides what it releases: nothing but what follows from public facts.

A warning that numpy raises for one cell, or an exception of a solver that one record makes fail, is a release nobody
paid for. Public methods that read private data run inside a guard: floating-point errors are ignored, warnings of other
packages are dropped, and exceptions of arithmetic are replaced by one sentence. Our own warnings follow from public
facts or from releases and pass, see :func:`warn_caller`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from taciturn.core.errors import DataError, DataTypeError, is_secret

P = ParamSpec("P")
R = TypeVar("R")

GUARDED_METHODS = ("fit", "fit_predict", "fit_transform", "inverse_transform", "transform")
"""Methods that :class:`Guarded` classes never define without a guard."""

_OUTSIDE, _INSIDE, _SILENT = range(3)
_place: ContextVar[int] = ContextVar("inside or outside of a guard", default=_OUTSIDE)

# scikit-learn's warnings that follow from names and shapes alone.
_PUBLIC = re.compile(r"X (does not have valid|has) feature names|A column-vector y was passed")


class _PrivateWarnings:
    """The message pattern of a warnings filter: matches every warning inside a guard, and none outside."""

    pattern = "(?!)"
    """What becomes of it in workers of scikit-learn, which take filters along as text: matches nothing."""

    def match(self, message: str) -> bool:
        place = _place.get()
        return place == _SILENT or (place == _INSIDE and not _PUBLIC.match(message))


_FILTER = ("ignore", _PrivateWarnings(), Warning, None, 0)


@contextmanager
def _guard(place: int) -> Iterator[None]:
    # A filter that asks where it is, instead of `catch_warnings`, which changes the filters of all threads and, when
    # two of them leave in the wrong order, for good. The filter stays: outside of a guard it matches nothing.
    filters: Any = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    if not filters or filters[0] is not _FILTER:
        with suppress(ValueError):
            filters.remove(_FILTER)
        filters.insert(0, _FILTER)
    before = _place.set(place)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _place.reset(before)


def guarded(function: Callable[P, R], *, silent: bool = False) -> Callable[P, R]:
    """The function inside a guard; workers in other threads and processes need one of their own.

    ``silent`` drops the warnings of scikit-learn that follow from public facts too.
    """

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _guard(_SILENT if silent else _INSIDE):
                return function(*args, **kwargs)
        except (ArithmeticError, ValueError) as error:
            # Of numpy, scipy and scikit-learn; LinAlgError is a ValueError. Others know what they say.
            if isinstance(error, ValueError) and type(error) not in (ValueError, np.linalg.LinAlgError):
                raise
        # Outside of the handler, so that the original, which may quote data, does not travel along.
        raise DataError("X or y: the computation failed for these records; report the settings as a defect.")

    return inside


class Guarded:
    """Base of everything that is fitted to private data: public methods run inside a guard, in subclasses too."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in GUARDED_METHODS:
            if name in vars(cls):
                setattr(cls, name, guarded(_without_weights(vars(cls)[name])))


def _without_weights(method: Callable[P, R]) -> Callable[P, R]:
    """The method, with a sentence of our own where it is given weights of records and takes none."""
    taken = signature(method).parameters
    if "sample_weight" in taken or any(each.kind is Parameter.VAR_KEYWORD for each in taken.values()):
        return method

    @wraps(method)
    def unweighted(*args: P.args, **kwargs: P.kwargs) -> R:
        # scikit-learn passes None on where nobody gave weights.
        if kwargs.pop("sample_weight", None) is not None:
            raise DataTypeError(
                f"sample_weight: expected none, since {type(args[0]).__name__} has no proof for weights of records; "
                "leave it out, or give SparseClassifier public weights of classes as class_weight."
            )
        return method(*args, **kwargs)

    return unweighted


def calling_frames() -> list[FrameType]:
    """The calls on the stack, the nearest first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


# Packages through which a call may come on its way from the user's own line.
_PASSED = ("taciturn", "sklearn", "joblib")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of a public fact or a release, on behalf of the line that called into the package."""
    if is_secret():
        return
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED:
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    before = _place.set(_OUTSIDE)
    try:
        warnings.warn(message, category, stacklevel=level)
    finally:
        _place.reset(before)
