"""How many private Frank-Wolfe steps are best? The study behind ``n_steps="auto"``.

``python -m taciturn_research.benchmarks.study_steps`` fits models with many numbers of steps on synthetic sets that
differ in n, d, epsilon, radius and loss, finds the number with the smallest held-out loss in each setting, and fits

    T = max(least, scale * (n mu radius / log(2 d)) ** power),

mu being the GDP parameter of the budget. The form is that of the theory (optimisation error falls as radius**2 / T,
noise grows as radius sqrt(T) log(d) / (n mu), hence power 2/3); the constants are measured. The floor is for budgets
too small to learn from, where many random steps average out to nothing and few do harm. Residuals are clipped at the
half-width of the target's range; ``study_siblings`` is about clips by private medians. ``--publish`` writes
``study_steps.md`` beside this file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.methods.frank_wolfe.estimator import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.privacy.gdp import mu_of_budget
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

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


@lru_cache(maxsize=1)
def _data(loss: str, n: int, d: int, radius: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return make(loss, 2 * n, d, radius, np.random.default_rng(seed))


def measure(config: Config) -> Mapping[str, float]:
    """Loss on the second half of a model fitted privately on the first."""
    loss, half, given = config.data_set, config.rows or 0, config.settings | {"epsilon": config.epsilon}
    X, y, _ = _data(loss, half, given.pop("d"), given["radius"], config.seed)
    # A clip by private medians has a rule of its own: study_siblings.
    kind: Any = FrankWolfeClassifier if loss == "logistic" else partial(FrankWolfeRegressor, residual_clip=1.0)
    model = kind(delta=DELTA, random_state=config.seed, **given).fit(X[:half], y[:half])
    if loss == "logistic":
        margins = model.decision_function(X[half:])
        return {"loss": float(np.mean(np.logaddexp(0.0, margins) - y[half:] * margins))}
    return {"loss": float(np.mean((model.predict(X[half:]) - y[half:]) ** 2) / np.var(y[half:]))}


def feature(n: int, d: int, epsilon: float, radius: float) -> float:
    """``n mu radius / log(2 d)``."""
    return n * mu_of_budget(Budget(epsilon, DELTA)) * radius / math.log(2.0 * d)


SETTINGS = list(product(LOSSES, SIZES, EPSILONS, RADII))
GRID = [
    Config(loss, "Frank-Wolfe", epsilon, setting_of(d=d, radius=radius, n_steps=steps), seed, n)
    for loss, (n, d), epsilon, radius in SETTINGS
    for seed in range(SEEDS)
    for steps in STEPS
]


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


def report(frame: Any) -> str:
    """The fitted rule, what rules of thumb would have cost, and the best number of steps of each setting."""
    means = frame["loss"].to_numpy().reshape(len(SETTINGS), SEEDS, len(STEPS)).mean(axis=1)
    curves = means / means.min(axis=1, keepdims=True)
    features = np.array([feature(n, d, epsilon, radius) for _, (n, d), epsilon, radius in SETTINGS])
    rule = fit_rule(curves, features)

    def cost(regrets: np.ndarray) -> tuple[str, str]:
        mean = 100 * (np.exp(np.mean(np.log(regrets))) - 1)
        return f"{mean:.1f} %", f"{100 * (regrets.max() - 1):.0f} %"

    scale, power, least = rule
    own = f"max({least:g}, {scale:.3g} (n mu radius / log 2d)^{power:.3g})"
    rules = [[own, *cost(regret(curves, features, rule))]]
    rules += [[f"always {steps}", *cost(curves[:, j])] for j, steps in enumerate(STEPS)]
    rows = [
        [loss, f"{n}", f"{d}", f"{epsilon:g}", f"{radius:g}", f"{x:.0f}", f"{STEPS[mean.argmin()]}", f"{t:.0f}",
         f"{mean.min():.3f}"]
        for (loss, (n, d), epsilon, radius), mean, x, t in zip(
            SETTINGS, means, features, steps_of(rule, features), strict=True
        )
    ]  # fmt: skip
    heads = ["loss", "n", "d", "epsilon", "radius", "n mu radius / log 2d", "best", "rule", "loss at best"]
    runs = f"delta = {DELTA:g}, {SEEDS} seeds a setting"
    return f"""# How many Frank-Wolfe steps?

`python -m taciturn_research.benchmarks.study_steps`, {runs}. Losses are held out; means
over settings are geometric.

{table(["steps", "loss above the best of each setting", "worst setting"], rules)}

{table(heads, rows)}
"""


STUDY = Study("taciturn_research.benchmarks.study_steps", __doc__, measure, report, Path(__file__).with_suffix(".md"))

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_steps as named

    sys.exit(named.STUDY.main(named.GRID))
