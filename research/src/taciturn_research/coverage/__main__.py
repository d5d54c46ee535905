"""How often intervals cover: ``python -m taciturn_research.coverage``, or ``make coverage``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.errors import ParameterError
from taciturn_research.coverage.cells import (
    CENTRE_EPSILON,
    CENTRE_N,
    CENTRE_P,
    NAMED,
    NAMED_RUNS,
    Cell,
    grid,
)
from taciturn_research.coverage.designs import DESIGNS, Population, well_specified
from taciturn_research.coverage.plain import NORMAL, TASKS, Numbers, Sample, fit_plain
from taciturn_research.coverage.tables import TABLES, TablePopulation, missing
from taciturn_research.harness import Config, Study
from taciturn_research.pages import REPOSITORY, table, write

PAGE = REPOSITORY / "docs" / "inference.md"
MARKS = ("<!-- coverage: begin -->", "<!-- coverage: end -->")
DELTA = 1e-6
# A cell with fewer intervals of estimable coefficients says nothing of coverage.
LEAST_INTERVALS = 20
_ERRORS = 3.0


# ---------------------------------------------------------------------
# One run


@lru_cache(maxsize=2)
def _population(task: str, design: str, p: int, data: Path | None) -> Population | TablePopulation:
    return TablePopulation(design, data) if design in TABLES else Population(task, design, p)


def measure(config: Config, data: Path | None = None) -> Mapping[str, Any]:
    """Draw, fit, and compare with the population.

    ``places`` are those of the estimable coefficients, the intercept being the last one of all. In their order
    ``covered`` says whether the interval holds the population's coefficient, and ``ratio`` how wide it is beside the
    one without privacy; None without an interval. ``plain`` says what the one without privacy holds. ``refused`` is
    whether the fit was refused before anything was spent.
    """
    task, design, n, p, epsilon = Cell.of(config)
    population = _population(task, design, p, data)
    rng = np.random.default_rng([config.seed, n, p, *f"{task} {design}".encode()])
    sample = population.draw(rng, n)
    fitted = _fitted(sample, task, epsilon, p - 1 if population.selects else None, config.seed)
    columns = population.true_columns if fitted is None else np.asarray(fitted.inference_.columns)
    # Columns that the data chose are estimated from the other half.
    n_estimating = n - n // 2 if population.selects else n
    reference = population.reference(columns)
    estimable = np.flatnonzero(reference.estimable(n_estimating))
    truth = reference.coefficients[estimable]
    plain = fit_plain(sample.head(n_estimating if sample.persons is None else len(sample.X), columns), task)
    reach = NORMAL * plain.std_error[estimable]
    found: dict[str, Any] = {
        "refused": fitted is None,
        "places": np.append(columns, population.n_features)[estimable].tolist(),
        "plain": (np.abs(plain.coefficients[estimable] - truth) <= reach).tolist(),
    }
    # A column that was to be chosen and was not has no interval either, and no place.
    absent = [None] * (p - 1 - columns.size)
    found["places"] += absent
    if fitted is None:
        return found | {"covered": [None] * estimable.size, "ratio": [None] * estimable.size}
    values, reaches = _intervals(fitted, columns)
    told = np.isfinite(reaches[estimable])
    covered = np.abs(values[estimable] - truth) <= reaches[estimable]
    ratios = reaches[estimable] / np.maximum(reach, 1e-300)
    return found | {
        "covered": [bool(hit) if known else None for hit, known in zip(covered, told, strict=True)] + absent,
        "ratio": [round(float(ratio), 4) if known else None for ratio, known in zip(ratios, told, strict=True)]
        + absent,
    }


def _fitted(sample: Sample, task: str, epsilon: float, n_nonzero: int | None, seed: int) -> Any:
    """The fitted model, None if the fit was refused."""
    settings: dict[str, Any] = {
        "epsilon": epsilon, "delta": DELTA, "x_bound": 1.0, "inference": True, "random_state": seed,
        "n_nonzero": "all" if n_nonzero is None else n_nonzero,
    }  # fmt: skip
    if task == "linear":
        model: Any = SparseRegressor(y_bounds=(-1.0, 1.0), **settings)
    else:
        model = SparseClassifier(classes=(0, 1), **settings)
    y = sample.y if task == "linear" else sample.y.astype(int)
    given = {} if sample.persons is None else {"persons": sample.persons}
    try:
        return model.fit(sample.X, y, **given)
    except ParameterError as error:
        if not str(error).startswith("inference="):
            raise
        return None


def _intervals(model: Any, columns: NDArray[np.intp]) -> tuple[Numbers, Numbers]:
    """Coefficients of the columns and the intercept, and by how much their intervals extend on either side."""
    values = np.append(np.ravel(model.coef_)[columns], np.ravel(model.intercept_))
    return values, np.asarray(model.inference_.reach[0])


# ---------------------------------------------------------------------
# Cells


@dataclass(frozen=True, slots=True)
class Rated:
    """What the runs of a cell say.

    ``share`` is that of estimable coefficients with an interval, ``complete`` that of fits in which all have one.
    ``coverage`` is over all of these intervals, ``error`` its standard error, ``ratio`` the median of their widths
    beside those without privacy, ``plain`` the coverage of the latter. NaN where there is nothing to say.
    """

    runs: int
    refused: float
    estimable: float
    share: float
    complete: float
    intervals: int
    coverage: float
    error: float
    ratio: float
    plain: float


def rate(runs: Any) -> Rated:
    """Rate the runs of one cell."""
    known = [[hit for hit in covered if hit is not None] for covered in runs.covered]
    shown, hits = np.array([*map(len, known)], dtype=float), np.array([*map(sum, known)], dtype=float)
    estimable = np.array([*map(len, runs.covered)], dtype=float)
    n_runs, intervals = len(runs), int(shown.sum())
    coverage = error = ratio = math.nan
    if intervals:
        coverage = float(hits.sum() / intervals)
        # Coefficients of a run are dependent. Few runs can agree by chance, and are not surer than independent ones.
        clustered = math.sqrt(n_runs / max(n_runs - 1, 1) * np.square(hits - coverage * shown).sum()) / intervals
        error = max(clustered, math.sqrt(0.95 * 0.05 / intervals))
        ratio = float(np.median([value for values in runs.ratio for value in values if value is not None]))
    total = float(estimable.sum())
    return Rated(
        n_runs, float(runs.refused.mean()), total / n_runs, intervals / total if total else math.nan,
        float((shown == estimable).mean()) if total else math.nan, intervals, coverage, error, ratio,
        float(np.mean([hit for hits in runs.plain for hit in hits])) if total else math.nan,
    )  # fmt: skip


def rated(frame: Any) -> dict[Cell, Rated]:
    """Every cell of the results, in the order of tasks, designs and numbers."""
    order = {name: place for place, name in enumerate((*TASKS, *DESIGNS, *TABLES))}
    found = {
        Cell(task, design, int(n), int(p), float(epsilon)): rate(runs)
        for (task, design, n, p, epsilon), runs in frame.groupby(["method", "data_set", "rows", "p", "epsilon"])
        if design in order
    }
    places = {cell: (order[cell.task], order[cell.design], *cell[2:]) for cell in found}
    return {cell: found[cell] for cell in sorted(found, key=places.__getitem__)}


# ---------------------------------------------------------------------
# Verdicts


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether what is asked holds, over how many cells, and the cell that is nearest to breaking it."""

    asked: str
    holds: bool
    n_cells: int
    found: str
    worst: Cell


