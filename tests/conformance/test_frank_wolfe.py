"""What the Frank-Wolfe family promises beyond the contract of every class."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression

from taciturn import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    ScreenedClassifier,
    ScreenedRegressor,
    SparsifiedClassifier,
    SparsifiedRegressor,
)
from taciturn.accounting import epsilon_of
from taciturn.core.errors import ParameterError

CLASSIFIERS = [FrankWolfeClassifier, ScreenedClassifier, SparsifiedClassifier]
REGRESSORS = [FrankWolfeRegressor, ScreenedRegressor, SparsifiedRegressor]
PLAIN = {SparsifiedRegressor: FrankWolfeRegressor, SparsifiedClassifier: FrankWolfeClassifier}
ALL = REGRESSORS + CLASSIFIERS


def data(kind=None, n=6000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = 0.5 * X[:, 2] - 0.4 * X[:, 7]
    return X, (signal > 0).astype(int) if kind in CLASSIFIERS else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, relation):
    X, y = data(kind)
    model = kind(radius=2.0, relation=relation, n_public=6000, random_state=1).fit(X, y)
    assert set(np.argsort(-np.abs(np.ravel(model.coef_)))[:2]) == {2, 7}
    assert model.score(X, y) > 0.8
    certificate = model.certificate_
    assert certificate.status == "proved"
    assert certificate.epsilon == 1.0
    assert certificate.delta == 1e-6
    assert certificate.relation == relation
    assert certificate.arithmetic == "exact"
    (steps,) = (release for release in certificate.events if release.what.startswith("one of"))
    assert steps.count == model.n_iter_ == certificate.public["n_steps"]
    assert epsilon_of(certificate.event, 1e-6) <= 1.0
    assert certificate.public["records"] == 6000


def test_replacement_doubles_the_noise():
    X, y = data()
    scales = [
        FrankWolfeRegressor(relation=relation, n_steps=50, residual_clip=1.0).fit(X, y).certificate_.events[0].scale
        for relation in ("zero-out", "replace-one")
    ]
    assert scales[0] == pytest.approx(scales[1])  # each in units of its own sensitivity
    from taciturn.accounting import Budget
    from taciturn.losses import LogisticLoss
    from taciturn.methods.frank_wolfe.plan import plan_frank_wolfe
    from taciturn.methods.schedule import Problem

    noise = [
        plan_frank_wolfe(Budget(1.0, 1e-6), Problem(LogisticLoss(), relation, 9, 2), radius=1, n_steps=50).noise_scale
        for relation in ("zero-out", "replace-one")
    ]
    assert noise[1] == pytest.approx(2 * noise[0])


@pytest.mark.parametrize("kind", ALL)
def test_the_ball_holds(kind):
    X, y = data(kind)
    # A target that is centred by its private median is as if the ball was about another point.
    given = {"residual_clip": 1.0} if kind in REGRESSORS else {}
    for x_bound in (1.0, 4.0):
        model = kind(radius=0.7, x_bound=x_bound, random_state=0, n_steps=30, **given).fit(X * x_bound, y)
        intercept = np.abs(model.intercept_).sum() / x_bound
        assert np.abs(model.coef_).sum() + intercept <= 0.7 * (1 + 1e-12)


def test_units_of_the_target_are_those_of_the_user():
    X, y = data()
    mapped = FrankWolfeRegressor(radius=2.0, random_state=3, n_steps=60).fit(X, y)
    celsius = FrankWolfeRegressor(radius=40.0, random_state=3, n_steps=60, y_bounds=(10.0, 50.0)).fit(X, 30 + 20 * y)
    assert np.allclose(celsius.coef_, 20 * mapped.coef_)
    assert celsius.intercept_ == pytest.approx(30 + 20 * mapped.intercept_)
    assert np.allclose(celsius.predict(X), 30 + 20 * mapped.predict(X))


def test_units_of_the_features_are_those_of_the_user():
    X, y = data()
    unit = FrankWolfeRegressor(radius=2.0, random_state=3, n_steps=60).fit(X, y)
    grams = FrankWolfeRegressor(radius=2.0 / 1000, x_bound=1000.0, random_state=3, n_steps=60).fit(1000 * X, y)
    assert np.allclose(grams.coef_ * 1000, unit.coef_)
    assert np.allclose(grams.predict(1000 * X), unit.predict(X))


def test_the_squared_loss_pays_for_its_slope():
    X, y = data()
    errors = {}
    for loss in ("huber", "squared"):
        runs = [
            FrankWolfeRegressor(loss=loss, radius=10.0, n_steps=50, random_state=seed).fit(X, y).score(X, y)
            for seed in range(5)
        ]
        errors[loss] = 1 - np.mean(runs)
    assert errors["squared"] > 2 * errors["huber"]


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1, 2), ("a", "b", "c", "d")])
def test_any_number_of_classes_is_learned(kind, labels):
    X, _ = data(n=8000)
    cuts = np.quantile(X[:, 5], np.linspace(0, 1, len(labels) + 1))[1:-1]
    y = np.array(labels)[np.digitize(X[:, 5], cuts)]
    model = kind(classes=labels, random_state=0).fit(X, y)
    assert np.abs(model.coef_).sum(axis=0).argmax() == 5
    assert model.score(X, y) > 1.5 / len(labels)


def test_many_labels_are_taken_without_a_word():
    X, _ = data(n=60)
    assert FrankWolfeClassifier(n_steps=2).fit(X, [f"label {i}" for i in range(60)]).classes_.size == 60


@pytest.mark.parametrize("n_labels", [2, 3])
def test_records_with_another_label_are_null_records(n_labels):
    X, _ = data(n=500)
    y = np.digitize(X[:, 3], np.linspace(-1, 1, n_labels + 1)[1:-1])
    spoiled = y.copy()
    spoiled[:100] = 99
    model = FrankWolfeClassifier(classes=range(n_labels), epsilon=float("inf"), n_steps=30)
    assert np.allclose(model.fit(X, spoiled).coef_, clone(model).fit(X[100:], y[100:]).coef_)


@pytest.mark.parametrize("kind", [SparsifiedRegressor, SparsifiedClassifier])
def test_sparsified_keeps_the_stated_number(kind):
    X, y = data(kind)
    model = kind(n_nonzero=2, radius=2.0, random_state=0).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert np.count_nonzero(model.coef_) == 2
    # Public thinning is free: the certificate is that of plain Frank-Wolfe.
    plain = PLAIN[kind](radius=2.0, random_state=0).fit(X, y)
    assert model.certificate_.events == plain.certificate_.events


@pytest.mark.parametrize("kind", [SparsifiedRegressor, SparsifiedClassifier])
def test_a_private_count_is_paid_for(kind):
    X, y = data(kind, n=800)
    # With as much noise as the half-width of y_bounds needs, steps go everywhere.
    kind = partial(kind, residual_clip=1.0) if kind in REGRESSORS else kind
    model = kind(n_nonzero="private-count", count_range=(3, 6), n_steps=40, random_state=0).fit(X, y)
    assert 3 <= np.count_nonzero(model.coef_) <= 6
    *_, steps, count = model.certificate_.events
    assert count.event.epsilon == pytest.approx(0.05)
    assert count.noise == "two-sided geometric"
    assert epsilon_of(model.certificate_.event, 1e-6) <= 1.0
    alone = kind(n_nonzero=3, n_steps=40).fit(X, y).certificate_.events[-1]
    assert steps.scale > alone.scale
    released = {
        np.count_nonzero(
            kind(n_nonzero="private-count", count_range=(3, 6), n_steps=40, random_state=seed).fit(X, y).coef_
        )
        for seed in range(12)
    }
    # With so little budget the count moves between the ends, whatever the data say.
    assert len(released) >= 2


def test_a_pure_budget_gets_pure_steps():
    X, y = data(n=300)
    certificate = FrankWolfeRegressor(delta=0.0, n_steps=3, residual_clip=1.0).fit(X, y).certificate_
    assert certificate.delta == 0.0
    assert certificate.epsilon == 1.0
    assert certificate.events[0].event.epsilon == pytest.approx(1 / 3)
    assert FrankWolfeRegressor(delta=0.0).fit(X, y).n_iter_ == 20


@pytest.mark.parametrize("changes", [{"radius": 1e-10}, {"radius": 1e5}, {"residual_clip": 1e-6}])
def test_unusual_public_numbers_take_the_plain_algorithm(changes):
    X, y = data(n=300)
    model = FrankWolfeRegressor(**({"n_steps": 5} | changes)).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.status == "proved"


@pytest.mark.parametrize("kind", ALL)
def test_sparse_tables_find_the_same_signal(kind):
    """They have samplers of their own, so that the same seed gives other draws."""
    X, y = data(kind)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    for layout in (np.asarray, sp.csr_array):
        model = kind(radius=2.0, random_state=4).fit(layout(X), y)
        assert set(np.argsort(-np.abs(np.ravel(model.coef_)))[:2]) == {2, 7}


def test_a_ball_that_no_double_holds_is_refused_before_data_are_read():
    model = SparsifiedRegressor(radius=1e308, x_bound=1e10)
    with pytest.raises(ParameterError, match="^radius="):
        model.fit(*data(n=50))
    assert not hasattr(model, "n_features_in_")


def test_noiseless_regression_reaches_the_lasso():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 15))
    y = np.clip(X @ np.where(np.arange(15) < 4, 0.3, 0.0) + rng.normal(0, 0.1, 300), -1, 1)
    lasso = Lasso(alpha=0.002, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(X, y)
    radius = np.abs(lasso.coef_).sum()
    ours = FrankWolfeRegressor(epsilon=float("inf"), loss="squared", radius=radius, fit_intercept=False).fit(X, y)

    def objective(model):
        return np.mean((model.predict(X) - y) ** 2) / 2

    assert objective(ours) <= objective(lasso) * (1 + 1e-3)
    assert ours.certificate_.status == "not private"
    assert ours.n_iter_ == 5000


def test_noiseless_classification_reaches_liblinear():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (400, 12))
    y = (X @ np.where(np.arange(12) < 3, 3.0, 0.0) + rng.logistic(size=400) > 0).astype(int)
    with warnings.catch_warnings():
        # The spelling of the penalty changed between the oldest and the newest scikit-learn.
        warnings.simplefilter("ignore")
        reference = LogisticRegression(
            penalty="l1", C=0.3, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10**5
        ).fit(X, y)
    radius = np.abs(reference.coef_).sum()
    ours = FrankWolfeClassifier(epsilon=float("inf"), radius=radius, fit_intercept=False).fit(X, y)

    def objective(model):
        margins = model.decision_function(X)
        return np.mean(np.logaddexp(0, margins) - y * margins)

    assert objective(ours) <= objective(reference) * (1 + 1e-3)


def test_a_ball_beyond_all_lattices_is_fitted_by_full_gradients():
    # Radius times x_bound is finite, and a thousandth of it would still be beyond the fast paths.
    X, y = data()
    model = FrankWolfeRegressor(epsilon=30.0, x_bound=1e300, radius=1e8, n_steps=3, random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.status == "proved"
