"""Which cells the coverage study has: those with a name, which decide, and others around them.

A cell is a task, a design, n, p and epsilon. In the grid of the harness a data set is a design or a table, a method is
a task, and the rows are all records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from taciturn_research.coverage.designs import DESIGNS, applies
from taciturn_research.coverage.plain import TASKS
from taciturn_research.coverage.tables import TABLES, missing
from taciturn_research.harness import Config, setting_of

N_RECORDS = (2_000, 5_000, 20_000, 100_000)
SIZES = (6, 11, 21)
EPSILONS = (1.0, 3.0)
NAMED_RUNS, OTHER_RUNS, TABLE_RUNS = 200, 40, 100
QUICK_RUNS = 10
# Every design is run there, whose intervals are judged by their number and width too.
CENTRE_N, CENTRE_P, CENTRE_EPSILON = 20_000, 6, 1.0
_FEW_SETTINGS = ("selected", "selected AR .7", "persons")


class Cell(NamedTuple):
    """A task, a design or a table, the number of records, the number of coefficients, and a budget."""

    task: str
    design: str
    n: int
    p: int
    epsilon: float

    def config(self, seed: int) -> Config:
        """One run."""
        return Config(self.design, self.task, self.epsilon, setting_of(p=self.p), seed, self.n)

    @classmethod
    def of(cls, config: Config) -> Cell:
        """The cell of a run."""
        return cls(config.method, config.data_set, config.rows or 0, config.settings["p"], config.epsilon or 0.0)


def _both(design: str, n: int, p: int, epsilon: float) -> list[Cell]:
    return [Cell(task, design, n, p, epsilon) for task in TASKS if applies(task, design)]


_CENTRE = [cell for design in DESIGNS for cell in _both(design, CENTRE_N, CENTRE_P, CENTRE_EPSILON)]

NAMED: tuple[Cell, ...] = (
    *(cell for cell in _CENTRE if cell.design != "selected AR .7"),
    *_both("independent", 5_000, 6, 1.0),
    *_both("independent", 2_000, 6, 3.0),
    *_both("AR .7", 20_000, 11, 1.0),
    *_both("AR .95", 100_000, 6, 1.0),
    *_both("AR .99", 20_000, 11, 3.0),
    *_both("polynomial", 5_000, 6, 3.0),
    *_both("interactions", 20_000, 21, 3.0),
    *_both("one-hot", 20_000, 11, 1.0),
    *_both("full one-hot", 20_000, 11, 3.0),
    Cell("linear", "duplicate", 5_000, 6, 3.0),
    *_both("rare events", 100_000, 6, 1.0),
    *_both("strong labels", 20_000, 11, 3.0),
    *_both("strong labels", 5_000, 6, 3.0),
    *_both("skewed", 5_000, 6, 3.0),
    *_both("skewed", 100_000, 6, 1.0),
    *_both("wrong mean", 5_000, 6, 3.0),
    *_both("selected", 20_000, 11, 3.0),
    Cell("linear", "persons", 5_000, 6, 3.0),
)
"""The cells that decide."""


def _others() -> Iterable[Cell]:
    """One half of all settings below 100,000 records, and at 100,000 one setting for each design."""
    for place, design in enumerate(DESIGNS):
        sizes = (6,) if design == "polynomial" else (6, 11) if design in _FEW_SETTINGS else SIZES
        settings = product(enumerate(N_RECORDS[:-1]), enumerate(sizes), enumerate(EPSILONS))
        for (i, n), (j, p), (k, epsilon) in settings:
            if (place + i + j + k) % 2 == 0:
                yield from _both(design, n, p, epsilon)
        if design not in _FEW_SETTINGS:
            yield from _both(design, N_RECORDS[-1], 6, EPSILONS[place % 2])
    yield from _both("selected AR .7", 20_000, 11, 3.0)
    for design in ("independent", "AR .99"):
        yield from _both(design, N_RECORDS[-1], 21, 1.0)


OTHERS: tuple[Cell, ...] = tuple(cell for cell in dict.fromkeys(_others()) if cell not in NAMED)
"""The cells around them."""

REAL: tuple[Cell, ...] = (
    *(Cell(table.task, name, 8_000, table.n_features + 1, 3.0) for name, table in TABLES.items()),
    *(Cell(TABLES[name].task, name, 30_000, TABLES[name].n_features + 1, 1.0) for name in TABLES if "bank" in name),
)
"""The cells of real tables."""


def grid(*, full: bool, data: Path | None, tasks: Sequence[str] = TASKS, names: Sequence[str] = ()) -> list[Config]:
    """The runs of a quick or full study; those of one population follow each other, since workers remember it.

    Parameters
    ----------
    full : bool
        Whether all cells are run as often as a verdict needs; otherwise the named ones a few times.
    data : Path or None
        The folder of tables that no package holds.
    tasks, names : sequence of str
        Which tasks, and which designs and tables; no names: all.
    """
    runs = dict.fromkeys(OTHERS, OTHER_RUNS) if full else {}
    runs |= dict.fromkeys(NAMED, NAMED_RUNS if full else QUICK_RUNS)
    readable = [cell for cell in REAL if missing(cell.design, data) is None]
    runs |= dict.fromkeys(readable, TABLE_RUNS if full else QUICK_RUNS)
    order = {name: place for place, name in enumerate((*DESIGNS, *TABLES))}
    wanted = [cell for cell in runs if cell.task in tasks and (not names or cell.design in names)]
    wanted.sort(key=lambda cell: (order[cell.design], cell.task, cell.p, cell.n, cell.epsilon))
    return [cell.config(seed) for cell in wanted for seed in range(runs[cell])]
