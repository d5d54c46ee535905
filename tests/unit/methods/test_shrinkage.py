"""The law of noise in weights, and weights that are shrunk by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn import SparseRegressor
from taciturn.core.validation import FloatArray
from taciturn.methods.descent import LinearDescent, WeightNoise, propagate
from taciturn.methods.sparse.plan import TUNING
from taciturn.methods.sparse.run import posterior_means

STEPS = (0.3, 0.3, 0.25, 0.2, 0.2, 0.2, 0.2)
SCALES, CURVATURES = np.array([1.0, 0.5, 0.25]), np.array([0.0, 1.5, 4.0])
N_DRAWS = 20_000


def simulated(momentum: float, deviation: float, start: float) -> FloatArray:
    """Means of the second halves of linear descents from a random start, one row per draw."""
    rng = np.random.default_rng(0)
    current = start * rng.standard_normal((N_DRAWS, SCALES.size))
    velocity, iterates = np.zeros_like(current), []
    for step in STEPS:
        gradient = CURVATURES * current + deviation * rng.standard_normal(current.shape)
        velocity = momentum * velocity - step * SCALES * gradient
        current = current + velocity
        iterates.append(current)
    return np.mean(iterates[len(STEPS) // 2 :], axis=0)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_law_is_that_of_simulated_descents(momentum: float) -> None:
    before = WeightNoise(np.full(3, 0.25), None)
    law = LinearDescent(SCALES, CURVATURES).noise(STEPS, momentum, 2.0, before)
    variances = simulated(momentum, 2.0, 0.5).var(axis=0)
    # The relative error of a variance of normal numbers is about sqrt(2 / N_DRAWS) = .01.
    assert law.variances == pytest.approx(variances, rel=0.05)


def test_law_without_momentum_is_found_out() -> None:
    wrong = LinearDescent(SCALES, CURVATURES).noise(STEPS, 0.0, 2.0, None)
    assert np.all(np.abs(wrong.variances / simulated(0.6, 2.0, 0.0).var(axis=0) - 1.0) > 0.2)


def test_without_curvature_all_of_the_start_is_kept() -> None:
    kept, added = propagate(STEPS, 0.0, np.ones(1), np.zeros(1))
    assert kept == pytest.approx(1.0)
    assert 0.0 < float(added[0]) < float(np.sum(np.square(STEPS)))


def test_deviations_of_weights_follow_directions() -> None:
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    law = WeightNoise(np.array([1.0, 4.0]), turn)
    assert law.deviations(2) == pytest.approx(np.sqrt(np.diag(turn @ np.diag([1.0, 4.0]) @ turn.T)))
    assert law.deviations(1).shape == (1,)
    assert WeightNoise(np.array([9.0]), None).deviations(4) == pytest.approx(3.0)


def sparse_values(rng: np.random.Generator) -> FloatArray:
    truth = np.zeros((1, 400))
    truth[0, :20] = 8.0 * rng.standard_normal(20)
    return truth


def test_sparse_truth_is_estimated_better() -> None:
    rng = np.random.default_rng(1)
    truth = sparse_values(rng)
    noisy = truth + rng.standard_normal(truth.shape)
    error = np.sum(np.square(posterior_means(noisy, 1.0) - truth))
    assert error < 0.3 * np.sum(np.square(noisy - truth))
    # A level of noise that is far too low leaves the noise where it is.
    assert np.sum(np.square(posterior_means(noisy, 0.05) - truth)) > 3.0 * error


def test_dense_truth_is_hardly_shrunk() -> None:
    rng = np.random.default_rng(2)
    noisy = 10.0 * rng.standard_normal((2, 200))
    assert posterior_means(noisy, 1.0) == pytest.approx(noisy, rel=0.2, abs=0.5)


def test_without_noise_nothing_is_shrunk() -> None:
    values = sparse_values(np.random.default_rng(3))
    assert posterior_means(values, 1e-9) == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_means_are_odd_and_monotone() -> None:
    values = np.linspace(-6.0, 6.0, 201)[None, :]
    means = posterior_means(values, 1.0)
    assert means == pytest.approx(-means[:, ::-1])
    assert np.all(np.diff(means[0]) > 0.0)
    assert np.all(np.abs(means) <= np.abs(values))


def test_many_values_are_shrunk_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in bins or each by itself: the same means but for a thousandth of the noise."""
    rng = np.random.default_rng(4)
    values = np.concatenate((rng.standard_normal(6000), 8.0 * rng.standard_normal(300)))[None, :]
    binned = posterior_means(values, 1.0)
    monkeypatch.setattr("taciturn.methods.sparse.run.TUNING", replace(TUNING, most_unbinned=10_000))
    exact = posterior_means(values, 1.0)
    assert np.abs(binned - exact).max() < 1e-3
    monkeypatch.setattr("taciturn.methods.sparse.run.TUNING", replace(TUNING, prior_bins=16))
    assert np.abs(posterior_means(values, 1.0) - exact).max() > 1e-2


def fitted(n_rows: int, n_features: int) -> tuple[SparseRegressor, FloatArray]:
    """A fit of all columns, of which three matter, and the true weights."""
    rng = np.random.default_rng(4)
    X, truth = rng.uniform(-1.0, 1.0, (n_rows, n_features)), np.zeros(n_features)
    truth[:3] = 0.4, -0.3, 0.2
    y = np.clip(X @ truth + 0.1 * rng.standard_normal(n_rows), -1.0, 1.0)
    return SparseRegressor(epsilon=1.0, n_nonzero="all", random_state=0).fit(X, y), truth


def comparisons(model: SparseRegressor) -> int:
    return sum("degrees of shrinkage" in release.what for release in model.certificate_.events)


def test_a_fit_with_few_true_columns_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    model, truth = fitted(10_000, 200)
    assert comparisons(model) == 1
    monkeypatch.setattr("taciturn.methods.sparse.run.shrinkage_share", lambda *_: 0.0)
    plain, _ = fitted(10_000, 200)
    assert comparisons(plain) == 0
    assert np.sum(np.square(model.coef_ - truth)) < 0.5 * np.sum(np.square(plain.coef_ - truth))


@pytest.mark.parametrize(("n_rows", "n_features"), [(500, 200), (5000, 5)])
def test_small_tables_pay_for_no_comparison(n_rows: int, n_features: int) -> None:
    assert comparisons(fitted(n_rows, n_features)[0]) == 0
