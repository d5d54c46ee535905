"""How far a guarantee can be trusted."""

from __future__ import annotations

from typing import Literal

from taciturn.events import Event, NotPrivateEvent, ObjectivePerturbationEvent, fold

__all__ = ["STATUSES", "Status", "status_of"]

Status = Literal["proved", "proved under a numerical assumption", "as published", "not private"]
STATUSES: tuple[Status, ...] = ("proved", "proved under a numerical assumption", "as published", "not private")
"""The strongest first: what is composed has the last one of its parts."""


def status_of(event: Event) -> Status:
    """How far a guarantee for these releases can be trusted.

    "proved" unless a release has no protection, or is the minimiser of a perturbed objective: the proof for that one
    takes the accuracy of a computation in double precision for granted.
    """
    kinds = {type(part) for part in fold(event)}
    if NotPrivateEvent in kinds:
        return "not private"
    return "proved under a numerical assumption" if ObjectivePerturbationEvent in kinds else "proved"
