"""Runs what is not on disk yet, and gathers what is finished into cells."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console

from taciturn.core.errors import DataError, ParameterError
from taciturn.metrics import support_f1
from taciturn_research import harness
from taciturn_research.arena.catalogue import DATA_SETS, METHODS
from taciturn_research.arena.coefficients import readings
from taciturn_research.arena.methods import Method, measure
from taciturn_research.arena.peers import NON_PRIVATE, FitFailedError
from taciturn_research.arena.sets import DataSet, Problem, draw
from taciturn_research.harness import FILE_NAME, Config, Results, setting_of


@dataclass(frozen=True, slots=True)
class Result:
    """What came out.

    Parameters
    ----------
    config : Config
        Of what.
    error : float or None
        On the test part; None if the method refused.
    f1 : float or None
        Of the support.
    nonzeros : int
        Number of features used.
    seconds : float
        Of the fit.
    refusal : str or None
        What the method said against its public parameters.
    support : list of int or None
        The features used, where later fits are compared with them.
    log_loss, auc, calibration, calibration_slope, slope : float or None
        Further measures of the test part, see ``measure``; None where they have no meaning.
    coef : list of float or None
        The coefficients, of raw tables.
    coef_error, signs, largest, rare, intervals, width, coverage : float or None
        Measures of them, see ``readings``.
    records : int or None
        Number of training records.
    """

    config: Config
    error: float | None
    f1: float | None
    nonzeros: int
    seconds: float
    refusal: str | None = None
    support: list[int] | None = None
    log_loss: float | None = None
    auc: float | None = None
    calibration: float | None = None
    calibration_slope: float | None = None
    slope: float | None = None
    coef: list[float] | None = None
    coef_error: float | None = None
    signs: float | None = None
    largest: float | None = None
    rare: int | None = None
    intervals: float | None = None
    width: float | None = None
    coverage: float | None = None
    records: int | None = None


def results_in(folder: Path) -> Results[Result]:
    """The finished fits of a folder.

    Unlike the trials of a reproduction these outlive changes of the package: the published methods take an hour and do
    not change with the default, whose own lines are dropped by name when it does.
    """
    return Results(folder / FILE_NAME, Result)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run.

    Parameters
    ----------
    quick : bool
        Whether small grids and the quick limits on rows are used.
    epsilons : tuple of float
        Budgets.
    seeds, search_seeds, few_seeds : int
        How many seeds at the best setting, in the search for it, and for methods that are marked as ``few``.
    """

    quick: bool
    epsilons: tuple[float, ...]
    seeds: int = 10
    search_seeds: int = 3
    few_seeds: int = 3

    def seeds_of(self, method: Method) -> int:
        """How many seeds a method is judged on."""
        return min(self.seeds, self.few_seeds) if method.few else self.seeds

    def epsilons_of(self, method: Method) -> tuple[float | None, ...]:
        """The budgets of a method; None alone without privacy."""
        return self.epsilons if method.private else (None,)


QUICK = Plan(quick=True, epsilons=(0.5, 1.0, 5.0))
FULL = Plan(quick=False, epsilons=(0.3, 0.5, 1.0, 3.0, 5.0, 10.0), seeds=20, search_seeds=5, few_seeds=20)


@lru_cache(maxsize=1)
def _problem(data_set: str, seed: int, rows: int | None, folder: Path | None) -> Problem:
    return draw(DATA_SETS[data_set], seed, rows, folder)


def fit(config: Config, folder: Path | None = None, references: Mapping[int, list[int]] | None = None) -> Result:
    """Fit one method once.

    Parameters
    ----------
    config : Config
        Which, and on what.
    folder : Path or None
        Where filed data sets are.
    references : mapping or None
        By seed, the support that takes the place of the truth where that is not known.
    """
    data_set, method = DATA_SETS[config.data_set], METHODS[config.method]
    # The records of a raw table are the same for all seeds, and so are fits without privacy to them.
    problem = _problem(config.data_set, 0 if data_set.names else config.seed, config.rows, folder)
    start = time.perf_counter()
    try:
        found = method.fit(data_set, problem, config.epsilon, config.seed, **config.settings)
    except (ParameterError, FitFailedError) as refusal:
        return Result(config, error=None, f1=None, nonzeros=0, seconds=0.0, refusal=str(refusal))
    seconds = time.perf_counter() - start
    reference = (references or {}).get(config.seed)
    truth = problem.truth if problem.truth is not None else mask_of(reference, found.support.size)
    return Result(
        config,
        **measure(data_set, problem, found.predicted),
        **readings(data_set, problem, found),
        records=problem.y.size,
        f1=None if truth is None else support_f1(truth, found.support),
        nonzeros=int(found.support.sum()),
        seconds=round(seconds, 4),
        support=np.flatnonzero(found.support).tolist() if method is NON_PRIVATE else None,
    )


