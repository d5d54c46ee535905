"""All data sets and all methods, by name."""

from __future__ import annotations

from benchmarks.utility.generators import GENERATED
from benchmarks.utility.non_private import CEILINGS, NON_PRIVATE
from benchmarks.utility.other_library import FIRST_EDITION, OTHER_LIBRARIES
from benchmarks.utility.practice import PRACTICE
from benchmarks.utility.published import PUBLISHED
from benchmarks.utility.real_sets import REAL
from benchmarks.utility.sets import SYNTHETIC
from benchmarks.utility.sound import DEFAULTS, OBJECTIVE_PERTURBATION, SOUND

__all__ = ["DATA_SETS", "METHODS"]

_PEERS = (*PRACTICE, OBJECTIVE_PERTURBATION, *OTHER_LIBRARIES)
_METHODS = (NON_PRIVATE, *CEILINGS, *DEFAULTS, *FIRST_EDITION, *_PEERS, *PUBLISHED, *SOUND)

DATA_SETS = {data_set.name: data_set for data_set in (*SYNTHETIC, *GENERATED, *REAL)}
METHODS = {method.name: method for method in _METHODS}
