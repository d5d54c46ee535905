"""Every task that a fit asks its source for, by method: what a site that others ask for sums has to know.

Sites run no code that somebody sends. A request names a class of these lists, and numbers for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.core.errors import ParameterError
from taciturn.data.target import ClassCells, ErrorCells, MarginCells, MeanCells
from taciturn.engines.interface import ByRows
from taciturn.engines.sites.session import TaskList
from taciturn.losses import GammaLoss, HuberLoss, LogisticLoss, PoissonLoss, SoftmaxLoss, SquaredLoss
from taciturn.methods.base import WeightedLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.frank_wolfe.run import MappedTargets
from taciturn.methods.hard_threshold.run import EntryGradientSum, MappedResiduals
from taciturn.methods.inference import whitened
from taciturn.methods.scaling.run import ColumnCounts
from taciturn.methods.scores.run import CellCounts, ErrorSum, LinearOutputs, OutcomeCounts
from taciturn.methods.selection.run import CorrelationSums, TargetParts
from taciturn.methods.sums import (
    ClippedRowSum,
    CorrelationSum,
    CumulativeCounts,
    CurvatureSum,
    CurvedMoments,
    EntryCorrelationSum,
    ExcessLossSums,
    GradientSum,
    GramMatrix,
    KeptShares,
    MarginCounts,
    MarginMagnitudes,
    ResidualMagnitudes,
    ResidualMoments,
    ResidualSum,
    RowNorms,
    RowNumbers,
    SlopeMoments,
    TargetMagnitudes,
    TargetSum,
    Together,
    WeightSum,
)

_LOSSES = (SquaredLoss, HuberLoss, LogisticLoss, SoftmaxLoss, PoissonLoss, GammaLoss, WeightedLoss)

_STATISTICS = (
    KeptShares,
    MappedResiduals,
    MappedTargets,
    MarginMagnitudes,
    ResidualMagnitudes,
    RowNorms,
    RowNumbers,
    TargetMagnitudes,
    whitened.Lengths,
    whitened.MarginNorms,
    whitened.Residuals,
    whitened.Traces,
)

_MODELS = TaskList(
    (
        ByRows,
        ClippedRowSum,
        CorrelationSum,
        CumulativeCounts,
        CurvatureSum,
        CurvedMoments,
        EntryCorrelationSum,
        EntryGradientSum,
        ExcessLossSums,
        GradientSum,
        GramMatrix,
        MarginCounts,
        ResidualMoments,
        ResidualSum,
        SlopeMoments,
        TargetSum,
        Together,
        WeightSum,
        whitened.ClippedDerivatives,
        whitened.ClippedSquares,
        whitened.InformationSum,
        whitened.LongRows,
        whitened.ScoreProducts,
        whitened.ScoreSum,
    ),
    (
        *_LOSSES,
        *_STATISTICS,
        Clipping,
        whitened.Coordinates,
        whitened.LabelLoss,
        whitened.LengthWeighing,
        whitened.LogLinkModel,
        whitened.MarginLoss,
        whitened.NumberLoss,
        whitened.ScoreWeighing,
        whitened.Weighing,
    ),
)
_SCORES = TaskList(
    (CellCounts, ErrorSum, OutcomeCounts), (LinearOutputs, MarginCells, ClassCells, ErrorCells, MeanCells)
)

TASKS: dict[str, TaskList] = {
    "SparseRegressor": _MODELS,
    "SparseClassifier": _MODELS,
    "HardThresholdRegressor": _MODELS,
    "HardThresholdClassifier": _MODELS,
    "CorrelationSelector": TaskList((CorrelationSums, TargetParts), ()),
    "PrivateScaler": TaskList((ColumnCounts,), ()),
    "private_score": _SCORES,
}
"""The tasks of every method that runs on sums."""


def tasks_of(methods: Sequence[str]) -> TaskList:
    """The tasks of some methods; ParameterError for one that needs more of the records than sums, or is not known."""
    for name in methods:
        if name not in TASKS:
            raise ParameterError("methods", name, f"methods among {', '.join(TASKS)}", "list these alone")
    found = [TASKS[name] for name in methods]
    tasks = dict.fromkeys(each for one in found for each in one.tasks)
    return TaskList(tuple(tasks), tuple(dict.fromkeys(each for one in found for each in one.parts)))
