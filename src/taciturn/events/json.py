"""Events as JSON, and back."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from typing import Any

from taciturn.core.errors import CertificateError
from taciturn.events.kinds import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RepeatedEvent,
)

__all__ = ["event_from_dict", "event_to_dict"]

_KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        ExponentialEvent,
        LaplaceMaxEvent,
        PermuteAndFlipEvent,
        PureEvent,
        ApproximateEvent,
        GaussianEvent,
        ObjectivePerturbationEvent,
        OppositeSelectionsEvent,
        NotPrivateEvent,
        ComposedEvent,
        ParallelEvent,
        RepeatedEvent,
    )
}


def event_to_dict(event: Event) -> dict[str, Any]:
    """A JSON-ready description: ``{"kind": "gaussian", "noise_multiplier": 4.0, "distance": 0.0}``."""
    described: dict[str, Any] = {"kind": event.kind}
    for field in fields(event):  # type: ignore[arg-type]
        value = getattr(event, field.name)
        if isinstance(value, Event):
            value = event_to_dict(value)
        elif isinstance(value, tuple):
            value = [event_to_dict(part) for part in value]
        described[field.name] = value
    return described


_UNSTATED_DISTANCES = {GaussianEvent.kind: 2.0**-92, ExponentialEvent.kind: 2.0**-110}
"""What stands for a distance that version 0.1 did not write down: 2**26 Gaussian values, a step of Frank-Wolfe."""


def event_from_dict(described: dict[str, Any], *, exact: bool = False) -> Event:
    """The inverse of :func:`event_to_dict`.

    Events written by version 0.1 have no ``distance``; they get the largest that their samplers can have had, or none
    where the release is known to be ``exact``: at delta = 0 only samplers without distance were used.
    """
    kind = described.get("kind") if isinstance(described, dict) else described
    if not isinstance(described, dict) or not isinstance(kind, str) or kind not in _KINDS:
        known = ", ".join(sorted(_KINDS))
        raise CertificateError(
            f"event kind={reprlib.repr(kind)}: expected one of {known}; "
            "read this certificate with the version of taciturn that wrote it."
        )
    values = {name: value for name, value in described.items() if name != "kind"}
    nested = values.pop("events", None), values.pop("event", None)
    damaged = CertificateError(
        f"event kind={kind!r}: expected its own fields, each of its type; the certificate is damaged, ask for a fresh "
        "copy."
    )
    if not all(isinstance(value, int | float) for value in values.values()):
        raise damaged
    if nested[0] is not None:
        if not isinstance(nested[0], list | tuple):
            raise damaged
        values["events"] = tuple(event_from_dict(part, exact=exact) for part in nested[0])
    if nested[1] is not None:
        values["event"] = event_from_dict(nested[1], exact=exact)
    if kind in _UNSTATED_DISTANCES and not exact:
        values.setdefault("distance", _UNSTATED_DISTANCES[kind])
    try:
        return _KINDS[kind](**values)
    except TypeError:
        raise damaged from None
