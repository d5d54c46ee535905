"""Counts and amounts: maximum likelihood without noise and near it with noise, and intervals that cover."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from taciturn import ParameterError, SparseRegressor, private_score
from taciturn.core.validation import ONE
from taciturn.methods.inference.plan import _Tuning
from taciturn.methods.inference.run import _Estimation
from taciturn.methods.sparse.run import Descent

sm = pytest.importorskip("statsmodels.api")

N, D = 20_000, 6
WEIGHTS = np.array([1.0, -0.7, 0.5, 0.0, 0.0, 0.3])
BOUNDS = {"poisson": (0, 25), "gamma": (5, 15_000)}
POWERS = {"poisson": 1, "gamma": 2}
MOST_EXCESS = 0.006


def draw(loss, seed, n=N, *, dispersion=0.0, correlation=0.0, mean=None):
    """Rows of normal columns, and a target whose mean is their exponential."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 0.35, (n, D))
    for j in range(1, D):
        X[:, j] = correlation * X[:, j - 1] + math.sqrt(1.0 - correlation**2) * X[:, j]
    X = np.clip(X, -1.0, 1.0)
    means = (mean or (2.0 if loss == "poisson" else 500.0)) * np.exp(X @ WEIGHTS)
    if loss == "gamma":
        return X, np.clip(means * rng.exponential(size=n), *BOUNDS[loss])
    if dispersion:
        means = means * rng.gamma(1.0 / dispersion, dispersion, n)
    return X, np.minimum(rng.poisson(means), 60)


def on_lattice(X, y, high):
    """Cells as a fit reads them."""
    return np.rint(X * ONE) / ONE, np.rint(y / high * ONE) / ONE * high


def glm(loss, X, y):
    family = sm.families.Poisson() if loss == "poisson" else sm.families.Gamma(sm.families.links.Log())
    model = sm.GLM(y, sm.add_constant(X), family=family)
    return model.fit(cov_type="HC0", tol=1e-13, tol_criterion="params", maxiter=200)


def fit(loss, X, y, epsilon, **settings):
    settings = {"x_bound": 1.0, "y_bounds": BOUNDS[loss], "n_nonzero": "all", "random_state": 0} | settings
    return SparseRegressor(loss=loss, epsilon=epsilon, **settings).fit(X, y)


@pytest.mark.parametrize("loss", BOUNDS)
def test_without_noise_coefficients_and_errors_are_those_of_a_glm(loss, monkeypatch):
    X, y = draw(loss, 0, 3000)
    best = glm(loss, *on_lattice(X, y, BOUNDS[loss][1]))

    def missed():
        model = fit(loss, X, y, math.inf, inference=True)
        found = np.append(model.intercept_, model.coef_), np.append(model.intercept_std_error_, model.coef_std_error_)
        return [float(np.abs(a - b).max()) for a, b in zip(found, (best.params, best.bse), strict=True)]

    assert max(missed()) < 1e-6
    # One step from a constant is not the maximum.
    monkeypatch.setattr(_Tuning, "noiseless_steps", 1)
    assert max(missed()) > 1e-4


