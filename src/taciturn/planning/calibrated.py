"""Releases that share one noise scale: from a budget to the noise of each, and to the lines of the certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.events import Event, ExponentialEvent, GaussianEvent, NotPrivateEvent

__all__ = ["PlannedRelease", "calibrate_releases"]


def _scale_in_sensitivities(event: Event) -> float:
    """The noise scale of a Gaussian release, or of a selection among scores that move in both directions."""
    if isinstance(event, GaussianEvent):
        return event.noise_multiplier
    if isinstance(event, ExponentialEvent):
        return 2.0 / event.epsilon
    raise TypeError(f"{type(event).__name__}: say what its noise scale is")


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A :class:`~taciturn.certificate.Release` whose noise is not known yet.

    Parameters
    ----------
    event_at : callable
        The cost of one release at a common scale b, such as ``lambda b: GaussianEvent(3.0 * b)``. It falls as b grows,
        or does not depend on b.
    scale_of : callable
        The noise scale in units of the sensitivity, from the event. By default the multiplier of Gaussian noise, or
        twice the inverse range of a selection.
    """

    what: str
    noise: str
    event_at: Callable[[float], Event]
    count: int = 1
    scale_of: Callable[[Event], float] = _scale_in_sensitivities


def calibrate_releases(
    budget: Budget, planned: Sequence[PlannedRelease], *, ordered: bool = True
) -> tuple[Release, ...]:
    """The planned releases, of which there is one at least, at the smallest common scale that stays within the budget.

    A plan takes the parameters of its mechanisms from the events of these, so that the certificate lists what is drawn.
    Without privacy (an infinite epsilon) all of them are without noise. What is ``ordered`` happens in this order;
    otherwise the cost holds for every order.
    """
    if math.isinf(budget.epsilon):
        return tuple(Release(each.what, "none", 0.0, NotPrivateEvent(), each.count) for each in planned)

    def whole(b: float) -> Event:
        events = [each.event_at(b) * each.count for each in planned]
        return sum(events[1:], events[0])

    scale = calibrate(budget, whole, ordered=ordered)
    events = [each.event_at(scale) for each in planned]
    return tuple(
        Release(each.what, each.noise, each.scale_of(event), event, each.count)
        for each, event in zip(planned, events, strict=True)
    )
