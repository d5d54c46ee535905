"""Lattice sums: tests (g), (h) and (i) of the sampler's list."""

import math
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import ONE, sum_magnitude
from taciturn.data.design import Design, clip_rows, exact_block_rows, round_weights, to_lattice


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


LAYOUTS = {"dense": np.asarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_matrix}


def as_array(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def answers(design):
    """What a design is asked for on the paths of fits, one array after the other."""
    n_rows, n_columns = design.shape
    weights = np.rint(np.linspace(-900.0, 900.0, 2 * n_rows)).reshape(n_rows, 2)
    coefficients = np.rint(np.linspace(-3e9, 2e9, n_columns))
    some = np.array([0, 2, 3])
    yield np.array([*design.shape, design.n_features, design.is_sparse])
    yield design.rmatvec(weights, 900)
    yield design.matvec(coefficients)
    for each in (design, design.rows(3, 17), design.columns(some), design.in_layout("csr"), design.in_layout("csc")):
        yield as_array(each.lattice)
        yield as_array(each.compact())
        yield each.dense_rows(1, 9)
        yield from (as_array(part) for _, part in each.pieces(most_rows=7))
    blocks = list(design.blocks())
    assert len(blocks) > 1
    assert [rows.stop - rows.start for rows, _ in blocks] == [block.shape[0] for _, block in blocks]
    yield np.concatenate([as_array(block.lattice) for _, block in blocks])
    for share in (0.3, 1e-9):
        capped = design.columns(some).clipped(share)
        yield as_array(capped.lattice)
        yield as_array(capped.compact())
        yield capped.rmatvec(weights, 900)
        yield as_array(capped.rows(2, 12).lattice)


def assert_same_answers(first, second):
    for one, other in zip(answers(first), answers(second), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_compacted_design_gives_the_same_integers(monkeypatch, layout, intercept):
    monkeypatch.setattr("taciturn.data.design._BLOCK_ENTRIES", 50)
    X, _ = problem(n=60, d=7)
    X[np.abs(X) < 0.3] = 0.0
    design = Design(LAYOUTS[layout](X), 1.5, intercept=intercept, constant=77)
    compacted = design.compacted()
    assert_same_answers(design, compacted)
    assert_same_answers(design, pickle.loads(pickle.dumps(compacted)))
    entries = compacted.compact().data if design.is_sparse else compacted.compact()
    assert entries.dtype == np.int32
    # The table is let go, and what needs it refuses.
    assert len(pickle.dumps(compacted)) < 0.8 * len(pickle.dumps(design))
    for read in (lambda: compacted.values, compacted.signs):
        with pytest.raises(TypeError, match="a compacted design holds integers alone"):
            read()


def test_those_answers_tell_tables_apart(monkeypatch):
    X, _ = problem(n=60, d=7)
    other = X.copy()
    other[59, 2] = 0.001 if X[59, 2] == 0.0 else 0.0
    monkeypatch.setattr("taciturn.data.design._BLOCK_ENTRIES", 50)
    with pytest.raises(AssertionError):
        assert_same_answers(Design(X, 1.5).compacted(), Design(other, 1.5).compacted())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clipped_entries_are_those_of_the_definition(layout):
    """A function of the lattice alone: an integer in [-ONE, ONE] for each integer."""
    X, _ = problem(n=60, d=7)
    lattice = to_lattice(X, 1.5).astype(np.int64)
    for share in (1.0, 0.3, 0.001, 1e-9):
        cap = max(1, round(share * ONE))
        found = as_array(Design(LAYOUTS[layout](X), 1.5).clipped(share).lattice)
        for row, clipped in zip(lattice.tolist(), found.tolist(), strict=True):
            assert clipped == [round(Fraction(min(max(value, -cap), cap) * ONE, cap)) for value in row]
        assert np.abs(found).max() == ONE
    # From the table itself they would be others, which a compacted design does not have.
    assert not np.array_equal(as_array(Design(LAYOUTS[layout](X), 1.5).clipped(0.3).lattice), to_lattice(X, 0.45))


@pytest.mark.slow
def test_dense_designs_hold_half_of_what_the_table_takes(monkeypatch):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 100))

    def peak(work):
        design = Design(X, 1.0)
        tracemalloc.start()
        try:
            work(design)
            return tracemalloc.get_traced_memory()[1] / X.nbytes
        finally:
            tracemalloc.stop()

    def products(design):
        design.rmatvec(np.ones((4000, 3)), 1)
        design.matvec(np.ones(100))
        # The whole is let go where some of the columns follow.
        assert design.columns(np.arange(50)).rmatvec(np.ones(4000), 1).shape == (50,)

    monkeypatch.setattr("taciturn.data.design._CACHED_ENTRIES", 1 << 13)
    assert 0.5 <= peak(products) <= 0.62
    # The same measure notices doubles.
    assert peak(lambda design: design.lattice) >= 1.5
