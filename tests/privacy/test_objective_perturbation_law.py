"""Objective perturbation against exact densities: the theorem, the solver, the law of what is released."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtr
from scipy.stats import kstest, norm

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import approximate_minimiser, objective_tilt
from taciturn.events import ObjectivePerturbationEvent
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.methods.objective.plan import plan_objective_perturbation
from taciturn.methods.objective.run import bounded_rows, gradient, release_minimiser
from taciturn.methods.schedule import Problem
from taciturn.privacy import gdp
from taciturn.privacy.budget import pieces_of

# ------------------------------------------------------------------ one dimension, exact densities


def derivatives(loss, x, y, theta):
    """Gradient and curvature of the data's part at every theta, from the definitions."""
    gradient, curvature = np.zeros_like(theta), np.zeros_like(theta)
    for xi, yi in zip(x, y, strict=True):
        if isinstance(loss, HuberLoss):
            residual = xi * theta - yi
            gradient += np.clip(residual, -loss.threshold, loss.threshold) * xi
            curvature += (np.abs(residual) <= loss.threshold) * xi * xi
        else:
            p = 1 / (1 + np.exp(-xi * theta))
            gradient += (p - yi) * xi
            curvature += p * (1 - p) * xi * xi
    return gradient, curvature


def log_density(loss, x, y, ridge, sigma, theta):
    gradient, curvature = derivatives(loss, x, y, theta)
    return norm.logpdf((gradient + ridge * theta) / sigma) + np.log((curvature + ridge) / sigma)


def exact_deltas(loss, x, y, others, ridge, sigma, epsilon):
    """Hockey sticks in both directions between two lists of records, by integration over theta."""
    total = sum(abs(xi) for xi in x) + 5.0
    # b beyond 10 sigma has probability 1e-23; gradients of the data are at most the slope times the rows' lengths.
    reach = (10.0 * sigma + loss.lipschitz(math.inf) * total) / ridge
    theta = np.concatenate((-np.geomspace(reach, 1e-6, 6000), np.geomspace(1e-6, reach, 6000)))
    p = np.exp(log_density(loss, x, y, ridge, sigma, theta))
    q = np.exp(log_density(loss, *others, ridge, sigma, theta))
    factor = math.exp(epsilon)
    return [np.trapezoid(np.maximum(a - factor * b, 0.0), theta) for a, b in ((p, q), (q, p))]


def instances(count=100, seed=0):
    """Losses, records with one more or less, and constants.

    With little curvature and a steady slope one tail of b is used in full, which is half of what the theorem allows.
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        loss = LogisticLoss() if number % 2 else HuberLoss(float(rng.uniform(0.2, 2.0)))
        bound = float(rng.uniform(0.5, 2.0))
        n = int(rng.integers(0, 5))
        x = rng.uniform(-bound, bound, n)
        y = rng.integers(0, 2, n).astype(float) if number % 2 else rng.uniform(-1, 1, n)
        new_y = float(rng.integers(0, 2)) if number % 2 else float(rng.choice([0.0, rng.uniform(-1, 1)]))
        ridge = loss.smoothness * bound**2 / math.expm1(float(np.exp(rng.uniform(-6, 0))))
        tau = float(np.exp(rng.uniform(-2.5, 0)))
        yield loss, bound, (x, y), (np.append(x, bound), np.append(y, new_y)), ridge, tau


def largest_share(of_bound, *, noise=1.0):
    """The largest ratio of an exact delta to its bound over all instances, epsilons and directions.

    ``noise`` multiplies the noise that the mechanism draws, not what is declared.
    """
    worst = 0.0
    for loss, bound, records, others, ridge, tau in instances():
        sigma = noise * loss.lipschitz(math.inf) * bound / tau
        c = math.log1p(loss.smoothness * bound**2 / ridge)
        for beyond in (0.0, 1.5, 3.0, 4.5):
            epsilon = c + tau**2 / 2 + beyond * tau
            allowed = of_bound(loss, c, tau, epsilon)
            exact = max(exact_deltas(loss, *records, others, ridge, sigma, epsilon))
            if exact > 1e-12:
                worst = max(worst, exact / allowed)
    return worst


def bound_of(loss, c, tau, epsilon):
    event = ObjectivePerturbationEvent(c, tau, replaced=False, fixed_sign=isinstance(loss, LogisticLoss))
    return math.exp(gdp.log_delta(pieces_of(event), epsilon))


def test_exact_deltas_never_exceed_the_bound_and_come_close():
    assert 0.4 < largest_share(bound_of) <= 1.0 + 1e-6


def steady_share(of_bound):
    """As above where other records hold the new one's slope at its end, so that one tail of b is used in full."""
    loss, ridge, tau = LogisticLoss(), 20.0, 0.4
    others = np.ones(600), np.zeros(600)
    more = np.ones(601), np.append(np.zeros(600), 1.0)
    c = math.log1p(0.25 / ridge)
    shares = []
    for beyond in (0.0, 1.5, 3.0):
        epsilon = c + tau**2 / 2 + beyond * tau
        exact = max(exact_deltas(loss, *others, more, ridge, 1.0 / tau, epsilon))
        shares.append(exact / of_bound(loss, c, tau, epsilon))
    return max(shares)


