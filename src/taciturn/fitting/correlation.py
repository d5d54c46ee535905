"""Scores of features by their sums of products with the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, IntArray, NumberArray
from taciturn.core.errors import DataError
from taciturn.data.admission import PresentRecords
from taciturn.data.design import map_entries
from taciturn.data.persons import PersonRows
from taciturn.data.target import class_signs
from taciturn.sources import ArraySource, Block

__all__ = ["CorrelationSums", "declared_scores", "plain_scores", "target_columns"]

# Sums of products of two numbers below 2**450 are far from the largest double.
_MOST_BITS = 450


@dataclass(frozen=True, slots=True)
class CorrelationSums:
    """Task: the sums over records of products of all features with the columns of the target.

    Parameters
    ----------
    n_classes : int
        Number of classes, whose codes the target holds; 0 for a target of integers.
    target_unit : int
        Bound on the absolute value of the integers.
    signs : bool
        Whether features count by their signs instead of their values.
    signed_target : bool
        Whether the columns of the target are signs, for which the unit stands where rows are those of persons.
    """

    n_classes: int
    target_unit: int
    signs: bool = False
    signed_target: bool = False
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """One row of sums per feature, one column per column of the target."""
        design = block.design(None)
        weights = target_columns(block.target, self.n_classes)
        if block.row_counts is not None:
            # Each of a person's m rows has at most the m-th part of the unit, in integers.
            shares = (self.target_unit if self.signed_target else 1.0) / block.row_counts
            bounds = (self.target_unit // block.row_counts)[:, None]
            weights = np.clip(np.rint(weights * shares[:, None]), -bounds, bounds)
        return (design.signs() if self.signs else design).rmatvec(weights, self.target_unit, block.n_persons)


def target_columns(target: NumberArray, n_classes: int) -> FloatArray:
    """One column of signs per class (one for two classes), or the column of numbers for ``n_classes=0``."""
    if n_classes > 0:
        return class_signs(np.asarray(target, dtype=np.int64), n_classes)
    return np.asarray(target, dtype=np.float64)[:, None]


def plain_scores(records: PresentRecords, n_classes: int, *, signs: bool) -> FloatArray:
    """The largest absolute sum of each feature, without bounds and without privacy.

    Where doubles could not hold the sums they are smaller by a power of two, in the same order.
    """
    X = map_entries(np.sign, records.X) if signs else records.X
    weights = np.nan_to_num(target_columns(records.y, n_classes))
    if records.persons:
        weights = weights / PersonRows.of_slots(records.slots).of_rows[:, None]
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)), float(np.abs(weights).max(initial=0.0))
    of_x, of_weights = (max(0, math.frexp(value)[1] - _MOST_BITS) for value in largest)
    if of_x or of_weights:
        X = map_entries(lambda entries: np.ldexp(entries, -of_x), X)
        weights = np.ldexp(weights, -of_weights)
    scores: FloatArray = np.abs(np.asarray(X.T @ weights)).max(axis=1)
    return scores


def declared_scores(
    score_func: Callable[..., Any], source: ArraySource, weights: FloatArray, *, clip: bool, in_slots: bool
) -> FloatArray:
    """The scores of a callable with a declared sensitivity; its errors, which may quote data, are not passed on.

    ``weights`` are the columns of the mapped target; a single one is passed on as a vector. ``clip`` clips the features
    to their bound. ``in_slots`` makes null records rows of zeros: a callable may divide by the number of rows, where
    that is public.
    """
    X, bound = source.records.X, source.x_bound
    if clip:
        X = map_entries(lambda entries: np.clip(entries, -bound, bound), X)
    if in_slots:
        X, weights = source.records.in_slots(X), source.records.in_slots(weights)
    scores = None
    with suppress(Exception):
        scores = np.asarray(score_func(X, weights[:, 0] if weights.shape[1] == 1 else weights), dtype=np.float64)
    if scores is None or scores.shape != X.shape[1:] or not np.isfinite(scores).all():
        raise DataError(
            "score_func: expected one finite number per feature, and the callable failed or returned something "
            "else; try it on made-up data within the bounds."
        )
    return scores
