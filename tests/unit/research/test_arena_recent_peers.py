"""DP-Newton, Hessian mixing, BinAgg and AIM in the arena: exact without noise, and as private as they say."""

import math
from functools import partial

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent, pld, rdp
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.stats import laplace, norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from taciturn_research.arena import peers
from taciturn_research.arena.catalogue import DATA_SETS, METHODS
from taciturn_research.arena.peers import (
    ORDERS,
    binned_least_squares,
    grow_boxes,
    hessian_mixing,
    in_bins,
    mixing_gamma,
    mixing_rdp,
    private_newton,
    pure_epsilon,
    rho_of,
    tree_scale,
    tree_score,
)
from taciturn_research.arena.sets import draw

WITHOUT_NOISE = 1e9
MU = 0.5


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.uniform(-1.0, 1.0, (3000, 3)), np.ones(3000)))
    y = np.clip(X @ [0.3, -0.2, 0.1, 0.2] + 0.1 * rng.standard_normal(3000), -1.0, 1.0)
    return X, y


class Constant:
    """Noise that is the same number every time, so that a scale is what it moves."""

    def __init__(self, value, laplace_value=0.0):
        self.value, self.laplace_value = value, laplace_value

    def standard_normal(self, size=None):
        return self.value if size is None else np.full(size, self.value)

    def laplace(self, scale):
        return self.laplace_value * scale


def _epsilon(multipliers, delta=1e-6):
    """Of Gaussian releases by their noise over their sensitivity, by privacy loss distributions."""
    accountant = pld.PLDAccountant()
    for multiplier in multipliers:
        accountant.compose(GaussianDpEvent(multiplier))
    return accountant.get_epsilon(delta)


# ---------------------------------------------------------------------------------------------------------------------
# DP-Newton


@pytest.mark.parametrize("logistic", [False, True])
def test_newton_without_noise_finds_the_minimum(table, logistic):
    X, y = table
    fit = partial(private_newton, X, logistic=logistic, row_bound=2.0, clip=4.0, n_steps=8, floor=1.0)
    if logistic:
        y = (y > 0.2).astype(float)
        y[::5] = 1.0 - y[::5]
        expected = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8).fit(X, y).coef_.ravel()
    else:
        expected = LinearRegression(fit_intercept=False).fit(X, y).coef_
    assert fit(y, mu=WITHOUT_NOISE, rng=np.random.default_rng(1)) == pytest.approx(expected, abs=1e-4)
    assert fit(y, mu=0.1, rng=np.random.default_rng(1)) != pytest.approx(expected, abs=1e-2)


def _newton_by_hand(y, *, logistic, n_steps, factor=1.0):
    """One column of ones: sums and their noise are numbers. ``factor`` is a broken variant's share of the noise."""
    row_bound, clip, n = 1.5, 1.2, len(y)
    largest = row_bound**2 * (0.25 if logistic else 1.0)
    multipliers, coef, hessian = [], 0.0, None
    for step in range(n_steps):
        of_gradient = math.sqrt(n_steps / 0.75) / MU * factor
        rate = 1.0 / (1.0 + math.exp(-coef)) if logistic else coef
        gradient = np.clip(rate - y, -clip, clip).sum() + clip * of_gradient * 1.0
        multipliers.append(of_gradient)
        if logistic or step == 0:
            of_hessian = math.sqrt((n_steps if logistic else 1) / 0.25) / MU * factor
            hessian = n * (rate * (1.0 - rate) if logistic else 1.0) + largest * of_hessian * 1.0
            multipliers.append(of_hessian)
        coef -= gradient / hessian
    return coef, multipliers


@pytest.mark.parametrize("logistic", [False, True])
def test_the_noise_of_newton_is_that_of_its_releases_together(logistic):
    y = np.random.default_rng(2).integers(0, 2, 200).astype(float)
    found = private_newton(
        np.ones((200, 1)), y, logistic=logistic, mu=MU, row_bound=1.5, clip=1.2, n_steps=3, floor=0.0, rng=Constant(1.0)
    )
    expected, multipliers = _newton_by_hand(y, logistic=logistic, n_steps=3)
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert len(multipliers) == (6 if logistic else 4)
    allowed = _epsilon([1.0 / MU])
    assert _epsilon(multipliers) == pytest.approx(allowed, rel=1e-3)
    broken, halved = _newton_by_hand(y, logistic=logistic, n_steps=3, factor=0.5)
    assert abs(broken - found[0]) > 0.02 * abs(found[0])
    assert _epsilon(halved) > 1.8 * allowed


