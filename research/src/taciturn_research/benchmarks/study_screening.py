"""How much of the budget should screening get, and how often? The study behind the defaults of the screened models.

``python -m taciturn_research.benchmarks.study_screening`` fits screened Frank-Wolfe (``rule="select"``) with several
shares and schedules, and nothing else given but bounds, on the synthetic sets of the screening papers and on those of
``study_steps``, and compares loss on new records and F1 of the support with the same models without screening.
``--publish`` writes ``study_screening.md`` beside this file. Every screening takes a coefficient away, needed or not,
so more of them cost loss; and a small share is enough to tell which coefficient is the least needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from taciturn import ScreenedClassifier, ScreenedRegressor
from taciturn.core.validation import FloatArray
from taciturn.datasets import make_screening_linear
from taciturn.metrics import support_f1
from taciturn_research.benchmarks.study_steps import make
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

SHARES = (0.03, 0.1, 0.2, 0.4)
SCHEDULES = (5, 10, 20, 40, "last")
SEEDS = 3
DELTA = 1e-5
# Never reached: Frank-Wolfe without screening.
NEVER = 1_000_000

Drawn = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class Setting:
    """A class, the data of a seed, and parameters."""

    kind: Any
    draw: Callable[[int], Drawn]
    parameters: Mapping[str, Any]


def _settings() -> dict[str, Setting]:
    found = {}
    for correlation, half in ((0.0, 6.0), (0.5, 10.0)):
        draw = partial(_papers_set, correlation)
        for epsilon in (1.0, 5.0):
            name = f"papers' set, correlation {correlation:g}, eps {epsilon:g}"
            found[name] = Setting(ScreenedRegressor, draw, {"epsilon": epsilon, "y_bounds": (-half, half)})
    kinds = {"huber": ScreenedRegressor, "logistic": ScreenedClassifier}
    for (loss, kind), (n, d), epsilon in product(kinds.items(), ((3000, 100), (3000, 600), (10_000, 100)), (1.0, 4.0)):
        name = f"{loss}, {n} x {d}, eps {epsilon:g}"
        found[name] = Setting(kind, partial(_drawn, loss, n, d), {"epsilon": epsilon})
    return found


def _papers_set(correlation: float, seed: int) -> Drawn:
    return make_screening_linear(6000, 600, correlation=correlation, random_state=seed)


def _drawn(loss: str, n: int, d: int, seed: int) -> Drawn:
    return make(loss, 2 * n, d, 10.0, np.random.default_rng(seed))


SETTINGS = _settings()
CHOICES = [*product(SCHEDULES, SHARES), (NEVER, SHARES[0])]
GRID = [
    Config(name, "Screened", setting.parameters["epsilon"], setting_of(screen_at=at, screen_share=share), seed)
    for name, setting in SETTINGS.items()
    for seed in range(SEEDS)
    for at, share in CHOICES
]


@lru_cache(maxsize=1)
def _data(name: str, seed: int) -> Drawn:
    return SETTINGS[name].draw(seed)


def measure(config: Config) -> Mapping[str, float]:
    """Loss on the second half relative to that of a constant, and F1 of the support, of a fit on the first half."""
    setting = SETTINGS[config.data_set]
    X, y, w = _data(config.data_set, config.seed)
    half = len(y) // 2
    model = setting.kind(delta=DELTA, random_state=config.seed, **setting.parameters, **config.settings)
    model.fit(X[:half], y[:half])
    if setting.kind is ScreenedClassifier:
        margins = model.decision_function(X[half:])
        loss = np.mean(np.logaddexp(0.0, margins) - y[half:] * margins) / np.log(2.0)
    else:
        loss = np.mean((model.predict(X[half:]) - y[half:]) ** 2) / np.var(y[half:])
    return {"loss": float(loss), "f1": float(support_f1(w != 0, model.support_))}


def report(frame: Any) -> str:
    """What each choice costs in loss and brings in F1, and the rows behind it."""
    means = frame[["loss", "f1"]].to_numpy().reshape(len(SETTINGS), SEEDS, len(CHOICES), 2).mean(axis=1)
    plain = means[:, -1]
    rows = []
    for j, (schedule, share) in enumerate(CHOICES[:-1]):
        losses, gains = means[:, j, 0] / plain[:, 0], means[:, j, 1] - plain[:, 1]
        average = [f"x {np.exp(np.log(losses).mean()):.3f}", f"{gains.mean():+.3f}"]
        rows.append([f"{schedule}", f"{share:g}", *average, f"x {losses.max():.2f}", f"{gains.min():+.2f}"])
    shown = [j for j, (_, share) in enumerate(CHOICES) if share == SHARES[0]]
    heads = [f"every {CHOICES[j][0]}" if isinstance(CHOICES[j][0], int) else "last" for j in shown[:-1]]
    cells = [[f"{row[j, 0]:.3f} / {row[j, 1]:.2f}" for j in shown] for row in means]
    by_set = [[name, *found] for name, found in zip(SETTINGS, cells, strict=True)]
    return f"""# How much of the budget should screening get, and how often?

`python -m taciturn_research.benchmarks.study_screening`, `rule="select"`, delta = {DELTA:g}, {SEEDS} seeds a setting,
against the same models without screening. Losses are held out; their mean is geometric.

{table(["screen_at", "screen_share", "loss", "F1", "worst loss", "worst F1"], rows)}

Loss / F1 with a share of {SHARES[0]:g}:

{table(["set", *heads, "none"], by_set)}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_screening", __doc__, measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_screening as named

    sys.exit(named.STUDY.main(named.GRID))
