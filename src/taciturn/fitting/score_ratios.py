r"""Measures of a model from released numbers of records in cells, with intervals: post-processing, which costs nothing.

Every measure is a ratio A / B of sums over cells, or of products of two such sums. With counts c, noise of deviation s
on each, and :math:`v_i = c_i + s^2`, the variance of :math:`A - \theta B` is about :math:`\sum_i v_i (\partial_i A -
\theta\, \partial_i B)^2`: the sampling error of independent records, of which each is in one cell, and the noise. The
interval is Fieller's: all :math:`\theta` for which A - theta B is no further from zero than that error allows. Where
noise swallows the denominator the interval is the whole range of the measure.

Bins leave an error of second order in their width. Sums are made from the bins and from pairs of them, and extrapolated
(Richardson); the interval is widened by the whole of this correction. Where a person has several rows, its share of a
cell counts; the variance of sampling is then at most what is stated here, by Jensen's inequality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from taciturn.core.arrays import FloatArray

__all__ = ["CONFIDENCE_LEVEL", "QUANTILE", "Measure", "Ratio", "cell_variances", "mean_ratio"]

CONFIDENCE_LEVEL = 0.95
"""Probability with which an interval covers what it estimates."""

QUANTILE = NormalDist().inv_cdf(0.5 + CONFIDENCE_LEVEL / 2.0)
"""Half the width of an interval in standard errors."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How good a model is, by one measure.

    Parameters
    ----------
    name : str
        Which one.
    value : float
        The estimate, within the range of the measure.
    lower, upper : float
        Ends of the interval for what the measure is on the population, at :data:`CONFIDENCE_LEVEL`. It includes the
        sampling error, the noise and the width of bins.
    baseline : float
        The measure of the best constant prediction: the shares of the classes, or the mean of the target.
    is_open : bool, default=False
        Whether noise leaves the measure open: the interval is its whole range, and the value is the baseline.
    """

    name: str
    value: float
    lower: float
    upper: float
    baseline: float
    is_open: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A ratio of two functions of the counts, with their derivatives and what is left over by the width of bins."""

    top: float
    bottom: float
    top_slopes: FloatArray
    bottom_slopes: FloatArray
    correction: float = 0.0

    def interval(self, variances: FloatArray, low: float, high: float) -> tuple[float, float] | None:
        """Fieller's interval within a range; None where it has no ends."""
        squared = QUANTILE * QUANTILE
        both = squared * float(np.sum(variances * self.top_slopes * self.bottom_slopes))
        a = self.bottom**2 - squared * float(np.sum(variances * self.bottom_slopes**2))
        b = self.top * self.bottom - both
        c = self.top**2 - squared * float(np.sum(variances * self.top_slopes**2))
        if self.bottom <= 0.0 or a <= 0.0:
            return None
        half, room = math.sqrt(max(b * b - a * c, 0.0)) / a, abs(self.correction) / self.bottom
        return max(b / a - half - room, low), min(b / a + half + room, high)

    def measured(self, name: str, variances: FloatArray, low: float, high: float, baseline: float) -> Measure:
        """The ratio as a measure with a range."""
        ends = self.interval(variances, low, high)
        if ends is None:
            return Measure(name, baseline, low, high, baseline, is_open=True)
        # The value itself may lie beyond the range, and its interval with it.
        value = min(max(self.top / self.bottom, low), high)
        return Measure(name, value, min(ends[0], high), max(ends[1], low), baseline)


def cell_variances(counts: FloatArray, deviation: float) -> FloatArray:
    """The variance of each count: of independent records, and of the noise."""
    variances: FloatArray = np.maximum(counts + deviation**2, 0.0)
    return variances


def mean_ratio(counts: FloatArray, fine: FloatArray, coarse: FloatArray | None = None) -> Ratio:
    """The mean over records of a number per cell; ``coarse`` is the same number by pairs of bins."""
    corrections = np.zeros(fine.size) if coarse is None else (fine - coarse) / 3.0
    weights = fine + corrections
    return Ratio(
        float(counts @ weights), float(counts.sum()), weights, np.ones(counts.size), float(counts @ corrections)
    )
