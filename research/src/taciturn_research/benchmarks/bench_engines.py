"""What a round takes on each engine: the exact sum that a task asks of a table, against the same table in memory."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from taciturn import SparseRegressor, open_table
from taciturn.engines import ArraySource, DaskSource, PartitionedSource, SparkSource
from taciturn.tables import Column, TableBounds, Target
from taciturn_research.benchmarks.measuring import Row

ROWS, COLUMNS = 200_000, 20
_WHAT = "seconds of a round / those in memory"
# Parts of the table, as many as open_table makes of it.
_GROUP = 50_000
# What reads the table again for every round, since no block is held.
_LITTLE = 1 << 26


def engines_rows(n_rows: int = ROWS) -> list[Row]:
    """A row for each engine: the median time of the sums of one fit, over that of the same fit in memory."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        engines = _Engines(Path(name), n_rows, opened)
        baseline = engines.round_in(engines.in_memory)
        calls: dict[str, Callable[[], Any]] = {
            "streamed from Parquet, blocks held": engines.on_disk,
            "streamed from Parquet, read again": lambda: engines.on_disk(memory=_LITTLE),
            "dask, two worker processes": lambda: engines.on_disk(engine="dask"),
            "Spark, local[2]": lambda: engines.on_disk(engine="spark"),
            "SQLite, blocks held": lambda: engines.in_database(engines.sqlite()),
            "SQLite, read again": lambda: engines.in_database(engines.sqlite(), memory=_LITTLE),
            "DuckDB, blocks held": lambda: engines.in_database(engines.duckdb()),
            "DuckDB, read again": lambda: engines.in_database(engines.duckdb(), memory=_LITTLE),
            "PostgreSQL, blocks held": lambda: engines.in_database(engines.postgresql()),
            "PostgreSQL, read again": lambda: engines.in_database(engines.postgresql(), memory=_LITTLE),
        }
        size = f"{n_rows:,} x {COLUMNS}"
        return [
            {"case": f"{case}, {size}", "ratio": engines.round_in(call) / baseline, "target": None, "what": _WHAT}
            for case, call in calls.items()
        ]


class _Engines:
    """One table, kept by every engine; what serves it is started when it is asked for."""

    def __init__(self, folder: Path, n_rows: int, opened: ExitStack) -> None:
        rng = np.random.default_rng(0)
        self._folder, self._opened = folder, opened
        self._X = rng.uniform(-1.0, 1.0, (n_rows, COLUMNS))
        self._y = np.clip(self._X[:, 0] - 0.5 * self._X[:, 1] + 0.1 * rng.normal(size=n_rows), -2.0, 2.0)
        self._names = [f"x{place}" for place in range(COLUMNS)]
        columns = {name: Column("number", -1.0, 1.0) for name in self._names}
        self._bounds = TableBounds(Target("y", -2.0, 2.0), columns | {"id": Column("ignore")})
        arrays = dict(zip(self._names, self._X.T, strict=True))
        self._table = pa.table({"id": np.arange(n_rows)} | arrays | {"y": self._y})
        pq.write_table(self._table, folder / "table.parquet", row_group_size=_GROUP)

    @staticmethod
    def round_in(fit: Callable[[], Any]) -> float:
        """The median seconds of a sum in one fit."""
        with _timed_sums() as seconds:
            fit()
        return statistics.median(seconds)

    def _model(self) -> Any:
        return SparseRegressor(n_nonzero="all", x_bound=1.0, y_bounds=(-2.0, 2.0), random_state=0)

    def in_memory(self) -> Any:
        return self._model().fit(self._X, self._y)

    def on_disk(self, **options: Any) -> Any:
        if options.get("engine") == "dask":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            with cluster, Client(cluster):
                return self._fit(self._folder / "table.parquet", **options)
        if options.get("engine") == "spark":
            with _spark_session():
                return self._fit(self._folder / "table.parquet", **options)
        return self._fit(self._folder / "table.parquet", **options)

    def in_database(self, url: str, **options: Any) -> Any:
        return self._fit(url, **options)

    def _fit(self, place: Any, **options: Any) -> Any:
        with open_table(place, self._bounds, **options) as table:
            return self._model().fit(table)

    @property
    def _listed(self) -> str:
        return ", ".join(f"{name} double precision" for name in [*self._names, "y"])

    def sqlite(self) -> str:
        path = self._folder / "table.db"
        if not path.exists():
            with closing(sqlite3.connect(path)) as database:
                database.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {self._listed})")
                marks = ", ".join("?" * (COLUMNS + 2))
                database.executemany(f"INSERT INTO t VALUES ({marks})", zip(*self._cells(), strict=True))
                database.commit()
        return f"sqlite:///{path}?table=t"

    def duckdb(self) -> str:
        import duckdb

        path = self._folder / "table.duckdb"
        if not path.exists():
            with closing(duckdb.connect(str(path))) as database:
                database.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {self._listed})")
                database.execute(f"INSERT INTO t SELECT * FROM read_parquet('{self._folder / 'table.parquet'}')")
        return f"duckdb:///{path}?table=t"

    def postgresql(self) -> str:
        import psycopg

        if not hasattr(self, "_server"):
            self._server = _test_server()
            self._opened.callback(self._server.stop)
            with psycopg.connect(self._server.url) as database:
                database.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {self._listed})")
                with database.cursor().copy("COPY t FROM STDIN") as copy:
                    for row in zip(*self._cells(), strict=True):
                        copy.write_row(row)
        return f"{self._server.url}?table=t"

    def _cells(self) -> list[list[Any]]:
        return [column.to_pylist() for column in self._table.columns]


@contextmanager
def _timed_sums() -> Iterator[list[float]]:
    """The seconds of every sum that is asked of a source meanwhile."""
    seconds: list[float] = []
    before = {kind: kind.total for kind in (ArraySource, DaskSource, PartitionedSource)}

    def timed(total: Any) -> Any:
        def inside(self: Any, task: Any) -> Any:
            start = time.perf_counter()
            try:
                return total(self, task)
            finally:
                seconds.append(time.perf_counter() - start)

        return inside

    assert SparkSource.total is PartitionedSource.total
    for kind, total in before.items():
        setattr(kind, "total", timed(total))  # noqa: B010 - a method, to a type checker
    try:
        yield seconds
    finally:
        for kind, total in before.items():
            setattr(kind, "total", total)  # noqa: B010


@contextmanager
def _spark_session() -> Iterator[None]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        session.stop()


def _test_server() -> Any:
    """The PostgreSQL server of the tests, which lie beside research."""
    path = Path(__file__).parents[4] / "tests" / "postgresql_server.py"
    spec = importlib.util.spec_from_file_location("postgresql_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PostgreSQLServer()
