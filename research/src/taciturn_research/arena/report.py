"""The report on the arena: ``results.md``, ``summary.csv``, the pictures, and one screen."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from taciturn_research.arena.library import DEFAULT, DEFAULT_ALL, DEFAULT_AUTO
from taciturn_research.arena.methods import DELTA, Method
from taciturn_research.arena.peers import CONSTANT
from taciturn_research.arena.reasons import REASONS, UNEXPLAINED
from taciturn_research.arena.run import Cell, Plan, Result, summarise
from taciturn_research.arena.sets import DataSet
from taciturn_research.arena.verdict import (
    COMPARISONS,
    ENOUGH_RECORDS,
    LEVEL,
    MOST_ABOVE_CONSTANT,
    PREDICTION,
    Comparison,
    Verdict,
    above_constant,
    best_of,
    of_practice,
    published,
    tally,
    verdicts_of,
)
from taciturn_research.harness import Results
from taciturn_research.pages import table

# ---------------------------------------------------------------------
# A picture per data set: error and F1 against epsilon, a line per method; and one of all cells against the peers.


ERRORS = {"mse": "MSE / Var(y)", "misclassified": "misclassified", "auc": "1 - AUC"}

# Errors of 0 have a place on a logarithmic axis.
_LEAST_ERROR = 1e-4

# Ours in bold, the first edition dotted, peers of practice and published ones solid, the other sound ones faint.
_STYLES: dict[str, dict[str, Any]] = {
    "default": {"linewidth": 2.6, "marker": "o", "zorder": 3},
    "first edition": {"linewidth": 1.6, "linestyle": ":", "marker": "."},
    "practice": {"linewidth": 1.4, "marker": "s", "markersize": 3},
    "published": {"linewidth": 1.0, "marker": "."},
    "sound": {"linewidth": 0.8, "linestyle": "--", "marker": ".", "alpha": 0.6},
}


def file_name(data_set: DataSet) -> str:
    """Of a data set's picture."""
    return re.sub(r"[^a-z0-9]+", "-", data_set.name.lower()) + ".png"


def draw_pictures(data_sets: Sequence[DataSet], cells: Sequence[Cell], folder: Path) -> list[str]:
    """Draw the pictures of all data sets with finished cells.

    Parameters
    ----------
    data_sets : sequence of DataSet
        Which.
    cells : sequence of Cell
        What is finished.
    folder : Path
        It is created if need be.

    Returns
    -------
    list of str
        Names of the data sets that have a picture; none without matplotlib.
    """
    if find_spec("matplotlib") is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for data_set in data_sets:
        inside = [cell for cell in cells if cell.data_set == data_set.name and cell.results]
        if any(cell.epsilon is not None for cell in inside):
            _picture(data_set, inside).savefig(folder / file_name(data_set), dpi=72)
            drawn.append(data_set.name)
    return drawn


def _picture(data_set: DataSet, cells: Sequence[Cell]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    private = [(cell.epsilon, cell) for cell in cells if cell.epsilon is not None]
    for family, style in _STYLES.items():
        ours = family in ("default", "first edition")
        colours = ("black", "dimgray", "darkgray") if ours else [f"C{place}" for place in range(10)]
        names = dict.fromkeys(cell.method for _, cell in private if cell.family == family)
        for name, colour in zip(names, colours, strict=False):
            points = sorted((point for point in private if point[1].method == name), key=itemgetter(0))
            epsilons = [epsilon for epsilon, _ in points]
            left.plot(epsilons, [cell.error for _, cell in points], label=name, color=colour, **style)
            right.plot(epsilons, [cell.f1 for _, cell in points], color=colour, **style)
    for cell in cells:
        if cell.epsilon is None:
            left.axhline(cell.error, color="black", linestyle=":", label=cell.method)
            right.axhline(1.0 if np.isnan(cell.f1) else cell.f1, color="black", linestyle=":")
    budgets = sorted({epsilon for epsilon, _ in private})
    for axes, label in ((left, ERRORS[data_set.error]), (right, "F1 of the support")):
        axes.set(xscale="log", xlabel="epsilon", ylabel=label)
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        axes.minorticks_off()
    right.set_ylim(-0.02, 1.02)
    if data_set.error == "mse":
        # Beyond the error of a constant one failure looks like another.
        left.set_ylim(0.0, 1.5)
    figure.suptitle(f"{data_set.name}: {data_set.n_columns:,} features, k = {data_set.k}")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize="x-small")
    return figure


# ---------------------------------------------------------------------
# The tables of the report: counts over all cells, losses, verdicts cell by cell, and all methods of a data set.


_MEASURES = {"error": "error", "log_loss": "log-loss"}


