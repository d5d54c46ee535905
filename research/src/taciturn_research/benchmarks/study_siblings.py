"""What the automatic settings of the Frank-Wolfe family and of hard thresholding do on the papers' sets.

``python -m taciturn_research.benchmarks.study_siblings`` fits every class with nothing given but bounds and budget (and
k, where a class takes one) to the sets of the papers, also with the weights of the screening papers at scattered
places, and measures held-out errors relative to a constant and F1 of the columns. Beside them stand the settings that
were automatic before: residuals clipped at the half-width of ``y_bounds`` in a ball of ten of them, ten steps between
screenings with a tenth of the budget, and Gaussian noise on all columns. Then come the constants behind the settings.
``--publish`` writes ``study_siblings.md`` beside this file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from taciturn import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    HardThresholdClassifier,
    HardThresholdRegressor,
    ScreenedClassifier,
    ScreenedRegressor,
    SparsifiedClassifier,
    SparsifiedRegressor,
)
from taciturn.datasets import (
    make_dpsis_linear,
    make_ight_linear,
    make_ight_logistic,
    make_screening_linear,
    make_sparsifier_logistic,
)
from taciturn.methods.hard_threshold import plan as planning
from taciturn.methods.hard_threshold import run as fitting
from taciturn.metrics import support_f1
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-6
SEEDS = 5
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
# The seeds of a set follow each other, setting after setting.
remembered = lru_cache(maxsize=SEEDS)


@dataclass(frozen=True, slots=True)
class PaperSet:
    """A set of a paper: how it is drawn, how many records are fitted, what is public, and how many columns matter."""

    draw: Callable[[int], Drawn]
    n_fitted: int
    k: int
    half: float | None = None
    x_bound: float = 1.0

    @property
    def public(self) -> dict[str, Any]:
        """The bounds, or the classes."""
        target: dict[str, Any] = {"classes": (0, 1)} if self.half is None else {"y_bounds": (-self.half, self.half)}
        return {"delta": DELTA, "x_bound": self.x_bound, **target}


@remembered
def screening(seed: int, correlation: float = 0.0, scattered: bool = False, labels: bool = False) -> Drawn:
    """The screening papers' set, with its weights as they are or at random places and in random order."""
    X, y, coef = make_screening_linear(5000, correlation=correlation, random_state=seed)
    if scattered:
        rng = np.random.default_rng((seed, 77))
        weights, coef = rng.permutation(coef[coef != 0.0]), np.zeros(coef.size)
        coef[rng.choice(coef.size, weights.size, replace=False)] = weights
        y = X @ coef
    return X, (y > 0.0).astype(np.int64) if labels else y, coef


SETS = {
    "screening": PaperSet(screening, 3000, 70, 6.0),
    "screening, correlated": PaperSet(lambda s: screening(s, 0.5), 3000, 70, 10.0),
    "screening, scattered": PaperSet(lambda s: screening(s, 0.0, True), 3000, 70, 6.0),
    "screening, correlated, scattered": PaperSet(lambda s: screening(s, 0.5, True), 3000, 70, 10.0),
    "IGHT linear": PaperSet(remembered(lambda s: make_ight_linear(3000, random_state=s)), 1000, 10, 4.0, 2.0),
    "DP-SIS": PaperSet(remembered(lambda s: make_dpsis_linear(200, random_state=s)), 100, 5, 1.0),
    "screening logistic": PaperSet(lambda s: screening(s, labels=True), 3000, 70),
    "screening logistic, scattered": PaperSet(lambda s: screening(s, 0.0, True, True), 3000, 70),
    "Sparsifier logistic": PaperSet(remembered(lambda s: make_sparsifier_logistic(12_000, random_state=s)), 10_000, 8),
    "IGHT logistic": PaperSet(remembered(lambda s: make_ight_logistic(3000, random_state=s)), 1000, 10, None, 2.0),
}
KINDS: tuple[tuple[type, type, bool], ...] = (
    (FrankWolfeRegressor, FrankWolfeClassifier, False),
    (SparsifiedRegressor, SparsifiedClassifier, True),
    (ScreenedRegressor, ScreenedClassifier, False),
    (HardThresholdRegressor, HardThresholdClassifier, True),
)


