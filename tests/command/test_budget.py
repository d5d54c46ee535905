"""Accounts on the command line: what is charged and what is shown."""

import json
import os

import pytest
from accounts_paid import ACCOUNT, NAME, TERMS, URL, budget, charges, create, fit, one_sentence_of
from commands import one_sentence, run, write_patients

from taciturn import Account, Certificate
from taciturn.privacy.ledger import entry_from_json

# ------------------------------------------------------------------ create


def test_create_states_what_is_fixed(tmp_path):
    by = ("--unit", "person", "--person-column", "patient")
    done = create(tmp_path, NAME, "--relation", "add-remove", *by, "--approximate", "0.5", "2e-6")
    assert done.code == 0
    state = Account(f"sqlite:///{tmp_path / 'study.db'}", NAME).state()
    assert (state.epsilon, state.delta, state.n) == (3.0, 1e-5, 2000)
    assert (state.relation, state.unit, state.approximate) == ("add-remove", "person", (0.5, 2e-6))
    assert state.person_column == "patient"
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
        ((ACCOUNT, *TERMS, "--unit", "person"), 1, "person_column=None: expected the column with the keys"),
        ((ACCOUNT, *TERMS, "--person-column", "patient"), 1, "unit='record': expected 'person'"),
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
    assert f"account {NAME}: Gaussian budget left: " in paid.out
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
        (("--method", "objective-perturbation"), "the rest of its (epsilon, delta) budget"),
        (("--epsilon", "inf"), "epsilon=inf: expected a finite budget"),
    ],
)
def test_what_the_account_does_not_pay_for_leaves_no_folder(more, said, study):
    assert said in one_sentence_of(fit(study, *more, "--account", ACCOUNT))
    assert not (study / "another").exists()
    assert len(charges(study)) == 5


@pytest.mark.parametrize("command", ["fit", "select"])
def test_a_refusal_that_read_the_table_is_charged(command, study):
    lines = (study / "patients.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[7].split(",")
    lines[7] = ",".join(["", *cells[1:]])
    (study / "gaps.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert create(study, "gaps").code == 0
    refused = (command, "gaps.csv", "--bounds", "bounds.toml", "--epsilon", "0.6", "--account", f"{URL}#gaps")
    refused += ("--keep", "1") if command == "select" else ()
    done = run(*refused, "-o", "another", cwd=study)
    assert done.code == 1
    assert "the refusal tells of the data: account gaps was charged for it" in done.err
    (charge,) = charges(study, "gaps")
    assert (charge.state, charge.epsilon) == ("reserved", 0.6)
    # Where nothing is left that is what is said, of tables with and without a fault.
    for table in ("gaps.csv", "patients.csv"):
        done = run(command, table, *refused[2:4], "--epsilon", "9", *refused[6:], "-o", "another", cwd=study)
        assert "nothing was spent" in one_sentence_of(done)
    assert len(charges(study, "gaps")) == 1


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
    bar = next(line for line in done.out.splitlines() if line.startswith(" Gaussian budget"))
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


# ------------------------------------------------------------------ persons


def test_an_account_pays_for_persons_of_one_column(tmp_path):
    table, bounds = write_patients(tmp_path)
    lines = table.read_text(encoding="utf-8").splitlines()
    rows = [f"patient,visit,{lines[0]}", *(f"p{at // 2},{at},{line}" for at, line in enumerate(lines[1:]))]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    stated = bounds.read_text(encoding="utf-8").replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")
    terms = ("--epsilon", "25", "--delta", "1e-3", "--records", "400", "--unit", "person")
    assert budget("create", ACCOUNT, *terms, "--person-column", "patient", cwd=tmp_path).code == 0
    paid = ("--account", ACCOUNT, "--epsilon", "15")
    for column, other in (("visit", "patient"), ("patient", "visit")):
        keyed = f'{stated}\n[columns.{other}]\ntype = "ignore"\n\n[person]\ncolumn = "{column}"\n'
        bounds.write_text(keyed, encoding="utf-8")
        done = fit(tmp_path, *paid, "--private-bounds", "0.5", output=column)
        if column == "visit":
            assert "'patient', by which account='patients-2026' counts persons, got 'visit'" in one_sentence_of(done)
            assert charges(tmp_path) == []
    assert done.code == 0, done
    # Bounds and fit are two entries, which one certificate names beside the column.
    assert len(charges(tmp_path)) == 2
    checked = budget("verify", ACCOUNT, "patient", cwd=tmp_path)
    assert checked.code == 0, checked
    assert run("verify", "patient", "--account", ACCOUNT, cwd=tmp_path).code == 0
