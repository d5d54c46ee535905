r"""Losses of one record in its linear predictor.

A loss is ``phi(z, y)`` for one record with margin ``z = x @ w``; sums over records, and whether they are divided by
n, belong to the caller. Features are scaled to [-1, 1] and numeric targets to [-1, 1], so that over the L1 ball of
radius r every margin lies in [-r, r]. Losses hold no data and draw no noise.

What privacy needs of a loss is ``slope(radius)``, a bound on ``|d phi / d z|`` over all admissible records and all
weights in the ball: one record moves every coordinate of the gradient by at most that much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_softmax, softmax

from taciturn.core.arrays import FloatArray
from taciturn.core.validation import check_positive

__all__ = ["HuberLoss", "LogisticLoss", "Loss", "SoftmaxLoss", "SquaredLoss"]


class Loss(Protocol):
    """One record's loss in the linear predictor."""

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``phi(z, y)``, one number per record."""

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``d phi / d z``, elementwise."""

    def slope(self, radius: float) -> float:
        """``sup |d phi / d z|`` over admissible records and the L1 ball of this radius."""


@dataclass(frozen=True, slots=True)
class SquaredLoss:
    """``(z - y)**2 / 2``. Its slope grows with the ball: ``radius + 1``, never 1."""

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Half the squared residual."""
        return 0.5 * (margins - targets) ** 2

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The residual."""
        return margins - targets

    def slope(self, radius: float) -> float:
        """``|z| + |y| <= radius + 1``."""
        return radius + 1.0


@dataclass(frozen=True, slots=True)
class HuberLoss:
    """``r**2 / 2`` for residuals up to ``threshold`` and linear beyond; the derivative is the clipped residual.

    Parameters
    ----------
    threshold : float
        Where the loss turns linear, in mapped units (the target's range is [-1, 1]).
    """

    threshold: float

    def __post_init__(self) -> None:
        check_positive(threshold=self.threshold)

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Quadratic, then linear."""
        size = np.abs(margins - targets)
        inner = np.minimum(size, self.threshold)
        return inner * (size - 0.5 * inner)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The clipped residual."""
        return np.clip(margins - targets, -self.threshold, self.threshold)

    def slope(self, radius: float) -> float:
        """The threshold, or the largest residual where that is smaller."""
        return min(self.threshold, SquaredLoss().slope(radius))


@dataclass(frozen=True, slots=True)
class LogisticLoss:
    """``log(1 + exp(z)) - y z`` for y in {0, 1}."""

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood."""
        return np.logaddexp(0.0, margins) - targets * margins

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Predicted probability minus label."""
        return expit(margins) - targets

    def slope(self, radius: float) -> float:
        """One, whatever the ball."""
        return 1.0


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """``log sum_k exp(z_k) - z_y`` for margins with one column per class and targets one-hot."""

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood, one number per record."""
        return -np.sum(targets * log_softmax(margins, axis=1), axis=1)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Predicted probabilities minus one-hot labels; every entry lies in [-1, 1]."""
        return softmax(margins, axis=1) - targets

    def slope(self, radius: float) -> float:
        """One, entrywise: the norm that is dual to one L1 ball over all classes together."""
        return 1.0
