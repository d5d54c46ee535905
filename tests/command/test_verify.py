"""``taciturn verify``: a folder as it was written passes, and tampered ones are refused."""

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from commands import one_sentence, run, write_patients
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from tampering import CERTIFICATE, FILES, MODEL, REPORT, SIGNATURE, WAYS

from taciturn import __version__
from taciturn.core.errors import TaciturnError
from taciturn.report import model_report
from taciturn.study import read_public_key, sign_files, verification, verify_folder

REGRESSION = """\
[target]
name = "dose"
lower = -1
upper = 1

[columns.age]
type = "number"
lower = 0
upper = 100

[columns.smoker]
type = "boolean"

[columns.region]
type = "ignore"

[columns.ill]
type = "ignore"
"""


def write_key(path, key=None, password=None):
    key = key or Ed25519PrivateKey.generate()
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub.pem").write_bytes(public)
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A key, and signed folders of three fits by its owner."""
    home = tmp_path_factory.mktemp("study")
    table, bounds = write_patients(home)
    (home / "regression.toml").write_text(REGRESSION, encoding="utf-8")
    key = write_key(home / "owner.pem")
    write_key(home / "forger.pem")
    for name, stated, epsilon in (
        ("classify", bounds, 4), ("other", bounds, 5), ("regress", home / "regression.toml", 4),
    ):  # fmt: skip
        done = run(
            "fit", table, "--bounds", stated, "--epsilon", epsilon, "--nonzero", 3 if name != "regress" else 2,
            "--seed", 1, "-o", home / name, "--sign", key,
        )  # fmt: skip
        assert done.code == 0, done
        assert "report.html, signature.json" in done.out
    return home


@pytest.fixture
def tampered(study, tmp_path):
    """A function that tampers with a copy of a folder."""

    def make(name, *, signed):
        way = WAYS[name]
        folder = tmp_path / f"{name} {signed}"
        shutil.copytree(study / way.of, folder)
        if not signed:
            (folder / SIGNATURE).unlink()
        way.change(folder, study / "other")
        return folder

    return make


def refusal(folder, key=None, **options):
    """The sentence with which a verifier refuses a folder, or None."""
    try:
        verify_folder(folder, key, **({"write_report": model_report} | options))
    except TaciturnError as error:
        return str(error)
    return None


def is_refused(folder, key=None, **options):
    sentence = refusal(folder, key, **options)
    assert sentence is None or (sentence.endswith(".") and "\n" not in sentence)
    return sentence is not None


def owner(study):
    return read_public_key(study / "owner.pub.pem")


# ------------------------------------------------------------------ folders as they were written


@pytest.mark.parametrize("name", ["classify", "other", "regress"])
def test_a_folder_as_it_was_written_passes(study, name):
    found = verify_folder(study / name, owner(study), write_report=model_report)
    assert found.holds
    assert found.signed_by == owner(study).public_bytes_raw().hex()
    assert found.certificate.epsilon == (5.0 if name == "other" else 4.0)
    outcomes = {item.name: item.outcome for item in found.items}
    expected = dict.fromkeys(("certificate", "model", "report", "signature"), "holds") | {"account": "not checked"}
    assert outcomes == expected
    done = run("verify", study / name, "--public-key", study / "owner.pub.pem")
    assert done.code == 0, done
    for part in ("certificate", "model", "report", "signature", "those that were signed"):
        assert part in done.out


@pytest.mark.parametrize(
    "options",
    [
        ["--inference"],
        ["--epsilon", "inf"],
        ["--relation", "add-remove", "--n-public", "400", "--method", "objective-perturbation"],
        ["--relation", "replace-one", "--method", "frank-wolfe"],
        ["--invalid", "null", "--nonzero", "auto"],
        ["--epsilon", "25", "--delta", "1e-3", "--private-bounds", "0.5"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_folders_of_other_fits_pass(options, task, study, tmp_path):
    text = (study / ("bounds.toml" if task == "classify" else "regression.toml")).read_text(encoding="utf-8")
    if "--private-bounds" in options:
        text = text.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    done = run(
        "fit", study / "patients.csv", "--bounds", tmp_path / "bounds.toml", "-o", tmp_path / "model",
        *([] if "--epsilon" in options else ["--epsilon", 4]), *options,
    )  # fmt: skip
    assert done.code == 0, done
    verified = run("verify", tmp_path / "model")
    assert verified.code == 0, verified


def test_models_of_0_1_pass(tmp_path):
    models = json.loads((Path(__file__).parents[1] / "data" / "models_0_1.json").read_text(encoding="utf-8"))
    for content in models.values():
        path = tmp_path / "model.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        assert refusal(path) is None


def test_a_folder_of_0_1_passes_without_a_digest_in_its_report(study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    (folder / SIGNATURE).unlink()
    for name in FILES:
        text = (folder / name).read_text(encoding="utf-8").replace(__version__, "0.1.0")
        (folder / name).write_text(re.sub("<p>SHA-256 of model.json[^<]*</p>", "", text), encoding="utf-8")
    items = {item.name: item for item in verify_folder(folder, write_report=model_report).items}
    assert items["report"].outcome == "not checked"
    assert (items["model"].outcome, items["certificate"].outcome) == ("holds", "holds")


def test_a_single_file_passes_with_the_signature_of_its_folder(study):
    for name in (CERTIFICATE, MODEL):
        found = verify_folder(study / "classify" / name, owner(study))
        assert found.signed_by is not None
        assert found.certificate.epsilon == 4.0
        assert run("verify", study / "classify" / name).code == 0


def test_what_is_not_checked_is_said(study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    signed = {item.name: item for item in verify_folder(folder).items}["signature"]
    assert signed.outcome == "not checked"
    assert "whose key it is, is not known" in signed.words
    (folder / SIGNATURE).unlink()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    items = {item.name: item for item in verify_folder(folder).items}
    assert (items["signature"].outcome, items["signature"].words[:4]) == ("not checked", "none")
    assert items["other files"].words == '"notes.txt": not read'
    assert "not compared" in items["report"].words
    sentence = one_sentence(run("verify", folder, "--public-key", study / "owner.pub.pem"))
    assert "expected a signature by the key that was given, and there is none" in sentence


# ------------------------------------------------------------------ tampered folders


def test_there_are_enough_of_both_kinds():
    assert len(WAYS) >= 22
    assert sum(way.told is not None for way in WAYS.values()) >= 22
    # Nothing in the files speaks against these, and nothing could: they are what another honest fit might have written.
    assert {name for name, way in WAYS.items() if way.told is None} == {
        "no assumption", "another account", "more records", "another coefficient", "another intercept",
        "other classes", "other bounds of a column", "another name of a column", "all files of another fit",
        "no report", "a further file",
    }  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_tampering_with_a_signed_folder_is_refused(name, study, tampered):
    folder = tampered(name, signed=True)
    if name == "all files of another fit":
        # The signature is that of the first fit.
        assert (folder / SIGNATURE).read_bytes() == (study / "classify" / SIGNATURE).read_bytes()
    assert is_refused(folder, owner(study))
    # A signature beside changed files is refused whoever made it.
    assert is_refused(folder)


@pytest.mark.parametrize("name", WAYS)
def test_tampering_with_an_unsigned_folder_is_refused_where_it_contradicts_itself(name, study, tampered):
    folder = tampered(name, signed=False)
    assert is_refused(folder) == (WAYS[name].told is not None)
    assert is_refused(folder, owner(study))


@pytest.mark.parametrize("name", ["a smaller epsilon", "another coefficient", "a further file", "a link"])
def test_the_command_refuses_in_one_sentence(name, study, tampered):
    done = run("verify", tampered(name, signed=True), "--public-key", study / "owner.pub.pem")
    one_sentence(done)
    assert ("refused" in done.out) == (name != "a link")


def test_a_signature_by_another_key_is_refused(study, tmp_path, tampered):
    folder = tampered("another coefficient", signed=False)
    forger = run("verify", folder, "--sign", study / "forger.pem")
    assert forger.code == 0, forger
    assert not is_refused(folder)
    assert is_refused(folder, owner(study))
    # Nor does it help to name the owner's key.
    content = json.loads((folder / SIGNATURE).read_text(encoding="utf-8"))
    content["public_key"] = owner(study).public_bytes_raw().hex()
    (folder / SIGNATURE).write_text(json.dumps(content), encoding="utf-8")
    assert is_refused(folder, owner(study))
    assert is_refused(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"signature": "00" * 64}, {"signature": "ab"}, {"public_key": "00" * 31}, {"files": {}}, {"files": []},
        {"version": 2}, {"version": True}, {"algorithm": "RSA"}, {"format": "x"}, {"more": 1},
        {"files": {"../model.json": "00" * 32}}, {"files": {"model.json": 1}}, {"public_key": "ff" * 32},
    ],
)  # fmt: skip
def test_a_damaged_signature_is_refused(change, study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    content = json.loads((folder / SIGNATURE).read_text(encoding="utf-8"))
    (folder / SIGNATURE).write_text(json.dumps(content | change), encoding="utf-8")
    assert is_refused(folder, owner(study))
    assert is_refused(folder)


# ------------------------------------------------------------------ teeth: worse verifiers


def escaped(tampered, key=None, *, signed, **options):
    """The tamperings that a verifier does not refuse though it should."""
    names = [name for name, way in WAYS.items() if signed or way.told is not None]
    return {name for name in names if not is_refused(tampered(name, signed=signed), key, **options)}


def test_a_verifier_that_does_not_recompute_is_found_out(tampered, monkeypatch):
    monkeypatch.setattr("taciturn.certificate.certificate.check_claim", lambda certificate: None)
    assert escaped(tampered, signed=False) >= {
        "a smaller epsilon",
        "a smaller delta",
        "another remainder",
        "a larger group",
    }


def test_a_verifier_that_trusts_the_key_in_the_file_is_found_out(study, tampered, monkeypatch):
    folder = tampered("another coefficient", signed=False)
    text = sign_files({name: (folder / name).read_bytes() for name in FILES}, Ed25519PrivateKey.generate())
    (folder / SIGNATURE).write_text(text, encoding="utf-8")
    assert is_refused(folder, owner(study))
    real = verification.check_signature
    monkeypatch.setattr(verification, "check_signature", lambda files, key: real(files, None))
    assert not is_refused(folder, owner(study))


def test_a_verifier_that_does_not_look_at_the_files_is_found_out(study, tampered, monkeypatch):
    monkeypatch.setattr(verification, "check_signature", lambda files, key: "0" * 64)
    expected = {name for name, way in WAYS.items() if way.told is None}
    assert escaped(tampered, owner(study), signed=True) == expected


def test_a_verifier_that_does_not_read_the_report_is_found_out(tampered):
    assert escaped(tampered, signed=False, write_report=None) == {"a number in the report", "a name in the report"}


def test_a_verifier_that_does_not_compare_files_is_found_out(tampered, monkeypatch):
    monkeypatch.setattr(verification, "check_same_certificate", lambda *arguments: None)
    monkeypatch.setattr(verification, "check_model_facts", lambda model: None)
    assert escaped(tampered, signed=False) >= {"too many coefficients", "other bounds of the target", "as published"}


# ------------------------------------------------------------------ signing


def test_an_owner_signs_a_folder_after_reading_it(study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    sentence = one_sentence(run("verify", folder, "--sign", study / "owner.pem"))
    assert "expected a folder without a signature" in sentence
    (folder / SIGNATURE).unlink()
    (folder / "protocol.txt").write_text("approved", encoding="utf-8")
    done = run("verify", folder, "--sign", study / "owner.pem")
    assert done.code == 0, done
    assert not is_refused(folder, owner(study))
    # What was there when it was signed belongs to it.
    (folder / "protocol.txt").write_text("rejected", encoding="utf-8")
    assert is_refused(folder, owner(study))
    assert stat.S_IMODE((folder / SIGNATURE).stat().st_mode) == 0o600
    both = run("verify", folder, "--sign", study / "owner.pem", "--public-key", study / "owner.pub.pem")
    assert "sign first, then verify" in one_sentence(both)


def test_a_folder_that_contradicts_itself_is_not_signed(study, tampered):
    folder = tampered("a smaller epsilon", signed=False)
    one_sentence(run("verify", folder, "--sign", study / "owner.pem"))
    assert not (folder / SIGNATURE).exists()


def test_the_place_of_the_key_is_not_told(study):
    for name in (MODEL, REPORT):
        text = (study / "classify" / name).read_text(encoding="utf-8")
        assert "owner.pem" not in text
        assert "--sign ..." in text


def test_selections_and_scores_are_signed_and_verified(study, tmp_path):
    key, public = study / "owner.pem", study / "owner.pub.pem"
    table = ["select", study / "patients.csv", "--bounds", study / "bounds.toml", "--keep", 2, "--sign", key]
    assert run(*table, "-o", tmp_path / "selection").code == 0
    assert run("verify", tmp_path / "selection", "--public-key", public).code == 0
    path = tmp_path / "selection" / "selection.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"features": ["age"]}), encoding="utf-8")
    one_sentence(run("verify", tmp_path / "selection", "--public-key", public))
    (tmp_path / "selection" / SIGNATURE).unlink()
    assert "the same selected as" in one_sentence(run("verify", tmp_path / "selection"))

    score = tmp_path / "score.json"
    asked = ["score", study / "classify", study / "patients.csv", "--epsilon", 0.5, "-o", score, "--sign", key]
    assert run(*asked).code == 0
    assert (tmp_path / "score.signature.json").exists()
    assert run("verify", score, "--public-key", public).code == 0
    text = score.read_text(encoding="utf-8")
    score.write_text(text.replace('"value": 0', '"value": 1'), encoding="utf-8")
    one_sentence(run("verify", score, "--public-key", public))


def test_public_scores_are_signed_where_they_are_written(study, tmp_path):
    asked = ["score", study / "classify", study / "patients.csv", "--sign", study / "owner.pem"]
    assert "name one with --output" in one_sentence(run(*asked))
    assert run(*asked, "-o", tmp_path / "score.json").code == 0
    assert run("verify", tmp_path / "score.json", "--public-key", study / "owner.pub.pem").code == 0


def test_a_key_that_others_may_read_is_noted(study, tmp_path):
    folder, key = tmp_path / "model", write_key(tmp_path / "key.pem")
    shutil.copytree(study / "classify", folder)
    (folder / SIGNATURE).unlink()
    key.chmod(0o644)
    noted = run("verify", folder, "--sign", key)
    assert noted.code == 0
    assert "note: others may read key.pem" in noted.err
    (folder / SIGNATURE).unlink()
    key.chmod(0o600)
    assert run("verify", folder, "--sign", key).err == ""


def test_show_has_the_rates_of_the_certificate(study):
    shown = " ".join(run("show", study / "classify").out.split())
    certificate = verify_folder(study / "classify").certificate
    rates = certificate.attack_rates()
    assert f"mu (Gaussian) │ {certificate.mu:.3f}"[:-1] in shown
    for level, rate in zip(("0.1%", "1%", "5%"), rates.tpr, strict=True):
        stated = float(re.search(rf"([\d.]+)% at {re.escape(level)}", shown)[1])
        assert 100.0 * rate <= stated <= 101.0 * rate
    assert 100.0 * rates.advantage <= float(re.search(r"its advantage │ at most ([\d.]+)%", shown)[1])


@pytest.mark.parametrize("where", ["fit", "verify"])
def test_keys_that_cannot_be_used_are_refused_before_anything_is_spent(where, study, tmp_path, monkeypatch):
    monkeypatch.delenv("TACITURN_KEY_PASSWORD", raising=False)
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    (folder / SIGNATURE).unlink()
    start = ["verify", folder]
    if where == "fit":
        start = ["fit", study / "patients.csv", "--bounds", study / "bounds.toml", "-o", tmp_path / "new"]
    (tmp_path / "nonsense.pem").write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    (tmp_path / "large.pem").write_bytes(b"x" * 100_000)
    write_key(tmp_path / "curve.pem", ec.generate_private_key(ec.SECP256R1()))
    write_key(tmp_path / "locked.pem", password=b"open sesame")
    public = shutil.copy(study / "owner.pub.pem", tmp_path / "public.pem")
    for name, part in (
        ("nonsense.pem", "expected a private Ed25519 key in a PEM file"),
        ("curve.pem", "expected an Ed25519 key, got one of another kind"),
        ("large.pem", "expected a file of at most"),
        ("missing.pem", "expected a file that exists"),
        (public, "expected a private Ed25519 key in a PEM file"),
        ("locked.pem", "set the environment variable TACITURN_KEY_PASSWORD"),
    ):
        assert part in one_sentence(run(*start, "--sign", tmp_path / name))
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv("TACITURN_KEY_PASSWORD", "wrong")
    assert "check the password" in one_sentence(run(*start, "--sign", tmp_path / "locked.pem"))
    monkeypatch.setenv("TACITURN_KEY_PASSWORD", "open sesame")
    assert run("verify", folder, "--sign", tmp_path / "locked.pem").code == 0


def test_public_keys_that_cannot_be_used_are_refused(study, tmp_path):
    write_key(tmp_path / "curve.pem", ec.generate_private_key(ec.SECP256R1()))
    for name, part in (
        (study / "owner.pem", "expected a public key, got a private one"),
        (tmp_path / "curve.pub.pem", "expected an Ed25519 key, got one of another kind"),
        (study / "bounds.toml", "expected a public Ed25519 key in a PEM file"),
        (tmp_path / "missing", "expected a file that exists"),
    ):
        assert part in one_sentence(run("verify", study / "classify", "--public-key", name))


# ------------------------------------------------------------------ hostile folders


@pytest.mark.parametrize("name", [CERTIFICATE, MODEL, REPORT, SIGNATURE])
@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x00" * 1000, b"\xff\xfe\x00", b"[" * 200_000, b"{" * 200_000, b'{"a": 1, "a": 2}', b"null", b"[]",
        b'{"format": "taciturn-certificate"}', b'{"format": "taciturn spending"}', b"1" * 100_000,
        b'{"a": NaN}', b'"\\ud800"',
    ],
)  # fmt: skip
def test_hostile_files_are_refused_in_one_sentence(name, content, study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    (folder / name).write_bytes(content)
    one_sentence(run("verify", folder))
    if name in (CERTIFICATE, MODEL):
        one_sentence(run("verify", folder / name))


def test_what_is_no_file_is_refused(study, tmp_path):
    for name, make in (
        ("a pipe", os.mkfifo),
        ("a folder", lambda path: path.mkdir()),
        ("a link to itself", lambda path: path.symlink_to(path)),
        ("a link to a device", lambda path: path.symlink_to("/dev/zero")),
    ):
        folder = tmp_path / name
        shutil.copytree(study / "classify", folder)
        (folder / MODEL).unlink()
        make(folder / MODEL)
        assert "expected files alone in the folder" in one_sentence(run("verify", folder))
        one_sentence(run("verify", folder / MODEL))
    many = tmp_path / "many"
    many.mkdir()
    for number in range(1001):
        (many / f"{number}.txt").touch()
    assert "more than 1,000 files" in one_sentence(run("verify", many))
    (tmp_path / "empty").mkdir()
    assert "got neither" in one_sentence(run("verify", tmp_path / "empty"))
    one_sentence(run("verify", tmp_path / "missing"))
    one_sentence(run("verify", study / "patients.csv"))


def test_an_unfinished_run_is_told_apart(study, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / CERTIFICATE).write_text('{"format": "taciturn spending", "epsilon": 1}', encoding="utf-8")
    for path in (folder, folder / CERTIFICATE):
        assert "a run that did not finish; count its whole budget as spent" in one_sentence(run("verify", path))
