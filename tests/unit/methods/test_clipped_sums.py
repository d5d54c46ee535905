"""Tasks on clipped records: what a block remembers changes no sum, and gradient descent is its definition."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import taciturn.data.design as designs
from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.engines import ArraySource
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.descent import Constraint, GradientDescent
from taciturn.methods.sums import (
    ClippedRowSum,
    CorrelationSum,
    CumulativeCounts,
    CurvatureSum,
    EntryCorrelationSum,
    ExcessLossSums,
    GradientSum,
    GramMatrix,
    KeptShares,
    MarginCounts,
    MarginMagnitudes,
    ResidualMagnitudes,
    ResidualMoments,
    ResidualSum,
    RowNorms,
    SlopeMoments,
)

N_ROWS, N_FEATURES = 50, 6
COLUMNS = np.array([0, 2, 5])
KINDS = {"numbers": (HuberLoss(0.3), 1), "two classes": (LogisticLoss(), 1), "three classes": (SoftmaxLoss(), 3)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def in_memory(kind, layout=np.asarray, n_partitions=1):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.2, 1.2, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.7)
    y = rng.integers(-ONE, ONE, N_ROWS).astype(float) if kind == "numbers" else rng.integers(0, 2, N_ROWS)
    return ArraySource(Records(layout(X), y, np.arange(N_ROWS), N_ROWS), 1.0, N_ROWS, n_partitions=n_partitions)


def clippings(kind):
    """Clippings of which each differs from the first in one respect."""
    loss, n_outputs = KINDS[kind]
    first = Clipping(None, N_FEATURES, loss, n_outputs, ONE * ONE, ONE // 2, 5000, 0.3)
    centre = np.array([ONE // 2, 0, -ONE // 3, 0, 12, 0], dtype=float)
    yield from (
        first,
        replace(first, row_squared=2 * ONE * ONE),
        replace(first, constant=0),
        replace(first, weight_bound=777),
        replace(first, product_bound=999 * ONE),
        replace(first, derivative_bound=0.95),
        replace(first, centre=centre),
        replace(first, centre=-centre),
        replace(first, columns=COLUMNS, n_features=3),
        replace(first, columns=COLUMNS + 0, n_features=3, centre=centre[COLUMNS]),
        replace(first, layout="csc"),
    )
    if kind == "numbers":
        yield replace(first, target_mean=900)
        yield replace(first, loss=HuberLoss(0.25))


def tasks(kind):
    rng = np.random.default_rng(4)
    for clipping in clippings(kind):
        shape = clipping.n_outputs, clipping.width
        weights, margins = rng.normal(size=shape), rng.normal(size=clipping.n_outputs)
        yield GradientSum(clipping, weights)
        yield ClippedRowSum(clipping, 321)
        yield GramMatrix(clipping, 1 << 20)
        yield CurvatureSum(clipping, weights / np.linalg.norm(weights), 1000)
        yield CorrelationSum(clipping, margins)
        yield EntryCorrelationSum(clipping, margins, 0.4)
        yield ExcessLossSums(clipping, (weights, 2.0 * weights), np.zeros(shape), 0.5, 2000.0)
        if clipping.n_outputs == 1:
            yield CumulativeCounts(ResidualMagnitudes(clipping, weights), (0.1, 0.2, 0.3, 0.5))
            yield CumulativeCounts(MarginMagnitudes(clipping, weights), (0.1, 0.5, 1.0))
            yield ResidualMoments(clipping, weights, 0.7, 0.25, 4321)
            yield MarginCounts(clipping, weights, 0.7, 6, 3)
            if clipping.loss.labelled:
                yield GramMatrix(clipping, 1 << 20, weights)
            yield ResidualSum(clipping, weights, 4321)
        elif clipping.loss.labelled:
            yield SlopeMoments(clipping, weights, 0.5, 4321)


@every_kind
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_what_a_block_remembers_changes_no_sum(kind, layout):
    """Each task on a source of its own, and all of them one after the other on one, there and back, pickled."""
    alone = [in_memory(kind).total(task) for task in tasks(kind)]
    shared = in_memory(kind, layout, n_partitions=3)
    everything = list(zip(tasks(kind), alone, strict=True))
    for task, expected in [*everything, *reversed(everything)]:
        assert np.array_equal(shared.total(pickle.loads(pickle.dumps(task))), expected)
    # Every respect in which clippings differ shows in gradients, but for the layout.
    found, every = set(), list(clippings(kind))
    for clipping in every:
        weights = np.linspace(-1.0, 0.7, clipping.n_outputs * clipping.width).reshape(clipping.n_outputs, -1)
        found.add(in_memory(kind).total(GradientSum(clipping, weights)).tobytes())
    assert len(found) == len(every) - 1


@every_kind
def test_correlations_are_gradients_at_constant_margins(kind):
    for clipping in clippings(kind):
        if not clipping.constant or clipping.centre is not None or clipping.product_bound is not None:
            continue
        # A constant of one at the bound of an unclipped row gives the margin itself.
        wide = replace(clipping, row_squared=100 * ONE * ONE, constant=ONE)
        margins = np.linspace(-1.0, 1.0, clipping.n_outputs) if clipping.n_outputs > 1 else np.array([0.4])
        weights = np.column_stack((np.zeros((clipping.n_outputs, clipping.n_features)), margins))
        source = in_memory(kind)
        gradient = source.total(GradientSum(wide, weights))
        assert np.array_equal(source.total(CorrelationSum(wide, margins)), gradient)
        entries = source.total(EntryCorrelationSum(replace(wide, constant=0), margins, 1.0))
        # Rows that are never clipped, so that only the room for rounding tells them apart.
        assert np.abs(entries.T - gradient[:, :-1]).max() <= N_ROWS * ONE


@pytest.mark.slow
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_one_pass_keeps_a_few_rows_of_the_lattice_at_a_time(monkeypatch, layout):
    monkeypatch.setattr(designs, "_BLOCK_ENTRIES", 1 << 13)
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 100))
    records = Records(layout(X), np.zeros(3000), np.arange(3000), 3000)
    clipping = Clipping(None, 100, HuberLoss(0.3), 1, ONE * ONE, 0, 5000, 0.3)
    passes = (
        CumulativeCounts(RowNorms(HuberLoss(0.3), None, one_pass=True), (1.0, 2.0)),
        CumulativeCounts(KeptShares(HuberLoss(0.3), 0.1), (0.1, 0.2)),
        CorrelationSum(clipping, np.zeros(1)),
        EntryCorrelationSum(clipping, np.zeros(1), 0.4),
    )
    source = ArraySource(records, 1.0, 3000)
    for task in passes:
        source.total(task)  # what is remembered is no part of a pass
        tracemalloc.start()
        try:
            source.total(task)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < X.nbytes / 4
    # The same comparison notices a sum that keeps the lattice.
    source = ArraySource(records, 1.0, 3000)
    tracemalloc.start()
    try:
        source.total(GradientSum(clipping, np.zeros((1, 100))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak > X.nbytes / 2


def plain_descent(sums, start, n_steps, unit, momentum, average, k, radius):
    iterates, current, velocity = [], start.copy(), np.zeros_like(start)
    for _ in range(n_steps):
        velocity = momentum * velocity - unit * sums(current)
        current = current + velocity
        if k is not None:
            weakest = np.argsort(np.abs(current[:, :-1]).sum(axis=0))[: start.shape[1] - 1 - k]
            current[:, weakest] = 0.0
        if radius is not None:
            current[:, :-1] *= min(1.0, radius / np.linalg.norm(current[:, :-1]))
        iterates.append(current)
    if not average:
        return current
    mean = np.mean(iterates[n_steps // 2 :], axis=0)
    if k is not None:
        weakest = np.argsort(np.abs(mean[:, :-1]).sum(axis=0))[: start.shape[1] - 1 - k]
        mean[:, weakest] = 0.0
    return mean


@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("k", "radius"), [(None, None), (None, 0.3), (2, None), (2, 0.3)])
def test_gradient_descent_is_its_definition(momentum, average, k, radius):
    rng = np.random.default_rng(8)
    matrix = rng.normal(size=(7, 7))
    matrix = np.rint(1000 * matrix @ matrix.T)
    ends = 50 * rng.normal(size=(2, 7))

    def sums(weights):
        return np.rint((weights - ends) @ matrix).astype(np.int64)

    start, unit = rng.normal(size=(2, 7)), 0.5 / np.linalg.eigvalsh(matrix)[-1]
    constraint = Constraint(6, k, radius)
    expected = plain_descent(sums, start, 9, unit, momentum, average, k, radius)
    for scale in (1.0, 0.25):
        # A longer step on a smaller gradient is the same.
        descent = GradientDescent(9, unit * scale, None, 1.0 / scale, constraint, momentum, average)
        before = start.copy()
        assert np.allclose(descent.run(sums, start, None), expected, rtol=1e-9)
        assert np.array_equal(start, before)
