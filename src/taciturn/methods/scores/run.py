"""Private scores: counts and sums in cells, and the measures that are computed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray, IndexArray, IntArray, NumberArray
from taciturn.data.target import N_DECILES, ClassCells, ErrorCells, MarginCells, MeanCells, PredictionCells
from taciturn.engines.interface import Block, Source
from taciturn.methods.scores.plan import ScorePlan

# ---- The numbers of records in public cells of target and prediction, as a sum over a source.

# Entries of a block of rows that stays in a cache.
_CACHED_ENTRIES = 1 << 17


@dataclass(frozen=True, slots=True)
class LinearOutputs:
    """The outputs of a linear model, each a function of one record to the last bit.

    Products of matrices round by position. Here the features of a record are multiplied and added one after the
    other. ``columns`` are those with a nonzero coefficient, in increasing order; ``weights`` has one number per
    output for each.
    """

    columns: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]
    constants: tuple[float, ...]

    @classmethod
    def of_model(cls, model: Any) -> LinearOutputs:
        """The outputs of a fitted linear model with ``coef_`` and ``intercept_``."""
        stored = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
        weights = np.atleast_2d(stored).T
        columns = np.flatnonzero(weights.any(axis=1))
        constants = np.broadcast_to(model.intercept_, weights.shape[1])
        chosen = tuple(tuple(row) for row in weights[columns].tolist())
        return cls(tuple(columns.tolist()), chosen, tuple(constants.astype(float).tolist()))

    def __call__(self, features: Any) -> FloatArray:
        """One row of outputs for each row of these columns."""
        weights = np.array(self.weights).reshape(len(self.columns), len(self.constants))
        if sp.issparse(features):
            # Rows are added up entry by entry.
            sums: FloatArray = np.asarray(features.tocsr() @ weights) + np.array(self.constants)
            return sums
        outputs = np.zeros((features.shape[0], len(self.constants)))
        step = max(1, _CACHED_ENTRIES // max(1, len(self.columns)))
        for start in range(0, features.shape[0], step):
            rows, part = features[start : start + step], outputs[start : start + step]
            for column, weight in enumerate(weights):
                part += rows[:, column, None] * weight
        outputs += np.array(self.constants)
        return outputs


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Task: the numbers of records in cells, times ``unit``; rows of a person are equal parts of one record.

    A ``model`` of None is for features that are outputs of a model already.
    """

    cells: PredictionCells
    unit: int = 1
    model: LinearOutputs | None = None

    @property
    def columns(self) -> IndexArray | None:
        """The features with a coefficient."""
        return None if self.model is None else np.array(self.model.columns, dtype=np.intp)

    def __call__(self, block: Block) -> IntArray:
        """One number per cell."""
        features: Any = block.values(self.columns)
        # A worker has no guard of its own, and a warning would tell of a record.
        with np.errstate(all="ignore"):
            cells = self.cells.cells(features if self.model is None else self.model(features), block.target)
        if block.persons is not None:
            return block.persons.cell_shares(cells, self.cells.n_cells, self.unit)
        counts = np.bincount(cells[cells >= 0], minlength=self.cells.n_cells)
        return self.unit * counts.astype(np.int64)


# ---- Measures of a model from released numbers of records in cells, with intervals: post-processing, at no cost.
# Every measure is a ratio A / B of sums over cells, or of products of two such sums. With counts c, noise of deviation
# s on each, and :math:`v_i = c_i + s^2`, the variance of :math:`A - \theta B` is about :math:`\sum_i v_i (\partial_i A
# - \theta\, \partial_i B)^2`: the sampling error of independent records, of which each is in one cell, and the noise.
# The interval is Fieller's: all :math:`\theta` for which A - theta B is no further from zero than that error allows.
# Where noise swallows the denominator the interval is the whole range of the measure.
#
# Bins leave an error of second order in their width. Sums are made from the bins and from pairs of them, and
# extrapolated (Richardson); the interval is widened by the whole of this correction. Where a person has several rows,
# its share of a cell counts; the variance of sampling is then at most what is stated here, by Jensen's inequality.

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