@pytest.mark.parametrize("loss", BOUNDS)
def test_with_weights_and_exposures_they_are_those_of_a_glm_too(loss):
    X, y = draw(loss, 1, 3000)
    rng = np.random.default_rng(2)
    weight, exposure = rng.uniform(0.0, 5.0, 3000), rng.uniform(0.05, 2.0, 3000)
    given, bounds = {"sample_weight": weight, "exposure": exposure}, {"weight_bound": 5.0, "exposure_bound": 2.0}
    means = exposure * np.exp(X @ WEIGHTS + math.log({"poisson": 1.6, "gamma": 500.0}[loss]))
    drawn = rng.poisson(means) if loss == "poisson" else means * rng.exponential(size=3000)
    y = np.clip(drawn, *BOUNDS[loss])
    rows, targets = on_lattice(X, y, BOUNDS[loss][1])
    family = sm.families.Poisson() if loss == "poisson" else sm.families.Gamma(sm.families.links.Log())
    model = sm.GLM(targets, sm.add_constant(rows), family=family, freq_weights=weight, offset=np.log(exposure))
    best = model.fit(tol=1e-13, tol_criterion="params", maxiter=200)
    scores, bread = model.score_obs(best.params, scale=1.0), np.linalg.inv(model.hessian(best.params, scale=1.0))
    errors = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    settings = {"x_bound": 1.0, "y_bounds": BOUNDS[loss], "n_nonzero": "all", "inference": True, "epsilon": math.inf}
    found = SparseRegressor(loss=loss, **bounds, **settings).fit(X, y, **given)
    assert np.abs(np.append(found.intercept_, found.coef_) - best.params).max() < 1e-6
    assert np.abs(np.append(found.intercept_std_error_, found.coef_std_error_) - errors).max() < 1e-6
    # Both are used.
    for name in given:
        without = {other: values for other, values in given.items() if other != name}
        other = SparseRegressor(loss=loss, **bounds, **settings).fit(X, y, **without)
        assert np.abs(np.append(other.intercept_, other.coef_) - best.params).max() > 1e-3


@pytest.mark.parametrize("loss", BOUNDS)
def test_predictors_without_noise_are_maximum_likelihood_too(loss):
    X, y = draw(loss, 1, 3000)
    best, model = glm(loss, *on_lattice(X, y, BOUNDS[loss][1])), fit(loss, X, y, math.inf)
    # Derivatives of amounts are whole numbers of a part of their bound, which is large for these.
    np.testing.assert_allclose(model.coef_, best.params[1:], atol=5e-4)
    np.testing.assert_allclose(model.predict(X), best.predict(sm.add_constant(X)), rtol=2e-3)
    explained = 1.0 - mean_tweedie_deviance(y, model.predict(X), power=POWERS[loss]) / mean_tweedie_deviance(
        y, np.full(len(y), y.mean()), power=POWERS[loss]
    )
    assert model.score(X, y) == pytest.approx(explained, rel=1e-12)


@pytest.mark.parametrize("loss", BOUNDS)
def test_fits_with_noise_lose_next_to_no_deviance(loss, monkeypatch):
    X, y = draw(loss, 2)
    other = draw(loss, 3)
    best, power = glm(loss, X, y), POWERS[loss]
    null = mean_tweedie_deviance(other[1], np.full(N, y.mean()), power=power)
    least = mean_tweedie_deviance(other[1], best.predict(sm.add_constant(other[0])), power=power)

    def excess():
        model = fit(loss, X, y, 5.0)
        return (mean_tweedie_deviance(other[1], model.predict(other[0]), power=power) - least) / null

    assert excess() < MOST_EXCESS
    # Derivatives clipped near their median move what is estimated.
    monkeypatch.setattr(Descent, "_largest_derivative", lambda descent, rule, size: 0.2 * size)
    monkeypatch.setattr("taciturn.methods.sparse.run.recalibration_share", lambda *facts: 0.0)
    assert excess() > MOST_EXCESS


