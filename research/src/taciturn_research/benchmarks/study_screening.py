"""How much of the budget should screening get, and how often? The study behind the defaults of the screened models.

``python -m taciturn_research.benchmarks.study_screening`` fits screened Frank-Wolfe (``rule="select"``) with several
shares and schedules, and nothing else given but bounds, on the synthetic sets of the screening papers and on those of
``study_steps``, and compares loss on new records and F1 of the support with the same models without screening. Results
go to ``study_screening.md`` beside this file. Every screening takes a coefficient away, needed or not, so more of them
cost loss; and a small share is enough to tell which coefficient is the least needed.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from taciturn import ScreenedClassifier, ScreenedRegressor
from taciturn.core.validation import FloatArray
from taciturn.datasets import make_screening_linear
from taciturn.metrics import support_f1
from taciturn_research.benchmarks.study_steps import make

SHARES = (0.03, 0.1, 0.2, 0.4)
SCHEDULES = (5, 10, 20, 40, "last")
SEEDS = 3
DELTA = 1e-5
# Never reached: Frank-Wolfe without screening.
NEVER = 1_000_000

Drawn = tuple[FloatArray, FloatArray, FloatArray]


def settings() -> list[tuple[str, Any, Any, dict[str, Any]]]:
    """Name, class, data of a seed, parameters."""
    listed: list[tuple[str, Any, Any, dict[str, Any]]] = []
    for correlation in (0.0, 0.5):
        drawn = partial(_papers_set, correlation)
        half = 10.0 if correlation else 6.0
        bounds = {"y_bounds": (-half, half)}
        for epsilon in (1.0, 5.0):
            name = f"papers' set, correlation {correlation:g}, eps {epsilon:g}"
            listed.append((name, ScreenedRegressor, drawn, {"epsilon": epsilon, **bounds}))
    kinds = {"huber": ScreenedRegressor, "logistic": ScreenedClassifier}
    for (loss, kind), (n, d), epsilon in product(kinds.items(), ((3000, 100), (3000, 600), (10_000, 100)), (1.0, 4.0)):
        name = f"{loss}, {n} x {d}, eps {epsilon:g}"
        listed.append((name, kind, partial(_drawn, loss, n, d), {"epsilon": epsilon}))
    return listed


def _papers_set(correlation: float, seed: int) -> Drawn:
    return make_screening_linear(6000, 600, correlation=correlation, random_state=seed)


def _drawn(loss: str, n: int, d: int, seed: int) -> Drawn:
    return make(loss, 2 * n, d, 10.0, np.random.default_rng(seed))


def measure(kind: Any, data: tuple[np.ndarray, np.ndarray, np.ndarray], parameters: dict[str, Any]) -> np.ndarray:
    """Loss on the second half relative to that of a constant, and F1 of the support, of a fit on the first half."""
    X, y, w = data
    half = len(y) // 2
    model = kind(delta=DELTA, **parameters).fit(X[:half], y[:half])
    if kind is ScreenedClassifier:
        margins = model.decision_function(X[half:])
        loss = np.mean(np.logaddexp(0.0, margins) - y[half:] * margins) / np.log(2.0)
    else:
        loss = np.mean((model.predict(X[half:]) - y[half:]) ** 2) / np.var(y[half:])
    return np.array([loss, support_f1(w != 0, model.support_)])


def main() -> int:
    """Run the study and write its tables."""
    warnings.simplefilter("ignore")
    choices = [*product(SCHEDULES, SHARES), (NEVER, SHARES[0])]
    table = np.zeros((len(settings()), len(choices), 2))
    for i, (_, kind, drawn, parameters) in enumerate(track(settings(), console=Console(stderr=True))):
        for seed in range(SEEDS):
            data = drawn(seed)
            for j, (schedule, share) in enumerate(choices):
                more = {"screen_at": schedule, "screen_share": share, "random_state": seed}
                table[i, j] += measure(kind, data, parameters | more) / SEEDS
    report([name for name, *_ in settings()], choices, table)
    return 0


def report(names: list[str], choices: list[tuple[Any, float]], table: np.ndarray) -> None:
    """Write what each choice costs in loss and brings in F1, and the rows behind it."""
    plain = table[:, -1]
    lines = [
        "# How much of the budget should screening get, and how often?",
        "",
        "`python -m taciturn_research.benchmarks.study_screening`, "
        f'`rule="select"`, delta = {DELTA:g}, {SEEDS} seeds a setting,',
        "against the same models without screening. Losses are held out; their mean is geometric.",
        "",
        "| screen_at | screen_share | loss | F1 | worst loss | worst F1 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for j, (schedule, share) in enumerate(choices[:-1]):
        losses, gains = table[:, j, 0] / plain[:, 0], table[:, j, 1] - plain[:, 1]
        lines.append(
            f"| {schedule} | {share:g} | x {np.exp(np.log(losses).mean()):.3f} | {gains.mean():+.3f} "
            f"| x {losses.max():.2f} | {gains.min():+.2f} |"
        )
    shown = [j for j, (_, share) in enumerate(choices) if share == SHARES[0]]
    heads = [f"every {choices[j][0]}" if isinstance(choices[j][0], int) else "last" for j in shown[:-1]]
    lines += [
        "",
        f"Loss / F1 with a share of {SHARES[0]:g}:",
        "",
        "| set | " + " | ".join(heads) + " | none |",
        "| --- |" + " --- |" * len(shown),
    ]
    for name, row in zip(names, table, strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{row[j, 0]:.3f} / {row[j, 1]:.2f}" for j in shown) + " |")
    Path(__file__).with_name("study_screening.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
