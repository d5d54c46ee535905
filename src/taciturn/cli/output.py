"""Output files that appear complete or not at all, except for the statement of what was spent."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from taciturn.cli.screen import print_note
from taciturn.core.errors import ParameterError, TaciturnError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from taciturn.certificate import Certificate

__all__ = ["AtomicFile", "OutputFile", "OutputFolder", "replace_file"]

CERTIFICATE_NAME = "certificate.json"


class OutputFolder:
    """A folder that is written under a temporary name and renamed when it is complete.

    A command calls :meth:`begin` before it draws noise. If it ends early after that, the folder remains with
    ``certificate.json`` alone: the certificate of all releases, or the statement that the whole budget counts as spent.
    An error of taciturn's own before the first release means that nothing was spent, and leaves no folder.

    Parameters
    ----------
    path : Path
        Path of the folder. It must not exist or must be empty: a certificate is never overwritten.
    public : bool
        Whether others may read the files.
    """

    def __init__(self, path: Path, *, public: bool) -> None:
        self._public = public
        self._path = Path(os.path.realpath(path))
        # An empty folder may be the mount point of another disk: files can be moved into it, but not replace it.
        inside = self._path.is_dir()
        self._part = self._path / "unfinished" if inside else self._path.with_name(self._path.name + ".unfinished")
        self._statement: dict[str, object] = {}
        self._released = False

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
        missing = [parent for parent in (self._part, *self._part.parents) if not parent.exists()]
        self._made = missing
        self._part.parent.mkdir(parents=True, exist_ok=True)
        self._part.mkdir(mode=0o777 if self._public else 0o700)
        for folder in missing:
            _sync(folder.parent)
        return self

    def begin(self, *, epsilon: float, delta: float, relation: str) -> None:
        """Write down that a budget is about to be spent; after a crash, this statement remains."""
        statement = _spending(epsilon, delta, relation)
        self._write_statement(statement)
        # Set last: if the statement cannot be written, no noise is drawn.
        self._statement = statement

    def add_release(self, certificate: Certificate) -> None:
        """Write down what has been released so far, before further releases."""
        self._released = True
        self._write_statement(self._statement | {"released so far": json.loads(certificate.to_json())})

    def finish(self, certificate: Certificate) -> None:
        """Write the certificate of all releases."""
        self._released = True
        self.write(CERTIFICATE_NAME, certificate.to_json() + "\n")

    def write(self, name: str, text: str) -> None:
        """Write one file of the folder."""
        replace_file(self._part / name, text, public=self._public)

    def sign(self, key: Ed25519PrivateKey | None) -> None:
        """Sign all files that have been written, if there is a key."""
        if key is not None:
            from taciturn.study import SIGNATURE_NAME, sign_files

            files = {path.name: path.read_bytes() for path in self._part.iterdir()}
            self.write(SIGNATURE_NAME, sign_files(files, key))

    def _write_statement(self, statement: dict[str, object]) -> None:
        self.write(CERTIFICATE_NAME, _as_text(statement))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._move()
        elif self._released or (self._statement and not isinstance(error, TaciturnError)):
            for path in self._part.iterdir():
                if path.name != CERTIFICATE_NAME:
                    path.unlink()
            self._move()
            print_note(f"noise was drawn; {self._path / CERTIFICATE_NAME} states what counts as spent.")
        else:
            shutil.rmtree(self._part, ignore_errors=True)
            for parent in self._made[1:]:
                parent.rmdir()

    def _move(self) -> None:
        try:
            if self._part.parent != self._path:
                os.replace(self._part, self._path)
                _sync(self._path.parent)
                return
            for path in sorted(self._part.iterdir()):
                os.replace(path, self._path / path.name)
            self._part.rmdir()
            _sync(self._path)
        except OSError:
            print_note(f"noise was drawn, and {self._part} could not be moved: the certificate is there.")
            raise


class OutputFile:
    """One file for a release; until the release it holds the statement of what is spent.

    As with :class:`OutputFolder`, a crash after :meth:`begin` leaves the statement, and an error of taciturn's own
    before the release leaves no file.

    Parameters
    ----------
    path : Path
        Path of the file. It must not exist: a certificate is never overwritten.
    public : bool
        Whether others may read the file.
    """

    def __init__(self, path: Path, *, public: bool) -> None:
        self._path = path
        self._public = public
        self._begun = self._finished = False

    def __enter__(self) -> OutputFile:
        if os.path.lexists(self._path):
            raise ParameterError("output", str(self._path), "a file that is not there yet", "choose another name")
        return self

    def begin(self, *, epsilon: float, delta: float, relation: str) -> None:
        """Write down that a budget is about to be spent."""
        replace_file(self._path, _as_text(_spending(epsilon, delta, relation)), public=self._public)
        self._begun = True

    def finish(self, text: str) -> None:
        """Replace the statement by the release."""
        self._finished = True
        replace_file(self._path, text, public=self._public)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or not self._begun:
            return
        if isinstance(error, TaciturnError) and not self._finished:
            self._path.unlink()
        else:
            print_note(f"noise was drawn; {self._path} states what counts as spent.")


def _spending(epsilon: float, delta: float, relation: str) -> dict[str, object]:
    return {
        "format": "taciturn spending",
        "epsilon": epsilon,
        "delta": delta,
        "relation": relation,
        "statement": "A run with this budget was begun and did not finish: count the whole budget as spent.",
    }


def _as_text(statement: dict[str, object]) -> str:
    return json.dumps(statement, indent=2) + "\n"


class AtomicFile:
    """A text file that is written under a temporary name and renamed when it is complete.

    An existing file is replaced; a pipe or a device is written to directly. Only its owner may read a file that is not
    ``public``.
    """

    def __init__(self, path: Path, *, public: bool) -> None:
        self._path = path
        self._mode = 0o666 if public else 0o600
        special = path.exists() and not path.is_file()
        self._part = path if special else path.with_name(path.name + ".part")

    def __enter__(self) -> TextIO:
        if self._part == self._path:
            self._file = self._path.open("w", encoding="utf-8", newline="")
            return self._file
        # The file of a killed run may have other permissions.
        self._part.unlink(missing_ok=True)
        made = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode)
        self._file = open(made, "w", encoding="utf-8", newline="")
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._part == self._path:
            self._file.close()
            return
        try:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            if error is None:
                os.replace(self._part, self._path)
                _sync(self._path.parent)
        finally:
            self._part.unlink(missing_ok=True)


def replace_file(path: Path, text: str, *, public: bool) -> None:
    """Write a small file: completely or, after a power failure, not at all."""
    with AtomicFile(path, public=public) as file:
        file.write(text)


def _sync(folder: Path) -> None:
    """Write the entries of a folder to the disk, so that its files survive a power failure."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # The folder may not be listed, or the system does not open folders.
        return
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network disks do not support it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)