def test_one_tail_is_as_much_as_a_slope_of_one_sign_can_use():
    assert 0.8 < steady_share(bound_of) <= 1.0 + 1e-6


def test_half_the_noise_is_caught():
    assert largest_share(bound_of, noise=0.5) > 10.0


def test_a_bound_for_a_shift_that_is_a_tenth_too_small_is_caught():
    assert largest_share(lambda loss, c, tau, epsilon: bound_of(loss, c, 0.9 * tau, epsilon)) > 1.0


def test_half_the_weight_is_caught():
    assert steady_share(lambda *case: bound_of(*case) / 2) > 1.5


def test_a_forgotten_jacobian_is_caught():
    # A wide tilt hardly moves b, but within the quadratic part of the loss the density is multiplied by e^c.
    loss, ridge, tau = HuberLoss(1.0), 1.0, 0.05
    records, others = (np.zeros(0), np.zeros(0)), (np.ones(1), np.zeros(1))
    epsilon = 0.5
    exact = max(exact_deltas(loss, *records, others, ridge, 1.0 / tau, epsilon))
    assert exact <= bound_of(loss, math.log(2.0), tau, epsilon)
    assert exact > 1e3 * bound_of(loss, 0.0, tau, epsilon)


def test_replaced_records_in_one_dimension():
    for loss, bound, records, others, ridge, tau in instances(30, seed=1):
        swapped = (np.append(records[0], -bound), np.append(records[1], others[1][-1]))
        sigma = loss.lipschitz(math.inf) * bound / tau
        c = math.log1p(loss.smoothness * bound**2 / ridge)
        event = ObjectivePerturbationEvent(c, 2 * tau, replaced=True, fixed_sign=isinstance(loss, LogisticLoss))
        for epsilon in (event.log_jacobian, event.log_jacobian + 3 * tau, event.log_jacobian + 6 * tau):
            exact = max(exact_deltas(loss, *others, swapped, ridge, sigma, epsilon))
            assert exact <= math.exp(gdp.log_delta(pieces_of(event), epsilon)) * (1 + 1e-6)


# ------------------------------------------------------------------ two dimensions


def density_2d(loss, X, y, ridge, sigma, grid):
    t1, t2 = np.meshgrid(grid, grid, indexing="ij")
    g1, g2 = ridge * t1, ridge * t2
    h11, h12, h22 = np.full_like(t1, ridge), np.zeros_like(t1), np.full_like(t1, ridge)
    for (a, b), target in zip(X, y, strict=True):
        residual = a * t1 + b * t2 - target
        slope = np.clip(residual, -loss.threshold, loss.threshold)
        bend = np.abs(residual) <= loss.threshold
        g1, g2 = g1 + slope * a, g2 + slope * b
        h11, h12, h22 = h11 + bend * a * a, h12 + bend * a * b, h22 + bend * b * b
    return np.exp(-(g1**2 + g2**2) / (2 * sigma**2)) / (2 * math.pi * sigma**2) * (h11 * h22 - h12**2)


@pytest.mark.parametrize("angle", [0.3, 1.2, 2.2, math.pi])
def test_replaced_records_in_the_plane(angle):
    """Two rows of length one: the tilt moves in the plane that they span, by up to two."""
    loss, ridge, sigma = HuberLoss(1.0), 2.0, 4.0
    rest = (np.array([[0.6, -0.3]]), np.array([0.2]))
    rows = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
    first = (np.vstack((rest[0], rows[:1])), np.append(rest[1], 0.9))
    second = (np.vstack((rest[0], rows[1:])), np.append(rest[1], 0.9))
    grid = np.linspace(-14.0, 14.0, 1401)
    cell = (grid[1] - grid[0]) ** 2
    p, q = (density_2d(loss, *records, ridge, sigma, grid) for records in (first, second))
    assert p.sum() * cell == pytest.approx(1.0, abs=2e-3)
    c = math.log1p(1.0 / ridge)
    broken_is_caught = False
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
        exact = max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() * cell for a, b in ((p, q), (q, p)))
        event = ObjectivePerturbationEvent(c, 2.0 / sigma, replaced=True)
        assert exact <= math.exp(gdp.log_delta(pieces_of(event), epsilon)) + 1e-9
        # As if the record had only been taken away, and its Jacobian forgotten.
        broken = ObjectivePerturbationEvent(0.0, 0.5 / sigma, replaced=False)
        broken_is_caught |= exact > math.exp(gdp.log_delta(pieces_of(broken), epsilon))
    assert broken_is_caught


