"""The lattice of integer sums: its unit, and the room that 64 bits leave.

Public numbers alone; :mod:`taciturn.data.fixed_point` puts data on the lattice.
"""

from __future__ import annotations

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer

__all__ = ["FRACTION_BITS", "ONE", "sum_magnitude"]

FRACTION_BITS = 16
"""A value within a bound b is stored as the integer nearest to ``2**16 * value / b``."""

ONE = 1 << FRACTION_BITS
"""The lattice image of the bound itself."""

_INT64 = 1 << 63


def sum_magnitude(n_rows: int, weight_bound: int) -> int:
    """The public bound on ``|sum_i r_i x_ij|``, refused where it could leave 64-bit integers."""
    magnitude = check_integer(0, n_rows=n_rows) * ONE * check_integer(1, weight_bound=weight_bound)
    if magnitude >= _INT64:
        # The number of rows may be private.
        raise ParameterError(
            "weight_bound",
            weight_bound,
            "a bound at which sums over all rows fit 64-bit integers",
            "use a coarser weight scale",
        )
    return magnitude
