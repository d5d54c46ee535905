"""The schema of a table: names and kinds of its columns, never a value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taciturn.core.errors import DataError
from taciturn.tables.layouts import TableLayout

__all__ = [
    "LABEL",
    "MOST_COLUMNS",
    "PUBLIC_COLUMNS",
    "TableSchema",
    "file_assumptions",
    "find_value",
    "is_index",
    "kind_of",
]

LABEL = "label"
"""Name of the target of a libsvm file, the number at the beginning of a line."""

PUBLIC_COLUMNS = "the names and types of the table's columns are public"
"""An assumption wherever a table with named columns is encoded: some of them are found by their types."""

_PUBLIC_WIDTH = "the largest column number of the table is public"
_PARSED = "the file can be parsed as a table; one that cannot is refused, and the refusal tells of it"

MOST_COLUMNS = 50_000
"""Largest number of columns of a dense table; libsvm files may have more."""

_FEWEST_POSITIONS = 5
"""Fewer whole numbers in a row than this may be the answers of a person."""

_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
# Values with a letter in them: numbers with an exponent, days and times, truths and gaps, and addresses.
_VALUE = re.compile(
    rf"[<>≤≥=+\-\s]*[\d.,]*\d[e][+\-]?\d+|\d{{4}}-\d\d?-\d\d?[t\s].*|\d\d?:\d\d.*"
    rf"|\d\d?[-./\s]*{_MONTHS}[-./,\s]*\d{{2,4}}|{_MONTHS}[-./\s]*\d\d?[-./,\s]+\d{{2,4}}"
    r"|true|false|yes|nan|null|n/a|#n/a|\S+@\S+",
    re.IGNORECASE,
)
_NO_VALUES = ("#", "%")
_RENAMED = re.compile(r"(.*)\.\d+", re.DOTALL)
_UNNAMED = re.compile(r"Unnamed: \d+")


@dataclass(frozen=True)
class TableSchema:
    """Names and kinds of the columns of a table, which count as public.

    Parameters
    ----------
    names : tuple of str
        Names of the columns, in the order of the table.
    kinds : tuple of str
        Kinds of the columns: "number", "boolean", "category" (text), "date" or "unknown".
    sparse : bool, default=False
        Whether the table stores nonzero cells only.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    sparse: bool = False

    def __post_init__(self) -> None:
        if not self.sparse and len(self.names) > MOST_COLUMNS:
            raise DataError(
                f"table: expected at most {MOST_COLUMNS:,} columns, got {len(self.names):,}; write so wide a table as "
                "a libsvm file, or leave columns out."
            )
        if len(set(self.names)) < len(self.names):
            # The message gives positions: in a table without a header the names are cells.
            first, second = _find_repeated(self.names)
            raise DataError(
                f"table: expected every column name once, got the same one for columns {first} and {second}; rename "
                "one of them, or add a line of names if there is none."
            )

    def __repr__(self) -> str:
        return f"TableSchema({len(self.names)} columns{', sparse' if self.sparse else ''})"


def file_assumptions(invalid: str, layout: TableLayout | None, *, sparse: bool) -> tuple[str, ...]:
    """What a release from a table on disk takes for granted, beyond what it assumes of single records.

    A ``sparse`` table, one in a libsvm file, has as many columns as its largest column number says.
    """
    # With "raise" the certificate assumes more: that no record of the file is refused.
    parsed = (_PARSED,) if invalid == "null" else ()
    stated = () if layout is None else layout.assumptions
    return PUBLIC_COLUMNS, *((_PUBLIC_WIDTH,) if sparse else ()), *parsed, *stated


def _find_repeated(names: tuple[str, ...]) -> tuple[int, int]:
    """Positions, from 1, of the first two columns with the same name."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            return seen[name], position
        seen[name] = position
    raise AssertionError("unreachable")


def find_value(names: Sequence[str]) -> int | None:
    """The position, from 1, of the first name that looks like a value, or None.

    Such names are those without a letter, which are numbers, days and empty cells, and numbers, days, times, truths,
    gaps and addresses with letters in them; a name that is another one with a number behind it, as programs rename what
    occurs twice; and "Unnamed: 3", as they rename what is empty. The name of the first column may be empty, since
    indices of tables have none. Whole numbers in a row from 0 or 1, at least five, are positions of columns.

    Examples
    --------
    >>> from taciturn.tables.schema import find_value
    >>> find_value(["male", "63"]), find_value(["sex", "age"]), find_value(["0", "1", "2", "3", "4", "sex"])
    (2, None, None)
    """
    present = set(names)
    found = [
        place
        for place, name in enumerate(names)
        if _is_value(name, present) and not (place == 0 and (not name or _UNNAMED.fullmatch(name)))
    ]
    numbers = [names[place] for place in found]
    if len(numbers) >= _FEWEST_POSITIONS and any(
        numbers == [str(first + at) for at in range(len(numbers))] for first in (0, 1)
    ):
        return None
    return found[0] + 1 if found else None


def _is_value(name: str, present: set[str]) -> bool:
    text = name.strip()
    if not any(map(str.isalpha, text)):
        return text not in _NO_VALUES
    renamed = _RENAMED.fullmatch(name)
    return (
        text == "NA"
        or _VALUE.fullmatch(text) is not None
        or _UNNAMED.fullmatch(text) is not None
        or (renamed is not None and renamed[1] in present)
    )


def is_index(name: str) -> bool:
    """Whether the name is an index of a libsvm file. Such a file has a column, maybe of zeros, for every index."""
    return name.isdecimal() and name.isascii() and name == str(int(name[:20]))


def kind_of(arrow_type: Any) -> str:
    """Kind of a column of this Arrow type."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "category"
    return "date" if types.is_temporal(arrow_type) else "unknown"
