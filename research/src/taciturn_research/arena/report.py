"""What the results say: ``results.md``, ``summary.csv`` and the pictures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from taciturn_research.arena.bars import (
    COMPARISONS,
    Comparison,
    of_practice,
    published,
    verdicts_of,
)
from taciturn_research.arena.methods import DELTA, Method
from taciturn_research.arena.pictures import draw_pictures
from taciturn_research.arena.results import Results
from taciturn_research.arena.run import Plan
from taciturn_research.arena.sets import DataSet
from taciturn_research.arena.sound import DEFAULT
from taciturn_research.arena.summary import Cell, summarise
from taciturn_research.arena.tables import chapter, counts, losses, setting_in_words, verdict_rows
from taciturn_research.arena.verdict import LEVEL, Verdict

__all__ = ["PUBLISHED", "write_report"]

PUBLISHED = Path(__file__).parent
"""The folder of the report that the repository holds and that pages quote."""

Judged = tuple[Comparison, str, Sequence[Verdict]]


def write_report(
    results: Results, plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], folder: Path
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
    by_measure = {what: summarise(results, plan, data_sets, methods, what) for what in ("error", "log_loss")}
    cells = by_measure["error"]
    folder.mkdir(parents=True, exist_ok=True)
    _write_summary(cells, folder / "summary.csv")
    drawn = draw_pictures(data_sets, cells, folder / "figures")
    judged: list[Judged] = [
        (comparison, measured, verdicts_of(comparison, measured, by_measure[measured]))
        for comparison in COMPARISONS
        for measured in comparison.measures
    ]
    lines = [*_preface(plan), "", "## All cells", "", *counts(judged)]
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
        f"{int(LEVEL * 2**plan.seeds) + 1} cells on.",
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
    numbers = ("error", "error_sd", "log_loss", "calibration", "slope", "f1", "features", "seconds")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *numbers, "skipped"])
        for cell in cells:
            epsilon = "" if cell.epsilon is None else f"{cell.epsilon:g}"
            found = [
                cell.error, _deviation(cell.values("error")), cell.log_loss, cell.calibration, cell.slope, cell.f1,
                cell.nonzeros, cell.seconds,
            ]  # fmt: skip
            kept = [not np.isnan(number) and bool(cell.results) for number in found]
            shown = [f"{number:.4g}" if known else "" for number, known in zip(found, kept, strict=True)]
            of = [cell.data_set, epsilon, cell.method, setting_in_words(cell.setting), len(cell.results)]
            writer.writerow([*of, *shown, cell.reason])


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values)) if values else float("nan")
