"""The damping of descents: coefficients and log-loss by its strength, on tables with indicators and without.

``python -m taciturn_research.benchmarks.study_damping`` prints the tables of ``study_damping.md``.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.validation import FloatArray, IndexArray
from taciturn.methods import descent

STRENGTHS = (0.0, 0.11, 0.22, 0.44, 0.88)
MOST_OF_NUMBERS = (0.5, 10.0, 40.0)
EPSILONS = (0.5, 1.0, 3.0, 9.0)
N_SEEDS = 8


def hospital(n_rows: int = 16_000) -> tuple[FloatArray, IndexArray]:
    """Five categories with rare levels, empty codes, four numbers and a duplicate of one of them."""
    rng = np.random.default_rng(6)
    blocks, weights = [], []
    for n_levels in (12, 8, 20, 3, 2):
        shares = 1.0 / np.arange(1, n_levels + 1) ** 1.6
        blocks.append(np.eye(n_levels)[rng.choice(n_levels, n_rows, p=shares / shares.sum())])
        weights.append(rng.normal(0.0, 0.6, n_levels))
    numbers = np.clip(rng.standard_normal((n_rows, 4)) / 3.0, -1.0, 1.0)
    X = np.hstack((*blocks, np.zeros((n_rows, 13)), numbers, numbers[:, :1]))
    margins = X @ np.concatenate((*weights, np.zeros(13), [2.0, -1.5, 0.8, 0.0, 0.0]))
    return X, (margins - margins.mean() - 1.2 + rng.logistic(size=n_rows) > 0.0).astype(np.intp)


def tumours() -> tuple[FloatArray, IndexArray]:
    """A small table whose classes are nearly separated."""
    X, y = load_breast_cancer(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    return 2.0 * (X - low) / (high - low) - 1.0, y.astype(np.intp)


def measure(X: FloatArray, y: IndexArray, epsilon: float) -> tuple[float, float, float]:
    """The log-loss, the median standard deviation of coefficients, and the median of the largest of a fit."""
    losses, found = [], []
    for seed in range(N_SEEDS):
        places = np.random.default_rng(seed).permutation(len(y))
        fit, rest = np.split(places, [3 * len(y) // 4])
        model = SparseClassifier(
            epsilon=epsilon, delta=1e-6, x_bound=1.0, n_nonzero="all", classes=(0, 1), random_state=seed
        ).fit(X[fit], y[fit])
        rates = model.predict_proba(X[rest])[np.arange(rest.size), y[rest]]
        losses.append(-float(np.log(rates).mean()))
        found.append(model.coef_[0])
    coefficients = np.array(found)
    spread = float(np.median(coefficients.std(axis=0, ddof=1)))
    return float(np.mean(losses)), spread, float(np.median(np.abs(coefficients).max(axis=1)))


def categories(n_rows: int = 12_000) -> tuple[FloatArray, FloatArray]:
    """Numbers and three categories with every level, and a target that is a number."""
    rng = np.random.default_rng(0)
    first = rng.choice(6, n_rows, p=[0.35, 0.25, 0.15, 0.12, 0.08, 0.05])
    second, third = rng.choice(3, n_rows, p=[0.6, 0.3, 0.1]), rng.choice(8, n_rows)
    numbers = np.clip(rng.standard_normal((n_rows, 4)) / 3.0, -1.0, 1.0)
    means = numbers @ [0.5, -0.3, 0.2, 0.0] + 0.2 * (first == 1) - 0.3 * (first == 3) + 0.2 * (second == 1)
    means += (third - 3.5) / 30.0
    y = np.clip((means + 0.5 * rng.standard_normal(n_rows)) / 2.5, -1.0, 1.0)
    return np.hstack((numbers, np.eye(6)[first], np.eye(3)[second], np.eye(8)[third])), y


def collinear(n_rows: int = 3_000) -> tuple[FloatArray, FloatArray]:
    """Eight columns that share most of what they hold, with coefficients of both signs."""
    rng = np.random.default_rng(1)
    shared, own = rng.standard_normal((n_rows, 1)), rng.standard_normal((n_rows, 8))
    X = np.clip((0.95 * shared + 0.31 * own) / 3.0, -1.0, 1.0)
    y = X @ [1.2, -1.0, 0.6, 0.8, -0.7, 0.0, 0.5, -0.4] + 0.2 * rng.standard_normal(n_rows)
    return X, np.clip(y / 2.0, -1.0, 1.0)


def measure_numbers(X: FloatArray, y: FloatArray, epsilon: float) -> tuple[float, float, float]:
    """The squared error over the variance, and the same of coefficients as :func:`measure` has it."""
    errors, found = [], []
    for seed in range(N_SEEDS):
        fit, rest = np.split(np.random.default_rng(seed).permutation(len(y)), [3 * len(y) // 4])
        model = SparseRegressor(
            epsilon=epsilon, delta=1e-6, x_bound=1.0, y_bounds=(-1.0, 1.0), n_nonzero="all", random_state=seed
        ).fit(X[fit], y[fit])
        errors.append(float(np.mean((model.predict(X[rest]) - y[rest]) ** 2) / y[rest].var()))
        found.append(model.coef_)
    coefficients = np.array(found)
    spread = float(np.median(coefficients.std(axis=0, ddof=1)))
    return float(np.mean(errors)), spread, float(np.median(np.abs(coefficients).max(axis=1)))


def main() -> None:
    """Print the tables in Markdown."""
    print("| table | strength | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for name, (X, y) in {"hospital": hospital(), "tumours": tumours()}.items():
        for strength in STRENGTHS:
            with patch.object(descent, "_DAMPING", strength):
                cells = [measure(X, y, epsilon) for epsilon in EPSILONS]
            texts = (f"{loss:.4f}, {spread:.2f}, {largest:.1f}" for loss, spread, largest in cells)
            print(f"| {name} | {strength:g} | " + " | ".join(texts) + " |", flush=True)
    print("\n| table | grows up to | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    numbers = {"categories": categories(), "collinear": collinear()}
    for name, (rows, targets) in numbers.items():
        for most in MOST_OF_NUMBERS:
            with patch.object(descent, "_MOST_OF_NUMBERS", most):
                cells = [measure_numbers(rows, targets, epsilon) for epsilon in EPSILONS]
            texts = (f"{error:.4f}, {spread:.3f}, {largest:.2f}" for error, spread, largest in cells)
            print(f"| {name} | {most:g} | " + " | ".join(texts) + " |", flush=True)


if __name__ == "__main__":
    main()
