"""What is a counted search worth? Automatic settings, a private search, and the best setting found without paying.

``python -m taciturn_research.benchmarks.study_search`` fits the default model on data sets that need no files: once
with its automatic settings, once by ``PrivateRandomizedSearch`` over four numbers of features with the same budget, and
once with each of the four, of which the best on the test records is what a search could find at most. ``--seeds 1``
runs a tenth of it. ``--publish`` writes ``study_search.md`` beside this file.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from taciturn import PrivateRandomizedSearch, SparseClassifier, SparseRegressor
from taciturn_research.arena.sets import GENERATED, REAL, draw
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

BUNDLED = ("diabetes", "breast cancer", "digits")
SETS = {each.name: each for each in (*GENERATED, *REAL) if each in GENERATED or each.name in BUNDLED}
SIZES: tuple[Any, ...] = (3, 10, 30, "all")
EPSILONS = (1.0, 3.0)
ROWS, SEEDS, MEAN_TRIALS = 5000, 10, 8.0
METHODS = ("automatic", "search", *(f"n_nonzero {size}" for size in SIZES))
GRID = [
    Config(name, method, epsilon, setting_of(), seed, ROWS)
    for name in SETS
    for epsilon in EPSILONS
    for seed in range(SEEDS)
    for method in METHODS
]


def measure(config: Config) -> Mapping[str, float]:
    """The error on test records: wrong labels, 1 - AUC of a rare class, or a mean squared error over the variance."""
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
        model.fit(problem.X, problem.y)
    if data_set.error == "auc":
        return {"error": 1.0 - float(roc_auc_score(problem.y_test, model.decision_function(problem.X_test)))}
    found = model.predict(problem.X_test)
    if labelled:
        return {"error": float(np.mean(found != problem.y_test))}
    return {"error": float(np.mean((found - problem.y_test) ** 2) / np.var(problem.y_test))}


def _with_error(differences: Any) -> str:
    """The mean of paired differences, and its standard error over seeds."""
    return f"{differences.mean():+.3f} ± {differences.sem():.3f}"


def report(frame: Any) -> str:
    """Mean errors, what the search and the best setting change, and where the change is beyond two standard errors."""
    runs = frame.pivot_table(index=["data_set", "epsilon", "seed"], columns="method", values="error", sort=False)
    rows, worse, better, gained = [], 0, 0, 0
    for (name, epsilon), errors in runs.groupby(level=[0, 1], sort=False):
        automatic = errors["automatic"]
        best = min((f"n_nonzero {size}" for size in SIZES), key=lambda method: errors[method].mean())
        searched, found = errors["search"] - automatic, errors[best] - automatic
        worse += bool(searched.mean() > 2.0 * searched.sem())
        better += bool(searched.mean() < -2.0 * searched.sem())
        gained += bool(found.mean() < -2.0 * found.sem())
        size = best.removeprefix("n_nonzero ")
        rows.append([name, f"{epsilon:g}", f"{automatic.mean():.3f}", _with_error(searched), _with_error(found), size])
    heads = [
        "data set", "epsilon", "error, automatic settings", "private search", "best setting, not paid for",
        "its `n_nonzero`",
    ]  # fmt: skip
    return f"""# What is a counted search worth?

`python -m taciturn_research.benchmarks.study_search`: errors on test records, {frame["seed"].nunique()} seeds, at most
{ROWS:,} training records, delta = 1e-06. Errors are shares of wrong labels, 1 - AUC of the rare class, and squared
errors over the variance of the target. The search draws `n_nonzero` from {", ".join(map(repr, SIZES))},
{MEAN_TRIALS:g} trials on average, and scores on a quarter of the records. The best setting is the one of the same four
with the smallest mean error on the test records, which nobody could choose without paying. Both are shown as
differences from the automatic settings, with their standard error over seeds: positive ones are losses.

Of {len(rows)} cells, beyond two standard errors:

* the search is worse than the automatic settings in {worse} and better in {better};
* the best setting is better than the automatic settings in {gained}, which is what a search without a price would gain.

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
