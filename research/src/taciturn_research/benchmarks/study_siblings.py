"""What the automatic settings of the Frank-Wolfe family and of hard thresholding do on the papers' sets.

``python -m taciturn_research.benchmarks.study_siblings`` fits every class with nothing given but bounds and budget (and
k, where a class takes one) to the sets of the papers, also with the weights of the screening papers at scattered
places, and measures held-out errors relative to a constant and F1 of the columns. Beside them stand the settings that
were automatic before: residuals clipped at the half-width of ``y_bounds`` in a ball of ten of them, ten steps between
screenings with a tenth of the budget, and Gaussian noise on all columns. Then come the constants behind the settings.
Results go to ``study_siblings.md`` beside this file.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import track

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

EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-6
SEEDS = 5
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


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


@cache
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
    "IGHT linear": PaperSet(cache(lambda s: make_ight_linear(3000, random_state=s)), 1000, 10, 4.0, 2.0),
    "DP-SIS": PaperSet(cache(lambda s: make_dpsis_linear(200, random_state=s)), 100, 5, 1.0),
    "screening logistic": PaperSet(lambda s: screening(s, labels=True), 3000, 70),
    "screening logistic, scattered": PaperSet(lambda s: screening(s, 0.0, True, True), 3000, 70),
    "Sparsifier logistic": PaperSet(cache(lambda s: make_sparsifier_logistic(12_000, random_state=s)), 10_000, 8),
    "IGHT logistic": PaperSet(cache(lambda s: make_ight_logistic(3000, random_state=s)), 1000, 10, None, 2.0),
}
KINDS: tuple[tuple[type, type, bool], ...] = (
    (FrankWolfeRegressor, FrankWolfeClassifier, False),
    (SparsifiedRegressor, SparsifiedClassifier, True),
    (ScreenedRegressor, ScreenedClassifier, False),
    (HardThresholdRegressor, HardThresholdClassifier, True),
)


def measure(problem: PaperSet, make: Callable[..., Any], seeds: int = SEEDS) -> np.ndarray:
    """Mean over seeds of the error on new records, over that of a constant, and of F1."""
    found = []
    for seed in range(seeds):
        X, y, coef = problem.draw(seed)
        n = problem.n_fitted
        model = make(random_state=seed, **problem.public).fit(X[:n], y[:n])
        predicted = model.predict(X[n:])
        if problem.half is None:
            error = np.mean(predicted != y[n:]) / min(y[n:].mean(), 1.0 - y[n:].mean())
        else:
            target = np.clip(y[n:], -problem.half, problem.half)
            error = np.mean((predicted - target) ** 2) / target.var()
        found.append((error, support_f1(coef != 0.0, model.support_)))
    means: np.ndarray = np.mean(found, axis=0)
    return means


def before(kind: type, problem: PaperSet) -> dict[str, Any]:
    """The parameters that make what was automatic before; for a classifier in a ball nothing has changed."""
    if kind in (HardThresholdRegressor, HardThresholdClassifier):
        return {"mechanism": "gaussian"}
    given: dict[str, Any] = {} if problem.half is None else {"residual_clip": problem.half}
    return given | {"screen_at": 10, "screen_share": 0.1} if kind in (ScreenedRegressor, ScreenedClassifier) else given


def compared() -> list[str]:
    """The table of all classes and sets."""
    lines = [
        "| set | class | " + " | ".join(f"before, {e:g} | now, {e:g}" for e in EPSILONS) + " |",
        "| --- " * (2 + 2 * len(EPSILONS)) + "|",
    ]
    cases = [(name, problem, kinds) for name, problem in SETS.items() for kinds in KINDS]
    for name, problem, (regressor, classifier, counts) in track(cases, console=Console(stderr=True)):
        kind = classifier if problem.half is None else regressor
        given = {"n_nonzero": problem.k} if counts else {}
        cells = []
        for epsilon in EPSILONS:
            for own in (before(kind, problem), {}):

                def make(**public: Any) -> Any:
                    return kind(epsilon=epsilon, **given, **own, **public)  # noqa: B023 (called at once)

                cells.append("{:.3f} / {:.2f}".format(*measure(problem, make)))
        lines.append(f"| {name} | `{kind.__name__}` | " + " | ".join(cells) + " |")
    return lines


def coins() -> str:
    """The relative error of a coin on the sets with labels."""
    told = []
    for name, problem in SETS.items():
        if problem.half is None:
            shares = [float(problem.draw(seed)[1][problem.n_fitted :].mean()) for seed in range(SEEDS)]
            told.append(f"{np.mean([0.5 / min(share, 1.0 - share) for share in shares]):.3f} ({name})")
    return ", ".join(told)


def balls() -> list[str]:
    """Clips, radii and steps of Frank-Wolfe, given in units of the exact median distance of the target."""
    names = ("screening, scattered", "screening, correlated, scattered", "IGHT linear")
    header = [f"{name}, {epsilon:g}" for name in names for epsilon in (1.0, 5.0)]
    lines = ["| clip | radius | steps | " + " | ".join(header) + " |", "| --- " * (3 + len(header)) + "|"]
    for clip, radius, steps in (
        (0.35, 40.0, 120), (0.35, 40.0, 60), (0.35, 40.0, 240), (0.35, 20.0, 120), (0.35, 80.0, 120), (0.1, 40.0, 120),
        (1.0, 40.0, 120), (3.0, 40.0, 120), (0.35, 12.0, 40), (0.35, 6.0, 25), (0.35, 2.0, 20),
    ):  # fmt: skip
        cells = []
        for name in names:
            problem = SETS[name]
            medians = [float(np.median(np.abs(problem.draw(seed)[1]))) for seed in range(SEEDS)]
            median = float(np.mean(medians))
            for epsilon in (1.0, 5.0):

                def make(**public: Any) -> Any:
                    given = {"residual_clip": clip * median, "radius": radius * median / public["x_bound"]}  # noqa: B023
                    return FrankWolfeRegressor(
                        epsilon=epsilon, n_steps=steps, fit_intercept=False, **given, **public  # noqa: B023
                    )  # fmt: skip

                cells.append("{:.3f} / {:.2f}".format(*measure(problem, make)))
        lines.append(f"| {clip:g} | {radius:g} | {steps} | " + " | ".join(cells) + " |")
    return lines


def pursuits() -> list[str]:
    """Pursuit at epsilon 1 with one constant changed at a time."""
    names = ("screening, scattered", "screening, correlated, scattered", "IGHT linear", "Sparsifier logistic")
    lines = ["| constant | " + " | ".join(names) + " |", "| --- " * (1 + len(names)) + "|"]
    variants: list[tuple[str, Any, str, float]] = [
        (f"{words} {value:g}", owner, constant, value)
        for words, owner, constant, values in (
            ("as it is, rounds:", planning, "_MOST_ROUNDS", (7,)),
            ("rounds:", planning, "_MOST_ROUNDS", (1, 3, 5, 10)),
            ("columns that join per column kept:", planning, "_CANDIDATES_PER_COLUMN", (1.2, 2.0)),
            ("share for choices:", planning, "_CHOICE_SHARE", (0.4, 0.75)),
            ("share of gradients between rounds:", planning, "_BETWEEN_SHARE", (0.25, 0.75)),
            ("damping of steps:", fitting, "_DAMPING", (0.5, 1.1)),
            ("clip of entries:", fitting, "_ENTRY_SHARE", (0.2, 0.8, 1.5)),
        )
        for value in values
    ]
    for words, owner, constant, value in variants:
        cells = []
        for name in names:
            problem = SETS[name]
            kind = HardThresholdRegressor if problem.half is not None else HardThresholdClassifier
            with ExitStack() as stack:
                stack.enter_context(patch.object(owner, constant, value))
                error, score = measure(problem, lambda k=problem.k, kind=kind, **public: kind(n_nonzero=k, **public))
            cells.append(f"{error:.3f} / {score:.2f}")
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    """Run the study and write its tables."""
    warnings.simplefilter("ignore")
    lines = [
        "# Automatic settings of Frank-Wolfe and hard thresholding",
        "",
        "`python -m taciturn_research.benchmarks.study_siblings`, "
        f"delta = {DELTA:g}, zero-out, {SEEDS} seeds. Each cell is the error on",
        "new records relative to a constant (squared error over the variance of the target; misclassification over the",
        "share of the smaller class) / F1 of the columns. Nothing is given but `x_bound`, `y_bounds` or `classes`, the",
        "budget, and k where a class keeps k columns. Relative errors of a coin, for which the classes are about even:",
        f"{coins()}.",
        "",
        "## Before and now, at epsilon 0.5, 1 and 5",
        "",
        *compared(),
        "",
        "## Frank-Wolfe: clip and radius in medians of |y|, and steps, at epsilon 1 and 5",
        "",
        *balls(),
        "",
        "## Pursuit, at epsilon 1",
        "",
        *pursuits(),
    ]
    Path(__file__).with_name("study_siblings.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
