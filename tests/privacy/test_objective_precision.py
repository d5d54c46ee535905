"""Objective perturbation in double precision: tolerances cover rounding, and the solver arrives."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from taciturn.accounting import Budget
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.objective import run as solver
from taciturn.methods.objective.plan import (
    StoppingCriterion,
    noise_bound,
    plan_objective_perturbation,
    stopping_criterion,
)
from taciturn.methods.objective.run import ACCEPTED, bounded_rows, descend, gradient, minimise
from taciturn.methods.schedule import Problem
from taciturn.privacy.mechanisms import rounded_normals

LOSSES = [HuberLoss(0.3), LogisticLoss()]


def problem(loss, n=500, d=8, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.4)
    rows, _ = bounded_rows(sp.csr_matrix(X) if sparse else X, 1.0, 1.5, intercept=True)
    y = (X[:, 0] > 0).astype(float) if isinstance(loss, LogisticLoss) else np.clip(X[:, 0] * 3, -1, 1)
    return rows, y, 5.0 * rng.standard_normal(d + 1)


def exact_gradient(rows, y, loss, ridge, tilt, w):
    """With 50 digits, from the definition."""
    dense = rows.toarray() if sp.issparse(rows) else rows
    with mpmath.workdps(50):
        weights = [mpmath.mpf(float(v)) for v in w]
        total = [ridge * v + mpmath.mpf(float(t)) for v, t in zip(weights, tilt, strict=True)]
        for row, target in zip(dense.tolist(), y.tolist(), strict=True):
            margin = mpmath.fsum(a * v for a, v in zip(row, weights, strict=True))
            if isinstance(loss, LogisticLoss):
                slope = 1 / (1 + mpmath.exp(-margin)) - target
            else:
                slope = min(max(margin - target, -loss.threshold), loss.threshold)
            total = [t + slope * a for t, a in zip(total, row, strict=True)]
    return total


def exact_norm(*problem):
    with mpmath.workdps(50):
        return float(mpmath.sqrt(mpmath.fsum(v * v for v in exact_gradient(*problem))))


def off(rows, y, loss, ridge, tilt, w):
    """By how much the computed gradient misses the exact one."""
    exact = exact_gradient(rows, y, loss, ridge, tilt, w)
    computed = gradient(rows, y, loss, ridge, tilt, w)
    with mpmath.workdps(50):
        return float(
            mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        )


# ------------------------------------------------------------------ what rounding does


def rounding(criterion, loss, row_bound, bound):
    """The part of a tolerance that is for rounding, which covers 3.5 times what gradient and step may be off."""
    return criterion.tolerance - 2.0**-30 * loss.lipschitz(math.inf) * row_bound - 2.0**-44 * bound


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("ridge", "bound"), [(1e-7, 10.0), (1.0, 10.0), (1.0, 1e9), (1e6, 10.0)])
def test_computed_gradients_are_off_by_less_than_the_tolerance_allows(loss, ridge, bound):
    """At the ends of the region of points for which the bound is stated, margins near zero included."""
    rng = np.random.default_rng(0)
    n, d = 300, 9
    scattered, y, _ = problem(loss, n=n)
    # Rows that do not see one direction: along it margins are small differences of large products.
    blind = np.tile(rng.uniform(-0.5, 0.5, (d - 1, d)), (n // (d - 1) + 1, 1))[:n]
    criterion = stopping_criterion(loss, 1.5, ridge, n, d, bound)
    allowed = rounding(criterion, loss, 1.5, bound) / 3.5
    worst = 0.0
    for case in range(12):
        rows, direction = scattered, rng.standard_normal(d)
        if case % 2:
            rows, direction = blind, np.linalg.svd(blind[: d - 1])[2][-1]
        weights = criterion.largest_norm * direction / np.linalg.norm(direction)
        tilt = rng.standard_normal(d)
        tilt *= bound / np.linalg.norm(tilt)
        worst = max(worst, off(rows, y, loss, ridge, tilt, weights) / allowed)
    assert worst <= 1.0
    if ridge == 1e-7:
        # Where coefficients are long the rounding of margins is what counts: without its term the bound would fail.
        n_slope = n * loss.lipschitz(math.inf) * 1.5
        without = 8 * 2.0**-53 * (140 * n_slope + 3 * ridge * criterion.largest_norm + 3 * bound) / 3.5
        assert worst * allowed > 3.0 * without


def test_the_minimiser_is_within_reach():
    rng = np.random.default_rng(1)
    for loss in LOSSES:
        for ridge in (1e-4, 0.1, 10.0):
            rows, y, tilt = problem(loss, n=40, d=3, seed=2)
            tilt = tilt * rng.uniform(0.01, 100.0)
            criterion = stopping_criterion(loss, 1.5, ridge, 40, 4, float(np.linalg.norm(tilt)))
            weights = minimise(rows, y, loss, ridge, tilt, StoppingCriterion(1e-9))
            assert np.linalg.norm(weights) <= criterion.largest_norm / 2
    # Without losses it is at its bound: b over the ridge, twice that in the reach.
    criterion = stopping_criterion(HuberLoss(1e-9), 1.0, 2.0, 1, 3, 6.0)
    assert criterion.largest_norm == pytest.approx(2 * 6.0 / 2.0, rel=1e-6)


def test_noise_keeps_within_its_bound():
    d, scale = 7, 3.0
    draws = [math.ldexp(scale, -50) * rounded_normals(Stream.of(seed), d, 50) for seed in range(300)]
    assert np.linalg.norm(draws, axis=1).max() < noise_bound(scale, d)
    assert kstest(np.ravel(draws) / scale, "norm").pvalue > 1e-6
    # P(chi_7 > sqrt(7) + 13), with more digits than doubles have in the tail.
    with mpmath.workdps(60):
        tail = mpmath.gammainc(d / 2.0, noise_bound(1.0, d) ** 2 / 2) / mpmath.gamma(d / 2.0)
        assert tail < mpmath.mpf(2) ** -121
        assert mpmath.gammainc(d / 2.0, noise_bound(1.0, d) ** 2 / 4) / mpmath.gamma(d / 2.0) > mpmath.mpf(2) ** -121


# ------------------------------------------------------------------ the solver


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dense_columns", [500, 0])
def test_minimisers_meet_their_tolerance(loss, sparse, dense_columns, monkeypatch):
    monkeypatch.setattr(solver, "_MOST_DENSE_COLUMNS", dense_columns)
    for ridge in (0.01, 1.0, 100.0):
        rows, y, tilt = problem(loss, sparse=sparse)
        weights = minimise(rows, y, loss, ridge, tilt, StoppingCriterion(1e-8))
        assert exact_norm(rows, y, loss, ridge, tilt, weights) <= 1e-8


def planned(loss, ridge, n, bound, d=9):
    return stopping_criterion(loss, 1.5, ridge, n, d, bound)


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_arrives_where_newton_does_not(loss, monkeypatch):
    """No Newton step, or steps in the wrong direction: the answer is as good, and no zeros."""
    rows, y, tilt = problem(loss, n=60)
    criterion = planned(loss, 2.0, 60, float(np.linalg.norm(tilt)))
    honest = solver._newton

    def backwards(*problem):
        return -honest(*problem)

    for name, instead in (("_NEWTON_STEPS", 0), ("_newton", backwards)):
        with monkeypatch.context() as patch:
            patch.setattr(solver, name, instead)
            weights = minimise(rows, y, loss, 2.0, tilt, criterion)
            assert exact_norm(rows, y, loss, 2.0, tilt, weights) <= criterion.tolerance
            # A criterion that does not state a number of descents takes what there is.
            hasty = minimise(rows, y, loss, 2.0, tilt, replace(criterion, descent_steps=0))
            assert exact_norm(rows, y, loss, 2.0, tilt, hasty) > 100 * criterion.tolerance


@pytest.mark.parametrize("loss", LOSSES)
def test_so_many_descents_are_enough_and_far_fewer_are_not(loss):
    """A flat direction that no record sees converges no faster than the ridge lets it."""
    rng = np.random.default_rng(0)
    rows = np.column_stack((rng.uniform(-1, 1, (40, 2)), np.zeros(40)))
    y = (rows[:, 0] > 0).astype(float)
    tilt = np.array([1.0, -2.0, 3.0])
    ridge = 40 * loss.smoothness * 1.5**2 / 30
    criterion = planned(loss, ridge, 40, float(np.linalg.norm(tilt)), d=3)
    assert criterion.descent_steps == pytest.approx(140 * 31, rel=0.01)
    weights = descend(rows, y, loss, ridge, tilt, criterion)
    assert exact_norm(rows, y, loss, ridge, tilt, weights) <= criterion.tolerance
    early = descend(rows, y, loss, ridge, tilt, replace(criterion, descent_steps=criterion.descent_steps // 20))
    assert exact_norm(rows, y, loss, ridge, tilt, early) > criterion.tolerance


def test_descent_does_not_stall_above_what_is_accepted():
    """Where rounding is the larger part of the tolerance: long coefficients, and gradients that are mostly rounding."""
    rng = np.random.default_rng(3)
    loss, ridge = HuberLoss(1.0), 0.5
    rows, y, _ = problem(loss, n=30)
    tilt = rng.standard_normal(9)
    tilt *= 1e9 / np.linalg.norm(tilt)
    criterion = planned(loss, ridge, 30, 1e9)
    assert rounding(criterion, loss, 1.5, 1e9) > 0.01 * criterion.tolerance
    weights = descend(rows, y, loss, ridge, tilt, criterion)
    assert np.linalg.norm(gradient(rows, y, loss, ridge, tilt, weights)) <= ACCEPTED * criterion.tolerance
    assert exact_norm(rows, y, loss, ridge, tilt, weights) <= criterion.tolerance


def without_descent(monkeypatch):
    def never(*problem):
        raise AssertionError("Newton's steps did not arrive")

    monkeypatch.setattr(solver, "descend", never)


@pytest.mark.parametrize("clip", [1e-4, 1e-3, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 4.0, 23.0])
def test_the_solver_arrives_whatever_the_clip(epsilon, clip, monkeypatch):
    """Beyond the clip Huber's loss has no curvature, and steps that may raise the value go round in circles."""
    without_descent(monkeypatch)
    rng = np.random.default_rng(0)
    tables = [
        (np.ones((137, 1)), np.full(137, 0.5)),
        (np.linspace(-1, 1, 137)[:, None], np.linspace(-1, 1, 137)),
        (rng.uniform(-0.5, 0.5, (60, 3)), rng.choice([-1.0, 1.0], 60)),
    ]
    for rows, y in tables:
        d = rows.shape[1]
        plan = plan_objective_perturbation(
            Budget(epsilon, 1e-6), Problem(HuberLoss(clip), "zero-out", len(y), d), row_bound=1.0
        )
        criterion = plan.resolution().criterion
        for seed in range(5):
            tilt = plan.noise_scale * np.random.default_rng(seed).standard_normal(d)
            weights = minimise(rows, y, plan.problem.loss, plan.regularisation, tilt, criterion)
            assert exact_norm(rows, y, plan.problem.loss, plan.regularisation, tilt, weights) <= criterion.tolerance


