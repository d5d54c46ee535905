r"""Frank-Wolfe over an L1 ball with one vertex and a scalar margin per step: five ways to the same selections.

All of them draw, at step t = 0, 1, .., the vertex ``sign * radius * e_j`` with probability proportional to
``exp(-sign g_j / noise_scale)``, ``g = sum_i psi_i x_i``, then move ``w <- (1 - mu) w + mu * vertex``, ``mu = 2 / (t + 2)``, from w = 0. Features
are lattice integers in [-ONE, ONE] that stand for [-1, 1]; regression targets likewise, class labels are 0 and 1.

===================  ======  =========  =============================================  ====================
path                 data    losses     cost of a step                                 logistic derivative
===================  ======  =========  =============================================  ====================
``SublinearPath``    sparse  all        rows of the chosen column, times their length  within 1e-3
``ColumnPath``       sparse  squared    O(d)                                           --
``MarginPath``       sparse  all        one pass over X                                within 1e-5
``GramPath``         dense   squared    O(d)                                           --
``DensePath``        dense   all        one pass over X                                within 1e-5
===================  ======  =========  =============================================  ====================

:func:`choose_path` decides from public numbers alone, because paths round differently: were the choice to depend on
the data, so would the rounding of every score.

Charges for finite arithmetic: the sensitivity of the scores *as computed* is :func:`score_sensitivity`; a selection
then has a bounded range of ``2 * score_sensitivity / noise_scale + SELECTION_CHARGE``, but for an event of probability
``SELECTION_LEFTOVER``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive, check_real
from taciturn.data.fixed_point import ONE, exact_block_rows
from taciturn.kernels.gram_frank_wolfe import (
    advance_by_columns,
    all_columns,
    fetch_column,
    halvings_of,
    no_columns,
)
from taciturn.kernels.margin_frank_wolfe import (
    advance_dense,
    advance_sparse,
    dense_gradient,
    move_dense,
    move_sparse,
    residuals,
    sparse_gradient,
)
from taciturn.kernels.residual_pieces import curve_table, pieces_of, residual_bound
from taciturn.kernels.sparse_frank_wolfe import (
    advance,
    count_columns,
    move,
    new_pace,
    new_rows,
    pack,
    reset,
    schedule_of,
)
from taciturn.kernels.vertex_sampler import LEFTOVER, WEIGHT_ERROR, new_sampler

__all__ = [
    "PATHS",
    "SELECTION_CHARGE",
    "SELECTION_LEFTOVER",
    "ColumnPath",
    "DensePath",
    "GramPath",
    "MarginPath",
    "Path",
    "SublinearPath",
    "Task",
    "choose_path",
    "run",
    "score_sensitivity",
]

SELECTION_CHARGE = 4.0 * WEIGHT_ERROR
"""What rounding adds to the bounded range of one selection."""

SELECTION_LEFTOVER = LEFTOVER
"""Probability of one selection outside that statement, for delta."""

LOSSES = ("squared", "huber", "logistic")
_MOST_STEPS = 1_000_000
_MOST_FEATURES = 1 << 26
# Words asked for at a time: 64 KB, some 1,600 proposals.
_WORDS = 1 << 13
# Largest size of the Gram matrix kept as a whole, and of the memory for single columns in units of X.
_GRAM_FEATURES = 2000
_FEWEST_SLOTS = 8
# n R / noise beyond which popular columns are chosen so often that full passes are as fast.
_SHARP = float(1 << 15)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Task:
    """The public side of a run.

    Parameters
    ----------
    loss : {"squared", "huber", "logistic"}
        Loss of one record.
    clip : float
        Threshold of the Huber loss; ignored by the others.
    radius : float
        Radius of the L1 ball.
    n_steps : int
        Number of steps.
    noise_scale : float
        Scale of the exponential mechanism in units of ``g``; 0 for the best vertex at every step.
    n_rows : int
        Number of records, null ones included.
    """

    loss: str
    clip: float
    radius: float
    n_steps: int
    noise_scale: float
    n_rows: int

    def __post_init__(self) -> None:
        check_choice(LOSSES, loss=self.loss)
        if self.loss == "huber":
            check_real(1.0 / ONE, math.inf, clip=self.clip)
        check_positive(radius=self.radius)
        check_integer(1, _MOST_STEPS, n_steps=self.n_steps)
        check_real(0.0, math.inf, closed="left", noise_scale=self.noise_scale)
        # |A| <= n ONE (R + ONE) has to stay below 2**62.
        if check_integer(1, n_rows=self.n_rows) * (self.radius + 3.0) > 2.0**30:
            raise ParameterError(
                "n_rows",
                self.n_rows,
                f"at most {int(2.0**30 / (self.radius + 3.0)):,} records at this radius, for 64-bit sums",
                "use a smaller radius or a sample of the records",
            )
        if self.sharpness * self.n_rows * self.bound * ONE > 2.0**50 and self.noise_scale > 0.0:
            raise ParameterError(
                "noise_scale", self.noise_scale, "0, or noise that double precision can resolve", "use no noise"
            )

    @property
    def bound(self) -> int:
        """R: the largest derivative of one record, in lattice units."""
        return residual_bound(self.loss, self.clip, self.radius)

    @property
    def sharpness(self) -> float:
        """One over the noise scale, in units of integer scores."""
        return 1.0 / (self.noise_scale * ONE * ONE) if self.noise_scale > 0.0 else math.inf

    @property
    def sums(self) -> IntArray:
        """S_t for t = 0 .. n_steps, one instead of zero."""
        t = np.arange(self.n_steps + 1, dtype=np.int64)
        return np.maximum(t * (t + 1) // 2, 1)


def score_sensitivity(loss: str, clip: float, radius: float, n_rows: int, n_steps: int) -> float:
    r"""Largest change of a computed score when one record becomes null, given the same vertices so far.

    In units of g, for every path; norm linf over the scores ``sign * g_j``, zero-out (twice this for replace-one).

    *Statement.* :math:`\Delta = R + 2^{-48} n (R + 1 + \lambda) + [\text{squared}]\, \lambda 2^{h-32}`, where R is
    :func:`~taciturn.kernels.residual_pieces.residual_bound` over ONE and h the number of halvings of the Gram matrix.

    *Proof.* (1) Exact scores. Margins ``u_i`` are integers, functions of ``x_i`` and the vertices. On the margin paths
    ``psi_i`` is an integer clipped to ``[-R, R]`` and a function of ``(u_i, y_i)`` and public numbers, so ``X' psi`` changes by ``x_ik psi_i``.
    On the sub-linear path ``(P_i, q_i)`` is a function of the same, whichever other rows there are: a row is cut for the
    iteration of its own last touch or crossing, and at public iterations. A and B change by ``x_ik P_i``, ``x_ik q_i`` and the
    score by ``x_ik (P_i + c q_i)``. There ``|r_i| <= ONE S_t / 2**shift``, since ``|u_i| <= ONE ||v||_1 <= ONE S_t`` and truncation is towards
    zero, and c exceeds ``radius 2**shift / S_t`` by a relative 2**-53 at most. *Squared*: ``|c q - y| <= radius ONE (1 + 2**-53) + ONE``.
    *Huber*: a row on the sloping piece was seen there, or its crossing lies later than the current iteration, c being
    monotone; the computed ``c r - y`` is within the clip, the exact one within 2**-52 (R + radius ONE) of it. *Logistic*: the value is
    between the intercept of its piece and L at the margin, both in (0, 1), L(radius) at most; y takes it to the other side.
    On the Gram paths B changes by the row's own term and, since every entry is rounded down once, by at most
    one unit per unit of v: ``c S_t = radius 2**h`` in the score.
    (2) Computed scores. ``fl(fl(A) + fl(c fl(B)))`` differs from ``A + c B`` by at most ``2**-53 (2 |A| + 3 |c B|)``, with
    ``|A| <= n ONE (R + ONE)``, ``|c B| <= n ONE radius ONE``, and the product with the sharpness adds ``2**-52`` of that again. Both
    neighbours: less than ``2**-48 n ONE (R + ONE + radius ONE)`` together with the terms of (1).

    Attained, but for the rounding: x = 1, y = -1 with margin radius (squared, Huber), y = 0 (logistic).
    """
    bound = residual_bound(loss, clip, radius) / ONE
    rounding = 2.0**-48 * n_rows * (bound + 1.0 + radius)
    floors = radius * 2.0 ** (halvings_of(n_rows, n_steps) - 32) if loss == "squared" else 0.0
    return bound + rounding + floors


class Path(Protocol):
    """A run in progress: scores before the next step, a step, or all steps."""

    def scores(self) -> FloatArray:
        """Integer scores ``ONE**2 * g`` before the next step, as doubles."""

    def step(self, vertex: int) -> None:
        """Take the next step towards k (+e_k) or ``~k`` (-e_k)."""

    def run(self, stream: Stream) -> tuple[FloatArray, IntArray]:
        """Take all steps; returns the coefficients and the vertices."""


class _Common:
    """What every path has: the task, the vertices so far, and the sampler."""

    def __init__(self, task: Task, n_features: int) -> None:
        check_integer(1, _MOST_FEATURES, n_features=n_features)
        self.task, self.n_features, self.t = task, n_features, 0
        self.sampler = tuple(new_sampler(n_features))
        self.bounds = np.empty(n_features)
        self.vertices = np.zeros(task.n_steps, dtype=np.int64)

    def _advance(self, words: NDArray[np.uint64]) -> int:
        raise NotImplementedError

    def _names(self) -> IntArray:
        """The vertices under the caller's column numbers."""
        return self.vertices

    def run(self, stream: Stream) -> tuple[FloatArray, IntArray]:
        """Take all steps; returns the coefficients and the vertices (k for +e_k, ``~k`` for -e_k)."""
        while self.t < self.task.n_steps:
            self.t = self._advance(stream.words(_WORDS))
        vertices = self._names()
        weights = np.zeros(self.n_features, dtype=np.int64)
        signs = np.where(vertices < 0, -1, 1)
        np.add.at(weights, np.where(vertices < 0, ~vertices, vertices), signs * np.arange(1, self.t + 1))
        # One rounding: the weights and their sum are exact.
        return weights * (self.task.radius / int(self.task.sums[-1])), vertices


