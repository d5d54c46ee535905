"""What a record with a weight and an exposure adds to a sum: no more than one without, whatever they are."""

import math

import numpy as np
import pytest
from test_whitened_sums import KINDS, beyond, records_of, tasks

from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.persons import PersonRows
from taciturn.engines import Block
from taciturn.losses import GammaLoss, HuberLoss, LogisticLoss, PoissonLoss, SoftmaxLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.sums import (
    CurvedMoments,
    GradientSum,
    GramMatrix,
    MarginCounts,
    ResidualMoments,
    TargetSum,
    WeightSum,
)

D, UNIT, PRODUCT, ROW = 3, 1 << 16, 3 << 30, (2 * ONE) ** 2
LOSSES = {
    "counts": PoissonLoss(0.3, -4.0, 0.2),
    "amounts": GammaLoss(0.3, -2.0),
    "numbers": HuberLoss(2.0),
    "labels": LogisticLoss(),
    "classes": SoftmaxLoss(),
}


def block(kind, seed, n_rows, largest=1.0, *, person=False):
    """Rows with weights up to ``largest``, often at the ends, and offsets."""
    X, y = records_of(kind, seed, n_rows)
    rng = np.random.default_rng(seed)
    weight = largest * np.where(rng.random(n_rows) < 0.5, rng.integers(0, 2, n_rows), rng.random(n_rows))
    offset = -6.0 * rng.random(n_rows) * (rng.random(n_rows) < 0.7)
    persons = PersonRows(np.array([n_rows])) if person else None
    offsets = offset if kind in ("counts", "amounts") else None
    return Block(Design(X, 1.0), y, persons, weight=weight, offset=offsets)


def sums_of(kind, seed):
    """Sums of the predictor with the squared norm that a record may add."""
    rng, loss = np.random.default_rng(seed + 1), LOSSES[kind]
    n_outputs = 4 if kind == "classes" else 1
    at = rng.normal(0.0, 2.0, (n_outputs, D + 1))
    bound = {"classes": math.sqrt(2.0), "labels": 1.0}.get(kind, 2.0)
    joint = Clipping(None, D, loss, n_outputs, ROW, ONE, UNIT, bound, product_bound=PRODUCT)
    yield "gradient", GradientSum(joint, at), PRODUCT**2
    yield "weights", WeightSum(loss, exposures=kind == "counts"), ONE**2
    yield "target", TargetSum(None if kind in ("counts", "amounts", "numbers") else (0, 1)), ONE**2
    by_itself = Clipping(None, D, loss, n_outputs, ROW, ONE, UNIT, bound)
    yield "gram", GramMatrix(by_itself, UNIT), None
    if kind in ("counts", "amounts"):
        yield "moments", CurvedMoments(joint, at, 0.7, 0.5, 3.0, UNIT), UNIT**2
    if kind == "numbers":
        yield "moments", ResidualMoments(joint, at, 0.7, 0.5, UNIT), UNIT**2
    if kind == "labels":
        yield "gram", GramMatrix(by_itself, UNIT, at), None
        yield "cells", MarginCounts(joint, at, 0.7, 8, UNIT), UNIT**2


def passes(kind, seed, one):
    """Names of the sums to which a record adds more than it may, and the largest share of a bound."""
    found, largest = [], 0.0
    for name, task, squared in sums_of(kind, seed):
        total = task(one)
        if name == "gram":
            size, most = int(np.trace(total)), UNIT
        else:
            size, most = sum(int(value) ** 2 for value in np.ravel(total)), squared
        found += [name] * (size > most)
        largest = max(largest, size / most)
    return found, largest


@pytest.mark.parametrize("kind", LOSSES)
def test_no_weight_makes_a_record_more_than_one(kind):
    largest = 0.0
    for seed in range(60):
        for one in (block(kind, seed, 1), block(kind, seed, 1 + seed % 7, person=True)):
            found, share = passes(kind, seed, one)
            assert not found
            largest = max(largest, share)
    assert largest > 0.8
    # Weights that nobody trimmed do.
    assert any(passes(kind, seed, block(kind, seed, 1, 1.5))[0] for seed in range(60))


@pytest.mark.parametrize("kind", KINDS)
def test_nor_in_whitened_coordinates(kind):
    for seed in range(25):
        for one in (block(kind, seed, 1), block(kind, seed, 5, person=True)):
            assert not any(beyond(name, task(one)) for name, task in tasks(kind, seed).items())


@pytest.mark.parametrize("kind", LOSSES)
def test_sums_are_those_of_the_records_one_by_one(kind):
    whole = block(kind, 3, 200)
    for name, task, _ in sums_of(kind, 3):
        parts = []
        for start, stop in ((0, 1), (1, 3), (3, 120), (120, 200)):
            rows = np.zeros(200, dtype=bool)
            rows[start:stop] = True
            parts.append(task(whole.keep(rows)))
        np.testing.assert_array_equal(task(whole), sum(parts), err_msg=name)
