"""How often intervals cover: ``python -m taciturn_research.coverage``, or ``make coverage``.

In the grid a data set is a design, a method is a task, and the rows are all records.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from taciturn import SparseClassifier, SparseRegressor
from taciturn_research.coverage.designs import (
    DESIGNS,
    TASKS,
    WELL_SPECIFIED,
    Population,
    least_squares,
    maximum_likelihood,
)
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import REPOSITORY, table, write

PAGE = REPOSITORY / "docs" / "inference.md"
MARKS = ("<!-- coverage: begin -->", "<!-- coverage: end -->")
DELTA = 1e-6
N_RECORDS = (2_000, 5_000, 20_000)
SIZES = (5, 10)
EPSILONS = (1.0, 5.0)
CELL = ["method", "data_set", "rows", "k", "epsilon"]
# A cell counts where at least this share of its runs has intervals.
ENOUGH = 0.5


def grid(n_runs: int, tasks: Sequence[str] = TASKS, designs: Sequence[str] = tuple(DESIGNS)) -> list[Config]:
    """Every setting, so many times; those of one population follow each other, since workers remember its reference."""
    cells = product(tasks, designs, SIZES, N_RECORDS, EPSILONS, range(n_runs))
    return [Config(design, task, eps, setting_of(k=k), seed, n) for task, design, k, n, eps, seed in cells]


@lru_cache(maxsize=2)
def _population(task: str, design: str, k: int) -> Population:
    return Population(task, design, k)


def measure(config: Config) -> Mapping[str, Any]:
    """Draw, fit, and compare with the population.

    ``covered`` is the number of columns whose coefficients are covered, None where there are no intervals; ``width`` is
    the median over the columns, ``relative_width`` that of the ratio to intervals without privacy from as many records.
    """
    task, design, n, k = config.method, config.data_set, config.rows or 0, config.settings["k"]
    population = _population(task, design, k)
    rng = np.random.default_rng([config.seed, n, k, *f"{task} {design}".encode()])
    X, y = population.draw(rng, n)
    budget: dict[str, Any] = {
        "epsilon": config.epsilon, "delta": DELTA, "n_nonzero": k, "random_state": config.seed, "inference": True
    }  # fmt: skip
    model: Any = SparseRegressor(**budget) if task == "linear" else SparseClassifier(classes=(0, 1), **budget)
    model.fit(X, y)
    columns = np.flatnonzero(~np.isnan(model.coef_std_error_))
    if not columns.size:
        return {"covered": None, "n_columns": k, "width": None, "relative_width": None}
    low, high = model.coef_interval_[columns].T
    truth = population.truth(columns)[:-1]
    plain = plain_standard_errors(X[: n // 2][:, columns], y[: n // 2], task)
    widths = high - low
    return {
        "covered": int(((low <= truth) & (truth <= high)).sum()),
        "n_columns": int(columns.size),
        "width": float(np.median(widths)),
        "relative_width": float(np.median(widths / (2.0 * 1.959964 * plain))),
    }


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


# ---------------------------------------------------------------------
# The report


def rated(frame: Any, by: Sequence[str]) -> Any:
    """Groups of runs in the order of the grid: the share with intervals, coverage and its standard error, widths."""
    numbers = frame[["covered", "n_columns", "width", "relative_width"]].astype(float)
    frame = frame.assign(rate=numbers.covered / numbers.n_columns, width=numbers.width, ratio=numbers.relative_width)
    order = {name: place for place, name in enumerate((*TASKS, *DESIGNS))}
    frame = frame.sort_values(
        list(by), key=lambda column: column.map(lambda value: order.get(value, value)), kind="stable"
    )
    return frame.groupby(list(by), sort=False).agg(
        runs=("rate", "size"),
        share=("rate", lambda rates: rates.notna().mean()),
        coverage=("rate", "mean"),
        error=("rate", "sem"),
        width=("width", "median"),
        relative=("ratio", "median"),
    )


def report(frame: Any) -> str:
    """The page: what was done, whether what is asked of coverage holds, and a row per cell."""
    described = "\n".join(f"* *{name}*: {words}." for name, words in DESIGNS.items())
    cells = rated(frame, CELL)
    rows = []
    for (task, design, n, k, epsilon), cell in cells.iterrows():
        numbers = ["-"] * 4
        if cell.share:
            numbers = [f"{cell.coverage:.3f}", f"{cell.error:.3f}", f"{cell.width:.3g}", f"{cell.relative:.2f}"]
        rows.append([task, design, f"{n:,}", f"{k}", f"{epsilon:g}", f"{cell.runs:g}", f"{cell.share:.0%}", *numbers])
    heads = (
        "task",
        "design",
        "n",
        "k",
        "epsilon",
        "runs",
        "with intervals",
        "coverage",
        "std error",
        "width",
        "relative",
    )
    return f"""# Coverage of the intervals