# ------------------------------------------------------------------ what is released follows this law


@pytest.mark.parametrize("loss", [HuberLoss(1.0), LogisticLoss()])
def test_the_law_of_released_coefficients(loss):
    """In one dimension P(theta <= t) = Phi((gradient of the data at t + Lambda t) / sigma)."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 40)
    y = (x > 0).astype(float) if isinstance(loss, LogisticLoss) else x / 2
    plan = plan_objective_perturbation(Budget(1.0, 1e-6), Problem(loss, "zero-out", 40, 1), row_bound=1.0)
    stream = Stream.of(11)
    released = np.array([release_minimiser(plan, x[:, None], y, np.zeros(1), stream)[0] for _ in range(1500)])

    def uniforms(sigma):
        gradient, _ = derivatives(loss, x, y, released)
        return ndtr((gradient + plan.regularisation * released) / sigma)

    assert kstest(uniforms(plan.noise_scale), "uniform").pvalue > 1e-6
    assert kstest(uniforms(1.3 * plan.noise_scale), "uniform").pvalue < 1e-6
    # The noise on the lattice is too little to show.
    assert plan.resolution().deviation < 1e-4 * plan.noise_scale / (plan.regularisation + 40)


def test_the_plan_declares_what_it_draws():
    for relation, factor in (("zero-out", 1.0), ("add-remove", 1.0), ("replace-one", 2.0)):
        for loss, slope, curvature in ((HuberLoss(0.5), 0.5, 1.0), (LogisticLoss(), 1.0, 0.25)):
            plan = plan_objective_perturbation(
                Budget(1.0, 1e-6), Problem(loss, relation, 1000, 5, n_outputs=2), row_bound=3.0
            )
            minimiser, output = plan.releases
            assert minimiser.event.log_jacobian == pytest.approx(math.log1p(curvature * 9.0 / plan.regularisation))
            assert minimiser.event.shift == pytest.approx(factor * slope * 3.0 / plan.noise_scale)
            assert minimiser.event.replaced == (relation == "replace-one")
            assert minimiser.event.fixed_sign == isinstance(loss, LogisticLoss)
            # Five values of 2**-118 each, twice; and b beyond the length for which the solver is planned.
            assert minimiser.event.distance == 5 * 2.0**-118 + 2.0**-121
            assert output.event.distance == 5 * 2.0**-118
            found = plan.resolution()
            misses = 2 * found.criterion.tolerance / plan.regularisation / found.step + math.sqrt(5)
            assert found.output.l2_sensitivity == pytest.approx(misses)
            # The lattice's step is a power of two: up to twice the noise that is declared, never less.
            assert 1.0 <= found.deviation / found.step / misses / output.event.noise_multiplier < 2.0
            assert minimiser.count == output.count == 2


# ------------------------------------------------------------------ sensitivities


def test_one_record_tilts_by_its_slope_times_its_row():
    rng = np.random.default_rng(0)
    for relation in ("zero-out", "replace-one"):
        allowed = objective_tilt(0.7, 2.0, relation).value
        largest = 0.0
        for _ in range(300):
            rows = rng.standard_normal((2, 3))
            rows *= (2.0 / np.linalg.norm(rows, axis=1))[:, None]
            if rng.random() < 0.3:
                rows[1] = -rows[0]
            w, y = rng.standard_normal(3) * 3, rng.uniform(-1, 1, 2)
            one, other = np.clip(rows @ w - y, -0.7, 0.7)[:, None] * rows
            moved = np.linalg.norm(one - other if relation == "replace-one" else one)
            assert moved <= allowed * (1 + 1e-12)
            largest = max(largest, moved)
        assert largest > 0.95 * allowed


def test_points_of_small_gradient_are_near_the_minimiser():
    """A quadratic without data attains the bound from both sides."""
    tolerance, ridge = 0.01, 2.0
    step = 2.0**-9
    allowed = approximate_minimiser(tolerance, ridge, step, 2, "zero-out").value
    rows, y, tilt = np.zeros((1, 2)), np.zeros(1), np.array([0.3, -0.4])
    minimiser = -tilt / ridge
    direction = np.array([0.6, 0.8])
    ends = [minimiser + sign * tolerance / ridge * direction for sign in (1, -1)]
    for end in ends:
        assert np.linalg.norm(gradient(rows, y, HuberLoss(1.0), ridge, tilt, end)) == pytest.approx(tolerance)
    assert np.linalg.norm(ends[0] - ends[1]) / step == pytest.approx(allowed - math.sqrt(2))


def test_rounding_to_the_lattice_is_covered():
    rng = np.random.default_rng(0)
    allowed = approximate_minimiser(1.0, 2.0, 1.0, 3, "zero-out").value
    points, moves = 5 * rng.standard_normal((20_000, 3)), rng.standard_normal((20_000, 3))
    moves /= np.linalg.norm(moves, axis=1)[:, None]
    apart = np.linalg.norm(np.rint(points) - np.rint(points + moves), axis=1)
    # Without the root of the number of columns it would be 1.
    assert 1.5 < apart.max() <= allowed


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_keep_their_bounds(sparse):
    rng = np.random.default_rng(3)
    X = 10.0 ** rng.uniform(-3, 3, (300, 6)) * rng.choice([-1.0, 0.0, 1.0], (300, 6))
    rows, shrunk = bounded_rows(sp.csr_matrix(X) if sparse else X, 2.0, 1.2, intercept=True)
    dense = rows.toarray() if sparse else rows
    squares = [math.fsum(v * v for v in row) for row in dense.tolist()]
    assert max(squares) <= 1.2**2
    assert max(squares) > 1.2**2 * (1 - 1e-9)
    clipped = np.column_stack((np.clip(X / 2.0, -1, 1), np.ones(300)))
    assert np.allclose(dense, clipped * np.minimum(1.0, 1.2 / np.linalg.norm(clipped, axis=1))[:, None], rtol=1e-12)
    assert np.allclose(dense[:, -1], shrunk)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "layout",
    [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], sp.csr_array, sp.csc_array],
    ids=["rows", "columns", "strides", "csr", "csc"],
)
def test_no_row_depends_on_whether_another_one_is_null(layout, intercept):
    """Taking records out of a table that is stored by columns turns it into one by rows, where sums round otherwise."""
    X = np.random.default_rng(8).normal(size=(200, 37))
    present = np.arange(200) != 7

    def rows_of(table):
        rows, shrunk = bounded_rows(table, 3.0, 1.0, intercept=intercept)
        return (rows.toarray() if sp.issparse(rows) else rows), shrunk

    table = layout(X)
    table = table.tocsr() if sp.issparse(table) else table
    for whole, part in zip(rows_of(table), rows_of(table[np.flatnonzero(present)]), strict=True):
        assert np.array_equal(whole[present], part)
    # What would differ otherwise.
    lengths = [np.einsum("ij,ij->i", table, table) for table in (np.asfortranarray(X), np.ascontiguousarray(X))]
    assert (lengths[0] != lengths[1]).any()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_cell_beyond_all_bounds_makes_no_noise(sparse):
    """Clipped, then divided: 1.7e308 over a bound of one half would overflow, and numpy would say so."""
    X = np.array([[1.7e308, -0.25], [0.5, -1.7e308]])
    with np.errstate(all="raise"):
        rows, _ = bounded_rows(sp.csr_matrix(X) if sparse else X, 0.5, 2.0, intercept=True)
    dense = rows.toarray() if sparse else rows
    assert dense == pytest.approx(np.array([[1.0, -0.5, 1.0], [1.0, -1.0, 1.0]]), rel=1e-9)


def test_cells_that_are_stored_in_pieces_are_clipped_as_a_whole():
    pieces = sp.csr_array((np.array([0.9, 0.9, 0.9, -0.2]), np.array([0, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 2))
    rows, _ = bounded_rows(pieces, 1.0, 5.0, intercept=False)
    assert rows.toarray() == pytest.approx(np.array([[1.0, 0.0], [0.0, -0.2]]), rel=1e-9)


def test_very_long_rows_stay_within_their_bound():
    rows, _ = bounded_rows(np.full((3, 50_000), 0.3), 1.0, 1.0, intercept=True)
    assert (math.fsum(value * value for value in rows[0].tolist())) <= 1.0
