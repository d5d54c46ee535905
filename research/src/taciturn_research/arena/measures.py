"""What is measured of a fit on the test part: error, log-loss, calibration error, and the slope against the truth."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from taciturn_research.arena.sets import DataSet, FloatArray, Problem

__all__ = ["Measures", "calibration_error", "error_of", "log_loss", "log_odds", "measure", "slope"]

N_BINS = 15
"""Bins of equal width in [0, 1] of the calibration error."""
LARGEST_MARGIN = 30.0
"""Beyond it a probability is 0 or 1 in double precision, and one record decides about the log-loss."""


class Measures(TypedDict):
    """Measures of a fit, by name; None where one has no meaning."""

    error: float
    log_loss: float | None
    calibration: float
    slope: float | None


def measure(data_set: DataSet, problem: Problem, predicted: FloatArray) -> Measures:
    """All measures of predictions (margins of a classifier) for the test part."""
    y = problem.y_test
    return Measures(
        error=error_of(data_set, y, predicted),
        log_loss=log_loss(y, predicted) if data_set.task == "classification" else None,
        calibration=calibration_error(data_set, y, predicted),
        slope=None if problem.margins is None else slope(problem.margins, predicted),
    )


def error_of(data_set: DataSet, y: NDArray[Any], predicted: FloatArray) -> float:
    """The error of margins or of numbers; numbers are clipped to the public bounds first, whoever predicted them."""
    if data_set.error == "mse":
        return float(np.mean((np.clip(predicted, -1.0, 1.0) - y) ** 2) / np.var(y))
    if data_set.error == "auc":
        return float(1.0 - roc_auc_score(y, predicted))
    return float(np.mean((predicted > 0.0) != (y == 1)))


def log_loss(y: NDArray[Any], margins: FloatArray) -> float:
    """Mean logistic loss, in nats."""
    signed = np.where(y == 1, margins, -margins)
    return float(np.mean(np.logaddexp(0.0, -np.clip(signed, -LARGEST_MARGIN, LARGEST_MARGIN))))


def calibration_error(data_set: DataSet, y: NDArray[Any], predicted: FloatArray) -> float:
    """Expected calibration error in ``N_BINS`` bins; of a regression, the bias of the mean in standard deviations."""
    if data_set.task == "regression":
        return float(abs(np.mean(np.clip(predicted, -1.0, 1.0)) - np.mean(y)) / np.std(y))
    probabilities = expit(predicted)
    bins = np.minimum((probabilities * N_BINS).astype(np.intp), N_BINS - 1)
    gaps = np.bincount(bins, weights=probabilities - (y == 1), minlength=N_BINS)
    return float(np.abs(gaps).sum() / y.size)


def slope(margins: FloatArray, predicted: FloatArray) -> float | None:
    """Least-squares slope of predictions on the true margins: 1 without bias; None if the margins are constant."""
    centred = margins - margins.mean()
    variation = float(centred @ centred)
    return float(centred @ predicted / variation) if variation > 0.0 else None


def log_odds(numbers: FloatArray) -> FloatArray:
    """Margins of a least-squares fit to labels -1 and 1: log-odds of (1 + number) / 2, kept within .001 and .999."""
    probabilities = np.clip((1.0 + numbers) / 2.0, 1e-3, 1.0 - 1e-3)
    odds: FloatArray = np.log(probabilities / (1.0 - probabilities))
    return odds
