"""Objective perturbation: whether a fit arrives, and how soon, is decided by public facts and not by one record."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import (
    ADMMClassifier,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from taciturn.accounting import Budget
from taciturn.core.errors import ParameterError
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.objective import run as objective_run
from taciturn.methods.objective import run as solver
from taciturn.methods.objective.plan import plan_objective_perturbation
from taciturn.methods.schedule import Problem


def newton_steps(monkeypatch):
    """How many steps each call of the solver makes."""
    steps = []
    true, newton = solver.minimise, solver._newton

    def counted(*problem):
        steps.append(0)
        return true(*problem)

    def one(*problem):
        steps[-1] += 1
        return newton(*problem)

    monkeypatch.setattr(objective_run, "minimise", counted)
    monkeypatch.setattr(solver, "_newton", one)
    return steps


def table_of_ones(valid, n=4, d=3):
    """All labels unknown, or all but one; the neighbour of the attack."""
    y = np.full(n, 99)
    y[:valid] = 1
    return np.ones((n, d)), y


ATTACKED = {"epsilon": 25.0, "delta": 1e-6, "classes": (0, 1)}


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (ObjectivePerturbationClassifier, {"regularisation": 1e-9}),
        (TwoStageClassifier, {"regularisation": 1e-9, "n_nonzero": 2}),
        (TwoStageClassifier, {"regularisation": 1e-9, "n_nonzero": 3}),
        (ADMMClassifier, {"coupling": 1e-9, "n_steps": 1}),
    ],
)
@pytest.mark.parametrize("valid", [0, 1])
def test_settings_that_double_precision_does_not_resolve_are_refused(kind, own, valid):
    """From public facts: with and without the record, in the same words."""
    name = next(iter(own))
    with pytest.raises(ParameterError, match=rf"^{name}=1e-09: expected a number at which double precision resolves"):
        kind(**ATTACKED | own).fit(*table_of_ones(valid))


@pytest.mark.parametrize("kind", [ObjectivePerturbationRegressor, TwoStageRegressor])
def test_a_regression_is_refused_alike(kind):
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match=r"^regularisation=1e-08: expected a number at which double precision"):
        kind(epsilon=25.0, regularisation=1e-8).fit(rng.uniform(-1, 1, (50, 3)), rng.uniform(-1, 1, 50))


def least_resolved(kind, name, **own):
    """The smallest power of two that is not refused."""
    for exponent in range(-40, 10):
        try:
            return kind(**ATTACKED | own | {name: 2.0**exponent, "random_state": 0}).fit(*table_of_ones(1)), exponent
        except ParameterError:
            continue
    raise AssertionError("everything is refused")


@pytest.mark.parametrize(
    ("kind", "name", "own"),
    [
        (ObjectivePerturbationClassifier, "regularisation", {}),
        (TwoStageClassifier, "regularisation", {"n_nonzero": 2}),
        (ADMMClassifier, "coupling", {"n_steps": 2}),
    ],
)
def test_at_the_edge_of_what_is_resolved_one_record_changes_neither_steps_nor_arrival(kind, name, own, monkeypatch):
    monkeypatch.setattr(solver, "descend", None)
    _, exponent = least_resolved(kind, name, **own)
    most = {}
    for valid in (0, 1):
        with monkeypatch.context() as patch:
            steps = newton_steps(patch)
            for seed in range(12):
                model = kind(**ATTACKED | own | {name: 2.0**exponent, "random_state": seed})
                model.fit(*table_of_ones(valid))
            most[valid] = max(steps)
    # A quadratic takes one step; the logistic loss of a record that noise has driven far out takes some more.
    assert most[0] <= 2
    assert most[1] <= 60


def test_norms_of_fits_with_and_without_the_record_are_those_of_the_noise():
    """What the attack looked at, where it is not refused: in no fit are coefficients zeros and a little noise."""
    _, exponent = least_resolved(ObjectivePerturbationClassifier, "regularisation")
    for valid in (0, 1):
        for seed in range(12):
            model = ObjectivePerturbationClassifier(**ATTACKED, regularisation=2.0**exponent, random_state=seed)
            model.fit(*table_of_ones(valid))
            scale = 0.1 * 1.0 / 2.0**exponent
            assert np.linalg.norm(np.append(model.coef_, model.intercept_)) > 1e-3 * scale


def test_coefficients_lie_on_a_public_lattice():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, 200)
    model = ObjectivePerturbationRegressor(random_state=0).fit(X, y)
    public = model.certificate_.public
    plan = plan_objective_perturbation(Budget(1.0, 1e-6), Problem(HuberLoss(1.0), "zero-out", 200, 4), row_bound=2.0)
    found = plan.resolution()
    assert (public["gradient_tolerance"], public["output_noise"]) == (found.criterion.tolerance, found.deviation)
    assert not np.remainder(np.append(model.coef_, model.intercept_) / found.step, 1.0).any()
    assert np.remainder(np.append(model.coef_, model.intercept_) / found.step / 2, 1.0).any()


def test_very_many_records_get_a_ridge_that_resolves_them():
    def planned(n):
        return plan_objective_perturbation(Budget(1.0, 1e-6), Problem(LogisticLoss(), "zero-out", n, 5), row_bound=2.0)

    for n, changed in ((10**6, False), (10**9, True)):
        plan, few = planned(n), planned(100)
        assert (plan.regularisation > few.regularisation) == changed
        assert plan.resolution().deviation * 2.0 <= 0.01


def test_a_private_number_of_records_is_taken_at_its_most():
    def planned(relation, n):
        problem = Problem(LogisticLoss(), relation, n, 3)
        return plan_objective_perturbation(Budget(1.0, 1e-6), problem, row_bound=1.0, regularisation=10.0)

    plans = [planned("add-remove", 1000), planned("zero-out", 2000)]
    assert plans[0].resolution().criterion == plans[1].resolution().criterion
    with pytest.raises(ParameterError, match="^n_public="):
        planned("add-remove", 2**32)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (ObjectivePerturbationRegressor, {"residual_clip": 1e-300}),
        (ObjectivePerturbationRegressor, {"residual_clip": 1e300}),
        (ObjectivePerturbationRegressor, {"regularisation": 1e300}),
        (TwoStageRegressor, {"regularisation": 1e300}),
        (ADMMClassifier, {"coupling": 1e300, "classes": (-1, 1)}),
    ],
)
def test_numbers_that_would_leave_the_range_of_doubles_are_refused_by_name(kind, parameters):
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match=f"^{next(iter(parameters))}=1e[-+]300"):
        kind(**parameters).fit(rng.uniform(-1, 1, (50, 3)), rng.choice([-1, 1], 50))
