"""Privacy costs as plain data.

An event says what one release costs and nothing else: no data, no budget, no accountant. Events are
frozen and hashable, compare by value, add up (``a + b``: a, then b) and repeat (``a * 1000``).
The meaning of an event never changes; an accountant that does not know one must refuse it.

Sensitivities arrive already normalised: every parameter below is relative to the distance between
two neighbouring data sets under whatever relation the caller has chosen.

An event describes an exact law. What a computer draws may be a little off: ``distance`` bounds the total-variation
distance between one sampled release and the law of its event, on every data set. Distances of several releases add
up, adaptive ones included (exchange samplers for laws one after the other), and an accountant charges the sum once, at
the epsilon of the whole (:mod:`taciturn.accounting.accountant`). A sampler whose probabilities are off by a factor
alone has distance 0; its event's epsilon includes the factor.
"""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.core.validation import check_delta, check_integer, check_positive, check_real

__all__ = [
    "ApproximateEvent",
    "ComposedEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceMaxEvent",
    "NotPrivateEvent",
    "ObjectivePerturbationEvent",
    "PermuteAndFlipEvent",
    "PureEvent",
    "RepeatedEvent",
    "event_from_dict",
    "event_to_dict",
    "fold",
    "for_group",
    "in_order",
]


class Event:
    """A privacy cost. Use one of the subclasses of this module."""

    __slots__ = ()

    kind: ClassVar[str]

    def __add__(self, other: Event) -> Event:
        if not isinstance(other, Event):
            return NotImplemented
        return ComposedEvent((*_parts(self), *_parts(other)))

    def __mul__(self, count: int) -> Event:
        count = check_integer(1, count=count)
        return self if count == 1 else RepeatedEvent(self, count)

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class _EpsilonEvent(Event):
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(epsilon=self.epsilon))


@dataclass(frozen=True, slots=True)
class ExponentialEvent(_EpsilonEvent):
    """One selection whose log-probability ratios span at most ``epsilon`` (bounded range).

    The exponential mechanism (Gumbel noise) and the Gumbel form of the canonical Lipschitz
    mechanism. Implies epsilon-DP and (epsilon**2 / 8)-zCDP.

    Parameters
    ----------
    epsilon : float
        The range.
    distance : float, default=0.0
        Of the sampler from its law; 0 for noise added to scores, 2**-110 for the samplers of Frank-Wolfe.
    """

    kind: ClassVar[str] = "exponential-selection"

    distance: float = 0.0

    def __post_init__(self) -> None:
        _EpsilonEvent.__post_init__(self)
        object.__setattr__(self, "distance", _check_distance(self.distance))


@dataclass(frozen=True, slots=True)
class LaplaceMaxEvent(_EpsilonEvent):
    """One report-noisy-max with Laplace noise: epsilon-DP, *not* epsilon-bounded-range."""

    kind: ClassVar[str] = "laplace-noisy-max"


@dataclass(frozen=True, slots=True)
class PermuteAndFlipEvent(_EpsilonEvent):
    """One permute-and-flip selection: epsilon-DP, *not* epsilon-bounded-range."""

    kind: ClassVar[str] = "permute-and-flip"


@dataclass(frozen=True, slots=True)
class PureEvent(_EpsilonEvent):
    """Any release that is epsilon-DP."""

    kind: ClassVar[str] = "pure"


@dataclass(frozen=True, slots=True)
class ApproximateEvent(Event):
    """Any release that is (epsilon, delta)-DP."""

    kind: ClassVar[str] = "approximate"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive(epsilon=self.epsilon))
        object.__setattr__(self, "delta", check_delta(delta=self.delta))


