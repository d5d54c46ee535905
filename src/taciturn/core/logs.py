"""The progress of a computation under the logger ``taciturn``: its phases and public facts, never what depends on data.

Whoever reads a log may not be allowed to see the data, so that a message is a release like any other. Messages and
their number follow from public facts; the times that :mod:`logging` adds to them are a side channel, as running time
is, and certificates say so.
"""

from __future__ import annotations

import logging

__all__ = ["log_phase"]

_LOGGER = logging.getLogger("taciturn")
_LOGGER.addHandler(logging.NullHandler())


def log_phase(what: str, phase: str, details: str = "") -> None:
    """Log that a computation enters a phase, which the record has as ``phase``; ``details`` are public facts."""
    said = f"{phase} {details}" if details else phase
    _LOGGER.info("%s: %s", what, said, extra={"phase": phase})
