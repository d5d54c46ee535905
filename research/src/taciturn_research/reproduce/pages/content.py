"""What the report says: finished trials, tables and verdicts, block by block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from taciturn_research.reproduce.experiment import (
    Case,
    ClaimVerdict,
    Experiment,
    Numbers,
    Overall,
    Row,
    Summary,
    Table,
    Verdict,
    judge_items,
)
from taciturn_research.reproduce.pages.blocks import Block, Cell, Facts, Grid, Heading, Image, Paragraph, Stamped
from taciturn_research.reproduce.pages.figures import are_numbers, can_draw, distinct, images_of, label, stand_in_note
from taciturn_research.reproduce.runner import Trial, find_trials, trials_in, versions

# ---------------------------------------------------------------------
# What a folder of finished trials holds, experiment by experiment, and the same as JSON.


@dataclass(frozen=True)
class Result:
    """An experiment with its cases, each with its finished trials: none where it was not run."""

    experiment: Experiment
    finished: tuple[tuple[Case, list[Trial]], ...]

    @cached_property
    def numbers(self) -> Numbers:
        """Those of all trials. What both a quick case and a full one say is taken from the full one."""
        return Numbers(_rows(self.finished))

    @cached_property
    def items(self) -> tuple[Overall, ...]:
        """The verdicts, by table and figure."""
        return judge_items(self.experiment, self.numbers)

    @property
    def run_cases(self) -> list[tuple[Case, list[Trial]]]:
        """The cases that have finished trials, with these."""
        return [(case, records) for case, records in self.finished if records]

    @property
    def trials(self) -> str:
        """How many trials a case has: a number, or the least and the most."""
        numbers = sorted({len(records) for _, records in self.run_cases})
        return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"

    @property
    def stand_ins(self) -> dict[str, str]:
        """Names of the cases that were run in place of a data set that is not to be had, with its name."""
        return {case.name: case.stands_in_for for case, _ in self.run_cases if case.stands_in_for}

    @property
    def not_available(self) -> list[str]:
        """Data sets without a trial, although every setting runs on them."""
        settings: dict[str, set[str]] = {}
        for case, _ in self.finished:
            if case.dataset is not None:
                settings.setdefault(case.dataset, set()).add(case.setting)
        run = {case.dataset for case, _ in self.run_cases}
        return [name for name, has in settings.items() if name not in run and ("both" in has or len(has) == 2)]

    @property
    def left_for_full(self) -> list[str]:
        """Cases that only the full setting runs, and that were not run."""
        missing = self.not_available
        return [
            case.name
            for case, records in self.finished
            if case.setting == "full" and not records and case.dataset not in missing
        ]


def read_results(experiments: Sequence[Experiment], folder: Path) -> list[Result]:
    """The finished trials of these experiments, also of those that have none."""
    trials = trials_in(folder, experiments)
    return [
        Result(experiment, tuple((case, find_trials(trials, experiment, case.name)) for case in experiment.cases))
        for experiment in experiments
    ]


def outcomes(results: Iterable[Result]) -> tuple[Counter[str], Counter[str]]:
    """How often printed numbers and how often claims have which outcome."""
    numbers, claims = Counter[str](), Counter[str]()
    for result in results:
        for item in result.items:
            numbers.update(verdict.outcome for verdict in item.numbers)
            claims.update(verdict.outcome for verdict in item.claims)
    return numbers, claims


def overall_outcome(item: Overall) -> str:
    """One word for a table or figure; empty where the paper neither prints a number nor claims anything."""
    found = {verdict.outcome for verdict in item.numbers} | {verdict.outcome for verdict in item.claims}
    if {"holds", "does not hold"} <= found:
        return "holds in part"
    return next((word for word in ("holds", "does not hold", "not run") if word in found), "")


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Everything that the pages say, and the seeds and digests behind it, as values for ``json.dumps``."""
    run = [result for result in results if result.run_cases]
    numbers, claims = outcomes(run)
    return {
        "versions": versions(),
        "numbers": numbers,
        "claims": claims,
        "without trials": [result.experiment.name for result in results if not result.run_cases],
        "experiments": {result.experiment.name: _experiment(result) for result in run},
    }


