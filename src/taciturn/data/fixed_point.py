"""Integer arithmetic for sums: exact, whatever the order, the chunks or the number of threads.

Numbers are put on a lattice once, record by record, against public bounds. Their sums are computed
by ordinary floating-point products on integer-valued doubles, which are exact as long as no partial
sum can pass 2**53; a public rule cuts the rows into blocks that keep it so. "One record changes only
its own term" then holds to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import FRACTION_BITS, ONE
from taciturn.core.validation import check_integer, check_positive

__all__ = [
    "clip_rows",
    "exact_block_rows",
    "round_weights",
    "to_lattice",
]

_EXACT = 1 << 53
_INT64 = 1 << 63


def to_lattice(values: ArrayLike, bound: float) -> FloatArray:
    """Clip to ``[-bound, bound]`` and round to integers in ``[-ONE, ONE]``, stored as float64."""
    bound = check_positive(bound=bound)
    clipped = np.clip(np.asarray(values, dtype=np.float64), -bound, bound)
    # A quotient of numbers within the bound lies in [-1, 1] even after rounding, and times a power of two is exact.
    clipped /= bound
    clipped *= ONE
    return np.rint(clipped, out=clipped)


def round_weights(weights: ArrayLike, scale: float, bound: int) -> FloatArray:
    """``clip(rint(weights * scale), -bound, bound)``: clipped *after* rounding, so ``bound`` is exact.

    A weight that is not a number counts as zero: its record contributes nothing.
    """
    bound = check_integer(1, bound=bound)
    scaled = np.asarray(weights, dtype=np.float64) * check_positive(scale=scale)
    np.rint(scaled, out=scaled)
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=math.inf, neginf=-math.inf)
    return np.clip(scaled, -bound, bound, out=scaled)


def clip_rows(rows: FloatArray, raw: FloatArray, row_bound_squared: int) -> FloatArray:
    """Lattice rows whose integer squared norms do not exceed ``row_bound_squared``.

    ``rows`` are rounded, ``raw`` the same rows before rounding, both in lattice units. A row that
    fails is truncated towards zero instead; one that fails still is scaled and truncated until it
    passes. Every step looks at one row alone.
    """
    bound = check_integer(1, row_bound_squared=row_bound_squared)
    widest = rows.shape[1] * ONE * ONE
    if widest >= _INT64:
        raise ParameterError(
            "n_features",
            rows.shape[1],
            f"fewer than {_INT64 >> (2 * FRACTION_BITS)} columns for an L2 row bound in 64-bit integers",
            "select columns first",
        )
    out = rows.copy()

    def norms(block: FloatArray) -> IntArray:
        integers = block.astype(np.int64)
        found: IntArray = np.einsum("ij,ij->i", integers, integers)
        return found

    failing = np.flatnonzero(norms(out) > bound)
    if failing.size:
        out[failing] = np.clip(np.trunc(raw[failing]), -ONE, ONE)
        failing = failing[norms(out[failing]) > bound]
    while failing.size:
        squared = norms(out[failing])
        factors = np.sqrt(bound / squared) * (1.0 - 2.0**-40)
        out[failing] = np.trunc(out[failing] * factors[:, None])
        failing = failing[norms(out[failing]) > bound]
    return out


def exact_block_rows(weight_bound: int) -> int:
    """How many rows may be summed in one floating-point product without rounding.

    The public worst case is ``rows * ONE * weight_bound <= 2**53``.
    """
    check_integer(1, weight_bound=weight_bound)
    rows = _EXACT // (ONE * weight_bound)
    if rows < 1:
        raise ParameterError(
            "weight_bound",
            weight_bound,
            f"at most {_EXACT // ONE}, so that one product is exact in double precision",
            "use a coarser weight scale",
        )
    return rows
