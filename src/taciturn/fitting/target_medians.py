"""A target centred and a problem scaled by private medians, before Frank-Wolfe begins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.fitting.sums import TargetMagnitudes, private_median
from taciturn.losses import HuberLoss
from taciturn.planning.frank_wolfe import FrankWolfePlan
from taciturn.sources import ArraySource, Block, Source

__all__ = ["MAGNITUDES", "middle_of", "scale_target"]

_Plan = TypeVar("_Plan", bound=FrankWolfePlan)

_MIDDLES = np.linspace(-1.0, 1.0, 513)
MAGNITUDES = np.geomspace(2.0**-10, 1.0, 50)
"""Grid of the median distance of a mapped target from its middle."""


def _no_columns() -> IndexArray:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class _Targets:
    """The target in mapped units."""

    columns: IndexArray = field(default_factory=_no_columns)

    def values(self, block: Block) -> FloatArray:
        """The targets of a block."""
        return np.asarray(block.target, dtype=np.float64) / ONE


def middle_of(source: Source, relation: str, selection_range: float, stream: Stream) -> int:
    """A private median of the target in lattice units."""
    edge = private_median(source, _Targets(), _MIDDLES, relation, selection_range, stream)
    # The grid names upper ends of bins.
    return round((edge - 0.5 * float(_MIDDLES[1] - _MIDDLES[0])) * ONE)


def scale_target(plan: _Plan, source: ArraySource, stream: Stream) -> tuple[_Plan, ArraySource, float]:
    """The plan and the source in units of the medians that the plan asks for, and the middle of the target.

    The middle is taken from the targets, which stay within the bounds of mapped ones: what lies farther from it has a
    residual beyond the clip on either side. Where a plan asks for no medians, nothing changes.
    """
    if plan.medians is None:
        return plan, source, 0.0
    middle = 0
    if plan.medians.centred:
        middle = middle_of(source, plan.relation, plan.median_range, stream.spawn("middle of the target"))
    distance = private_median(
        source, TargetMagnitudes(middle), MAGNITUDES, plan.relation, plan.median_range, stream.spawn("residual clip")
    )
    loss = plan.loss
    if not isinstance(loss, HuberLoss):
        raise TypeError("only residuals are clipped by medians of the target")
    scaled = replace(
        plan,
        loss=HuberLoss(loss.threshold * distance),
        radius=plan.radius * (distance if plan.medians.scales_radius else 1.0),
    )
    records = replace(source.records, y=np.clip(source.records.y - middle, -ONE, ONE))
    return scaled, ArraySource(records, source.x_bound, source.n_records), middle / ONE
