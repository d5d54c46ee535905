"""Finished fits, gathered into cells: a method at its best setting on a data set at an epsilon, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from taciturn_research.arena.methods import Method
from taciturn_research.arena.results import Config, Result, Results
from taciturn_research.arena.run import Plan, best_setting, skipped
from taciturn_research.arena.sets import DataSet

__all__ = ["Cell", "summarise"]


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

    def mean(self, what: Callable[[Result], float | None]) -> float:
        """The mean over seeds; NaN without any."""
        values = [value for value in map(what, self.results) if value is not None]
        return float(np.mean(values)) if values else float("nan")

    def values(self, measured: str) -> list[float]:
        """A measure by seed; a cell has no results if the method refused for any."""
        found = [getattr(result, measured) for result in self.results]
        return [value for value in found if value is not None]

    @property
    def error(self) -> float:
        """Mean test error."""
        return self.mean(lambda result: result.error)

    @property
    def log_loss(self) -> float:
        """Mean log-loss; NaN for a regression."""
        return self.mean(lambda result: result.log_loss)

    @property
    def calibration(self) -> float:
        """Mean calibration error."""
        return self.mean(lambda result: result.calibration)

    @property
    def slope(self) -> float:
        """Mean slope against the true margins; NaN where they are not known."""
        return self.mean(lambda result: result.slope)

    @property
    def f1(self) -> float:
        """Mean F1 of the support."""
        return self.mean(lambda result: result.f1)

    @property
    def nonzeros(self) -> float:
        """Mean number of features used."""
        return self.mean(lambda result: result.nonzeros)

    @property
    def seconds(self) -> float:
        """Mean time of a fit."""
        return self.mean(lambda result: result.seconds)


def summarise(
    results: Results, plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], measured: str = "error"
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
            best = best_setting(results, data_set, method, plan, epsilon, measured)
            if best is None:
                continue
            setting, rows = best
            seeds = range(plan.seeds_of(method))
            configs = [Config(data_set.name, method.name, epsilon, setting, seed, rows) for seed in seeds]
            if all(config in results for config in configs):
                cells.append(_cell(method, [results[config] for config in configs]))
    return cells


def _cell(method: Method, found: Sequence[Result]) -> Cell:
    config = found[0].config
    refusal = next((result.refusal for result in found if result.refusal is not None), None)
    kept = () if refusal is not None else tuple(found)
    return Cell(config.data_set, method.name, method.family, config.epsilon, config.setting, kept, refusal or "")
