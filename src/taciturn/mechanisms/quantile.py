r"""A private quantile: the exponential mechanism on a public grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from taciturn.core.arrays import IntArray, NumberArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_real
from taciturn.data.sensitivity import quantile_scores
from taciturn.events import Event
from taciturn.mechanisms.selection import ExponentialMechanism

__all__ = ["PrivateQuantile", "cumulative_counts", "quantile_fraction"]

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
    bins = np.searchsorted(np.asarray(grid), values, side="left")
    counts = np.bincount(bins, weights, minlength=len(grid) + 1)
    return np.cumsum(counts.astype(np.int64))
