"""Numbers as tables: printed ones beside ours, claims, and ours by themselves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Literal

from taciturn_research.reproduce.experiment import Table
from taciturn_research.reproduce.numbers import Numbers, Summary
from taciturn_research.reproduce.pages.blocks import Block, Cell, Grid, Paragraph, Stamped
from taciturn_research.reproduce.pages.points import are_numbers, distinct, label, stand_in_note
from taciturn_research.reproduce.pages.results import overall_outcome
from taciturn_research.reproduce.verdicts import ClaimVerdict, Overall, Verdict

__all__ = ["claims_grid", "number", "overall_cell", "own_grids", "side_by_side"]

_LONG_REASON = 60
_MOST_DECIMALS = 6
_TONES: Mapping[str, Literal["good", "bad", "neutral"]] = {
    "holds": "good",
    "holds in part": "bad",
    "does not hold": "bad",
    "not run": "neutral",
}


def number(value: float) -> str:
    """A number of ours as it stands in a table.

    Examples
    --------
    >>> [number(value) for value in (7.0, 0.28349, 412.337, 93201.4, 0.00042)]
    ['7', '0.283', '412.3', '93201', '4.2e-04']
    """
    if not math.isfinite(value):
        return "undefined"
    if math.isclose(value, round(value), abs_tol=1e-12):
        return f"{value:.0f}"
    size = abs(value)
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.{3 if size < 100 else 1 if size < 1000 else 0}f}"


def side_by_side(item: Overall) -> list[Block]:
    """What the paper prints beside ours; numbers that are told apart by other keys have a table of their own.

    A long reason that several numbers have in common stands once, below the table.
    """
    by_keys: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in item.numbers:
        by_keys.setdefault(tuple(verdict.published.of), []).append(verdict)
    blocks: list[Block] = []
    for keys, verdicts in by_keys.items():
        common = _common_reasons(verdicts)
        blocks.append(_beside(item.item, keys, verdicts, common))
        blocks += [Paragraph(f"Reason {place}: {reason}") for reason, place in common.items()]
    return blocks


def claims_grid(item: Overall) -> list[Grid]:
    """What the paper says without a number, and what our numbers say to that."""
    lines = tuple((verdict.claim.statement, verdict.evidence, _verdict_cell(verdict)) for verdict in item.claims)
    return [Grid(f"{item.item}: what the paper says", ("claim", "evidence", "verdict"), lines)] if lines else []


def own_grids(table: Table, numbers: Numbers, stand_ins: Mapping[str, str]) -> list[Grid]:
    """Our numbers, one table for each value of the splitting key; means over the lines' key first, where asked for."""
    split = () if table.split is None else (table.split,)
    needed = {*table.lines, table.across, *split}
    parts: dict[tuple[Any, ...], list[Summary]] = {}
    for summary in numbers.summaries(table.where):
        if needed <= summary.of.keys():
            parts.setdefault(tuple(summary.of[key] for key in split), []).append(summary)
    grids = []
    for values, part in parts.items():
        about = _named({**table.where, **dict(zip(split, values, strict=True))})
        about += stand_in_note((name for summary in part for name in summary.of.values()), stand_ins)
        if table.mean_over is not None:
            count = len({summary.of[table.mean_over] for summary in part})
            caption = f"{table.item}: our means over {count} values of '{table.mean_over}'{about}"
            lines = tuple(key for key in table.lines if key != table.mean_over)
            grids.append(_pivot(lines, table.across, _mean_over(table, lines, part), caption))
        caption = f"{table.item}: our means (sd of a trial){about}"
        grids.append(_pivot(table.lines, table.across, _by_place(table, part), caption))
    return grids


def overall_cell(item: Overall) -> Cell:
    """The verdict on a table or figure, in one line."""
    outcome = overall_outcome(item)
    return Stamped(outcome, _TONES[outcome], after=f": {item}") if outcome else str(item)


def _common_reasons(verdicts: Sequence[Verdict]) -> dict[str, int]:
    times = Counter(verdict.published.reason for verdict in verdicts if verdict.outcome == "does not hold")
    often = [reason for reason, number in times.items() if number > 1 and len(reason) > _LONG_REASON]
    return {reason: place for place, reason in enumerate(often, start=1)}


