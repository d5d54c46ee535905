"""The chain of hashes: whatever is changed in a ledger is found, and named."""

import json
import sqlite3
from dataclasses import replace
from unittest.mock import patch

import pytest

from taciturn import Account, AccountError
from taciturn.accounting import Budget
from taciturn.events import PureEvent
from taciturn.privacy import ledger
from taciturn.privacy.ledger import LedgerEntry, Price, check_entries, entry_from_json, replay_entries, totals_of

FIT = (PureEvent(0.2), Budget(0.2, 0.0))
DEARER = (PureEvent(0.3), Budget(0.3, 0.0))


@pytest.fixture
def account(memory):
    """Five entries: opened, reserved, spent, reserved, released."""
    account = Account.create(f"sqlite:///{memory / 'study.db'}", "people", epsilon=3, delta=1e-5, n=10)
    with reserve(account, FIT):
        pass
    with pytest.raises(ZeroDivisionError), reserve(account, DEARER):
        raise ZeroDivisionError
    return account


def reserve(account, fit):
    return account.reserve(*fit, what="test", relation="zero-out", n=10)


@pytest.fixture
def rows(memory, account):
    """The table without its triggers and constraints, as whoever owns the file may have it."""
    connection = sqlite3.connect(memory / "study.db", isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("DROP INDEX taciturn_settled")
    for verb in ("UPDATE", "DELETE", "INSERT"):
        connection.execute(f"DROP TRIGGER taciturn_entries_{verb}")
    yield connection
    connection.close()


def refused(account, match):
    with pytest.raises(AccountError, match=match):
        account.verify()


def test_a_whole_chain(account):
    account.verify()
    assert [entry.kind for entry in account.entries()] == ["opened", "reserved", "spent", "reserved", "released"]


@pytest.mark.parametrize("sequence", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "change",
    [
        "gaussian = gaussian - 1",
        "gaussian = gaussian + 0.5",
        "epsilon = epsilon + 1",
        "delta = delta + 1",
        "distance = distance + 1",
        "details = details || ' '",
        "clock = clock || ' '",
        "kind = 'released'",
        "reservation = reservation + 1",
        "hash = replace(hash, substr(hash, 1, 1), 'f') || ''",
        "hash = upper(hash)",
    ],
)
def test_an_edited_entry_is_named(change, sequence, rows, account):
    before = account.entries()
    rows.execute(f"UPDATE taciturn_entries SET {change} WHERE sequence = ?", (sequence,))
    if account.entries() != before:
        # An edited opening is no opening, or has another hash.
        refused(account, f"entry {sequence}|begins with its opening|prices and totals of 64 bits")


@pytest.mark.parametrize("sequence", [2, 3, 4])
def test_a_removed_entry_is_named(sequence, rows, account):
    rows.execute("DELETE FROM taciturn_entries WHERE sequence = ?", (sequence,))
    refused(account, f"entry {sequence}: expected it after entry {sequence - 1}, found entry {sequence + 1}")


def test_the_opening_cannot_be_removed(rows, account):
    rows.execute("DELETE FROM taciturn_entries WHERE sequence = 1")
    with pytest.raises(AccountError, match="none of this name"):
        account.verify()


def test_closing_the_gap_does_not_help(rows, account):
    rows.execute("DELETE FROM taciturn_entries WHERE sequence = 2")
    rows.execute("UPDATE taciturn_entries SET sequence = sequence - 1 WHERE sequence > 2")
    refused(account, "entry 2 .*the hash of the entry before it")


def signed(entry, **changes):
    """An entry with other fields, and a hash that covers them."""
    entry = replace(entry, **changes)
    price = Price(entry.gaussian, entry.epsilon, entry.delta, entry.distance)
    before = None if entry.sequence == 1 else replace(entry, sequence=entry.sequence - 1, hash=entry.previous)
    return LedgerEntry.append(before, entry.account, entry.kind, entry.reservation, price, entry.details, entry.clock)


def exchanged(entries):
    """The two reservations in each other's places: numbers are right, and so is each hash by itself."""
    one, two = entries[1], entries[3]
    return [
        entries[0],
        signed(two, sequence=2, previous=one.previous),
        *entries[2:3],
        signed(one, sequence=4, previous=two.previous),
    ]


def test_entries_in_another_order(account):
    with pytest.raises(AccountError, match=r"entry 3 .*the hash of the entry before it.*exchanged"):
        replay_entries(exchanged(account.entries()))


def test_a_verifier_that_skips_the_hash_before_accepts_another_order(account):
    def numbers_alone(entry, before, account):
        assert entry.sequence == (1 if before is None else before.sequence + 1)

    with patch.object(ledger, "_check_place", numbers_alone):
        replay_entries(exchanged(account.entries()))


def test_a_verifier_that_skips_the_hash_itself_accepts_another_clock(account):
    entries = account.entries()
    entries[-1] = replace(entries[-1], clock="2000-01-01T00:00:00+00:00")
    with pytest.raises(AccountError, match="entry 5 .*edited"):
        replay_entries(entries)
    with patch.object(LedgerEntry, "is_intact", lambda entry: True):
        replay_entries(entries)


def forged(*steps):
    """A chain with right hashes, of (kind, reservation, price)."""
    entries, before = [], None
    for kind, reservation, price in (("opened", 0, TOTAL), *steps):
        details = DETAILS.get(kind, "{}")
        before = LedgerEntry.append(before, "people", kind, reservation, price, details, "")
        entries.append(before)
    return entries


TOTAL = totals_of(3, 1e-5)
SIXTY = Price(gaussian=6 * TOTAL.gaussian // 10)
TERMS = {"epsilon": 3, "delta": 1e-5, "approximate": [0, 0], "relation": "zero-out", "unit": "record", "n": 10}
FITTED = json.dumps({"what": "test", "epsilon": 0.2, "delta": 0.0, "n": 10, "ordered": True})
DETAILS = {"opened": json.dumps(TERMS), "reserved": FITTED}


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ([("reserved", 0, SIXTY), ("reserved", 0, SIXTY)], "entry 3 .*overdrawn"),
        ([("reserved", 0, Price(distance=TOTAL.distance + 1))], "entry 2 .*overdrawn"),
        ([("opened", 0, SIXTY)], "entry 2 .*no second opening"),
        ([("reserved", 0, SIXTY), ("released", 2, Price(gaussian=SIXTY.gaussian - 1))], "entry 3 .*at its price"),
        ([("reserved", 0, SIXTY), ("released", 2, SIXTY), ("released", 2, SIXTY)], "entry 4 .*neither spent nor"),
        ([("reserved", 0, SIXTY), ("spent", 2, Price()), ("released", 2, SIXTY)], "entry 4 .*neither spent nor"),
        ([("reserved", 0, SIXTY), ("spent", 2, SIXTY)], "entry 3 .*at its price"),
        ([("spent", 2, Price())], "entry 2 .*neither spent nor"),
        ([("released", 1, TOTAL)], "entry 2 .*neither spent nor"),
        ([("reserved", 1, SIXTY)], "entry 2 .*no reservation before it"),
        ([("refunded", 0, SIXTY)], "entry 2 .*one of opened, reserved"),
    ],
)
def test_right_hashes_do_not_make_a_right_chain(steps, match):
    with pytest.raises(AccountError, match=match):
        replay_entries(forged(*steps))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 2.9},
        {"delta": 9e-6},
        {"approximate": [0.1, 0]},
        {"epsilon": "3"},
        {"n": None},
        {"unit": "household"},
        {"relation": "none"},
    ],
)
def test_totals_have_to_follow_from_the_terms(changes):
    """Larger totals than an account states, in a chain with right hashes."""
    clock = "2026-01-01T00:00:00+00:00"
    check_entries([LedgerEntry.append(None, "people", "opened", 0, TOTAL, json.dumps(TERMS), clock)])
    opened = LedgerEntry.append(None, "people", "opened", 0, TOTAL, json.dumps(TERMS | changes), clock)
    with pytest.raises(
        AccountError, match="entry 1 .*(totals that its epsilon and delta allow|the terms of an account)"
    ):
        check_entries([opened])