def verdicts(cells: Mapping[Cell, Rated]) -> list[Verdict]:
    """What is asked of coverage, of the share with intervals and of widths, and whether it holds."""
    simulated = {cell: said for cell, said in cells.items() if cell.design in DESIGNS}
    counted = {cell: said for cell, said in simulated.items() if said.intervals >= LEAST_INTERVALS}
    well = {cell: said for cell, said in counted.items() if well_specified(cell.task, cell.design)}
    ill = {cell: said for cell, said in counted.items() if cell not in well}
    centre = {
        cell: said
        for cell, said in simulated.items()
        if cell[2:] == (CENTRE_N, CENTRE_P, CENTRE_EPSILON) and "selected" not in cell.design and said.estimable
    }
    found: list[Verdict] = []
    if well:
        mean = float(np.mean([said.coverage for said in well.values()]))
        farthest = max(well, key=lambda cell: abs(well[cell].coverage - 0.95) / well[cell].error)
        asked = "well specified: coverage .93 to .97 on average"
        found.append(Verdict(asked, 0.93 <= mean <= 0.97, len(well), f"{mean:.3f}", farthest))
    found += _judged("well specified: no cell below .92", well, _below(0.92), _coverage)
    found += _judged("misspecified or skewed: no cell below .90", ill, _below(0.90), _coverage)
    at = f"n {CENTRE_N:,}, epsilon {CENTRE_EPSILON:g}, p {CENTRE_P}"
    asked = f"{at}: 95 % of estimable coefficients have intervals"
    found += _judged(asked, centre, lambda said: 0.95 - said.share, lambda said: f"{said.share:.1%}")
    asked = f"{at}: median width at most 1.2 times that without privacy"
    found += _judged(asked, centre, lambda said: _or_infinite(said.ratio) - 1.2, lambda said: f"{said.ratio:.3f}")
    for name, real in _real_groups(cells).items():
        asked = f"{name}: 90 % of fits have all intervals"
        found += _judged(asked, real, lambda said: 0.90 - said.complete, lambda said: f"{said.complete:.0%}")
        shown = {cell: said for cell, said in real.items() if said.intervals >= LEAST_INTERVALS}
        found += _judged(f"{name}: coverage no less than .92", shown, _below(0.92), _coverage)
        asked = f"{name}: coverage no more than .98"
        found += _judged(asked, shown, lambda said: said.coverage - _ERRORS * said.error - 0.98, _coverage)
    return found


