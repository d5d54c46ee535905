"""What objective perturbation promises beyond the contract of every class."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from taciturn.accounting import epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.methods.objective import plan as objective_plan
from taciturn.methods.objective import run as objective_run
from taciturn.methods.objective.estimator import (
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    TwoStageClassifier,
)
from taciturn.privacy.certificate import Certificate

ALL = [ObjectivePerturbationRegressor, ObjectivePerturbationClassifier]


def data(kind=ObjectivePerturbationRegressor, n=5000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = 0.1 + 0.5 * X[:, 2] - 0.4 * X[:, 4]
    return X, (signal > 0).astype(int) if kind is ObjectivePerturbationClassifier else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, relation):
    X, y = data(kind)
    model = kind(relation=relation, n_public=4000, random_state=1).fit(X, y)
    assert set(np.argsort(-np.abs(np.ravel(model.coef_)))[:2]) == {2, 4}
    assert model.score(X, y) > 0.9
    certificate = model.certificate_
    assert certificate.status == "proved under a numerical assumption"
    assert (certificate.epsilon, certificate.delta, certificate.relation) == (1.0, 1e-6, relation)
    assert certificate.arithmetic == "float64"
    assert 0.99 < epsilon_of(certificate.event, 1e-6) <= 1.0
    assert certificate.public["records"] == (4000 if relation == "add-remove" else 5000)
    assert certificate.events[0].event.replaced == (relation == "replace-one")
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert 2.0 < certificate.for_group(2).epsilon < 3.0
    assert not hasattr(model, "n_iter_")


@pytest.mark.parametrize("kind", ALL)
def test_sparse_tables_give_the_same_model(kind):
    X, y = data(kind, n=800)
    X[np.abs(X) < 0.7] = 0.0
    dense = kind(random_state=3, row_bound=1.3).fit(X, y)
    for layout in (sp.csr_matrix, sp.csc_matrix, sp.csr_array):
        sparse = kind(random_state=3, row_bound=1.3).fit(layout(X), y)
        assert np.allclose(sparse.coef_, dense.coef_, atol=1e-6)
        assert np.allclose(sparse.predict(layout(X)), dense.predict(X), atol=1e-6)


def test_many_sparse_columns_need_no_dense_matrix():
    rng = np.random.default_rng(0)
    places = (rng.integers(0, 2000, 20_000), rng.integers(0, 20_000, 20_000))
    places[1][:400] = 3
    X = sp.csr_array((rng.random(20_000), places), shape=(2000, 20_000))
    y = np.asarray(X[:, [3]].sum(axis=1)).ravel() > 0
    model = ObjectivePerturbationClassifier(epsilon=math.inf, row_bound=4.0).fit(X, y)
    # Four in five are false; small entries of the column that counts are shrunk below the threshold.
    assert model.score(X, y) > 0.95
    assert model.coef_.shape == (1, 20_000)


def test_the_fit_without_noise_minimises_what_it_says():
    X, y = data(n=400)
    y = np.where(np.arange(400) % 10 == 0, 1.0, y)
    model = ObjectivePerturbationRegressor(epsilon=math.inf, residual_clip=0.2, regularisation=3.0).fit(X, y)
    assert model.certificate_.status == "not private"
    residuals = np.clip(X @ model.coef_ + model.intercept_ - y, -0.2, 0.2)
    # Targets are rounded to 2**-16, hence 400 * 2**-17 at most.
    assert np.abs(X.T @ residuals + 3.0 * model.coef_).max() < 400 * 2.0**-17
    assert abs(residuals.sum() + 3.0 * model.intercept_) < 400 * 2.0**-17
    # Beside the squared loss's answer, which the outliers drag along.
    robust = HuberRegressor(alpha=1e-6).fit(X, y)
    squared = np.linalg.lstsq(np.column_stack((X, np.ones(400))), y, rcond=None)[0]
    assert np.abs(model.coef_ - robust.coef_).max() < np.abs(squared[:-1] - robust.coef_).max()
    labels = (X[:, 0] + 0.3 * X[:, 1] > 0.1).astype(int)
    logistic = ObjectivePerturbationClassifier(epsilon=math.inf, fit_intercept=False, regularisation=1.0).fit(X, labels)
    reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(X, labels)
    assert np.allclose(logistic.coef_, reference.coef_, atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_units_are_those_of_the_user(kind):
    X, y = data(kind, n=500)
    unit = kind(random_state=3).fit(X, y)
    grams = kind(random_state=3, x_bound=1000.0).fit(1000 * X, y)
    assert np.allclose(1000 * grams.coef_, unit.coef_)
    assert np.allclose(grams.predict(1000 * X), unit.predict(X))
    short = kind(random_state=3, row_bound=0.8).fit(X, y)
    assert np.allclose(kind(random_state=3, x_bound=1000.0, row_bound=800.0).fit(1000 * X, y).coef_ * 1000, short.coef_)
    assert not np.allclose(short.coef_, unit.coef_)
    if kind is ObjectivePerturbationRegressor:
        celsius = kind(random_state=3, y_bounds=(10.0, 50.0)).fit(X, 30 + 20 * y)
        assert np.allclose(celsius.predict(X), 30 + 20 * unit.predict(X))


def test_shortened_records_stay_on_the_plane():
    X, _ = data(n=3000)
    y = 0.3 * X[:, 0] - 0.2 * X[:, 3]
    model = ObjectivePerturbationRegressor(epsilon=math.inf, row_bound=0.7, regularisation=1e-3).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-4


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1, 2), ("a", "b", "c", "d")])
def test_any_number_of_classes_is_learned_and_paid_for(labels):
    X, _ = data(n=8000)
    cuts = np.quantile(X[:, 5], np.linspace(0, 1, len(labels) + 1))[1:-1]
    y = np.array(labels)[np.digitize(X[:, 5], cuts)]
    model = ObjectivePerturbationClassifier(classes=labels, random_state=0).fit(X, y)
    n_outputs = 1 if len(labels) == 2 else len(labels)
    assert [release.count for release in model.certificate_.events] == [n_outputs] * 2
    assert epsilon_of(model.certificate_.event, 1e-6) <= 1.0
    assert model.score(X, y) > 1.5 / len(labels)


def test_records_with_another_label_are_null_records():
    X, y = data(ObjectivePerturbationClassifier, n=500)
    spoiled = y.copy()
    spoiled[:100] = 99
    model = ObjectivePerturbationClassifier(classes=(0, 1), epsilon=math.inf)
    assert np.allclose(model.fit(X, spoiled).coef_, clone(model).fit(X[100:], y[100:]).coef_)


@pytest.mark.parametrize("kind", ALL)
def test_too_little_regularisation_is_refused_with_the_least(kind):
    X, y = data(kind, n=100)
    with pytest.raises(ParameterError, match=r"^regularisation=0\.01: expected more than"):
        kind(regularisation=0.01, random_state=0).fit(X, y)
    # c = ln(1 + beta / Lambda) must leave something of epsilon.
    beta = (7.0 if kind is ObjectivePerturbationRegressor else 7.0 / 4.0) / math.expm1(1.0)
    assert kind(regularisation=1.05 * beta).fit(X, y).certificate_.epsilon == 1.0
    with pytest.raises(ParameterError, match="^regularisation="):
        kind(regularisation=0.99 * beta).fit(X, y)


@pytest.mark.parametrize("kind", ALL)
def test_a_fit_without_newton_steps_finds_the_same_model(kind, monkeypatch):
    """Descent is slower and provably arrives; what is released differs by less than the noise for it."""
    X, y = data(kind, n=300)
    usual = kind(random_state=5).fit(X, y)
    monkeypatch.setattr(objective_run, "_NEWTON_STEPS", 0)
    slow = kind(random_state=5).fit(X, y)
    public = usual.certificate_.public
    apart = 2 * public["gradient_tolerance"] / public["regularisation"]
    # Both are rounded to a lattice that is far finer than the noise.
    assert np.linalg.norm(usual.coef_ - slow.coef_) <= apart + public["output_noise"]
    assert np.linalg.norm(usual.coef_) > 100 * (apart + public["output_noise"])


@pytest.mark.parametrize("kind", [ObjectivePerturbationClassifier, TwoStageClassifier])
def test_few_records_cost_no_more_than_a_constant(kind, monkeypatch):
    """178 wines of three classes at epsilon 0.5: log-loss over that of the shares of the classes."""
    X, y = load_wine(return_X_y=True)
    X = 2.0 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1.0

    def over_constant(seed):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = kind(epsilon=0.5, x_bound=1.0, classes=(0, 1, 2), random_state=seed).fit(X_train, y_train)
        shares = np.tile(np.bincount(y_train) / y_train.size, (y_test.size, 1))
        return log_loss(y_test, model.predict_proba(X_test)) / log_loss(y_test, shares)

    assert np.mean([over_constant(seed) for seed in range(10)]) < 1.05
    # A regularisation that does not depend on the number of records.
    monkeypatch.setattr(objective_plan, "_LOGISTIC_CURVATURE", 1e12)
    assert np.mean([over_constant(seed) for seed in range(10)]) > 1.1
