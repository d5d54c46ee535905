"""Designs of the coverage study: records, and the population's coefficients of any columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

TASKS = ("linear", "logistic")

DESIGNS = {
    "independent": "independent normal columns",
    "AR .3": "normal columns, correlation .3 between neighbours",
    "AR .7": "normal columns, correlation .7 between neighbours",
    "one-hot": "seven categorical variables with 60 Zipf categories in all, the rarest of one record in 50",
    "heteroscedastic": "AR .3; the deviation of the errors, or of the latent errors, grows with a column",
    "misspecified": "AR .3; a curved mean, or a complementary log-log link",
    "strained": "AR .3; lognormal targets whose errors grow with the mean, or labels that are nearly certain",
}
"""Every design, in words. The last three break the model that is fitted, or strain the approximation."""

WELL_SPECIFIED = ("independent", "AR .3", "AR .7", "one-hot")

_N_FEATURES = 60
_CATEGORIES = (4, 6, 8, 8, 10, 12, 12)
_NOISE = 0.15
# The median of a lognormal target, and the deviation of its logarithm.
_SMALL, _SKEWED = 0.04, 0.7
_REFERENCE_ROWS = 200_000


@dataclass
class Population:
    """A design with k true columns.

    Parameters
    ----------
    task : {"linear", "logistic"}
        What is fitted.
    design : str
        One of :data:`DESIGNS`.
    k : int
        True columns.
    """

    task: str
    design: str
    k: int
    _truths: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict)
    _reference: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def weights(self) -> np.ndarray:
        """The true coefficients of the linear predictor."""
        weights = np.zeros(_N_FEATURES)
        sizes = np.linspace(2.2, 1.2, self.k) * (0.6 if self.design == "one-hot" else 1.0)
        scale = _NOISE if self.task == "linear" else 1.0
        if self.design == "strained":
            scale = 0.4 if self.task == "linear" else 2.5
        weights[self.true_columns] = scale * np.where(np.arange(self.k) % 2, -1.0, 1.0) * sizes
        return weights

    @property
    def true_columns(self) -> np.ndarray:
        """Scattered; of categories the commoner ones of every variable."""
        if self.design != "one-hot":
            return np.linspace(2, _N_FEATURES - 3, self.k).astype(np.intp)
        firsts = np.cumsum((0, *_CATEGORIES[:-1]))
        return np.sort(np.concatenate((firsts, firsts + 1))[: self.k])

    def draw_rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Rows of features in [-1, 1]."""
        if self.design == "one-hot":
            return _draw_categories(rng, n)
        correlation = {"independent": 0.0, "AR .7": 0.7}.get(self.design, 0.3)
        normal = rng.standard_normal((n, _N_FEATURES))
        for j in range(1, _N_FEATURES):
            normal[:, j] = correlation * normal[:, j - 1] + np.sqrt(1.0 - correlation**2) * normal[:, j]
        return np.clip(normal / 3.5, -1.0, 1.0)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """The expected target of each row."""
        margins = X @ self.weights
        first = X[:, self.true_columns[0]]
        if self.task == "linear" and self.design == "strained":
            return np.asarray(_SMALL * np.exp(margins + 0.5 * _SKEWED**2))
        if self.task == "linear":
            curved = 0.2 * (first**2 - 0.08) if self.design == "misspecified" else 0.0
            return np.asarray(0.05 + margins + curved)
        if self.design == "misspecified":
            return np.asarray(-np.expm1(-np.exp(margins - 0.5)))
        scale = np.exp(0.8 * first) if self.design == "heteroscedastic" else 1.0
        return np.asarray(expit((margins + 0.3) / scale))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Records."""
        X = self.draw_rows(rng, n)
        if self.task == "logistic":
            return X, (rng.random(n) < self.mean(X)).astype(int)
        if self.design == "strained":
            return X, np.clip(self.mean(X) * rng.lognormal(-0.5 * _SKEWED**2, _SKEWED, n), -1.0, 1.0)
        uneven = 0.4 + 7.0 * X[:, self.true_columns[0]] ** 2 if self.design == "heteroscedastic" else np.ones(n)
        deviation = _NOISE * np.sqrt(uneven)
        return X, np.clip(self.mean(X) + deviation * rng.standard_normal(n), -1.0, 1.0)

    def truth(self, columns: np.ndarray) -> np.ndarray:
        """The population's coefficients of some columns, and the intercept."""
        key = tuple(columns.tolist())
        if key not in self._truths:
            self._truths[key] = self._project(columns)
        return self._truths[key]

    def _project(self, columns: np.ndarray) -> np.ndarray:
        if self.design in (*WELL_SPECIFIED, "heteroscedastic" * (self.task == "linear")) and set(
            self.true_columns
        ) <= set(columns.tolist()):
            return np.append(self.weights[columns], 0.05 if self.task == "linear" else 0.3)
        if self._reference is None:
            X = self.draw_rows(np.random.default_rng(999), _REFERENCE_ROWS)
            self._reference = X, self.mean(X)
        X, mean = self._reference
        rows = np.column_stack((X[:, columns], np.ones(len(X))))
        return least_squares(rows, mean) if self.task == "linear" else maximum_likelihood(rows, mean)


def least_squares(rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Coefficients without noise."""
    return np.linalg.solve(rows.T @ rows, rows.T @ targets)


def maximum_likelihood(rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Coefficients of a logistic regression without noise, by Newton's method; targets may be probabilities."""
    coefficients = np.zeros(rows.shape[1])
    for _ in range(25):
        rates = expit(rows @ coefficients)
        hessian = (rows * (rates * (1.0 - rates))[:, None]).T @ rows
        step = np.linalg.solve(hessian, rows.T @ (targets - rates))
        coefficients += step
        if np.abs(step).max() < 1e-8:
            break
    return coefficients


def _draw_categories(rng: np.random.Generator, n: int) -> np.ndarray:
    """Seven categorical variables, each with one more category than columns: the reference."""
    blocks = []
    for size in _CATEGORIES:
        shares = 1.0 / np.arange(1, size + 2) ** 0.8
        shares = np.maximum(shares / shares.sum(), 0.02)
        codes = rng.choice(size + 1, n, p=shares / shares.sum())
        # The reference is the last category.
        blocks.append((codes[:, None] == np.arange(size)).astype(float))
    return np.hstack(blocks)
