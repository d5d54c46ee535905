"""Runs of the coverage study: one fit each, on disk as soon as it is finished."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from scipy.special import expit
from threadpoolctl import threadpool_limits

from taciturn import SparseClassifier, SparseRegressor
from taciturn_research.coverage.designs import DESIGNS, TASKS, Population, least_squares, maximum_likelihood

DELTA = 1e-6
N_RECORDS = (2_000, 5_000, 20_000)
SIZES = (5, 10)
EPSILONS = (1.0, 5.0)
# Runs that a worker gets at once.
_PARCEL = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """A setting of the study."""

    task: str
    design: str
    n: int
    k: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: how many of the columns' coefficients are covered, and how wide their intervals are.

    ``width`` is the median over the columns, ``relative_width`` that of the ratio to intervals without privacy from as
    many records. ``covered`` is None where there are no intervals.
    """

    cell: Cell
    seed: int
    covered: int | None
    n_columns: int
    width: float | None
    relative_width: float | None


def cells() -> list[Cell]:
    """Every setting."""
    return [Cell(*each) for each in product(TASKS, DESIGNS, N_RECORDS, SIZES, EPSILONS)]


@lru_cache(maxsize=2)
def _population(task: str, design: str, k: int) -> Population:
    return Population(task, design, k)


def _one(cell: Cell, seed: int) -> Outcome:
    """Draw, fit, and compare with the population."""
    population = _population(cell.task, cell.design, cell.k)
    rng = np.random.default_rng([seed, cell.n, cell.k, *f"{cell.task} {cell.design}".encode()])
    X, y = population.draw(rng, cell.n)
    budget: dict[str, Any] = {"epsilon": cell.epsilon, "delta": DELTA, "n_nonzero": cell.k, "random_state": seed}
    model: Any = SparseRegressor(inference=True, **budget)
    if cell.task == "logistic":
        model = SparseClassifier(inference=True, classes=(0, 1), **budget)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    columns = np.flatnonzero(~np.isnan(model.coef_std_error_))
    if not columns.size:
        return Outcome(cell, seed, None, cell.k, None, None)
    low, high = model.coef_interval_[columns].T
    truth = population.truth(columns)[:-1]
    plain = plain_standard_errors(X[: cell.n // 2][:, columns], y[: cell.n // 2], cell.task)
    widths = high - low
    return Outcome(
        cell,
        seed,
        int(((low <= truth) & (truth <= high)).sum()),
        int(columns.size),
        float(np.median(widths)),
        float(np.median(widths / (2.0 * 1.959964 * plain))),
    )


def plain_standard_errors(X: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    """Sandwich standard errors without privacy, of the columns alone."""
    rows = np.column_stack((X, np.ones(len(X))))
    if task == "linear":
        residuals, weights = y - rows @ least_squares(rows, y), np.ones(len(y))
    else:
        rates = expit(rows @ maximum_likelihood(rows, y))
        residuals, weights = y - rates, rates * (1.0 - rates)
    inverse = np.linalg.pinv((rows * weights[:, None]).T @ rows)
    middle = (rows * residuals[:, None] ** 2).T @ rows
    return np.sqrt(np.diag(inverse @ middle @ inverse))[:-1]


def _parcel(cell: Cell, seeds: Sequence[int]) -> list[Outcome]:
    return [_one(cell, seed) for seed in seeds]


def load(path: Path) -> dict[tuple[Cell, int], Outcome]:
    """Finished runs; half a line at the end of a killed run is passed over."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        outcome = Outcome(**{**content, "cell": Cell(**content["cell"])})
        found[outcome.cell, outcome.seed] = outcome
    return found


def run(path: Path, chosen: Iterable[Cell], n_runs: int, jobs: int, console: Console) -> None:
    """Run what is not on disk yet."""
    done = load(path)
    parcels = []
    for cell in chosen:
        seeds = [seed for seed in range(n_runs) if (cell, seed) not in done]
        parcels += [(cell, seeds[start : start + _PARCEL]) for start in range(0, len(seeds), _PARCEL)]
    # Cells of one population one after the other: workers remember its reference sample.
    parcels.sort(key=lambda parcel: (parcel[0].task, parcel[0].design, parcel[0].k, *astuple(parcel[0])[2:]))
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("coverage"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with path.open("a", encoding="utf-8") as file, Progress(*columns, console=console) as progress:
        task = progress.add_task("coverage", total=sum(len(seeds) for _, seeds in parcels))
        finished = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_parcel)(cell, seeds) for cell, seeds in parcels
        )
        for outcomes in finished:
            file.writelines(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
            file.flush()
            progress.advance(task, len(outcomes))
