"""The numbers of all finished trials, their means and standard deviations, and a test of differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy.stats import binomtest

__all__ = ["LEVEL", "Numbers", "Row", "Summary", "sign_test"]

LEVEL = 0.05
"""At which a test calls a difference significant."""

Row = dict[str, Any]
"""One number of one trial: its ``value``, and under the other keys what it is the value of."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and standard deviation of one number over the trials; None where there is one trial or no spread."""

    of: Row
    mean: float
    sd: float | None
    trials: int


class Numbers:
    """Values by what they are the values of, each in the order of the trials.

    Parameters
    ----------
    rows : iterable of dict
        Those of all trials, trial after trial.

    Examples
    --------
    >>> from taciturn_research.reproduce.numbers import Numbers
    >>> numbers = Numbers([{"method": "a", "value": 1.0}, {"method": "b", "value": 5}, {"method": "a", "value": 2.0}])
    >>> numbers.values({"method": "a"}), numbers.mean({"method": "b"})
    ([1.0, 2.0], 5.0)
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._values: dict[tuple[tuple[str, Any], ...], list[float]] = {}
        for row in rows:
            of = tuple((key, value) for key, value in row.items() if key != "value")
            self._values.setdefault(of, []).append(float(row["value"]))
        self._summaries = [_summary(dict(of), values) for of, values in self._values.items()]

    def __bool__(self) -> bool:
        return bool(self._values)

    def summaries(self, where: Mapping[str, Any] | None = None) -> list[Summary]:
        """Of all numbers with these keys and values, in the order in which they first appear.

        A tuple or list in ``where`` stands for any of its values.
        """
        return [summary for summary in self._summaries if _matches(summary.of, where or {})]

    def summary(self, of: Mapping[str, Any]) -> Summary:
        """Mean and standard deviation of the only number with these keys and values.

        Raises
        ------
        LookupError
            If there is none, or more than one.
        """
        found = self.summaries(of)
        if len(found) != 1:
            raise LookupError(f"{len(found)} numbers with {dict(of)}, not one")
        return found[0]

    def mean(self, of: Mapping[str, Any]) -> float:
        """The mean over the trials of the only number with these keys and values."""
        return self.summary(of).mean

    def values(self, of: Mapping[str, Any]) -> list[float]:
        """The values, one per trial, of the only number with these keys and values."""
        return list(self._values[tuple(self.summary(of).of.items())])


def _summary(of: Row, values: list[float]) -> Summary:
    return Summary(of, fmean(values), (stdev(values) or None) if len(values) > 1 else None, len(values))


def _matches(of: Row, where: Mapping[str, Any]) -> bool:
    def agrees(key: str, wanted: Any) -> bool:
        return key in of and (of[key] in wanted if isinstance(wanted, tuple | list) else of[key] == wanted)

    return all(agrees(key, wanted) for key, wanted in where.items())


def sign_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """One-sided p-value of "ours is larger" over paired trials; ties count for neither."""
    larger = sum(a > b for a, b in zip(ours, theirs, strict=True))
    smaller = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return float(binomtest(larger, larger + smaller, alternative="greater").pvalue) if larger + smaller else 1.0
