"""Which tests are slow, and what tests of accounts need: a server, and a folder that is quick.

``slow_tests.txt`` lists tests beside those that are marked: further settings of what ``make test`` tests with one
setting, and tests of more than a second that guard no law of privacy. The list was made from measured times.
"""

import tempfile
from pathlib import Path

import pytest

SLOW = frozenset(Path(__file__).with_name("slow_tests.txt").read_text(encoding="utf-8").splitlines())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.slow)


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
