r"""Sums over records for hazards that are constant between public cuts, in whitened coordinates.

With :math:`\log h_j(x) = a_j + x^\top w` on interval j a record is observed for a share :math:`f_j` of the interval and
has :math:`d_j` events in it, 0 or 1. :math:`\Lambda_j = \exp(a_j + x^\top w)`, with the length of the interval in
:math:`a_j`, is the number of events that it would be expected to have there if it were observed to the end, and
:math:`r_j = f_j \Lambda_j - d_j` is the derivative of its loss in the j-th logarithm. With the row u of whitened
features, last a 1, and contrasts :math:`k_j` of intervals, that logarithm depends on coefficients by
:math:`t_j = (u, k_j)`, and a record adds

.. math:: \sum_j r_j t_j = \Bigl(u \sum_j r_j, \; \sum_j r_j k_j\Bigr), \qquad \sum_j f_j \Lambda_j t_j t_j^\top

to score and information. Since :math:`0 \le f_j \le 1` and there is one event at most,

.. math:: \Bigl\|\sum_j r_j t_j\Bigr\|^2 \le b^2 = \|u\|^2 \max\bigl(1, \textstyle\sum_j \Lambda_j\bigr)^2
              + \bigl(\max_j \|k_j\| + \textstyle\sum_j \Lambda_j \|k_j\|\bigr)^2, \qquad
          \sum_j f_j \Lambda_j \|t_j\|^2 \le q = \textstyle\sum_j \Lambda_j (\|u\|^2 + \|k_j\|^2) .

Records are weighted by :math:`\min(1, B / b) \min(1, h / q)`: a function of the row and of released numbers alone. A
weight that looked at the event or at the time would move what is estimated. The caller's weights, in [0, 1], multiply
scores and information besides, and so their outer products twice; b and q do not look at them.

A record has as many numbers as there are intervals, zeros where it is not observed, and is one term of every sum. It is
never expanded into rows, of which it would have the more the longer it is observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn.core.validation import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.data.survival import event_marks, exposures
from taciturn.engines.interface import Block
from taciturn.kernels.gradients import exponential_numpy
from taciturn.methods.inference.whitened import WhitenedRows, WhitenedTask, add_outer_products, integer_scale

# Logarithms of expected events are clipped to this range.
_MOST_LOG, _LEAST_LOG = 12.0, -40.0
# Covers the rounding of products and quotients: bounds on integers hold exactly, which is checked besides.
_ROOM = 1.0 - 2.0**-28
# The same for squared norms as doubles compute them.
_SQUARES_ROOM = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True, eq=False)
class HazardModel:
    """Expected events at some coefficients: one row for z, and one logarithm per interval, its length included."""

    cuts: tuple[float, ...]
    coefficients: FloatArray
    log_means: FloatArray
    contrasts: FloatArray

    @property
    def contrast_norms(self) -> FloatArray:
        """The norms of the contrasts of each interval."""
        norms: FloatArray = np.sqrt(np.square(self.contrasts).sum(axis=1))
        return norms

    def full(self, rows: WhitenedRows) -> FloatArray:
        """Expected events of records that are observed to the end, one column per interval."""
        logs = rows.margins(self.coefficients) + self.log_means
        powers: FloatArray = exponential_numpy(np.clip(logs, _LEAST_LOG, _MOST_LOG) - _MOST_LOG)
        found: FloatArray = powers / exponential_numpy(np.array([-_MOST_LOG]))
        return found

    def observed(self, rows: WhitenedRows) -> FloatArray:
        """Expected events while records are observed."""
        ends = np.asarray(self.cuts)
        shares = exposures(_signed(rows), self.cuts) / (ends - np.concatenate(([0.0], ends[:-1])))
        found: FloatArray = self.full(rows) * shares
        return found

    def derivatives(self, rows: WhitenedRows) -> FloatArray:
        """Expected less observed events, one column per interval."""
        return self.observed(rows) - event_marks(_signed(rows), self.cuts)

    def steepness(self, rows: WhitenedRows) -> FloatArray:
        """The largest norm that the score of each row can have."""
        full, norms = self.full(rows), self.contrast_norms
        first = rows.lengths * np.maximum(_total(full), 1.0)
        second = float(norms.max()) + _total(full * norms)
        found: FloatArray = np.sqrt(np.square(first) + np.square(second)) * rows.present
        return found

    def traces(self, rows: WhitenedRows) -> FloatArray:
        """The largest trace that the information of each row can have."""
        full = self.full(rows)
        found: FloatArray = np.square(rows.lengths) * _total(full) + _total(full * np.square(self.contrast_norms))
        return found * rows.present


def contrasts_of(events: FloatArray, groups: IndexArray, norm: float) -> FloatArray:
    r"""Contrasts of groups of intervals, one row per interval; there is one less than there are groups.

    With events :math:`D_g` in each group, :math:`\sum_g D_g k_g = 0` and :math:`\sum_g D_g k_g k_g^\top` is a multiple
    of one, so that contrasts have the same information each and none of it in common with a constant. Where events are
    equally many their rows have about the given norm.
    """
    shares = np.bincount(groups, weights=events)
    roots = np.sqrt(shares / shares.sum())
    complement = np.linalg.qr(roots[:, None], mode="complete")[0][:, 1:]
    return np.ascontiguousarray((complement * (norm / math.sqrt(roots.size)) / roots[:, None])[groups])


def _signed(rows: WhitenedRows) -> FloatArray:
    return np.asarray(rows.target, dtype=np.float64)


def _total(columns: FloatArray) -> FloatArray:
    """Sums of columns in their order: others may round differently in another block."""
    total = np.zeros(len(columns))
    for column in columns.T:
        total += column
    return total


@dataclass(frozen=True, slots=True, eq=False)
class HazardWeighing:
    """Weights from rows alone: scores of at most ``score``, information of a trace of at most ``trace``."""

    model: HazardModel
    score: float = math.inf
    trace: float = math.inf

    def weights(self, rows: WhitenedRows) -> FloatArray:
        """Numbers in [0, 1]: all 1 without bounds, for sums without noise."""
        found = np.ones(len(rows.z))
        if math.isfinite(self.score):
            found *= _ROOM / np.maximum(self.model.steepness(rows) / self.score, 1.0)
        if math.isfinite(self.trace):
            found *= _ROOM / np.maximum(self.model.traces(rows) / self.trace, 1.0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _HazardTask(WhitenedTask):
    """What tasks about hazards share: coordinates of z, and a model. Every record that reaches them is present."""

    model: HazardModel

    @property
    def size(self) -> int:
        """Coefficients of rows and of contrasts."""
        return self.at.width + int(self.model.contrasts.shape[1])

    def episodes(self, block: Block) -> Iterator[WhitenedRows]:
        """The rows of a block, some at a time, so few that there is room for all intervals."""
        return self.pieces(block, len(self.model.cuts))


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBounds(_HazardTask):
    """The largest norm that the score of each record can have."""

    def values(self, block: Block) -> FloatArray:
        """The numbers of a block."""
        return _joined([self.model.steepness(rows) for rows in self.episodes(block)])


@dataclass(frozen=True, slots=True, eq=False)
class InformationBounds(_HazardTask):
    """The largest trace that the information of each record can have."""

    def values(self, block: Block) -> FloatArray:
        """The numbers of a block."""
        return _joined([self.model.traces(rows) for rows in self.episodes(block)])


def _joined(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class HazardInformation(_HazardTask):
    """The sum of the information of all records, for a bound ``trace`` on each one's trace.

    A record adds one vector per interval, and their squared norms add up to no more than ``row_squared``. That stands
    for the bound over the square of :data:`~taciturn.methods.inference.whitened.MATRIX_SCALE`.
    """

    weighing: HazardWeighing
    trace: float
    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        n_intervals, width = len(self.model.cuts), self.at.width
        total = np.zeros((self.size, self.size), dtype=np.int64)
        scale = float(integer_scale(self.row_squared, self.size * n_intervals)) / math.sqrt(self.trace)
        for rows in self.episodes(block):
            shares = rows.spread(self.weighing.weights(rows)) * rows.present
            roots = np.sqrt(self.model.observed(rows) * shares[:, None]) * scale
            vectors, squares = np.empty((n_intervals, len(rows.z), self.size)), np.zeros(len(rows.z))
            for vector, root, contrast in zip(vectors, roots.T, self.model.contrasts, strict=True):
                np.rint((root * self.at.unit)[:, None] * rows.u, out=vector[:, :width])
                np.rint(root[:, None] * contrast, out=vector[:, width:])
                squares += np.einsum("ij,ij->i", vector, vector)
            # Only measures beyond all reason could get here; the bound must not rest on that.
            kept = squares <= self.row_squared
            for vector in vectors:
                total += add_outer_products(vector[kept], self.row_squared)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _HazardScoreTask(_HazardTask):
    """Scores of norm at most ``bound``, one vector per record."""

    weighing: HazardWeighing
    bound: float

    def scores(self, block: Block, norm: float, most: int) -> Iterator[FloatArray]:
        """Scores as integers, ``norm`` standing for their bound and ``most`` bounding their squared norms.

        To round a vector can lengthen it, so that its integers are checked: one that is too long becomes zero.
        """
        width = self.at.width
        for rows in self.episodes(block):
            scales = rows.spread(self.weighing.weights(rows)) * rows.present * (norm / self.bound)
            derivatives = self.model.derivatives(rows) * scales[:, None]
            vectors = np.zeros((len(rows.z), self.size))
            vectors[:, :width] = (_total(derivatives) * self.at.unit)[:, None] * rows.u
            for derivative, contrast in zip(derivatives.T, self.model.contrasts, strict=True):
                vectors[:, width:] += derivative[:, None] * contrast
            np.rint(vectors, out=vectors)
            fits: BoolArray = np.einsum("ij,ij->i", vectors, vectors) <= most * _SQUARES_ROOM
            vectors[~fits] = 0.0
            yield vectors


@dataclass(frozen=True, slots=True, eq=False)
class HazardScore(_HazardScoreTask):
    """The sum of scores, ``norm`` standing for their bound."""

    norm: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros(self.size, dtype=np.int64)
        # Norms are large, and rounding adds next to nothing to them.
        for vectors in self.scores(block, self.norm - 0.5 * math.sqrt(total.size), self.norm**2):
            total += vectors.astype(np.int64).sum(axis=0)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class HazardScoreProducts(_HazardScoreTask):
    """The sum of outer products of scores, of squared norms up to ``row_squared``.

    That stands for their squared bound over the square of :data:`~taciturn.methods.inference.whitened.MATRIX_SCALE`.
    """

    row_squared: int

    def __call__(self, block: Block) -> IntArray:
        """The sum over the records of a block."""
        total = np.zeros((self.size, self.size), dtype=np.int64)
        for vectors in self.scores(block, float(integer_scale(self.row_squared, self.size)), self.row_squared):
            total += add_outer_products(vectors, self.row_squared)
        return total
