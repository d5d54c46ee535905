r"""The public side of a Frank-Wolfe run over an L1 ball, and what one record can do to its scores.

A run draws, at step t = 0, 1, .., the vertex ``sign * radius * e_j`` with probability proportional to ``exp(-sign
g_j / noise_scale)``, ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu) w + mu * vertex``, ``mu = 2 / (t + 2)``,
from w = 0. Features are lattice integers in [-ONE, ONE] that stand for [-1, 1].

Charges for finite arithmetic: the sensitivity of the scores *as computed* is
``data.sensitivity.lattice_gradient_scores``. A selection then has a bounded range of twice that over the noise scale,
plus :data:`SELECTION_CHARGE`, but for an event of probability :data:`SELECTION_LEFTOVER`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_real
from taciturn.data.fixed_point import ONE
from taciturn.kernels.residual_pieces import residual_bound
from taciturn.kernels.vertex_sampler import LEFTOVER, WEIGHT_ERROR, new_sampler

__all__ = [
    "LARGEST_RADIUS",
    "MOST_FEATURES",
    "MOST_STEPS",
    "SELECTION_CHARGE",
    "SELECTION_LEFTOVER",
    "SMALLEST_RADIUS",
    "Path",
    "Task",
    "lattice_targets",
]

SELECTION_CHARGE = 4.0 * WEIGHT_ERROR
"""What rounding adds to the bounded range of one selection; ``mechanisms.base.rounding_charge`` pays more."""

SELECTION_LEFTOVER = LEFTOVER
"""Probability of one selection outside that statement: paid by what every accountant keeps back of delta."""

LOSSES = ("squared", "huber", "logistic")
MOST_STEPS = 1_000_000
# Derivatives have to fit 32-bit integers.
LARGEST_RADIUS = float(1 << 14)
SMALLEST_RADIUS = 1e-9
MOST_FEATURES = 1 << 26
# Words asked for at a time: 64 KB, some 1,600 proposals.
_WORDS = 1 << 13

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
        check_real(SMALLEST_RADIUS, LARGEST_RADIUS, radius=self.radius)
        check_integer(1, MOST_STEPS, n_steps=self.n_steps)
        check_real(0.0, math.inf, closed="left", noise_scale=self.noise_scale)
        # |A| <= n ONE (R + ONE) has to stay below 2**62.
        if check_integer(1, n_rows=self.n_rows) * (self.radius + 3.0) > 2.0**30:
            raise ParameterError(
                "n_rows",
                self.n_rows,
                f"at most {int(2.0**30 / (self.radius + 3.0)):,} records at this radius, for 64-bit sums",
                "use a smaller radius or a sample of the records",
            )
        if self.noise_scale > 0.0 and self.largest_exponent > 2.0**50:
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
    def largest_exponent(self) -> float:
        """``n R / noise_scale``: no score is larger, in units of the noise; infinite without noise."""
        return self.sharpness * self.n_rows * self.bound * ONE

    @property
    def sums(self) -> IntArray:
        """S_t for t = 0 .. n_steps, one instead of zero."""
        t = np.arange(self.n_steps + 1, dtype=np.int64)
        return np.maximum(t * (t + 1) // 2, 1)


def lattice_targets(targets: NDArray[np.generic], loss: str) -> IntArray:
    """Targets in lattice units: labels 0 and 1 become 0 and ONE, numbers are on the lattice already."""
    integers: IntArray = np.asarray(targets).astype(np.int64)
    return integers * ONE if loss == "logistic" else integers


class Path:
    """A run in progress: one way to keep the scores.

    Parameters
    ----------
    task : Task
        The public side.
    n_features : int
        Number of columns.
    """

    def __init__(self, task: Task, n_features: int) -> None:
        check_integer(1, MOST_FEATURES, n_features=n_features)
        self.task, self.n_features, self.t = task, n_features, 0
        self.sampler = tuple(new_sampler(n_features))
        self.bounds = np.empty(n_features)
        # The caller's number of each column; sparse paths order columns anew.
        self.names = np.arange(n_features, dtype=np.int32)
        self.chosen = np.zeros(task.n_steps, dtype=np.int64)

    def scores(self) -> FloatArray:
        """``ONE**2 * g`` before the next step."""
        raise NotImplementedError

    def step(self, vertex: int) -> None:
        """Take the next step towards a given vertex, k for +e_k or ``~k`` for -e_k."""
        raise NotImplementedError

    def _advance(self, words: NDArray[np.uint64]) -> int:
        """Draw and step until the end or the last word; returns the iteration reached."""
        raise NotImplementedError

    def run(self, stream: Stream) -> tuple[FloatArray, IntArray]:
        """Take all steps.

        Returns
        -------
        coefficients : ndarray of float64, shape (d,)
            In units of scaled features.
        vertices : ndarray of int64, shape (n_steps,)
            k for +e_k, ``~k`` for -e_k.
        """
        while self.t < self.task.n_steps:
            self.t = self._advance(stream.words(_WORDS))
        downwards = self.chosen < 0
        columns = self.names[np.where(downwards, ~self.chosen, self.chosen)].astype(np.int64)
        steps = np.arange(1, self.t + 1)
        weights = np.zeros(self.n_features, dtype=np.int64)
        np.add.at(weights, columns, np.where(downwards, -steps, steps))
        # Exact integers up to here; two roundings make them coefficients.
        coefficients: FloatArray = weights * (self.task.radius / int(self.task.sums[-1]))
        return coefficients, np.where(downwards, ~columns, columns)
