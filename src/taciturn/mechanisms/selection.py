r"""Private selection: the index of a large score.

Given scores ``s_1 .. s_d`` that move by at most Delta between neighbours, each mechanism releases
``argmax_j s_j + b Z_j`` and costs ``epsilon = 2 Delta / b`` (``Delta / b`` if the scores are monotone). Noise by
standard deviation: permute-and-flip 1.00 b, exponential mechanism 1.28 b, Laplace 1.41 b. For *one* pure
selection permute-and-flip is best; for many composed ones the exponential mechanism, whose log-ratios
span only epsilon (bounded range), while those of the others may span nearly twice that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import Event, ExponentialEvent, LaplaceMaxEvent, PermuteAndFlipEvent
from taciturn.mechanisms.base import first_of, noise_scale, noisy_keys, rounding_charge
from taciturn.mechanisms.transcript import Call, answer, score_limits

__all__ = ["ExponentialMechanism", "LaplaceNoisyMax", "PermuteAndFlip", "Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Common part of the three selections.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the scores, in the linf norm.
    epsilon : float
        Cost of one release, rounding included.
    """

    arithmetic: ClassVar[str] = "exact"

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
        raise NotImplementedError

    def release(self, scores: object, stream: Stream) -> int:
        """The index of the winning candidate; computed ties go to the lower column number."""
        array = check_finite(scores=scores)
        return answer(
            lambda: Call(self, score_limits(self.sensitivity), lambda outcome: array),
            lambda: first_of(*noisy_keys(array, self._noise(array.size, stream), self.scale)),
        )

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(Selection):
    r"""Index j with probability proportional to ``exp(s_j / b)``, by Gumbel noise.

    *Proof.* ``log P_D(j) - log P_D'(j) = (s_j - s'_j) / b - c`` with c common to all j, and the first term
    spans at most ``2 Delta / b``: the mechanism is epsilon-bounded-range, hence epsilon-DP and
    (epsilon**2 / 8)-zCDP.

    References
    ----------
    McSherry and Talwar (2007); Durfee and Rogers, arXiv:1905.04273; Cesar and Rogers, arXiv:2004.07223.
    """

    @property
    def event(self) -> Event:
        """One bounded-range selection."""
        return ExponentialEvent(self.epsilon)

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        return stream.gumbels(size)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    r"""``argmax_j s_j + b E_j`` with E exponential: the best single selection under pure DP.

    *Proof.* Fix the noise of the others; j wins iff ``E_j`` passes a threshold that moves by at most
    ``2 Delta / b`` between neighbours, and ``log P(E > x)`` has slopes in [-1, 0]. Not bounded-range.

    References
    ----------
    McKenna and Sheldon, arXiv:2010.12603; Ding et al., arXiv:2105.07260 (equivalence to exponential noise).
    """

    @property
    def event(self) -> Event:
        """One pure selection."""
        return PermuteAndFlipEvent(self.epsilon)

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        return stream.exponentials(size)


@dataclass(frozen=True, slots=True)
class LaplaceNoisyMax(Selection):
    r"""``argmax_j s_j + b L_j`` with L Laplace: the selection of most papers, kept for comparison.

    *Proof.* As for permute-and-flip: ``log P(L > x)`` has slopes in [-1, 0]. Not bounded-range.

    References
    ----------
    Dwork and Roth, *The Algorithmic Foundations of Differential Privacy* (2014), section 3.3.
    """

    @property
    def event(self) -> Event:
        """One pure selection."""
        return LaplaceMaxEvent(self.epsilon)

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        return stream.laplaces(size)
