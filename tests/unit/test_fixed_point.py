"""Lattice sums: tests (g), (h) and (i) of the sampler's list."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.lattice import ONE, sum_magnitude
from taciturn.data.design import Design
from taciturn.data.fixed_point import clip_rows, exact_block_rows, round_weights, to_lattice


def test_lattice_values_are_integers_within_the_bound():
    rng = np.random.default_rng(0)
    for bound in (1.0, 0.3, 7e-5, 1e300, 1e-300, 1e-310):
        values = np.concatenate((rng.standard_normal(1000) * bound, [bound, -bound, 5 * bound, 0.0]))
        lattice = to_lattice(values, bound)
        assert np.array_equal(lattice, np.rint(lattice))
        assert np.abs(lattice).max() == ONE
        expected = np.clip(values, -bound, bound) / bound * ONE
        assert np.abs(lattice - expected).max() <= 0.5
        assert lattice[-4:].tolist() == [ONE, -ONE, ONE, 0.0]


def test_clipping_survives_the_largest_doubles():
    assert to_lattice([1.7e308, -1.7e308], 1.0).tolist() == [ONE, -ONE]


def test_weights_are_clipped_after_rounding():
    # floor(C * a) computed in doubles could exceed C * a; the integer bound decides.
    weights = round_weights([0.3, -0.3, np.inf, -np.inf, np.nan, 0.1], scale=1000 / 0.3, bound=999)
    assert weights.tolist() == [999, -999, 999, -999, 0, 333]


def test_integer_norms_never_pass_the_bound_at_the_clip_boundary():
    # (g): a thousand records pushed to the boundary, checked in exact integers.
    rng = np.random.default_rng(1)
    d, weight_bound = 12, 1 << 17
    row_bound = ONE * ONE
    raw = rng.standard_normal((1000, d))
    raw *= ONE / np.linalg.norm(raw, axis=1, keepdims=True) * rng.choice([1.0, 1.0 + 1e-6, 3.0], (1000, 1))
    rounded = np.rint(np.clip(raw, -ONE, ONE))
    assert (np.sum(rounded**2, axis=1) > row_bound).sum() > 300  # rounding alone would break the bound
    rows = clip_rows(rounded, raw, row_bound)
    for row in rows.astype(int).tolist():
        assert sum((value * weight_bound) ** 2 for value in row) <= row_bound * weight_bound**2
    near = np.abs(np.linalg.norm(rows, axis=1) / ONE - 1.0)
    assert near.max() < 1e-3


def test_rows_within_the_bound_are_left_alone():
    rows = np.array([[3.0, 4.0], [ONE, 0.0]])
    assert np.array_equal(clip_rows(rows, rows, ONE * ONE), rows)


def problem(n=2000, d=30, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    weights = round_weights(rng.standard_normal(n), 2.0**14, 1 << 15)
    return X, weights


def test_sums_do_not_depend_on_order_chunks_threads_or_layout():
    # (h)
    X, weights = problem()
    n, bound = X.shape[0], 1 << 15
    expected = Design(X, 1.0).rmatvec(weights, bound)
    by_hand = to_lattice(X, 1.0).astype(np.int64).T @ weights.astype(np.int64)
    assert np.array_equal(expected, by_hand)
    order = np.random.default_rng(0).permutation(n)
    assert np.array_equal(Design(X[order], 1.0).rmatvec(weights[order], bound), expected)
    for layout in (np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array):
        assert np.array_equal(Design(layout(X), 1.0).rmatvec(weights, bound), expected)
    for size in (1, 7, 777, n):
        design = Design(sp.csr_matrix(X), 1.0)
        total = sum(
            design.rows(start, start + size).rmatvec(weights[start : start + size], bound)
            for start in range(0, n, size)
        )
        assert np.array_equal(total, expected)
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert np.array_equal(Design(X, 1.0).rmatvec(weights, bound), expected)
    floats = X.T @ (weights / 2**14)
    assert not np.array_equal(floats, X[order].T @ (weights[order] / 2**14))  # what plain doubles do


def test_one_record_changes_exactly_its_own_term():
    X, weights = problem(n=50)
    whole = Design(X, 1.0).rmatvec(weights, 1 << 15)
    for i in (0, 17, 49):
        rest = Design(np.delete(X, i, axis=0), 1.0).rmatvec(np.delete(weights, i), 1 << 15)
        assert np.array_equal(whole - rest, (to_lattice(X[i], 1.0) * weights[i]).astype(np.int64))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_blocks_are_cut_where_doubles_would_round(layout):
    # At this weight bound only four rows fit into 53 bits; sums of all rows need 63.
    bound = (1 << 53) // ONE // 4
    assert exact_block_rows(bound) == 4
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (101, 3))
    weights = rng.integers(-bound, bound, (101, 2)).astype(float)
    exact = to_lattice(X, 1.0).astype(np.int64).T @ weights.astype(np.int64)
    assert np.array_equal(Design(layout(X), 1.0).rmatvec(weights, bound), exact)
    assert not np.array_equal((to_lattice(X, 1.0).T @ weights).astype(np.int64), exact)  # without blocks


def test_margins_are_exact_and_refused_beyond_53_bits():
    X, _ = problem(n=40)
    coefficients = np.random.default_rng(2).integers(-(2**31), 2**31, X.shape[1]).astype(float)
    exact = to_lattice(X, 1.0).astype(np.int64) @ coefficients.astype(np.int64)
    assert np.array_equal(Design(X, 1.0).matvec(coefficients), exact)
    one = np.zeros(X.shape[1])
    one[0] = 2.0**37
    Design(X, 1.0).matvec(one)
    one[1] = 1.0
    with pytest.raises(DataError, match="coefficients: expected an L1 norm"):
        Design(X, 1.0).matvec(one)


def test_guards_raise_at_the_public_bound_and_one_below_passes():
    # (i)
    limit = (1 << 53) // ONE
    assert exact_block_rows(limit) == 1
    with pytest.raises(ParameterError, match="weight_bound"):
        exact_block_rows(limit + 1)
    rows = (1 << 63) // (ONE * 1024)
    assert sum_magnitude(rows - 1, 1024) == (rows - 1) * ONE * 1024
    with pytest.raises(ParameterError, match=r"^weight_bound=1024: ") as beyond:
        sum_magnitude(rows, 1024)
    # How many rows there are may be private.
    assert str(rows) not in str(beyond.value)
    with pytest.raises(ParameterError, match="n_features"):
        clip_rows(np.zeros((0, 1 << 31)), np.zeros((0, 1 << 31)), 1)


def test_sparse_input_is_copied_not_changed():
    X = sp.csr_matrix(np.array([[5.0, 0.0], [0.0, -0.25]]))
    before = X.copy()
    design = Design(X, 1.0)
    assert (before != X).nnz == 0
    assert design.shape == (2, 2)
    assert design.rmatvec(np.ones(2), 1).tolist() == [ONE, -ONE // 4]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_the_intercept_is_a_last_column_at_the_bound(layout):
    X, _ = problem(n=60, d=7)
    X[5] = 0.0
    expected = np.column_stack((to_lattice(X, 2.0), np.full(60, ONE)))
    design = Design(layout(X), 2.0, intercept=True)
    assert design.shape == (60, 8)
    for built in (design.lattice, design.compact()):
        dense = built.toarray() if sp.issparse(built) else built
        assert np.array_equal(dense, expected)
    assert design.compact().dtype == np.int32
    assert design.lattice.dtype == np.float64


def test_duplicate_entries_are_summed_before_they_are_clipped():
    X = sp.csr_matrix((np.array([0.75, 0.75, -0.5]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    before = X.data.copy()
    assert Design(X, 1.0).lattice.toarray().tolist() == [[ONE, 0], [0, -ONE // 2]]
    assert np.array_equal(X.data, before)


def test_a_share_of_the_smallest_bound_is_no_zero():
    table = np.array([[1.0, -1.0], [0.0, math.ulp(0.0)]])
    lattice = Design(table, math.ulp(0.0)).clipped(0.01).lattice
    assert lattice.tolist() == [[ONE, -ONE], [0.0, ONE]]
