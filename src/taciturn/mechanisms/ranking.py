"""A ranking that is only sorted where someone looks.

The canonical Lipschitz mechanism needs the best k candidates in order, how many candidates lie in each
band of utility below them, and the value at a few single ranks. That takes a handful of passes over the
scores; a full sort would cost more than all the rest.

Ranks count from 1. Higher values come first, equal values in order of their index.
"""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, NumberArray

__all__ = ["Ranking", "leading"]


class Ranking:
    """The order of ``values``, of which the first ``k`` places are wanted and the rest in bands.

    Parameters
    ----------
    values : ndarray of float
        One per candidate, more than k of them.
    k : int
        Length of the sorted head.
    bands_per_unit : float
        A band below the head covers ``1 / bands_per_unit`` of value; 0 puts everything into one band.
    n_bands : int
        All that lies lower goes into one last band.
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
