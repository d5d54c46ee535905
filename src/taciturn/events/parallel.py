"""Parallel events taken apart: neighbours differ in one branch of each."""

from __future__ import annotations

import math
from itertools import product

from taciturn.core.errors import ParameterError
from taciturn.events.kinds import ComposedEvent, Event, GaussianEvent, ParallelEvent, RepeatedEvent, fold

__all__ = ["MOST_ALTERNATIVES", "alternatives", "count_alternatives"]

MOST_ALTERNATIVES = 1024
"""The largest number of choices of branches that is accounted for, beside those that one branch stands for."""

_NO_COST = 1e150
"""A noise multiplier whose inverse square does not change any sum."""

_ROUNDING = 1e-9
_MOST_COMPARED = 16


def alternatives(event: Event) -> tuple[Event, ...]:
    """The events without parallel ones that remain when one branch is chosen for each parallel event.

    Every repetition of a parallel event has a choice of its own: groups may be assigned anew. Between any two
    neighbours the cost is that of one of the alternatives, so that whatever holds for all of them holds. Their order
    follows from the structure of the event alone.

    Where all branches have Gaussian releases alone, and one of them has the largest squared Gaussian parameter and the
    largest distance of samplers, it stands for all of them, since every bound rises in both. Halves that spend the same
    budget are such a pair, and any number of these is one alternative.

    Raises
    ------
    ParameterError
        If there are more than ``MOST_ALTERNATIVES``.
    """
    if count_alternatives(event) > MOST_ALTERNATIVES:
        raise ParameterError(
            "event",
            type(event).__name__,
            f"at most {MOST_ALTERNATIVES} choices of one branch for each parallel event",
            "account for fewer of them at once",
        )
    return _alternatives(event)


def _alternatives(event: Event) -> tuple[Event, ...]:
    if isinstance(event, ParallelEvent):
        dominating = _dominating(event)
        if dominating is not None:
            return (dominating,)
        return tuple(choice for branch in event.events for choice in _alternatives(branch)) or (ComposedEvent(()),)
    if isinstance(event, ComposedEvent):
        inner = [_alternatives(part) for part in event.events]
        return (event,) if _unchanged(event.events, inner) else tuple(map(ComposedEvent, product(*inner)))
    if isinstance(event, RepeatedEvent):
        choices = _alternatives(event.event)
        if len(choices) == 1:
            return (event,) if choices[0] is event.event else (RepeatedEvent(choices[0], event.count),)
        return tuple(map(ComposedEvent, product(choices, repeat=event.count)))
    return (event,)


def _dominating(event: ParallelEvent) -> Event | None:
    """Of branches with Gaussian releases alone the one that costs most, up to rounding; None if there is no such."""
    if not event.events or not all(isinstance(part, GaussianEvent) for part in fold(event)):
        return None
    branches, costs = [], []
    for each in event.events:
        choices = _alternatives(each)
        if len(choices) > 1:
            return None
        parts = [(part, count) for part, count in fold(choices[0]).items() if isinstance(part, GaussianEvent)]
        # Quotients of doubles overflow to infinity, powers raise.
        inverses = [(1.0 / part.noise_multiplier, count) for part, count in parts]
        price = math.fsum(count * inverse * inverse for inverse, count in inverses)
        branches.append(choices[0])
        costs.append((price, math.fsum(count * part.distance for part, count in parts)))
    place = costs.index(max(costs))
    distance = max(distance for _, distance in costs)
    missing = distance - costs[place][1]
    if missing > _ROUNDING * distance:
        return None
    if missing <= 0.0:
        return branches[place]
    # So much noise that it costs nothing besides the distance.
    return ComposedEvent((branches[place], GaussianEvent(_NO_COST, 2.0 * missing)))


def _unchanged(events: tuple[Event, ...], inner: list[tuple[Event, ...]]) -> bool:
    return all(len(choices) == 1 and choices[0] is part for part, choices in zip(events, inner, strict=True))


def count_alternatives(event: Event) -> int:
    """The number of alternatives, without listing them; ``MOST_ALTERNATIVES + 1`` stands for any larger number."""
    if isinstance(event, ParallelEvent):
        # Many branches are counted, not looked into.
        small = len(event.events) <= _MOST_COMPARED
        alone = small and _dominating(event) is not None
        count = 1 if alone else max(sum(map(count_alternatives, event.events)), 1)
    elif isinstance(event, ComposedEvent):
        count = 1
        for part in event.events:
            count = min(count * count_alternatives(part), MOST_ALTERNATIVES + 1)
    elif isinstance(event, RepeatedEvent):
        count = count_alternatives(event.event)
        # Two choices ten times are as many as may be.
        count = count ** min(event.count, MOST_ALTERNATIVES.bit_length()) if count > 1 else 1
    else:
        count = 1
    return min(count, MOST_ALTERNATIVES + 1)