def test_hostile_tables_take_some_dozen_steps(monkeypatch):
    """Little noise, little ridge, and columns whose sizes are twelve decimal powers apart."""
    without_descent(monkeypatch)
    rng = np.random.default_rng(0)
    steps, newton = [], solver._newton

    def counted(*problem):
        steps[-1] += 1
        return newton(*problem)

    monkeypatch.setattr(solver, "_newton", counted)
    for case in range(80):
        loss = LogisticLoss() if case % 4 == 0 else HuberLoss(float(10 ** rng.uniform(-4, 0)))
        row_bound, d = float(rng.choice([1e-3, 1.0])), 12
        ridge = loss.smoothness * row_bound**2 * 10 ** rng.uniform(-6, -3)
        problem = Problem(loss, "zero-out", 300, d)
        try:
            plan = plan_objective_perturbation(Budget(25.0, 1e-6), problem, row_bound=row_bound, regularisation=ridge)
        except ParameterError:
            continue
        table = rng.uniform(-1, 1, (300, d)) * 10.0 ** rng.uniform(-12 if case % 2 else -3, 0, d)
        rows, _ = bounded_rows(table, 1.0, row_bound, intercept=False)
        y = rng.integers(0, 2, 300).astype(float) if case % 4 == 0 else rng.uniform(-1, 1, 300)
        steps.append(0)
        minimise(rows, y, loss, ridge, plan.noise_scale * rng.standard_normal(d), plan.resolution().criterion)
    assert len(steps) > 30
    assert max(steps) <= 200


