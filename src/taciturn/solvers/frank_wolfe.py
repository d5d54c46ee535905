r"""Frank-Wolfe over an L1 ball with a selection per step.

From ``w = 0``, step t = 0, 1, .. chooses a vertex ``s = +- radius * e_j`` of the ball, the one with the largest
``-<s, g> + noise`` for the gradient ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu_t) w + mu_t s``,
``mu_t = 2 / (t + 2)``. The number of steps is fixed in advance.

Everything is on the lattice: X by construction, w (which is released anyway) rounded so that margins are exact
integers, residuals rounded to integers and clipped. A record's residual then depends on that record and the released
w alone, and the gradient is an exact integer sum: removing a record removes its own term and changes nothing else.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import FRACTION_BITS, ONE, round_weights
from taciturn.data.sensitivity import lattice_gradient_scores
from taciturn.kernels.softmax import softmax_residuals
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SoftmaxLoss, SquaredLoss
from taciturn.mechanisms.base import first_of, noisy_keys
from taciturn.solvers.frank_wolfe_task import LARGEST_RADIUS, MOST_FEATURES, MOST_STEPS, SMALLEST_RADIUS, Task
from taciturn.solvers.paths import open_path

__all__ = ["MOST_PRIVATE_ROWS", "solve", "solve_plainly"]

FloatArray = NDArray[np.float64]


# Room for 64-bit sums of scores: n (radius + 3) may not pass this.
_ROOM = 2**30
# A private number of records is taken to be at most this.
MOST_PRIVATE_ROWS = 1 << 26


def solve(
    design: Design,
    target: NDArray[np.generic],
    loss: Loss,
    radius: float,
    n_steps: int,
    n_outputs: int,
    noise_scale: float,
    n_rows: int | None,
    stream: Stream,
) -> FloatArray:
    """The fastest way to the same selections, chosen by public facts.

    Parameters are those of :func:`solve_plainly`, and ``n_rows``, the number of records where it is public: None where
    it is private, in which case nothing depends on it but the time a step takes.
    """
    bound = MOST_PRIVATE_ROWS if n_rows is None else n_rows
    if not _fits(design, loss, radius, n_steps, noise_scale, bound):
        return solve_plainly(design, target, loss, radius, n_steps, n_outputs, noise_scale, stream)
    kind, clip = _kind_of(loss, radius)
    influence = lattice_gradient_scores(kind, clip, radius, bound, n_steps, "zero-out").value
    task = Task(kind, clip, radius, n_steps, noise_scale * influence, bound)
    valid = target >= 0 if kind == "logistic" else None
    path = open_path(design.compact(), target, task, valid=valid)
    coefficients, _ = path.run(stream)
    return coefficients[None, :]


def _fits(design: Design, loss: Loss, radius: float, n_steps: int, noise_scale: float, n_rows: int) -> bool:
    """Whether the fast paths have room for a problem; by public facts, whatever the records hold."""
    if isinstance(loss, SoftmaxLoss) or not SMALLEST_RADIUS <= radius <= LARGEST_RADIUS or n_steps > MOST_STEPS:
        return False
    if isinstance(loss, HuberLoss) and loss.threshold < 1.0 / ONE:
        return False
    resolved = noise_scale == 0.0 or n_rows / noise_scale < 2.0**49
    return resolved and design.shape[1] <= MOST_FEATURES and n_rows * (radius + 3.0) <= _ROOM


def _kind_of(loss: Loss, radius: float) -> tuple[str, float]:
    """Name and threshold of a loss; Huber's loss is the square where no residual reaches the threshold."""
    if isinstance(loss, LogisticLoss):
        return "logistic", 1.0
    if isinstance(loss, HuberLoss) and loss.threshold < SquaredLoss().slope(radius):
        return "huber", loss.threshold
    return "squared", 1.0


def solve_plainly(
    design: Design,
    target: NDArray[np.generic],
    loss: Loss,
    radius: float,
    n_steps: int,
    n_outputs: int,
    noise_scale: float,
    stream: Stream,
) -> FloatArray:
    """Full gradients and one noisy maximum over all vertices per step: any loss, any layout.

    Parameters
    ----------
    design : Design
        The features, intercept column included.
    target : ndarray of shape (n_samples,)
        Lattice values for a regression, class codes (-1 for null records) for a classification.
    loss : Loss
        The loss of one record.
    radius : float
        Radius of the ball in units of scaled features.
    n_steps : int
        Number of steps.
    n_outputs : int
        Rows of the coefficient matrix: 1, or the number of classes.
    noise_scale : float
        Scale of the Gumbel noise in units of the largest influence of one record; 0 for none.
    stream : Stream
        Randomness of this run.

    Returns
    -------
    ndarray of shape (n_outputs, n_columns)
    """
    n_columns = design.shape[1]
    weights = np.zeros((n_outputs, n_columns))
    # Coefficients on a lattice that leaves room for exact margins: ONE * ||w||_1 * 2**bits <= 2**53.
    bits = 52 - FRACTION_BITS - max(0, math.ceil(math.log2(radius)))
    # Weights of a record, at most ONE in absolute value, stand for residuals up to the slope.
    residuals = _Residuals(loss, target, loss.slope(radius), 2.0 ** -(bits + FRACTION_BITS))
    for step in range(n_steps):
        lattice = np.rint(np.ldexp(weights, bits))
        sums = design.rmatvec(residuals.at(design.matvec(lattice.T)), ONE)
        gradient = sums.T.ravel()
        scores = np.concatenate((-gradient, gradient))
        noise = stream.gumbels(scores.size) if noise_scale > 0.0 else np.zeros(scores.size)
        vertex = first_of(*noisy_keys(scores, noise, noise_scale * ONE * ONE))
        share = 2.0 / (step + 2.0)
        weights *= 1.0 - share
        sign = 1.0 if vertex < gradient.size else -1.0
        weights.flat[vertex % gradient.size] += share * sign * radius
    return weights


class _Residuals:
    """Derivatives of the loss as integer weights in [-ONE, ONE]."""

    def __init__(self, loss: Loss, target: NDArray[np.generic], slope: float, unit: float) -> None:
        self._loss, self._slope, self._unit = loss, slope, unit
        self._codes = target.astype(np.int64)
        self._null = self._codes < 0 if isinstance(loss, LogisticLoss | SoftmaxLoss) else None
        self._numeric = target.astype(np.float64)
        if self._null is None:
            self._numeric /= ONE

    def at(self, margins: NDArray[np.int64]) -> FloatArray:
        if isinstance(self._loss, SoftmaxLoss):
            out = np.empty(margins.shape)
            softmax_residuals(margins, self._unit, self._codes, ONE, out)
            return out
        psi = self._loss.derivative(margins[:, 0] * self._unit, self._numeric)
        weights = round_weights(psi, ONE / self._slope, ONE)
        if self._null is not None:
            weights[self._null] = 0.0
        return weights[:, None]
