"""Distances between two values before noise, as shares of the declared sensitivity."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from taciturn.mechanisms.transcript import Limit

__all__ = ["shares_of_limits"]

# The difference of two doubles is rounded, once.
_ROUNDING = 1.0 + 2.0**-50


def shares_of_limits(
    first: np.ndarray, second: np.ndarray, limits: tuple[Limit, ...]
) -> tuple[tuple[str, float, float], ...]:
    """For each limit its norm, the limit, and the distance as a share of it.

    Integers are compared exactly: a share is above 1 if and only if the distance is above the limit. Differences of
    doubles have the rounding of one subtraction taken off.
    """
    if first.dtype.kind in "iu":
        moves = [a - b for a, b in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)]
        return tuple((norm, limit, _exact_share(moves, norm, limit)) for norm, limit in limits)
    change = first.astype(np.float64).ravel() - second.astype(np.float64).ravel()
    return tuple((norm, limit, _ratio(_distance(change, norm), limit * _ROUNDING)) for norm, limit in limits)


def _exact_share(moves: list[int], norm: str, limit: float) -> float:
    squared = norm == "l2"
    if squared:
        distance = sum(move * move for move in moves)
    elif norm == "l1":
        distance = sum(abs(move) for move in moves)
    elif norm == "range":
        distance = max(moves, default=0) - min(moves, default=0)
    else:
        distance = max((abs(move) for move in moves), default=0)
    allowed = Fraction(limit) ** 2 if squared else Fraction(limit)
    share = _ratio(distance, allowed)
    # A comparison of fractions by doubles could be wrong by rounding.
    if distance > allowed:
        return max(math.sqrt(share) if squared else share, math.nextafter(1.0, 2.0))
    return min(math.sqrt(share) if squared else share, 1.0)


def _distance(change: np.ndarray, norm: str) -> float:
    if change.size == 0:
        return 0.0
    if norm == "l2":
        return float(np.linalg.norm(change))
    if norm == "l1":
        return float(np.abs(change).sum())
    if norm == "range":
        return float(change.max() - change.min())
    return float(np.abs(change).max())


def _ratio(distance: Any, limit: Any) -> float:
    if limit == 0:
        return math.inf if distance else 0.0
    return float(distance / limit)