def test_one_record_moves_a_hessian_by_no_more_than_its_bound():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4))
    X *= 1.5 / np.linalg.norm(X, axis=1, keepdims=True)
    rates = 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(4)))
    moved = [np.linalg.norm(np.triu(np.outer(x, x) * rate * (1.0 - rate))) for x, rate in zip(X, rates, strict=True)]
    assert max(moved) <= 1.5**2 / 4.0
    # With a bound that is half of it some records pass.
    assert max(moved) > 1.5**2 / 8.0


def test_eigenvalues_are_raised_to_the_norm_of_the_noise():
    rng = Constant(0.0)
    fit = partial(private_newton, logistic=False, mu=MU, row_bound=1.0, clip=1.0, n_steps=1, rng=rng)
    # One record has anything in the second column: without a floor its coefficient is 10.
    X, y = np.vstack((np.tile([1.0, 0.0], (40, 1)), [[0.0, 0.1]])), np.ones(41)
    least = 2.0 * (1.0 / (MU * 0.5)) * math.sqrt(4.0)
    assert fit(X, y, floor=0.0) == pytest.approx([1.0, 10.0])
    assert fit(X, y, floor=2.0) == pytest.approx([1.0, 0.1 / least])


# ---------------------------------------------------------------------------------------------------------------------
# Hessian mixing


def _renyi(alpha, first, second):
    """Of normal laws with mean zero, by determinants; infinite where the mixture is no covariance."""
    mixed = alpha * second + (1.0 - alpha) * first
    if np.linalg.eigvalsh(mixed)[0] <= 0.0:
        return math.inf
    logdets = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, first, second)]
    return -(logdets[0] - (1.0 - alpha) * logdets[1] - alpha * logdets[2]) / (2.0 * (alpha - 1.0))


def test_the_divergence_of_a_sketch_is_never_more_than_the_bound():
    rng, row_bound, gamma = np.random.default_rng(4), 1.3, 6.0
    places = range(0, ORDERS.size, 25)
    bound, halved = mixing_rdp(1, gamma), mixing_rdp(1, 2.0 * gamma)
    largest = np.zeros(len(places))
    for _ in range(40):
        rows = rng.standard_normal((6, 3))
        rows *= row_bound / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), row_bound)
        whole = rows.T @ rows
        whole += max(0.0, gamma * row_bound**2 - np.linalg.eigvalsh(whole)[0]) * np.eye(3)
        x = np.linalg.eigh(whole)[1][:, 0] * row_bound
        without = whole - np.outer(x, x)
        for place, order in enumerate(places):
            alpha = ORDERS[order]
            found = max(_renyi(alpha, whole, without), _renyi(alpha, without, whole))
            assert found <= bound[order] * (1.0 + 1e-9)
            largest[place] = max(largest[place], found)
    finite = np.isfinite(bound[list(places)])
    # It is reached; half of the sensitivity would be passed.
    assert largest[finite] == pytest.approx(bound[list(places)][finite], rel=1e-6)
    told = np.isfinite(halved[list(places)])
    assert told.sum() >= 3
    assert (largest > halved[list(places)] * 1.5)[told].all()
    assert mixing_rdp(7, gamma)[0] == pytest.approx(7.0 * bound[0])


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_sketches_eigenvalue_and_gradients_meet_the_budget_together(epsilon):
    delta, n_rows = 1e-6, 300
    gamma = mixing_gamma(epsilon, delta, n_rows)
    mu = peers._mu(epsilon)
    # .05 and .45 of the squared parameter are for Gaussian releases, a tenth of delta for a wrong eigenvalue.
    rest = ORDERS * 0.5 * mu**2 / 2.0
    assert compute_epsilon(ORDERS, rest + mixing_rdp(n_rows, gamma), 0.9 * delta)[0] == pytest.approx(epsilon, rel=1e-6)
    assert compute_epsilon(ORDERS, rest + mixing_rdp(n_rows, gamma / 2.0), 0.9 * delta)[0] > 1.2 * epsilon


def test_mixing_without_noise_is_least_squares(table):
    X, y = table
    fit = partial(hessian_mixing, X, y, delta=1e-6, row_bound=2.0, n_rounds=12, rows=40.0, clip=1.0)
    expected = LinearRegression(fit_intercept=False).fit(X, y).coef_
    found = fit(epsilon=30.0, rng=np.random.default_rng(5))
    assert found == pytest.approx(expected, abs=1e-2)
    assert fit(epsilon=0.05, rng=np.random.default_rng(5)) != pytest.approx(expected, abs=5e-2)


