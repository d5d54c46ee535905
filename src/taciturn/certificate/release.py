"""One line of a certificate: what was released, how often, at what scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.core.errors import CertificateError
from taciturn.core.validation import check_delta, check_integer, check_real
from taciturn.core.visible import visible
from taciturn.events import Event, NotPrivateEvent

__all__ = ["MOST_REPEATS", "Part", "Release"]

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
    """

    what: str
    noise: str
    scale: float
    event: Event
    count: int = 1
    remaining: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.what, str) or not isinstance(self.noise, str):
            raise CertificateError("release: expected what and noise as text, got something else; describe both.")
        if not isinstance(self.event, Event):
            raise CertificateError("release: expected its cost as an event, got something else; see taciturn.events.")
        object.__setattr__(self, "scale", check_real(0.0, math.inf, closed="left", scale=self.scale))
        object.__setattr__(self, "count", check_integer(1, MOST_REPEATS, count=self.count))
        if self.remaining is not None:
            object.__setattr__(self, "remaining", check_real(0.0, math.inf, closed="left", remaining=self.remaining))

    @property
    def total(self) -> Event:
        """The cost of all of them."""
        return self.event * self.count

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if isinstance(self.event, NotPrivateEvent):
            return visible(f"{self.what} ({times}, without noise)")
        return visible(f"{self.what} ({times}, {self.noise} noise of {self.scale:.4g} sensitivities)")


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
