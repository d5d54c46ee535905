"""``taciturn fit`` and ``select`` on tables that are read in partitions."""

import io
import json
import os
import stat

import pytest
from commands import SECRET, run, write_patients

from taciturn import CorrelationSelector, SparseClassifier, private_score
from taciturn.app.cli.screen import pass_bar
from taciturn.app.cli.tables import parse_memory
from taciturn.core.errors import ParameterError
from taciturn.engines import open_table
from taciturn.tables import TableBounds, read_table

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streamed")
    write_patients(folder, 1500)
    table = csv.read_csv(folder / "patients.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True))
    parquet.write_table(table, folder / "patients.parquet", row_group_size=200)
    (folder / "parts").mkdir()
    for place in range(3):
        parquet.write_table(table.slice(500 * place, 500), folder / "parts" / f"{place}.parquet")
    return folder


@pytest.fixture(autouse=True)
def _small_partitions(monkeypatch):
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 800)


def fit(folder, table, output, *more, command="fit"):
    done = run(command, table, "--bounds", "bounds.toml", "--seed", "7", "-o", output, *more, cwd=folder)
    assert done.code == 0, done.err
    name = "model.json" if command == "fit" else "selection.json"
    written = json.loads((folder / output / name).read_text(encoding="utf-8"))
    written.pop("command")
    return written, (folder / output / "certificate.json").read_text(encoding="utf-8")


def test_one_seed_gives_one_model_whatever_file_it_is_read_from(folder):
    first = fit(folder, "patients.csv", "of-csv")
    assert fit(folder, "patients.parquet", "of-parquet") == first
    assert fit(folder, "patients.parquet", "streamed", "--memory", "100MB") == first
    assert fit(folder, "parts", "of-parts") == first
    # An independent way: the arrays in memory.
    bounds = open_table(folder / "patients.csv", folder / "bounds.toml").bounds
    X, y = read_table(folder / "patients.csv", bounds, "ill")
    model = SparseClassifier(classes=("no", "yes"), x_bound=1.0, random_state=7).fit(X, y)
    assert first[0]["coefficients"] == model.coef_.tolist()


def test_bounds_found_on_a_stream_give_the_same_model(folder):
    share = ("--private-bounds", "0.3", "--epsilon", "4")
    stated = (folder / "bounds.toml").read_text(encoding="utf-8")
    fewer = stated.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n\n', "")
    assert fewer != stated
    (folder / "fewer.toml").write_text(fewer, encoding="utf-8")
    found = []
    for table, output in (("patients.csv", "found-csv"), ("parts", "found-parts")):
        done = run(
            "fit", table, "--bounds", "fewer.toml", *share, "--seed", "7", "-o", output, "--memory", "100MB", cwd=folder
        )
        assert done.code == 0, done.err
        written = json.loads((folder / output / "model.json").read_text(encoding="utf-8"))
        written.pop("command")
        found.append(written)
    assert found[0] == found[1]


def test_selections_stream_too(folder):
    whole = fit(folder, "patients.csv", "chosen", "--keep", "2", command="select")
    assert fit(folder, "parts", "chosen-parts", "--keep", "2", "--memory", "100MB", command="select") == whole


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "--method", "frank-wolfe", "--memory", "10kB"), "which needs all records at once"),
        (("fit", "--method", "frank-wolfe", "--dask", "tcp://127.0.0.1:1"), "reads tables in partitions"),
        (("select", "--method", "kendall", "--memory", "10kB"), "which needs all records at once"),
        (("fit", "--memory", "much"), "a size such as 800MB or 1.5GB"),
        (("fit", "--memory", "1kB"), "memory"),
    ],
)
def test_what_cannot_be_streamed_is_refused_in_one_sentence(folder, arguments, words):
    command, *more = arguments
    assert not (folder / "refused").exists()
    done = run(command, "patients.parquet", "--bounds", "bounds.toml", "-o", "refused", *more, cwd=folder)
    assert done.code != 0
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not (folder / "refused").exists()


def test_a_bad_cell_of_a_stream_is_refused_without_its_content(folder):
    table = parquet.read_table(folder / "patients.parquet")
    ages = [SECRET if place == 1400 else str(age) for place, age in enumerate(table.column("age").to_pylist())]
    csv.write_csv(table.set_column(table.schema.get_field_index("age"), "age", pa.array(ages)), folder / "bad.csv")
    done = run("fit", "bad.csv", "--bounds", "bounds.toml", "-o", "bad", "--memory", "100MB", cwd=folder)
    assert done.code != 0
    assert "age" in done.err
    assert SECRET not in done.err
    assert not (folder / "bad").exists()


COLUMNS_ARE_PUBLIC = "the names and types of the table's columns are public"
WIDTH_IS_PUBLIC = "the largest column number of the table is public"
PARSED = "the file can be parsed as a table; one that cannot is refused, and the refusal tells of it"


