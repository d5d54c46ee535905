"""Trials in one number each: means, standard deviations, and whether a paper's number holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from taciturn.reproduce.experiment import Published, Row

__all__ = ["Summary", "Verdict", "judge", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and standard deviation of one number over the trials; None where there is one trial or no spread."""

    of: Row
    mean: float
    sd: float | None
    trials: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A printed number beside ours."""

    published: Published
    ours: Summary
    difference_in_sd: float | None
    holds: bool

    def __str__(self) -> str:
        if self.holds:
            return "holds"
        return f"does not hold: {self.published.reason or 'no reason found'}"


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Summaries of the rows of all trials, in the order in which their keys first appear."""
    values: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for row in rows:
        of = tuple((key, value) for key, value in row.items() if key != "value")
        values.setdefault(of, []).append(float(row["value"]))
    return [
        Summary(dict(of), fmean(found), (stdev(found) or None) if len(found) > 1 else None, len(found))
        for of, found in values.items()
    ]


def judge(published: Published, ours: Summary) -> Verdict:
    """Whether a printed number holds: within two standard deviations of a trial, or the tolerance without spread."""
    difference = ours.mean - published.value
    if ours.sd is None:
        return Verdict(published, ours, None, abs(difference) <= published.tolerance)
    in_sd = difference / ours.sd
    return Verdict(published, ours, in_sd, abs(in_sd) <= 2.0)
