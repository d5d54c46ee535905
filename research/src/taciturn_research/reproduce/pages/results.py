"""What a folder of finished trials holds, experiment by experiment, and the same as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from taciturn_research.reproduce.experiment import Case, Experiment
from taciturn_research.reproduce.numbers import Numbers, Row, Summary
from taciturn_research.reproduce.records import Record, Records, versions
from taciturn_research.reproduce.verdicts import ClaimVerdict, Overall, Verdict, judge_items

__all__ = ["Result", "as_json", "outcomes", "overall_outcome", "read_results"]


@dataclass(frozen=True)
class Result:
    """An experiment with its cases, each with its finished trials: none where it was not run."""

    experiment: Experiment
    finished: tuple[tuple[Case, list[Record]], ...]

    @cached_property
    def numbers(self) -> Numbers:
        """Those of all trials. What both a quick case and a full one say is taken from the full one."""
        return Numbers(_rows(self.finished))

    @cached_property
    def items(self) -> tuple[Overall, ...]:
        """The verdicts, by table and figure."""
        return judge_items(self.experiment, self.numbers)

    @property
    def run_cases(self) -> list[tuple[Case, list[Record]]]:
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
    records = Records(folder)
    return [
        Result(experiment, tuple((case, records.find_trials(experiment, case.name)) for case in experiment.cases))
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


def _rows(finished: Iterable[tuple[Case, list[Record]]]) -> Iterator[Row]:
    finished = list(finished)
    in_full = {_place(row) for case, records in finished if case.setting == "full" for row in _rows_of(records)}
    for case, records in finished:
        for row in _rows_of(records):
            if case.setting != "quick" or _place(row) not in in_full:
                yield row


def _rows_of(records: Iterable[Record]) -> Iterator[Row]:
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


def _case(case: Case, records: list[Record]) -> dict[str, Any]:
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
