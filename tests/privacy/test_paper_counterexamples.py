"""Counterexamples that docs/papers.md states beside those of the other files: each fails where it is said to, and the
mended statement does not."""

import math

import numpy as np
import pytest
from counterexamples import (
    binomial_epsilon,
    chance_of_wrong_set,
    epsilon_between,
    explicit_pair,
    kept_count_epsilon,
    largest_change,
    noisy_min_epsilon,
    one_step_epsilon,
    printed_sizes_epsilon,
    repeated_screenings_epsilon,
    replaced_features_change,
    scaled_by_largest_epsilon,
    scores_of,
)
from laws import canonical_law, count_published_tickets, laplace_max_law, permute_and_flip_law, published_canonical_law
from scipy.special import expit
from scipy.stats import norm

from taciturn import ScreenedRegressor
from taciturn.accounting import delta_of, epsilon_of
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.datasets import make_dpsis_linear
from taciturn.events import ExponentialEvent, GaussianEvent, LaplaceMaxEvent
from taciturn.losses import LogisticLoss
from taciturn.mechanisms import GumbelTopK
from taciturn.published import DPSIS, PrivateLasso
from taciturn.published.dpight import printed_noise
from taciturn.published.dpsis import printed_top_k
from taciturn.published.screening import ScreeningRule


def test_two_laws_have_the_epsilon_of_their_ratio():
    assert epsilon_between([0.5, 0.5], [0.25, 0.75]) == pytest.approx(math.log(2))
    assert epsilon_between([1.0, 0.0], [0.0, 1.0], 0.5) == math.inf
    assert binomial_epsilon(0.0, 1, (0.5, 0.25)) == pytest.approx(math.log(2))


# ---------------------------------------------------------------------- screening


@pytest.mark.parametrize(("epsilon", "delta", "radius"), [(4.9, 1 / 4000, 50.0), (2.5, 1 / 6000, 5.0)])
def test_one_step_with_the_printed_lipschitz_constant(epsilon, delta, radius):
    assert one_step_epsilon(epsilon, delta, 2 * radius) > 1.5 * epsilon
    assert one_step_epsilon(epsilon, delta, 2 * radius, gradient_bound=2 * radius) < epsilon
    # The scale is that of the class, in units of the radius over the number of records.
    model = PrivateLasso(epsilon=epsilon, delta=delta, radius=radius, loss="squared", n_steps=1)
    scale = math.sqrt(8 * math.log(1 / delta)) / epsilon
    assert model.noise_scale(7) == pytest.approx(scale * radius / 7)


def test_the_index_of_the_smallest_score_costs_twice_what_is_said():
    for epsilon_iter in (0.1, 1.0):
        found = noisy_min_epsilon(epsilon_iter)
        assert 1.5 * epsilon_iter < found <= 2 * epsilon_iter
    assert noisy_min_epsilon(0.05) <= 0.1


@pytest.mark.parametrize(("d", "n_steps"), [(10, 1), (3, 1000)])
def test_screenings_of_rnm_screen_break_their_claim(d, n_steps):
    claimed, delta, n, radius = 0.1, 1 / 12_000, 3000, 50.0
    assert repeated_screenings_epsilon(n, d, radius, n_steps, claimed, delta) > 10 * claimed
    # With the noise of the true sensitivity most of that is gone; what is left is the price of the sign test.
    rule = ScreeningRule.for_loss("squared", radius, n)
    mended = claimed * rule.printed_sensitivity / rule.sensitivity
    assert repeated_screenings_epsilon(n, d, radius, n_steps, mended, delta) < 1.5 * claimed


def test_features_that_change_beside_a_fixed_target():
    n, radius = 3000, 5.0
    printed = 2 * radius / n
    assert replaced_features_change(n, radius, -radius) == pytest.approx(2 * printed)
    assert replaced_features_change(n, radius, -1000.0) == pytest.approx(201 * printed)
    assert replaced_features_change(n, radius, 0.0) == pytest.approx(printed)
    # Blanking the features of the last record alone moves a score as far as blanking all of it.
    rule, w = ScreeningRule.for_loss("squared", radius, n), radius * np.eye(3)[0]
    _, (X, y) = explicit_pair(n, 3, radius)
    without_features = np.vstack((X[:-1], np.zeros(3)))
    change = np.abs(scores_of(rule, X, y, w) - scores_of(rule, without_features, y, w)).max()
    assert change == pytest.approx(largest_change(n, radius)[0])


