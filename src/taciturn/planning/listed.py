"""Plans that know all their releases in advance."""

from __future__ import annotations

from taciturn.certificate import Release
from taciturn.certificate.release import event_of_releases
from taciturn.events import Event

__all__ = ["ListedReleases"]


class ListedReleases:
    """Base of the plans whose releases are fixed before the first one is made."""

    __slots__ = ()

    releases: tuple[Release, ...]

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""
        return event_of_releases(self.releases)
