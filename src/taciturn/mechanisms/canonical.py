r"""The canonical Lipschitz mechanism: a private top-k that scores whole subsets.

With the scores in units of their sensitivity, a subset S of size k has the utility

.. math:: u(S) = -\frac{\varepsilon}{2} \bigl[(1 - \gamma) \max(a, b) - \gamma b\bigr],

a being the best score outside S and b the worst inside, and the mechanism releases the subset with the
largest ``u(S) + Z_S``, Z independent exponential or Gumbel noise. It behaves like one selection among C(d, k)
candidates instead of k selections among d.

*Proof.* a and b are 1-Lipschitz in the sup norm of the scores, so the bracket is
``(1 - gamma) + gamma = 1``-Lipschitz and u moves by at most epsilon / 2. Selecting among the subsets is
permute-and-flip (exponential noise: pure epsilon) or the exponential mechanism (Gumbel noise:
epsilon-bounded-range). A common shift of all scores moves all utilities alike and changes nothing.

The subsets fall into classes of equal utility (``kernels.canonical``), d k of them. Sampling merges, for every
head length h, neighbouring tails t whose utilities differ by at most one into a super-class, draws the
largest noise of each super-class, and goes down its order statistics only while they can still win.
A super-class is given ``2**e >= M`` tickets, M its exact size; tickets beyond M are blanks, so that M itself
is needed, in exact integers, only for the few super-classes that are visited. Tickets are drawn without
replacement. The law is that of the class-by-class sampler. Rounding changes probabilities by a factor, which is taken
off epsilon; there is no distance from the law beside it.

References
----------
Shekelyan and Loukides, *Differentially private top-k selection via canonical Lipschitz mechanism*,
arXiv:2201.13376. Swope et al., *Feature Selection from Differentially Private Correlations*, print the class sizes
that are corrected here: see "The class sizes" in the documentation of mechanisms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from taciturn.core.arrays import FloatArray, IntArray, NumberArray
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_finite, check_integer, check_real
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import Event, ExponentialEvent, PureEvent
from taciturn.kernels.canonical import best_class_of_head, largest_noise
from taciturn.mechanisms.base import LARGEST_SCORE, noise_scale
from taciturn.mechanisms.ranking import Ranking, leading
from taciturn.mechanisms.topk import check_k
from taciturn.mechanisms.transcript import Call, answer, score_limits

__all__ = ["CanonicalLipschitz", "log_binomial"]

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

    By the hockey-stick identity the size for t in first..last is
    ``C(last - h - 1, k - h) - C(first - h - 2, k - h)``, and ``first - 1`` is the previous band's last. Where the
    two binomials nearly cancel, the classes are nearly equal, and their number times the largest, which
    is ``C(last - h - 1, k - h) (k - h) / (last - h - 1)``, bounds the sum.
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