def test_noise_for_one_index_does_not_grow_with_the_features():
    scales = {}
    for d in (10, 100, 600):
        X = np.random.default_rng(0).uniform(-1, 1, (60, d))
        model = ScreenedRegressor(y_bounds=(-1, 1), n_steps=20, screen_at=5, random_state=0).fit(X, X[:, 0])
        (screening,) = (e for e in model.certificate_.events if "screened" in str(e))
        scales[d] = screening.scale
    assert len(set(scales.values())) == 1


# ---------------------------------------------------------------------- Private LASSO and Sparsifier


def test_a_replaced_record_and_the_printed_noise_of_frank_wolfe():
    # 2 lambda L over the printed scale, twice what a missing record has.
    step = 2 * 1.0 / math.sqrt(2 * 1000 * math.log(1e5))
    assert epsilon_of(LaplaceMaxEvent(step) * 1000, 1e-5) == pytest.approx(1.63, rel=0.01)
    assert epsilon_of(ExponentialEvent(step) * 1000, 1e-5) < 1.0
    # The loss of a thousand tied choices between two vertices is no counterexample.
    chances = [laplace_max_law(np.array([-shift, shift]))[1] for shift in (0.0, step / 2)]
    assert binomial_epsilon(1e-5, 1000, chances) < 1.0


def test_the_curvature_of_the_logistic_loss():
    rng, largest = np.random.default_rng(0), 0.0
    for scale in (0.0, 0.1, 1.0, 10.0):
        X = rng.choice([-1.0, 1.0], (50, 4))
        share = expit(X @ rng.normal(scale=scale, size=4)) if scale else np.full(50, 0.5)
        largest = max(largest, np.abs(X.T @ (X * (share * (1 - share))[:, None]) / 50).max())
    assert largest == pytest.approx(0.25)
    assert LogisticLoss().smoothness == 0.25


def test_what_is_lost_by_keeping_the_largest():
    p, rng, worst = 20, np.random.default_rng(0), 0.0
    for c in (1, 5, 15):
        assert (p - c) / (c + 1) > (p - c - 1) / (c + 2)  # rises as c falls
        for weights in (np.full(p, 1 / p), *rng.dirichlet(np.ones(p), 50)):
            lost = np.sort(weights)[: p - c].sum()
            assert lost <= (1 - c / p) * (1 + 1e-12)
            worst = max(worst, lost / (1 - c / p))
    assert worst == pytest.approx(1.0)


def test_rounding_down_widens_the_range_of_the_count():
    """At a precision of 1 the number of kept coefficients hides the fraction, and still costs a little too much."""
    epsilon = 0.05
    for p, within in ((100, True), (120, False), (30, True)):
        low, high = math.sqrt(p), 2 * math.sqrt(p)
        found = kept_count_epsilon((0, p), low, high, epsilon, 1.0)
        widest = math.floor(high) - math.floor(low)
        assert found == pytest.approx(epsilon * widest / (high - low), rel=1e-6)
        assert (found <= epsilon * (1 + 1e-9)) is within
    low, high = math.sqrt(120), 2 * math.sqrt(120)
    assert kept_count_epsilon((15, 5), low, high, epsilon, 2.0, 1e-5) == math.inf


# ---------------------------------------------------------------------- DP-SIS


def test_one_record_breaks_the_claim_of_dp_sis():
    for d, k in ((3, 2), (6, 5)):
        for epsilon in (1e-3, 0.1):
            found = printed_sizes_epsilon(d, k, epsilon)
            assert math.log(k) < found <= epsilon + math.log(k)
            assert printed_sizes_epsilon(d, k, epsilon, canonical_law) <= epsilon
    assert printed_sizes_epsilon(6, 1, 0.1) <= 0.1
    # The scores are those of data sets that differ in one record, and the law is that of the class.
    X, y = np.ones((2, 3)), np.array([1.0, -1.0])
    more, target = np.vstack((X, np.eye(3)[1])), np.append(y, 1.0)
    counts = np.zeros(3)
    for seed in range(4000):
        support = DPSIS(epsilon=0.1, n_features_to_select=2, random_state=seed).fit(more, target).support_
        counts[[(0, 1), (0, 2), (1, 2)].index(tuple(np.flatnonzero(support)))] += 1
    law = published_canonical_law(np.eye(3)[1], 2, 0.1, 0.5)
    assert np.abs(counts / 4000 - law).max() < 0.04
    assert np.abs(law - canonical_law(np.eye(3)[1], 2, 0.1, 0.5)).max() > 0.1


