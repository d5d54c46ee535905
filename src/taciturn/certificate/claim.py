"""Whether the events of a certificate prove what it states.

A certificate can come from anywhere: a file, a colleague, ``dataclasses.replace``. Nobody has to believe it, because
its events are enough to account for it again.

How close is close enough? An accountant keeps back a millionth of delta, so that rounding never matters. To check a
claim half of that is kept back: whatever passes is proved at its own delta all the same, and another machine's last
digits do no harm. At delta = 0 epsilons are added without rounding on the way, and a claim has to meet the sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.accounting import best_bound, proves
from taciturn.accounting.filter import Spend, chain_holds
from taciturn.certificate.release import MOST_REPEATS, Part, Release, event_of_releases
from taciturn.certificate.status import STATUSES, status_of
from taciturn.core.errors import CertificateError
from taciturn.events import (
    MOST_ALTERNATIVES,
    ComposedEvent,
    Event,
    GaussianEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    RepeatedEvent,
    count_alternatives,
    fold,
    for_group,
)

if TYPE_CHECKING:
    from taciturn.certificate.certificate import Certificate

__all__ = ["check_claim", "check_work", "facts_of_parts", "with_parts"]

_PART = re.compile(r"part \d+")
# A privacy filter is exhausted when no larger share of it remains.
_EXHAUSTED = 1e-9
# Accounting takes time in proportion to these; fits stay far below them.
_MOST_RUNS = 4_000
_MOST_STEPS = 2_000_000
_MOST_RUNS_OF_ALTERNATIVES = 100_000
_STEPS_ONE_BY_ONE = 100_000
# An objective is a polynomial with a term for each record that may differ, to the power of its count.
_MOST_RECORDS_OF_OBJECTIVES = 1_000
_MOST_TERMS_OF_OBJECTIVES = 1_000
_MOST_REPEATS_OF_OBJECTIVES = 100_000
_MOST_TERMS_OF_ONE = 512


def check_claim(certificate: Certificate) -> None:
    """Raise unless the certificate's events prove what it states.

    Of a published claim that is ``proved_epsilon``; the claim itself is the authors'. Statements without a number to
    prove ("not private", a published claim of which nothing is known) pass, if they say so consistently.

    Raises
    ------
    CertificateError
        If a status, a relation or an epsilon does not follow from the events.
    """
    event = certificate.event
    check_work(event, certificate.group_size)
    _check_relation(certificate, event)
    _check_filters(certificate)
    if (certificate.status == "not private") != math.isinf(certificate.epsilon):
        raise CertificateError(
            f"epsilon={certificate.epsilon!r}: expected infinity where the status is 'not private', and a number "
            "elsewhere; the certificate contradicts itself, ask for the one of the fit."
        )
    if certificate.proved_epsilon is not None and certificate.status != "as published":
        raise CertificateError(
            f"proved_epsilon={certificate.proved_epsilon!r}: expected none except beside a published claim; the "
            "certificate contradicts itself, ask for the one of the fit."
        )
    if certificate.is_proved:
        _check_status(certificate, event)
        _check_proof(certificate, certificate.epsilon, "epsilon")
    elif certificate.proved_epsilon is not None and not math.isinf(certificate.proved_epsilon):
        _check_proof(certificate, certificate.proved_epsilon, "proved_epsilon")


def with_parts(certificate: Certificate) -> Certificate:
    """The certificate with the parts whose sum it is, if it was written by version 0.1, which did not name them.

    How many releases a part made is known of public bounds, which make none, and of private scores, which make one
    that is pure. What remains belongs to the other parts. Where these stand apart from one another, nothing is known
    of either, and the certificate is left as it is.
    """
    stated = certificate.epsilon if certificate.is_proved else certificate.proved_epsilon
    if certificate.bound != "sum" or certificate.parts or stated is None or math.isinf(stated):
        return certificate
    check_work(certificate.event, certificate.group_size)
    if _proved_at_once(certificate, stated):
        return certificate
    counts = [_releases_of(facts) for facts in facts_of_parts(certificate.public)]
    others = [at for at, count in enumerate(counts) if count is None]
    if not others or others[-1] - others[0] >= len(others):
        return certificate
    known = [count for count in counts if count is not None]
    before, rest = sum(known[: others[0]]), len(certificate.events) - sum(known)
    scores = [
        Part(_needed(certificate, release.total, 0.0, True), 0.0, 1, True)
        for release in (*certificate.events[:before], *certificate.events[before + rest :])
    ]
    epsilon = stated - math.fsum(score.epsilon for score in scores)
    if rest < 0 or not epsilon > 0.0:
        return certificate
    # Down by the last digit, so that the sum is not more than what is stated.
    remaining = Part(math.nextafter(epsilon, 0.0), certificate.delta, rest, len(others) == 1)
    parts = (*scores[:before], remaining, *scores[before:])
    found = replace(certificate, parts=parts)
    events = _events_of(found, [part.releases for part in parts])
    return found if all(_proves(found, event, part) for event, part in zip(events, parts, strict=True)) else certificate


# ------------------------------------------------------------------ what is stated


def _check_relation(certificate: Certificate, event: Event) -> None:
    """An objective's event says whether a record was replaced; the others are stated relative to the sensitivity."""
    replaced = certificate.relation == "replace-one"
    if any(isinstance(part, ObjectivePerturbationEvent) and part.replaced != replaced for part in fold(event)):
        raise CertificateError(
            f"relation={certificate.relation!r}: expected the relation that its events were accounted for, got "
            "another; the certificate contradicts itself, ask for the one of the fit."
        )


