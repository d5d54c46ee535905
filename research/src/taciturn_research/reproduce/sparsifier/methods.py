"""What the paper prints, and what its trials have in common.

Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from taciturn.core.errors import WeakBudgetWarning
from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, IntArray
from taciturn.datasets import Dataset, make_sparsifier_logistic
from taciturn.losses import LogisticLoss
from taciturn.published import PrivateLasso, Sparsifier
from taciturn.published.frank_wolfe import noisy_count, noisy_frank_wolfe
from taciturn_research.reproduce.experiment import NOT_PRIVATE_SCALING, seed_of

PAPER = "Sparse Private LASSO Logistic Regression (Sparsifier)"

RADIUS, N_STEPS, COUNT_EPSILON = 10.0, 1000, 0.05
"""Lambda of the tables, the number of iterations, and the count's share of epsilon."""

REFERENCE = "Frank-Wolfe (non-private)"
LASSO, SPARSIFIER = "Private LASSO (published)", "Sparsifier (published)"
STOPPED = "Private LASSO, stopped early (published)"
"""Few steps with the noise of all 1000: the reading of Table 2 that comes near its numbers."""
FEWER = "Private LASSO, noise for its steps (published)"
"""Few steps with the noise that so few need: Algorithm 1 with a small T."""
SPARSIFIED, SPARSE = "SparsifiedClassifier", "SparseClassifier"

SYNTHETIC_SET = "SYNTHETIC"


@dataclass(frozen=True, slots=True)
class PrintedSet:
    """A line of Tables 1 and 2.

    Non-zero coefficients of the non-private reference; then those of both methods with their ratio to the reference's;
    then non-zero coefficients, accuracy and AUC in percent, of Table 2.
    """

    non_private: float
    lasso: tuple[float, float]
    sparsifier: tuple[float, float]
    sparse_sparsifier: tuple[float, float, float]
    sparse_lasso: tuple[float, float, float]


PRINTED_SETS = {
    "KDDCUP'99": PrintedSet(4, (106.90, 26.75), (16.10, 4.29), (17, 53.71, 91.48), (14, 54.66, 86.57)),
    "COVTYPE": PrintedSet(17, (30.38, 3.18), (11.78, 0.68), (12, 57.35, 64.36), (11, 54.90, 60.15)),
    "SPLICE": PrintedSet(52, (60.00, 1.15), (12.70, 0.24), (12, 71.34, 86.84), (14, 49.95, 50.13)),
    "PHISHING": PrintedSet(2, (68.00, 34.00), (12.02, 6.16), (12, 63.79, 77.23), (10, 64.26, 68.95)),
    SYNTHETIC_SET: PrintedSet(7, (100.00, 14.29), (15.08, 2.29), (16, 85.17, 93.28), (17, 56.41, 59.03)),
    "MUSHROOM": PrintedSet(16, (111.98, 7.00), (16.02, 1.04), (17, 77.89, 88.65), (17, 72.66, 83.23)),
    "A9A": PrintedSet(19, (122.90, 6.47), (18.06, 0.89), (17, 76.60, 67.64), (19, 71.57, 66.29)),
    "W8A": PrintedSet(20, (285.64, 14.44), (25.60, 1.35), (27, 97.15, 75.64), (26, 97.02, 76.36)),
    "COLON": PrintedSet(58, (785.72, 13.56), (68.16, 1.12), (65, 83.67, 85.00), (69, 83.33, 86.61)),
    "GISETTE": PrintedSet(77, (901.30, 11.67), (102.50, 1.43), (110, 67.94, 79.76), (102, 64.48, 70.05)),
}
"""Tables 1 and 2, in the order of the paper."""


# ---------------------------------------------------------------------
# The records of one trial: drawn, scaled as the paper does, and cut into a training and a test part.


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


# ---------------------------------------------------------------------
# The non-private reference, quickly: the same steps as Private LASSO without noise, with few columns looked at.


