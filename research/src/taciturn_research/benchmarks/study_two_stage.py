"""How should two stages share a budget? The study behind ``selection_share`` and ``regularisation="auto"``.

``python -m taciturn_research.benchmarks.study_two_stage`` runs two-stage models on synthetic sets that differ in n,
epsilon and loss, with the selection's share of the budget and the strength of the regularisation varied around what the
plan chooses, and writes held-out losses to ``study_two_stage.md`` beside this file. Votes do not depend on the budget
and are counted once per data set.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.objective.plan import plan_two_stage
from taciturn.methods.objective.run import bounded_rows, release_minimiser
from taciturn.methods.schedule import Problem
from taciturn.methods.selection.run import blocks_by_slot, count_votes, select_top_k
from taciturn_research.benchmarks.study_steps import make

SHARES = (0.3, 0.5, 0.7, 0.8, 0.9)
STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
SEEDS = 5
D, K = 100, 10
SIZES = (3000, 10_000, 30_000)
EPSILONS = (0.5, 1.0, 4.0)
LOSSES = ("huber", "logistic")
RADIUS = 10.0


def held_out_losses(kind: str, n: int, epsilon: float, seed: int) -> np.ndarray:
    """Loss on the second half of models fitted on the first, one row per share, one column per strength."""
    X, y, _ = make(kind, 2 * n, D, RADIUS, np.random.default_rng(seed))
    logistic = kind == "logistic"
    loss = LogisticLoss() if logistic else HuberLoss(1.0)
    targets = y[:, None].astype(np.float64)
    votes = count_votes(X[:n], 1.0, targets[:n], blocks_by_slot(n, int(n**0.5)), K, logistic=logistic)
    out = np.zeros((len(SHARES), len(STRENGTHS)))
    for i, share in enumerate(SHARES):
        problem = Problem(loss, "zero-out", n, D, intercept=True)
        facts: dict[str, Any] = {"k": K, "selection_share": share, "row_bound": float(np.sqrt(K + 1.0))}
        balanced = plan_two_stage(Budget(epsilon, DELTA), problem, **facts).objective.regularisation
        for j, strength in enumerate(STRENGTHS):
            plan = plan_two_stage(Budget(epsilon, DELTA), problem, regularisation=strength * balanced, **facts)
            stream = Stream.of(seed)
            chosen = np.sort(select_top_k(plan.votes.selection, votes, stream))
            rows, _ = bounded_rows(X[:, chosen], 1.0, plan.objective.row_bound, intercept=True)
            offset = np.zeros(K + 1)
            weights = release_minimiser(
                plan.objective, rows[:n], y[:n].astype(float), offset, stream.spawn("minimiser")
            )
            margins = rows[n:] @ weights
            if logistic:
                out[i, j] = np.mean(np.logaddexp(0.0, margins) - y[n:] * margins)
            else:
                out[i, j] = np.mean((margins - y[n:]) ** 2) / np.var(y[n:])
    return out


def main() -> int:
    """Run the study and write its tables."""
    warnings.simplefilter("ignore")
    settings = list(product(LOSSES, SIZES, EPSILONS))
    tables = []
    for kind, n, epsilon in track(settings, console=Console(stderr=True)):
        tables.append(np.mean([held_out_losses(kind, n, epsilon, seed) for seed in range(SEEDS)], axis=0))
    report(settings, np.array(tables))
    return 0


def report(settings: list[tuple[str, int, float]], tables: np.ndarray) -> None:
    """Write what each choice costs beside the best of its setting."""
    regrets = np.log(tables / tables.min(axis=(1, 2), keepdims=True))
    costs = 100.0 * np.expm1(regrets.mean(axis=0))
    lines = [
        "# How should two stages share a budget?",
        "",
        "`python -m taciturn_research.benchmarks.study_two_stage`: "
        f"d = {D}, {K} features selected, delta = {DELTA:g}, {SEEDS} seeds a",
        "setting, radius 10. Held-out loss above the best of each setting, in per cent, geometric mean over settings.",
        'Rows: the selection\'s share. Columns: regularisation in units of what `"auto"` chooses.',
        "",
        "| share | " + " | ".join(f"{strength:g}" for strength in STRENGTHS) + " |",
        "| --- |" + " --- |" * len(STRENGTHS),
    ]
    lines += [
        f"| {share:g} | " + " | ".join(f"{cost:.1f}" for cost in row) + " |"
        for share, row in zip(SHARES, costs, strict=True)
    ]
    lines += [
        "",
        "| loss | n | epsilon | best share | best strength | its loss | loss at 0.8 and 1 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (kind, n, epsilon), table in zip(settings, tables, strict=True):
        i, j = np.unravel_index(table.argmin(), table.shape)
        default = table[SHARES.index(0.8), STRENGTHS.index(1.0)]
        lines.append(
            f"| {kind} | {n} | {epsilon:g} | {SHARES[i]:g} | {STRENGTHS[j]:g} | {table.min():.3f} | {default:.3f} |"
        )
    Path(__file__).with_name("study_two_stage.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
