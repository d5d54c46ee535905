"""One line of a certificate: what was released, how often, at what scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby, product

from taciturn.core.errors import CertificateError
from taciturn.core.validation import check_delta, check_integer, check_real
from taciturn.core.visible import visible
from taciturn.events import ComposedEvent, Event, NotPrivateEvent, ParallelEvent

__all__ = ["MOST_REPEATS", "Part", "Release", "event_of_releases", "in_pairs", "lines_of_a_record", "only_pairs_halved"]

MOST_REPEATS = 2**53
"""A release cannot be made more often: larger counts are no longer exact in double precision."""


@dataclass(frozen=True, slots=True)
class Release:
    """One kind of release.

    Parameters
    ----------
    what : str
        In words: "the indices of 10 of 30 features".
    noise : str
        The noise: "Gumbel", "exponential", "Laplace", "Gaussian", "two-sided geometric", "none".
    scale : float
        Its scale (standard deviation for Gaussian noise), in units of the sensitivity.
    event : Event
        The cost of one.
    count : int, default=1
        How often.
    remaining : float, default=None
        For a release that a privacy filter paid for, what remained of its squared Gaussian parameter
        (:func:`taciturn.accounting.filter.chain_holds`).
    half : {1, 2}, default=None
        Which half of the records the release is about, where records were split in two at random, without looking at
        the data; None for all records.
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

    Parameters
    ----------
    epsilon, delta : float
        Proved for the part alone.
    releases : int
        How many lines of the composed certificate are the part's; the parts follow one another.
    ordered : bool
        Whether these lines are in the order in which they happened.
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


# ------------------------------------------------------------------ several lines


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
