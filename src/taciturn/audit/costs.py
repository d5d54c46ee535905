"""Whether a certificate covers the releases that a fit made.

A certificate states epsilon and delta, and lists releases from which these follow. The cost of a recorded release
follows from its own parameters. The recorded releases are covered in three cases:

- an accountant proves the claim of the certificate from the recorded releases alone, in their order;
- the certificate is that of a privacy filter (:mod:`taciturn.accounting.filter`), and the budget of the filter covers
  the recorded releases in their order;
- the certificate does not rely on an order, and each recorded release matches one of its lines: the same kind of noise,
  at least as large, and no line is used more often than it states. This is for releases with a joint cost, such as the
  two quantiles of a column, where one record moves only one of them far; the lines state the joint cost.

A release whose cost does not follow from its parameters is not covered.

If a certificate lists releases about two halves of the records, a record pays for those about its own half. So do the
recorded releases: those about one half (:func:`taciturn.mechanisms.transcript.block_of_records`) are compared with the
lines of either half, never with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from taciturn.accounting import proves
from taciturn.accounting.filter import chain_cost
from taciturn.certificate import Certificate, certificate_of
from taciturn.certificate.claim import check_claim
from taciturn.certificate.release import Release, lines_of_a_record
from taciturn.core.errors import CertificateError
from taciturn.events import (
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    OppositeSelectionsEvent,
    PermuteAndFlipEvent,
    PureEvent,
    fold,
    for_group,
)

__all__ = ["certificate_in", "uncovered"]

Recorded = tuple[object, np.ndarray]
"""A mechanism and its value before noise."""

# Quotients of rounded quotients, added up over the steps of a pipeline; the same as for the lines of a filter.
_ROUNDING = 1e-9


def certificate_in(result: Any) -> Certificate | None:
    """Find the certificate of an estimator, a pipeline or a score, or the result itself; None if there is none."""
    for found in (result, getattr(result, "certificate", None), getattr(result, "certificate_", None)):
        if isinstance(found, Certificate):
            return found
    try:
        return certificate_of(result)
    except CertificateError:
        return None


def uncovered(certificate: Certificate, releases: Iterable[Recorded]) -> str | None:
    """Describe the releases that a certificate does not cover in one sentence; None if it covers them all.

    Statements without a proved number cover everything.
    """
    if not certificate.is_proved or math.isinf(certificate.epsilon):
        return None
    events = []
    for mechanism, value in releases:
        event = _event_of(mechanism, value)
        if event is None:
            return f"{mechanism!r} does not say what it costs"
        events.append(event)
    if not events or _proved(certificate, ComposedEvent(tuple(events))):
        return None
    if _holds(certificate) and any(
        _bought(lines, events) or (not certificate.ordered and _listed(lines, events))
        for lines in lines_of_a_record(certificate.events)
    ):
        return None
    n = sum(fold(ComposedEvent(tuple(events))).values())
    return (
        f"{n} release{'' if n == 1 else 's'} cost more than epsilon={certificate.epsilon:g} at "
        f"delta={certificate.delta:g}, which the certificate states"
    )


def _event_of(mechanism: Any, value: np.ndarray) -> Event | None:
    if hasattr(mechanism, "event_of"):
        event = mechanism.event_of(max(value.size, 1))
    else:
        event = getattr(mechanism, "event", None)
    return event if isinstance(event, Event) else None


def _proved(certificate: Certificate, event: Event) -> bool:
    """As certificates are checked (:mod:`taciturn.certificate.claim`), up to rounding."""
    try:
        with np.errstate(all="ignore"):
            whole = for_group(event, certificate.group_size)
            stated = certificate.epsilon * (1.0 + _ROUNDING)
            return proves(whole, stated, certificate.delta, ordered=certificate.ordered)
    except (ArithmeticError, ValueError):
        return False


def _holds(certificate: Certificate) -> bool:
    """Whether the claim of the certificate follows from its own lines."""
    try:
        check_claim(certificate)
    except CertificateError:
        return False
    return True


def _bought(lines: Sequence[Release], events: Iterable[Event]) -> bool:
    """Whether the budget of a privacy filter, which the lines spend, covers the releases."""
    spent = [(line.count, line.event) for line in lines if isinstance(line.event, GaussianEvent)]
    if len(spent) < len(lines) or any(line.remaining is None for line in lines):
        return False
    prices = math.fsum(count / event.noise_multiplier**2 for count, event in spent)
    distance = math.fsum(count * event.distance for count, event in spent)
    single = [event for event, count in _runs(events) for _ in range(count)]
    used = math.fsum(getattr(event, "distance", 0.0) for event in single)
    return chain_cost(single) <= prices * (1.0 + _ROUNDING) and used <= distance * (1.0 + _ROUNDING)


def _runs(events: Iterable[Event]) -> Iterator[tuple[Event, int]]:
    """Single releases of each event, and their numbers."""
    for event in events:
        yield from fold(event).items()


def _listed(lines: Sequence[Release], events: Iterable[Event]) -> bool:
    """Whether every release can be given a line of its own, with as much noise of the same kind."""
    stated: dict[type[Event], list[float]] = {}
    for release in lines:
        kind, scale = type(release.event), _scale_of(release.event)
        if release.noise == "Gumbel" and kind is not ExponentialEvent:
            # The price of a selection in a filter, or of two opposite ones, is another kind of event.
            kind, scale = ExponentialEvent, release.scale
        selections = 2 if isinstance(release.event, OppositeSelectionsEvent) else 1
        stated.setdefault(kind, []).extend([scale] * (selections * release.count))
    made: dict[type[Event], list[float]] = {}
    for event, count in fold(ComposedEvent(tuple(events))).items():
        made.setdefault(type(event), []).extend([_scale_of(event)] * count)
    # In increasing order of scales: if any assignment works, then that of smallest to smallest does.
    return all(
        len(scales) <= len(stated.get(kind, ()))
        and all(
            scale >= line * (1.0 - _ROUNDING) for scale, line in zip(sorted(scales), sorted(stated[kind]), strict=False)
        )
        for kind, scales in made.items()
    )


def _scale_of(event: Event) -> float:
    """Scale of the noise in units of the sensitivity; NaN, which covers nothing, where an event has none."""
    if isinstance(event, GaussianEvent):
        return event.noise_multiplier
    if isinstance(event, ExponentialEvent | LaplaceMaxEvent | PermuteAndFlipEvent):
        return 2.0 / event.epsilon
    return 1.0 / event.epsilon if isinstance(event, PureEvent) else math.nan
