"""All data sets and all methods, by name; a file of anybody's may add to them.

Such a file makes a ``DataSet`` or a ``Method`` and calls :func:`add`. Worker processes read it too, so it must do the
same whenever it is run.
"""

from __future__ import annotations

from taciturn.core.errors import ParameterError
from taciturn_research.arena.library import DEFAULTS, INTERVALS, OBJECTIVE_PERTURBATION, PUBLISHED, SOUND
from taciturn_research.arena.methods import Method
from taciturn_research.arena.peers import (
    BEFORE,
    CEILINGS,
    CONSTANT,
    FIRST_EDITION,
    NON_PRIVATE,
    OTHER_LIBRARIES,
    PRACTICE,
    RECENT,
)
from taciturn_research.arena.sets import GENERATED, REAL, SYNTHETIC, DataSet
from taciturn_research.arena.tables import RAW

_PEERS = (*PRACTICE, *RECENT, OBJECTIVE_PERTURBATION, *OTHER_LIBRARIES)
_METHODS = (
    NON_PRIVATE,
    CONSTANT,
    *CEILINGS,
    *DEFAULTS,
    *INTERVALS,
    *BEFORE,
    *FIRST_EDITION,
    *_PEERS,
    *PUBLISHED,
    *SOUND,
)

DATA_SETS = {data_set.name: data_set for data_set in (*SYNTHETIC, *GENERATED, *REAL, *RAW)}
METHODS = {method.name: method for method in _METHODS}


def add(entry: DataSet | Method) -> None:
    """Add a data set or a method under a name that is not taken."""
    known: dict[str, DataSet] | dict[str, Method] = METHODS if isinstance(entry, Method) else DATA_SETS
    if entry.name in known:
        raise ParameterError("name", entry.name, "a name that no other has", "choose another")
    known[entry.name] = entry  # type: ignore[assignment]
