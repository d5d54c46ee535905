"""The data sets of the arena: how each is drawn, scaled by public constants, split and judged.

Every method gets the same problem: features in [-1, 1], targets of a regression mapped to [-1, 1] by public bounds,
labels 0 and 1. The constants are written down here and depend on no record that is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.datasets import (
    make_dpsis_linear,
    make_ight_linear,
    make_ight_logistic,
    make_screening_linear,
    make_screening_logistic,
    make_sparsifier_logistic,
)

__all__ = ["SYNTHETIC", "DataSet", "Problem", "Records", "draw", "make_autoregressive"]

FloatArray = NDArray[np.float64]

TEST_SHARE = 0.2
MOST_TEST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Records:
    """Records as they are drawn or filed, unscaled.

    Parameters
    ----------
    X, y : arrays
        Features and target.
    n_train : int or None
        So many rows at the front are for training, by birth or by the publisher's split; None: any.
    truth : ndarray of bool or None
        The true support, where there is one.
    margins : ndarray or None
        The true mean of the target given the features, or the true log-odds, where the generator is a linear model.
    """

    X: Any
    y: NDArray[Any]
    n_train: int | None = None
    truth: NDArray[np.bool_] | None = None
    margins: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What a method is given: scaled records to fit, and others to be judged on, with their true margins."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    truth: NDArray[np.bool_] | None
    margins: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set and the public facts about it.

    Parameters
    ----------
    name : str
        Its name.
    task : {"regression", "classification"}
        What is fitted.
    n_columns : int
        Number of features.
    k : int
        The number of features that every method which takes one is told.
    row_bound : float
        Public L2 bound on scaled rows, for methods whose noise follows from one; longer rows are scaled down to it.
    records : callable
        ``records(seed, folder)``: synthetic sets depend on the seed, filed ones on the folder of the files.
    scale : callable
        Raw features to [-1, 1], row by row.
    scaling : str
        The same in words.
    y_bounds : tuple of float
        Public bounds of a regression's target.
    error : {"mse", "misclassified", "auc"}
        MSE / Var(y), misclassification, or 1 - AUC for rare classes; of the test part.
    intercept : bool
        Whether methods without intercept get a constant column (and one coefficient more).
    rows, quick_rows : int or None
        At most so many training rows, drawn anew for each seed; None: all.
    blocks : tuple of pairs of int
        First column and size of each block of indicators of which at most one is 1: a category, for methods that know
        categories.
    """

    name: str
    task: str
    n_columns: int
    k: int
    row_bound: float
    records: Callable[[int, Path | None], Records]
    scale: Callable[[Any], Any]
    scaling: str
    y_bounds: tuple[float, float] = (-1.0, 1.0)
    error: str = "misclassified"
    intercept: bool = True
    rows: int | None = None
    quick_rows: int | None = None
    blocks: tuple[tuple[int, int], ...] = ()

    def training_rows(self, quick: bool) -> int | None:
        """The limit on training rows in the quick or the full setting."""
        return self.quick_rows if quick and self.quick_rows is not None else self.rows


def draw(data_set: DataSet, seed: int, rows: int | None, folder: Path | None) -> Problem:
    """The problem of a seed: split, thinned to so many training rows, scaled.

    Parameters
    ----------
    data_set : DataSet
        Which one.
    seed : int
        Draws synthetic records, the split and the rows; the same for every method.
    rows : int or None
        At most so many training rows.
    folder : Path or None
        Where filed sets are.
    """
    records = data_set.records(seed, folder)
    n_rows = records.y.size
    rng = np.random.default_rng((seed, 1))
    if records.n_train is None:
        order = rng.permutation(n_rows)
        n_test = min(round(TEST_SHARE * n_rows), MOST_TEST_ROWS)
        test, train = order[:n_test], order[n_test:]
    else:
        train, test = np.arange(records.n_train), np.arange(records.n_train, n_rows)
    if rows is not None and rows < train.size:
        train = rng.permutation(train)[:rows]
    y = target_of(data_set, records.y)
    margins = None if records.margins is None else mapped(data_set, records.margins[test])
    return Problem(
        data_set.scale(records.X[train]), y[train], data_set.scale(records.X[test]), y[test], records.truth, margins
    )  # fmt: skip


def target_of(data_set: DataSet, y: NDArray[Any]) -> NDArray[Any]:
    """Labels as they are; numbers clipped to their public bounds and mapped to [-1, 1]."""
    return y if data_set.task == "classification" else mapped(data_set, np.clip(y, *data_set.y_bounds))


