"""What the minimiser of a perturbed objective costs, against numerical integration."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from taciturn.accounting import Budget, calibrate, delta_of, epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.events import (
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    ObjectivePerturbationEvent,
    event_from_dict,
    event_to_dict,
    for_group,
)
from taciturn.privacy import gdp, pure, rdp
from taciturn.privacy.budget import Objective, log_moment, pieces_of
from taciturn.privacy.certificate import Certificate, certify
from taciturn.privacy.claim import Release

CASES = [(0.1, 0.1), (0.3, 0.25), (0.02, 0.5), (0.7, 1.0), (0.4, 2.0)]


def bound(event, epsilon: float) -> float:
    return math.exp(gdp.log_delta(pieces_of(event), epsilon))


def one_record(c: float, tau: float, epsilon: float) -> float:
    """E (1 - e^{epsilon - L})_+ for L = c + tau^2 / 2 + tau |Z|, by quadrature."""
    start = max(0.0, (epsilon - c) / tau - tau / 2)
    value, _ = quad(
        lambda z: 2 * norm.pdf(z) * -math.expm1(epsilon - c - tau * tau / 2 - tau * z), start, start + 12, limit=200
    )
    return value


@pytest.mark.parametrize(("c", "tau"), CASES)
@pytest.mark.parametrize("beyond", [1.0, 3.0, 5.0])
def test_delta_of_one_record_is_the_integral_and_its_closed_form(c, tau, beyond):
    epsilon = c + tau * tau / 2 + beyond * tau
    event = ObjectivePerturbationEvent(c, tau, replaced=False)
    truth = one_record(c, tau, epsilon)
    a = (epsilon - c) / tau - tau / 2
    assert bound(event, epsilon) == pytest.approx(truth, rel=1e-6)
    assert bound(event, epsilon) == pytest.approx(2 * (ndtr(-a) - math.exp(epsilon - c) * ndtr(-a - tau)), rel=1e-6)
    # With the rule for derivatives that keep their sign, or without the Jacobian, the bound would fall below the truth.
    assert bound(replace(event, fixed_sign=True), epsilon) < 0.6 * truth
    assert bound(ObjectivePerturbationEvent(0.0, tau, replaced=False), epsilon) < 0.95 * truth


@pytest.mark.parametrize("u", [1e-6, 0.01, 0.3, 1.0, 3.0, 8.0])
def test_moments_are_those_of_normal_lengths(u):
    one, two = exact_log_moment(u, 1), exact_log_moment(u, 2)
    (bound,) = log_moment(np.array([u]))
    # Equal directions are one, so that the bound cannot be smaller for several.
    assert bound == pytest.approx(one, rel=1e-6)
    # Orthogonal ones, of which the mean has independent terms, cost less, and the longest move of all costs more.
    for m in (2, 3, 10):
        assert m * exact_log_moment(u / m, 1) <= bound * (1 + 1e-6)
    assert bound < two
    # An accountant that took the shift for an ordinary Gaussian's would charge u^2 / 2 alone.
    assert u * u / 2 < one


def exact_log_moment(u: float, directions: int) -> float:
    """ln E exp(u |Z|) for a standard normal vector Z, scaled so that nothing overflows."""

    def density(z: float) -> float:
        return (math.sqrt(2 / math.pi) if directions == 1 else z) * math.exp(-((z - u) ** 2) / 2)

    return u * u / 2 + math.log(quad(density, max(u - 12, 0.0), u + 12, limit=200)[0])


@pytest.mark.parametrize(("c", "tau"), CASES)
def test_the_renyi_curve(c, tau):
    for directions in (1, 2):
        curve = rdp.objective_curve(Objective(c, tau, directions))
        for i in range(0, 310, 30):
            past_one = rdp.ORDERS[i] - 1.0
            if past_one * tau > 30:
                break
            exact = c + tau * tau / 2 + exact_log_moment(past_one * tau, directions) / past_one
            if directions == 1:
                assert curve[i] == pytest.approx(exact, rel=1e-6)
                alone = curve[i]
            # In a plane rows are worst if they are parallel, and then cost what one of their length does.
            assert curve[i] <= alone * (1 + 1e-12)
            assert curve[i] <= exact * (1 + 1e-6)
            assert curve[i] >= c + tau * tau / 2 + past_one * tau * tau / 2


@pytest.mark.parametrize(("c", "tau"), CASES)
def test_the_renyi_curve_of_a_derivative_that_keeps_its_sign(c, tau):
    curve = rdp.objective_curve(Objective(c, tau, 1, fixed_sign=True))
    signless = rdp.objective_curve(Objective(c, tau, 1))
    replaced = rdp.objective_curve(Objective(c, 2 * tau, 2, fixed_sign=True))
    for i in range(0, 310, 30):
        p = rdp.ORDERS[i] - 1.0
        if p * tau > 15:
            break
        # L - c = max(0, tau^2 / 2 + tau Z); and, for a record that is replaced by its mirror image, shifts of up to
        # 2 tau along one line.
        one, line = (moment_of_largest([k * tau for k in range(most + 1)], p) for most in (1, 2))
        assert curve[i] == pytest.approx(c + one / p, rel=1e-6)
        assert curve[i] < signless[i]
        assert replaced[i] >= (c + line / p) * (1 - 1e-6)
        assert curve[i] < c + line / p


def moment_of_largest(shifts: list[float], p: float) -> float:
    """ln E exp(p max(s^2 / 2 + s Z)) over the shifts, by quadrature between the kinks and scaled by its peak."""
    peak = p * (p + 1) * shifts[-1] ** 2 / 2

    def density(z: float) -> float:
        largest = max(s * s / 2 + s * z for s in shifts)
        return math.exp(p * largest - z * z / 2 - peak) / math.sqrt(2 * math.pi)

    kinks = sorted(-(a + b) / 2 for a, b in itertools.pairwise(shifts))
    ends = [-12.0, *kinks, p * shifts[-1], p * shifts[-1] + 12.0]
    return peak + math.log(sum(quad(density, *part, epsabs=0.0, limit=200)[0] for part in itertools.pairwise(ends)))


def after_a_selection(c: float, tau: float, e: float, mu: float, epsilon: float) -> float:
    """The worst selection of range e, then the objective of loss c + tau^2/2 + tau |Z|, then Gaussian noise."""

    def rest(log_gamma: float) -> float:
        z = np.linspace(0.0, 12.0, 6001)
        m = log_gamma - c - tau * tau / 2 - tau * z
        gaussian = ndtr(-m / mu + mu / 2) - np.exp(m) * ndtr(-m / mu - mu / 2)
        return float(np.trapezoid(2 * norm.pdf(z) * gaussian, z))

    answers = []
    for t in np.linspace(0.0, e, 21):
        p = (math.exp(e) - math.exp(t)) / math.expm1(e)
        # The ratios are e^t and e^{t - e}, the first with probability p.
        answers.append(p * rest(epsilon - t) + (1 - p) * rest(epsilon - t + e))
    return max(answers)


@pytest.mark.parametrize(("c", "tau", "e", "mu"), [(0.2, 0.3, 0.4, 0.1), (0.1, 0.5, 0.2, 0.3), (0.5, 0.2, 0.6, 0.05)])
def test_a_plan_of_several_kinds_is_covered(c, tau, e, mu):
    plan = ExponentialEvent(e) + ObjectivePerturbationEvent(c, tau, replaced=False) + GaussianEvent(1 / mu)
    for epsilon in (0.8, 1.2, 2.0):
        truth = after_a_selection(c, tau, e, mu, epsilon)
        assert truth <= delta_of(plan, epsilon)
        # Each part must have been charged: without one of them the bound falls short.
        assert truth > delta_of(ObjectivePerturbationEvent(c, tau, replaced=False), epsilon)
        assert truth > delta_of(ExponentialEvent(e) + GaussianEvent(1 / math.hypot(tau, mu)), epsilon)


def test_the_best_of_the_bounds_is_taken():
    single = ObjectivePerturbationEvent(0.1, 0.2, replaced=False)
    alone = pieces_of(single)
    assert gdp.epsilon(alone, 1e-6) < rdp.epsilon(alone, 1e-6)
    assert epsilon_of(single, 1e-6) == pytest.approx(gdp.epsilon(alone, 1e-6), rel=1e-6)
    assert math.isinf(pure.epsilon(alone, 1e-6))
    assert math.isinf(epsilon_of(single, 0.0))
    assert math.isinf(gdp.mu_squared(single))
    # Too many doublings for the first bound, none for the second.
    many = pieces_of(single * 5000)
    assert math.isinf(gdp.epsilon(many, 1e-6))
    assert rdp.epsilon(many, 1e-6) < math.inf


def test_epsilon_and_delta_are_inverse():
    event = ObjectivePerturbationEvent(0.1, 0.2, replaced=True) + GaussianEvent(50.0)
    for delta in (1e-9, 1e-6, 1e-3):
        assert delta_of(event, epsilon_of(event, delta)) == pytest.approx(delta, rel=1e-3)
    assert delta_of(event, 0.05) == pytest.approx(math.exp(rdp.log_delta(pieces_of(event), 0.05)), rel=1e-3)


def test_calibration_leaves_to_the_noise_what_the_jacobian_leaves():
    for c in (0.0, 0.2, 0.6):
        scale = calibrate(Budget(1.0, 1e-6), lambda s, c=c: ObjectivePerturbationEvent(c, 1 / s, replaced=False))
        gaussian = calibrate(Budget(1.0 - c, 5e-7), lambda s: GaussianEvent(s))
        assert scale == pytest.approx(gaussian, rel=1e-5)
    with pytest.raises(ParameterError, match="drop the releases whose cost does not shrink"):
        calibrate(Budget(1.0, 1e-6), lambda s: ObjectivePerturbationEvent(1.001, 1 / s, replaced=False))


def test_groups_bring_directions_of_their_own():
    event = ObjectivePerturbationEvent(0.1, 0.2, replaced=False)
    pair = pieces_of(for_group(event, 2)).objectives
    assert pair == ((Objective(0.2, 0.4, 2), 1),)
    # Two records that come are no worse than one that comes and one that goes, but for their two Jacobians.
    assert pair == pieces_of(ObjectivePerturbationEvent(0.2, 0.4, replaced=True)).objectives
    assert for_group(for_group(event, 2), 3) == for_group(event, 6)
    swapped = for_group(ObjectivePerturbationEvent(0.1, 0.2, replaced=True) * 4, 3)
    assert pieces_of(swapped).objectives == ((Objective(pytest.approx(0.3), pytest.approx(0.6), 6), 4),)
    assert epsilon_of(for_group(event, 2), 1e-6) > 2 * epsilon_of(event, 1e-6)


def test_json_certificates_and_bad_parameters():
    event = ObjectivePerturbationEvent(0.1, 0.25, replaced=True, records=3)
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event * 2)))) == event * 2
    single = ObjectivePerturbationEvent(0.1, 0.1, replaced=False)
    certificate = certify(
        (Release("the minimiser", "Gaussian", 10.0, single),),
        Budget(epsilon_of(single, 1e-6), 1e-6),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="float64",
    )
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "the minimiser (once, Gaussian noise of 10 sensitivities)" in str(certificate)
    assert certificate.for_group(2).epsilon > 2 * certificate.epsilon
    for bad in (
        {"log_jacobian": -0.1},
        {"log_jacobian": math.inf},
        {"shift": 0.0},
        {"replaced": 1},
        {"records": 0},
        {"fixed_sign": None},
    ):
        with pytest.raises(ParameterError, match=f"^{next(iter(bad))}="):
            ObjectivePerturbationEvent(**({"log_jacobian": 0.1, "shift": 0.2, "replaced": False} | bad))


def test_an_event_with_a_fixed_sign_costs_less():
    event = ObjectivePerturbationEvent(0.1, 0.2, replaced=False)
    assert epsilon_of(event, 1e-6) > epsilon_of(replace(event, fixed_sign=True), 1e-6)


def test_order_does_not_matter_to_what_is_not_a_selection():
    parts = (ObjectivePerturbationEvent(0.1, 0.2, replaced=False), GaussianEvent(8.0), ExponentialEvent(0.1) * 20)
    forwards, backwards = ComposedEvent(parts), ComposedEvent(parts[::-1])
    assert epsilon_of(forwards, 1e-6) == pytest.approx(epsilon_of(backwards, 1e-6), rel=1e-9)