@dataclass(frozen=True, slots=True)
class GaussianEvent(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` times the L2 sensitivity.

    Parameters
    ----------
    noise_multiplier : float
        Noise over sensitivity.
    distance : float, default=0.0
        Of the sampler from its law: for rounded Gaussians 2**-118 times the number of values in one release.
    """

    kind: ClassVar[str] = "gaussian"

    noise_multiplier: float
    distance: float = 0.0

    def __post_init__(self) -> None:
        value = check_positive(noise_multiplier=self.noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)
        object.__setattr__(self, "distance", _check_distance(self.distance))


@dataclass(frozen=True, slots=True)
class ObjectivePerturbationEvent(Event):
    r"""The exact minimiser of a convex objective with a random linear term (objective perturbation).

    :math:`\sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2} \|\theta\|^2 + b \cdot \theta` over all
    :math:`\theta`, with :math:`b \sim N(0, \sigma^2 I)`, :math:`|\phi'| \|x\| \le G` and
    :math:`\phi'' \|x\|^2 \le \beta` for every admissible record. The loss must depend on :math:`\theta` through one
    linear predictor.

    Parameters
    ----------
    log_jacobian : float
        :math:`c = \ln(1 + \beta / \Lambda)`, under every relation.
    shift : float
        :math:`\tau`: how far the neighbour can move b, in units of :math:`\sigma`. :math:`G / \sigma` where a record is
        present or not, :math:`2 G / \sigma` where it is replaced.
    replaced : bool
        Whether the neighbour replaces a record. The move of b then lies in a plane, else on a line.
    records : int, default=1
        In how many records the neighbour differs; ``log_jacobian`` and ``shift`` are those of one.
    distance : float, default=0.0
        Of the sampled minimiser from its law.
    fixed_sign : bool, default=False
        Whether :math:`\phi'` has one and the same sign at all :math:`\theta` for a given record, as the logistic loss
        has with labels 0 and 1 (not with labels between them, nor Huber's loss). Version 0.1 did not say.
    """

    kind: ClassVar[str] = "objective-perturbation"

    log_jacobian: float
    shift: float
    replaced: bool
    records: int = 1
    distance: float = 0.0
    fixed_sign: bool = False

    def __post_init__(self) -> None:
        log_jacobian = check_real(0.0, math.inf, closed="left", log_jacobian=self.log_jacobian)
        object.__setattr__(self, "log_jacobian", log_jacobian)
        object.__setattr__(self, "shift", check_positive(shift=self.shift))
        for name, of_what in (("replaced", "a record is replaced"), ("fixed_sign", "the derivative keeps its sign")):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(name, getattr(self, name), "True or False", f"say whether {of_what}")
        object.__setattr__(self, "records", check_integer(1, records=self.records))
        object.__setattr__(self, "distance", _check_distance(self.distance))


@dataclass(frozen=True, slots=True)
class NotPrivateEvent(Event):
    """A release without any protection."""

    kind: ClassVar[str] = "not-private"


@dataclass(frozen=True, slots=True)
class ComposedEvent(Event):
    """Several events in the order in which they happen; none at all costs nothing."""

    kind: ClassVar[str] = "composed"

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))


@dataclass(frozen=True, slots=True)
class RepeatedEvent(Event):
    """One event ``count`` times in a row, each time with fresh randomness."""

    kind: ClassVar[str] = "repeated"

    event: Event
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check_integer(1, count=self.count))


def _check_distance(distance: object) -> float:
    return check_real(0.0, 1.0, distance=distance)


PURE_ONLY = (LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent)
"""Events known to be epsilon-DP and nothing better."""


def _parts(event: Event) -> tuple[Event, ...]:
    return event.events if isinstance(event, ComposedEvent) else (event,)


def fold(event: Event) -> dict[Event, int]:
    """How often each elementary event happens, in order of first appearance.

    Counts are multiplied out here, once, so that no accountant has to remember them.
    """
    totals: dict[Event, int] = {}

    def visit(current: Event, count: int) -> None:
        if isinstance(current, RepeatedEvent):
            visit(current.event, count * current.count)
        elif isinstance(current, ComposedEvent):
            for part in current.events:
                visit(part, count)
        else:
            totals[current] = totals.get(current, 0) + count

    visit(event, 1)
    return totals


def in_order(event: Event, kind: type[Event]) -> list[tuple[Event, int]]:
    """The elementary events of one kind as runs ``(event, length)``, in order of execution.

    Neighbouring runs of equal events are merged, so a plan of T equal steps is one run however
    many other releases stand between them.
    """
    if isinstance(event, RepeatedEvent):
        inner = in_order(event.event, kind)
        if len(inner) == 1:
            return [(inner[0][0], inner[0][1] * event.count)]
        return _merged(inner * event.count)
    if isinstance(event, ComposedEvent):
        return _merged([run for part in event.events for run in in_order(part, kind)])
    return [(event, 1)] if isinstance(event, kind) else []


def _merged(runs: list[tuple[Event, int]]) -> list[tuple[Event, int]]:
    out: list[tuple[Event, int]] = []
    for event, count in runs:
        if out and out[-1][0] == event:
            out[-1] = (event, out[-1][1] + count)
        else:
            out.append((event, count))
    return out


def for_group(event: Event, size: int) -> Event:
    r"""The cost of the same releases between data sets that differ in ``size`` records.

    A chain of ``size`` neighbours joins the two. Along it log-probability ratios add up, hence so do
    their ranges and their bounds (exponential, pure); sensitivities add up (Gaussian); and
    (epsilon, delta) becomes ``(k epsilon, delta (e^{k epsilon} - 1) / (e^epsilon - 1))``. In objective perturbation
    Jacobians multiply, moves add up, and every record brings directions of its own. How far a sampler is from its law
    does not depend on the neighbours, so that distances stay.
    """
    size = check_integer(1, size=size)
    if isinstance(event, RepeatedEvent):
        return RepeatedEvent(for_group(event.event, size), event.count)
    if isinstance(event, ComposedEvent):
        return ComposedEvent(tuple(for_group(part, size) for part in event.events))
    if isinstance(event, GaussianEvent):
        return replace(event, noise_multiplier=event.noise_multiplier / size)
    if isinstance(event, ObjectivePerturbationEvent):
        return replace(event, records=event.records * size)
    if isinstance(event, ApproximateEvent):
        # Where the power would overflow there is nothing left to protect, unless delta is zero.
        if size * event.epsilon > 700.0:
            return NotPrivateEvent() if event.delta else PureEvent(size * event.epsilon)
        delta = event.delta * math.expm1(size * event.epsilon) / math.expm1(event.epsilon)
        return ApproximateEvent(size * event.epsilon, delta) if delta < 1.0 else NotPrivateEvent()
    if isinstance(event, _EpsilonEvent):
        return replace(event, epsilon=size * event.epsilon)
    return event


# ---------------------------------------------------------------------- JSON

_KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (
        ExponentialEvent,
        LaplaceMaxEvent,
        PermuteAndFlipEvent,
        PureEvent,
        ApproximateEvent,
        GaussianEvent,
        ObjectivePerturbationEvent,
        NotPrivateEvent,
        ComposedEvent,
        RepeatedEvent,
    )
}


def event_to_dict(event: Event) -> dict[str, Any]:
    """A JSON-ready description: ``{"kind": "gaussian", "noise_multiplier": 4.0, "distance": 0.0}``."""
    described: dict[str, Any] = {"kind": event.kind}
    for field in fields(event):  # type: ignore[arg-type]
        value = getattr(event, field.name)
        if isinstance(value, Event):
            value = event_to_dict(value)
        elif isinstance(value, tuple):
            value = [event_to_dict(part) for part in value]
        described[field.name] = value
    return described


_UNSTATED_DISTANCES = {GaussianEvent.kind: 2.0**-92, ExponentialEvent.kind: 2.0**-110}
"""What stands for a distance that version 0.1 did not write down: 2**26 Gaussian values, a step of Frank-Wolfe."""


def event_from_dict(described: dict[str, Any], *, exact: bool = False) -> Event:
    """The inverse of :func:`event_to_dict`.

    Events written by version 0.1 have no ``distance``; they get the largest that their samplers can have had, or none
    where the release is known to be ``exact``: at delta = 0 only samplers without distance were used.
    """
    kind = described.get("kind") if isinstance(described, dict) else described
    if not isinstance(described, dict) or not isinstance(kind, str) or kind not in _KINDS:
        known = ", ".join(sorted(_KINDS))
        raise CertificateError(
            f"event kind={reprlib.repr(kind)}: expected one of {known}; "
            "read this certificate with the version of taciturn that wrote it."
        )
    values = {name: value for name, value in described.items() if name != "kind"}
    nested = values.pop("events", None), values.pop("event", None)
    damaged = CertificateError(
        f"event kind={kind!r}: expected its own fields, each of its type; the certificate is damaged, ask for a fresh "
        "copy."
    )
    if not all(isinstance(value, int | float) for value in values.values()):
        raise damaged
    if nested[0] is not None:
        if not isinstance(nested[0], list | tuple):
            raise damaged
        values["events"] = tuple(event_from_dict(part, exact=exact) for part in nested[0])
    if nested[1] is not None:
        values["event"] = event_from_dict(nested[1], exact=exact)
    if kind in _UNSTATED_DISTANCES and not exact:
        values.setdefault("distance", _UNSTATED_DISTANCES[kind])
    try:
        return _KINDS[kind](**values)
    except TypeError:
        raise damaged from None
