"""The files of a folder that may come from anybody: read once, in bounded memory, and never through a link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from taciturn.core.errors import DataError
from taciturn.tables.words import quoted

__all__ = ["KNOWN", "SIGNATURE_NAME", "StudyFiles", "read_bounded", "read_study_files", "signature_beside"]

SIGNATURE_NAME = "signature.json"
"""Name of the signature of a folder."""

KNOWN: Mapping[str, int] = {
    "certificate.json": 1 << 26,
    "model.json": 1 << 30,
    "report.html": 1 << 28,
    "selection.json": 1 << 26,
    "score.json": 1 << 26,
    SIGNATURE_NAME: 1 << 20,
}
"""Files that are read, and the largest size of each in bytes."""

_MOST_FILES = 1000
_MOST_OTHER = 1 << 32
_BLOCK = 1 << 20


@dataclass(frozen=True)
class StudyFiles:
    """The files of a folder, or one file.

    Parameters
    ----------
    contents : mapping of str to bytes
        What is read, by name.
    digests : mapping of str to str
        SHA-256 of every file in hexadecimal digits, by name; other files are there without their contents.
    whole : bool
        Whether it is a folder.
    """

    contents: Mapping[str, bytes]
    digests: Mapping[str, str]
    whole: bool

    @property
    def others(self) -> tuple[str, ...]:
        """Names of files that are not read."""
        return tuple(sorted(self.digests.keys() - self.contents.keys()))

    def text(self, name: str) -> str:
        """The content of a file as text."""
        try:
            return self.contents[name].decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{quoted(name)}: expected UTF-8, got another encoding; ask for a fresh copy.") from None


def read_study_files(path: Path) -> StudyFiles:
    """Read a folder, or a file with the signature beside it, if there is one."""
    path = Path(os.path.realpath(path))
    contents: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    try:
        whole = path.is_dir()
        if whole:
            for name in _listed(path):
                if name in KNOWN:
                    contents[name] = read_bounded(path / name, KNOWN[name])
                else:
                    digests[name] = _digest(path / name)
        else:
            contents[path.name] = read_bounded(path, KNOWN.get(path.name, KNOWN["model.json"]))
            # A signature of its own, or the one of the folder that it is in.
            for beside in (signature_beside(path), path.with_name(SIGNATURE_NAME)):
                if os.path.lexists(beside) and beside != path:
                    contents[SIGNATURE_NAME] = read_bounded(beside, KNOWN[SIGNATURE_NAME])
                    break
    except OSError as error:
        reason = (error.strerror or "an error").lower()
        raise DataError(
            f"{quoted(path.name)}: expected a file or a folder of files that can be read ({reason}); check the name."
        ) from None
    digests |= {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return StudyFiles(contents, digests, whole)


def signature_beside(path: Path) -> Path:
    """Where the signature of a single file stands: ``score.signature.json`` beside ``score.json``."""
    return path.with_name(f"{path.stem}.signature.json")


def read_bounded(path: Path, most: int) -> bytes:
    """Read a regular file of at most so many bytes; a link, a pipe, a device or a larger file is refused."""
    with _opened(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(_too_large(path, most))
    return content


def _listed(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= _MOST_FILES:
                raise DataError(
                    f"{quoted(folder.name)}: expected a folder that a command wrote, got one with more than "
                    f"{_MOST_FILES:,} files; name the folder itself."
                )
            if entry.is_symlink() or not entry.is_file(follow_symlinks=False):
                raise DataError(
                    f"{quoted(entry.name)}: expected files alone in the folder, got a link, a folder or a device; "
                    "remove it, or ask for a fresh copy."
                )
            yield entry.name


@contextmanager
def _opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """Open a regular file of a bounded size."""
    # A pipe would block when it is opened, and a link may have been put there since the folder was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise DataError(
                f"{quoted(path.name)}: expected a file on a disk, got something else; ask for a fresh copy."
            )
        if found.st_size > most:
            raise DataError(_too_large(path, most))
        yield file


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with _opened(path, _MOST_OTHER) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _too_large(path: Path, most: int) -> str:
    return f"{quoted(path.name)}: expected a file of at most {most:,} bytes, got a larger one; ask for a fresh copy."