EVERY_KIND = {kind.__name__: kind for regressor, classifier, _ in KINDS for kind in (regressor, classifier)}
CONSTANTS = (
    ("as it is, rounds:", "plan", "_MOST_ROUNDS", (7,)),
    ("rounds:", "plan", "_MOST_ROUNDS", (1, 3, 5, 10)),
    ("columns that join per column kept:", "plan", "_CANDIDATES_PER_COLUMN", (1.2, 2.0)),
    ("share for choices:", "plan", "_CHOICE_SHARE", (0.4, 0.75)),
    ("share of gradients between rounds:", "plan", "_BETWEEN_SHARE", (0.25, 0.75)),
    ("damping of steps:", "run", "_DAMPING", (0.5, 1.1)),
    ("clip of entries:", "run", "_ENTRY_SHARE", (0.2, 0.8, 1.5)),
)
BALLS = (
    (0.35, 40.0, 120), (0.35, 40.0, 60), (0.35, 40.0, 240), (0.35, 20.0, 120), (0.35, 80.0, 120), (0.1, 40.0, 120),
    (1.0, 40.0, 120), (3.0, 40.0, 120), (0.35, 12.0, 40), (0.35, 6.0, 25), (0.35, 2.0, 20),
)  # fmt: skip
BALL_SETS = ("screening, scattered", "screening, correlated, scattered", "IGHT linear")
PURSUIT_SETS = (*BALL_SETS, "Sparsifier logistic")


def measure(config: Config) -> Mapping[str, float]:
    """The error on new records, over that of a constant, and F1."""
    problem, given = SETS[config.data_set], config.settings
    # A constant of a module, and its value.
    owner, constant, value = given.pop("constant", (None, None, None))
    X, y, coef = problem.draw(config.seed)
    n = problem.n_fitted
    model = EVERY_KIND[config.method](epsilon=config.epsilon, random_state=config.seed, **given, **problem.public)
    with patch.object({"plan": planning, "run": fitting}[owner], constant, value) if owner else nullcontext():
        model.fit(X[:n], y[:n])
    predicted = model.predict(X[n:])
    if problem.half is None:
        error = np.mean(predicted != y[n:]) / min(y[n:].mean(), 1.0 - y[n:].mean())
    else:
        target = np.clip(y[n:], -problem.half, problem.half)
        error = np.mean((predicted - target) ** 2) / target.var()
    return {"error": float(error), "f1": float(support_f1(coef != 0.0, model.support_))}


