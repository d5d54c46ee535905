"""Ways to break persons: each forgets in one place that the rows of a person are one record."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from taciturn.data.persons import PersonRows
from taciturn.engines import ArraySource, Block
from taciturn.methods import clipped_records
from taciturn.methods.inference import whitened
from taciturn.methods.selection import run as selection_run

__all__ = ["BROKEN", "OF_INFERENCE", "rows_counted_one_by_one"]


@contextmanager
def rows_counted_one_by_one():
    """Every row is a person of its own: m is forgotten in every sum."""
    alone = classmethod(lambda cls, slots: cls(np.ones(slots.size, dtype=np.int64)))
    with patch.object(PersonRows, "of_slots", alone):
        yield


@contextmanager
def halves_of_rows():
    """Rows of one person are in both halves."""
    divide = ArraySource.divide

    def by_row(self, first):
        records = self.records
        alternating = np.arange(records.slots.size) % 2 == 0
        of_first, of_others = divide(self, first)
        of_first.records, of_others.records = records.keep(alternating), records.keep(~alternating)
        return of_first, of_others

    with patch.object(ArraySource, "divide", by_row):
        yield


@contextmanager
def blocks_of_rows():
    """Rows of one person are in several blocks."""

    def by_row(relation, records, n_blocks, stream, keys=None):
        return [np.arange(start, records.slots.size, n_blocks) for start in range(n_blocks)]

    with patch.object(selection_run, "assign_blocks", by_row):
        yield


@contextmanager
def means_not_cut():
    """Sums of a person's terms are not divided by the number of its rows."""
    with patch.object(PersonRows, "mean_terms", lambda self, terms: self.totals(terms)):
        yield


@contextmanager
def gram_of_whole_rows():
    """Rows of a person enter a Gram matrix undivided."""

    def undivided(self, row_squared):
        scales = self._factors * math.sqrt(row_squared / self.clipping.row_squared)
        return clipped_records.sum_outer_products(self._dense_rows, scales, self.clipping.width, row_squared)

    with patch.object(clipped_records.ClippedRecords, "gram_matrix", undivided):
        yield


@contextmanager
def whitened_rows_with_weights_of_their_own():
    """Rows of a person are weighted one by one and added up, in place of their mean."""
    pieces = whitened.WhitenedTask.pieces

    def by_row(self, block):
        return (replace(rows, persons=None) for rows in pieces(self, block))

    with patch.object(whitened.WhitenedTask, "pieces", by_row):
        yield


@contextmanager
def full_weight_in_ranks():
    """Every row of a person has the whole weight in a quantile."""

    def whole(self, count):
        n_rows = int(self.counts.sum())
        return count(slice(0, n_rows), np.full(n_rows, 720_720))

    with patch.object(PersonRows, "weighed", whole):
        yield


@contextmanager
def rows_counted_without_a_limit():
    """Persons that count by their rows count by all of them."""

    def unlimited(self, most):
        weight = self.persons.of_rows / most
        weight = weight if self.weight is None else weight * self.weight
        return Block(self._whole, self.target, self.persons, self.columns, self._rows, weight, self.offset)

    with patch.object(Block, "counting_rows", unlimited):
        yield


BROKEN = {
    "m is forgotten": (
        rows_counted_one_by_one,
        (
            "SparseRegressor",
            "SparseClassifier",
            "HardThresholdRegressor",
            "HardThresholdClassifier",
            "CorrelationSelector",
            "PrivateScaler",
            "private_score",
        ),
    ),
    "halves cut persons": (halves_of_rows, ("SparseRegressor", "SparseClassifier")),
    "blocks cut persons": (blocks_of_rows, ("BlockVoteSelector",)),
    "sums are not divided": (means_not_cut, ("SparseRegressor", "HardThresholdRegressor", "private_score")),
    "Gram matrix of whole rows": (gram_of_whole_rows, ("SparseRegressor", "SparseClassifier")),
    "whitened rows weighted one by one": (
        whitened_rows_with_weights_of_their_own,
        ("SparseRegressor", "SparseClassifier"),
    ),
    "rows counted without a limit": (rows_counted_without_a_limit, ("SparseRegressor", "SparseClassifier")),
    "full weight in ranks": (full_weight_in_ranks, ("SparseRegressor", "HardThresholdClassifier", "PrivateScaler")),
}
"""What is broken, and the classes whose replays have to notice."""

OF_INFERENCE = ("halves cut persons", "whitened rows weighted one by one")
"""What only fits with standard errors do."""
