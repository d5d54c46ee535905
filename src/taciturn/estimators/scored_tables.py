"""Tables in partitions on which a fitted model is scored: workers get its coefficients, and count records in cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, ParameterError
from taciturn.data.persons import PersonKeys
from taciturn.data.target import LabelMap, NumberMap, numeric_target
from taciturn.estimators.score_histogram import HistogramMetric, NumberHistogram
from taciturn.sources import BlockBuilder, OpenTable, PartitionedSource

__all__ = ["check_scored_table", "read_scored_table"]


def check_scored_table(estimator: Any, asked: Any, table: OpenTable, invalid: str) -> HistogramMetric:
    """The metric, if it can be made of sums over partitions and the table has the features of the model."""
    if not isinstance(asked, HistogramMetric):
        raise ParameterError(
            "metric", asked.name, "'all' for a table in partitions: one histogram has every measure", "pass that"
        )
    if asked.linear is None:
        raise ParameterError(
            "estimator",
            type(estimator).__name__,
            "a linear model of taciturn for a table in partitions, whose workers get coefficients alone",
            "compute() the table, or read it into memory",
        )
    names = getattr(estimator, "feature_names_in_", None)
    same_names = names is None or table.names is None or list(names) == list(table.names)
    if table.n_features != estimator.n_features_in_ or not same_names:
        raise DataError("X: expected the features that the model was fitted to, got others; open the same columns.")
    if not table.has_target:
        raise DataError("y: a score requires y to be passed, but the target y is None.")
    if table.invalid is not None and table.invalid != invalid:
        raise ParameterError("invalid", invalid, f"{table.invalid!r}, with which the table was opened", "pass that")
    return asked


def read_scored_table(
    asked: HistogramMetric,
    table: OpenTable,
    invalid: str,
    n_records: int | None,
    persons: Callable[[], PersonKeys] | None,
) -> PartitionedSource:
    """The source of the records that are not null, with features in their own units."""
    target: NumberMap | LabelMap = LabelMap(np.asarray(asked.labels))
    if isinstance(asked, NumberHistogram):
        target = NumberMap(partial(numeric_target, y_bounds=asked.y_bounds))
    builder = BlockBuilder(math.inf, invalid, target, asked.numeric, own_units=True)
    return table.read(_Nobody(), builder, n_records, persons)


class _Nobody:
    """Learns the names of the columns in the place of the model, which stays as it is."""
