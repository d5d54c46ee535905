"""The map from public bounds to [-1, 1], stated once for everything that applies it."""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import FloatArray

__all__ = ["centre_and_half", "to_unit_range"]


def centre_and_half(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and half width of every column, neither overflowing nor, for the width, vanishing."""
    centre = lower / 2.0 + upper / 2.0
    return centre, np.maximum(upper - centre, centre - lower)


def to_unit_range(
    values: FloatArray, lower: FloatArray, upper: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    r"""Values clipped to ``[lower, upper]`` and mapped linearly to [-1, 1], the ends exactly.

    .. math:: \frac{\min(\max(x, l), u) - (l + u) / 2}{(u - l) / 2}

    Parameters
    ----------
    values : ndarray
        Numbers; NaN stays NaN, infinity is clipped like everything else.
    lower, upper : ndarray
        Public bounds that broadcast against ``values``.
    out : ndarray, default=None
        Where to put the result; may be ``values`` itself.
    """
    centre, half = centre_and_half(lower, upper)
    # The centre is rounded, so the quotient may miss an end by one unit in the last place. Where it does not, clipped
    # values arrive at the end by themselves, and two passes are saved.
    rounded_low, rounded_high = (lower - centre) / half != -1.0, (upper - centre) / half != 1.0
    at_lower = (values <= lower) & rounded_low if rounded_low.any() else None
    at_upper = (values >= upper) & rounded_high if rounded_high.any() else None
    out = np.clip(values, lower, upper, out=out)
    out -= centre
    out /= half
    if at_lower is not None:
        np.copyto(out, -1.0, where=at_lower)
    if at_upper is not None:
        np.copyto(out, 1.0, where=at_upper)
    return out
