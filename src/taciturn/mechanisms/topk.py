r"""Private top-k by noisy scores: one shot or by peeling.

All release the k winners in order, best first. ``k = d`` returns every index and touches no data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, NumberArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_integer
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import Event, ExponentialEvent, PureEvent
from taciturn.mechanisms.base import (
    first_k_of,
    noise_scale,
    noisy_keys,
    rounding_charge,
)
from taciturn.mechanisms.selection import Selection
from taciturn.mechanisms.transcript import Call, answer, score_limits

__all__ = ["GumbelTopK", "LaplaceTopK", "PeelingTopK", "TopK", "check_k"]


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
            lambda: first_k_of(*noisy_keys(array, self._noise(array.size, stream), self.scale), self.k),
        )

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        raise NotImplementedError


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

    @property
    def event(self) -> Event:
        """As many bounded-range selections as winners."""
        return ExponentialEvent(self.epsilon) * self.k

    @property
    def _spread(self) -> float:
        return self.sensitivity.spread

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        return stream.gumbels(size)


@dataclass(frozen=True, slots=True)
class LaplaceTopK(_OneShotTopK):
    r"""The k largest of ``s_j + b L_j`` with L Laplace and ``b = 2 k Delta / epsilon``: pure epsilon-DP.

    *Proof.* Let noise z give the ordered winners S on D. On D' the noise
    ``z'_j = z_j + (s_j - s'_j) + Delta`` for j in S, unchanged elsewhere, gives the same: winners keep their
    distances and rise by Delta, the others rise by at most Delta. k coordinates moved by at most
    ``2 Delta`` (by Delta if monotone, choosing 0 instead of +Delta where all scores fall), so densities
    change by a factor of at most ``exp(2 k Delta / b)``.

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

    @property
    def event(self) -> Event:
        """One pure release."""
        return PureEvent(self.epsilon)

    @property
    def _spread(self) -> float:
        return self.k * self.sensitivity.spread

    def _noise(self, size: int, stream: Stream) -> FloatArray:
        return stream.laplaces(size)


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
