"""The data sets of the arena: how each is drawn, scaled by public constants, split and judged.

Every method gets the same problem: features in [-1, 1], targets of a regression mapped to [-1, 1] by public bounds,
labels 0 and 1. The constants are written down here and depend on no record that is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from taciturn import BoundedScaler
from taciturn.core.errors import DataError
from taciturn.datasets import (
    DATA_VARIABLE,
    make_dpsis_linear,
    make_ight_linear,
    make_ight_logistic,
    make_screening_linear,
    make_screening_logistic,
    make_sparsifier_logistic,
)

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


@dataclass(frozen=True, slots=True, eq=False)
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
    names : tuple of str
        Names of the features of a raw table, whose coefficients are read; none of other sets. The records of a raw
        table are the same for all seeds.
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
    names: tuple[str, ...] = ()

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


# ---------------------------------------------------------------------
# Small synthetic sets of kinds met in practice: heavy tails, skew, few rows, categories, a rare class.


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


def as_drawn(X: Any) -> Any:
    """Features that are within [-1, 1] already."""
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
        _categories, scale=as_drawn, blocks=tuple((N_LEVELS * field, N_LEVELS) for field in range(8)),
    ),
    _generated(
        "rare class", (20_000, 60), 10, 3.0, "divided by 3 and clipped; 2 % positives", _rare_class, error="auc",
    ),
)  # fmt: skip


# ---------------------------------------------------------------------
# The real data sets of the arena: files in a folder, and three that come with scikit-learn.


# Ranges of the medical variables in people, in the units of the table.
_DIABETES = {
    "age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310),
    "s2": (40, 250), "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (50, 130),
}  # fmt: skip

# Of ten measures of cell nuclei: least and largest mean, largest standard error, least and largest worst value.
_NUCLEI = {
    "radius": (5, 30, 3, 5, 40), "texture": (5, 40, 5, 10, 50), "perimeter": (40, 200, 25, 50, 250),
    "area": (100, 2500, 500, 150, 4000), "smoothness": (0.05, 0.17, 0.03, 0.05, 0.25),
    "compactness": (0, 0.35, 0.15, 0, 1), "concavity": (0, 0.5, 0.4, 0, 1.25), "concave points": (0, 0.2, 0.05, 0, 0.3),
    "symmetry": (0.1, 0.3, 0.08, 0.1, 0.6), "fractal dimension": (0.04, 0.1, 0.03, 0.05, 0.2),
}  # fmt: skip

# Elevation, aspect, slope, distances to water (along, above), to roads, three hillshades, distance to fire points.
_TERRAIN_LOW = (1800, 0, 0, 0, -200, 0, 0, 0, 0, 0)
_TERRAIN_HIGH = (4000, 360, 60, 1500, 600, 7500, 255, 255, 255, 7500)

# Decimal logarithms of the least and largest value of V-2 to V-8 and V-11 to V-29: floor areas, costs, prices,
# durations, then economic indices of the time, in the units of the table.
_BUILDING = (
    (2, 4.5), (1.5, 4), (0.5, 4), (1, 3), (2, 4), (0, 1.5), (1.5, 4),
    (3, 4), (1, 3), (0.5, 3), (-0.5, 1), (4, 6.5), (2, 4.5), (0.5, 3), (1, 3), (2, 5), (1, 1.5), (2, 4), (2, 4),
    (3, 4), (3, 4), (0.5, 2.5), (0.5, 2.5), (2.5, 4.5), (3.5, 5), (5, 6.5),
)  # fmt: skip


# Length, diameter and height in units of 200 mm, four weights in units of 200 g; sex is three indicators before them.
_ABALONE = ((0, 1), (0, 1), (0, 0.4), (0, 3), (0, 1.5), (0, 1), (0, 1))

# Crimes per person and shares of land and of people, air, rooms, age, distance, access, tax, pupils, in the table's
# units; the first is a decimal logarithm.
_HOUSING = (
    (-3, 2), (0, 100), (0, 30), (0, 1), (0.3, 1), (3, 9), (0, 100), (0, 13), (1, 24), (150, 750), (12, 23), (0, 400),
    (0, 40),
)  # fmt: skip

# Age, weight (pounds), height (inches), ten circumferences (cm) of adult men.
_BODY = (
    (18, 85), (100, 350), (60, 80), (30, 52), (75, 140), (65, 150), (80, 150), (45, 90), (30, 50), (18, 34), (22, 46),
    (20, 36), (15, 22),
)  # fmt: skip

# Connections: divisors of log(1 + x) of duration, bytes and counts within a connection; the rest are rates, indicators,
# and counts up to 3, 511 or 255.
_LOGARITHMIC = {0: 11.0, 4: 20.0, 5: 20.0, 9: 5.0, 10: 2.0, 12: 7.0, 15: 7.0, 16: 4.0, 18: 3.0}
_LARGEST = {7: 3.0, 8: 3.0, 14: 2.0, 17: 2.0, 22: 511.0, 23: 511.0, 31: 255.0, 32: 255.0}
_CODES = {1: 3, 2: 66, 3: 11}
"""Columns of the connections that hold codes, and how many codes there are."""


def _file(name: str, folder: Path | None) -> Path:
    place = folder or os.environ.get(DATA_VARIABLE)
    path = None if place is None else Path(place) / f"{name}.npz"
    if path is None or not path.is_file():
        raise DataError(f"data set {name!r}: no file {name}.npz; name its folder with --data or {DATA_VARIABLE}.")
    return path


def _filed(
    name: str, *, positive: int | None = 1, columns: Callable[[Any], Any] | None = None
) -> Callable[..., Records]:  # fmt: skip
    """Records of a file; labels become 1 where they are ``positive`` and 0 elsewhere; None: the target is a number."""

    @lru_cache(maxsize=1)
    def records(_: None, folder: Path | None) -> Records:
        with np.load(_file(name, folder), allow_pickle=False) as archive:
            parts = [_matrix(archive, "")]
            y = archive["y"]
            if "y_test" in archive:
                parts.append(_matrix(archive, "test_" if "test_data" in archive else "_test"))
                y = np.concatenate((y, archive["y_test"]))
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        if columns is not None:
            X = columns(X)
        numbers = positive is None or y.dtype.kind in "fu"
        target = y.astype(np.float64) if numbers else (y == positive).astype(np.int64)
        return Records(X, target, parts[0].shape[0] if len(parts) > 1 else None)

    return lambda seed, folder: records(None, folder)


def _matrix(archive: Any, part: str) -> Any:
    if "data" not in archive:
        return archive[f"X{part}"]
    pieces = (archive[f"{part}{piece}"] for piece in ("data", "indices", "indptr"))
    return sp.csr_array(tuple(pieces), shape=tuple(archive[f"{part}shape"]))


def _bundled(load: Callable[[], tuple[Any, Any]]) -> Callable[..., Records]:
    cached = lru_cache(maxsize=1)(lambda: Records(*load()))
    return lambda seed, folder: cached()


def _bounded(lower: Any, upper: Any) -> Callable[[Any], FloatArray]:
    scaler = BoundedScaler(lower=lower, upper=upper)
    return lambda X: scaler.fit_transform(np.asarray(X, dtype=np.float64))


def _as_is(X: Any) -> Any:
    return X.astype(np.float64)


def _times(factor: float) -> Callable[[Any], Any]:
    """For values that are 0 or 1 / factor up to rounding."""

    def scale(X: Any) -> Any:
        X = X.astype(np.float64)
        X.data = np.clip(X.data * factor, -1.0, 1.0)
        return X

    return scale


def scale_blogfeedback(X: Any) -> FloatArray:
    """Signed logarithms of counts over 8 (exp(8) comments or links), of a length over 12; indicators as they are."""
    divisors = np.full(X.shape[1], 8.0)
    divisors[61] = 12.0
    X = np.asarray(X, dtype=np.float64)
    logarithms = np.sign(X) * np.log1p(np.abs(X)) / divisors
    logarithms[:, 62:276] = X[:, 62:276]
    clipped: FloatArray = np.clip(logarithms, -1.0, 1.0)
    return clipped


def scale_residential(X: Any) -> FloatArray:
    """Decimal logarithms within ``_BUILDING``; the code of the place, 1 to 20, linearly."""
    own, economy = _BUILDING[:7], _BUILDING[7:]
    low, high = np.array([(1.0, 20.0), *own, *(economy * 5)]).T
    X = np.asarray(X, dtype=np.float64).copy()
    X[:, 1:] = np.log10(np.maximum(X[:, 1:], 1e-3))
    scaled: FloatArray = BoundedScaler(lower=low, upper=high).fit_transform(X)
    return scaled


def _terrain(X: Any) -> FloatArray:
    n_indicators = X.shape[1] - len(_TERRAIN_LOW)
    low = (*_TERRAIN_LOW, *(-1.0,) * n_indicators)
    return _bounded(low, (*_TERRAIN_HIGH, *(1.0,) * n_indicators))(X)


def _abalone(X: Any) -> FloatArray:
    sex = (np.asarray(X)[:, :1] == (1.0, 2.0, 3.0)).astype(np.float64)
    return np.hstack((sex, _bounded(*zip(*_ABALONE, strict=True))(X[:, 1:])))


def _housing(X: Any) -> FloatArray:
    X = np.asarray(X, dtype=np.float64).copy()
    X[:, 0] = np.log10(np.maximum(X[:, 0], 1e-3))
    return _bounded(*zip(*_HOUSING, strict=True))(X)


def scale_connections(X: Any) -> FloatArray:
    """Numbers by ``_LOGARITHMIC`` and ``_LARGEST``; after them the indicators of the three codes."""
    X = np.asarray(X, dtype=np.float64)
    numbers = X.copy()
    for column, divisor in _LOGARITHMIC.items():
        numbers[:, column] = np.log1p(np.maximum(X[:, column], 0.0)) / divisor
    for column, largest in _LARGEST.items():
        numbers[:, column] = X[:, column] / largest
    kept = np.clip(np.delete(numbers, list(_CODES), axis=1), -1.0, 1.0)
    indicators = [X[:, [column]] == np.arange(count) for column, count in _CODES.items()]
    return np.hstack((kept, *indicators))


def _present(X: Any) -> Any:
    """Indicators of words from counts."""
    X = X.astype(np.float64)
    X.data = np.clip(X.data, 0.0, 1.0)
    return X


def _fat_of(records: Callable[..., Records]) -> Callable[..., Records]:
    """Body fat, the publisher's first column, takes the place of the density, of which it is a function."""

    def exchanged(seed: int, folder: Path | None) -> Records:
        found = records(seed, folder)
        return Records(found.X[:, 1:], found.X[:, 0], found.n_train)

    return exchanged


