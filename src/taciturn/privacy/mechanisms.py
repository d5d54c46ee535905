"""Mechanisms: the only places that draw noise for a release."""

from __future__ import annotations

import math
import numbers
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Protocol, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    AnyArray,
    FloatArray,
    IntArray,
    NumberArray,
    WordArray,
    check_choice,
    check_finite,
    check_integer,
    check_positive,
    check_real,
)
from taciturn.data.sensitivity import Sensitivity, quantile_scores
from taciturn.kernels.gaussian import EXTRA_WORDS, Propose, StripTables, propose, resolve, strip_tables
from taciturn.kernels.ranks import best_class_of_head, largest_noise
from taciturn.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    PermuteAndFlipEvent,
    PureEvent,
)
from taciturn.privacy.transcript import Call, answer, score_limits

# --- What a mechanism is, and how selections treat scores in finite arithmetic.
#
# A selection compares ``s_j + b Z_j``. The product is rounded once; the sum is kept as a pair of numbers that is
# compared exactly (:func:`noisy_keys`). So wherever two candidates stand, near the top or 10**17 below it, the
# computed noise differs from the exact one that :class:`~taciturn.core.rng.Stream` rounds by at most eta = 2**-40
# scales (Gumbel noise 2**-42, the product 2**-43 while ``|Z| < 2**10``, the fraction of a pair 2**-54 of a unit, and
# integers that become doubles beside a scale above 2**50 at most 2**-41). Noise beyond 2**10, and what is smaller
# than the smallest double, has probability below 1e-300 and is taken not to happen. Apart from that the error is a
# factor, not a distance from the law: these selections have events of distance 0 and may be used at delta = 0.
#
# An ordered list ``j_1 .. j_k`` that wins in computed values wins in exact ones after raising the score of ``j_r`` by
# ``2 eta (k - r + 1)``. All three noises have log-survival functions with slope at most one, so probabilities of lists,
# and of each next index given the previous ones, change by factors within ``exp(+- 2 eta k (k + 1))``, and ratios
# between neighbours span at most ``8 eta k (k + 1)`` more than in exact arithmetic. That is :func:`rounding_charge`: it
# is taken off epsilon before the noise is scaled, so the stated epsilon holds for what the computer does.

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


# --- Gaussian noise on the integers, by rounding: exact, and as cheap as floating point.
#
# Noise in floating point leaves traces of the value it was added to in the low bits of the sum
# (Mironov, 2012). Here values are integers (fixed-point sums) and so is the noise. For an integer q,
#
# .. math:: q + \mathrm{round}(Z) = \mathrm{round}(q + Z), \qquad Z \sim N(0, s^2),
#
# so the release is a function of the continuous Gaussian mechanism's output: post-processing. It
# satisfies exactly the same :math:`\Delta_2/s`-Gaussian differential privacy, in any dimension and under
# adaptive composition, at the price of a variance of :math:`s^2 + 1/12`.
#
# References: J. Dong, A. Roth, W. Su, "Gaussian differential privacy", JRSS B 84, 2022. I. Mironov, "On significance of
# the least significant bits for differential privacy", CCS 2012. C. Canonne, G. Kamath, T. Steinke, "The discrete
# Gaussian for differential privacy", NeurIPS 2020, for the other law on the integers, whose guarantee is zCDP.

DISTANCE_PER_VALUE = 2.0**-118
"""Bound on the total-variation distance between one sampled value and the rounded Gaussian."""

# Words for one pass (128 KB) stay in the second-level cache; larger buffers cost page faults.
_PASS = 1 << 13
_CUT = 14
_ROUNDING_ROOM = 1.0 + 2.0**-50


def rounded_normals(stream: Stream, size: int, log2_scale: int) -> IntArray:
    """``size`` independent values of ``round(N(0, 4**log2_scale))``, for a ``log2_scale`` from 5 to 55.

    Each is within total-variation distance :math:`2^{-118}` of the law, and at most ``14 * 2**log2_scale`` in size.
    """
    return lattice_normals(stream, size, log2_scale)


def lattice_normals(
    stream: Stream,
    size: int,
    log2_scale: int,
    *,
    discrete: bool = False,
    tables: StripTables | None = None,
    kernel: Propose = propose,
) -> IntArray:
    r"""Rounded or discrete Gaussian integers; :func:`rounded_normals` is the one to release with.

    ``discrete`` samples :math:`P(x) \propto e^{-x^2/2s^2}` instead of the rounded law. ``kernel`` is the loop that
    reads proposals; its numpy counterpart gives the same values.
    """
    size = check_integer(0, size=size)
    log2_scale = check_integer(5, 55, log2_scale=log2_scale)
    tables = strip_tables() if tables is None else tables
    _, heads, guide, squeeze, margin = tables
    out = np.empty(size, dtype=np.int64)
    slow = np.empty((_n_proposals(size), 2), dtype=np.int64)
    filled = 0
    while filled < size:
        words = stream.words(2 * _n_proposals(size - filled))
        part = out[filled:]
        n_out, n_slow = kernel(words, log2_scale, discrete, heads, guide, squeeze, margin, part, slow)
        if n_slow:
            n_out = _settle(stream, words, slow[:n_slow], part[:n_out], log2_scale, discrete, tables)
        filled += n_out
    return out


