"""Competitors from outside the package: fits without privacy, methods of practice, and other libraries.

Other libraries and the first edition run in environments of their own (``make arena-other``).
"""

from __future__ import annotations

import atexit
import json
import math
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, lars_path, lars_path_gram

from taciturn.core.validation import BoolArray
from taciturn.privacy.budget import Budget
from taciturn.privacy.gdp import mu_of_budget
from taciturn_research.arena.methods import DELTA, Fitted, Method, Setting, fitted, log_odds, prepared, shortened
from taciturn_research.arena.sets import DataSet, FloatArray, Problem
from taciturn_research.pages import REPOSITORY

# ---------------------------------------------------------------------
# Fits by Pythons of their own, for packages whose versions clash with ours.
#
# ``make arena-other`` puts these Pythons into folders of ``build``. A worker is started on the first fit and reads jobs
# from its standard input, one JSON line each: the file of a table and the facts about the fit. It answers with one
# line.


BUILD = REPOSITORY / "build"

_LOOP = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import scipy.sparse as sp

def read(path):
    with np.load(path) as table:
        if "X" in table:
            X = table["X"]
        else:
            X = sp.csr_array((table["data"], table["indices"], table["indptr"]), shape=tuple(table["shape"]))
        return X, table["y"], table["X_test"] if "X_test" in table else None

answers = os.fdopen(os.dup(1), "w")
# What packages print must not be taken for an answer.
os.dup2(2, 1)
for job in sys.stdin:
    path, facts = json.loads(job)
    try:
        answer = fit(*read(path), facts)
    except Exception as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


class FitFailedError(RuntimeError):
    """A fit elsewhere ended with an error, which is written down as a refusal."""


def _interpreter(environment: str) -> Path:
    return BUILD / environment / "bin" / "python"


def is_there(environment: str) -> bool:
    """Whether the environment has been made."""
    return _interpreter(environment).exists()


@cache
def _worker(environment: str, script: str) -> subprocess.Popen[str]:
    command = [str(_interpreter(environment)), "-c", script + _LOOP]
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(worker.kill)
    return worker


def ask(environment: str, script: str, X: Any, y: Any, facts: dict[str, Any], X_test: Any = None) -> dict[str, Any]:
    """Let a worker fit.

    Parameters
    ----------
    environment : str
        Folder of ``build`` with its Python.
    script : str
        Defines ``fit(X, y, X_test, facts)``, which returns what JSON can hold.
    X, y : arrays
        Training records; ``X`` may be sparse.
    facts : dict
        What else the script needs.
    X_test : ndarray or None
        Test records, for models that are not linear.

    Raises
    ------
    FitFailedError
        If the fit failed.
    """
    worker = _worker(environment, script)
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError(f"{environment}: the worker has no pipes")
    parts = {"y": y} if X_test is None else {"y": y, "X_test": X_test}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        if sp.issparse(X):
            np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, **parts)
        else:
            np.savez(path, X=X, **parts)
        worker.stdin.write(json.dumps([str(path), facts]) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
    if not line:
        # The next fit gets a new worker.
        _worker.cache_clear()
    answer: dict[str, Any] = json.loads(line) if line else {"failure": "the worker ended"}
    if "failure" in answer:
        raise FitFailedError(f"{environment}: {answer['failure']}")
    return answer


# ---------------------------------------------------------------------
# What is possible without privacy: an L1 fit of k features, refitted without penalty, ridge and gradient boosting.
#
# The support of the L1 fit is the truth of real data. The settings of ridge are chosen by an oracle, as others' are.


_HALVINGS = 14
# Trees are fitted to dense tables.
MOST_TREES_COLUMNS = 1000
# What asks scikit-learn for an L1 penalty: a ratio from 1.8 on.
_L1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}


