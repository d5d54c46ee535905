"""The kinds of events, and what is asked of them: how often, in which order, for how many records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_delta, check_integer, check_positive, check_real

__all__ = [
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
    "PermuteAndFlipEvent",
    "PureEvent",
    "RepeatedEvent",
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
class OppositeSelectionsEvent(Event):
    """Two selections, of which one has at most the range ``far`` and the other at most ``near``, whichever is which.

    Which of the two is the far one depends on the record in which neighbours differ, as for the two quantiles of a
    column. Along a chain of several records it can change: their ranges add up to at most ``records * (far + near)``,
    but each of the two alone can be as large as ``records * far``.

    Parameters
    ----------
    far, near : float
        The ranges for one record, ``near <= far``.
    records : int, default=1
        In how many records the neighbour differs.
    """

    kind: ClassVar[str] = "opposite-selections"

    far: float
    near: float
    records: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", check_integer(1, 2**53, records=self.records))
        object.__setattr__(self, "far", check_positive(far=self.far))
        object.__setattr__(self, "near", check_real(0.0, self.far, near=check_positive(near=self.near)))
        check_positive(far=self.records * self.far)


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
    Jacobians multiply, moves add up, and every record brings directions of its own. Of two opposite selections the
    far one may be another at each step of the chain, so that the event keeps count of the records. How far a sampler is
    from its law does not depend on the neighbours, so that distances stay: where records are in blocks with a sampler
    each, an event has the distance of all blocks from the start.
    """
    size = check_integer(1, size=size)
    if isinstance(event, RepeatedEvent):
        return RepeatedEvent(for_group(event.event, size), event.count)
    if isinstance(event, ComposedEvent):
        return ComposedEvent(tuple(for_group(part, size) for part in event.events))
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
    if isinstance(event, _EpsilonEvent):
        return replace(event, epsilon=size * event.epsilon)
    return event