@cache
def warm_up() -> None:
    """Compute the tables and compile the sampler, once a process, from words that are not random."""
    _, heads, guide, squeeze, margin = strip_tables()
    words, out, slow = np.zeros(2, dtype=np.uint64), np.empty(1, dtype=np.int64), np.empty((1, 2), dtype=np.int64)
    propose(words, 20, False, heads, guide, squeeze, margin, out, slow)


def _n_proposals(size: int) -> int:
    # 2.4 % are rejected; the rest is slack that makes a second pass for a few values rare.
    return min(_PASS, size + size // 32 + 8)


def _settle(
    stream: Stream,
    words: WordArray,
    slow: IntArray,
    part: IntArray,
    log2_scale: int,
    discrete: bool,
    tables: StripTables,
) -> int:
    """Decide the slow proposals in their places and close the gaps; how many values remain."""
    rejected = []
    for place, proposal in slow.tolist():
        extra = int.from_bytes(stream.words(EXTRA_WORDS).tobytes(), "little")
        first, offset = words[2 * proposal : 2 * proposal + 2].tolist()
        value = resolve(first, offset, extra, log2_scale, discrete, tables.cumulative)
        if value is None:
            rejected.append(place)
        else:
            part[place] = value
    remaining = part.size - len(rejected)
    if rejected:
        part[:remaining] = np.delete(part, rejected)
    return remaining


@dataclass(frozen=True, slots=True)
class RoundedGaussian:
    r"""Release an integer vector plus rounded Gaussian noise of scale ``s = 2**log2_scale``.

    **Privacy.** Rounding commutes with adding an integer, so the release is post-processing of the Gaussian mechanism:
    exactly :math:`\Delta_2/s`-GDP. Each sampled value is within :math:`2^{-118}` of the law in total variation, N of
    them within :math:`N 2^{-118}`; :meth:`event_of` states that distance, and an accountant charges it.

    The scale is a power of two on purpose. For noise of standard deviation sigma choose the
    lattice step sigma / 2**k; do not round sigma.

    Parameters
    ----------
    l2_sensitivity : float
        Largest L2 distance, in lattice units, between the values of neighbouring data sets. Often
        the square root of an integer; the event allows for its rounding.
    log2_scale : int
        k, from 5 to 55.
    magnitude : int
        Public bound on every ``abs(value)``. Noise cannot leave ``14 * 2**k``, so the sum provably fits into 64 bits or
        the constructor refuses. Values beyond it are clipped, which lengthens no difference between neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.core.rng import Stream
    >>> mechanism = RoundedGaussian(l2_sensitivity=1024, log2_scale=12, magnitude=2**40)
    >>> mechanism.release(np.array([3, 1, 4]), Stream.of()).dtype
    dtype('int64')
    """

    arithmetic: ClassVar[str] = "exact"

    l2_sensitivity: float
    log2_scale: int
    magnitude: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2_sensitivity", check_positive(l2_sensitivity=self.l2_sensitivity))
        object.__setattr__(self, "log2_scale", check_integer(5, 55, log2_scale=self.log2_scale))
        object.__setattr__(self, "magnitude", check_integer(0, magnitude=self.magnitude))
        room = 2**63 - (_CUT << self.log2_scale) - 1
        if self.magnitude >= room:
            raise ParameterError(
                "magnitude",
                self.magnitude,
                f"an integer below {room}, so that value and noise fit into 64 bits",
                "use a coarser lattice or a smaller log2_scale",
            )

    @property
    def event(self) -> GaussianEvent:
        """The privacy cost of releasing one value; of more, see :meth:`event_of`."""
        return self.event_of(1)

    def event_of(self, n_values: int) -> GaussianEvent:
        """The privacy cost of one release of ``n_values`` values."""
        multiplier = 2.0**self.log2_scale / (self.l2_sensitivity * _ROUNDING_ROOM)
        return GaussianEvent(multiplier, check_integer(1, n_values=n_values) * DISTANCE_PER_VALUE)

    def release(self, value: ArrayLike, stream: Stream) -> IntArray:
        """The integers plus noise, in the shape they came in."""
        exact = self._clipped(np.asarray(value))
        return answer(
            lambda: Call(self, (("l2", self.l2_sensitivity),), lambda outcome: exact),
            lambda: exact + rounded_normals(stream, exact.size, self.log2_scale).reshape(exact.shape),
        )

    def _clipped(self, value: AnyArray) -> IntArray:
        if value.dtype.kind == "u":
            return np.minimum(value.astype(np.uint64), np.uint64(self.magnitude)).astype(np.int64)
        if value.dtype.kind == "i":
            # numpy's clip looks up the limits of the type first, which takes longer than this for a few values.
            return np.minimum(np.maximum(value.astype(np.int64), -self.magnitude), self.magnitude)
        raise DataError(
            f"value: expected an array of integers, got type {value.dtype}; "
            "put the values on a lattice before they meet the noise."
        )


# --- Gaussian noise in floating point, for values that cannot be put on a lattice.
#
# The guarantee is that of real arithmetic: the sum of two doubles may betray, through its low bits, which value the
# noise was added to (Mironov, CCS 2012, as above). Use :class:`RoundedGaussian` wherever the value is an integer.


@dataclass(frozen=True, slots=True)
class FloatGaussian:
    r"""Release ``value + scale * N(0, 1)``, coordinate by coordinate.

    **Privacy.** :math:`\Delta_2/\mathtt{scale}`-Gaussian differential privacy in real arithmetic. How far doubles are
    from that is not known, and the event states no distance.

    Parameters
    ----------
    l2_sensitivity : float
        Largest L2 distance between the values of neighbouring data sets.
    scale : float
        Standard deviation of the noise, in the units of the value.

    Examples
    --------
    >>> from taciturn.core.rng import Stream
    >>> mechanism = FloatGaussian(l2_sensitivity=0.5, scale=2.0)
    >>> mechanism.event
    GaussianEvent(noise_multiplier=4.0, distance=0.0)
    >>> mechanism.release([0.25, 0.75], Stream.of()).shape
    (2,)
    """

    arithmetic: ClassVar[str] = "float64"

    l2_sensitivity: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2_sensitivity", check_positive(l2_sensitivity=self.l2_sensitivity))
        object.__setattr__(self, "scale", check_positive(scale=self.scale))

    @property
    def event(self) -> GaussianEvent:
        """The privacy cost of one release."""
        return GaussianEvent(self.scale / self.l2_sensitivity)

    def release(self, value: ArrayLike, stream: Stream) -> FloatArray:
        """The vector plus noise."""
        exact = check_finite(value=value).astype(np.float64)
        return answer(
            lambda: Call(self, (("l2", self.l2_sensitivity),), lambda outcome: exact),
            lambda: exact + self.scale * stream.normals(exact.size),
        )


# --- Two-sided geometric noise for counts, sampled without a floating-point operation.
#
# :math:`P(k) \propto e^{-\varepsilon|k|/\Delta}` on the integers is the Laplace mechanism of counts. The
# budget is a double, hence a fraction, and every random decision is a comparison of integers: the law
# is exact, not close, and the distance of the event is 0.
#
# References: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
# C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, algorithms 1 and 2.

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

    For a rate of s/t, ``u + t v`` is geometric with parameter 1/t if u < t is accepted with probability
    :math:`e^{-u/t}` and v is geometric with parameter 1; dividing by s and dropping the remainder leaves a geometric
    number with parameter s/t, which a sign makes two-sided once the negative zero is thrown away.
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

    Toss coins with success probabilities x/1, x/2, x/3, ... up to the first failure. At least k succeed with
    probability :math:`x^k/k!`, so the failure comes at an odd toss with probability :math:`\sum_k (-x)^k/k!`.
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


# --- Private selection: the index of a large score.
#
# Given scores ``s_1 .. s_d`` that move by at most Delta between neighbours, each mechanism releases
# ``argmax_j s_j + b Z_j`` and costs ``epsilon = 2 Delta / b`` (``Delta / b`` if the scores are monotone). Noise by
# standard deviation: permute-and-flip 1.00 b, exponential mechanism 1.28 b, Laplace 1.41 b. For *one* pure
# selection permute-and-flip is best; for many composed ones the exponential mechanism, whose log-ratios
# span only epsilon (bounded range), while those of the others may span nearly twice that.


@dataclass(frozen=True, slots=True)
class Selection:
    """Common part of the three selections, each with its noise and its event.

    ``sensitivity`` is that of the scores, in the linf norm; ``epsilon`` is the cost of one release, rounding included.
    """

    arithmetic: ClassVar[str] = "exact"
    _noise: ClassVar[str]
    _event: ClassVar[type[ExponentialEvent | PermuteAndFlipEvent | LaplaceMaxEvent]]

    sensitivity: Sensitivity
    epsilon: float

    def __post_init__(self) -> None:
        self.sensitivity.require("linf")
        noise_scale(self.sensitivity.spread, self.epsilon, rounding_charge())

    @property
    def scale(self) -> float:
        """The noise scale b, in units of the scores."""
        return noise_scale(self.sensitivity.spread, self.epsilon, rounding_charge())

    @property
    def event(self) -> Event:
        """The cost of one release."""
        return self._event(self.epsilon)

    def release(self, scores: object, stream: Stream) -> int:
        """The index of the winning candidate; computed ties go to the lower column number."""
        array = check_finite(scores=scores)
        return answer(
            lambda: Call(self, score_limits(self.sensitivity), lambda outcome: array),
            lambda: first_of(*noisy_keys(array, getattr(stream, self._noise)(array.size), self.scale)),
        )


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Selection):
    r"""Index j with probability proportional to ``exp(s_j / b)``, by Gumbel noise.

    *Proof.* ``log P_D(j) - log P_D'(j) = (s_j - s'_j) / b - c`` with c common to all j, and the first term spans at
    most ``2 Delta / b``: the mechanism is epsilon-bounded-range, hence epsilon-DP and (epsilon**2 / 8)-zCDP.

    References
    ----------
    McSherry and Talwar (2007); Durfee and Rogers, arXiv:1905.04273; Cesar and Rogers, arXiv:2004.07223.
    """

    _noise: ClassVar[str] = "gumbels"
    _event: ClassVar[type[ExponentialEvent]] = ExponentialEvent


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    r"""``argmax_j s_j + b E_j`` with E exponential: the best single selection under pure DP.

    *Proof.* Fix the noise of the others; j wins iff ``E_j`` passes a threshold that moves by at most
    ``2 Delta / b`` between neighbours, and ``log P(E > x)`` has slopes in [-1, 0]. Not bounded-range.

    References
    ----------
    McKenna and Sheldon, arXiv:2010.12603; Ding et al., arXiv:2105.07260 (equivalence to exponential noise).
    """

    _noise: ClassVar[str] = "exponentials"
    _event: ClassVar[type[PermuteAndFlipEvent]] = PermuteAndFlipEvent


