"""What a folder of finished trials says: ``results.json``, ``reproduction.md`` and, with matplotlib, figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taciturn.reproduce.experiment import Experiment, Layout
from taciturn.reproduce.figures import draw_figures
from taciturn.reproduce.records import Records, versions
from taciturn.reproduce.summary import Summary, Verdict, judge, summarise

__all__ = ["write_report"]

REPORT_NAME = "reproduction.md"


def write_report(experiments: Sequence[Experiment], output: str | os.PathLike[str]) -> Path:
    """Write the report on all finished trials of these experiments.

    Parameters
    ----------
    experiments : sequence of Experiment
        Those without a finished trial are left out.
    output : path
        The folder in which ``run_experiment`` left the trials.

    Returns
    -------
    Path
        Of ``reproduction.md``.
    """
    folder = Path(output)
    records = Records(folder)
    overview = [["paper", "item", "experiment", "verdict"]]
    chapters: list[str] = []
    results: dict[str, Any] = {"versions": versions(), "experiments": {}}
    for experiment in experiments:
        finished = {case: records.of(experiment.name, case) for case in experiment.cases}
        summaries = summarise(row for found in finished.values() for record in found for row in record.rows)
        if not summaries:
            continue
        verdicts, others = _judged(experiment, summaries)
        absent = [case for case, found in finished.items() if not found]
        figures = draw_figures(experiment, others, folder) if experiment.layout.figure else []
        chapters += _chapter(experiment, summaries, verdicts, others, absent, figures)
        overview.append([experiment.paper, experiment.item, experiment.name, _overall(verdicts)])
        results["experiments"][experiment.name] = {
            "paper": experiment.paper,
            "item": experiment.item,
            "relation": experiment.relation,
            "scaling": experiment.scaling,
            "not available": absent,
            "seeds": {case: [record.seed for record in found] for case, found in finished.items() if found},
            "summaries": [asdict(summary) for summary in summaries],
            "verdicts": [
                {"of": verdict.published.of, "published": verdict.published.value, "verdict": str(verdict)}
                for verdict in verdicts
            ],
        }
    _replace(folder / "results.json", json.dumps(results, indent=1) + "\n")
    computed_by = ", ".join(f"{name} {number}" for name, number in versions().items())
    intro = ["# Reproduction", f"Computed by {computed_by}.", _table(overview)]
    path = folder / REPORT_NAME
    _replace(path, "\n\n".join(intro + chapters) + "\n")
    return path


def _judged(experiment: Experiment, summaries: list[Summary]) -> tuple[list[Verdict], list[Summary]]:
    """Verdicts on what the paper prints, and the summaries of what it does not."""
    verdicts, others = [], []
    for summary in summaries:
        printed = next((number for number in experiment.published if number.of == summary.of), None)
        if printed is None:
            others.append(summary)
        else:
            verdicts.append(judge(printed, summary))
    return verdicts, others


def _overall(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return "no numbers printed"
    held = sum(verdict.holds for verdict in verdicts)
    return f"{held} of {len(verdicts)} numbers hold"


def _chapter(
    experiment: Experiment,
    summaries: list[Summary],
    verdicts: list[Verdict],
    others: list[Summary],
    absent: list[str],
    figures: list[str] | None,
) -> list[str]:
    trials = sorted({summary.trials for summary in summaries})
    spread = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    facts = [
        f"Trials: {spread} (the paper's number: {experiment.trials}).",
        f"Relation: {experiment.relation}.",
        f"Scaling: {experiment.scaling}.",
        *experiment.notes,
    ]
    if absent:
        facts.append(f"Not run, data not available: {', '.join(absent)}.")
    if figures is None:
        facts.append("No figures: matplotlib is not installed (pip install 'taciturn[report]').")
    blocks = [
        f"## {experiment.name}: {experiment.item}",
        f"{experiment.paper}: {experiment.summary}.",
        "\n".join(f"- {fact}" for fact in facts),
    ]
    if verdicts:
        blocks.append(_side_by_side(verdicts))
    blocks += _plain(experiment.layout, others)
    blocks += [f"![{experiment.name}]({figure})" for figure in figures or []]
    return blocks


def _side_by_side(verdicts: list[Verdict]) -> str:
    keys = list(verdicts[0].published.of)
    lines = [[*keys, "published", "ours", "difference", "in sd", "verdict"]]
    for verdict in verdicts:
        place = [str(verdict.published.of[key]) for key in keys]
        ours, printed = verdict.ours, verdict.published.value
        in_sd = "no spread" if verdict.difference_in_sd is None else f"{verdict.difference_in_sd:+.1f}"
        lines.append([*place, f"{printed:g}", _cell(ours), f"{ours.mean - printed:+.3f}", in_sd, str(verdict)])
    return _table(lines)


def _plain(layout: Layout, summaries: list[Summary]) -> list[str]:
    """One table per value of the splitting key; means over the lines' key first, where asked for."""
    blocks: list[str] = []
    for value in dict.fromkeys(summary.of.get(layout.split) for summary in summaries):
        part = [summary for summary in summaries if summary.of.get(layout.split) == value]
        title = "" if layout.split is None else f", {layout.split} = {value}"
        if layout.mean_over is not None:
            number = len({summary.of[layout.mean_over] for summary in part})
            blocks.append(f"Mean over {number} values of '{layout.mean_over}'{title}:")
            blocks.append(_pivot(layout, _means_over(layout.mean_over, part)))
        blocks.append(f"Mean (sd of a trial){title}:")
        blocks.append(_pivot(layout, part))
    return blocks


def _means_over(key: str, summaries: list[Summary]) -> list[Summary]:
    means = summarise({**summary.of, key: "all", "value": summary.mean} for summary in summaries)
    return [Summary(mean.of, mean.mean, None, mean.trials) for mean in means]


def _pivot(layout: Layout, summaries: list[Summary]) -> str:
    columns = list(dict.fromkeys(summary.of[layout.across] for summary in summaries))
    cells: dict[tuple[Any, ...], dict[Any, str]] = {}
    for summary in summaries:
        line = tuple(summary.of[key] for key in layout.lines)
        cells.setdefault(line, {})[summary.of[layout.across]] = _cell(summary)
    numeric = all(isinstance(column, int | float) for column in columns)
    header = [*layout.lines, *(f"{layout.across} {column:g}" if numeric else str(column) for column in columns)]
    body = [[*map(str, line), *(found.get(column, "") for column in columns)] for line, found in cells.items()]
    return _table([header, *body])


def _cell(summary: Summary) -> str:
    return _number(summary.mean) + ("" if summary.sd is None else f" ({_number(summary.sd)})")


def _number(value: float) -> str:
    return f"{value:.0f}" if math.isclose(value, round(value), abs_tol=1e-12) else f"{value:.3f}"


def _table(lines: list[list[str]]) -> str:
    header, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([header, "|" + " --- |" * len(lines[0]), *body])


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
