"""The sub-linear sampler follows the exact law of the exponential mechanism, through whole runs, and no other scale."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from laws import chi_square_p
from scipy.stats import kstest

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.kernels.vertex_sampler import (
    DRY,
    RETRY,
    WEIGHT_ERROR,
    best_vertex,
    choose_vertex,
    fit_table,
    level_of,
    lower_level,
    new_sampler,
    propose,
    raise_range,
    set_levels,
    set_range,
    settle,
)
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.methods.frank_wolfe.plan import SELECTION_LEFTOVER, plan_frank_wolfe
from taciturn.methods.frank_wolfe.run import PATHS, SELECTION_CHARGE, FrankWolfeProblem, open_path
from taciturn.methods.schedule import Problem
from taciturn.privacy.mechanisms import rounding_charge


def loss_named(name, clip=1.0):
    return {"squared": SquaredLoss(), "huber": HuberLoss(clip), "logistic": LogisticLoss()}[name]


def run(X, targets, loss, clip, radius, n_steps, noise_scale, stream, *, valid=None, path=None):
    """A whole run on records whose number is public."""
    problem = FrankWolfeProblem(loss_named(loss, clip), radius, n_steps, noise_scale, X.shape[0])
    return open_path(X, targets, problem, valid=valid, path=path).run(stream)


def vertex_law(x):
    """P(+e_k) for all k, then P(-e_k)."""
    exponents = np.concatenate([-x, x])
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def draws(scores, inverse_temperature, n_draws, seed):
    sampler, bounds = tuple(new_sampler(scores.size)), np.empty(scores.size)
    names = np.arange(scores.size, dtype=np.int32)
    counts = np.zeros(2 * scores.size, dtype=np.int64)
    stream, done = Stream.of(seed), 0
    while done < n_draws:
        words, cursor = stream.words(1 << 13), np.zeros(1, dtype=np.int64)
        while done < n_draws:
            k, sign = choose_vertex(scores, inverse_temperature, sampler, bounds, names, words, cursor)
            if k == DRY:
                break
            counts[k if sign > 0 else scores.size + k] += 1
            done += 1
    return counts


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 400.0])
def test_one_draw_follows_its_law_and_no_other_scale(spread):
    scores = np.random.default_rng(3).standard_normal(40) * 1000.0
    scores[7] = 0.0
    if spread == 400.0:
        # Almost everything far behind: a few near ties decide.
        scores[:5] = [40_000.0, -40_000.0, 39_900.0, 39_800.0, -39_700.0]
    inverse_temperature = max(spread, 1e-9) / 1000.0
    counts = draws(scores, inverse_temperature, 60_000, 5)
    assert chi_square_p(counts, vertex_law(inverse_temperature * scores)) > 1e-4
    if spread == 3.0:
        for wrong in (2.0 / 3.0, 1.5):
            assert chi_square_p(counts, vertex_law(wrong * inverse_temperature * scores)) < 1e-10


# ---------------------------------------------------------------------- the parts


def filled(bounds):
    sampler = tuple(new_sampler(bounds.size))
    set_levels(sampler, bounds, bounds.max())
    return sampler


def test_proposals_are_those_of_exact_integers():
    rng = np.random.default_rng(0)
    bounds = np.abs(rng.standard_normal(300)) * 6.0
    sampler = filled(bounds)
    weights = [int(sampler[3][level]) for level in sampler[0]]
    reached = list(itertools.accumulate(weights))
    total = reached[-1]
    assert total == int(sampler[2][0]) == sum(int(block) for block in sampler[1]) < 2**63
    n_bits = (total - 1).bit_length()
    edges = [
        r << (64 - n_bits) for r in (0, reached[4] - 1, reached[4], reached[250], total - 1, total) if r >> n_bits == 0
    ]
    for word in [*(int(w) for w in Stream.of(1).words(2000)), *edges, 2**64 - 1]:
        r = word >> (64 - n_bits)
        want = RETRY if r >= total else next(k for k, edge in enumerate(reached) if r < edge)
        assert propose(sampler, np.uint64(word)) == want


def test_bounds_are_above_the_weights_and_not_far():
    bounds = np.concatenate([np.linspace(0.0, 30.0, 500), [0.25, 0.5]])
    levels, _, _, table, facts, _, bits = filled(bounds)
    unit = 2.0**bits / np.cosh(facts[1] / 4.0)
    assert np.all(table[levels] > np.cosh(bounds) * unit)
    assert np.all(table[levels] <= np.cosh(bounds + 0.25) * unit * (1.0 + 1e-9) + 2.0)
    # Far below the largest, what is left is one unit.
    levels, _, _, table, facts, _, _ = filled(np.array([0.0, 500.0, 3000.0]))
    assert table[levels[0]] == 1
    assert facts[0] == facts[1] - 255


def check_sums(sampler):
    """Sums of bounds are those of the levels, as integers."""
    levels, blocks, total, table, facts, log2_block, _ = sampler
    weights, size = table[levels].astype(object), 1 << log2_block
    assert weights.sum() == int(total[0]) < 2**63
    assert [weights[b * size : (b + 1) * size].sum() for b in range(blocks.size)] == blocks.astype(object).tolist()
    return levels.astype(np.int64) + facts[0]


def test_levels_that_change_hold_and_keep_the_sums_exact():
    rng = np.random.default_rng(2)
    names = np.arange(200, dtype=np.int32)
    names[150:160] = ~names[150:160]
    candidates = names >= 0
    true = rng.random(200) * 5.0
    sampler = filled(true)
    before = check_sums(sampler)
    for round_number in range(300):
        start, stop = np.sort(rng.integers(0, 201, 2))
        kind = round_number % 3
        if kind == 0:
            # New bounds, in tables that grow and shrink.
            true[start:stop] = rng.random(stop - start) * rng.choice([3.0, 30.0, 300.0])
            highest = int(level_of(float(true[start:stop].max(initial=0.0))))
            others = np.delete(before, np.arange(start, stop))
            fit_table(sampler, max(highest, int(others.max(initial=0))))
            set_range(sampler, start, stop, true, highest, names)
        elif kind == 1:
            rise = int(rng.integers(1, 9))
            highest = int(before[start:stop].max(initial=0)) + rise // 2
            fit_table(sampler, max(highest, int(before.max())))
            before = check_sums(sampler)
            raise_range(sampler, start, stop, rise, highest, names)
            raised = np.where(candidates, np.minimum(before + rise, highest), before)
            np.testing.assert_array_equal(check_sums(sampler)[start:stop], raised[start:stop])
        else:
            k = int(rng.integers(0, 200))
            lower_level(sampler, k, true[k])
        before = check_sums(sampler)
        assert np.all(true[candidates] < before[candidates] / 4.0)
        assert before.max() <= sampler[4][1]


def test_a_table_that_is_far_too_high_is_lowered():
    sampler = filled(np.array([0.5, 400.0, 1.0]))
    set_range(sampler, 1, 2, np.array([0.0, 1.0, 0.0]), int(level_of(1.0)), np.arange(3, dtype=np.int32))
    # Seen from 400, all three have the least bound there is: proposals would take no notice of scores.
    assert set(sampler[3][sampler[0]].tolist()) == {1}
    fit_table(sampler, int(level_of(1.0)))
    set_range(sampler, 0, 3, np.array([0.5, 1.0, 1.0]), int(level_of(1.0)), np.arange(3, dtype=np.int32))
    assert check_sums(sampler).tolist() == [3, 5, 5]
    assert sampler[3][sampler[0]].min() > 2**40


def threshold(accepts):
    """The number of words, from 0 on, that are accepted."""
    low, high = 0, 2**64
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if accepts(middle) else (low, middle)
    return low


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 7.9, -15.5, 20.0])
def test_acceptance_and_sign_have_the_probabilities_of_fifty_digits(x):
    sampler = filled(np.array([abs(x) + 0.4, 20.3, 3.0]))
    levels, _, _, table, facts, _, bits = sampler
    tail = np.uint64(2**63)

    def outcome(first, second):
        return settle(sampler, 0, x, np.array([first, tail, second, tail], dtype=np.uint64), 0)

    with mpmath.workdps(50):
        top = mpmath.mpf(int(facts[1])) / 4
        accept = mpmath.cosh(x) / mpmath.cosh(top) * 2**bits / int(table[levels[0]])
        uphill = 1 / (1 + mpmath.exp(2 * abs(mpmath.mpf(x))))
    assert accept < 1
    got = threshold(lambda word: outcome(word, 2**63) != 0)
    assert abs(got / 2**64 / float(accept) - 1.0) < WEIGHT_ERROR + 2.0**-62 / float(accept)
    common = -1 if x > 0 else 1
    got = threshold(lambda word: outcome(0, word) != common)
    assert abs(got / 2**64 / float(uphill) - 1.0) < WEIGHT_ERROR + 2.0**-62 / float(uphill)


def test_small_probabilities_use_a_second_word():
    sampler = filled(np.array([50.0]))
    zero, low, high = np.uint64(0), np.uint64(2**20), np.uint64(2**63)
    # P(uphill) = exp(-100) is 2**-144: only a zero word and a tail of 16 or more zeros could do it.
    words = np.array([zero, zero, zero, low], dtype=np.uint64)
    assert settle(sampler, 0, 50.0, words, 0) == -1
    # exp(-60) is 2**-86.6: a tail of 24 zeros is small enough, one of none is not.
    assert settle(sampler, 0, 30.0, words, 0) == 1
    assert settle(sampler, 0, 30.0, np.array([zero, zero, zero, high], dtype=np.uint64), 0) == -1


def test_running_dry_is_reported_before_a_word_is_read():
    scores, names = np.ones(3), np.arange(3, dtype=np.int32)
    sampler, cursor = tuple(new_sampler(3)), np.zeros(1, dtype=np.int64)
    k, sign = choose_vertex(scores, 1.0, sampler, np.empty(3), names, Stream.of(1).words(4), cursor)
    assert (k, sign, cursor[0]) == (DRY, 0, 0)


def test_without_noise_ties_go_to_the_lower_name_and_up():
    scores = np.array([1.0, -3.0, 3.0, 3.0])
    assert best_vertex(scores, np.array([0, 3, 1, 2], dtype=np.int32)) == (2, -1)
    assert best_vertex(scores, np.array([0, 1, 2, 3], dtype=np.int32)) == (1, 1)
    assert best_vertex(np.zeros(4), np.array([2, 1, 0, 3], dtype=np.int32)) == (2, 1)


# ---------------------------------------------------------------------- whole runs


def small_problem(loss, seed):
    rng = np.random.default_rng(seed)
    X = np.rint(np.where(rng.random((80, 30)) < 0.15, rng.uniform(-1, 1, (80, 30)), 0.0) * ONE)
    y = rng.integers(0, 2, 80) if loss == "logistic" else np.rint(rng.uniform(-1, 1, 80) * ONE)
    return X, y


def ranks_in_law(X, y, problem, path, vertices, stretch, seed):
    """Where each choice falls in its exact law given the choices before it: uniform if the law is right.

    Candidates are ordered from likely to unlikely, and a choice is spread over its own interval.
    """
    spread = np.random.default_rng(seed).random(vertices.size)
    replay = open_path(X, y, problem, path=path)
    out = np.empty(vertices.size)
    for t, vertex in enumerate(vertices):
        law = vertex_law(stretch * problem.inverse_temperature * replay.scores())
        order = np.argsort(-law)
        place = int(np.flatnonzero(order == (vertex if vertex >= 0 else ~vertex + X.shape[1]))[0])
        before = law[order[:place]].sum()
        out[t] = before + spread[t] * law[order[place]]
        replay.step(int(vertex))
    return out


CASES = [
    ("sublinear", "squared", 2.0),
    ("sublinear", "huber", 0.6),
    ("sublinear", "logistic", 0.5),
    ("columns", "squared", 2.0),
    ("margins", "logistic", 0.5),
    ("gram", "squared", 2.0),
    ("dense", "huber", 0.6),
]


@pytest.mark.parametrize(("path", "loss", "noise"), CASES)
def test_whole_runs_follow_the_law_and_no_other_scale(path, loss, noise):
    ranks = {1.0: [], 2.0 / 3.0: [], 1.5: []}
    for seed in range(40):
        X, y = small_problem(loss, seed)
        data = sp.csr_array(X) if path in ("sublinear", "columns", "margins") else X
        problem = FrankWolfeProblem(loss_named(loss, 0.5), 4.0, 120, noise, 80)
        _, vertices = run(data, y, loss, 0.5, 4.0, 120, noise, Stream.of(seed), path=path)
        for stretch, found in ranks.items():
            found.append(ranks_in_law(data, y, problem, path, vertices, stretch, seed))
    p_values = {stretch: kstest(np.concatenate(found), "uniform").pvalue for stretch, found in ranks.items()}
    assert p_values[1.0] > 1e-3
    assert p_values[2.0 / 3.0] < 1e-6
    assert p_values[1.5] < 1e-6


def popular_columns(loss, seed, n=300, d=60):
    """Entries at the bound, and columns as popular as one over their rank; the first are in nearly every row."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < np.minimum(0.97, 4.0 / np.arange(1, d + 1)), float(ONE), 0.0)
    y = rng.random(n) < 0.3
    return X, y.astype(np.int64) if loss == "logistic" else np.rint(np.where(y, 0.8, -0.4) * ONE)


