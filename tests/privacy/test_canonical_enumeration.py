"""Exact enumeration of the canonical Lipschitz mechanism: private with the right class sizes, not with the
printed ones."""

from math import comb, exp, log

import numpy as np
import pytest
from laws import (
    canonical_law,
    chi_square_p,
    count_published_tickets,
    published_canonical_law,
    subsets,
)
from scipy.special import gammaln

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.sensitivity import Sensitivity, correlation_scores
from taciturn.kernels.ranks import best_class_of_head, best_class_of_head_numpy
from taciturn.privacy.mechanisms import CanonicalLipschitz, _log2_tickets, _Tickets

UNIT = Sensitivity(1.0, "linf", "zero-out")


def score_neighbours(d, k, rng):
    """Pairs of normalised score vectors at sup distance one: ties, near ties, opposing shifts, random."""
    pairs = []
    tied = np.zeros(d)
    ladder = np.arange(d, 0, -1, dtype=float)
    near = np.arange(d, 0, -1) * 1e-9
    step = np.where(np.arange(d) < k, 3.0, 0.0)
    for base in (tied, ladder, near, step, step + near):
        for _ in range(3):
            pairs.append((base, base + rng.choice([-1.0, 1.0], d)))
        opposing = np.where(np.arange(d) < k, -1.0, 1.0)
        pairs.append((base, base + opposing))
        pairs.append((base, base - opposing))
        # An infinitesimal swap: the case that overlapping classes cannot survive.
        pairs.append((base, base + rng.uniform(-1e-8, 1e-8, d)))
    for _ in range(4):
        base = rng.exponential(2.0, d)
        pairs.append((base, base + rng.uniform(-1.0, 1.0, d)))
    return pairs


def data_neighbours(relation, rng):
    """Scores of two neighbouring data sets, divided by the declared sensitivity."""
    n, d = 6, 5
    X, y = rng.choice([-1.0, 0.0, 1.0], (n, d)), rng.choice([-1.0, 1.0], n)
    X2, y2 = X.copy(), y.copy()
    if relation == "replace-one":
        X2[0], y2[0] = -X[0], y[0]
    else:
        X2, y2 = X2[1:], y2[1:]
    delta = correlation_scores(65536, 1, relation).value
    return tuple(np.abs(Design(A, 1.0).rmatvec(b, 1)) / delta for A, b in ((X, y), (X2, y2)))


def worst_log_ratio(law, pairs, k, epsilon, gamma, noise):
    return max(
        np.max(np.abs(np.log(law(a, k, epsilon, gamma, noise) / law(b, k, epsilon, gamma, noise)))) for a, b in pairs
    )


def assert_private(law, d, k, epsilon, gamma, noise, rng):
    worst = worst_log_ratio(law, score_neighbours(d, k, rng), k, epsilon, gamma, noise)
    assert worst <= epsilon * (1 + 1e-9)
    return worst


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5, 6), pytest.param((7, 8), marks=pytest.mark.slow)], ids=str)
def test_log_ratios_never_pass_epsilon_on_any_small_domain(epsilon, noise, sizes):
    rng = np.random.default_rng(5)
    worst = [
        assert_private(canonical_law, d, k, epsilon, gamma, noise, rng)
        for d in sizes
        for k in range(1, d)
        for gamma in (0.0, 0.5, 0.9)
    ]
    assert max(worst) > 0.7 * epsilon


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_log_ratios_of_neighbouring_data_sets(relation):
    rng = np.random.default_rng(11)
    pairs = [data_neighbours(relation, rng) for _ in range(40)]
    assert all(np.max(np.abs(a - b)) <= 1.0 for a, b in pairs)
    for k in range(1, 5):
        worst = worst_log_ratio(canonical_law, pairs, k, 1.0, 0.5, "exponential")
        assert 0.3 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize(("d", "k"), [(6, 2), (6, 3), (7, 4)])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_printed_class_sizes_fail_the_same_check(d, k, epsilon):
    with pytest.raises(AssertionError):
        assert_private(published_canonical_law, d, k, epsilon, 0.5, "exponential", np.random.default_rng(5))