# ---- Sums over records of which scores are made, exact and with noise.
# The source of a score has one feature, the mapped prediction of each record, beside the mapped target: class codes, or
# numbers on the lattice.

# Sums of this many terms fit 64-bit integers. Beyond the largest sum further terms make no difference.
_BLOCK, _LARGEST_SUM = 1 << 28, 1 << 62
# An error sum is passed on as its upper and its lower bits, so that the sum over partitions cannot overflow.
_LOW_BITS = 31


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Task: right and wrong predictions by class, times ``unit``; rows of a person are equal parts of one record."""

    n_classes: int
    unit: int = 1
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """One row per class: right, wrong."""
        codes = np.asarray(block.target, dtype=np.int64)
        right = np.asarray(block.target == _predictions(block), dtype=bool)
        if block.persons is not None:
            cells = np.where(codes >= 0, 2 * codes + ~right, -1)
            return block.persons.cell_shares(cells, 2 * self.n_classes, self.unit).reshape(self.n_classes, 2)
        counts = [np.bincount(codes[(codes >= 0) & side], minlength=self.n_classes) for side in (right, ~right)]
        return self.unit * np.column_stack(counts).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ErrorSum:
    """Task: the sum of powers of distances, each at most ``term_bound``; see :func:`total_error`."""

    power: int
    term_bound: int
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """The upper and the lower bits of the sum."""
        distances = np.abs(block.target - _predictions(block))
        # A prediction that is not a number is as wrong as can be.
        terms = np.where(np.isnan(distances), 2.0 * ONE, distances) ** self.power
        largest = (2 * ONE) ** self.power
        if self.term_bound != largest:
            terms = np.rint(terms * (self.term_bound / largest))
        integers = block.by_record(terms.astype(np.int64))
        parts = np.add.reduceat(integers, np.arange(0, integers.size, _BLOCK))
        total = sum(parts.tolist())
        return np.array([total >> _LOW_BITS, total & ((1 << _LOW_BITS) - 1)], dtype=np.int64)


def total_error(source: Source, power: int, term_bound: int) -> IntArray:
    """The :class:`ErrorSum` of all records, as one number."""
    high, low = source.total(ErrorSum(power, term_bound)).tolist()
    return np.array([min((high << _LOW_BITS) + low, _LARGEST_SUM)])


def release_sums(plan: ScorePlan, sums: IntArray, stream: Stream) -> FloatArray:
    """Release sums of integers between 0 and ``plan.term_bound``, in units of that bound."""
    noisy: IntArray = sums if plan.mechanism is None else plan.mechanism.release(sums, stream.spawn("score"))
    released: FloatArray = noisy / plan.term_bound
    return released


def _predictions(block: Block) -> NumberArray:
    features: Any = block.values(None)
    predictions: NumberArray = features[:, 0]
    return predictions


# ---- Measures of classifiers from the numbers of records by prediction and class.


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """A tenth of predicted probabilities: the share of the second class (None: left open by noise), a noisy count.

    Or a bin of predicted means, with the mean of the target in the place of the share.
    """

    low: float
    high: float
    predicted: float
    share: float | None
    lower: float
    upper: float
    records: float


@dataclass(frozen=True, slots=True)
class ClassRecall:
    """A class: its share of the records, and that of its records predicted rightly (None: left open by noise)."""

    code: int
    share: float
    recall: float | None
    lower: float
    upper: float


def _shares(sizes: FloatArray) -> FloatArray:
    """Shares of classes, from noisy sizes."""
    sizes = np.maximum(sizes, 0.0)
    return sizes / sizes.sum() if sizes.any() else np.full(sizes.size, 1.0 / sizes.size)


def _entropy(shares: FloatArray) -> float:
    positive = shares[shares > 0.0]
    return float(-np.sum(positive * np.log(positive)))


# ---- two classes


def _log_odds(edges: tuple[float, ...]) -> FloatArray:
    """What stands for the predictions of each bin: the middle, or the edge where there is one alone."""
    ends = np.array([edges[0], *edges, edges[-1]])
    middles: FloatArray = (ends[:-1] + ends[1:]) / 2.0
    return middles


def _losses(log_odds: FloatArray) -> FloatArray:
    """Minus the logarithm of the probability that these log-odds give."""
    losses: FloatArray = np.logaddexp(0.0, -log_odds)
    return losses


def measure_margins(cells: MarginCells, counts: FloatArray, deviation: float) -> tuple[Measure, ...]:
    """AUC, log loss, accuracy and calibration in the large, from counts with noise of a standard deviation."""
    coarse, groups = cells.coarser()
    fine_odds, coarse_odds = _log_odds(cells.edges), _log_odds(coarse.edges)[groups[: cells.n_bins]]
    variances = cell_variances(counts, deviation)
    shares = _shares(counts.reshape(2, -1).sum(axis=1))

    likely = np.arange(cells.n_bins) > cells.n_bins // 2 - 1
    right = np.concatenate((~likely, likely)).astype(np.float64)
    losses = tuple(_losses(np.concatenate((-odds, odds))) for odds in (fine_odds, coarse_odds))
    is_second = np.repeat([0.0, 1.0], cells.n_bins)
    gaps = tuple(np.tile(expit(odds), 2) - is_second for odds in (fine_odds, coarse_odds))
    largest = float(_losses(np.array(cells.edges[0])))
    return (
        _auc(counts, groups).measured("AUC", variances, 0.0, 1.0, 0.5),
        mean_ratio(counts, *losses).measured("log loss", variances, 0.0, largest, _entropy(shares)),
        mean_ratio(counts, right).measured("accuracy", variances, 0.0, 1.0, float(shares.max())),
        mean_ratio(counts, *gaps).measured("calibration in the large", variances, -1.0, 1.0, 0.0),
    )


def _auc(counts: FloatArray, groups: IntArray) -> Ratio:
    """The share of pairs of both classes in the right order; a pair in one bin counts one half."""
    merged: FloatArray = np.bincount(groups, weights=counts).astype(np.float64)
    (top, slopes), (coarse_top, coarse_slopes) = _ordered_pairs(counts), _ordered_pairs(merged)
    first, second = counts.reshape(2, -1).sum(axis=1).tolist()
    n_bins = counts.size // 2
    correction = (top - coarse_top) / 3.0
    return Ratio(
        top + correction,
        first * second,
        slopes + (slopes - coarse_slopes[groups]) / 3.0,
        np.repeat([second, first], n_bins),
        correction,
    )


def _ordered_pairs(counts: FloatArray) -> tuple[float, FloatArray]:
    """The number of pairs in the right order, and its derivatives by the counts."""
    first, second = counts.reshape(2, -1)
    below = np.cumsum(first) - first / 2.0
    above = np.cumsum(second[::-1])[::-1] - second / 2.0
    return float(second @ below), np.concatenate((above, below))


def calibrate_deciles(cells: MarginCells, counts: FloatArray, deviation: float) -> tuple[CalibrationBin, ...]:
    """How often the second class occurs, by tenths of its predicted probability."""
    n_bins = (len(cells.edges) - 1) // (N_DECILES + 2)
    starts = [0, *(1 + n_bins * (k + 1) for k in range(1, N_DECILES)), cells.n_bins]
    table, odds = counts.reshape(2, -1), _log_odds(cells.edges)
    found = []
    for k in range(N_DECILES):
        part = slice(starts[k], starts[k + 1])
        low, high = k / N_DECILES, (k + 1) / N_DECILES
        inside = table[:, part].ravel()
        variances = cell_variances(inside, deviation)
        ratio = mean_ratio(inside, np.repeat([0.0, 1.0], inside.size // 2))
        share = ratio.measured("", variances, 0.0, 1.0, 0.0)
        predicted, value = (low + high) / 2.0, None
        if not share.is_open:
            predicted = float(inside @ np.tile(expit(odds[part]), 2)) / ratio.bottom
            predicted, value = min(max(predicted, low), high), share.value
        found.append(CalibrationBin(low, high, predicted, value, share.lower, share.upper, ratio.bottom))
    return tuple(found)


def roc_curve(cells: MarginCells, counts: FloatArray) -> tuple[tuple[float, float], ...]:
    """False and true positive rates by bin, from (0, 0) to (1, 1); what noise turns back is straightened."""
    rates = []
    for side in counts.reshape(2, cells.n_bins):
        above = np.maximum.accumulate(np.cumsum(side[::-1]))
        total = max(float(side.sum()), 1.0)
        rates.append(np.clip(above / total, 0.0, 1.0))
    return ((0.0, 0.0), *zip(rates[0].tolist(), rates[1].tolist(), strict=True), (1.0, 1.0))


# ---- more classes


def measure_classes(cells: ClassCells, counts: FloatArray, deviation: float) -> tuple[Measure, ...]:
    """Accuracy, balanced accuracy and log loss, from counts with noise of a standard deviation."""
    coarse, groups = cells.coarser()
    odds, merged = _log_odds(cells.edges), _log_odds(coarse.edges)[groups[: cells.n_bins]]
    variances = cell_variances(counts, deviation)
    shares = _shares(counts.reshape(cells.n_classes, -1).sum(axis=1))
    right = np.tile(np.repeat([1.0, 0.0], cells.n_bins), cells.n_classes)
    losses = (np.tile(_losses(each), 2 * cells.n_classes) for each in (odds, merged))
    return (
        mean_ratio(counts, right).measured("accuracy", variances, 0.0, 1.0, float(shares.max())),
        _balanced(cells, counts, variances),
        mean_ratio(counts, *losses).measured(
            "log loss", variances, 0.0, float(_losses(np.array(cells.edges[0]))), _entropy(shares)
        ),
    )


def _recall(side: FloatArray) -> Ratio:
    return mean_ratio(side, np.repeat([1.0, 0.0], side.size // 2))


def _balanced(cells: ClassCells, counts: FloatArray, variances: FloatArray) -> Measure:
    """The mean of the recalls of all classes; their errors are independent."""
    name, baseline = "balanced accuracy", 1.0 / cells.n_classes
    total = squared = 0.0
    for side, errors in zip(*(each.reshape(cells.n_classes, -1) for each in (counts, variances)), strict=True):
        recall = _recall(side)
        if recall.interval(errors, 0.0, 1.0) is None:
            return Measure(name, baseline, 0.0, 1.0, baseline, is_open=True)
        value = recall.top / recall.bottom
        total += value
        squared += float(np.sum(errors * (recall.top_slopes - value) ** 2)) / recall.bottom**2
    value, half = total / cells.n_classes, QUANTILE * math.sqrt(squared) / cells.n_classes
    lower, middle, upper = (min(max(each, 0.0), 1.0) for each in (value - half, value, value + half))
    return Measure(name, middle, lower, upper, baseline)


def class_recalls(cells: ClassCells, counts: FloatArray, deviation: float) -> tuple[ClassRecall, ...]:
    """Share and recall of every class."""
    table = counts.reshape(cells.n_classes, -1)
    found = []
    for code, share in enumerate(_shares(table.sum(axis=1)).tolist()):
        recall = _recall(table[code]).measured("", cell_variances(table[code], deviation), 0.0, 1.0, 0.0)
        value = None if recall.is_open else recall.value
        found.append(ClassRecall(code, share, value, recall.lower, recall.upper))
    return tuple(found)


# ---- Measures of regressors from the numbers of records by target and error.


@dataclass(frozen=True, slots=True, eq=False)
class _CellNumbers:
    """For each cell, in widths of the bounds: the target from the middle, its square, the error and its square."""

    target: FloatArray
    square: FloatArray
    error: FloatArray
    error_square: FloatArray

    @classmethod
    def of_cells(cls, cells: ErrorCells) -> _CellNumbers:
        rows, columns = np.nonzero(cells.possible)
        width = 2.0 * ONE
        targets, low, high = (
            np.asarray(cells.targets) / width,
            np.asarray(cells.errors[:-1]) / width,
            np.asarray(cells.errors[1:]) / width,
        )
        middles = (targets[:-1] + targets[1:]) / 2.0
        squares = (low * low + low * high + high * high) / 3.0
        return cls(middles[rows], middles[rows] ** 2, ((low + high) / 2.0)[columns], squares[columns])


def measure_errors(cells: ErrorCells, counts: FloatArray, deviation: float) -> tuple[Measure, ...]:
    """R2, mean absolute and mean squared error, from counts with noise of a standard deviation."""
    fine = _CellNumbers.of_cells(cells)
    merged, groups = cells.coarser()
    coarse = _CellNumbers.of_cells(merged)
    variances = cell_variances(counts, deviation)
    low, high = cells.y_bounds
    width = high - low
    total = float(counts.sum())
    squares = fine.square + (fine.square - coarse.square[groups]) / 3.0
    spread, distance = 0.25, 0.5
    if total > 0.0:
        mean = min(max(float(counts @ fine.target) / total, -0.5), 0.5)
        spread = min(max(float(counts @ squares) / total - mean * mean, 0.0), 0.25)
        around = _distances(cells, mean)
        around += (around - _distances(merged, mean)[groups]) / 3.0
        distance = min(max(float(counts @ around) / total, 0.0), 0.5)
    left = _unexplained(counts, fine, coarse, groups, deviation).measured("", variances, 0.0, math.inf, 1.0)
    absolute = mean_ratio(counts, fine.error, coarse.error[groups]).measured("", variances, 0.0, 1.0, distance)
    squared = mean_ratio(counts, fine.error_square, coarse.error_square[groups]).measured(
        "", variances, 0.0, 1.0, spread
    )
    return (
        Measure("R2", 1.0 - left.value, 1.0 - left.upper, 1.0 - left.lower, 0.0, left.is_open),
        _scaled(absolute, "mean absolute error", width),
        _scaled(squared, "mean squared error", width * width),
    )


def _distances(cells: ErrorCells, mean: float) -> FloatArray:
    """For each cell the mean distance of its targets from a number, if they are spread evenly over their bin."""
    targets = np.asarray(cells.targets) / (2.0 * ONE)
    low, high = targets[:-1] - mean, targets[1:] - mean
    distances = (high * np.abs(high) - low * np.abs(low)) / (2.0 * (high - low))
    return distances[np.nonzero(cells.possible)[0]]


def _scaled(found: Measure, name: str, unit: float) -> Measure:
    ends = found.lower * unit, found.upper * unit
    return Measure(name, found.value * unit, *ends, found.baseline * unit, found.is_open)


def _unexplained(
    counts: FloatArray, fine: _CellNumbers, coarse: _CellNumbers, groups: IntArray, deviation: float
) -> Ratio:
    """The sum of squared errors over that of squared distances from the mean, both times the number of records."""
    corrections = (fine.error_square - coarse.error_square[groups]) / 3.0, (fine.square - coarse.square[groups]) / 3.0
    errors, squares, target = fine.error_square + corrections[0], fine.square + corrections[1], fine.target
    total, error, square, first = (
        float(counts.sum()), float(counts @ errors), float(counts @ squares), float(counts @ target),
    )  # fmt: skip
    # Products of two noisy sums are too large by what their noise has in common.
    noise = deviation**2
    top = total * error - noise * float(errors.sum())
    bottom = total * square - first * first - noise * float(np.sum(squares - target * target))
    shift = total * float(counts @ corrections[0]), total * float(counts @ corrections[1])
    correction = shift[0] - shift[1] * top / bottom if bottom > 0.0 else 0.0
    return Ratio(top, bottom, error + total * errors, square + total * squares - 2.0 * first * target, correction)


# ---- Measures of predicted means, of counts and of amounts, from the numbers of records by prediction and target.

# Bins of a table of calibration.
_MOST_CALIBRATED = 10


def unit_deviance(targets: FloatArray, means: FloatArray, power: int) -> FloatArray:
    """Twice the log-likelihood that a mean loses against the target itself: Poisson's for 1, the gamma law's for 2."""
    ratios = targets / means
    logarithms = np.log(np.maximum(ratios, 1e-300))
    if power == 1:
        losses: FloatArray = 2.0 * (np.where(targets > 0.0, targets * logarithms, 0.0) - (targets - means))
    else:
        losses = 2.0 * (ratios - 1.0 - logarithms)
    return losses


def measure_means(cells: MeanCells, counts: FloatArray, deviation: float) -> tuple[Measure, ...]:
    """D2, mean deviance and calibration in the large, from counts with noise of a standard deviation.

    The deviance of the best constant does not change with the constant, so that its noise counts cell by cell.
    """
    merged, groups = cells.coarser()
    (means, targets), coarse = cells.numbers, merged.numbers[0][groups]
    variances = cell_variances(counts, deviation)
    low, high = cells.y_bounds
    total = float(counts.sum())
    constant = float(counts @ targets) / total if total > 0.0 else 0.0
    constant = min(max(constant, max(low, 1e-9 * high)), high)
    of_null = unit_deviance(targets, np.full(targets.size, constant), cells.power)
    fine, rough = (unit_deviance(targets, each, cells.power) for each in (means, coarse))
    null = mean_ratio(counts, of_null).measured("", variances, 0.0, math.inf, 0.0)
    deviance = mean_ratio(counts, fine, rough)
    left = Ratio(deviance.top, float(counts @ of_null), deviance.top_slopes, of_null, deviance.correction).measured(
        "", variances, 0.0, math.inf, 1.0
    )
    gap = mean_ratio(counts, means - targets, coarse - targets)
    return (
        Measure("D2", 1.0 - left.value, 1.0 - left.upper, 1.0 - left.lower, 0.0, left.is_open),
        deviance.measured("deviance", variances, 0.0, math.inf, null.value),
        gap.measured("calibration in the large", variances, low - high, high - low, 0.0),
    )


def calibrate_means(cells: MeanCells, counts: FloatArray, deviation: float) -> tuple[CalibrationBin, ...]:
    """The mean of the target by bins of its prediction, of which neighbours are put together."""
    low, high = cells.y_bounds
    means, targets = cells.numbers
    step = -(-cells.n_means // _MOST_CALIBRATED)
    found = []
    for first in range(0, cells.n_means, step):
        last = min(first + step, cells.n_means)
        part = slice(first * cells.n_targets, last * cells.n_targets)
        variances = cell_variances(counts[part], deviation)
        ends = math.exp(cells.means[first]), math.exp(cells.means[last])
        ratio = mean_ratio(counts[part], targets[part])
        share = ratio.measured("", variances, low, high, 0.0)
        predicted, value = math.sqrt(ends[0] * ends[1]), None
        if not share.is_open:
            predicted, value = min(max(float(counts[part] @ means[part]) / ratio.bottom, ends[0]), ends[1]), share.value
        found.append(CalibrationBin(*ends, predicted, value, share.lower, share.upper, ratio.bottom))
    return tuple(found)
