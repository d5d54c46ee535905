from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    PermuteAndFlipEvent,
    PureEvent,
)
from taciturn.privacy import gdp
from taciturn.privacy.budget import Budget, pieces_of


def exact_nu_squared(steps: int) -> mpmath.mpf:
    with mpmath.workdps(40):
        x = mpmath.pi / 8
        for _ in range(steps - 1):
            x += mpmath.mpf(1) / 4 + 1 / (64 * x)
        return x


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(80):
        eps, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-eps / m + m / 2) - mpmath.exp(eps) * mpmath.ncdf(-eps / m - m / 2)


# ------------------------------------------------------------------ nu


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 100, 1000])
def test_nu_follows_its_recursion(steps):
    assert gdp.nu(steps) ** 2 == pytest.approx(float(exact_nu_squared(steps)), rel=1e-13, abs=0)


@pytest.mark.parametrize(("steps", "printed"), [(2, 0.182), (5, 0.235), (100, 0.415), (1000, 0.558), (10**6, 0.989)])
def test_nu_exceeds_the_central_limit_by_a_logarithm(steps, printed):
    assert gdp.nu(steps) ** 2 - steps / 4 == pytest.approx(printed, abs=5.1e-4)


@pytest.mark.parametrize("steps", [1, 2, 10, 1000, 10**5, 10**5 + 1, 10**6, 10**9])
def test_nu_stays_below_its_closed_form(steps):
    closed = steps / 4 + 0.1427 + math.log1p(1.752 * (steps - 1)) / 16
    assert gdp.nu(steps) ** 2 <= closed
    assert steps / 4 < gdp.nu(steps) ** 2


def test_nu_beyond_the_exact_steps_is_an_upper_bound_and_a_close_one():
    x = math.pi / 8
    for _ in range(300_000 - 1):
        x += 0.25 + 1 / (64 * x)
    assert x * (1 - 1e-12) <= gdp.nu(300_000) ** 2 <= x * (1 + 1e-9)


def test_nu_refuses_zero_steps():
    with pytest.raises(ParameterError):
        gdp.nu(0)


def test_a_run_from_zero_agrees_with_single_steps():
    x = 0.0
    for _ in range(50):
        x = gdp.selection_step(x, 0.3)
    assert x == pytest.approx((0.3 * gdp.nu(50)) ** 2, rel=1e-13)
    assert gdp.selection_step(0.0, 2.0) == pytest.approx(4.0 * math.pi / 8.0)
    assert gdp.selection_step(0.4, 2.0) == pytest.approx(min(0.4 + math.pi / 2.0, 2.0))


# ------------------------------------------------------------------ delta, epsilon, mu


@pytest.mark.parametrize("mu", [1e-7, 3e-5, 9.9e-5, 1.01e-4, 0.02, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("where", [0.0, 0.3, 1.0, 4.0, 8.0, 30.0])
def test_delta_matches_high_precision(mu, where):
    epsilon = where * mu + (mu * mu / 2 if where else 0.0)
    exact = exact_delta(epsilon, mu)
    relative = float(mpmath.mpf(gdp.delta_of_mu(epsilon, mu)) / exact) - 1
    assert -1e-8 < relative < 1e-8


def test_delta_in_the_far_tail_is_a_bound_in_log_space():
    exact = float(mpmath.log(exact_delta(2.0, 0.0019)))
    value = gdp.log_delta_of_mu(2.0, 0.0019)
    assert exact <= value <= exact + 20.0


def test_delta_at_the_ends():
    assert gdp.delta_of_mu(1.0, 0.0) == 0.0
    assert gdp.delta_of_mu(1.0, math.inf) == 1.0
    assert gdp.delta_of_mu(math.inf, 1.0) == 0.0
    assert gdp.delta_of_mu(0.0, 1e-30) == pytest.approx(1e-30 / math.sqrt(2 * math.pi))
    assert gdp.delta_of_mu(0.0, 1e200) == 1.0


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("mu", [1e-6, 0.02, 0.8, 6.0, 50.0])
def test_epsilon_is_on_the_private_side_and_tight(mu, delta):
    epsilon = gdp.epsilon_of_mu(mu, delta)
    assert gdp.delta_of_mu(epsilon, mu) <= delta * (1 + 1e-12)
    if epsilon > 0:
        assert gdp.delta_of_mu(epsilon * (1 - 1e-6), mu) > delta


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1.0, 30.0])
def test_mu_is_on_the_private_side_and_tight(epsilon, delta):
    mu = gdp.mu_of_budget(Budget(epsilon, delta))
    assert gdp.log_delta_of_mu(epsilon, mu) <= math.log(delta)
    assert gdp.delta_of_mu(epsilon, mu * (1 + 1e-6)) > delta


