"""What samplers are off their laws is charged with e**epsilon, once, at the epsilon of the whole.

The attack: of a Gaussian release with means 0 and mu, the sampler never draws the upper tail of the first that has
probability eta, and puts it elsewhere. It is within eta of its law, and the tail betrays the second data set.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri_exp

from taciturn.accounting import Budget, best_bound, calibrate, delta_of, epsilon_of, satisfies
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.events import (
    ApproximateEvent,
    ExponentialEvent,
    GaussianEvent,
    ObjectivePerturbationEvent,
    PureEvent,
    event_from_dict,
    event_to_dict,
    for_group,
)
from taciturn.mechanisms import DISTANCE_PER_VALUE, RoundedGaussian
from taciturn.privacy import calibration
from taciturn.privacy.budget import pieces_of
from taciturn.privacy.calibration import remaining_delta
from taciturn.privacy.certificate import Certificate, certify, compose
from taciturn.privacy.claim import Release

DELTA = 1e-6
VALUE = 2.0**-118


def gaussian_delta(mu, epsilon):
    """The exact delta of a shift by mu."""
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def mu_at(epsilon, delta):
    """The shift that is exactly (epsilon, delta)-DP."""
    return brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-3, 40.0, xtol=1e-13)


def attacked_delta(mu, epsilon, eta):
    """What the best test finds out about the sampler without its tail, beyond e**epsilon."""
    reach = -ndtri_exp(math.log(eta))
    # All outputs whose ratio is beyond e**epsilon, and the tail, of which the first data set has nothing.
    start = min(epsilon / mu + mu / 2, reach)
    kept = math.exp(log_ndtr(-start)) - eta
    return ndtr(mu - start) - math.exp(epsilon) * max(kept, 0.0)


@pytest.mark.parametrize(("epsilon", "n_values"), [(74.0, 1), (90.0, 1), (42.0, 10**6), (60.0, 10**6)])
def test_what_was_certified_without_the_charge_is_false(epsilon, n_values):
    mu, eta = mu_at(epsilon, DELTA * (1 - 1e-6)), n_values * VALUE
    assert epsilon_of(GaussianEvent(1 / mu), DELTA) == pytest.approx(epsilon, rel=1e-6)
    assert attacked_delta(mu, epsilon, eta) > DELTA * (1 + 1e-12)
    assert epsilon_of(GaussianEvent(1 / mu, eta), DELTA) > epsilon
    certificate = certify(
        [Release("sums", "Gaussian", 1 / mu, GaussianEvent(1 / mu, eta))],
        Budget(math.inf, DELTA),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )
    assert certificate.epsilon > epsilon


@pytest.mark.parametrize("n_values", [1, 1000, 10**6, 10**10])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_no_statement_falls_to_the_attack(n_values, delta):
    eta, stated = n_values * VALUE, []
    for mu in np.geomspace(0.05, 12.0, 40):
        epsilon = epsilon_of(GaussianEvent(1 / mu, eta), delta)
        stated.append(epsilon)
        if math.isfinite(epsilon):
            assert attacked_delta(mu, epsilon, eta) + eta <= delta
            assert attacked_delta(mu, 0.999 * epsilon, eta) > 0.99 * delta
    # Without noise to speak of nothing can be stated, and the charge decides where that begins.
    assert math.isinf(stated[-1])
    assert max(epsilon for epsilon in stated if math.isfinite(epsilon)) < math.log(delta / eta)
    assert stated == sorted(stated)


def test_the_charge_at_an_epsilon_of_a_part_would_not_do(monkeypatch):
    """The mutant: the distance of each release charged at that release's own epsilon."""

    def of_parts(pieces, epsilon, delta):
        return remaining_delta(pieces, epsilon / math.sqrt(sum(n for _, n in pieces.gaussians)), delta)

    mu, n, eta = mu_at(60.0, DELTA * (1 - 1e-5)), 10**4, 100 * VALUE
    plan = GaussianEvent(math.sqrt(n) / mu, eta) * n
    assert attacked_delta(mu, 60.0, n * eta) > DELTA
    assert epsilon_of(plan, DELTA) > 60.0
    monkeypatch.setattr(calibration, "remaining_delta", of_parts)
    assert epsilon_of(plan, DELTA) == pytest.approx(60.0, rel=1e-6)


