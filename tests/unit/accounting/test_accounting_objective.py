"""What the minimiser of a perturbed objective costs, against numerical integration."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from taciturn.accounting import Budget, calibrate, delta_of, epsilon_of, gdp, pure, rdp
from taciturn.accounting.objective import log_moment, polynomial, vertices
from taciturn.accounting.pieces import Objective, pieces_of
from taciturn.certificate import Certificate, Release, certify
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


def of_tail(tail, epsilon: float, tau: float) -> float:
    """E (1 - e^{epsilon - L})_+ from P(L > l), by quadrature over so many deviations of L."""
    return quad(lambda more: math.exp(-more) * tail(epsilon + more), 0.0, 12.0 * tau, epsabs=0.0, epsrel=1e-9)[0]


def two_records(c: float, tau: float, epsilon: float, correlation: float) -> float:
    """The same for any signs of two records of tau / 2 each whose directions have this correlation."""
    squares = [tau * tau * (1 + sign * correlation) / 2 for sign in (1, -1)]

    def tail(loss: float) -> float:
        # Sum and difference of the two directions are orthogonal, so the two larger losses are independent.
        first, second = (
            2 * min(ndtr(math.sqrt(a) / 2 - (loss - c) / math.sqrt(a)), 0.5) if a else 0.0 for a in squares
        )
        return first + second - first * second

    return of_tail(tail, epsilon, tau)


@pytest.mark.parametrize(("c", "tau"), CASES)
def test_delta_of_a_replaced_record_covers_every_correlation(c, tau):
    event = ObjectivePerturbationEvent(c, tau, replaced=True)
    for beyond in (1.0, 2.5, 4.0):
        epsilon = c + tau * tau / 2 + beyond * tau
        truths = [two_records(c, tau, epsilon, r) for r in (-1.0, -0.9, -0.5, 0.0, 0.3, 0.8, 1.0)]
        assert max(truths) <= bound(event, epsilon) * (1 + 1e-6)
        assert max(truths) > 0.6 * bound(event, epsilon)
    # Far out parallel rows decide, and half the weight would be too little.
    assert bound(event, epsilon) / 2 < 0.6 * max(truths)
    assert max(truths) > 0.95 * bound(event, epsilon)


# ------------------------------------------------------------------ derivatives that keep their sign


def one_sided(c: float, tau: float, epsilon: float) -> float:
    """For L = c + max(0, tau^2 / 2 + tau Z)."""
    return of_tail(lambda loss: ndtr(-((loss - c) / tau - tau / 2)) if loss >= c else 1.0, epsilon, tau)


@pytest.mark.parametrize(("c", "tau"), CASES)
@pytest.mark.parametrize("beyond", [1.0, 3.0, 5.0])
def test_delta_of_a_record_whose_derivative_keeps_its_sign(c, tau, beyond):
    epsilon = c + tau * tau / 2 + beyond * tau
    event = ObjectivePerturbationEvent(c, tau, replaced=False, fixed_sign=True)
    # Beyond c nothing but the one tail counts: half of what two tails cost.
    assert bound(event, epsilon) == pytest.approx(one_sided(c, tau, epsilon), rel=1e-6)
    assert bound(event, epsilon) == pytest.approx(one_record(c, tau, epsilon) / 2, rel=1e-6)


GRID = np.linspace(-9.0, 9.0, 1201)
WEIGHTS = np.outer(norm.pdf(GRID), norm.pdf(GRID)) * (GRID[1] - GRID[0]) ** 2


def replaced_one_sided(c: float, tau: float, epsilon: float, correlation: float) -> float:
    """Two records of tau / 2 each, the one that goes and the one that comes, each at its end or at 0."""
    first = np.broadcast_to(GRID[:, None], WEIGHTS.shape)
    second = correlation * GRID[:, None] + math.sqrt(1 - correlation**2) * GRID
    step = tau / 2
    losses = [0.0, step**2 / 2 + step * first, step**2 / 2 + step * second]
    losses.append(step**2 * (1 + correlation) + step * (first + second))
    loss = c + np.maximum.reduce([np.broadcast_to(loss, WEIGHTS.shape) for loss in losses])
    return float((WEIGHTS * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


@pytest.mark.parametrize(("c", "tau"), CASES)
def test_delta_of_a_replaced_record_whose_derivative_keeps_its_sign(c, tau):
    event = ObjectivePerturbationEvent(c, tau, replaced=True, fixed_sign=True)
    for beyond in (1.0, 2.5, 4.0):
        epsilon = c + tau * tau / 2 + beyond * tau
        truths = [replaced_one_sided(c, tau, epsilon, r) for r in (-1.0, -0.5, 0.0, 0.8, 1.0)]
        assert max(truths) <= bound(event, epsilon) * (1 + 2e-3)  # the grid's error
        assert max(truths) > 0.5 * bound(event, epsilon)
        single = ObjectivePerturbationEvent(c, tau / 2, replaced=False, fixed_sign=True)
        assert bound(single, epsilon) < max(truths)
        assert bound(event, epsilon) < bound(ObjectivePerturbationEvent(c, tau, replaced=True), epsilon)


def before_gaussian_noise(c: float, tau: float, mu: float, epsilon: float) -> float:
    """The loss c + max(0, tau^2 / 2 + tau Z), then Gaussian noise: by quadrature over Z."""

    def gaussian(z: float) -> float:
        m = epsilon - c - max(0.0, tau * tau / 2 + tau * z)
        return norm.pdf(z) * (ndtr(-m / mu + mu / 2) - math.exp(m) * ndtr(-m / mu - mu / 2))

    halves = ((-12.0, -tau / 2), (-tau / 2, 12.0))
    return sum(quad(gaussian, low, high, limit=400, epsabs=0.0, epsrel=1e-7)[0] for low, high in halves)


@pytest.mark.parametrize(("c", "tau", "mu"), [(0.1, 0.3, 0.3), (0.05, 0.1, 0.5), (0.3, 0.6, 0.4)])
def test_the_vertex_of_no_shift_counts_as_soon_as_other_releases_follow(c, tau, mu):
    plan = ObjectivePerturbationEvent(c, tau, replaced=False, fixed_sign=True) + GaussianEvent(1 / mu)
    for beyond in (0.5, 1.5, 2.5):
        epsilon = c + beyond * math.hypot(tau, mu)
        truth = before_gaussian_noise(c, tau, mu, epsilon)
        without = gdp.delta_of_mu(epsilon - c, math.hypot(tau, mu))
        vertex = gdp.delta_of_mu(epsilon - c, mu) / 2
        assert bound(plan, epsilon) == pytest.approx(without + vertex, rel=1e-9)
        assert without < truth <= bound(plan, epsilon)


# ------------------------------------------------------------------ polynomials


def test_polynomials_of_one_objective():
    assert vertices(1, False) == {1: 2}
    assert vertices(2, False) == {4: 2, 2: 2}
    assert vertices(1, True) == {1: 1, 0: 0.5}
    assert vertices(2, True) == {4: 1, 1: 2, 0: 0.5}
    for m in (1, 2, 3, 5, 20):
        assert sum(vertices(m, False).values()) == 2**m
        assert sum(vertices(m, True).values()) == 2**m - 0.5


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("fixed_sign", [False, True])
def test_polynomials_cover_the_vertices_of_all_directions(m, fixed_sign):
    """Squared lengths of all combinations, largest first, against those of the polynomial."""
    rng = np.random.default_rng(m)
    allowed = sorted((a for a, w in vertices(m, fixed_sign).items() for _ in range(math.ceil(w))), reverse=True)
    reached = np.zeros(2**m)
    for case in range(300):
        rows = rng.standard_normal((m, rng.integers(1, m + 1)))
        if case % 3 == 0:
            rows[:] = rows[:1] * rng.choice([-1.0, 1.0], (m, 1))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        signs = np.array(list(itertools.product((0, 1) if fixed_sign else (-1, 1), repeat=m)))
        squares = np.sort(((signs @ rows) ** 2).sum(axis=1))[::-1]
        assert (squares <= np.array(allowed) + 1e-9).all()
        reached = np.maximum(reached, squares)
    assert reached[0] == pytest.approx(allowed[0])


def test_rows_at_right_angles_need_all_four_vertices_of_a_replaced_record():
    squares = [float(np.sum((np.array(signs) @ np.eye(2)) ** 2)) for signs in itertools.product((-1, 1), repeat=2)]
    assert squares == [2.0] * 4
    assert sorted(a for a, w in vertices(2, False).items() for _ in range(w)) == [2, 2, 4, 4]


def test_products_of_polynomials():
    one, other = (
        ObjectivePerturbationEvent(0.1, 0.3, replaced=False, fixed_sign=True),
        ObjectivePerturbationEvent(0.1, 0.2, replaced=False),
    )
    shifts, log_weights = polynomial(pieces_of(one * 3 + other * 2))
    expected = {k * 0.09 + 2 * 0.04: math.comb(3, k) * 0.5 ** (3 - k) * 4 for k in range(4)}
    assert shifts == pytest.approx(sorted(expected))
    assert np.exp(log_weights) == pytest.approx([expected[key] for key in sorted(expected)])


def test_long_polynomials_are_rounded_up():
    replaced = for_group(ObjectivePerturbationEvent(0.0, 0.01, replaced=True, fixed_sign=True), 3)
    shifts, log_weights = map(np.array, polynomial(pieces_of(replaced * 100)))
    whole = sum(vertices(6, True).values())
    assert shifts.size <= 520
    assert logsumexp(log_weights) == pytest.approx(100 * math.log(whole))
    # Means of squared shifts, each vertex by its weight: a little above the exact one, and never below.
    mean = float((shifts * np.exp(log_weights - logsumexp(log_weights))).sum())
    exact = 100 * 0.005**2 * sum(a * w for a, w in vertices(6, True).items()) / whole
    assert exact < mean < 1.02 * exact


def test_very_large_groups_are_accounted_at_once():
    event = ObjectivePerturbationEvent(1e-9, 1e-9, replaced=True, fixed_sign=True)
    shifts, log_weights = polynomial(pieces_of(for_group(event, 10**6)))
    # Two directions a record, each of half the event's shift.
    assert shifts == pytest.approx([(10**6 * 1e-9) ** 2])
    assert log_weights == pytest.approx([2 * 10**6 * math.log(2.0)])
    smaller = polynomial(pieces_of(for_group(event, 256)))
    assert max(smaller[0]) == pytest.approx((256 * 1e-9) ** 2)
    assert len(smaller[0]) > 300


@pytest.mark.parametrize(
    ("replaced", "fixed_sign", "count", "saved"),
    [
        (False, True, 1, (0.040, 0.031)),
        (True, True, 1, (0.077, 0.059)),
        (True, False, 1, (0.038, 0.029)),
        (False, True, 10, (0.21, 0.18)),
    ],
)
def test_noise_saved_beside_a_factor_of_two_per_direction(replaced, fixed_sign, count, saved):
    for epsilon, share in zip((1.0, 5.0), saved, strict=True):
        budget = Budget(epsilon, 1e-5)
        c = 0.1 * epsilon / count
        doubled = 1e-5 / 2 ** (count * (2 if replaced else 1))
        before = calibrate(Budget(epsilon - count * c, doubled), lambda s: GaussianEvent(s) * count)
        now = calibrate(
            budget, lambda s, c=c: ObjectivePerturbationEvent(c, 1 / s, replaced, fixed_sign=fixed_sign) * count
        )
        assert 1 - now / before == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("u", [1e-6, 0.01, 0.3, 1.0, 3.0, 8.0])
def test_moments_are_those_of_normal_lengths(u):
    one, two, shorter = exact_log_moment(u, 1), exact_log_moment(u, 2), exact_log_moment(u / 3, 1)
    (first,), (second,), (third,) = (log_moment(np.array([u]), m) for m in (1, 2, 3))
    assert first == pytest.approx(one, rel=1e-6)
    assert second <= two * (1 + 1e-6)
    if u < 1:
        assert second == pytest.approx(two, rel=1e-6)
    # Equal directions are one, and independent ones of a third of the length each must be covered too.
    assert second >= first
    assert third >= max(first, 3 * shorter)
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


def test_events_of_version_0_1_say_nothing_of_signs_and_pay_for_both():
    written = {"kind": "objective-perturbation", "log_jacobian": 0.1, "shift": 0.2, "replaced": False, "records": 1}
    event = event_from_dict(written)
    assert event == ObjectivePerturbationEvent(0.1, 0.2, replaced=False)
    assert epsilon_of(event, 1e-6) > epsilon_of(event_from_dict(written | {"fixed_sign": True}), 1e-6)


def test_order_does_not_matter_to_what_is_not_a_selection():
    parts = (ObjectivePerturbationEvent(0.1, 0.2, replaced=False), GaussianEvent(8.0), ExponentialEvent(0.1) * 20)
    forwards, backwards = ComposedEvent(parts), ComposedEvent(parts[::-1])
    assert epsilon_of(forwards, 1e-6) == pytest.approx(epsilon_of(backwards, 1e-6), rel=1e-9)
