"""Designs of the coverage study: records, and the population's coefficients of any columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from taciturn_research.coverage.plain import TASKS, Numbers, Reference, Sample, fit_plain

DESIGNS = {
    "independent": "independent normal columns",
    "AR .7": "normal columns, correlation .7 between neighbours",
    "AR .95": "normal columns, correlation .95 between neighbours",
    "AR .99": "normal columns, correlation .99 between neighbours",
    "polynomial": "age, age squared, sex, BMI, and a weight that BMI nearly tells",
    "interactions": "numbers, a binary column, and its products with the numbers",
    "one-hot": "a category with its reference level left out, whose last levels have 3 % and 1 %, and two numbers",
    "full one-hot": "the same with every level, so that the levels add up to the constant",
    "duplicate": "independent; the last column is the first one again",
    "rare exposure": "independent; the first column is 1 in 1 % of the records and 0 in the others",
    "rare events": "independent; 2 % of the labels are 1",
    "strong labels": "independent; six times the coefficients, so that most labels are nearly certain",
    "heteroscedastic": "independent; the deviation of the errors, or of the latent errors, grows with a column",
    "skewed": "independent; lognormal errors",
    "wrong mean": "neighbours correlated by .5; a curved mean, or a link that is not logistic",
    "selected": "60 independent columns, of which one half of the records chooses p - 1",
    "selected AR .7": "the same with correlation .7 between neighbours",
    "persons": "one to five rows per person, whose columns and errors hang together; n counts persons",
}
"""Every design, in words."""

_ONE_TASK = {"rare events": "logistic", "strong labels": "logistic", "skewed": "linear"}
_CORRELATIONS = {"AR .7": 0.7, "AR .95": 0.95, "AR .99": 0.99, "wrong mean": 0.5, "selected AR .7": 0.7}
_POLYNOMIAL = np.array([1.0, 0.8, 0.35, 1.5, 0.8])
_COEFFICIENTS = np.array([1.0, -0.6, 0.0, 0.4, 0.8])
_CANDIDATES = 60
_NOISE = 0.5
# Targets are clipped there, where next to none lie, and mapped to [-1, 1].
_BOUND, _LONG_BOUND = 6.0, 12.0
# Mean and deviation of a lognormal variable.
_MEAN, _DEVIATION = float(np.exp(0.5)), float(np.sqrt((np.e - 1.0) * np.e))
_REFERENCE_ROWS = 200_000
# For coefficients that only a reference tells, as many rows as fit into a moderate memory.
_REFERENCE_CELLS = 9_000_000


def applies(task: str, design: str) -> bool:
    """Whether a design is one for this task."""
    return _ONE_TASK.get(design, task) == task


def well_specified(task: str, design: str) -> bool:
    """Whether the mean or the link holds and errors are not skewed.

    Errors of unequal size leave a linear mean as it is, and break a link.
    """
    return design not in ("skewed", "wrong mean") and (task, design) != ("logistic", "heteroscedastic")


@dataclass
class Population:
    """A design with p coefficients, of which the intercept is one.

    Parameters
    ----------
    task : {"linear", "logistic"}
        What is fitted.
    design : str
        One of :data:`DESIGNS`.
    p : int
        Coefficients of a model.
    """

    task: str
    design: str
    p: int
    _references: dict[tuple[int, ...], Reference] = field(default_factory=dict)
    _rows: tuple[Sample, Numbers] | None = None

    def __post_init__(self) -> None:
        if self.task not in TASKS or not applies(self.task, self.design):
            raise ValueError(f"{self.design} is no design for {self.task} models")

    @property
    def selects(self) -> bool:
        """Whether the data choose the columns."""
        return self.design.startswith("selected")

    @property
    def n_features(self) -> int:
        """All columns, chosen or not."""
        return _CANDIDATES if self.selects else self.p - 1

    @property
    def true_columns(self) -> NDArray[np.intp]:
        """Those that tell the target, scattered among the candidates."""
        if not self.selects:
            return np.arange(self.p - 1)
        return np.linspace(2, self.n_features - 3, self.p - 1).astype(np.intp)

    @property
    def weights(self) -> Numbers:
        """The coefficients of all columns, before the target is mapped."""
        size = self.p - 1
        if self.selects:
            weights = np.zeros(self.n_features)
            weights[self.true_columns] = np.where(np.arange(size) % 2, -1.0, 1.0) * np.linspace(1.2, 0.7, size)
            return weights
        if self.design == "polynomial":
            return _POLYNOMIAL
        spread = _COEFFICIENTS[np.arange(size) % 5] / np.sqrt(max(size / 5.0, 1.0))
        return np.asarray(spread * (6.0 if self.design == "strong labels" else 1.0))

    @property
    def constant(self) -> float:
        """The intercept, before the target is mapped."""
        return -4.0 if self.design == "rare events" else -0.2

    @property
    def bound(self) -> float:
        """What one unit of the mapped target is."""
        if self.task == "logistic":
            return 1.0
        return _LONG_BOUND if self.design == "skewed" else _BOUND

    def draw(self, rng: np.random.Generator, n: int) -> Sample:
        """Records of n persons, who have one row each unless the design is that of persons."""
        return self._draw(rng, n)[0]

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Sample, Numbers]:
        """Records, and the expected target of each."""
        if self.design == "persons":
            return self._draw_persons(rng, n)
        X = self._draw_columns(rng, n)
        means = self._means(X)
        if self.task == "logistic":
            return Sample(X, (rng.random(n) < means).astype(float)), means
        margins = X @ self.weights + self.constant
        if self.design == "skewed":
            targets = margins + _NOISE * (rng.lognormal(size=n) - _MEAN) / _DEVIATION
        else:
            sizes = 0.4 + 3.0 * np.abs(X[:, 0]) if self.design == "heteroscedastic" else 1.0
            targets = self.bound * means + _NOISE * sizes * rng.standard_normal(n)
        return Sample(X, np.clip(targets / self.bound, -1.0, 1.0)), means

    def _draw_columns(self, rng: np.random.Generator, n: int) -> Numbers:
        d = self.n_features
        if self.design == "polynomial":
            return _draw_bodies(rng, n)
        if self.design == "interactions":
            half = (d - 1) // 2
            numbers, binary = rng.uniform(-1.0, 1.0, (n, half)), (rng.random(n) < 0.4)[:, None].astype(float)
            return np.hstack((numbers, binary, numbers * binary, rng.uniform(-1.0, 1.0, (n, d - 1 - 2 * half))))
        if self.design in ("one-hot", "full one-hot"):
            dropped = int(self.design == "one-hot")
            levels = d - 2 + dropped
            shares = np.r_[np.full(levels - 2, 0.96 / (levels - 2)), 0.03, 0.01]
            codes = rng.choice(levels, n, p=shares)
            hot = (codes[:, None] == np.arange(dropped, levels)).astype(float)
            return np.hstack((hot, _mapped(rng.standard_normal((n, 2)))))
        columns = rng.standard_normal((n, d))
        correlation = _CORRELATIONS.get(self.design, 0.0)
        if correlation:
            for j in range(1, d):
                columns[:, j] = correlation * columns[:, j - 1] + np.sqrt(1.0 - correlation**2) * columns[:, j]
        columns = _mapped(columns)
        if self.design == "duplicate":
            columns[:, -1] = columns[:, 0]
        if self.design == "rare exposure":
            columns[:, 0] = rng.random(n) < 0.01
        return columns

    def _means(self, X: Numbers) -> Numbers:
        """The expected target of each row."""
        margins = X @ self.weights + self.constant
        if self.design == "wrong mean":
            margins = margins + 2.0 * X[:, 0] ** 2 + 0.5 * np.sin(4.0 * X[:, 1])
        if self.task == "linear":
            if self.design == "skewed":
                scale = _NOISE / _DEVIATION
                highest = (self.bound - margins) / scale + _MEAN
                # The mean of a lognormal variable that is cut there.
                cut = _MEAN * ndtr(np.log(highest) - 1.0) + highest * ndtr(-np.log(highest))
                margins = margins + scale * (cut - _MEAN)
            return np.asarray(margins / self.bound)
        if self.design == "wrong mean":
            return np.asarray(0.05 + 0.85 * expit(1.3 * margins) ** 2)
        if self.design == "heteroscedastic":
            margins = margins * np.exp(-1.5 * X[:, 0])
        return np.asarray(expit(margins))

    def _draw_persons(self, rng: np.random.Generator, n: int) -> tuple[Sample, Numbers]:
        persons = np.repeat(np.arange(n), rng.integers(1, 6, n))
        shared = rng.standard_normal((n, self.n_features))[persons]
        X = _mapped(0.9 * shared + np.sqrt(0.19) * rng.standard_normal(shared.shape))
        means = self._means(X)
        if self.task == "logistic":
            # Most rows of a person share the number that decides their label.
            deciding = np.where(rng.random(persons.size) < 0.7, rng.random(n)[persons], rng.random(persons.size))
            return Sample(X, (deciding < means).astype(float), persons), means
        errors = 0.8 * rng.standard_normal(n)[persons] + 0.6 * rng.standard_normal(persons.size)
        return Sample(X, np.clip(means + _NOISE * errors / self.bound, -1.0, 1.0), persons), means

    def reference(self, columns: NDArray[np.intp]) -> Reference:
        """The population's coefficients of some columns."""
        key = tuple(columns.tolist())
        if key not in self._references:
            self._references[key] = self._project(columns)
        return self._references[key]

    def _project(self, columns: NDArray[np.intp]) -> Reference:
        exact = well_specified(self.task, self.design) and set(self.true_columns) <= set(columns)
        n = _REFERENCE_ROWS if exact or self.selects else _REFERENCE_CELLS // self.p
        sample, means = self._draw(np.random.default_rng(999), n) if self._rows is None else self._rows
        if self.selects:
            # Every choice of columns has its own coefficients.
            self._rows = sample, means
        known = np.append(self.weights[columns], self.constant) / self.bound if exact else None
        found = fit_plain(sample.head(len(sample.X), columns), self.task, means=means, known=known)
        return Reference.of(found, n, self.task)


def _mapped(normal: Numbers) -> Numbers:
    return np.asarray(np.clip(normal / 3.0, -1.0, 1.0))


def _draw_bodies(rng: np.random.Generator, n: int) -> Numbers:
    age = rng.uniform(18.0, 90.0, n)
    sex = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    index = np.clip(rng.normal(27.0, 4.5, n), 14.0, 60.0)
    weight = np.clip(2.89 * index * rng.normal(1.0, 0.055, n), 30.0, 200.0)
    # Bounds: up to 100 years, a BMI of 10 to 70, 30 to 200 kg.
    numbers = (age - 50.0) / 50.0, age**2 / 5000.0 - 1.0, sex, (index - 40.0) / 30.0, (weight - 115.0) / 85.0
    return np.column_stack(numbers)