@pytest.mark.parametrize(("loss", "noise"), [("huber", 20.0), ("logistic", 20.0)])
def test_steps_that_leave_scores_behind_follow_the_law_and_no_other_scale(loss, noise):
    ranks, left = {1.0: [], 2.0 / 3.0: [], 1.5: []}, 0
    for seed in range(25):
        X, y = popular_columns(loss, seed)
        problem = FrankWolfeProblem(loss_named(loss, 0.5), 6.0, 120, noise, len(X))
        path = open_path(sp.csr_array(X), y, problem, path="sublinear")
        _, vertices = path.run(Stream.of(seed))
        left += int(path.groups[-1][0])
        for stretch, found in ranks.items():
            found.append(ranks_in_law(sp.csr_array(X), y, problem, "sublinear", vertices, stretch, seed))
    assert left > 200
    p_values = {stretch: kstest(np.concatenate(found), "uniform").pvalue for stretch, found in ranks.items()}
    assert p_values[1.0] > 1e-3
    assert p_values[2.0 / 3.0] < 1e-6
    assert p_values[1.5] < 1e-6


def test_empty_columns_are_candidates():
    X = sp.csr_array((5, 64))
    chosen = np.concatenate([run(X, np.zeros(5), "squared", 1.0, 1.0, 400, 1.0, Stream.of(s))[1] for s in range(5)])
    counts = np.bincount(np.where(chosen < 0, 64 + ~chosen, chosen), minlength=128)
    assert chi_square_p(counts, np.full(128, 1.0 / 128.0)) > 1e-4


def test_every_path_is_tested():
    assert {case[0] for case in CASES} == set(PATHS)


def test_what_the_sampler_rounds_is_paid_by_the_plan():
    # The plan scales its noise for an exponential mechanism, whose rounding charge covers the sampler's.
    assert rounding_charge() >= SELECTION_CHARGE
    # And its distance from the law stands in the event of every step, which an accountant charges.
    problem, facts = Problem(HuberLoss(1.0), "zero-out", 100, 10), {"radius": 1.0, "n_steps": 50}
    plan = plan_frank_wolfe(Budget(1.0, 1e-6), problem, **facts)
    assert plan.releases[0].event.distance == SELECTION_LEFTOVER
    # Without a delta there is none, and the sampler is not used.
    assert plan_frank_wolfe(Budget(1.0, 0.0), problem, **facts).releases[0].event.distance == 0.0
