"""The cost of releases for several records at once."""

from __future__ import annotations

import math
from dataclasses import replace

from taciturn.core.validation import check_integer
from taciturn.events.kinds import (
    PURE_ONLY,
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PureEvent,
    RepeatedEvent,
    fold,
)

__all__ = ["for_group"]


def for_group(event: Event, size: int) -> Event:
    r"""The cost of the same releases between data sets that differ in ``size`` records.

    A chain of ``size`` neighbours joins the two. Along it log-probability ratios add up, hence so do
    their ranges and their bounds (exponential, pure); sensitivities add up (Gaussian); and
    (epsilon, delta) becomes ``(k epsilon, delta (e^{k epsilon} - 1) / (e^epsilon - 1))``. In objective perturbation
    Jacobians multiply, moves add up, and every record brings directions of its own. Of two opposite selections the
    far one may be another at each step of the chain, so that the event keeps count of the records. How far a sampler is
    from its law does not depend on the neighbours, so that distances stay: where records are in blocks with a sampler
    each, an event has the distance of all blocks from the start.

    Parallel events
    ---------------
    The k records can lie in several branches: :math:`j_i` in branch i, :math:`\sum_i j_i = k`. Given the assignment,
    the branches are then one release after the other, of which the i-th is for a group of :math:`j_i` records.

    *Gaussian releases alone.* Let branch i be :math:`\sqrt{x_i}`-GDP for one record: :math:`x_i` is the sum of
    :math:`1 / m^2` over its releases, or what a privacy filter had to spend where each purchase is listed as the
    Gaussian release of its price. For :math:`j_i` records it is :math:`j_i \sqrt{x_i}`-GDP, and all branches
    together are :math:`\sqrt X`-GDP with

    .. math:: X = \sum_i j_i^2 x_i \le \Bigl(\sum_i j_i^2\Bigr) \max_i x_i \le k^2 \max_i x_i ,

    which is the dearest branch for a group of k. A mixture over assignments is so too, and so it is beside other
    releases, since composition respects the order of trade-off functions. A parallel event inside a branch counts with
    the largest of its branches, by induction. Now samplers of several branches act on different data, and all of them
    have to be exchanged for their laws: each branch gets the distances of all branches. (Each with its own distance
    alone would be false: two samplers with a distance each can be told apart twice as well as one.)

    *Anything else* is composed: all branches one after the other, each for a group of k. This is dearer than any
    :math:`(j_i)`, since costs rise with the size of a group, and it has the distances of all branches.
    """
    size = check_integer(1, size=size)
    if isinstance(event, RepeatedEvent):
        return RepeatedEvent(for_group(event.event, size), event.count)
    if isinstance(event, ComposedEvent):
        return ComposedEvent(tuple(for_group(part, size) for part in event.events))
    if isinstance(event, ParallelEvent):
        return _parallel_for_group(event, size)
    if isinstance(event, GaussianEvent):
        return replace(event, noise_multiplier=event.noise_multiplier / size)
    if isinstance(event, (ObjectivePerturbationEvent, OppositeSelectionsEvent)):
        return replace(event, records=event.records * size)
    if isinstance(event, ApproximateEvent):
        # Where the power would overflow there is nothing left to protect, unless delta is zero.
        if size * event.epsilon > 700.0:
            return NotPrivateEvent() if event.delta else PureEvent(size * event.epsilon)
        delta = event.delta * math.expm1(size * event.epsilon) / math.expm1(event.epsilon)
        return ApproximateEvent(size * event.epsilon, delta) if delta < 1.0 else NotPrivateEvent()
    if isinstance(event, (ExponentialEvent, *PURE_ONLY)):
        return replace(event, epsilon=size * event.epsilon)
    return event


def _parallel_for_group(event: ParallelEvent, size: int) -> Event:
    groups = tuple(for_group(branch, size) for branch in event.events)
    if size == 1:
        return ParallelEvent(groups)
    if not all(isinstance(part, GaussianEvent) for part in fold(event)):
        return ComposedEvent(groups)
    distances = [_distance(branch) for branch in event.events]
    # Parallel events inside a branch have given each of their branches the distances of all.
    return ParallelEvent(
        tuple(_with_distance(group, math.fsum(distances[:at] + distances[at + 1 :])) for at, group in enumerate(groups))
    )


def _distance(event: Event) -> float:
    """The sum of the distances of all samplers, those of all branches included."""
    return math.fsum(count * getattr(part, "distance", 0.0) for part, count in fold(event).items())


def _with_distance(event: Event, distance: float) -> Event:
    """Gaussian releases with so much more distance in all, whichever branches are chosen; nothing stays nothing."""
    if isinstance(event, GaussianEvent):
        return replace(event, distance=min(event.distance + distance, 1.0))
    if isinstance(event, RepeatedEvent):
        return RepeatedEvent(_with_distance(event.event, distance / event.count), event.count)
    if isinstance(event, ParallelEvent):
        return ParallelEvent(tuple(_with_distance(branch, distance) for branch in event.events))
    if isinstance(event, ComposedEvent):
        parts = list(event.events)
        first = next((at for at, part in enumerate(parts) if fold(part)), None)
        if first is not None:
            parts[first] = _with_distance(parts[first], distance)
        return ComposedEvent(tuple(parts))
    return event
