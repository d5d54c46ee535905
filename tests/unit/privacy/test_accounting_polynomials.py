"""Objectives as polynomials, weights by squared shift: against quadrature, all directions, and what they save."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from taciturn.accounting import Budget, calibrate
from taciturn.events import GaussianEvent, ObjectivePerturbationEvent, for_group
from taciturn.privacy import gdp
from taciturn.privacy.budget import pieces_of, polynomial, vertices

CASES = [(0.1, 0.1), (0.3, 0.25), (0.02, 0.5), (0.7, 1.0), (0.4, 2.0)]


def bound(event, epsilon: float) -> float:
    return math.exp(gdp.log_delta(pieces_of(event), epsilon))


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
    assert bound(event, epsilon) == pytest.approx(bound(replace(event, fixed_sign=False), epsilon) / 2, rel=1e-6)


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
