"""What was found about the files of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.certificate import Certificate
from taciturn.core.errors import CertificateError

__all__ = ["FAILS", "HOLDS", "NOT_CHECKED", "CheckedItem", "Verification", "VerificationError"]

HOLDS, FAILS, NOT_CHECKED = "holds", "refused", "not checked"


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What: "certificate", "model", "selection", "score", "report", "account", "signature", "other files".
    outcome : {"holds", "refused", "not checked"}
        Whether it holds.
    words : str
        What was found, in words.
    """

    name: str
    outcome: str
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked of a folder or a file, and what was not.

    Parameters
    ----------
    items : tuple of CheckedItem
        One after the other.
    certificate : Certificate or None
        The certificate, if it holds.
    signed_by : str or None
        The owner's public key in hexadecimal digits, if it was given and signed these files.
    """

    items: tuple[CheckedItem, ...]
    certificate: Certificate | None
    signed_by: str | None

    @property
    def holds(self) -> bool:
        """Whether nothing was refused."""
        return all(item.outcome != FAILS for item in self.items)


class VerificationError(CertificateError):
    """Files contradict themselves, one another or their signature; ``verification`` has all that was looked at."""

    verification: Verification | None = None
