r"""Gaussian noise in floating point, for values that cannot be put on a lattice.

The guarantee is that of real arithmetic: the sum of two doubles may betray, through its low bits, which
value the noise was added to (Mironov, 2012). Use
:class:`~taciturn.mechanisms.rounded_gaussian.RoundedGaussian` wherever the value is an integer.

References
----------
I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_positive
from taciturn.events import GaussianEvent
from taciturn.mechanisms.transcript import Call, answer

__all__ = ["FloatGaussian"]


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
