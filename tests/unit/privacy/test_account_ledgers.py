"""Reservations: their states, forks, copies, threads, creators, clocks and interrupts."""

import copy
import os
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from reservations import TERMS, fail_after, posix, reserve, run_program, states
from sklearn.base import clone

from taciturn import Account, AccountError, BudgetExceededError, SparseClassifier
from taciturn.privacy import account as account_module
from taciturn.privacy import databases as sqlite_module


@pytest.fixture
def account(memory):
    return Account.create(f"sqlite:///{memory / 'study.db'}", "people", **TERMS)


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request, memory):
    """An account in each kind of database."""
    if request.param == "sqlite":
        return Account.create(f"sqlite:///{memory / 'study.db'}", "people", **TERMS)
    return Account.create(request.getfixturevalue("postgresql").url, os.urandom(4).hex(), **TERMS)


def test_the_states_of_a_reservation(anywhere):
    price = None
    with reserve(anywhere) as spent:
        price = anywhere.state().reserved
        spent.begin()
    assert price.gaussian
    with pytest.raises(ZeroDivisionError), reserve(anywhere):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), reserve(anywhere) as kept:
        fail_after(kept.begin)
    assert states(anywhere) == ["spent", "released", "reserved"]
    state = anywhere.state()
    assert (state.spent, state.reserved) == (price, price)
    assert state.left + price + price == state.total
    assert anywhere.history()[0].head == spent.head


def test_a_reservation_serves_one_context(account):
    with pytest.raises(ZeroDivisionError), reserve(account) as released:
        raise ZeroDivisionError
    with pytest.raises(AccountError, match="one use of entry 2"):
        released.begin()
    with pytest.raises(AccountError, match="one use of entry 2"), released:
        pytest.fail("it was given back")
    assert states(account) == ["released"]


@posix
def test_a_fork_can_neither_use_nor_end_a_reservation(account):
    """In a program of one thread: what the child does with its copy of the parent's reservation."""
    program = """
import os, sys
from taciturn import Account, AccountError
from taciturn.accounting import Budget
from taciturn.events import PureEvent
reservation = Account(*sys.argv[1:]).reserve(
    PureEvent(0.2), Budget(0.2, 0.0), what="test", relation="zero-out", n=10
)
for ending in ("spend", "release", "begin"):
    child = os.fork()
    if not child:
        try:
            if ending == "begin":
                reservation.begin()
            reservation.__exit__(*((None,) * 3 if ending == "spend" else (ValueError, ValueError(), None)))
        except AccountError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (7 if ending == "begin" else 0)
assert [charge.state for charge in Account(*sys.argv[1:]).history()] == ["reserved"]
with reservation:
    reservation.begin()
"""
    run_program(program, account.url, account.name)
    assert states(account) == ["spent"]


def test_accounts_travel_and_reservations_do_not(account):
    assert pickle.loads(pickle.dumps(account)) == account
    assert clone(SparseClassifier(account=account)).account == account
    assert clone(SparseClassifier(account=f"{account.url}#people")).account == f"{account.url}#people"
    reservation = reserve(account)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="belongs to the process"):
            copied(reservation)


def test_many_threads_never_overdraw(anywhere):
    def fit(_):
        try:
            with reserve(anywhere) as reservation:
                reservation.begin()
        except BudgetExceededError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        paid = sum(pool.map(fit, range(60)))
    state = anywhere.state()
    anywhere.verify()
    one = anywhere.history()[0].price
    assert paid == state.total.gaussian // one.gaussian
    assert 5 < paid < 60
    with pytest.raises(BudgetExceededError, match="nothing was spent"):
        reserve(anywhere)


# ---------------------------------------------------------------------- one creator

