"""The tables of the report: counts over all cells, losses, verdicts cell by cell, and all methods of a data set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from taciturn_research.arena.bars import Comparison
from taciturn_research.arena.pictures import ERRORS, file_name
from taciturn_research.arena.reasons import REASONS, UNEXPLAINED
from taciturn_research.arena.sets import DataSet
from taciturn_research.arena.summary import Cell
from taciturn_research.arena.verdict import LEVEL, Verdict, tally

__all__ = ["chapter", "counts", "losses", "setting_in_words", "table", "verdict_rows"]

_MEASURES = {"error": "error", "log_loss": "log-loss"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


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
    return table(heads, rows)


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
    return table(heads, rows) if rows else [f"No cell is significantly higher at {LEVEL:.0%}."]


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
    return table(heads, rows)


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
            *(_numbers(cell) if cell.results else [f"skipped: {cell.reason}", *[""] * 6]),
        ]
        for cell in sorted(cells, key=lambda cell: cell.epsilon or 0.0)
    ]
    heads = ["eps", "method", "setting", "error", "log-loss", "calibration", "slope", "F1", "features", "seconds"]
    return [*lines, "", *table(heads, rows), ""]


def setting_in_words(setting: str) -> str:
    """A setting, readable."""
    return ", ".join(f"{name} {_value(value)}" for name, value in json.loads(setting).items())


def _value(value: object) -> str:
    """A number in short; any other value as it is."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _numbers(cell: Cell) -> list[str]:
    return [
        f"{cell.error:.3f}",
        _known(cell.log_loss, 3),
        _known(cell.calibration, 3),
        _known(cell.slope, 2),
        _known(cell.f1, 2),
        f"{cell.nonzeros:.0f}",
        f"{cell.seconds:.2f}",
    ]


def _known(number: float, digits: int) -> str:
    """Empty where a measure has no meaning, such as the F1 of the fit that others are compared with."""
    return "" if np.isnan(number) else f"{number:.{digits}f}"


def _mean(cell: Cell, measured: str) -> str:
    values = cell.values(measured)
    return f"{np.mean(values):.3f}" if values else "refused"


def _score(cell: Cell) -> str:
    return f"{cell.error:.3f} / {_known(cell.f1, 2)}" if cell.results else "refused"
