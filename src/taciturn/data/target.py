"""Targets on the lattice: numbers mapped to [-1, 1], or labels as one class against the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taciturn.core.errors import ParameterError
from taciturn.data.fixed_point import to_lattice

__all__ = ["check_classes", "check_y_bounds", "label_signs", "numeric_target"]


def check_y_bounds(y_bounds: object) -> tuple[float, float]:
    """A pair of finite numbers, low before high."""
    try:
        low, high = (float(value) for value in y_bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ParameterError(
            "y_bounds",
            y_bounds,
            "two finite numbers (low, high) with low < high",
            "give the range that the target can have by its nature, not its observed range",
        )
    return low, high


def check_classes(classes: Sequence[object]) -> NDArray[np.generic]:
    """Public labels: at least two, all different."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or labels.size < 2 or np.unique(labels).size != labels.size:
        raise ParameterError(
            "classes",
            list(classes),
            "at least two different labels",
            "list every label that a record may carry",
        )
    return labels


def numeric_target(y: ArrayLike, y_bounds: tuple[float, float]) -> NDArray[np.float64]:
    """Y clipped to its public bounds and mapped linearly onto ``[-ONE, ONE]``."""
    low, high = y_bounds
    clipped = np.clip(np.asarray(y, dtype=np.float64), low, high)
    # Halving first keeps bounds near the largest double from overflowing.
    return to_lattice(clipped / 2.0 - (low / 4.0 + high / 4.0), high / 4.0 - low / 4.0)


def label_signs(y: NDArray[np.generic], classes: NDArray[np.generic]) -> NDArray[np.float64]:
    """One column per class: +1 for its records, -1 for those of other classes, 0 for null records.

    A record whose label is not in ``classes`` is a null record. Two classes need one column, the
    second being its negative.
    """
    positives = [y == label for label in (classes[1:] if classes.size == 2 else classes)]
    known = np.isin(y, classes)
    signs = np.where(np.column_stack(positives), 1.0, -1.0)
    signs[~known] = 0.0
    return signs
