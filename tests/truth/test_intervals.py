"""Standard errors against statsmodels, and intervals against the population, with broken variants that are rejected."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import kstest
from scipy.stats import t as student

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.validation import ONE
from taciturn.methods.inference import run as runs
from taciturn.methods.inference.algebra import (
    NormalDesign,
    Prior,
    Span,
    Whitening,
    equal_information,
    noise_norm,
    shorten,
    tail_reaches,
)
from taciturn.methods.inference.whitened import ScoreWeighing, Weighing

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


@pytest.mark.parametrize("n_classes", [3, 4])
def test_without_noise_several_classes_are_the_fit_of_statsmodels(n_classes):
    rng = np.random.default_rng(n_classes)
    X = np.rint(rng.uniform(-1, 1, (3000, 4)) * 1024) / 1024
    margins = np.column_stack((X, np.ones(3000))) @ rng.normal(0, 0.8, (5, n_classes))
    shares = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    y = (shares.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    model = SparseClassifier(classes=tuple(range(n_classes)), inference=True, epsilon=INF, n_nonzero="all").fit(X, y)
    found = sm.MNLogit(y, np.column_stack((X, np.ones(3000)))).fit(disp=0, tol=1e-13, maxiter=100, cov_type="HC0")
    coefficients = np.column_stack((model.coef_, model.intercept_))
    np.testing.assert_array_equal(coefficients[0], 0.0)
    np.testing.assert_allclose(coefficients[1:], found.params.T, atol=1e-6)
    np.testing.assert_allclose(model.inference_.std_error, found.bse.T, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(model.coef_std_error_[1:], model.inference_.std_error[:, :-1])
    assert np.isnan(model.coef_std_error_[0]).all()
    # Errors of the inverse information are others.
    plain = sm.MNLogit(y, np.column_stack((X, np.ones(3000)))).fit(disp=0).bse
    assert np.abs(plain - found.bse).max() > 1e-4


@BOTH
@pytest.mark.parametrize("design", ["independent", "polynomial", "autoregressive"])
def test_much_budget_gives_the_errors_of_the_sandwich(task, design):
    """Six coefficients, 20,000 records: within two per cent."""
    n, rng = 20_000, np.random.default_rng(11)
    X = rng.uniform(-1, 1, (n, 5))
    if design == "polynomial":
        X[:, 1], X[:, 2] = X[:, 0] ** 2, X[:, 0] ** 3
    elif design == "autoregressive":
        for j in range(1, 5):
            X[:, j] = 0.95 * X[:, j - 1] + math.sqrt(1 - 0.95**2) * X[:, j]
    X = np.rint(np.clip(X, -1, 1) * ONE) / ONE
    signal = X @ [0.2, -0.15, 0.1, 0.0, 0.1]
    if task == "linear":
        y = np.rint(np.clip(signal + 0.12 * rng.standard_normal(n), -1, 1) * ONE) / ONE
    else:
        y = (rng.random(n) < expit(4 * signal - 0.3)).astype(int)
    model = make(task, epsilon=30.0, n_nonzero="all", random_state=2).fit(X, y)
    params, errors = reference(task, X, y)
    found = model.inference_.std_error[0]
    kept = slice(None) if task == "logistic" else slice(0, 5)
    np.testing.assert_allclose(found[kept], errors[kept], rtol=0.02)
    estimates = np.append(model.coef_.ravel(), model.intercept_)
    assert np.abs((estimates - params) / errors)[kept].max() < 0.5
    # Residuals are clipped, and nothing tells by how much that moves the intercept.
    assert np.isnan(found[-1]) == (task == "linear")


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
    """Coefficients and what intervals reach where nothing matters: what is true is zero."""
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
        found.append((model.coef_.ravel()[chosen], model.inference_.reach[0, :-1]))
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["linear", "logistic"])
def test_columns_that_other_records_chose_are_covered(task):
    coefficients, reach = null_fits(task, same_rows=False)
    assert np.isfinite(reach).mean() > 0.8
    assert 0.90 <= np.mean((np.abs(coefficients) <= reach)[np.isfinite(reach)]) <= 0.995
    # Selected on the same rows, they are those that happen to be large.
    coefficients, reach = null_fits(task, same_rows=True)
    assert np.mean((np.abs(coefficients) <= reach)[np.isfinite(reach)]) < 0.75


@cache
def fixed_fits(task):
    """Deviations from the truth, errors, sampling parts and degrees of fixed columns that have them, at a small budget.

    The second column does not matter.
    """
    found = []
    weights = np.array([0.3, 0.0, 0.2, -0.2])
    for seed in range(70):
        rng = np.random.default_rng([seed, 78])
        X = rng.uniform(-1, 1, (2500 if task == "linear" else 2000, 4))
        margins = X @ weights
        if task == "linear":
            y = np.clip(margins + 0.2 * rng.standard_normal(len(X)), -1, 1)
        else:
            y = (rng.random(len(X)) < expit(4 * margins)).astype(int)
        model = make(task, epsilon=0.7, n_nonzero="all", random_state=seed).fit(X, y)
        if model.inference_.reason is not None:
            continue
        deviations = model.coef_.ravel() - weights * (1 if task == "linear" else 4)
        errors = model.inference_
        found.append((deviations, *(each[0, :-1] for each in (errors.std_error, errors.sampling, errors.degrees))))
    return tuple(np.array(each) for each in zip(*found, strict=True))


def p_values(deviations, errors, degrees):
    """Of the coefficients that have errors."""
    known = np.isfinite(errors)
    return 2 * student.sf(np.abs(deviations / errors)[known], degrees[known])


@BOTH
def test_intervals_cover_with_the_noise_and_not_without(task):
    deviations, errors, sampling, degrees = fixed_fits(task)
    assert np.isfinite(errors).sum() >= 160
    assert 0.91 <= np.mean(p_values(deviations, errors, degrees) >= 0.05) <= 0.99
    assert np.mean(p_values(deviations, sampling, degrees) >= 0.05) < 0.85


@BOTH
def test_p_values_of_a_column_that_does_not_matter_are_uniform(task):
    deviations, errors, sampling, degrees = fixed_fits(task)
    second = (slice(None), 1)
    assert kstest(p_values(deviations[second], errors[second], degrees[second]), "uniform").pvalue > 0.01
    # Without the noise small values are too many, which more columns of the same law show.
    assert kstest(p_values(deviations, sampling, degrees), "uniform").pvalue < 1e-4
    assert kstest(p_values(deviations, errors, degrees), "uniform").pvalue > 0.01


# ------------------------------------------------------------------ weights, and what is left out


@cache
def weighted_fits(broken):
    """Deviations over errors of labels whose scores are bounded so tightly that most records weigh less than one."""
    truth, found = np.array([3.0, -2.0, 1.0]), []
    with pytest.MonkeyPatch.context() as patch:
        rooms = {"least_score_room": 0.4, "most_score_room": 0.4}
        patch.setattr(runs, "TUNING", replace(runs.TUNING, **rooms))
        BROKEN[broken](patch)
        for seed in range(16):
            rng = np.random.default_rng([seed, 81])
            X = np.clip(0.35 * rng.standard_t(3, (4000, 3)), -1, 1)
            y = (rng.random(4000) < expit(X @ truth + 0.5)).astype(int)
            model = make("logistic", epsilon=30.0, n_nonzero="all", random_state=seed).fit(X, y)
            found.append((model.coef_[0] - truth) / model.coef_std_error_)
    deviations = np.concatenate(found)
    return deviations[np.isfinite(deviations)]


def looking_at_labels(patch):
    """Weights from the scores of the labels that records have, in place of those of any label."""

    def weights(self, rows):
        seen = np.abs(self.model.derivatives(rows)[:, 0]) * rows.lengths
        large = self.model.traces(rows) * np.square(rows.lengths)
        found = 1.0 / np.maximum(rows.means(seen, self.score), 1.0)
        return found / np.maximum(rows.means(large, self.trace), 1.0) * (1 - 2.0**-20)

    patch.setattr(ScoreWeighing, "weights", weights)


def scores_without_weights(patch):
    """The middle of the sandwich from records that all count the same."""
    scores = runs._Estimation._scores
    patch.setattr(
        runs._Estimation, "_scores", lambda self, model, _, bound: scores(self, model, Weighing(), 10 * bound)
    )


def inverse_information(patch):
    """Errors of maximum likelihood: no sandwich."""
    errors_of = runs.errors_of

    def plain(matrix, shown, span, step, scores, noise):
        return errors_of(matrix, shown, span, step, np.linalg.inv(span.inverse), noise)

    patch.setattr(runs, "errors_of", plain)


BROKEN = {
    "nothing": lambda patch: None,
    "weights that look at labels": looking_at_labels,
    "scores without weights": scores_without_weights,
    "no sandwich": inverse_information,
}


def test_weighted_records_have_the_errors_of_their_weights():
    deviations = weighted_fits("nothing")
    assert deviations.size == 48
    assert 0.6 < np.mean(np.square(deviations)) < 1.5
    assert np.mean(np.abs(deviations) <= 1.96) >= 0.89


def test_weights_that_look_at_labels_move_the_estimate():
    assert np.mean(np.abs(weighted_fits("weights that look at labels")) <= 1.96) < 0.5


@pytest.mark.parametrize("broken", ["scores without weights", "no sandwich"])
def test_errors_without_weights_in_the_sandwich_are_too_large(broken):
    # The same fits and the same noise: without the fault the ratio is one. A tenth of the rows is cut.
    assert np.mean(np.square(weighted_fits(broken))) < 0.85 * np.mean(np.square(weighted_fits("nothing")))


def mapped_back(matrix, information, threshold):
    """What is left out as eigenvectors of the information matrix in whitened coordinates, mapped back."""
    values, vectors = np.linalg.eigh(information)
    n_left = int(np.count_nonzero(values <= threshold))
    left_out = np.linalg.qr(np.linalg.solve(matrix, vectors[:, :n_left]))[0]
    return Span(vectors[:, n_left:], values[n_left:], left_out)


def omitted_variable_bias(span_of, seed, width=6, stretch=30.0):
    """How far a coefficient moves that is well known, if one direction is left out that is nearly collinear.

    The records are infinitely many. Only the span is found in a matrix with noise, as clear as the least that is
    accepted.
    """
    rng = np.random.default_rng([seed, 82])
    null = np.zeros(width)
    null[:2] = math.sqrt(0.5), -math.sqrt(0.5)
    axes = np.linalg.qr(np.column_stack((null, rng.normal(size=(width, width - 1)))))[0]
    matrix = (axes * np.append(stretch, np.ones(width - 1))) @ axes.T
    information = (axes * np.append(0.3, np.ones(width - 1))) @ axes.T
    deviation = 1.0 / (runs.TUNING.least_clear * (noise_norm(1.0, width) + 1.0))
    noise = rng.normal(0, deviation, (width, width))
    noise = np.triu(noise, 1) / math.sqrt(2) + np.tril(noise.T, -1) / math.sqrt(2) + np.diag(np.diag(noise))
    span = span_of(matrix, information + noise, noise_norm(deviation, width) + deviation)
    truth = rng.choice([-1.0, 1.0], width)
    truth[1] = truth[0]
    theta = np.linalg.solve(matrix.T, truth)
    basis = span.basis
    found = basis @ np.linalg.solve(basis.T @ information @ basis, basis.T @ information @ theta)
    return np.abs(matrix.T @ found - truth)[2:].max() if span.n_left_out == 1 else math.nan


def test_what_is_left_out_does_not_leak_into_what_is_known():
    right, broken = (
        np.array([omitted_variable_bias(span_of, seed) for seed in range(100)]) for span_of in (Span.of, mapped_back)
    )
    assert min(np.isfinite(right).sum(), np.isfinite(broken).sum()) > 25
    assert np.nanmax(right) < 1e-6
    assert np.nanmedian(broken) > 1e-3
    assert np.nanmax(broken) > 0.02


# ------------------------------------------------------------------ what strains the approximation


def skewed_fits():
    """Deviations over errors of slopes where errors are lognormal and do not depend on the row; and the models."""
    weights, found, models = np.array([0.0, 0.2, -0.15]), [], []
    for seed in range(16):
        rng = np.random.default_rng([seed, 79])
        X = rng.uniform(-1, 1, (6000, 3))
        errors = 0.06 * (np.exp(rng.normal(0, 0.8, 6000)) - math.exp(0.32))
        model = make("linear", epsilon=1.0, n_nonzero="all", random_state=seed)
        model.fit(X, np.clip(X @ weights + errors, -1, 1))
        found.append(np.abs(model.coef_ - weights) / model.inference_.reach[0, :-1])
        models.append(model)
    return np.array(found), models


def test_slopes_are_covered_where_errors_are_skewed_and_the_intercept_has_no_interval():
    ratios, models = skewed_fits()
    assert np.isfinite(ratios).all()
    assert np.mean(ratios <= 1) >= 0.88
    for model in models:
        found = model.inference_
        assert found.reason is None
        assert found.estimable[0].tolist() == [True, True, True, False]
        assert np.isnan([found.std_error[0, -1], found.sampling[0, -1], found.privacy[0, -1]]).all()
        assert "The intercept has no interval, because a skewed tail" in " ".join(str(model.summary()).split())
    # An interval from the errors of its neighbours would leave the truth out: the tail that is cut moves it.
    shifts = np.array([abs(model.intercept_) / model.inference_.reach[0, 0] for model in models])
    assert np.mean(shifts > 1) > 0.8


@pytest.mark.slow
def test_labels_that_are_nearly_certain_are_covered(monkeypatch):
    weights = np.array([4.0, -3.0, 2.0])

    def deviations():
        found = []
        for seed in range(24):
            rng = np.random.default_rng([seed, 80])
            X = rng.uniform(-1, 1, (20_000, 3))
            y = (rng.random(20_000) < expit(X @ weights)).astype(int)
            model = make("logistic", epsilon=1.0, n_nonzero="all", random_state=seed).fit(X, y)
            found.append(np.abs(model.coef_[0] - weights) / model.inference_.reach[0, :-1])
        return np.array(found)

    covered = deviations()
    assert np.isfinite(covered).mean() >= 0.6
    assert np.mean(covered[np.isfinite(covered)] <= 1) >= 0.88
    # Without first steps the information is that of a start which is too short.
    monkeypatch.setattr(runs.NormalDesign, "solve", lambda design, theta, *given: theta)
    monkeypatch.setattr(runs, "TUNING", replace(runs.TUNING, longest_last_step=math.inf, longest_curved_step=math.inf))
    started = deviations()
    assert np.mean(started[np.isfinite(started)] <= 1) < 0.5


class TwiceWeighed(ScoreWeighing):
    """The product of what each bound asks for, where the tighter one is enough."""

    def weights(self, rows):
        of_scores = ScoreWeighing(self.model, self.score).weights(rows)
        return of_scores * ScoreWeighing(self.model, math.inf, self.trace).weights(rows)


def test_rare_categories_of_labels_have_intervals(monkeypatch):
    weights = np.array([0.7, -0.4, 0.0, 0.3, 0.6, 0.7, -0.4, 0.0, 0.3, 0.6])

    def fits():
        found = []
        for seed in range(12):
            rng = np.random.default_rng([seed, 90])
            level = rng.choice(9, 20_000, p=[0.14] * 5 + [0.13] * 2 + [0.03, 0.01])
            levels = (level[:, None] == np.arange(1, 9)).astype(float)
            X = np.column_stack((levels, np.clip(rng.standard_normal((20_000, 2)) / 3, -1, 1)))
            y = (rng.random(20_000) < expit(-0.3 + X @ weights)).astype(int)
            model = make("logistic", epsilon=1.0, n_nonzero="all", random_state=seed).fit(X, y)
            found.append(np.abs(model.coef_[0] - weights) / model.inference_.reach[0, :-1])
        return np.array(found)

    def complete(found):
        return np.mean(np.isfinite(found).all(axis=1))

    found = fits()
    assert complete(found) >= 0.9
    assert np.mean(found[np.isfinite(found)] <= 1) >= 0.9
    # Where cut rows are stretched further, weigh less by each of two bounds, and first steps follow noise, the rarest
    # category is lost.
    monkeypatch.setattr(runs, "ScoreWeighing", TwiceWeighed)
    monkeypatch.setattr(runs, "TUNING", replace(runs.TUNING, longest_stretch=math.inf, usual_log_odds=math.inf))
    assert complete(fits()) <= 0.6


def test_columns_with_a_long_tail_have_the_coefficients_of_the_population(monkeypatch):
    """The log-odds grow with the logarithm of a column, so that rows that weigh less are other rows."""

    def draw_tail(rng, n):
        x = np.exp(1.2 * rng.standard_normal(n))
        X = np.column_stack((np.clip(x / 30 - 1, -1, 1), np.clip(rng.standard_normal((n, 8)) / 3, -1, 1)))
        return X, expit(-2.2 + 0.6 * np.log1p(x) + 0.5 * X[:, 1])

    X, means = draw_tail(np.random.default_rng(91), 400_000)
    truth = sm.GLM(means, np.column_stack((X, np.ones(len(X)))), family=sm.families.Binomial()).fit().params

    def distances():
        """Of the coefficient of the tail, in half-widths of its interval."""
        found = []
        for seed in range(16):
            rng = np.random.default_rng([seed, 92])
            X, rates = draw_tail(rng, 30_000)
            y = (rng.random(len(X)) < rates).astype(int)
            model = make("logistic", epsilon=1.0, n_nonzero="all", random_state=seed).fit(X, y)
            found.append((model.coef_[0, 0] - truth[0]) / model.inference_.reach[0, 0])
        assert np.isfinite(found).mean() >= 0.9
        return np.array(found)[np.isfinite(found)]

    assert np.mean(np.abs(distances()) <= 1) >= 0.7
    # At full length the rows of the tail weigh less.
    monkeypatch.setattr(runs, "TUNING", replace(runs.TUNING, least_tail=1.0))
    assert np.mean(np.abs(distances()) <= 1) <= 0.2


def test_few_rows_whose_labels_are_open_keep_their_weight(monkeypatch):
    """Numbers matter more in the one rare category whose labels are open, and in a long tail of one group."""

    def draw(rng, n):
        logs, group = rng.standard_normal(n), rng.random(n) < 0.5
        level = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        levels = (level[:, None] == np.arange(1, 3)).astype(float)
        numbers = np.clip(rng.standard_normal((n, 2)) / 3, -1, 1)
        X = np.column_stack((np.clip(np.exp(1.2 * logs) / 30 - 1, -1, 1), numbers, group, levels))
        margins = 0.35 * logs * (1 + group) + numbers @ [0.5, -0.5] - 0.8 * group + levels @ [0.4, -1.2] - 2
        return X, expit(margins)

    X, means = draw(np.random.default_rng(93), 400_000)
    truth = sm.GLM(means, np.column_stack((X, np.ones(len(X)))), family=sm.families.Binomial()).fit().params

    def distances():
        """Of the coefficient of the tail, in half-widths of its interval."""
        found = []
        for seed in range(16):
            rng = np.random.default_rng([seed, 94])
            X, rates = draw(rng, 30_000)
            y = (rng.random(len(X)) < rates).astype(int)
            model = make("logistic", epsilon=1.0, n_nonzero="all", random_state=seed).fit(X, y)
            found.append((model.coef_[0, 0] - truth[0]) / model.inference_.reach[0, 0])
        assert np.isfinite(found).mean() >= 0.9
        return np.abs(found)[np.isfinite(found)]

    found = distances()
    assert np.mean(found <= 1) >= 0.8
    # Where lengths stay as they are, these rows weigh less.
    monkeypatch.setattr(runs, "TUNING", replace(runs.TUNING, least_equal=1.0, most_equal=1.0))
    broken = distances()
    assert np.mean(broken <= 1) <= 0.75
    assert np.mean(broken) >= 1.3 * np.mean(found)


def test_directions_of_equal_information_are_told_from_noise():
    gram = np.diag([900.0, 1000.0, 1100.0, 200.0])
    information = 0.1 * gram @ np.diag([4.0, 1.0, 0.5, 1.0])
    factors = np.diag(equal_information(information, 0.0, gram, 0.4, 2.0))
    # The median is that of the second and the last.
    np.testing.assert_allclose(factors, [0.5, 1.0, math.sqrt(2.0), 1.0])
    np.testing.assert_allclose(np.diag(equal_information(information, 0.0, gram, 0.7, 1.2)), [0.7, 1.0, 1.2, 1.0])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned = equal_information(turn @ information @ turn.T, 0.0, turn @ gram @ turn.T, 0.4, 2.0)
    np.testing.assert_allclose(turned, turn @ np.diag(factors) @ turn.T, atol=1e-9)
    # What noise hides counts as large as noise, and is not shortened.
    hidden = np.diag(equal_information(np.diag([360.0, 100.0, 60.0, -5.0]), 20.0, gram, 0.4, 2.0))
    assert hidden[0] < 0.5
    assert 1.0 <= hidden[2] < math.sqrt(2.0)
    assert hidden[3] == 1.0


def test_a_tail_is_told_from_a_rare_category_and_from_noise():
    levels, noise = (3.0, 4.5, 6.75, 10.125), 0.001
    tail, rare, none = [0.020, 0.011, 0.006, 0.002], [0.0, 0.0, 0.018, 0.0], [0.0014, -0.0011, 0.0012, -0.0008]
    inner = [0.030, 0.0, 0.0, 0.0]
    found = tail_reaches(np.column_stack((tail, rare, none, inner)), noise, levels, 0.005, 0.25)
    assert 6.75 <= found[0] <= 10.125
    np.testing.assert_array_equal(found[1:], 0.0)
    # Shares that noise explains reach less far.
    assert tail_reaches(np.array(tail)[:, None], 0.002, levels, 0.005, 0.25)[0] < found[0]
    # Without what tells them apart a rare category is taken for a tail.
    assert tail_reaches(np.array(rare)[:, None], noise, levels, 0.005, -1.0)[0] > 0.0


def test_shortened_directions_have_no_more_than_their_length():
    rng = np.random.default_rng(93)
    directions = rng.standard_normal((5, 5))
    # The last two are nearly the same.
    directions[4] = -directions[3] + 0.05 * directions[4]
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    factors = np.array([1.0, 1.0, 1.0, 0.5, 0.45])
    change = shorten(directions, factors)
    lengths = np.linalg.norm(directions @ change, axis=1)
    np.testing.assert_allclose(lengths[4], 0.45)
    assert lengths[3] <= 0.5 + 1e-12
    # What is at right angles to both stays, and a direction that others shorten is not shortened again.
    across = np.linalg.qr(directions[3:].T, mode="complete")[0][:, 2:]
    np.testing.assert_allclose(change @ across, across, atol=1e-12)
    assert lengths[3] > 0.4


def test_directions_of_cut_rows_are_not_stretched_further():
    def length(longest):
        """Of rows in 1 % of the records, cut at 3, after noise hid their direction in the first of three matrices."""
        n, width, whitening = 10_000.0, 6, Whitening.start(6)
        for _ in range(3):
            row = whitening.matrix[0, 0]
            moments = np.full(width, n)
            moments[0] = 0.01 * n * min(row, 3.0) ** 2
            whitening = whitening.refine(np.diag(moments), 32.0, 1.25, longest, 2.0)
        return float(whitening.matrix[0, 0])

    assert noise_norm(32.0, 6) > 100.0
    assert length(2.0) <= 16.0
    assert length(math.inf) >= 30.0


def test_first_steps_of_labels_weigh_their_noise():
    design = NormalDesign(np.diag([400.0, 100.0]), None, 1000.0)
    start, goal = np.zeros((1, 2)), np.array([[0.5, -0.8]])
    gradient = design.score(start) - design.score(goal)
    prior = Prior(np.array([[0.1, 0.2]]), np.eye(2))
    np.testing.assert_allclose(design.solve(start, gradient, 0.0, prior), goal, atol=1e-3)
    np.testing.assert_allclose(design.solve(start, gradient, 1e9, prior), prior.centre, atol=1e-6)
    # A direction of less information stays nearer to the prior.
    away = np.abs((design.solve(start, gradient, 60.0, prior) - prior.centre) / (goal - prior.centre))[0]
    assert away[1] < away[0] < 1.0


def test_hubers_threshold_is_kept():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = np.clip(-0.5 + 0.2 * X[:, 0] + 0.1 * rng.exponential(1.0, 20_000), -1, 1)
    settings = {"epsilon": 3.0, "columns": [0, 1], "random_state": 0}
    model = make("linear", loss="huber", residual_clip=0.08, **settings).fit(X, y)
    expected = fixed_point(y - 0.2 * X[:, 0], 0.08)
    np.testing.assert_array_less(np.abs(model.coef_ - [0.2, 0.0]), 1.5 * model.inference_.reach[0, :-1])
    assert abs(model.intercept_ - expected) < 0.003
    # The mean is elsewhere, and so is an estimate with a wider clip.
    assert abs((y - 0.2 * X[:, 0]).mean() - expected) > 0.01
    assert make("linear", **settings).fit(X, y).intercept_ - expected > 0.007
    assert model.inference_.estimable[0].tolist() == [True, True, False]


def test_a_last_step_beyond_hubers_threshold_leaves_no_standard_errors():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = np.clip(-0.5 + 0.2 * X[:, 0] + 0.1 * rng.exponential(1.0, 20_000), -1, 1)
    settings = {"epsilon": 3.0, "columns": [0, 1], "random_state": 0}
    model = make("linear", loss="huber", residual_clip=0.02, **settings).fit(X, y)
    assert not model.inference_.estimable.any()
    assert "last step" in model.inference_.reason
    # With them the interval would miss by far.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "TUNING", replace(runs.TUNING, longest_bent_step=INF))
        broken = make("linear", loss="huber", residual_clip=0.02, **settings).fit(X, y)
    assert abs(broken.coef_[0] - 0.2) > 3 * broken.coef_std_error_[0]


def test_without_noise_hubers_loss_is_the_fit_of_statsmodels():
    X, y = draw("linear", 6, 3000, d=8)
    y = np.rint(np.clip(y + 0.1 * np.random.default_rng(6).standard_t(2, 3000), -1, 1) * 4096) / 4096
    model = make("linear", loss="huber", residual_clip=0.1, epsilon=INF, n_nonzero="all").fit(X, y)
    rows = np.column_stack((X, np.ones(3000)))
    # With a scale of one the threshold is that of the loss.
    found = sm.RLM(y, rows, M=sm.robust.norms.HuberT(0.1))
    weights = np.ones(3000)
    for _ in range(200):
        params = np.linalg.lstsq(rows * np.sqrt(weights)[:, None], y * np.sqrt(weights), rcond=None)[0]
        weights = np.asarray(found.M.weights(y - rows @ params))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), params, atol=1e-6)
    scores = np.clip(y - rows @ params, -0.1, 0.1)[:, None] * rows
    bread = np.linalg.inv(rows.T @ (rows * (np.abs(y - rows @ params) <= 0.1)[:, None]))
    errors = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
    np.testing.assert_allclose(model.inference_.std_error[0], errors, rtol=1e-3)


def fixed_point(y, clip):
    """Huber's estimate of a location, by bisection of the sum of clipped residuals."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(y - middle, -clip, clip).sum() > 0 else (low, middle)
    return low