def _check_filters(certificate: Certificate) -> None:
    """Lines that a privacy filter paid for: the noise that each states costs what its event says.

    What remains leads from line to line, and to nothing at the end of each filter. A filter pays for releases about one
    half of the records, or about all.
    """
    try:
        held = _filters_hold(certificate.events)
    except ArithmeticError:
        held = False
    if not held:
        raise CertificateError(
            "events: expected noise that costs what is stated for it, by what remained of the budget; do not rely on "
            "this certificate, and ask for the one of the fit."
        )


def _filters_hold(releases: Iterable[Release]) -> bool:
    chain: list[Spend] = []
    spent, half = 0.0, None
    for release in releases:
        if release.remaining is None and not chain:
            continue
        if release.remaining is None or not isinstance(release.event, GaussianEvent) or release.scale == 0.0:
            return False
        if chain and release.half != half:
            return False
        half = release.half
        selection = release.noise == "Gumbel"
        kind, parameter = ("selection", 2.0 / release.scale) if selection else ("gaussian", release.scale)
        chain.append(Spend(release.what, kind, parameter, release.count, release.event, release.remaining))
        spent += chain[-1].price
        if release.remaining <= _EXHAUSTED * spent:
            if not chain_holds(chain):
                return False
            chain, spent = [], 0.0
    return not chain


def _check_status(certificate: Certificate, event: Event) -> None:
    strongest = status_of(event)
    if STATUSES.index(certificate.status) < STATUSES.index(strongest):
        raise CertificateError(
            f"status={certificate.status!r}: expected {strongest!r}, the most that its events allow; ask for the "
            "certificate of the fit."
        )
    if certificate.epsilon > 0.0 and not certificate.events:
        raise CertificateError(
            f"epsilon={certificate.epsilon!r}: expected 0 where no release is listed; releases are missing, ask for "
            "the certificate of the fit."
        )


def _check_proof(certificate: Certificate, stated: float, name: str) -> None:
    if certificate.parts:
        _check_parts(certificate, stated, name)
        return
    if _proved_at_once(certificate, stated):
        return
    needed = _needed(certificate, certificate.event, certificate.delta, certificate.ordered)
    if math.isinf(needed):
        raise CertificateError(
            f"{name}={stated!r}: expected a number that its events prove, but at delta={certificate.delta:g} they "
            "prove none; do not rely on this certificate, and fit again with a smaller epsilon."
        )
    raise CertificateError(
        f"{name}={stated!r}: expected at least {_above(needed)}, which its events prove at "
        f"delta={certificate.delta:g}; do not rely on this certificate, and ask for the one of the fit."
    )


def _check_parts(certificate: Certificate, stated: float, name: str) -> None:
    """Basic composition: each part holds by itself, and epsilons and deltas add up."""
    parts = certificate.parts
    if sum(part.releases for part in parts) != len(certificate.events):
        raise CertificateError("parts: expected them to cover every release once; ask for the certificate of the fit.")
    if (
        math.fsum(part.epsilon for part in parts) > stated
        or math.fsum(part.delta for part in parts) > certificate.delta
    ):
        raise CertificateError(
            f"{name}={stated!r}: expected at least the sums of its parts' epsilons and deltas; do not rely on this "
            "certificate, and ask for the ones of its parts."
        )
    events = _events_of(certificate, [part.releases for part in parts])
    for part, event in zip(parts, events, strict=True):
        if not _proves(certificate, event, part):
            raise CertificateError(
                f"parts: expected each epsilon to follow from its events, but {part.epsilon!r} does not at "
                f"delta={part.delta:g}; do not rely on this certificate, and ask for the ones of its parts."
            )


