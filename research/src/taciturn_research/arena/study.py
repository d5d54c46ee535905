"""The study of coefficients: raw tables, every size of the default beside the version before, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from taciturn_research.arena.coefficients import CLEAR, PENALTY, RARE
from taciturn_research.arena.library import DEFAULT, DEFAULT_ALL, DEFAULT_AUTO, INTERVALS
from taciturn_research.arena.methods import DELTA, Method
from taciturn_research.arena.peers import BEFORE
from taciturn_research.arena.run import Cell, Plan, Result, summarise
from taciturn_research.arena.sets import DataSet, FloatArray
from taciturn_research.arena.tables import RAW
from taciturn_research.harness import Results
from taciturn_research.pages import table

PLAN = Plan(quick=True, epsilons=(0.5, 1.0, 3.0, 9.0), seeds=20, search_seeds=1, few_seeds=20)
DATA_SETS = RAW
METHODS = (DEFAULT, DEFAULT_AUTO, DEFAULT_ALL, *BEFORE, *INTERVALS)
FILE = "coefficients.md"

SIZES: tuple[tuple[str, Method, Method], ...] = (
    ('"all"', DEFAULT_ALL, BEFORE[2]), ('"auto"', DEFAULT_AUTO, BEFORE[1]), ("10", DEFAULT, BEFORE[0]),
)  # fmt: skip
"""What is fitted, by whom today, and by whom before."""

_MOST = 1.5
_FROM = 1.0
_TOLERATED = 0.01
_ERRORS = 2.0

# By which measures predictions are compared, and whether less is better.
_PREDICTIONS = {"error": True, "log_loss": True, "auc": False}


def spread(coefs: FloatArray) -> float:
    """The median over columns of the standard deviation of a coefficient over seeds.

    Of columns that at least half of the fits keep, over the fits that keep them; NaN if there are none.
    """
    kept = coefs != 0.0
    often = np.flatnonzero(2 * kept.sum(axis=0) >= max(len(coefs), 4))
    if often.size == 0:
        return math.nan
    return float(np.median([np.std(coefs[kept[:, column], column], ddof=1) for column in often]))


def spread_of(cell: Cell) -> float:
    """The same of a cell; NaN without coefficients."""
    coefs = [result.coef for result in cell.results if result.coef is not None]
    return spread(np.array(coefs)) if len(coefs) > 1 else math.nan


@dataclass(frozen=True, slots=True)
class Pair:
    """A size of the default on a table at an epsilon, today and before."""

    size: str
    now: Cell
    before: Cell

    @property
    def place(self) -> str:
        """In words."""
        return f"{self.now.data_set} {self.size} at {self.now.epsilon:g}"

    def version(self, who: str) -> Cell:
        """Which of the two, by "now" or "before"."""
        return self.now if who == "now" else self.before

    def worse(self, measured: str) -> bool:
        """Whether it is worse by more than 1 % beyond 2 standard errors of the difference, paired over seeds."""
        now, before = (np.array(cell.values(measured)) for cell in (self.now, self.before))
        if not now.size:
            return False
        differences = (now - before) if _PREDICTIONS[measured] else (before - now)
        error = float(np.std(differences, ddof=1)) / math.sqrt(now.size)
        return float(differences.mean()) - _ERRORS * error > _TOLERATED * float(before.mean())


def pairs_of(cells: Sequence[Cell]) -> list[Pair]:
    """All pairs that are finished."""
    found = {(cell.data_set, cell.epsilon, cell.method): cell for cell in cells if cell.results}
    return [
        Pair(size, cell, found[other])
        for size, now, before in SIZES
        for cell in found.values()
        if cell.method == now.name and (other := (cell.data_set, cell.epsilon, before.name)) in found
    ]


def write_study(results: Results[Result], plan: Plan, data_sets: Sequence[DataSet], folder: Path) -> Path:
    """Write the page on what is finished.

    Parameters
    ----------
    results : Results
        Finished fits.
    plan : Plan
        Which of them count.
    data_sets : sequence
        Raw tables, in the order of the page.
    folder : Path
        Where it goes.
    """
    cells = summarise(results, plan, data_sets, METHODS)
    pairs = pairs_of(cells)
    lines = [*_preface(plan), "", "## Goals", "", *_goals(pairs), ""]
    for data_set in data_sets:
        inside = [pair for pair in pairs if pair.now.data_set == data_set.name]
        if inside:
            about = f"{len(data_set.names)} features; {data_set.scaling}."
            lines += [f"## {data_set.name}", "", about, "", _table(inside), ""]
    lines += ["## Intervals", "", *_intervals(cells)]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _preface(plan: Plan) -> list[str]:
    return [
        "# Coefficients in the arena",
        "",
        f"`taciturn arena --study coefficients`: delta = {DELTA:g}, {plan.seeds} seeds of the noise on the same",
        "training records, raw tables with a feature for every public level of a category. Today's default stands",
        "before the slash, the commit that `BEFORE` in the Makefile names behind it.",
        "",
        "* *spread*: standard deviation of a coefficient over seeds, the median over columns that half of the fits",
        "  keep;",
        "* *off*: distance from the coefficients of a fit without privacy to the same columns (with a penalty of",
        f"  {PENALTY:g}, as scikit-learn's defaults), over their length;",
        f"* *signs*: how many are the same, of coefficients of at least {CLEAR:g} standard errors without privacy;",
        "* *largest*: the largest absolute coefficient over that of the fit without privacy, the median over seeds;",
        f"* *rare*: kept columns that fewer than {RARE:.1%} of the records have anything in, the mean over seeds;",
        "* *error* (MSE / Var(y) or misclassified), *log-loss*, *AUC* and *slope* (of the target on predictions; 1 is",
        "  calibrated) on the test part, with the standard error of the mean of today's error and log-loss over seeds.",
    ]


def _goals(pairs: Sequence[Pair]) -> list[str]:
    """A row for each goal: how often it is met, and where it is not."""
    rows = [_falling(pairs, "now"), _falling(pairs, "before")]
    chosen = [pair for pair in pairs if pair.size != '"all"' and (pair.now.epsilon or 0.0) >= _FROM]
    for who in ("now", "before"):
        rare = f'no rare column is kept by "auto" and 10 from epsilon {_FROM:g} on'
        rows.append(_row(rare, who, chosen, partial(_without_rare, who)))
        rows.append(_row(f"the median of the largest is at most {_MOST:g}", who, pairs, partial(_moderate, who)))
    for measured in _PREDICTIONS:
        compared = [pair for pair in pairs if pair.now.values(measured)]
        noun = _NOUNS[measured]
        worse = f"{noun} is not worse than before by more than {_TOLERATED:.0%} beyond {_ERRORS:g} standard errors"
        rows.append(_row(worse, "now", compared, partial(_held, measured)))
        if compared:
            ratio = np.mean([math.log(p.now.mean(measured) / p.before.mean(measured)) for p in compared])
            rows.append([f"{noun} over that of before, geometric mean", "now", "", f"{math.exp(ratio):.4f}", ""])
    return [table(["goal", "version", "cells", "met", "not met"], rows)]


_NOUNS = {"error": "error", "log_loss": "log-loss", "auc": "AUC"}


def _without_rare(who: str, pair: Pair) -> bool:
    return max(pair.version(who).values("rare"), default=0) == 0


def _moderate(who: str, pair: Pair) -> bool:
    return bool(np.median(pair.version(who).values("largest") or [0.0]) <= _MOST)


def _held(measured: str, pair: Pair) -> bool:
    return not pair.worse(measured)


def _row(goal: str, who: str, pairs: Sequence[Pair], met: Callable[[Pair], bool]) -> list[str]:
    missed = [pair.place for pair in pairs if not met(pair)]
    return [goal, who, str(len(pairs)), str(len(pairs) - len(missed)), ", ".join(missed)]


def _falling(pairs: Sequence[Pair], who: str) -> list[str]:
    """Of every table the spreads of ``"all"`` by epsilon, each less than the one before."""
    missed, names = [], dict.fromkeys(pair.now.data_set for pair in pairs if pair.size == '"all"')
    for name in names:
        cells = [pair.version(who) for pair in pairs if pair.size == '"all"' and pair.now.data_set == name]
        spreads = [spread_of(cell) for cell in sorted(cells, key=lambda cell: cell.epsilon or 0.0)]
        if any(later >= earlier for earlier, later in pairwise(spreads)):
            missed.append(f"{name} ({', '.join(f'{value:.2g}' for value in spreads)})")
    met = str(len(names) - len(missed))
    return ['the spread of "all" falls with epsilon', who, str(len(names)), met, ", ".join(missed)]


def _table(pairs: Sequence[Pair]) -> str:
    heads = [
        "size",
        "eps",
        "features",
        "spread",
        "off",
        "signs",
        "largest",
        "rare",
        "error",
        "log-loss",
        "AUC",
        "slope",
    ]
    return table(heads, [_cells(pair) for pair in pairs])


def _cells(pair: Pair) -> list[str]:
    def both(number: Callable[[Cell], float], form: str) -> str:
        return " / ".join(_shown(number(cell), form) for cell in (pair.now, pair.before))

    def sure(measured: str) -> str:
        if not (values := pair.now.values(measured)):
            return ""
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return f"{np.mean(values):.4f} ({_shown(error, '.4f')}) / {pair.before.mean(measured):.4f}"

    return [
        pair.size,
        f"{pair.now.epsilon:g}",
        both(lambda cell: cell.nonzeros, ".0f"),
        both(spread_of, ".2f"),
        both(lambda cell: cell.mean("coef_error"), ".2f"),
        both(lambda cell: cell.mean("signs"), ".2f"),
        both(lambda cell: float(np.median(cell.values("largest") or [math.nan])), ".2f"),
        both(lambda cell: cell.mean("rare"), ".1f"),
        sure("error"),
        sure("log_loss"),
        both(lambda cell: cell.mean("auc"), ".3f") if pair.now.values("auc") else "",
        both(lambda cell: cell.mean("calibration_slope"), ".2f"),
    ]


def _intervals(cells: Sequence[Cell]) -> list[str]:
    """Fits with ``inference=True``; every seed draws a sample of the training records with replacement."""
    rows = [
        [
            cell.data_set, "10" if cell.method == INTERVALS[0].name else '"all"', f"{cell.epsilon:g}",
            *(_shown(cell.mean(name), ".2f") for name in ("intervals", "width", "coverage")),
            "" if cell.results else "refused: too few records at this budget",
        ]
        for cell in cells
        if cell.method in {method.name for method in INTERVALS}
    ]  # fmt: skip
    text = [
        "`inference=True`, on samples of the training records that are drawn with replacement: the share of estimable",
        "coefficients with an interval, the median width over that without privacy, and how often the coefficient of",
        "all training records is covered (.95 is right). `python -m taciturn_research.coverage` has more of it.",
        "",
    ]
    return [*text, table(["set", "size", "eps", "share", "width", "coverage", ""], rows)]


def _shown(number: float, form: str) -> str:
    return "" if math.isnan(number) else format(number, form)
