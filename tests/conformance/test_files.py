"""One seed, one model: a table in memory and on disk, however it is stored and whoever reads it."""

import json
import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest

from taciturn import (
    CorrelationSelector,
    DataError,
    HardThresholdClassifier,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    open_table,
)
from taciturn.engines import DaskSource, PartitionedTable, StreamedSource
from taciturn.tables import (
    Column,
    Fill,
    NumberPartitions,
    TableBounds,
    TableEncoder,
    Target,
    open_partitions,
    read_person_keys,
    read_table,
)
from taciturn.tables.columns import file_assumptions

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N_ROWS = 820
COLUMNS = {
    "age": Column("number", 0, 100),
    "dose": Column("number", -1, 1),
    "smoker": Column("boolean"),
    "region": Column("category", categories=("hill", "dale", "shore")),
    "height": Column("number", 100, 220),
}
LABELS = TableBounds(
    Target("ill", classes=("no", "yes")), COLUMNS | {"pain": Column("ignore"), "person": Column("ignore")}
)
NUMBERS = TableBounds(Target("pain", 0, 10), COLUMNS | {"ill": Column("ignore"), "person": Column("ignore")})
ON_DISK = {*file_assumptions("raise", None, sparse=True), *file_assumptions("null", None, sparse=True)}
SETTINGS = {"epsilon": 8.0, "random_state": 3, "n_nonzero": 2, "x_bound": 1.0}


