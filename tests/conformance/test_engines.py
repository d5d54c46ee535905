"""One seed, one model: a table in memory, streamed in partitions, and on dask gives the same bits and certificate."""

import json
import math
import os
import pickle
import signal
from concurrent.futures import CancelledError
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from array_readers import BROKEN, ArrayReader, FileReader, equal_edges
from taciturn import (
    CorrelationSelector,
    HardThresholdClassifier,
    HardThresholdRegressor,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    SparseSurvival,
)
from taciturn.core.errors import DataError
from taciturn.core.rng import draws_noticed
from taciturn.engines import ArraySource, DaskSource, PartitionedSource, PartitionedTable, StreamedSource, answer_of
from taciturn.engines.dask import connect
from taciturn.engines.interface import ONE_PARTITION
from taciturn.methods.survival.curve import SurvivalCurve

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N_ROWS, N_FEATURES = 240, 8
NAMES = [f"x{j}" for j in range(60)]
REFUSAL = "a refusal, which tells that a record, or the file, is not admissible"
# Persons of one to three rows, whose rows lie together in one partition but in no order of keys.
PERSONS = np.array([f"p{(37 * place) % 127:03d}" for place in range(N_ROWS) for _ in range(place % 3 + 1)][:N_ROWS])
EDGES = [0, *np.flatnonzero(PERSONS[1:] != PERSONS[:-1])[19::20] + 1, N_ROWS]


