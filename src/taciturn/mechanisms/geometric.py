r"""Two-sided geometric noise for counts, sampled without a floating-point operation.

:math:`P(k) \propto e^{-\varepsilon|k|/\Delta}` on the integers is the Laplace mechanism of counts. The
budget is a double, hence a fraction, and every random decision is a comparison of integers: the law
is exact, not close, and the distance of the event is 0.

References
----------
A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms",
STOC 2009. C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy",
NeurIPS 2020, algorithms 1 and 2.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.arrays import AnyArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer, check_positive
from taciturn.events import PureEvent
from taciturn.mechanisms.transcript import Call, answer

__all__ = ["TwoSidedGeometric", "two_sided_geometric"]

Below = Callable[[int], int]
"""``below(n)`` is uniform on ``0, ..., n - 1`` and independent of the calls before."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_BATCH = 128


@dataclass(frozen=True, slots=True)
class TwoSidedGeometric:
    r"""Release integers plus two-sided geometric noise.

    **Privacy.** epsilon-DP: moving the centre by at most :math:`\Delta` in L1 norm changes each
    probability by a factor of at most :math:`e^{\varepsilon}`, with equality in the tails.

    Parameters
    ----------
    sensitivity : int
        Largest L1 distance between the values of neighbouring data sets.
    epsilon : float
        The cost of one release.

    Examples
    --------
    >>> from taciturn.core.rng import Stream
    >>> mechanism = TwoSidedGeometric(sensitivity=1, epsilon=0.5)
    >>> mechanism.event
    PureEvent(epsilon=0.5)
    >>> type(mechanism.release(120, Stream.of()))
    <class 'int'>
    """

    arithmetic: ClassVar[str] = "exact"

    sensitivity: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", check_integer(1, sensitivity=self.sensitivity))
        object.__setattr__(self, "epsilon", check_positive(epsilon=self.epsilon))

    @property
    def event(self) -> PureEvent:
        """The privacy cost of one release."""
        return PureEvent(self.epsilon)

    @overload
    def release(self, value: int, stream: Stream) -> int: ...

    @overload
    def release(self, value: ArrayLike, stream: Stream) -> IntArray: ...

    def release(self, value: ArrayLike, stream: Stream) -> int | IntArray:
        """The integer, or the integers in their shape, plus noise.

        Arrays saturate at the limits of int64 instead of wrapping around, which is post-processing.
        """
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            count = int(value)
            return answer(
                lambda: Call(self, (("l1", float(self.sensitivity)),), lambda outcome: np.array([count])),
                lambda: count + two_sided_geometric(self._rate, _batched(stream)),
            )
        exact = np.asarray(value)
        if exact.dtype.kind not in "iu":
            raise DataError(
                f"value: expected an integer or an array of integers, got type {exact.dtype}; "
                "geometric noise is for counts."
            )
        return answer(
            lambda: Call(self, (("l1", float(self.sensitivity)),), lambda outcome: exact),
            lambda: self._noisy(exact, stream),
        )

    @property
    def _rate(self) -> Fraction:
        return Fraction(self.epsilon) / self.sensitivity

    def _noisy(self, exact: AnyArray, stream: Stream) -> IntArray:
        rate, below = self._rate, _batched(stream)
        noisy = (centre + two_sided_geometric(rate, below) for centre in exact.ravel().tolist())
        within = (min(max(number, _LOWEST), _HIGHEST) for number in noisy)
        return np.fromiter(within, dtype=np.int64, count=exact.size).reshape(exact.shape)


def two_sided_geometric(rate: Fraction, below: Below) -> int:
    r"""One integer k with probability proportional to :math:`e^{-\mathtt{rate}\,|k|}`.

    For a rate of s/t, ``u + t v`` is geometric with parameter 1/t if u < t is accepted with
    probability :math:`e^{-u/t}` and v is geometric with parameter 1; dividing by s and dropping the
    remainder leaves a geometric number with parameter s/t, which a sign makes two-sided once the
    negative zero is thrown away.
    """
    numerator, denominator = rate.as_integer_ratio()
    while True:
        remainder = below(denominator)
        if not _decays(remainder, denominator, below):
            continue
        whole = 0
        while _decays(1, 1, below):
            whole += 1
        size = (remainder + denominator * whole) // numerator
        if below(2) == 0:
            return size
        if size:
            return -size


def _decays(numerator: int, denominator: int, below: Below) -> bool:
    r"""True with probability :math:`e^{-x}`, for the fraction x in [0, 1].

    Toss coins with success probabilities x/1, x/2, x/3, ... up to the first failure. At least k
    succeed with probability :math:`x^k/k!`, so the failure comes at an odd toss with probability
    :math:`\sum_k (-x)^k/k!`.
    """
    toss = 1
    while below(denominator * toss) < numerator:
        toss += 1
    return toss % 2 == 1


def _batched(stream: Stream) -> Below:
    """``stream.below``, with words drawn many at a time: a call for a single one costs microseconds."""
    ready: list[int] = []

    def word() -> int:
        if not ready:
            ready.extend(stream.words(_BATCH).tolist())
        return ready.pop()

    def below(bound: int) -> int:
        n_bits = (bound - 1).bit_length()
        while True:
            drawn, missing = word(), n_bits - 64
            while missing > 0:
                drawn = drawn << 64 | word()
                missing -= 64
            drawn >>= -missing
            if drawn < bound:
                return drawn

    return below
