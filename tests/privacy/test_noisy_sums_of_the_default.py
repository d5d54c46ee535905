"""Sums that the default model releases besides gradients: their values, and the law of their noise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logsumexp, softmax
from scipy.stats import chi2

from taciturn.accounting import Budget, PrivacyFilter
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.data.sensitivity import GRAM_WEIGHTS, RELATIONS, gram_matrix
from taciturn.engines import ArraySource
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.releases import Releases
from taciturn.methods.sums import (
    MarginCounts,
    MarginMagnitudes,
    ResidualMagnitudes,
    ResidualMoments,
    ResidualSum,
    SlopeMoments,
)

N, D, UNIT = 60, 4, 999
CENTRE = np.array([ONE // 2, 0.0, -ONE, 77.0])
WEIGHTS = np.array([[0.7, -1.1, 0.4, 2.0, 0.6]])


def source(y, n_partitions=1, layout=np.asarray, X=None):
    X = table() if X is None else X
    records = Records(layout(X), y, np.arange(len(y)), len(y))
    return ArraySource(records, 1.0, len(y), n_partitions=n_partitions)


def table():
    return np.rint(np.random.default_rng(3).uniform(-1, 1, (N, D)) * ONE) / ONE


def joint(loss, slope=16.0):
    return Clipping(None, D, loss, 1, ONE * ONE, ONE // 2, ONE, slope, CENTRE, product_bound=1)


def margins():
    return (table() - CENTRE / ONE) @ WEIGHTS[0, :-1]


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_moments_and_magnitudes_are_those_of_margins_and_residuals(layout):
    y = np.rint(np.random.default_rng(4).uniform(-1, 1, N) * ONE)
    u, residuals = margins(), margins() + 0.5 * WEIGHTS[0, -1] - y / ONE
    reach, clip = 1.3, 0.8
    a, r = np.clip(u / reach, -1, 1), np.clip(residuals / clip, -1, 1)
    expected = np.trunc(np.column_stack((a * r, r, a * a, a)) * (UNIT / 2)).sum(axis=0)
    clipping = joint(HuberLoss(16.0))
    for n_partitions in (1, 7, N):
        here = source(y, n_partitions, layout)
        moments = here.total(ResidualMoments(clipping, WEIGHTS, reach, clip, UNIT))
        assert moments.dtype == np.int64
        # Margins are rounded to 2**-36 of the largest weight, which may change an integer here and there.
        assert np.abs(moments - expected).max() <= 2
        assert np.array_equal(moments, source(y).total(ResidualMoments(clipping, WEIGHTS, reach, clip, UNIT)))
        (block,) = source(y, 1, layout)._blocks
        assert np.allclose(ResidualMagnitudes(clipping, WEIGHTS).values(block), np.abs(residuals), atol=1e-9)
        assert np.allclose(MarginMagnitudes(clipping, WEIGHTS).values(block), np.abs(u), atol=1e-9)
    # As many are clipped as not: a bound that was forgotten would show.
    assert 0.1 < np.mean(np.abs(a) == 1.0) < 0.9
    assert 0.1 < np.mean(np.abs(r) == 1.0) < 0.9


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_counts_are_those_of_margins_and_labels(layout):
    y = np.random.default_rng(5).integers(-1, 2, N)
    reach, n_bins = 1.3, 6
    edges = np.linspace(-reach, reach, n_bins + 1)[1:-1]
    expected = np.zeros((2, n_bins), dtype=np.int64)
    for u, label in zip(margins(), y, strict=True):
        if label >= 0:
            expected[label, np.searchsorted(edges, u, side="right")] += UNIT
    for n_partitions in (1, 7, N):
        task = MarginCounts(joint(LogisticLoss(), 1.0), WEIGHTS, reach, n_bins, UNIT)
        assert np.array_equal(source(y, n_partitions, layout).total(task), expected)
    assert (expected[:, 0] > 0).all()
    assert expected.sum() == UNIT * np.count_nonzero(y >= 0)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_derivatives_by_a_slope_are_those_of_the_log_loss(layout):
    y = np.random.default_rng(6).integers(-1, 3, N)
    present, bound = y >= 0, 0.7
    weights = np.vstack((WEIGHTS, -0.5 * WEIGHTS, np.roll(WEIGHTS, 1)))
    z = (table() - CENTRE / ONE) @ weights[:, :-1].T + 0.5 * weights[:, -1]
    steps = np.array([-1e-4, 0.0, 1e-4])
    at = np.exp(steps)[:, None, None] * z
    losses = (logsumexp(at, axis=2) - at[:, np.arange(N), np.maximum(y, 0)]) * present
    first = (losses[2] - losses[0]) / 2e-4
    p = softmax(z, axis=1)
    second = (p * np.square(z - (p * z).sum(axis=1, keepdims=True))).sum(axis=1) * present
    expected = np.column_stack((np.clip(first / bound, -1, 1), np.clip(second / bound, 0, 1))).sum(axis=0)
    clipping = Clipping(None, D, SoftmaxLoss(), 3, ONE * ONE, ONE // 2, ONE, 1.0, CENTRE, product_bound=1)
    for n_partitions in (1, 7, N):
        found = source(y, n_partitions, layout).total(SlopeMoments(clipping, weights, bound, UNIT))
        assert found == pytest.approx(expected * UNIT / math.sqrt(2.0), abs=N + 1e-5 * UNIT)
        assert np.array_equal(found, source(y).total(SlopeMoments(clipping, weights, bound, UNIT)))
    # As many are clipped as not: a bound that was forgotten would show.
    assert 0.1 < np.mean(np.abs(first[present]) > bound) < 0.9


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_residuals_of_labels_are_rates_less_labels(layout):
    y = np.random.default_rng(7).integers(-1, 2, N)
    expected = ((expit(margins() + 0.5 * WEIGHTS[0, -1]) - y) * (y >= 0)).sum() * UNIT
    for n_partitions in (1, 7):
        task = ResidualSum(joint(LogisticLoss(), 1.0), WEIGHTS, UNIT)
        assert source(y, n_partitions, layout).total(task)[0] == pytest.approx(expected, abs=N + 1e-6 * UNIT)


# ------------------------------------------------------------------ noise


def released(relation, width, budget=1.0):
    """The Gram matrix of rows of zeros: noise alone; and the deviation that is stated."""
    rows = source(np.zeros(3), X=np.zeros((3, width)))
    clipping = Clipping(None, width, HuberLoss(1.0), 1, 5 * ONE * ONE, 0, ONE, 1.0)
    choices = Releases(PrivacyFilter(Budget(budget, 1e-6), 1e-20), relation, rows, Stream.of(8))
    return choices.gram_matrix("a Gram matrix", 0.3, clipping), choices._budget


def variance_p(values, deviation):
    """Of a two-sided test that values are Gaussian of this deviation, by their sum of squares."""
    tail = chi2(values.size).sf(np.square(values / deviation).sum())
    return 2.0 * min(tail, 1.0 - tail)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noise_on_a_gram_matrix_is_that_of_a_gaussian_orthogonal_ensemble(relation):
    width = 200
    (matrix, deviation), budget = released(relation, width)
    assert np.array_equal(matrix, matrix.T)
    diagonal, others = np.diag(matrix), matrix[np.triu_indices(width, 1)]
    # 12 / 17 for the root of one half.
    below = deviation * GRAM_WEIGHTS[0] / GRAM_WEIGHTS[1]
    assert below == pytest.approx(deviation / math.sqrt(2.0), rel=2e-3)
    assert variance_p(diagonal, deviation) > 1e-4
    assert variance_p(others, below) > 1e-4
    assert variance_p(others, deviation) < 1e-6
    assert variance_p(diagonal, 0.7 * deviation) < 1e-6
    # And as large as the price says: noise over sensitivity, for rows of a squared norm of five.
    (spend,) = budget.spends
    stated = deviation * GRAM_WEIGHTS[0] / (5.0 * gram_matrix(1, relation).value)
    assert spend.parameter <= stated <= spend.parameter * (1.0 + 1e-4)


def test_a_gram_matrix_without_privacy_has_no_noise():
    y, clipping = np.zeros(N), Clipping(None, D, HuberLoss(1.0), 1, 5 * ONE * ONE, ONE, ONE, 1.0)
    choices = Releases(PrivacyFilter(Budget(math.inf, 0.0)), "zero-out", source(y), Stream.of(8))
    matrix, deviation = choices.gram_matrix("a Gram matrix", 0.3, clipping)
    rows = np.column_stack((table(), np.ones(N)))
    assert deviation == 0.0
    assert np.allclose(matrix, rows.T @ rows, atol=0.05)
