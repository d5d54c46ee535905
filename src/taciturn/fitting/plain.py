"""Frank-Wolfe over an L1 ball by full gradients and one noisy maximum over all vertices per step."""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray, NumberArray
from taciturn.core.lattice import FRACTION_BITS, ONE
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.sensitivity import gradient_scores
from taciturn.fitting.frank_wolfe_path import ROUNDING_PER_RECORD
from taciturn.losses import Loss
from taciturn.mechanisms.base import first_of, noisy_keys
from taciturn.mechanisms.transcript import Call, LoopSelection, answer

__all__ = ["PlainRun"]


class PlainRun:
    """A run in progress: any loss, any layout, several outputs.

    Coordinates are numbered output by output, column by column.

    ``noise_scale`` is that of the Gumbel noise in units of the largest influence of one record, ``n_rows`` a public
    bound on the number of records; the rest is as for :func:`taciturn.fitting.frank_wolfe.open_run`.
    """

    def __init__(
        self,
        design: Design,
        target: NumberArray,
        loss: Loss,
        radius: float,
        n_outputs: int,
        noise_scale: float,
        n_rows: int,
        relation: str = "zero-out",
    ) -> None:
        self.design, self.radius, self.noise_scale, self.t = design, radius, noise_scale, 0
        self.weights = np.zeros((n_outputs, design.shape[1]))
        self.candidates = np.ones(self.weights.size, dtype=bool)
        self.norms: FloatArray | None = None
        # Coefficients on a lattice that leaves room for exact margins: ONE * ||w||_1 * 2**bits <= 2**53.
        self._bits = 52 - FRACTION_BITS - max(0, math.ceil(math.log2(radius)))
        # Weights of a record, at most ONE in absolute value, stand for derivatives up to the Lipschitz constant.
        self.influence = loss.lipschitz(radius)
        self.sensitivity = gradient_scores(1.0, self.influence, relation)
        self.grain = self.influence / (ONE * ONE)
        # Half a unit of the derivatives, and the change of a derivative when rounded coefficients move its margin.
        moved = loss.smoothness * design.shape[1] * 2.0 ** -(self._bits + 1)
        rounded = 0.5 * self.influence / ONE + min(moved, 2.0 * self.influence)
        self.derivative_error = max(rounded, self.influence / ONE)
        self.rounding = ROUNDING_PER_RECORD * n_rows
        self._loss, self._target, self._unit = loss, target, 2.0 ** -(self._bits + FRACTION_BITS)

    def scores(self) -> IntArray:
        """The gradient before the next step, in units of ``grain``."""
        lattice = np.rint(np.ldexp(self.weights, self._bits))
        margins = self.design.matvec(lattice.T)
        psi = self._loss.integer_derivatives(margins, self._unit, self._target, self.radius, ONE)
        return self.design.rmatvec(psi, ONE).T.ravel()

    def coefficients(self) -> FloatArray:
        """The iterate in units of scaled features."""
        return self.weights.ravel()

    def margin_norm(self) -> float:
        """``||X w||_2``."""
        margins, rows = self._margins()
        # Margins as a share of the radius, whose squares neither overflow nor vanish.
        return self.radius * float(np.linalg.norm(margins[rows] / self.radius))

    def mean_loss(self) -> float:
        """The mean loss of the records that are not null; not private."""
        margins, rows = self._margins()
        return float(self._loss.record_values(margins[rows], self._target[rows]).mean())

    def _margins(self) -> tuple[FloatArray, IndexArray]:
        """Margins, and which records are not null."""
        lattice = np.rint(np.ldexp(self.weights, self._bits))
        margins = self.design.matvec(lattice.T).astype(np.float64) * self._unit
        return margins, np.flatnonzero(self._loss.present(self._target))

    def advance_to(self, t: int, stream: Stream) -> None:
        """Draw vertices and step until iteration t."""
        while self.t < t:
            alive = np.flatnonzero(self.candidates)
            vertex = self._vertex(alive, self.scores()[alive], stream)
            share = 2.0 / (self.t + 2.0)
            self.weights *= 1.0 - share
            sign = 1.0 if vertex < alive.size else -1.0
            self.weights.flat[alive[vertex % alive.size]] += share * sign * self.radius
            self.t += 1

    def _vertex(self, alive: IntArray, gradient: IntArray, stream: Stream) -> int:
        """The index of the chosen vertex: positive signs first, then negative ones."""
        scores = np.concatenate((-gradient, gradient))
        if self.noise_scale == 0.0:
            return first_of(*noisy_keys(scores, np.zeros(scores.size), 0.0))
        noise_scale = self.noise_scale * self.influence
        return answer(
            lambda: Call(
                LoopSelection("vertex", noise_scale, self.sensitivity, tuple(alive.tolist())),
                (("linf", self.sensitivity.value / self.grain),),
                lambda outcome: gradient,
            ),
            lambda: first_of(*noisy_keys(scores, stream.gumbels(scores.size), self.noise_scale * ONE * ONE)),
        )

    def drop(self, coordinates: IntArray) -> None:
        """Set coefficients to zero, between two steps."""
        self.weights.flat[coordinates] = 0.0

    def exclude(self, coordinates: IntArray) -> None:
        """Drop coordinates for good: they are no candidates any more."""
        self.drop(coordinates)
        self.candidates[coordinates] = False
