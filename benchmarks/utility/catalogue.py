"""All data sets and all methods, by name."""

from __future__ import annotations

from benchmarks.utility.non_private import NON_PRIVATE
from benchmarks.utility.other_library import OTHER_LIBRARY
from benchmarks.utility.published import PUBLISHED
from benchmarks.utility.real_sets import REAL
from benchmarks.utility.sets import SYNTHETIC
from benchmarks.utility.sound import DEFAULTS, SOUND

__all__ = ["DATA_SETS", "METHODS"]

DATA_SETS = {data_set.name: data_set for data_set in (*SYNTHETIC, *REAL)}
METHODS = {method.name: method for method in (NON_PRIVATE, *DEFAULTS, *PUBLISHED, *SOUND, OTHER_LIBRARY)}