def mask_of(features: list[int] | None, n_columns: int) -> np.ndarray | None:
    """A mask of the features; None for None."""
    return None if features is None else np.isin(np.arange(n_columns), features)


def skipped(method: Method, data_set: DataSet) -> str | None:
    """Why a method is not run on a data set, or None if it is."""
    if data_set.task not in method.tasks:
        return f"no {data_set.task}"
    return method.refuses(data_set)


def _configs(data_set: DataSet, method: Method, plan: Plan, epsilon: float | None, seeds: int) -> list[list[Config]]:
    """The configurations of each setting, by seed."""
    rows = data_set.training_rows(plan.quick)
    settings = [setting_of(**setting) for setting in method.grid(data_set, plan.quick)]
    return [[Config(data_set.name, method.name, epsilon, s, seed, rows) for seed in range(seeds)] for s in settings]


def best_setting(
    results: Results[Result],
    data_set: DataSet,
    method: Method,
    plan: Plan,
    epsilon: float | None,
    measured: str = "error",
) -> tuple[str, int | None] | None:
    """The setting of the lowest mean of a measure in the search, and the limit on rows; None before it is finished."""
    totals = _totals(results, data_set, method, plan, epsilon, measured)
    if totals is None:
        return None
    best = min(totals, key=lambda found: found[0])[1]
    return best.setting, best.rows


def _totals(
    results: Results[Result], data_set: DataSet, method: Method, plan: Plan, epsilon: float | None, measured: str
) -> list[tuple[float, Config]] | None:
    """For each setting the sum of a measure over the seeds of the search, infinite for a refusal, and one fit."""
    totals = []
    for configs in _configs(data_set, method, plan, epsilon, plan.search_seeds):
        if any(config not in results for config in configs):
            return None
        values = [getattr(results[config], measured) for config in configs]
        totals.append((math.fsum(math.inf if value is None else value for value in values), configs[0]))
    return totals


_LARGEST_RATIO = 10.0
"""Beyond it a setting is bad enough on a set, and a refusal is no worse."""


def setting_from_others(
    results: Results[Result],
    data_set: DataSet,
    data_sets: Sequence[DataSet],
    method: Method,
    plan: Plan,
    epsilon: float | None,
    measured: str,
) -> tuple[str, int | None] | None:
    """The setting that is best on the other half of the sets of the task, by the geometric mean over the best of each.

    Halves are every other set in the order of the catalogue. None unless the search on this set and on one of the other
    half is finished.
    """
    own = _totals(results, data_set, method, plan, epsilon, measured)
    alike = [each for each in data_sets if each.task == data_set.task]
    others = alike[(alike.index(data_set) + 1) % 2 :: 2]
    grid = [setting_of(**setting) for setting in method.grid(data_set, plan.quick)]
    losses = []
    for other in others:
        totals = None if skipped(method, other) else _totals(results, other, method, plan, epsilon, measured)
        # A grid may depend on the set; one that has other settings says nothing.
        if totals is not None and [config.setting for _, config in totals] == grid:
            best = min(total for total, _ in totals)
            if 0.0 < best < math.inf:
                losses.append([math.log(min(total / best, _LARGEST_RATIO)) for total, _ in totals])
    if own is None or not losses:
        return None
    place = int(np.argmin(np.mean(losses, axis=0)))
    return own[place][1].setting, own[place][1].rows


def run(
    plan: Plan,
    data_sets: Sequence[DataSet],
    methods: Sequence[Method],
    results: Results[Result],
    *,
    folder: Path | None = None,
    jobs: int = 2,
    console: Console | None = None,
    additions: tuple[Path, ...] = (),
) -> list[str]:
    """Run what is missing, data set by data set; every finished fit is written down at once.

    A fit's numbers depend on its configuration alone, neither on ``jobs`` nor on interruptions.

    Parameters
    ----------
    plan : Plan
        How much.
    data_sets, methods : sequences
        What.
    results : Results
        What is there already, and where new results go.
    folder : Path, default=None
        Where filed data sets are.
    jobs : int, default=2
        Number of worker processes.
    console : Console, default=None
        Where the progress bar is drawn; None draws none.
    additions : tuple of Path, default=()
        Files that add data sets or methods, which worker processes read too.

    Returns
    -------
    list of str
        A sentence for each data set that is not there.
    """
    absent = []
    with harness.progress_bars(console) as progress:
        for data_set in data_sets:
            try:
                data_set.records(0, folder)
            except DataError as error:
                absent.append(str(error))
                continue
            willing = [method for method in methods if skipped(method, data_set) is None]
            references: dict[int, list[int]] = {}
            # Without the fit that others are compared with, as on raw tables, there are no supports to compare.
            phases = (_search, _final) if skipped(NON_PRIVATE, data_set) else (_references, _search, _final)
            for phase in phases:
                # Fits on the same records follow each other: a worker keeps those of one seed.
                configs = sorted(phase(results, data_set, willing, plan), key=lambda config: config.seed)
                harness.run(
                    configs,
                    partial(fit, folder=folder, references=references),
                    results,
                    jobs=jobs,
                    progress=progress,
                    title=f"{data_set.name}, {phase.__name__[1:]}",
                    additions=additions,
                )
                if phase is _references:
                    found = {config.seed: results[config].support for config in configs}
                    references = {seed: support for seed, support in found.items() if support is not None}
    return absent


