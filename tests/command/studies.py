"""Signed folders of fits for tests of verification, and how these ask for a refusal."""

from __future__ import annotations

from commands import run, write_patients
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from taciturn.app.report.model import model_report
from taciturn.app.verify import read_public_key, verify_folder
from taciturn.core.errors import TaciturnError

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


def make_study(home):
    """A key, and signed folders of three fits by its owner."""
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
