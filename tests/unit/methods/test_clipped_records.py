"""Clipped records, and descents on them, against plain numpy.

Integers exactly, the rest closely, whatever the layout, the order and the blocks.
"""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import taciturn.data.design as designs
import taciturn.methods.clipped_records as compiled
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.engines import Block
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods import clipped_records
from taciturn.methods import descent as threads
from taciturn.methods.clipped_records import ClippedRecords, Clipping, row_norms, squared_row_norms
from taciturn.methods.descent import Constraint, GradientDescent
from taciturn.methods.sums import KeptShares

N, D, WEIGHT = 40, 5, 90_001
GRAM_ROW_SQUARED = (1 << 26) - 3
ROW_SQUARED = (5 * ONE // 4) ** 2
LAYOUTS = {"dense": np.asarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}
KINDS = {
    "numbers": (HuberLoss(0.3), 1, 0.3),
    "two classes": (LogisticLoss(), 1, 1.0),
    "two classes, clipped": (LogisticLoss(), 1, 0.5),
    "three classes": (SoftmaxLoss(), 3, 1.0),
    "three classes, clipped": (SoftmaxLoss(), 3, 0.5),
}
ROOMS = [(centred, constant) for centred in (False, True) for constant in (0, ONE // 2)]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_room = pytest.mark.parametrize(("centred", "constant"), ROOMS)


def table(kind, seed=0):
    """Rows within the bound and beyond it, an empty one, a null record where there are classes."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((N, D)) < 0.6, rng.uniform(-1.2, 1.2, (N, D)), 0.0)
    X[:6] = rng.choice([-1.0, 1.0], (6, D))
    X[6] = 0.0
    if kind == "numbers":
        return X, rng.integers(-2 * ONE, 2 * ONE, N).astype(float)
    y = rng.integers(0, max(KINDS[kind][1], 2), N)
    y[2] = -1
    return X, y


def centre_of(centred):
    return np.array([ONE, -ONE, 1234, 0, -ONE // 3], dtype=float) if centred else None


def open_records(kind, X, y, centred=False, constant=0, layout="dense", row_squared=ROW_SQUARED, product_bound=None):
    loss, n_outputs, slope = KINDS[kind]
    design, centre = Design(LAYOUTS[layout](X), 1.0), centre_of(centred)
    clipping = Clipping(
        None, D, loss, n_outputs, row_squared, constant, WEIGHT, slope, centre, product_bound=product_bound
    )
    return ClippedRecords(clipping, design, y, squared_row_norms(design, centre))


def coefficients(kind, constant, seed=0):
    rng = np.random.default_rng(seed)
    shape = KINDS[kind][1], D + (constant > 0)
    thin = rng.normal(0, 2, shape)
    thin[:, 1] = 0.0
    return np.zeros(shape), rng.normal(0, 1, shape), thin, rng.normal(0, 40, shape)


def plain_rows(X, centred, constant):
    """Integer rows less the centre, the constant last, and the factors that clip them."""
    rows = np.rint(np.clip(X, -1, 1) * ONE) - (centre_of(True) if centred else 0.0)
    rows = np.column_stack((rows, np.full(len(X), constant))) if constant else rows
    norms = np.linalg.norm(rows, axis=1)
    return rows, np.minimum(1.0, math.sqrt(ROW_SQUARED) / np.maximum(norms, 1.0))


def derivatives(kind, margins, y):
    """Of the loss; null records have none."""
    _, n_outputs, slope = KINDS[kind]
    if kind == "numbers":
        return np.clip(margins - (y / ONE)[:, None], -slope, slope)
    if n_outputs == 1:
        p = 1 / (1 + np.exp(-np.clip(margins, -700, 700))) - y[:, None]
    else:
        p = np.exp(margins - margins.max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True) - np.eye(n_outputs)[y]
    p[y < 0] = 0.0
    return p


def plain_residuals(kind, margins, y):
    """Derivatives over their bound, and clipped to it."""
    _, n_outputs, slope = KINDS[kind]
    p = derivatives(kind, margins, y)
    if n_outputs == 1:
        return np.clip(p, -slope, slope) / slope
    return p / slope * np.minimum(1.0, 2 * slope / np.maximum(np.abs(p).sum(axis=1, keepdims=True), 1e-300))


def exact_product(weights, rows):
    """``weights' rows`` in integers of any size."""
    return weights.astype(np.int64).astype(object).T @ rows.astype(np.int64).astype(object)


@every_kind
@every_room
def test_margins_weights_and_sums_are_those_of_the_definition(kind, centred, constant):
    X, y = table(kind)
    records, (rows, factors) = open_records(kind, X, y, centred, constant), plain_rows(X, centred, constant)
    present = y >= 0 if kind != "numbers" else np.ones(N, dtype=bool)
    for w in coefficients(kind, constant):
        margins = records.margins(w)
        # Factors are rounded down to multiples of 1 / WEIGHT; the smallest is above a quarter.
        exact = (rows * factors[:, None]) @ w.T / ONE
        assert np.allclose(margins[present], exact[present], rtol=4.0 / WEIGHT, atol=1e-7)
        weights = records.weights(margins)
        expected = plain_residuals(kind, margins, y) * (WEIGHT * factors)[:, None]
        # Rounded once, after a factor that was rounded down.
        assert np.abs(weights - expected).max() <= 2.0 + WEIGHT * 2.0**-26
        sums = records.sums(w)
        assert sums.dtype == np.int64
        assert (sums == exact_product(weights, rows)).all()


@every_kind
@every_room
def test_integers_are_within_their_bounds(kind, centred, constant):
    X, y = table(kind)
    records, (rows, _) = open_records(kind, X, y, centred, constant), plain_rows(X, centred, constant)
    several, reached = KINDS[kind][1] > 1, 0.0
    for w in coefficients(kind, constant):
        for weights, row in zip(records.weights(records.margins(w)), rows, strict=True):
            square = sum(int(r) ** 2 for r in weights) * sum(int(x) ** 2 for x in row)
            limit = (2 if several else 1) * WEIGHT**2 * ROW_SQUARED
            assert square <= limit
            reached = max(reached, square / limit)
            if several:
                assert np.abs(weights).sum() <= 2 * WEIGHT
    assert reached > 0.99


PRODUCT = WEIGHT * ONE // 2


@every_kind
@every_room
def test_joint_clipping_leaves_rows_as_they_are_and_cuts_the_derivatives_of_long_ones(kind, centred, constant):
    X, y = table(kind)
    records = open_records(kind, X, y, centred, constant, product_bound=PRODUCT)
    rows, slope, present = plain_rows(X, centred, constant)[0], KINDS[kind][2], y >= 0
    norms, clipped = np.maximum(np.linalg.norm(rows, axis=1), 1.0), 0
    for w in coefficients(kind, constant):
        margins = records.margins(w)
        exact = rows @ w.T / ONE
        shown = present if kind != "numbers" else np.ones(N, dtype=bool)
        assert np.allclose(margins[shown], exact[shown], rtol=1e-6, atol=1e-7)
        weights, whole = records.weights(margins), derivatives(kind, margins, y) / slope
        lengths = np.maximum(np.linalg.norm(whole, axis=1), 1e-300)
        limits = np.minimum(PRODUCT / norms / WEIGHT, 1.0)
        expected = WEIGHT * whole * np.minimum(limits / lengths, 1.0)[:, None]
        # Cut to integers, after a bound that was rounded down.
        assert np.abs(weights - expected).max() <= 2.0 + WEIGHT * 2.0**-26
        clipped += np.count_nonzero(np.abs(weights - WEIGHT * whole).max(axis=1) > 0.01 * WEIGHT)
        assert (records.sums(w) == exact_product(weights, rows)).all()
    assert clipped


@pytest.mark.parametrize("constant", [0, ONE // 2])
def test_sums_of_rows_are_rounded_down_row_by_row(constant):
    X, y = table("two classes")
    bound = 2**18 + 1
    whole = open_records("two classes", X, y, False, constant).row_sums(bound)
    rows, factors = plain_rows(X, False, 0)
    norms = np.sqrt(np.square(rows).sum(axis=1) + constant**2)
    factors = np.minimum(1.0, math.sqrt(ROW_SQUARED) / np.maximum(norms, 1.0)) * (y >= 0)
    # Factors are multiples of 1 / WEIGHT, below what they stand for by less than that.
    assert np.abs(whole / bound - factors @ rows).max() <= N * ONE * 1.1 / WEIGHT
    terms = [open_records("two classes", X[[i]], y[[i]], False, constant).row_sums(bound) for i in range(N)]
    assert (sum(terms) == whole).all()
    for i, term in enumerate(terms):
        assert sum(int(t) ** 2 for t in term) <= bound**2 * ROW_SQUARED
        # As they are where they are short.
        assert factors[i] != 1.0 or (term == bound * rows[i]).all()
    assert not terms[2].any()


@every_kind
@every_room
def test_the_gram_matrix_is_that_of_clipped_rows_cut_to_integers(kind, centred, constant):
    X, y = table(kind)
    rows, factors = plain_rows(X, centred, constant)
    if kind != "numbers":
        factors = factors * (y >= 0)
    unit = math.sqrt(GRAM_ROW_SQUARED / ROW_SQUARED)
    clipped = rows * (unit * factors)[:, None]
    whole = open_records(kind, X, y, centred, constant).gram_matrix(GRAM_ROW_SQUARED)
    assert whole.dtype == np.int64
    # Every entry loses less than one and a bit, of rows of 2**13.
    assert np.abs(whole - clipped.T @ clipped).max() <= N * 2 * 1.2 * 2**13
    # Row by row these are products of integers, of a squared norm within the bound.
    one_by_one = [open_records(kind, X[[i]], y[[i]], centred, constant).gram_matrix(GRAM_ROW_SQUARED) for i in range(N)]
    assert (sum(one_by_one) == whole).all()
    for gram, row in zip(one_by_one, clipped, strict=True):
        root = np.sqrt(np.diag(gram)) * np.sign(row)
        assert np.array_equal(gram, np.outer(root, root))
        assert np.abs(root - row).max() < 1.2
        assert int(np.trace(gram)) <= GRAM_ROW_SQUARED
    assert max(int(np.trace(gram)) for gram in one_by_one) > 0.999 * GRAM_ROW_SQUARED


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "numbers"])
@every_room
def test_losses_are_those_of_the_definition(kind, centred, constant):
    X, y = table(kind)
    records = open_records(kind, X, y, centred, constant)
    for w in coefficients(kind, constant):
        margins = records.margins(w)
        if margins.shape[1] == 1:
            margins = np.column_stack((np.zeros(N), margins[:, 0]))
        top = margins.max(axis=1)
        expected = np.log(np.exp(margins - top[:, None]).sum(axis=1)) + top - margins[np.arange(N), y]
        expected[y < 0] = 0.0
        assert np.allclose(records.losses(w), expected, atol=1e-9)


@every_room
def test_numbers_lose_half_a_square_up_to_a_bound(centred, constant):
    X, y = table("numbers")
    records = open_records("numbers", X, y, centred, constant)
    for w in coefficients("numbers", constant):
        residuals = records.margins(w)[:, 0] - y / ONE
        assert np.allclose(records.losses(w), np.minimum(np.square(residuals / 0.3), 4.0) / 2)


def everything(records, w):
    """All that is made of records, one array after the other."""
    per_record = [records.margins(w), records.losses(w)[:, None], records.weights(records.margins(w))]
    return np.column_stack(per_record), [records.sums(w), records.row_sums(999), records.gram_matrix(GRAM_ROW_SQUARED)]


def assert_same(first, second):
    assert np.array_equal(first[0], second[0])
    assert all(np.array_equal(a, b) for a, b in zip(first[1], second[1], strict=True))


@every_kind
@every_room
@pytest.mark.parametrize("product_bound", [None, PRODUCT])
def test_layouts_orders_and_blocks_change_nothing(monkeypatch, kind, centred, constant, product_bound):
    X, y = table(kind)
    order, joint = np.random.default_rng(1).permutation(N), {"product_bound": product_bound}
    for w in coefficients(kind, constant)[1:]:
        plain = everything(open_records(kind, X, y, centred, constant, **joint), w)
        for layout in LAYOUTS:
            assert_same(plain, everything(open_records(kind, X, y, centred, constant, layout, **joint), w))
        shuffled = everything(open_records(kind, X[order], y[order], centred, constant, **joint), w)
        assert_same(plain, (shuffled[0][np.argsort(order)], shuffled[1]))
        with monkeypatch.context() as patch:
            patch.setattr(designs, "_CACHED_ENTRIES", 3 * D)
            patch.setattr(designs, "exact_block_rows", lambda bound: 7)
            patch.setattr(compiled, "exact_block_rows", lambda bound: 7)
            patch.setattr(clipped_records, "_BLOCK_ENTRIES", 3 * D)
            patch.setattr(threads, "n_threads", lambda: 3)
            patch.setattr(threads, "_LEAST_SHARE", 2 * D)
            for layout in LAYOUTS:
                assert_same(plain, everything(open_records(kind, X, y, centred, constant, layout, **joint), w))


def test_those_comparisons_can_fail():
    """Sums in floating point depend on the order, and sparse ones differ from dense ones."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 30)) < 0.5, rng.uniform(-1, 1, (500, 30)), 0.0)
    w, order = rng.normal(size=500), rng.permutation(500)
    assert not np.array_equal(X.T @ w, X[order].T @ w[order])
    assert not np.array_equal(X.T @ w, sp.csr_array(X).T @ w)


def test_weights_beyond_all_reason_give_zero_or_the_bound():
    for kind in KINDS:
        X, y = table(kind)
        for product_bound in (None, PRODUCT):
            records = open_records(kind, X, y, True, ONE, product_bound=product_bound)
            for size in (1e200, 1e307):
                weights = records.weights(records.margins(np.full((KINDS[kind][1], D + 1), size)))
                assert np.isfinite(weights).all()
                assert np.abs(weights).max() <= WEIGHT


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_known_of_rows(monkeypatch, layout):
    X, y = table("numbers")
    integers = np.rint(np.clip(X, -1, 1) * ONE)
    design, share = Design(LAYOUTS[layout](X), 1.0), 0.3
    lengths = np.linalg.norm(integers, axis=1)
    kept = (np.abs(integers) * np.minimum(np.abs(integers), math.floor(share * ONE))).sum(axis=1) / np.maximum(
        np.square(integers).sum(axis=1), 1.0
    )
    kept[lengths == 0.0] = 1.0
    for entries in (1 << 22, 3 * D):
        monkeypatch.setattr(designs, "_BLOCK_ENTRIES", entries)
        monkeypatch.setattr(designs, "_CACHED_ENTRIES", entries)
        centre = centre_of(True)
        assert np.array_equal(squared_row_norms(design), np.square(integers).sum(axis=1))
        assert np.array_equal(squared_row_norms(design, centre), np.square(integers - centre).sum(axis=1))
        norms = row_norms(Block(design, y), None, None, None, one_pass=True)
        assert np.array_equal(norms, np.square(integers).sum(axis=1))
        assert np.array_equal(KeptShares(HuberLoss(1.0), share).values(Block(design, y)), kept)
    assert sum(block.shape[0] for _, block in design.blocks()) == N


# ------------------------------------------------------------------ descents without noise


def descend(records, step, momentum=0.0, average=False, radius=None):
    """400 steps without noise and without anything else that is not asked for."""
    unit = step * records.clipping.derivative_bound / (ONE * records.clipping.weight_bound)
    constraint = Constraint(D, radius=radius)
    descent = GradientDescent(400, unit, None, 1.0, constraint, momentum, average)
    return descent.run(records.sums, np.zeros((1, D)), None)


def test_descents_without_noise_reach_the_minimum():
    X, y = table("numbers")
    records = open_records("numbers", X, np.rint(0.2 * y), row_squared=100 * ONE**2)
    integers = np.rint(np.clip(X, -1, 1) * ONE) / ONE
    step = 1.0 / np.linalg.eigvalsh(integers.T @ integers)[-1]
    for momentum in (0.0, 0.7):
        for average in (False, True):
            (end,) = descend(records, step=step, momentum=momentum, average=average)
            residuals = np.clip(integers @ end - np.rint(0.2 * y) / ONE, -0.3, 0.3)
            assert np.abs(integers.T @ residuals).max() < 1e-2
    assert np.linalg.norm(descend(records, step=step, average=False, radius=0.05)) == pytest.approx(0.05)
