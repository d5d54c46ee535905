"""How a command ends: its exit code, and one sentence about the error."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from taciturn.core.errors import TaciturnError

__all__ = [
    "COMPLETE",
    "FAILED",
    "INTERRUPTED",
    "TERMINATED",
    "CompleteError",
    "NotShownError",
    "complete",
    "describe_error",
    "discard_output",
    "termination",
]

FAILED = 1
COMPLETE = 3
"""The result is complete and its budget spent, but something after it failed: its page, its signature or the screen.
The command must not be run again."""
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class NotShownError(Exception):
    """Standard output cannot be written."""


class CompleteError(Exception):
    """Something failed after the result was complete; the message says both."""


@contextmanager
def complete(what: str) -> Iterator[None]:
    """Mark the code that shows a result once it is complete and written; ``what`` is the result and its cost in words.

    A user who sees an error runs the command again, and would pay for the same release twice. So the exit code and the
    message of an error in this block say that the result is complete.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        message = f"{_reason(error)}; {what}."
    else:
        return
    raise CompleteError(message)


def describe_error(error: Exception) -> str:
    """Describe an error that ended a command."""
    if isinstance(error, TaciturnError | CompleteError):
        return str(error)
    if isinstance(error, NotShownError):
        return f"{error}; nothing was spent."
    if _out_of_memory(error):
        return f"{_reason(error)}, for a table of this size; use a larger machine."
    if isinstance(error, OSError):
        return f"{_reason(error)}; make room or choose another place."
    return f"{_reason(error)}; please report it."


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, NotShownError):
        return str(error)
    if _out_of_memory(error):
        return "memory: expected more of it than there is"
    if isinstance(error, OSError):
        return f"file system: {(error.strerror or 'an error').lower()}"
    # The message of an unforeseen error may quote data; the place in the code does not.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"a defect ({type(error).__name__} in {place.name}, line {place.lineno})"


def _out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; libraries report it as an import that fails or a thread that cannot be started, too."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError | RuntimeError):
        said = str(error).lower()
        return any(part in said for part in ("cannot allocate memory", "failed to map segment", "start new thread"))
    return isinstance(error, MemoryError)


def discard_output() -> None:
    """Redirect standard output to nowhere, so that Python does not fail again when it flushes it at the end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def termination() -> Iterator[list[int]]:
    """Treat a request to terminate like an interrupt from the keyboard; yield the list of requests received."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        # The signal may arrive twice, and the second one must not stop the cleanup.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        received.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # only the main thread receives signals
        yield received
        return
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