@dataclass(frozen=True, slots=True)
class LaplaceNoisyMax(Selection):
    r"""``argmax_j s_j + b L_j`` with L Laplace: the selection of most papers, kept for comparison.

    *Proof.* As for permute-and-flip: ``log P(L > x)`` has slopes in [-1, 0]. Not bounded-range.

    References
    ----------
    Dwork and Roth, *The Algorithmic Foundations of Differential Privacy* (2014), section 3.3.
    """

    _noise: ClassVar[str] = "laplaces"
    _event: ClassVar[type[LaplaceMaxEvent]] = LaplaceMaxEvent


# --- Private top-k by noisy scores: one shot or by peeling.
#
# All release the k winners in order, best first. ``k = d`` returns every index and touches no data.


class TopK(Protocol):
    """A mechanism that releases k indices."""

    @property
    def arithmetic(self) -> str:
        """Whether the proof covers what the computer does."""

    @property
    def scale(self) -> float:
        """The noise scale, in units of the scores."""

    @property
    def event(self) -> Event:
        """The cost of one release."""

    def release(self, scores: object, stream: Stream) -> IntArray:
        """The chosen indices."""


def check_k(k: int, n_candidates: int) -> None:
    """Refuse to select more candidates than there are."""
    if k > n_candidates:
        raise ParameterError("k", k, f"an integer from 1 to {n_candidates}, the number of candidates", "lower k")


