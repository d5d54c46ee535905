"""What a bad input is: files, a command line, and the code that it has to end with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CANARY = "7919.4242"
"""A cell of every table. Neither half of it may stand in anything that is printed."""

MARKS = ("7919", "4242", "SECRET", "7f3a")


@dataclass(frozen=True)
class Case:
    """A command that has to be refused.

    ``files`` are written before it runs: bytes, text, or a call that makes them at their place. ``says`` stands in the
    sentence.
    """

    name: str
    arguments: tuple[object, ...]
    files: dict[str, bytes | str | Callable[[Path], object]] = field(default_factory=dict)
    code: int = 1
    says: str = ""

    def write(self, folder: Path) -> None:
        """Put the files into a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.unlink(missing_ok=True)
            if isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                content(path)


FIT = ("fit", "patients.csv", "--bounds", "bounds.toml", "-o", "out")


def on_table(command: str, table: str) -> tuple[object, ...]:
    """A command line that reads a table."""
    return {
        "fit": ("fit", table, "--bounds", "bounds.toml", "-o", "out"),
        "find": ("fit", table, "--bounds", "bounds.toml", "--private-bounds", "0.5", "-o", "out"),
        "select": ("select", table, "--bounds", "bounds.toml", "--keep", "2", "-o", "out"),
        "compare": ("compare", table, "--bounds", "bounds.toml", "--trials", "1"),
        "predict": ("predict", "model.json", table, "-o", "out"),
        "score": ("score", "model.json", table, "-o", "out"),
        "private score": ("score", "model.json", table, "--epsilon", "1", "-o", "out"),
        "init": ("init", table, "--target", "ill", "-o", "out"),
    }[command]
