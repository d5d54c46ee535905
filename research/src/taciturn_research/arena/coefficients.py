"""What readers read of a fit: its coefficients beside those of a fit without privacy to the same columns."""

from __future__ import annotations

from functools import lru_cache
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from taciturn_research.arena.methods import Fitted
from taciturn_research.arena.sets import DataSet, FloatArray, Problem
from taciturn_research.coverage.plain import NORMAL, Reference, Sample, fit_plain

PENALTY = 1.0
"""Of the fit without privacy, as of scikit-learn's ``LogisticRegression()`` and ``Ridge()``: half the sum of squares.

It settles what records do not: a level that no record has gets 0, and columns that are the same share their weight.
"""
RARE = 0.005
"""A column is rare if a smaller share of the records has anything in it."""
CLEAR = 2.0
"""Signs are compared where the coefficient without privacy is at least so many of its standard errors from 0."""

_MOST_STEPS = 100
_TOLERANCE = 1e-9


class Readings(TypedDict):
    """Measures of the coefficients of a fit, by name; None where one has no meaning."""

    coef: list[float] | None
    coef_error: float | None
    signs: float | None
    largest: float | None
    rare: int | None
    intervals: float | None
    width: float | None
    coverage: float | None


UNREAD = Readings(
    coef=None, coef_error=None, signs=None, largest=None, rare=None, intervals=None, width=None, coverage=None
)


def readings(data_set: DataSet, problem: Problem, found: Fitted) -> Readings:
    """Measures of the coefficients of a fit to a raw table.

    ``coef_error`` is the length of the difference from the coefficients without privacy over the length of the latter,
    ``signs`` the share of clear coefficients that have the same sign, ``largest`` the ratio of the largest absolute
    coefficients, ``rare`` the number of kept columns that are rare. Of fits with intervals: the share of estimable
    coefficients that have one, the median of widths beside those without privacy, and how often the coefficient of all
    training records is covered by an interval from a sample of them that was drawn with replacement.
    """
    if not data_set.names or found.coef is None:
        return UNREAD
    kept = np.flatnonzero(found.coef)
    told = Readings(
        **{**UNREAD, "coef": [float(f"{value:.6g}") for value in found.coef], "rare": n_rare(problem, kept)}
    )
    if kept.size == 0:
        return told
    coef, plain, errors = found.coef[kept], *fit_plainly(problem, data_set.task, kept.tobytes())
    size = float(np.linalg.norm(plain))
    if size > 0.0:
        told["coef_error"] = float(np.linalg.norm(coef - plain)) / size
        told["largest"] = float(np.abs(coef).max() / np.abs(plain).max())
    clear = np.abs(plain) >= CLEAR * errors
    if clear.any():
        told["signs"] = float((np.sign(coef) == np.sign(plain))[clear].mean())
    if found.shown is not None and found.reach is not None:
        _add_intervals(told, data_set, problem, found.coef[found.shown], found.reach, found.shown)
    return told


def n_rare(problem: Problem, kept: NDArray[np.intp]) -> int:
    """How many of these columns are rare among the training records."""
    counts = np.count_nonzero(problem.X[:, kept], axis=0)
    return int((counts < RARE * problem.y.size).sum())


@lru_cache(maxsize=64)
def fit_plainly(problem: Problem, task: str, columns: bytes) -> tuple[FloatArray, FloatArray]:
    """Penalised coefficients of some columns without privacy, and their standard errors by the curvature.

    Parameters
    ----------
    problem : Problem
        Whose training records.
    task : {"regression", "classification"}
        What is fitted; the intercept has no penalty.
    columns : bytes
        Of the array of their numbers.
    """
    X = problem.X[:, np.frombuffer(columns, dtype=np.intp)]
    rows, penalty = np.column_stack((X, np.ones(len(X)))), np.full(X.shape[1] + 1, PENALTY)
    penalty[-1] = 0.0
    coef = np.zeros(rows.shape[1])
    for _ in range(_MOST_STEPS):
        margins = rows @ coef
        fitted = margins if task == "regression" else expit(margins)
        weights = np.ones(len(rows)) if task == "regression" else fitted * (1.0 - fitted)
        curvature = (rows * weights[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(curvature, rows.T @ (problem.y - fitted) - penalty * coef)
        coef = coef + step
        if np.abs(step).max() < _TOLERANCE:
            break
    variance = float(np.mean((problem.y - fitted) ** 2)) if task == "regression" else 1.0
    errors = np.sqrt(variance * np.diag(np.linalg.inv(curvature)))
    return coef[:-1], errors[:-1]


def _add_intervals(
    told: Readings,
    data_set: DataSet,
    problem: Problem,
    coef: FloatArray,
    reach: FloatArray,
    columns: NDArray[np.intp],
) -> None:
    """Add the measures of intervals, which extend by ``reach`` on either side; NaN where there is none."""
    reference = _population(problem, data_set.task, columns.tobytes())
    n_records = problem.y.size
    estimable = reference.estimable(n_records)[:-1]
    known = estimable & np.isfinite(reach)
    if estimable.any():
        told["intervals"] = float(known.sum() / estimable.sum())
    if known.any():
        plain = NORMAL * reference.spread[:-1][known] / np.sqrt(n_records)
        told["width"] = float(np.median(reach[known] / plain))
        told["coverage"] = float((np.abs(coef - reference.coefficients[:-1])[known] <= reach[known]).mean())


@lru_cache(maxsize=64)
def _population(problem: Problem, task: str, columns: bytes) -> Reference:
    sample = Sample(problem.X[:, np.frombuffer(columns, dtype=np.intp)], problem.y.astype(np.float64))
    kind = "linear" if task == "regression" else "logistic"
    return Reference.of(fit_plain(sample, kind), problem.y.size, kind)
