"""Releases of the default model: each method pays for what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from taciturn.accounting import PrivacyFilter
from taciturn.accounting.filter import Spend
from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, loss_differences, proposal_scores
from taciturn.data.sensitivity import largest_eigenvalue as eigenvalue_sensitivity
from taciturn.fitting.clipped_records import GRAM_ROW_SQUARED, Clipping, largest_eigenvalue
from taciturn.fitting.sums import (
    ClippedRowSum,
    EntryCorrelationSum,
    ExcessLossSums,
    GramMatrix,
    RowNorms,
    RowStatistic,
    largest_row_norm,
    private_median,
)
from taciturn.losses import HuberLoss, Loss
from taciturn.mechanisms import DISTANCE_PER_VALUE, ExponentialMechanism, GumbelTopK, RoundedGaussian, first_k_of
from taciturn.mechanisms.base import rounding_charge
from taciturn.planning.lattice import LARGEST_WEIGHT, gradient_noise
from taciturn.sources import Source, Task

__all__ = ["Releases", "list_spends"]

# The lower end of the grid of a median row norm.
_LEAST_NORM = 2.0**-6
# Neighbouring points of a grid for medians differ by this factor.
_GRID_RATIO = 1.17
_EIGENVALUE_BITS = 24
_TERM_BOUND = 1 << 20
# Rows less a centre have entries of up to twice the bound.
_CENTRED_ENTRY = 2 * ONE


class Releases:
    """Private answers to the few questions that a fit asks of a source.

    The budget pays for every answer. Children of the stream are used up, one per answer.
    """

    def __init__(self, budget: PrivacyFilter, relation: str, source: Source, stream: Stream) -> None:
        self._budget, self._relation, self._source, self._stream = budget, relation, source, stream

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return self._budget.private

    def median(
        self, what: str, share: float, statistic: RowStatistic, low: float, high: float, noiseless: Callable[[], float]
    ) -> float:
        """The median of a statistic on a geometric grid of public ends, or a number that needs no noise."""
        selection_range = self._budget.selection(what, share)
        if not self._budget.private:
            return noiseless()
        n_points = max(2, math.ceil(math.log(high / low) / math.log(_GRID_RATIO)) + 1)
        grid = np.geomspace(low, high, n_points)
        return private_median(self._source, statistic, grid, self._relation, selection_range, self._child("median"))

    def median_row_norm(self, what: str, share: float, norms: RowNorms, widest: float) -> float:
        """The median row norm of the records that are not null."""

        def noiseless() -> float:
            # A constant column lengthens rows, by the root of two at most.
            return math.sqrt(2.0) * max(largest_row_norm(self._source, norms), _LEAST_NORM)

        return self.median(what, share, norms, _LEAST_NORM, max(widest, 1.0), noiseless)

    def mean(self, what: str, share: float, terms: Task, n_values: int, n_rows: int) -> tuple[FloatArray, float]:
        """The sum of vectors of norm at most one over ``n_rows``, and the deviation of its noise.

        ``terms`` sums them in lattice units.
        """
        weight, noise = self.noise(HuberLoss(1.0), ONE * ONE, what, share, n_values)
        sums = weight * self._source.total(terms)
        unit = 1.0 / (float(weight) * ONE * n_rows)
        return self._noisy(sums, noise, "mean") * unit, _deviation(noise) * unit

    def row_mean(self, what: str, share: float, clipping: Clipping, n_rows: int) -> tuple[FloatArray, float]:
        """The mean of clipped rows in lattice units, and the deviation of its noise."""
        weight, noise = self.noise(HuberLoss(1.0), clipping.row_squared, what, share, clipping.n_features)
        unit = 1.0 / (float(weight) * n_rows)
        sums = self._source.total(ClippedRowSum(clipping, weight))
        return self._noisy(sums, noise, "row mean") * unit, _deviation(noise) * unit

    def eigenvalue(self, what: str, share: float, clipping: Clipping) -> float:
        """The largest eigenvalue of the Gram matrix over the squared bound of a row, plus half a deviation of noise."""
        multiplier = self._budget.gaussian(what, share, distance=DISTANCE_PER_VALUE)
        exact = largest_eigenvalue(self._source.total(GramMatrix(clipping)))
        if not self._budget.private:
            return exact / GRAM_ROW_SQUARED
        bound = eigenvalue_sensitivity(GRAM_ROW_SQUARED, clipping.width, MOST_PRIVATE_ROWS, self._relation).value
        # In units in which the noise is a power of two; rounding to integers moves both neighbours by one half.
        unit = (2.0**_EIGENVALUE_BITS / (multiplier * (1.0 + 2.0**-40)) - 1.0) / bound
        magnitude = math.ceil(unit * GRAM_ROW_SQUARED * MOST_PRIVATE_ROWS)
        mechanism = RoundedGaussian(unit * bound + 1.0, _EIGENVALUE_BITS, magnitude)
        noisy = mechanism.release(np.array([round(unit * exact)]), self._child("eigenvalue"))[0]
        return float(noisy + 2.0 ** (_EIGENVALUE_BITS - 1)) / (unit * GRAM_ROW_SQUARED)

    def largest_correlations(
        self, what: str, share: float, correlations: EntryCorrelationSum, k: int, entry: int, weight: int
    ) -> IntArray:
        """The places of k large absolute sums by Gumbel noise, for entries and weights within bounds."""
        selection_range = self._budget.selection(what, share, k)
        scores = np.abs(self._source.total(correlations)).sum(axis=1)
        if not self._budget.private:
            return first_k_of(scores, np.zeros(scores.size), k)
        sensitivity = proposal_scores(entry, weight, self._relation)
        return GumbelTopK(sensitivity, k, selection_range).release(scores, self._child("columns"))

    def can_select(self, share: float, k: int) -> bool:
        """Whether a share pays for k selections and what double precision costs them."""
        return self._budget.range_of(share, k) > 4.0 * rounding_charge(k)

    def noise(
        self, loss: Loss, row_squared: int, what: str, share: float, values: int, count: int = 1
    ) -> tuple[int, RoundedGaussian | None]:
        """For sums of rows times derivatives: what stands for a derivative at its bound, and the noise.

        ``count`` sums with ``values`` coordinates each cost ``share`` together.
        """
        multiplier = self._budget.gaussian(what, share, count, values * DISTANCE_PER_VALUE)
        if not self._budget.private:
            return ONE if loss.labelled else LARGEST_WEIGHT // 2, None
        return gradient_noise(loss, row_squared, self._relation, multiplier, _CENTRED_ENTRY)

    def best_model(
        self,
        what: str,
        share: float,
        clipping: Clipping,
        models: tuple[FloatArray, ...],
        reference: FloatArray,
        penalties: FloatArray,
        clips: tuple[float, float],
    ) -> int:
        """The place of a model with a small sum of clipped excess losses over a reference, plus penalty.

        Excess losses are clipped at twice the range of the selection, within two ends.
        """
        selection_range = self._budget.selection(what, share)
        clip = min(max(2.0 * selection_range, clips[0]), clips[1])
        unit = _TERM_BOUND / clip
        sums = self._source.total(ExcessLossSums(clipping, models, reference, clip, unit))
        scores = -sums - np.rint(penalties * unit).astype(np.int64)
        if not self._budget.private:
            return int(np.argmax(scores))
        sensitivity = loss_differences(_TERM_BOUND, self._relation)
        return ExponentialMechanism(sensitivity, selection_range).release(scores, self._child("size"))

    def noisy_sums(self, sums: Task, noise: RoundedGaussian | None) -> FloatArray:
        """Sums with the noise that was paid for."""
        return self._noisy(self._source.total(sums), noise, "sums")

    def _noisy(self, sums: IntArray, noise: RoundedGaussian | None, label: str) -> FloatArray:
        released = sums if noise is None else noise.release(sums, self._child(label))
        return released.astype(np.float64)

    def _child(self, label: str) -> Stream:
        return self._stream.spawn(label)


def list_spends(spends: Iterable[Spend]) -> tuple[Release, ...]:
    """What was bought from a privacy filter, for the certificate."""
    releases = []
    for spend in spends:
        if spend.mechanism == "none":
            releases.append(Release(spend.what, "none", 0.0, spend.event, spend.count))
            continue
        selection = spend.mechanism == "selection"
        noise, scale = ("Gumbel", 2.0 / spend.parameter) if selection else ("Gaussian", spend.parameter)
        releases.append(Release(spend.what, noise, scale, spend.event, spend.count, spend.remaining))
    return tuple(releases)


def _deviation(noise: RoundedGaussian | None) -> float:
    return 0.0 if noise is None else 2.0**noise.log2_scale
