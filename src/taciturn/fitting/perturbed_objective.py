r"""The release of a perturbed objective's minimiser.

.. math:: \theta^* = \arg\min_\theta \sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2} \|\theta\|^2
          + (b + o) \cdot \theta, \qquad b \sim N(0, \sigma^2 I),

with a public o. What leaves is :math:`h \cdot (\mathrm{rint}(\theta / h) + \text{noise})` for a computed point
:math:`\theta` near :math:`\theta^*`, on a lattice of public step h, a power of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import ObjectivePerturbationEvent
from taciturn.fitting.minimiser import data_gradient, minimise
from taciturn.losses import ScalarLoss
from taciturn.mechanisms import RoundedGaussian, rounded_gaussian
from taciturn.mechanisms.transcript import Call, answer
from taciturn.planning.objective_perturbation import objective_event
from taciturn.planning.precision import MAGNITUDE, StoppingCriterion

__all__ = ["PerturbedObjective"]


# The lattice of the linear term is so fine that its rounding is below that of a product of doubles.
_NOISE_BITS = 50


@dataclass(frozen=True, slots=True)
class PerturbedObjective:
    r"""Public parameters of one such release.

    **Privacy.** :math:`\theta^*` costs what :mod:`taciturn.accounting.objective` says. Given :math:`\theta^*`, the
    rounded :math:`\theta / h` moves by at most ``output.l2_sensitivity``
    (``data.sensitivity.approximate_minimiser``), for which ``output`` adds noise.

    Parameters
    ----------
    loss : ScalarLoss
        :math:`\phi`.
    regularisation : float
        :math:`\Lambda`.
    noise_scale : float
        :math:`\sigma`.
    tilt : Sensitivity
        Of the gradient of the losses.
    criterion : StoppingCriterion
        Of the solver.
    step : float
        h.
    output : RoundedGaussian
        The noise on the lattice.
    """

    loss: ScalarLoss
    regularisation: float
    noise_scale: float
    tilt: Sensitivity
    criterion: StoppingCriterion
    step: float
    output: RoundedGaussian

    def release(self, rows: Any, targets: FloatArray, offset: FloatArray, stream: Stream) -> FloatArray:
        """The coefficients.

        Parameters
        ----------
        rows : ndarray or sparse matrix
            One row per record.
        targets : ndarray
            As the loss needs them.
        offset : ndarray
            o.
        stream : Stream
            Two children are used up.
        """
        noise, output = stream.spawn("objective"), stream.spawn("output")
        drawn: list[FloatArray] = []

        def draw() -> FloatArray:
            drawn.append(self._linear_term(noise, offset.size) + offset)
            return minimise(rows, targets, self.loss, self.regularisation, drawn[0], self.criterion)

        def moved(outcome: FloatArray) -> FloatArray:
            # Given the minimiser, one record moves b. For a computed point b is known; for a forced one it follows
            # from the data. Where no gradient vanishes at the point, the two are far apart.
            if drawn:
                return -(self.regularisation * outcome + drawn[0])
            return data_gradient(rows, targets, self.loss, outcome)

        # The computed point differs from the minimiser, and the sums are rounded, each within the tolerance.
        limit = self.tilt.value + 2.0 * self.criterion.tolerance
        point = answer(lambda: Call(self, (("l2", limit),), moved), draw)
        if not drawn:
            # A transcript forces the minimiser, not the point that is computed for it.
            implied = -data_gradient(rows, targets, self.loss, point, self.regularisation * point)
            point = minimise(rows, targets, self.loss, self.regularisation, implied, self.criterion)
        lattice = np.clip(np.rint(point / self.step), -MAGNITUDE, MAGNITUDE).astype(np.int64)
        return np.asarray(self.output.release(lattice, output) * self.step, dtype=np.float64)

    def event_of(self, n_values: int) -> ObjectivePerturbationEvent:
        r"""The cost of :math:`\theta^*` with ``n_values`` coordinates; labels of the logistic loss are 0 or 1."""
        relation = self.tilt.relation
        row_bound = self.tilt.value / (self.loss.lipschitz(math.inf) * (2.0 if relation == "replace-one" else 1.0))
        shift = self.tilt.value / self.noise_scale
        return objective_event(self.loss, self.regularisation, row_bound, shift, relation, n_values)

    def _linear_term(self, stream: Stream, size: int) -> FloatArray:
        unit = math.ldexp(self.noise_scale, -_NOISE_BITS)
        return np.asarray(unit * rounded_gaussian.rounded_normals(stream, size, _NOISE_BITS), dtype=np.float64)
