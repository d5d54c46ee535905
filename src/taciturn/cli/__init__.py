"""The command line: ``taciturn``."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from taciturn._version import __version__
from taciturn.cli.auditing import audit
from taciturn.cli.budgeting import budget
from taciturn.cli.comparing import compare
from taciturn.cli.demonstrating import demo
from taciturn.cli.endings import (
    COMPLETE,
    FAILED,
    INTERRUPTED,
    TERMINATED,
    CompleteError,
    NotShownError,
    describe_error,
    discard_output,
    termination,
)
from taciturn.cli.fitting import fit
from taciturn.cli.initialising import init
from taciturn.cli.limits import within_memory_limit
from taciturn.cli.predicting import predict
from taciturn.cli.reporting import report
from taciturn.cli.reproducing import reproduce
from taciturn.cli.scoring import score
from taciturn.cli.screen import print_error
from taciturn.cli.selecting import select
from taciturn.cli.showing import show
from taciturn.cli.verifying import verify
from taciturn.core.errors import SeveralProblemsError

__all__ = ["app", "main"]

app = typer.Typer(
    name="taciturn",
    no_args_is_help=True,
    add_completion=False,
    # A pretty traceback may print local variables, and those are data.
    pretty_exceptions_enable=False,
    # Plain help pages appear half a second sooner.
    rich_markup_mode=None,
    help="Sparse linear models and feature selection under differential privacy.",
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
    """Sparse linear models and feature selection under differential privacy."""


for _command in (demo, init, fit, show, predict, score, report, select, verify, compare, audit, reproduce):
    app.command()(within_memory_limit(_command))
app.add_typer(budget)


def main() -> None:
    """Run the command line.

    The exit code is 0 for success; 1 for an error, with one sentence; 2 for wrong usage; 3 if the result is complete
    and its budget spent, but its page, its signature or standard output failed; 130 after an interrupt, and 143 after a
    request to terminate.
    """
    # A name with characters that the terminal cannot show must not end a run.
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
    """Run the command and print its error, if any; return the exit code."""
    try:
        try:
            app(prog_name="taciturn")
        except SystemExit as end:
            return _flush(end.code)
        return _flush(0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, CompleteError | NotShownError):
            discard_output()
        for each in error.errors if isinstance(error, SeveralProblemsError) else (error,):
            print_error(describe_error(each))
        return COMPLETE if isinstance(error, CompleteError) else FAILED


def _flush(code: object) -> int:
    """Flush standard output, which fails on a full disk; return the exit code as a number."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        reason = (error.strerror or "an error").lower()
    else:
        return code if isinstance(code, int) else 0
    raise NotShownError(f"standard output: {reason}")
