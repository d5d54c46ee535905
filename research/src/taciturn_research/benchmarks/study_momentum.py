"""Momentum of descents, and how many steps large tables have: log-loss by rule, on sets of the arena and all rows.

``python -m taciturn_research.benchmarks.study_momentum --data FOLDER`` prints the tables of ``study_momentum.md``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from taciturn import SparseClassifier
from taciturn.core.validation import FloatArray
from taciturn.methods import descent
from taciturn.methods.descent import StepRule
from taciturn_research.arena.sets import GENERATED, REAL, DataSet, draw

CHOSEN_ON = ("phishing", "splice", "mushrooms", "one-hot", "w8a", "a9a")
REPORTED = ("kddcup99", "covtype", "dense logistic", "rare class")
WHOLE = ("covtype", "kddcup99")
EPSILONS = (0.5, 2.0, 8.0)
N_SEEDS = 2


def even_rule(time_: float, n_entries: float | None) -> StepRule:
    """The rule of version 0.2: at least 8 steps, and the same momentum in all directions."""
    if math.isinf(time_):
        return descent.step_rule(time_, n_entries)
    most = min(max(5e8 / (n_entries or 1.0), 8), descent.MOST_STEPS)
    n_steps = round(min(max(math.ceil(time_), 8), most))
    return StepRule(n_steps, min(time_ / n_steps, 1.0), min(max(1.0 - n_steps / time_, 0.0), 0.9))


@contextmanager
def even_momentum() -> Iterator[None]:
    """Fits as in version 0.2."""

    def even(rule: StepRule, curvatures: FloatArray) -> FloatArray:
        return np.full(curvatures.shape, rule.momentum)

    with (
        patch("taciturn.methods.sparse.run.step_rule", even_rule),
        patch.object(StepRule, "momentum_along", even),
    ):
        yield


def measure(data_set: DataSet, folder: Path, epsilon: float, *, whole: bool, even: bool) -> tuple[float, float]:
    """The geometric mean of log-losses on rows that were not fitted to, and processor seconds of all fits."""
    logarithms, seconds = [], 0.0
    for seed in range(N_SEEDS):
        problem = draw(data_set, seed, None if whole else data_set.rows, folder)
        model = SparseClassifier(epsilon=epsilon, x_bound=1.0, n_nonzero="all", classes=(0, 1), random_state=seed)
        started = time.process_time()
        if even:
            with even_momentum():
                model.fit(problem.X, problem.y)
        else:
            model.fit(problem.X, problem.y)
        seconds += time.process_time() - started
        logarithms.append(math.log(log_loss(problem.y_test, model.predict_proba(problem.X_test))))
    return math.exp(float(np.mean(logarithms))), seconds


def without_privacy(data_set: DataSet, folder: Path) -> float:
    """The log-loss of scikit-learn's logistic regression, for the first seed."""
    problem = draw(data_set, 0, None, folder)
    model = LogisticRegression(C=1e4, max_iter=1000).fit(problem.X, problem.y)
    return float(log_loss(problem.y_test, model.predict_proba(problem.X_test)))


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description="Momentum of descents by direction, against the same in all of them.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    folder: Path = parser.parse_args().data
    sets = {each.name: each for each in (*REAL, *GENERATED)}
    print("| set | epsilon | even momentum | by direction | ratio | processor time |\n|---|---|---|---|---|---|")
    for name, whole in (*((name, False) for name in (*CHOSEN_ON, *REPORTED)), *((name, True) for name in WHOLE)):
        for epsilon in EPSILONS:
            before, slow = measure(sets[name], folder, epsilon, whole=whole, even=True)
            now, quick = measure(sets[name], folder, epsilon, whole=whole, even=False)
            label = f"{name}, all rows" if whole else name
            cells = (label, f"{epsilon:g}", f"{before:.5f}", f"{now:.5f}", f"{now / before:.3f}", f"{quick / slow:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)
    for name in WHOLE:
        print(f"\n{name}, all rows, without privacy: {without_privacy(sets[name], folder):.5f}", flush=True)


if __name__ == "__main__":
    main()
