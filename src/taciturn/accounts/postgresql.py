"""Accounts on a server: PostgreSQL with serialisable transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from taciturn.accounts.ledger import TABLE, Pages
from taciturn.accounts.location import hide_password
from taciturn.core.errors import AccountError

__all__ = ["PostgreSQLLedger"]

# One server may have locks of others; this is ours.
_LOCK = 0x7AC1
# Milliseconds to wait for other writers, each of which takes a few.
_PATIENCE = 60_000

# An entry is settled once, and none is ever changed.
_APPEND_ONLY = """
CREATE UNIQUE INDEX IF NOT EXISTS taciturn_settled ON taciturn_entries (account, reservation) WHERE reservation > 0;
CREATE OR REPLACE FUNCTION taciturn_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'entries of an account are never changed'; END $$;
DROP TRIGGER IF EXISTS taciturn_entries_append_only ON taciturn_entries;
CREATE TRIGGER taciturn_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON taciturn_entries
FOR EACH STATEMENT EXECUTE FUNCTION taciturn_refuse_change();
"""


class PostgreSQLLedger:
    """A database of a server with accounts in it.

    Parameters
    ----------
    url : str
        As SQLAlchemy writes it.
    """

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
                    connection.execute(_APPEND_ONLY)

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
                yield _pages(connection, account)

    @contextmanager
    def reading(self, account: str) -> Iterator[Pages]:
        """A transaction that sees one state."""
        import psycopg

        with self._reported(), closing(self._connect()) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.transaction():
                yield _pages(connection, account)

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, connect_timeout=30)

    @staticmethod
    def _lock(connection: Any) -> None:
        """Wait for the lock, which ends with the connection."""
        connection.execute(f"SET lock_timeout = {_PATIENCE}")
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


def _pages(connection: Any, account: str) -> Pages:
    def execute(statement: str, values: Sequence[Any]) -> list[Any]:
        cursor = connection.execute(statement.replace("?", "%s"), tuple(values))
        rows: list[Any] = cursor.fetchall() if cursor.description is not None else []
        return rows

    return Pages(execute, account)
