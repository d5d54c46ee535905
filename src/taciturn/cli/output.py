"""Output that appears whole or not at all, except for the statement of what was spent."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import TextIO

from taciturn.cli.screen import print_note
from taciturn.core.errors import ParameterError, TaciturnError

__all__ = ["OutputFolder", "WholeFile", "replace_file"]

CERTIFICATE_NAME = "certificate.json"


class OutputFolder:
    """A folder that is written beside its place and moved there when all of it is done.

    Whoever draws noise says so first, with :meth:`begin`. If the work then ends early, what remains is the folder with
    ``certificate.json`` alone: the certificate of what was fitted, or the statement that the budget is to be counted
    as spent. An error that taciturn raises on purpose before :meth:`drawn` means that nothing was spent, and leaves
    nothing behind.

    Parameters
    ----------
    path : Path
        Where the folder goes. It must not exist yet, or be empty: a certificate is never written over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".unfinished")
        self._begun = self._drawn = False

    def __enter__(self) -> OutputFolder:
        if self._path.exists() and (not self._path.is_dir() or any(self._path.iterdir())):
            raise ParameterError("output", str(self._path), "a folder that is not there yet", "choose another name")
        if self._part.exists():
            raise ParameterError(
                "output",
                str(self._path),
                f"no folder {self._part.name} beside it, which an interrupted run left",
                "read the certificate in it, then move it away or choose another name",
            )
        self._part.mkdir(parents=True)
        return self

    def begin(self, *, epsilon: float, delta: float, relation: str) -> None:
        """Write down that a budget is about to be spent; from here on the statement outlives a crash."""
        statement = {
            "format": "taciturn spending",
            "epsilon": epsilon,
            "delta": delta,
            "relation": relation,
            "statement": "A fit with this budget was begun and did not finish: count the budget as spent.",
        }
        self.write(CERTIFICATE_NAME, json.dumps(statement, indent=2) + "\n")
        self._begun = True

    def drawn(self, certificate: str) -> None:
        """Write down the certificate of what has been released."""
        self._drawn = True
        self.write(CERTIFICATE_NAME, certificate + "\n")

    def write(self, name: str, text: str) -> None:
        """Write one file of the folder, whole."""
        replace_file(self._part / name, text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        spent = self._drawn or (self._begun and not isinstance(error, TaciturnError))
        if error is None or spent:
            if error is not None:
                for path in self._part.iterdir():
                    if path.name != CERTIFICATE_NAME:
                        path.unlink()
            os.replace(self._part, self._path)
            if error is not None:
                print_note(f"noise was drawn; {self._path / CERTIFICATE_NAME} says what is to be counted as spent.")
        else:
            shutil.rmtree(self._part, ignore_errors=True)


class WholeFile:
    """A text file that appears under its name when all of it is written; a reader never finds a part.

    Parameters
    ----------
    path : Path
        Where it goes; what is there is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")

    def __enter__(self) -> TextIO:
        self._file = self._part.open("w", encoding="utf-8", newline="")
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            if error is None:
                self._part.replace(self._path)
        finally:
            self._part.unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> None:
    """Write a small file whole, even if the power is cut in the middle."""
    with WholeFile(path) as file:
        file.write(text)
