"""What practitioners would use instead: dense private descent, objective perturbation, AdaSSP and its boosted form.

Each is private as stated, under the same relation (one record's values are zeroed), with exact Gaussian accounting.
The settings of those that have some are chosen by an oracle, the best on the test data. Targets lie in [-1, 1], which
centres a regression by its public bounds; least squares fits labels as -1 and 1.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn.privacy.budget import Budget
from taciturn.privacy.gdp import mu_of_budget
from taciturn_research.arena.measures import log_odds
from taciturn_research.arena.methods import DELTA, Fitted, Method, Setting, prepared, shortened
from taciturn_research.arena.sets import DataSet, FloatArray, Problem

__all__ = ["PRACTICE", "boosted_least_squares", "clipped_gradient", "private_descent"]

BOTH = ("regression", "classification")
MOMENTUM = 0.8
# AdaSSP releases a matrix with a row and a column for each feature, and its eigenvalues.
MOST_GRAM_COLUMNS = 1000
# Probability with which AdaSSP's bound on an eigenvalue may fail.
FAILURE = 0.05


def clipped_gradient(X: Any, row_norms: FloatArray, derivatives: FloatArray, clip: float) -> FloatArray:
    """Sum of the records' gradients, each scaled down to an L2 norm of at most ``clip``."""
    factors = clip / np.maximum(np.abs(derivatives) * row_norms, clip)
    total: FloatArray = np.asarray(X.T @ (derivatives * factors).astype(X.dtype))
    return total


