"""What commands print: consoles, exit codes and limits."""

from __future__ import annotations

import errno
import functools
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from taciturn.core.errors import ParameterError, TaciturnError, visible

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text

    from taciturn.privacy.certificate import Certificate


# --- How a command ends: its exit code, and one sentence about the error.

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


class TerminationRequest(KeyboardInterrupt):
    """A request to terminate. Where a plain KeyboardInterrupt has passed compiled code, Python ends by SIGINT."""


_AGAIN = 0.5
"""Seconds after which a request that had no effect is repeated."""


@contextmanager
def termination() -> Iterator[list[int]]:
    """Treat a request to terminate like an interrupt from the keyboard; yield the list of requests received.

    Other packages may swallow the exception, for instance while they are imported. So it is raised again, until it ends
    what runs; cleanup is not disturbed.
    """
    received: list[int] = []
    signals = [signal.SIGTERM, *([signal.SIGALRM] if hasattr(signal, "setitimer") else [])]

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(signals) > 1:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        if not _is_ending(sys.exception()):
            raise TerminationRequest

    try:
        before = {number: signal.signal(number, interrupt) for number in signals}
    except ValueError:  # only the main thread receives signals
        yield received
        return
    try:
        yield received
    finally:
        if len(signals) > 1:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_ending(error: BaseException | None) -> bool:
    """Whether the error that is being handled is a request to terminate, or follows from one."""
    while error is not None and not isinstance(error, TerminationRequest):
        error = error.__context__
    return error is not None


# --- Consoles: one that reports a failure of standard output, and one that ignores failures of standard error.


class OutputConsole(Console):
    """Standard output; a full disk or a closed pipe raises an error that does not blame the work."""

    def print(self, *objects: Any, **style: Any) -> None:
        """Print; raise with the reason if that fails."""
        try:
            super().print(*objects, **style)
        except OSError as error:
            reason = (error.strerror or "an error").lower()
        else:
            return
        raise NotShownError(f"standard output: {reason}")

    def on_broken_pipe(self) -> None:
        """Raise again: rich calls this while it handles the error, and :meth:`print` catches it."""
        raise


class ErrorConsole(Console):
    """Standard error; if it cannot be written, progress and notes are dropped and the work continues."""

    def __init__(self) -> None:
        super().__init__(file=_NeverFailingFile())  # type: ignore[arg-type]

    def print(self, *objects: Any, **style: Any) -> None:
        """Print, unless that fails."""
        with suppress(Exception):
            super().print(*objects, **style)


class _NeverFailingFile:
    """Standard error as a file that never fails."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


# --- The memory limit of the process (``ulimit -v``), checked before a large library is loaded.

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


# --- What all commands print: lines, errors, notes, progress and certificates.


def console(*, stderr: bool = False) -> Console:
    """Make a console for standard output, or for standard error."""
    return ErrorConsole() if stderr else OutputConsole()


def shown_text(text: str) -> Text:
    """Text for a table, without markup or invisible characters."""
    from rich.text import Text

    return Text(visible(text))


def print_line(text: str) -> None:
    """Print one line unchanged: file names and column names are no markup, and do not wrap."""
    console().print(visible(text), markup=False, highlight=False, soft_wrap=True)


def write_text(text: str) -> None:
    """Write a text for other programs to standard output as it is, in UTF-8 wherever it goes."""
    try:
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:
            sys.stdout.write(text)
        else:
            binary.write(text.encode())
            binary.flush()
    except OSError as error:
        reason = (error.strerror or "an error").lower()
    else:
        return
    raise NotShownError(f"standard output: {reason}")


def print_sentence(text: str) -> None:
    """Print a sentence in lines as wide as the screen."""
    console().print(visible(text), markup=False, highlight=False)


def print_error(text: str) -> None:
    """Print one sentence on standard error."""
    console(stderr=True).print(f"taciturn: {visible(text)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Print a note for the user on standard error."""
    console(stderr=True).print(f"note: {visible(text)}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def format_command(context: typer.Context) -> str:
    """The command line of this run, without options that have their defaults; no seed, account or place of a key.

    Epsilon and delta are written out, so that nobody has to know their defaults. What is printed is no part of how a
    result was made. Bytes of a file name that are not UTF-8 are written as escapes.
    """
    parts = ["taciturn", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        # As text: older versions of typer give a path as it was typed.
        default = str(value) == str(parameter.default) and parameter.name not in ("epsilon", "delta")
        if value is None or default or parameter.name == "full":
            continue
        if parameter.param_type_name == "option":
            parts.append(max(parameter.opts, key=len))
        if value is not True:
            hidden = parameter.name in ("account", "seed", "sign")
            parts.append("..." if hidden else f"{value:g}" if isinstance(value, float) else str(value))
    return shlex.join(parts).encode("utf-8", "backslashreplace").decode()


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show the progress of a task on standard error while it runs."""
    with _progress() as progress:
        progress.add_task(visible(what), total=None)
        yield


@contextmanager
def counter(what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a task of unknown length, with a count."""
    with _progress(f"{{task.completed:,.0f}} {unit}") as progress:
        task = progress.add_task(visible(what), total=None)
        yield lambda done: _show(lambda: progress.advance(task, done))


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show the progress of a task that tells how much of it is done, from 0 to 1."""
    with _progress(left=True) as progress:
        task = progress.add_task(visible(what), total=None)
        yield lambda share: _show(lambda: progress.update(task, total=1.0, completed=share))


@contextmanager
def pass_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show the pass over a table, by its number, and how much of it is done.

    What is yielded is called after each partition, with how many of how many the pass has done.
    """
    with _progress() as progress:
        task = progress.add_task(visible(what), total=1.0)
        n_passes = 0

        def tell(done: int, n_partitions: int) -> None:
            nonlocal n_passes
            n_passes += done == n_partitions
            words = f"{what}, pass {n_passes + (done < n_partitions)}"
            # A task that is complete is not begun again.
            part = (done % n_partitions) / n_partitions
            _show(lambda: progress.update(task, description=visible(words), completed=part))

        yield tell


def _show(what: Callable[[], object]) -> None:
    """Show progress. A screen that fails is no reason to end the work, which may have been paid for."""
    with suppress(Exception):
        what()


@contextmanager
def _progress(*more: str, left: bool = False) -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False), BarColumn()]
    columns += [*map(TextColumn, more), TimeElapsedColumn()]
    if left:
        columns += [TextColumn("left:"), TimeRemainingColumn()]
    errors = console(stderr=True)
    # In a log a progress bar would leave empty lines.
    progress = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    _show(progress.start)
    try:
        yield progress
    finally:
        _show(progress.stop)


def print_certificate(certificate: Certificate) -> None:
    """Print the certificate as a table of facts, each thing once."""
    from itertools import groupby

    from rich.table import Table

    from taciturn.privacy.certificate import list_facts

    table = Table(title="Certificate", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, facts in groupby(list_facts(certificate), key=lambda fact: fact[0]):
        for place, (_, words) in enumerate(facts):
            table.add_row("" if place else shown_text(name), shown_text(words))
    console().print(table)