# Columns that are equal have equal gradients but for rounding; the one chosen first stays the one chosen.
_CLEARLY_MORE = 1.0 + 1e-12
# A product with the whole matrix costs about as much as this many columns by themselves.
_FEW = 16


def noiseless_frank_wolfe(X: Any, target: FloatArray, *, radius: float, n_steps: int) -> FloatArray:
    r"""The weights of ``noisy_frank_wolfe`` without noise after ``n_steps`` steps of logistic regression.

    A step moves towards the largest entry of the gradient g. When predicted probabilities move by
    :math:`\Delta p`, an entry moves by at most :math:`\max_i |x_{ij}| \cdot \sum_i |\Delta p_i| / n`, so columns that
    were never chosen are looked at only when such moves add up to what they lack; and records that agree in all chosen
    columns have one margin, so they are kept as groups.
    """
    n_columns = X.shape[1]
    columns = sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)
    reach = abs(columns).max(axis=0)
    reach = reach.toarray().ravel() if sp.issparse(X) else reach
    chosen = _Groups(target)
    sizes, seen, drift = np.full(n_columns, np.inf), np.zeros(n_columns), 0.0
    for t in range(1, n_steps + 1):
        gradient = chosen.gradient()
        largest = float(np.abs(gradient).max(initial=-1.0))
        doubtful = sizes + reach * (drift - seen) > largest
        doubtful[chosen.features] = False
        if doubtful.any():
            places = np.flatnonzero(doubtful)
            found = _entries(columns, places, chosen.residuals(target))
            sizes[places], seen[places] = np.abs(found), drift
            first = int(np.abs(found).argmax())
            if abs(found[first]) > _CLEARLY_MORE * largest:
                chosen.add(int(places[first]), _column(columns, int(places[first])), target)
                gradient = np.append(gradient, found[first])
        drift += chosen.step(int(np.abs(gradient).argmax()), gradient, 2.0 / (t + 2.0), radius)
    weights = np.zeros(n_columns)
    weights[chosen.features] = chosen.weights
    return weights


class _Groups:
    """Records that agree in the chosen columns, with their common margin and probability."""

    def __init__(self, target: FloatArray) -> None:
        self.n_rows = target.size
        self.features: list[int] = []
        self.weights = np.zeros(0)
        self.of = np.zeros(target.size, dtype=np.int64)
        self.values = np.zeros((0, 1))
        self.margins, self.probabilities = np.zeros(1), np.full(1, 0.5)
        self._count(target)

    def _count(self, target: FloatArray) -> None:
        self.shares = np.bincount(self.of) / self.n_rows
        self.positive = np.bincount(self.of, weights=target) / self.n_rows

    def gradient(self) -> FloatArray:
        """Of the mean loss, in the chosen columns."""
        gradient: FloatArray = self.values @ (self.shares * self.probabilities - self.positive)
        return gradient

    def residuals(self, target: FloatArray) -> FloatArray:
        """Of all records, divided by their number."""
        return (self.probabilities[self.of] - target) / self.n_rows

    def add(self, feature: int, column: FloatArray, target: FloatArray) -> None:
        """Choose a column: groups fall apart where its values differ."""
        values, codes = np.unique(column, return_inverse=True)
        pairs, self.of = np.unique(self.of * values.size + codes, return_inverse=True)
        before, code = np.divmod(pairs, values.size)
        self.values = np.vstack((self.values[:, before], values[code]))
        self.margins, self.probabilities = self.margins[before], self.probabilities[before]
        self.features.append(feature)
        self.weights = np.append(self.weights, 0.0)
        self._count(target)

    def step(self, place: int, gradient: FloatArray, share: float, radius: float) -> float:
        """Move towards a vertex; the mean move of the probabilities."""
        move = -np.sign(gradient[place]) * share * radius
        self.weights *= 1.0 - share
        self.weights[place] += move
        self.margins *= 1.0 - share
        self.margins += move * self.values[place]
        probabilities = expit(self.margins)
        moved = float(self.shares @ np.abs(probabilities - self.probabilities))
        self.probabilities = probabilities
        return moved


