"""What commands write: output folders, signatures, payments from accounts."""

from __future__ import annotations

import errno
import glob
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from taciturn.app.cli.screen import CompleteError, complete, print_line, print_note
from taciturn.core.errors import AccountError, ParameterError, TaciturnError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from taciturn.privacy.account import Account
    from taciturn.privacy.certificate import Certificate
    from taciturn.tables.bounds import TableBounds


# --- A keyed fingerprint of a table, so that its owner notices it under a second name.

_LEAST_KEY, _MOST_KEY = 16, 1 << 16


def fingerprint_of(table: Path, key: Path) -> str:
    """HMAC-SHA256 of the bytes of a file, in hexadecimal digits.

    It is a function of the data that no budget pays for: whoever has the key can tell whether a guess of the whole file
    is right. So it is made when an account is opened, by its owner, and never by a fit.
    """
    from taciturn.tables.formats import check_readable

    check_readable("fingerprint", table)
    check_readable("key", key)
    with key.open("rb") as file:
        secret = file.read(_MOST_KEY + 1)
    if not _LEAST_KEY <= len(secret) <= _MOST_KEY:
        raise ParameterError(
            "key", str(key), f"{_LEAST_KEY} to {_MOST_KEY} random bytes", "make it with openssl rand 32"
        )
    with table.open("rb") as file:
        return hashlib.file_digest(file, lambda: hmac.new(secret, digestmod="sha256")).hexdigest()


# --- Output files that appear complete or not at all, except for the statement of what was spent.

if sys.platform != "win32":
    import fcntl


CERTIFICATE_NAME = "certificate.json"


