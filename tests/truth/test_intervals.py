"""Standard errors against statsmodels, and intervals against the population, with broken variants that are rejected."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import kstest, norm

from taciturn import SparseClassifier, SparseRegressor
from taciturn.methods.inference import run as inference_run
from taciturn.methods.inference import run as runs

INF = float("inf")
BOTH = pytest.mark.parametrize("task", ["linear", "logistic"])


def draw(task, seed, n, d=12, weights=(0.4, -0.3, 0.2)):
    """Records on the lattice, so that nothing is rounded: three columns matter."""
    rng = np.random.default_rng([seed, n, d])
    X = np.rint(rng.uniform(-1, 1, (n, d)) * 1024) / 1024
    margins = X[:, [1, 4, 7]] @ np.array(weights)
    if task == "linear":
        return X, np.rint(np.clip(margins + 0.15 * rng.standard_normal(n), -1, 1) * 4096) / 4096
    return X, (rng.random(n) < expit(4 * margins)).astype(int)


def make(task, **parameters):
    if task == "linear":
        return SparseRegressor(inference=True, **parameters)
    return SparseClassifier(inference=True, classes=(0, 1), **parameters)


def with_halves(monkeypatch, model, X, y):
    """The fitted model, and the records of the half that estimates."""
    seen = []

    def spy(*arguments, original=runs._halves):
        halves = original(*arguments)
        seen.append(halves[1].records)
        return halves

    monkeypatch.setattr(runs, "_halves", spy)
    model.fit(X, y)
    return model, (seen[0] if seen else None)


def reference(task, X, y):
    """The fit of statsmodels with sandwich errors: coefficients and standard errors, the constant last."""
    rows = np.column_stack((X, np.ones(len(X))))
    if task == "linear":
        found = sm.OLS(y, rows).fit(cov_type="HC0")
    else:
        found = sm.Logit(y, rows).fit(disp=0, tol=1e-12, maxiter=100, cov_type="HC0")
    return found.params, found.bse


# ------------------------------------------------------------------ without noise


@BOTH
@pytest.mark.parametrize("fixed", [False, True])
def test_without_noise_it_is_the_fit_of_statsmodels(monkeypatch, task, fixed):
    X, y = draw(task, 0, 3000)
    model = make(task, epsilon=INF, n_nonzero=3, random_state=0, columns=[1, 4, 7] if fixed else None)
    model, half = with_halves(monkeypatch, model, X, y)
    columns = np.flatnonzero(model.support_)
    assert columns.tolist() == [1, 4, 7]
    rows = X if fixed else X[half.slots]
    targets = y if fixed else y[half.slots]
    assert fixed or len(rows) == 1500
    params, errors = reference(task, rows[:, columns], targets)
    np.testing.assert_allclose(np.append(model.coef_.ravel()[columns], model.intercept_), params, atol=1e-6)
    np.testing.assert_allclose(model.inference_.std_error[0], errors, rtol=0, atol=1e-6)
    # Another half would not agree.
    if not fixed:
        others = np.setdiff1d(np.arange(len(X)), half.slots)
        assert np.abs(reference(task, X[others][:, columns], y[others])[0] - params).max() > 1e-3


@BOTH
def test_errors_of_constant_variance_are_not_the_sandwich(task):
    rng = np.random.default_rng(5)
    X, y = draw("linear", 5, 4000)
    if task == "linear":
        y = np.clip(0.3 * X[:, 1] + 0.5 * np.abs(X[:, 1]) * rng.standard_normal(4000), -1, 1)
    else:
        y = (rng.random(4000) < np.where(X[:, 1] ** 2 > 0.5, 0.8, 0.2)).astype(int)
    model = make(task, epsilon=INF, columns=[1]).fit(X, y)
    rows = np.column_stack((X[:, 1], np.ones(4000)))
    plain = (sm.OLS(y, rows).fit() if task == "linear" else sm.Logit(y, rows).fit(disp=0)).bse[0]
    robust = reference(task, X[:, [1]], y)[1][0]
    assert model.coef_std_error_[1] == pytest.approx(robust, rel=1e-4)
    if task == "linear":
        assert abs(plain / robust - 1) > 0.2


@BOTH
def test_much_budget_gives_the_intervals_of_the_half_without_privacy(monkeypatch, task):
    X, y = draw(task, 1, 20_000)
    model, half = with_halves(monkeypatch, make(task, epsilon=30.0, n_nonzero=3, random_state=1), X, y)
    columns = np.flatnonzero(model.support_)
    assert columns.tolist() == [1, 4, 7]
    params, errors = reference(task, X[half.slots][:, columns], y[half.slots])
    np.testing.assert_allclose(model.coef_std_error_[columns], errors[:-1], rtol=0.02)
    assert np.abs((model.coef_.ravel()[columns] - params[:-1]) / errors[:-1]).max() < 0.5


# ------------------------------------------------------------------ coverage, with power


@cache
def null_fits(task, same_rows):
    """Coefficients, standard errors and their sampling parts where nothing matters: what is true is zero."""
    found = []
    for seed in range(24):
        rng = np.random.default_rng([seed, 77])
        X = rng.uniform(-1, 1, (2000, 40))
        y = np.clip(0.2 * rng.standard_normal(2000), -1, 1) if task == "linear" else rng.integers(0, 2, 2000)
        with pytest.MonkeyPatch.context() as patch:
            if same_rows:
                patch.setattr(runs, "_halves", lambda plan, source, stream: (source, source))
            model = make(task, epsilon=5.0, n_nonzero=4, random_state=seed).fit(X, y)
        chosen = model.inference_.columns
        found.append(
            (model.coef_.ravel()[chosen], model.inference_.std_error[0, :-1], model.inference_.sampling[0, :-1])
        )
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["linear", "logistic"])
def test_columns_that_other_records_chose_are_covered(task):
    coefficients, errors, _ = null_fits(task, same_rows=False)
    z = coefficients / errors
    assert 0.90 <= np.mean(np.abs(z) <= 1.96) <= 0.995
    # Selected on the same rows, they are those that happen to be large.
    coefficients, errors, _ = null_fits(task, same_rows=True)
    assert np.mean(np.abs(coefficients / errors) <= 1.96) < 0.75


@cache
def fixed_fits(task):
    """Deviations from the truth, standard errors and sampling parts of fixed columns, at a small budget.

    The second column does not matter.
    """
    found = []
    for seed in range(70):
        rng = np.random.default_rng([seed, 78])
        X = rng.uniform(-1, 1, (2500 if task == "linear" else 3500, 4))
        margins = X @ [0.3, 0.0, 0.2, -0.2]
        if task == "linear":
            y = np.clip(margins + 0.2 * rng.standard_normal(len(X)), -1, 1)
        else:
            y = (rng.random(len(X)) < expit(4 * margins)).astype(int)
        model = make(task, epsilon=0.7 if task == "linear" else 1.0, n_nonzero="all", random_state=seed).fit(X, y)
        if model.inference_.reason is not None:
            continue
        truth = np.array([0.3, 0.0, 0.2, -0.2]) * (1 if task == "linear" else 4)
        deviations = model.coef_.ravel() - truth
        found.append((deviations, model.inference_.std_error[0, :-1], model.inference_.sampling[0, :-1]))
    return tuple(np.array(each) for each in zip(*found, strict=True))


@BOTH
def test_intervals_cover_with_the_noise_and_not_without(task):
    deviations, errors, sampling = fixed_fits(task)
    assert len(deviations) >= 60
    assert 0.91 <= np.mean(np.abs(deviations) <= 1.96 * errors) <= 0.99
    assert np.mean(np.abs(deviations) <= 1.96 * sampling) < 0.88


@BOTH
def test_p_values_of_a_column_that_does_not_matter_are_uniform(task):
    deviations, errors, sampling = fixed_fits(task)
    assert kstest(2 * norm.sf(np.abs(deviations[:, 1] / errors[:, 1])), "uniform").pvalue > 0.01
    # Without the noise small values are too many, which more columns of the same law show.
    assert kstest(2 * norm.sf(np.abs(deviations / sampling).ravel()), "uniform").pvalue < 1e-3
    assert kstest(2 * norm.sf(np.abs(deviations / errors).ravel()), "uniform").pvalue > 0.01


# ------------------------------------------------------------------ what strains the approximation


def test_skewed_errors_that_grow_with_the_mean_are_covered(monkeypatch):
    def deviations():
        found = []
        for seed in range(12):
            rng = np.random.default_rng([seed, 79])
            X = rng.uniform(-1, 1, (20_000, 2))
            y = np.clip(0.06 * np.exp(0.5 * X[:, 0] + rng.normal(0, 0.8, 20_000)), 0, 1)
            model = make("linear", epsilon=1.0, y_bounds=(0, 1), columns=[0, 1], random_state=seed).fit(X, y)
            truth = np.array([0.0422, 0.0, 0.0859])
            found.append((np.append(model.coef_, model.intercept_) - truth) / model.inference_.std_error[0])
        return np.array(found)

    # The truth by three million records, whose error is a hundredth of the standard errors.
    rng = np.random.default_rng(999)
    x = rng.uniform(-1, 1, 3_000_000)
    slope, constant = np.polyfit(x, np.clip(0.06 * np.exp(0.5 * x + rng.normal(0, 0.8, x.size)), 0, 1), 1)
    assert (slope, constant) == pytest.approx((0.0422, 0.0859), abs=2e-4)
    assert np.mean(np.abs(deviations()) <= 1.96) >= 0.85
    # A clip near the quantile leaves a bias that more records do not cure.
    monkeypatch.setattr(runs, "TUNING", replace(runs.TUNING, most_room=1.0))
    assert np.mean(np.abs(deviations())[:, [0, 2]] <= 1.96) < 0.5


def test_tails_that_are_long_for_the_budget_leave_no_standard_errors():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (5000, 8))
    skewed = np.clip(0.04 * np.exp(0.5 * X[:, 0] + rng.normal(0, 1.0, 5000)), 0, 1)
    model = make("linear", epsilon=1.0, y_bounds=(0, 1), n_nonzero="all", random_state=0).fit(X, skewed)
    assert model.inference_.reason.startswith("residuals have tails that are long for this budget")
    assert np.isnan(model.coef_std_error_).all()
    # The logarithm has none, at the same budget.
    logarithm = np.clip(np.log(skewed), -8, 0)
    model = make("linear", epsilon=1.0, y_bounds=(-8, 0), n_nonzero="all", random_state=0).fit(X, logarithm)
    assert model.inference_.reason is None


@pytest.mark.slow
def test_labels_that_are_nearly_certain_are_covered(monkeypatch):
    weights = np.array([6.0, -4.0, 2.0])

    def deviations():
        found = []
        for seed in range(24):
            rng = np.random.default_rng([seed, 80])
            X = rng.uniform(-1, 1, (20_000, 3))
            y = (rng.random(20_000) < expit(X @ weights)).astype(int)
            model = make("logistic", epsilon=1.0, n_nonzero="all", random_state=seed).fit(X, y)
            if model.inference_.reason is None:
                found.append((model.coef_[0] - weights) / model.coef_std_error_)
        return np.array(found)

    covered = deviations()
    assert len(covered) >= 16
    assert np.mean(np.abs(covered) <= 1.96) >= 0.88
    # Without a first step the Hessian is that of a start which is too short or too long.
    monkeypatch.setattr(inference_run._Step, "_approach", lambda step: step._information(0.12) and step._gradient(0.13))
    assert np.mean(np.abs(deviations()) <= 1.96) < np.mean(np.abs(covered) <= 1.96) - 0.04


def test_hubers_threshold_is_kept_where_no_column_is_chosen():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (20_000, 5))
    y = np.clip(-0.5 + 0.1 * rng.exponential(1.0, 20_000), -1, 1)
    model = make("linear", epsilon=3.0, n_nonzero="auto", loss="huber", residual_clip=0.02, random_state=0).fit(X, y)
    assert not model.support_.any()
    expected = fixed_point(y, 0.02)
    assert abs(model.intercept_ - expected) < 4 * model.inference_.std_error[0, -1]
    assert abs(y.mean() - expected) > 10 * model.inference_.std_error[0, -1]


def fixed_point(y, clip):
    """Huber's estimate of a location, by bisection of the sum of clipped residuals."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(y - middle, -clip, clip).sum() > 0 else (low, middle)
    return low
