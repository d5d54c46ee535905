"""The safe rule never zeroes a coefficient of the solution; without its factor it does."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from taciturn import FrankWolfeRegressor, ScreenedClassifier, ScreenedRegressor
from taciturn.core.errors import ParameterError
from taciturn.methods.frank_wolfe.run import column_norms, safe_rule_scores
from taciturn.published.screening import ScreeningRule

N_PROBLEMS, N, D = 200, 40, 12


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
def test_column_norms_are_exact_and_leave_null_records_out(layout):
    # More entries than a block holds, at the edge of the lattice, where 32-bit squares would overflow.
    rng = np.random.default_rng(0)
    X = rng.choice([-65536, 0, 12345, 65536], (30_000, 11)).astype(np.int32)
    present = rng.random(30_000) < 0.7
    squares = [sum(int(v) ** 2 for v in column) for column in X[present].T]
    assert max(squares) > 2**45
    np.testing.assert_array_equal(column_norms(layout(X), present), np.sqrt(np.array(squares, dtype=np.float64)))
    np.testing.assert_array_equal(column_norms(layout(X)), np.sqrt(np.square(X, dtype=np.float64).sum(axis=0)))


def problems(loss, seed=0):
    """200 random problems at once: features of different sizes in [-1, 1], a few true weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N_PROBLEMS, N, D)) * rng.uniform(0.3, 1.0, (N_PROBLEMS, 1, D))
    w = np.where(rng.random((N_PROBLEMS, D)) < 0.3, rng.standard_normal((N_PROBLEMS, D)) * 20.0, 0.0)
    signal = np.einsum("pnd,pd->pn", X, w) + rng.standard_normal((N_PROBLEMS, N))
    return X, (signal > 0).astype(float) if loss == "logistic" else signal


def gradients(loss, X, y, w):
    margins = np.einsum("pnd,pd->pn", X, w)
    residuals = expit(margins) - y if loss == "logistic" else margins - y
    return np.einsum("pnd,pn->pd", X, residuals)


def project(w, radius):
    """Onto the L1 ball, row by row (Duchi et al. 2008)."""
    sizes = -np.sort(-np.abs(w), axis=1)
    sums = np.cumsum(sizes, axis=1) - radius
    counts = np.arange(1, w.shape[1] + 1)
    last = (sizes * counts > sums).sum(axis=1) - 1
    threshold = np.maximum(sums[np.arange(len(w)), last] / (last + 1), 0.0)
    return np.sign(w) * np.maximum(np.abs(w) - threshold[:, None], 0.0)


def solve(loss, X, y, radius):
    """Accelerated projected gradients until the Wolfe gap of every problem is below 1e-8; also points on the way."""
    curvature = np.linalg.norm(X, ord=2, axis=(1, 2))[:, None] ** 2 * (0.25 if loss == "logistic" else 1.0)
    w = previous = np.zeros(X.shape[::2])
    momentum, way = np.ones((len(X), 1)), []
    for step in range(60_000):
        after = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = w + (momentum - 1) / after * (w - previous)
        previous, w = w, project(ahead - gradients(loss, X, y, ahead) / curvature, radius)
        # Start again where the last move turned round.
        uphill = ((ahead - w) * (w - previous)).sum(axis=1, keepdims=True) > 0
        momentum = np.where(uphill, 1.0, after)
        if step in (0, 3, 10, 30, 100, 300):
            way.append(w)
        if step % 100 == 99:
            g = gradients(loss, X, y, w)
            gap = (w * g).sum(axis=1) + radius * np.abs(g).max(axis=1)
            if gap.max() < 1e-8:
                return w, way
    raise AssertionError(f"gap {gap.max()}")


@pytest.mark.parametrize("radius", [0.5, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_coefficient_of_a_solution_is_screened(loss, radius):
    X, y = problems(loss)
    solution, way = solve(loss, X, y, radius)
    screened = zeros = 0
    for points in (*way, solution):
        for data, target, w, exact in zip(X, y, points, solution, strict=True):
            gone = safe_rule_scores(data, target, w, radius=radius, loss=loss) < 0
            # Strong convexity in the margins and the gap bound leave coefficients uncertain by far less than this.
            assert not np.any(np.abs(exact[gone]) > 1e-3)
            screened, zeros = screened + gone.sum(), zeros + np.count_nonzero(np.abs(exact) < 1e-3)
    # It is not a rule that never speaks: at the solution itself all zeros of most problems are recognised.
    at_solution = [
        np.array_equal(safe_rule_scores(*parts[:3], radius=radius, loss=loss) < 0, np.abs(parts[2]) < 1e-9)
        for parts in zip(X, y, solution, strict=True)
    ]
    inside = np.abs(solution).sum(axis=1) < radius * (1 - 1e-6)
    if radius <= 5.0 and not (loss == "logistic" and radius == 5.0):
        assert np.mean(at_solution) > 0.7
    assert screened < zeros or inside.all()


def test_the_printed_rule_screens_the_support_at_radius_5():
    X, y = problems("squared")
    solution, _ = solve("squared", X, y, 5.0)
    printed, wrong = ScreeningRule.for_loss("squared", 5.0, N), []
    for data, w, g in zip(X, solution, gradients("squared", X, y, solution), strict=True):
        scores = printed.scores(w, g / N, np.linalg.norm(data, axis=0), np.linalg.norm(data @ w))
        wrong.append(np.any(np.abs(w[scores < 0]) > 1e-3))
    assert np.mean(wrong) > 0.9


def test_sparse_and_dense_scores_agree_and_points_outside_are_refused():
    X, y = problems("squared")
    w = np.full(D, 0.05)
    dense = safe_rule_scores(X[0], y[0], w, radius=1.0)
    assert safe_rule_scores(sp.csr_array(X[0]), y[0], w, radius=1.0) == pytest.approx(dense, rel=1e-12)
    with pytest.raises(ParameterError, match="coef"):
        safe_rule_scores(X[0], y[0], w, radius=0.5)


@pytest.mark.parametrize("kind", [ScreenedRegressor, ScreenedClassifier])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_frank_wolfe_with_the_safe_rule_drops_columns_and_keeps_the_solution(kind, layout):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (500, 60))
    signal = X[:, :4] @ [0.6, -0.4, 0.3, 0.2]
    more = {"classes": (False, True)} if kind is ScreenedClassifier else {"loss": "squared"}
    y = signal > 0 if kind is ScreenedClassifier else np.clip(signal, -1, 1)
    radius = 3.0 if kind is ScreenedClassifier else 0.7
    common = {"epsilon": float("inf"), "radius": radius, "n_steps": 4000, "fit_intercept": False, **more}
    screened = kind(rule="adp", permanent=True, screen_at=20, **common).fit(layout(X), y)
    plain = kind(rule="adp", screen_at=4001, **common).fit(layout(X), y)
    assert np.ravel(screened.coef_) == pytest.approx(np.ravel(plain.coef_), abs=2e-3)
    solution = np.abs(np.ravel(plain.coef_)) > 0.01
    assert 2 <= solution.sum() <= 6
    assert np.array_equal(screened.support_, solution)
    assert screened.certificate_.status == "not private"
    assert screened.loss_curve_.size == 200
    assert screened.loss_curve_[-1] < screened.loss_curve_[0]
    assert not hasattr(kind(radius=radius, **more).fit(layout(X), y), "loss_curve_")
    if kind is ScreenedRegressor:
        twin = FrankWolfeRegressor(**common).fit(layout(X), y)
        assert np.array_equal(twin.coef_, plain.coef_)
