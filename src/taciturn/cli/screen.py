"""What all commands print: lines, errors, notes, progress and certificates."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from taciturn.core.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from taciturn.certificate import Certificate

__all__ = [
    "console",
    "counter",
    "format_command",
    "pass_bar",
    "print_certificate",
    "print_error",
    "print_line",
    "print_note",
    "print_sentence",
    "share_bar",
    "shown_text",
    "stage",
]


def console(*, stderr: bool = False) -> Console:
    """Make a console for standard output, or for standard error."""
    from taciturn.cli.consoles import ErrorConsole, OutputConsole

    return ErrorConsole() if stderr else OutputConsole()


def shown_text(text: str) -> Text:
    """Text for a table, without markup or invisible characters."""
    from rich.text import Text

    return Text(visible(text))


def print_line(text: str) -> None:
    """Print one line unchanged: file names and column names are no markup, and do not wrap."""
    console().print(visible(text), markup=False, highlight=False, soft_wrap=True)


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

    What is printed is no part of how a result was made. Bytes of a file name that are not UTF-8 are written as escapes.
    """
    parts = ["taciturn", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        # As text: older versions of typer give a path as it was typed.
        if value is None or str(value) == str(parameter.default) or parameter.name == "full":
            continue
        if parameter.param_type_name == "option":
            parts.append(max(parameter.opts, key=len))
        if value is not True:
            parts.append("..." if parameter.name in ("account", "seed", "sign") else str(value))
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
def pass_bar(what: str, expected: Callable[[], int | None]) -> Iterator[Callable[[int, int], None]]:
    """Show passes over a table and the time that is left, by about how many passes are expected.

    What is yielded is called after each partition, with how many of how many the pass has done.
    """
    with _progress(left=True) as progress:
        task = progress.add_task(visible(what), total=None)
        # Not computed where nobody sees it.
        about = None if progress.disable else expected()
        n_passes = 0

        def tell(done: int, n_partitions: int) -> None:
            nonlocal n_passes
            n_passes += done == n_partitions
            _show(lambda: show(done, n_partitions))

        def show(done: int, n_partitions: int) -> None:
            completed = n_passes + (done % n_partitions) / n_partitions
            current = n_passes + (done < n_partitions)
            words = f"{what}, pass {current}"
            if about is not None:
                words += f" of about {max(about, current)}"
                progress.update(task, total=max(about, current))
            progress.update(task, description=visible(words), completed=completed)

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

    from taciturn.certificate.words import list_facts

    table = Table(title="Certificate", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, facts in groupby(list_facts(certificate), key=lambda fact: fact[0]):
        for place, (_, words) in enumerate(facts):
            table.add_row("" if place else shown_text(name), shown_text(words))
    console().print(table)