@pytest.mark.parametrize("budget", [Budget(1e-6, 1e-9), Budget(1e-3, 1e-12), Budget(1.0, 1e-6)], ids=str)
def test_tolerances_are_above_what_rounding_leaves_of_large_noise(budget, monkeypatch):
    """A gradient is a difference of terms as large as the noise, and is not known better than these are rounded."""
    without_descent(monkeypatch)
    rng = np.random.default_rng(0)
    plan = plan_objective_perturbation(budget, Problem(LogisticLoss(), "zero-out", 1, 5), row_bound=1.0)
    criterion = plan.resolution().criterion
    given_up = 0
    for _ in range(60):
        tilt = plan.noise_scale * rng.standard_normal(5)
        table = np.full((1, 5), 0.4), np.ones(1), LogisticLoss(), plan.regularisation, tilt
        minimise(*table, criterion)
        try:
            minimise(*table, replace(criterion, tolerance=2.0**-30))
        except AssertionError:
            given_up += 1
    if budget.epsilon == 1e-6:
        assert given_up > 0


@pytest.mark.parametrize("ridge", [1e-300, 1e-18])
def test_nobody_learns_that_columns_are_equal(ridge):
    """Equal columns make a Hessian that doubles cannot factor; without noise too that is no error."""
    rows, y, tilt = problem(HuberLoss(0.3), d=1)
    with np.errstate(all="ignore"):
        weights = minimise(
            np.repeat(rows, 4, axis=1), y, HuberLoss(0.3), ridge, np.repeat(tilt, 4), StoppingCriterion(1e-30)
        )
    assert np.isfinite(weights).all()