def l1_support(data_set: DataSet, X: Any, y: NDArray[Any]) -> BoolArray:
    """The k features of an L1 fit: at the strongest penalty that leaves k, or their k largest coefficients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        coef = _lasso(X, y, data_set.k) if data_set.task == "regression" else _logistic(X, y, data_set.k)
    support = np.zeros(X.shape[1], dtype=bool)
    support[np.argsort(-np.abs(coef), kind="stable")[: data_set.k]] = True
    kept: BoolArray = support & (coef != 0.0)
    return kept


def _lasso(X: Any, y: NDArray[Any], k: int) -> FloatArray:
    X, y = X - X.mean(axis=0), y - y.mean()
    steps = {"max_iter": 4 * k, "return_path": True, "method": "lasso"}
    if X.shape[0] > X.shape[1]:
        _, _, path = lars_path_gram(X.T @ y, X.T @ X, n_samples=y.size, **steps)
    else:
        _, _, path = lars_path(X, y, **steps)
    counts = np.count_nonzero(path, axis=0)
    enough = np.flatnonzero(counts >= k)
    coef: FloatArray = path[:, enough[0] if enough.size else -1]
    return coef


def _logistic(X: Any, y: NDArray[Any], k: int) -> FloatArray:
    """Bisection of the inverse penalty from the point where nothing is left."""
    centred = y - y.mean()
    least = 1.0 / float(np.abs(np.asarray(X.T @ centred)).max())
    low, high = np.log(least), np.log(least) + np.log(1e4)
    coef = np.zeros(X.shape[1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        model = LogisticRegression(
            C=float(np.exp(middle)), solver="liblinear", tol=1e-3, intercept_scaling=10.0, random_state=0, **_L1
        )
        found = model.fit(X, y).coef_.ravel()
        count = np.count_nonzero(found)
        if count >= k:
            coef, high = found, middle
        else:
            low = middle
        if count == k:
            break
    return coef


def _fit(data_set: DataSet, problem: Problem, epsilon: None, seed: int) -> Fitted:
    support = l1_support(data_set, problem.X, problem.y)
    X, X_test = (table[:, support] for table in (problem.X, problem.X_test))
    if data_set.task == "regression":
        return Fitted(LinearRegression().fit(X, problem.y).predict(X_test), support)
    # Next to no penalty: some of the sets can be separated.
    model = LogisticRegression(C=1e3, max_iter=2000).fit(sp.csr_array(X) if sp.issparse(X) else X, problem.y)
    return Fitted(model.decision_function(X_test), support)


def _ridge(data_set: DataSet, problem: Problem, epsilon: None, seed: int, strength: float) -> Fitted:
    if data_set.task == "regression":
        model = Ridge(alpha=strength).fit(problem.X, problem.y)
    else:
        model = LogisticRegression(C=1.0 / strength, max_iter=300).fit(problem.X, problem.y)
    return fitted(model, problem.X_test, problem.X.shape[1])


def _strengths(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"strength": strength} for strength in (0.03, 1.0, 30.0))


def _boosting(data_set: DataSet, problem: Problem, epsilon: None, seed: int) -> Fitted:
    X, X_test = (table.toarray() if sp.issparse(table) else table for table in (problem.X, problem.X_test))
    kind = HistGradientBoostingRegressor if data_set.task == "regression" else HistGradientBoostingClassifier
    model = kind(random_state=seed).fit(X, problem.y)
    predicted = model.predict(X_test) if data_set.task == "regression" else model.decision_function(X_test)
    return Fitted(np.ravel(predicted), np.ones(X.shape[1], dtype=bool))


def _too_wide(data_set: DataSet) -> str | None:
    wide = data_set.n_columns > MOST_TREES_COLUMNS
    return f"more than {MOST_TREES_COLUMNS:,} columns" if wide else None


def _constant(data_set: DataSet, problem: Problem, epsilon: None, seed: int) -> Fitted:
    mean = float(problem.y.mean())
    value = mean if data_set.task == "regression" else math.log(mean / (1.0 - mean))
    n_columns = problem.X.shape[1]
    return Fitted(np.full(problem.y_test.size, value), np.zeros(n_columns, dtype=bool), np.zeros(n_columns))


def _read_by_coefficients(data_set: DataSet) -> str | None:
    return "coefficients are compared instead of supports" if data_set.names else None


BOTH = ("regression", "classification")
NON_PRIVATE = Method("L1, not private", "non-private", BOTH, _fit, refuses=_read_by_coefficients)
CONSTANT = Method("constant, not private", "non-private", BOTH, _constant)
CEILINGS = (
    Method("ridge, not private", "non-private", BOTH, _ridge, _strengths, few=True),
    Method("boosting, not private", "non-private", BOTH, _boosting, refuses=_too_wide, few=True),
)


# ---------------------------------------------------------------------
# What practitioners would use instead: dense private descent, objective perturbation, AdaSSP and its boosted form.
#
# Each is private as stated, under the same relation (one record's values are zeroed), with exact Gaussian accounting.
# The settings of those that have some are chosen by an oracle, the best on the test data. Targets lie in [-1, 1], which
# centres a regression by its public bounds; least squares fits labels as -1 and 1.


MOMENTUM = 0.8
# AdaSSP releases a matrix with a row and a column for each feature, and its eigenvalues.
MOST_GRAM_COLUMNS = 1000
# Probability with which AdaSSP's bound on an eigenvalue may fail.
FAILURE = 0.05


def clipped_gradient(X: Any, row_norms: FloatArray, derivatives: FloatArray, clip: float) -> FloatArray:
    """Sum of the records' gradients, each scaled down to an L2 norm of at most ``clip``."""
    factors = clip / np.maximum(np.abs(derivatives) * row_norms, clip)
    total: FloatArray = np.asarray(X.T @ (derivatives * factors).astype(X.dtype))
    return total


