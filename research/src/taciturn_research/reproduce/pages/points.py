"""What stands where in a picture or a table: points, their order and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Any

from taciturn_research.reproduce.experiment import Picture
from taciturn_research.reproduce.numbers import Numbers, Summary

__all__ = ["Point", "are_numbers", "axis", "distinct", "label", "points_of", "stand_in_note"]


@dataclass(frozen=True, slots=True)
class Point:
    """One mean, and the standard deviation of a trial if there is any."""

    panel: Any
    series: Any
    x: Any
    mean: float
    sd: float | None


def points_of(picture: Picture, numbers: Numbers) -> list[Point]:
    """All points of a picture, in the order of the trials' rows."""
    found = numbers.summaries(picture.where)
    if picture.subtract is not None:
        found = _differences(*picture.subtract, picture.where, numbers)
    needed = {picture.across, picture.series} | ({picture.panels} if picture.panels else set())
    points: dict[tuple[Any, Any, Any], Point] = {}
    for summary in found:
        if not needed <= summary.of.keys():
            continue
        panel = summary.of[picture.panels] if picture.panels else None
        place = panel, summary.of[picture.series], summary.of[picture.across]
        if place in points:
            raise ValueError(f"{picture.item}: two numbers at one point, such as {summary.of}; choose one in 'where'")
        points[place] = Point(*place, summary.mean, summary.sd)
    return list(points.values())


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers by size, anything else in the order of its first appearance."""
    once = list(dict.fromkeys(values))
    return sorted(once) if are_numbers(once) else once


def axis(order: Sequence[Any], values: Iterable[Any]) -> list[Any]:
    """Those of the values that occur, in an order that all panels share."""
    occurring = set(values)
    return [value for value in order if value in occurring]


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether the values can stand on an axis by their size."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def label(value: Any) -> str:
    """What a key holds, in words."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def stand_in_note(shown: Iterable[Any], stand_ins: Mapping[str, str]) -> str:
    """For a caption: which of the names shown is in place of another data set.

    Examples
    --------
    >>> stand_in_note(["alon", "yeoh_filtered"], {"yeoh_filtered": "Yeoh", "farm_ads": "E2006"})
    '; yeoh_filtered is a stand-in for Yeoh'
    """
    seen = set(shown)
    return "".join(f"; {name} is a stand-in for {other}" for name, other in stand_ins.items() if name in seen)


def _differences(key: str, of_this: Any, less_that: Any, where: Mapping[str, Any], numbers: Numbers) -> list[Summary]:
    """Differences within trials, so that what both share does not count as spread."""
    others = {
        frozenset((summary.of | {key: of_this}).items()): summary
        for summary in numbers.summaries({**where, key: less_that})
    }
    found = []
    for summary in numbers.summaries({**where, key: of_this}):
        other = others.get(frozenset(summary.of.items()))
        if other is not None:
            of = {name: value for name, value in summary.of.items() if name != key}
            pairs = zip(numbers.values(summary.of), numbers.values(other.of), strict=False)
            within = [this - that for this, that in pairs]
            spread = stdev(within) or None if len(within) > 1 else None
            found.append(Summary(of, summary.mean - other.mean, spread, len(within)))
    return found
