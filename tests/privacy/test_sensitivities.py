"""Every declared sensitivity: never passed by any neighbour we can find, and nearly reached by one."""

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE, clip_rows, round_weights
from taciturn.data.sensitivity import (
    RELATIONS,
    Sensitivity,
    correlation_scores,
    fixed_point_sum,
    histogram,
    quantile_scores,
    record_sum,
)
from taciturn.data.target import label_signs, numeric_target


def neighbours(n_records, relation, draw, rng):
    """A data set and a neighbour; ``draw`` makes one record."""
    records = [draw(rng) for _ in range(n_records)]
    other = records[1:]
    if relation == "replace-one":
        other = [draw(rng), *other]
    return records, other


def correlation_change(relation, classes, rng):
    d = 4

    def draw(rng):
        corner = rng.choice([-1.0, 1.0], d) * rng.choice([1.0, 1.0, 0.5, 30.0])
        return corner, rng.integers(0, classes) if classes else rng.choice([-1.0, 1.0, 0.3, -40.0])

    def scores(records):
        X = np.array([x for x, _ in records])
        y = np.array([label for _, label in records])
        if classes:
            target, bound = label_signs(y, np.arange(classes)), 1
        else:
            target, bound = numeric_target(y, (-1.0, 1.0))[:, None], ONE
        return np.abs(Design(X, 1.0).rmatvec(target, bound)).max(axis=1), bound

    a, b = neighbours(5, relation, draw, rng)
    (first, bound), (second, _) = scores(a), scores(b)
    declared = correlation_scores(ONE, bound, relation)
    return np.max(np.abs(first - second)) / declared.value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_correlation_scores(relation, classes):
    rng = np.random.default_rng(0)
    ratios = [correlation_change(relation, classes, rng) for _ in range(600)]
    assert max(ratios) <= 1.0
    assert max(ratios) >= 0.99


@pytest.mark.parametrize("classes", [0, 3])
def test_the_zero_out_value_is_too_small_for_replacement(classes):
    rng = np.random.default_rng(0)
    ratios = [correlation_change("replace-one", classes, rng) for _ in range(600)]
    half = correlation_scores(1, 1, "replace-one").value / correlation_scores(1, 1, "zero-out").value
    assert max(ratios) * half > 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_fixed_point_sums_in_l2(relation):
    rng = np.random.default_rng(1)
    d, weight_bound, row_bound = 6, 1000, 3 * ONE * ONE
    declared = fixed_point_sum(row_bound, weight_bound, relation).value

    def draw(rng):
        raw = rng.choice([-1.0, 1.0], d) * ONE * rng.uniform(0.9, 3.0)
        return raw, rng.choice([-5.0, 5.0])

    def total(records):
        raw = np.array([x for x, _ in records])
        rows = clip_rows(np.rint(np.clip(raw, -ONE, ONE)), raw, row_bound)
        return rows.T @ round_weights([w for _, w in records], 1000.0, weight_bound)

    worst = 0.0
    for _ in range(800):
        a, b = neighbours(4, relation, draw, rng)
        worst = max(worst, np.linalg.norm(total(a) - total(b)))
    assert worst <= declared
    assert worst >= 0.99 * declared


@pytest.mark.parametrize("relation", RELATIONS)
def test_histograms(relation):
    rng = np.random.default_rng(2)
    declared = histogram(relation)
    for _ in range(200):
        a, b = neighbours(5, relation, lambda rng: rng.integers(0, 3), rng)
        change = np.bincount(a, minlength=3) - np.bincount(b, minlength=3)
        assert np.max(np.abs(change)) <= declared.value
        if declared.monotone:
            assert (change >= 0).all() or (change <= 0).all()
    # A replacement is not monotone: one count falls, another rises.
    assert histogram("replace-one").monotone is False
    assert histogram("zero-out").spread == 1.0
    assert histogram("replace-one").spread == 2.0


def test_record_sums_by_relation():
    assert [record_sum(3.0, "l1", relation).value for relation in RELATIONS] == [3.0, 3.0, 6.0]
    assert [quantile_scores(1, 4, relation).value for relation in RELATIONS] == [3.0, 3.0, 4.0]


@pytest.mark.parametrize("relation", ["swap", "", None, "ZERO-OUT"])
def test_unknown_relations_are_refused(relation):
    with pytest.raises(ParameterError, match="^relation=.*'zero-out', 'add-remove', 'replace-one'"):
        record_sum(1.0, "l2", relation)


def test_a_sensitivity_is_a_positive_number_in_a_known_norm():
    with pytest.raises(ParameterError, match="value=0"):
        Sensitivity(0.0, "linf", "zero-out")
    with pytest.raises(ParameterError, match="norm='l3'"):
        Sensitivity(1.0, "l3", "zero-out")
