"""Rows of persons: which rows belong to whom, judged key by key, and what a person's rows add to a sum.

Where a person may have several rows, the person is the record: its rows are present or absent together. A key names
the person of a row. Keys are compared one by one after a public canonical form (:func:`canonical_key`), so that no key
decides how others are read. A row without a key is a null row: it belongs to nobody and is absent from every statistic.

The distinct keys, in the order of their canonical forms, are the slots of the records. Under zero-out and replace-one
the set of keys is public, and with it the number of persons: neighbours have the same keys and differ in the rows of
one of them. A person all of whose rows are null keeps its slot. Under add-remove the keys, and their number, are
private. The number of rows, and how many of them a person has, are private under every relation.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError
from taciturn.core.validation import BoolArray, IndexArray, IntArray

PERSON_WEIGHT = 720_720
"""The integer that stands for one person where its rows share a weight of one: divisible by all numbers up to 16."""

MANY_ROWS = 64
"""A person with more rows than this is summed by itself, in whole rows, and divided by their number once: to share a
weight among the rows first would be coarse."""

_ONE_KEY_PER_ROW = "expected one key per row of X, got something else; pass a list or column that is as long as y"
_LONGEST_DECIMAL = 400
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")


@dataclass(frozen=True, slots=True, eq=False)
class PersonKeys:
    """The person of every row of a table.

    ``slots`` has for each row the place of its person among all, in the order of canonical keys; -1 for a row that
    belongs to nobody. ``n_persons``, the number of distinct keys, is public, except under add-remove. ``digest``, in
    hexadecimal digits, is as public as the set of keys, so that it must not be used under add-remove.
    """

    slots: IndexArray
    n_persons: int
    digest: str = ""

    def order(self, rows: IndexArray) -> IndexArray:
        """Places among some rows, those of each person together and in their order, without rows of nobody."""
        owners = self.slots[rows]
        return np.argsort(owners, kind="stable")[np.count_nonzero(owners < 0) :]


@dataclass(frozen=True, eq=False)
class PersonRows:
    """The persons of some rows that lie together person by person, and sums in which each person counts once.

    ``counts`` says how many rows each of them has, at least one: m_p.
    """

    counts: IntArray

    @classmethod
    def of_slots(cls, slots: IndexArray) -> PersonRows:
        """The persons of rows whose slots are in increasing order."""
        edges = np.flatnonzero(np.diff(slots, prepend=-1))
        return cls(np.diff(edges, append=slots.size).astype(np.int64))

    @cached_property
    def starts(self) -> IntArray:
        """The first row of each person."""
        starts: IntArray = np.cumsum(self.counts) - self.counts
        return starts

    @cached_property
    def of_rows(self) -> IntArray:
        """For each row the number of rows of its person."""
        return np.repeat(self.counts, self.counts)

    @cached_property
    def large(self) -> IndexArray:
        """The places of the persons with many rows."""
        return np.flatnonzero(self.counts > MANY_ROWS)

    def slices(self, places: IndexArray) -> Iterator[slice]:
        """The rows of some persons."""
        for place in places.tolist():
            start = int(self.starts[place])
            yield slice(start, start + int(self.counts[place]))

    def weighed(self, count: Callable[[slice | BoolArray, IntArray | None], IntArray]) -> IntArray:
        """Numbers of rows by some cells, each person counting for :data:`PERSON_WEIGHT`, rounded down.

        ``count`` gives the numbers of some rows, each of which counts for an integer, or for one.
        """
        few: BoolArray = self.of_rows <= MANY_ROWS
        totals: IntArray = count(few, PERSON_WEIGHT // self.of_rows[few])
        for own in self.slices(self.large):
            totals = totals + PERSON_WEIGHT * count(own, None) // (own.stop - own.start)
        return totals

    def totals(self, terms: NDArray[Any]) -> NDArray[Any]:
        """The sums of the terms of each person, one row per person."""
        if not self.counts.size:
            return terms[:0]
        totals: NDArray[Any] = np.add.reduceat(terms, self.starts, axis=0)
        return totals

    def mean_terms(self, terms: IntArray) -> IntArray:
        """The mean of the integer terms of each person, cut towards zero: within any bound that all terms keep."""
        shape = (-1, *([1] * (terms.ndim - 1)))
        counts, of_rows = self.counts.reshape(shape), self.of_rows.reshape(shape)
        # Of quotients and remainders, as the sum of many rows might leave 64 bits.
        wholes, rest = np.divmod(terms, of_rows)
        rests = self.totals(rest)
        down: IntArray = self.totals(wholes) + rests // counts
        # Towards zero, and not down.
        means: IntArray = down + ((down < 0) & (rests % counts != 0))
        return means

    def cell_shares(
        self, cells: IntArray, n_cells: int, unit: int, weights: NDArray[np.float64] | None = None
    ) -> IntArray:
        """Sums over persons of ``unit`` times the share of the person's rows in each cell, rounded down.

        With ``weights`` in [0, 1] rows count by these, each part of a row being rounded down.

        A negative cell is none. No list of persons by cells is made, which would be long.
        """
        rows = np.flatnonzero(cells >= 0)
        if weights is not None:
            few = rows[self.of_rows[rows] <= MANY_ROWS]
            shares = np.floor(unit * weights[few] / self.of_rows[few]).astype(np.int64)
            sums = np.zeros(n_cells, dtype=np.int64)
            np.add.at(sums, cells[few], shares)
            for own in self.slices(self.large):
                inside, of_person = cells[own] >= 0, np.zeros(n_cells, dtype=np.int64)
                np.add.at(of_person, cells[own][inside], np.floor(unit * weights[own][inside]).astype(np.int64))
                sums += of_person // (own.stop - own.start)
            return sums
        owners = np.repeat(np.arange(self.counts.size), self.counts)[rows]
        pairs, numbers = np.unique(owners * n_cells + cells[rows], return_counts=True)
        shares = unit * numbers // self.counts[pairs // n_cells]
        sums = np.zeros(n_cells, dtype=np.int64)
        np.add.at(sums, pairs % n_cells, shares)
        return sums


def read_persons(persons: Any, n_rows: int) -> PersonKeys:
    """The persons of the rows of a table, from one key per row. What a key is decides about its own row alone."""
    slots, n_persons, digest = slots_in_parts([key_forms(persons, n_rows)])
    return PersonKeys(slots[0], n_persons, digest)


def units_of_rows(persons: Any, n_rows: int) -> tuple[IndexArray, int]:
    """The record that each row belongs to, -1 for a row of nobody, and the number of records."""
    if persons is None:
        return np.arange(n_rows), n_rows
    keys = read_persons(persons, n_rows)
    return keys.slots, keys.n_persons


class NamedKeys(list[Any]):
    """Keys from a column of a table, with its name, which the columns of data frames have too."""

    def __init__(self, keys: Iterable[Any], name: str) -> None:
        super().__init__(keys)
        self.name = name


def column_of_keys(persons: Any) -> str | None:
    """The name of the column that the keys come from; None for keys without one, such as those of an array."""
    name = getattr(persons, "name", None)
    return name if isinstance(name, str) else None


KeyForms = tuple[list[str | None], IndexArray]
"""Canonical keys of some rows, and for each row the place of its own among them."""


def key_forms(persons: Any, n_rows: int) -> KeyForms:
    """The canonical keys of the rows of a table, or of a part of it, from one key per row."""
    cells = _cells(persons)
    if cells.shape != (n_rows,):
        raise DataError(f"persons: {_ONE_KEY_PER_ROW}.")
    # Equal cells have equal forms; objects are not sorted, since one of them could decide whether that is possible.
    distinct, places = _distinct_objects(cells) if cells.dtype.kind == "O" else np.unique(cells, return_inverse=True)
    return [canonical_key(cell) for cell in distinct], places.ravel()


def slots_in_parts(parts: Sequence[KeyForms]) -> tuple[list[IndexArray], int, str]:
    """For each part of a table the slots of its rows' persons among all; the number and the digest of all keys."""
    every = sorted({form for forms, _ in parts for form in forms if form is not None})
    slot_of: dict[str | None, int] = {form: slot for slot, form in enumerate(every)} | {None: -1}
    hashed = hashlib.blake2b(digest_size=32)
    for form in every:
        # A key that ends where another begins is another key.
        encoded = form.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "little") + encoded)
    found = [(np.array([slot_of[form] for form in forms], dtype=np.intp), places) for forms, places in parts]
    return (
        [slots[places] if slots.size else np.zeros(0, dtype=np.intp) for slots, places in found],
        len(every),
        hashed.hexdigest(),
    )