class OutputFolder:
    """A folder that is written under a temporary name and renamed when it is complete.

    A command calls :meth:`begin` before it draws noise. If it ends early after that, the folder remains with
    ``certificate.json`` alone: the certificate of all releases, or the statement that the whole budget counts as spent.
    An error of taciturn's own before the first release means that nothing was spent, and leaves no folder. Once
    :meth:`write_result` has returned, no error removes a file: it is raised as one after a complete result.

    The folder belongs to the command whose ``certificate.json`` is in it first. One without that file is nobody's, as
    nothing was spent for it: the next command takes it over. It must not exist or must be empty: a certificate is never
    overwritten. Others may read ``public`` files. ``done`` is the complete result and its cost in words, for
    :func:`~taciturn.app.cli.screen.complete`.
    """

    def __init__(self, path: Path, *, public: bool, done: str) -> None:
        self._public, self._done = public, done
        self._path = Path(os.path.realpath(path))
        # An empty folder may be the mount point of another disk: files can be moved into it, but not replace it.
        inside = self._path.is_dir()
        self._part = self._path / "unfinished" if inside else self._path.with_name(self._path.name + ".unfinished")
        self._statement: dict[str, object] = {}
        self._released = self._complete = False

    def __enter__(self) -> OutputFolder:
        self._check_free()
        left = os.listdir(self._part) if self._part.is_dir() else []
        if (self._part.exists() and not self._part.is_dir()) or not all(map(_is_temporary, left)):
            raise ParameterError(
                "output",
                str(self._path),
                f"no {self._part.name} beside it, which an interrupted run left",
                "read the certificate in it, then move it away or choose another name",
            )
        # Made again, since the run that left it may have had other permissions.
        with suppress(OSError):
            self._part.rmdir()
        self._made = self._make()
        return self

    def begin(self, *, epsilon: float, delta: float, relation: str) -> None:
        """Write down that a budget is about to be spent; after a crash, this statement remains.

        Of several commands with one folder the first one that writes its statement goes on.
        """
        statement = _spending(epsilon, delta, relation)
        # A command with the same folder may have failed, and removed it.
        self._made = self._make() or self._made
        try:
            replace_file(self._part / CERTIFICATE_NAME, _as_text(statement), public=self._public, exclusive=True)
        except (FileExistsError, FileNotFoundError):
            raise _taken(self._path) from None
        try:
            # A command with the same folder may have finished.
            self._check_free()
        except ParameterError:
            self._remove()
            raise
        # Set last: if the statement cannot be written, no noise is drawn.
        self._statement = statement
        for path in self._part.iterdir():
            if _is_temporary(path.name):
                path.unlink(missing_ok=True)

    def add_release(self, certificate: Certificate) -> None:
        """Write down what has been released so far, before further releases."""
        self._released = True
        self._write_statement(self._statement | {"released so far": json.loads(certificate.to_json())})

    def finish(self, certificate: Certificate) -> None:
        """Write the certificate of all releases."""
        self._released = True
        self.write(CERTIFICATE_NAME, certificate.to_json() + "\n")

    def write_result(self, name: str, text: str) -> None:
        """Write the file that the command was run for, after the certificate: both remain whatever follows."""
        self.write(name, text)
        self._complete = True

    def write(self, name: str, text: str) -> None:
        """Write one file of the folder."""
        replace_file(self._part / name, text, public=self._public)

    def sign(self, key: Ed25519PrivateKey | None) -> None:
        """Sign all files that have been written, if there is a key."""
        if key is not None:
            from taciturn.app.verify import SIGNATURE_NAME, sign_files

            files = {path.name: path.read_bytes() for path in self._part.iterdir() if not _is_temporary(path.name)}
            self.write(SIGNATURE_NAME, sign_files(files, key))

    def _write_statement(self, statement: dict[str, object]) -> None:
        self.write(CERTIFICATE_NAME, _as_text(statement))

    def _check_free(self) -> None:
        """Raise if there is something in the place of the folder."""
        found = {path.name for path in self._path.iterdir()} if self._path.is_dir() else set()
        if self._part.parent == self._path:
            found.discard(self._part.name)
        if found or (self._path.exists() and not self._path.is_dir()):
            raise ParameterError("output", str(self._path), "a folder that is not there yet", "choose another name")

    def _make(self) -> list[Path]:
        """Make the folder and those that hold it, where they are missing; return what was made."""
        missing = [parent for parent in (self._part, *self._part.parents) if not parent.exists()]
        self._part.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self._part.mkdir(mode=0o777 if self._public else 0o700)
        for folder in missing:
            _sync(folder.parent)
        return missing

    def _remove(self) -> None:
        """Remove the statement, and what was made, unless another command has written to it."""
        (self._part / CERTIFICATE_NAME).unlink()
        self._remove_made()

    def _remove_made(self) -> None:
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._complete:
            with _completed(error, self._done):
                self._move()
        elif self._released or (self._statement and not isinstance(error, TaciturnError)):
            for path in self._part.iterdir():
                if path.name != CERTIFICATE_NAME:
                    path.unlink(missing_ok=True)
            self._move()
            print_note(f"{_drawn(self._released)}; {self._path / CERTIFICATE_NAME} states what counts as spent.")
        elif self._statement:
            self._remove()
        else:
            self._remove_made()

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
            print_note(f"{_drawn(self._released)}, and {self._part} could not be moved: the files are there.")
            raise


class OutputFile:
    """One file for a release, which must not exist; until the release it holds the statement of what is spent.

    As with :class:`OutputFolder`, a crash after :meth:`begin` leaves the statement, an error of taciturn's own before
    the release leaves no file, and no error removes a release that is written. Of several commands with one file the
    first one that writes to it goes on. ``public`` and ``done`` are as there.
    """

    def __init__(self, path: Path, *, public: bool, done: str) -> None:
        self._path, self._public, self._done = path, public, done
        self._begun = self._released = self._complete = False

    def __enter__(self) -> OutputFile:
        if os.path.lexists(self._path):
            raise ParameterError("output", str(self._path), "a file that is not there yet", "choose another name")
        return self

    def begin(self, *, epsilon: float, delta: float, relation: str) -> None:
        """Write down that a budget is about to be spent."""
        statement = _as_text(_spending(epsilon, delta, relation))
        try:
            replace_file(self._path, statement, public=self._public, exclusive=True)
        except FileExistsError:
            raise _taken(self._path) from None
        self._begun = True

    def finish(self, text: str) -> None:
        """Replace the statement by the release."""
        self._released = True
        replace_file(self._path, text, public=self._public)
        self._complete = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._complete:
            with _completed(error, self._done):
                pass
        elif self._begun and isinstance(error, TaciturnError) and not self._released:
            self._path.unlink()
        elif self._begun:
            print_note(f"{_drawn(self._released)}; {self._path} states what counts as spent.")


