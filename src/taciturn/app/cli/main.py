"""The command line: its commands, and those of other distributions by entry points."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from taciturn._version import __version__
from taciturn.app.cli.budget import budget
from taciturn.app.cli.demo import demo
from taciturn.app.cli.export import export
from taciturn.app.cli.fit import compare, fit, init, select
from taciturn.app.cli.plan import plan
from taciturn.app.cli.screen import (
    COMPLETE,
    FAILED,
    INTERRUPTED,
    TERMINATED,
    CompleteError,
    NotShownError,
    describe_error,
    discard_output,
    print_error,
    termination,
    within_memory_limit,
)
from taciturn.app.cli.show import predict, report, score, show, verify
from taciturn.app.cli.site import site
from taciturn.core.errors import SeveralProblemsError, TaciturnError

# --- Commands of other distributions, by the entry points of the group ``taciturn.commands``.
#
# An entry point names a function with the annotations of typer. It is imported when its command is called or described.

GROUP = "taciturn.commands"
_RESEARCH = ("arena", "audit", "reproduce")


class Commands(TyperGroup):
    """The package's own commands, then those of other distributions by name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, without importing what is behind them."""
        return [*super().list_commands(ctx), *(name for name in sorted(_found()) if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None; a command of research that is not installed says where it is."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = _found().get(cmd_name)
        if found is not None:
            return _command(found)
        if cmd_name in _RESEARCH:
            raise TaciturnError(f"{cmd_name} is a command of taciturn-research; run pip install taciturn-research.")
        return None


def _found() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _command(point: EntryPoint) -> Any:
    # Settings are those of the whole command line.
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(point.name)(within_memory_limit(point.load()))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="taciturn",
    cls=Commands,
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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Sparse linear models and feature selection under differential privacy."""


for _cli_command in (demo, init, plan, fit, show, predict, score, report, select, verify, export, compare, site):
    app.command()(within_memory_limit(_cli_command))
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
        code = _run(requests)
    if code == INTERRUPTED:
        print_error("interrupted; no result was written.")
        code = TERMINATED if requests else INTERRUPTED
    sys.exit(code)


def _run(requests: Sequence[int]) -> int:
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
        elif requests:
            # An import that is interrupted may end in another error.
            return INTERRUPTED
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
