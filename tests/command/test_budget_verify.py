"""What taciturn budget verify notices: tampered ledgers, restored copies and forged certificates."""

import json
from dataclasses import replace

import pytest
from accounts_paid import ACCOUNT, NAME, PAID, URL, budget, change_rows, copy_database, create, one_sentence_of
from commands import one_sentence, run

from taciturn import Certificate
from taciturn.privacy.ledger import LedgerEntry, entry_from_json


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


@pytest.mark.parametrize("folder", ["model", "bounded", "selection", "score.json"])
def test_verify_follows_a_folder_to_the_account_that_paid_for_it(folder, study):
    entries = exported(study)
    for where in (ACCOUNT, "ledger.jsonl"):
        done = run("verify", folder, "--account", where, cwd=study)
        assert done.code == 0, done
        assert f"{NAME}: paid for by entry" in done.out
    # A ledger that was set back to before the fit, and one whose chain was changed.
    write_ledger(study, entries[:1])
    done = run("verify", folder, "--account", "ledger.jsonl", cwd=study)
    assert done.code == 1
    assert "refused" in done.out
    write_ledger(study, [*entries[:1], replace(entries[1], gaussian=1), *entries[2:]])
    assert "entry 2 ('reserved')" in one_sentence_of(run("verify", folder, "--account", "ledger.jsonl", cwd=study))


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