class _Sparse(_Common):
    """A sparse matrix by row and by column, with columns numbered by falling popularity."""

    def __init__(self, X: Any, task: Task) -> None:
        super().__init__(task, X.shape[1])
        X = sp.csr_array(X)
        indices, values = _frozen(X.indices, np.int32), _frozen(X.data, np.float64)
        order = np.argsort(-count_columns(indices, X.shape[1]), kind="stable").astype(np.int32)
        self.order, self.ranks = order, np.empty_like(order)
        self.ranks[order] = np.arange(order.size, dtype=np.int32)
        self.matrix = pack(_frozen(X.indptr, np.int64), indices, values, self.ranks)

    def _names(self) -> IntArray:
        columns = self.order[np.where(self.vertices < 0, ~self.vertices, self.vertices)].astype(np.int64)
        return np.where(self.vertices < 0, ~columns, columns)

    def _split(self, vertex: int) -> tuple[int, int]:
        """The inner number and the sign of a vertex, which is put on record."""
        k, sign = int(self.ranks[vertex if vertex >= 0 else ~vertex]), 1 if vertex >= 0 else -1
        self.vertices[self.t] = k if sign > 0 else ~k
        return k, sign

    def _by_name(self, scores: FloatArray) -> FloatArray:
        return scores[self.ranks]


