"""Every command reads the header of a table once and its rows once, and resolves the bounds for it once."""

import json
import sys
from collections import Counter

import pytest
from commands import BOUNDS, run, write_patients
from pyarrow import csv, parquet

from taciturn.tables import TableBounds, open_partitions

_OPENED = []
_WATCHED = set()


def _watch_opening(event, arguments):
    if event == "open" and _WATCHED and str(arguments[0]) in _WATCHED:
        _OPENED.append(arguments[0])


# A hook cannot be removed; it does nothing while no file is watched.
sys.addaudithook(_watch_opening)

UNSTATED = BOUNDS.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")


@pytest.fixture
def folder(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "some.toml").write_text(UNSTATED, encoding="utf-8")
    fitted = run("fit", "patients.csv", "--bounds", "bounds.toml", "--epsilon", 4, "-o", "model", cwd=tmp_path)
    assert fitted.code == 0, fitted
    return tmp_path


@pytest.fixture
def count_work(folder, monkeypatch):
    """Run a command; return how often the table was opened and parsed, and how often bounds were resolved."""
    work = Counter()

    def counted(kind, name, what):
        original = getattr(kind, name)

        def call(*arguments, **options):
            work[what] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(kind, name, call)

    counted(csv, "open_csv", "streams")
    counted(csv, "read_csv", "whole reads")
    counted(parquet, "read_schema", "parquet schemas")
    counted(parquet, "ParquetFile", "parquet files")
    counted(TableBounds, "for_table", "resolved")

    def watched_run(*arguments):
        _WATCHED.update((str(folder / "patients.csv"), "patients.csv"))
        try:
            done = run(*arguments, cwd=folder)
        finally:
            _WATCHED.clear()
        assert done.code == 0, done
        result = dict(work) | ({"opened": len(_OPENED)} if _OPENED else {})
        _OPENED.clear()
        work.clear()
        return result

    return watched_run


# The file is opened for its header and for its rows, whether these are held in memory or copied for partitions.
ONCE = {"opened": 2, "streams": 2, "resolved": 1}
# The encoder that a fit to partitions keeps for later data frames checks the names of the columns too.
WITH_ENCODER = {"resolved": 2}
IN_MEMORY = ("--method", "frank-wolfe")


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "--bounds", "bounds.toml", "--epsilon", 4, "-o", "again"),
        ("fit", "--bounds", "some.toml", "--private-bounds", 0.3, "--epsilon", 20, "-o", "again"),
        ("select", "--bounds", "bounds.toml", "--keep", 2, "-o", "again"),
        ("select", "--bounds", "some.toml", "--private-bounds", 0.3, "--epsilon", 20, "--keep", 2, "-o", "again"),
    ],
    ids=lambda command: " ".join(map(str, command[:4])),
)
def test_header_and_rows_are_copied_once(count_work, command):
    name, *options = command
    assert count_work(name, "patients.csv", *options) == ONCE | WITH_ENCODER


@pytest.mark.parametrize(
    "command",
    [
        ("fit", *IN_MEMORY, "--bounds", "bounds.toml", "--epsilon", 4, "-o", "again"),
        ("select", "--method", "kendall", "--bounds", "bounds.toml", "--keep", 2, "-o", "again"),
        ("compare", "--bounds", "bounds.toml", "--trials", 1),
        ("score", "model/model.json"),
        ("score", "model/model.json", "--epsilon", 1),
    ],
    ids=lambda command: " ".join(map(str, command[:4])),
)
def test_header_and_rows_are_read_once(count_work, command):
    name, *options = command
    arguments = [name, options.pop(0), "patients.csv"] if name == "score" else [name, "patients.csv"]
    assert count_work(*arguments, *options) == ONCE


def test_predictions_stream_the_rows_once(count_work):
    # The encoder of the model and the new table each check the names of the columns.
    work = count_work("predict", "model/model.json", "patients.csv")
    assert work == {"opened": 2, "streams": 2, "resolved": 2}


def test_a_parquet_file_is_opened_once_for_its_schema_and_once_for_its_rows(count_work, folder):
    table = csv.read_csv(str(folder / "patients.csv"))
    parquet.write_table(table, folder / "patients.parquet")
    count_work("show", "model")
    work = count_work("fit", "patients.parquet", "--bounds", "bounds.toml", "--epsilon", 4, "-o", "again")
    assert work == {"parquet schemas": 1, "parquet files": 1} | WITH_ENCODER


def test_the_counts_see_a_second_reading(count_work, monkeypatch):
    """The counts above would notice a command that reads its table again."""

    def open_twice(*arguments, **options):
        open_partitions(*arguments, **options).close()
        return open_partitions(*arguments, **options)

    options = ("--bounds", "bounds.toml", "--epsilon", 4)
    for method, module, encoder in ((IN_MEMORY, "tables", {}), ((), "engines", WITH_ENCODER)):
        monkeypatch.setattr(f"taciturn.{module}.partitions.open_partitions", open_twice)
        work = count_work("fit", "patients.csv", *method, *options, "-o", module)
        assert work == ONCE | encoder | {"opened": 3, "streams": 3}


def test_private_bounds_in_one_pass_give_the_same_model_as_stated_ones(folder):
    """Without noise, found bounds that are written into the bounds file give the same coefficients."""
    common = ("fit", "patients.csv", "--epsilon", "inf", "--seed", 1)
    found = run(*common, "--bounds", "some.toml", "--private-bounds", 0.5, "-o", "found", cwd=folder)
    assert found.code == 0, found
    model = json.loads((folder / "found" / "model.json").read_text(encoding="utf-8"))
    ends = model["bounds"]["columns"]["age"]
    stated = f'[columns.age]\ntype = "number"\nlower = {ends["lower"]!r}\nupper = {ends["upper"]!r}\n'
    (folder / "stated.toml").write_text(UNSTATED + stated, encoding="utf-8")
    done = run(*common, "--bounds", "stated.toml", "-o", "stated", cwd=folder)
    assert done.code == 0, done
    same = json.loads((folder / "stated" / "model.json").read_text(encoding="utf-8"))
    assert (same["coefficients"], same["intercept"]) == (model["coefficients"], model["intercept"])
