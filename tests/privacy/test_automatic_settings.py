"""The papers' sets with nothing given but bounds and budget: no model worse than a constant, and the right columns.

What "auto" was before stands beside it, so that the bars tell the two apart. Twelve seeds in the slow suite.
"""

import numpy as np
import pytest

from taciturn import (
    FrankWolfeRegressor,
    HardThresholdRegressor,
    ScreenedRegressor,
    SparsifiedRegressor,
)
from taciturn.accounting import best_bound
from taciturn.datasets import make_dpsis_linear, make_ight_linear, make_screening_linear
from taciturn.metrics import support_f1

BALL = [FrankWolfeRegressor, SparsifiedRegressor, ScreenedRegressor]
SEEDS = pytest.mark.parametrize("seeds", [2, pytest.param(12, marks=pytest.mark.slow)])
HALF = {0.0: 6.0, 0.5: 10.0}


def screening(seed, correlation):
    """The screening papers' set with its weights at random places and in random order: X, y, coefficients."""
    X, _, block = make_screening_linear(4000, correlation=correlation, random_state=seed)
    rng = np.random.default_rng((seed, 77))
    coef = np.zeros(block.size)
    coef[rng.choice(block.size, 70, replace=False)] = rng.permutation(block[block != 0.0])
    return X, X @ coef, coef


def measured(model, X, y, coef, n):
    """Squared error over the variance on rows beyond the first n, and F1 of the columns, of a model fitted to those."""
    fitted = model.fit(X[:n], y[:n])
    target = np.clip(y[n:], *model.y_bounds_)
    return np.mean((fitted.predict(X[n:]) - target) ** 2) / target.var(), support_f1(coef != 0.0, fitted.support_)


def mean_of(make, seeds, correlation):
    """Mean error and F1 over seeds on the scattered screening set."""
    half = HALF[correlation]
    found = [
        measured(make(y_bounds=(-half, half), random_state=seed), *screening(seed, correlation), 3000)
        for seed in range(seeds)
    ]
    return np.mean(found, axis=0)


@SEEDS
@pytest.mark.parametrize("kind", BALL)
def test_no_ball_is_worse_than_a_constant(kind, seeds):
    given = {"n_nonzero": 70} if kind is SparsifiedRegressor else {}
    for correlation, half in HALF.items():
        error, _ = mean_of(lambda **facts: kind(**given, **facts), seeds, correlation)
        assert error <= 1.0
        # Residuals up to the half-width of the range, and a ball of ten of them.
        before, _ = mean_of(lambda half=half, **facts: kind(residual_clip=half, **given, **facts), 2, correlation)
        assert before > 2.0


@SEEDS
@pytest.mark.parametrize("correlation", HALF)
def test_screening_finds_scattered_columns(correlation, seeds):
    error, score = mean_of(lambda **facts: ScreenedRegressor(epsilon=5.0, **facts), seeds, correlation)
    assert score >= 0.80
    assert error <= 0.45
    clip = HALF[correlation]
    _, before = mean_of(lambda **facts: ScreenedRegressor(epsilon=5.0, residual_clip=clip, **facts), 2, correlation)
    assert before < 0.5


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.95), (0.5, 0.85)])
def test_pursuit_finds_scattered_columns(correlation, least, seeds):
    def make(**given):
        return HardThresholdRegressor(n_nonzero=70, **given)

    error, score = mean_of(make, seeds, correlation)
    assert score >= least
    assert error <= 0.25
    error, score = mean_of(lambda **facts: make(epsilon=5.0, **facts), seeds, correlation)
    assert score >= 0.99
    assert error <= 0.01
    _, before = mean_of(lambda **facts: make(mechanism="gaussian", **facts), 2, correlation)
    assert before < 0.7


@pytest.mark.slow
def test_small_sets_are_no_worse_than_a_constant():
    for kind in (*BALL, HardThresholdRegressor):
        given = {} if kind in (FrankWolfeRegressor, ScreenedRegressor) else {"n_nonzero": 5}
        found = [
            measured(kind(epsilon=epsilon, random_state=seed, **given), *make_dpsis_linear(200, random_state=seed), 100)
            for epsilon in (0.5, 1.0)
            for seed in range(4)
        ]
        assert np.mean(found, axis=0)[0] <= 1.05
    facts = {"x_bound": 2.0, "y_bounds": (-4.0, 4.0)}
    errors = {"auto": [], "gaussian": []}
    for seed in range(3):
        for mechanism, found in errors.items():
            model = HardThresholdRegressor(mechanism=mechanism, random_state=seed, **facts)
            found.append(measured(model, *make_ight_linear(2000, random_state=seed), 1000)[0])
    assert np.mean(errors["auto"]) <= 0.2
    assert np.mean(errors["gaussian"]) > 1.0


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("kind", [*BALL, HardThresholdRegressor])
def test_medians_are_paid_for(kind, relation):
    X, y, _ = screening(0, 0.0)
    model = kind(relation=relation, n_public=3000, y_bounds=(-6.0, 6.0)).fit(X[:3000], y[:3000])
    certificate = model.certificate_
    medians = [release for release in certificate.events if release.what.startswith("the median")]
    assert "the median of the target" in [release.what for release in medians]
    assert all(release.noise == "Gumbel" and release.scale > 1.0 for release in medians)
    assert certificate.public["residual_clip"] == "auto"
    assert best_bound(certificate.event, 1e-6, ordered=certificate.ordered).epsilon <= 1.0
    given = kind(relation=relation, n_public=3000, y_bounds=(-6.0, 6.0), residual_clip=0.5).fit(X[:3000], y[:3000])
    assert all("target" not in release.what for release in given.certificate_.events)


@pytest.mark.parametrize("kind", BALL)
def test_pure_budgets_pay_for_medians_too(kind):
    X, y, _ = screening(0, 0.0)
    certificate = kind(delta=0.0, y_bounds=(-6.0, 6.0)).fit(X[:3000], y[:3000]).certificate_
    assert (certificate.delta, certificate.bound) == (0.0, "pure")
    spent = [release.count * release.event.epsilon for release in certificate.events]
    assert sum(spent) == pytest.approx(1.0, rel=1e-6)
    # A hundredth each at this number of records, or a few.
    assert 0.005 < spent[0] < 0.1


@pytest.mark.parametrize("kind", BALL)
def test_the_middle_of_a_target_far_from_that_of_its_range_is_found(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (6000, 20))
    y = 800.0 + 5.0 * X[:, 3] - 4.0 * X[:, 8] + rng.normal(0.0, 1.0, 6000)
    model = kind(y_bounds=(0.0, 1000.0), random_state=0).fit(X, y)
    assert abs(model.predict(X).mean() - 800.0) < 1.0
    assert model.score(X, y) > 0.7