def test_conversions_at_the_ends():
    assert gdp.epsilon_of_mu(0.0, 0.0) == 0.0
    assert gdp.epsilon_of_mu(1.0, 0.0) == math.inf
    assert gdp.epsilon_of_mu(math.inf, 1e-5) == math.inf
    assert gdp.epsilon_of_mu(1e200, 1e-5) == math.inf
    assert gdp.epsilon_of_mu(1e-9, 1e-5) == 0.0
    assert gdp.mu_of_budget(Budget(1.0, 0.0)) == 0.0
    assert gdp.mu_of_budget(Budget(math.inf, 1e-5)) == math.inf


# ------------------------------------------------------------------ pieces


@pytest.mark.parametrize("epsilon", [1e-9, 9e-5, 1.1e-4, 0.05, 1.0, 30.0, 800.0])
def test_pure_pieces_cost_the_kink(epsilon):
    with mpmath.workdps(400):
        p = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        exact = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1) if epsilon < 100 else None
    value = gdp.pure_to_mu(epsilon)
    if exact is None:  # the quantile itself: mu / 2 is where the tail has mass 1 / (1 + e**epsilon)
        assert float(mpmath.log(mpmath.ncdf(-value / 2))) == pytest.approx(-epsilon, rel=1e-9)
    else:
        assert float(exact) * (1 - 1e-12) <= value <= float(exact) * (1 + 1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_gaussian_curve_through_the_kink_covers_randomised_response(epsilon):
    def covers(mu: float) -> bool:
        gammas = np.linspace(0.0, epsilon, 101)
        randomised = -np.expm1(gammas - epsilon) / (1 + math.exp(-epsilon))
        return all(gdp.delta_of_mu(g, mu) >= d * (1 - 1e-12) for g, d in zip(gammas, randomised, strict=True))

    assert covers(gdp.pure_to_mu(epsilon))
    assert not covers(0.99 * gdp.pure_to_mu(epsilon))


def test_mu_squared_adds_gaussians_and_kinks_after_the_selections():
    plan = PureEvent(0.2) + GaussianEvent(4.0) * 3 + ExponentialEvent(0.1) * 7 + GaussianEvent(2.0)
    expected = (0.1 * gdp.nu(7)) ** 2 + 3 / 16 + 1 / 4 + gdp.pure_to_mu(0.2) ** 2
    assert gdp.mu_squared(plan) == pytest.approx(expected, rel=1e-14)


def test_selections_go_through_the_step_from_the_last_executed_to_the_first():
    plan = ExponentialEvent(1.0) * 2 + GaussianEvent(1.0) + ExponentialEvent(0.1) * 3
    x = (0.1 * gdp.nu(3)) ** 2
    for _ in range(2):
        x = gdp.selection_step(x, 1.0)
    assert gdp.mu_squared(plan) == pytest.approx(x + 1.0, rel=1e-14)
    backwards = ExponentialEvent(0.1) * 3 + GaussianEvent(1.0) + ExponentialEvent(1.0) * 2
    assert gdp.mu_squared(backwards) != pytest.approx(x + 1.0, rel=1e-4)


@pytest.mark.parametrize("kind", [LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent])
def test_pure_releases_are_refused_the_cost_of_bounded_range(kind):
    assert gdp.mu_squared(kind(0.5) * 10) == pytest.approx(10 * gdp.pure_to_mu(0.5) ** 2)
    assert gdp.mu_squared(kind(0.5) * 10) > 1.3 * gdp.mu_squared(ExponentialEvent(0.5) * 10)


def test_approximate_releases_cost_their_pure_part_and_leak_their_delta():
    plan = ApproximateEvent(0.3, 1e-7) * 4
    assert gdp.mu_squared(plan) == gdp.mu_squared(PureEvent(0.3) * 4)
    assert pieces_of(plan).leak == pytest.approx(4e-7, rel=1e-6)
    assert pieces_of(ApproximateEvent(0.3, 0.1) * 2).leak == pytest.approx(0.19)
    assert pieces_of(ApproximateEvent(0.3, 1e-7)).leak <= 1e-7


def test_nothing_costs_nothing_and_no_protection_costs_everything():
    assert gdp.mu_squared(ComposedEvent(())) == 0.0
    assert gdp.mu_squared(NotPrivateEvent() + GaussianEvent(1.0)) == math.inf


def test_vanishing_costs_do_not_vanish():
    assert gdp.mu_squared(ExponentialEvent(1e-200)) > 0.0
    assert gdp.mu_squared(GaussianEvent(1e200)) > 0.0
    assert gdp.mu_squared(GaussianEvent(1e-200)) == math.inf


def test_unknown_events_are_refused():
    class Surprise(Event):
        kind = "surprise"

    class Louder(GaussianEvent):
        __slots__ = ()

    for event in (Surprise(), Louder(1.0)):
        with pytest.raises(ParameterError, match=type(event).__name__):
            gdp.mu_squared(PureEvent(1.0) + event)
