"""A gap in the target of one record decides nothing about how the targets of others are read, on any engine."""

import numpy as np
import pytest

from taciturn import CorrelationSelector
from taciturn.data.target import LabelMap
from taciturn.engines.dask import DaskTable
from taciturn.engines.interface import BlockBuilder, Partition, TruthValues
from taciturn.engines.spark import _built, _of_target

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

N_ROWS = 200
rng = np.random.default_rng(4)
X = rng.uniform(-1.0, 1.0, (N_ROWS, 3))
TRUTHS = X[:, 0] > 0.2

# ------------------------------------------------------------------ dask: partitions have types of their own


def dask_pair(truths):
    """A frame and a column of truth values in two partitions; with a gap, one of them has objects."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    halves = slice(0, N_ROWS // 2), slice(N_ROWS // 2, N_ROWS)
    columns = [pd.Series([*truths[half]]) for half in halves]
    return (
        dd.from_delayed([dask.delayed(frame[half]) for half in halves], meta=frame),
        # As files are read: nothing looks at the types of partitions.
        dd.from_delayed(
            [dask.delayed(column) for column in columns], meta=pd.Series([], dtype=bool), verify_meta=False
        ),
    )


def selected_from(truths):
    selector = CorrelationSelector(epsilon=8.0, n_features_to_select=1, x_bound=1.0, invalid="null", random_state=0)
    with dask.config.set(scheduler="synchronous"):
        return selector.fit(*dask_pair(truths)).certificate_.public


def with_gap():
    return [None if place == 7 else bool(truth) for place, truth in enumerate(TRUTHS)]


def test_a_gap_in_a_dask_column_of_truth_values_leaves_the_others():
    whole = selected_from([bool(truth) for truth in TRUTHS])
    assert whole["classes"] == [False, True]
    assert selected_from(with_gap()) == whole


def test_partitions_in_types_of_their_own_are_told_apart(monkeypatch):
    monkeypatch.setattr(DaskTable, "_targets", property(lambda table: table._alongside("y", table._y)))
    assert "classes" not in selected_from(with_gap())


def test_truth_values_that_come_as_numbers_stay():
    numbers = [None if truth is None else float(truth) for truth in with_gap()]
    assert selected_from(numbers) == selected_from(with_gap())


# ------------------------------------------------------------------ Spark: what a worker makes of the rows that it gets


def codes_on_spark(labels, kind, classes):
    """The class codes of a partition on a worker, and whether it holds truth values."""
    partition = Partition(BlockBuilder(1.0, "null", LabelMap(np.array(classes)), numeric=False), None, 0)
    table = pa.table({"x": np.zeros(len(labels)), "y": pa.array(labels, kind)})
    target = pa.table({"y": table.column("y")})
    return _built([partition], {0: 0}, 1, 0, table).target.tolist(), _of_target(TruthValues("null"), target)


def test_a_gap_on_spark_leaves_the_labels_of_others():
    first, second = 2**53, 2**53 + 1
    assert codes_on_spark([second, first, second], pa.int64(), (first, second)) == ([1, 0, 1], False)
    assert codes_on_spark([second, first, None], pa.int64(), (first, second)) == ([1, 0], False)
    assert codes_on_spark([True, False, True], pa.bool_(), (False, True)) == ([1, 0, 1], True)
    assert codes_on_spark([True, False, None], pa.bool_(), (False, True)) == ([1, 0], True)
    assert codes_on_spark(["b", None, "a"], pa.string(), ("a", "b")) == ([1, 0], False)