def _real_groups(cells: Mapping[Cell, Rated]) -> dict[str, dict[Cell, Rated]]:
    """Cells of tables by n and epsilon, those with estimable coefficients."""
    groups: dict[str, dict[Cell, Rated]] = {}
    for cell, said in cells.items():
        if cell.design in TABLES and said.estimable:
            groups.setdefault(f"real tables, n {cell.n:,}, epsilon {cell.epsilon:g}", {})[cell] = said
    return groups


def _judged(
    asked: str, cells: Mapping[Cell, Rated], miss: Callable[[Rated], float], show: Callable[[Rated], str]
) -> list[Verdict]:
    """Whether no cell misses by more than nothing; no verdict without cells."""
    if not cells:
        return []
    worst = max(cells, key=lambda cell: miss(cells[cell]))
    return [Verdict(asked, miss(cells[worst]) <= 0.0, len(cells), show(cells[worst]), worst)]


def _below(bound: float) -> Callable[[Rated], float]:
    """By how much coverage is below a bound, beyond what its standard error explains."""
    return lambda said: bound - said.coverage - _ERRORS * said.error


def _coverage(said: Rated) -> str:
    return f"{said.coverage:.3f} (standard error {said.error:.3f})"


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else value


# ---------------------------------------------------------------------
# The report


