"""Accounts on the command line: what is charged, what is shown, and what verification notices."""

import json
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Run, one_sentence, run, write_patients

from taciturn import Account, Certificate
from taciturn.accounts.chain import LedgerEntry, entry_from_json

URL, NAME = "sqlite:///study.db", "patients-2026"
ACCOUNT = f"{URL}#{NAME}"
TERMS = ("--epsilon", "3", "--delta", "1e-5", "--records", "2000")
PAID = ("model", "bounded", "selection", "score.json")
"""What the study left behind; the fit with private bounds is of two reservations."""


def budget(*arguments, cwd) -> Run:
    return run("budget", *arguments, cwd=cwd)


def create(folder, name=NAME, *more) -> Run:
    return budget("create", f"{URL}#{name}", *TERMS, *more, cwd=folder)


def fit(folder, *more, output="another") -> Run:
    return run("fit", "patients.csv", "--bounds", "bounds.toml", *more, "-o", output, cwd=folder)


def charges(folder, name=NAME):
    return Account(f"sqlite:///{folder / 'study.db'}", name).history()


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A folder with an account and what it paid for; ``early.db`` is a copy from before the last charge."""
    folder = tmp_path_factory.mktemp("study")
    write_patients(folder, 2000)
    bounds = (folder / "bounds.toml").read_text(encoding="utf-8")
    without_age = bounds.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n\n', "")
    (folder / "fewer.toml").write_text(without_age, encoding="utf-8")
    pay = ("--account", ACCOUNT)
    runs = [
        create(folder),
        fit(folder, "--epsilon", "0.5", *pay, output="model"),
        run(
            "fit",
            "patients.csv",
            "--bounds",
            "fewer.toml",
            "--private-bounds",
            "0.5",
            *pay,
            "-o",
            "bounded",
            cwd=folder,
        ),
        run("select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "--epsilon", "0.3", *pay, cwd=folder),
    ]
    copy_database(folder / "study.db", folder / "early.db")
    runs.append(run("score", "model", "patients.csv", "--epsilon", "0.3", "--delta", "1e-6", *pay, cwd=folder))
    assert [each.code for each in runs] == [0] * len(runs), runs
    return folder


@pytest.fixture
def study(studied, tmp_path):
    """A copy of it to spoil."""
    return Path(shutil.copytree(studied, tmp_path / "study"))


def copy_database(before, after):
    with sqlite3.connect(before) as source, sqlite3.connect(after) as target:
        source.backup(target)


def change_rows(folder, *statements):
    """What somebody with the file could do."""
    with sqlite3.connect(folder / "study.db") as connection:
        connection.execute("DROP TRIGGER taciturn_entries_UPDATE")
        connection.execute("DROP TRIGGER taciturn_entries_DELETE")
        for statement in statements:
            connection.execute(statement)


# ------------------------------------------------------------------ create


def test_create_states_what_is_fixed(tmp_path):
    done = create(tmp_path, NAME, "--relation", "add-remove", "--unit", "person", "--approximate", "0.5", "2e-6")
    assert done.code == 0
    state = Account(f"sqlite:///{tmp_path / 'study.db'}", NAME).state()
    assert (state.epsilon, state.delta, state.n) == (3.0, 1e-5, 2000)
    assert (state.relation, state.unit, state.approximate) == ("add-remove", "person", (0.5, 2e-6))
    assert state.head in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("sqlite:///study.db", *TERMS), 1, "account='sqlite:///study.db': expected a URL and a name"),
        (("mysql://u:secret@h/db#a", *TERMS), 1, "account='mysql://u:***@h/db'"),
        ((ACCOUNT, "--epsilon", "1", "--delta", "1e-5"), 1, "n=None"),
        ((ACCOUNT, "--epsilon", "31", "--delta", "1e-5", "--records", "9"), 1, "epsilon=31"),
        ((ACCOUNT, "--epsilon", "inf", "--delta", "1e-5", "--records", "9"), 1, "epsilon=inf: expected a finite"),
        ((ACCOUNT, "--epsilon", "1", "--delta", "0", "--records", "9"), 1, "delta=0.0"),
        ((ACCOUNT, *TERMS, "--approximate", "4", "0"), 1, "approximate="),
        ((ACCOUNT, *TERMS, "--fingerprint", "patients.csv"), 1, "key=None"),
        ((ACCOUNT, *TERMS, "--key", "key"), 1, "--fingerprint TABLE and --key FILE together"),
        ((ACCOUNT, *TERMS, "--fingerprint", "none.csv", "--key", "key"), 1, "fingerprint='none.csv'"),
        ((ACCOUNT, *TERMS, "--fingerprint", "patients.csv", "--key", "short"), 1, "key='short': expected 16 to"),
        ((ACCOUNT, *TERMS, "--unit", "household"), 2, "--unit"),
        ((ACCOUNT, "--records", "9"), 2, "--epsilon"),
    ],
)
def test_create_refuses(arguments, code, said, tmp_path):
    write_patients(tmp_path, 20)
    (tmp_path / "key").write_bytes(bytes(16))
    (tmp_path / "short").write_bytes(bytes(15))
    done = budget("create", *arguments, cwd=tmp_path)
    assert done.code == code
    assert said in done.err
    assert "secret" not in done.err
    if code == 1:
        one_sentence(done)
    assert not (tmp_path / "study.db").exists()


def test_a_name_is_taken_once(tmp_path):
    assert create(tmp_path).code == 0
    assert "a name that is not taken" in one_sentence_of(create(tmp_path))


def one_sentence_of(done) -> str:
    one_sentence(done)
    return done.err


def test_the_same_table_under_a_second_name_is_noticed_and_changed_content_is_not(tmp_path):
    table, _ = write_patients(tmp_path, 20)
    (tmp_path / "key").write_bytes(bytes(range(32)))
    fingerprint = ("--fingerprint", "patients.csv", "--key", "key")
    assert create(tmp_path, "first", *fingerprint).code == 0
    done = create(tmp_path, "second", *fingerprint)
    assert "account='first' was opened for the same content" in one_sentence_of(done)
    # Without the fingerprint, with another key or with other content nothing is noticed, as the page says.
    assert create(tmp_path, "second").code == 0
    (tmp_path / "key").write_bytes(bytes(range(1, 33)))
    assert create(tmp_path, "third", *fingerprint).code == 0
    table.write_text(table.read_text(encoding="utf-8") + "1,0,true,hill,no\n", encoding="utf-8")
    assert create(tmp_path, "fourth", *fingerprint).code == 0


# ------------------------------------------------------------------ what is charged


def test_everything_that_spends_is_charged_the_scaler_too(studied):
    found = charges(studied)
    assert [charge.what for charge in found] == [
        "SparseClassifier",
        "PrivateScaler",
        "SparseClassifier",
        "CorrelationSelector",
        "private_score",
    ]
    assert {charge.state for charge in found} == {"spent"}
    certificate = Certificate.from_json((studied / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.account_head == found[0].head


def test_the_url_of_an_account_is_in_no_file_of_the_model(studied):
    for file in (studied / "model").iterdir():
        assert "study.db" not in file.read_text(encoding="utf-8")


def test_a_fit_says_what_is_left_or_that_nothing_keeps_count(studied, tmp_path):
    write_patients(tmp_path, 200)
    alone = fit(tmp_path)
    assert "no account: nothing keeps count of several fits" in alone.out
    create(tmp_path)
    paid = fit(tmp_path, "--account", ACCOUNT, output="paid")
    assert f"left in account {NAME}: first pot: " in paid.out
    assert "nothing keeps count" not in paid.out


@pytest.mark.parametrize(
    "command",
    [("fit", "none.csv"), ("select", "none.csv"), ("score", "none.json", "none.csv", "--epsilon", "1")],
)
def test_a_seed_and_an_account_are_refused_before_anything_is_read(command, study):
    done = run(*command, "--seed", "1", "--account", ACCOUNT, cwd=study)
    assert "seed: expected none" in one_sentence_of(done)
    assert len(charges(study)) == 5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--epsilon", "9"), "nothing was spent"),
        (("--relation", "add-remove", "--n-public", "2000"), "relation='add-remove': expected 'zero-out'"),
        (("--method", "objective-perturbation"), "the rest of its second pot"),
        (("--epsilon", "inf"), "epsilon=inf: expected a finite budget"),
    ],
)
def test_what_the_account_does_not_pay_for_leaves_no_folder(more, said, study):
    assert said in one_sentence_of(fit(study, *more, "--account", ACCOUNT))
    assert not (study / "another").exists()
    assert len(charges(study)) == 5


def test_a_scaler_that_the_account_cannot_pay_for_is_not_blamed_on_the_table(study):
    more = ("--private-bounds", "0.9", "--epsilon", "10", "--account", ACCOUNT)
    done = run("fit", "patients.csv", "--bounds", "fewer.toml", *more, "-o", "another", cwd=study)
    assert "nothing was spent" in one_sentence_of(done)
    assert not (study / "another").exists()


def test_bounds_that_were_paid_for_before_the_fit_was_refused_are_stated(study):
    small = ("create", f"{URL}#small", "--epsilon", "0.8", "--delta", "1e-6", "--records", "2000")
    assert budget(*small, cwd=study).code == 0
    more = ("--private-bounds", "0.3", "--epsilon", "1", "--account", f"{URL}#small")
    done = run("fit", "patients.csv", "--bounds", "fewer.toml", *more, "-o", "another", cwd=study)
    one_sentence(done)
    assert [charge.what for charge in charges(study, "small")] == ["PrivateScaler"]
    assert "states what counts as spent" in done.err
    assert "released so far" in (study / "another" / "certificate.json").read_text(encoding="utf-8")


def test_more_records_than_the_account_has_are_refused(tmp_path):
    write_patients(tmp_path, 2001)
    create(tmp_path)
    assert "n=2001: expected at most the 2000 records" in one_sentence_of(fit(tmp_path, "--account", ACCOUNT))


def test_a_score_without_noise_cannot_be_paid_for(study):
    done = run("score", "model", "patients.csv", "--account", ACCOUNT, cwd=study)
    assert "expected --epsilon beside it" in one_sentence_of(done)


@pytest.mark.parametrize("account", ["sqlite:///none.db#a", f"{URL}#another", "study.db", f"{URL}#"])
@pytest.mark.parametrize("command", [("fit", "patients.csv", "--account"), ("budget", "show"), ("budget", "history")])
def test_accounts_that_are_not_there(command, account, study):
    one_sentence(run(*command, account, cwd=study))
    assert not (study / "none.db").exists()


# ------------------------------------------------------------------ show, history, export


def test_show_fits_on_a_screen_and_says_what_is_left(studied):
    done = budget("show", ACCOUNT, cwd=studied)
    state = Account(f"sqlite:///{studied / 'study.db'}", NAME).state()
    assert done.code == 0
    assert len(done.out.splitlines()) <= 30
    assert "A Gaussian fit can still take epsilon " in done.out
    assert "at delta 1e-06, or epsilon " in done.out
    assert "private_score" in done.out
    assert state.head in done.out.replace("\n", "")
    spent = state.spent.gaussian / state.total.gaussian
    assert f"{100 * spent:.1f}%" in done.out
    bar = next(line for line in done.out.splitlines() if line.startswith(" first pot"))
    assert bar.count("█") + bar.count("#") == round(30 * spent)


def test_show_of_a_new_account(tmp_path):
    create(tmp_path)
    done = budget("show", ACCOUNT, cwd=tmp_path)
    assert done.code == 0
    assert "100%" in done.out
    assert "chain: 1 entry, intact" in done.out


def test_history_lists_every_charge_also_as_json(studied):
    table = budget("history", ACCOUNT, cwd=studied)
    for charge in charges(studied):
        assert charge.what in table.out
        assert charge.clock[:10] in table.out
    listed = json.loads(budget("history", ACCOUNT, "--json", cwd=studied).out)
    assert [(each["sequence"], each["head"]) for each in listed] == [(c.sequence, c.head) for c in charges(studied)]
    total = Account(f"sqlite:///{studied / 'study.db'}", NAME).state().total
    assert [each["share"] for each in listed] == [c.price.gaussian / total.gaussian for c in charges(studied)]


def test_exports_are_the_owner_s_unless_public(study):
    for name, more, mode in (("a.jsonl", (), 0o600), ("a.html", (), 0o600), ("b.html", ("--public",), 0o644)):
        assert budget("export", ACCOUNT, "--output", name, *more, cwd=study).code == 0
        if os.name == "posix":
            assert (study / name).stat().st_mode & 0o777 == mode
    assert (study / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    lines = (study / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [entry_from_json(line) for line in lines] == Account(f"sqlite:///{study / 'study.db'}", NAME).entries()


def test_an_export_has_a_form_that_is_known(study):
    assert "ends in .jsonl or .html" in one_sentence_of(budget("export", ACCOUNT, "-o", "ledger.csv", cwd=study))


# ------------------------------------------------------------------ verify


def exported(folder) -> list[LedgerEntry]:
    assert budget("export", ACCOUNT, "-o", "ledger.jsonl", cwd=folder).code == 0
    return [entry_from_json(line) for line in (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]


def write_ledger(folder, entries):
    (folder / "ledger.jsonl").write_text("".join(entry.to_json() + "\n" for entry in entries), encoding="utf-8")


@pytest.mark.parametrize("offline", [False, True])
def test_everything_that_was_paid_for_is_found_in_the_chain(offline, study):
    exported(study)
    if offline:
        (study / "study.db").unlink()
    files = (*PAID, "model/model.json", "selection/selection.json", "bounded/certificate.json")
    done = budget("verify", "ledger.jsonl" if offline else ACCOUNT, *files, cwd=study)
    assert done.code == 0, done
    assert "model: paid for by entry 2\n" in done.out
    assert "bounded: paid for by entry 4, 6\n" in done.out
    assert "certificates reach entry 10" in done.out


def test_without_a_certificate_the_command_says_what_it_cannot_tell(study):
    done = budget("verify", ACCOUNT, cwd=study)
    assert done.code == 0
    assert "no certificate given" in done.out


def hashed_again(entries):
    """A new chain over the same contents, with hashes that fit."""
    made = []
    for e in entries:
        before = made[-1] if made else None
        made.append(LedgerEntry.append(before, e.account, e.kind, e.reservation, e.price, e.details, e.clock))
    return made


TAMPERED = {
    "edited": (lambda e: [*e[:1], replace(e[1], gaussian=1), *e[2:]], "entry 2 ('reserved')"),
    "deleted": (lambda e: [*e[:3], *e[4:]], "entry 4: expected it after entry 3"),
    "reordered": (lambda e: [*e[:3], e[5], e[4], e[3], *e[6:]], "entry 4: expected it after entry 3"),
    "no opening": (lambda e: e[1:], "begins with its opening"),
    "renamed": (lambda e: [replace(each, account="other") for each in e], "entry 1"),
    "larger totals": (
        lambda e: hashed_again([replace(e[0], gaussian=2 * e[0].gaussian), *e[1:]]),
        "entry 1 ('opened'): expected totals that its epsilon and delta allow",
    ),
    "another chain": (
        lambda e: hashed_again([e[0], replace(e[1], gaussian=1), *e[2:]]),
        "expected an entry of account='patients-2026', found none",
    ),
    "cut at the end": (lambda e: e[:9], "this ledger is an older copy"),
    "settlement cut": (lambda e: e[:-1], None),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_export_is_noticed(how, study):
    change, said = TAMPERED[how]
    write_ledger(study, change(exported(study)))
    done = budget("verify", "ledger.jsonl", *PAID, cwd=study)
    if said is None:
        # It says of a reservation that it was spent, which it counts as anyway.
        assert done.code == 0
    else:
        assert done.code == 1
        assert said in done.err


def test_a_cut_is_not_noticed_without_a_certificate_from_behind_it(study):
    write_ledger(study, exported(study)[:9])
    assert budget("verify", "ledger.jsonl", "model", cwd=study).code == 0
    assert budget("verify", "ledger.jsonl", "score.json", cwd=study).code == 1


def test_a_restored_old_copy_is_told_apart_by_the_newest_certificate(study):
    copy_database(study / "early.db", study / "study.db")
    assert budget("verify", ACCOUNT, "model", "bounded", "selection", cwd=study).code == 0
    done = budget("verify", ACCOUNT, *PAID, cwd=study)
    assert done.code == 1
    assert done.err.startswith("taciturn: score.json: account_head=")
    assert "this ledger is an older copy or was rewritten" in done.err


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE taciturn_entries SET gaussian = 1 WHERE sequence = 2", "entry 2"),
        ("DELETE FROM taciturn_entries WHERE sequence = 2", "entry 2: expected it after entry 1"),
        ("UPDATE taciturn_entries SET details = '{}' WHERE sequence = 2", "entry 2"),
        ("UPDATE taciturn_entries SET clock = '2020-01-01T00:00:00+00:00' WHERE sequence = 2", "entry 2"),
    ],
)
def test_a_tampered_database_is_noticed_by_show_history_and_verify_and_exported_as_it_stands(statement, said, study):
    change_rows(study, statement)
    for command in ("show", "history", "verify"):
        assert said in one_sentence_of(budget(command, ACCOUNT, cwd=study))
    assert budget("export", ACCOUNT, "-o", "account.html", cwd=study).code == 0
    assert "the ledger is damaged" in (study / "account.html").read_text(encoding="utf-8")


def test_a_certificate_of_another_account_is_noticed(study):
    create(study, "another")
    assert budget("verify", ACCOUNT, "model", cwd=study).code == 0
    done = budget("verify", f"{URL}#another", "model", cwd=study)
    assert done.code == 1
    assert "the certificate is of another account" in done.err


def certificate_of(study):
    return Certificate.from_json((study / "model" / "certificate.json").read_text(encoding="utf-8"))


def cheaper(certificate, heads):
    """More releases than were paid for, stated honestly, so that the certificate by itself is sound."""
    doubled = certificate.events + tuple(replace(each, remaining=None) for each in certificate.events)
    free = tuple(replace(each, remaining=None) for each in doubled)
    return replace(certificate, events=free, epsilon=4.0)


FORGED = {
    "without an account": (lambda c, heads: replace(c, account_head=None), "account_head=None"),
    "seeded": (lambda c, heads: replace(c, seeded=True), "seeded=True"),
    "of another relation": (lambda c, heads: replace(c, relation="replace-one"), "relation='replace-one'"),
    "of another unit": (lambda c, heads: replace(c, unit="person"), "unit='person'"),
    "of other records": (lambda c, heads: replace(c, public=dict(c.public) | {"records": 1999}), "records=1999"),
    "of more releases": (cheaper, "releases that the price reserved by entry 2 covers"),
    "paid by a cheaper entry": (lambda c, heads: replace(c, account_head=heads[9]), "reserved by entry 10 covers"),
    "naming the opening": (lambda c, heads: replace(c, account_head=heads[0]), "found an entry that says 'opened'"),
    "naming a settlement": (lambda c, heads: replace(c, account_head=heads[2]), "found an entry that says 'spent'"),
    "naming nothing": (lambda c, heads: replace(c, account_head="0" * 64), "expected an entry of account="),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_certificate_is_noticed(how, study):
    change, said = FORGED[how]
    forged = change(certificate_of(study), [entry.hash for entry in exported(study)])
    (study / "forged.json").write_text(forged.to_json(), encoding="utf-8")
    done = budget("verify", ACCOUNT, "model", "forged.json", cwd=study)
    assert done.code == 1
    assert done.err.startswith("taciturn: forged.json: ")
    assert said in done.err
    assert "model: paid for by entry 2" in done.out


def test_two_fits_cannot_rest_on_one_entry(study):
    certificate = certificate_of(study)
    other = replace(certificate, public=dict(certificate.public) | {"features": 99})
    (study / "other.json").write_text(other.to_json(), encoding="utf-8")
    assert budget("verify", ACCOUNT, "other.json", cwd=study).code == 0
    done = budget("verify", ACCOUNT, "model", "other.json", cwd=study)
    assert done.code == 1
    assert "found that of another fit among these files" in done.err


def test_a_part_that_no_account_paid_for_is_noticed(study):
    path = study / "bounded" / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["public"]["part 1"]["account_head"]
    path.write_text(json.dumps(content), encoding="utf-8")
    done = budget("verify", ACCOUNT, "bounded", cwd=study)
    assert done.code == 1
    assert "releases that the price reserved by entry 6 covers" in done.err


def test_a_reservation_that_was_given_back_paid_for_nothing(study):
    entries = exported(study)
    back = LedgerEntry.append(entries[1], NAME, "released", 2, entries[1].price, "{}", entries[1].clock)
    write_ledger(study, [*entries[:2], back])
    done = budget("verify", "ledger.jsonl", "model", cwd=study)
    assert done.code == 1
    assert "a reservation that was not given back" in done.err


@pytest.mark.parametrize("text", ["", "not JSON", "{}", "[]", '{"certificate": {}}', "[" * 5000])
def test_files_that_are_no_certificates_and_no_exports(text, study):
    (study / "file.json").write_text(text, encoding="utf-8")
    one_sentence(budget("verify", ACCOUNT, "file.json", cwd=study))
    one_sentence(budget("verify", "file.json", cwd=study))


def test_verify_needs_no_network_and_no_table(study):
    exported(study)
    for file in ("patients.csv", "study.db", "bounds.toml"):
        (study / file).unlink()
    assert budget("verify", "ledger.jsonl", *PAID, cwd=study).code == 0
