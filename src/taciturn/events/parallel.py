"""Parallel events taken apart: neighbours differ in one branch of each."""

from __future__ import annotations

from itertools import product

from taciturn.core.errors import ParameterError
from taciturn.events.kinds import ComposedEvent, Event, ParallelEvent, RepeatedEvent

__all__ = ["MOST_ALTERNATIVES", "alternatives", "count_alternatives"]

MOST_ALTERNATIVES = 1024
"""The largest number of choices of branches that is accounted for: ten pairs."""


def alternatives(event: Event) -> tuple[Event, ...]:
    """The events without parallel ones that remain when one branch is chosen for each parallel event.

    Every repetition of a parallel event has a choice of its own: groups may be assigned anew. Between any two
    neighbours the cost is that of one of the alternatives, so that whatever holds for all of them holds. Their order
    follows from the structure of the event alone.

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


def _unchanged(events: tuple[Event, ...], inner: list[tuple[Event, ...]]) -> bool:
    return all(len(choices) == 1 and choices[0] is part for part, choices in zip(events, inner, strict=True))


def count_alternatives(event: Event) -> int:
    """The number of alternatives, without listing them; ``MOST_ALTERNATIVES + 1`` stands for any larger number."""
    if isinstance(event, ParallelEvent):
        count = max(sum(map(count_alternatives, event.events)), 1)
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
