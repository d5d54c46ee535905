"""Small synthetic sets of kinds met in practice: heavy tails, skew, few rows, categories, a rare class."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn_research.arena.sets import DataSet, FloatArray, Records, divided_by

__all__ = ["GENERATED"]

N_TEST = 4000
N_LEVELS = 20
"""Levels of each category of the one-hot table; level l has a probability proportional to 1 / (1 + l)."""

Draw = Callable[[np.random.Generator], Records]


def _correlated_rows(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> FloatArray:
    X = rng.standard_normal(shape)
    for j in range(1, shape[1]):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    rows: FloatArray = np.clip(X / 3.0, -1.0, 1.0)
    return rows


def _weights(rng: np.random.Generator, n_columns: int, k: int, low: float, high: float) -> FloatArray:
    coef = np.zeros(n_columns)
    coef[rng.choice(n_columns, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(low, high, k)
    return coef


def _heavy_tails(rng: np.random.Generator) -> Records:
    n_train = 4000
    X, coef = _correlated_rows(rng, (n_train + N_TEST, 50), 0.3), _weights(rng, 50, 8, 1.5, 4.5)
    return Records(X, X @ coef + 0.7 * rng.standard_t(2, X.shape[0]), n_train, coef != 0.0, X @ coef)


def _lognormal(rng: np.random.Generator) -> Records:
    """The mean is not linear in the features, so there are no true margins."""
    n_train = 4000
    X, coef = _correlated_rows(rng, (n_train + N_TEST, 30), 0.3), _weights(rng, 30, 6, 0.45, 1.2)
    return Records(X, np.exp(X @ coef + 0.6 * rng.standard_normal(X.shape[0])), n_train, coef != 0.0)


def _few_rows(rng: np.random.Generator) -> Records:
    n_train = 200
    X, coef = rng.uniform(-1.0, 1.0, (n_train + N_TEST, 20)), np.zeros(20)
    coef[:3] = 1.0, -1.0, 0.5
    return Records(X, X @ coef + 0.5 * rng.standard_normal(X.shape[0]), n_train, coef != 0.0, X @ coef)


def _noise(rng: np.random.Generator) -> Records:
    n_train = 500
    X = rng.uniform(-1.0, 1.0, (n_train + N_TEST, 40))
    y = 1.0 + rng.standard_normal((X.shape[0],))
    return Records(X, y, n_train, np.zeros(40, dtype=bool))


def _labelled(rng: np.random.Generator, X: Any, margins: FloatArray, n_train: int, coef: FloatArray) -> Records:
    y = (rng.random(margins.size) < expit(margins)).astype(np.int64)
    return Records(X, y, n_train, coef != 0.0, margins)


def _dense_logistic(rng: np.random.Generator) -> Records:
    X, coef = _correlated_rows(rng, (10_000 + N_TEST, 50), 0.7), 0.8 * rng.standard_normal(50)
    return _labelled(rng, X, X @ coef - 0.3, 10_000, coef)


def _categories(rng: np.random.Generator) -> Records:
    n_train, n_fields = 20_000, 8
    n_rows = n_train + N_TEST
    shares = 1.0 / np.arange(1, N_LEVELS + 1)
    levels = rng.choice(N_LEVELS, (n_rows, n_fields), p=shares / shares.sum())
    # liblinear takes indices of 32 bits alone.
    columns = (levels + N_LEVELS * np.arange(n_fields)).ravel().astype(np.int32)
    places = np.arange(0, n_rows * n_fields + 1, n_fields, dtype=np.int32)
    shape = (n_rows, N_LEVELS * n_fields)
    X = sp.csr_array((np.ones(columns.size), columns, places), shape=shape)
    coef = 0.7 * rng.standard_normal(shape[1])
    return _labelled(rng, X, X @ coef - 0.5, n_train, coef)


def _rare_class(rng: np.random.Generator) -> Records:
    X, coef = _correlated_rows(rng, (20_000 + N_TEST, 60), 0.3), _weights(rng, 60, 10, 1.5, 4.0)
    return _labelled(rng, X, X @ coef - 7.5, 20_000, coef)


def _generated(
    name: str, shape: tuple[int, int], k: int, row_bound: float, scaling: str, make: Draw, **facts: Any
) -> DataSet:  # fmt: skip
    # The records of one seed serve many fits in a row.
    @lru_cache(maxsize=1)
    def records(seed: int, folder: Path | None) -> Records:
        return make(np.random.default_rng((seed, 500)))

    task = "regression" if "y_bounds" in facts else "classification"
    facts = {"error": "mse" if task == "regression" else "misclassified"} | facts
    scale = facts.pop("scale", divided_by(1.0))
    return DataSet(name, task, shape[1], k, row_bound, records, scale, scaling, **facts)


def _as_drawn(X: Any) -> Any:
    return X


GENERATED = (
    _generated(
        "heavy tails", (4000, 50), 8, 3.0, "divided by 3 and clipped; errors t with 2 degrees; y in (-25, 25)",
        _heavy_tails, y_bounds=(-25.0, 25.0),
    ),
    _generated(
        "lognormal", (4000, 30), 6, 2.5, "divided by 3 and clipped; y in (0, 20)", _lognormal, y_bounds=(0.0, 20.0),
    ),
    _generated(
        "few rows", (200, 20), 3, 3.0, "uniform in [-1, 1]; 200 rows; y in (-4, 4)", _few_rows, y_bounds=(-4.0, 4.0),
    ),
    _generated(
        "pure noise", (500, 40), 5, 4.5, "uniform in [-1, 1]; y independent, in (-5, 5)", _noise, y_bounds=(-5.0, 5.0),
    ),
    _generated(
        "dense logistic", (10_000, 50), 10, 3.0, "divided by 3 and clipped; 50 weights, k = 10", _dense_logistic,
    ),
    _generated(
        "one-hot", (20_000, 160), 20, 3.0, "indicators; 8 categories of 20 levels by Zipf's law, 160 weights, k = 20",
        _categories, scale=_as_drawn, blocks=tuple((N_LEVELS * field, N_LEVELS) for field in range(8)),
    ),
    _generated(
        "rare class", (20_000, 60), 10, 3.0, "divided by 3 and clipped; 2 % positives", _rare_class, error="auc",
    ),
)  # fmt: skip
