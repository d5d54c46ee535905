"""What a competitor is (a name, a grid of public settings, and a fit), and what is measured of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from taciturn_research.arena.sets import DataSet, FloatArray, Problem

# ---------------------------------------------------------------------
# What a competitor is: a name, a grid of one public knob, and a fit.


DELTA = 1e-6
"""For everybody."""

Setting = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What came out of a fit.

    Parameters
    ----------
    predicted : ndarray
        Predictions for the test part, margins of a classifier.
    support : ndarray of bool
        Which features they use.
    coef : ndarray or None
        Coefficients of the features in units of the features as given, of log-odds for classes.
    shown, reach : ndarray or None
        The columns whose coefficients the model has intervals for, and by how much these extend on either side.
    """

    predicted: NDArray[np.float64]
    support: NDArray[np.bool_]
    coef: NDArray[np.float64] | None = None
    shown: NDArray[np.intp] | None = None
    reach: NDArray[np.float64] | None = None


def fitted(model: Any, X_test: Any, n_columns: int) -> Fitted:
    """What a fitted linear model says; columns after the first ``n_columns`` are constants and no features."""
    predicted = model.decision_function(X_test) if hasattr(model, "decision_function") else model.predict(X_test)
    coef = np.atleast_2d(model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_))[:, :n_columns]
    return Fitted(np.ravel(predicted), np.any(coef != 0.0, axis=0), coef[0] if len(coef) == 1 else None)


def one_setting(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    """Nothing to choose."""
    return ({},)


def willing(data_set: DataSet) -> str | None:
    """No reason to leave a data set out."""
    return None


@dataclass(frozen=True, slots=True)
class Method:
    """A competitor.

    Parameters
    ----------
    name : str
        Its name.
    family : {"default", "first edition", "practice", "published", "sound", "non-private"}
        What ``--methods`` may name as well.
    tasks : tuple of str
        What it can fit.
    fit : callable
        ``fit(data_set, problem, epsilon, seed, **setting)`` returns a ``Fitted``.
    grid : callable
        ``grid(data_set, quick)``: the settings among which an oracle chooses.
    refuses : callable
        ``refuses(data_set)``: a reason to leave it out, or None.
    few : bool
        Whether it is judged on fewer seeds in the quick setting.
    """

    name: str
    family: str
    tasks: tuple[str, ...]
    fit: Callable[..., Fitted]
    grid: Callable[[DataSet, bool], tuple[Setting, ...]] = one_setting
    refuses: Callable[[DataSet], str | None] = willing
    few: bool = False

    @property
    def private(self) -> bool:
        """Whether it takes a budget."""
        return self.family != "non-private"


def with_constant(X: Any) -> Any:
    """A column of ones at the end, for methods without intercept."""
    ones = np.ones((X.shape[0], 1))
    return sp.hstack((X, ones), format="csr") if sp.issparse(X) else np.hstack((X, ones))


def shortened(X: Any, row_bound: float) -> Any:
    """Rows scaled down to an L2 norm of at most ``row_bound``."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    factors = row_bound / np.maximum(np.sqrt(np.ravel(squares)), row_bound)
    return sp.csr_array(sp.diags_array(factors) @ X) if sp.issparse(X) else X * factors[:, None]


def prepared(data_set: DataSet, problem: Problem) -> tuple[Any, Any, int]:
    """Features to fit and to judge on for methods without intercept, and how many constants they hold."""
    if not data_set.intercept:
        return problem.X, problem.X_test, 0
    return with_constant(problem.X), with_constant(problem.X_test), 1


# ---------------------------------------------------------------------
# What is measured of a fit on the test part: error, log-loss, calibration error, and the slope against the truth.


N_BINS = 15
"""Bins of equal width in [0, 1] of the calibration error."""
LARGEST_MARGIN = 30.0
"""Beyond it a probability is 0 or 1 in double precision, and one record decides about the log-loss."""


class Measures(TypedDict):
    """Measures of a fit, by name; None where one has no meaning."""

    error: float
    log_loss: float | None
    auc: float | None
    calibration: float
    calibration_slope: float | None
    slope: float | None


def measure(data_set: DataSet, problem: Problem, predicted: FloatArray) -> Measures:
    """All measures of predictions (margins of a classifier) for the test part."""
    y = problem.y_test
    return Measures(
        error=error_of(data_set, y, predicted),
        log_loss=log_loss(y, predicted) if data_set.task == "classification" else None,
        auc=float(roc_auc_score(y, predicted)) if data_set.task == "classification" else None,
        calibration=calibration_error(data_set, y, predicted),
        calibration_slope=calibration_slope(data_set, y, predicted),
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


_MOST_STEPS = 50
_TOLERANCE = 1e-8


def calibration_slope(data_set: DataSet, y: NDArray[Any], predicted: FloatArray) -> float | None:
    """Slope of the target on predictions, by least squares or, of labels on margins, by maximum likelihood.

    1 is calibrated, less is too steep. None if predictions are constant or, up to a few records, separate the labels.
    """
    if data_set.task == "regression":
        return slope(np.clip(predicted, -1.0, 1.0), y)
    spread = float(np.std(predicted))
    if spread == 0.0:
        return None
    rows = np.column_stack(((predicted - predicted.mean()) / spread, np.ones(y.size)))
    coef = np.zeros(2)
    for _ in range(_MOST_STEPS):
        rates = expit(rows @ coef)
        weights = rates * (1.0 - rates)
        curvature = (rows * weights[:, None]).T @ rows
        if np.linalg.cond(curvature) > 1.0 / _TOLERANCE:
            return None
        step = np.linalg.solve(curvature, rows.T @ (y - rates))
        coef = coef + step
        if np.abs(step).max() < _TOLERANCE:
            return float(coef[0]) / spread
    return None


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
