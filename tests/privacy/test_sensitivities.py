"""Every declared sensitivity: never passed by any neighbour we can find, and nearly reached by one."""

from functools import partial

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE
from taciturn.data.design import Design, clip_rows, round_weights
from taciturn.data.sensitivity import (
    RELATIONS,
    Sensitivity,
    clipped_count,
    correlation_scores,
    fixed_point_sum,
    gradient_scores,
    quantile_scores,
    record_sum,
    target_parts,
)
from taciturn.data.target import label_codes, numeric_target
from taciturn.engines import Block
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.mechanisms import ExponentialMechanism
from taciturn.methods.selection.run import CorrelationSums, TargetParts


def neighbours(n_records, relation, draw, rng):
    """A data set and a neighbour; ``draw`` makes one record."""
    records = [draw(rng) for _ in range(n_records)]
    other = records[1:]
    if relation == "replace-one":
        other = [draw(rng), *other]
    return records, other


def draw_record(classes, rng):
    corner = rng.choice([-1.0, 1.0], 4) * rng.choice([1.0, 1.0, 0.5, 30.0])
    return corner, rng.integers(0, classes) if classes else rng.choice([-1.0, 1.0, 0.3, -40.0])


def block_of(records, classes):
    X, y = np.array([x for x, _ in records]), np.array([label for _, label in records])
    return Block(Design(X, 1.0), label_codes(y, np.arange(classes)) if classes else numeric_target(y, (-1.0, 1.0)))


def correlation_change(relation, classes, rng):
    """How far one record moves the scores, over what is declared, at centres that are often at their ends."""
    centres = tuple(np.clip(rng.integers(-2 * ONE, 2 * ONE, classes if classes > 2 else 1), -ONE, ONE).tolist())
    sums = CorrelationSums(classes, centres, signed_target=classes > 0)
    first, second = (
        np.abs(sums(block_of(records, classes))).max(axis=1)
        for records in neighbours(5, relation, partial(draw_record, classes), rng)
    )
    return np.max(np.abs(first - second)) / correlation_scores(ONE, ONE, relation).value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_correlation_scores(relation, classes):
    rng = np.random.default_rng(0)
    ratios = [correlation_change(relation, classes, rng) for _ in range(600)]
    assert max(ratios) <= 1.0
    assert max(ratios) >= 0.99


def test_centred_targets_stay_within_their_bound_at_every_centre():
    ends = np.array([-ONE, -ONE + 1, -1, 0, 1, ONE - 1, ONE], dtype=np.float64)
    X = np.ones((ends.size, 1))

    def largest(centre):
        weights = CorrelationSums(0, (centre,))._centred(ends[:, None])
        assert np.array_equal(weights, np.rint(weights))
        return np.abs(weights).max()

    rng = np.random.default_rng(3)
    assert all(largest(centre) == ONE for centre in (-ONE, -1, 0, 1, ONE, *rng.integers(-ONE, ONE, 400).tolist()))
    # What centring without the division would do: one record counts for nearly two.
    assert np.abs(ends - ONE).max() == 2 * ONE
    assert CorrelationSums(0, (ONE,))(Block(Design(X[:1], 1.0), ends[:1])).tolist() == [[-ONE * ONE]]


def parts_change(relation, classes, rng):
    unit = 1 if classes else 2 * ONE
    first, second = (
        TargetParts(classes, unit, signed_target=False)(block_of(records, classes))
        for records in neighbours(5, relation, partial(draw_record, classes), rng)
    )
    return np.abs(first - second).sum() / target_parts(unit, relation).value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_parts_of_the_target_in_l1(relation, classes):
    rng = np.random.default_rng(0)
    worst = max(parts_change(relation, classes, rng) for _ in range(60))
    # Reached, so that two thirds of it, or zero-out's in place of replace-one's, would be too little.
    assert worst == 1.0


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
@pytest.mark.parametrize("loss", [HuberLoss(0.5), SquaredLoss(), LogisticLoss()], ids=lambda loss: type(loss).__name__)
def test_gradients_over_an_l1_ball(loss, relation):
    rng = np.random.default_rng(3)
    d, radius = 3, 2.0
    declared = gradient_scores(1.0, loss.lipschitz(radius), relation).value
    vertices = radius * np.concatenate((np.eye(d), -np.eye(d), np.zeros((1, d))))
    targets = [0.0, 1.0] if isinstance(loss, LogisticLoss) else [-1.0, 1.0, 0.2]

    def draw(rng):
        return rng.choice([-1.0, 1.0], d), rng.choice(targets)

    def gradient(records, w):
        X, y = np.array([x for x, _ in records]), np.array([y for _, y in records])
        return X.T @ loss.derivative(X @ w, y)

    worst = 0.0
    for _ in range(1500):
        a, b = neighbours(3, relation, draw, rng)
        w = vertices[rng.integers(len(vertices))]
        worst = max(worst, np.max(np.abs(gradient(a, w) - gradient(b, w))))
    assert worst <= declared * (1 + 1e-12)
    # The logistic slope is sigma(radius) < 1.
    tight = 1 / (1 + np.exp(-radius)) if isinstance(loss, LogisticLoss) else 1.0
    assert worst >= 0.99 * tight * declared


def test_the_slope_one_is_refuted_for_the_squared_loss():
    x, w, y = np.ones(3), np.array([2.0, 0.0, 0.0]), -1.0
    assert np.max(np.abs(x * SquaredLoss().derivative(x @ w, y))) == 3.0 > gradient_scores(1.0, 1.0, "zero-out").value


@pytest.mark.parametrize("relation", RELATIONS)
def test_clipped_counts(relation):
    declared = clipped_count(3, 9, relation)
    assert declared.value == 6.0
    # Attained: an unstable count may jump from one end to the other.
    assert abs(min(max(100, 3), 9) - min(max(0, 3), 9)) == declared.value
    with pytest.raises(ParameterError, match="high=3"):
        clipped_count(3, 3, relation)


def test_norms_are_not_interchangeable():
    with pytest.raises(ParameterError, match="norm='l2': expected a sensitivity in linf"):
        ExponentialMechanism(fixed_point_sum(4, 1, "zero-out"), 1.0)


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
