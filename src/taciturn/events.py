"""Privacy costs as plain data.

An event says what one release costs and nothing else: no data, no budget, no accountant. Events are
frozen and hashable, compare by value, add up (``a + b``: a, then b) and repeat (``a * 1000``).
Releases about disjoint groups of records stand side by side (``ParallelEvent((a, b))``): the dearest one counts.
The meaning of an event never changes; an accountant that does not know one must refuse it.

Sensitivities arrive already normalised: every parameter below is relative to the distance between
two neighbouring data sets under whatever relation the caller has chosen.

An event describes an exact law. What a computer draws may be a little off: ``distance`` bounds the total-variation
distance between one sampled release and the law of its event, on every data set. Distances of several releases add
up, adaptive ones included (exchange samplers for laws one after the other), and an accountant charges the sum once, at
the epsilon of the whole (:mod:`taciturn.privacy.calibration`). A sampler whose probabilities are off by a factor
alone has distance 0; its event's epsilon includes the factor.
"""

from taciturn.privacy.events import (
    MOST_ALTERNATIVES,
    PURE_ONLY,
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    alternatives,
    count_alternatives,
    event_from_dict,
    event_to_dict,
    fold,
    for_group,
    in_order,
)

__all__ = [
    "MOST_ALTERNATIVES",
    "PURE_ONLY",
    "ApproximateEvent",
    "ComposedEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceMaxEvent",
    "NotPrivateEvent",
    "ObjectivePerturbationEvent",
    "OppositeSelectionsEvent",
    "ParallelEvent",
    "PermuteAndFlipEvent",
    "PureEvent",
    "RepeatAndSelectEvent",
    "RepeatedEvent",
    "alternatives",
    "count_alternatives",
    "event_from_dict",
    "event_to_dict",
    "fold",
    "for_group",
    "in_order",
]
