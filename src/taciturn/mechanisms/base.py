"""What a mechanism is, and how selections treat scores in finite arithmetic.

Rounding in selections
----------------------
A selection computes ``(s_j - max s) / b + Z_j`` in double precision and releases where it is largest.
Differences of integer scores are exact, those of floating-point scores correctly rounded, and a
candidate whose scaled difference is beyond 2**10 wins with probability below 1e-300. So the computed
value differs from the exact one, with the exact noise that :class:`~taciturn.core.rng.Stream` rounds, by
at most eta = 2**-40 (noise 2**-42, quotient and sum 2**-42 each).

An ordered list ``j_1 .. j_k`` that wins in computed values wins in exact ones after raising the score
of ``j_r`` by ``2 eta (k - r + 1)``. All three noises have log-survival functions with slope at most one,
so probabilities of lists, and of each next index given the previous ones, change by factors within
``exp(+- 2 eta k (k + 1))``, and ratios between neighbours span at most ``8 eta k (k + 1)`` more than in
exact arithmetic. That is :func:`rounding_charge`: it is taken off epsilon before the noise is scaled, so
the stated epsilon holds for what the computer does.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_positive
from taciturn.events import Event

__all__ = ["FloatArray", "IndexArray", "Mechanism", "below_best", "noise_scale", "rounding_charge"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

ValueT = TypeVar("ValueT", contravariant=True)
ReleaseT = TypeVar("ReleaseT", covariant=True)

_ETA = 2.0**-40
# No candidate this far behind can win; finite, so that later products stay numbers.
_FAR = 1e300


@runtime_checkable
class Mechanism(Protocol[ValueT, ReleaseT]):
    """Something that may be shown data: it knows what one release costs and how to make it."""

    arithmetic: ClassVar[str]

    @property
    def event(self) -> Event:
        """The cost of one release."""

    def release(self, value: ValueT, stream: Stream) -> ReleaseT:
        """The private answer; ``stream`` is used for this release alone."""


def rounding_charge(k: int = 1) -> float:
    """The part of epsilon that pays for double precision in an ordered selection of k."""
    return 8.0 * _ETA * k * (k + 1)


def noise_scale(spread: float, epsilon: float, charge: float) -> float:
    """``spread / (epsilon - charge)``, the noise scale at which a selection costs epsilon."""
    check_positive(epsilon=epsilon)
    if epsilon <= 2.0 * charge:
        raise ParameterError(
            "epsilon",
            epsilon,
            f"more than {2.0 * charge:.2g}, twice what rounding costs here",
            "raise epsilon or select fewer candidates",
        )
    return spread / (epsilon - charge)


def below_best(scores: object, scale: float) -> FloatArray:
    """``(scores - max(scores)) / scale``, the difference taken exactly for integer scores."""
    array = check_finite(scores=scores)
    distance: FloatArray
    if array.dtype == np.int64:
        # Two's complement makes the unsigned difference right even where the signed one overflows.
        distance = (array.max() - array).view(np.uint64).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            distance = np.minimum(array.max() - array, _FAR)
    distance /= -scale
    return distance
