"""How a command ends: its exit code, and one sentence for whatever went wrong."""

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
    "give_up_output",
    "sentence_of",
    "termination",
]

FAILED = 1
COMPLETE = 3
"""The work is done and its budget spent; only what was to be shown after it was not. It must not be done again."""
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class NotShownError(Exception):
    """Standard output cannot be written."""


class CompleteError(Exception):
    """Something failed after the work was done; the message says both."""


@contextmanager
def complete(what: str) -> Iterator[None]:
    """Around whatever a command shows once its work is done and written.

    Whoever sees a failed command runs it again, and would pay for the same release twice. From here on nothing that
    fails makes the work undone, and the exit code and the sentence say so.

    Parameters
    ----------
    what : str
        What is complete, and what it cost, as the end of a sentence.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        message = f"{_reason(error)}; {what}."
    else:
        return
    raise CompleteError(message)


def sentence_of(error: Exception) -> str:
    """What is printed about an error that ended a command."""
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
    # The message of an error that nobody foresaw may quote data; where it happened does not.
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"a defect ({type(error).__name__} in {place.name}, line {place.lineno})"


def _out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, as libraries in other languages say it too: one that cannot be loaded, or no thread."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError | RuntimeError):
        said = str(error).lower()
        return any(part in said for part in ("cannot allocate memory", "failed to map segment", "start new thread"))
    return isinstance(error, MemoryError)


def give_up_output() -> None:
    """Let nothing more go to standard output, lest Python fail once more when it flushes it at the end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def termination() -> Iterator[list[int]]:
    """Make a request to terminate end the work as an interrupt from the keyboard does; yields the requests received."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        # It may come twice, to the process and to its group, and the second must not cut the tidying up short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        received.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread, which alone receives signals
        yield received
        return
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