def private_descent(
    X: Any,
    y: FloatArray,
    *,
    logistic: bool,
    mu: float,
    clip: float,
    n_steps: int,
    step: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Gradient descent with momentum on clipped sums with Gaussian noise; the mean of the second half.

    Parameters
    ----------
    X, y : arrays
        Records.
    logistic : bool
        Whether the loss is logistic (labels 0 and 1) or squared.
    mu : float
        Gaussian privacy parameter of all steps together.
    clip : float
        Bound on the norm of one record's gradient, which is the sensitivity of the sum.
    n_steps : int
        Number of steps.
    step : float
        Step size for the mean gradient.
    rng : Generator
        Source of the noise.
    """
    n_rows, n_columns = X.shape
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    row_norms = np.sqrt(np.ravel(squares))
    scale = clip * math.sqrt(n_steps) / mu
    coef, velocity, total = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
    for number in range(n_steps):
        margins = X @ coef.astype(X.dtype)
        derivatives = (expit(margins) if logistic else margins) - y
        gradient = clipped_gradient(X, row_norms, derivatives, clip) + scale * rng.standard_normal(n_columns)
        velocity = MOMENTUM * velocity + (1.0 - MOMENTUM) * gradient / n_rows
        coef = coef - step * velocity
        if number >= n_steps // 2:
            total += coef
    return total / (n_steps - n_steps // 2)


def _mu(epsilon: float) -> float:
    return mu_of_budget(Budget(epsilon=epsilon, delta=DELTA))


def _descent(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_steps: int, clip: float, rate: float
) -> Fitted:  # fmt: skip
    """``clip`` is in units of the row bound, ``rate`` in units of the inverse smoothness at half that bound."""
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    logistic = data_set.task == "classification"
    smoothness = row_bound**2 * (0.25 if logistic else 1.0)
    coef = private_descent(
        X.astype(np.float32),
        problem.y,
        logistic=logistic,
        mu=_mu(epsilon),
        clip=clip * row_bound,
        n_steps=n_steps,
        step=4.0 * rate / smoothness,
        rng=np.random.default_rng((seed, 77)),
    )
    # A descent that diverges predicts nothing.
    predicted = np.nan_to_num(np.ravel(X_test @ coef), posinf=0.0, neginf=0.0)
    return Fitted(predicted, np.ones(problem.X.shape[1], dtype=bool))


def boosted_least_squares(
    X: FloatArray, y: FloatArray, *, mu: float, row_bound: float, n_rounds: int, clip: float, rng: np.random.Generator
) -> FloatArray:  # fmt: skip
    """AdaSSP, repeated on clipped residuals with one Gram matrix (Tang et al. 2023); one round at clip 1 is AdaSSP.

    A third of the squared budget each goes to the least eigenvalue, to the Gram matrix, and to the rounds.

    Parameters
    ----------
    X, y : ndarrays
        Rows of norms up to ``row_bound``, targets in [-1, 1].
    mu : float
        Gaussian privacy parameter of everything.
    row_bound : float
        Public bound on row norms.
    n_rounds : int
        Number of rounds.
    clip : float
        Bound on residuals.
    rng : Generator
        Source of the noise.
    """
    n_columns, third = X.shape[1], mu / math.sqrt(3.0)
    gram, scale = X.T @ X, row_bound**2 / third
    least = np.linalg.eigvalsh(gram)[0] + scale * (rng.standard_normal() - math.sqrt(2.0 * math.log(6.0 / FAILURE)))
    noise = np.triu(rng.standard_normal((n_columns, n_columns)))
    spread = scale * math.sqrt(n_columns * math.log(2.0 * n_columns**2 / FAILURE))
    ridge = max(0.0, spread - max(least, 0.0))
    inverse = np.linalg.inv(gram + scale * (noise + np.triu(noise, 1).T) + ridge * np.eye(n_columns))
    coef = np.zeros(n_columns)
    round_scale = row_bound * clip * math.sqrt(n_rounds) / third
    for _ in range(n_rounds):
        residuals = np.clip(y - X @ coef, -clip, clip)
        coef = coef + inverse @ (X.T @ residuals + round_scale * rng.standard_normal(n_columns))
    return coef


def _least_squares(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_rounds: int = 1, clip: float = 1.0
) -> Fitted:  # fmt: skip
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    X = shortened(X.toarray() if sp.issparse(X) else X, row_bound)
    classes = data_set.task == "classification"
    coef = boosted_least_squares(
        X,
        2.0 * problem.y - 1.0 if classes else problem.y,
        mu=_mu(epsilon),
        row_bound=row_bound,
        n_rounds=n_rounds,
        clip=clip,
        rng=np.random.default_rng((seed, 77)),
    )
    predicted = np.ravel(X_test @ coef)
    return Fitted(log_odds(predicted) if classes else predicted, np.ones(problem.X.shape[1], dtype=bool))


def _too_wide(data_set: DataSet) -> str | None:
    wide = data_set.n_columns > MOST_GRAM_COLUMNS
    return f"more than {MOST_GRAM_COLUMNS:,} columns" if wide else None


# Six of 69 settings and five of 25 for each task: those that together come nearest to the best of all, in a pilot with
# two seeds on most sets. Number of steps, clip, rate; number of rounds, clip.
_DESCENTS = {
    "regression": ((300, 0.02, 0.3), (300, 0.02, 1), (20, 0.02, 10), (300, 0.02, 10), (300, 0.06, 10), (300, 0.2, 0.3)),
    "classification": (
        (300, 0.06, 3), (300, 0.06, 10), (300, 0.2, 0.3), (300, 0.2, 10), (300, 0.6, 1), (300, 0.6, 10),
    ),
}  # fmt: skip
_ROUNDS = {
    "regression": ((30, 0.05), (100, 0.05), (30, 0.1), (30, 0.2), (30, 0.5)),
    "classification": ((3, 1), (10, 1), (30, 1), (100, 0.2), (100, 0.5)),
}


def _descents(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    keys = ("n_steps", "clip", "rate")
    return tuple(dict(zip(keys, setting, strict=True)) for setting in _DESCENTS[data_set.task])


def _rounds(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"n_rounds": n_rounds, "clip": clip} for n_rounds, clip in _ROUNDS[data_set.task])


_practice = partial(Method, family="practice", tasks=BOTH)

PRACTICE = (
    _practice("DP-GD", fit=_descent, grid=_descents),
    _practice("AdaSSP", fit=_least_squares, refuses=_too_wide),
    _practice("boosted AdaSSP", fit=_least_squares, grid=_rounds, refuses=_too_wide),
)
