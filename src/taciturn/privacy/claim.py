"""What a certificate claims, and its recomputation from the listed releases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, groupby, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taciturn.core.errors import CertificateError, visible
from taciturn.core.validation import check_delta, check_integer, check_real
from taciturn.privacy.calibration import best_bound, proves
from taciturn.privacy.events import (
    MOST_ALTERNATIVES,
    ComposedEvent,
    Event,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    RepeatedEvent,
    count_alternatives,
    fold,
    for_group,
)
from taciturn.privacy.filter import Spend, chain_holds

if TYPE_CHECKING:
    from taciturn.privacy.certificate import Certificate


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


MOST_REPEATS = 2**53
"""A release cannot be made more often: larger counts are no longer exact in double precision."""


@dataclass(frozen=True, slots=True)
class Release:
    """One kind of release, made ``count`` times.

    ``what`` it is, and its ``noise`` ("Gumbel", "exponential", "Laplace", "Gaussian", "two-sided geometric", "none"),
    are words. The ``scale`` (standard deviation of Gaussian noise) is in units of the sensitivity, and ``event`` is the
    cost of one. For a release that a privacy filter paid for, ``remaining`` is what remained of its squared Gaussian
    parameter (:func:`taciturn.privacy.filter.chain_holds`). ``half`` is 1 or 2 for a release about one half of records
    that were split in two at random, without looking at the data, and None for all records.
    """

    what: str
    noise: str
    scale: float
    event: Event
    count: int = 1
    remaining: float | None = None
    half: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.what, str) or not isinstance(self.noise, str):
            raise CertificateError("release: expected what and noise as text, got something else; describe both.")
        if not isinstance(self.event, Event):
            raise CertificateError("release: expected its cost as an event, got something else; see taciturn.events.")
        object.__setattr__(self, "scale", check_real(0.0, math.inf, closed="left", scale=self.scale))
        object.__setattr__(self, "count", check_integer(1, MOST_REPEATS, count=self.count))
        if self.remaining is not None:
            object.__setattr__(self, "remaining", check_real(0.0, math.inf, closed="left", remaining=self.remaining))
        if self.half is not None:
            object.__setattr__(self, "half", check_integer(1, 2, half=self.half))

    @property
    def total(self) -> Event:
        """The cost of all of them."""
        return self.event * self.count

    @property
    def subject(self) -> str:
        """What is released, and about which half of the records."""
        return self.what + {None: "", 1: " (first half of the records)", 2: " (second half of the records)"}[self.half]

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if isinstance(self.event, NotPrivateEvent):
            return visible(f"{self.subject} ({times}, without noise)")
        return visible(f"{self.subject} ({times}, {self.noise} noise of {self.scale:.4g} sensitivities)")


@dataclass(frozen=True, slots=True)
class Part:
    """What one of several composed certificates proves by itself.

    So many ``releases`` of the composed certificate are the part's; the parts follow one another. ``ordered`` tells
    whether these lines are in the order in which they happened.
    """

    epsilon: float
    delta: float
    releases: int
    ordered: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_real(0.0, math.inf, epsilon=self.epsilon))
        object.__setattr__(self, "delta", check_delta(delta=self.delta))
        object.__setattr__(self, "releases", check_integer(0, releases=self.releases))
        if not isinstance(self.ordered, bool):
            raise CertificateError("part: expected ordered as true or false, got something else; ask for a fresh copy.")


def in_pairs(releases: Iterable[Release]) -> Iterator[tuple[tuple[Release, ...], ...]]:
    """The lines in their order: runs about one half or about all records, alone or as pairs of halves.

    A run about the first half and a run about the second half directly after it are a pair. Any other run is alone.
    """
    runs = [tuple(lines) for _, lines in groupby(releases, key=lambda release: release.half)]
    at = 0
    while at < len(runs):
        length = 2 if [run[0].half for run in runs[at : at + 2]] == [1, 2] else 1
        yield tuple(runs[at : at + length])
        at += length


def event_of_releases(releases: Iterable[Release]) -> Event:
    """The cost of all lines together.

    A pair of halves is a parallel event: a record is in one of the two. A half without the other one is charged like
    releases about all records.
    """
    parts: list[Event] = []
    for runs in in_pairs(releases):
        totals = [tuple(release.total for release in run) for run in runs]
        parts += [ParallelEvent(tuple(map(ComposedEvent, totals)))] if len(totals) > 1 else totals[0]
    return ComposedEvent(tuple(parts))


def lines_of_a_record(releases: Iterable[Release]) -> Iterator[tuple[Release, ...]]:
    """The lines that a record pays for, for each choice of a half in each pair."""
    for chosen in product(*in_pairs(releases)):
        yield tuple(chain.from_iterable(chosen))


def only_pairs_halved(releases: Iterable[Release]) -> Iterator[Release]:
    """The lines, those about a half without the other one as if they were about all records.

    They cost the same. Beside the lines of other certificates they can no longer be taken for half of a pair.
    """
    for runs in in_pairs(releases):
        for release in chain.from_iterable(runs):
            yield release if len(runs) > 1 else replace(release, half=None)


# --- What a guarantee does not protect, and what lies outside its proof.
#
# Both follow from the other fields of a certificate, and its file states them for readers without this library. A file
# that states anything else contradicts itself. The sentences are part of the file's form: a version that words one of
# them differently has to know the earlier wording when it reads a file.

DERIVED = ("unprotected", "side_channels")
"""Fields of a file that follow from its other fields."""

# What certificates say where labels were not stated but found.
_LABELS_FOUND = "the set of labels is public"
_REFUSAL = "the refusal tells of it"
_BOUNDS = frozenset({"x_bound", "row_bound", "y_bounds", "lower", "upper", "smallest", "largest", "gradient_bound"})


def list_unprotected(certificate: Certificate) -> tuple[str, ...]:
    """Quantities that the guarantee does not protect, in words."""
    if certificate.status == "not private":
        return ("everything: the result was computed without noise",)
    facts = dict(_facts(certificate.public))
    listed = []
    if certificate.seeded:
        listed.append("everything, from whoever knows the seed of the noise")
    units = f"{certificate.unit}s"
    if certificate.relation != "add-remove":
        listed.append(f"the number of {units}")
    elif "records" in facts:
        listed.append(f"the number of {units} that was stated as public (n_public)")
    listed.append("the number, names, types and order of the columns")
    if _BOUNDS & facts.keys():
        listed.append("the bounds of features and target, except those that were found privately")
    if _LABELS_FOUND in certificate.assumptions:
        listed.append("the set of labels, which was taken from the data, so that one record could change it")
    elif "classes" in facts:
        listed.append("the set of labels")
    listed.append("the method, its parameters and its budget")
    listed.append(f"what holds of the population and would be learned without any one of the {units}")
    return tuple(listed)


def list_side_channels(certificate: Certificate) -> tuple[str, ...]:
    """What an observer of the computation may learn besides the releases, in words."""
    if certificate.status == "not private":
        return ()
    listed = ["running time, memory and temporary files of the computation"]
    if any(isinstance(part, ObjectivePerturbationEvent) for part in fold(certificate.event)):
        listed.append("the number of steps of the solver, which depends on the data and shows in the running time")
    invalid = [fact for name, fact in _facts(certificate.public) if name == "invalid"] or ["raise"]
    if any(fact != "null" for fact in invalid) or any(_REFUSAL in text for text in certificate.assumptions):
        listed.append("a refusal, which tells that a record, or the file, is not admissible")
    if certificate.arithmetic == "float64":
        listed.append("rounding in double precision, as far as the assumptions do not cover it")
    listed.append("the random numbers of the operating system, which nobody else may know")
    return tuple(listed)


def check_disclosures(certificate: Certificate, stated: Mapping[str, tuple[str, ...]]) -> None:
    """Raise if a file states something else than follows from its other fields."""
    for name in DERIVED:
        if stated[name] != getattr(certificate, name):
            raise CertificateError(
                f"{name}: expected what follows from the relation, the public facts and the assumptions, got something "
                "else; the certificate contradicts itself, ask for the one of the fit."
            )


def _facts(public: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Public facts by name, in a composed certificate those of all its parts."""
    for name, fact in public.items():
        if isinstance(fact, Mapping):
            yield from _facts(fact)
        else:
            yield name, fact


