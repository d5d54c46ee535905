r"""Gaussian noise on the integers, by rounding: exact, and as cheap as floating point.

Noise in floating point leaves traces of the value it was added to in the low bits of the sum
(Mironov, 2012). Here values are integers (fixed-point sums) and so is the noise. For an integer q,

.. math:: q + \mathrm{round}(Z) = \mathrm{round}(q + Z), \qquad Z \sim N(0, s^2),

so the release is a function of the continuous Gaussian mechanism's output: post-processing. It
satisfies exactly the same :math:`\Delta_2/s`-Gaussian differential privacy, in any dimension and under
adaptive composition, at the price of a variance of :math:`s^2 + 1/12`.

References
----------
J. Dong, A. Roth, W. Su, "Gaussian differential privacy", JRSS B 84, 2022.
I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020,
for the other law on the integers, whose guarantee is zCDP.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.arrays import AnyArray, IntArray, WordArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer, check_positive
from taciturn.events import GaussianEvent
from taciturn.kernels.strips import Propose, propose
from taciturn.kernels.strips_exact import EXTRA_WORDS, StripTables, resolve, strip_tables
from taciturn.mechanisms.transcript import Call, answer

__all__ = ["DISTANCE_PER_VALUE", "RoundedGaussian", "lattice_normals", "rounded_normals", "warm_up"]


DISTANCE_PER_VALUE = 2.0**-118
"""Bound on the total-variation distance between one sampled value and the rounded Gaussian."""

# Words for one pass (128 KB) stay in the second-level cache; larger buffers cost page faults.
_PASS = 1 << 13
_CUT = 14
_ROUNDING_ROOM = 1.0 + 2.0**-50


def rounded_normals(stream: Stream, size: int, log2_scale: int) -> IntArray:
    r"""``size`` independent values of ``round(N(0, 4**log2_scale))``.

    Parameters
    ----------
    stream : Stream
        Source of randomness.
    size : int
        Number of values.
    log2_scale : int
        k, from 5 to 55: the standard deviation before rounding is 2**k.

    Returns
    -------
    ndarray of int64, shape (size,)
        Each within total-variation distance :math:`2^{-118}` of the law, at most ``14 * 2**k`` in size.
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

    Parameters
    ----------
    stream, size, log2_scale
        As for :func:`rounded_normals`.
    discrete : bool
        Sample :math:`P(x) \propto e^{-x^2/2s^2}` instead of the rounded law.
    tables : StripTables, optional
        The sampler's own unless given.
    kernel : callable
        The loop that reads proposals; its numpy twin gives the same values.
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

    **Privacy.** Rounding commutes with adding an integer, so the release is post-processing of
    the Gaussian mechanism: exactly :math:`\Delta_2/s`-GDP. Each sampled value is within
    :math:`2^{-118}` of the law in total variation, N of them within :math:`N 2^{-118}`;
    :meth:`event_of` states that distance, and an accountant charges it.

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
        Public bound on every ``abs(value)``. Noise cannot leave ``14 * 2**k``, so the sum provably fits
        into 64 bits or the constructor refuses. Values beyond it are clipped, which lengthens no
        difference between neighbours.

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
            return value.astype(np.int64).clip(-self.magnitude, self.magnitude)
        raise DataError(
            f"value: expected an array of integers, got type {value.dtype}; "
            "put the values on a lattice before they meet the noise."
        )