def test_the_verification_sees_what_the_steps_do_not(monkeypatch):
    """A point is accepted by a gradient that is summed anew, and by its length."""
    loss = HuberLoss(0.3)
    rows, y, tilt = problem(loss, n=60)
    criterion = planned(loss, 2.0, 60, float(np.linalg.norm(tilt)))
    looked = []
    true = solver._meets

    def meets(*problem):
        looked.append(true(*problem))
        return looked[-1]

    monkeypatch.setattr(solver, "_meets", meets)
    near = minimise(rows, y, loss, 2.0, tilt, criterion)
    assert looked[-1]
    assert not true(rows, y, loss, 2.0, tilt, near + criterion.tolerance, criterion)
    narrow = replace(criterion, largest_norm=0.5 * float(np.linalg.norm(near)))
    assert not true(rows, y, loss, 2.0, tilt, near, narrow)


def test_derivatives_are_as_accurate_as_is_assumed():
    """To 8 units in the last place of their bound, all over the line; half a unit would not do."""
    rng = np.random.default_rng(0)
    margins = np.concatenate((rng.uniform(-40, 40, 1500), 10.0 ** rng.uniform(-12, 2.8, 500)))
    worst = 0.0
    for label in (0.0, 1.0):
        computed = LogisticLoss().derivative(margins, np.full(margins.size, label))
        with mpmath.workdps(40):
            exact = [1 / (1 + mpmath.exp(-mpmath.mpf(z))) - label for z in margins.tolist()]
            worst = max(worst, *(abs(float(mpmath.mpf(c) - e)) for c, e in zip(computed.tolist(), exact, strict=True)))
    assert 0.25 * 2.0**-53 < worst <= 8 * 2.0**-53