def table(kind, n_features=N_FEATURES, *, holes=False):
    """Some cells beyond the bounds, some empty ones, some columns correlated with the target."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.2, 1.2, (N_ROWS, n_features)) * (rng.random((N_ROWS, n_features)) < 0.7) + 0.1
    signal_ = X[:, 1] - X[:, 3] + 0.3 * rng.normal(size=N_ROWS) + 0.2
    y = np.clip(0.4 * signal_, -1.1, 1.1)
    if kind == "labels":
        y = np.where(signal_ > 0.2, "well", "ill")
    if kind == "counts":
        y = np.floor(3.0 * np.exp(0.5 * signal_))
    if kind == "times":
        died, left = rng.exponential(np.exp(-signal_)), rng.uniform(0.2, 3.0, N_ROWS)
        y = np.where(died <= left, died, -left)
    if kind == "three":
        y = np.array(["a", "b", "c"])[np.digitize(signal_, np.quantile(signal_, [0.3, 0.6]))]
    if holes:
        # A column that no other cell of the row's needs, and a target.
        X[[5, 77, 200], [6, 0, 7]] = np.nan
        y[[6, 131]] = "?" if y.dtype.kind == "U" else np.inf
    return X, y


NULL = {"invalid": "null", "holes": True}
LABELS = {"classes": ("ill", "well")}
COUNTS, AMOUNTS = {"loss": "poisson", "y_bounds": (0, 12)}, {"loss": "gamma", "y_bounds": (1, 12)}
CASES = {
    "two-phase": (SparseRegressor, "numbers", {"n_nonzero": 3}),
    "two-phase, labels from y": (SparseClassifier, "labels", {"n_nonzero": 3}),
    "two-phase, three classes, null records": (SparseClassifier, "three", {"classes": ("a", "b", "c"), **NULL}),
    "screened": (SparseClassifier, "labels", {"n_nonzero": 2, "n_features": 60, **LABELS}),
    "one-shot": (SparseRegressor, "numbers", {"method": "one-shot", "n_features": 40, "n_nonzero": 2}),
    "size chosen": (SparseClassifier, "labels", {"n_nonzero": "auto", **LABELS}),
    "dense, Huber": (SparseRegressor, "numbers", {"n_nonzero": "all", "loss": "huber"}),
    "dense, three classes": (SparseClassifier, "three", {"n_nonzero": "all", "fit_intercept": False}),
    "two-phase, counts": (SparseRegressor, "counts", {"n_nonzero": 3, **COUNTS}),
    "one-shot, amounts": (SparseRegressor, "counts", {"method": "one-shot", "n_nonzero": 2, **AMOUNTS}),
    "inference, counts": (SparseRegressor, "counts", {"inference": True, "columns": [1, 3], "epsilon": 20.0, **COUNTS}),
    "inference, amounts": (
        SparseRegressor, "counts", {"inference": True, "columns": [1, 3], "epsilon": 20.0, **AMOUNTS, "invalid": "null"}
    ),
    "constant": (SparseRegressor, "numbers", {"epsilon": 0.1}),
    "inference": (SparseRegressor, "numbers", {"inference": True, "n_nonzero": 2, "epsilon": 20.0}),
    "inference, null records": (SparseClassifier, "labels", {"inference": True, "n_nonzero": 2, **LABELS, **NULL}),
    "inference on fixed columns": (SparseClassifier, "labels", {"inference": True, "columns": [1, 3]}),
    "inference, add-remove": (
        SparseClassifier, "labels",
        {"inference": True, "n_nonzero": 2, "relation": "add-remove", "n_public": N_ROWS, **LABELS},
    ),
    "no noise": (SparseRegressor, "numbers", {"epsilon": math.inf, "n_nonzero": 3}),
    "no noise, inference": (SparseClassifier, "labels", {"epsilon": math.inf, "inference": True, "n_nonzero": 2}),
    "sums of rows": (SparseRegressor, "numbers", {"n_nonzero": 3, "person_weight": "sum"}),
    "inference, sums of rows": (
        SparseClassifier, "labels",
        {"inference": True, "columns": [1, 3], "person_weight": "sum", "epsilon": 20.0, **LABELS},
    ),
    "hard threshold": (HardThresholdRegressor, "numbers", {"mechanism": "gaussian", "n_nonzero": 3}),
    "hard threshold, peeling": (HardThresholdClassifier, "labels", {"mechanism": "peeling", "n_nonzero": 3}),
    "hard threshold, pursuit": (HardThresholdRegressor, "numbers", {"mechanism": "pursuit", "n_nonzero": 2}),
    "hard threshold, three classes": (HardThresholdClassifier, "three", {"n_nonzero": 3, "relation": "replace-one"}),
    "hazards": (SparseSurvival, "times", {"cuts": (0.3, 1.0, 2.0), "epsilon": 20.0}),
    "hazards, inference, null records": (
        SparseSurvival, "times", {"cuts": (0.5, 1.5), "columns": [1, 3], "inference": True, "epsilon": 20.0, **NULL}
    ),
    "correlations": (CorrelationSelector, "numbers", {}),
    "correlations with labels, null records": (CorrelationSelector, "labels", {**LABELS, **NULL}),
    "signs": (CorrelationSelector, "numbers", {"score_func": "sign"}),
    "quadrants": (CorrelationSelector, "numbers", {"score_func": "quadrant", "relation": "add-remove"}),
    "quantiles": (PrivateScaler, "numbers", {"epsilon": 20.0, "tail": 0.2}),
    "quantiles, null records": (PrivateScaler, "numbers", {"epsilon": 20.0, "tail": 0.2, **NULL}),
}  # fmt: skip
WITH_PERSONS = (
    "two-phase",
    "two-phase, three classes, null records",
    "two-phase, counts",
    "inference",
    "inference, counts",
    "inference, null records",
    "inference, add-remove",
    "sums of rows",
    "inference, sums of rows",
    "hard threshold, peeling",
    "correlations",
    "quadrants",
    "quantiles, null records",
)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("taciturn.methods.descent.MOST_STEPS", 8)
    monkeypatch.setattr("taciturn.methods.descent.NOISELESS_STEPS", 12)
    monkeypatch.setattr("taciturn.methods.hard_threshold.plan.NOISELESS_STEPS", 12)


def case(name):
    """An unfitted model, and its table."""
    kind, target, settings = CASES[name]
    settings = {"epsilon": 8.0, "random_state": 3} | settings
    X, y = table(target, settings.pop("n_features", N_FEATURES), holes=settings.pop("holes", False))
    if kind is CorrelationSelector:
        settings["n_features_to_select"] = 3
    return kind(**settings), X, y


def state(model):
    """Everything that a fit leaves behind, to the bit; what persons in partitions assume is looked at elsewhere."""
    certificate = json.loads(model.certificate_.to_json())
    if ONE_PARTITION in certificate["assumptions"]:
        certificate["assumptions"].remove(ONE_PARTITION)
        assert REFUSAL in certificate["side_channels"]
    if certificate["unit"] == "person":
        certificate["side_channels"] = [words for words in certificate["side_channels"] if words != REFUSAL]
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "certificate_"}
    fitted.pop("feature_names_in_", None)
    bits = {name: pickle.dumps(value) if name == "inference_" else _bits(value) for name, value in fitted.items()}
    return certificate, bits


def _bits(value):
    # All that a curve says follows from its counts and from public facts.
    value = np.asarray(value.counts if isinstance(value, SurvivalCurve) else value)
    # Labels of a data frame are objects.
    return (value.shape, value.tolist()) if value.dtype.kind in "OU" else (value.shape, value.dtype, value.tobytes())


def streamed(X, y, persons=None, *, edges, memory=1 << 30, engine=StreamedSource):
    reader = ArrayReader(X, y, persons, edges=edges)
    engine = partial(engine, memory=memory) if engine is StreamedSource else engine
    return (PartitionedTable(reader, engine=engine, has_persons=persons is not None),)


def on_dask(X, y, persons=None, *, edges):
    chunks = (tuple(np.diff(edges).tolist()),)
    # Columns in two chunks, and targets in chunks of their own.
    features = da.from_array(X, chunks=(*chunks, (X.shape[1] - 3, 3)))
    target = da.from_array(y, chunks=chunks if persons is not None else 50)
    return features, target, None if persons is None else da.from_array(persons, chunks=chunks)


def in_frames(X, y, persons=None, *, edges):
    frame = pd.DataFrame(X, columns=NAMES[: X.shape[1]]).assign(target=y)
    frame = frame if persons is None else frame.assign(person=persons)
    divisions = [*edges[:-1], N_ROWS - 1]
    parts = dd.from_pandas(frame, npartitions=1).repartition(divisions=divisions)
    return parts[NAMES[: X.shape[1]]], parts["target"], None if persons is None else parts["person"]


def fit(model, arguments):
    X, y, persons = (*arguments, None, None)[:3]
    return model.fit(X, y, persons=persons)


ENGINES = {
    "one partition": partial(streamed, edges=[0, N_ROWS]),
    "seven, some held": partial(streamed, edges=equal_edges(N_ROWS, 7), memory=9_000),
    "dask arrays": partial(on_dask, edges=equal_edges(N_ROWS, 5)),
    "dask frames": partial(in_frames, edges=equal_edges(N_ROWS, 3)),
}
SLOW = {
    "seven, none held": partial(streamed, edges=equal_edges(N_ROWS, 7), memory=0),
    "41, all held": partial(streamed, edges=equal_edges(N_ROWS, 41)),
}


def check_same_model(name, engine, *, persons=False):
    """A model fitted by an engine equals the one fitted in memory."""
    model, X, y = case(name)
    if persons:
        whole = model.fit(X, y, persons=PERSONS)
        partitioned = fit(case(name)[0], engine(X, y, PERSONS, edges=EDGES))
        assert ONE_PARTITION in partitioned.certificate_.assumptions
    else:
        whole = model.fit(X, y)
        partitioned = fit(case(name)[0], engine(X, y))
    assert state(partitioned) == state(whole)
    return partitioned


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ["seven, some held", "dask arrays"])
def test_engines_give_the_bits_of_memory(name, engine):
    check_same_model(name, ENGINES[engine])


@pytest.mark.parametrize("name", ["two-phase", "inference, null records", "quantiles", "signs"])
@pytest.mark.parametrize("engine", ["one partition", "dask frames", *SLOW])
def test_any_number_of_partitions_gives_the_bits_of_memory(name, engine):
    check_same_model(name, (ENGINES | SLOW)[engine])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ["one partition", "dask frames", *SLOW])
def test_every_engine_gives_the_bits_of_memory(name, engine):
    check_same_model(name, (ENGINES | SLOW)[engine])


@pytest.mark.parametrize("name", WITH_PERSONS)
@pytest.mark.parametrize("engine", [partial(streamed, memory=9_000), on_dask], ids=["streamed", "dask"])
def test_persons_whose_rows_lie_together_give_the_bits_of_memory(name, engine):
    model = check_same_model(name, engine, persons=True)
    assert model.certificate_.unit == "person"


@pytest.mark.parametrize("engine", [partial(in_frames, edges=equal_edges(N_ROWS, 3)), in_frames])
def test_frames_give_names_and_persons(engine):
    persons = engine is in_frames
    model = check_same_model("two-phase", engine, persons=persons)
    assert model.feature_names_in_.tolist() == NAMES[:N_FEATURES]
    assert model.n_features_in_ == N_FEATURES


@pytest.mark.parametrize("layout", [sp.csr_matrix, sp.csc_array])
def test_sparse_partitions_give_the_bits_of_memory(layout):
    whole, X, y = case("screened")
    reader = ArrayReader(layout(X), y, edges=equal_edges(N_ROWS, 7))
    model, _, _ = case("screened")
    assert state(model.fit(PartitionedTable(reader))) == state(whole.fit(X, y))
    chunks = da.from_array(X, chunks=(60, -1)).map_blocks(layout, dtype=float, meta=layout((0, 0)))
    model, _, _ = case("screened")
    assert state(model.fit(chunks, da.from_array(y, chunks=60))) == state(whole)


# ------------------------------------------------------------------ engines that are broken


@pytest.mark.parametrize("name", ["two-phase", "inference, null records", "hard threshold"])
@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_the_same_check_rejects_broken_engines(name, broken):
    with pytest.raises(AssertionError):
        check_same_model(name, partial(streamed, edges=equal_edges(N_ROWS, 7), engine=broken))


# ------------------------------------------------------------------ rounds


def rounds_of(name, monkeypatch, *, times=1):
    """What a fit does, in order: it asks for a sum, or draws noise. ``times``: how often it asks for each sum."""
    said, total = [], ArraySource.total

    def asked(self, task):
        said.extend(times * ["sum"])
        return total(self, task)

    monkeypatch.setattr(ArraySource, "total", asked)
    model, X, y = case(name)
    with draws_noticed(lambda: said.append("noise")):
        model.fit(X, y)
    return said


def back_to_back(said):
    return sum(pair == ("sum", "sum") for pair in pairwise(said))


@pytest.mark.parametrize("name", [name for name in CASES if "no noise" not in name])
def test_every_sum_waits_for_what_the_one_before_released(name, monkeypatch):
    """So none could be asked for together with another one, which would save a job of Spark or a round of sites."""
    said = rounds_of(name, monkeypatch)
    assert said.count("sum") > 0
    assert back_to_back(said) == 0


def test_sums_that_could_be_asked_for_together_are_noticed(monkeypatch):
    assert back_to_back(rounds_of("two-phase", monkeypatch, times=2)) > 10


# ------------------------------------------------------------------ what crosses the wire


class Wire(PartitionedSource):
    """An engine behind a wire: partitions, tasks and answers are pickled."""

    sent = b""

    def each(self, function):
        task = pickle.dumps(function)
        for partition in self.partitions:
            recipe = pickle.dumps(partition)
            Wire.sent += task + recipe
            yield pickle.loads(pickle.dumps(answer_of(pickle.loads(task), pickle.loads(recipe).load())))


@pytest.mark.parametrize("name", ["two-phase", "inference, null records"])
def test_neither_seeds_nor_streams_nor_accounts_cross_the_wire(name):
    Wire.sent = b""
    check_same_model(name, partial(streamed, edges=equal_edges(N_ROWS, 3), engine=Wire))
    assert b"BlockBuilder" in Wire.sent
    for word in (b"Stream", b"random_state", b"account", b"epsilon"):
        assert word not in Wire.sent


# ------------------------------------------------------------------ a cluster


# A scheduler without a dashboard still asks for its port, which another test may have.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Port .* is already in use")
def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch):
    """Two processes on loopback; one is killed between two sums, and its partitions are read again."""
    distributed = pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    import dask

    import array_readers

    cloudpickle.register_pickle_by_value(array_readers)
    rounds, killed = [], []
    total = DaskSource.total

    def interrupted(self, task):
        rounds.append(type(task).__name__)
        if len(rounds) == 6:
            nanny = next(iter(cluster.workers.values()))
            killed.append(nanny.pid)
            os.kill(nanny.pid, signal.SIGKILL)
        return total(self, task)

    monkeypatch.setattr(DaskSource, "total", interrupted)
    settings = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
    whole, X, y = case("inference, null records")
    reader = FileReader(tmp_path, X, y, equal_edges(N_ROWS, 6))
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        model, _, _ = case("inference, null records")
        model.fit(PartitionedTable(reader, engine=DaskSource))
    assert killed
    assert len(rounds) > 20
    assert state(model) == state(whole.fit(X, y))
    reads = reader.reads()
    assert {index for index, _ in reads} == set(range(6))
    # Partitions of the killed worker were read again, and by others than the driver.
    assert 6 < len(reads) < 6 * len(rounds)
    assert os.getpid() not in {process for _, process in reads}


def lost_cluster():
    """What dask raises where its scheduler, a connection or a worker is lost."""
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    yield FutureCancelledError("key", "scheduler-connection-lost")
    yield CommClosedError("in <TCP>: Stream is closed")
    yield KilledWorker("task", None, 3)
    yield CancelledError("key")


@pytest.mark.parametrize("place", range(4))
def test_a_lost_cluster_is_told_in_our_words(monkeypatch, place):
    import dask

    error = [*lost_cluster()][place]

    def lost(*nodes, **options):
        raise error

    monkeypatch.setattr(dask, "compute", lost)
    model, X, y = case("inference, null records")
    with pytest.raises(DataError, match="^dask: expected a cluster that keeps running.*; start it again") as caught:
        model.fit(da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert not hasattr(model, "certificate_")


def test_a_scheduler_that_is_gone_can_be_left(monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Gone:
        def __init__(self, *arguments, **options):
            pass

        def close(self):
            raise TimeoutError

    monkeypatch.setattr(distributed, "Client", Gone)
    connect("tcp://127.0.0.1:1")()
