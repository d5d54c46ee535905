"""Ledgers in SQLite and PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from taciturn.core.errors import AccountError
from taciturn.privacy.ledger import TABLE, Pages, hide_password

# Locks of these are not reliable, and a write-ahead log needs shared memory.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "fuse.sshfs", "fuse.gluster", "lustre", "gpfs")
# Seconds to wait for other writers, each of which takes milliseconds.
_PATIENCE = 60.0

# An entry is settled once, and none takes the place of another.
_APPEND_ONLY = (
    "CREATE UNIQUE INDEX IF NOT EXISTS taciturn_settled ON taciturn_entries (account, reservation) "
    "WHERE reservation > 0",
    "CREATE TRIGGER IF NOT EXISTS taciturn_entries_insert BEFORE INSERT ON taciturn_entries "
    "WHEN EXISTS (SELECT 1 FROM taciturn_entries WHERE account = NEW.account AND sequence = NEW.sequence) "
    "BEGIN SELECT RAISE(ABORT, 'entries of an account are never changed'); END",
    *(
        f"CREATE TRIGGER IF NOT EXISTS taciturn_entries_{verb} BEFORE {verb} ON taciturn_entries "
        "BEGIN SELECT RAISE(ABORT, 'entries of an account are never changed'); END"
        for verb in ("update", "delete")
    ),
)


class SQLiteLedger:
    """A file with accounts in it, on a disk of this computer: every commit is on disk before it returns."""

    def __init__(self, path: Path) -> None:
        # Without links, so that all names of the file lead to the same locks.
        self._path = path.resolve()

    def prepare(self) -> None:
        """Make the file, for its owner alone, and the table, unless they are there."""
        with self._reported():
            # Never a file that is there: closing it would drop the locks of this process' other threads.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with closing(self._connect()) as connection:
                _log_ahead(connection)
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(TABLE)
                for statement in _APPEND_ONLY:
                    connection.execute(statement)
                connection.execute("COMMIT")

    @contextmanager
    def writing(self, account: str) -> Iterator[Pages]:
        """A transaction that excludes every other one, and is on disk when it ends."""
        with self._reported(), closing(self._connect()) as connection:
            # The lock is taken here, before anything is read: what is read cannot change until it is written.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _pages(connection, account)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self, account: str) -> Iterator[Pages]:
        """A transaction that sees one state."""
        with self._reported(), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield _pages(connection, account)
            connection.execute("ROLLBACK")

    def _connect(self) -> sqlite3.Connection:
        # Through a link the file and its log may be elsewhere.
        path = self._path.resolve()
        if not path.exists():
            raise sqlite3.OperationalError("no such file")
        _refuse_network(path)
        if path.stat().st_nlink > 1:
            raise sqlite3.OperationalError("a file with several names, each of which has a log of its own")
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None)
        # A commit is on disk before it returns, also if the computer loses power in the next moment.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        return connection

    @contextmanager
    def _reported(self) -> Iterator[None]:
        new_logs = _NewLogs(self._path)
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            remedy = "check the file and the disk"
            if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                told = f"one that another program has locked for {_PATIENCE:g} seconds"
                remedy = "wait until that program has finished or end it, then try again"
            elif _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                new_logs.remove()
            raise AccountError(
                f"account in {self._path.name!r}: expected a ledger that can be read and written, got {told}; "
                f"what was reserved counts as spent; {remedy}."
            ) from None


def _code(error: Exception) -> int:
    """The kind of an error of SQLite; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