def test_the_printed_class_sizes_leak_log_k_however_small_epsilon_is():
    d, k = 6, 3
    near = np.arange(d, 0, -1) * 1e-9
    swapped = near[[0, 1, 3, 2, 4, 5]]
    ratio = worst_log_ratio(published_canonical_law, [(near, swapped)], k, 1e-3, 0.5, "gumbel")
    assert ratio > 0.5 * log(k)
    assert worst_log_ratio(canonical_law, [(near, swapped)], k, 1e-3, 0.5, "gumbel") < 1e-6


@pytest.mark.parametrize(("d", "k", "tickets"), [(6, 2, 19), (7, 4, 66)])
def test_printed_classes_overlap(d, k, tickets):
    assert count_published_tickets(d, k) == tickets > comb(d, k)


def test_class_sizes_sum_to_the_number_of_subsets():
    for d in range(2, 11):
        for k in range(1, d):
            sizes = [comb(t - h - 2, k - h - 1) for h in range(k) for t in range(k + 1, d + 1)]
            assert 1 + sum(sizes) == comb(d, k)


def test_the_kernel_uses_those_class_sizes():
    # With E = 1 (log E = 0) and no utility the Gumbel form returns the log of the largest class size.
    for d, k in [(6, 2), (7, 4), (8, 3)]:
        log_factorial = gammaln(np.arange(d) + 1.0)
        for h in range(k):
            for i in range(d - k):
                tail = np.full(d - k, -1e6)
                tail[i] = 0.0
                value, t = best_class_of_head(0.0, tail, log_factorial, k, h, np.zeros(d - k), True)
                assert t == k + 1 + i
                assert exp(value) == pytest.approx(comb(t - h - 2, k - h - 1), rel=1e-12)


@pytest.mark.parametrize("gumbel", [False, True])
def test_kernel_equals_its_numpy_version(gumbel):
    rng = np.random.default_rng(3)
    d, k = 400, 7
    log_factorial = gammaln(np.arange(d) + 1.0)
    for h in range(k):
        tail, logs = -np.sort(rng.exponential(5, d - k)), np.log(rng.standard_exponential(d - k))
        ours = best_class_of_head(0.3, tail, log_factorial, k, h, logs, gumbel)
        twin = best_class_of_head_numpy(0.3, tail, log_factorial, k, h, logs, gumbel)
        assert ours[1] == twin[1]
        assert ours[0] == pytest.approx(twin[0], rel=1e-12)