def test_what_remains_of_delta():
    plan = ApproximateEvent(0.1, 2e-7) + GaussianEvent(5.0, 1e-9) * 3
    pieces = pieces_of(plan)
    assert pieces.distance == pytest.approx(3e-9)
    expected = (1e-6 - (1 + math.e) * 3e-9 - 2e-7) / (1 - 2e-7) * (1 - 1e-6)
    assert remaining_delta(pieces, 1.0, 1e-6) == pytest.approx(expected, rel=1e-12)
    assert remaining_delta(pieces, 6.0, 1e-6) is None
    assert remaining_delta(pieces, 1e9, 0.5) is None
    assert remaining_delta(pieces_of(PureEvent(1.0)), 1e9, 0.0) == 0.0


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [GaussianEvent, ExponentialEvent, lambda x, d: ObjectivePerturbationEvent(0.1, x, False, 1, d)]
        ),
        st.floats(0.05, 8.0),
        st.sampled_from([0.0, 1e-30, 1e-12, 1e-7]),
        st.integers(1, 20),
    ),
    min_size=1,
    max_size=4,
)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(EVENTS, st.sampled_from([1e-9, 1e-6, 1e-2]))
def test_epsilon_is_the_smallest_that_pays_for_its_own_charge(parts, delta):
    plan = sum((kind(x, distance) * n for kind, x, distance, n in parts[1:]), parts[0][0](*parts[0][1:3]) * parts[0][3])
    bare = sum((kind(x, 0.0) * n for kind, x, _, n in parts[1:]), parts[0][0](parts[0][1], 0.0) * parts[0][3])
    eta, epsilon = pieces_of(plan).distance, epsilon_of(plan, delta)
    grid = np.linspace(0.0, 60.0, 61)
    total = np.array([delta_of(bare, at) + (1 + math.exp(at)) * eta for at in grid])
    proved = grid[total <= delta]
    if math.isfinite(epsilon):
        charge = (1 + math.exp(epsilon)) * eta if eta else 0.0
        assert delta_of(bare, epsilon) + charge <= delta * (1 + 1e-9)
        assert delta_of(plan, epsilon) <= delta * (1 + 1e-9)
    # The grid finds no smaller one, and none where none is stated.
    assert not proved.size or epsilon <= proved[0] * (1 + 1e-9)


def test_the_charge_is_not_monotone_and_nothing_stated_gets_worse():
    plan = GaussianEvent(1.0, 1e-12)
    deltas = [delta_of(plan, epsilon) for epsilon in (1.0, 5.0, 10.0, 20.0, 40.0, 1e3, math.inf)]
    assert deltas == sorted(deltas, reverse=True)
    # Charged at the epsilon that is asked for, the last ones would be 1.
    assert 1e-12 < deltas[-1] < 1e-7
    epsilon = epsilon_of(plan, 1e-6)
    assert satisfies(plan, Budget(epsilon, 1e-6))
    assert satisfies(plan, Budget(30.0, 1e-6))
    assert (1 + math.exp(30.0)) * 1e-12 > 1.0
    assert epsilon_of(plan, 0.9 * deltas[-1]) == math.inf
    assert epsilon_of(plan, 1.1 * deltas[-1]) < math.inf


def test_without_a_delta_only_exact_samplers_are_private():
    assert epsilon_of(ExponentialEvent(0.5) * 2, 0.0) == 1.0
    assert epsilon_of(ExponentialEvent(0.5) + ExponentialEvent(0.5, 2.0**-110), 0.0) == math.inf
    with pytest.raises(ParameterError, match="^budget="):
        calibrate(Budget(1.0, 0.0), lambda scale: ExponentialEvent(1 / scale, 2.0**-110))


