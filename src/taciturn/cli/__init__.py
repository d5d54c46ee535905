"""The command line: ``taciturn``."""

from __future__ import annotations

import io
import sys
import traceback
from typing import Annotated

import typer

from taciturn._version import __version__
from taciturn.cli.auditing import audit
from taciturn.cli.comparing import compare
from taciturn.cli.demonstrating import demo
from taciturn.cli.fitting import fit
from taciturn.cli.initialising import init
from taciturn.cli.predicting import predict
from taciturn.cli.reproducing import reproduce
from taciturn.cli.scoring import score
from taciturn.cli.screen import print_error
from taciturn.cli.selecting import select
from taciturn.cli.showing import show
from taciturn.core.errors import TaciturnError

__all__ = ["app", "main"]

_INTERRUPTED = 130

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
    app.command()(_command)


def main() -> None:
    """Run the command line.

    Exit code 0 if it did what was asked, 1 with one sentence if not, 2 for wrong usage, 130 if it was interrupted.
    """
    # A name that the terminal cannot show must not end a run.
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")
    try:
        app(prog_name="taciturn")
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            print_error("interrupted; no model was written.")
        raise
    except TaciturnError as error:
        print_error(str(error))
    except MemoryError:
        print_error("memory: expected more of it than there is, for a table of this size; use a larger machine.")
    except OSError as error:
        print_error(f"file system: {(error.strerror or 'an error').lower()}; make room or choose another place.")
    except Exception as error:
        # The message of an error that nobody foresaw may quote data; where it happened does not.
        place = traceback.extract_tb(error.__traceback__)[-1]
        print_error(f"a defect ({type(error).__name__} in {place.name}, line {place.lineno}); please report it.")
    else:
        return
    sys.exit(1)