def _rows(finished: Iterable[tuple[Case, list[Trial]]]) -> Iterator[Row]:
    finished = list(finished)
    in_full = {_place(row) for case, records in finished if case.setting == "full" for row in _rows_of(records)}
    for case, records in finished:
        for row in _rows_of(records):
            if case.setting != "quick" or _place(row) not in in_full:
                yield row


def _rows_of(records: Iterable[Trial]) -> Iterator[Row]:
    return (row for record in records for row in record.rows)


def _place(row: Row) -> frozenset[tuple[str, Any]]:
    return frozenset((key, value) for key, value in row.items() if key != "value")


def _experiment(result: Result) -> dict[str, Any]:
    experiment = result.experiment
    return {
        "paper": experiment.paper,
        "summary": experiment.summary,
        "relation": experiment.relation,
        "scaling": experiment.scaling,
        "notes": list(experiment.notes),
        "trials": result.trials,
        "trials of the paper": experiment.trials,
        "cases": [_case(case, records) for case, records in result.run_cases],
        "stand-ins": result.stand_ins,
        "not available": result.not_available,
        "left for the full setting": result.left_for_full,
        "items": [_item(item) for item in result.items],
        "summaries": [{"of": summary.of} | _spread(summary) for summary in result.numbers.summaries()],
    }


def _case(case: Case, records: list[Trial]) -> dict[str, Any]:
    return {
        "name": case.name,
        "data set": case.dataset,
        "stands in for": case.stands_in_for,
        # Equal for all: records of another file are not read.
        "data": records[0].data,
        "seeds": [record.seed for record in records],
    }


def _item(item: Overall) -> dict[str, Any]:
    return {
        "item": item.item,
        "outcome": overall_outcome(item),
        "verdict": str(item),
        "numbers": [_number(verdict) for verdict in item.numbers],
        "claims": [_claim(verdict) for verdict in item.claims],
    }


def _number(verdict: Verdict) -> dict[str, Any]:
    return {
        "of": verdict.published.of,
        "published": verdict.published.value,
        "ours": None if verdict.ours is None else _spread(verdict.ours),
        "difference in sd": _finite(verdict.difference_in_sd),
        "outcome": verdict.outcome,
        "reason": verdict.published.reason if verdict.outcome == "does not hold" else "",
    }


def _claim(verdict: ClaimVerdict) -> dict[str, Any]:
    return {
        "statement": verdict.claim.statement,
        "evidence": verdict.evidence,
        "outcome": verdict.outcome,
        "reason": verdict.claim.reason if verdict.outcome == "does not hold" else "",
    }


def _spread(summary: Summary) -> dict[str, Any]:
    return {"mean": _finite(summary.mean), "sd": _finite(summary.sd), "trials": summary.trials}


def _finite(value: float | None) -> float | None:
    """JSON has no word for what is not a number."""
    return value if value is not None and math.isfinite(value) else None


# ---------------------------------------------------------------------
# Numbers as tables: printed ones beside ours, claims, and ours by themselves.


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


# ---------------------------------------------------------------------
# What the report says, block by block.


MEANING = (
    "A number that a paper prints holds if it lies within two standard deviations of one trial around our mean, or "
    "differs by less than its last digit tells. A claim without a number holds if our numbers bear it out; the "
    "evidence stands beside it."
)
_NO_FIGURES = "No figures: matplotlib is not installed (pip install 'taciturn[reproduce]')."
_NOT_PRIVATE = "not private"


