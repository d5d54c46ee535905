"""Certificates bound tests of membership by what their events prove, and say nothing where nothing is proved."""

import dataclasses
import math

import pytest
from scipy.stats import norm

from taciturn import Budget, compose
from taciturn.events import ExponentialEvent, GaussianEvent, ObjectivePerturbationEvent, PureEvent
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release


def make(*events, delta=1e-6, **changes):
    releases = [event if isinstance(event, Release) else Release("a value", "some", 3.0, event) for event in events]
    details = {"relation": "zero-out", "public": {"records": 100}, "seeded": False, "arithmetic": "exact"}
    return certify(releases, Budget(30.0, delta), **(details | changes))


def published(certificate, proved):
    changes = {"status": "as published", "proved_epsilon": proved, "bound": "none"}
    return dataclasses.replace(certificate, epsilon=0.01, **changes)


def test_the_parameter_is_that_of_all_events_for_the_group():
    certificate = make(GaussianEvent(4.0) * 2, GaussianEvent(3.0))
    mu = math.sqrt(2 / 16 + 1 / 9)
    for size in (1, 2, 5):
        group = certificate.for_group(size)
        assert group.mu == pytest.approx(size * mu, rel=1e-8)
        assert group.attack_rates().tpr[1] == pytest.approx(norm.cdf(norm.ppf(0.01) + size * mu), rel=1e-7)
        assert group.attack_rates().advantage == pytest.approx(2 * norm.cdf(size * mu / 2) - 1, rel=1e-7)
    # One event forgotten, or noise multipliers added, would not pass.
    assert abs(math.sqrt(1 / 16 + 1 / 9) / mu - 1) > 0.1


def test_halves_cost_the_larger_one():
    halves = [Release("a value", "Gaussian", 3.0, GaussianEvent(3.0 + half), half=half) for half in (1, 2)]
    assert make(*halves).mu == pytest.approx(1 / 4, rel=1e-8)
    assert make(*(dataclasses.replace(half, half=None) for half in halves)).mu == pytest.approx(
        math.hypot(1 / 4, 1 / 5), rel=1e-8
    )


def test_a_composition_holds_for_every_order():
    parts = [make(ExponentialEvent(0.5), ExponentialEvent(0.1) * 9), make(ExponentialEvent(0.3) * 2)]
    total = compose(*parts)
    assert not total.ordered
    assert total.mu >= max(compose(*reversed(parts)).mu * (1 - 1e-12), *(part.mu for part in parts))


def test_a_sum_of_parts_may_be_the_better_bound():
    parts = [make(GaussianEvent(50.0), delta=1e-9), make(PureEvent(2.0), delta=0.0)]
    total = compose(*parts)
    assert total.parts
    rates = total.attack_rates()
    for level, rate in zip(rates.fpr, rates.tpr, strict=True):
        assert rate <= math.exp(total.epsilon) * level + total.delta + 1e-12
    # A copy by hand with a smaller sum proves nothing by it.
    lower = dataclasses.replace(total, epsilon=0.1)
    assert lower.attack_rates().tpr[2] > math.exp(0.1) * 0.05 + lower.delta


def test_the_stated_epsilon_changes_nothing():
    certificate = make(GaussianEvent(1.0))
    lower = dataclasses.replace(certificate, epsilon=0.01)
    assert lower.attack_rates() == certificate.attack_rates()
    assert lower.mu == certificate.mu


def test_published_claims_count_by_what_is_proved():
    proved = make(GaussianEvent(1.0))
    assert published(proved, proved.epsilon).attack_rates() == proved.attack_rates()
    for nothing in (None, math.inf):
        assert published(proved, nothing).attack_rates() is None
        assert published(proved, nothing).mu is None
        assert "test of membership" not in str(published(proved, nothing))


def test_without_noise_nothing_is_said():
    certificate = dataclasses.replace(make(GaussianEvent(1.0)), status="not private", epsilon=math.inf)
    assert certificate.mu is None
    assert certificate.attack_rates() is None
    assert "test of membership" not in str(certificate)


def test_objectives_have_rates_and_no_parameter():
    certificate = make(ObjectivePerturbationEvent(0.1, 0.2, replaced=False))
    assert certificate.mu is None
    assert certificate.attack_rates().advantage < 1.0
    assert "mu =" not in str(certificate)


def test_words_are_rounded_up():
    certificate = make(GaussianEvent(1.3))
    mu, rates = 1 / 1.3, certificate.attack_rates()
    words = str(certificate)
    assert f"mu = {math.ceil(mu * 1e4) / 1e4:.4g}" in words
    for rate in (*rates.tpr, rates.advantage):
        number = 100 * rate
        digits = 2 - math.floor(math.log10(number))
        shown = math.ceil(number * 10**digits) / 10**digits
        assert shown >= number
        assert f"{shown:.3g}%" in words
