"""Ed25519 keys in PEM files, as ``openssl genpkey -algorithm ed25519`` writes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.core.errors import ParameterError
from taciturn.study.files import read_bounded
from taciturn.tables.files import check_readable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["NeedsPasswordError", "read_private_key", "read_public_key"]

_MOST_KEY = 1 << 16
_MAKE_ONE = "make one with openssl genpkey -algorithm ed25519 -out key.pem"


class NeedsPasswordError(ParameterError):
    """A private key is encrypted, and no password was given."""


def read_private_key(path: str | os.PathLike[str], password: bytes | None = None) -> Ed25519PrivateKey:
    """Read a private key.

    Parameters
    ----------
    path : str or path-like
        A PEM file.
    password : bytes, default=None
        For a file that is encrypted.

    Returns
    -------
    cryptography.hazmat.primitives.asymmetric.ed25519.Ed25519PrivateKey
        It signs.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text, shown = _read("key", path), str(path)
    if password is None and b"ENCRYPTED" in text:
        raise NeedsPasswordError("key", shown, "a password for a key that is encrypted", "give its password")
    try:
        key = load_pem_private_key(text, password if b"ENCRYPTED" in text else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if password is not None and b"ENCRYPTED" in text:
            remedy = "check the password and the file"
            raise ParameterError("key", shown, "an Ed25519 key and its own password", remedy) from None
        raise ParameterError("key", shown, "a private Ed25519 key in a PEM file", _MAKE_ONE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError("key", shown, "an Ed25519 key, got one of another kind", _MAKE_ONE)
    return key


def read_public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """Read a public key from a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text, shown = _read("public_key", path), str(path)
    remedy = "ask its owner for what openssl pkey -in key.pem -pubout wrote"
    if b"PRIVATE" in text:
        raise ParameterError("public_key", shown, "a public key, got a private one", remedy)
    try:
        key = load_pem_public_key(text)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ParameterError("public_key", shown, "a public Ed25519 key in a PEM file", remedy) from None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError("public_key", shown, "an Ed25519 key, got one of another kind", remedy)
    return key


def _read(parameter: str, path: str | os.PathLike[str]) -> bytes:
    check_readable(parameter, Path(path))
    # Keys are often links; what they hold is checked, and they are not part of a folder that somebody else wrote.
    return read_bounded(Path(os.path.realpath(path)), _MOST_KEY)
