"""Figure 1 of DP-SIS: how often SIS and two-stage pick each feature when nothing is private.

Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*, Section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from taciturn.core.validation import BoolArray, FloatArray
from taciturn.datasets import Dataset, make_dpsis_instability
from taciturn.methods.selection.estimator import BlockVoteSelector
from taciturn.published import DPSIS, TwoStageSelector
from taciturn_research.reproduce.dpsis.common import PAPER
from taciturn_research.reproduce.experiment import Case, Claim, Experiment, Finding, Picture, Table, seed_of
from taciturn_research.reproduce.numbers import Numbers, Row

__all__ = ["FIGURE_1", "FIRST", "SIS", "TWO_STAGE", "first_features_go_to_sis"]

SIS, TWO_STAGE, BLOCK_VOTE = "SIS (non-private)", "two-stage (non-private)", "BlockVoteSelector, epsilon = inf"
FIRST = "1 to 5"
"""The features that all records but the outliers depend on, taken together."""

# Ten trials make the paper's thousand repeats.
_REPEATS = 100
_SELECTED = 5


@dataclass(frozen=True, slots=True)
class DrawnSet:
    """Which of the two sets, and how many draws of it are one trial."""

    name: str
    outliers: bool
    repeats: int


def setting(dataset: Dataset | None, *, outliers: bool, repeats: int = _REPEATS) -> DrawnSet:
    """Nothing is computed before the trials."""
    return DrawnSet("W1/W2" if outliers else "W1", outliers, repeats)


def picks(prepared: DrawnSet, seed: int) -> list[Row]:
    """How often each method picks each feature, per thousand data sets, and the mean of the first five."""
    counted = {method: np.zeros(100) for method in (SIS, TWO_STAGE, BLOCK_VOTE)}
    for repeat in range(prepared.repeats):
        X, y, _ = make_dpsis_instability(outliers=prepared.outliers, random_state=seed_of(seed, "data", repeat))
        for method, support in selected(X, y, seed_of(seed, "ties", repeat)).items():
            counted[method] += support
    rows: list[Row] = []
    for method, count in counted.items():
        per_thousand = count * 1000.0 / prepared.repeats
        place = {"set": prepared.name, "method": method}
        rows += [{**place, "feature": j + 1, "value": float(value)} for j, value in enumerate(per_thousand)]
        rows.append({**place, "features": FIRST, "value": float(per_thousand[:_SELECTED].mean())})
    return rows


def selected(X: FloatArray, y: FloatArray, seed: int) -> dict[str, BoolArray]:
    """The five features of each method, as masks."""
    common: dict[str, Any] = {"epsilon": math.inf, "n_features_to_select": _SELECTED, "random_state": seed}
    vote = BlockVoteSelector(x_bound=float(np.abs(X).max()), y_bounds=(float(y.min()), float(y.max())), **common)
    # Without noise it takes the first of features with equal votes: shuffled columns make that a random one.
    order = np.random.default_rng(seed).permutation(X.shape[1])
    voted = np.zeros(X.shape[1], dtype=bool)
    voted[order] = vote.fit(X[:, order], y).support_
    return {
        SIS: DPSIS(**common).fit((X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()).support_,
        TWO_STAGE: TwoStageSelector(**common).fit(X, y).support_,
        BLOCK_VOTE: voted,
    }


def first_features_go_to_sis(numbers: Numbers) -> Finding:
    """Whether SIS picks each of the first five features more often than two-stage, on both sets."""
    holds, parts = True, []
    for name in ("W1", "W1/W2"):
        means = {
            method: [
                numbers.mean({"set": name, "method": method, "feature": feature}) for feature in range(1, _SELECTED + 1)
            ]
            for method in (SIS, TWO_STAGE)
        }
        holds &= all(ours > theirs for ours, theirs in zip(means[SIS], means[TWO_STAGE], strict=True))
        parts.append(
            f"{name}: features 1 to 5 are picked {fmean(means[SIS]):.0f} times in 1000 by SIS, "
            f"{fmean(means[TWO_STAGE]):.0f} times by two-stage"
        )
    return Finding(holds, "; ".join(parts))


FIGURE_1 = Experiment(
    name="dpsis-figure-1",
    paper=PAPER,
    summary="how often SIS and two-stage pick each feature, without privacy",
    relation="none: nothing private is computed",
    scaling="columns standardised and the target centred for SIS, which is what correlation means; none for the others",
    notes=(
        "A trial is 100 data sets of 100 records and 100 features; ten trials are the 1000 repeats of the paper. "
        "Values are picks per 1000.",
        "The noise N(0, 0.1) is read as a variance. In W1/W2 every tenth record follows the other weights, so that "
        "each block of two-stage has one of them.",
        "Blocks of two-stage are regressed by a LASSO with alpha 0.1, the printed penalty of Section 5; of features "
        "that are counted equally often random ones are taken.",
        "CorrelationSelector without noise selects what SIS selects, and so has no curve of its own.",
    ),
    trials=10,
    quick_trials=10,
    prepare=setting,
    run=picks,
    cases=(Case("W1", options={"outliers": False}), Case("W1/W2", options={"outliers": True})),
    claims=(
        Claim(
            "Figure 1",
            "SIS chooses the true features much more often than two-stage, also in the presence of outliers.",
            first_features_go_to_sis,
        ),
    ),
    tables=(Table("Figure 1", lines=("set", "method"), across="features"),),
    pictures=(
        Picture(
            "Figure 1",
            "occurrences of selecting feature n in 1000 repeats",
            "curves",
            across="feature",
            series="method",
            x_label="feature",
            y_label="picks in 1000",
            panels="set",
            marks=(1000.0,),
        ),
    ),
)