def report(frame: Any, data: Path | None = None) -> str:
    """The page: what was done, whether what is asked holds, and a row per cell."""
    cells = rated(frame)
    described = "\n".join(f"* *{name}*: {words}." for name, words in DESIGNS.items())
    tables = "\n".join(
        f"* *{name}*: {given.about}; {given.n_features} columns" + (f" (not run: {why})." if why else ".")
        for name, given in TABLES.items()
        for why in [missing(name, data) if not any(cell.design == name for cell in cells) else None]
    )
    return f"""# Coverage of the intervals

`make coverage` fits `SparseRegressor(inference=True)` and `SparseClassifier(inference=True)` at delta = {DELTA:g} and
compares intervals of nominal 95 % with the population's coefficients. With `FULL=1` {len(NAMED)} named cells, in bold,
have 200 runs and the others 40; a table has 100.

Columns are fixed, unless the design says that they are selected: then one half of the records chooses them and the
other one estimates. n is the number of all records, p the number of coefficients with the intercept.

{described}

Real tables are populations, of which n rows are drawn *with* replacement, whether or not a table is longer: without it
a sample would tell more of the table than standard errors say. Bank is the bank marketing table, the others are from
statsmodels.

{tables}

*Estimable* is a coefficient of a cell, whatever a fit says of it, if it lies in the span of the population's second
moment and the half-width of its interval without privacy is below 2 (log-odds) or the deviation of the residuals
(numbers). The intercept of numbers does not count. The tables are about estimable coefficients:

* *refused*: the share of fits that are refused before anything is spent;
* *with interval*: the share of coefficients that have one; those of refused fits have none;
* *all intervals*: the share of fits in which all of them have one;
* *coverage*: of these intervals. Its standard error is over runs, and no smaller than that of independent intervals;
* *width*: the median, as a multiple of the interval without privacy from as many of the same records;
* *without privacy*: the coverage of the latter.

## Verdict

A cell breaks a bound on coverage if it is beyond it by more than {_ERRORS:g} standard errors. Cells with fewer than
{LEAST_INTERVALS} intervals say nothing of coverage. Designs are well specified if the mean or the link holds and errors
are not skewed: all but skewed, wrong mean, and heteroscedastic labels.

{_verdict_table(verdicts(cells))}

{_run_so_far(cells)}

## Cells

{_cell_table({cell: said for cell, said in cells.items() if cell.design in DESIGNS})}

## Real tables

{_cell_table({cell: said for cell, said in cells.items() if cell.design in TABLES})}

Estimable coefficients of these with an interval in fewer than nine fits of ten, or coverage below .9:

{_coefficient_table(frame)}
"""


def _verdict_table(found: Sequence[Verdict]) -> str:
    if not found:
        return "Too few cells were run for a verdict."
    rows = [[each.asked, "yes" if each.holds else "**no**", f"{each.n_cells}", each.found, _named(each.worst)]
            for each in found]  # fmt: skip
    return table(("asked", "holds", "cells", "found", "nearest or worst cell"), rows)


def _named(cell: Cell) -> str:
    return f"{cell.task}, {cell.design}, n {cell.n:,}, p {cell.p}, epsilon {cell.epsilon:g}"


def _cell_table(cells: Mapping[Cell, Rated]) -> str:
    heads = (
        "task", "design", "n", "p", "epsilon", "runs", "estimable", "refused", "with interval", "all intervals",
        "coverage", "std error", "width", "without privacy",
    )  # fmt: skip
    rows = []
    for cell, said in cells.items():
        mark = "**" if cell in NAMED else ""
        numbers = [
            _shown(said.share, ".0%"), _shown(said.complete, ".0%"), _shown(said.coverage, ".3f"),
            _shown(said.error, ".3f"), _shown(said.ratio, ".2f"), _shown(said.plain, ".3f"),
        ]  # fmt: skip
        rows.append([
            cell.task, f"{mark}{cell.design}{mark}", f"{cell.n:,}", f"{cell.p}", f"{cell.epsilon:g}", f"{said.runs}",
            f"{said.estimable:.3g}", f"{said.refused:.0%}", *numbers,
        ])  # fmt: skip
    return table(heads, rows) if rows else "None were run."


def _run_so_far(cells: Mapping[Cell, Rated]) -> str:
    """Whether the verdicts are final."""
    finished = sum(cell in cells and cells[cell].runs >= NAMED_RUNS for cell in NAMED)
    if finished == len(NAMED):
        return f"All {finished} named cells have their {NAMED_RUNS} runs."
    return f"{finished} of {len(NAMED)} named cells have their {NAMED_RUNS} runs: the verdicts are not final."