@pytest.mark.parametrize(("d", "k", "breaks"), [(8, 6, True), (8, 3, False)])
def test_the_recovery_theorem_of_dp_sis_fails_with_the_printed_sizes(d, k, breaks):
    lead, epsilon = 24.0, 1.0
    bound = math.comb(d, k) * math.exp(-lead * epsilon / 4)
    assert (chance_of_wrong_set(d, k, lead, epsilon, True) > bound) is breaks
    assert chance_of_wrong_set(d, k, lead, epsilon, False) < bound
    # The law over tickets is that of whole subsets: all k best scores tied, all others tied.
    scores = np.where(np.arange(d) < k, lead, 0.0)
    for law, printed in ((published_canonical_law, True), (canonical_law, False)):
        wrong = 1.0 - law(scores, k, epsilon, 0.5)[0]
        assert wrong == pytest.approx(chance_of_wrong_set(d, k, lead, epsilon, printed), rel=1e-6)
    # So many tickets follow from the sizes: the overlap is worse where k is most of d.
    assert (count_published_tickets(d, k) > 2 * math.comb(d, k)) is breaks


def test_scaling_by_the_data_is_a_release():
    found = [scaled_by_largest_epsilon(n, 1.0) for n in (10, 100)]
    assert found == pytest.approx([2.5, 25.0], rel=0.02)
    # Without scaling the same record costs nothing: it adds nothing to any sum.
    X, y = np.full((10, 2), 0.5), np.ones(10)
    more, target = np.vstack((X, [0.0, 1.0])), np.append(y, 0.0)
    laws = [permute_and_flip_law(0.5 * np.abs(table.T @ t)) for table, t in ((X, y), (more, target))]
    assert epsilon_between(*laws) == pytest.approx(0.0, abs=1e-12)


def test_the_mean_of_the_largest_exponential_variable():
    rng = np.random.default_rng(0)
    for m in (1, 3, 50):
        largest = -np.log1p(-(rng.random(200_000) ** (1 / m)))
        harmonic = sum(1 / i for i in range(1, m + 1))
        assert largest.mean() == pytest.approx(harmonic, abs=5 * largest.std() / math.sqrt(200_000))


def test_gumbel_noise_finds_more_than_dp_sis_on_its_synthetic_set():
    k, epsilon, gain = 5, 20.0, []
    unit = Sensitivity(1.0, "linf", "zero-out")
    # k selections of epsilon / k each: the same pure epsilon.
    assert delta_of(GumbelTopK(unit, k, epsilon / k).event, epsilon) == 0.0
    for seed in range(40):
        X, y, _ = make_dpsis_linear(random_state=1000 + seed)
        X, y = X - X.mean(axis=0), y - y.mean()
        scores = np.abs((X / np.abs(X).max(axis=0)).T @ (y / np.abs(y).max()))
        best = set(np.argsort(-scores)[:k].tolist())
        gumbel = GumbelTopK(unit, k, epsilon / k).release(scores, Stream.of(seed))
        printed = printed_top_k(scores, k, epsilon, 0.5, Stream.of(seed))
        gain.append(len(best & set(gumbel.tolist())) - len(best & set(printed.tolist())))
    assert np.mean(gain) > 3 * np.std(gain, ddof=1) / math.sqrt(len(gain))


# ---------------------------------------------------------------------- DP-IGHT


def test_the_simplified_variance_of_dp_ight():
    for delta in (1e-2, 1e-5):
        log_delta = math.log(1 / delta)
        for epsilon in (0.01, 1.0, log_delta):
            variance = printed_noise("theorem-5.2", epsilon, delta, 1.0, 10, 100) ** 2
            assert variance <= 6 * 10 * log_delta / (100 * epsilon) ** 2
        # Beyond the stated range it fails.
        assert printed_noise("theorem-5.2", 2 * log_delta, delta, 1.0, 10, 100) ** 2 > 6 * 10 / log_delta / 200**2


def test_residuals_break_the_linear_corollary_of_dp_ight():
    noise = printed_noise("corollary-5.6", 1.0, 1e-5, 1.0, 1, 1000, 10, (1.0, 1.0, 1.0))
    costs = [epsilon_of(GaussianEvent(noise * 1000 / residual), 1e-5) for residual in (1.0, 100.0, 10_000.0)]
    assert costs[0] < 1.0 < costs[1] < costs[2]
    # Exactly: the hockey stick of two Gaussians a shift apart.
    shift = 100.0 / (noise * 1000)
    delta = norm.cdf(shift / 2 - costs[1] / shift) - math.exp(costs[1]) * norm.cdf(-shift / 2 - costs[1] / shift)
    assert delta == pytest.approx(1e-5, rel=1e-3)
