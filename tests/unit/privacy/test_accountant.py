from __future__ import annotations

import math

import pytest

from taciturn.accounting import Bound, Budget, best_bound, delta_of, epsilon_of, satisfies
from taciturn.core.errors import ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    PureEvent,
)
from taciturn.privacy import gdp, rdp
from taciturn.privacy.budget import pieces_of


def test_a_budget_is_a_checked_value():
    budget = Budget(1, 0)
    assert budget == Budget(1.0, 0.0)
    assert isinstance(budget.epsilon, float)
    assert hash(budget) == hash(Budget(1.0, 0.0))
    assert Budget(math.inf, 0.1).epsilon == math.inf
    for epsilon, delta in ((0.0, 0.1), (-1.0, 0.1), (math.nan, 0.1), (1.0, 1.0), (1.0, -0.1), ("1", 0.1)):
        with pytest.raises(ParameterError):
            Budget(epsilon, delta)
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (ExponentialEvent(0.02) * 1000, "gdp"),
        (GaussianEvent(10.0) * 3, "gdp"),
        (ExponentialEvent(0.2) * 5, "rdp"),
        (LaplaceMaxEvent(0.02) * 1000, "pure"),
        (PureEvent(1.0), "pure"),
        (ApproximateEvent(1.0, 1e-7), "pure"),
    ],
)
def test_the_best_bound_is_named(plan, name):
    bound = best_bound(plan, 1e-5)
    assert bound.name == name
    assert bound == Bound(name, epsilon_of(plan, 1e-5))
    for other in (gdp, rdp):
        assert bound.epsilon <= other.epsilon(pieces_of(plan), 0.9e-5) * (1 + 1e-5)


def test_the_empty_plan_is_free():
    nothing = ComposedEvent(())
    assert epsilon_of(nothing, 0.0) == epsilon_of(nothing, 1e-5) == 0.0
    assert delta_of(nothing, 0.0) == delta_of(nothing, 1.0) == 0.0
    assert satisfies(nothing, Budget(1e-9, 0.0))


def test_no_protection_costs_everything():
    bare = NotPrivateEvent() + PureEvent(0.1)
    assert epsilon_of(bare, 0.5) == math.inf
    assert delta_of(bare, 100.0) == 1.0
    assert not satisfies(bare, Budget(30.0, 0.99))
    assert satisfies(bare, Budget(math.inf, 0.0))


def test_pure_privacy_without_a_delta():
    assert epsilon_of(ExponentialEvent(0.25) * 4, 0.0) == 1.0
    assert epsilon_of(GaussianEvent(1e6), 0.0) == math.inf
    assert satisfies(PureEvent(0.5) * 2, Budget(1.0, 0.0))
    assert not satisfies(PureEvent(0.5) * 2, Budget(0.99, 0.0))


def test_an_approximate_release_costs_what_it_says():
    event = ApproximateEvent(1.0, 1e-5)
    assert epsilon_of(event, 1e-5) == 1.0
    assert epsilon_of(event, 0.999e-5) == math.inf
    assert delta_of(event, 1.0) == pytest.approx(1e-5)
    assert satisfies(event, Budget(1.0, 1e-5))


def test_approximate_releases_share_the_delta_with_the_rest():
    rest = GaussianEvent(5.0) * 3
    both = rest + ApproximateEvent(1e-12, 4e-6) * 2
    assert epsilon_of(both, 1e-5) == pytest.approx(epsilon_of(rest, 2e-6), rel=1e-4)
    assert epsilon_of(both, 1e-5) > epsilon_of(rest, 1e-5)
    assert delta_of(both, 1.0) == pytest.approx(8e-6 + delta_of(rest, 1.0), rel=1e-4)


def test_two_approximate_releases_compose_optimally():
    """Two (e, d)-DP releases: 1 - (1-d)**2 of leak, then two randomised responses."""
    e, d, epsilon = 0.5, 1e-3, 0.6
    p = 1 / (1 + math.exp(-e))
    responses = p * p * -math.expm1(epsilon - 2 * e)
    expected = 1 - (1 - d) ** 2 + (1 - d) ** 2 * responses
    assert delta_of(ApproximateEvent(e, d) * 2, epsilon) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize(
    "plan",
    [
        GaussianEvent(4.0) * 3,
        ExponentialEvent(0.3) * 4,
        LaplaceMaxEvent(0.1) * 20,
        ExponentialEvent(0.01) * 500 + GaussianEvent(20.0) + PureEvent(0.1),
        ApproximateEvent(0.2, 1e-7) * 3 + ExponentialEvent(0.1),
    ],
)
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_epsilon_delta_and_satisfies_tell_one_story(plan, delta):
    epsilon = epsilon_of(plan, delta)
    assert delta_of(plan, epsilon) == pytest.approx(delta, rel=1e-5)
    assert delta_of(plan, epsilon) <= delta * (1 + 1e-9)
    assert satisfies(plan, Budget(epsilon, delta))
    assert not satisfies(plan, Budget(epsilon * (1 - 1e-5), delta))


def test_a_little_of_delta_is_kept_back():
    sigma = 3.0
    generous = gdp.epsilon_of_mu(1 / sigma, 1e-5)
    kept = epsilon_of(GaussianEvent(sigma), 1e-5)
    assert generous < kept < generous * (1 + 1e-6)


def test_arguments_are_checked():
    with pytest.raises(ParameterError):
        epsilon_of(PureEvent(1.0), 1.0)
    with pytest.raises(ParameterError):
        delta_of(PureEvent(1.0), -0.5)


def test_unknown_events_are_refused_before_anything_is_added_up():
    class Surprise(Event):
        kind = "surprise"

    with pytest.raises(ParameterError, match="Surprise"):
        epsilon_of(PureEvent(1.0) + Surprise() * 3, 1e-5)
    with pytest.raises(ParameterError, match="Surprise"):
        delta_of(Surprise(), 1.0)
    with pytest.raises(ParameterError, match="Surprise"):
        satisfies(NotPrivateEvent() + Surprise(), Budget(math.inf, 1e-5))
