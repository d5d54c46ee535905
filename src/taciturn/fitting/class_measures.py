"""Measures of classifiers from the numbers of records by prediction and class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.data.prediction_cells import N_DECILES, ClassCells, MarginCells
from taciturn.fitting.score_ratios import QUANTILE, Measure, Ratio, cell_variances, mean_ratio

__all__ = [
    "CalibrationBin",
    "ClassRecall",
    "calibrate_deciles",
    "class_recalls",
    "measure_classes",
    "measure_margins",
    "roc_curve",
]


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """A tenth of predicted probabilities, and how often the second class occurs in it.

    ``share`` is None where noise leaves it open; ``records`` is the noisy number of records.
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
    """A class: its share of the records, and the share of its records that are predicted rightly.

    ``recall`` is None where noise leaves it open.
    """

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


# ------------------------------------------------------------------ two classes


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
        share = mean_ratio(inside, np.repeat([0.0, 1.0], inside.size // 2))
        ends = share.interval(variances, 0.0, 1.0)
        predicted = (low + high) / 2.0
        if ends is None:
            found.append(CalibrationBin(low, high, predicted, None, 0.0, 1.0, share.bottom))
            continue
        predicted = float(inside @ np.tile(expit(odds[part]), 2)) / share.bottom
        found.append(
            CalibrationBin(
                low,
                high,
                min(max(predicted, low), high),
                min(max(share.top / share.bottom, 0.0), 1.0),
                min(ends[0], 1.0),
                max(ends[1], 0.0),
                share.bottom,
            )
        )
    return tuple(found)


def roc_curve(cells: MarginCells, counts: FloatArray) -> tuple[tuple[float, float], ...]:
    """False and true positive rates by bin, from (0, 0) to (1, 1); what noise turns back is straightened."""
    rates = []
    for side in counts.reshape(2, cells.n_bins):
        above = np.maximum.accumulate(np.cumsum(side[::-1]))
        total = max(float(side.sum()), 1.0)
        rates.append(np.clip(above / total, 0.0, 1.0))
    return ((0.0, 0.0), *zip(rates[0].tolist(), rates[1].tolist(), strict=True), (1.0, 1.0))


# ------------------------------------------------------------------ more classes


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
        recall = _recall(table[code])
        ends = recall.interval(cell_variances(table[code], deviation), 0.0, 1.0)
        if ends is None:
            found.append(ClassRecall(code, share, None, 0.0, 1.0))
        else:
            value = min(max(recall.top / recall.bottom, 0.0), 1.0)
            found.append(ClassRecall(code, share, value, min(ends[0], 1.0), max(ends[1], 0.0)))
    return tuple(found)
