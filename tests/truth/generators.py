"""Tables whose maximum-likelihood fit exists and is unique, and how far a fit lies from it.

Every table has 20,000 records. A task is "regress", "classify" (two classes) or "three classes"; weights are the same
for all seeds.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

N = 20_000
N_LEVELS = (4, 8, 16, 24)
TASKS = ("regress", "classify", "three classes")


@dataclass(frozen=True, eq=False)
class Table:
    """Records, and what is public about them: entries lie in [-1, 1], targets in ``y_bounds`` or in the classes."""

    task: str
    X: np.ndarray
    y: np.ndarray
    y_bounds: tuple[float, float] | None = None

    @property
    def public(self):
        """Parameters of an estimator that state the public facts."""
        if self.task == "regress":
            return {"y_bounds": self.y_bounds}
        return {"classes": (0, 1) if self.task == "classify" else (0, 1, 2)}

    def keep(self, columns):
        """The same with some of the columns."""
        return replace(self, X=self.X[:, columns])

    def best(self):
        """The maximum-likelihood fit."""
        if self.task == "regress":
            return LinearRegression().fit(self.X, self.y)
        solver = "newton-cholesky" if self.task == "classify" else "lbfgs"
        return LogisticRegression(C=np.inf, solver=solver, tol=1e-10, max_iter=10_000).fit(self.X, self.y)


def weights(d, size):
    """Weights of both signs, the largest three times the smallest, the same for every seed."""
    rng = np.random.default_rng(d)
    return size * rng.choice([-1.0, 1.0], d) * rng.uniform(0.5, 1.5, d)


def draw(task, rng, X, w, intercept):
    """A table whose target follows the model: labels, or numbers with exponential errors (the median is not zero)."""
    if task == "regress":
        y = 0.25 * (X @ w + intercept) + 0.25 * (rng.exponential(size=N) - 1.0)
        return Table(task, X, np.clip(y, -2.0, 2.0), (-2.0, 2.0))
    margins = [np.zeros(N), X @ w + intercept]
    if task == "three classes":
        margins.append(X @ -np.roll(w, 1) - intercept)
    margins = np.column_stack(margins)
    return Table(task, X, (margins + rng.gumbel(size=margins.shape)).argmax(axis=1))


def dense(task, rng):
    """Ten independent columns, uniform in [-1, 1]."""
    return draw(task, rng, rng.uniform(-1.0, 1.0, (N, 10)), weights(10, 1.0), 0.4)


def correlated(task, rng):
    """Ten Gaussian columns whose neighbours have the correlation 0.7, clipped at three deviations."""
    X = rng.normal(size=(N, 10))
    for j in range(1, 10):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1.0 - 0.49) * X[:, j]
    return draw(task, rng, np.clip(X / 3.0, -1.0, 1.0), weights(10, 1.5), 0.4)


def one_hot(task, rng):
    """Four categorical variables of 4 to 24 levels, the most frequent left out; the rarest has about 80 records."""
    columns = []
    for n_levels in N_LEVELS:
        shares = np.arange(1, n_levels + 1) ** -1.5
        level = rng.choice(n_levels, N, p=shares / shares.sum())
        columns.append(level[:, None] == np.arange(1, n_levels))
    X = np.hstack(columns).astype(float)
    return draw(task, rng, X, weights(X.shape[1], 0.7), -0.5)


def skewed(task, rng):
    """A lognormal target of six columns; for classes rows of lognormal length, the longest ten times the median."""
    X = rng.normal(size=(N, 6))
    if task != "regress":
        X = np.clip(X * np.exp(0.8 * rng.normal(size=(N, 1))) / 10.0, -1.0, 1.0)
        return draw(task, rng, X, weights(6, 3.0), 0.4)
    X = np.clip(X / 3.0, -1.0, 1.0)
    return Table(task, X, np.minimum(np.exp(X @ weights(6, 0.8) + 0.6 * rng.normal(size=N)), 20.0), (0.0, 20.0))


def one_column(task, rng):
    """One column that is far from its middle; a lognormal target, or one class in ten records."""
    X = rng.beta(2.0, 5.0, (N, 1))
    if task != "regress":
        return draw(task, rng, X, np.array([4.0]), -3.5 if task == "classify" else -1.0)
    return Table(task, X, np.minimum(np.exp(1.5 * X[:, 0] + 0.6 * rng.normal(size=N)), 20.0), (0.0, 20.0))


GENERATORS = {
    "dense": dense,
    "AR 0.7": correlated,
    "one-hot Zipf": one_hot,
    "skewed": skewed,
    "one column": one_column,
}


@lru_cache(maxsize=16)
def table(name, task, seed=0):
    """The table of a generator and its maximum-likelihood fit."""
    drawn = GENERATORS[name](task, np.random.default_rng((list(GENERATORS).index(name), seed)))
    return drawn, drawn.best()


class Distance(NamedTuple):
    """How far a fit lies from maximum likelihood on the same records.

    ``slope`` is that of fitted on maximum-likelihood margins, both centred, ``coef_slope`` that of coefficients through
    the origin. ``excess`` is the mean log-loss less the smallest; numbers get that of a Gaussian law with the error of
    least squares. ``mean`` is the mean prediction less the mean target: of the probability of the class where it is
    largest, or in the larger one of the target's mean and standard deviation. ``largest`` is the largest difference of
    a coefficient or of an intercept, in units of the largest of them.
    """

    slope: float
    coef_slope: float
    excess: float
    mean: float
    largest: float


def coefficients(model, drawn):
    """A row for each class, the intercept last, with a mean of zero over classes; one row for a number."""
    rows = np.column_stack((np.atleast_2d(model.coef_), np.ravel(model.intercept_)))
    if drawn.task == "regress":
        return rows
    rows = np.vstack((np.zeros_like(rows), rows)) if len(rows) == 1 else rows
    return rows - rows.mean(axis=0)


def measure(model, drawn, best):
    """The distance of a fitted model from maximum likelihood on the columns of its support."""
    if not model.support_.all():
        drawn = drawn.keep(model.support_)
        kept = np.atleast_2d(model.coef_)[:, model.support_]
        model, best = SimpleNamespace(coef_=kept, intercept_=model.intercept_), drawn.best()
    X, y = np.column_stack((drawn.X, np.ones(len(drawn.y)))), drawn.y
    found, ideal = coefficients(model, drawn), coefficients(best, drawn)
    margins, best_margins = X @ found.T, X @ ideal.T
    centred = best_margins - best_margins.mean(axis=0)
    if drawn.task == "regress":
        squares = [np.mean((fitted.ravel() - y) ** 2) for fitted in (margins, best_margins)]
        excess = squares[0] / squares[1] / 2.0 - 0.5
        mean = (margins.mean() - y.mean()) / max(abs(y.mean()), y.std())
    else:
        logs, best_logs = log_softmax(margins, axis=1), log_softmax(best_margins, axis=1)
        excess = np.mean((best_logs - logs)[np.arange(y.size), y])
        differences = np.exp(logs).mean(axis=0) - np.bincount(y) / y.size
        mean = differences[np.abs(differences).argmax()] if len(differences) > 2 else differences[1]
    return Distance(
        slope=float(np.sum(centred * margins) / np.sum(centred**2)),
        coef_slope=float(np.sum(found[:, :-1] * ideal[:, :-1]) / np.sum(ideal[:, :-1] ** 2)),
        excess=float(excess),
        mean=float(mean),
        largest=float(np.abs(found - ideal).max() / np.abs(ideal).max()),
    )