`make coverage` (`FULL=1` for 200 runs per cell) fits `SparseRegressor(inference=True)` and
`SparseClassifier(inference=True)` with k columns of 60 and nothing else set, at delta = {DELTA:g}, and compares
intervals of nominal 95 % with the population's coefficients of the columns that were chosen. n is the number of all
records, of which one half chooses the columns and the other one estimates.

{described}

*With intervals*: the share of runs that give any. *Coverage*: over all coefficients of these runs; its standard error
is that of the mean over runs, whose coefficients are dependent. *Width*: the median. *Relative*: to intervals without
privacy from as many records, the median.

{judged(cells)}

{table(heads, rows)}
"""


def judged(cells: Any) -> str:
    """What is asked of coverage, and whether it holds."""
    counted = cells[cells.share >= ENOUGH].coverage
    specified = counted.index.isin(WELL_SPECIFIED, level="data_set")
    well, other = counted[specified], counted[~specified]
    if well.empty or other.empty:
        return "Too few cells were run for a verdict."
    outside = well[(well < 0.92) | (well > 0.98)]
    named = "; ".join(
        f"{task}, {design}, n {n:,}, k {k}, epsilon {epsilon:g}: {rate:.3f}"
        for (task, design, n, k, epsilon), rate in outside.items()
    )
    return (
        f"Cells with intervals in at least half of the runs: {len(counted)} of {len(cells)}. Of {len(well)} of them "
        f"with well-specified designs coverage is between {well.min():.3f} and {well.max():.3f}, on "
        f"average {well.mean():.3f}; {len(outside)} are outside of .92 to .98"
        f"{': ' if named else ''}{named}. "
        f"Of {len(other)} with a model that does not hold it is at least {other.min():.3f}, on average "
        f"{other.mean():.3f}."
    )


def overview(frame: Any) -> str:
    """A shorter table for the page: coverage by task, design, n and epsilon, over both k."""
    cells = rated(frame, ["method", "data_set", "rows", "epsilon"])
    shown = [f"{cell.coverage:.3f} ({cell.share:.0%})" if cell.share else "none" for cell in cells.itertuples()]
    wide = cells.assign(shown=shown).shown.unstack(["rows", "epsilon"], sort=False, fill_value="none")
    wide = wide.reindex(columns=sorted(wide.columns))
    heads = ["task", "design", *(f"n {n:,}, epsilon {epsilon:g}" for n, epsilon in wide.columns)]
    note = (
        "Coverage of nominal 95 % intervals, and the share of runs that give any, over k = 5 and 10; "
        f"{len(frame):,} runs. `taciturn_research/coverage/results.md` has every cell with standard errors "
        "and widths."
    )
    return f"{table(heads, ([*cell, *row] for cell, row in zip(wide.index, wide.to_numpy(), strict=True)))}\n\n{note}"


STUDY = Study(
    "taciturn_research.coverage",
    "Run what is missing, and report.",
    measure,
    report,
    Path(__file__).with_name("results.md"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and report on everything that is there."""
    parser = STUDY.parser()
    parser.add_argument("--runs", type=int, default=40, help="runs per cell (40; 200 for the full study)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, help="linear, logistic (default: both)")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=tuple(DESIGNS), help="names (default: all)")
    options = parser.parse_args(arguments)
    frame = STUDY.run(options, grid(options.runs, options.tasks, options.designs)).frame()
    STUDY.write(options, frame)
    if options.publish:
        write(PAGE, {MARKS: overview(frame)})
    return 0


if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.coverage import __main__ as named

    sys.exit(named.main())