def _coefficient_table(frame: Any) -> str:
    """Coefficients of real tables that fall short."""
    rows = []
    real = frame[frame.data_set.isin([*TABLES])]
    for (name, n, epsilon), runs in real.groupby(["data_set", "rows", "epsilon"], sort=False):
        pairs = [pair for run in runs.itertuples() for pair in zip(run.places, run.covered, strict=True)]
        for place, label in enumerate((*TABLES[name].names, "intercept")):
            hits = [hit for at, hit in pairs if at == place]
            known = [hit for hit in hits if hit is not None]
            share, coverage = (len(known) / len(hits), float(np.mean(known or [math.nan]))) if hits else (1.0, 1.0)
            if share < 0.9 or coverage < 0.9:
                rows.append([name, f"{n:,}", f"{epsilon:g}", label, f"{share:.0%}", _shown(coverage, ".3f")])
    return table(("table", "n", "epsilon", "coefficient", "with interval", "coverage"), rows) if rows else "None."


def _shown(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)


def overview(frame: Any) -> str:
    """Shorter tables for the page: coverage and width by design, and real tables."""
    cells = rated(frame)
    centre = [cell for cell in cells if cell[2:] == (CENTRE_N, CENTRE_P, CENTRE_EPSILON)]
    rows = [[cell.design, *(_brief(cells.get(cell._replace(task=task))) for task in TASKS)]
            for cell in {cell.design: cell for cell in centre}.values()]  # fmt: skip
    at = f"n = {CENTRE_N:,}, epsilon {CENTRE_EPSILON:g}, {CENTRE_P - 1} columns"
    parts = [
        f"Coverage of nominal 95 % intervals at {at}; in brackets the share of estimable coefficients that have an "
        "interval, and the median width beside that without privacy:",
        table(("design", "numbers", "labels"), rows),
    ]
    real = [cell for cell in cells if cell.design in TABLES]
    if real:
        rows = [[f"`{cell.design}`", f"{cell.n:,}", f"{cell.p - 1}", f"{cell.epsilon:g}", _shown(said.complete, ".0%"),
                 _brief(said)] for cell in real for said in [cells[cell]]]  # fmt: skip
        heads = ("table", "n", "columns", "epsilon", "fits with all intervals", "coverage")
        parts += ["The same for samples of real tables, whose coefficients are those of the whole table:",
                  table(heads, rows)]  # fmt: skip
    simulated = [cell for cell in cells if cell.design in DESIGNS]
    parts.append(
        f"`taciturn_research/coverage/results.md` describes designs and tables and has all {len(simulated)} simulated "
        f"cells with n from 2,000 to 100,000, up to 21 coefficients, and epsilon 1 and 3; {len(frame):,} fits in all."
    )
    return "\n\n".join(parts)


def _brief(said: Rated | None) -> str:
    if said is None:
        return ""
    return f"{said.coverage:.3f} ({said.share:.0%}, {said.ratio:.2f})" if said.intervals else "none"


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
    parser.add_argument("--full", action="store_true", help="all cells, 200 runs of named ones and 40 of the others")
    parser.add_argument("--data", type=Path, default=None, help="folder with the raw tables that no package holds")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, help="linear, logistic (default: both)")
    names = (*DESIGNS, *TABLES)
    parser.add_argument("--designs", nargs="+", choices=names, default=(), help="designs and tables (default: all)")
    options = parser.parse_args(arguments)
    study = replace(STUDY, measure=partial(measure, data=options.data), report=partial(report, data=options.data))
    configs = grid(full=options.full, data=options.data, tasks=options.tasks, names=options.designs)
    results = study.run(options, configs)
    # Results of earlier editions have other settings.
    frame = results.frame([each.config for each in results if list(each.config.settings) == ["p"]])
    if frame.empty:
        raise SystemExit("there are no runs to report on; leave out --report-only")
    study.write(options, frame)
    cells = rated(frame)
    for name in set(options.designs or TABLES) - {cell.design for cell in cells}:
        why = missing(name, options.data) if name in TABLES else None
        if why:
            print(f"not run: {name}: {why}")
    print(_run_so_far(cells))
    for each in verdicts(cells):
        print(f"{'holds' if each.holds else 'FAILS'}: {each.asked}: {each.found} ({_named(each.worst)})")
    if options.publish:
        write(PAGE, {MARKS: overview(frame)})
    return 0


if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.coverage import __main__ as named

    sys.exit(named.main())
