"""Table 1 of DP-IGHT: how fast errors fall as records or epsilon grow.

Wang and Gu, *Differentially Private Iterative Gradient Hard Thresholding for Sparse Learning*, Section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from taciturn.core.validation import FloatArray
from taciturn.datasets import Dataset, make_ight_linear
from taciturn.methods.hard_threshold.estimator import HardThresholdRegressor
from taciturn.published import DPIGHT, PrivateLasso, TwoStage
from taciturn_research.reproduce.dpight.claims import SLOPE, falls_like
from taciturn_research.reproduce.dpight.common import DELTA, DP_IGHT, FRANK_WOLFE, PAPER, STEPS, TWO_STAGE
from taciturn_research.reproduce.experiment import Claim, Experiment, Picture, Table, seed_of
from taciturn_research.reproduce.numbers import Row

__all__ = ["TABLE_1", "log_slope"]

WITHOUT_LOG = "DP-IGHT (published), less the logarithm in G"
HARD_THRESHOLD = "HardThresholdRegressor"

EPSILON = 2.0
N_FEATURES, N_WEIGHTS = 50, 3
ROW_BOUND = 2.0 * N_WEIGHTS
DRAWS = 5
"""Of the noise, for each data set: three coordinates alone scatter much."""

ERROR = "relative error"


def numbers_of_records(dataset: Dataset | None, *, largest: int = 64_000) -> tuple[int, ...]:
    """Five, each twice the one before."""
    return tuple(largest // 2**halvings for halvings in range(4, -1, -1))


def rates(numbers: tuple[int, ...], seed: int) -> list[Row]:
    """What privacy costs each method for each number of records, and the slopes on a log-log scale."""
    X, y, coef = _data(numbers[-1], seed)
    costs: dict[str, list[float]] = {}
    for n in numbers:
        for method, cost in _costs(X[:n], y[:n], coef, seed).items():
            costs.setdefault(method, []).append(cost)
    rows: list[Row] = []
    for method, found in costs.items():
        rows += [
            {"method": method, "measure": ERROR, "n epsilon": n * EPSILON, "value": value}
            for n, value in zip(numbers, found, strict=True)
        ]
        rows.append({"method": method, "measure": SLOPE, "value": log_slope(numbers, found)})
    in_g = [_stated_bound(coef, n) ** 2 for n in numbers]
    rest = [cost / log for cost, log in zip(costs[DP_IGHT], in_g, strict=True)]
    rows.append({"method": WITHOUT_LOG, "measure": SLOPE, "value": log_slope(numbers, rest)})
    return rows


def log_slope(x: tuple[int, ...], y: list[float]) -> float:
    """By least squares on a log-log scale."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _data(n: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The paper's linear set with weights of equal size, so that none is too small to be found for any n."""
    X, y, drawn = make_ight_linear(n, N_FEATURES, N_WEIGHTS, random_state=seed_of(seed, "data"))
    coef = np.sign(drawn) / math.sqrt(3.0)
    return X, y + X @ (coef - drawn), coef


def _stated_bound(coef: FloatArray, n: int) -> float:
    """G of Corollary 5.6."""
    return ROW_BOUND * (math.sqrt(2.0 * N_WEIGHTS) * float(np.linalg.norm(coef)) + math.sqrt(0.1) * math.log(n))


