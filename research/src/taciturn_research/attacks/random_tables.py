"""Random neighbouring tables with extreme cells, for replays."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.validation import NumberArray
from taciturn.tables import Column, TableBounds, Target

LAYOUTS = ("dense", "csr", "csc")
"""In which a table can be handed over."""

Table = dict[str, Any]

HUGE, TINY = 1e308, 5e-324
"""Far beyond all bounds, and the smallest number there is."""

MOST_ROWS = 9
"""Most rows of a person."""

_TARGETS = (-1e300, -1.0, 0.0, 1.0, 1e300)
# The weights of the columns that have any.
_WEIGHTS = (0.5, -0.4, 0.3)


def neighbouring_tables(
    rng: np.random.Generator, n_rows: int, n_columns: int, relation: str, n_classes: int, *, last: bool = False
) -> tuple[Table, Table]:
    """Two tables ``{"X": .., "y": ..}`` that differ in one record: the ``last``, or a random one.

    Labels are 0, 1, .., and the target is numeric for ``n_classes`` of 0. Under zero-out the second table has a null
    record: cells that are missing, or a label outside all classes.
    """
    X, y = _table(rng, n_rows, n_columns, n_classes)
    place = n_rows - 1 if last else int(rng.integers(n_rows))
    X[place] = _row(rng, n_columns)
    y[place] = rng.choice(_TARGETS) if n_classes == 0 else rng.integers(n_classes)
    X2, y2 = X.copy(), y.copy()
    if relation == "add-remove":
        X2, y2 = np.delete(X, place, axis=0), np.delete(y, place)
    elif relation == "replace-one":
        X2[place] = _row(rng, n_columns) * rng.choice([-1.0, 1.0])
        y2[place] = rng.choice((-y[place], *_TARGETS)) if n_classes == 0 else rng.integers(n_classes)
    elif n_classes:
        y2[place] = -1
    else:
        X2[place] = np.nan
    layout = rng.choice(LAYOUTS)
    first, second = (table if layout == "dense" else sp.csr_array(table).asformat(layout) for table in (X, X2))
    return {"X": first, "y": y}, {"X": second, "y": y2}


def neighbouring_persons(
    rng: np.random.Generator, n_persons: int, n_columns: int, relation: str, n_classes: int, *, last: bool = False
) -> tuple[Table, Table]:
    """Two tables ``{"X": .., "y": .., "persons": ..}`` that differ in all rows of one person: the ``last``, or any.

    Persons have 1 to 9 rows, scattered over the table, beside a few rows that belong to nobody. Under zero-out the rows
    of the person are null in the second table, and some of them may be missing; under replace-one it has other rows,
    and another number of them. The rest is as in :func:`neighbouring_tables`.
    """
    owners = np.repeat(np.arange(n_persons), rng.integers(1, MOST_ROWS + 1, n_persons))
    X, y = _table(rng, owners.size, n_columns, n_classes)
    names = [f"person {number:04}" for number in range(n_persons)]
    keys = np.array([names[owner] if rng.random() < 0.97 else None for owner in owners], dtype=object)
    place = n_persons - 1 if last else int(rng.integers(n_persons))
    others = np.flatnonzero(owners != place)
    tables = []
    for of_neighbour in (False, True):
        rows, targets = _rows_of_person(rng, n_columns, n_classes)
        if of_neighbour and relation == "add-remove":
            rows, targets = rows[:0], targets[:0]
        elif of_neighbour and relation == "zero-out":
            if n_classes:
                targets[:] = -1
            else:
                rows[:] = np.nan
        tables.append((np.vstack((X[others], rows)), np.append(y[others], targets), len(rows)))
    layout, place_of = rng.choice(LAYOUTS), rng.random(others.size + MOST_ROWS)
    found = []
    for table, target, n_rows in tables:
        order = np.argsort(place_of[: target.size], kind="stable")
        cells = table[order]
        found.append(
            {
                "X": cells if layout == "dense" else sp.csr_array(cells).asformat(layout),
                "y": target[order],
                "persons": np.append(keys[others], np.full(n_rows, names[place], dtype=object))[order],
            }
        )
    return found[0], found[1]


# Cells that no column can hold, and cells of all kinds.
_UNREADABLE = (None, float("nan"), b"1", 1 + 2j, timedelta(1), [1, 2], object())
_ODD = (
    Decimal("1.5"),
    Decimal("0.1234567890123456789"),
    datetime(2020, 6, 30, 23, 59, tzinfo=timezone(timedelta(hours=13))),
    datetime(2020, 6, 30, 0, 1),
    date(2020, 6, 30),
    np.datetime64("2020-06-30T00:01", "ns"),
    0.5,
    float("inf"),
    True,
    np.bool_(False),
    7,
    -(10**400),
    Fraction(1, 3),
    "1.50",
    "elsewhere",
    "\ud800",
    *_UNREADABLE,
)
_COLUMNS = (
    Column("number", -1, 1),
    Column("category", categories=("-1", "0", "1")),
    Column("boolean"),
    Column("date", since=date(2020, 1, 1), lower=-300, upper=300),
)


def with_odd_cells(rng: np.random.Generator, first: Table, second: Table) -> tuple[Table, Table, TableBounds]:
    """Two neighbouring tables as data frames of objects, the record that they differ in with cells of any kind.

    The columns are decimals, decimals that stand for categories, truth values and moments; the bounds state them so.
    """
    import pandas as pd

    tables = [X.toarray() if sp.issparse(X) else X for X in (first["X"], second["X"])]
    n_columns = tables[0].shape[1]
    places = _differing_rows(tables, (first["y"], second["y"]))
    made = []
    for table, place in zip(tables, places, strict=True):
        cells = np.empty(table.shape, dtype=object)
        for at, number in np.ndenumerate(table):
            cells[at] = _cell(number, at[1] % len(_COLUMNS))
        if place is not None:
            # A null record stays one.
            kinds: tuple[Any, ...] = _UNREADABLE if np.isnan(table[place]).any() else _ODD
            for column in range(n_columns):
                if rng.random() < 0.6:
                    cells[place, column] = kinds[rng.integers(len(kinds))]
        made.append(pd.DataFrame(cells, columns=[f"c{column}" for column in range(n_columns)], dtype=object))
    stated = {f"c{column}": _COLUMNS[column % len(_COLUMNS)] for column in range(n_columns)}
    return {**first, "X": made[0]}, {**second, "X": made[1]}, TableBounds(Target("y"), stated)


def _differing_rows(tables: list[Any], targets: tuple[Any, Any]) -> tuple[int | None, int | None]:
    """The places of the record in which two tables differ; None where a table does not have it."""
    (X, y), (X2, y2) = zip(tables, targets, strict=True)
    n_rows = min(len(y), len(y2))
    same = [np.array_equal(X[i], X2[i], equal_nan=True) and y[i] == y2[i] for i in range(n_rows)]
    place = same.index(False) if False in same else n_rows
    if len(y) == len(y2):
        return (None, None) if place == n_rows else (place, place)
    return (place, None) if len(y) > len(y2) else (None, place)


def _cell(number: float, kind: int) -> Any:
    """A number as a cell of one of the columns."""
    if np.isnan(number):
        return None
    near = min(max(number, -1.0), 1.0)
    return (Decimal(number), Decimal(round(near)), near > 0.0, datetime(2020, 1, 1) + timedelta(days=300.0 * near))[
        kind
    ]


def _rows_of_person(
    rng: np.random.Generator, n_columns: int, n_classes: int
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, Any]]:
    """Rows and targets of one person, all alike or each for itself."""
    n_rows = int(rng.integers(1, MOST_ROWS + 1))

    def target() -> Any:
        return rng.choice(_TARGETS) if n_classes == 0 else rng.integers(n_classes)

    if rng.random() < 0.5:
        return np.tile(_row(rng, n_columns), (n_rows, 1)), np.full(n_rows, target())
    return np.vstack([_row(rng, n_columns) for _ in range(n_rows)]), np.array([target() for _ in range(n_rows)])


def _table(
    rng: np.random.Generator, n_rows: int, n_columns: int, n_classes: int
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, Any]]:
    kind = rng.choice(["uniform", "sparse", "equal rows"], p=[0.4, 0.4, 0.2])
    if kind == "uniform":
        X = rng.uniform(-1.0, 1.0, (n_rows, n_columns))
    elif kind == "sparse":
        X = rng.choice([-1.0, 0.0, 1.0], (n_rows, n_columns), p=[0.1, 0.8, 0.1])
    else:
        X = np.tile(_row(rng, n_columns), (n_rows, 1))
    weights = np.zeros(n_columns)
    n_weights = min(len(_WEIGHTS), n_columns)
    weights[:n_weights] = _WEIGHTS[:n_weights]
    y: NumberArray
    signal = np.clip(X, -1.0, 1.0) @ weights
    if n_classes == 0:
        y = np.clip(signal + 0.1 * rng.standard_normal(n_rows), -1.0, 1.0)
    elif n_classes == 2:
        y = (signal + 0.3 * rng.standard_normal(n_rows) > 0.0).astype(np.int64)
    else:
        y = rng.integers(n_classes, size=n_rows)
    return X, np.full(n_rows, y[0]) if rng.random() < 0.2 else y


def _row(rng: np.random.Generator, n_columns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    alone = np.zeros(n_columns)
    alone[rng.integers(n_columns)] = HUGE
    rows = (
        np.ones(n_columns),
        np.full(n_columns, -HUGE),
        np.zeros(n_columns),
        np.full(n_columns, TINY),
        alone,
        rng.choice([-1.0, 1.0], n_columns),
        rng.uniform(-3.0, 3.0, n_columns),
        rng.choice([-1.0, 0.0, 1.0], n_columns, p=[0.1, 0.8, 0.1]),
    )
    return rows[rng.integers(len(rows))]
