"""Events: values that describe one release each, how they are grouped, and their JSON."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, ClassVar

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.core.validation import check_delta, check_integer, check_positive, check_real


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
        has with labels 0 and 1 (not with labels between them, nor Huber's loss).
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
class RepeatAndSelectEvent(Event):
    r"""A random number of trials, of which one is released, chosen by what it returned itself.

    Each trial is a fresh run of a mechanism that is :math:`\mu`-GDP, its choice among public candidates included, and
    returns a score with its result. The trial with the best score is released, and nothing about the others. Their
    number is secret, and drawn from a truncated negative binomial law of a ``shape``: logarithmic for 0, geometric for
    1. See :func:`taciturn.privacy.rdp.trials_curve` for the cost and its source.

    Parameters
    ----------
    noise_multiplier : float
        Of a Gaussian release that costs what one trial does: :math:`1 / \mu`.
    mean : float
        The mean number of trials, at least 1.
    shape : float, default=0.0
        Of the law of their number.
    distance : float, default=0.0
        Of everything as sampled from its law: of the trials that are expected, and of the number of trials.
    """

    kind: ClassVar[str] = "repeat-and-select"

    noise_multiplier: float
    mean: float
    shape: float = 0.0
    distance: float = 0.0

    def __post_init__(self) -> None:
        value = check_positive(noise_multiplier=self.noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)
        object.__setattr__(self, "mean", check_real(1.0, 1e6, mean=self.mean))
        object.__setattr__(self, "shape", check_real(0.0, 1e3, shape=self.shape))
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
    (:func:`~taciturn.privacy.events.alternatives`).

    *Samplers.* Only the sampler of B has to be exchanged for its law. Samplers of the other branches are the same
    randomised maps on equal data, with whatever law they have. So the distance is that of B.

    Several records can lie in several groups: see :func:`~taciturn.privacy.events.for_group`.

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
    happen; which of them a record pays for is for :func:`~taciturn.privacy.events.alternatives` to say.
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


def for_group(event: Event, size: int) -> Event:
    r"""The cost of the same releases between data sets that differ in ``size`` records.

    A chain of ``size`` neighbours joins the two. Along it log-probability ratios add up, hence so do
    their ranges and their bounds (exponential, pure); sensitivities add up (Gaussian, and each trial of a search); and
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
    if isinstance(event, (GaussianEvent, RepeatAndSelectEvent)):
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


# --- Events as JSON, and back.

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
        OppositeSelectionsEvent,
        RepeatAndSelectEvent,
        NotPrivateEvent,
        ComposedEvent,
        ParallelEvent,
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


def event_from_dict(described: dict[str, Any]) -> Event:
    """The inverse of :func:`event_to_dict`: every field has to be there."""
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
        values["events"] = tuple(event_from_dict(part) for part in nested[0])
    if nested[1] is not None:
        values["event"] = event_from_dict(nested[1])
    # A default would stand for a field that was removed.
    if set(values) != {field.name for field in fields(_KINDS[kind])}:  # type: ignore[arg-type]
        raise damaged
    return _KINDS[kind](**values)


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