def counted(what: str, outcome: Mapping[str, int]) -> str:
    """How many of the printed numbers, or of the claims, hold.

    Examples
    --------
    >>> counted("claims", {"holds": 3, "not run": 1})
    'Of 4 claims 3 hold, 0 do not, 1 not run for lack of data.'
    """
    holds, fails, not_run = (outcome.get(word, 0) for word in ("holds", "does not hold", "not run"))
    end = f", {not_run} not run for lack of data" if not_run else ""
    return f"Of {holds + fails + not_run} {what} {holds} hold, {fails} do not{end}."


def short_name(paper: str) -> str:
    """The name in parentheses after a paper's title, where there is one.

    Examples
    --------
    >>> short_name("Feature Selection from Differentially Private Correlations (DP-SIS)")
    'DP-SIS'
    """
    _, _, name = paper.rpartition("(")
    return name.removesuffix(")")


def report_blocks(results: Sequence[Result]) -> list[Block]:
    """The whole report: what holds means, a summary, and a chapter for every experiment that was run."""
    run = [result for result in results if result.run_cases]
    return [*_introduction(results), *(block for result in run for block in _chapter(result))]


def _introduction(results: Sequence[Result]) -> Iterator[Block]:
    run = [result for result in results if result.run_cases]
    numbers, claims = outcomes(run)
    yield Paragraph(
        "Tables and figures of the papers, made again: the published algorithm as it is printed, and sound methods at "
        "the same privacy beside it."
    )
    yield Paragraph(f"{MEANING} {counted('printed numbers', numbers)} {counted('claims', claims)}")
    computed_by = ", ".join(f"{name} {number}" for name, number in versions().items())
    yield Paragraph(f"Computed by {computed_by}.")
    left_out = [result.experiment.name for result in results if not result.run_cases]
    if left_out:
        yield Paragraph(f"Left out, since no trial of them is finished: {', '.join(left_out)}.")
    if not can_draw():
        yield Paragraph(_NO_FIGURES)
    yield Heading("Summary", 2)
    lines = tuple(
        (short_name(result.experiment.paper), item.item, result.experiment.name, overall_cell(item))
        for result in run
        for item in result.items
    )
    yield Grid(
        "Every table and figure, and what is to be said of it", ("paper", "item", "experiment", "verdict"), lines
    )


def _chapter(result: Result) -> Iterator[Block]:
    experiment = result.experiment
    yield Heading(experiment.name, 2)
    yield Facts(tuple(_facts(result)))
    images = images_of(experiment, result.numbers, result.stand_ins) if can_draw() else {}
    for item in result.items:
        yield Heading(item.item, 3)
        yield Paragraph(overall_cell(item))
        yield from side_by_side(item)
        yield from claims_grid(item)
        yield from _own(result, item, images)


def _own(result: Result, item: Overall, images: Mapping[int, Image]) -> Iterator[Block]:
    """Our own tables and figures of an item."""
    for table in result.experiment.tables:
        if table.item == item.item:
            yield from own_grids(table, result.numbers, result.stand_ins)
    for place, picture in enumerate(result.experiment.pictures):
        if picture.item == item.item and can_draw():
            not_drawn = Paragraph(f"{picture.title}: not drawn, data not available.")
            yield images.get(place, not_drawn)


def _facts(result: Result) -> Iterator[tuple[str, Cell]]:
    experiment = result.experiment
    yield "Paper", experiment.paper
    yield "What", experiment.summary
    yield "Trials", f"{result.trials} (the paper's number: {experiment.trials})"
    yield "Relation", experiment.relation
    yield "Scaling", _stamped(experiment.scaling)
    for note in experiment.notes:
        yield "Note", note
    for name, replaced in result.stand_ins.items():
        yield "Stand-in", Stamped("stand-in", "bad", f"{name} is a ", f" for {replaced}, which is not to be had here")
    if result.not_available:
        yield "Data not available", ", ".join(result.not_available)
    if result.left_for_full:
        yield "Left for the full setting", ", ".join(result.left_for_full)


def _stamped(scaling: str) -> Cell:
    before, word, after = scaling.partition(_NOT_PRIVATE)
    return Stamped(word, "bad", before, after) if word else scaling
