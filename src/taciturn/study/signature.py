"""A manifest of files with the SHA-256 of each, signed with Ed25519.

``signature.json`` names its public key for information. Anybody can make a key and sign with it, so that a signature
says something only to a reader who has the owner's key from elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import CertificateError
from taciturn.core.strict_json import parse_strictly
from taciturn.study.files import SIGNATURE_NAME, StudyFiles
from taciturn.tables.words import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["SIGNATURE_NAME", "Manifest", "check_signature", "key_digits", "sign_digests", "sign_files"]

_FORMAT = "taciturn signature"
_VERSION = 1
_KEYS = ("format", "version", "algorithm", "files", "public_key", "signature")
_MOST_FILES = 1000
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a signature says: the digests of files by name, the key that it names, and the signature itself."""

    files: Mapping[str, str]
    public_key: str
    signature: str

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        return _message(self.files)


def sign_files(files: Mapping[str, bytes], key: Ed25519PrivateKey) -> str:
    """Sign files.

    Parameters
    ----------
    files : mapping of str to bytes
        Contents by name.
    key : Ed25519PrivateKey
        See :func:`read_private_key`.

    Returns
    -------
    str
        The text of ``signature.json``.
    """
    return sign_digests({name: hashlib.sha256(content).hexdigest() for name, content in files.items()}, key)


def sign_digests(digests: Mapping[str, str], key: Ed25519PrivateKey) -> str:
    """Sign files by the SHA-256 of each."""
    digests = {name: digests[name] for name in sorted(digests)}
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "algorithm": "Ed25519",
        "files": digests,
        "public_key": key_digits(key.public_key()),
        "signature": key.sign(_message(digests)).hex(),
    }
    return json.dumps(content, indent=2) + "\n"


def key_digits(key: Ed25519PublicKey) -> str:
    """A public key as 64 hexadecimal digits."""
    return key.public_bytes_raw().hex()


def check_signature(files: StudyFiles, trusted: Ed25519PublicKey | None) -> str:
    """Raise unless the signature is one of these very files; return the digits of the key that made it.

    Parameters
    ----------
    files : StudyFiles
        The files, with a signature among them.
    trusted : Ed25519PublicKey or None
        The key of the owner. None: the key that the signature names, which shows only that the files have not changed
        since somebody signed them.
    """
    manifest = _read(files.text(SIGNATURE_NAME))
    if trusted is not None and manifest.public_key != key_digits(trusted):
        raise CertificateError(
            f"{SIGNATURE_NAME}: expected a signature by the key that was given, got one by another key; do not rely on "
            "these files, and ask their owner."
        )
    _check_valid(manifest, _key(manifest.public_key) if trusted is None else trusted)
    found = {name: digest for name, digest in files.digests.items() if name != SIGNATURE_NAME}
    for name, digest in found.items():
        if name not in manifest.files:
            raise CertificateError(
                f"{quoted(name)}: expected a file that the signature covers, got one that it does not; remove it, and "
                "do not rely on it."
            )
        if manifest.files[name] != digest:
            raise CertificateError(
                f"{quoted(name)}: expected the file that was signed, got another; do not rely on it, and ask its owner "
                "for a fresh copy."
            )
    missing = sorted(manifest.files.keys() - found.keys())
    if files.whole and missing:
        raise CertificateError(
            f"{quoted(missing[0])}: expected every file that was signed, and it is missing; ask the owner for a fresh "
            "copy."
        )
    return manifest.public_key


def _check_valid(manifest: Manifest, key: Ed25519PublicKey) -> None:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(bytes.fromhex(manifest.signature), manifest.message)
    except InvalidSignature:
        raise CertificateError(
            f"{SIGNATURE_NAME}: expected a signature of the files that it lists, got one of something else; do not "
            "rely on these files, and ask their owner."
        ) from None


def _key(digits: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(digits))


def _message(files: Mapping[str, str]) -> bytes:
    """Format and version are part of it, so that nothing else that the key signs can be taken for it."""
    content = {"format": _FORMAT, "version": _VERSION, "files": dict(files)}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")


def _read(text: str) -> Manifest:
    content = parse_strictly(text)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _damaged(f"JSON with format {_FORMAT!r}")
    if content.get("version") != _VERSION or isinstance(content["version"], bool):
        raise _damaged(f"version {_VERSION}")
    if sorted(content) != sorted(_KEYS) or content["algorithm"] != "Ed25519":
        raise _damaged("the fields of an Ed25519 signature")
    files = content["files"]
    if not isinstance(files, dict) or not 0 < len(files) <= _MOST_FILES:
        raise _damaged("the names and digests of files")
    for name, digest in files.items():
        if not 0 < len(name) <= _LONGEST_NAME or name == SIGNATURE_NAME or not _has_digits(digest, 64):
            raise _damaged("a SHA-256 digest for each name")
    if not _has_digits(content["public_key"], 64) or not _has_digits(content["signature"], 128):
        raise _damaged("a key and a signature in hexadecimal digits")
    return Manifest(files, content["public_key"], content["signature"])


def _has_digits(value: Any, count: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{count}}}", value) is not None


def _damaged(expected: str) -> CertificateError:
    return CertificateError(f"{SIGNATURE_NAME}: expected {expected}, got something else; ask for a fresh copy.")