def mapped(data_set: DataSet, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers mapped by the public bounds of a regression; log-odds as they are."""
    if data_set.task == "classification":
        return values
    low, high = data_set.y_bounds
    numbers: NDArray[Any] = (values - (low + high) / 2.0) / ((high - low) / 2.0)
    return numbers


def divided_by(divisor: float) -> Callable[[Any], FloatArray]:
    """A scale that divides by a public constant and clips."""

    def scale(X: Any) -> FloatArray:
        return np.clip(np.asarray(X, dtype=np.float64) / divisor, -1.0, 1.0)

    return scale


def make_autoregressive(
    n_samples: int, n_features: int, n_informative: int, *, correlation: float, random_state: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Normal rows with :math:`\Sigma_{ij} = r^{|i-j|}`, scattered weights of either sign, and noise.

    Weights are uniform in [0.5, 1.5] up to sign, at random places; the noise has 0.2 times the variance that
    independent features would give the signal.

    Returns
    -------
    X, y, coef : ndarrays
        Not scaled.
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features))
    for j in range(1, n_features):
        X[:, j] *= np.sqrt(1.0 - correlation**2)
        X[:, j] += correlation * X[:, j - 1]
    coef = np.zeros(n_features)
    places = rng.choice(n_features, n_informative, replace=False)
    coef[places] = rng.choice([-1.0, 1.0], n_informative) * rng.uniform(0.5, 1.5, n_informative)
    noise = np.sqrt(0.2) * float(np.linalg.norm(coef)) * rng.standard_normal(n_samples)
    return X, X @ coef + noise, coef


def _synthetic(
    name: str,
    make: Callable[..., tuple[Any, Any, FloatArray]],
    shape: tuple[int, int],
    k: int,
    row_bound: float,
    *,
    n_test: int = 2000,
    divisor: float = 1.0,
    scaling: str,
    y_bound: float | None = None,
    linear: bool = True,
    **parameters: Any,
) -> DataSet:
    """A generator as a data set; ``linear`` tells whether the mean of a regression's target is ``X @ coef``."""
    n_train, n_columns = shape

    # The records of one seed serve many fits in a row.
    @lru_cache(maxsize=1)
    def records(seed: int, folder: Path | None) -> Records:
        X, y, coef = make(n_train + n_test, n_columns, random_state=seed, **parameters)
        return Records(X, y, n_train, coef != 0.0, X @ coef if linear and y_bound is not None else None)

    return DataSet(
        name,
        "classification" if y_bound is None else "regression",
        n_columns,
        k,
        row_bound,
        records,
        divided_by(divisor),
        scaling,
        y_bounds=(-1.0, 1.0) if y_bound is None else (-y_bound, y_bound),
        error="misclassified" if y_bound is None else "mse",
        intercept=False,
    )


_BY_BIRTH = "as generated: the papers' generators divide by maxima of what they draw"

SYNTHETIC = (
    _synthetic(
        "screening", make_screening_linear, (3000, 600), 70, 5.0,
        scaling=f"{_BY_BIRTH}; y in (-6, 6)", y_bound=6.0,
    ),
    _synthetic(
        "screening correlated", make_screening_linear, (3000, 600), 70, 5.0, correlation=0.5,
        scaling=f"{_BY_BIRTH}; y in (-10, 10)", y_bound=10.0,
    ),
    _synthetic(
        "screening logistic", make_screening_logistic, (3000, 600), 70, 5.0, scaling=_BY_BIRTH,
    ),
    _synthetic(
        "Sparsifier logistic", make_sparsifier_logistic, (10_000, 100), 8, 3.0, scaling=_BY_BIRTH,
    ),
    _synthetic(
        "IGHT linear", make_ight_linear, (1000, 1000), 10, 10.0, divisor=2.0, n_informative=10,
        scaling="divided by 2, the generator's bound; y in (-4, 4)", y_bound=4.0,
    ),
    _synthetic(
        "IGHT logistic", make_ight_logistic, (1000, 1000), 10, 10.0, divisor=2.0, n_informative=10,
        scaling="divided by 2, the generator's bound",
    ),
    _synthetic(
        "DP-SIS", make_dpsis_linear, (100, 2000), 5, 15.0, n_test=100, linear=False,
        scaling=f"{_BY_BIRTH}; y in (-1, 1); 8 weights, k = 5 as in the paper", y_bound=1.0,
    ),
    _synthetic(
        "correlated 2000 x 2000", make_autoregressive, (2000, 2000), 10, 15.0, divisor=3.0,
        n_informative=10, correlation=0.5, scaling="divided by 3 and clipped; y in (-12, 12)", y_bound=12.0,
    ),
    _synthetic(
        "correlated 5000 x 3000", make_autoregressive, (5000, 3000), 40, 18.0, divisor=3.0,
        n_informative=40, correlation=0.5, scaling="divided by 3 and clipped; y in (-24, 24)", y_bound=24.0,
    ),
)  # fmt: skip
