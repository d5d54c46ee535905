r"""Frank-Wolfe over an L1 ball with a selection per step.

From ``w = 0``, step t = 0, 1, .. chooses a vertex ``s = +- radius * e_j`` of the ball, the one with the largest
``-<s, g> + noise`` for the gradient ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu_t) w + mu_t s``,
``mu_t = 2 / (t + 2)``. The number of steps is fixed in advance.

Everything is on the lattice: X by construction, w (which is released anyway) rounded so that margins are exact
integers, residuals rounded to integers and clipped. A record's residual then depends on that record and the released
w alone, and the gradient is an exact integer sum: removing a record removes its own term and changes nothing else.
"""

from __future__ import annotations

from typing import Protocol

import scipy.sparse as sp

from taciturn.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import MOST_PRIVATE_ROWS
from taciturn.data.sensitivity import Sensitivity, lattice_gradient_scores
from taciturn.fitting.frank_wolfe_task import (
    LARGEST_RADIUS,
    MOST_FEATURES,
    MOST_STEPS,
    SMALLEST_RADIUS,
    FrankWolfeProblem,
)
from taciturn.fitting.paths import choose_path, open_path
from taciturn.fitting.plain import PlainRun
from taciturn.losses import Loss

__all__ = ["LARGEST_RADIUS", "SMALLEST_RADIUS", "Run", "open_run"]


# Room for 64-bit sums of scores: n (radius + 3) may not pass this.
_ROOM = 2**30


class Run(Protocol):
    """Frank-Wolfe in progress.

    Coordinates are numbered output by output, column by column.

    Attributes
    ----------
    grain : float
        One unit of the scores, in units of the gradient.
    influence : float
        How far one record can move a score under zero-out, rounding included, in units of the gradient.
    sensitivity : Sensitivity
        The same under the neighbouring relation of the run.
    derivative_error : float
        How far a record's derivative, as computed, can be from that of the loss.
    rounding : float
        Bound on the relative rounding error of a product of coefficients and scores, in units of one record's part.
    candidates : ndarray of bool
        The coordinates that a step can still choose.
    """

    grain: float
    influence: float
    sensitivity: Sensitivity
    derivative_error: float
    rounding: float
    candidates: BoolArray

    def scores(self) -> AnyArray:
        """The gradient before the next step, in units of ``grain``."""

    def coefficients(self) -> FloatArray:
        """The iterate in units of scaled features."""

    def margin_norm(self) -> float:
        """``||X w||_2``."""

    def mean_loss(self) -> float:
        """The mean loss of the records that are not null; not private."""

    def advance_to(self, t: int, stream: Stream) -> None:
        """Draw vertices and step until iteration t."""

    def drop(self, coordinates: IntArray) -> None:
        """Set coefficients to zero, between two steps."""

    def exclude(self, coordinates: IntArray) -> None:
        """Drop coordinates for good: they are no candidates any more."""


def open_run(
    design: Design,
    target: AnyArray,
    loss: Loss,
    radius: float,
    n_steps: int,
    n_outputs: int,
    noise_scale: float,
    n_rows: int | None,
    *,
    relation: str = "zero-out",
    plainly: bool = False,
    by_margins: bool = False,
) -> Run:
    """A run before its first step, by the fastest way to the same selections that public facts allow.

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
    n_rows : int or None
        The number of records where it is public; None where it is private, in which case nothing depends on it but
        the time a step takes.
    relation : str, default="zero-out"
        The neighbouring relation, for the declared sensitivity of the scores; no step depends on it.
    plainly : bool, default=False
        Whether to weigh all vertices in every step: the fast samplers are up to 2**-110 a step away from the law.
    by_margins : bool, default=False
        Whether margins must be exact: some ways keep a rounded Gram matrix instead.
    """
    bound = MOST_PRIVATE_ROWS if n_rows is None else n_rows
    derivative = loss.lattice_derivative(radius)
    if plainly or derivative is None or not _fits(design, radius, n_steps, noise_scale, bound):
        return PlainRun(design, target, loss, radius, n_outputs, noise_scale, bound, relation)
    influence = lattice_gradient_scores(derivative, radius, bound, n_steps, "zero-out").value
    problem = FrankWolfeProblem(loss, radius, n_steps, noise_scale * influence, bound, relation)
    X = design.compact()
    name = choose_path(problem, X.shape[1], sparse=sp.issparse(X), by_margins=by_margins)
    return open_path(X, target, problem, valid=loss.present(target), path=name)


def _fits(design: Design, radius: float, n_steps: int, noise_scale: float, n_rows: int) -> bool:
    """Whether the fast paths have room for a problem; by public facts, whatever the records hold."""
    if not SMALLEST_RADIUS <= radius <= LARGEST_RADIUS or n_steps > MOST_STEPS:
        return False
    resolved = noise_scale == 0.0 or n_rows / noise_scale < 2.0**49
    return resolved and design.shape[1] <= MOST_FEATURES and n_rows * (radius + 3.0) <= _ROOM
