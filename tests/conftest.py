"""What tests of accounts need: a server, and a folder that is quick."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server of this process' own; tests are skipped where there cannot be one."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("pwd", reason="the server of these tests needs a POSIX system")
    from postgresql_server import PostgreSQLServer, ServerMissingError

    try:
        server = PostgreSQLServer()
    except ServerMissingError as reason:
        pytest.skip(str(reason))
    yield server
    server.stop()


@pytest.fixture
def memory():
    """A folder in memory where there is one; whoever is killed loses nothing that the system has."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)
