"""One seed, one model, on Spark too: frames and files on two cores, and on a cluster of which a worker is killed."""

import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]

pyspark = pytest.importorskip("pyspark")

from pyspark.sql import SparkSession, functions, types  # noqa: E402
from test_engines import (  # noqa: E402
    EDGES,
    N_ROWS,
    NAMES,
    case,
    check_same_model,
    state,
)

from array_readers import BROKEN, FileReader, equal_edges  # noqa: E402
from taciturn import (  # noqa: E402
    BoundedScaler,
    DataError,
    KendallSelector,
    ParameterError,
    SparseClassifier,
    SparseRegressor,
    open_table,
    private_score,
)
from taciturn.engines import PartitionedTable, SparkSource  # noqa: E402
from taciturn.methods.descent import step_rule  # noqa: E402
from taciturn.tables import Column, TableBounds, Target, read_table  # noqa: E402

HERE = Path(__file__).parent
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parent, HERE.parent / "contract"))),
}


def session_on(master, **settings):
    """The session on a master, which is started unless it is there: a process has one, and would be given another."""
    live = SparkSession.getActiveSession()
    if live is not None and live.sparkContext.master != master:
        live.stop()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["OMP_NUM_THREADS"] = "1"
    # Workers of this machine inherit it.
    os.environ["PYTHONPATH"] = SETTINGS["spark.executorEnv.PYTHONPATH"]
    builder = SparkSession.builder.master(master)
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    """A sum is a job, which takes longer than all of a small fit in memory."""
    monkeypatch.setattr("taciturn.methods.descent._LEAST_STEPS", 2)
    monkeypatch.setattr("taciturn.methods.sparse.run.step_rule", lambda time, _: step_rule(time, math.inf))


@pytest.fixture(scope="module", autouse=True)
def _stopped():
    yield
    live = SparkSession.getActiveSession()
    if live is not None:
        live.stop()


@pytest.fixture
def spark():
    return session_on("local[2]")


def framed(X, y, persons=None, *, edges=(0, 70, 70, 150, N_ROWS)):
    """A frame whose partitions end where they are told to; one of them is empty."""
    session = SparkSession.getActiveSession()
    names = NAMES[: X.shape[1]]
    kind = types.StringType() if y.dtype.kind in "OU" else types.DoubleType()
    fields = [types.StructField(name, types.DoubleType()) for name in names] + [types.StructField("target", kind)]
    keys = [] if persons is None else [persons]
    fields += [types.StructField("whose", types.StringType())] * len(keys)
    rows = [
        (*map(float, row), label if kind == types.StringType() else float(label), *map(str, key))
        for row, label, *key in zip(X, y.tolist(), *keys, strict=True)
    ]
    parts = [rows[start:stop] for start, stop in pairwise(edges)]
    spread = session.sparkContext.parallelize(parts, len(parts)).flatMap(list)
    return session.createDataFrame(spread, types.StructType(fields)), "target", "whose" if keys else None


@pytest.mark.parametrize(
    "name",
    [
        "two-phase",
        "two-phase, labels from y",
        "two-phase, three classes, null records",
        "inference, null records",
        "inference, add-remove",
        "hard threshold",
        "hard threshold, peeling",
        "hazards, inference, null records",
        "correlations with labels, null records",
        "quantiles, null records",
    ],
)
def test_frames_have_the_bits_of_memory(spark, name):
    model = check_same_model(name, framed)
    assert model.feature_names_in_.tolist() == NAMES[: model.n_features_in_]


@pytest.mark.parametrize("name", ["inference", "quantiles, null records"])
def test_persons_of_frames_have_the_bits_of_memory(spark, name):
    model = check_same_model(name, lambda *given, edges: framed(*given, edges=edges), persons=True)
    assert model.certificate_.unit == "person"
    assert EDGES[1] > 1


class LosesPartition(SparkSource):
    def each(self, function):
        return list(super().each(function))[1:]

    def _accepted(self, answers):
        return iter(answers)


class CountsTwice(LosesPartition):
    def each(self, function):
        found = list(SparkSource.each(self, function))
        return [*found, found[0]]


