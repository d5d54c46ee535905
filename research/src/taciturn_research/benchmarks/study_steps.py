"""How many private Frank-Wolfe steps are best? The study behind ``n_steps="auto"``.

``python -m taciturn_research.benchmarks.study_steps`` fits models with many numbers of steps on synthetic sets that
differ in n, d, epsilon, radius and loss, finds the number with the smallest held-out loss in each setting, and fits

    T = max(least, scale * (n mu radius / log(2 d)) ** power),

mu being the GDP parameter of the budget. The form is that of the theory (optimisation error falls as radius**2 / T,
noise grows as radius sqrt(T) log(d) / (n mu), hence power 2/3); the constants are measured. The floor is for budgets
too small to learn from, where many random steps average out to nothing and few do harm. Residuals are clipped at the
half-width of the target's range; ``study_siblings`` is about clips by private medians. Results go to
``study_steps.md`` beside this file.
"""

from __future__ import annotations

import math
import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from taciturn.accounting import Budget
from taciturn.methods.frank_wolfe.estimator import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.privacy.gdp import mu_of_budget

STEPS = (10, 20, 40, 80, 160, 320, 640)
DELTA = 1e-5
SEEDS = 3
SIZES = ((1000, 30), (3000, 100), (3000, 600), (10_000, 100))
EPSILONS = (0.3, 1.0, 4.0)
RADII = (1.0, 10.0)
LOSSES = ("huber", "logistic")


def make(
    loss: str, n: int, d: int, radius: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A model with ten coefficients that fill the ball, on correlated features within [-1, 1]: X, y, coefficients."""
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    X = np.clip(X / 3.0, -1.0, 1.0)
    w = np.zeros(d)
    w[rng.choice(d, 10, replace=False)] = rng.choice([-1.0, 1.0], 10) * np.linspace(1.0, 0.2, 10)
    margins = X @ (w * radius / np.abs(w).sum())
    if loss == "logistic":
        return X, (margins + rng.logistic(0.0, 0.1 * margins.std() + 1e-12, n) > 0).astype(int), w
    scale = 1.0 / max(1.0, np.abs(margins).max())
    return X, np.clip(margins * scale + rng.normal(0.0, 0.1 * scale * margins.std(), n), -1.0, 1.0), w


def held_out_loss(
    loss: str, X: np.ndarray, y: np.ndarray, epsilon: float, radius: float, steps: int, seed: int
) -> float:
    """Loss on the second half of a model fitted privately on the first."""
    half = len(y) // 2
    given: dict[str, Any] = {"epsilon": epsilon, "radius": radius, "n_steps": steps, "random_state": seed}
    # A clip by private medians has a rule of its own: study_siblings.
    kind: Any = FrankWolfeClassifier if loss == "logistic" else partial(FrankWolfeRegressor, residual_clip=1.0)
    model = kind(delta=DELTA, **given).fit(X[:half], y[:half])
    if loss == "logistic":
        margins = model.decision_function(X[half:])
        return float(np.mean(np.logaddexp(0.0, margins) - y[half:] * margins))
    return float(np.mean((model.predict(X[half:]) - y[half:]) ** 2) / np.var(y[half:]))


def feature(n: int, d: int, epsilon: float, radius: float) -> float:
    """``n mu radius / log(2 d)``."""
    return n * mu_of_budget(Budget(epsilon, DELTA)) * radius / math.log(2.0 * d)


def main() -> int:
    """Run the study and write its table."""
    warnings.simplefilter("ignore")
    settings = list(product(LOSSES, SIZES, EPSILONS, RADII))
    rows, curves, features = [], [], []
    for loss, (n, d), epsilon, radius in track(settings, console=Console(stderr=True)):
        losses = np.zeros((SEEDS, len(STEPS)))
        for seed in range(SEEDS):
            X, y, _ = make(loss, 2 * n, d, radius, np.random.default_rng(seed))
            for j, steps in enumerate(STEPS):
                losses[seed, j] = held_out_loss(loss, X, y, epsilon, radius, steps, seed)
        mean = losses.mean(axis=0)
        curves.append(mean / mean.min())
        features.append(feature(n, d, epsilon, radius))
        rows.append((loss, n, d, epsilon, radius, STEPS[int(mean.argmin())], mean.min()))
    rule = fit_rule(np.array(curves), np.array(features))
    report(rows, np.array(curves), np.array(features), rule)
    return 0


Rule = tuple[float, float, float]


def steps_of(rule: Rule, features: np.ndarray) -> np.ndarray:
    """The number of steps of a rule (scale, power, least)."""
    scale, power, least = rule
    return np.clip(scale * features**power, least, STEPS[-1])


def regret(curves: np.ndarray, features: np.ndarray, rule: Rule) -> np.ndarray:
    """Loss at the rule's number of steps over the best loss, interpolated between measured numbers."""
    logs = np.log(STEPS)
    chosen = np.log(steps_of(rule, features))
    return np.array([np.interp(t, logs, curve) for t, curve in zip(chosen, curves, strict=True)])


def fit_rule(curves: np.ndarray, features: np.ndarray) -> Rule:
    """The rule with the smallest mean log-regret: a loss twice the best weighs as much wherever the best lies."""
    powers = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 2.0 / 3.0)
    grid = product(np.geomspace(0.0625, 64.0, 61), powers, STEPS)
    return min(grid, key=lambda rule: float(np.mean(np.log(regret(curves, features, rule)))))


def report(rows: list[tuple[Any, ...]], curves: np.ndarray, features: np.ndarray, rule: Rule) -> None:
    """Write the table, and what rules of thumb would have cost."""

    def cost(regrets: np.ndarray) -> str:
        mean = 100 * (np.exp(np.mean(np.log(regrets))) - 1)
        return f"{mean:.1f} % | {100 * (regrets.max() - 1):.0f} %"

    scale, power, least = rule
    lines = [
        "# How many Frank-Wolfe steps?",
        "",
        "`python -m taciturn_research.benchmarks.study_steps`, "
        f"delta = {DELTA:g}, {SEEDS} seeds a setting. Losses are held out; means",
        "over settings are geometric.",
        "",
        "| steps | loss above the best of each setting | worst setting |",
        "| --- | --- | --- |",
        f"| max({least:g}, {scale:.3g} (n mu radius / log 2d)^{power:.3g}) | {cost(regret(curves, features, rule))} |",
    ]
    lines += [f"| always {steps} | {cost(curves[:, j])} |" for j, steps in enumerate(STEPS)]
    lines += [
        "",
        "| loss | n | d | epsilon | radius | n mu radius / log 2d | best | rule | loss at best |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (loss, n, d, epsilon, radius, best, value), x, t in zip(rows, features, steps_of(rule, features), strict=True):
        lines.append(f"| {loss} | {n} | {d} | {epsilon:g} | {radius:g} | {x:.0f} | {best} | {t:.0f} | {value:.3f} |")
    Path(__file__).with_name("study_steps.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
