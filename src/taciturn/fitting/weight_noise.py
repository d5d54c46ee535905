r"""The law of the errors that the noise of a descent leaves in its weights.

Noise enters at every step, and what happens to it afterwards is known: the lengths of the steps, momentum, metric and
average are public or released. Near the optimum a descent is linear, so that the errors are normal, and their variance
is a sum over steps. Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import FloatArray

__all__ = ["LinearDescent", "WeightNoise", "propagate"]


@dataclass(frozen=True, slots=True, eq=False)
class WeightNoise:
    """Variances of independent errors along orthonormal directions, the columns of ``directions``.

    Directions of None are the coordinates, and a single variance is that of all.
    """

    variances: FloatArray
    directions: FloatArray | None

    def deviations(self, n_columns: int) -> FloatArray:
        """Standard deviations of the weights of the first columns."""
        if self.directions is None:
            return np.sqrt(np.broadcast_to(self.variances, n_columns))
        deviations: FloatArray = np.sqrt(np.square(self.directions[:n_columns]) @ self.variances)
        return deviations


@dataclass(frozen=True, slots=True, eq=False)
class LinearDescent:
    """A descent as if it were linear: per direction, what gradients are multiplied by and how they change per weight.

    Directions are as in :class:`WeightNoise`.
    """

    scales: FloatArray
    curvatures: FloatArray
    directions: FloatArray | None = None

    def noise(
        self, steps: Sequence[float], momentum: float, deviation: float, before: WeightNoise | None
    ) -> WeightNoise:
        """The law after so many steps with noise of a deviation on each coordinate, given that of their start."""
        kept, added = propagate(steps, momentum, self.scales, self.curvatures)
        variances = deviation**2 * added
        if before is not None:
            variances = variances + np.square(kept) * before.variances
        return WeightNoise(variances, self.directions)


def propagate(
    steps: Sequence[float], momentum: float, scales: FloatArray, curvatures: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the mean of the second half of a linear descent keeps of an error of its start, and the variance of noise.

    Both are per direction, and the noise of a gradient has a variance of one.
    """
    n_steps = len(steps)
    # Row t has the error by the noise of step t, the last row that of the start.
    errors, velocities = np.zeros((2, n_steps + 1, scales.size))
    errors[-1] = 1.0
    means, n_averaged = np.zeros_like(errors), 0
    for t, step in enumerate(steps):
        gradients = curvatures * errors
        gradients[t] += 1.0
        velocities = momentum * velocities - step * scales * gradients
        errors = errors + velocities
        if 2 * t >= n_steps - 1:
            n_averaged += 1
            means += (errors - means) / n_averaged
    return means[-1], np.square(means[:-1]).sum(axis=0)