@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
@pytest.mark.parametrize(("kind", "invalid"), [("csv", "raise"), ("libsvm", "null")])
def test_an_open_table_has_the_assumptions_that_the_command_writes(tmp_path, kind, invalid):
    """Which columns [defaults] are for follows from the first rows, and how many there are from the largest number."""
    rows = [(k % 2, 0.1 * (k % 7), k % 3) for k in range(60)]
    lines = {
        "csv": ["label,a,b", *(f"{y},{a},{b}" for y, a, b in rows)],
        "libsvm": [f"{y} 1:{a} 2:{b}" for y, a, b in rows],
    }[kind]
    (tmp_path / f"table.{kind}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "bounds.toml").write_text(
        '[target]\nname = "label"\nclasses = [0, 1]\n[defaults]\nlower = -3\nupper = 3\n', encoding="utf-8"
    )
    expected = {COLUMNS_ARE_PUBLIC}
    expected |= {WIDTH_IS_PUBLIC} if kind == "libsvm" else set()
    expected |= {PARSED} if invalid == "null" else set()
    written = []
    for method in ("auto", "frank-wolfe"):
        # The second one takes the table in memory.
        options = ("--bounds", "bounds.toml", "--invalid", invalid, "--method", method, "-o", method)
        done = run("fit", f"table.{kind}", *options, cwd=tmp_path)
        assert done.code == 0, done.err
        model = json.loads((tmp_path / method / "model.json").read_text(encoding="utf-8"))
        written.append(model["certificate"]["assumptions"])
    assert all(len(set(each)) == len(each) and expected <= set(each) for each in written)
    with open_table(tmp_path / f"table.{kind}", tmp_path / "bounds.toml", invalid=invalid) as table:
        model = SparseClassifier(invalid=invalid).fit(table)
        assert set(model.certificate_.assumptions) == set(written[0])
        unlisted = TableBounds.from_toml(
            (tmp_path / "bounds.toml").read_text(encoding="utf-8").replace("classes = [0, 1]\n", "")
        )
        others = [
            CorrelationSelector(n_features_to_select=1, invalid=invalid).fit(table).certificate_,
            private_score(model, table, epsilon=1.0, metric="all", invalid=invalid).certificate,
        ]
        assert all(expected <= set(certificate.assumptions) for certificate in others)
    with open_table(tmp_path / f"table.{kind}", unlisted) as table:
        # What is assumed of labels does not stand in the place of what is assumed of the table.
        assumed = SparseClassifier().fit(table).certificate_.assumptions
    assert {*expected - {PARSED}, "the set of labels is public"} <= set(assumed)


def test_copies_of_text_tables_are_private_and_removed(folder, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_table(folder / "patients.csv", folder / "bounds.toml"):
        (copy,) = tmp_path.iterdir()
        assert stat.S_IMODE(os.stat(copy).st_mode) == 0o700
        assert any(copy.iterdir())
    assert not any(tmp_path.iterdir())
    fit(folder, "patients.csv", "removed")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 10**9), ("1.5 GiB", 3 << 29), ("800mb", 8 * 10**8), ("4096", 4096), ("2T", 2 * 10**12)],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1XB", "1iB", "1e9", "٣GB"])
def test_other_sizes_are_refused(text):
    with pytest.raises(ParameterError, match="800MB"):
        parse_memory(text)


def test_the_bar_tells_the_number_of_the_pass(monkeypatch):
    from rich.console import Console

    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr("taciturn.app.cli.screen.console", lambda *, stderr=False: screen)
    with pass_bar("fitting") as tell:
        for done in (1, 2, 1, 2, 1):
            tell(done, 2)
    assert "fitting, pass 3" in screen.file.getvalue()


def test_a_table_that_is_refused_leaves_the_cluster(folder, monkeypatch):
    left = []
    monkeypatch.setattr("taciturn.engines.dask.connect", lambda address: lambda: left.append(address))
    bounds = ("--bounds", "bounds.toml")
    refused = run("fit", "patients.csv", *bounds, "-o", "csv-on-dask", "--dask", "tcp://127.0.0.1:1", cwd=folder)
    assert "expected Parquet or Arrow files for workers" in refused.err
    assert left == ["tcp://127.0.0.1:1"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Port .* is already in use")
def test_the_workers_of_a_scheduler_give_the_same_model(folder):
    """Two processes on loopback read the files; the command finds them by the address of their scheduler."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        address = ("--dask", cluster.scheduler_address)
        in_clusters = fit(folder, "parts", "on-dask", *address)
        refused = run("fit", "patients.csv", "--bounds", "bounds.toml", "-o", "csv-on-dask", *address, cwd=folder)
    assert in_clusters == fit(folder, "patients.csv", "beside-dask")
    assert "expected Parquet or Arrow files for workers" in refused.err
    gone = run("fit", "parts", "--bounds", "bounds.toml", "-o", "nobody", *address, cwd=folder)
    assert gone.code != 0
    assert "a dask scheduler that answers" in gone.err