def _costs(X: FloatArray, y: FloatArray, coef: FloatArray, seed: int) -> dict[str, float]:
    """Squared distances from the method without noise, or excess risk, both relative to a model of zeros."""
    n = y.size
    budget = {"delta": DELTA, "n_nonzero": N_WEIGHTS}
    steps = {"n_steps": STEPS, "step_size": 1.0}
    ight = budget | steps | {"gradient_bound": _stated_bound(coef, n)}
    two_stage = budget | {"radius": 2.0 * float(np.linalg.norm(coef))}
    sound = budget | steps | {"x_bound": 2.0, "y_bounds": (-3.0, 3.0), "row_bound": ROW_BOUND, "residual_clip": 1.5}
    sound["fit_intercept"] = False
    costs = {
        method: _distance(estimator, parameters, X, y, coef, seed_of(seed, method, n))
        for method, estimator, parameters in (
            (DP_IGHT, DPIGHT, ight),
            (TWO_STAGE, TwoStage, two_stage),
            (HARD_THRESHOLD, HardThresholdRegressor, sound),
        )
    }
    radius = float(np.abs(coef).sum())
    lasso = PrivateLasso(
        epsilon=EPSILON,
        delta=DELTA,
        radius=radius,
        n_steps=math.ceil((n * EPSILON) ** (2.0 / 3.0)),
        loss="squared",
        gradient_bound=2.0 * radius,
        random_state=seed_of(seed, FRANK_WOLFE, n),
    ).fit(X, y)

    def risk(weights: FloatArray) -> float:
        return float(np.mean((X @ weights - y) ** 2))

    costs[FRANK_WOLFE] = (risk(lasso.coef_) - risk(coef)) / (risk(np.zeros_like(coef)) - risk(coef))
    return costs


def _distance(
    estimator: Callable[..., Any], parameters: dict[str, Any], X: FloatArray, y: FloatArray, coef: FloatArray, seed: int
) -> float:
    """Between the method with and without noise, squared, a mean over draws of the noise."""
    twin = estimator(epsilon=math.inf, random_state=seed, **parameters).fit(X, y).coef_
    found = [
        estimator(epsilon=EPSILON, random_state=seed_of(seed, draw), **parameters).fit(X, y).coef_
        for draw in range(DRAWS)
    ]
    return float(np.mean([np.sum((private - twin) ** 2) for private in found]) / np.sum(coef**2))


TABLE_1 = Experiment(
    name="dpight-table-1",
    paper=PAPER,
    summary="how fast errors fall with the number of records times epsilon, beside the rates of the bounds",
    relation="replace-one for the claims of DP-IGHT; zero-out for all others",
    scaling="none beyond the generator's, which bounds entries and rows",
    notes=(
        "The table prints bounds, not numbers: (n epsilon)^(-2/3) for Frank-Wolfe, (n epsilon)^(-2) for two-stage and "
        "DP-IGHT. Here n goes from 4000 to 64000 at epsilon = 2 and delta = 0.01, with 50 features and 3 true ones; a "
        "slope is fitted by least squares on a log-log scale, per trial.",
        "The bounds leave out the statistical error. So does the error here: the squared distance from what the same "
        "method finds without noise, relative to the squared length of the weights, a mean over five draws of the "
        "noise. For Frank-Wolfe it is the excess risk over the true weights, relative to that of a model of zeros, "
        "with (n epsilon)^(2/3) steps in the ball that just holds them.",
        "The true weights have the same size, 1/sqrt(3), the root mean square of the paper's: weights near zero are "
        "found by two-stage for no n.",
        "The stated bound on gradients grows with ln n, which the rate of DP-IGHT counts among the constants: the "
        "slope is also given for the error divided by G^2.",
        "HardThresholdRegressor makes the same steps with rows cut at K and residuals at 1.5.",
    ),
    trials=10,
    quick_trials=5,
    prepare=numbers_of_records,
    run=rates,
    claims=(
        Claim(
            "Table 1", "The error of DP-IGHT falls as (n epsilon)^-2, up to logarithms.", falls_like(WITHOUT_LOG, -2.0)
        ),
        Claim("Table 1", "The error of two-stage falls as (n epsilon)^-2.", falls_like(TWO_STAGE, -2.0)),
        Claim("Table 1", "The error of Frank-Wolfe falls as (n epsilon)^(-2/3).", falls_like(FRANK_WOLFE, -2.0 / 3.0)),
    ),
    tables=(
        Table("Table 1", ("method",), "n epsilon", where={"measure": ERROR}),
        Table("Table 1", ("method",), "measure", where={"measure": SLOPE}),
    ),
    pictures=(
        Picture(
            "Table 1",
            "errors against the number of records times epsilon",
            "curves",
            across="n epsilon",
            series="method",
            x_label="n epsilon",
            y_label="relative error that noise causes",
            where={"measure": ERROR},
            x_scale="log",
            y_scale="log",
        ),
    ),
)
