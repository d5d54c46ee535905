"""How should two stages share a budget? The study behind ``selection_share`` and ``regularisation="auto"``.

``python -m taciturn_research.benchmarks.study_two_stage`` runs two-stage models on synthetic sets that differ in n,
epsilon and loss, with the selection's share of the budget and the strength of the regularisation varied around what the
plan chooses, and measures held-out losses; ``--publish`` writes ``study_two_stage.md`` beside this file. Votes do not
depend on the budget and are counted once per data set.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.objective.plan import plan_two_stage
from taciturn.methods.objective.run import bounded_rows, release_minimiser
from taciturn.methods.schedule import Problem
from taciturn.methods.selection.run import blocks_by_slot, count_votes, select_top_k
from taciturn_research.benchmarks.study_steps import make
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

SHARES = (0.3, 0.5, 0.7, 0.8, 0.9)
STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
SEEDS = 5
D, K = 100, 10
SIZES = (3000, 10_000, 30_000)
EPSILONS = (0.5, 1.0, 4.0)
LOSSES = ("huber", "logistic")
RADIUS = 10.0


SETTINGS = list(product(LOSSES, SIZES, EPSILONS))
GRID = [
    Config(kind, "two-stage", epsilon, setting_of(share=share, strength=strength), seed, n)
    for kind, n, epsilon in SETTINGS
    for seed in range(SEEDS)
    for share in SHARES
    for strength in STRENGTHS
]


@lru_cache(maxsize=1)
def _voted(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records and votes."""
    X, y, _ = make(kind, 2 * n, D, RADIUS, np.random.default_rng(seed))
    targets = y[:n, None].astype(np.float64)
    slots = blocks_by_slot(n, int(n**0.5))
    return X, y, count_votes(X[:n], 1.0, targets, slots, K, logistic=kind == "logistic")


def measure(config: Config) -> Mapping[str, float]:
    """Loss on the second half of a model fitted on the first."""
    n, logistic = config.rows or 0, config.data_set == "logistic"
    X, y, votes = _voted(config.data_set, n, config.seed)
    loss = LogisticLoss() if logistic else HuberLoss(1.0)
    budget = Budget(config.epsilon or 0.0, DELTA)
    share, strength = config.settings["share"], config.settings["strength"]
    problem = Problem(loss, "zero-out", n, D, intercept=True)
    facts: dict[str, Any] = {"k": K, "selection_share": share, "row_bound": float(np.sqrt(K + 1.0))}
    balanced = plan_two_stage(budget, problem, **facts).objective.regularisation
    plan = plan_two_stage(budget, problem, regularisation=strength * balanced, **facts)
    stream = Stream.of(config.seed)
    chosen = np.sort(select_top_k(plan.votes.selection, votes, stream))
    rows, _ = bounded_rows(X[:, chosen], 1.0, plan.objective.row_bound, intercept=True)
    offset = np.zeros(K + 1)
    weights = release_minimiser(plan.objective, rows[:n], y[:n].astype(float), offset, stream.spawn("minimiser"))
    margins = rows[n:] @ weights
    if logistic:
        return {"loss": float(np.mean(np.logaddexp(0.0, margins) - y[n:] * margins))}
    return {"loss": float(np.mean((margins - y[n:]) ** 2) / np.var(y[n:]))}


def report(frame: Any) -> str:
    """What each choice costs beside the best of its setting."""
    tables = frame["loss"].to_numpy().reshape(len(SETTINGS), SEEDS, len(SHARES), len(STRENGTHS)).mean(axis=1)
    regrets = np.log(tables / tables.min(axis=(1, 2), keepdims=True))
    costs = 100.0 * np.expm1(regrets.mean(axis=0))
    by_share = [[f"{share:g}", *(f"{cost:.1f}" for cost in row)] for share, row in zip(SHARES, costs, strict=True)]
    rows = []
    for (kind, n, epsilon), losses in zip(SETTINGS, tables, strict=True):
        i, j = np.unravel_index(losses.argmin(), losses.shape)
        default = losses[SHARES.index(0.8), STRENGTHS.index(1.0)]
        best = [f"{SHARES[i]:g}", f"{STRENGTHS[j]:g}", f"{losses.min():.3f}"]
        rows.append([kind, f"{n}", f"{epsilon:g}", *best, f"{default:.3f}"])
    heads = ["loss", "n", "epsilon", "best share", "best strength", "its loss", "loss at 0.8 and 1"]
    runs = f"d = {D}, {K} features selected, delta = {DELTA:g}, {SEEDS} seeds a"
    return f"""# How should two stages share a budget?

`python -m taciturn_research.benchmarks.study_two_stage`: {runs}
setting, radius 10. Held-out loss above the best of each setting, in per cent, geometric mean over settings.
Rows: the selection's share. Columns: regularisation in units of what `"auto"` chooses.

{table(["share", *(f"{strength:g}" for strength in STRENGTHS)], by_share)}

{table(heads, rows)}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_two_stage", __doc__, measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_two_stage as named

    sys.exit(named.STUDY.main(named.GRID))
