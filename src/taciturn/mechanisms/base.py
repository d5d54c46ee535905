"""What a mechanism is, and how selections treat scores in finite arithmetic.

Rounding in selections
----------------------
A selection compares ``s_j + b Z_j``. The product is rounded once; the sum is kept as a pair of numbers that is compared
exactly (:func:`noisy_keys`). So wherever two candidates stand, near the top or 10**17 below it, the computed noise
differs from the exact one that :class:`~taciturn.core.rng.Stream` rounds by at most eta = 2**-40 scales (Gumbel noise
2**-42, the product 2**-43 while ``|Z| < 2**10``, the fraction of a pair 2**-54 of a unit, and integers that become
doubles beside a scale above 2**50 at most 2**-41). Noise beyond 2**10, and what is smaller than the smallest double,
has probability below 1e-300 and is taken not to happen. Apart from that the error is a factor, not a distance from the
law: these selections have events of distance 0 and may be used at delta = 0.

An ordered list ``j_1 .. j_k`` that wins in computed values wins in exact ones after raising the score of ``j_r`` by
``2 eta (k - r + 1)``. All three noises have log-survival functions with slope at most one, so probabilities of lists,
and of each next index given the previous ones, change by factors within ``exp(+- 2 eta k (k + 1))``, and ratios
between neighbours span at most ``8 eta k (k + 1)`` more than in exact arithmetic. That is :func:`rounding_charge`: it
is taken off epsilon before the noise is scaled, so the stated epsilon holds for what the computer does.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, NumberArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_positive
from taciturn.events import Event

__all__ = [
    "LARGEST_SCORE",
    "Mechanism",
    "NumberArray",
    "first_k_of",
    "first_of",
    "noise_scale",
    "noisy_keys",
    "rounding_charge",
]


ValueT = TypeVar("ValueT", contravariant=True)
ReleaseT = TypeVar("ReleaseT", covariant=True)

_ETA = 2.0**-40
LARGEST_SCORE = 1 << 62
"""The largest integer score: scores and integer parts of noise both leave room for their sum in 64 bits."""
_WIDEST = 2.0**50


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


def noisy_keys(scores: object, noise: FloatArray, scale: float) -> tuple[NumberArray, FloatArray]:
    """``scores + scale * noise`` as pairs (major, minor) that order like the sums, lexicographically.

    For integers the pair is the integer and the fractional part of the sum, that of negative noise rounded by 2**-54 at
    most; for doubles it is the rounded sum and its rounding error (Knuth's two-sum), which is exact.
    """
    array = check_finite(scores=scores)
    shift = noise * scale
    if array.dtype == np.int64 and scale <= _WIDEST:
        if array.size and max(int(array.max()), -int(array.min())) > LARGEST_SCORE:
            raise DataError("scores: expected integers below 2**62, got larger ones; rescale them.")
        whole = np.floor(shift)
        return array + whole.astype(np.int64), shift - whole
    # Integers this small beside their noise lose nothing that matters as doubles.
    values = array.astype(np.float64)
    total = values + shift
    back = total - values
    return total, (values - (total - back)) + (shift - back)


def first_of(major: NumberArray, minor: FloatArray) -> int:
    """The index of the largest pair; exactly equal ones go to the lower index."""
    tied = np.flatnonzero(major == major.max())
    return int(tied[np.argmax(minor[tied])])


def first_k_of(major: NumberArray, minor: FloatArray, k: int) -> IntArray:
    """The indices of the k largest pairs, largest first."""
    candidates = np.flatnonzero(major >= np.partition(major, major.size - k)[major.size - k])
    order = np.lexsort((-minor[candidates], -major[candidates]))
    return candidates[order[:k]].astype(np.int64)
