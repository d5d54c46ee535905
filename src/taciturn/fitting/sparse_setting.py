"""What all stages of the default model share: public facts, and records clipped as they want them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import BoolArray, FloatArray, IntArray
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.fitting.clipped_records import ClippedRecords, squared_row_norms
from taciturn.losses import HuberLoss, Loss

__all__ = ["Setting", "Target", "lattice_square"]

Target = FloatArray | IntArray


@dataclass(frozen=True, slots=True)
class Setting:
    """Public facts of a fit.

    Parameters
    ----------
    loss : Loss or None
        Logistic or softmax; None for a regression, whose Huber loss gets its threshold from a clip.
    n_rows : int
        The public number of records.
    n_outputs : int
        Rows of the coefficient matrix.
    intercept : bool
        Whether to centre, and to fit a constant.
    row_bound : float or None
        Public L2 norm of a row over all features, in scaled units; None for a private median.
    residual_clip : float or None
        Public clip in mapped units; None for the private median size of the target.
    """

    loss: Loss | None
    n_rows: int
    n_outputs: int
    intercept: bool
    row_bound: float | None
    residual_clip: float | None

    @property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return self.loss is None

    def loss_at(self, slope: float) -> Loss:
        """The loss of a record whose derivative is clipped to ``slope``."""
        return HuberLoss(slope) if self.loss is None else self.loss

    def present(self, target: Target) -> BoolArray:
        """Which records are not null for their label; others that are null were left out where the table was read."""
        return np.ones(target.size, dtype=bool) if self.regression else target >= 0

    def records(
        self,
        design: Design,
        target: Target,
        centre: FloatArray | None,
        bound: float,
        slope: float,
        weight: int,
        *,
        constant: bool = True,
        norms: FloatArray | None = None,
    ) -> ClippedRecords:
        """Records with rows clipped to a bound; the constant column is as large as others of the same row."""
        row_squared = lattice_square(bound)
        entry = min(round(math.sqrt(row_squared / (design.n_features + 1))), ONE) if self.intercept and constant else 0
        norms = squared_row_norms(design, centre) if norms is None else norms
        loss = self.loss_at(slope)
        return ClippedRecords(design, target, loss, self.n_outputs, norms, row_squared, entry, weight, slope, centre)


def lattice_square(bound: float) -> int:
    """The square of a bound in lattice units."""
    return max(1, math.floor((bound * ONE) ** 2))
