"""Clipped records, and descents on them, against plain numpy.

Integers exactly, the rest closely, whatever the layout, the order and the blocks; and how much noise a descent gathers.
"""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import taciturn.data.design as designs
import taciturn.fitting.clipped_records as solver
from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.lattice import ONE
from taciturn.data.design import Design
from taciturn.fitting.clipped_records import (
    GRAM_ROW_SQUARED,
    ClippedRecords,
    Clipping,
    largest_eigenvalue,
    row_norms,
    squared_row_norms,
)
from taciturn.fitting.gradient_descent import (
    Constraint,
    GradientDescent,
    noise_amplification,
)
from taciturn.fitting.sums import KeptShares
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.sources import Block

N, D, WEIGHT = 40, 5, 90_001
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


def open_records(kind, X, y, centred=False, constant=0, layout="dense", weight=WEIGHT, row_squared=ROW_SQUARED):
    loss, n_outputs, slope = KINDS[kind]
    design, centre = Design(LAYOUTS[layout](X), 1.0), centre_of(centred)
    clipping = Clipping(None, D, loss, n_outputs, row_squared, constant, weight, slope, centre)
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


def plain_residuals(kind, margins, y):
    """Derivatives over their bound; null records have none."""
    _, n_outputs, slope = KINDS[kind]
    if kind == "numbers":
        return np.clip(margins - (y / ONE)[:, None], -slope, slope) / slope
    if n_outputs == 1:
        p = np.clip(1 / (1 + np.exp(-np.clip(margins, -700, 700))) - y[:, None], -slope, slope)
    else:
        p = np.exp(margins - margins.max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True) - np.eye(n_outputs)[y]
        p *= np.minimum(1.0, 2 * slope / np.maximum(np.abs(p).sum(axis=1, keepdims=True), 1e-300))
    p[y < 0] = 0.0
    return p / slope


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
def test_the_largest_eigenvalue_is_that_of_clipped_rows(kind, centred, constant):
    X, y = table(kind)
    rows, factors = plain_rows(X, centred, constant)
    if kind != "numbers":
        factors = factors * (y >= 0)
    unit = math.sqrt(GRAM_ROW_SQUARED / ROW_SQUARED)
    clipped = rows * (unit * factors)[:, None]
    found = largest_eigenvalue(open_records(kind, X, y, centred, constant).gram_matrix())
    # Every entry loses less than one and a bit, of rows of 2**13.
    assert found == pytest.approx(np.linalg.eigvalsh(clipped.T @ clipped)[-1], rel=2 * 1.2 * math.sqrt(D + 1) / 2**12)
    # One short row: the squares of its integers, with no other rounding at all.
    short = 0.5 * centre_of(True)[None] / ONE
    (row,), _ = plain_rows(short, centred, constant)
    alone = largest_eigenvalue(open_records(kind, short, y[[0]], centred, constant).gram_matrix())
    assert alone == sum(int(entry * unit) ** 2 for entry in row)
    one = open_records(kind, X[[0]], y[[0]], centred, constant).gram_matrix()
    assert largest_eigenvalue(one) <= GRAM_ROW_SQUARED


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
    return np.column_stack(per_record), [records.sums(w), records.row_sums(999), records.gram_matrix()]


def assert_same(first, second):
    assert np.array_equal(first[0], second[0])
    assert all(np.array_equal(a, b) for a, b in zip(first[1], second[1], strict=True))


@every_kind
@every_room
def test_layouts_orders_and_blocks_change_nothing(monkeypatch, kind, centred, constant):
    X, y = table(kind)
    order = np.random.default_rng(1).permutation(N)
    for w in coefficients(kind, constant)[1:]:
        plain = everything(open_records(kind, X, y, centred, constant), w)
        for layout in LAYOUTS:
            assert_same(plain, everything(open_records(kind, X, y, centred, constant, layout), w))
        shuffled = everything(open_records(kind, X[order], y[order], centred, constant), w)
        assert_same(plain, (shuffled[0][np.argsort(order)], shuffled[1]))
        with monkeypatch.context() as patch:
            patch.setattr(solver, "_BLOCK_ENTRIES", 3 * D)
            patch.setattr(designs, "exact_block_rows", lambda bound: 7)
            for layout in LAYOUTS:
                assert_same(plain, everything(open_records(kind, X, y, centred, constant, layout), w))


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
        records = open_records(kind, X, y, True, ONE)
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
        monkeypatch.setattr(solver, "_BLOCK_ENTRIES", entries)
        centre = centre_of(True)
        assert np.array_equal(squared_row_norms(design), np.square(integers).sum(axis=1))
        assert np.array_equal(squared_row_norms(design, centre), np.square(integers - centre).sum(axis=1))
        norms = row_norms(Block(design, y), None, None, None, one_pass=True)
        assert np.array_equal(norms, np.square(integers).sum(axis=1))
        assert np.array_equal(KeptShares(HuberLoss(1.0), share).values(Block(design, y)), kept)
    assert sum(block.shape[0] for _, block in design.blocks()) == N