def private_descent(
    X: Any,
    y: FloatArray,
    *,
    logistic: bool,
    mu: float,
    clip: float,
    n_steps: int,
    step: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Gradient descent with momentum on clipped sums with Gaussian noise; the mean of the second half.

    Parameters
    ----------
    X, y : arrays
        Records.
    logistic : bool
        Whether the loss is logistic (labels 0 and 1) or squared.
    mu : float
        Gaussian privacy parameter of all steps together.
    clip : float
        Bound on the norm of one record's gradient, which is the sensitivity of the sum.
    n_steps : int
        Number of steps.
    step : float
        Step size for the mean gradient.
    rng : Generator
        Source of the noise.
    """
    n_rows, n_columns = X.shape
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    row_norms = np.sqrt(np.ravel(squares))
    scale = clip * math.sqrt(n_steps) / mu
    coef, velocity, total = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
    for number in range(n_steps):
        margins = X @ coef.astype(X.dtype)
        derivatives = (expit(margins) if logistic else margins) - y
        gradient = clipped_gradient(X, row_norms, derivatives, clip) + scale * rng.standard_normal(n_columns)
        velocity = MOMENTUM * velocity + (1.0 - MOMENTUM) * gradient / n_rows
        coef = coef - step * velocity
        if number >= n_steps // 2:
            total += coef
    return total / (n_steps - n_steps // 2)


def _mu(epsilon: float) -> float:
    return mu_of_budget(Budget(epsilon=epsilon, delta=DELTA))


def _descent(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_steps: int, clip: float, rate: float
) -> Fitted:  # fmt: skip
    """``clip`` is in units of the row bound, ``rate`` in units of the inverse smoothness at half that bound."""
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    logistic = data_set.task == "classification"
    smoothness = row_bound**2 * (0.25 if logistic else 1.0)
    coef = private_descent(
        X.astype(np.float32),
        problem.y,
        logistic=logistic,
        mu=_mu(epsilon),
        clip=clip * row_bound,
        n_steps=n_steps,
        step=4.0 * rate / smoothness,
        rng=np.random.default_rng((seed, 77)),
    )
    # A descent that diverges predicts nothing.
    predicted = np.nan_to_num(np.ravel(X_test @ coef), posinf=0.0, neginf=0.0)
    n_columns = problem.X.shape[1]
    return Fitted(predicted, np.ones(n_columns, dtype=bool), coef[:n_columns])


def boosted_least_squares(
    X: FloatArray, y: FloatArray, *, mu: float, row_bound: float, n_rounds: int, clip: float, rng: np.random.Generator
) -> FloatArray:  # fmt: skip
    """AdaSSP, repeated on clipped residuals with one Gram matrix (Tang et al. 2023); one round at clip 1 is AdaSSP.

    A third of the squared budget each goes to the least eigenvalue, to the Gram matrix, and to the rounds.

    Parameters
    ----------
    X, y : ndarrays
        Rows of norms up to ``row_bound``, targets in [-1, 1].
    mu : float
        Gaussian privacy parameter of everything.
    row_bound : float
        Public bound on row norms.
    n_rounds : int
        Number of rounds.
    clip : float
        Bound on residuals.
    rng : Generator
        Source of the noise.
    """
    n_columns, third = X.shape[1], mu / math.sqrt(3.0)
    gram, scale = X.T @ X, row_bound**2 / third
    least = np.linalg.eigvalsh(gram)[0] + scale * (rng.standard_normal() - math.sqrt(2.0 * math.log(6.0 / FAILURE)))
    noise = np.triu(rng.standard_normal((n_columns, n_columns)))
    spread = scale * math.sqrt(n_columns * math.log(2.0 * n_columns**2 / FAILURE))
    ridge = max(0.0, spread - max(least, 0.0))
    inverse = np.linalg.inv(gram + scale * (noise + np.triu(noise, 1).T) + ridge * np.eye(n_columns))
    coef = np.zeros(n_columns)
    round_scale = row_bound * clip * math.sqrt(n_rounds) / third
    for _ in range(n_rounds):
        residuals = np.clip(y - X @ coef, -clip, clip)
        coef = coef + inverse @ (X.T @ residuals + round_scale * rng.standard_normal(n_columns))
    return coef


def _least_squares(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_rounds: int = 1, clip: float = 1.0
) -> Fitted:  # fmt: skip
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    X = shortened(X.toarray() if sp.issparse(X) else X, row_bound)
    classes = data_set.task == "classification"
    coef = boosted_least_squares(
        X,
        2.0 * problem.y - 1.0 if classes else problem.y,
        mu=_mu(epsilon),
        row_bound=row_bound,
        n_rounds=n_rounds,
        clip=clip,
        rng=np.random.default_rng((seed, 77)),
    )
    predicted = np.ravel(X_test @ coef)
    return Fitted(log_odds(predicted) if classes else predicted, np.ones(problem.X.shape[1], dtype=bool))


def _too_wide_for_squares(data_set: DataSet) -> str | None:
    wide = data_set.n_columns > MOST_GRAM_COLUMNS
    return f"more than {MOST_GRAM_COLUMNS:,} columns" if wide else None


# Six of 69 settings and five of 25 for each task: those that together come nearest to the best of all, in a pilot with
# two seeds on most sets. Number of steps, clip, rate; number of rounds, clip.
_DESCENTS = {
    "regression": ((300, 0.02, 0.3), (300, 0.02, 1), (20, 0.02, 10), (300, 0.02, 10), (300, 0.06, 10), (300, 0.2, 0.3)),
    "classification": (
        (300, 0.06, 3), (300, 0.06, 10), (300, 0.2, 0.3), (300, 0.2, 10), (300, 0.6, 1), (300, 0.6, 10),
    ),
}  # fmt: skip
_ROUNDS = {
    "regression": ((30, 0.05), (100, 0.05), (30, 0.1), (30, 0.2), (30, 0.5)),
    "classification": ((3, 1), (10, 1), (30, 1), (100, 0.2), (100, 0.5)),
}


def _descents(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    keys = ("n_steps", "clip", "rate")
    return tuple(dict(zip(keys, setting, strict=True)) for setting in _DESCENTS[data_set.task])


def _rounds(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"n_rounds": n_rounds, "clip": clip} for n_rounds, clip in _ROUNDS[data_set.task])


_practice = partial(Method, family="practice", tasks=BOTH)

PRACTICE = (
    _practice("DP-GD", fit=_descent, grid=_descents),
    _practice("AdaSSP", fit=_least_squares, refuses=_too_wide_for_squares),
    _practice("boosted AdaSSP", fit=_least_squares, grid=_rounds, refuses=_too_wide_for_squares),
)


# ---------------------------------------------------------------------
# Recent methods, written from their papers and authors' code in our words, with accounting of our own.
#
# DP-Newton (Ganesh et al. 2023), iterative Hessian mixing (Lev et al. 2026) and BinAgg (Lin et al. 2026). Settings are
# chosen by an oracle as above. BinAgg's noise for the sums of features is here for their length: the authors' package
# has noise for each feature by itself, so that the parameter of all d of them is larger than stated by root d.


GRADIENT_SHARE = 0.75
"""Of the squared budget of DP-Newton for gradients, as in the authors' experiments; the rest is for curvature."""


def private_newton(
    X: FloatArray,
    y: FloatArray,
    *,
    logistic: bool,
    mu: float,
    row_bound: float,
    clip: float,
    n_steps: int,
    floor: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Newton's method with a noisy gradient and a noisy Hessian in each step; the last iterate.

    Parameters
    ----------
    X, y : ndarrays
        Rows of norms up to ``row_bound``, targets in [-1, 1] or labels 0 and 1.
    logistic : bool
        Whether the loss is logistic or squared. The Hessian of the squared loss is released once.
    mu : float
        Gaussian privacy parameter of everything.
    row_bound, clip : float
        Public bounds on norms of rows and of gradients.
    n_steps : int
        Number of steps.
    floor : float
        Eigenvalues of the Hessian are raised to so many norms of its noise.
    rng : Generator
        Source of the noise.
    """
    n_columns = X.shape[1]
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    # What one record adds is at most this in the Frobenius norm.
    largest = row_bound**2 * (0.25 if logistic else 1.0)
    of_gradients = mu * math.sqrt(GRADIENT_SHARE / n_steps)
    of_hessians = mu * math.sqrt((1.0 - GRADIENT_SHARE) / (n_steps if logistic else 1))
    scale = largest / of_hessians
    least = floor * scale * math.sqrt(2.0 * n_columns)
    coef, hessian = np.zeros(n_columns), np.zeros((n_columns, n_columns))
    for number in range(n_steps):
        margins = X @ coef
        rates = expit(margins) if logistic else margins
        gradient = clipped_gradient(X, norms, rates - y, clip) + clip / of_gradients * rng.standard_normal(n_columns)
        if logistic or number == 0:
            weighted = X * (rates * (1.0 - rates))[:, None] if logistic else X
            noise = np.triu(rng.standard_normal((n_columns, n_columns)))
            values, vectors = np.linalg.eigh(weighted.T @ X + scale * (noise + np.triu(noise, 1).T))
            hessian = (vectors * np.maximum(values, least)) @ vectors.T
        coef = coef - np.linalg.solve(hessian, gradient)
    return coef


def _newton(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_steps: int, floor: float, clip: float
) -> Fitted:  # fmt: skip
    """``clip`` is in units of the row bound."""
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    coef = private_newton(
        shortened(_dense(X), row_bound),
        problem.y,
        logistic=data_set.task == "classification",
        mu=_mu(epsilon),
        row_bound=row_bound,
        clip=clip * row_bound,
        n_steps=n_steps,
        floor=floor,
        rng=np.random.default_rng((seed, 77)),
    )
    n_columns = problem.X.shape[1]
    predicted = np.nan_to_num(np.ravel(X_test @ coef), posinf=0.0, neginf=0.0)
    return Fitted(predicted, np.ones(n_columns, dtype=bool), coef[:n_columns])


ORDERS = np.concatenate((np.linspace(1.05, 10.0, 60), np.geomspace(10.5, 5000.0, 240)))
"""Orders of Renyi divergences."""
# Shares of the squared budget for the least eigenvalue and for gradients, and of delta for a wrong eigenvalue.
_EIGENVALUE_SHARE, _MIXING_GRADIENTS, _WRONG_SHARE = 0.05, 0.45, 0.1


def mixing_rdp(n_rows: int, gamma: float) -> FloatArray:
    """Renyi divergences of so many rows of a Gaussian sketch, by ``ORDERS``, in either direction.

    A row of the sketch is normal with covariance X'X plus noise. If its eigenvalues are at least ``gamma`` times the
    squared row bound, a record takes away at most u = 1 / gamma of the variance in one direction.
    """
    u = 1.0 / gamma
    without = np.log1p(-u)
    with np.errstate(invalid="ignore", divide="ignore"):
        there = (ORDERS * without - np.log1p(-ORDERS * u)) / (2.0 * (ORDERS - 1.0))
    there = np.where(ORDERS * u < 1.0, there, np.inf)
    back = -np.log1p((ORDERS - 1.0) * u) / (2.0 * (ORDERS - 1.0)) - without / 2.0
    larger: FloatArray = n_rows * np.maximum(there, back)
    return larger


@cache
def mixing_gamma(epsilon: float, delta: float, n_rows: int) -> float:
    """The least gamma with which sketches of so many rows together, gradients and the eigenvalue meet the budget."""
    mu = mu_of_budget(Budget(epsilon=epsilon, delta=delta))
    gaussian = ORDERS * (_EIGENVALUE_SHARE + _MIXING_GRADIENTS) * mu**2 / 2.0
    kept = (1.0 - _WRONG_SHARE) * delta

    def spent(gamma: float) -> float:
        return float(compute_epsilon(ORDERS, gaussian + mixing_rdp(n_rows, gamma), kept)[0])

    low, high = 1.0 + 1e-6, 10.0
    while spent(high) > epsilon:
        low, high = high, 10.0 * high
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return high


def hessian_mixing(
    X: FloatArray,
    y: FloatArray,
    *,
    epsilon: float,
    delta: float,
    row_bound: float,
    n_rounds: int,
    rows: float,
    clip: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Least squares by iterated steps, each with a fresh Gaussian sketch for a Hessian and a noisy gradient.

    A sketch S X + sigma N has independent rows of covariance X'X + sigma^2 I, so that its Gram matrix is drawn as a
    Wishart matrix. How much noise it needs beside X'X follows from a private lower bound on the least eigenvalue.

    Parameters
    ----------
    X, y : ndarrays
        Rows of norms up to ``row_bound``, targets in [-1, 1].
    epsilon, delta : float
        Of everything.
    row_bound, clip : float
        Public bounds on norms of rows and on residuals.
    n_rounds : int
        Number of steps.
    rows : float
        Rows of a sketch, for each column.
    rng : Generator
        Source of the noise.
    """
    n_columns = X.shape[1]
    mu = mu_of_budget(Budget(epsilon=epsilon, delta=delta))
    n_sketch = math.ceil(rows * max(n_columns, math.log(4.0 * n_rounds / delta)))
    gamma = mixing_gamma(epsilon, delta, n_rounds * n_sketch)
    gram = X.T @ X
    reach = float(norm.isf(_WRONG_SHARE * delta))
    of_eigenvalue = mu * math.sqrt(_EIGENVALUE_SHARE)
    least = np.linalg.eigvalsh(gram)[0] + row_bound**2 / of_eigenvalue * (rng.standard_normal() - reach)
    added = max(0.0, gamma * row_bound**2 - max(0.0, float(least)))
    root = np.linalg.cholesky(gram + added * np.eye(n_columns))
    scale = row_bound * clip * math.sqrt(n_rounds / _MIXING_GRADIENTS) / mu
    coef = np.zeros(n_columns)
    for _ in range(n_rounds):
        sketch = rng.standard_normal((n_sketch, n_columns)) @ root.T
        gradient = X.T @ np.clip(y - X @ coef, -clip, clip) + scale * rng.standard_normal(n_columns)
        coef = coef + np.linalg.solve(sketch.T @ sketch / n_sketch, gradient)
    return coef


def _mixing(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_rounds: int, rows: float, clip: float
) -> Fitted:  # fmt: skip
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    classes, n_columns = data_set.task == "classification", problem.X.shape[1]
    coef = hessian_mixing(
        shortened(_dense(X), row_bound),
        2.0 * problem.y - 1.0 if classes else problem.y,
        epsilon=epsilon,
        delta=DELTA,
        row_bound=row_bound,
        n_rounds=n_rounds,
        rows=rows,
        clip=clip,
        rng=np.random.default_rng((seed, 77)),
    )
    predicted = np.ravel(X_test @ coef)
    support = np.ones(n_columns, dtype=bool)
    return Fitted(log_odds(predicted), support) if classes else Fitted(predicted, support, coef[:n_columns])


# Bins are boxes: with more columns hardly any of them is cut.
MOST_BINNED_COLUMNS = 30
# Squared shares for the tree, for counts, for sums of features and of targets: the squares of 1, 3, 3 and 3.
_BIN_SHARES = np.array((1.0, 9.0, 9.0, 9.0)) / 28.0


def pure_epsilon(mu: float) -> float:
    """The epsilon of a pure mechanism that is mu-GDP."""
    return float(norm.logcdf(mu / 2.0) - norm.logcdf(-mu / 2.0))


def tree_scale(epsilon: float) -> float:
    """Scale of the Laplace noise of PrivTree (Zhang et al. 2016) with two children."""
    return 3.0 / epsilon


def tree_score(count: int, depth: int, scale: float, threshold: float) -> float:
    """What is compared with the threshold, before noise: the count, less for each level, and not too little."""
    return max(count - depth * scale * math.log(2.0), threshold - scale * math.log(2.0))


def grow_boxes(
    X: FloatArray, scale: float, threshold: float, rng: np.random.Generator
) -> list[tuple[NDArray[np.intp], FloatArray, FloatArray]]:  # fmt: skip
    """The leaves of PrivTree over [-1, 1] in each column: records, lower and upper corners.

    The longest side is halved, the first of several. A number on the boundary belongs to the upper half alone. Boxes
    are cut further, the largest first, until there are more than columns.
    """
    n_columns = X.shape[1]
    boxes = [(np.arange(len(X)), np.full(n_columns, -1.0), np.full(n_columns, 1.0), 0)]
    leaves = []
    while boxes:
        rows, low, high, depth = boxes.pop()
        if tree_score(rows.size, depth, scale, threshold) + rng.laplace(scale=scale) > threshold:
            boxes += [(*half, depth + 1) for half in _halves(X, rows, low, high)]
        else:
            leaves.append((rows, low, high))
    while len(leaves) <= n_columns:
        largest = max(range(len(leaves)), key=lambda place: float(np.log(leaves[place][2] - leaves[place][1]).sum()))
        leaves += _halves(X, *leaves.pop(largest))
    return leaves


def _halves(
    X: FloatArray, rows: NDArray[np.intp], low: FloatArray, high: FloatArray
) -> list[tuple[NDArray[np.intp], FloatArray, FloatArray]]:  # fmt: skip
    side = int(np.argmax(high - low))
    middle = (low[side] + high[side]) / 2.0
    above = X[rows, side] >= middle
    upper, lower = low.copy(), high.copy()
    upper[side] = lower[side] = middle
    return [(rows[~above], low, lower), (rows[above], upper, high)]


def binned_least_squares(
    X: FloatArray, y: FloatArray, *, mu: float, row_bound: float, threshold: float, least: int, rng: np.random.Generator
) -> FloatArray:  # fmt: skip
    """Least squares on noisy sums over private boxes, corrected for their noise; the intercept is last.

    Parameters
    ----------
    X, y : ndarrays
        Rows of norms up to ``row_bound`` in [-1, 1], targets in [-1, 1].
    mu : float
        Gaussian privacy parameter of everything.
    row_bound : float
        Public bound on norms of rows.
    threshold : float
        From which count a box is cut.
    least : int
        Boxes of a smaller noisy count are left out.
    rng : Generator
        Source of the noise.
    """
    of_tree, of_counts, of_features, of_targets = mu * np.sqrt(_BIN_SHARES)
    leaves = grow_boxes(X, tree_scale(pure_epsilon(of_tree)), threshold, rng)
    n_boxes, n_columns = len(leaves), X.shape[1]
    corners = np.array([np.linalg.norm(np.maximum(np.abs(low), np.abs(high))) for _, low, high in leaves])
    scales = np.minimum(corners, row_bound) / of_features
    counts = np.array([rows.size for rows, _, _ in leaves]) + rng.standard_normal(n_boxes) / of_counts
    sums = np.array([X[rows].sum(axis=0) for rows, _, _ in leaves])
    sums = sums + scales[:, None] * rng.standard_normal((n_boxes, n_columns))
    targets = np.array([y[rows].sum() for rows, _, _ in leaves]) + rng.standard_normal(n_boxes) / of_targets
    kept = counts >= least
    if not kept.any():
        return np.zeros(n_columns + 1)
    weights = 1.0 / counts[kept]
    table = np.column_stack((sums[kept], counts[kept]))
    variances = np.column_stack(
        (np.repeat(scales[kept, None] ** 2, n_columns, axis=1), np.full(kept.sum(), of_counts**-2))
    )
    moments = (table * weights[:, None]).T @ table - np.diag(weights @ variances)
    values, vectors = np.linalg.eigh(moments)
    # What noise outweighs is no direction: a correction can make eigenvalues negative.
    inverse = (vectors / np.maximum(values, float((weights @ variances).max()))) @ vectors.T
    found: FloatArray = inverse @ (table.T @ (weights * targets[kept]))
    return found


def _binned(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, threshold: float, least: int
) -> Fitted:  # fmt: skip
    coef = binned_least_squares(
        shortened(_dense(problem.X), data_set.row_bound),
        problem.y,
        mu=_mu(epsilon),
        row_bound=data_set.row_bound,
        threshold=threshold,
        least=least,
        rng=np.random.default_rng((seed, 77)),
    )
    predicted = np.ravel(problem.X_test @ coef[:-1]) + coef[-1]
    return Fitted(predicted, np.ones(data_set.n_columns, dtype=bool), coef[:-1])


def _too_wide_for_boxes(data_set: DataSet) -> str | None:
    wide = data_set.n_columns > MOST_BINNED_COLUMNS
    return f"more than {MOST_BINNED_COLUMNS} columns" if wide else None


# Five or four of 48, 36 and 18 settings for each task, chosen likewise: with two seeds on breast cancer, digits, dense
# logistic and phishing, and on diabetes, housing, lognormal and abalone.
_NEWTONS = {
    "classification": ((16, 0.1, 0.3), (8, 0.3, 1.0), (16, 1.0, 1.0), (8, 1.0, 1.0), (8, 0.1, 0.3)),
    "regression": ((8, 1.0, 0.3), (8, 0.3, 0.1), (4, 0.3, 0.3), (16, 3.0, 0.3), (8, 0.1, 0.1)),
}
_MIXINGS = {
    "classification": ((6, 2.5, 1.0), (3, 1.5, 1.0), (6, 1.5, 0.3), (6, 6.0, 1.0), (3, 2.5, 1.0)),
    "regression": ((6, 6.0, 0.3), (6, 2.5, 0.3), (2, 1.5, 0.3), (6, 6.0, 1.0), (6, 12.0, 1.0)),
}
_BINNINGS = ((200.0, 20), (-100.0, 2), (50.0, 20), (-50.0, 20))


def _newtons(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"n_steps": n_steps, "floor": floor, "clip": clip} for n_steps, floor, clip in _NEWTONS[data_set.task])


def _mixings(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"n_rounds": n_rounds, "rows": rows, "clip": clip} for n_rounds, rows, clip in _MIXINGS[data_set.task])