@pytest.mark.parametrize(
    ("details", "price"),
    [
        *(
            (details, Price(gaussian=9))
            for details in ("", "{}", "[]", "7", '{"what": 3, "epsilon": 1, "delta": 0}', "[" * 50_000)
        ),
        # The (epsilon, delta) budget is charged the budget of the fit, which the entry states.
        (FITTED, Price(epsilon=10**14)),
    ],
)
def test_reservations_have_to_say_what_they_are_for(details, price):
    clock, more = "2026-01-01T00:00:00+00:00", {"approximate": [1, 0]}
    total = totals_of(3, 1e-5, (1, 0))
    opened = LedgerEntry.append(None, "people", "opened", 0, total, json.dumps(TERMS | more), clock)
    for right in (Price(gaussian=9), Price(epsilon=2 * 10**14)):
        check_entries([opened, LedgerEntry.append(opened, "people", "reserved", 0, right, FITTED, clock)])
    entry = LedgerEntry.append(opened, "people", "reserved", 0, price, details, clock)
    with pytest.raises(AccountError, match="entry 2"):
        check_entries([opened, entry])


def test_two_reservations_never_have_one_head(memory, monkeypatch):
    """Not even in a ledger and in a copy of it that was restored within the same second."""
    monkeypatch.setattr("taciturn.privacy.account._clock", lambda: "2026-01-01T00:00:00+00:00")
    accounts = [Account.create(f"sqlite:///{memory / name}", "people", epsilon=3, delta=1e-5, n=10) for name in "ab"]
    heads = {entry.hash for account in accounts for entry in account.entries()}
    assert len(heads) == 2
    for account in accounts:
        with reserve(account, FIT):
            pass
    assert accounts[0].history()[0].head != accounts[1].history()[0].head


