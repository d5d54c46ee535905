"""The real data sets of the arena: files in a folder, and three that come with scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from taciturn import BoundedScaler
from taciturn.core.errors import DataError
from taciturn.datasets import DATA_VARIABLE
from taciturn_research.arena.sets import DataSet, Records, divided_by

__all__ = ["REAL", "scale_blogfeedback", "scale_residential"]

FloatArray = NDArray[np.float64]

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
