from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from taciturn.events import (
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    PermuteAndFlipEvent,
    PureEvent,
)
from taciturn.privacy import pure
from taciturn.privacy.budget import pieces_of


def enumerated_delta(epsilons: list[float], epsilon: float) -> float:
    """Every truth or lie of every randomised response, one by one."""
    total = 0.0
    for truths in itertools.product([True, False], repeat=len(epsilons)):
        p = math.prod(1 / (1 + math.exp(-e if truth else e)) for e, truth in zip(epsilons, truths, strict=True))
        q = math.prod(1 / (1 + math.exp(e if truth else -e)) for e, truth in zip(epsilons, truths, strict=True))
        total += max(p - math.exp(epsilon) * q, 0.0)
    return total


def plan_of(epsilons: list[float]) -> ComposedEvent:
    return ComposedEvent(tuple(PureEvent(e) for e in epsilons))


@pytest.mark.parametrize(
    "epsilons", [[1.0], [0.3] * 8, [0.1, 0.1, 0.5], [2.0, 0.01, 0.3, 0.3, 1.0], [0.2] * 5 + [0.7] * 4]
)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_delta_is_the_exact_optimum(epsilons, share):
    epsilon = share * sum(epsilons)
    value = math.exp(pure.log_delta(pieces_of(plan_of(epsilons)), epsilon))
    assert value == pytest.approx(enumerated_delta(epsilons, epsilon), rel=1e-12)


@pytest.mark.parametrize("count", [1, 10, 1000, 40_000])
@pytest.mark.parametrize("share", [1.0, 3.0, 5.0])
def test_delta_of_many_equal_releases_is_a_binomial_sum(count, share):
    e0 = 1.0 / math.sqrt(count)
    epsilon = share - 0.9 if count == 1 else share
    successes = np.arange(count + 1)
    gain = -np.expm1(np.minimum(epsilon - e0 * (2 * successes - count), 0.0))
    expected = float(binom.pmf(successes, count, 1 / (1 + math.exp(-e0))) @ gain)
    value = math.exp(pure.log_delta(pieces_of(PureEvent(e0) * count), epsilon))
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-300)
    if expected > 0.0:
        assert value >= expected * (1 - 1e-9)


@pytest.mark.parametrize("plan", [PureEvent(1.0), PureEvent(0.1) * 50, PureEvent(0.1) * 50 + PureEvent(0.4) * 3])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.1])
def test_epsilon_is_the_inverse_of_delta(plan, delta):
    pieces = pieces_of(plan)
    epsilon = pure.epsilon(pieces, delta)
    assert math.exp(pure.log_delta(pieces, epsilon)) == pytest.approx(delta, rel=1e-9)
    assert pure.excess(pieces, epsilon * (1 + 1e-9), delta) <= 0.0
    assert pure.excess(pieces, epsilon * (1 - 1e-6), delta) > 0.0


def test_one_release_has_a_closed_form():
    delta = 1e-3
    epsilon = pure.epsilon(pieces_of(PureEvent(1.0)), delta)
    assert epsilon == pytest.approx(math.log(math.e - delta * (1 + math.e)), rel=1e-12)


@pytest.mark.parametrize("kind", [ExponentialEvent, LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent])
def test_every_selection_is_pure(kind):
    assert pure.epsilon(pieces_of(kind(0.1) * 30), 1e-5) == pure.epsilon(pieces_of(PureEvent(0.1) * 30), 1e-5)


def test_equal_epsilons_of_different_kinds_are_one_group():
    mixed = ExponentialEvent(0.1) * 10 + PureEvent(0.1) * 15 + LaplaceMaxEvent(0.1) * 5
    assert pure.epsilon(pieces_of(mixed), 1e-5) == pure.epsilon(pieces_of(PureEvent(0.1) * 30), 1e-5)


def test_without_a_delta_epsilons_add_up():
    plan = pieces_of(PureEvent(0.25) * 3 + ExponentialEvent(0.5))
    assert pure.epsilon(plan, 0.0) == 1.25
    assert pure.log_delta(plan, 1.25) == -math.inf
    assert pure.excess(plan, 1.25, 0.0) == 0.0
    assert pure.excess(plan, 1.0, 0.0) > 0.0


def test_never_above_the_sum():
    assert pure.epsilon(pieces_of(PureEvent(0.5) * 2), 1e-300) <= 1.0
    assert pure.epsilon(pieces_of(PureEvent(0.5) * 2), 1e-15) <= 1.0


@pytest.mark.parametrize(
    "plan",
    [
        ComposedEvent(tuple(PureEvent(0.01 + 0.001 * i) for i in range(21))),
        PureEvent(1e-4) * 10_000_001,
    ],
)
def test_what_cannot_be_enumerated_falls_back_to_the_sum(plan):
    pieces = pieces_of(plan)
    total = pure.epsilon(pieces, 0.0)
    assert pure.epsilon(pieces, 1e-5) == total
    assert pure.log_delta(pieces, 0.99 * total) == 0.0
    assert pure.log_delta(pieces, total) == -math.inf


def test_gaussian_noise_is_not_pure():
    for plan in (GaussianEvent(100.0), NotPrivateEvent(), PureEvent(0.1) + GaussianEvent(100.0)):
        pieces = pieces_of(plan)
        assert pure.epsilon(pieces, 1e-5) == math.inf
        assert pure.log_delta(pieces, 1.0) == 0.0
        assert pure.excess(pieces, 1.0, 0.0) == math.inf


def test_nothing_costs_nothing():
    pieces = pieces_of(ComposedEvent(()))
    assert pure.epsilon(pieces, 0.0) == pure.epsilon(pieces, 1e-5) == 0.0
    assert pure.log_delta(pieces, 0.0) == -math.inf


def test_a_large_delta_needs_no_epsilon():
    assert pure.epsilon(pieces_of(PureEvent(0.01)), 0.5) == 0.0


def test_outcomes_left_out_of_the_enumeration_are_charged():
    pieces = pieces_of(PureEvent(1e-3) * 100_000)
    total = pure.epsilon(pieces, 0.0)
    assert pure.log_delta(pieces, 0.99 * total) >= math.log(1e-40) - 1e-9
    assert pure.epsilon(pieces, 1e-41) == total
    assert pure.epsilon(pieces, 1e-39) < 0.1 * total
