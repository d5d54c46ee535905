"""``--private-bounds`` on columns with rules and missing cells: what is fitted is what the model file encodes."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from commands import one_sentence, run
from messy_table import CODES, write_hospital

from taciturn import SparseClassifier
from taciturn.app.cli.tables import gather_table_facts, open_records, read_whole_table
from taciturn.core.errors import SeveralProblemsError
from taciturn.tables import partitions, read_table

BOUNDS = """
[table]
delimiter = ";"
decimal = ","
[target]
name = "readmitted"
classes = [false, true]
[person]
column = "patient_id"
[columns]
"visit no" = {type = "ignore"}
born = {type = "date", since = 2000-01-01}
admitted = {type = "date", parts = ["month"], format = "%d.%m.%Y"}
sex = {type = "category", categories = ["m", "f"]}
ward = {type = "ignore"}
smoker = {type = "boolean"}
age = {type = "number"}
CRP = {type = "number", censored = true}
creatinine = {type = "number"}
"weight kg" = {type = "number", lower = 0, upper = 200}
diagnosis = {type = "category", categories_file = "icd.txt", group = 1}
notes = {type = "ignore"}
[missing]
creatinine = 1
sex = "f"
[defaults]
missing = {indicator = true}
"""


@pytest.fixture
def folder(tmp_path):
    write_hospital(tmp_path / "visits.csv", 3000)
    (tmp_path / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
    (tmp_path / "icd.txt").write_text("\n".join(CODES), encoding="utf-8")
    return tmp_path


BUDGET = {"epsilon": 25.0, "delta": 1e-6, "relation": "zero-out", "n_public": None, "random_state": 1}


def found(folder, invalid="raise", table="visits.csv"):
    facts = gather_table_facts(folder / table, None, None, folder / "bounds.toml", find=True)
    records = read_whole_table(folder / table, facts, invalid=invalid)
    records.find_bounds(**BUDGET)
    return facts, records


def streamed(folder, facts, invalid="raise", table="visits.csv"):
    """The same table, opened to be read in partitions."""
    return open_records(folder / table, facts, SparseClassifier(), invalid=invalid, memory="400MB", dask=None)


def without_persons(folder, **infinite):
    """Every row is a record, which is then streamed, and some of the cells of the named columns are infinite."""
    stated = (folder / "bounds.toml").read_text(encoding="utf-8")
    ignored = stated.replace('[person]\ncolumn = "patient_id"\n', "").replace(
        "[columns]\n", '[columns]\npatient_id = {type = "ignore"}\n'
    )
    (folder / "bounds.toml").write_text(ignored, encoding="utf-8")
    header, *lines = (folder / "visits.csv").read_text(encoding="utf-8").splitlines()
    for name, rows in infinite.items():
        for row in rows:
            cells = lines[row].split(";")
            cells[header.split(";").index(name)] = "-inf" if row % 2 else "inf"
            lines[row] = ";".join(cells)
    (folder / "visits.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("invalid", ["raise", "null"])
def test_the_features_of_a_fit_are_those_of_its_model_file(folder, invalid):
    facts, records = found(folder, invalid)
    assert facts.to_find == ("born", "age", "CRP", "creatinine")
    X, _ = read_table(folder / "visits.csv", records.bounds, "readmitted", invalid=invalid)
    assert np.array_equal(records.X, X)
    names = records.bounds.feature_names
    gaps = X[:, names.index("CRP missing")] == 1.0
    assert 0.05 < gaps.mean() < 0.15
    assert not X[gaps, names.index("CRP")].any()
    assert "creatinine missing" not in names
    assert "diagnosis=J" in names
    # Gaps are in no quantile: the bounds are not drawn to zero, where a fill would put one in ten cells.
    assert records.bounds.columns["CRP"].lower >= 4.0


@pytest.mark.parametrize("invalid", ["raise", "null"])
def test_a_stream_gives_the_bounds_and_features_that_memory_gives(folder, invalid, monkeypatch):
    """Where cells may be missing, too; a record with an infinite number is left out of the search and of the fit."""
    monkeypatch.setattr(partitions, "_CELLS", 1 << 13)
    infinite = {} if invalid == "raise" else {"age": range(0, 3000, 100), "creatinine": range(7, 3000, 50)}
    without_persons(folder, **infinite)
    facts, whole = found(folder, invalid)
    records = streamed(folder, facts, invalid)
    try:
        assert records.engine is not None
        certificate = records.find_bounds(**BUDGET)
        table = records.X.reader
        assert table.offsets.size > 3
        parts = [table.read(index) for index in range(table.offsets.size)]
    finally:
        records.close()
    assert certificate.public["missing"] == "cell"
    assert records.bounds.to_json() == whole.bounds.to_json()
    X, labels = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    null = np.isnan(whole.X).any(axis=1)
    assert set(np.flatnonzero(null)) == {row for rows in infinite.values() for row in rows}
    assert np.array_equal(np.isnan(X).any(axis=1), null)
    assert np.array_equal(X[~null], whole.X[~null])
    assert np.array_equal(labels, whole.y)


def test_a_stream_is_refused_for_infinite_numbers_before_anything_is_paid(folder):
    without_persons(folder, age=[5], creatinine=[2999])
    facts = gather_table_facts(folder / "visits.csv", None, None, folder / "bounds.toml", find=True)
    with pytest.raises(SeveralProblemsError) as in_memory:
        read_whole_table(folder / "visits.csv", facts, invalid="raise")
    with pytest.raises(SeveralProblemsError) as in_partitions:
        streamed(folder, facts)
    assert str(in_partitions.value) == str(in_memory.value)
    assert [str(error).split(":")[0] for error in in_memory.value.errors] == ['column "age"', 'column "creatinine"']


def test_a_value_that_is_filled_in_counts_as_a_cell(folder):
    """The same model to the bit as for a table that has it."""
    text = (folder / "visits.csv").read_text(encoding="utf-8").splitlines()
    at = text[0].split(";").index("creatinine")

    def filled(line):
        # The only cell with semicolons of its own comes later in the line.
        cells = line.split(";")
        cells[at] = "1,00" if cells[at] in ("", "NA") else cells[at]
        return ";".join(cells)

    (folder / "filled.csv").write_text("\n".join(map(filled, text)) + "\n", encoding="utf-8")
    one, other = found(folder)[1], found(folder, table="filled.csv")[1]
    assert one.bounds.to_json() == other.bounds.to_json()
    assert np.array_equal(one.X, other.X)


def test_a_value_beyond_bounds_that_are_found_counts_as_the_nearest_one(folder):
    stated = (folder / "bounds.toml").read_text(encoding="utf-8").replace("creatinine = 1\n", "creatinine = 500\n")
    (folder / "bounds.toml").write_text(stated, encoding="utf-8")
    _, records = found(folder)
    gaps = [line.split(";")[9] in ("", "NA") for line in (folder / "visits.csv").read_text().splitlines()[1:]]
    assert (records.X[gaps, records.bounds.feature_names.index("creatinine")] == 1.0).all()


def test_columns_by_name_stand_for_their_indicators(folder):
    options = ("--private-bounds", 0.3, "--epsilon", 20, "--columns", "age,CRP,diagnosis,admitted", "--seed", 1)
    done = run("fit", "visits.csv", "--bounds", "bounds.toml", *options, "-o", "model", cwd=folder)
    assert done.code == 0, done
    model = json.loads((folder / "model" / "model.json").read_text(encoding="utf-8"))
    features = [model["features"][j] for j in model["parameters"]["columns"]]
    assert features == [
        *(f"admitted month={month}" for month in range(2, 13)), "admitted missing", "age", "age missing", "CRP",
        "CRP missing", "diagnosis=I", "diagnosis=J", "diagnosis=K", "diagnosis=N", "diagnosis missing",
    ]  # fmt: skip
    report = (folder / "model" / "report.html").read_text(encoding="utf-8")
    assert "days since 2000-01-01, from" in report
    assert "and a feature says so" in report


def test_predictions_do_not_overwrite_the_database_that_they_are_made_for(folder):
    with sqlite3.connect(folder / "study.sqlite") as database:
        database.execute("CREATE TABLE visits (x)")
    database.close()
    content = Path(folder / "study.sqlite").read_bytes()
    (folder / "model.json").write_text("{}")
    done = run("predict", "model.json", "study.sqlite#visits", "-o", "study.sqlite", cwd=folder)
    assert "expected a file that is not read" in one_sentence(done)
    assert Path(folder / "study.sqlite").read_bytes() == content
