"""Tasks of selectors, scalers and scores: sums by hand, the same for any partitions and after a journey as bytes."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.data.target import ClassCells, ErrorCells, MarginCells, margin_edges
from taciturn.engines import ArraySource
from taciturn.methods.scaling.run import ColumnCounts
from taciturn.methods.scores.run import CellCounts, ErrorSum, LinearOutputs, OutcomeCounts, total_error
from taciturn.methods.selection.run import CorrelationSums, TargetParts

N_ROWS, N_FEATURES, N_CLASSES = 61, 4, 3
PARTITIONS = (1, 2, 7, 41, 100)
GRID = (-1.0, -0.25, 0.0, 0.25, 1.0)

rng = np.random.default_rng(8)
# Halves and quarters stand on points of the grid, where "at most" and "less than" differ.
X = rng.choice([-1.5, -1.0, -0.3, -0.25, 0.0, 0.25, 0.7, 1.0], (N_ROWS, N_FEATURES))
CODES = rng.integers(0, N_CLASSES, N_ROWS)
NUMBERS = rng.integers(-ONE, ONE + 1, N_ROWS).astype(np.float64)
PREDICTED_CODES = np.where(rng.random(N_ROWS) < 0.6, CODES, rng.integers(-1, N_CLASSES, N_ROWS))[:, None]
PREDICTED_NUMBERS = np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.integers(-ONE, ONE + 1, N_ROWS))[:, None]
# Released means of the target.
CENTRES = (-ONE, 12_345, ONE // 3)
# A label that is none of the classes.
FOREIGN = np.where(np.arange(N_ROWS) == 3, -1, CODES)


def source_of(features, target, n_partitions=1):
    slots = np.arange(N_ROWS) + np.arange(N_ROWS) // 20  # with a null record after every twenty
    return ArraySource(Records(features, target, slots, 64), 1.0, 64, n_partitions=n_partitions)


def correlations(target, centres, signs):
    def entry(value):
        return (value > 0) - (value < 0) if signs else Fraction(min(max(value, -1.0), 1.0))

    lattice = [[round(entry(value) * ONE) for value in row] for row in X.tolist()]
    most = ONE + max(abs(centre) for centre in centres)
    weights = [
        [round(Fraction(int(value - c) * ONE, most)) for value, c in zip(row, centres, strict=True)] for row in target
    ]
    return [[sum(x[j] * w[c] for x, w in zip(lattice, weights, strict=True)) for c in range(len(weights[0]))]
            for j in range(N_FEATURES)]  # fmt: skip


def one_against_rest(codes):
    return [[ONE if code == k else -ONE for k in range(N_CLASSES)] for code in codes.tolist()]


def column_counts():
    counts = []
    for column in X.T.tolist():
        for values in (column, [-value for value in column]):
            counts += [sum(value <= point for value in values) for point in GRID] + [N_ROWS]
    return counts


def outcomes():
    pairs = list(zip(FOREIGN.tolist(), PREDICTED_CODES[:, 0].tolist(), strict=True))
    return [[sum(own == k == guess for own, guess in pairs), sum(own == k != guess for own, guess in pairs)]
            for k in range(N_CLASSES)]  # fmt: skip


def error(power):
    pairs = zip(NUMBERS.tolist(), PREDICTED_NUMBERS[:, 0].tolist(), strict=True)
    return sum(int(abs(own - guess)) ** power if guess == guess else (2 * ONE) ** power for own, guess in pairs)


BINS = margin_edges(2, 64)
PAIRED = np.minimum(FOREIGN, 1)
MODEL = LinearOutputs((1, 3), ((0.5,), (-2.0,)), (0.25,))
MODELS = LinearOutputs((0, 2, 3), ((0.5, 1.0, 0.0), (0.0, -1.0, 2.0), (1.0, 0.0, 0.25)), (0.0, 0.5, -0.5))


def outputs(model):
    """Exactly, as all of these numbers are fractions."""
    weights = [[Fraction(weight) for weight in row] for row in model.weights]
    return [
        [
            Fraction(constant) + sum(Fraction(row[j]) * own[k] for j, own in zip(model.columns, weights, strict=True))
            for k, constant in enumerate(model.constants)
        ]
        for row in X.tolist()
    ]


def margin_cells(codes):
    counts = [0] * (2 * (len(BINS) + 1))
    for (margin,), code in zip(outputs(MODEL), codes.tolist(), strict=True):
        if code >= 0:
            counts[code * (len(BINS) + 1) + sum(margin > edge for edge in BINS)] += 3
    return counts


def class_cells():
    counts = [0] * (6 * (len(BINS) + 1))
    for margins, code in zip(outputs(MODELS), FOREIGN.tolist(), strict=True):
        if code >= 0:
            own = -math.log(sum(math.exp(margin - margins[code]) for k, margin in enumerate(margins) if k != code))
            wrong = margins.index(max(margins)) != code
            counts[(2 * code + wrong) * (len(BINS) + 1) + sum(own > edge for edge in BINS)] += 1
    return counts


def error_cells(cells):
    counts = {}
    for own, guess in zip(NUMBERS.tolist(), PREDICTED_NUMBERS[:, 0].tolist(), strict=True):
        wrong = abs(own - guess) if guess == guess else ONE + abs(own)
        row = sum(own >= edge for edge in cells.targets[1:-1])
        column = sum(wrong > edge for edge in cells.errors[1:-1])
        counts[row, column] = counts.get((row, column), 0) + 1
    possible = [(row, column) for row in range(len(cells.targets) - 1) for column in range(len(cells.errors) - 1)
                if cells.errors[column] < max(cells.targets[row + 1] + ONE, ONE - cells.targets[row])]  # fmt: skip
    assert set(counts) <= set(possible)
    return [counts.get(place, 0) for place in possible]


# Predictions are mapped by the bounds, which leave lattice numbers as they are.
ERROR_CELLS = ErrorCells.of_bins((-float(ONE), float(ONE)), 10, 16)

CASES = {
    "correlation": (CorrelationSums(0, (0,)), X, NUMBERS, correlations(NUMBERS[:, None], (0,), False)),
    "centred": (CorrelationSums(0, (-777,)), X, NUMBERS, correlations(NUMBERS[:, None], (-777,), False)),
    "quadrant": (
        CorrelationSums(N_CLASSES, CENTRES, signs=True, signed_target=True),
        X,
        CODES,
        correlations(one_against_rest(CODES), CENTRES, True),
    ),
    "labels": (
        CorrelationSums(N_CLASSES, CENTRES, signed_target=True),
        X,
        CODES,
        correlations(one_against_rest(CODES), CENTRES, False),
    ),
    "sizes": (
        TargetParts(N_CLASSES, 3, signed_target=True),
        X,
        FOREIGN,
        [3 * FOREIGN.tolist().count(code) for code in range(N_CLASSES)],
    ),
    "parts": (
        TargetParts(0, 2 * ONE, signed_target=False),
        X,
        NUMBERS,
        [N_ROWS * ONE + sign * int(NUMBERS.sum()) for sign in (1, -1)],
    ),
    "counts": (ColumnCounts((GRID,) * N_FEATURES), X, NUMBERS, column_counts()),
    "outcomes": (OutcomeCounts(N_CLASSES), PREDICTED_CODES, FOREIGN, outcomes()),
    "margins": (
        CellCounts(MarginCells(BINS), 3, MODEL),
        X,
        np.minimum(FOREIGN, 1),
        margin_cells(np.minimum(FOREIGN, 1)),
    ),
    "classes": (CellCounts(ClassCells(BINS, 3), 1, MODELS), X, FOREIGN, class_cells()),
    "error cells": (CellCounts(ERROR_CELLS), PREDICTED_NUMBERS, NUMBERS, error_cells(ERROR_CELLS)),
    "errors": (ErrorSum(1, 2 * ONE), PREDICTED_NUMBERS, NUMBERS, [error(1) >> 31, error(1) % 2**31]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_partitions", PARTITIONS)
def test_sums_are_those_by_hand_for_any_partitions(name, n_partitions):
    task, features, target, expected = CASES[name]
    source = source_of(features, target, n_partitions)
    assert source.total(task).tolist() == expected
    assert source.total(pickle.loads(pickle.dumps(task))).tolist() == expected


@pytest.mark.parametrize("name", ["correlation", "centred", "quadrant", "labels", "margins", "classes"])
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_tables_have_the_same_sums(name, layout):
    task, features, target, expected = CASES[name]
    assert source_of(sp.csr_matrix(features).asformat(layout), target, 7).total(task).tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_tasks_are_frozen_values(name):
    task = CASES[name][0]
    assert task == pickle.loads(pickle.dumps(task))
    assert hash(task) == hash(pickle.loads(pickle.dumps(task)))
    for field in task.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(task, field, None)


def test_counts_are_split_by_column_and_side():
    task = CASES["counts"][0]
    parts = task.split(source_of(X, NUMBERS, 7).total(task))
    for column, (values, mirrored) in zip(X.T, parts, strict=True):
        assert values.tolist() == [int((column <= point).sum()) for point in GRID] + [N_ROWS]
        assert mirrored.tolist() == [int((-column <= point).sum()) for point in GRID] + [N_ROWS]


@pytest.mark.parametrize("power", [1, 2])
def test_the_upper_and_lower_bits_of_errors_are_put_together(power):
    for n_partitions in PARTITIONS:
        source = source_of(PREDICTED_NUMBERS, NUMBERS, n_partitions)
        assert total_error(source, power, (2 * ONE) ** power).tolist() == [error(power)]


def test_error_sums_of_very_many_records_do_not_overflow():
    class Huge:
        """A hundred partitions, each with a sum of half the largest integer."""

        def total(self, task):
            return 100 * np.array([2**62 >> 31, 5], dtype=np.int64)

    assert total_error(Huge(), 2, (2 * ONE) ** 2).tolist() == [2**62]