def coverage(loss, epsilon, n_seeds, **how):
    """The shares of intervals that cover the truth: coefficient by coefficient, the intercept last."""
    mean = how.get("mean") or (2.0 if loss == "poisson" else 500.0)
    truth, hits = np.append(WEIGHTS, math.log(mean)), []
    for seed in range(n_seeds):
        X, y = draw(loss, 1000 + seed, **how)
        bounds = (0, 60) if loss == "poisson" else BOUNDS[loss]
        model = fit(loss, X, y, epsilon, inference=True, random_state=seed, y_bounds=bounds)
        ends = np.vstack((model.coef_interval_, model.intercept_interval_))
        known = ~np.isnan(ends[:, 0])
        hits.append(np.where(known, (ends[:, 0] <= truth) & (truth <= ends[:, 1]), np.nan))
    return np.nanmean(hits, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize(
    ("loss", "how"),
    [
        ("poisson", {}),
        ("poisson", {"correlation": 0.95}),
        ("poisson", {"dispersion": 1.0}),
        ("poisson", {"mean": 0.1}),
        ("gamma", {}),
    ],
    ids=["counts", "correlated", "overdispersed", "rare", "amounts"],
)
def test_intervals_cover(loss, how, epsilon):
    # A share of .95 of 150 falls below .86, and that of 1,050 below .915, with a probability under 1e-6.
    found = coverage(loss, epsilon, 150, **how)
    assert found.min() > 0.86
    assert found.mean() > 0.915


@pytest.mark.slow
def test_intervals_without_their_noise_do_not_cover(monkeypatch):
    # A budget at which the noise is the larger part of the errors.
    assert coverage("poisson", 0.5, 40).mean() > 0.9
    whole = _Estimation._estimate

    def careless(self, theta, step, span, scores, noise, *rest):
        return whole(self, theta, step, span, scores, type(noise)(0.0, 0.0, noise.scores), *rest)

    monkeypatch.setattr(_Estimation, "_estimate", careless)
    assert coverage("poisson", 0.5, 40).mean() < 0.8


def test_an_open_clip_is_taken_where_many_derivatives_would_be_clipped(monkeypatch):
    """Overdispersed counts, whose clipped derivatives would shorten the coefficients."""
    taken, whole = [], _Estimation._last_clip

    def seen(self, *given):
        taken.append(whole(self, *given)[0])
        return whole(self, *given)

    monkeypatch.setattr(_Estimation, "_last_clip", seen)
    X, y = draw("poisson", 0, dispersion=3.0)
    fit("poisson", X, y, 1.0, inference=True, y_bounds=(0, 60))
    X, y = draw("poisson", 0)
    fit("poisson", X, y, 1.0, inference=True, y_bounds=(0, 60))
    assert math.isinf(taken[0])
    assert math.isfinite(taken[1])


@pytest.mark.parametrize("loss", BOUNDS)
def test_a_private_score_has_the_deviance(loss):
    X, y = draw(loss, 4, 6000)
    model = fit(loss, X, y, 5.0)
    deviance = mean_tweedie_deviance(y, model.predict(X), power=POWERS[loss])
    exact = private_score(model, X, y, epsilon=math.inf, metric="all")
    assert exact["deviance"].value == pytest.approx(deviance, rel=0.01)
    assert exact["D2"].value == pytest.approx(model.score(X, y), abs=0.01)
    assert exact["calibration in the large"].value == pytest.approx((model.predict(X) - y).mean(), abs=0.01 * y.mean())
    told = [each for each in exact.calibration if each.records > 200]
    assert len(told) >= 3
    for each in told:
        inside = (model.predict(X) > each.low) & (model.predict(X) <= each.high)
        assert each.share == pytest.approx(y[inside].mean(), rel=0.02)
        assert each.records == np.count_nonzero(inside)
    noisy = private_score(model, X, y, epsilon=2.0, metric="all", random_state=0)
    assert noisy["D2"].lower <= exact["D2"].value <= noisy["D2"].upper
    assert noisy["deviance"].lower <= exact["deviance"].value <= noisy["deviance"].upper
    # The baseline is the deviance of the mean.
    null = mean_tweedie_deviance(y, np.full(len(y), y.mean()), power=POWERS[loss])
    assert exact["deviance"].baseline == pytest.approx(null, rel=0.01)


def test_counts_are_clipped_to_their_bounds_and_bounds_are_checked():
    X, y = draw("poisson", 5, 2000)
    odd = y.astype(float)
    odd[:3] = -4.0, 1e9, -0.0
    clean = np.clip(odd, 0, 25)
    np.testing.assert_array_equal(fit("poisson", X, odd, 5.0).coef_, fit("poisson", X, clean, 5.0).coef_)
    for loss, bounds in (("poisson", (-1, 5)), ("gamma", (0, 5)), ("gamma", (1e-9, 5))):
        with pytest.raises(ParameterError, match="y_bounds"):
            fit(loss, X, y, 1.0, y_bounds=bounds)
    with pytest.raises(ParameterError, match="residual_clip"):
        fit("poisson", X, y, 1.0, residual_clip=1.0)