def test_the_noise_of_mixing_is_that_of_its_releases():
    """One column of ones, and noise that is 1: the released numbers by hand."""
    n, row_bound, clip, rounds, epsilon, delta = 400, 1.2, 0.9, 2, 1.0, 1e-6
    y = np.random.default_rng(6).uniform(-1.0, 1.0, n)
    found = hessian_mixing(
        np.ones((n, 1)), y, epsilon=epsilon, delta=delta, row_bound=row_bound, n_rounds=rounds, rows=2.0, clip=clip,
        rng=Constant(1.0),
    )  # fmt: skip
    mu = peers._mu(epsilon)
    n_sketch = math.ceil(2.0 * math.log(8.0 / delta))

    def by_hand(factor):
        least = n + factor * row_bound**2 / (mu * math.sqrt(0.05)) * (1.0 - norm.isf(0.1 * delta))
        gamma = mixing_gamma(epsilon, delta, rounds * n_sketch)
        variance = n + max(0.0, factor * gamma * row_bound**2 - max(0.0, least))
        coef = 0.0
        for _ in range(rounds):
            noise = factor * row_bound * clip * math.sqrt(rounds / 0.45) / mu
            coef += (np.clip(y - coef, -clip, clip).sum() + noise) / variance
        return coef

    assert found[0] == pytest.approx(by_hand(1.0), rel=1e-9)
    assert found[0] != pytest.approx(by_hand(0.5), rel=0.05)
    # The bound on the eigenvalue is wrong with a tenth of delta.
    assert norm.sf(norm.isf(0.1 * delta)) == pytest.approx(0.1 * delta)


# ---------------------------------------------------------------------------------------------------------------------
# BinAgg


def test_a_pure_mechanism_is_as_gaussian_as_it_says():
    # Binary randomised response is the worst: epsilon-DP with truth at probability e^eps / (1 + e^eps).
    for mu in (0.05, 0.5, 2.0):
        truth = 1.0 / (1.0 + math.exp(-pure_epsilon(mu)))
        assert norm.cdf(norm.ppf(truth) - mu) == pytest.approx(1.0 - truth)