def _taken(path: Path) -> ParameterError:
    return ParameterError(
        "output", str(path), "a name that no other command writes to at the same time", "choose another name"
    )


def _drawn(released: bool) -> str:
    """What is known of the noise of a run that ended early."""
    return "noise was drawn" if released else "noise may have been drawn"


@contextmanager
def _completed(error: BaseException | None, done: str) -> Iterator[None]:
    """Run what is left after a complete result; raise an error that came before as one after a complete result."""
    with complete(done):
        yield
        if error is not None and not isinstance(error, CompleteError):
            raise error


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

    An existing file is replaced, unless the file is ``exclusive``: then FileExistsError is raised and the existing one
    stays. A pipe or a device is written to directly. Only its owner may read a file that is not ``public``.

    Every temporary name is another one, so that two commands with one file do not write into each other's. The file of
    a killed run is removed by the next one.
    """

    def __init__(self, path: Path, *, public: bool, exclusive: bool = False) -> None:
        self._path, self._exclusive = path, exclusive
        self._mode = 0o666 if public else 0o600
        self._special = path.exists() and not path.is_file()

    def __enter__(self) -> TextIO:
        if self._special:
            self._file = self._path.open("w", encoding="utf-8", newline="")
            return self._file
        _remove_abandoned(self._path)
        self._part, made, self._lock = _new_temporary(self._path, self._mode)
        self._file = open(made, "w", encoding="utf-8", newline="")
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._special:
            self._file.close()
            return
        try:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            if error is None:
                _move_file(self._part, self._path, exclusive=self._exclusive)
                _sync(self._path.parent)
        finally:
            self._part.unlink(missing_ok=True)
            if self._lock is not None:
                os.close(self._lock)


def replace_file(path: Path, content: str | bytes, *, public: bool, exclusive: bool = False) -> None:
    """Write a small file: completely or, after a power failure, not at all."""
    with AtomicFile(path, public=public, exclusive=exclusive) as file:
        if isinstance(content, bytes):
            file.buffer.write(content)
        else:
            file.write(content)


def _move_file(part: Path, path: Path, *, exclusive: bool) -> None:
    """Give a file its name; raise FileExistsError if it is ``exclusive`` and the name is taken."""
    if exclusive:
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:
            # The disk has no links. A run that is killed here leaves an empty file, and has spent nothing.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        else:
            return
    os.replace(part, path)


def _is_temporary(name: str) -> bool:
    return re.fullmatch(r".+\.[0-9a-f]{8}\.part", name, re.DOTALL) is not None


def _new_temporary(path: Path, mode: int) -> tuple[Path, int, int | None]:
    """Make a file with a temporary name beside a path; return its name, the open file and a lock that marks it."""
    while True:
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        if sys.platform == "win32":
            return part, made, None
        with suppress(OSError):
            fcntl.flock(made, fcntl.LOCK_EX)
        # Before it was locked, another run may have taken it for abandoned.
        if part.exists():
            return part, made, os.dup(made)
        os.close(made)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files for this path that no process holds: their runs were killed."""
    for name in glob.glob(f"{glob.escape(path.name)}.*.part", root_dir=path.parent):
        if not _is_temporary(name):
            continue
        with suppress(OSError):
            if sys.platform == "win32":
                # Fails for a file that is open.
                path.with_name(name).unlink()
                continue
            opened = os.open(path.with_name(name), os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.with_name(name).unlink()
            finally:
                os.close(opened)


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


# --- Keys for commands that sign what they write.

SIGNED = ", signature.json"

_VARIABLE = "TACITURN_KEY_PASSWORD"


def read_signing_key(path: Path | None) -> Ed25519PrivateKey | None:
    """Read the key of ``--sign`` before anything is spent; an encrypted one asks for its password."""
    if path is None:
        return None
    from taciturn.app.verify import NeedsPasswordError, read_private_key

    if os.name == "posix" and path.is_file() and path.stat().st_mode & 0o077:
        print_note(f"others may read {path.name}, and sign in your name; chmod 600 keeps it to you.")
    given = os.environ.get(_VARIABLE)
    try:
        return read_private_key(path, None if given is None else given.encode())
    except NeedsPasswordError:
        if not sys.stdin.isatty():
            remedy = f"set the environment variable {_VARIABLE}, or run the command in a terminal"
            raise ParameterError("sign", str(path), "the password of a key that is encrypted", remedy) from None
    from getpass import getpass

    return read_private_key(path, getpass(f"password of {path.name}: ").encode())


def sign_beside(path: Path, text: str, key: Ed25519PrivateKey | None, *, public: bool) -> None:
    """Sign one file, if there is a key: the signature of ``score.json`` is ``score.signature.json``."""
    if key is not None:
        from taciturn.app.verify import sign_files, signature_beside

        replace_file(signature_beside(path), sign_files({path.name: text.encode()}, key), public=public)


# --- ``--account``: which account pays for a command, and what it says about it.

AccountOption = Annotated[
    str | None,
    typer.Option("--account", help="Account that pays, such as sqlite:///study.db#patients-2026 (taciturn budget)."),
]


def open_payer(account: str | None, seed: int | None) -> Account | None:
    """The account that an option names, before anything is read; raise if it cannot pay for this command."""
    if account is None:
        return None
    from taciturn.privacy.account import Account
    from taciturn.privacy.ledger import location_of

    opened = Account.open(*location_of(account))
    if seed is not None:
        raise AccountError(
            f"seed: expected none for what account={opened.name!r} pays for, got one, which undoes the noise; leave it "
            "out, or leave the account out."
        )
    return opened


@contextmanager
def charge_refusals(
    opened: Account | None, epsilon: float, delta: float, *, what: str, relation: str, bounds: TableBounds
) -> Iterator[None]:
    """Read a table inside: a refusal there is charged the budget of the command, since it tells of the data.

    Where the account cannot pay, that is what is said, as it would be of a table without a fault.
    """
    try:
        yield
    except TaciturnError:
        if opened is not None:
            from taciturn.privacy.budget import Budget
            from taciturn.privacy.events import PureEvent
            from taciturn.privacy.filter import PrivacyFilter

            budget = Budget(epsilon, delta)
            event = PrivacyFilter(budget).event if delta else PureEvent(epsilon)
            unit = "record" if bounds.person is None else "person"
            # It is never settled: what is reserved counts as spent.
            opened.reserve(
                event, budget, what=what, relation=relation, unit=unit, n=None, person_column=bounds.person
            ).begin()
            print_note(f"the refusal tells of the data: account {opened.name} was charged for it.")
        raise


def print_payer(opened: Account | None) -> None:
    """Print in one line what an account has left, or that nothing keeps count."""
    if opened is None:
        print_line("no account: nothing keeps count of several fits (--account, taciturn budget)")
        return
    from taciturn.app.report.account import format_share

    left = "; ".join(f"{each.title} left: {format_share(each.shares[2])}" for each in opened.state().balances)
    print_line(f"account {opened.name}: {left}")
