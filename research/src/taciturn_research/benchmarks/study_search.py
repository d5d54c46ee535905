"""What is a counted search worth? Automatic settings, a private search, and the best setting found without paying.

``python -m taciturn_research.benchmarks.study_search`` fits the default model on data sets that need no files: once
with its automatic settings, once by ``PrivateRandomizedSearch`` over four numbers of features with the same budget, and
once with each of the four, of which the best on the test records is what a search could find at most. ``--seeds 1``
runs a fifth of it. ``--publish`` writes ``study_search.md`` beside this file.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from taciturn import PrivateRandomizedSearch, SparseClassifier, SparseRegressor
from taciturn_research.arena.sets import GENERATED, REAL, draw
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

BUNDLED = ("diabetes", "breast cancer", "digits")
SETS = {each.name: each for each in (*GENERATED, *REAL) if each in GENERATED or each.name in BUNDLED}
SIZES: tuple[Any, ...] = (3, 10, 30, "all")
EPSILONS = (1.0, 3.0)
ROWS, SEEDS, MEAN_TRIALS = 5000, 5, 8.0
METHODS = ("automatic", "search", *(f"n_nonzero {size}" for size in SIZES))
GRID = [
    Config(name, method, epsilon, setting_of(), seed, ROWS)
    for name in SETS
    for epsilon in EPSILONS
    for seed in range(SEEDS)
    for method in METHODS
]


def measure(config: Config) -> Mapping[str, float]:
    """The error on test records: a share of wrong labels, or a mean squared error over the variance."""
    data_set = SETS[config.data_set]
    problem = draw(data_set, config.seed, ROWS, None)
    labelled = data_set.task == "classification"
    epsilon = config.epsilon or 0.0
    facts: dict[str, Any] = {"x_bound": 1.0, "epsilon": epsilon, "random_state": config.seed}
    facts |= {"classes": tuple(np.unique(problem.y).tolist())} if labelled else {"y_bounds": (-1.0, 1.0)}
    model: Any = (SparseClassifier if labelled else SparseRegressor)(**facts)
    width = problem.X.shape[1]
    if config.method == "search":
        sizes = [size for size in SIZES if size == "all" or size < width]
        model = PrivateRandomizedSearch(
            model, {"n_nonzero": sizes}, epsilon=epsilon, mean_trials=MEAN_TRIALS, random_state=config.seed
        )
    elif config.method != "automatic":
        size = SIZES[METHODS.index(config.method) - 2]
        model.set_params(n_nonzero=size if size == "all" else min(size, width))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(problem.X, problem.y).predict(problem.X_test)
    if labelled:
        return {"error": float(np.mean(found != problem.y_test))}
    return {"error": float(np.mean((found - problem.y_test) ** 2) / np.var(problem.y_test))}


def report(frame: Any) -> str:
    """Mean errors, and in how many cells the automatic settings are at least as good as the search."""
    means = frame.groupby(["data_set", "epsilon", "method"])["error"].mean().unstack()
    rows, better = [], 0
    for (name, epsilon), errors in means.iterrows():
        best = min(errors[f"n_nonzero {size}"] for size in SIZES)
        better += bool(errors["automatic"] <= errors["search"])
        numbers = (errors["automatic"], errors["search"], best)
        rows.append([name, f"{epsilon:g}", *(f"{number:.4f}" for number in numbers)])
    heads = ["data set", "epsilon", "automatic settings", "private search", "best setting, not paid for"]
    return f"""# What is a counted search worth?

`python -m taciturn_research.benchmarks.study_search`: mean error on test records, {frame["seed"].nunique()}
of {SEEDS} seeds, at most {ROWS:,}
training records, delta = 1e-06. The search draws `n_nonzero` from {", ".join(map(repr, SIZES))}, {MEAN_TRIALS:g} trials
on average, and scores on a quarter of the records. The last column chooses among the same settings by the test records.

The automatic settings are at least as good as the search in {better} of {len(rows)} cells.

{table(heads, rows)}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_search", __doc__, measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_search as named

    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options, others = parser.parse_known_args()
    sys.exit(named.STUDY.main([config for config in named.GRID if config.seed < options.seeds], others))
