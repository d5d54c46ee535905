"""Coordinates of labels that follow the information: intervals on simulated tables whose model does not hold.

``python -m taciturn_research.benchmarks.study_label_coordinates`` prints the table of ``study_label_coordinates.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from taciturn import SparseClassifier
from taciturn.methods.inference import plan, run
from taciturn_research.coverage.plain import NORMAL, Numbers, Reference, Sample, fit_plain

N_RUNS = 40
_POPULATION = 300_000
SETTINGS: dict[str, dict[str, Any]] = {
    "chosen": {},
    "lengths stay as they are": {"least_equal": 1.0, "most_equal": 1.0},
    "early matrix 0.07": {"early_information": 0.07},
    "trace of tails 1": {"tail_trace_room": 1.0},
    "trace of tails 2.2": {"tail_trace_room": 2.2},
}


def _levels(codes: NDArray[np.int64], levels: range) -> Numbers:
    return np.asarray(codes[:, None] == np.array(levels), dtype=np.float64)


def _numbers(rng: np.random.Generator, n_columns: int) -> Numbers:
    return np.clip(rng.standard_normal((_POPULATION, n_columns)) / 3.0, -1.0, 1.0)


def _binary(rng: np.random.Generator, *shares: float) -> Numbers:
    return (rng.random((_POPULATION, len(shares))) < shares).astype(float)


def parties(rng: np.random.Generator, other: float = 1.0) -> tuple[Numbers, Numbers]:
    """Seven levels, of which only the rarest leaves labels open; ``other``: how much more numbers matter there."""
    codes = rng.choice(7, _POPULATION, p=[0.2, 0.18, 0.1, 0.04, 0.1, 0.16, 0.22])
    numbers = np.clip((3.0 * _numbers(rng, 4) + 0.15 * (codes[:, None] - 3)) / 3.0, -1.0, 1.0)
    slopes = np.array([1.0 / other, 1.0, other**0.25, other, other**0.25, 1.0, 1.0 / other])[codes]
    margins = np.array([-3.5, -2.2, -2.0, -0.2, 1.5, 2.2, 3.6])[codes] + slopes * (numbers @ [0.3, 0.6, -0.3, 0.5])
    return np.hstack((numbers, _levels(codes, range(7)))), expit(margins)


def incomes(rng: np.random.Generator, first: int = 1) -> tuple[Numbers, Numbers]:
    """A lognormal column whose logarithm matters, more in one group; a category with a level left out, or none."""
    logs, numbers, binary = rng.standard_normal(_POPULATION), _numbers(rng, 2), _binary(rng, 0.5, 0.15, 0.02)
    codes = rng.choice(3, _POPULATION, p=[0.6, 0.3, 0.1])
    tail = np.clip(np.exp(1.2 * logs) / 30.0 - 1.0, -1.0, 1.0)
    margins = 0.35 * logs * (1 + binary[:, 0]) + (numbers @ [0.5, -0.5]) * (1 + binary[:, 1])
    margins += binary @ [-0.8, -0.7, -0.5] + np.array([0.0, 0.4, -1.2])[codes] - 2.0
    return np.column_stack((tail, numbers, binary, _levels(codes, range(first, 3)))), expit(margins)


def campaigns(rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Two long tails, a binary column in 1.5 % of the rows, and two categories."""
    logs, counts = rng.standard_normal(_POPULATION), np.minimum(rng.geometric(0.4, _POPULATION), 35)
    numbers, binary = _numbers(rng, 1), _binary(rng, 0.015, 0.55, 0.16)
    codes, others = (
        rng.choice(3, _POPULATION, p=[0.12, 0.6, 0.28]),
        rng.choice(4, _POPULATION, p=[0.15, 0.51, 0.3, 0.04]),
    )
    tail = np.clip((np.exp(1.3 * logs) - 1.0) / 35.0 - 1.0, -1.0, 1.0)
    margins = 0.25 * logs * (1 + binary[:, 1]) - 0.5 * np.log(counts) + binary @ [-0.5, -0.8, -0.7]
    margins += (
        1.8 * numbers[:, 0] ** 2 + np.array([0.0, -0.2, 0.2])[codes] + np.array([0.0, 0.2, 0.6, 0.3])[others] - 1.6
    )
    columns = (
        numbers,
        tail,
        (counts - 1) / 17.0 - 1.0,
        binary,
        _levels(codes, range(1, 3)),
        _levels(others, range(1, 4)),
    )
    return np.column_stack(columns), expit(margins)


TABLES: dict[str, tuple[Callable[[np.random.Generator], tuple[Numbers, Numbers]], int, float]] = {
    "parties": (parties, 8_000, 3.0),
    "parties, other slopes": (lambda rng: parties(rng, 3.0), 8_000, 3.0),
    "incomes": (incomes, 30_000, 1.0),
    "incomes, all levels": (lambda rng: incomes(rng, 0), 30_000, 1.0),
    "campaigns": (campaigns, 30_000, 1.0),
    "campaigns, fewer": (campaigns, 8_000, 3.0),
}


def measure(rows: Numbers, means: Numbers, n: int, epsilon: float) -> tuple[float, float, float, float]:
    """Fits with all intervals, coverage, that of the worst coefficient, and the median width beside no privacy."""
    drawn = (np.random.default_rng(3).random(len(rows)) < means).astype(float)
    reference = Reference.of(fit_plain(Sample(rows, drawn), "logistic", means=means), len(rows), "logistic")
    places = np.flatnonzero(reference.estimable(n))
    truth, errors = reference.coefficients[places], NORMAL * reference.spread[places] / np.sqrt(n)
    hits, widths = [], []
    for seed in range(N_RUNS):
        rng = np.random.default_rng([seed, 91])
        chosen = rng.integers(len(rows), size=n)
        y = (rng.random(n) < means[chosen]).astype(int)
        model = SparseClassifier(
            epsilon=epsilon, delta=1e-6, x_bound=1.0, n_nonzero="all", inference=True, classes=(0, 1), random_state=seed
        ).fit(rows[chosen], y)
        found = np.append(model.coef_[0], model.intercept_)[places]
        reach = np.asarray(model.inference_.reach[0])[places]
        hits.append(np.where(np.isfinite(reach), np.abs(found - truth) <= reach, np.nan))
        widths.append(reach / errors)
    covered = np.array(hits)
    return (
        float(np.isfinite(covered).all(axis=1).mean()), float(np.nanmean(covered)),
        float(np.nanmin(np.nanmean(covered, axis=0))), float(np.nanmedian(widths)),
    )  # fmt: skip


def main() -> None:
    """Print the table in Markdown."""
    print("| table | n | ε | setting | fits with all intervals | coverage | worst coefficient | width |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (table, n, epsilon) in TABLES.items():
        rows, means = table(np.random.default_rng(77))
        for setting, given in SETTINGS.items():
            if "tails" in setting and name.startswith("parties"):
                continue
            with patch.object(run, "TUNING", replace(plan.TUNING, **given)):
                share, coverage, worst, width = measure(rows, means, n, epsilon)
            numbers = f"{share:.0%} | {coverage:.3f} | {worst:.2f} | {width:.2f}"
            print(f"| {name} | {n:,} | {epsilon:g} | {setting} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
