"""What hard thresholding promises beyond the contract of every class."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression

from taciturn.accounting import epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.events import GaussianEvent
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier, HardThresholdRegressor

ALL = [HardThresholdRegressor, HardThresholdClassifier]
INF = float("inf")


def data(kind=None, n=6000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = 0.5 * X[:, 2] - 0.4 * X[:, 7]
    return X, (signal > 0).astype(int) if kind is HardThresholdClassifier else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("mechanism", ["pursuit", "gaussian", "peeling"])
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, relation, mechanism):
    X, y = data(kind)
    model = kind(n_nonzero=2, relation=relation, mechanism=mechanism, n_public=6000, random_state=1).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert model.score(X, y) > 0.9
    certificate = model.certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-6)
    assert (certificate.relation, certificate.arithmetic) == (relation, "exact")
    gradients = [release for release in certificate.events if release.what.startswith("a gradient")]
    assert sum(release.count for release in gradients) == model.n_iter_
    assert gradients[-1].count == certificate.public["n_steps"]
    words = {"pursuit": "up to 4", "gaussian": "13", "peeling": "3"}[mechanism]
    assert gradients[-1].what.startswith(f"a gradient with {words}")
    assert epsilon_of(certificate.event, 1e-6) <= 1.0
    assert certificate.public["records"] == 6000


@pytest.mark.parametrize("mechanism", ["gaussian", "peeling"])
def test_what_is_given_costs_nothing(mechanism):
    X, y = data()
    given = {"row_bound": 2.0, "residual_clip": 0.3, "step_size": 1.0}
    names = {"row_bound": "median row norm", "residual_clip": "magnitude of the target", "step_size": "curvature"}
    model = HardThresholdRegressor(n_nonzero=2, n_steps=10, mechanism=mechanism)
    scales = {}
    for left_out in (None, *given):
        settings = {name: value for name, value in given.items() if name != left_out}
        certificate = clone(model).set_params(**settings).fit(X, y).certificate_
        paid = [release.what for release in certificate.events[: -1 if mechanism == "gaussian" else -2]]
        assert len(paid) == (left_out is not None)
        assert left_out is None or names[left_out] in paid[0]
        scales[left_out] = certificate.events[-1].scale
    assert all(scales[None] < scale < 1.03 * scales[None] for left_out, scale in scales.items() if left_out)
    if mechanism == "gaussian":
        # T Gaussian steps are sqrt(T) / m - GDP, and the budget is spent to the last digit.
        from dp_accounting import gaussian_mechanism

        exact = gaussian_mechanism.get_sigma_gaussian(1.0, 1e-6) * np.sqrt(10)
        assert scales[None] == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_units_of_the_features_are_those_of_the_user(kind):
    X, y = data(kind)
    for step, radius in (("auto", None), (0.8, 0.5)):
        bounds = {"row_bound": 2.0, "random_state": 3, "coef_bound": radius, "step_size": step}
        unit = kind(**bounds).fit(X, y)
        bounds["step_size"] = step if step == "auto" else step / 1000**2
        bounds |= {"row_bound": 2000.0, "x_bound": 1000.0, "coef_bound": None if radius is None else radius / 1000}
        grams = kind(**bounds).fit(1000 * X, y)
        assert np.allclose(grams.coef_ * 1000, unit.coef_)
        assert np.allclose(grams.intercept_, unit.intercept_)


@pytest.mark.parametrize("kind", ALL)
def test_the_ball_holds_and_averages_are_sparse(kind):
    X, y = data(kind)
    for average in (False, True):
        model = kind(n_nonzero=3, coef_bound=0.2, average=average, random_state=0).fit(X, y)
        assert 0.15 < np.linalg.norm(model.coef_) <= 0.2 * (1 + 1e-12)
        assert model.support_.sum() == 3


def test_averages_have_less_noise():
    X, y = data(n=1000)
    model = HardThresholdRegressor(n_nonzero=12, n_steps=20, step_size=2.0, row_bound=2.0, residual_clip=0.2)
    errors = {}
    for average in (False, True):
        scores = [clone(model).set_params(average=average, random_state=s).fit(X, y).score(X, y) for s in range(8)]
        errors[average] = 1 - np.mean(scores)
    assert errors[True] < 0.7 * errors[False]


def test_intercepts_are_found():
    X, y = data(n=20_000)
    model = HardThresholdRegressor(n_nonzero=2, y_bounds=(-2, 2), random_state=0).fit(X, 0.7 + y)
    assert model.intercept_ == pytest.approx(0.7, abs=0.05)
    labels = (X[:, 2] > -0.5).astype(int)
    classifier = HardThresholdClassifier(n_nonzero=1, random_state=0).fit(X, labels)
    assert classifier.score(X, labels) > 0.93
    without = HardThresholdClassifier(n_nonzero=1, fit_intercept=False, random_state=0).fit(X, labels)
    assert without.intercept_ == 0.0
    assert without.score(X, labels) < 0.8


@pytest.mark.parametrize("mechanism", ["gaussian", "peeling"])
@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1, 2), ("a", "b", "c", "d")])
def test_any_number_of_classes_is_learned(labels, mechanism):
    X, _ = data(n=12_000)
    cuts = np.quantile(X[:, 5], np.linspace(0, 1, len(labels) + 1))[1:-1]
    y = np.array(labels)[np.digitize(X[:, 5], cuts)]
    model = HardThresholdClassifier(classes=labels, n_nonzero=1, mechanism=mechanism, random_state=0).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [5]
    assert model.score(X, y) > 1.5 / len(labels)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_records_with_another_label_are_null_records(n_labels):
    X, _ = data(n=500)
    y = np.digitize(X[:, 3], np.linspace(-1, 1, n_labels + 1)[1:-1])
    spoiled = y.copy()
    spoiled[:100] = 99
    rest = X.copy()
    rest[:100] = 0.0
    fixed = {"row_bound": 2.0, "step_size": 0.5, "n_steps": 5, "random_state": 0, "fit_intercept": False}
    model = HardThresholdClassifier(classes=range(n_labels), **fixed)
    assert np.array_equal(model.fit(X, spoiled).coef_, clone(model).fit(rest, spoiled).coef_)
    assert not np.array_equal(model.coef_, clone(model).fit(X, y).coef_)
    private = HardThresholdClassifier(classes=range(n_labels), random_state=0)
    moved = X.copy()
    moved[:100] *= 0.01
    assert np.array_equal(private.fit(X, spoiled).coef_, clone(private).fit(moved, spoiled).coef_)


def test_the_order_of_records_does_not_matter():
    X, y = data(n=3000)
    order = np.random.default_rng(0).permutation(3000)
    models = [HardThresholdRegressor(random_state=0).fit(X[rows], y[rows]) for rows in (np.arange(3000), order)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize(("parameter", "value"), [("row_bound", 1e-3), ("mechanism", "laplace"), ("mechanism", None)])
def test_bad_parameters_are_refused_in_one_sentence(parameter, value):
    model = HardThresholdRegressor(**{parameter: value})
    with pytest.raises(ParameterError, match=f"^{parameter}="):
        model.fit(*data(n=50))
    # Refused before the data were read.
    assert not hasattr(model, "n_features_in_")


def test_the_steps_follow_from_public_facts():
    counts = {}
    for n, epsilon in ((300, 1.0), (3000, 1.0), (3000, 5.0)):
        X, y = data(n=n, d=300)
        model = HardThresholdRegressor(mechanism="gaussian", epsilon=epsilon, delta=1e-5)
        counts[n, epsilon] = model.fit(X, y).n_iter_
    # 4 sqrt(n mu / d) with mu from dp-accounting: the noise of one release is 1 / mu.
    from dp_accounting import gaussian_mechanism

    for (n, epsilon), count in counts.items():
        mu = 1 / gaussian_mechanism.get_sigma_gaussian(epsilon, 1e-5)
        assert count == round(min(max(4 * np.sqrt(n * mu / 301), 4), 20))
    X, y = data(n=50)
    assert HardThresholdRegressor(epsilon=INF).fit(X, y).n_iter_ == 500


def test_noiseless_regression_is_least_squares_on_its_support():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 40))
    y = np.clip(X[:, :3] @ [0.3, -0.3, 0.2] + 0.1 + rng.normal(0, 0.05, 300), -1, 1)
    model = HardThresholdRegressor(epsilon=INF, n_nonzero=3).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [0, 1, 2]
    reference = LinearRegression().fit(X[:, :3], y)
    assert np.allclose(model.coef_[:3], reference.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=1e-4)
    assert all(not isinstance(release.event, GaussianEvent) for release in model.certificate_.events)


def test_noiseless_regression_keeps_a_given_clip():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (400, 4))
    y = 0.4 * X[:, 0] + np.where(rng.random(400) < 0.2, 0.5, 0.0)
    clipped = HardThresholdRegressor(epsilon=INF, residual_clip=0.02, n_steps=4000).fit(X, y)
    # Huber's estimator with a fixed threshold; scikit-learn's scales with sigma, whose estimate drops out at alpha = 0.
    reference = HuberRegressor(alpha=0.0, epsilon=1.01).fit(X, y)
    free = HardThresholdRegressor(epsilon=INF).fit(X, y)
    assert abs(clipped.intercept_) < 0.02
    assert abs(reference.intercept_) < 0.03
    assert free.intercept_ > 0.08


def test_noiseless_classification_is_the_logistic_fit_on_its_support():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (600, 30))
    y = (X[:, :2] @ [3.0, -2.0] + 0.5 + rng.logistic(size=600) > 0).astype(int)
    model = HardThresholdClassifier(epsilon=INF, n_nonzero=2).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [0, 1]
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(X[:, :2], y)
    assert np.allclose(model.coef_[0, :2], reference.coef_[0], rtol=2e-3)
    assert np.allclose(model.intercept_, reference.intercept_, atol=5e-3)


@pytest.mark.parametrize("mechanism", ["pursuit", "gaussian", "peeling"])
def test_a_million_sparse_columns_stay_sparse(mechanism):
    rng = np.random.default_rng(0)
    places = (rng.integers(0, 300, 6000), rng.integers(0, 1_000_000, 6000))
    X = sp.csr_array((rng.random(6000), places), shape=(300, 1_000_000))
    y = (np.arange(300) % 2).astype(int)
    model = HardThresholdClassifier(n_steps=4, mechanism=mechanism, random_state=0).fit(X, y)
    assert model.support_.sum() == 10
