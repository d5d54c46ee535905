"""Concordant less discordant pairs: the merging kernel against all pairs, against scipy, and at sizes that overflow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, mannwhitneyu

from taciturn.kernels.ranks import concordance, ranks_of, scaled_tau, sparse_ranks_of


def all_pairs(a, b):
    """The definition, in O(n^2)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    signs = np.sign(a[:, None] - a[None, :]) * np.sign(b[:, None] - b[None, :])
    return int(signs.sum()) // 2


def counted(a, b):
    return concordance(ranks_of(np.asarray(a)), ranks_of(np.asarray(b)))


few_values = st.integers(0, 3)
many_values = st.integers(-1000, 1000)
columns = st.one_of(
    *(
        st.lists(st.tuples(first, second), max_size=60)
        for first in (few_values, many_values)
        for second in (few_values, many_values)
    )
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(columns)
def test_every_pair_counts_once_and_ties_count_nothing(records):
    a, b = [a for a, _ in records], [b for _, b in records]
    expected = all_pairs(a, b)
    assert counted(a, b) == expected
    assert counted(b, a) == expected
    assert counted([-value for value in a], b) == -expected


@pytest.mark.parametrize("n_rows", [15, 16, 17, 33, 500])
@pytest.mark.parametrize(("first", "second"), [(2, 2), (2, 1000), (7, 40), (40, 7), (1000, 1000)])
def test_runs_of_all_lengths(n_rows, first, second):
    rng = np.random.default_rng(n_rows)
    for _ in range(5):
        a, b = rng.integers(0, first, n_rows), rng.integers(0, second, n_rows)
        # One long run beside short ones.
        a[rng.random(n_rows) < 0.4] = 0
        assert counted(a, b) == all_pairs(a, b)


def test_the_order_of_records_does_not_matter():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 30, 400), rng.standard_normal(400)
    shuffle = rng.permutation(400)
    assert counted(a, b) == counted(a[shuffle], b[shuffle])


@pytest.mark.parametrize("ties", [False, True])
def test_scipy_agrees(ties):
    rng = np.random.default_rng(2)
    n = 700
    a = rng.standard_normal(n)
    b = a + rng.standard_normal(n)
    if ties:
        a, b = np.round(a), np.round(2 * b)
    pairs = n * (n - 1) // 2
    tied = [sum(c * (c - 1) // 2 for c in np.unique(column, return_counts=True)[1].tolist()) for column in (a, b)]
    assert (tied[0] > 0) == ties
    k = counted(a, b)
    assert k / np.sqrt((pairs - tied[0]) * (pairs - tied[1])) == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)
    fewer = min(np.unique(a).size, np.unique(b).size)
    assert 2 * k * fewer / (n * n * (fewer - 1)) == pytest.approx(kendalltau(a, b, variant="c").statistic, abs=1e-12)


def test_two_classes_are_the_rank_sum_test():
    rng = np.random.default_rng(3)
    y = rng.random(5000) < 0.3
    x = np.round(rng.standard_normal(5000) + y, 1)
    u = mannwhitneyu(x[y], x[~y]).statistic
    # U counts a tie as half a pair.
    assert counted(x, y) == 2 * u - int(y.sum()) * int((~y).sum())


def test_counts_beyond_32_bits():
    n = 150_000
    up = np.arange(n)
    assert counted(up, 3 * up) == n * (n - 1) // 2 > 2**33
    assert counted(up, -up) == -n * (n - 1) // 2
    halves = up >= n // 2
    assert counted(up, halves) == counted(halves, up) == (n // 2) ** 2
    assert counted(np.zeros(n), up) == 0


def test_small_tables():
    assert counted([], []) == 0
    assert counted([4.0], [2.0]) == 0
    assert counted([1, 2], [7, 9]) == 1


def test_ranks_are_places_among_distinct_values():
    assert ranks_of(np.array([3.5, -1.0, 3.5, 0.0, -0.0])).tolist() == [2, 0, 2, 1, 1]
    assert ranks_of(np.array([2**60 + 1, 2**60])).tolist() == [1, 0]


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_a_sparse_column_ranks_like_the_dense_one(density):
    rng = np.random.default_rng(4)
    other = ranks_of(rng.integers(0, 9, 300))
    dense = np.where(rng.random(300) < density, rng.integers(1, 6, 300) * rng.choice([-1, 1], 300), 0).astype(float)
    # One stored zero among the entries.
    stored = np.flatnonzero(dense)[: None if density < 1.0 else 300]
    stored = np.unique(np.append(stored, 7))
    ranks = sparse_ranks_of(dense[stored], stored, 300)
    for twin in (other, ranks_of(dense)):
        assert concordance(ranks, twin) == concordance(ranks_of(dense), twin)


@pytest.mark.parametrize("steps", [1, 6, 1 << 20])
def test_scaled_taus_are_exact_and_rounded_down(steps):
    rng = np.random.default_rng(5)
    for n_rows in (7, 8, 20):
        a, b = rng.integers(0, 4, 7), rng.permutation(7)
        tau = Fraction(abs(all_pairs(a, b)), n_rows - 1)
        scaled = scaled_tau(ranks_of(a), ranks_of(b), n_rows, steps)
        assert 0 <= tau * steps - scaled < 1


def test_records_in_no_pair_make_no_scores():
    assert scaled_tau(ranks_of(np.array([1.0])), ranks_of(np.array([2.0])), 1, 100) == 0
