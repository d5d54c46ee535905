"""What stands for missing cells: a value of the column, a feature that says that the cell is missing, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taciturn.tables.words import refusal

__all__ = ["Fill", "checked_fill", "fill_to_content", "is_fill_of"]


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands for a missing cell of one column.

    Parameters
    ----------
    value : object, default=None
        A value of the column. None: the features of the column are 0, which is the middle of the bounds of a number.
    indicator : bool, default=False
        Whether the column has one more feature, named "age missing" for a column "age", with 1 where a cell is missing.
    """

    value: Any = None
    indicator: bool = False


def checked_fill(place: str, stated: Any, check: Callable[[str, Any], Any]) -> Fill:
    """Read an entry of ``[missing]``; ``check`` returns a value of the column, or raises."""
    if isinstance(stated, dict):
        for key in stated:
            if key not in ("value", "indicator"):
                raise refusal(place, key, "no key but value, indicator", "check the spelling")
        stated = Fill(stated.get("value"), stated.get("indicator", False))
    if not isinstance(stated, Fill):
        return Fill(check(place, stated))
    if not isinstance(stated.indicator, bool) or (stated.value is None and not stated.indicator):
        raise refusal(
            f"{place}.indicator", stated.indicator, "true, or a value beside it", "write {indicator = true}, or a value"
        )
    return Fill(None if stated.value is None else check(place, stated.value), stated.indicator)


def fill_to_content(fill: Fill) -> Any:
    """The entry of ``[missing]`` in the types of JSON and TOML."""
    if not fill.indicator:
        return fill.value
    return ({} if fill.value is None else {"value": fill.value}) | {"indicator": True}


def is_fill_of(stated: Any, kind: str) -> bool:
    """Whether a default for all columns is meant for those of a type: numbers for numbers, text for categories."""
    value = stated.get("value") if isinstance(stated, dict) else stated.value if isinstance(stated, Fill) else stated
    if value is None:
        return True
    kinds = {"number": (int, float), "boolean": (bool,), "category": (str,)}.get(kind, ())
    return type(value) in kinds