@pytest.mark.parametrize("half", [False, True])
def test_the_tree_is_as_private_as_its_scale_says(half):
    """Log-ratios along the path of one record, whatever the counts of its boxes; half of the scale is too little."""
    epsilon, threshold = 0.7, 3.0
    stated = tree_scale(epsilon)
    scale = stated / 2.0 if half else stated

    def cut(count, depth):
        return laplace.sf(threshold - tree_score(count, depth, scale, threshold), scale=scale)

    worst = 0.0
    for above in range(60):
        total = 0.0
        # The record's boxes have fewer and fewer records; as many as before is the worst.
        for depth, count in enumerate([above] * 12 if above % 2 else [above, *[above // 2] * 11]):
            total += math.log(cut(count + 1, depth) / cut(count, depth))
            left = math.log((1.0 - cut(count, depth)) / (1.0 - cut(count + 1, depth)))
            worst = max(worst, total, left)
    assert (worst <= epsilon) is not half


def test_every_record_is_in_one_box():
    rng = np.random.default_rng(7)
    X = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (400, 3))
    leaves = grow_boxes(X, 4.0, 0.0, rng)
    assert sorted(np.concatenate([rows for rows, _, _ in leaves])) == list(range(400))
    for rows, low, high in leaves:
        assert (X[rows] >= low).all()
        assert (X[rows] <= high).all()
        assert ((X[rows] < high) | (high == 1.0)).all()
    volumes = [np.prod(high - low) for _, low, high in leaves]
    assert sum(volumes) == pytest.approx(8.0)
    # Nothing that asks for a cut: there are more boxes than columns all the same.
    assert len(grow_boxes(X[:0], 4.0, 1e9, rng)) == 4


def test_bins_without_noise_are_least_squares(table):
    X, y = table
    expected = LinearRegression().fit(X[:, :3], y)
    fit = partial(binned_least_squares, X[:, :3], y, row_bound=1.7, threshold=20.0, least=2)
    found = fit(mu=1e4, rng=np.random.default_rng(8))
    # Least squares of means: nearly the same where the boxes are small.
    assert found == pytest.approx([*expected.coef_, expected.intercept_], abs=0.03)
    assert fit(mu=0.05, rng=np.random.default_rng(8)) != pytest.approx([*expected.coef_, expected.intercept_], abs=0.03)


def _released(monkeypatch, X, y, noise, row_bound):
    """What the solver is given, seen through its eigenvalue problem; one box, whose sums are the table's."""
    monkeypatch.setattr(peers, "grow_boxes", lambda *given: [(np.arange(len(X)), -np.ones(2), np.ones(2))])
    seen = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: seen.append(matrix) or eigh(matrix))
    binned_least_squares(X, y, mu=MU, row_bound=row_bound, threshold=0.0, least=1, rng=Constant(noise))
    return seen[0]


def test_the_noise_of_bins_is_that_of_their_sums_together(monkeypatch):
    n, row_bound = 500, 1.2
    X, y = np.tile([0.5, -0.2], (n, 1)), np.full(n, 0.4)
    shares = np.sqrt(np.array([1.0, 9.0, 9.0, 9.0]) / 28.0)
    # Features have noise for the length of a row; each feature by itself would have 1 / mu.
    count = n + 1.0 / (MU * shares[1])
    scale = row_bound / (MU * shares[2])
    sums = np.array([0.5 * n + scale, -0.2 * n + scale, count])
    expected = np.outer(sums, sums) / count - np.diag([scale**2, scale**2, (MU * shares[1]) ** -2]) / count
    assert _released(monkeypatch, X, y, 1.0, row_bound) == pytest.approx(expected, rel=1e-9)
    # One record of the largest norm, over the noise of what it enters: with the tree it is mu.
    record = np.array([row_bound / math.sqrt(2.0)] * 2)
    parts = [1.0 * MU * shares[1], np.linalg.norm(record) / scale, 1.0 * MU * shares[3], MU * shares[0]]
    assert math.hypot(*parts) == pytest.approx(MU)
    feature_by_feature = np.linalg.norm(np.ones(2)) * MU * shares[2]
    assert feature_by_feature == pytest.approx(math.sqrt(2.0) * parts[1])


# ---------------------------------------------------------------------------------------------------------------------
# AIM


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_concentrated_budget_implies_the_one_that_is_asked_for(epsilon):
    rho = rho_of(epsilon, 1e-6)

    def spent(rho):
        return rdp.RdpAccountant(orders=ORDERS).compose(ZCDpEvent(rho)).get_epsilon(1e-6)

    assert spent(rho) == pytest.approx(epsilon, rel=1e-6)
    assert spent(4.0 * rho) > 1.8 * epsilon
    # Less than a Gaussian mechanism of the same budget may spend, since selections are no Gaussian releases.
    assert rho < peers._mu(epsilon) ** 2 / 2.0


def test_synthetic_records_have_the_features_of_the_table(monkeypatch):
    """A worker that returns the records themselves: coefficients are those of middles of bins and indicators."""
    data_set, seen = DATA_SETS["fair"], {}
    problem = draw(data_set, 0, None, None)

    def ask(environment, script, X, y, facts):
        seen.update(facts, shape=X.shape, largest=X.max(axis=0))
        columns = [np.array(each)[X[:, place].astype(int)] for place, each in enumerate(facts["values"])]
        return {"coef": np.column_stack(columns[:-1])[0].tolist(), "intercept": 0.5}

    monkeypatch.setattr(peers, "ask", ask)
    found = METHODS["AIM, then a fit"].fit(data_set, problem, 1.0, 0, n_bins=8, max_size=1.0, rounds=10)
    # Four numbers, four categories with a code for none of the levels, and the target.
    assert seen["sizes"] == [8, 8, 8, 8, 6, 5, 7, 7, 2]
    assert (seen["largest"] < seen["sizes"]).all()
    assert (seen["rounds"], seen["rho"]) == (10, rho_of(1.0, 1e-6))
    # The features of the first record, up to the width of bins.
    assert found.coef == pytest.approx(problem.X[0], abs=0.125 + 1e-12)
    assert found.coef[4:] == pytest.approx(problem.X[0, 4:])
    assert found.predicted == pytest.approx(problem.X_test @ found.coef + 0.5)


def test_bins_have_equal_widths():
    assert in_bins(np.array([-1.0, -0.51, -0.5, 0.0, 0.99, 1.0]), 4).tolist() == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("name", ["DP-Newton", "Hessian mixing", "BinAgg"])
def test_every_setting_fits_and_is_its_own(name):
    method = METHODS[name]
    for task, data_set in (("regression", DATA_SETS["diabetes"]), ("classification", DATA_SETS["breast cancer"])):
        if task in method.tasks:
            problem = draw(data_set, 0, None, None)
            found = [method.fit(data_set, problem, 1.0, 0, **setting) for setting in method.grid(data_set, True)]
            assert all(np.isfinite(each.predicted).all() for each in found)
            assert len({each.predicted.tobytes() for each in found}) == len(found)
            again = method.fit(data_set, problem, 1.0, 0, **method.grid(data_set, True)[0])
            assert np.array_equal(again.predicted, found[0].predicted)
