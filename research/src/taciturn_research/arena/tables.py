"""Raw tables, whose coefficients are read: numbers and categories, encoded by public facts as a user would.

Every category has a feature for each of its public levels, those that no record has included. The split is the same for
all seeds, so that a seed draws noise alone and coefficients of different seeds can be compared.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from taciturn.core.errors import DataError
from taciturn.tables import Column, TableBounds, TableEncoder, Target
from taciturn_research.arena.sets import TEST_SHARE, DataSet, FloatArray, Records, as_drawn

Read = Callable[[Path | None], tuple[Any, FloatArray, int | None]]
"""``read(folder)``: a DataFrame, the target, and the number of training rows at the front if the publisher split."""

K = 10
"""The number of coefficients that readers are shown by default."""

# ---------------------------------------------------------------------
# Public facts about columns: bounds of numbers, and the levels of categories.


def _numbers(**bounds: tuple[float, float]) -> dict[str, Column]:
    return {name: Column(type="number", lower=low, upper=high) for name, (low, high) in bounds.items()}


def _categories(**levels: Sequence[str]) -> dict[str, Column]:
    return {name: Column(type="category", categories=tuple(each)) for name, each in levels.items()}


def _codes(first: int, last: int, prefix: str = "") -> list[str]:
    return [f"{prefix}{code}" for code in range(first, last + 1)]


_YES = ("no", "yes")
_BANK = {
    **_numbers(age=(18, 95), balance=(-5000, 50_000), day=(1, 31), year=(2008, 2010), duration=(0, 3000)),
    **_numbers(campaign=(1, 40), pdays=(-1, 900), previous=(0, 50)),
    **_categories(
        job=(
            "admin.", "blue-collar", "entrepreneur", "housemaid", "management", "retired", "self-employed", "services",
            "student", "technician", "unemployed", "unknown",
        ),
        marital=("divorced", "married", "single"),
        education=("primary", "secondary", "tertiary", "unknown"),
        default=_YES, housing=_YES, loan=_YES,
        contact=("cellular", "telephone", "unknown"),
        month=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
        poutcome=("failure", "other", "success", "unknown"),
    ),
}  # fmt: skip

_FAIR = {
    **_numbers(age=(15, 45), yrs_married=(0, 25), children=(0, 6), educ=(8, 20)),
    **_categories(
        rate_marriage=_codes(1, 5), religious=_codes(1, 4), occupation=_codes(1, 6), occupation_husb=_codes(1, 6)
    ),
}

_RANDHIE = {
    **_numbers(lpi=(0, 8), fmde=(0, 9), physlm=(0, 1), disea=(0, 60)),
    **_categories(plan=_codes(0, 4), deductible=_YES, health=("excellent", "good", "fair", "poor")),
}

_ANES96 = {
    **_numbers(age=(18, 95), income=(1, 24), logpopul=(-3, 9)),
    **_categories(
        TVnews=_codes(0, 7), selfLR=_codes(1, 7), ClinLR=_codes(1, 7), DoleLR=_codes(1, 7), PID=_codes(0, 6),
        educ=_codes(1, 7),
    ),
}  # fmt: skip

N_CODES, N_WARDS = 30, 12
_HOSPITAL = {
    **_numbers(age=(0, 100), temperature=(34, 42), pressure=(60, 220), creatinine=(0, 5), creatinine_again=(0, 5)),
    **_categories(sex=("f", "m"), code=_codes(1, N_CODES, "c"), ward=_codes(1, N_WARDS, "w")),
}


# ---------------------------------------------------------------------
# The tables.


def _bank(folder: Path | None) -> tuple[Any, FloatArray, int]:
    import pandas as pd

    parts = []
    for part in ("train", "test"):
        path = None if folder is None else folder / "raw" / f"bank_{part}.csv.gz"
        if path is None or not path.is_file():
            raise DataError(f"data set 'bank': no file raw/bank_{part}.csv.gz; name its folder with --data.")
        with gzip.open(path, "rt", encoding="utf-8") as text:
            parts.append(pd.read_csv(text))
    frame = pd.concat(parts, ignore_index=True)
    return frame, (frame["y"] == "yes").to_numpy(dtype=np.int64), len(parts[0])


def _packaged(name: str) -> Any:
    if find_spec("statsmodels") is None:
        raise DataError(f"data set {name!r}: statsmodels, which holds it, is not installed.")
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


def _fair(folder: Path | None) -> tuple[Any, FloatArray, None]:
    frame = _packaged("fair")
    return frame, (frame["affairs"] > 0).to_numpy(dtype=np.int64), None


def _randhie(folder: Path | None) -> tuple[Any, FloatArray, None]:
    """The plan is told by its coinsurance, and the health by three indicators."""
    frame = _packaged("randhie").copy()
    rates = sorted(frame["lncoins"].unique())
    frame["plan"] = [str(rates.index(rate)) for rate in frame["lncoins"]]
    frame["deductible"] = np.where(frame["idp"] == 1, "yes", "no")
    words = (frame["hlthg"] == 1, frame["hlthf"] == 1, frame["hlthp"] == 1)
    frame["health"] = np.select(words, ("good", "fair", "poor"), "excellent")
    return frame, np.log10(1.0 + frame["mdvis"]).to_numpy(dtype=np.float64), None


def _anes96(folder: Path | None) -> tuple[Any, FloatArray, None]:
    frame = _packaged("anes96")
    return frame, frame["vote"].to_numpy(dtype=np.int64), None


N_PATIENTS = 8000
N_EMPTY = 13
"""Codes of the public list that no patient has."""


def make_hospital(rng: np.random.Generator) -> tuple[Any, FloatArray, FloatArray]:
    """Patients, whether they come back, and the true log-odds.

    Of 30 public codes the last 13 are empty and the others follow Zipf's law; three of twelve wards have 1 in 1,000
    patients each, which is 6 or so of those that are fitted to; the creatinine is in the table twice.
    """
    import pandas as pd

    n = N_PATIENTS
    codes = _zipf(rng, N_CODES - N_EMPTY, 1.0)
    shares = np.r_[np.full(N_WARDS - 3, (1.0 - 0.003) / (N_WARDS - 3)), np.full(3, 0.001)]
    wards = rng.choice(N_WARDS, n, p=shares)
    age, sex = rng.uniform(0.0, 100.0, n), rng.integers(0, 2, n)
    temperature, pressure = rng.normal(37.5, 1.0, n), rng.normal(130.0, 25.0, n)
    creatinine = np.minimum(rng.lognormal(0.0, 0.5, n), 5.0)
    of_codes, of_wards = rng.uniform(-1.0, 1.0, N_CODES), rng.uniform(-0.7, 0.7, N_WARDS)
    margins = (
        -1.0 + 1.2 * (age / 50.0 - 1.0) + 0.4 * sex + 0.8 * (temperature - 37.5) / 2.0 + 0.5 * (creatinine - 1.0)
        + of_codes[codes] + of_wards[wards]
    )  # fmt: skip
    frame = pd.DataFrame({
        "age": age, "temperature": temperature, "pressure": pressure, "creatinine": creatinine,
        "creatinine_again": creatinine, "sex": np.where(sex == 1, "m", "f"),
        "code": [f"c{code + 1}" for code in codes], "ward": [f"w{ward + 1}" for ward in wards],
    })  # fmt: skip
    return frame, (rng.random(n) < expit(margins)).astype(np.int64), margins


def _zipf(rng: np.random.Generator, n_levels: int, power: float) -> Any:
    shares = np.arange(1.0, n_levels + 1.0) ** -power
    return rng.choice(n_levels, N_PATIENTS, p=shares / shares.sum())


def _hospital(folder: Path | None) -> tuple[Any, FloatArray, None]:
    frame, y, _ = make_hospital(np.random.default_rng(34))
    return frame, y, None


def _raw(name: str, columns: dict[str, Column], read: Read, row_bound: float, about: str, **facts: Any) -> DataSet:
    bounds = TableBounds(columns=columns, target=Target(name="y"), order=tuple(columns))
    names = tuple(bounds.feature_names)

    @lru_cache(maxsize=1)
    def records(_: None, folder: Path | None) -> Records:
        frame, y, n_train = read(folder)
        X = TableEncoder(bounds=bounds).fit_transform(frame[list(columns)])
        if n_train is not None:
            return Records(X, y, n_train)
        order = np.random.default_rng((len(y), 2)).permutation(len(y))
        return Records(X[order], y[order], len(y) - round(TEST_SHARE * len(y)))

    sizes = [len(column.categories or ("",)) for column in columns.values()]
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    blocks = tuple((start, size) for start, size in zip(starts, sizes, strict=True) if size > 1)
    task = "regression" if "y_bounds" in facts else "classification"
    return DataSet(
        name, task, len(names), K, row_bound, lambda seed, folder: records(None, folder), as_drawn,
        f"numbers by public bounds, a feature for each level of a category; {about}",
        error="mse" if task == "regression" else "misclassified", blocks=blocks, names=names, **facts,
    )  # fmt: skip


RAW = (
    _raw("bank", _BANK, _bank, 4.0, "12 % positives"),
    _raw("hospital", _HOSPITAL, _hospital, 2.5, "generated: 13 of 30 codes are empty, a column is there twice"),
    _raw("fair", _FAIR, _fair, 2.5, "whether there was an affair"),
    _raw(
        "randhie", _RANDHIE, _randhie, 2.5, "log10(1 + visits) in (0, 2)", y_bounds=(0.0, 2.0),
    ),
    _raw("anes96", _ANES96, _anes96, 3.0, "the vote of 1996; 755 records"),
)  # fmt: skip
