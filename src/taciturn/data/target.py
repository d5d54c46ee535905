"""Targets read cell by cell: numbers within public bounds, or labels of a public list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import (
    ONE,
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    NumberArray,
    as_real,
    check_integer,
    is_width,
)
from taciturn.data.design import to_lattice
from taciturn.data.records import Records

# ---- Targets on the lattice: numbers mapped to [-1, 1], or labels as one class against the rest.

DEFAULT_X_BOUND = 1.0
"""The bound on feature values where none is given."""

DEFAULT_Y_BOUNDS = (-1.0, 1.0)
"""The range of a target where none is given."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberMap:
    """Gives records the mapped numbers of their targets.

    ``function`` maps an array of doubles, one by one, and can be pickled. ``remedy`` says what to do with a target that
    holds no numbers, as in :func:`target_numbers`; None where targets are doubles.
    """

    function: Callable[[FloatArray], FloatArray]
    remedy: str | None = None

    def __call__(self, records: Records) -> Records:
        """The records with mapped targets."""
        numbers = records.y if self.remedy is None else target_numbers(records.y, remedy=self.remedy)
        return replace(records, y=self.function(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class LabelMap:
    """Gives records the positions of their labels among public classes; records with another label become null.

    ``weights`` are public numbers in (0, 1], one for each class, by which the weights of its records are multiplied.
    """

    classes: AnyArray
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        known = len(self.weights) == len(self.classes) and all(0.0 < weight <= 1.0 for weight in self.weights)
        if self.weights and not known:
            raise ValueError("weights of classes: expected a number in (0, 1] for each")

    def __call__(self, records: Records) -> Records:
        """The records whose label is one of the classes."""
        codes = label_codes(records.y, self.classes)
        found = replace(records.keep(codes >= 0), y=codes[codes >= 0])
        if not self.weights:
            return found
        weights = np.array(self.weights)[found.y]
        return replace(found, weight=weights if found.weight is None else weights * found.weight)


def check_y_bounds(y_bounds: object) -> tuple[float, float]:
    """A pair of finite numbers, low before high."""
    try:
        # Not text that looks like a number.
        low, high = (as_real(value) for value in y_bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not is_width(high - low):
        expected = "two finite numbers (low, high) with low < high that differ by 1e-301 to 1e301"
        remedy = "give the range that the target can have by its nature, not its observed range"
        raise ParameterError("y_bounds", y_bounds, expected, remedy)
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
        expected = "a sequence of at least two different labels, all text or all numbers"
        raise ParameterError("classes", classes, expected, "list every label that a record may carry")
    return labels


def numeric_target(y: ArrayLike, y_bounds: tuple[float, float]) -> FloatArray:
    """Y clipped to its public bounds and mapped linearly onto ``[-ONE, ONE]``."""
    low, high = y_bounds
    clipped = np.clip(np.asarray(y, dtype=np.float64), low, high)
    # Halving first keeps bounds near the largest double from overflowing.
    return to_lattice(clipped / 2.0 - (low / 4.0 + high / 4.0), high / 4.0 - low / 4.0)


def positive_target(y: ArrayLike, y_bounds: tuple[float, float]) -> FloatArray:
    """Y clipped to its public bounds and divided by the upper one, in ``[0, ONE]``; the lower one is not negative."""
    low, high = y_bounds
    return to_lattice(np.clip(np.asarray(y, dtype=np.float64), low, high), high)


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
    could decide whether all labels are; released shares of classes show the mistake, see ``methods.diagnostics``.
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


# ---- Public cells in which a record falls by its target and by what a public model predicts for it.
# A score releases the number of records in each cell once, and every measure of the model is made of these numbers.
# Cells are fixed before the data are read, by the number of records and the noise; the cell of a record is a function
# of that record alone. Bins of predicted probabilities are bins of log-odds, so that a margin is compared with public
# numbers and no exponential is rounded.

N_DECILES = 10
"""Predicted probabilities are told apart by tenths at least."""

# The outer tenths have twice as many bins as the others, since rare outcomes are there.
_OUTER = 2
_MOST_LEAST = 0.01
_WIDTH = 2 * ONE
# The smallest bin of absolute errors reaches to this power of one half of the width, times one for four bins more.
_COARSEST, _BINS_A_HALF, _FINEST = 4, 4, 16


class PredictionCells(Protocol):
    """A public partition of targets and predictions."""

    @property
    def n_cells(self) -> int:
        """The number of cells."""

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, -1 for a null record, from one row of a model's outputs each and the target."""

    def coarser(self) -> tuple[Self, IntArray]:
        """The partition with neighbouring bins merged in pairs, and for each of its own cells the merged one."""


def margin_edges(n_bins: int, most_odds: int) -> tuple[float, ...]:
    """Log-odds between which predicted probabilities share a bin.

    Every tenth has ``n_bins`` equal bins, an even number. The first and the last tenth have twice as many, equal on the
    logarithmic scale, down to a probability of 1 / most_odds, and one more for all that is beyond.
    """
    check_integer(2, n_bins=n_bins)
    least = min(1.0 / most_odds, _MOST_LEAST)
    outer = np.geomspace(least, 1.0 / N_DECILES, _OUTER * n_bins + 1)
    inner = np.linspace(1.0 / N_DECILES, 0.5, (N_DECILES // 2 - 1) * n_bins + 1)[1:-1]
    lower = np.concatenate((outer, inner))
    below = np.log(lower) - np.log1p(-lower)
    return tuple(np.concatenate((below, [0.0], -below[::-1])).tolist())


@dataclass(frozen=True, slots=True)
class MarginCells:
    """Two classes: the bin of the predicted log-odds of the second class, with its upper edge, and the class."""

    edges: tuple[float, ...]

    @property
    def n_bins(self) -> int:
        """Bins of the prediction."""
        return len(self.edges) + 1

    @property
    def n_cells(self) -> int:
        """The number of cells: the bins of the first class, then those of the second."""
        return 2 * self.n_bins

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from its log-odds."""
        codes = np.asarray(target, dtype=np.int64)
        # A prediction that is not a number is as wrong as can be.
        margins = np.where(np.isnan(outputs[:, 0]), np.where(codes == 1, -math.inf, math.inf), outputs[:, 0])
        bins = np.searchsorted(np.asarray(self.edges), margins, side="left")
        return np.where(codes < 0, -1, codes * self.n_bins + bins)

    def coarser(self) -> tuple[MarginCells, IntArray]:
        """Bins merged in pairs, but for the two at the ends; no tenth is cut."""
        coarse = MarginCells(self.edges[::2])
        bins = (np.arange(self.n_bins) + 1) // 2
        return coarse, np.concatenate((bins, coarse.n_bins + bins))


@dataclass(frozen=True, slots=True)
class ClassCells:
    """More than two classes: the class, whether it is the predicted one, and the bin of its predicted log-odds."""

    edges: tuple[float, ...]
    n_classes: int

    @property
    def n_bins(self) -> int:
        """Bins of the prediction."""
        return len(self.edges) + 1

    @property
    def n_cells(self) -> int:
        """The number of cells: for each class the bins of right predictions, then those of wrong ones."""
        return 2 * self.n_classes * self.n_bins

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from one margin per class."""
        codes = np.asarray(target, dtype=np.int64)
        rows = np.arange(codes.size)
        own = outputs[rows, np.maximum(codes, 0)]
        others = np.full(codes.size, -math.inf)
        for code in range(self.n_classes):
            # One by one and in this order: sums of exponentials by vector units depend on the place of a record.
            among = np.logaddexp(others, outputs[:, code] - own)
            others = np.where(codes == code, others, among)
        # Infinite margins have no difference.
        lost = np.isnan(outputs).any(axis=1) | np.isnan(others)
        bins = np.searchsorted(np.asarray(self.edges), np.where(lost, -math.inf, -others), side="left")
        wrong = lost | (outputs.argmax(axis=1) != codes)
        return np.where(codes < 0, -1, (2 * codes + wrong) * self.n_bins + bins)

    def coarser(self) -> tuple[ClassCells, IntArray]:
        """Bins merged in pairs, but for the two at the ends."""
        coarse = ClassCells(self.edges[::2], self.n_classes)
        bins = (np.arange(self.n_bins) + 1) // 2
        return coarse, (np.arange(2 * self.n_classes)[:, None] * coarse.n_bins + bins).ravel()


@dataclass(frozen=True, slots=True)
class ErrorCells:
    """Numbers: the bin of the target, and that of the absolute error.

    Targets and predictions are clipped to ``y_bounds``, which are public, and put on the lattice, of ``2 * ONE`` steps.
    ``targets`` are edges from ``-ONE`` to ``ONE``: a bin contains its lower edge; the last, both. ``errors`` are edges
    from 0 to ``2 * ONE``: a bin contains its upper edge; the first, both. Cells that no record can fall in, since the
    error would lead beyond the bounds, do not exist.
    """

    y_bounds: tuple[float, float]
    targets: tuple[int, ...]
    errors: tuple[int, ...]

    @classmethod
    def of_bins(cls, y_bounds: tuple[float, float], n_targets: int, n_errors: int) -> ErrorCells:
        """Equal bins of targets, and bins of errors in geometric progression; even numbers of both."""
        halves = min(_COARSEST + n_errors / _BINS_A_HALF, _FINEST)
        steps = np.geomspace(_WIDTH * 2.0**-halves, _WIDTH, n_errors)
        targets = [round(-ONE + _WIDTH * k / n_targets) for k in range(n_targets + 1)]
        errors = np.unique(np.concatenate(([0], np.rint(steps).astype(np.int64)))).tolist()
        # Small steps coincide on the lattice; pairs need an even number.
        return cls(y_bounds, tuple(targets), tuple(errors if len(errors) % 2 else errors[:1] + errors[2:]))

    @property
    def possible(self) -> BoolArray:
        """For every bin of targets and of errors, whether a record can be in both."""
        farthest = [max(upper + ONE, ONE - lower) for lower, upper in pairwise(self.targets)]
        return np.asarray(self.errors[:-1])[None, :] < np.array(farthest)[:, None]

    @property
    def n_cells(self) -> int:
        """The number of cells: the possible bins of errors for each bin of targets."""
        return int(self.possible.sum())

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from the predicted number."""
        predicted = numeric_target(outputs[:, 0], self.y_bounds)
        # A prediction that is not a number is as wrong as can be.
        wrong = np.where(np.isnan(predicted), ONE + np.abs(target), np.abs(target - predicted))
        rows = np.searchsorted(np.asarray(self.targets[1:-1]), target, side="right")
        columns = np.searchsorted(np.asarray(self.errors[1:-1]), wrong, side="left")
        places = np.where(self.possible, np.cumsum(self.possible).reshape(self.possible.shape) - 1, -1)
        cells: IntArray = places[rows, columns]
        return cells

    def coarser(self) -> tuple[ErrorCells, IntArray]:
        """Both kinds of bins merged in pairs."""
        coarse = ErrorCells(self.y_bounds, self.targets[::2], self.errors[::2])
        places = np.cumsum(coarse.possible).reshape(coarse.possible.shape) - 1
        rows, columns = np.nonzero(self.possible)
        return coarse, places[rows // 2, columns // 2]


# Predicted means below this share of the largest count as that, so that a deviance is bounded.
_LEAST_SHARE = 2.0**-10
# Counts up to so many times the number of bins of their own have one each.
_OWN_BINS = 0.5


@dataclass(frozen=True, slots=True)
class MeanCells:
    """Predicted means under a log link: the bin of the logarithm of the prediction, and that of the target.

    ``means`` are edges of logarithms in the units of the target, with an even number of bins between them; predictions
    beyond belong to the outer bins. ``targets`` are edges on the lattice of ``y_bounds``, from ``-ONE`` to ``ONE``: a
    bin contains its lower edge; the last, both. ``power`` is that of the deviance: 1 for counts, of which small ones
    have bins of their own, and 2 for amounts.
    """

    y_bounds: tuple[float, float]
    means: tuple[float, ...]
    targets: tuple[int, ...]
    power: int

    @classmethod
    def of_bins(
        cls, y_bounds: tuple[float, float], power: int, n_means: int, n_targets: int, reach: tuple[float, float]
    ) -> MeanCells:
        """Equal bins of logarithms of predictions within a range, and bins of targets in geometric progression."""
        low, high = y_bounds
        least, most = max(math.log(max(low, _LEAST_SHARE * high)), reach[0]), min(math.log(high), reach[1])
        if most - least < 1e-6:
            least = most - 1e-6
        means = np.linspace(least, most, n_means + 1)
        if power == 1:
            own = math.floor(low) + np.arange(max(2.0, _OWN_BINS * n_targets)) + 0.5
            steps = np.floor(np.geomspace(own[-1], max(high, own[-1] + 1.0), n_targets // 2 + 1)) + 0.5
            inner = np.unique(np.concatenate((own, steps)))
        else:
            inner = np.geomspace(low, high, n_targets + 1)[1:-1]
        edges = np.rint((inner - low) / (high - low) * _WIDTH).astype(np.int64) - ONE
        edges = np.unique(edges[(edges > -ONE) & (edges < ONE)])
        return cls(y_bounds, tuple(means.tolist()), (-ONE, *edges.tolist(), ONE), power)

    @property
    def n_means(self) -> int:
        """Bins of the prediction."""
        return len(self.means) - 1

    @property
    def n_targets(self) -> int:
        """Bins of the target."""
        return len(self.targets) - 1

    @property
    def n_cells(self) -> int:
        """The number of cells: the bins of targets for each bin of predictions."""
        return self.n_means * self.n_targets

    def cells(self, outputs: FloatArray, target: NumberArray) -> IntArray:
        """The cell of every record, from the logarithm of the predicted mean."""
        # A prediction that is not a number is as wrong as can be.
        logarithms = np.where(np.isnan(outputs[:, 0]), np.where(target > 0, -math.inf, math.inf), outputs[:, 0])
        rows = np.searchsorted(np.asarray(self.means[1:-1]), logarithms, side="left")
        columns = np.searchsorted(np.asarray(self.targets[1:-1]), target, side="right")
        return np.asarray(rows * self.n_targets + columns, dtype=np.int64)

    def coarser(self) -> tuple[MeanCells, IntArray]:
        """Bins of predictions merged in pairs."""
        rows, columns = np.divmod(np.arange(self.n_cells), self.n_targets)
        return replace(self, means=self.means[::2]), rows // 2 * self.n_targets + columns

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """For each cell what stands for the prediction and for the target."""
        logarithms, (low, high) = np.asarray(self.means), self.y_bounds
        edges = low + (np.asarray(self.targets) + ONE) / _WIDTH * (high - low)
        if self.power == 1:
            # The mean of the whole numbers between two edges.
            first, last = np.ceil(edges[:-1] - 1e-3), np.ceil(edges[1:] - 1e-3) - 1.0
            last[-1] = math.floor(high + 1e-3)
            targets = 0.5 * (first + np.maximum(last, first))
        else:
            targets = np.sqrt(edges[:-1] * edges[1:])
        predictions = np.exp((logarithms[:-1] + logarithms[1:]) / 2.0)
        return np.repeat(predictions, self.n_targets), np.tile(targets, self.n_means)
