"""Consoles: one that reports a failure of standard output, and one that ignores failures of standard error."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from rich.console import Console

from taciturn.cli.endings import NotShownError

__all__ = ["ErrorConsole", "OutputConsole"]


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