def counts(judged: Sequence[tuple[Comparison, str, Sequence[Verdict]]]) -> list[str]:
    """Every comparison, counted over its cells."""
    rows = []
    for comparison, measured, verdicts in judged:
        total = tally(verdicts)
        if total.n_cells:
            rows.append(
                [
                    comparison.ours,
                    comparison.against,
                    _MEASURES[measured],
                    str(total.n_cells),
                    f"{total.lower} ({total.lower / total.n_cells:.0%})",
                    f"{total.higher} ({total.higher / total.n_cells:.0%})",
                    str(total.lost),
                ]
            )
    heads = ["ours", "against", "measure", "cells", "lower", "significantly higher", "lost (Holm)"]
    return [table(heads, rows)]


def constants(cells: Sequence[Cell]) -> list[str]:
    """A sentence for each size of the default about log-losses above a constant's."""
    sentences = []
    for name in (PREDICTION, DEFAULT_AUTO.name, DEFAULT_ALL.name, DEFAULT.name):
        judged, above = above_constant(cells, name, CONSTANT.name)
        if judged:
            places = ", ".join(
                f"{cell.data_set} at {cell.epsilon:g} ({_mean(cell, 'log_loss')}, constant {_mean(least, 'log_loss')})"
                for cell, least in above
            )
            sentences.append(
                f"* {name}: log-loss more than {MOST_ABOVE_CONSTANT - 1.0:.0%} above a constant's in {len(above)} of "
                f"{judged} cells with n mu of {ENOUGH_RECORDS:g} or more{f': {places}' if above else ''}."
            )
    return sentences


def losses(verdicts: Sequence[Verdict]) -> list[str]:
    """The cells in which ours is significantly higher by itself, with reasons."""
    rows = [
        [
            verdict.ours.data_set,
            f"{verdict.ours.epsilon:g}",
            _mean(verdict.ours, verdict.measured),
            _mean(verdict.best, verdict.measured),
            verdict.best.method,
            f"{verdict.p_alone:.2g}",
            REASONS.get(verdict.ours.data_set, UNEXPLAINED),
        ]
        for verdict in verdicts
        if verdict.higher
    ]
    heads = ["set", "eps", "ours", "best peer", "which", "p", "reason"]
    return [table(heads, rows)] if rows else [f"No cell is significantly higher at {LEVEL:.0%}."]


def verdict_rows(verdicts: Sequence[Verdict]) -> list[str]:
    """Verdicts cell by cell."""
    rows = [
        [
            verdict.ours.data_set,
            f"{verdict.ours.epsilon:g}",
            _score(verdict.ours),
            f"{verdict.ours.nonzeros:.0f}" if verdict.ours.results else "",
            verdict.best.method,
            setting_in_words(verdict.best.setting),
            _score(verdict.best),
            f"{verdict.best.nonzeros:.0f}",
            f"{verdict.p_alone:.2g}",
            f"{verdict.p_value:.2g}",
            "**lost**" if verdict.word == "lost" else "**higher**" if verdict.higher else verdict.word,
        ]
        for verdict in verdicts
    ]
    heads = [
        "set", "eps", "error / F1", "features", "best rival", "its setting", "error / F1", "features", "p", "p (Holm)",
        "error",
    ]  # fmt: skip
    return [table(heads, rows)]


def chapter(data_set: DataSet, cells: Sequence[Cell], drawn: Sequence[str]) -> list[str]:
    """All methods of a data set."""
    if not cells:
        return []
    lines = [
        f"### {data_set.name}",
        "",
        f"{data_set.n_columns:,} features, k = {data_set.k}; {ERRORS[data_set.error]}.",
    ]
    if data_set.name in drawn:
        lines += ["", f"![{data_set.name}](figures/{file_name(data_set)})"]
    rows = [
        [
            "" if cell.epsilon is None else f"{cell.epsilon:g}",
            cell.method,
            setting_in_words(cell.setting),
            *(_numbers(cell) if cell.results else [f"skipped: {cell.reason}", *[""] * 12]),
        ]
        for cell in sorted(cells, key=lambda cell: cell.epsilon or 0.0)
    ]
    heads = [
        "eps", "method", "setting", "error", "log-loss", "AUC", "calibration", "its slope", "slope", "F1", "features",
        "seconds", "off", "signs", "largest", "rare",
    ]  # fmt: skip
    return [*lines, "", table(heads, rows), ""]


def setting_in_words(setting: str) -> str:
    """A setting, readable."""
    return ", ".join(f"{name} {_value(value)}" for name, value in json.loads(setting).items())


