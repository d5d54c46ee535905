"""What the screened models promise beyond the contract of every class: rules, schedules, permanence."""

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn import ScreenedClassifier, ScreenedRegressor
from taciturn.accounting import best_bound
from taciturn.core.errors import ParameterError
from taciturn.methods.screening.plan import screening_times

BOTH = [ScreenedRegressor, ScreenedClassifier]
RULES = ["select", "tested", "none-option", "adp"]


def data(kind, n=4000, d=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = X[:, :6] @ np.array([0.3, -0.3, 0.25, -0.25, 0.2, 0.2])
    return X, signal > 0 if kind is ScreenedClassifier else signal


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", BOTH)
def test_steps_and_screenings_share_one_budget(kind, rule, relation):
    X, y = data(kind)
    given = {"residual_clip": 1.0} if kind is ScreenedRegressor else {}
    model = kind(rule=rule, relation=relation, n_public=4000, n_steps=50, screen_at=7, screen_share=0.25, **given).fit(
        X, y
    )
    certificate = model.certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-6)
    counts = {event.what.split(" ")[0]: event.count for event in certificate.events}
    assert counts["one"] == model.n_iter_ == 50
    assert all(event.count in (50, 7) for event in certificate.events)
    assert len(certificate.events) == (3 if rule == "tested" else 2)
    # Steps and screenings alternate, and the statement holds for every order.
    assert not certificate.ordered
    assert best_bound(certificate.event, 1e-6, ordered=False).epsilon <= 1.0
    # The share is one of squared costs, in units in which a selection of range e costs (e / 2)**2 at most.
    costs = [
        event.count * (event.event.epsilon / 2 if event.noise == "Gumbel" else 1 / event.event.noise_multiplier) ** 2
        for event in certificate.events
    ]
    assert sum(costs[1:]) / sum(costs) == pytest.approx(0.25, rel=1e-6)
    assert not hasattr(model, "loss_curve_")
    assert vars(model).keys() - model.get_params().keys() <= {
        "coef_", "intercept_", "n_iter_", "support_", "certificate_", "n_features_in_", "classes_", "y_bounds_"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("screen_at", "n_steps", "times"),
    [("every", 3, (1, 2, 3)), ("last", 9, (9,)), (4, 9, (4, 8)), (3, 9, (3, 6, 9)), (10, 9, ())],
)
def test_the_schedule_is_public(screen_at, n_steps, times):
    assert screening_times(screen_at, n_steps) == times


@pytest.mark.parametrize("kind", BOTH)
def test_every_selection_takes_a_coefficient_away(kind):
    X, y = data(kind)
    common = {"n_steps": 40, "fit_intercept": False, "random_state": 0}
    # As many screenings as steps leave nothing; the last one leaves one coefficient less.
    assert not kind(screen_at="every", **common).fit(X, y).support_.any()
    last = kind(screen_at="last", **common).fit(X, y)
    assert last.support_.sum() < 40
    assert last.certificate_.events[-1].count == 1


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("kind", BOTH)
def test_what_is_screened_for_good_does_not_come_back(kind, layout):
    X, y = data(kind)
    common = {"n_steps": 60, "screen_at": 5, "fit_intercept": False, "random_state": 3}
    again = kind(**common).fit(layout(X), y)
    forever = kind(permanent=True, **common).fit(layout(X), y)
    # Twelve of fifteen features are out.
    assert forever.support_.sum() <= 3
    assert again.support_.sum() > 3
    nothing = kind(permanent=True, n_steps=60, screen_at=2, fit_intercept=False).fit(layout(X), y)
    assert not nothing.support_.any()
    assert nothing.n_iter_ == 60


@pytest.mark.parametrize("kind", BOTH)
def test_the_intercept_is_never_screened(kind):
    X, y = data(kind)
    y = np.ones_like(y) if kind is ScreenedClassifier else np.full(len(y), 0.9)
    labels = {"classes": (False, True)} if kind is ScreenedClassifier else {}
    model = kind(screen_at="every", n_steps=30, permanent=True, random_state=0, **labels).fit(X, y)
    assert not model.support_.any()
    assert float(np.ravel(model.intercept_)[0]) > 0.5


@pytest.mark.parametrize("rule", ["select", "none-option"])
def test_three_classes(rule):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 10))
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = ScreenedClassifier(rule=rule, classes=("a", "b", "c"), epsilon=5.0, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 10)
    assert model.score(X, y) > 0.7
    for other in ("tested", "adp"):
        with pytest.raises(ParameterError, match="more than two classes"):
            ScreenedClassifier(rule=other, classes=("a", "b", "c")).fit(X, y)


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
@pytest.mark.parametrize("kind", BOTH)
def test_bad_thresholds_are_refused_and_nothing_is_spent(kind, threshold):
    model = kind(threshold=threshold)
    with pytest.raises(ParameterError, match="threshold"):
        model.fit(*data(kind, n=50))
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("rule", ["select", "none-option"])
def test_pure_budgets_are_shared_too(rule):
    X, y = data(ScreenedRegressor)
    given = {"n_steps": 20, "screen_at": 5, "screen_share": 0.2}
    certificate = ScreenedRegressor(rule=rule, delta=0.0, **given).fit(X, y).certificate_
    *_, steps, screenings = certificate.events
    assert (certificate.epsilon, certificate.delta, certificate.bound) == (1.0, 0.0, "pure")
    share = screenings.event.epsilon * screenings.count / (steps.event.epsilon * steps.count)
    assert share == pytest.approx(0.2 / 0.8, rel=1e-6)