_CREATE = """
import os, sys
from taciturn import Account, AccountError
waiting, start = os.pipe()
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        os.close(start)
        os.read(waiting, 1)
        try:
            Account.create(sys.argv[1], sys.argv[2], epsilon=1, delta=1e-5, n=10)
        except AccountError as error:
            os._exit(2 if "a name that is not taken" in str(error) else 3)
        os._exit(1)
os.close(start)
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@posix
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_of_eight_creators_one_succeeds(database, memory, request):
    url = f"sqlite:///{memory / 'new.db'}" if database == "sqlite" else request.getfixturevalue("postgresql").url
    name = os.urandom(4).hex()
    assert run_program(_CREATE, url, name) == "[1, 2, 2, 2, 2, 2, 2, 2]\n"
    Account(url, name).verify()


def test_the_switch_to_a_write_ahead_log_waits_for_others_and_for_nothing_else(tmp_path, monkeypatch):
    """SQLite answers "locked" at once there; a ledger that passed that on would refuse one of several creators."""
    path = tmp_path / "new.db"
    path.touch()
    monkeypatch.setattr(sqlite_module, "_PATIENCE", 0.05)
    monkeypatch.setattr(sqlite_module.time, "sleep", lambda seconds: other.commit() if other.in_transaction else None)
    with closing(sqlite3.connect(path, timeout=0.0)) as ours, closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            ours.execute("PRAGMA journal_mode = WAL")
        sqlite_module._log_ahead(ours)
        assert ours.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(sqlite3.connect(":memory:")) as volatile, pytest.raises(sqlite3.OperationalError, match="write-ahead"):
        sqlite_module._log_ahead(volatile)


# ---------------------------------------------------------------------- clocks


@pytest.mark.parametrize("days", [-20_000, -1, 0, 300_000])
def test_clocks_are_information(anywhere, days):
    class Jumping(datetime):
        calls = 0

        @classmethod
        def now(cls, zone=None):
            cls.calls += 1
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=days * (cls.calls % 2))

    with patch.object(account_module, "datetime", Jumping):
        for _ in range(3):
            with reserve(anywhere):
                pass
        with pytest.raises(ZeroDivisionError), reserve(anywhere):
            raise ZeroDivisionError
    reserve(anywhere)
    assert states(anywhere) == ["spent", "spent", "spent", "released", "reserved"]
    assert [entry.sequence for entry in anywhere.entries()] == list(range(1, 11))
    state = anywhere.state()
    assert state.spent == state.reserved + state.reserved + state.reserved


# ---------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("moment", ["before the entry", "after the entry", "after the commit"])
def test_an_interrupt_in_reserve_never_gives_back_what_is_recorded(account, moment):
    """Ctrl-C between the commit and the caller leaves an orphan, which counts."""
    writing = sqlite_module.SQLiteLedger.writing

    class Interrupted:
        def __init__(self, context):
            self._context = context

        def __enter__(self):
            return self._context.__enter__()

        def __exit__(self, *failure):
            self._context.__exit__(*failure)
            raise KeyboardInterrupt

    def stop(*_):
        raise KeyboardInterrupt

    target = {
        "before the entry": patch("taciturn.privacy.ledger.Pages.append", stop),
        "after the entry": patch("taciturn.privacy.account.Reservation", stop),
        "after the commit": patch.object(
            sqlite_module.SQLiteLedger, "writing", lambda ledger, name: Interrupted(writing(ledger, name))
        ),
    }[moment]
    with target, pytest.raises(KeyboardInterrupt):
        reserve(account)
    assert states(account) == ([] if moment == "before the entry" else ["reserved"])
    reserve(account)


_INTERRUPTS = """
import signal, sys
from taciturn import Account
from taciturn.accounting import Budget
from taciturn.events import PureEvent
account, armed, interrupted, confirmed = Account(*sys.argv[1:]), [], 0, 0
def interrupt(*_):
    if armed:
        armed.clear()
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0037)
while interrupted < 50:
    try:
        armed.append(1)
        account.reserve(PureEvent(1e-4), Budget(1e-4, 0.0), what="test", relation="zero-out", n=10)
        confirmed += 1
        armed.clear()
    except KeyboardInterrupt:
        interrupted += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(confirmed)
"""


@posix
def test_interrupts_at_any_moment(account):
    """Ctrl-C wherever it strikes: what was confirmed is there, and the ledger stays in order and usable."""
    confirmed = int(run_program(_INTERRUPTS, account.url, account.name))
    assert len(states(account)) >= confirmed
    reserve(account)