# ------------------------------------------------------------------ proofs


def _proves(certificate: Certificate, event: Event, part: Part) -> bool:
    """Whether an event, for groups of the certificate's size, proves what a part states."""
    # Hostile numbers may overflow on the way to an infinite epsilon; then nothing is proved.
    try:
        with np.errstate(all="ignore"):
            return proves(for_group(event, certificate.group_size), part.epsilon, part.delta, ordered=part.ordered)
    except (ArithmeticError, ValueError):
        return False


def _proved_at_once(certificate: Certificate, stated: float) -> bool:
    whole = Part(stated, certificate.delta, len(certificate.events), certificate.ordered)
    return _proves(certificate, certificate.event, whole)


def _needed(certificate: Certificate, event: Event, delta: float, ordered: bool) -> float:
    try:
        with np.errstate(all="ignore"):
            return best_bound(for_group(event, certificate.group_size), delta, ordered=ordered).epsilon
    except (ArithmeticError, ValueError):
        return math.inf


def _events_of(certificate: Certificate, counts: Iterable[int]) -> Iterator[Event]:
    """The certificate's events in parts of so many lines each."""
    first = 0
    for count in counts:
        yield event_of_releases(certificate.events[first : first + count])
        first += count


def facts_of_parts(public: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The public facts of each of the certificates that were composed, and of those that were composed before.

    A composed certificate may state facts about all of its parts beside them, such as the column of the persons.
    """
    parts = [facts for name, facts in public.items() if _PART.fullmatch(name) and isinstance(facts, Mapping)]
    if not parts:
        yield public
    for facts in parts:
        yield from facts_of_parts(facts)


def _releases_of(facts: Mapping[str, Any]) -> int | None:
    """How many lines a part has, if its facts tell."""
    if set(facts) == {"features", "lower", "upper"}:
        return 0
    return 1 if "metric" in facts else None


def _above(epsilon: float) -> str:
    """Six digits, not fewer than the number."""
    digits = 5 - math.floor(math.log10(epsilon)) if epsilon > 0.0 else 0
    return f"{math.ceil(epsilon * 10.0**digits) / 10.0**digits:.6g}"


# ------------------------------------------------------------------ work


def check_work(event: Event, group_size: int) -> None:
    """Refuse events that no fit has and that would take for ever to account for."""
    runs, repeats = _work(event)
    objectives = [
        (part.records * group_size, count)
        for part, count in fold(event).items()
        if isinstance(part, ObjectivePerturbationEvent)
    ]
    terms = sum(min(records * count, _MOST_TERMS_OF_ONE) for records, count in objectives)
    # Everything is accounted for once for each choice of branches of parallel events.
    choices = count_alternatives(event)
    if (
        choices > MOST_ALTERNATIVES
        or runs > _MOST_RUNS
        or choices * runs > _MOST_RUNS_OF_ALTERNATIVES
        or repeats > MOST_REPEATS
        or choices * min(repeats, runs * _STEPS_ONE_BY_ONE) > _MOST_STEPS
        or choices * terms > _MOST_TERMS_OF_OBJECTIVES
        or any(records > _MOST_RECORDS_OF_OBJECTIVES for records, _ in objectives)
        or any(count > _MOST_REPEATS_OF_OBJECTIVES for _, count in objectives)
    ):
        raise CertificateError(
            "events: expected as many releases, and as many records of one person, as can be accounted for, got more; "
            "the certificate is not one of a fit, ask for that."
        )


def _work(event: Event) -> tuple[int, int]:
    """How many runs of equal releases there are at most, and how many releases."""
    if isinstance(event, RepeatedEvent):
        runs, repeats = _work(event.event)
        return (runs * event.count if runs > 1 else runs), repeats * event.count
    if isinstance(event, ComposedEvent | ParallelEvent):
        inner = [_work(part) for part in event.events]
        return sum(runs for runs, _ in inner), sum(repeats for _, repeats in inner)
    return 1, 1
