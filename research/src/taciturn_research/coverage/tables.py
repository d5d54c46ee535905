"""Real tables of the coverage study. The population is the whole table, and a sample is drawn with replacement.

Without replacement a sample would tell more of a table than its standard errors say.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn_research.coverage.plain import Reference, Sample, fit_plain


@dataclass(frozen=True, slots=True)
class RealTable:
    """A table and a model of it.

    Parameters
    ----------
    source : str
        "bank", a pair of files, or the name of a table that statsmodels holds.
    about : str
        The target and what is particular, in words.
    task : {"linear", "logistic"}
        What is fitted.
    target : callable
        The target from the table as a DataFrame: labels, or numbers in [-1, 1].
    numbers : mapping
        Names of numeric columns and their bounds.
    levels : mapping
        Names of categorical columns and those levels that have a column.
    """

    source: str
    about: str
    task: str
    target: Callable[[Any], Any]
    numbers: Mapping[str, tuple[float, float]]
    levels: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Columns after categories are encoded."""
        levels = [f"{name}: {level}" for name, levels in self.levels.items() for level in levels]
        return [*self.numbers, *levels]

    @property
    def n_features(self) -> int:
        """The number of these columns."""
        return len(self.names)


_BANK_NUMBERS = {"age": (18.0, 95.0), "balance": (-5000.0, 50000.0), "campaign": (1.0, 40.0)}
_BANK_ANSWERS = {"default": ("yes",), "housing": ("yes",), "loan": ("yes",)}
_HEALTH: dict[str, tuple[float, float]] = {
    "lncoins": (0.0, 5.0), "idp": (0.0, 1.0), "lpi": (0.0, 8.0), "fmde": (0.0, 9.0), "physlm": (0.0, 1.0),
    "disea": (0.0, 60.0), "hlthg": (0.0, 1.0), "hlthf": (0.0, 1.0), "hlthp": (0.0, 1.0),
}  # fmt: skip
_MARRIAGE = {"age": (15.0, 45.0), "yrs_married": (0.0, 25.0), "children": (0.0, 6.0), "religious": (1.0, 4.0)}
_SCHOOL = {"educ": (8.0, 20.0)}
_VOTER = {"TVnews": (0.0, 7.0), "age": (18.0, 95.0), "educ": (1.0, 7.0), "income": (1.0, 24.0)}

TABLES: dict[str, RealTable] = {
    "bank": RealTable(
        "bank", "whether a client subscribed; a level of each category left out", "logistic",
        lambda frame: frame["y"] == "yes", _BANK_NUMBERS,
        {**_BANK_ANSWERS, "marital": ("married", "single"), "education": ("secondary", "tertiary", "unknown")},
    ),
    "bank, all levels": RealTable(
        "bank", "the same; every level of marital status and contact", "logistic",
        lambda frame: frame["y"] == "yes", _BANK_NUMBERS,
        {**_BANK_ANSWERS, "marital": ("divorced", "married", "single"),
         "contact": ("cellular", "telephone", "unknown")},
    ),
    "fair": RealTable(
        "fair", "whether there was an affair; a level of the occupation left out", "logistic",
        lambda frame: frame["affairs"] > 0, {**_MARRIAGE, **_SCHOOL, "rate_marriage": (1.0, 5.0)},
        {"occupation": (1.0, 2.0, 4.0, 5.0, 6.0)},
    ),
    "fair, rating": RealTable(
        "fair", "the rating of a marriage", "linear",
        lambda frame: (frame["rate_marriage"] - 3.0) / 2.0,
        {**_MARRIAGE, **_SCHOOL, "occupation": (1.0, 6.0), "occupation_husb": (1.0, 6.0)},
    ),
    "randhie": RealTable(
        "randhie", "whether there was a visit to a doctor", "logistic", lambda frame: frame["mdvis"] > 0, _HEALTH
    ),
    "randhie, visits": RealTable(
        "randhie", "the logarithm of one more than the number of visits", "linear",
        lambda frame: np.log1p(frame["mdvis"]) / np.log(10.0) - 1.0, _HEALTH,
    ),
    "anes96": RealTable(
        "anes96", "the vote of 1996", "logistic", lambda frame: frame["vote"] == 1,
        {**_VOTER, "selfLR": (1.0, 7.0), "ClinLR": (1.0, 7.0), "PID": (0.0, 6.0)},
    ),
    "anes96, all levels": RealTable(
        "anes96", "the same; every level of the party", "logistic", lambda frame: frame["vote"] == 1, _VOTER,
        {"PID": tuple(range(7))},
    ),
}  # fmt: skip
"""Every table with a model, by name."""

_BANK_FILES = ("bank_train.csv.gz", "bank_test.csv.gz")


def missing(name: str, data: Path | None) -> str | None:
    """Why a table cannot be read, in a few words; None if it can."""
    if TABLES[name].source != "bank":
        return None if find_spec("statsmodels") else "statsmodels, which holds it, is not installed"
    if data is None or not all((data / "raw" / file).exists() for file in _BANK_FILES):
        return f"no folder --data with raw/{' and raw/'.join(_BANK_FILES)}"
    return None


@dataclass
class TablePopulation:
    """A whole table as a population.

    Parameters
    ----------
    name : str
        One of :data:`TABLES`.
    data : Path, default=None
        The folder of tables that no package holds.
    """

    name: str
    data: Path | None = None
    selects = False

    def __post_init__(self) -> None:
        table = TABLES[self.name]
        self.task, self.n_features = table.task, table.n_features
        frame = _read(table.source, self.data)
        columns = [2.0 * (frame[name] - low) / (high - low) - 1.0 for name, (low, high) in table.numbers.items()]
        columns += [frame[name] == level for name, levels in table.levels.items() for level in levels]
        X = np.clip(np.column_stack([np.asarray(column, dtype=float) for column in columns]), -1.0, 1.0)
        self._whole = Sample(X, np.clip(np.asarray(table.target(frame), dtype=float), -1.0, 1.0))
        self._reference = Reference.of(fit_plain(self._whole, self.task), len(X), self.task)

    @property
    def true_columns(self) -> NDArray[np.intp]:
        """All of them."""
        return np.arange(self.n_features)

    @property
    def n_rows(self) -> int:
        """Of the whole table."""
        return len(self._whole.X)

    def draw(self, rng: np.random.Generator, n: int) -> Sample:
        """A sample with replacement."""
        rows = rng.integers(self.n_rows, size=n)
        return Sample(self._whole.X[rows], self._whole.y[rows])

    def reference(self, columns: NDArray[np.intp]) -> Reference:
        """The coefficients of the whole table."""
        return self._reference


@lru_cache(maxsize=1)
def _read(source: str, data: Path | None) -> Any:
    import pandas as pd

    if source != "bank":
        frame = import_module(f"statsmodels.datasets.{source}").load_pandas().data
        return frame.rename(columns=lambda name: str(name).strip("'"))
    parts = []
    for file in _BANK_FILES:
        with gzip.open((data or Path()) / "raw" / file, "rt", encoding="utf-8") as text:
            parts.append(pd.read_csv(text))
    return pd.concat(parts, ignore_index=True)
