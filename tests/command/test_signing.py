"""Signing folders and files, keys that cannot be used, and folders that are no folders of a fit."""

import json
import os
import re
import shutil
import stat

import pytest
from commands import one_sentence, run
from cryptography.hazmat.primitives.asymmetric import ec
from studies import is_refused, make_study, owner, write_key
from tampering import CERTIFICATE, MODEL, REPORT, SIGNATURE, WAYS

from taciturn.app.verify import verify_folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"))


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


def test_a_folder_that_contradicts_itself_is_not_signed(study, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(study / "classify", folder)
    (folder / SIGNATURE).unlink()
    WAYS["a smaller epsilon"].change(folder, study / "other")
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
    shown = " ".join(run("show", study / "classify").out.replace("│", " ").split())
    certificate = verify_folder(study / "classify").certificate
    rates = certificate.attack_rates()
    assert f"mu (Gaussian) {certificate.mu:.3f}"[:-1] in shown
    for level, rate in zip(("0.1%", "1%", "5%"), rates.tpr, strict=True):
        stated = float(re.search(rf"([\d.]+)% at {re.escape(level)}", shown)[1])
        assert 100.0 * rate <= stated <= 101.0 * rate
    assert 100.0 * rates.advantage <= float(re.search(r"its advantage at most ([\d.]+)%", shown)[1])


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