class AddsFloats(LosesPartition):
    def total(self, task):
        sums = sum(answer.astype(np.float32) for answer in SparkSource.each(self, task))
        return np.rint(sums).astype(np.int64)


@pytest.mark.parametrize("broken", [LosesPartition, CountsTwice, AddsFloats], ids=lambda kind: kind.__name__)
def test_the_same_check_rejects_broken_engines(spark, monkeypatch, broken):
    assert {kind.__name__ for kind in BROKEN} == {"LosesPartition", "CountsTwice", "AddsFloats"}
    monkeypatch.setattr("taciturn.engines.spark.SparkSource", broken)
    with pytest.raises(AssertionError):
        check_same_model("two-phase", framed)


def test_frames_whose_rows_may_be_dealt_anew_are_refused(spark):
    """Rows in no order, in turn to each partition: a second computation may have a record in another one."""
    frame, target, _ = framed(*case("two-phase")[1:])
    spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    try:
        dealt = frame.repartition(4, NAMES[0]).repartition(3)
        with pytest.raises(DataError, match="same rows each time"):
            case("two-phase")[0].fit(dealt, target)
        spark.conf.set("spark.sql.execution.sortBeforeRepartition", "true")
        case("two-phase")[0].fit(frame.repartition(4, NAMES[0]).repartition(3), target)
    finally:
        spark.conf.unset("spark.sql.execution.sortBeforeRepartition")


@pytest.mark.parametrize("n_partitions", [1, 4, 120])
def test_sums_are_exact_on_any_partitioning(spark, monkeypatch, n_partitions):
    """What every source promises, with more partitions than rows at last."""
    monkeypatch.syspath_prepend(HERE.parent / "contract")
    import test_sources

    monkeypatch.setattr(test_sources, "PARTITIONS", (n_partitions,))
    test_sources.check_exact_sums(test_sources.in_partitions(SparkSource))
    first = np.random.default_rng(1).random(test_sources.N_ROWS) < 0.4
    task = test_sources.ColumnSums(None)
    expected = [half.total(task) for half in test_sources.in_memory(*test_sources.tables(), 1).divide(first)]
    halves = test_sources.in_partitions(SparkSource)(*test_sources.tables(), n_partitions).divide(first)
    np.testing.assert_array_equal([half.total(task) for half in halves], expected)