def frame():
    """Rows of persons lie together; persons have one to three rows."""
    rng = np.random.default_rng(5)
    age, dose, height = rng.uniform(10, 90, N_ROWS), rng.uniform(-1, 1, N_ROWS), rng.normal(170, 10, N_ROWS)
    signal_ = (age - 50) / 40 - dose + 0.3 * rng.normal(size=N_ROWS)
    person = [f"p{(37 * place) % 571:03d}" for place in range(N_ROWS) for _ in range(place % 3 + 1)][:N_ROWS]
    return pa.table(
        {
            "age": age.round(3),
            "person": person,
            "smoker": rng.random(N_ROWS) < 0.3,
            "dose": dose.round(5),
            "region": rng.choice(["hill", "dale", "shore"], N_ROWS).tolist(),
            "height": height.round(2),
            "ill": np.where(signal_ > 0, "yes", "no").tolist(),
            "pain": np.clip(5 + 2 * signal_, 0, 10).round(3),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("tables"), frame()
    csv.write_csv(table, folder / "table.csv")
    for n_groups in (1, 7, 41):
        parquet.write_table(table, folder / f"{n_groups}.parquet", row_group_size=-(-N_ROWS // n_groups))
    (folder / "parts").mkdir()
    for place, start in enumerate(range(0, N_ROWS, 300)):
        parquet.write_table(table.slice(start, 300), folder / "parts" / f"{place}.parquet")
    return folder


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("taciturn.methods.descent.MOST_STEPS", 8)


@pytest.fixture
def small_partitions(monkeypatch):
    """Partitions of 350 cells, so that small tables have several."""
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 350)


def state(model):
    """What a fit leaves behind, to the bit."""
    # Without what is assumed of a table on disk beyond its records.
    kept = tuple(text for text in model.certificate_.assumptions if text not in ON_DISK)
    certificate = json.loads(replace(model.certificate_, assumptions=kept).to_json())
    arrays = {name: value for name, value in vars(model).items() if name in ("coef_", "intercept_", "support_")}
    return certificate, {name: np.asarray(value).tobytes() for name, value in arrays.items()}


def classifier(**changes):
    return SparseClassifier(**SETTINGS | {"classes": ("no", "yes")} | changes)


def whole(folder, model, bounds=LABELS):
    X, y = read_table(folder / "1.parquet", bounds, bounds.target.name)
    return state(model.fit(X, y))


def check_same_model(folder, name, *, make=classifier, bounds=LABELS, engine=None, **options):
    """A model that is fitted to an open table equals the one that is fitted to its arrays."""
    with open_table(folder / name, bounds, **options) as table:
        table.engine = engine or table.engine
        assert state(make().fit(table)) == whole(folder, make(), bounds)


FILES = ("1.parquet", "7.parquet", "41.parquet", "parts", "table.csv")


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("memory", [None, 1 << 26], ids=["held", "streamed"])
def test_every_file_gives_the_bits_of_memory(folder, name, memory):
    check_same_model(folder, name, memory=memory)
    with open_table(folder / name, LABELS) as table:
        assert table.lengths.size > 5


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize(
    ("make", "bounds"),
    [
        (lambda: SparseRegressor(**SETTINGS, y_bounds=(0.0, 10.0), inference=True), NUMBERS),
        (lambda: SparseRegressor(**SETTINGS | {"n_nonzero": "all"}, y_bounds=(0.0, 10.0)), NUMBERS),
        (lambda: classifier(n_nonzero="auto", inference=True), LABELS),
        (lambda: HardThresholdClassifier(**SETTINGS, classes=("no", "yes")), LABELS),
        (
            lambda: CorrelationSelector(
                epsilon=8.0, random_state=3, n_features_to_select=2, x_bound=1.0, classes=("no", "yes")
            ),
            LABELS,
        ),
    ],
    ids=["inference", "dense", "size chosen", "hard threshold", "correlations"],
)
def test_methods_on_files_give_the_bits_of_memory(folder, make, bounds):
    check_same_model(folder, "7.parquet", make=make, bounds=bounds, memory=1 << 26)


class InFloats(StreamedSource):
    """Adds partial sums that were rounded to 24 bits, as single precision does."""

    def total(self, task):
        parts = [np.asarray(part).astype(np.float32) for part in self.each(task)]
        return np.sum(parts, axis=0, dtype=np.float32).astype(np.int64)


class LosesLast(StreamedSource):
    def each(self, function):
        *answers, last = super().each(function)
        yield from answers
        yield last if len(answers) == 0 else np.zeros_like(last)


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("broken", [InFloats, LosesLast])
def test_the_same_test_rejects_sums_in_floats_and_lost_partitions(folder, broken):
    with pytest.raises(AssertionError):
        check_same_model(folder, "7.parquet", engine=broken)


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("name", ["41.parquet", "table.csv"])
def test_partitions_end_between_persons(folder, name):
    bounds = TableBounds(LABELS.target, COLUMNS | {"pain": Column("ignore")}, person="person")
    X, y = read_table(folder / "1.parquet", LABELS, "ill")
    keys = read_person_keys(folder / "1.parquet", bounds)
    in_memory = classifier().fit(X, y, persons=keys)
    with open_partitions(folder / name, bounds) as uncut, open_table(folder / name, bounds) as table:
        assert table.shape == X.shape
        ends = [keys[start - 1] == keys[start] for start in uncut.offsets[1:].tolist()]
        assert any(ends), "some partition has to end within a person for this test to mean anything"
        model = classifier().fit(table)
        with pytest.raises(DataError, match="all rows of a person in one partition"):
            classifier().fit(PartitionedTable(uncut, has_persons=True))
    assert model.certificate_.unit == "person"
    assert state(model)[1] == state(in_memory)[1]


@pytest.mark.usefixtures("small_partitions")
def test_bounds_are_found_on_streams_as_in_memory(folder):
    names = ["age", "height"]
    table = parquet.read_table(folder / "1.parquet")
    in_memory = PrivateScaler(epsilon=20.0, random_state=1, tail=0.1).fit(
        np.column_stack([table.column(name).to_numpy() for name in names])
    )
    with open_table(folder / "7.parquet", LABELS) as opened:
        numbers = PartitionedTable(NumberPartitions(opened.reader, names), has_target=False)
        streamed = PrivateScaler(epsilon=20.0, random_state=1, tail=0.1).fit(numbers)
    assert streamed.lower_.tolist() == in_memory.lower_.tolist()
    assert streamed.upper_.tolist() == in_memory.upper_.tolist()


@pytest.mark.usefixtures("small_partitions")
def test_missing_cells_alone_are_left_out_on_streams_too(tmp_path):
    rng = np.random.default_rng(2)
    columns = rng.normal(0, 50, (1500, 2))
    # Records without the one number have large other ones, so that it matters whether they count.
    columns[::4] = np.nan, 400.0
    table = pa.table({"one": columns[:, 0], "other": columns[:, 1], "y": np.zeros(1500)})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=200)
    described = {name: Column("number", -1, 1) for name in ("one", "other")}
    bounds = TableBounds(Target("y", -1, 1), described, missing={"one": Fill(indicator=True)})
    settings = {"epsilon": 20.0, "random_state": 1, "tail": 0.1, "invalid": "null"}
    found = {}
    for missing in ("cell", "record"):
        in_memory = PrivateScaler(missing=missing, **settings).fit(columns)
        with open_table(tmp_path / "t.parquet", bounds, invalid="null") as opened:
            numbers = PartitionedTable(NumberPartitions(opened.reader, ["one", "other"]), has_target=False)
            streamed = PrivateScaler(missing=missing, **settings).fit(numbers)
        assert state(streamed)[0] == state(in_memory)[0]
        assert set(streamed.certificate_.assumptions) - set(in_memory.certificate_.assumptions) == {
            *file_assumptions("null", None, sparse=False)
        }
        assert streamed.lower_.tolist() == in_memory.lower_.tolist()
        assert streamed.upper_.tolist() == in_memory.upper_.tolist()
        found[missing] = streamed.upper_.tolist()
    assert found["cell"][0] == found["record"][0]
    assert found["cell"][1] > 2 * found["record"][1]


def test_a_bounds_file_names_lists_that_lie_beside_it(folder, tmp_path):
    (tmp_path / "regions.txt").write_text("hill\ndale\n", encoding="utf-8")
    (tmp_path / "bounds.toml").write_text(
        """target = {name = "pain", lower = 0, upper = 10}
        [defaults]
        lower = -1
        upper = 1
        [columns]
        region = {type = "category", categories_file = "regions.txt"}
        smoker = {type = "ignore"}
        person = {type = "ignore"}
        ill = {type = "ignore"}
        """,
        encoding="utf-8",
    )
    with open_table(folder / "1.parquet", tmp_path / "bounds.toml") as table:
        assert list(table.names) == ["age", "dose", "region=hill", "region=dale", "height"]


def test_what_the_table_states_is_not_stated_otherwise(folder):
    with open_table(folder / "1.parquet", NUMBERS) as table:
        with pytest.raises(ParameterError, match=r"y_bounds=.*which the table states"):
            SparseRegressor(y_bounds=(0.0, 5.0), x_bound=1.0).fit(table)
        with pytest.raises(ParameterError, match=r"x_bound=2.0.*which the table states"):
            SparseRegressor(y_bounds=(0.0, 10.0), x_bound=2.0).fit(table)
        with pytest.raises(ParameterError, match="invalid"):
            SparseRegressor(y_bounds=(0.0, 10.0), x_bound=1.0, invalid="null").fit(table)


def test_a_bounds_file_that_is_not_there_is_named(folder):
    with pytest.raises(DataError, match=r"bounds 'no.toml': expected a text file"):
        open_table(folder / "1.parquet", folder / "no.toml")
    with pytest.raises(ParameterError, match=r"^bounds='': expected the name of a file; name it, or write one with"):
        open_table(folder / "1.parquet", "")
    with pytest.raises(DataError, match=r"^bounds '.': expected a text file that can be read, got none; check the"):
        open_table(folder / "1.parquet", ".")


# A scheduler without a dashboard still asks for its port, which another test may have.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Port .* is already in use")
def test_a_cluster_reads_files_and_survives_the_death_of_a_worker(folder, monkeypatch):
    """Two processes on loopback; one is killed between two sums."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    rounds, killed = [], []
    total = DaskSource.total

    def interrupted(self, task):
        rounds.append(task)
        if len(rounds) == 5:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)
        return total(self, task)

    monkeypatch.setattr(DaskSource, "total", interrupted)
    settings = {"distributed.worker.memory.spill": False, "distributed.worker.memory.target": False}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        with pytest.raises(DataError, match="expected Parquet or Arrow files for workers"):
            open_table(folder / "table.csv", LABELS, engine="dask")
        with open_table(folder / "parts", LABELS, engine="dask") as table:
            model = classifier().fit(table)
    assert killed
    assert len(rounds) > 20
    assert state(model) == whole(folder, classifier())


@pytest.fixture(scope="module")
def scattered(folder):
    """The same rows in no order, so that those of a person lie anywhere."""
    table = frame().take(np.random.default_rng(1).permutation(N_ROWS))
    keys = table.column("person").to_pylist()
    keys[::50] = [None] * len(keys[::50])
    table = table.set_column(table.schema.get_field_index("person"), "person", pa.array(keys, pa.string()))
    csv.write_csv(table, folder / "scattered.csv")
    parquet.write_table(table, folder / "scattered.parquet", row_group_size=60)
    feather.write_feather(table, folder / "scattered.feather", chunksize=45)
    return folder


OF_PERSONS = TableBounds(LABELS.target, COLUMNS | {"pain": Column("ignore")}, person="person")


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("name", ["scattered.parquet", "scattered.csv", "scattered.feather"])
def test_rows_of_a_person_may_lie_anywhere_in_a_table_on_disk(scattered, name):
    X, y = read_table(scattered / "scattered.parquet", LABELS, "ill")
    keys = read_person_keys(scattered / "scattered.parquet", OF_PERSONS)
    in_memory = classifier().fit(X, y, persons=keys)
    with open_table(scattered / name, OF_PERSONS) as table:
        assert table.lengths.size > 5
        assert table.shape == X.shape
        model = classifier().fit(table)
        forms = [set(key_forms_[0]) - {None} for key_forms_ in table.each_key_forms()]
        assert sum(map(len, forms)) == len(set().union(*forms)), "a person lies in two partitions"
    certificate, coefficients = state(model)
    assert coefficients == state(in_memory)[1]
    # Nothing is refused, so that nothing has to be assumed of where rows lie.
    assert certificate["assumptions"] == state(in_memory)[0]["assumptions"]
    # The files themselves stay, and the copies go.
    assert (scattered / name).exists()
    with pytest.raises(DataError, match="expected an open table"):
        table.reader.read(0)


@pytest.mark.usefixtures("small_partitions")
def test_a_cell_that_cannot_be_used_is_found_where_persons_are_gathered(scattered):
    table = parquet.read_table(scattered / "scattered.parquet")
    ages = table.column("age").to_pylist()
    ages[77] = None
    path = scattered / "gap.parquet"
    parquet.write_table(table.set_column(0, "age", pa.array(ages)), path, row_group_size=60)
    with pytest.raises(DataError, match='^column "age": expected a value in every row'):
        open_table(path, OF_PERSONS)
    X, y = read_table(path, OF_PERSONS, "ill", invalid="null")
    in_memory = classifier(invalid="null").fit(X, y, persons=read_person_keys(path, OF_PERSONS))
    with open_table(path, OF_PERSONS, invalid="null") as opened:
        assert state(classifier(invalid="null").fit(opened))[1] == state(in_memory)[1]


# ------------------------------------------------------------------ predictions


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize(
    ("make", "bounds"), [(classifier, LABELS), (lambda: SparseRegressor(**SETTINGS, y_bounds=(0.0, 10.0)), NUMBERS)]
)
def test_a_model_that_was_fitted_to_an_open_table_predicts_data_frames_and_open_tables(folder, make, bounds):
    raw = frame()
    with open_table(folder / "7.parquet", bounds) as table:
        assert table.lengths.size > 5
        model = make().fit(table)
        of_table = model.predict(table)
    encoded = TableEncoder(bounds=bounds).fit(raw).transform(raw)
    expected = make().fit(encoded, raw[bounds.target.name].to_pylist()).predict(encoded)
    others = raw.select(list(reversed(raw.column_names)))
    for found in (of_table, model.predict(raw), model.predict(others), pickle.loads(pickle.dumps(model)).predict(raw)):
        if bounds is LABELS:
            assert found.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    # Raw numbers that were taken for features would be far beyond every bound.
    assert len(set(np.asarray(expected).tolist())) > 1
    # A later fit to arrays forgets the table.
    refitted = model.set_params(random_state=4).fit(encoded, raw[bounds.target.name].to_pylist())
    with pytest.raises((DataError, UserWarning)):
        refitted.predict(raw)


def test_an_open_table_with_other_bounds_is_not_predicted(folder):
    with open_table(folder / "7.parquet", LABELS) as table:
        model = classifier().fit(table)
    wider = replace(LABELS, columns=dict(LABELS.columns) | {"age": Column("number", lower=0.0, upper=200.0)})
    with open_table(folder / "7.parquet", wider) as table, pytest.raises(DataError, match="with the same bounds file"):
        model.predict(table)


def test_rows_that_were_gathered_by_person_are_not_predicted_in_another_order(scattered):
    with open_table(scattered / "scattered.parquet", LABELS) as table:
        model = classifier().fit(table)
    with (
        open_table(scattered / "scattered.parquet", OF_PERSONS) as table,
        pytest.raises(DataError, match="gathered by person, in another order"),
    ):
        model.predict(table)