class _NewLogs:
    """The log files beside a file that are not there yet.

    SQLite makes them before it reads the file, and leaves them if the file is damaged. Nobody can have written to an
    account that cannot be opened, so that empty ones may go, unless another file has taken its place.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._seen = path, _stamp(path)
        logs = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
        self._logs = [] if any(log.exists() for log in logs) else logs

    def remove(self) -> None:
        """Remove them if the first one, which holds what is written, is empty."""
        with suppress(OSError):
            if self._logs and self._logs[0].stat().st_size == 0 and _stamp(self._path) == self._seen:
                for log in self._logs:
                    log.unlink()


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. SQLite does not wait for others there, whatever its timeout, so this does."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            break
    if mode != "wal":
        raise sqlite3.OperationalError("no write-ahead log")


def _pages(connection: sqlite3.Connection, account: str) -> Pages:
    def execute(statement: str, values: Sequence[Any]) -> list[Any]:
        return connection.execute(statement, tuple(values)).fetchall()

    return Pages(execute, account)


def _refuse_network(path: Path) -> None:
    """Raise where the file would be on another computer, as far as this can be told."""
    kind = _file_system(path)
    if kind.startswith(_NETWORK_FILE_SYSTEMS):
        raise AccountError(
            f"account in {path.name!r}: expected a disk of this computer, got the network file system {kind!r}, whose "
            "locks do not hold; use a local file, or PostgreSQL for several computers."
        )


def _file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system of a file; empty where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4].replace("\\040", " "))
        # Of two mounts in one place the later one counts.
        if (path == point or point in path.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


# One server may have locks of others; this is ours.
_LOCK = 0x7AC1
# Milliseconds to wait for other writers, each of which takes a few.
_POSTGRESQL_PATIENCE = 60_000

# An entry is settled once, and none is ever changed.
_POSTGRESQL_APPEND_ONLY = """
CREATE UNIQUE INDEX IF NOT EXISTS taciturn_settled ON taciturn_entries (account, reservation) WHERE reservation > 0;
CREATE OR REPLACE FUNCTION taciturn_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'entries of an account are never changed'; END $$;
DROP TRIGGER IF EXISTS taciturn_entries_append_only ON taciturn_entries;
CREATE TRIGGER taciturn_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON taciturn_entries
FOR EACH STATEMENT EXECUTE FUNCTION taciturn_refuse_change();
"""


class PostgreSQLLedger:
    """A database of a server with accounts in it (serialisable transactions); its ``url`` is one of SQLAlchemy."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self._url = f"postgresql://{rest}"
        self._shown = hide_password(f"{scheme}://{rest}")

    def prepare(self) -> None:
        """Make the table, unless it is there."""
        with self._reported(), closing(self._connect()) as connection:
            self._lock(connection)
            with connection.transaction():
                exists = connection.execute("SELECT to_regclass('taciturn_entries')").fetchone()
                if exists[0] is None:
                    connection.execute(TABLE)
                    connection.execute(_POSTGRESQL_APPEND_ONLY)

    @contextmanager
    def writing(self, account: str) -> Iterator[Pages]:
        """A transaction that excludes every other one on the account, and is on disk when it ends."""
        import psycopg

        with self._reported(), closing(self._connect()) as connection:
            # Before the transaction, whose view of the table begins with its first statement. One lock for all
            # accounts: serialisable transactions on the same pages of the table make each other fail, also where they
            # are about different accounts. Were the lock not there, transactions that see the same state would still
            # fail, as they are serialisable and entries are numbered.
            self._lock(connection)
            connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            with connection.transaction():
                # Whatever the server's setting is, a commit is on its disk before it returns.
                connection.execute("SET LOCAL synchronous_commit = on")
                yield _postgresql_pages(connection, account)

    @contextmanager
    def reading(self, account: str) -> Iterator[Pages]:
        """A transaction that sees one state."""
        import psycopg

        with self._reported(), closing(self._connect()) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                yield _postgresql_pages(connection, account)

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, connect_timeout=30)

    @staticmethod
    def _lock(connection: Any) -> None:
        """Wait for the lock, which ends with the connection."""
        connection.execute(f"SET lock_timeout = {_POSTGRESQL_PATIENCE}")
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            import psycopg
        except ImportError:
            raise AccountError(
                f"account in {self._shown!r}: expected the package psycopg, which is not installed; run pip install "
                "'taciturn[postgresql]'."
            ) from None
        try:
            yield
        except psycopg.Error as error:
            # What cannot be parsed is quoted, and may be a password.
            unread = isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
            told = "a URL that cannot be read" if unread else str(error).strip().partition("\n")[0]
            raise AccountError(
                f"account in {self._shown!r}: expected a server that can be read and written, got {told!r}; what "
                "was reserved counts as spent; check the server."
            ) from None


def _postgresql_pages(connection: Any, account: str) -> Pages:
    def execute(statement: str, values: Sequence[Any]) -> list[Any]:
        cursor = connection.execute(statement.replace("?", "%s"), tuple(values))
        rows: list[Any] = cursor.fetchall() if cursor.description is not None else []
        return rows

    return Pages(execute, account)
