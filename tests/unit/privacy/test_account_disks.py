"""Ledgers on disks: full ones, busy ones, files that are exchanged, links, other computers."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from reservations import SMALL_FIT, TERMS, fail_after, posix, reserve, run_program, states

from taciturn import Account, AccountError, AccountWarning
from taciturn.accounting import Budget
from taciturn.events import PureEvent
from taciturn.privacy import databases as postgresql_module
from taciturn.privacy import databases as sqlite_module
from taciturn.privacy.ledger import open_ledger


@pytest.fixture
def account(memory):
    return Account.create(f"sqlite:///{memory / 'study.db'}", "people", **TERMS)


_FULL = """
import json, resource, signal, sys
from taciturn import Account, AccountError
from taciturn.accounting import Budget
from taciturn.events import PureEvent
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
account, told = Account(*sys.argv[1:]), []
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for bytes_ in (*range(0, 48_000, 1500), most):
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, most))
    try:
        account.reserve(PureEvent(0.001), Budget(0.001, 0.0), what=str(bytes_), relation="zero-out", n=10)
        told.append("reserved")
    except AccountError as error:
        told.append(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(json.dumps(told))
"""


@posix
def test_a_full_disk(account):
    """Files may grow to so many bytes and no further: whatever reserve returned is there, and nothing is damaged."""
    told = json.loads(run_program(_FULL, account.url, account.name))
    failures = [text for text in told if text != "reserved"]
    assert len(failures) > 10
    assert all("a ledger that can be read and written" in text for text in failures)
    assert told[-1] == "reserved"
    # More may be there than was confirmed, and never less.
    assert len(states(account)) >= told.count("reserved")


def test_a_disk_that_is_full_at_the_commit(account):
    class Full:
        """A connection that has no room for one more page."""

        def __init__(self, connection):
            self._connection = connection
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")

        def __getattr__(self, name):
            return getattr(self._connection, name)

    connect = sqlite_module.SQLiteLedger._connect
    written = 0

    def fill():
        nonlocal written
        while True:
            reserve(account, SMALL_FIT)
            written += 1

    with (
        patch.object(sqlite_module.SQLiteLedger, "_connect", lambda ledger: Full(connect(ledger))),
        pytest.raises(AccountError, match="full"),
    ):
        fill()
    assert states(account) == ["reserved"] * written
    reserve(account)
    assert states(account) == ["reserved"] * (written + 1)


def test_a_file_that_may_not_be_written(account, memory):
    uri = f"{(memory / 'study.db').as_uri()}?mode=ro"
    connect = sqlite_module.sqlite3.connect
    with (
        patch.object(sqlite_module.sqlite3, "connect", lambda _, **options: connect(uri, **options)),
        pytest.raises(AccountError, match="readonly"),
    ):
        reserve(account)
    assert states(account) == []


def test_commits_are_on_disk_before_they_return(account, memory):
    """Which no killed process can tell."""
    with closing(sqlite_module.SQLiteLedger(memory / "study.db")._connect()) as connection:
        told = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert told == ["wal", 2]


def test_commits_are_on_the_disk_of_a_server_whatever_it_was_told(postgresql):
    url = f"{postgresql.url}?options=-c%20synchronous_commit%3Doff"
    account = Account.create(url, os.urandom(4).hex(), **TERMS)
    with open_ledger(url).writing(account.name) as pages:
        told = [pages._execute(f"SHOW {name}", ())[0][0] for name in ("synchronous_commit", "transaction_isolation")]
    assert told == ["on", "serializable"]


def test_a_ledger_that_stays_busy(account, monkeypatch):
    monkeypatch.setattr(sqlite_module, "_PATIENCE", 0.05)
    locked = pytest.raises(
        AccountError, match="another program has locked for 0.05 seconds; .*; wait until that program"
    )
    with open_ledger(account.url).writing(account.name), locked:
        reserve(account)
    assert states(account) == []


DAMAGES = {
    "another page size": lambda content: content[:16] + b"\0\3" + content[18:],
    "half of it": lambda content: content[: len(content) // 2],
    "an empty schema": lambda content: content[:100] + bytes(len(content) - 100),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_reading_a_damaged_account_leaves_no_files(account, memory, damage):
    path = memory / "study.db"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for read in (account.entries, account.state, lambda: reserve(account)):
        with pytest.raises(AccountError, match=r"malformed|not a database"):
            read()
        assert [each.name for each in memory.iterdir()] == ["study.db"]


def test_a_log_beside_a_damaged_account_stays(account, memory):
    """It may hold the last entries."""
    path = memory / "study.db"
    path.write_bytes(DAMAGES["half of it"](path.read_bytes()))
    log = memory / "study.db-wal"
    log.write_bytes(b"entries")
    with pytest.raises(AccountError):
        account.entries()
    assert log.exists()


def test_a_server_that_stays_busy(postgresql, monkeypatch):
    account = Account.create(postgresql.url, os.urandom(4).hex(), **TERMS)
    monkeypatch.setattr(postgresql_module, "_POSTGRESQL_PATIENCE", 50)
    with open_ledger(account.url).writing(account.name), pytest.raises(AccountError, match="lock timeout"):
        reserve(account)
    assert states(account) == []


def test_accounts_of_one_server_do_not_make_each_other_fail(postgresql):
    """Serialisable transactions on one small table would."""
    accounts = [Account.create(postgresql.url, os.urandom(4).hex(), **TERMS) for _ in range(4)]

    def fit(account):
        for _ in range(6):
            with reserve(account) as reservation:
                reservation.begin()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit, accounts))
    assert all(states(account) == ["spent"] * 6 for account in accounts)


# ---------------------------------------------------------------------- files that change


def remove(folder):
    for path in folder.glob("study.db*"):
        path.unlink()


def test_an_old_copy_that_is_restored_during_a_fit(account, memory):
    """Entry 3 is then somebody else's reservation, which the first fit must not give back."""
    reserve(account)
    for name in ("study.db", "study.db-wal"):
        if (memory / name).exists():
            shutil.copy(memory / name, memory / f"old-{name}")

    def restore():
        remove(memory)
        for path in memory.glob("old-*"):
            path.rename(memory / path.name.removeprefix("old-"))
        reserve(account, (PureEvent(0.1), Budget(0.1, 0.0))).begin()

    with (
        pytest.warns(AccountWarning, match="entry 3 as it was reserved"),
        pytest.raises(ZeroDivisionError),
        reserve(account),
    ):
        fail_after(restore)
    assert states(account) == ["reserved", "reserved"]


def test_a_new_file_during_a_fit(account, memory):
    reservation = reserve(account)
    remove(memory)
    Account.create(account.url, "others", **TERMS)
    with pytest.warns(AccountWarning, match="entry 2 as it was reserved"):
        reservation.__exit__(None, None, None)
    assert Account.create(account.url, "people", **TERMS).history() == []


@posix
def test_links(account, memory):
    """A symbolic one is the same ledger; with a second name the file would have a second log."""
    (memory / "elsewhere").mkdir()
    (memory / "elsewhere" / "link.db").symlink_to(memory / "study.db")
    linked = Account(f"sqlite:///{memory / 'elsewhere' / 'link.db'}", "people")
    reserve(linked)
    assert states(account) == ["reserved"]
    os.link(memory / "study.db", memory / "twin.db")
    for name in ("study.db", "twin.db"):
        with pytest.raises(AccountError, match="several names"):
            reserve(Account(f"sqlite:///{memory / name}", "people"))


@posix
def test_a_ledger_on_another_computer_is_refused_whenever_it_is_used(account, memory):
    with patch.object(sqlite_module, "_file_system", lambda folder: "nfs4"):
        with pytest.raises(AccountError, match="network file system 'nfs4'"):
            reserve(account)
        with pytest.raises(AccountError, match="network file system 'nfs4'"):
            Account.create(account.url, "others", **TERMS)


@posix
def test_the_folder_of_the_file_decides_and_not_that_of_a_link(account, memory):
    looked = []
    with patch.object(sqlite_module, "_file_system", lambda folder: looked.append(folder) or ""):
        (memory / "far").mkdir()
        (memory / "far.db").symlink_to(memory / "study.db")
        reserve(Account(f"sqlite:///{memory / 'far.db'}", "people"))
    assert set(looked) == {memory.resolve() / "study.db"}


def test_creating_beside_a_running_transaction_keeps_its_lock(account):
    """Closing any handle of a file drops all locks of its process, if it is not SQLite that does it."""
    opened = []
    real = os.open
    with patch.object(os, "open", lambda path, flags, *mode: opened.append(flags) or real(path, flags, *mode)):
        Account.create(account.url, "others", **TERMS)
    assert opened
    assert all(flags & os.O_EXCL for flags in opened)


@posix
def test_the_path_of_a_ledger_may_hold_anything(memory):
    folder = memory / "a b%20c ü 'q' [x] &;"
    folder.mkdir()
    account = Account.create(f"sqlite:///{folder / 'study file.db'}", "people", **TERMS)
    with reserve(account):
        pass
    assert states(account) == ["spent"]
    assert Path(folder / "study file.db").stat().st_mode & 0o077 == 0
