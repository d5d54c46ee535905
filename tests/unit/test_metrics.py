"""Metrics of selections, on cases small enough to count by hand."""

import math
from itertools import combinations

import numpy as np
import pytest

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.metrics import (
    TopGreatGood,
    jaccard_stability,
    nonzeros_under_uniform_screening,
    support_f1,
    top_great_good,
    top_k_accuracy,
)


def mask(d, *indices):
    support = np.zeros(d, dtype=bool)
    support[list(indices)] = True
    return support


# Feature j has rank j + 1.
def falling(d):
    return np.arange(d, 0, -1.0)


@pytest.mark.parametrize(
    ("selected", "share"),
    [
        ((0, 1, 2), 1.0),
        ((0, 1, 7), 2 / 3),
        ((5, 6, 7), 0.0),
        ((0,), 1.0),
        ((1,), 0.0),
        (tuple(range(8)), 1.0),
        ((), 1.0),
    ],
)
def test_accuracy_counts_members_of_the_top_k(selected, share):
    assert top_k_accuracy(falling(8), mask(8, *selected)) == pytest.approx(share)
    # The order of the features has nothing to say, and scores may be integers.
    shuffled = np.random.default_rng(0).permutation(8)
    assert top_k_accuracy(falling(8).astype(int)[shuffled], mask(8, *selected)[shuffled]) == pytest.approx(share)