def before(kind: type, problem: PaperSet) -> dict[str, Any]:
    """The parameters that make what was automatic before; for a classifier in a ball nothing has changed."""
    if kind in (HardThresholdRegressor, HardThresholdClassifier):
        return {"mechanism": "gaussian"}
    given: dict[str, Any] = {} if problem.half is None else {"residual_clip": problem.half}
    return given | {"screen_at": 10, "screen_share": 0.1} if kind in (ScreenedRegressor, ScreenedClassifier) else given


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: the name of its row, and the run of each seed."""

    row: tuple[str, ...]
    configs: tuple[Config, ...]


def _cell(row: tuple[str, ...], name: str, kind: type, epsilon: float, **given: Any) -> Cell:
    setting = setting_of(**given)
    return Cell(row, tuple(Config(name, kind.__name__, epsilon, setting, seed) for seed in range(SEEDS)))


def compared() -> Iterator[Cell]:
    """All classes and sets, before and now."""
    for (name, problem), (regressor, classifier, counts) in product(SETS.items(), KINDS):
        kind = classifier if problem.half is None else regressor
        given = {"n_nonzero": problem.k} if counts else {}
        for epsilon, own in product(EPSILONS, (before(kind, problem), {})):
            yield _cell((name, f"`{kind.__name__}`"), name, kind, epsilon, **given, **own)


def balls() -> Iterator[Cell]:
    """Clips, radii and steps of Frank-Wolfe, given in units of the exact median distance of the target."""
    medians = {
        name: float(np.mean([float(np.median(np.abs(SETS[name].draw(seed)[1]))) for seed in range(SEEDS)]))
        for name in BALL_SETS
    }
    for (clip, radius, steps), name, epsilon in product(BALLS, BALL_SETS, (1.0, 5.0)):
        ball = {"residual_clip": clip * medians[name], "radius": radius * medians[name] / SETS[name].x_bound}
        row = (f"{clip:g}", f"{radius:g}", f"{steps}")
        yield _cell(row, name, FrankWolfeRegressor, epsilon, n_steps=steps, fit_intercept=False, **ball)


def pursuits() -> Iterator[Cell]:
    """Pursuit at epsilon 1 with one constant changed at a time."""
    for words, owner, constant, values in CONSTANTS:
        for value, name in product(values, PURSUIT_SETS):
            kind = HardThresholdClassifier if SETS[name].half is None else HardThresholdRegressor
            given = {"n_nonzero": SETS[name].k, "constant": (owner, constant, value)}
            yield _cell((f"{words} {value:g}",), name, kind, 1.0, **given)


def coins() -> str:
    """The relative error of a coin on the sets with labels."""
    told = []
    for name, problem in SETS.items():
        if problem.half is None:
            shares = [float(problem.draw(seed)[1][problem.n_fitted :].mean()) for seed in range(SEEDS)]
            told.append(f"{np.mean([0.5 / min(share, 1.0 - share) for share in shares]):.3f} ({name})")
    return ", ".join(told)


TABLES: dict[Callable[[], Iterator[Cell]], list[str]] = {
    compared: ["set", "class", *(f"{when}, {epsilon:g}" for epsilon in EPSILONS for when in ("before", "now"))],
    balls: ["clip", "radius", "steps", *(f"{name}, {epsilon:g}" for name in BALL_SETS for epsilon in (1.0, 5.0))],
    pursuits: ["constant", *PURSUIT_SETS],
}


def grid() -> list[Config]:
    """The runs of all cells, table after table."""
    return [config for cells in TABLES for cell in cells() for config in cell.configs]


def report(frame: Any) -> str:
    """The three tables, from the runs in the order of the grid."""
    means = iter(frame[["error", "f1"]].to_numpy().reshape(-1, SEEDS, 2).mean(axis=1))
    tables = []
    for cells, heads in TABLES.items():
        rows = groupby(cells(), key=lambda cell: cell.row)
        lines = [[*row, *("{:.3f} / {:.2f}".format(*next(means)) for _ in found)] for row, found in rows]
        tables.append(table(heads, lines))
    runs = f"delta = {DELTA:g}, zero-out, {SEEDS} seeds"
    return f"""# Automatic settings of Frank-Wolfe and hard thresholding

`python -m taciturn_research.benchmarks.study_siblings`, {runs}. Each cell is the error on
new records relative to a constant (squared error over the variance of the target; misclassification over the
share of the smaller class) / F1 of the columns. Nothing is given but `x_bound`, `y_bounds` or `classes`, the
budget, and k where a class keeps k columns. Relative errors of a coin, for which the classes are about even:
{coins()}.

## Before and now, at epsilon 0.5, 1 and 5

{tables[0]}

## Frank-Wolfe: clip and radius in medians of |y|, and steps, at epsilon 1 and 5

{tables[1]}

## Pursuit, at epsilon 1

{tables[2]}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_siblings", __doc__, measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_siblings as named

    sys.exit(named.STUDY.main(named.grid()))
