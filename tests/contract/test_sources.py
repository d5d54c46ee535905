"""What every source promises: exact sums over its partitions, the same for any number of them."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import taciturn.engines
from array_readers import BROKEN, ArrayReader, PlainSource, equal_edges
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.data.target import NumberMap
from taciturn.engines import (
    ArraySource,
    Block,
    BlockBuilder,
    DaskSource,
    Partition,
    PartitionedSource,
    PartitionFacts,
    SparkSource,
    StreamedSource,
    add_partitions,
)

N_ROWS, N_FEATURES = 97, 6
PARTITIONS = (1, 2, 4, 41, 200)


@dataclass(frozen=True)
class ColumnSums:
    """Sums of some columns, and the number of records."""

    columns: np.ndarray | None

    def __call__(self, block):
        design = block.design(self.columns)
        return np.append(design.rmatvec(np.ones(block.n_rows), 1), block.n_rows)


@dataclass(frozen=True)
class Products:
    """The Gram matrix of some columns, from a memo."""

    columns: np.ndarray | None
    layout: str | None = None

    def __call__(self, block):
        design = block.design(self.columns, self.layout)
        gram = block.recall("gram", (), lambda: design.lattice.T @ design.lattice)
        return np.asarray(gram.toarray() if sp.issparse(gram) else gram).astype(np.int64)


@dataclass(frozen=True)
class TargetSum:
    columns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def __call__(self, block):
        return np.array([block.target.sum(), np.square(block.target).sum()]).astype(np.int64)


@dataclass(frozen=True)
class FloatMean:
    columns: None = None

    def __call__(self, block):
        return np.array([block.target.mean() if block.n_rows else 0.0])


@dataclass(frozen=True)
class Noisy:
    stream: object
    columns: None = None

    def __call__(self, block):
        raise AssertionError("a task with a stream was run")


def tables(layout="dense"):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.5, 1.5, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.6)
    y = rng.integers(-ONE, ONE + 1, N_ROWS).astype(np.float64)
    return (X if layout == "dense" else sp.csr_matrix(X).asformat(layout)), y


def in_memory(X, y, n_partitions):
    records = Records(X, y, np.arange(len(y)), len(y))
    return ArraySource(records, 1.0, len(y), n_partitions=n_partitions)


def in_partitions(make):
    """Sources of partitions that are read from arrays, some of them empty."""

    def build(X, y, n_partitions):
        edges = equal_edges(len(y), n_partitions)
        reader = ArrayReader(X, y, edges=edges)
        builder = BlockBuilder(1.0, "raise", NumberMap(np.asarray), numeric=True)
        partitions = [Partition(builder, reader, index) for index in range(n_partitions)]
        return make(partitions, PartitionFacts(len(y), X.shape[1], np.diff(edges)))

    return build


BUILDERS = {
    ArraySource: in_memory,
    PartitionedSource: in_partitions(PlainSource),
    StreamedSource: in_partitions(partial(StreamedSource, memory=3000)),
    DaskSource: in_partitions(DaskSource),
}
TASKS = (ColumnSums(None), ColumnSums(np.array([1, 4])), Products(None), Products(np.array([0, 2, 5])), TargetSum())


def check_exact_sums(build):
    """Totals equal sums over all records in Python integers, for every number of partitions."""
    X, y = tables()
    lattice = [[round(min(max(value, -1.0), 1.0) * ONE) for value in row] for row in X.tolist()]
    targets = [int(value) for value in y]

    def column_sums(columns):
        return [sum(row[j] for row in lattice) for j in columns] + [len(targets)]

    def gram(columns):
        return [[sum(row[i] * row[j] for row in lattice) for j in columns] for i in columns]

    everything = range(N_FEATURES)
    expected = (
        column_sums(everything),
        column_sums((1, 4)),
        gram(everything),
        gram((0, 2, 5)),
        [sum(targets), sum(value * value for value in targets)],
    )
    for n_partitions in PARTITIONS:
        source = build(X, y, n_partitions)
        # Twice: what a block remembers from one round must not change the next.
        for _ in range(2):
            for task, sums in zip(TASKS, expected, strict=True):
                total = source.total(task)
                assert total.dtype == np.int64
                assert total.tolist() == sums


def test_every_source_is_checked():
    members = [getattr(taciturn.engines, name) for name in taciturn.engines.__all__]
    found = {m for m in members if inspect.isclass(m) and hasattr(m, "total") and not is_protocol(m)}
    # That of Spark needs a session: tests/conformance/test_spark.py gives it to the same checks.
    assert found == {*BUILDERS, SparkSource}


def is_protocol(member):
    return getattr(member, "_is_protocol", False)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=[kind.__name__ for kind in BUILDERS])
class TestEverySource:
    def test_sums_are_exact_on_any_partitioning(self, build):
        check_exact_sums(build)

    @pytest.mark.parametrize("layout", ["csr", "csc"])
    def test_layouts_have_the_same_sums(self, build, layout):
        dense, sparse = build(*tables(), 1), build(*tables(layout), 4)
        for task in TASKS:
            np.testing.assert_array_equal(sparse.total(task), dense.total(task))
        for wanted in ("csr", "csc"):
            np.testing.assert_array_equal(sparse.total(Products(None, wanted)), dense.total(Products(None)))

    @pytest.mark.parametrize("n_partitions", PARTITIONS)
    def test_offsets_begin_at_zero_and_never_fall(self, build, n_partitions):
        offsets = build(*tables(), n_partitions).offsets
        assert offsets.dtype == np.int64
        assert offsets.size == n_partitions
        assert offsets[0] == 0
        assert (np.diff(offsets) >= 0).all()
        assert offsets[-1] <= N_ROWS

    @pytest.mark.parametrize(
        "hide",
        [
            lambda s: s,
            lambda s: (1, s),
            lambda s: {"noise": [s]},
            lambda s: np.array([s], dtype=object),
            Noisy,
            lambda s: SimpleNamespace(noise=s),
            lambda s: lambda: s,
        ],
        ids=["bare", "tuple", "mapping", "object array", "dataclass", "object", "closure"],
    )
    def test_tasks_that_hold_a_stream_are_refused(self, build, hide):
        with pytest.raises(TypeError, match="Noisy holds a random stream"):
            build(*tables(), 1).total(Noisy(hide(Stream.of(0))))

    @pytest.mark.parametrize("n_partitions", [1, 4])
    def test_sums_of_floats_are_refused(self, build, n_partitions):
        with pytest.raises(TypeError, match="expected int64"):
            build(*tables(), n_partitions).total(FloatMean())

    @pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
    def test_tasks_reach_workers_by_pickle(self, build, task):
        source = build(*tables(), 4)
        np.testing.assert_array_equal(source.total(pickle.loads(pickle.dumps(task))), source.total(task))


class LosesPartition(ArraySource):
    def total(self, task):
        return add_partitions(task(block) for block in self._blocks[: max(1, len(self._blocks) - 1)])


class CountsTwice(ArraySource):
    def total(self, task):
        return add_partitions(task(block) for block in [*self._blocks, self._blocks[0]])


class AddsFloats(ArraySource):
    def total(self, task):
        return sum(task(block).astype(np.float32) for block in self._blocks).astype(np.int64)


@pytest.mark.parametrize("broken", [LosesPartition, CountsTwice, AddsFloats])
def test_the_same_check_rejects_broken_sources(broken):
    def build(X, y, n_partitions):
        return broken(Records(X, y, np.arange(len(y)), len(y)), 1.0, len(y), n_partitions=n_partitions)

    with pytest.raises(AssertionError):
        check_exact_sums(build)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_the_same_check_rejects_broken_engines(broken):
    with pytest.raises(AssertionError):
        check_exact_sums(in_partitions(broken))


@pytest.mark.parametrize("lost", [-1, 1])
def test_an_engine_that_loses_or_repeats_an_answer_is_noticed(lost):
    class Forgetful(PlainSource):
        def each(self, function):
            answers = super().each(function)
            return answers[:lost] if lost < 0 else [*answers, answers[0]]

    with pytest.raises(RuntimeError, match=f"an engine gave {4 + lost} answers for 4 partitions"):
        in_partitions(Forgetful)(*tables(), 4).total(TargetSum())


def test_halves_of_every_source_are_the_same():
    """Records are divided by their rows in the table, wherever these lie."""
    first = np.random.default_rng(1).random(N_ROWS) < 0.4
    expected = [half.total(ColumnSums(None)) for half in in_memory(*tables(), 1).divide(first)]
    for build in BUILDERS.values():
        for n_partitions in (1, 7, 200):
            source = build(*tables(), n_partitions)
            source.total(ColumnSums(None))
            halves = source.divide(first)
            assert [half.n_records for half in halves] == [int(first.sum()), int((~first).sum())]
            for half, sums in zip(halves, expected, strict=True):
                np.testing.assert_array_equal(half.total(ColumnSums(None)), sums)


def test_partitions_are_cut_by_rows_of_the_table():
    """Null records keep their rows, so that the first half of a table is the same whoever is null."""
    X, y = tables()
    present = np.delete(np.arange(N_ROWS), [0, 1, 2, 3, 60])
    source = ArraySource(Records(X[present], y[present], present, N_ROWS), 1.0, N_ROWS, n_partitions=2)
    half = int(source.offsets[1])
    assert half == N_ROWS // 2
    first, second = source._blocks
    np.testing.assert_array_equal(first.target, y[4:half])
    np.testing.assert_array_equal(second.target, y[present[present >= half]])
    assert source.total(ColumnSums(None))[-1] == present.size


class TestMemo:
    def block(self):
        X, y = tables()
        return Block(in_memory(X, y, 1).design(), y)

    def test_equal_columns_share_a_design_by_content(self):
        block, columns = self.block(), np.array([1, 4])
        design = block.design(columns)
        assert block.design(pickle.loads(pickle.dumps(columns))) is design
        assert block.design(np.array([1, 5])) is not design

    def test_values_are_computed_once_per_key(self):
        block, calls = self.block(), []

        def compute():
            calls.append(None)
            return len(calls)

        block.design(np.array([1, 4]))
        assert [block.recall("norms", b"a", compute) for _ in range(3)] == [1, 1, 1]
        assert block.recall("norms", b"b", compute) == 2
        # One value per name: the earlier key is computed again.
        assert block.recall("norms", b"a", compute) == 3
        assert block.recall("weights", b"a", compute) == 4
        assert block.recall("norms", b"a", compute) == 3

    def test_other_columns_forget_the_phase_before(self):
        block = self.block()
        block.design(None)
        block.recall("norms", (), lambda: "of all columns")
        block.design(np.array([0]))
        assert block._memo == {}
        assert block.recall("norms", (), lambda: "of one column") == "of one column"
        block.design(None)
        assert block.recall("norms", (), lambda: "computed again") == "computed again"

    def test_the_target_alone_begins_no_phase(self):
        block = self.block()
        block.design(np.array([0]))
        block.recall("norms", (), lambda: 1)
        TargetSum()(block)
        assert block.recall("norms", (), lambda: 2) == 1
