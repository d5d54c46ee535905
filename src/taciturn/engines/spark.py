"""The source that runs on Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.validation import NO_COLUMNS, BoolArray, IndexArray, IntArray
from taciturn.data.persons import KeyForms, key_forms
from taciturn.engines.interface import (
    Block,
    BlockBuilder,
    OpenTable,
    Partition,
    PartitionFacts,
    Refusal,
    Task,
    accepted,
    answer_of,
    check_task,
    quietly,
)
from taciturn.engines.partitions import PartitionedSource

if TYPE_CHECKING:
    import pyarrow as pa

# ---- Partitions on Spark: blocks stay in the executors, tasks go there, integers come back.

_FAILED = (
    "X or y: expected partitions that Spark can compute, got one that fails or a session that was stopped; count the "
    "rows of the frame by itself to see why, since what is said of it may quote records."
)


class SparkSource(PartitionedSource):
    """A table whose blocks are held by the executors of the active session of Spark.

    A sum is one job with one task for each partition. A block that is lost with its executor, or that has no room in
    memory, is made again, from the files or the frame that it was made of, and is the same; none is written to a disk.
    Settings of the session (encryption, pages for browsers, logs of events) are those of whoever started it. ``blocks``
    are those that are made of a frame, with their places; None: the partitions load them.
    """

    reads_elsewhere = True
    """Whether other processes, maybe on other machines, open the files."""

    def __init__(self, partitions: Sequence[Partition], facts: PartitionFacts, *, blocks: Any = None) -> None:
        super().__init__(partitions, facts)
        if blocks is None:
            places = active_session().sparkContext.parallelize(range(len(self.partitions)), len(self.partitions))
            # The partitions once, with the reader that they share, and not once for each of them.
            blocks = places.map(partial(_loaded, self.partitions))
        self._blocks = _held(blocks)

    def each(self, function: Task) -> Iterator[Any]:
        """The answers in the order of the partitions."""
        check_task(function)
        answers = _without_records(self._blocks.mapValues(partial(answer_of, function)).collect)
        yield from (answer for _, answer in sorted(answers, key=lambda found: int(found[0])))

    def _part(self, rows: list[BoolArray], facts: PartitionFacts) -> Self:
        partitions = [partition.take(kept) for partition, kept in zip(self.partitions, rows, strict=True)]
        return type(self)(partitions, facts, blocks=self._blocks.map(partial(_rows_of_block, rows)))


def _held(blocks: Any) -> Any:
    from pyspark import StorageLevel

    return blocks.persist(StorageLevel.MEMORY_ONLY)


def _loaded(partitions: Sequence[Partition], place: int) -> tuple[int, Block | Refusal]:
    return place, partitions[place].load()


def _rows_of_block(rows: list[BoolArray], found: tuple[int, Block | Refusal]) -> tuple[int, Block | Refusal]:
    place, block = found
    return place, block if isinstance(block, Refusal) else block.keep(rows[place])


def active_session() -> Any:
    """The session of Spark that is running."""
    # Here and below: Spark is an extra, and takes a while to import.
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ModuleNotFoundError("tables on Spark need pyspark; run pip install 'taciturn[spark]'.") from None
    session = SparkSession.getActiveSession()
    if session is None:
        raise DataError("spark: expected a session that is running, got none; start one, SparkSession.builder.")
    return session


def _without_records(run: Callable[[], Any]) -> Any:
    """The result; what Spark says where it fails may quote records, and is not passed on."""
    try:
        return run()
    except TaciturnError:
        raise
    except Exception:
        pass
    raise DataError(_FAILED)


# ---- Data frames of Spark as tables of numbers, with a column for the target and one for the keys of persons.

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")

_PLAN_MOVES_ROWS = "Exchange"
"""What a plan of Spark says where rows go from one partition to another, and arrive in no order."""


class SparkTable(OpenTable):
    """A data frame ``X`` of Spark, with the names of the columns of the target ``y`` and of the keys of ``persons``.

    All other columns are features. Partitions do not know how many rows they have; these are counted, once, which
    computes the frame. That number is public, except under add-remove, where it is counted after the fit has been paid
    for. The rows of a frame that Spark moves between partitions have no order that lasts.
    """

    def __init__(self, X: Any, y: Any = None, persons: Any = None) -> None:
        if not hasattr(X, "mapInArrow") or not hasattr(X, "_jdf"):
            raise DataError(
                "X: expected a data frame of a session of Spark in this process, got something else of Spark; pass "
                "one, of pandas on Spark its to_spark(), or write it as Parquet and open that."
            )
        self._frame = X
        self._target, self._person = _column_name("y", y, X), _column_name("persons", persons, X)
        names = [name for name in X.columns if name not in (self._target, self._person)]
        if not names:
            raise DataError(f"X: {NO_COLUMNS}.")
        others = [name for name, kind in X.dtypes if name in names and kind not in _NUMBERS]
        if others or len(set(X.columns)) < len(X.columns):
            raise DataError(
                "X: expected columns of numbers or truth values, each name once, got others; select columns, cast them "
                "to double, or write the frame as Parquet and open that with bounds."
            )
        self.names, self.n_features = tuple(names), len(names)
        self.has_target, self.has_persons = self._target is not None, self._person is not None
        self.person_column = self._person
        self.is_sparse = False

    @cached_property
    def has_row_order(self) -> bool:  # type: ignore[override]
        """Whether partitions that are computed again have the same rows in the same order, by Spark's plan."""

        def lasts() -> bool:
            plan = self._frame._jdf.queryExecution()
            if _PLAN_MOVES_ROWS in plan.executedPlan().toString():
                return False
            return _level(plan.toRdd()) == "DETERMINATE"

        return bool(_without_records(lasts))

    def add_measures(self, weight: Any, exposure: Any) -> None:
        """Refuse weights and exposures, which have no column here."""
        for name, given in (("sample_weight", weight), ("exposure", exposure)):
            if given is not None:
                raise DataError(
                    f"{name}: expected None beside a frame of Spark, got something; write the frame as Parquet, and "
                    'open that with bounds that name the column and engine="spark".'
                )

    @cached_property
    def _counted(self) -> list[tuple[int, int]]:
        """The places of partitions with rows, and how many."""
        return [(place, int(n_rows)) for place, n_rows in self._each(_n_rows, [])]

    @property
    def lengths(self) -> IntArray:
        """The number of rows of each partition that has some."""
        # A frame without rows is a table with one empty partition.
        return np.array([n_rows for _, n_rows in self._counted] or [0], dtype=np.int64)

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition, computed on the workers."""
        return [accepted(found) for _, found in self._each(partial(_of_target, function), [self._target])]

    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition."""
        return [accepted(found) for _, found in self._each(_key_forms, [self._person])]

    def _each(self, function: Callable[[pa.Table], Any], names: Sequence[Any]) -> list[tuple[int, Any]]:
        """What a function gives for some columns of each partition that has rows, in their order."""
        found = _without_records(self._computed(lambda _, table: function(table), names).collect)
        return sorted(found, key=lambda each: int(each[0]))

    def _computed(self, function: Callable[[int, pa.Table], Any], names: Sequence[Any]) -> Any:
        """The places of partitions, and what a function gives for some of their columns, on the workers."""
        from pyspark.sql import functions

        # Rows without a column would not be counted.
        columns = [functions.col(_quoted(name)) for name in names] or [functions.lit(True).alias("row")]
        frame = self._frame.select(*columns)
        found = frame.mapInArrow(partial(_per_partition, function), "place long, found binary").rdd
        if _level(found._jrdd.rdd()) == "INDETERMINATE":
            raise DataError(
                "X: expected a frame that Spark computes to the same rows each time, got one whose rows may change "
                "partitions, so that a record could count twice; write it as Parquet and open that."
            )
        return found.map(_unpacked)

    def _source(self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts) -> SparkSource:
        if not self._counted:
            raise DataError("X: expected at least one record, got none; pass a frame with rows.")
        partitions = [Partition(builder, None, index, own) for index, own in enumerate(owners)]
        at = {place: index for index, (place, _) in enumerate(self._counted)}
        names = [*(self.names or ()), *((self._target,) if builder.target is not None else ())]
        build = partial(_built, partitions, at, len(self.names or ()))
        return SparkSource(partitions, facts, blocks=self._computed(build, names).map(partial(_placed, at)))


