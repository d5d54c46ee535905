"""A keyed fingerprint of a table, so that its owner notices it under a second name."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from taciturn.core.errors import ParameterError

__all__ = ["fingerprint_of"]

_LEAST_KEY, _MOST_KEY = 16, 1 << 16


def fingerprint_of(table: Path, key: Path) -> str:
    """HMAC-SHA256 of the bytes of a file, in hexadecimal digits.

    It is a function of the data that no budget pays for: whoever has the key can tell whether a guess of the whole file
    is right. So it is made when an account is opened, by its owner, and never by a fit.
    """
    from taciturn.tables.files import check_readable

    check_readable("fingerprint", table)
    check_readable("key", key)
    with key.open("rb") as file:
        secret = file.read(_MOST_KEY + 1)
    if not _LEAST_KEY <= len(secret) <= _MOST_KEY:
        raise ParameterError(
            "key", str(key), f"{_LEAST_KEY} to {_MOST_KEY} random bytes", "make it with openssl rand 32"
        )
    with table.open("rb") as file:
        return hashlib.file_digest(file, lambda: hmac.new(secret, digestmod="sha256")).hexdigest()
