from __future__ import annotations

import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

from taciturn.events import (
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    PureEvent,
)
from taciturn.privacy import rdp
from taciturn.privacy.budget import pieces_of

RANGES = [1e-6, 1e-3, 0.02, 0.5, 1.0, 4.0, 50.0, 900.0]


def exact_selection(order: float, selection_range: float, v: mpmath.mpf) -> mpmath.mpf:
    """The Rényi divergence of the two-point selection whose larger ratio is v."""
    a, big = mpmath.mpf(order), mpmath.exp(mpmath.mpf(selection_range))
    p = (big - v) / (big - 1)
    return mpmath.log(p * v ** (a - 1) + (1 - p) * (v / big) ** (a - 1)) / (a - 1)


@pytest.mark.parametrize("selection_range", [0.02, 0.5, 1.0, 4.0])
def test_the_closed_form_is_the_supremum_over_two_point_selections(selection_range):
    curve = rdp.selection_curve(selection_range)
    t = selection_range * (1.0 - np.concatenate([np.geomspace(1e-7, 1e-2, 1000), np.linspace(1e-2, 1.0, 2000)]))
    p = np.expm1(selection_range - t) / np.expm1(selection_range) * np.exp(t)
    for i in range(0, 310, 10):
        order = rdp.ORDERS[i]
        with np.errstate(divide="ignore"):
            moments = np.logaddexp(np.log(p) + (order - 1) * t, np.log1p(-p) + (order - 1) * (t - selection_range))
        brute = moments.max() / (order - 1)
        assert brute <= curve[i] * (1 + 1e-9)
        if order * selection_range >= 0.01:
            assert curve[i] <= brute * (1 + 1e-4) + 1e-12


@pytest.mark.parametrize("selection_range", RANGES)
def test_the_selection_curve_never_falls_below_its_exact_value(selection_range):
    curve = rdp.selection_curve(selection_range)
    with mpmath.workdps(60):
        big = mpmath.exp(mpmath.mpf(selection_range))
        for i in range(0, 310, 7):
            a = mpmath.mpf(float(rdp.ORDERS[i]))
            v = (a - 1) * (big - big ** (1 - a)) / (a * (1 - big ** (1 - a)))
            assert 1 <= v <= big
            exact = exact_selection(float(a), selection_range, v)
            assert exact <= mpmath.mpf(float(curve[i])) * (1 + mpmath.mpf(10) ** -15)
            assert curve[i] <= float(exact) * (1 + 1e-5) + 1e-11


@pytest.mark.parametrize("selection_range", RANGES)
def test_bounded_range_is_never_worse_than_concentrated_or_pure_privacy(selection_range):
    curve = rdp.selection_curve(selection_range)
    assert (curve <= rdp.ORDERS * selection_range**2 / 8).all()
    assert (curve <= selection_range * (1 + 1e-12)).all()
    assert (np.diff(curve) >= -1e-12 * curve[1:]).all()
    assert (curve <= rdp.pure_curve(selection_range) * (1 + 1e-12)).all()


@pytest.mark.parametrize("epsilon", RANGES)
def test_the_pure_curve_is_randomised_response(epsilon):
    curve = rdp.pure_curve(epsilon)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        q = mpmath.exp(-mpmath.mpf(epsilon)) * p
        for i in range(0, 310, 7):
            a = mpmath.mpf(float(rdp.ORDERS[i]))
            exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert exact <= mpmath.mpf(float(curve[i])) * (1 + mpmath.mpf(10) ** -15)
            assert curve[i] <= float(exact) * (1 + 1e-3) + 1e-11
    assert (curve <= epsilon).all()
    assert (curve <= rdp.ORDERS * epsilon**2 / 2 * (1 + 1e-15)).all()


def test_the_checks_above_reject_what_is_wrong():
    """A curve taken at t = e0 / 2 alone, as if that were always the worst selection, is too small."""
    i = int(np.searchsorted(rdp.ORDERS, 8.0))
    half = exact_selection(float(rdp.ORDERS[i]), 2.0, mpmath.exp(1))
    assert float(half) < 0.99 * rdp.selection_curve(2.0)[i]


