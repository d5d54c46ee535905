"""What a score releases: one number, or one histogram and all measures that are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.certificate import Certificate
from taciturn.core.arrays import FloatArray
from taciturn.data.prediction_cells import ClassCells, ErrorCells, MarginCells
from taciturn.fitting.class_measures import (
    CalibrationBin,
    ClassRecall,
    calibrate_deciles,
    class_recalls,
    measure_classes,
    measure_margins,
    roc_curve,
)
from taciturn.fitting.error_measures import measure_errors
from taciturn.fitting.score_ratios import CONFIDENCE_LEVEL, Measure

__all__ = ["ModelScore", "PrivateScore"]


@dataclass(frozen=True, slots=True)
class PrivateScore:
    """A released score.

    Parameters
    ----------
    value : float
        The noisy metric, clipped to the range that the metric has.
    std : float
        Standard deviation of the noise in the units of the metric, before clipping: a public fact. For balanced
        accuracy, which divides by noisy sizes of classes, an upper estimate from these.
    metric : str
        Which one.
    certificate : Certificate
        The privacy statement of this release.
    """

    value: float
    std: float
    metric: str
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class ModelScore:
    """Measures of a model on private records, each with an interval and beside its baseline.

    All of them are computed from ``counts``, which was released once, and from public facts: whoever has these can
    compute them again.

    Parameters
    ----------
    cells : MarginCells or ClassCells or ErrorCells
        The public cells of prediction and truth.
    counts : tuple of float
        The released numbers of records in them.
    std : float
        Standard deviation of the noise on each: a public fact.
    labels : tuple
        The classes; empty for numbers.
    certificate : Certificate
        The privacy statement of the release.
    """

    cells: MarginCells | ClassCells | ErrorCells
    counts: tuple[float, ...]
    std: float
    labels: tuple[Any, ...]
    certificate: Certificate

    metric = "all"
    confidence_level = CONFIDENCE_LEVEL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelScore) and self._stored == other._stored

    def __hash__(self) -> int:
        return hash((self.cells, self.counts))

    @property
    def _stored(self) -> tuple[Any, ...]:
        return self.cells, self.counts, self.std, self.labels, self.certificate

    @property
    def _released(self) -> FloatArray:
        return np.array(self.counts)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """AUC, log loss, accuracy and calibration of two classes; R2 and errors of numbers; fewer of more classes."""
        if isinstance(self.cells, MarginCells):
            return measure_margins(self.cells, self._released, self.std)
        if isinstance(self.cells, ClassCells):
            return measure_classes(self.cells, self._released, self.std)
        return measure_errors(self.cells, self._released, self.std)

    @cached_property
    def calibration(self) -> tuple[CalibrationBin, ...]:
        """How often the second class occurs, by tenths of its predicted probability; empty but for two classes."""
        return calibrate_deciles(self.cells, self._released, self.std) if isinstance(self.cells, MarginCells) else ()

    @cached_property
    def roc(self) -> tuple[tuple[float, float], ...]:
        """False and true positive rates; empty but for two classes."""
        return roc_curve(self.cells, self._released) if isinstance(self.cells, MarginCells) else ()

    @cached_property
    def recalls(self) -> tuple[ClassRecall, ...]:
        """The share of right predictions by class; empty but for more than two classes."""
        return class_recalls(self.cells, self._released, self.std) if isinstance(self.cells, ClassCells) else ()

    def __getitem__(self, name: str) -> Measure:
        """The measure of this name."""
        return {found.name: found for found in self.measures}[name]

    def __str__(self) -> str:
        head = f"{'measure':<26}{'value':>10}{'lower':>10}{'upper':>10}{'baseline':>10}"
        rows = (
            f"{each.name:<26}{each.value:>10.4g}{each.lower:>10.4g}{each.upper:>10.4g}{each.baseline:>10.4g}"
            for each in self.measures
        )
        return "\n".join((head, *rows, f"intervals at {100 * self.confidence_level:g}%; {self._noise}"))

    @property
    def _noise(self) -> str:
        if self.std == 0.0:
            return "without noise, and not private"
        return f"epsilon {self.certificate.epsilon:g}, delta {self.certificate.delta:g}, {self.certificate.relation}"
