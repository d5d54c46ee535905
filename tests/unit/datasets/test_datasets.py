"""Generators: the laws they state, to within the error of the sample."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.core.errors import ParameterError
from taciturn.datasets import (
    make_power_law_sparse,
    make_screening_linear,
    make_screening_logistic,
    make_sparsifier_logistic,
)


def small_sparse(random_state=None, **changes):
    return make_power_law_sparse(
        **({"n_samples": 500, "n_features": 3000, "nnz_per_row": 40} | changes), random_state=random_state
    )


DENSE = [make_sparsifier_logistic, make_screening_linear, make_screening_logistic]


@pytest.mark.parametrize("make", [*DENSE, small_sparse])
def test_seeds_reproduce_and_differ(make):
    def draw(random_state):
        X, y, coef = make(random_state=random_state)
        return (X.toarray() if sp.issparse(X) else X), y, coef

    first, again, other = draw(3), draw(3), draw(4)
    assert all(map(np.array_equal, first, again))
    assert all(map(np.array_equal, first, draw(np.random.default_rng(3))))
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(draw(None)[0], draw(None)[0])


def lagged_correlations(X, lags):
    """Mean correlation of columns ``lag`` apart."""
    R = np.corrcoef(X, rowvar=False)
    return np.array([np.diagonal(R, lag).mean() for lag in lags])


def test_the_sparsifier_set():
    X, y, coef = make_sparsifier_logistic(random_state=0)
    assert X.shape == (10_000, 100)
    assert coef[:8].tolist() == [10, 9, 8, 7, 6, 5, 4, 0.5]
    assert not coef[8:].any()
    # Each column by its own maximum, to the bit.
    assert (np.abs(X).max(axis=0) == 1.0).all()
    assert np.allclose(lagged_correlations(X, range(4)), 0.5 ** np.arange(4), atol=0.01)
    assert np.array_equal(y, 1 / (1 + np.exp(-X @ coef)) > 0.5)
    assert set(np.unique(y)) == {0, 1}
    assert 0.48 < y.mean() < 0.52


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_linear_screening_sets(correlation):
    X, y, coef = make_screening_linear(correlation=correlation, random_state=1)
    assert X.shape == (3000, 600)
    assert coef[:70].tolist() == [1.0] * 35 + [-1.0] * 35
    assert not coef[70:].any()
    # One constant for the whole matrix: all columns keep the same spread, most stay inside.
    assert np.abs(X).max() == 1.0
    assert (np.abs(X).max(axis=0) == 1.0).sum() == 1
    spreads = X.std(axis=0)
    assert spreads.std() / spreads.mean() < 0.03
    assert np.allclose(lagged_correlations(X, range(4)), correlation ** np.arange(4), atol=0.01)
    assert np.array_equal(y, X @ coef)
    assert np.abs(y).max() <= 70.0
    # Var(y) / Var(x) = w' R w.
    lags = np.abs(np.subtract.outer(np.arange(70), np.arange(70)))
    expected = coef[:70] @ correlation**lags @ coef[:70]
    assert y.var() / X.var() == pytest.approx(expected, rel=0.15)


def test_the_normal_rows_have_normal_tails():
    X, _, _ = make_screening_linear(random_state=2)
    z = X / X.std()
    assert np.abs(z.mean()) < 0.01
    assert (z**4).mean() == pytest.approx(3.0, abs=0.05)


def test_the_logistic_screening_set_has_the_linear_one_s_rows():
    X, y, coef = make_screening_logistic(random_state=5)
    Z, target, weights = make_screening_linear(random_state=5)
    assert np.array_equal(X, Z)
    assert np.array_equal(coef, weights)
    assert np.array_equal(y, target > 0)
    assert y.dtype == np.int64


@pytest.mark.parametrize(("make", "least"), [(make_sparsifier_logistic, 8), *((m, 70) for m in DENSE[1:])])
def test_there_must_be_room_for_the_weights(make, least):
    assert make(20, least, random_state=0)[0].shape == (20, least)
    with pytest.raises(ParameterError, match=f"n_features={least - 1}: expected an integer >= {least}"):
        make(20, least - 1)
    with pytest.raises(ParameterError, match="n_samples=0"):
        make(0)


# ------------------------------------------------------------------ sparse


def test_sparse_rows_are_what_they_are_said_to_be():
    X, y, coef = small_sparse(random_state=0)
    assert isinstance(X, sp.csr_array)
    assert X.shape == (500, 3000)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_canonical_format
    # Distinct columns, so exactly as many entries as asked for.
    assert (np.diff(X.indptr) == 40).all()
    assert all(np.unique(X.indices[a:b]).size == 40 for a, b in pairwise(X.indptr))
    assert X.data.min() > 0.0
    assert X.data.max() <= 1.0
    assert np.allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)
    assert np.array_equal(y, X @ coef > 0)


def test_popularity_follows_the_stated_law():
    # Few entries per row: taken columns hardly thin out the rest, so counts are those of independent draws.
    d, k, n = 1000, 2, 200_000
    X, _, coef = make_power_law_sparse(n, d, k, exponent=1.2, offset=5.0, n_informative=d, random_state=0)
    counts = np.sort(np.bincount(X.indices, minlength=d))[::-1]
    law = (np.arange(1, d + 1) + 5.0) ** -1.2
    law /= law.sum()
    # The exact chance to be the first or the second of two.
    inclusion = law + law * ((law / (1 - law)).sum() - law / (1 - law))
    # Sorting by count moves ranks with near-equal chances only; compare groups of ranks.
    edges = [0, 1, 3, 10, 30, 100, 300, 1000]
    for a, b in pairwise(edges):
        expected = n * inclusion[a:b].sum()
        assert counts[a:b].sum() == pytest.approx(expected, rel=0.03), (a, b)
    assert (coef != 0).all()


def test_the_draw_without_replacement_is_exact():
    # Four ranks, three of them in a row: the one left out has a chance that can be summed up by hand.
    p = (np.arange(1, 5) + 0.5) ** -1.0
    p /= p.sum()
    left_out = np.zeros(4)
    for a in range(4):
        for b in set(range(4)) - {a}:
            for c in set(range(4)) - {a, b}:
                (last,) = set(range(4)) - {a, b, c}
                left_out[last] += p[a] * p[b] / (1 - p[a]) * p[c] / (1 - p[a] - p[b])
    n = 100_000
    X, _, coef = make_power_law_sparse(n, 4, 3, exponent=1.0, offset=0.5, n_informative=1, random_state=0)
    rates = 1.0 - np.sort(np.bincount(X.indices, minlength=4))[::-1] / n
    assert np.allclose(rates, left_out, atol=0.006)
    # The most popular column is the one with the weight.
    assert np.argmax(np.bincount(X.indices, minlength=4)) == np.flatnonzero(coef)[0]


def test_informative_columns_are_the_popular_ones_and_stand_anywhere():
    X, y, coef = make_power_law_sparse(4000, 3000, 40, random_state=1)
    informative = np.flatnonzero(coef)
    assert informative.size == 20
    assert coef.sum() == 0.0
    assert 0.4 < y.mean() < 0.6
    counts = np.bincount(X.indices, minlength=3000)
    assert counts[informative].min() > 3 * np.median(counts)
    assert informative.max() > 1000


def test_the_size_of_rcv1():
    X, _, _ = make_power_law_sparse(random_state=0)
    assert X.shape == (20_242, 47_236)
    assert X.nnz == 75 * 20_242
    popular = np.sort(np.bincount(X.indices, minlength=47_236))[::-1] / 20_242
    # Document frequencies of the ranks 20, 100, 500 and 2000 in a sample of the real thing.
    assert np.allclose(popular[[19, 99, 499, 1999]], [0.216, 0.111, 0.035, 0.007], rtol=0.3)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"nnz_per_row": 3001}, "nnz_per_row=3001: expected an integer from 1 to 3000"),
        ({"nnz_per_row": 3000}, "nnz_per_row=3000: expected so few"),
        ({"nnz_per_row": 40, "exponent": 9.0, "offset": 1.0}, "nnz_per_row=40: expected so few"),
        ({"exponent": 0.0}, "exponent=0.0"),
        ({"offset": -1.0}, "offset=-1.0"),
        ({"n_informative": 3001}, "n_informative=3001"),
        ({"n_samples": 0}, "n_samples=0"),
    ],
    ids=str,
)
def test_what_could_not_be_drawn_is_refused(changes, start):
    with pytest.raises(ParameterError) as caught:
        small_sparse(**changes)
    assert str(caught.value).startswith(start)
    assert str(caught.value).count(". ") == 0