def test_calibration_pays_for_samplers_and_refuses_where_they_cost_too_much():
    def plan(distance):
        return lambda scale: GaussianEvent(scale, distance) * 10

    for distance in (0.0, VALUE, 1e-12):
        scale = calibrate(Budget(8.0, 1e-6), plan(distance))
        assert epsilon_of(plan(distance)(scale), 1e-6) <= 8.0
        assert epsilon_of(plan(distance)(scale * (1 - 1e-5)), 1e-6) > 8.0
    assert calibrate(Budget(8.0, 1e-6), plan(1e-12)) > calibrate(Budget(8.0, 1e-6), plan(VALUE)) * 1.0005
    expected = "^delta=1e-18: expected more than the 3.21e-18 that the sampling of the noise costs at epsilon=30; raise"
    with pytest.raises(ParameterError, match=expected):
        calibrate(Budget(30.0, 1e-18), plan(3e-32))


def test_composition_adds_distances_and_groups_keep_them():
    one = GaussianEvent(3.0, 1e-20)
    plan = one * 5 + ExponentialEvent(0.1, 1e-25) * 7 + ObjectivePerturbationEvent(0.1, 0.2, False, distance=1e-22)
    assert pieces_of(plan).distance == pytest.approx(5e-20 + 7e-25 + 1e-22, rel=1e-12)
    assert pieces_of(for_group(plan, 9)).distance == pieces_of(plan).distance
    # The same at the epsilon of the group, where e**epsilon is much larger.
    assert epsilon_of(for_group(one, 4), 1e-6) < math.inf
    assert epsilon_of(for_group(one, 40), 1e-6) == math.inf
    assert epsilon_of(for_group(GaussianEvent(3.0), 40), 1e-6) < math.inf


def state(event, delta=DELTA, epsilon=math.inf):
    return certify(
        [Release("sums", "Gaussian", 1.0, event)],
        Budget(epsilon, delta),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )


def test_certificates_charge_at_the_epsilon_of_the_group_and_of_the_composition():
    one = state(GaussianEvent(0.5, 1e-20))
    assert one.for_group(2).epsilon == best_bound(GaussianEvent(0.25, 1e-20), DELTA).epsilon
    with pytest.raises(CertificateError, match="^k=8: expected a group small enough"):
        one.for_group(8)
    assert state(GaussianEvent(0.5)).for_group(8).epsilon < math.inf
    several = compose(*[one] * 6)
    assert several.bound == "sum"
    exact = compose(*[state(GaussianEvent(0.5))] * 6)
    assert (exact.bound, exact.epsilon < several.epsilon) == ("gdp", True)


def test_json_keeps_distances():
    for event in (GaussianEvent(2.0, 7 * VALUE), ExponentialEvent(0.1, 2.0**-110) * 9):
        assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event
        certificate = state(event)
        assert Certificate.from_json(certificate.to_json()) == certificate
    for bad in (-1e-9, 1.5, math.nan, "0", None):
        with pytest.raises(ParameterError, match="^distance="):
            GaussianEvent(1.0, bad)


def test_an_event_without_its_distance_is_refused():
    for event in (GaussianEvent(2.0, 7 * VALUE), ExponentialEvent(0.1, 2.0**-110)):
        written = event_to_dict(event)
        del written["distance"]
        with pytest.raises(CertificateError, match="expected its own fields"):
            event_from_dict(written)


def test_a_mechanism_states_the_distance_of_the_values_that_it_releases():
    mechanism = RoundedGaussian(l2_sensitivity=3.0, log2_scale=12, magnitude=1000)
    assert DISTANCE_PER_VALUE == VALUE
    assert mechanism.event.distance == VALUE
    assert mechanism.event_of(40).distance == 40 * VALUE
    assert mechanism.event_of(40).noise_multiplier == mechanism.event.noise_multiplier
    with pytest.raises(ParameterError, match="^n_values=0"):
        mechanism.event_of(0)