def test_ties_are_broken_in_favour_of_the_selection_and_only_there():
    # Two true coefficients, three places: one of the four zeros belongs to the top three, whichever was taken.
    scores = [5.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    assert top_k_accuracy(scores, mask(6, 0, 1, 4)) == 1.0
    assert top_k_accuracy(scores, mask(6, 0, 3, 4)) == pytest.approx(2 / 3)
    assert top_k_accuracy(scores, mask(6, 2, 3, 4)) == pytest.approx(1 / 3)
    assert top_great_good(scores, mask(6, 0, 1, 5)).top
    assert not top_great_good(scores, mask(6, 0, 4, 5)).top


GRADES = {
    "top": TopGreatGood(True, True, True),
    "great": TopGreatGood(False, True, True),
    "good": TopGreatGood(False, False, True),
    "none": TopGreatGood(False, False, False),
}


@pytest.mark.parametrize(
    ("ranks", "grade"),
    [
        # k = 200, the example of the paper: 20 must be there and 220 may be; 2 and 300 for GOOD.
        (range(1, 201), "top"),
        ([*range(1, 21), *range(41, 221)], "great"),
        ([*range(1, 20), *range(40, 221)], "good"),
        ([*range(1, 200), 221], "good"),
        ([1, 2, *range(103, 301)], "good"),
        ([1, *range(102, 301)], "none"),
        ([*range(1, 200), 301], "none"),
        # k = 5: the best one must be there; up to rank 6 (5.5) it is GREAT, up to rank 8 (7.5) GOOD.
        ([1, 2, 3, 4, 5], "top"),
        ([1, 2, 3, 4, 6], "great"),
        ([1, 3, 4, 5, 6], "great"),
        ([1, 2, 3, 4, 7], "good"),
        ([1, 2, 3, 4, 8], "good"),
        ([1, 2, 3, 4, 9], "none"),
        ([2, 3, 4, 5, 6], "none"),
        # k = 10 and 11: one and two must be there, up to rank 11 and 13 (12.1).
        ([1, *range(3, 12)], "great"),
        ([*range(1, 10), 12], "good"),
        ([1, 2, *range(4, 13)], "great"),
        ([1, 2, *range(4, 12), 13], "great"),
        ([1, *range(3, 13)], "good"),
        # k = 50: up to rank 55, which 1.1 * 50 in doubles would make 56.
        ([*range(1, 50), 55], "great"),
        ([*range(1, 50), 56], "good"),
        # k = 100 and 101: one and two must be there to be GOOD.
        ([1, *range(40, 139)], "good"),
        ([1, *range(40, 140)], "none"),
        ([1, 2, *range(40, 139)], "good"),
        # k = 1, and all there are.
        ([1], "top"),
        ([2], "none"),
        ([], "top"),
    ],
)
def test_three_grades(ranks, grade):
    d = 400
    assert top_great_good(falling(d), mask(d, *(rank - 1 for rank in ranks))) == GRADES[grade]


def test_reaches_beyond_the_last_feature_are_no_reaches():
    assert top_great_good(falling(5), mask(5, 0, 1, 2, 3, 4)) == GRADES["top"]
    assert top_great_good(falling(5), mask(5, 0, 1, 2, 4)) == GRADES["great"]


def test_each_grade_implies_the_next_and_all_occur():
    grades = {top_great_good(falling(9), mask(9, *chosen)) for k in range(1, 9) for chosen in combinations(range(9), k)}
    assert grades == set(GRADES.values())


@pytest.mark.parametrize(
    ("true", "estimated", "f1"),
    [
        ((0, 1, 2), (0, 1, 2), 1.0),
        ((0, 1, 2), (2, 3), 2 / 5),
        ((0, 1), (2, 3), 0.0),
        ((), (), 1.0),
        ((), (1,), 0.0),
        ((1,), (), 0.0),
    ],
)
def test_f1_of_supports(true, estimated, f1):
    a, b = mask(4, *true), mask(4, *estimated)
    assert support_f1(a, b) == support_f1(b, a) == pytest.approx(f1)
    if true and estimated:
        precision, recall = (a & b).sum() / b.sum(), (a & b).sum() / a.sum()
        assert support_f1(a, b) == pytest.approx(2 * precision * recall / max(precision + recall, 1e-300))


@pytest.mark.parametrize(
    ("supports", "stability"),
    [
        ([(0, 1), (0, 1)], 1.0),
        ([(0, 1), (2, 3)], 0.0),
        ([(0, 1), (0, 2), (0, 1, 2, 3)], (1 / 3 + 1 / 2 + 1 / 2) / 3),
        ([(), ()], 1.0),
        ([(), (1,), ()], 1 / 3),
    ],
)
def test_stability_is_the_mean_over_pairs(supports, stability):
    masks = [mask(4, *support) for support in supports]
    assert jaccard_stability(masks) == pytest.approx(stability)
    assert jaccard_stability(np.array(masks)) == pytest.approx(stability)


def test_stability_of_random_supports_matches_sets():
    rng = np.random.default_rng(0)
    masks = rng.random((7, 30)) < 0.3
    sets = [set(np.flatnonzero(row)) for row in masks]
    pairs = [len(a & b) / len(a | b) for a, b in combinations(sets, 2)]
    assert jaccard_stability(masks) == pytest.approx(math.fsum(pairs) / len(pairs))


@pytest.mark.parametrize(
    "call",
    [
        lambda: support_f1([1, 0, 1], mask(3, 0)),
        lambda: support_f1(mask(3, 0), [0.0, 43210.5, 0.0]),
        lambda: support_f1(np.zeros((2, 2), dtype=bool), np.zeros((2, 2), dtype=bool)),
        lambda: support_f1(mask(3, 0), mask(4, 0)),
        lambda: top_k_accuracy(mask(3, 0), [3.0, 2.0, 43210.5]),
        lambda: top_k_accuracy([3.0, 2.0], mask(3, 0)),
        lambda: top_great_good([3.0, np.nan, 43210.5], mask(3, 0)),
        lambda: jaccard_stability([mask(3, 0)]),
        lambda: jaccard_stability([mask(3, 0), mask(2, 0)]),
        lambda: jaccard_stability([[0, 2], [1, 2]]),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(call):
    with pytest.raises(TaciturnError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, DataError)
    assert ": expected" in message
    assert message.count(". ") == 0
    assert "43210" not in message


def left_after(n_features, n_steps, n_runs, rng, updated_first=True):
    """Coefficients left in simulated runs of uniform updates and screenings."""
    rows = np.arange(n_runs)
    weights = np.zeros((n_runs, n_features), dtype=bool)
    for _ in range(n_steps):
        hits = [(rng.integers(0, n_features, n_runs), True), (rng.integers(0, n_features, n_runs), False)]
        for columns, value in hits if updated_first else hits[::-1]:
            weights[rows, columns] = value
    return weights.sum(axis=1)


@pytest.mark.parametrize(("n_features", "n_steps"), [(20, 300), (20, 7), (5, 3), (3, 1), (400, 30)])
def test_uniform_screening_leaves_what_the_formula_says(n_features, n_steps):
    expected = nonzeros_under_uniform_screening(n_features, n_steps)
    left = left_after(n_features, n_steps, 4000, np.random.default_rng(0))
    error = left.std() / np.sqrt(left.size)
    assert abs(left.mean() - expected) < 5 * error
    q = 1 - 1 / n_features
    ages = np.arange(n_steps)
    plain = n_features * q**n_steps * (1 - q**n_steps) + np.sum(q**ages * (1 - q**ages))
    assert expected == pytest.approx(plain, rel=1e-12)
    # The simulation tells the formula from its neighbours: screening before the update, and the printed one.
    # With very many features the order hardly matters.
    other = left_after(n_features, n_steps, 4000, np.random.default_rng(0), updated_first=False)
    assert n_features == 400 or abs(other.mean() - expected) > 5 * error
    if n_steps > 1:
        printed = n_features * q**n_steps * (1 - q**n_steps) + np.sum(q**ages * (1 - n_features ** -ages.astype(float)))
        assert abs(left.mean() - printed) > 5 * error


def test_uniform_screening_in_the_limits():
    assert nonzeros_under_uniform_screening(20, 10**6) == pytest.approx(20 * 19 / 39, rel=1e-9)
    assert nonzeros_under_uniform_screening(20, 10**6) == pytest.approx(9.74, abs=0.005)
    assert nonzeros_under_uniform_screening(600, 1000) == pytest.approx(0.5 * 600, rel=0.05)
    assert nonzeros_under_uniform_screening(10**9, 50) == pytest.approx(50, rel=1e-5)
    assert nonzeros_under_uniform_screening(1, 5) == 0.0
    with pytest.raises(ParameterError, match="n_steps"):
        nonzeros_under_uniform_screening(5, 0)