@dataclass(frozen=True, slots=True)
class _OneShotTopK:
    """Noise every score once, keep the k largest."""

    arithmetic: ClassVar[str] = "exact"
    _noise: ClassVar[str]

    sensitivity: Sensitivity
    k: int
    epsilon: float

    def __post_init__(self) -> None:
        check_integer(1, k=self.k)
        self.sensitivity.require("linf")
        noise_scale(self._spread, self.epsilon, rounding_charge(self.k))

    @property
    def _spread(self) -> float:
        """The noise scale times epsilon."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """The noise scale b, in units of the scores."""
        return noise_scale(self._spread, self.epsilon, rounding_charge(self.k))

    def release(self, scores: object, stream: Stream) -> IntArray:
        """The winners, best first."""
        array = check_finite(scores=scores)
        check_k(self.k, array.size)
        if self.k == array.size:
            return np.arange(self.k)
        return answer(
            lambda: Call(self, score_limits(self.sensitivity), lambda outcome: array),
            lambda: first_k_of(*noisy_keys(array, getattr(stream, self._noise)(array.size), self.scale), self.k),
        )


@dataclass(frozen=True, slots=True)
class GumbelTopK(_OneShotTopK):
    r"""The k largest of ``s_j + b G_j`` with G standard Gumbel, in one pass.

    *Proof.* The ordered winners are distributed as k rounds of the exponential mechanism at scale b, each
    without the previous winners (Plackett and Luce). So one release is k adaptive epsilon-bounded-range
    selections, ``epsilon = 2 Delta / b``.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the scores, in the linf norm.
    k : int
        How many to select.
    epsilon : float
        Cost of *each* of the k selections.

    References
    ----------
    Durfee and Rogers, arXiv:1905.04273.
    """

    _noise: ClassVar[str] = "gumbels"

    @property
    def event(self) -> Event:
        """As many bounded-range selections as winners."""
        return ExponentialEvent(self.epsilon) * self.k

    @property
    def _spread(self) -> float:
        return self.sensitivity.spread


@dataclass(frozen=True, slots=True)
class LaplaceTopK(_OneShotTopK):
    r"""The k largest of ``s_j + b L_j`` with L Laplace and ``b = 2 k Delta / epsilon``: pure epsilon-DP.

    *Proof.* Let noise z give the ordered winners S on D. On D' the noise ``z'_j = z_j + (s_j - s'_j) + Delta`` for j in
    S, unchanged elsewhere, gives the same: winners keep their distances and rise by Delta, the others rise by at most
    Delta. k coordinates moved by at most ``2 Delta`` (by Delta if monotone, choosing 0 instead of +Delta where all
    scores fall), so densities change by a factor of at most ``exp(2 k Delta / b)``.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the scores, in the linf norm.
    k : int
        How many to select.
    epsilon : float
        Cost of the whole release.

    References
    ----------
    Qiao, Su and Zhang, *Oneshot differentially private top-k selection*, arXiv:2105.08233.
    """

    _noise: ClassVar[str] = "laplaces"

    @property
    def event(self) -> Event:
        """One pure release."""
        return PureEvent(self.epsilon)

    @property
    def _spread(self) -> float:
        return self.k * self.sensitivity.spread


@dataclass(frozen=True, slots=True)
class PeelingTopK:
    """k rounds of one selection, each among the candidates that are left, with fresh noise.

    Parameters
    ----------
    selection : Selection
        The mechanism of one round; permute-and-flip gives the least noise under pure DP.
    k : int
        How many to select.
    """

    selection: Selection
    k: int

    def __post_init__(self) -> None:
        check_integer(1, k=self.k)

    @property
    def arithmetic(self) -> str:
        """That of the selection."""
        return self.selection.arithmetic

    @property
    def scale(self) -> float:
        """The noise scale b of one round, in units of the scores."""
        return self.selection.scale

    @property
    def event(self) -> Event:
        """The selection's cost, k times."""
        return self.selection.event * self.k

    def release(self, scores: object, stream: Stream) -> IntArray:
        """The winners, best first."""
        left: NumberArray = check_finite(scores=scores)
        check_k(self.k, left.size)
        if self.k == left.size:
            return np.arange(self.k)
        indices = np.arange(left.size)
        winners = np.empty(self.k, dtype=np.int64)
        for place in range(self.k):
            winner = self.selection.release(left, stream)
            winners[place] = indices[winner]
            others = np.arange(left.size) != winner
            left, indices = left[others], indices[others]
        return winners


# --- A ranking that is only sorted where someone looks.
#
# The canonical Lipschitz mechanism needs the best k candidates in order, how many candidates lie in each
# band of utility below them, and the value at a few single ranks. That takes a handful of passes over the
# scores; a full sort would cost more than all the rest.
#
# Ranks count from 1. Higher values come first, equal values in order of their index.


class Ranking:
    """The order of ``values``, of which the first ``k`` places are wanted and the rest in bands.

    There are more than k values. A band below the head covers ``1 / bands_per_unit`` of value (0 puts everything into
    one band), and all that lies below ``n_bands`` of them goes into one last band.
    """

    def __init__(self, values: FloatArray, k: int, bands_per_unit: float, n_bands: int) -> None:
        self._values = values
        self._k = k
        *head, next_best = leading(values, k + 1)
        self.head = np.array(head)
        self.head_values = values[self.head]
        self.anchor = float(values[next_best])
        depth = (self.anchor - values) * bands_per_unit
        np.clip(depth, 0.0, n_bands, out=depth)
        self._band_of = depth.astype(np.intp)
        counts = np.bincount(self._band_of)
        # The head itself was counted into the first band.
        counts[0] -= k
        self.bands = np.flatnonzero(counts)
        self.last_ranks = k + np.cumsum(counts[self.bands])
        self.first_ranks = np.concatenate(([k + 1], self.last_ranks[:-1] + 1))
        self._sorted_bands: dict[int, FloatArray] = {}

    def value(self, rank: int) -> float:
        """The value at one rank below the head."""
        members, before = self._band_at(rank)
        return float(members[rank - before - 1])

    def index(self, rank: int) -> int:
        """The candidate at one rank below the head."""
        members, before = self._band_at(rank)
        value = members[rank - before - 1]
        n_higher = before + int(np.searchsorted(-members, -value))
        return int(np.flatnonzero(self._values == value)[rank - n_higher - 1])

    def between(self, low: int, end: int) -> IntArray:
        """The candidates from rank ``low`` (at most k + 1) up to, not including, the candidate ``end``."""
        value = self._values[end]
        inside = self._values > value
        inside[:end] |= self._values[:end] == value
        inside[self.head[: low - 1]] = False
        return np.flatnonzero(inside)

    def _band_at(self, rank: int) -> tuple[FloatArray, int]:
        """The band that holds a rank, in order, and how many ranks come before it."""
        place = int(np.searchsorted(self.last_ranks, rank))
        band = int(self.bands[place])
        if band not in self._sorted_bands:
            self._sorted_bands[band] = np.sort(self._values[self._band_of == band])[::-1]
        # The first band also holds the head.
        return self._sorted_bands[band], 0 if place == 0 else int(self.last_ranks[place - 1])


def leading(values: NumberArray, k: int) -> IntArray:
    """Indices of the k largest values in order.

    The k-th largest of the maxima of interleaved columns is a lower bound on the k-th largest value, so
    one pass leaves few candidates to sort.
    """
    n_columns = 4 * k
    n_rows = values.size // n_columns
    if n_rows > 4:
        maxima = values[: n_rows * n_columns].reshape(n_rows, n_columns).max(axis=0)
        candidates = np.flatnonzero(values >= np.partition(maxima, -k)[-k])
    else:
        candidates = np.arange(values.size)
    return candidates[np.argsort(-values[candidates], kind="stable")[:k]].astype(np.int64)


# --- The canonical Lipschitz mechanism: a private top-k that scores whole subsets.
#
# With the scores in units of their sensitivity, a subset S of size k has the utility
#
# .. math:: u(S) = -\frac{\varepsilon}{2} \bigl[(1 - \gamma) \max(a, b) - \gamma b\bigr],
#
# a being the best score outside S and b the worst inside, and the mechanism releases the subset with the
# largest ``u(S) + Z_S``, Z independent exponential or Gumbel noise. It behaves like one selection among C(d, k)
# candidates instead of k selections among d.
#
# *Proof.* a and b are 1-Lipschitz in the sup norm of the scores, so the bracket is
# ``(1 - gamma) + gamma = 1``-Lipschitz and u moves by at most epsilon / 2. Selecting among the subsets is
# permute-and-flip (exponential noise: pure epsilon) or the exponential mechanism (Gumbel noise:
# epsilon-bounded-range). A common shift of all scores moves all utilities alike and changes nothing.
#
# The subsets fall into classes of equal utility (``kernels.canonical``), d k of them. Sampling merges, for every
# head length h, neighbouring tails t whose utilities differ by at most one into a super-class, draws the
# largest noise of each super-class, and goes down its order statistics only while they can still win.
# A super-class is given ``2**e >= M`` tickets, M its exact size; tickets beyond M are blanks, so that M itself
# is needed, in exact integers, only for the few super-classes that are visited. Tickets are drawn without
# replacement. The law is that of the class-by-class sampler. Rounding changes probabilities by a factor, which is taken
# off epsilon; there is no distance from the law beside it.
#
# References: Shekelyan and Loukides, *Differentially private top-k selection via canonical Lipschitz mechanism*,
# arXiv:2201.13376. Swope et al., *Feature Selection from Differentially Private Correlations*, print the class sizes
# that are corrected here: see "The class sizes" in the documentation of mechanisms.

# More than the rounding error of a log-size for d up to 1e9: that of three log-gammas, ten times where they cancel.
_MARGIN = 1e-3


def log_binomial(n: object, k: object) -> FloatArray:
    """``log C(n, k)`` elementwise, minus infinity where ``k > n``."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    possible = n >= k
    n = np.where(possible, n, k)
    value: FloatArray = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(possible, value, -np.inf)


@dataclass(frozen=True, slots=True)
class CanonicalLipschitz:
    """Release the k indices of a subset with a nearly best utility; see the module for the proof.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the scores, in the linf norm.
    k : int
        How many to select; ``k = d`` returns all at no cost.
    epsilon : float
        Cost of the whole release.
    gamma : float, default=0.5
        In [0, 1): weight of the worst member against the best outsider.
    noise : {"exponential", "gumbel"}, default="exponential"
        Exponential noise is smaller and pure; Gumbel noise is bounded-range and composes better.
    """

    arithmetic: ClassVar[str] = "exact"

    sensitivity: Sensitivity
    k: int
    epsilon: float
    gamma: float = 0.5
    noise: str = "exponential"

    def __post_init__(self) -> None:
        check_integer(1, k=self.k)
        self.sensitivity.require("linf")
        check_real(0.0, 1.0, closed="left", gamma=self.gamma)
        check_choice(("exponential", "gumbel"), noise=self.noise)
        self._half_epsilon(self.k + 1)

    @property
    def event(self) -> Event:
        """One pure release, or one bounded-range selection."""
        return ExponentialEvent(self.epsilon) if self.noise == "gumbel" else PureEvent(self.epsilon)

    @property
    def scale(self) -> float:
        """The scale of the noise in units of the scores."""
        return self.sensitivity.spread / self.epsilon

    def release(self, scores: object, stream: Stream) -> IntArray:
        """The chosen indices, in increasing order."""
        array = check_finite(scores=scores)
        check_k(self.k, array.size)
        if self.k == array.size:
            return np.arange(self.k)
        return answer(
            lambda: Call(self, score_limits(self.sensitivity), lambda outcome: array),
            lambda: self._sample(array, stream),
        )

    def _sample(self, array: NumberArray, stream: Stream) -> IntArray:
        """The winner, by the merged sampler."""
        half = self._half_epsilon(array.size)
        # Candidates whose utility is lower than this cannot win, all subsets together.
        lowest = math.ceil(float(log_binomial(array.size, self.k))) + 64
        ranking = Ranking(self._relative(array), self.k, half * self.gamma, lowest)
        head = -half * (1.0 - self.gamma) * ranking.head_values
        search = _Search(ranking, head, half * self.gamma, self.noise == "gumbel", stream)
        return np.sort(_member(*search.winner(), ranking, self.k, stream))

    def release_plainly(self, scores: object, stream: Stream) -> IntArray:
        """The same release in O(d k), class by class: the yardstick of the merged sampler."""
        array = check_finite(scores=scores)
        check_k(self.k, array.size)
        half = self._half_epsilon(array.size)
        relative = self._relative(array)
        order = np.argsort(-relative, kind="stable")
        ranked = relative[order]
        head = -half * (1.0 - self.gamma) * ranked[: self.k]
        h, t = _plain_winner(head, half * self.gamma * ranked[self.k :], self.noise == "gumbel", stream)
        if h == self.k:
            return np.sort(order[: self.k])
        body = order[h + 1 : t - 1][_distinct(t - h - 2, self.k - h - 1, stream)]
        return np.sort(np.concatenate((order[:h], body, order[t - 1 : t])))

    def _relative(self, scores: NumberArray) -> FloatArray:
        """Scores minus the k-th largest, in units of the sensitivity.

        Every utility that can win is small beside this reference, so rounding the differences costs little however
        far the scores are apart: the true top k has utility zero.
        """
        reference = scores[leading(scores, self.k)[-1]]
        unit = self.sensitivity.spread / 2.0
        if scores.dtype == np.int64:
            if max(int(scores.max()), -int(scores.min())) > LARGEST_SCORE:
                raise DataError("scores: expected integers below 2**62, got larger ones; rescale them.")
            relative: FloatArray = (scores - reference).astype(np.float64)
        else:
            with np.errstate(over="ignore"):
                # Finite, so that later products stay numbers; nothing so far away can win.
                relative = np.clip(scores - reference, -1e300, 1e300).astype(np.float64)
        relative /= unit
        return relative

    def _half_epsilon(self, n_candidates: int) -> float:
        # Values are of the size of log C(d, k) here, and so is their rounding error.
        size = 2.0**11 + float(log_binomial(n_candidates, self.k))
        return 0.5 / noise_scale(1.0, self.epsilon, 2.0**-46 * size)


def _log_exponentials(stream: Stream, size: int) -> FloatArray:
    """Logarithms of exponential variates, accurate where those are tiny: minus Gumbel variates."""
    return -stream.gumbels(size)


def _plain_winner(head: FloatArray, tail: FloatArray, gumbel: bool, stream: Stream) -> tuple[int, int]:
    k, d = head.size, head.size + tail.size
    log_factorial = gammaln(np.arange(d, dtype=np.float64) + 1.0)
    best = float(largest_noise(_log_exponentials(stream, 1), gumbel)[0])
    winner = (k, k)
    for h in range(k):
        logs = _log_exponentials(stream, tail.size)
        value, t = best_class_of_head(float(head[h]), tail, log_factorial, k, h, logs, gumbel)
        if value > best:
            best, winner = value, (h, t)
    return winner


class _Search:
    """The lazy search for the class of the winning subset; (k, k) stands for the true top k."""

    def __init__(self, ranking: Ranking, head: FloatArray, tail_weight: float, gumbel: bool, stream: Stream) -> None:
        self._ranking, self._head, self._tail_weight = ranking, head, tail_weight
        self._gumbel, self._stream = gumbel, stream

    def winner(self) -> tuple[int, int]:
        k = self._head.size
        ranking = self._ranking
        exponents = _log2_tickets(ranking.first_ranks, ranking.last_ranks, k)
        logs = _log_exponentials(self._stream, exponents.size).reshape(exponents.shape) - exponents * math.log(2.0)
        # Bands are cut in rounded arithmetic; the slack keeps their upper edges valid.
        edges = self._tail_weight * ranking.anchor - ranking.bands + 1e-6
        highest = self._head[:, None] + edges[None, :]
        bounds = highest + largest_noise(logs, self._gumbel)

        # The true top k has utility zero.
        best = float(largest_noise(_log_exponentials(self._stream, 1), self._gumbel)[0])
        winner = (k, k)
        rows, columns = np.nonzero(bounds > best)
        for place in np.argsort(-bounds[rows, columns]):
            h, band = int(rows[place]), int(columns[place])
            if bounds[h, band] <= best:
                break
            tickets = _Tickets(
                h,
                int(ranking.first_ranks[band]),
                int(ranking.last_ranks[band]),
                k,
                int(exponents[h, band]),
                float(logs[h, band]),
            )
            while tickets.any_left():
                noise = tickets.noise(self._gumbel)
                if float(highest[h, band]) + noise <= best:
                    break
                t = tickets.draw(self._stream)
                if t is not None:
                    value = float(self._head[h]) + self._tail_weight * ranking.value(t) + noise
                    if value > best:
                        best, winner = value, (h, t)
                tickets.descend(self._stream)
        return winner


def _log2_tickets(first: IntArray, last: IntArray, k: int) -> FloatArray:
    """Exponents e[h, band] with ``2**e`` at least the size of the super-class, and not much more.

    By the hockey-stick identity the size for t in first..last is ``C(last - h - 1, k - h) - C(first - h - 2, k - h)``,
    and ``first - 1`` is the previous band's last. Where the two binomials nearly cancel, the classes are nearly equal,
    and their number times the largest, which is ``C(last - h - 1, k - h) (k - h) / (last - h - 1)``, bounds the sum.
    """
    h = np.arange(k, dtype=np.float64)[:, None]
    up_to_last = gammaln(last - h) - gammaln(k - h + 1.0) - gammaln(last - k + 0.0)
    up_to_previous = np.concatenate((np.full((k, 1), -np.inf), up_to_last[:, :-1]), axis=1)
    ratio = up_to_previous - up_to_last
    wide = ratio < -0.1
    by_difference = np.log1p(-np.exp(np.where(wide, ratio, -1.0)))
    by_number = np.log((last - first + 1.0) * (k - h) / (last - h - 1.0))
    log_size = up_to_last + np.where(wide, by_difference, by_number)
    exponents: FloatArray = np.ceil((log_size + _MARGIN) / math.log(2.0))
    return exponents


class _Tickets:
    """The tickets of one super-class in decreasing order of their noise."""

    def __init__(self, h: int, t1: int, t2: int, k: int, exponent: int, log_position: float) -> None:
        self._h, self._t1, self._t2, self._k = h, t1, t2, k
        self._total = 1 << exponent
        self._drawn: set[int] = set()
        self._before = math.comb(t1 - h - 2, k - h)
        self._log_position = log_position
        self._place = 1

    def any_left(self) -> bool:
        return self._place <= self._total

    def noise(self, gumbel: bool) -> float:
        """The noise of the current ticket."""
        return float(largest_noise(np.array([self._log_position]), gumbel)[0])

    def descend(self, stream: Stream) -> None:
        """Go to the next order statistic: minus the log of the next uniform grows by E / (tickets left)."""
        left = self._total - self._place
        self._place += 1
        if left:
            step = float(_log_exponentials(stream, 1)[0]) - math.log(left)
            self._log_position = float(np.logaddexp(self._log_position, step))

    def draw(self, stream: Stream) -> int | None:
        """The class t that the current ticket belongs to, or None for a blank."""
        ticket = stream.below(self._total)
        while ticket in self._drawn:
            ticket = stream.below(self._total)
        self._drawn.add(ticket)
        if ticket >= self._counted_up_to(self._t2):
            return None
        tails = range(self._t1, self._t2 + 1)
        return tails[bisect_left(tails, ticket + 1, key=self._counted_up_to)]

    def _counted_up_to(self, t: int) -> int:
        return math.comb(t - self._h - 1, self._k - self._h) - self._before


def _member(h: int, t: int, ranking: Ranking, k: int, stream: Stream) -> IntArray:
    """A uniform member of class (h, t) as indices."""
    if h == k:
        return ranking.head
    end = ranking.index(t)
    body = ranking.between(h + 2, end)[_distinct(t - h - 2, k - h - 1, stream)]
    return np.concatenate((ranking.head[:h], body, [end]))


def _distinct(n: int, size: int, stream: Stream) -> IntArray:
    """``size`` different integers below n, every set equally likely (Floyd's algorithm)."""
    chosen: dict[int, None] = {}
    for top in range(n - size, n):
        drawn = stream.below(top + 1)
        chosen[top if drawn in chosen else drawn] = None
    return np.fromiter(chosen, dtype=np.int64, count=size)


_LARGEST_DENOMINATOR = 1000


def quantile_fraction(quantile: float) -> Fraction:
    """The fraction that stands for a quantile."""
    return Fraction(quantile).limit_denominator(_LARGEST_DENOMINATOR)


@dataclass(frozen=True, slots=True)
class PrivateQuantile:
    r"""Release the upper edge of a bin that holds (nearly) the q-quantile of the values.

    The bins are ``(-inf, g_1], (g_1, g_2], .., (g_{m-1}, inf)``; what lies above the grid belongs to its last point.
    Bin j scores ``-max(0, -s(g_j), s(g_{j-1}))`` with ``s(g)`` proportional to ``(1 - q) #{v <= g} - q #{v > g}``: the
    bin that holds the quantile scores zero even when every value lies in it.

    Privacy: one bounded-range selection, sampled by noise on scores and hence at distance 0 from its law; the
    sensitivity is ``data.sensitivity.quantile_scores``. Scores are integers, q being rounded to a fraction with
    denominator at most 1000.

    Parameters
    ----------
    grid : tuple of float
        Public, strictly increasing, at least two.
    quantile : float
        In (0, 1); 0.5 for the median, whose scores move least.
    relation : {"zero-out", "add-remove", "replace-one"}
        What "neighbouring" means.
    epsilon : float
        Cost of one release.
    prior : tuple of float, default=None
        Logarithms of what each bin is believed to be worth before anything is known, up to a constant: a public base
        measure of the exponential mechanism, which costs nothing. None: all the same.
    weight : int, default=1
        The integer that stands for one record in counts, which the values of a person share.
    """

    arithmetic: ClassVar[str] = "exact"

    grid: tuple[float, ...]
    quantile: float
    relation: str
    epsilon: float
    prior: tuple[float, ...] | None = None
    weight: int = 1

    def __post_init__(self) -> None:
        edges = np.asarray(self.grid, dtype=np.float64)
        if edges.size < 2 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
            raise ParameterError(
                "grid",
                self.grid,
                "at least two finite numbers in increasing order",
                "make it from public bounds, for example with numpy.geomspace",
            )
        check_real(1e-3, 1.0 - 1e-3, quantile=self.quantile)
        object.__setattr__(self, "grid", tuple(float(edge) for edge in edges))
        self._selection  # noqa: B018 (refuse a bad epsilon or relation now, not at release)

    @property
    def _fraction(self) -> Fraction:
        return quantile_fraction(self.quantile)

    @property
    def _selection(self) -> ExponentialMechanism:
        fraction = self._fraction
        sensitivity = quantile_scores(fraction.numerator, fraction.denominator, self.relation, self.weight)
        return ExponentialMechanism(sensitivity, self.epsilon)

    @property
    def scale(self) -> float:
        """The noise scale, in units of ranks."""
        return self._selection.scale / (self._fraction.denominator * self.weight)

    @property
    def event(self) -> Event:
        """One bounded-range selection."""
        return self._selection.event

    def scores(self, values: object) -> IntArray:
        """The bins' integer scores. Computed from data: for :meth:`release`, never to be shown."""
        # No records at all are a data set like any other; no bin is better than another then.
        array = check_finite(values=values) if np.asarray(values).size else np.zeros(0)
        return self.count_scores(cumulative_counts(array, self.grid))

    def release(self, values: object, stream: Stream) -> float:
        """A point of the grid."""
        return self.grid[self._selection.release(self.scores(values), stream)]

    def release_counts(self, counts: IntArray, stream: Stream) -> float:
        """A point of the grid, from the :func:`cumulative_counts` of the values: sums over the parts of a table."""
        return self.grid[self._selection.release(self.count_scores(counts), stream)]

    def count_scores(self, counts: IntArray) -> IntArray:
        """The bins' integer scores, from the :func:`cumulative_counts` of the values; never to be shown."""
        a, b = self._fraction.numerator, self._fraction.denominator
        at_most, size = counts[:-1].copy(), int(counts[-1])
        at_most[-1] = size  # the last bin has no upper end
        at_edge = (b - a) * at_most - a * (size - at_most)
        at_left = np.concatenate(([-a * size], at_edge[:-1]))
        misses: IntArray = np.maximum(0, np.maximum(-at_edge, at_left))
        if self.prior is None:
            return -misses
        # In units of scores, which noise of this scale distinguishes as the prior does.
        offsets = np.rint(np.asarray(self.prior) * self._selection.scale).astype(np.int64)
        return offsets - misses


def cumulative_counts(values: NumberArray, grid: tuple[float, ...], weights: IntArray | None = None) -> IntArray:
    """How many values are at most each point of an increasing grid, and last how many there are.

    Each counts once, or as its weight says: sums of weights stay below 2**53, where doubles are exact.
    """
    if weights is None:
        # Faster than looking each value up; NaN comes last, beyond every point.
        return np.append(np.searchsorted(np.sort(values), np.asarray(grid), side="right"), values.size).astype(np.int64)
    bins = np.searchsorted(np.asarray(grid), values, side="left")
    counts = np.bincount(bins, weights, minlength=len(grid) + 1)
    return np.cumsum(counts.astype(np.int64))
