"""Times under observation that end with an event or without one: read record by record, and cut at public times.

A record is observed from 0 to a time t > 0, when an event happens or observation ends (the record is *censored*). One
number has both: t for an event, and -t without one. Nobody is followed beyond the last cut: a later time, whatever
happens then, is censoring at the last cut. A record whose time is not positive is a null record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import DIFFERENT_LENGTHS, NOT_ONE_COLUMN, FloatArray, IntArray, as_real, is_width
from taciturn.data.records import Records, count_rows, judged_numbers

DEFAULT_CUTS = tuple(k / 10 for k in range(1, 11))
"""The ends of intervals where none are given."""

MOST_CUTS = 1000
"""Most intervals: counts of more are noise."""

EXITS = 3
"""Ways to leave observation in an interval: by an event, censored within it, or censored at its end."""

_FIELDS = ("event", "time")
_FORMS = (
    "y: expected times under observation, got something else; pass a structured array or a data frame with event and "
    "time, a pair (event, time), or one number per record, which is negative where the record is censored."
)


def check_cuts(cuts: object) -> tuple[float, ...]:
    """Positive finite times in increasing order."""
    try:
        found = () if isinstance(cuts, str) else tuple(as_real(cut) for cut in cuts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        found = ()
    steps = np.diff(found, prepend=0.0)
    if not 1 <= len(found) <= MOST_CUTS or not all(is_width(step) and step > 0.0 for step in steps.tolist()):
        raise ParameterError(
            "cuts",
            cuts,
            f"1 to {MOST_CUTS:,} positive finite times in increasing order",
            "give the ends of intervals, the last one being the end of follow-up; the first interval begins at 0",
        )
    return found


def stated_cuts(cuts: object) -> tuple[float, ...]:
    """The ends of intervals, as checked, or the default where none are given."""
    return DEFAULT_CUTS if cuts is None else check_cuts(cuts)


@dataclass(frozen=True, slots=True, eq=False)
class FollowUp:
    """Events and times as the caller has them, in columns of one length; no cell is looked at before :meth:`signed`."""

    event: Any
    time: Any

    def __len__(self) -> int:
        return count_rows(self.time) or 0

    @classmethod
    def of(cls, y: Any) -> Any:
        """From a structured array, a data frame or a pair (event, time); anything else as it is.

        Of a structured array with other names the truth values are events, as scikit-survival writes it.
        """
        fields = getattr(getattr(y, "dtype", None), "names", None)
        if fields is not None:
            names = _FIELDS if set(_FIELDS) <= set(fields) else _by_kind(y.dtype)
            return cls(*(y[name] for name in names)).checked()
        columns = getattr(y, "column_names", getattr(y, "columns", None))
        if columns is not None and set(_FIELDS) <= set(columns):
            return cls(*(y[name] for name in _FIELDS)).checked()
        return cls(*y).checked() if isinstance(y, tuple) and len(y) == 2 else y

    def checked(self) -> FollowUp:
        """The same, unless the columns are of different lengths."""
        lengths = {count_rows(self.event), count_rows(self.time)}
        if len(lengths) > 1 or None in lengths:
            raise DataError(f"y: {DIFFERENT_LENGTHS.replace('X and y', 'events and times')}.")
        return self

    def signed(self) -> FloatArray:
        """The time of each record, negative without an event, 0 for one that is not positive, NaN for a missing one.

        Events are truth values or the numbers 0 and 1; anything else is missing.
        """
        event, time = (judged_numbers(column) for column in (self.event, self.time))
        if event.ndim != 1 or time.ndim != 1:
            raise DataError(f"y: {NOT_ONE_COLUMN}.")
        signed = np.where(event == 1.0, np.maximum(time, 0.0), -np.maximum(time, 0.0))
        return np.where((event == 0.0) | (event == 1.0), signed, np.nan)


def _by_kind(dtype: Any) -> tuple[str, str]:
    """The names of the truth values and of the numbers of a structured array with two fields."""
    events = [name for name in dtype.names if dtype[name].kind == "b"]
    times = [name for name in dtype.names if dtype[name].kind in "iuf"]
    if len(dtype.names) != 2 or len(events) != 1 or len(times) != 1:
        raise DataError(_FORMS)
    return events[0], times[0]


@dataclass(frozen=True, slots=True)
class SurvivalMap:
    """Gives records their signed times, cut at the end of follow-up; records with a time of zero become null."""

    end: float

    def __call__(self, records: Records) -> Records:
        """The records that were observed."""
        signed = np.asarray(records.y, dtype=np.float64)
        present = signed != 0.0
        followed = np.where(np.abs(signed) > self.end, -self.end, signed)
        return replace(records.keep(present), y=followed[present])


def exposures(signed: FloatArray, cuts: tuple[float, ...]) -> FloatArray:
    """How long each record is observed in each interval, one row per record: as many numbers for every record."""
    ends = np.asarray(cuts)
    starts = np.concatenate(([0.0], ends[:-1]))
    inside: FloatArray = np.clip(np.abs(signed)[:, None], starts, ends) - starts
    return inside


def exit_intervals(signed: FloatArray, cuts: tuple[float, ...]) -> IntArray:
    """The interval in which each record's observation ends; a cut belongs to the interval that it ends."""
    return np.searchsorted(np.asarray(cuts), np.abs(signed), side="left").astype(np.int64)


def event_marks(signed: FloatArray, cuts: tuple[float, ...]) -> FloatArray:
    """One where a record has its event, one column per interval."""
    places = exit_intervals(signed, cuts)
    marks: FloatArray = (places[:, None] == np.arange(len(cuts))) & (signed > 0.0)[:, None]
    return marks.astype(np.float64)


def exit_cells(signed: FloatArray, cuts: tuple[float, ...]) -> IntArray:
    """The interval and the way in which each record leaves observation, of ``EXITS`` per interval, as one number.

    Whoever is observed to the end of follow-up is censored at the end of the last interval.
    """
    places = exit_intervals(signed, cuts)
    at_end = np.abs(signed) == np.asarray(cuts)[np.minimum(places, len(cuts) - 1)]
    ways = np.where(signed > 0.0, 0, np.where(at_end, 2, 1))
    cells: IntArray = EXITS * places + ways
    return cells
