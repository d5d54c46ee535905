"""Scores of features by their sums of products with the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, IndexArray, IntArray, NumberArray
from taciturn.core.errors import DataError
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.admission import PresentRecords
from taciturn.data.design import map_entries
from taciturn.data.persons import PersonRows
from taciturn.data.target import class_signs
from taciturn.planning import CorrelationPlan
from taciturn.sources import ArraySource, Block, Source

__all__ = ["CorrelationSums", "TargetParts", "declared_scores", "plain_scores", "release_centres", "target_columns"]

# Sums of products of two numbers below 2**450 are far from the largest double.
_MOST_BITS = 450


@dataclass(frozen=True, slots=True)
class TargetParts:
    """Task: the sums of the parts of the target, as ``data.sensitivity.target_parts`` has them.

    Parameters
    ----------
    n_classes : int
        Number of classes, whose codes the target holds; 0 for a target of numbers.
    unit : int
        The integer that the parts of one record add up to.
    signed_target : bool
        Whether numbers are signs, for which half of the unit stands, or integers up to that half.
    """

    n_classes: int
    unit: int
    signed_target: bool

    @property
    def columns(self) -> IndexArray:
        """No features."""
        return np.zeros(0, dtype=np.intp)

    def __call__(self, block: Block) -> IntArray:
        """One number per class, or two numbers: those of the upper and of the lower end of the range."""
        target = np.asarray(block.target, dtype=np.int64)
        if self.n_classes > 0:
            if block.persons is not None:
                return block.persons.cell_shares(target, self.n_classes, self.unit)
            return self.unit * np.bincount(target[target >= 0], minlength=self.n_classes).astype(np.int64)
        half = self.unit // 2
        numbers = (target * half if self.signed_target else target)[:, None]
        parts: IntArray = block.by_record(np.hstack((half + numbers, half - numbers))).sum(axis=0)
        return parts


def release_centres(
    plan: CorrelationPlan, source: Source, n_classes: int, *, signed_target: bool, stream: Stream
) -> tuple[int, ...]:
    """Release the means of the columns of the target, on the lattice; zeros where none is needed or all is noise."""
    n_columns = n_classes if n_classes > 2 else 1
    if plan.centre is None:
        return (0,) * n_columns
    sums = source.total(TargetParts(n_classes, plan.part_unit, signed_target))
    # What follows is post-processing.
    parts = np.maximum(plan.centre.release(sums, stream.spawn("centre")), 0).astype(np.float64)
    of_columns = parts[:1] if n_classes == 0 else parts[-n_columns:]
    means = 2.0 * of_columns / parts.sum() - 1.0 if parts.any() else np.zeros(n_columns)
    return tuple(int(centre) for centre in np.rint(ONE * means))


@dataclass(frozen=True, slots=True)
class CorrelationSums:
    """Task: the sums over records of products of all features with the centred columns of the target.

    Parameters
    ----------
    n_classes : int
        Number of classes, whose codes the target holds; 0 for a target of numbers.
    centres : tuple of int
        What is taken off each column of the target, in units of the lattice, between -ONE and ONE.
    signs : bool
        Whether features count by their signs instead of their values.
    signed_target : bool
        Whether the columns of the target are signs, for which ONE stands, or integers of the lattice.
    """

    n_classes: int
    centres: tuple[int, ...]
    signs: bool = False
    signed_target: bool = False
    columns: ClassVar[None] = None

    def __call__(self, block: Block) -> IntArray:
        """One row of sums per feature, one column per column of the target."""
        design = block.design(None)
        weights = self._centred(target_columns(block.target, self.n_classes))
        if block.row_counts is not None:
            # Each of a person's m rows has at most the m-th part of the unit, in integers.
            bounds = (ONE // block.row_counts)[:, None]
            weights = np.clip(np.rint(weights / block.row_counts[:, None]), -bounds, bounds)
        return (design.signs() if self.signs else design).rmatvec(weights, ONE, block.n_persons)

    def _centred(self, columns: FloatArray) -> FloatArray:
        """The columns minus their centres, in units of the most that is left: integers in [-ONE, ONE]."""
        centres = np.array(self.centres, dtype=np.float64)
        most = ONE + float(np.abs(centres).max())
        # Integers below 2**34 and a quotient of at most ONE: the same bits everywhere.
        weights: FloatArray = np.rint(((ONE if self.signed_target else 1) * columns - centres) * ONE / most)
        return weights


def target_columns(target: NumberArray, n_classes: int) -> FloatArray:
    """One column of signs per class (one for two classes), or the column of numbers for ``n_classes=0``."""
    if n_classes > 0:
        return class_signs(np.asarray(target, dtype=np.int64), n_classes)
    return np.asarray(target, dtype=np.float64)[:, None]


def plain_scores(records: PresentRecords, n_classes: int, *, signs: bool) -> FloatArray:
    """The largest absolute sum of each feature with the centred target, without bounds and without privacy.

    Where doubles could not hold the sums they are smaller by a power of two, in the same order.
    """
    X = map_entries(np.sign, records.X) if signs else records.X
    weights = np.nan_to_num(target_columns(records.y, n_classes))
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)), float(np.abs(weights).max(initial=0.0))
    of_x, of_weights = (max(0, math.frexp(value)[1] - _MOST_BITS) for value in largest)
    if of_x or of_weights:
        X = map_entries(lambda entries: np.ldexp(entries, -of_x), X)
        weights = np.ldexp(weights, -of_weights)
    shares = 1.0 / PersonRows.of_slots(records.slots).of_rows if records.persons else np.ones(weights.shape[0])
    weights = shares[:, None] * (weights - (shares @ weights) / max(float(shares.sum()), 1.0))
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
