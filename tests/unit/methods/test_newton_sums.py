"""The matrices of a Newton step as exact sums: against numpy, within their bounds, and broken variants beyond them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.data.sensitivity import gram_matrix
from taciturn.engines import ArraySource
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.clipped_records import ClippedRecords, Clipping
from taciturn.methods.sums import InformationMatrix, ScoreMatrix

ROW_SQUARED = 1 << 26


def source_of(X, y, *, labels, partitions=1):
    target = np.asarray(y) if labels else np.rint(np.asarray(y) * ONE).astype(np.int64)
    records = Records(np.asarray(X, dtype=float), target, np.arange(len(X)), len(X))
    return ArraySource(records, 1.0, len(X), n_partitions=partitions)


def clipping_of(d, loss, bound, *, product=None, weight=1 << 18, derivative=1.0, centre=None):
    row_squared = math.floor((bound * ONE) ** 2)
    constant = ONE // 2
    product_bound = None if product is None else math.floor(product * ONE * weight / derivative)
    return Clipping(
        None, d, loss, 1, row_squared, constant, weight, derivative, centre, product_bound=product_bound
    )  # fmt: skip


def table(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X = np.rint(rng.uniform(-1, 1, (n, d)) * ONE) / ONE
    return X, rng.integers(0, 2, n), np.rint(rng.uniform(-1, 1, n) * ONE) / ONE


def with_constant(X):
    return np.column_stack((X, np.full(len(X), 0.5)))


@pytest.mark.parametrize("partitions", [1, 7])
def test_the_information_matrix_is_the_hessian_over_the_smoothness(partitions):
    X, labels, _ = table(0)
    coefficients = np.array([[1.0, -2.0, 0.5, 0.3]])
    # Long rows are clipped, so that both cases are there: the norm of rows times roots of curvature lies about .9.
    bound = 0.9
    clipping = replace(clipping_of(3, LogisticLoss(), bound), product_bound=1)
    found = source_of(X, labels, labels=True, partitions=partitions).total(
        InformationMatrix(clipping, coefficients, ROW_SQUARED)
    )
    rows = with_constant(X)
    rates = expit(rows @ coefficients[0])
    vectors = rows * np.sqrt(4 * rates * (1 - rates))[:, None]
    lengths = np.linalg.norm(vectors, axis=1)
    assert 0.2 < np.mean(lengths > bound) < 0.8
    vectors *= np.minimum(1.0, bound / lengths)[:, None]
    expected = vectors.T @ vectors * (ROW_SQUARED / bound**2)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())


def test_the_matrix_of_scores_is_that_of_the_gradients_terms():
    X, _, target = table(1)
    coefficients = np.array([[0.3, -0.1, 0.2, 0.1]])
    product = 0.25
    clipping = clipping_of(3, HuberLoss(2.0), 1.0, product=product, derivative=2.0)
    largest = float(clipping.product_bound)
    found = source_of(X, target, labels=False).total(ScoreMatrix(clipping, coefficients, largest, ROW_SQUARED))
    rows = with_constant(X)
    residuals = rows @ coefficients[0] - target
    lengths = np.abs(residuals) * np.linalg.norm(rows, axis=1)
    assert 0.2 < np.mean(lengths > product) < 0.9
    vectors = rows * (residuals * np.minimum(1.0, product / lengths))[:, None]
    expected = vectors.T @ vectors * (ROW_SQUARED / product**2)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3 * abs(expected).max())


def test_centred_rows_are_rows_less_the_centre():
    X, _, target = table(2)
    centre = np.rint(np.array([0.5, -0.25, 0.125]) * ONE)
    coefficients = np.zeros((1, 4))
    shifted = clipping_of(3, HuberLoss(2.0), 4.0, centre=centre)
    plain = clipping_of(3, HuberLoss(2.0), 4.0)
    found = source_of(X, target, labels=False).total(InformationMatrix(shifted, coefficients, 1 << 30))
    rows = with_constant(X - centre / ONE)
    np.testing.assert_allclose(found, rows.T @ rows * ((1 << 30) / plain.norm**2), rtol=1e-3, atol=1e5)


# ------------------------------------------------------------------ one record

RECORDS = st.lists(st.floats(-1, 1), min_size=3, max_size=3)
WEIGHTS = st.lists(st.floats(-50, 50), min_size=4, max_size=4)


def sums_of_one(record, label, number, coefficients, *, kind=ClippedRecords):
    """Both matrices of a single record."""
    X, coefficients = np.array([record]), np.array([coefficients])
    matrices = []
    for loss, target, labels in ((LogisticLoss(), [label], True), (HuberLoss(2.0), [number], False)):
        scores = clipping_of(3, loss, 0.8, product=0.3, derivative=1.0 if labels else 2.0)
        block = source_of(X, target, labels=labels)._blocks[0]
        norms = np.array([(np.rint(X[0] * ONE) ** 2).sum()])
        for clipping, sum_of in (
            (replace(scores, product_bound=1), lambda r: r.information_matrix(coefficients, ROW_SQUARED)),
            (scores, lambda r, c=scores: r.score_matrix(coefficients, float(c.product_bound), ROW_SQUARED)),
        ):
            matrices.append(sum_of(kind(clipping, block.design(None), clipping.target(block), norms)))
    return matrices


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.integers(0, 1), st.floats(-1, 1), WEIGHTS)
def test_one_record_adds_no_more_than_declared(record, label, number, coefficients):
    declared = gram_matrix(ROW_SQUARED, "zero-out").value
    for matrix in sums_of_one(record, label, number, coefficients):
        upper = np.triu_indices(4)
        weighted = matrix[upper] * np.where(upper[0] == upper[1], 12, 17)
        assert np.trace(matrix) <= ROW_SQUARED
        assert math.sqrt(float(np.square(weighted.astype(np.float64)).sum())) <= declared


class WholeVectors(ClippedRecords):
    """Rows times roots of curvature are not clipped."""

    def information_matrix(self, coefficients, row_squared):
        longer = replace(self.clipping, row_squared=100 * self.clipping.row_squared)
        return ClippedRecords(longer, self.design, self._target, self._squares).information_matrix(
            coefficients, 100 * row_squared
        )


def test_the_bound_is_nearly_attained_and_whole_vectors_exceed_it():
    long = [1.0, 1.0, 1.0], 1, 1.0, [0.0, 0.0, 0.0, 0.0]
    for matrix in sums_of_one(*long):
        assert 0.99 * ROW_SQUARED < np.trace(matrix) <= ROW_SQUARED
    assert np.trace(sums_of_one(*long, kind=WholeVectors)[0]) > 2 * ROW_SQUARED


def test_null_records_add_nothing():
    X, labels, _ = table(3)
    clipping = replace(clipping_of(3, LogisticLoss(), 0.9), product_bound=1)
    task = InformationMatrix(clipping, np.ones((1, 4)), ROW_SQUARED)
    null = np.where(np.arange(len(X)) % 2, -1, labels)
    kept = null >= 0
    np.testing.assert_array_equal(
        source_of(X, null, labels=True).total(task), source_of(X[kept], labels[kept], labels=True).total(task)
    )