def _level(rdd: Any) -> str:
    """Whether Spark computes an RDD to the same rows in the same order, in another order, or to other rows."""
    return str(rdd.outputDeterministicLevel().toString())


def _column_name(parameter: str, column: Any, frame: Any) -> str | None:
    """The name of a column of the frame that is given by its name, or as a column of Spark."""
    if column is None:
        return None
    named = column
    if type(column).__module__.startswith("pyspark.sql") and type(column).__name__ == "Column":
        (named,) = frame.select(column).columns
    if not isinstance(named, str) or named not in frame.columns:
        raise DataError(
            f"{parameter}: expected the name of a column of the frame, got something else; keep the column in the "
            "frame and pass its name."
        )
    return named


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _per_partition(function: Callable[[int, pa.Table], Any], batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """One row: the place of the partition, and what a function gives for it, pickled."""
    import pyarrow as pa
    from pyspark import TaskContext

    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    context = TaskContext.get()
    place = 0 if context is None else context.partitionId()
    found = quietly(function, place, pa.Table.from_batches(held))
    columns = [pa.array([place], pa.int64()), pa.array([pickle.dumps(found)], pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, names=["place", "found"])


def _unpacked(row: Any) -> tuple[int, Any]:
    # What this module pickled on a worker.
    return int(row[0]), pickle.loads(row[1])


def _placed(at: dict[int, int], found: tuple[int, Any]) -> tuple[int, Any]:
    return at[found[0]], found[1]


def _n_rows(table: pa.Table) -> int:
    return int(table.num_rows)


def _of_target(function: Callable[[Any], Any], table: pa.Table) -> Any:
    return quietly(function, table.column(0))


def _key_forms(table: pa.Table) -> Any:
    return quietly(key_forms, table.column(0).to_pylist(), table.num_rows)


def _built(partitions: list[Partition], at: dict[int, int], n_features: int, place: int, table: pa.Table) -> Any:
    features = np.empty((table.num_rows, n_features))
    for column in range(n_features):
        features[:, column] = table.column(column).cast("float64", safe=False).to_numpy()
    # The column itself: in an array a gap would make doubles of whole numbers, and objects of truth values.
    target = table.column(n_features) if table.num_columns > n_features else None
    return partitions[at[place]].build(features, target)