def _value(value: object) -> str:
    """A number in short; any other value as it is."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _numbers(cell: Cell) -> list[str]:
    return [
        f"{cell.error:.3f}",
        _known(cell.mean("log_loss"), 3),
        _known(cell.mean("auc"), 3),
        _known(cell.mean("calibration"), 3),
        _known(cell.mean("calibration_slope"), 2),
        _known(cell.mean("slope"), 2),
        _known(cell.f1, 2),
        f"{cell.nonzeros:.0f}",
        f"{cell.mean('seconds'):.2f}",
        *(_known(cell.mean(name), 2) for name in ("coef_error", "signs", "largest")),
        _known(cell.mean("rare"), 1),
    ]


def _known(number: float, digits: int) -> str:
    """Empty where a measure has no meaning, such as the F1 of the fit that others are compared with."""
    return "" if np.isnan(number) else f"{number:.{digits}f}"


def _mean(cell: Cell, measured: str) -> str:
    values = cell.values(measured)
    return f"{np.mean(values):.3f}" if values else "refused"


def _score(cell: Cell) -> str:
    return f"{cell.error:.3f} / {_known(cell.f1, 2)}" if cell.results else "refused"


# ---------------------------------------------------------------------
# What the results say: ``results.md``, ``summary.csv`` and the pictures.


PUBLISHED = Path(__file__).parent
"""The folder of the report that the repository holds and that pages quote."""

Judged = tuple[Comparison, str, Sequence[Verdict]]


def write_report(
    results: Results[Result], plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], folder: Path
) -> Path:
    """Write the report on what is finished.

    Parameters
    ----------
    results : Results
        Finished fits.
    plan : Plan
        Which of them count.
    data_sets, methods : sequences
        In the order of the tables.
    folder : Path
        Where the files go.

    Returns
    -------
    Path
        Of ``results.md``.
    """
    by_choice = {
        (what, others): summarise(results, plan, data_sets, methods, what, from_others=others)
        for what in ("error", "log_loss")
        for others in (False, True)
    }
    cells = by_choice["error", False]
    folder.mkdir(parents=True, exist_ok=True)
    _write_summary(cells, folder / "summary.csv")
    drawn = draw_pictures(data_sets, cells, folder / "figures")
    judged: list[Judged] = [
        (comparison, measured, verdicts_of(comparison, measured, by_choice[measured, comparison.from_others]))
        for comparison in COMPARISONS
        for measured in comparison.measures
    ]
    lines = [*_preface(plan), "", "## All cells", "", *counts(judged), "", *constants(cells)]
    judged = [each for each in judged if not each[0].from_others]
    for comparison, measured, verdicts in judged:
        if comparison.rivals is of_practice and verdicts:
            lines += ["", f"## {comparison.ours}: significantly higher {_noun(measured)} than the best peer", ""]
            lines += losses(verdicts)
    for comparison, measured, verdicts in judged:
        if measured == "error" and comparison.rivals in (of_practice, published):
            lines += _section(comparison, verdicts)
    lines += ["", "## All methods", ""]
    for data_set in data_sets:
        lines += chapter(data_set, [cell for cell in cells if cell.data_set == data_set.name], drawn)
    path = folder / "results.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _noun(measured: str) -> str:
    return measured.replace("_", "-")


def _preface(plan: Plan) -> list[str]:
    setting = "quick" if plan.quick else "full"
    return [
        "# The arena",
        "",
        f"The {setting} setting of `make arena`: delta = {DELTA:g} for everybody, {plan.seeds} seeds. Peers of",
        "practice and published methods have the setting that is best *on the test data*, for the error and once more",
        f"for the log-loss ({plan.search_seeds} seeds of a grid), published ones at their claimed epsilon. The best of",
        "them is chosen on the test data once more; F1 is that of the setting with the best error. Ours have one",
        "setting and see no test data. `README.md` says how the data are scaled and what else the others get for free.",
        "",
        f"*Lower* compares means. *Significantly higher* is a one-sided sign test over seeds at {LEVEL:.0%} in each",
        "cell by itself, so up to that share of cells is called so where there is no difference. *Lost* is what is",
        f"left of it after Holm's correction over all cells, for which {plan.seeds} seeds are too few from",
        f"{int(LEVEL * 2**plan.seeds) + 1} cells on. *Settings from other sets*: those that are best on the",
        "other half of the sets of the task, so that no test record of a set has a say in them; methods with several",
        f"settings are then judged on {plan.search_seeds} seeds.",
        "",
        "*Its slope* is that of the target on predictions, 1 where they are calibrated; *slope* that of predictions on",
        "the true ones. The last four columns are about coefficients of raw tables, as in `coefficients.md`.",
    ]


def _section(comparison: Comparison, verdicts: Sequence[Verdict]) -> list[str]:
    lines = ["", f"## {comparison.ours} against the {comparison.against}", ""]
    if not verdicts:
        return [*lines, "No cell is finished."]
    words = [verdict.word for verdict in verdicts]
    found = ", ".join(f"{word}: {words.count(word)}" for word in ("lower", "not higher", "lost"))
    lost = [f"{verdict.ours.data_set} at {verdict.ours.epsilon:g}" for verdict in verdicts if verdict.word == "lost"]
    lines += [
        f"Mean test error in {len(verdicts)} cells: {found}.",
        f"Cells lost: {', '.join(lost) if lost else 'none'}.",
    ]
    if comparison.ours == DEFAULT.name:
        better = sum(verdict.higher_f1 for verdict in verdicts)
        above_all = sum(verdict.ours.f1 > verdict.most_f1 for verdict in verdicts)
        lines.append(
            f"F1 is higher in {better} of {len(verdicts)} cells, and higher than that of every rival in {above_all}."
        )
    return [*lines, "", *verdict_rows(verdicts)]


def _write_summary(cells: Sequence[Cell], path: Path) -> None:
    names = ("set", "epsilon", "method", "setting", "seeds")
    measures = ("auc", "calibration_slope", "coef_error", "signs", "largest", "rare")
    numbers = ("error", "error_sd", "log_loss", "calibration", "slope", "f1", "features", "seconds", *measures)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *numbers, "skipped"])
        for cell in cells:
            epsilon = "" if cell.epsilon is None else f"{cell.epsilon:g}"
            shared = ("log_loss", "calibration", "slope", "f1", "nonzeros", "seconds", *measures)
            means = [cell.mean(name) for name in shared]
            found = [cell.error, _deviation(cell.values("error")), *means]
            kept = [not np.isnan(number) and bool(cell.results) for number in found]
            shown = [f"{number:.4g}" if known else "" for number, known in zip(found, kept, strict=True)]
            of = [cell.data_set, epsilon, cell.method, setting_in_words(cell.setting), len(cell.results)]
            writer.writerow([*of, *shown, cell.reason])


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values)) if values else float("nan")


# ---------------------------------------------------------------------
# One screen: ours beside the first edition and the best peer of practice, a line per data set and epsilon.


_OURS = ("default, as advised", "default, k auto", "default, all", "default")
_FIRST = ("first edition, k auto", "first edition")


def compared(
    results: Results[Result], plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], measured: str
) -> str:  # fmt: skip
    """The table, and the counts over all cells.

    Ours are marked by comparison with the best peer: + lower, - higher, ! significantly higher in this cell alone.

    Parameters
    ----------
    results : Results
        Finished fits.
    plan : Plan
        Which of them count.
    data_sets, methods : sequences
        In the order of the table.
    measured : {"error", "log_loss"}
        What is shown.
    """
    cells = summarise(results, plan, data_sets, methods, measured)
    from_others = summarise(results, plan, data_sets, methods, measured, from_others=True)
    marks = {}
    counts = []
    for comparison in COMPARISONS:
        if measured not in comparison.measures:
            continue
        verdicts = verdicts_of(comparison, measured, from_others if comparison.from_others else cells)
        total = tally(verdicts)
        if total.n_cells:
            counts.append(
                f"{comparison.ours} against {comparison.against}: lower in {total.lower} of {total.n_cells} "
                f"({total.lower / total.n_cells:.0%}), significantly higher in {total.higher} "
                f"({total.higher / total.n_cells:.0%}), lost after Holm {total.lost}"
            )
        if comparison.rivals is of_practice and not comparison.from_others:
            for verdict in verdicts:
                place = (verdict.ours.data_set, verdict.ours.epsilon, comparison.ours)
                marks[place] = "+" if verdict.lower else "!" if verdict.higher else "-"
    heads = f"{'set':<23}{'eps':>4}  {'auto':>7}{'all':>8}{'k':>8}   {'1st auto':>8}{'1st k':>8}   best peer"
    lines = [heads]
    for data_set in data_sets:
        for epsilon in plan.epsilons:
            found = {c.method: c for c in cells if (c.data_set, c.epsilon) == (data_set.name, epsilon)}
            peers = [cell for cell in found.values() if of_practice(cell) and cell.values(measured)]
            shown = [cell for name, cell in found.items() if name in (*_OURS, *_FIRST) and cell.values(measured)]
            if not shown and not peers:
                continue
            best = best_of(peers, measured) if peers else None
            ours = [
                _number(found.get(name), measured) + marks.get((data_set.name, epsilon, name), " ") for name in _OURS
            ]
            first = [_number(found.get(name), measured) for name in _FIRST]
            peer = "" if best is None else f"{_number(best, measured)} {best.method}"
            lines.append(f"{data_set.name:<23}{epsilon:>4g}  {''.join(ours)}  {' '.join(first)}  {peer}")
    return "\n".join([*lines, "", *counts])


def _number(cell: Cell | None, measured: str) -> str:
    values = cell.values(measured) if cell is not None else []
    return f"{np.mean(values):7.4f}" if values else f"{'.':>7}"
