"""What two-stage models promise beyond the contract of every class: one budget over both stages."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

from taciturn.accounting import Budget, epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.events import ExponentialEvent, GaussianEvent, ObjectivePerturbationEvent
from taciturn.losses import HuberLoss
from taciturn.methods.objective.estimator import (
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from taciturn.methods.objective.plan import plan_two_stage
from taciturn.methods.schedule import Problem
from taciturn.methods.selection import run as selection_run
from taciturn.privacy.certificate import Certificate

SECOND_STAGE = {
    TwoStageRegressor: ObjectivePerturbationRegressor,
    TwoStageClassifier: ObjectivePerturbationClassifier,
}

ALL = [TwoStageRegressor, TwoStageClassifier]


def data(kind=TwoStageRegressor, n=4000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = 0.5 * X[:, 2] - 0.4 * X[:, 7]
    return X, (signal > 0).astype(int) if kind is TwoStageClassifier else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, relation):
    X, y = data(kind)
    model = kind(epsilon=3.0, n_nonzero=2, relation=relation, n_public=3600, random_state=1).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert model.score(X, y) > 0.9
    certificate = model.certificate_
    assert certificate.status == "proved under a numerical assumption"
    assert (certificate.epsilon, certificate.delta, certificate.relation) == (3.0, 1e-6, relation)
    assert 2.99 < epsilon_of(certificate.event, 1e-6) <= 3.0
    assert certificate.public["blocks"] == (60 if relation == "add-remove" else 63)
    kinds = [type(release.event) for release in certificate.events]
    assert kinds == [ExponentialEvent, ObjectivePerturbationEvent, GaussianEvent]
    assert certificate.events[0].count == 2
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("k", "n_outputs"), [(3, 1), (20, 1), (10, 4)])
def test_the_share_is_respected_and_the_budget_met(share, k, n_outputs):
    budget = Budget(1.0, 1e-6)
    problem = Problem(HuberLoss(1.0), "zero-out", 1000, 50, n_outputs, intercept=True)
    plan = plan_two_stage(budget, problem, selection_share=share, k=k, row_bound=2.0)
    selection, minimiser, _ = plan.releases
    chosen = k * selection.event.epsilon**2 / 4
    fitted = n_outputs * minimiser.event.shift**2
    assert chosen / (chosen + fitted) == pytest.approx(share)
    event = sum((release.total for release in plan.releases[1:]), selection.total)
    assert 0.999 < epsilon_of(event, 1e-6) <= 1.0
    # Votes move by one in either direction: the noise is 2 / range.
    assert plan.votes.selection.mechanism.scale == pytest.approx(2 / selection.event.epsilon, rel=1e-3)
    with pytest.raises(ParameterError, match="^selection_share="):
        plan_two_stage(budget, problem, selection_share=0.0, k=k, row_bound=2.0)


def test_joint_accounting_beats_two_budgets_of_half_each():
    problem = Problem(HuberLoss(1.0), "zero-out", 1000, 50, intercept=True)
    plan = plan_two_stage(Budget(1.0, 1e-6), problem, selection_share=0.5, k=10, row_bound=2.0)
    selection, *fit = plan.releases
    first = epsilon_of(selection.total, 5e-7)
    second = epsilon_of(fit[0].total + fit[1].total, 5e-7)
    assert first + second > 1.2


@pytest.mark.parametrize("kind", ALL)
def test_stage_two_is_objective_perturbation_on_the_chosen_columns(kind, monkeypatch):
    X, y = data(kind, n=1000)
    votes = np.zeros(12, dtype=np.int64)
    votes[[2, 5, 7]] = 31
    monkeypatch.setattr(selection_run, "count_votes", lambda *table, **extra: votes)
    model = kind(n_nonzero=3, epsilon=math.inf, regularisation=2.0).fit(X, y)
    alone = SECOND_STAGE[kind](epsilon=math.inf, regularisation=2.0).fit(X[:, [2, 5, 7]], y)
    assert np.allclose(np.ravel(model.coef_)[[2, 5, 7]], np.ravel(alone.coef_))
    assert np.flatnonzero(model.support_).tolist() == [2, 5, 7]
    assert model.certificate_.status == "not private"


def test_all_features_cost_nothing_to_select():
    X, y = data(n=500)
    model = TwoStageRegressor(n_nonzero=12, random_state=0).fit(X, y)
    plain = ObjectivePerturbationRegressor(random_state=0).fit(X, y)
    assert model.certificate_.events == plain.certificate_.events
    assert np.allclose(model.coef_, plain.coef_, atol=1e-6)


def recorded_blocks(monkeypatch, model, X, y):
    seen = []

    def record(table, x_bound, targets, blocks, k, **_):
        seen.append([rows.tolist() for rows in blocks])
        return np.zeros(table.shape[1], dtype=np.int64)

    monkeypatch.setattr(selection_run, "count_votes", record)
    model.fit(X, y)
    return seen[0]


def test_blocks_suit_the_relation(monkeypatch):
    X, y = data(n=100)
    slices = recorded_blocks(monkeypatch, TwoStageRegressor(n_nonzero=3), X, y)
    assert slices == [list(range(10 * b, 10 * b + 10)) for b in range(10)]
    scattered = recorded_blocks(
        monkeypatch, TwoStageRegressor(n_nonzero=3, relation="add-remove", n_public=100, random_state=0), X, y
    )
    assert len(scattered) == 10
    assert sorted(row for rows in scattered for row in rows) == list(range(100))
    assert scattered != slices
    labels = np.where(y > 0, "a", "b").astype(object)
    labels[[0, 11]] = "unknown"
    classifier = TwoStageClassifier(n_nonzero=3, classes=("a", "b"))
    present = recorded_blocks(monkeypatch, classifier, X, labels)
    # Blocks count the records that are not null, each of which is where its slot in the table puts it.
    slots = np.delete(np.arange(100), [0, 11])
    assert slots[present[0]].tolist() == list(range(1, 10))
    assert slots[present[1]].tolist() == [10, *range(12, 20)]
    assert slots[present[9]].tolist() == list(range(90, 100))


def test_more_than_two_classes_share_one_selection():
    X, _ = data(n=6000)
    y = np.digitize(X[:, 5], [-0.4, 0.4])
    model = TwoStageClassifier(epsilon=4.0, n_nonzero=1, classes=(0, 1, 2), random_state=0).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [5]
    assert model.coef_.shape == (3, 12)
    assert [release.count for release in model.certificate_.events] == [1, 3, 3]


@pytest.mark.parametrize("kind", ALL)
def test_workers_do_not_matter(kind):
    X, y = data(kind, n=900)
    with parallel_config(backend="threading"):
        one, two = (kind(n_nonzero=3, random_state=0, n_jobs=n_jobs).fit(X, y).coef_ for n_jobs in (None, 2))
    assert np.array_equal(one, two)


def test_more_blocks_than_records_are_refused():
    X, y = data(n=50)
    with pytest.raises(ParameterError, match="^n_blocks=51: expected at most 50"):
        TwoStageRegressor(n_blocks=51).fit(X, y)
    assert clone(TwoStageRegressor(n_blocks=50)).fit(X, y).certificate_.public["blocks"] == 50