class SublinearPath(_Sparse):
    """Scores kept up to date, vertices drawn without looking at all columns; any loss, sparse data."""

    def __init__(self, X: Any, targets: IntArray, task: Task) -> None:
        super().__init__(X, task)
        self.pieces = tuple(pieces_of(task.loss, task.clip, task.radius))
        self.schedule = tuple(schedule_of(task.n_rows, task.radius, task.n_steps))
        self.rows = tuple(new_rows(_lattice_targets(targets, task.loss), task.n_steps))
        self.a, self.b = np.zeros((2, self.n_features), dtype=np.int64)
        self.pace, self.spare = new_pace(), np.full(1, -1.0)
        reset(0, self.a, self.b, self.matrix, self.rows, self.pieces, self.schedule)

    def scores(self) -> FloatArray:
        """``A + c B``."""
        return self._by_name(self.a + self.schedule[0][self.t] * self.b)

    def step(self, vertex: int) -> None:
        """Take the next step."""
        k, sign = self._split(vertex)
        move(self.t, k, sign, 0.0, self.a, self.b, self.matrix, self.rows, self.pieces, self.schedule)
        self.t += 1

    def _advance(self, words: NDArray[np.uint64]) -> int:
        return advance(
            self.t,
            self.task.sharpness,
            self.a,
            self.b,
            self.matrix,
            self.rows,
            self.pieces,
            self.schedule,
            self.sampler,
            self.pace,
            self.spare,
            self.bounds,
            self.vertices,
            words,
        )


class ColumnPath(_Sparse):
    """Columns of the Gram matrix as they are needed; squared loss, sparse data."""

    def __init__(self, X: Any, targets: IntArray, task: Task) -> None:
        super().__init__(X, task)
        self._start(task)
        move_sparse_t = -_lattice_targets(targets, task.loss).astype(np.float64)
        sparse_gradient(self.matrix, move_sparse_t, self.work)
        self.a = self.work.astype(np.int64)
        # Memory for columns: about as much as the matrix takes by row.
        n_slots = max(_FEWEST_SLOTS, self.matrix[1].size // self.n_features)
        self.columns = tuple(no_columns(self.n_features, min(n_slots, task.n_steps + 1)))
