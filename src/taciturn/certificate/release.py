"""One line of a certificate: what was released, how often, at what scale."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.events import Event, NotPrivateEvent

__all__ = ["Release"]


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
    """

    what: str
    noise: str
    scale: float
    event: Event
    count: int = 1

    @property
    def total(self) -> Event:
        """The cost of all of them."""
        return self.event * self.count

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if isinstance(self.event, NotPrivateEvent):
            return f"{self.what} ({times}, without noise)"
        return f"{self.what} ({times}, {self.noise} noise of {self.scale:.4g} sensitivities)"