# ------------------------------------------------------------------ how much noise a descent gathers


def gathered(curvature, n_steps, momentum, average):
    """The deviation of a coefficient in a direction of this curvature times the step, for noise of one per step."""
    iterates = np.zeros((n_steps, n_steps))
    for s in range(n_steps):
        w = v = 0.0
        for t in range(n_steps):
            v = momentum * v - curvature * w + (t == s)
            w += v
            iterates[s, t] = w
    kept = np.arange(n_steps) >= (n_steps - 1) / 2 if average else np.arange(n_steps) == n_steps - 1
    return np.linalg.norm(iterates[:, kept].mean(axis=1))


@pytest.mark.parametrize("n_steps", [1, 2, 3, 10, 31])
@pytest.mark.parametrize("average", [False, True])
def test_no_direction_gathers_more_noise_than_the_flat_one(n_steps, average):
    for momentum in (0.0, 0.5, 0.7):
        limit = noise_amplification(n_steps, momentum, average)
        found = [gathered(h, n_steps, momentum, average) for h in (0.0, 1e-3, 0.03, 0.2, 0.5, 0.9, 1.0)]
        assert max(found) <= limit * (1 + 1e-12)
        assert max(found) >= (1.0 if momentum == 0.0 else 0.3) * limit * (1 - 1e-12)
    if n_steps == 31:
        # What one would say who takes all directions to be as steep as the steepest.
        assert noise_amplification(n_steps, 0.0, average) > 3 * gathered(1.0, n_steps, 0.0, average)


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


def spread(model, X, y, n_seeds=150):
    """Coefficients and their stated deviations, one row per noise seed."""
    models = [clone(model).set_params(random_state=seed).fit(X, y) for seed in range(n_seeds)]
    return np.array([m.coef_.ravel() for m in models]), np.array([m.coef_std_.ravel() for m in models])


def numbers(d=4, flat=False):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, d))
    y = np.clip(0.5 * X[:, 0] - 0.3 * X[:, 1] + 0.1 * rng.normal(size=400), -1, 1)
    if flat:
        X[:, 1] = 0.999 * X[:, 0] + 0.001 * X[:, 1]
    return X, y


@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes", "chosen columns"])
def test_deviations_are_bounded_by_what_is_stated(kind):
    X, y = numbers(8 if kind == "chosen columns" else 4)
    model = SparseRegressor(n_nonzero=4, row_bound=1.2, residual_clip=0.3)
    if kind == "chosen columns":
        model.set_params(n_nonzero=2, epsilon=2.0)
    if "classes" in kind:
        n_classes = 2 if kind == "two classes" else 3
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
        model = SparseClassifier(n_nonzero=4, row_bound=1.2, classes=range(n_classes))
    coefficients, stated = spread(model, X, y)
    chosen = (coefficients != 0.0).all(axis=0)
    assert np.flatnonzero(chosen).tolist() == ([0, 1] if kind == "chosen columns" else list(range(chosen.size)))
    deviations = coefficients[:, chosen].std(axis=0, ddof=1)
    typical = np.median(stated[:, chosen], axis=0)
    assert (deviations < typical).all()
    assert (deviations > typical / 200).all()
    assert not stated[:, ~chosen].any()


def test_flat_directions_are_covered_where_equal_curvature_would_not_cover_them():
    X, y = numbers(flat=True)
    model = SparseRegressor(n_nonzero=4, row_bound=1.2, residual_clip=0.3, epsilon=8.0)
    coefficients, stated = spread(model, X, y)
    deviations = coefficients.std(axis=0, ddof=1)
    assert (deviations < stated.min(axis=0)).all()
    # Rows of norm K, the intercept's column included, curve every direction by n K**2 / 5 if all are alike; noise of
    # deviation s then moves an average of T steps by s (2 / T)**(1/2) over that.
    gradient, bound = clone(model).fit(X, y).certificate_.events[-1], 1.2
    isotropic = gradient.scale * 0.3 * bound * math.sqrt(2.0 / gradient.count) / (len(y) * bound**2 / 5.0)
    assert (deviations[:2] > 5.0 * isotropic).all()


def test_weak_signals_do_not_make_deviations_smaller_than_they_are():
    X, _ = numbers(12)
    model = SparseRegressor(n_nonzero=12, row_bound=2.0, residual_clip=0.3, fit_intercept=False)
    coefficients, stated = spread(model, X, 0.02 * X[:, 0], n_seeds=60)
    assert (stated > coefficients.std(axis=0, ddof=1)).all()
