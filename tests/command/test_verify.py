"""``taciturn verify``: a folder as it was written passes, and tampered ones are refused."""

import json
import shutil
from pathlib import Path

import pytest
from commands import one_sentence, run
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from studies import is_refused, make_study, owner, refusal
from tampering import CERTIFICATE, FILES, MODEL, SIGNATURE, WAYS

from taciturn.app import verify
from taciturn.app.report.model import model_report
from taciturn.app.verify import sign_files, verify_folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"))


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


@pytest.mark.parametrize("options", [[], ["--inference"], ["--private-bounds", "0.5"]], ids=" ".join)
def test_folders_about_persons_pass_and_not_without_their_column(options, study, tmp_path):
    lines = (study / "patients.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"patient,{lines[0]}", *(f"p{place // 2},{line}" for place, line in enumerate(lines[1:]))]
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    text = (study / "bounds.toml").read_text(encoding="utf-8")
    if "--private-bounds" in options:
        text = text.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")
    (tmp_path / "bounds.toml").write_text(f'{text}\n[person]\ncolumn = "patient"\n', encoding="utf-8")
    folder = tmp_path / "model"
    done = run(
        "fit", tmp_path / "visits.csv", "--bounds", tmp_path / "bounds.toml", "--epsilon", 20, "-o", folder, *options
    )
    assert done.code == 0, done
    assert verify_folder(folder, write_report=model_report).certificate.unit == "person"
    model = json.loads((folder / MODEL).read_text(encoding="utf-8"))
    model["bounds"]["person"]["column"] = "doctor"
    (folder / MODEL).write_text(json.dumps(model), encoding="utf-8")
    assert "expected the same person column" in refusal(folder / MODEL)


def test_models_of_0_2_pass(tmp_path):
    written = json.loads((Path(__file__).parents[1] / "data" / "written_by_0_2.json").read_text(encoding="utf-8"))
    for content in written["models"].values():
        path = tmp_path / "model.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        assert refusal(path) is None


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
    monkeypatch.setattr("taciturn.privacy.certificate.check_claim", lambda certificate: None)
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
    real = verify.check_signature
    monkeypatch.setattr(verify, "check_signature", lambda files, key: real(files, None))
    assert not is_refused(folder, owner(study))


def test_a_verifier_that_does_not_look_at_the_files_is_found_out(study, tampered, monkeypatch):
    monkeypatch.setattr(verify, "check_signature", lambda files, key: "0" * 64)
    expected = {name for name, way in WAYS.items() if way.told is None}
    assert escaped(tampered, owner(study), signed=True) == expected


def test_a_verifier_that_does_not_read_the_report_is_found_out(tampered):
    assert escaped(tampered, signed=False, write_report=None) == {"a number in the report", "a name in the report"}


def test_a_verifier_that_does_not_compare_files_is_found_out(tampered, monkeypatch):
    monkeypatch.setattr(verify, "check_same_certificate", lambda *arguments: None)
    monkeypatch.setattr(verify, "check_model_facts", lambda *arguments: None)
    assert escaped(tampered, signed=False) >= {"too many coefficients", "other bounds of the target", "as published"}
