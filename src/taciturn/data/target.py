"""Targets on the lattice: numbers mapped to [-1, 1], or labels as one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import as_real, is_width
from taciturn.data.admission import PresentRecords
from taciturn.data.fixed_point import to_lattice

__all__ = [
    "DEFAULT_X_BOUND",
    "DEFAULT_Y_BOUNDS",
    "LabelMap",
    "NumberMap",
    "check_classes",
    "check_y_bounds",
    "class_signs",
    "label_codes",
    "numeric_target",
    "stated_y_bounds",
    "target_numbers",
    "target_signs",
]


DEFAULT_X_BOUND = 1.0
"""The bound on feature values where none is given."""

DEFAULT_Y_BOUNDS = (-1.0, 1.0)
"""The range of a target where none is given."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberMap:
    """Gives records the mapped numbers of their targets.

    Parameters
    ----------
    function : callable
        Maps an array of doubles, one by one. It can be pickled.
    remedy : str, default=None
        What to do with a target that holds no numbers, as in :func:`target_numbers`; None where targets are doubles.
    """

    function: Callable[[FloatArray], FloatArray]
    remedy: str | None = None

    def __call__(self, records: PresentRecords) -> PresentRecords:
        """The records with mapped targets."""
        numbers = records.y if self.remedy is None else target_numbers(records.y, remedy=self.remedy)
        return replace(records, y=self.function(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class LabelMap:
    """Gives records the positions of their labels among public classes; records with another label become null.

    Parameters
    ----------
    classes : ndarray
        The classes.
    """

    classes: AnyArray

    def __call__(self, records: PresentRecords) -> PresentRecords:
        """The records whose label is one of the classes."""
        codes = label_codes(records.y, self.classes)
        return replace(records.keep(codes >= 0), y=codes[codes >= 0])


def check_y_bounds(y_bounds: object) -> tuple[float, float]:
    """A pair of finite numbers, low before high."""
    try:
        # Not text that looks like a number.
        low, high = (as_real(value) for value in y_bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not is_width(high - low):
        raise ParameterError(
            "y_bounds",
            y_bounds,
            "two finite numbers (low, high) with low < high that differ by 1e-301 to 1e301",
            "give the range that the target can have by its nature, not its observed range",
        )
    return low, high


def stated_y_bounds(y_bounds: object) -> tuple[float, float]:
    """The range of a target, as checked, or the default where none is given."""
    return DEFAULT_Y_BOUNDS if y_bounds is None else check_y_bounds(y_bounds)


def check_classes(classes: Sequence[object]) -> AnyArray:
    """Public labels: at least two, all different."""
    try:
        labels = np.asarray([] if isinstance(classes, str) else list(classes))
        distinct = len(set(labels.tolist())) if labels.ndim == 1 else 0
    except TypeError:
        labels, distinct = np.zeros(0), 0
    # numpy would turn numbers beside text into text, and no record would match them.
    mixed = labels.size > 0 and len({isinstance(label, str) for label in classes}) > 1
    if labels.size < 2 or distinct != labels.size or mixed:
        raise ParameterError(
            "classes",
            classes,
            "a sequence of at least two different labels, all text or all numbers",
            "list every label that a record may carry",
        )
    return labels


def numeric_target(y: ArrayLike, y_bounds: tuple[float, float]) -> FloatArray:
    """Y clipped to its public bounds and mapped linearly onto ``[-ONE, ONE]``."""
    low, high = y_bounds
    clipped = np.clip(np.asarray(y, dtype=np.float64), low, high)
    # Halving first keeps bounds near the largest double from overflowing.
    return to_lattice(clipped / 2.0 - (low / 4.0 + high / 4.0), high / 4.0 - low / 4.0)


def target_signs(y: FloatArray, middle: float) -> FloatArray:
    """The side of the middle on which each number lies: -1, 0 or 1."""
    return np.subtract(y > middle, y < middle, dtype=np.float64)


def target_numbers(y: AnyArray, *, remedy: str) -> FloatArray:
    """The doubles of a numeric target, one by one, so that no record decides the type of the others.

    Numbers that arrive as objects, as a data frame's column may, are numbers; text is not, whatever it says.
    ``remedy`` says what to do with a target that holds no numbers.
    """
    if y.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in y):
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if not np.isfinite(numbers).all():
                raise DataError(
                    "y: expected finite numbers, got missing or infinite ones; fill them in or leave these records out."
                )
            return numbers
    if y.dtype.kind not in "iufb":
        raise DataError(f"y: expected numbers; {remedy}.")
    return y.astype(np.float64)


# Types whose equal values have equal hashes, so that a label is looked up and not compared with every class.
_PLAIN = (str, int, float, bool)


def label_codes(y: AnyArray, classes: AnyArray) -> IntArray:
    """The position of each record's label among the classes, -1 for null records: those with another label.

    Labels of another type than the classes are other labels. A table is not refused for them, since its last record
    could decide whether all labels are; released shares of classes show the mistake, see ``fitting.suspicions``.
    """
    codes = np.full(y.shape, -1, dtype=np.int64)
    if y.dtype.kind == "O":
        # Objects are compared one by one: none of them decides what becomes of the others.
        listed = list(classes)
        # Not moments, of which numpy makes numbers.
        plain = classes.tolist() if classes.dtype.kind in "biufUO" else []
        places = {label: code for code, label in enumerate(plain)}
        for row, own in enumerate(y.tolist()):
            codes[row] = places.get(own, -1) if type(own) in _PLAIN else _place_of(own, listed)
        return codes
    for code, label in enumerate(classes):
        codes[y == label] = code
    return codes


def _place_of(own: object, listed: list[object]) -> int:
    """The position of the class that equals an object of any type, or -1."""
    for code, label in enumerate(listed):
        try:
            if bool(own == label):
                return code
        except Exception:
            # Of a foreign object that cannot be compared.
            return -1
    return -1


def class_signs(codes: IntArray, n_classes: int) -> FloatArray:
    """One column per class: +1 for its records, -1 for those of other classes, 0 for null records.

    Labels are positions among the classes. Two classes need one column, the second being its negative.
    """
    columns = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    signs = np.where(codes[:, None] == columns, 1.0, -1.0)
    signs[codes < 0] = 0.0
    return signs
