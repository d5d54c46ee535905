from __future__ import annotations

import math

import pytest

from taciturn.accounting import Budget, calibrate, epsilon_of, satisfies
from taciturn.core.errors import ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    PureEvent,
)
from taciturn.privacy import gdp
from taciturn.privacy.budget import first_private, last_private

BUDGET = Budget(1.0, 1e-5)

PLANS = {
    "selections": lambda s: ExponentialEvent(2 / s) * 1000,
    "few selections": lambda s: ExponentialEvent(2 / s) * 3,
    "laplace": lambda s: LaplaceMaxEvent(2 / s) * 50,
    "gaussians": lambda s: GaussianEvent(s) * 40,
    "mixed": lambda s: ExponentialEvent(2 / s) * 100 + GaussianEvent(s) * 3 + PureEvent(1 / s),
    "two stages": lambda s: (ExponentialEvent(2 / s) + ExponentialEvent(1 / s)) * 30,
    "with a fixed part": lambda s: ExponentialEvent(2 / s) * 100 + ApproximateEvent(0.2, 1e-6),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 1e-4), Budget(8.0, 1e-8), Budget(1e-3, 1e-5)])
def test_the_scale_is_private_and_smallest(plan, budget):
    if plan is PLANS["with a fixed part"] and (budget.epsilon < 0.2 or budget.delta < 1e-6):
        with pytest.raises(ParameterError):
            calibrate(budget, plan)
        return
    scale = calibrate(budget, plan)
    assert satisfies(plan(scale), budget)
    assert epsilon_of(plan(scale), budget.delta) <= budget.epsilon
    assert not satisfies(plan(scale * (1 - 1e-6)), budget)


def test_gaussians_need_exactly_the_analytic_scale():
    exact = math.sqrt(40) / gdp.mu_of_budget(BUDGET)
    assert calibrate(BUDGET, PLANS["gaussians"]) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e4, 1e12])
def test_the_answer_scales_with_the_units(unit):
    scale = calibrate(BUDGET, lambda s: PLANS["mixed"](s / unit))
    assert scale == pytest.approx(unit * calibrate(BUDGET, PLANS["mixed"]), rel=1e-6)


def test_pure_privacy_is_linear():
    assert calibrate(Budget(0.5, 0.0), lambda s: ExponentialEvent(2 / s) * 10) == pytest.approx(40.0, rel=1e-6)


@pytest.mark.parametrize(
    "plan",
    [
        lambda s: GaussianEvent(s),
        lambda s: NotPrivateEvent(),
        lambda s: ExponentialEvent(1 / s) + PureEvent(2.0),
    ],
)
def test_a_budget_out_of_reach_is_explained(plan):
    with pytest.raises(ParameterError, match="Gaussian noise needs delta > 0"):
        calibrate(Budget(1.0, 0.0), plan)


def test_an_infinite_budget_has_nothing_to_calibrate():
    with pytest.raises(ParameterError, match="finite"):
        calibrate(Budget(math.inf, 1e-5), PLANS["gaussians"])


def test_a_plan_that_is_always_free_gets_the_smallest_scale_considered():
    assert calibrate(BUDGET, lambda s: ComposedEvent(())) == pytest.approx(1e-18)


def test_a_plan_on_the_very_edge_terminates():
    event = PureEvent(0.4) * 3
    edge = Budget(epsilon_of(event, 1e-5), 1e-5)
    assert calibrate(edge, lambda s: event) > 0.0


def test_few_evaluations_are_enough():
    asked = []

    def plan(scale: float):
        asked.append(scale)
        return PLANS["selections"](scale)

    calibrate(BUDGET, plan)
    assert len(asked) <= 12


# ------------------------------------------------------------------ the search itself


@pytest.mark.parametrize(
    "excess",
    [
        lambda x: x - math.pi,
        lambda x: (x - math.pi) ** 3,
        lambda x: math.expm1(min(20 * (x - math.pi), 700.0)),
        lambda x: -math.inf if x <= math.pi else 1.0,
        lambda x: math.copysign(1.0, x - math.pi),
        lambda x: math.inf if x > math.pi + 1 else x - math.pi,
    ],
)
@pytest.mark.parametrize(("private", "exposed"), [(0.0, 10.0), (3.0, 3.2), (-1e3, 1e3)])
def test_the_search_ends_on_the_private_side(excess, private, exposed):
    found = last_private(excess, private, exposed, 1e-9)
    assert excess(found) <= 0.0
    assert math.pi - 2e-9 <= found <= math.pi
    mirrored = last_private(lambda x: excess(-x), -private, -exposed, 1e-9)
    assert -math.pi <= mirrored <= -math.pi + 2e-9


def test_the_search_stops_when_floats_run_out():
    assert last_private(lambda x: x - math.pi, 3.0, 4.0, 0.0) == math.pi


def test_brackets_grow_both_ways_and_know_their_limits():
    for root in (-30.0, -0.1, 0.0, 0.1, 30.0):
        found = first_private(lambda x, root=root: root - x, 0.0, -40.0, 40.0, 1e-9)
        assert root <= found <= root + 1e-9
    assert first_private(lambda x: 1.0, 0.0, -40.0, 40.0, 1e-9) is None
    assert first_private(lambda x: -1.0, 0.0, -40.0, 40.0, 1e-9) == -40.0