def test_the_example_of_the_page_prints_what_it_says(spark, capsys):
    """Examples are run where Spark is not installed; this one is not among them."""
    page = (HERE.parents[1] / "docs" / "engines.md").read_text(encoding="utf-8")
    (code, text), *_ = [
        found for found in re.findall(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
        if "pyspark" in found[0]
    ]  # fmt: skip
    exec(compile(code, "example", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == text


def test_a_sum_is_one_job(spark):
    """As many jobs as sums, however many partitions there are."""
    model, X, y = case("inference, null records")
    frame, target, _ = framed(X, y)
    asked = []
    total = SparkSource.total

    def noted(self, task):
        asked.append(task)
        return total(self, task)

    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counted", "a fit")
    before = len(tracker.getJobIdsForGroup("counted"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSource, "total", noted)
        model.fit(frame, target)
    jobs = len(tracker.getJobIdsForGroup("counted")) - before
    assert len(asked) > 10
    # The rows are counted, and every block is made once before anything is drawn.
    assert jobs == len(asked) + 2


# ------------------------------------------------------------------ files

COLUMNS = {
    "age": Column("number", 0, 100),
    "dose": Column("number", -1, 1),
    "region": Column("category", categories="ab"),
}
BOUNDS = TableBounds(Target("ill", classes=("no", "yes")), COLUMNS, person=None)
MODEL = {"epsilon": 8.0, "random_state": 3, "n_nonzero": 2, "x_bound": 1.0, "classes": ("no", "yes"), "inference": True}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(5)
    age, dose = rng.uniform(10, 90, 600), rng.uniform(-1, 1, 600)
    ill = np.where(age / 40 - dose + 0.3 * rng.normal(size=600) > 1.2, "yes", "no")
    table = pa.table({"age": age, "dose": dose, "region": rng.choice(["a", "b"], 600).tolist(), "ill": ill.tolist()})
    for place in range(4):
        parquet.write_table(table.slice(150 * place, 150), folder / f"{place}.parquet")
    return folder


@pytest.fixture
def small_partitions(monkeypatch):
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 4 * 150)


def in_memory(files):
    from dataclasses import replace

    X, y = read_table(files, BOUNDS, "ill")
    model = SparseClassifier(**MODEL).fit(X, y)
    with open_table(files, BOUNDS) as table:
        assumed = table.assumptions
    model.certificate_ = replace(model.certificate_, assumptions=(*model.certificate_.assumptions, *assumed))
    return model, X, y


def same_certificate(found, whole):
    kept = [{**vars_of(each), "assumptions": sorted(each.assumptions)} for each in (found, whole)]
    return kept[0] == kept[1]


def vars_of(certificate):
    import json

    return json.loads(certificate.to_json())


@pytest.mark.usefixtures("small_partitions")
def test_files_that_workers_read_have_the_bits_of_memory(spark, files):
    whole, X, y = in_memory(files)
    with open_table(files, BOUNDS, engine="spark") as table:
        assert table.lengths.size == 4
        model = SparseClassifier(**MODEL).fit(table)
        score = private_score(model, table, metric="all", epsilon=2.0, random_state=5)
    assert state(model)[1] == state(whole)[1]
    assert same_certificate(model.certificate_, whole.certificate_)
    expected = private_score(whole, X, y, metric="all", epsilon=2.0, random_state=5)
    assert (score.counts, score.measures) == (expected.counts, expected.measures)


def test_scores_of_frames_have_the_bits_of_memory(spark):
    model, X, y = case("two-phase, labels from y")
    model.fit(X, y)
    settings = {"metric": "all", "epsilon": 2.0, "random_state": 5}
    frame, target, _ = framed(X, y)
    found, whole = private_score(model, frame, target, **settings), private_score(model, X, y, **settings)
    assert (found.counts, found.measures, found.certificate) == (whole.counts, whole.measures, whole.certificate)


# ------------------------------------------------------------------ refusals


def test_what_a_frame_cannot_do_is_refused(spark):
    _, X, y = case("two-phase")
    frame, target, person = framed(X, y, np.repeat(np.arange(N_ROWS // 2), 2))
    shuffled = frame.repartition(3, "whose")
    with pytest.raises(DataError, match="^persons: expected a table whose rows have an order that lasts, got another;"):
        SparseRegressor().fit(shuffled, target, persons=person)
    with pytest.raises(ParameterError, match="^inference=True: expected a table whose rows have an order that lasts"):
        SparseRegressor(inference=True).fit(shuffled.drop(person), target)
    with pytest.raises(DataError, match="^X: expected columns of numbers or truth values, each name once, got others"):
        SparseRegressor().fit(frame, target)
    with pytest.raises(DataError, match="^y: expected the name of a column of the frame, got something else; keep"):
        SparseRegressor().fit(frame, y)
    with pytest.raises(DataError, match="^y: expected the name of a column of the frame"):
        SparseRegressor().fit(frame, "nothing")
    with pytest.raises(DataError, match="^X: expected a table in memory for KendallSelector, since .*; use "):
        KendallSelector(n_features_to_select=2).fit(frame.drop(person), target)
    scaler = BoundedScaler(lower=-1, upper=1).fit(frame.drop(person), target)
    assert scaler.n_features_in_ == X.shape[1]
    with pytest.raises(DataError, match="^X: expected an array, .* got a frame of Spark; write it as Parquet"):
        scaler.transform(frame)
    plain = frame.drop(person)
    assert SparseRegressor(random_state=0).fit(plain, plain[target]).n_features_in_ == X.shape[1]


def test_sums_do_not_need_an_order(spark):
    whole, X, y = case("two-phase")
    frame, target, _ = framed(X, y)
    model, _, _ = case("two-phase")
    assert state(model.fit(frame.repartition(5), target)) == state(whole.fit(X, y))


def test_errors_of_a_frame_quote_no_cell(spark):
    frame = spark.createDataFrame([(0.5, "secret"), (0.25, "7")], ["x", "t"])
    failing = frame.select("x", functions.expr("CAST(t AS double)").alias("t"))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(DataError, match="^X or y: expected partitions that Spark can compute, got one that fails") as e:
        SparseRegressor().fit(failing, "t")
    assert "secret" not in str(e.value)
    assert e.value.__context__ is None
    wrong = spark.createDataFrame([(float("nan"), 0.5), (0.25, 0.5)], ["x", "t"])
    with pytest.raises(DataError, match="^X: .*NaN"):
        SparseRegressor().fit(wrong, "t")


def test_databases_and_text_are_not_for_workers(spark, tmp_path):
    (tmp_path / "t.csv").write_text("ill,age,dose,region\nno,1,0,a\n")
    with pytest.raises(DataError, match="^table: expected Parquet or Arrow files for workers, which read them"):
        open_table(tmp_path / "t.csv", BOUNDS, engine="spark")
    with pytest.raises(DataError, match="^table: expected Parquet or Arrow files for workers, got a database"):
        open_table("sqlite:///t.db?table=t", BOUNDS, engine="spark")


# ------------------------------------------------------------------ a cluster


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def await_listener(port):
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise TimeoutError("nobody listens")


def children(pid):
    """Processes that any thread of a process has started, and theirs: not the first thread of Java starts executors."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, thread.read_text().split())
    return [*found, *(below for child in found for below in children(child))]


@contextmanager
def cluster(folder):
    """A master and two workers, processes of their own on loopback."""
    home = Path(pyspark.__file__).parent
    port = free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder),
        "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip

    def start(kind, *arguments):
        return subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *arguments],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    url = f"spark://127.0.0.1:{port}"
    processes = [start("master.Master", "--port", str(port), "--webui-port", str(free_port()))]
    try:
        # Whoever asks a master that takes longer to start than a minute gives up.
        await_listener(port)
        for _ in range(2):
            more = ["--cores", "1", "--memory", "1g", "--webui-port", str(free_port())]
            processes.append(start("worker.Worker", *more, url))
        yield url, processes[1:]
    finally:
        for process in processes:
            for pid in [*children(process.pid), process.pid] if process.poll() is None else []:
                kill(pid)
            process.wait(timeout=60)


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")
@pytest.mark.parametrize("dying", ["worker", "executor"])
def test_what_is_killed_changes_nothing(tmp_path, monkeypatch, dying):
    """Two workers; the executor of one is killed between two sums, with it or alone; its partitions are read again."""
    rounds, killed = [], []
    total = SparkSource.total

    def interrupted(self, task):
        rounds.append(type(task).__name__)
        if len(rounds) == 6:
            found = [*children(workers[0].pid), *([workers[0].pid] if dying == "worker" else [])]
            killed.extend(found)
            for pid in found:
                kill(pid)
        return total(self, task)

    monkeypatch.setattr(SparkSource, "total", interrupted)
    whole, X, y = case("inference, null records")
    (tmp_path / "parts").mkdir()
    reader = FileReader(tmp_path / "parts", X, y, equal_edges(N_ROWS, 6))
    with cluster(tmp_path / "work") as (url, workers):
        settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "2"}
        with session_on(url, **settings) as session:
            executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
            # The driver, and one executor in each worker, which take a few of these looks to start.
            for _ in range(600):
                if executors.size() >= 3:
                    break
                time.sleep(0.2)
                executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
            assert executors.size() == 3
            model, _, _ = case("inference, null records")
            model.fit(PartitionedTable(reader, engine=SparkSource))
    # The executor and what runs Python there, beside the worker.
    assert len(killed) >= (3 if dying == "worker" else 2)
    assert len(rounds) > 10
    assert state(model) == state(whole.fit(X, y))
    reads = reader.reads()
    assert {index for index, _ in reads} == set(range(6))
    # Partitions of the killed worker were read again, and none by the driver.
    assert len(reads) > 6
    assert os.getpid() not in {pid for _, pid in reads}
