"""The records of one trial: drawn, scaled as the paper does, and cut into a training and a test part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.validation import FloatArray, IntArray
from taciturn.datasets import Dataset, make_sparsifier_logistic
from taciturn_research.reproduce.experiment import NOT_PRIVATE_SCALING, seed_of
from taciturn_research.reproduce.sparsifier.printed import SYNTHETIC_SET

__all__ = ["SCALING", "SETS", "RawRecords", "Sample", "SetFacts", "by_columns", "read", "standardised", "unit_rows"]


SCALING = (
    "SYNTHETIC and COVTYPE: every column divided by its largest absolute value; KDDCUP'99: the same, then every row "
    f"divided by its length; the others as LIBSVM publishes them, some with values above 1; {NOT_PRIVATE_SCALING}"
)

# Up to so many entries a table stays in the cache, and dense products are the quicker ones.
_DENSE = 1_000_000


def by_columns(X: Any) -> Any:
    """Every column divided by its largest absolute value."""
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    factors = 1.0 / np.where(largest > 0.0, largest, 1.0)
    return sp.csr_array(X @ sp.diags_array(factors)) if sp.issparse(X) else X * factors


def unit_rows(X: Any) -> Any:
    """Every row divided by its Euclidean length."""
    lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
    factors = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    return sp.csr_array(sp.diags_array(factors) @ X) if sp.issparse(X) else X * factors[:, None]


def _columns_then_rows(X: Any) -> Any:
    return unit_rows(by_columns(X))


def standardised(X: FloatArray) -> FloatArray:
    """Rows, then columns, with mean 0 and variance 1: what LIBSVM says that it did to the tissues of COLON."""
    for axis in (1, 0):
        X = (X - X.mean(axis=axis, keepdims=True)) / X.std(axis=axis, keepdims=True)
    return X


def _as_published(X: Any) -> Any:
    return X


@dataclass(frozen=True, slots=True)
class SetFacts:
    """How a data set of the paper is read.

    ``dataset`` is its name for ``load_dataset``, None for the synthetic one. The drawn records are scaled by ``scale``,
    and the label ``positive`` counts as 1. Of all records ``n_drawn`` are drawn, ``n_positive`` of them positive; None:
    all.
    """

    dataset: str | None = None
    scale: Callable[[Any], Any] = _as_published
    positive: int = 1
    n_drawn: int | None = None
    n_positive: int | None = None


SETS = {
    "KDDCUP'99": SetFacts("kddcup99_10pct", _columns_then_rows, -1, 60_000, 38_420),
    "COVTYPE": SetFacts("covtype", by_columns),
    "SPLICE": SetFacts("splice"),
    "PHISHING": SetFacts("phishing"),
    SYNTHETIC_SET: SetFacts(),
    "MUSHROOM": SetFacts("mushrooms", positive=2),
    "A9A": SetFacts("a9a"),
    "W8A": SetFacts("w8a"),
    "COLON": SetFacts("alon", standardised),
    "GISETTE": SetFacts("gisette"),
}
"""In the order of the paper."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The records of one trial; ``coef`` are the true weights where there are any."""

    X: Any
    y: FloatArray
    X_test: Any
    y_test: FloatArray
    coef: FloatArray | None = None

    @property
    def delta(self) -> float:
        """One over the number of training records."""
        return 1.0 / self.y.size


@dataclass(frozen=True, slots=True, eq=False)
class RawRecords:
    """All records of a data set, not scaled; none for the synthetic one, which every trial draws anew.

    Labels are 0 and 1. ``n_records`` are drawn for a trial; None: as many as the paper takes.
    """

    name: str
    X: Any
    y: Any
    n_records: int | None = None

    def sample(self, seed: int) -> Sample:
        """Draw, scale and split: a fifth, rounded down, is for the test."""
        rng = np.random.default_rng(seed_of(seed, "records"))
        X, y, coef = self._drawn(rng)
        n_test = y.size // 5
        order = rng.permutation(y.size)
        while n_test and np.ptp(y[order[:n_test]]) == 0.0:
            # Without both classes there is no AUC; it happens to twelve tissues now and then.
            order = rng.permutation(y.size)
        train, test = order[n_test:], order[:n_test]
        return Sample(_handy(X[train]), y[train], X[test], y[test], coef)

    def _drawn(self, rng: np.random.Generator) -> tuple[Any, FloatArray, FloatArray | None]:
        if self.X is None:
            X, labels, coef = make_sparsifier_logistic(random_state=rng, **self._size())
            return X, labels.astype(np.float64), coef
        rows = self._rows(rng)
        return SETS[self.name].scale(self.X[rows]), self.y[rows], None

    def _size(self) -> dict[str, int]:
        return {} if self.n_records is None else {"n_samples": self.n_records}

    def _rows(self, rng: np.random.Generator) -> IntArray:
        facts = SETS[self.name]
        n_drawn = self.n_records or facts.n_drawn or self.y.size
        if facts.n_positive is None or facts.n_drawn is None:
            return rng.permutation(self.y.size)[:n_drawn]
        n_positive = round(n_drawn * facts.n_positive / facts.n_drawn)
        wanted = ((1.0, n_positive), (0.0, n_drawn - n_positive))
        return np.concatenate([rng.permutation(np.flatnonzero(self.y == label))[:size] for label, size in wanted])


def read(dataset: Dataset | None, *, name: str, n_records: int | None = None) -> RawRecords:
    """All records of a data set, training and test part together, symbols coded one-hot."""
    if dataset is None:
        return RawRecords(name, None, None, n_records)
    X, y = dataset.X, dataset.y
    if dataset.X_test is not None and dataset.y_test is not None:
        X = sp.vstack((X, dataset.X_test), format="csr") if sp.issparse(X) else np.vstack((X, dataset.X_test))
        y = np.concatenate((y, dataset.y_test))
    if dataset.categories:
        X = _one_hot(X, {column: len(names) for column, names in dataset.categories.items()})
    elif SETS[name].scale is by_columns:
        # Most columns of COVTYPE are indicators.
        X = sp.csr_array(X)
    return RawRecords(name, X, (y == SETS[name].positive).astype(np.float64), n_records)


def _one_hot(X: FloatArray, n_codes: dict[int, int]) -> sp.csr_array:
    parts = []
    for column in range(X.shape[1]):
        values = X[:, [column]]
        parts.append(sp.csr_array(values == np.arange(n_codes[column]) if column in n_codes else values))
    return sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float64))


def _handy(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE else X
