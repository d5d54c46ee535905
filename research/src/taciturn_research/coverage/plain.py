"""Fits without privacy: coefficients, and sandwich standard errors that hold whatever rows of a person share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Numbers: TypeAlias = NDArray[np.float64]

TASKS = ("linear", "logistic")
NORMAL = 1.959963984540054
"""The quantile of an interval of 95 % on either side."""

# Below this share of the largest eigenvalue a direction is taken for one of the null space.
_LEAST_EIGENVALUE = 1e-9
_LEAST_SHARE = 1e-6
_MOST_STEPS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Records: features in [-1, 1], a target in [-1, 1] or labels 0 and 1, and whose rows they are."""

    X: Numbers
    y: Numbers
    persons: NDArray[np.intp] | None = None

    def head(self, n_rows: int, columns: NDArray[np.intp]) -> Sample:
        """Some columns of the first rows."""
        return Sample(
            self.X[:n_rows, columns], self.y[:n_rows], None if self.persons is None else self.persons[:n_rows]
        )


@dataclass(frozen=True, slots=True, eq=False)
class PlainFit:
    """Coefficients with the intercept last, their errors, and which of them lie in the span of the second moment."""

    coefficients: Numbers
    std_error: Numbers
    identified: NDArray[np.bool_]
    deviation: float


def fit_plain(sample: Sample, task: str, *, means: Numbers | None = None, known: Numbers | None = None) -> PlainFit:
    """Least squares or maximum likelihood.

    Parameters
    ----------
    sample : Sample
        The records. Each person counts once.
    task : {"linear", "logistic"}
        What is fitted.
    means : ndarray, default=None
        Expected targets, which tell coefficients with less error than targets do.
    known : ndarray, default=None
        Coefficients that are known and only lack errors.
    """
    rows = np.column_stack((sample.X, np.ones(len(sample.X))))
    weights = np.ones(len(rows))
    if sample.persons is not None:
        weights = 1.0 / np.bincount(sample.persons)[sample.persons]
    found = known if known is not None else solve(rows, sample.y if means is None else means, weights, task)
    fitted = rows @ found if task == "linear" else expit(rows @ found)
    curvatures = weights if task == "linear" else weights * fitted * (1.0 - fitted)
    residuals = sample.y - fitted
    inverse, null = _inverse((rows * curvatures[:, None]).T @ rows)
    scores = rows * (weights * residuals)[:, None]
    if sample.persons is not None:
        scores = np.column_stack([np.bincount(sample.persons, column) for column in scores.T])
    variances = np.diag(inverse @ (scores.T @ scores) @ inverse)
    identified = np.square(null).sum(axis=1) < _LEAST_SHARE
    deviation = float(np.sqrt(np.average(np.square(residuals), weights=weights)))
    return PlainFit(found, np.sqrt(np.maximum(variances, 0.0)), identified, deviation)


def solve(rows: Numbers, targets: Numbers, weights: Numbers, task: str) -> Numbers:
    """Coefficients, the shortest ones if several are as good; targets of labels may be probabilities."""
    if task == "linear":
        weighted = rows * weights[:, None]
        return np.asarray(_inverse(weighted.T @ rows)[0] @ (weighted.T @ targets))
    found = np.zeros(rows.shape[1])
    for _ in range(_MOST_STEPS):
        rates = expit(rows @ found)
        inverse, _ = _inverse((rows * (weights * rates * (1.0 - rates))[:, None]).T @ rows)
        step = inverse @ (rows.T @ (weights * (targets - rates)))
        found = found + step
        if np.abs(step).max() < 1e-8:
            break
    return found


def _inverse(matrix: Numbers) -> tuple[Numbers, Numbers]:
    """The pseudoinverse, and a basis of the null space in columns."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _LEAST_EIGENVALUE * values[-1]
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, vectors[:, ~kept]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The population's coefficients of some columns and the intercept, and how well a sample tells them.

    ``spread`` over the root of the number of records is the standard error without privacy. ``limit`` is what a
    half-width has to be below: 2 for log-odds, the deviation of the residuals for numbers.
    """

    coefficients: Numbers
    spread: Numbers
    identified: NDArray[np.bool_]
    limit: float
    task: str

    @classmethod
    def of(cls, found: PlainFit, n_records: int, task: str) -> Reference:
        """From a fit to so many records of the population."""
        limit = found.deviation if task == "linear" else 2.0
        return cls(found.coefficients, found.std_error * np.sqrt(n_records), found.identified, limit, task)

    def estimable(self, n_records: int) -> NDArray[np.bool_]:
        """Which coefficients so many records tell without privacy; the intercept of numbers never counts."""
        told: NDArray[np.bool_] = self.identified & (NORMAL * self.spread / np.sqrt(n_records) < self.limit)
        told[-1] &= self.task == "logistic"
        return told
