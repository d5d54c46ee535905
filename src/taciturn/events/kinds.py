"""The kinds of events, and what is asked of them: how often, and in which order."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    "ParallelEvent",
    "PermuteAndFlipEvent",
    "PureEvent",
    "RepeatedEvent",
    "fold",
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


@dataclass(frozen=True, slots=True)
class ParallelEvent(Event):
    r"""Releases about disjoint groups of records, of which neighbours differ in one.

    Each branch is the cost of the releases about one group, for neighbours that differ in that group. Groups are
    assigned without looking at the data: by a random permutation of public slots, or by an independent coin for each
    record. Branches happen in the order given, and a later one may depend on the outcomes of earlier ones.

    *Statement.* If for given groups each branch is :math:`(\varepsilon, \delta)`-DP, and a later one is so after every
    outcome of the earlier ones, then everything is :math:`(\varepsilon, \delta)`-DP, even if the assignment is secret.
    The same holds with :math:`\mu`-GDP. The cost is that of the dearest branch, not the sum.

    *Proof.* Fix the assignment, and let neighbours differ in the group of branch B. Earlier branches act on equal data,
    so that their outcomes have the same law on both sides. Given each of these outcomes, B is as private as stated.
    Later branches act on equal data and on outcomes that are released already: they are post-processing. This covers
    each assignment. The laws of everything are mixtures over assignments, with the same weights :math:`w_a` for both
    neighbours, since an assignment does not look at the data. Hockey-stick divergences are jointly convex:
    :math:`H(\sum_a w_a P_a, \sum_a w_a Q_a) \le \sum_a w_a H(P_a, Q_a)`, at most the largest. A test at level
    :math:`\alpha = \sum_a w_a \alpha_a` has an error of the second kind of at least :math:`\sum_a w_a f(\alpha_a) \ge
    f(\alpha)`, since trade-off functions f are convex; this is :math:`\mu`-GDP for the largest :math:`\mu`. The same
    proof holds beside other releases, one choice of a branch at a time
    (:func:`~taciturn.events.parallel.alternatives`).

    *Samplers.* Only the sampler of B has to be exchanged for its law. Samplers of the other branches are the same
    randomised maps on equal data, with whatever law they have. So the distance is that of B.

    Several records can lie in several groups: see :func:`~taciturn.events.groups.for_group`.

    Parameters
    ----------
    events : tuple of Event
        The branches, in the order in which they happen; none at all costs nothing.
    """

    kind: ClassVar[str] = "parallel"

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))


def _check_distance(distance: object) -> float:
    return check_real(0.0, 1.0, distance=distance)


PURE_ONLY = (LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent)
"""Events known to be epsilon-DP and nothing better."""


def _parts(event: Event) -> tuple[Event, ...]:
    return event.events if isinstance(event, ComposedEvent) else (event,)


def fold(event: Event) -> dict[Event, int]:
    """How often each elementary event happens, in order of first appearance.

    Counts are multiplied out here, once, so that no accountant has to remember them. All branches of a parallel event
    happen; which of them a record pays for is for :func:`~taciturn.events.parallel.alternatives` to say.
    """
    totals: dict[Event, int] = {}

    def visit(current: Event, count: int) -> None:
        if isinstance(current, RepeatedEvent):
            visit(current.event, count * current.count)
        elif isinstance(current, ComposedEvent | ParallelEvent):
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
    if isinstance(event, ComposedEvent | ParallelEvent):
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