# --- Whether the events of a certificate prove what it states.
#
# A certificate can come from anywhere: a file, a colleague, ``dataclasses.replace``. Nobody has to believe it, because
# its events are enough to account for it again.
#
# How close is close enough? An accountant keeps back a millionth of delta, so that rounding never matters. To check a
# claim half of that is kept back: whatever passes is proved at its own delta all the same, and another machine's last
# digits do no harm. At delta = 0 epsilons are added without rounding on the way, and a claim has to meet the sum.

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
    """Raise CertificateError unless status, relation and epsilon follow from the events of the certificate.

    Of a published claim that is ``proved_epsilon``; the claim itself is the authors'. Statements without a number to
    prove ("not private", a published claim of which nothing is known) pass, if they say so consistently.
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


def recomputed_epsilon(certificate: Certificate) -> float:
    """What the releases of a certificate cost at its delta, whatever it claims; infinite where nothing protects them.

    Where the certificate is a sum of parts, the smaller of two bounds: all releases at once, and the sum of what the
    releases of each part cost at the part's delta.
    """
    whole = _needed(certificate, certificate.event, certificate.delta, certificate.ordered)
    if not certificate.parts:
        return whole
    events = _events_of(certificate, [part.releases for part in certificate.parts])
    costs = [
        _needed(certificate, event, part.delta, part.ordered)
        for part, event in zip(certificate.parts, events, strict=True)
    ]
    return min(whole, math.fsum(costs))


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


def _above(epsilon: float) -> str:
    """Six digits, not fewer than the number."""
    digits = 5 - math.floor(math.log10(epsilon)) if epsilon > 0.0 else 0
    return f"{math.ceil(epsilon * 10.0**digits) / 10.0**digits:.6g}"


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
