"""Consoles that say plainly when standard output breaks off, and that standard error cannot stop."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from rich.console import Console

from taciturn.cli.endings import NotShownError

__all__ = ["ErrorConsole", "OutputConsole"]


class OutputConsole(Console):
    """Standard output; a full disk and a closed pipe are no errors of the work that was done."""

    def print(self, *objects: Any, **style: Any) -> None:
        """Print, or say why that is impossible."""
        try:
            super().print(*objects, **style)
        except OSError as error:
            reason = (error.strerror or "an error").lower()
        else:
            return
        raise NotShownError(f"standard output: {reason}")

    def on_broken_pipe(self) -> None:
        """Called while the error is handled: it goes on to :meth:`print`."""
        raise


class ErrorConsole(Console):
    """Standard error: progress and notes go nowhere if it is closed, and the work goes on."""

    def __init__(self) -> None:
        super().__init__(file=_Forgiving())  # type: ignore[arg-type]


class _Forgiving:
    """Standard error as a file that takes everything."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)