def _binnings(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return tuple({"threshold": threshold, "least": least} for threshold, least in _BINNINGS)


RECENT = (
    _practice("DP-Newton", fit=_newton, grid=_newtons, refuses=_too_wide_for_squares),
    _practice("Hessian mixing", fit=_mixing, grid=_mixings, refuses=_too_wide_for_squares),
    Method("BinAgg", "practice", ("regression",), _binned, _binnings, refuses=_too_wide_for_boxes),
)


# ---------------------------------------------------------------------
# Models of other libraries, and of our own first edition, fitted by Pythons of their own (``make arena-other``).
#
# diffprivlib's linear models (pure DP, all features) have their defaults and the same public bounds. DP-EBM (interpret)
# gets each category as one feature and the public range of every other one. The first edition is the package at the
# commit before its default was changed, "before" the one that BEFORE in the Makefile names. Without their environments
# they are skipped.


# diffprivlib's linear regression draws noise for every pair of columns, one number at a time; tables are passed dense.
MOST_COLUMNS = {"regression": 300, "classification": 20_000}
MOST_EBM_COLUMNS = 280
# A fit of AIM takes minutes with ten fields.
MOST_SYNTHETIC_FIELDS = 20

_DIFFPRIVLIB = """
from diffprivlib.models import LinearRegression, LogisticRegression

def fit(X, y, X_test, facts):
    if facts["task"] == "regression":
        model = LinearRegression(
            epsilon=facts["epsilon"], bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=facts["seed"]
        )
    else:
        model = LogisticRegression(epsilon=facts["epsilon"], data_norm=facts["row_bound"], random_state=facts["seed"])
    model.fit(X, y)
    return {"coef": np.ravel(model.coef_).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}
"""

_EARLIER = """
from taciturn import SparseClassifier, SparseRegressor

def fit(X, y, X_test, facts):
    own = {"y_bounds": (-1.0, 1.0)} if facts["task"] == "regression" else {"classes": (0, 1)}
    kind = SparseRegressor if facts["task"] == "regression" else SparseClassifier
    model = kind(
        epsilon=facts["epsilon"], delta=facts["delta"], x_bound=1.0, n_nonzero=facts["n_nonzero"],
        random_state=facts["seed"], **own
    ).fit(X, y)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return {"coef": np.ravel(coef).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}
"""

_TREES = """
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

def fit(X, y, X_test, facts):
    ranges = {int(column): tuple(bounds) for column, bounds in facts["ranges"].items()}
    setting = dict(
        epsilon=facts["epsilon"], delta=facts["delta"], feature_types=facts["types"], privacy_bounds=ranges, n_jobs=1,
        random_state=facts["seed"], **facts["setting"]
    )
    if facts["task"] == "regression":
        model = DPExplainableBoostingRegressor(privacy_target_min=-1.0, privacy_target_max=1.0, **setting).fit(X, y)
        return {"predicted": np.ravel(model.predict(X_test)).tolist()}
    model = DPExplainableBoostingClassifier(**setting).fit(X, y)
    return {"predicted": np.ravel(model.decision_function(X_test)).tolist()}
"""


_SYNTHESIS = """
import opendp.prelude as dp
import polars as pl
from opendp.extras import mbi
from sklearn.linear_model import LogisticRegression, Ridge

dp.enable_features("contrib")

def fit(X, y, X_test, facts):
    names = [f"c{place}" for place in range(X.shape[1])]
    frame = pl.DataFrame({name: X[:, place].astype(int) for place, name in enumerate(names)})
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=facts["rho"])
    )
    keys = {name: list(range(size)) for name, size in zip(names, facts["sizes"])}
    algorithm = mbi.AIM(queries=2, max_size=facts["max_size"], rounds=facts["rounds"])
    query = context.query(rho=facts["rho"]).select(*names).contingency_table(keys=keys, algorithm=algorithm)
    # OpenDP has a cell for missing values in every column.
    table = query.release().synthesize().select(*names).drop_nulls().to_numpy().astype(int)
    *features, target = [np.array(each)[table[:, place]] for place, each in enumerate(facts["values"])]
    Z, y = np.column_stack(features), np.ravel(target)
    if facts["task"] == "regression":
        model = Ridge().fit(Z, y)
    elif len(np.unique(y)) == 1:
        return {"coef": [0.0] * Z.shape[1], "intercept": float(20.0 * y[0] - 10.0)}
    else:
        model = LogisticRegression(max_iter=1000).fit(Z, y)
    return {"coef": np.ravel(model.coef_).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}
"""


def _dense(X: Any) -> FloatArray:
    table: FloatArray = X.toarray() if sp.issparse(X) else X
    return table


def _linear(answer: dict[str, Any], X_test: Any) -> Fitted:
    coef = np.array(answer["coef"])
    return Fitted(np.ravel(X_test @ coef) + answer["intercept"], coef != 0.0, coef)


def _diffprivlib(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
    facts = {"task": data_set.task, "epsilon": epsilon, "seed": seed, "row_bound": data_set.row_bound}
    return _linear(ask("diffprivlib", _DIFFPRIVLIB, _dense(problem.X), problem.y, facts), problem.X_test)


def _earlier(name: str, environment: str, size: str | None) -> Method:
    """The default of an earlier version, which is its own family."""

    def fit(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
        facts = {
            "task": data_set.task, "epsilon": epsilon, "delta": DELTA, "seed": seed, "n_nonzero": size or data_set.k
        }  # fmt: skip
        return _linear(ask(environment, _EARLIER, problem.X, problem.y, facts), problem.X_test)

    return Method(name, name.partition(",")[0], BOTH, fit, refuses=_without(environment))


def with_categories(data_set: DataSet, X: Any) -> FloatArray:
    """The table with each block of indicators as one column of codes, after the other columns; 0 is none of them."""
    table = _dense(X)
    inside = [column for first, size in data_set.blocks for column in range(first, first + size)]
    codes = [table[:, first : first + size] @ np.arange(1.0, size + 1.0) for first, size in data_set.blocks]
    return np.column_stack((np.delete(table, inside, axis=1), *codes))


def _trees(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    X, X_test = (with_categories(data_set, table) for table in (problem.X, problem.X_test))
    n_numbers = X.shape[1] - len(data_set.blocks)
    facts = {
        "task": data_set.task, "epsilon": epsilon, "delta": DELTA, "seed": seed, "setting": setting,
        "types": ["continuous"] * n_numbers + ["nominal"] * len(data_set.blocks),
        "ranges": dict.fromkeys(range(n_numbers), (-1.0, 1.0)),
    }  # fmt: skip
    answer = ask("interpret", _TREES, X, problem.y, facts, X_test)
    return Fitted(np.array(answer["predicted"]), np.ones(data_set.n_columns, dtype=bool))


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """The largest zero-concentrated budget that implies the other one."""
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2.0
        within = float(compute_epsilon(ORDERS, middle * ORDERS, delta)[0]) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return low


def in_bins(numbers: FloatArray, n_bins: int) -> NDArray[np.intp]:
    """Numbers in [-1, 1] as codes of bins of equal width."""
    return np.clip(((numbers + 1.0) * n_bins / 2.0).astype(np.intp), 0, n_bins - 1)


def _synthesis(data_set: DataSet, problem: Problem, epsilon: float, seed: int, n_bins: int, **setting: Any) -> Fitted:
    """What is fitted to synthetic records has the features of the table: middles of bins, and indicators of codes."""
    table = with_categories(data_set, problem.X)
    n_numbers = table.shape[1] - len(data_set.blocks)
    middles = ((2.0 * np.arange(n_bins) + 1.0) / n_bins - 1.0).tolist()
    indicators = [np.eye(size + 1)[:, 1:].tolist() for _, size in data_set.blocks]
    classes = data_set.task == "classification"
    target = problem.y.astype(np.intp) if classes else in_bins(problem.y, n_bins)
    facts = {
        "task": data_set.task, "rho": rho_of(epsilon, DELTA),
        "sizes": [n_bins] * n_numbers + [size + 1 for _, size in data_set.blocks] + [2 if classes else n_bins],
        "values": [*([middles] * n_numbers), *indicators, [0.0, 1.0] if classes else middles], **setting,
    }  # fmt: skip
    codes = np.column_stack((in_bins(table[:, :n_numbers], n_bins), table[:, n_numbers:], target))
    answer = ask("synthesis", _SYNTHESIS, codes, problem.y, facts)
    # Numbers stand before the categories there.
    inside = [column for first, size in data_set.blocks for column in range(first, first + size)]
    order = [*np.delete(np.arange(data_set.n_columns), inside), *inside]
    coef = np.zeros(data_set.n_columns)
    coef[order] = answer["coef"]
    return _linear(answer | {"coef": coef.tolist()}, problem.X_test)


def _syntheses(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return ({"n_bins": 8, "max_size": 1.0, "rounds": 10},)


def _not_for_synthesis(data_set: DataSet) -> str | None:
    if data_set.n_columns - sum(size - 1 for _, size in data_set.blocks) > MOST_SYNTHETIC_FIELDS:
        return f"more than {MOST_SYNTHETIC_FIELDS} fields"
    return _without("synthesis")(data_set)


def _tree_settings(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return ({}, {"max_rounds": 100}, {"max_bins": 8})


def _without(environment: str, most_columns: dict[str, int] | None = None) -> Callable[[DataSet], str | None]:
    def refuses(data_set: DataSet) -> str | None:
        if not is_there(environment):
            return f"build/{environment} is not there; run make arena-other"
        most = most_columns[data_set.task] if most_columns else data_set.n_columns
        return f"more than {most:,} columns" if data_set.n_columns > most else None

    return refuses


OTHER_LIBRARIES = (
    Method("diffprivlib", "practice", BOTH, _diffprivlib, refuses=_without("diffprivlib", MOST_COLUMNS), few=True),
    Method(
        "DP-EBM", "practice", BOTH, _trees, _tree_settings,
        refuses=_without("interpret", dict.fromkeys(BOTH, MOST_EBM_COLUMNS)), few=True,
    ),
    Method("AIM, then a fit", "practice", BOTH, _synthesis, _syntheses, refuses=_not_for_synthesis, few=True),
)  # fmt: skip
FIRST_EDITION = (
    _earlier("first edition", "first", None),
    _earlier("first edition, k auto", "first", "auto"),
)
BEFORE = (
    _earlier("before", "before", None),
    _earlier("before, k auto", "before", "auto"),
    _earlier("before, all", "before", "all"),
)
