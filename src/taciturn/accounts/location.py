"""Where an account is: a database, and a name in it.

URLs are written as SQLAlchemy writes them: ``sqlite:///study.db`` for a file beside the working directory,
``sqlite:////data/study.db`` for an absolute path, ``postgresql://user@host/database``. A name follows after ``#``.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from taciturn.core.errors import ParameterError

__all__ = ["check_name", "check_url", "hide_password", "location_of", "sqlite_path"]

_SQLITE = "sqlite:///"
_POSTGRESQL = re.compile(r"(postgresql|postgres)(\+psycopg)?://")
_LONGEST_NAME = 200


def location_of(text: str) -> tuple[str, str]:
    """The URL and the name in ``"sqlite:///study.db#patients-2026"``."""
    url, mark, name = text.rpartition("#")
    if not mark:
        raise ParameterError(
            "account", hide_password(text), "a URL and a name with # between them", "write sqlite:///study.db#name"
        )
    return check_url(url, "account"), check_name(name, "account")


def check_url(url: object, parameter: str = "url") -> str:
    """The URL of a database that accounts can be in; the parameter is named where it is wrong."""
    if isinstance(url, str):
        if url.startswith(_SQLITE) and url not in (_SQLITE, f"{_SQLITE}:memory:") and "?" not in url:
            return url
        if _POSTGRESQL.match(url):
            return url
    raise ParameterError(
        parameter,
        hide_password(url) if isinstance(url, str) else type(url).__name__,
        "sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        "name a database that outlasts this process",
    )


def check_name(name: object, parameter: str = "name") -> str:
    """The name of an account; the parameter is named where it is wrong."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and "#" not in name
        and unicodedata.normalize("NFC", name).strip() == name
    ):
        return name
    raise ParameterError(
        parameter, name, f"1 to {_LONGEST_NAME} printable characters, without # and blanks at the ends", "rename it"
    )


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite database; None for a server."""
    return Path(url.removeprefix(_SQLITE)).absolute() if url.startswith(_SQLITE) else None


def hide_password(url: str) -> str:
    """A URL that may be printed."""
    # A password may hold an @ that was not escaped.
    shown = re.sub(r"(://[^:/@?]*):[^/?]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:[^=&]*password|passfile)=)[^&]*", r"\1***", shown)