def _beside(item: str, keys: tuple[str, ...], verdicts: Sequence[Verdict], common_reasons: Mapping[str, int]) -> Grid:
    shared = {
        key: verdicts[0].published.of[key]
        for key in keys
        if len(verdicts) > 1 and len({verdict.published.of[key] for verdict in verdicts}) == 1
    }
    places = [key for key in keys if key not in shared]
    lines: list[tuple[Cell, ...]] = []
    for verdict in verdicts:
        place = [label(verdict.published.of[key]) for key in places]
        ours = "" if verdict.ours is None else _with_sd(verdict.ours.mean, verdict.ours.sd)
        cell = _verdict_cell(verdict)
        if verdict.outcome == "does not hold" and verdict.published.reason in common_reasons:
            cell = replace(cell, after=f": reason {common_reasons[verdict.published.reason]} below")
        lines.append((*place, f"{verdict.published.value:.10g}", ours, _difference(verdict), cell))
    header = (*places, "published", "ours (sd)", "difference in sd", "verdict")
    columns = range(len(places), len(places) + 3)
    return Grid(f"{item}: what the paper prints beside ours{_named(shared)}", header, tuple(lines), frozenset(columns))


def _difference(verdict: Verdict) -> str:
    if verdict.ours is None or not math.isfinite(verdict.ours.mean):
        return ""
    if verdict.difference_in_sd is None:
        difference = verdict.ours.mean - verdict.published.value
        return f"no spread ({'+' if difference > 0.0 else '-'}{number(abs(difference))})" if difference else "equal"
    # Without the sign of what rounds to zero.
    return f"{round(verdict.difference_in_sd, 1) + 0.0:+.1f}"


def _verdict_cell(verdict: Verdict | ClaimVerdict) -> Stamped:
    return Stamped(verdict.outcome, _TONES[verdict.outcome], after=str(verdict).removeprefix(verdict.outcome))


_Cells = dict[tuple[Any, ...], dict[Any, str]]


def _pivot(lines: tuple[str, ...], across: str, cells: _Cells, caption: str) -> Grid:
    columns = distinct(column for line in cells.values() for column in line)
    before = f"{across} " if are_numbers(columns) else ""
    header = (*lines, *(f"{before}{label(column)}" for column in columns))
    body = tuple((*map(label, line), *(found.get(column, "") for column in columns)) for line, found in cells.items())
    return Grid(caption, header, body, frozenset(range(len(lines), len(header))))


def _by_place(table: Table, summaries: Iterable[Summary]) -> _Cells:
    cells: _Cells = {}
    for summary in summaries:
        line = cells.setdefault(tuple(summary.of[key] for key in table.lines), {})
        column = summary.of[table.across]
        if column in line:
            raise ValueError(f"{table.item}: two numbers in one cell, such as {summary.of}; name the key in the table")
        line[column] = _with_sd(summary.mean, summary.sd)
    return cells


def _mean_over(table: Table, lines: tuple[str, ...], summaries: Iterable[Summary]) -> _Cells:
    values: dict[tuple[Any, ...], dict[Any, list[float]]] = {}
    for summary in summaries:
        line = tuple(summary.of[key] for key in lines)
        values.setdefault(line, {}).setdefault(summary.of[table.across], []).append(summary.mean)
    return {line: {column: number(fmean(means)) for column, means in found.items()} for line, found in values.items()}


def _named(keys: Mapping[str, Any]) -> str:
    """The keys that have one value throughout, for a caption."""
    single = [f"{key} = {label(value)}" for key, value in keys.items() if not isinstance(value, tuple | list)]
    return f"; {', '.join(single)}" if single else ""


def _with_sd(mean: float, sd: float | None) -> str:
    """Two digits of the standard deviation, and the mean as far as these reach."""
    if sd is None or not math.isfinite(sd):
        return number(mean)
    decimals = max(0, 1 - int(f"{sd:.1e}".partition("e")[2]))
    if decimals > _MOST_DECIMALS:
        return f"{number(mean)} ({number(sd)})"
    return f"{mean:.{decimals}f} ({sd:.{decimals}f})"