def test_a_chain_of_another_account_is_refused():
    entries = forged(("reserved", 0, SIXTY))
    other = LedgerEntry.append(entries[-1], "others", "spent", 2, Price(), "{}", "")
    with pytest.raises(AccountError, match="entry 3 .*the account 'people'"):
        replay_entries([*entries, other])


def test_a_forged_overdraft_is_refused_by_reserve_too(rows, account):
    last = account.entries()[-1]
    total = account.state().total
    details = account.entries()[1].details
    entry = LedgerEntry.append(last, "people", "reserved", 0, total, details, "")
    rows.execute(f"INSERT INTO taciturn_entries VALUES ({', '.join('?' * 12)})", list(vars_of(entry).values()))
    refused(account, "entry 6 .*overdrawn")
    with pytest.raises(AccountError, match="entries that nobody edited"):
        reserve(account, FIT)


def test_a_forged_refund_is_refused_by_reserve_too(rows, account):
    last = account.entries()[-1]
    entry = LedgerEntry.append(last, "people", "released", 2, account.state().total, last.details, "")
    rows.execute(f"INSERT INTO taciturn_entries VALUES ({', '.join('?' * 12)})", list(vars_of(entry).values()))
    refused(account, "entry 6 .*neither spent nor")
    with pytest.raises(AccountError, match="not negative"):
        reserve(account, FIT)


def vars_of(entry):
    return {name: getattr(entry, name) for name in entry.__slots__}


def test_a_chain_that_was_cut_off_is_noticed_by_its_head(rows, account):
    """By itself it is in order: the hash that stands on a certificate tells."""
    head = account.history()[1].head
    rows.execute("DELETE FROM taciturn_entries WHERE sequence > 3")
    account.verify()
    assert head not in {entry.hash for entry in account.entries()}


def test_entries_are_exported_and_read_back(account):
    lines = [entry.to_json() for entry in account.entries()]
    assert [entry_from_json(line) for line in lines] == account.entries()
    replay_entries(map(entry_from_json, lines))
    for line in (
        "",
        "[]",
        "{}",
        "[" * 100_000,
        lines[0].replace('"gaussian": ', '"gaussian": 1.0, "x": '),
        "9" * 200_000,
    ):
        with pytest.raises(AccountError, match="one entry of an account per line"):
            entry_from_json(line)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE taciturn_entries SET gaussian = 0",
        "DELETE FROM taciturn_entries WHERE sequence = 5",
        "INSERT OR REPLACE INTO taciturn_entries SELECT account, sequence, kind, reservation, 0, epsilon, delta, "
        "distance, details, clock, previous, hash FROM taciturn_entries WHERE sequence = 2",
    ],
)
def test_sqlite_refuses_changes(statement, memory, account):
    before = account.entries()
    connection = sqlite3.connect(memory / "study.db", isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute(statement)
    connection.close()
    assert account.entries() == before


@pytest.mark.parametrize(
    "statement",
    ["UPDATE taciturn_entries SET gaussian = 0", "DELETE FROM taciturn_entries", "TRUNCATE taciturn_entries"],
)
def test_postgresql_refuses_changes(statement, postgresql):
    import psycopg

    account = Account.create(postgresql.url, f"refusing {statement}", epsilon=1, delta=1e-5, n=10)
    with psycopg.connect(postgresql.url) as connection, pytest.raises(psycopg.errors.RaiseException, match="never"):
        connection.execute(statement)
    account.verify()