def _references(results: Results[Result], data_set: DataSet, methods: Sequence[Method], plan: Plan) -> Iterable[Config]:
    return _configs(data_set, NON_PRIVATE, plan, None, plan.seeds)[0]


def _search(results: Results[Result], data_set: DataSet, methods: Sequence[Method], plan: Plan) -> Iterable[Config]:
    for method in methods:
        if method is not NON_PRIVATE:
            for epsilon in plan.epsilons_of(method):
                for configs in _configs(data_set, method, plan, epsilon, plan.search_seeds):
                    yield from configs


def _final(results: Results[Result], data_set: DataSet, methods: Sequence[Method], plan: Plan) -> Iterable[Config]:
    """All seeds at the best setting; methods of practice have one for the error and one for the log-loss."""
    for method in methods:
        if method is NON_PRIVATE:
            continue
        both = data_set.task == "classification" and method.family == "practice"
        for epsilon, measured in product(plan.epsilons_of(method), ("error", "log_loss") if both else ("error",)):
            best = best_setting(results, data_set, method, plan, epsilon, measured)
            if best is None:
                raise RuntimeError(f"{method.name} on {data_set.name}: the search is not finished")
            setting, rows = best
            for seed in range(plan.seeds_of(method)):
                yield Config(data_set.name, method.name, epsilon, setting, seed, rows)


# ---------------------------------------------------------------------
# Finished fits, gathered into cells: a method at its best setting on a data set at an epsilon, over seeds.


@dataclass(frozen=True, slots=True)
class Cell:
    """One method on one data set at one epsilon.

    Parameters
    ----------
    data_set, method, family : str
        Names.
    epsilon : float or None
        None without privacy.
    setting : str
        The best one, as JSON.
    results : tuple of Result
        One per seed, in order; empty if the method was skipped or refused.
    reason : str
        Why it is empty.
    """

    data_set: str
    method: str
    family: str
    epsilon: float | None
    setting: str
    results: tuple[Result, ...]
    reason: str = ""

    def values(self, measured: str) -> list[float]:
        """A measure by seed; a cell has no results if the method refused for any."""
        found = [getattr(result, measured) for result in self.results]
        return [value for value in found if value is not None]

    def mean(self, measured: str) -> float:
        """The mean of a measure over seeds; NaN where it has no meaning."""
        values = self.values(measured)
        return float(np.mean(values)) if values else float("nan")

    @property
    def error(self) -> float:
        """Mean test error."""
        return self.mean("error")

    @property
    def f1(self) -> float:
        """Mean F1 of the support."""
        return self.mean("f1")

    @property
    def nonzeros(self) -> float:
        """Mean number of features used."""
        return self.mean("nonzeros")


def summarise(
    results: Results[Result],
    plan: Plan,
    data_sets: Sequence[DataSet],
    methods: Sequence[Method],
    measured: str = "error",
    *,
    from_others: bool = False,
) -> list[Cell]:
    """All cells that are finished, and those that are empty for a reason; unfinished ones are left out.

    Parameters
    ----------
    results : Results
        Finished fits.
    plan : Plan
        Which of them count.
    data_sets, methods : sequences
        Which cells.
    measured : {"error", "log_loss"}
        By which the best setting of a method is chosen.
    from_others : bool, default=False
        Whether settings are chosen on other sets instead, and methods with several judged on the seeds of the search.
    """
    cells = []
    for data_set, method in product(data_sets, methods):
        if data_set.task not in method.tasks:
            continue
        reason = skipped(method, data_set)
        for epsilon in plan.epsilons_of(method):
            if reason is not None:
                cells.append(Cell(data_set.name, method.name, method.family, epsilon, "{}", (), reason))
                continue
            several = from_others and len(method.grid(data_set, plan.quick)) > 1
            if several:
                best = setting_from_others(results, data_set, data_sets, method, plan, epsilon, measured)
            else:
                best = best_setting(results, data_set, method, plan, epsilon, measured)
            if best is None:
                continue
            setting, rows = best
            seeds = range(plan.search_seeds if several else plan.seeds_of(method))
            configs = [Config(data_set.name, method.name, epsilon, setting, seed, rows) for seed in seeds]
            if all(config in results for config in configs):
                cells.append(_cell(method, [results[config] for config in configs]))
    return cells


def _cell(method: Method, found: Sequence[Result]) -> Cell:
    config = found[0].config
    refusal = next((result.refusal for result in found if result.refusal is not None), None)
    kept = () if refusal is not None else tuple(found)
    return Cell(config.data_set, method.name, method.family, config.epsilon, config.setting, kept, refusal or "")
