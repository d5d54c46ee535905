"""The edge of privacy: a root finder that always stops on the private side.

``excess(x)`` is positive where a target is missed and at most zero where it is met; minus infinity
is a legitimate answer. The functions below never return a point they have not seen to be private.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["first_private", "last_private"]

_HALF = 0.5


def last_private(excess: Callable[[float], float], private: float, exposed: float, tolerance: float) -> float:
    """A private point within ``tolerance`` of the edge between two given points.

    Chandrupatla's method: inverse quadratic interpolation where three points justify it, bisection
    elsewhere. The bracket itself is closed, not merely the last step, because the answer has to be
    the private end of it.

    Parameters
    ----------
    excess : callable
        Changes sign between ``private`` and ``exposed``.
    private, exposed : float
        Points with ``excess <= 0`` and ``excess > 0``, in any order on the line.
    tolerance : float
        Absolute width of the final bracket.

    References
    ----------
    T. R. Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a
    nonlinear function without using derivatives", Advances in Engineering Software 28 (1997).
    """
    here, there = private, exposed
    f_here, f_there = excess(here), excess(there)
    share = _HALF
    if math.isfinite(f_here) and math.isfinite(f_there):
        share = f_here / (f_here - f_there)
    while True:
        width = abs(there - here)
        if width <= tolerance:
            break
        shortest = _HALF * tolerance / width
        point = here + min(max(share, shortest), 1.0 - shortest) * (there - here)
        if point in (here, there):
            break
        value = excess(point)
        if (value > 0.0) == (f_here > 0.0):
            last, f_last = here, f_here
        else:
            last, f_last = there, f_there
            there, f_there = here, f_here
        here, f_here = point, value
        share = _interpolated(here, there, last, f_here, f_there, f_last)
    return here if f_here <= 0.0 else there


def _interpolated(x1: float, x2: float, x3: float, f1: float, f2: float, f3: float) -> float:
    """Where between x1 (0) and x2 (1) to look next, given a third point x3 on the side of x1."""
    if not (math.isfinite(f1) and math.isfinite(f2) and math.isfinite(f3)):
        return _HALF
    xi = (x1 - x2) / (x3 - x2)
    phi = (f1 - f2) / (f3 - f2)
    if phi * phi >= xi or (1.0 - phi) ** 2 >= 1.0 - xi:
        return _HALF
    toward_far = f1 / (f2 - f1) * f3 / (f2 - f3)
    toward_last = (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    return toward_far + toward_last


def first_private(
    excess: Callable[[float], float], start: float, low: float, high: float, tolerance: float
) -> float | None:
    """The smallest private point of ``[low, high]`` when large points are the private ones.

    Strides that double from ``start`` find a bracket. Returns None if even ``high`` is not private,
    and ``low`` if everything is.
    """
    point, stride = start, 1.0
    if excess(point) <= 0.0:
        private = point
        while private > low:
            point = max(low, private - stride)
            if excess(point) > 0.0:
                return last_private(excess, private, point, tolerance)
            private, stride = point, 2.0 * stride
        return low
    exposed = point
    while exposed < high:
        point = min(high, exposed + stride)
        if excess(point) <= 0.0:
            return last_private(excess, point, exposed, tolerance)
        exposed, stride = point, 2.0 * stride
    return None