def canonical_key(cell: Any) -> str | None:
    """The canonical form of a key, a text; None for a missing one.

    Text loses the spaces around it. A number, and a text of digits with or without a sign and a decimal point, becomes
    its shortest decimal notation: ``7``, ``7.0``, ``"7"`` and ``"007"`` are one key. Dates, times and UUIDs become the
    text that Python writes for them, and bytes the text that they encode. Empty text, None, NaN, NaT, infinite numbers
    and objects of all other types are missing.
    """
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return None if np.isnat(cell) else str(cell)
    if isinstance(cell, np.floating):
        # Also of the long kind, which has no number of Python's.
        cell = float(cell)
    elif isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, str):
        text = cell.strip()
        return (_plain_decimal(text) or text) if text else None
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, int):
        # Python writes integers of any length only by way of decimals.
        return format(decimal.Decimal(cell), "f")
    if isinstance(cell, float):
        return _plain_decimal(format(decimal.Decimal(repr(cell)), "f")) if math.isfinite(cell) else None
    if isinstance(cell, decimal.Decimal):
        if not cell.is_finite():
            return None
        if abs(cell.adjusted()) <= _LONGEST_DECIMAL:
            return _plain_decimal(format(cell, "f"))
        # Written out, it could fill the memory.
        sign, digits, _ = cell.as_tuple()
        return f"{'-' * sign}{''.join(map(str, digits)).rstrip('0')}E{cell.adjusted()}"
    if isinstance(cell, datetime.date | datetime.time):
        # Of pandas' missing time, which is a date by its type, no year can be told.
        return str(cell) if str(cell) != "NaT" else None
    return str(cell) if isinstance(cell, uuid.UUID) else None