def _entries(columns: Any, places: IntArray, residuals: FloatArray) -> FloatArray:
    """The gradient at some places."""
    if places.size > _FEW:
        return np.asarray(columns.T @ residuals)[places]
    if not sp.issparse(columns):
        return np.array([columns[:, place] @ residuals for place in places])
    starts, rows, values = columns.indptr, columns.indices, columns.data
    spans = [slice(starts[place], starts[place + 1]) for place in places]
    return np.array([values[span] @ residuals[rows[span]] for span in spans])


def _column(columns: Any, place: int) -> FloatArray:
    column: FloatArray = columns[:, [place]].toarray().ravel() if sp.issparse(columns) else columns[:, place]
    return column


# ---------------------------------------------------------------------
# One fit of each method, and what is measured of it.


def measures(weights: FloatArray, intercept: float, sample: Sample) -> dict[str, float]:
    """Non-zero coefficients, and accuracy and AUC on the test part in percent."""
    margins = sample.X_test @ weights + intercept
    right = (margins > 0.0) == (sample.y_test == 1.0)
    return {
        "NZ": float(np.count_nonzero(weights)),
        "accuracy": 100.0 * float(right.mean()),
        "AUC": 100.0 * float(roc_auc_score(sample.y_test, margins)),
    }


def private_lasso(sample: Sample, seed: int, *, n_steps: int = N_STEPS, epsilon: float = 1.0) -> FloatArray:
    """Private LASSO as printed, with noise for its steps."""
    model = PrivateLasso(epsilon=epsilon, delta=sample.delta, radius=RADIUS, n_steps=n_steps, random_state=seed)
    return coefficients(model.fit(sample.X, sample.y))


def stopped_lasso(sample: Sample, seed: int, n_steps: int) -> FloatArray:
    """Private LASSO with the noise of 1000 steps, stopped after fewer: at most what the whole run would spend."""
    # The noise goes with the root of the steps over epsilon.
    return private_lasso(sample, seed, n_steps=n_steps, epsilon=math.sqrt(n_steps / N_STEPS))


def sparsify(sample: Sample, seed: int, *, epsilon: float, radius: float, n_reference: int) -> FloatArray:
    """What a fit of ``Sparsifier`` gives whose non-private model is known to have ``n_reference`` coefficients."""
    n_rows, n_columns = sample.X.shape
    model = Sparsifier(
        epsilon_optimise=epsilon - COUNT_EPSILON,
        epsilon_count=COUNT_EPSILON,
        delta=sample.delta,
        radius=radius,
        n_steps=N_STEPS,
    )
    stream = Stream.of(seed)
    count = noisy_count(n_reference, *model.count_ends(n_columns), COUNT_EPSILON, stream.spawn("count"))
    weights = noisy_frank_wolfe(
        sample.X,
        sample.y,
        LogisticLoss(),
        radius=radius,
        n_selections=N_STEPS - 1,
        noise_scale=model.noise_scale(n_rows),
        stream=stream.spawn("frank-wolfe"),
    )
    kept = np.argsort(-np.abs(weights), kind="stable")[: int(count)]
    thinned = np.zeros(n_columns)
    thinned[kept] = weights[kept]
    return thinned


def fit_soundly(model: Any, X: Any, y: FloatArray) -> Any:
    """Fit without the warning for small tables: what they give is what the trial is to show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakBudgetWarning)
        return model.fit(X, y)


def coefficients(model: Any) -> FloatArray:
    """The weights of a model for two classes."""
    return np.asarray(model.coef_, dtype=np.float64).ravel()


def largest_entry(X: Any) -> float:
    """The bound that the sound methods are given, read off the data."""
    return float(abs(X).max())
