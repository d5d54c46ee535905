"""Sums of outer products of rows, in integers that are the same in any order.

Every term is the outer product of a vector that is cut to integers first. Cutting keeps a bound on its norm; without
privacy no bound is needed, and ``exact`` rounds instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.data.persons import PersonRows
from taciturn.fitting.threads import add_shares

__all__ = ["sum_outer_products", "sum_outer_products_of_persons"]

Rows = Callable[[int, int], FloatArray]
"""Some rows of a table, by the first one and the one after the last: a matrix that may be changed."""

# Entries of a block of rows that is looked at at once.
_BLOCK_ENTRIES = 1 << 17
# Products of a Gram matrix that take as long as reading an entry.
_COLUMNS_PER_ENTRY = 16


def sum_outer_products(
    rows: Rows, scales: FloatArray, width: int, row_squared: int, *, exact: bool = False
) -> IntArray:
    """The Gram matrix of rows times scales, whose squared norms are at most ``row_squared``."""
    # Sums over a block of rows stay below 2**53, where doubles are exact.
    step = max(1, min(_BLOCK_ENTRIES // width, (1 << 53) // row_squared))

    def part(first: int, last: int) -> IntArray:
        gram = np.zeros((width, width), dtype=np.int64)
        for start in range(first, last, step):
            stop = min(start + step, last)
            block = rows(start, stop)
            block *= scales[start:stop, None]
            gram += _gram(block, exact=exact)
        return gram

    return add_shares(part, scales.size, width * width // _COLUMNS_PER_ENTRY)


def sum_outer_products_of_persons(
    rows: Rows,
    weights: FloatArray,
    unit: float,
    persons: PersonRows,
    width: int,
    row_squared: int,
    *,
    exact: bool = False,
) -> IntArray:
    """The sum over persons of the outer product of ``unit`` times the sum of the person's rows times integer weights.

    Squared norms of these vectors are at most ``row_squared``.
    """
    gram = np.zeros((width, width), dtype=np.int64)
    step = max(1, min(_BLOCK_ENTRIES // width, (1 << 53) // row_squared))
    for part, start, stop in _whole_persons(persons, step):
        block = rows(start, stop)
        block *= weights[start:stop, None]
        gram += _gram(part.totals(block) * unit, exact=exact)
    return gram


def _gram(block: FloatArray, *, exact: bool) -> IntArray:
    (np.rint if exact else np.trunc)(block, out=block)
    return (block.T @ block).astype(np.int64)


def _whole_persons(persons: PersonRows, step: int) -> Iterator[tuple[PersonRows, int, int]]:
    """Persons that have about ``step`` rows together, and the first of these rows and the one after the last."""
    ends = np.cumsum(persons.counts)
    first = 0
    while first < ends.size:
        begin = int(ends[first] - persons.counts[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + step, side="right")))
        yield PersonRows(persons.counts[first:last]), begin, int(ends[last - 1])
        first = last