def _plain_decimal(text: str) -> str | None:
    """The shortest form of a number in decimal notation, None for any other text."""
    found = _DECIMAL.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return None
    whole, fraction = found[2].lstrip("0") or "0", (found[3] or "").rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if found[1] == "-" and number != "0" else number


def _cells(persons: Any) -> NDArray[Any]:
    """Keys as an array in which every cell still is what it was."""
    if np.ma.isMaskedArray(persons):
        cells = np.ma.getdata(persons).astype(object)
        cells[np.ma.getmaskarray(persons)] = None
        return cells
    if isinstance(getattr(persons, "dtype", None), np.dtype):
        return np.asarray(persons)
    for listed in ("to_pylist", "to_list"):
        # Columns of pyarrow, and of polars and pandas with a mask: as numbers, large ones would be rounded.
        if hasattr(persons, listed):
            persons = getattr(persons, listed)()
            break
    try:
        return np.fromiter(persons, dtype=object)
    except TypeError:
        raise DataError(f"persons: {_ONE_KEY_PER_ROW}.") from None


def _distinct_objects(cells: NDArray[Any]) -> tuple[list[str | None], IndexArray]:
    """The distinct forms of objects, and for each object the place of its form."""
    place_of: dict[str | None, int] = {}
    places = np.array([place_of.setdefault(canonical_key(cell), len(place_of)) for cell in cells], dtype=np.intp)
    return list(place_of), places
