"""Keys for commands that sign what they write."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.cli.output import replace_file
from taciturn.cli.screen import print_note
from taciturn.core.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["SIGNED", "read_signing_key", "sign_beside"]

SIGNED = ", signature.json"

_VARIABLE = "TACITURN_KEY_PASSWORD"


def read_signing_key(path: Path | None) -> Ed25519PrivateKey | None:
    """Read the key of ``--sign`` before anything is spent; an encrypted one asks for its password."""
    if path is None:
        return None
    from taciturn.study.keys import NeedsPasswordError, read_private_key

    if os.name == "posix" and path.is_file() and path.stat().st_mode & 0o077:
        print_note(f"others may read {path.name}, and sign in your name; chmod 600 keeps it to you.")
    given = os.environ.get(_VARIABLE)
    try:
        return read_private_key(path, None if given is None else given.encode())
    except NeedsPasswordError:
        if not sys.stdin.isatty():
            remedy = f"set the environment variable {_VARIABLE}, or run the command in a terminal"
            raise ParameterError("sign", str(path), "the password of a key that is encrypted", remedy) from None
    from getpass import getpass

    return read_private_key(path, getpass(f"password of {path.name}: ").encode())


def sign_beside(path: Path, text: str, key: Ed25519PrivateKey | None, *, public: bool) -> None:
    """Sign one file, if there is a key: the signature of ``score.json`` is ``score.signature.json``."""
    if key is not None:
        from taciturn.study import sign_files
        from taciturn.study.files import signature_beside

        replace_file(signature_beside(path), sign_files({path.name: text.encode()}, key), public=public)
