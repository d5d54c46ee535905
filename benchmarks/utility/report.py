"""What the results say: ``results.md``, ``summary.csv`` and the pictures."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.utility.methods import DELTA, Method
from benchmarks.utility.pictures import ERRORS, draw_pictures, file_name
from benchmarks.utility.results import Results
from benchmarks.utility.run import Plan
from benchmarks.utility.sets import DataSet
from benchmarks.utility.sound import DEFAULTS
from benchmarks.utility.summary import Cell, summarise
from benchmarks.utility.verdict import LEVEL, Verdict, judge

__all__ = ["write_readme", "write_report"]

WANTED_F1 = 0.8
BEGIN, END = "<!-- arena: begin -->", "<!-- arena: end -->"


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
    cells = summarise(results, plan, data_sets, methods)
    folder.mkdir(parents=True, exist_ok=True)
    _write_summary(cells, folder / "summary.csv")
    drawn = draw_pictures(data_sets, cells, folder / "figures")
    lines = _preface(plan)
    for default in DEFAULTS:
        lines += _verdicts(default.name, judge(cells, default.name))
    lines += ["", "## All methods", ""]
    for data_set in data_sets:
        lines += _chapter(data_set, [cell for cell in cells if cell.data_set == data_set.name], drawn)
    path = folder / "results.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_readme(
    results: Results, plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], path: Path
) -> None:
    """Put the errors of the default and of the best published method between two marks of a page."""
    verdicts = judge(summarise(results, plan, data_sets, methods), DEFAULTS[0].name)
    by_cell = {(verdict.ours.data_set, verdict.ours.epsilon): verdict for verdict in verdicts}
    heads, rows = ["data set"], []
    for epsilon in plan.epsilons:
        heads += [f"default, epsilon {epsilon:g}", "best published"]
    for data_set in data_sets:
        found = [by_cell.get((data_set.name, epsilon)) for epsilon in plan.epsilons]
        if any(found):
            rows.append([data_set.name, *(word for verdict in found for word in _errors(verdict))])
    words = [verdict.word for verdict in verdicts]
    text = path.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    summary = (
        f"Of {len(words)} cells the default has the lower error in {words.count('lower')}, is not significantly higher "
        f"in {words.count('not higher')}, and has **lost** {words.count('lost')}."
    )
    block = "\n".join([BEGIN, "", *_table(heads, rows), "", summary, ""])
    path.write_text(f"{before}{block}\n{after}", encoding="utf-8")


def _errors(verdict: Verdict | None) -> tuple[str, str]:
    if verdict is None:
        return "", ""
    ours = f"{verdict.ours.error:.3f}" if verdict.ours.results else "refused"
    return f"{ours} (**lost**)" if verdict.word == "lost" else ours, f"{verdict.best.error:.3f} ({verdict.best.method})"


def _preface(plan: Plan) -> list[str]:
    setting = "quick" if plan.quick else "full"
    return [
        "# The arena",
        "",
        f"The {setting} setting of `make arena`: delta = {DELTA:g} for everybody, {plan.seeds} seeds. Each published",
        f"method has its claimed epsilon and the setting that is best *on the test data* ({plan.search_seeds} seeds of",
        "a grid), and the best of them is chosen on the test data once more; F1 is that of the setting with the best",
        "error. Ours have one setting and see no test data. `README.md` says how the data are scaled and what else the",
        "published methods get for free.",
    ]


def _verdicts(name: str, verdicts: Sequence[Verdict]) -> list[str]:
    if not verdicts:
        return ["", f"## {name}", "", "No cell is finished."]
    words = [verdict.word for verdict in verdicts]
    counts = ", ".join(f"{word}: {words.count(word)}" for word in ("lower", "not higher", "lost"))
    better = sum(verdict.higher_f1 for verdict in verdicts)
    above_all = sum(verdict.ours.f1 > verdict.most_f1 for verdict in verdicts)
    lost = [f"{verdict.ours.data_set} at {verdict.ours.epsilon:g}" for verdict in verdicts if verdict.word == "lost"]
    lines = [
        "",
        f"## {name}",
        "",
        f"Mean test error against the best published method in {len(verdicts)} cells: {counts}. Lost is a cell in",
        f"which the error is significantly higher (one-sided sign test over seeds, {LEVEL:.0%}, Holm over the cells).",
        f"F1 is higher in {better} of {len(verdicts)} cells ({better / len(verdicts):.0%}, wanted {WANTED_F1:.0%}),",
        f"and higher than that of every published method in {above_all}.",
        f"Cells lost: {', '.join(lost) if lost else 'none'}.",
        "",
    ]
    rows = [
        [
            verdict.ours.data_set,
            f"{verdict.ours.epsilon:g}",
            _score(verdict.ours),
            f"{verdict.ours.nonzeros:.0f}" if verdict.ours.results else "",
            verdict.best.method,
            _words(verdict.best.setting),
            _score(verdict.best),
            f"{verdict.best.nonzeros:.0f}",
            f"{verdict.p_value:.2g}",
            "**lost**" if verdict.word == "lost" else verdict.word,
        ]
        for verdict in verdicts
    ]
    heads = [
        "set", "eps", "error / F1", "features", "best published", "its setting", "error / F1", "features", "p (Holm)",
        "error",
    ]  # fmt: skip
    return [*lines, *_table(heads, rows)]


def _chapter(data_set: DataSet, cells: Sequence[Cell], drawn: Sequence[str]) -> list[str]:
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
            _words(cell.setting),
            *(
                [f"{cell.error:.3f}", _f1(cell), f"{cell.nonzeros:.0f}", f"{cell.seconds:.2f}"]
                if cell.results
                else [f"skipped: {cell.reason}", "", "", ""]
            ),
        ]
        for cell in sorted(cells, key=lambda cell: cell.epsilon or 0.0)
    ]
    heads = ["eps", "method", "setting", "error", "F1", "features", "seconds"]
    return [*lines, "", *_table(heads, rows), ""]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def _f1(cell: Cell) -> str:
    """Empty where the fit itself is what others are compared with."""
    return "" if np.isnan(cell.f1) else f"{cell.f1:.2f}"


def _score(cell: Cell) -> str:
    return f"{cell.error:.3f} / {_f1(cell)}" if cell.results else "refused"


def _words(setting: str) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in json.loads(setting).items())


def _write_summary(cells: Sequence[Cell], path: Path) -> None:
    names = ("set", "epsilon", "method", "setting", "seeds")
    numbers = ("error", "error_sd", "f1", "features", "seconds")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *numbers, "skipped"])
        for cell in cells:
            epsilon = "" if cell.epsilon is None else f"{cell.epsilon:g}"
            found = [cell.error, np.std(cell.errors), cell.f1, cell.nonzeros, cell.seconds] if cell.results else []
            shown = [f"{number:.4g}" for number in found] or [""] * len(numbers)
            of = [cell.data_set, epsilon, cell.method, _words(cell.setting), len(cell.results)]
            writer.writerow([*of, *shown, cell.reason])
