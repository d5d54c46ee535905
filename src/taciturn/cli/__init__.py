"""The command line: ``taciturn``."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from taciturn._version import __version__
from taciturn.cli.auditing import audit
from taciturn.cli.comparing import compare
from taciturn.cli.demonstrating import demo
from taciturn.cli.endings import (
    COMPLETE,
    FAILED,
    INTERRUPTED,
    TERMINATED,
    CompleteError,
    NotShownError,
    give_up_output,
    sentence_of,
    termination,
)
from taciturn.cli.fitting import fit
from taciturn.cli.initialising import init
from taciturn.cli.limits import within_memory_limit
from taciturn.cli.predicting import predict
from taciturn.cli.reproducing import reproduce
from taciturn.cli.scoring import score
from taciturn.cli.screen import print_error
from taciturn.cli.selecting import select
from taciturn.cli.showing import show

__all__ = ["app", "main"]

app = typer.Typer(
    name="taciturn",
    no_args_is_help=True,
    add_completion=False,
    # A pretty traceback may print local variables, and those are data.
    pretty_exceptions_enable=False,
    # Plain text: half a second less before a help page appears.
    rich_markup_mode=None,
    help="Sparse models and feature selection that say nothing about any one person.",
    epilog="Example: taciturn demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Sparse models and feature selection that say nothing about any one person."""


for _command in (demo, init, fit, show, predict, score, select, compare, audit, reproduce):
    app.command()(within_memory_limit(_command))


def main() -> None:
    """Run the command line.

    Exit code 0 if it did what was asked; 1 with one sentence if not; 2 for wrong usage; 3 if the work is complete and
    its budget spent, but could not be shown; 130 if it was interrupted, and 143 if it was asked to terminate.
    """
    # A name that the terminal cannot show must not end a run.
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")
    with termination() as requests:
        code = _run()
    if code == INTERRUPTED:
        print_error("interrupted; no result was written.")
        code = TERMINATED if requests else INTERRUPTED
    sys.exit(code)


def _run() -> int:
    """The exit code of the command; what ended it early is printed."""
    try:
        try:
            app(prog_name="taciturn")
        except SystemExit as end:
            return _flushed(end.code)
        return _flushed(0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, CompleteError | NotShownError):
            give_up_output()
        print_error(sentence_of(error))
        return COMPLETE if isinstance(error, CompleteError) else FAILED


def _flushed(code: object) -> int:
    """The exit code as a number; help texts, too, may meet a full disk."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        reason = (error.strerror or "an error").lower()
    else:
        return code if isinstance(code, int) else 0
    raise NotShownError(f"standard output: {reason}")