def _diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return X, y


def _breast_cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return X, 1 - y


def _odd_digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X, y % 2


def _logarithmic_target(records: Callable[..., Records], logarithm: Callable[[Any], Any]) -> Callable[..., Records]:
    def transformed(seed: int, folder: Path | None) -> Records:
        found = records(seed, folder)
        return Records(found.X, logarithm(found.y), found.n_train)

    return transformed


def _complete(X: FloatArray) -> FloatArray:
    """Without the 23 columns of the communities in which the publisher has gaps."""
    return X[:, [j for j in range(122) if j not in {25, *range(96, 113), *range(116, 120), 121}]]


_NUCLEI_LOW = [f[0] for f in _NUCLEI.values()] + [0.0] * 10 + [f[3] for f in _NUCLEI.values()]
_NUCLEI_HIGH = [f[i] for i in (1, 2, 4) for f in _NUCLEI.values()]
_INDICATORS = "indicators as they are"


def _blocks(first: int, *sizes: int) -> tuple[tuple[int, int], ...]:
    """Blocks of indicators that follow each other."""
    starts = np.cumsum((first, *sizes[:-1]))
    return tuple((int(start), size) for start, size in zip(starts, sizes, strict=True))


REAL = (
    DataSet(
        "diabetes", "regression", 10, 3, 2.0, _bundled(_diabetes),
        _bounded(*zip(*_DIABETES.values(), strict=True)),
        "medical ranges of each column; y in (0, 350)", y_bounds=(0.0, 350.0), error="mse",
    ),
    DataSet(
        "breast cancer", "classification", 30, 10, 4.0, _bundled(_breast_cancer),
        _bounded(_NUCLEI_LOW, _NUCLEI_HIGH), "round ranges of each measure",
    ),
    DataSet(
        "digits", "classification", 64, 19, 5.0, _bundled(_odd_digits), divided_by(16.0),
        "divided by 16; odd against even",
    ),
    DataSet(
        "a9a", "classification", 123, 16, 4.0, _filed("a9a"), _as_is, _INDICATORS,
        blocks=_blocks(0, 5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41),
    ),
    DataSet(
        "w8a", "classification", 300, 29, 4.0, _filed("w8a"), _as_is, _INDICATORS, error="auc",
    ),
    DataSet(
        "mushrooms", "classification", 112, 8, 4.6, _filed("mushrooms"), _as_is, _INDICATORS,
        blocks=_blocks(0, 6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 4, 4, 9, 9, 1, 4, 3, 5, 9, 6, 7),
    ),
    DataSet(
        "phishing", "classification", 68, 12, 5.5, _filed("phishing"), _times(30.0**0.5),
        "indicators, times the root of 30 by which the publisher divided them",
    ),
    DataSet(
        "covtype", "classification", 54, 12, 3.0, _filed("covtype"), _terrain,
        "ranges of ten measures of terrain; indicators as they are", rows=80_000, quick_rows=20_000,
        blocks=_blocks(10, 4, 40),
    ),
    DataSet(
        "splice", "classification", 60, 14, 6.0, _filed("splice"), _bounded(1.0, 4.0), "codes 1 to 4 to [-1, 1]",
    ),
    DataSet(
        "communities", "regression", 99, 12, 6.0, _filed("communities", columns=_complete),
        _bounded(0.0, 1.0), "[0, 1] to [-1, 1]; y in (0, 1)", y_bounds=(0.0, 1.0), error="mse",
    ),
    DataSet(
        "blogfeedback", "regression", 280, 15, 4.0, _logarithmic_target(_filed("blogfeedback"), np.log1p),
        scale_blogfeedback, "signed log(1 + x) over 8 (length: 12), indicators as they are; log(1 + y) in (0, 7)",
        y_bounds=(0.0, 7.0), error="mse", quick_rows=20_000,
    ),
    DataSet(
        "residential", "regression", 103, 10, 5.0, _logarithmic_target(_filed("residential"), np.log10),
        scale_residential, "decimal logarithms in round ranges; log10(y) in (1.5, 4)", y_bounds=(1.5, 4.0), error="mse",
    ),
    DataSet(
        "dorothea", "classification", 100_000, 20, 30.0, _filed("dorothea"), _as_is, _INDICATORS, error="auc",
    ),
    DataSet(
        "farm_ads", "classification", 54_877, 23, 15.0, _filed("farm_ads"), _as_is, _INDICATORS,
    ),
    DataSet(
        "abalone", "regression", 10, 5, 2.5, _filed("abalone", positive=None), _abalone,
        "three indicators of sex; round ranges of each measure; y in (0, 30)", y_bounds=(0.0, 30.0), error="mse",
        blocks=_blocks(0, 3),
    ),
    DataSet(
        "housing", "regression", 13, 5, 2.5, _filed("housing"), _housing,
        "round ranges of each column, of crime the decimal logarithm; y in (0, 60)", y_bounds=(0.0, 60.0), error="mse",
    ),
    DataSet(
        "bodyfat", "regression", 13, 4, 2.0, _fat_of(_filed("bodyfat")), _bounded(*zip(*_BODY, strict=True)),
        "ranges of adults; percentage of fat, y in (0, 50)", y_bounds=(0.0, 50.0), error="mse",
    ),
    DataSet(
        "basehock", "classification", 4862, 30, 8.0, _filed("basehock"), _present, "1 where a word occurs",
    ),
    DataSet(
        "kddcup99", "classification", 118, 12, 3.5, _filed("kddcup99_10pct"), scale_connections,
        "logarithms of bytes, durations and counts, rates as they are; indicators of three codes", rows=80_000,
        quick_rows=20_000, blocks=_blocks(38, 3, 66, 11),
    ),
    DataSet(
        "rcv1", "classification", 47_236, 25, 1.0, _filed("rcv1_vw_1000"), _as_is, "as published: rows of norm 1",
    ),
)  # fmt: skip