def test_orders_are_public_dense_and_wide():
    assert rdp.ORDERS[0] > 1.01  # the conversion ignores smaller ones
    assert rdp.ORDERS[-1] == pytest.approx(1e5)
    assert (np.diff(np.log(rdp.ORDERS - 1)) < 0.08).all()
    assert (np.diff(rdp.ORDERS) > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        rdp.ORDERS[0] = 2.0


def test_curves_add_up():
    plan = ExponentialEvent(0.1) * 7 + GaussianEvent(4.0) * 3 + PureEvent(0.2) + ExponentialEvent(0.1)
    expected = 8 * rdp.selection_curve(0.1) + 3 * rdp.ORDERS / 32 + rdp.pure_curve(0.2)
    np.testing.assert_allclose(rdp.curve(pieces_of(plan)), expected, rtol=1e-13)


@pytest.mark.parametrize("event", [LaplaceMaxEvent(0.3), PureEvent(0.3)])
def test_pure_releases_are_refused_the_curve_of_bounded_range(event):
    np.testing.assert_array_equal(rdp.curve(pieces_of(event)), rdp.pure_curve(0.3))


PLANS = [
    GaussianEvent(5.0) * 10,
    ExponentialEvent(0.05) * 100 + PureEvent(0.3),
    PureEvent(1.0) * 3,
    ExponentialEvent(3.0) * 5,
    GaussianEvent(1e4),
]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_epsilon_is_the_conversion_of_canonne_kamath_and_steinke(plan, delta):
    pieces = pieces_of(plan)
    tau = rdp.curve(pieces)
    converted = tau + np.log1p(-1 / rdp.ORDERS) - np.log(delta * rdp.ORDERS) / (rdp.ORDERS - 1)
    expected = 0.0 if delta**2 > -math.expm1(-tau[0]) else max(0.0, converted.min())
    assert rdp.epsilon(pieces, delta) == pytest.approx(expected, rel=1e-12)
    assert rdp.epsilon(pieces, delta) == compute_epsilon(rdp.ORDERS, tau, delta)[0]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 10.0])
def test_delta_agrees_with_a_second_implementation(plan, epsilon):
    pieces = pieces_of(plan)
    expected = compute_delta(rdp.ORDERS, rdp.curve(pieces), epsilon)[0]
    assert math.exp(rdp.log_delta(pieces, epsilon)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_epsilon_and_delta_are_inverse_to_each_other(plan, delta):
    pieces = pieces_of(plan)
    epsilon = rdp.epsilon(pieces, delta)
    if epsilon > 0.0:
        assert math.exp(rdp.log_delta(pieces, epsilon)) == pytest.approx(delta, rel=1e-9)
        assert rdp.excess(pieces, epsilon * 1.001, delta) < 0.0 < rdp.excess(pieces, epsilon * 0.999, delta)


def test_the_ends():
    nothing, everything = pieces_of(ComposedEvent(())), pieces_of(NotPrivateEvent())
    assert rdp.epsilon(nothing, 0.0) == rdp.epsilon(nothing, 1e-5) == 0.0
    assert rdp.log_delta(nothing, 0.0) == rdp.excess(nothing, 1.0, 0.0) == -math.inf
    assert rdp.epsilon(everything, 0.0) == rdp.epsilon(everything, 1e-5) == math.inf
    assert rdp.log_delta(everything, 1.0) == rdp.log_delta(everything, math.inf) == 0.0
    assert rdp.epsilon(pieces_of(GaussianEvent(1.0)), 0.0) == math.inf
    assert rdp.excess(pieces_of(GaussianEvent(1.0)), 1.0, 0.0) == math.inf
    assert rdp.log_delta(pieces_of(GaussianEvent(1.0)), math.inf) == -math.inf
    assert rdp.log_delta(pieces_of(GaussianEvent(1e12)), 0.0) < math.log(1e-11)


def test_the_slow_import_waits_until_it_is_needed():
    code = "import sys, taciturn.accounting; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
