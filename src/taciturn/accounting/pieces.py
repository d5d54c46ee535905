r"""An event taken apart: the one place where event types and repeat counts are read.

Every bound works on :class:`Pieces`, so that a count cannot be forgotten in one bound and remembered
in another, and an event that is unknown here is unknown to all of them.

A release that is :math:`(\varepsilon, \delta)`-DP is a function of this experiment: with probability
:math:`\delta` show the record, otherwise answer by randomised response at :math:`\varepsilon`
(Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016). Its pure part therefore joins the other
pure pieces, and the chance that any of several such releases shows the record,

.. math:: \ell = 1 - \prod_i (1 - \delta_i),

is set aside: the whole is :math:`(\varepsilon, \ell + (1 - \ell)\,\delta')`-DP as soon as what
remains is :math:`(\varepsilon, \delta')`-DP. The distances of samplers from their laws add up here too; what their sum
costs depends on the epsilon of the whole (:func:`taciturn.accounting.accountant.remaining_delta`).

Two opposite selections are two selections of ranges f and g for one record, in an unknown order. For k records, x of
which move the first one far, their ranges are at most :math:`x f + (k - x) g` and :math:`(k - x) f + x g`. Neither
exceeds :math:`k f`, and every bound rises with the ranges: both are charged at that. (Not at :math:`k f` and
:math:`k g`: that is no smaller for bounds that are convex in the ranges, but the optimal composition of pure releases
is not.) Their sum is :math:`k (f + g)` for every x, and so is the loss at most; ``spared`` says by how much less that
is than what is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.core.errors import ParameterError
from taciturn.events import (
    PURE_ONLY,
    ApproximateEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    count_alternatives,
    fold,
    in_order,
)

__all__ = ["Objective", "Pieces", "pieces_of"]

Counted = tuple[tuple[float, int], ...]

# Smaller costs would vanish when squared. Taking them for this one overstates by nothing that matters.
_SMALLEST = 1e-150

_KNOWN = frozenset(
    (
        *PURE_ONLY,
        ApproximateEvent,
        ExponentialEvent,
        GaussianEvent,
        NotPrivateEvent,
        ObjectivePerturbationEvent,
        OppositeSelectionsEvent,
    )
)


@dataclass(frozen=True, slots=True)
class Objective:
    """A perturbed objective's minimiser between neighbours that may differ in several records.

    Parameters
    ----------
    log_jacobian : float
        Bound on the logarithm of the ratio of Jacobians.
    shift : float
        How far the linear term can move, in units of its noise.
    directions : int
        Dimension of the space in which it moves: one per record that comes or goes. Each moves it by an equal part of
        the shift at most.
    fixed_sign : bool, default=False
        Whether a record moves it to one side only, along the record's own direction.
    """

    log_jacobian: float
    shift: float
    directions: int
    fixed_sign: bool = False


@dataclass(frozen=True, slots=True)
class Pieces:
    """The elementary releases of a plan, sorted by what is known about them.

    Parameters
    ----------
    selections : tuple of (epsilon, count)
        Bounded-range selections as runs, in order of execution.
    pure : tuple of (epsilon, count)
        Releases known to be epsilon-DP and nothing better.
    gaussians : tuple of (noise_multiplier, count)
        Gaussian releases.
    objectives : tuple of (Objective, count)
        Minimisers of perturbed objectives.
    leak : float
        Probability that some approximate release fails outright.
    distance : float
        Bound on the total-variation distance between everything as sampled and everything as the events say.
    private : bool
        False as soon as one release has no protection at all.
    ordered : bool
        Whether ``selections`` happen in the order given.
    spared : float
        The ranges of all selections together are smaller than those listed by at least this.
    """

    selections: Counted
    pure: Counted
    gaussians: Counted
    objectives: tuple[tuple[Objective, int], ...]
    leak: float
    distance: float
    private: bool
    ordered: bool = True
    spared: float = 0.0


def pieces_of(event: Event, *, ordered: bool = True) -> Pieces:
    """Sort the elementary releases of an event.

    Parameters
    ----------
    event : Event
        The plan; of parallel events one branch is chosen already (:func:`taciturn.events.alternatives`).
    ordered : bool, default=True
        Whether the releases are known to happen in the order of the event. Opposite selections never are.

    Raises
    ------
    ParameterError
        If the event, or any event inside it, is of a type whose cost is not known. Subclasses
        count as unknown: their meaning may have changed. Or if a branch is still to be chosen.
    """
    if count_alternatives(event) > 1:
        raise ParameterError(
            "event",
            type(event).__name__,
            "one branch of each parallel event",
            "account for each of taciturn.events.alternatives",
        )
    pure: dict[float, int] = {}
    gaussians: dict[float, int] = {}
    objectives: dict[Objective, int] = {}
    opposite: list[tuple[float, int]] = []
    spared: list[float] = []
    failures: list[tuple[float, int]] = []
    distances: list[float] = []
    private = True
    for part, count in fold(event).items():
        _check_known(part)
        if isinstance(part, GaussianEvent):
            noise_multiplier = min(part.noise_multiplier, 1.0 / _SMALLEST)
            gaussians[noise_multiplier] = gaussians.get(noise_multiplier, 0) + count
        elif isinstance(part, ObjectivePerturbationEvent):
            objective = Objective(
                part.records * part.log_jacobian,
                max(part.records * part.shift, _SMALLEST),
                part.records * (2 if part.replaced else 1),
                part.fixed_sign,
            )
            objectives[objective] = objectives.get(objective, 0) + count
        elif isinstance(part, OppositeSelectionsEvent):
            far = max(part.records * part.far, _SMALLEST)
            near = max(part.near, _SMALLEST) if part.records == 1 else far
            opposite += [(far, count), (near, count)]
            spared.append(count * (far - max(part.records * part.near, _SMALLEST)) if part.records > 1 else 0.0)
        elif isinstance(part, (*PURE_ONLY, ApproximateEvent)):
            epsilon = max(part.epsilon, _SMALLEST)
            pure[epsilon] = pure.get(epsilon, 0) + count
            if isinstance(part, ApproximateEvent):
                failures.append((part.delta, count))
        elif isinstance(part, NotPrivateEvent):
            private = False
        if isinstance(part, (GaussianEvent, ExponentialEvent, ObjectivePerturbationEvent)):
            distances.append(part.distance * count)
    selections = [
        (max(run.epsilon, _SMALLEST), count)
        for run, count in in_order(event, ExponentialEvent)
        if isinstance(run, ExponentialEvent)
    ]
    return Pieces(
        selections=(*selections, *opposite),
        pure=tuple(pure.items()),
        gaussians=tuple(gaussians.items()),
        objectives=tuple(objectives.items()),
        leak=_any_failure(failures),
        distance=min(math.fsum(distances), 1.0),
        private=private,
        ordered=ordered and not opposite,
        spared=math.fsum(spared),
    )


def _check_known(part: Event) -> None:
    if type(part) not in _KNOWN:
        raise ParameterError(
            "event",
            type(part).__name__,
            "events of taciturn.events, alone, composed or repeated",
            "describe the release by one of them, say PureEvent",
        )


def _any_failure(failures: list[tuple[float, int]]) -> float:
    """The chance of at least one failure; never above the union bound, rounding included."""
    union = math.fsum(delta * count for delta, count in failures)
    none = math.fsum(math.log1p(-delta) * count for delta, count in failures)
    return min(union, -math.expm1(none))