def test_super_classes_get_enough_tickets_and_not_many_more():
    rng = np.random.default_rng(8)
    for d, k in [(10, 3), (60, 5), (3000, 20), (10**6, 100)]:
        cuts = np.unique(np.concatenate((rng.integers(k + 1, d, 6), [d])))
        first = np.concatenate(([k + 1], cuts[:-1] + 1))
        exponents = _log2_tickets(first, cuts, k)
        for h in range(0, k, max(1, k // 7)):
            for band, (t1, t2) in enumerate(zip(first.tolist(), cuts.tolist(), strict=True)):
                size = comb(t2 - h - 1, k - h) - comb(t1 - h - 2, k - h)
                tickets = 1 << int(exponents[h, band])
                assert size <= tickets <= 3 * size


def release_counts(mechanism, scores, draws, plainly, seed):
    stream = Stream.of(seed)
    release = mechanism.release_plainly if plainly else mechanism.release
    index = {chosen: i for i, chosen in enumerate(subsets(scores.size, mechanism.k))}
    counts = np.zeros(len(index))
    for _ in range(draws):
        counts[index[tuple(release(scores, stream).tolist())]] += 1
    return counts


SCORES = np.array([5.0, 4.5, 4.5, 2.0, 1.0, 0.2])


@pytest.mark.parametrize("plainly", [False, True])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_samplers_follow_the_enumerated_law_and_no_other_scale(noise, plainly):
    epsilon, gamma, k = 2.0, 0.4, 3
    mechanism = CanonicalLipschitz(UNIT, k, epsilon, gamma, noise)
    # Enough to see the wrong scales, by four standard deviations of the statistic at least.
    counts = release_counts(mechanism, SCORES, 3_000, plainly, seed=21)
    assert chi_square_p(counts, canonical_law(SCORES, k, epsilon, gamma, noise)) > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert chi_square_p(counts, canonical_law(SCORES, k, factor * epsilon, gamma, noise)) < 1e-6
    assert chi_square_p(counts, published_canonical_law(SCORES, k, epsilon, gamma, noise)) < 1e-6


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_merged_sampler_at_the_edges(k, gamma):
    scores = np.array([9, 7, 7, 7, 3, 2, 1, 0]) * 65536
    mechanism = CanonicalLipschitz(Sensitivity(65536.0, "linf", "zero-out"), k, 1.5, gamma)
    counts = release_counts(mechanism, scores, 1_500, False, seed=4)
    assert chi_square_p(counts, canonical_law(scores / 65536, k, 1.5, gamma)) > 1e-4


@pytest.mark.slow
def test_tickets_are_drawn_without_replacement(monkeypatch):
    scores = np.array([0.0, 0.0, -1.9, -1.9, -1.9])
    mechanism = CanonicalLipschitz(UNIT, 1, 2.0, 0.5)
    law = canonical_law(scores, 1, 2.0, 0.5)
    assert chi_square_p(release_counts(mechanism, scores, 8_000, False, seed=6), law) > 1e-4

    draw = _Tickets.draw

    def draw_with_replacement(tickets, stream):
        tickets._drawn.clear()
        return draw(tickets, stream)

    monkeypatch.setattr(_Tickets, "draw", draw_with_replacement)
    assert chi_square_p(release_counts(mechanism, scores, 8_000, False, seed=6), law) < 1e-6


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9])
def test_scores_far_from_the_top_are_not_rounded_away(gamma):
    # Doubles next to 10**17 are 16 apart: differences to the best score would drown those that decide second place.
    low = np.array([8, 0, 3, 8])
    scores = np.concatenate(([10**17], low))
    mechanism = CanonicalLipschitz(UNIT, 2, 1.5, gamma)
    counts = release_counts(mechanism, scores, 1_000, False, seed=14)
    # Leaving out the giant is impossible, so the law is that of the same gap at a size doubles can handle.
    exact = canonical_law(np.concatenate(([10_000.0], low)), 2, 1.5, gamma)
    assert chi_square_p(counts[:4], exact[:4]) > 1e-4
    assert counts[4:].sum() == 0


def test_a_million_candidates_are_finite_and_find_a_clear_top():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 1000, 10**6)
    planted = rng.choice(10**6, 100, replace=False)
    scores[planted] += 100_000
    chosen = CanonicalLipschitz(UNIT, 100, 1.0).release(scores, Stream.of(1))
    assert np.array_equal(chosen, np.sort(planted))
    flat = CanonicalLipschitz(UNIT, 100, 1.0).release(np.zeros(10**6), Stream.of(1))
    assert np.unique(flat).size == 100
    assert flat.min() >= 0
    assert flat.max() < 10**6


def test_all_candidates_cost_no_noise_and_too_many_are_refused():
    mechanism = CanonicalLipschitz(UNIT, 4, 1.0)
    assert mechanism.release(np.zeros(4), Stream.of(0)).tolist() == [0, 1, 2, 3]
    with pytest.raises(ParameterError, match="k=4: expected an integer from 1 to 3"):
        mechanism.release(np.zeros(3), Stream.of(0))
    with pytest.raises(ParameterError, match=r"gamma=1\.0"):
        CanonicalLipschitz(UNIT, 4, 1.0, gamma=1.0)
