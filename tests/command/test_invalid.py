"""``--invalid``: a record with a cell that cannot be used is refused, or counts as a null record.

Predictions have empty rows for such records, need the columns of the model alone, and copy a key.
"""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from commands import BOUNDS, HEADER, SECRET, csv_text, one_sentence, patients, run, sentences, write_patients
from pyarrow import parquet

import taciturn
from taciturn.app.model_file import Model
from taciturn.data.records import ADMISSIBLE
from taciturn.privacy.certificate import Certificate

# The place of a cell and what stands there in place of a value.
BAD_CELLS = [(3, 0, "forty"), (8, 0, ""), (20, 1, "NA"), (33, 2, "maybe"), (50, 3, ""), (71, 1, "1,5 mg")]


def with_bad_cells(rows):
    rows = [list(row) for row in rows]
    for row, column, cell in BAD_CELLS:
        rows[row][column] = f'"{cell}"'
    return rows


def with_null_labels(rows):
    """The same records, null for another reason: their label is none of the classes."""
    rows = [list(row) for row in rows]
    for row, _, _ in BAD_CELLS:
        rows[row][-1] = "unknown"
    return rows


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
    for name, rows in (("bad", with_bad_cells(patients())), ("null", with_null_labels(patients()))):
        (tmp_path / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
    return tmp_path


def result_of(folder, command, table, *options, file, keys):
    done = run(*command, table, "--seed", 3, "-o", f"{table}.out", *options, cwd=folder)
    assert done.code == 0, done
    path = folder / f"{table}.out"
    content = json.loads((path / file if path.is_dir() else path).read_text(encoding="utf-8"))
    return [content[key] for key in keys], Certificate.from_json(json.dumps(content["certificate"]))


COMMANDS = {
    "fit": (("fit", "--bounds", "bounds.toml"), "model.json", ("coefficients", "intercept")),
    "select": (("select", "--bounds", "bounds.toml", "--keep", 2), "selection.json", ("features",)),
    "score": (("score", "model"), None, ("counts", "noise_std")),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_null_treats_a_bad_cell_like_a_label_outside_the_classes(folder, command):
    if command == "score":
        fitted = run("fit", "null.csv", "--bounds", "bounds.toml", "--seed", 1, "-o", "model", cwd=folder)
        assert fitted.code == 0, fitted
    arguments, file, keys = COMMANDS[command]
    options = ("--invalid", "null", "--epsilon", 5)
    bad, stated = result_of(folder, arguments, "bad.csv", *options, file=file, keys=keys)
    null, _ = result_of(folder, arguments, "null.csv", *options, file=file, keys=keys)
    assert bad == null
    assert stated.public["invalid"] == "null"
    # Nothing is assumed of the records, only that the file can be parsed.
    assert ADMISSIBLE not in stated.assumptions
    assert any(text.startswith("the file can be parsed") for text in stated.assumptions)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_default_refuses_a_bad_cell_and_assumes_that_there_is_none(folder, command):
    fitted = run("fit", "null.csv", "--bounds", "bounds.toml", "--seed", 1, "-o", "model", cwd=folder)
    assert fitted.code == 0, fitted
    arguments, file, keys = COMMANDS[command]
    for options in ((), ("--invalid", "raise")):
        done = run(*arguments, "bad.csv", "--epsilon", 5, *options, "-o", "refused", cwd=folder)
        # Everything that is wrong is told at once: what is no value of a column, and what is missing.
        found = sentences(done)
        assert [re.search(r'column "(\w+)"', sentence)[1] for sentence in found] == [
            "age", "age", "dose", "dose", "smoker", "region",
        ]  # fmt: skip
        assert not (folder / "refused").exists()
    stated = result_of(folder, arguments, "null.csv", "--epsilon", 5, file=file, keys=keys)[1]
    assert stated.public["invalid"] == "raise"
    assert ADMISSIBLE in stated.assumptions


@pytest.mark.parametrize("cell", ["", "nan", "NA"])
def test_bounds_are_found_without_the_records_that_are_null(folder, cell):
    """Which cell makes the record null makes no difference to the bounds or the model.

    The kinds of the columns are public: a text among the first rows would make the column one of text.
    """
    unstated = BOUNDS.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")
    (folder / "some.toml").write_text(unstated, encoding="utf-8")
    results = []
    for name, bad in (("one", cell), ("other", "inf")):
        rows = patients()
        rows[5][0] = bad
        (folder / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
        command = ("fit", "--bounds", "some.toml", "--private-bounds", 0.4, "--invalid", "null", "--epsilon", 20)
        keys = ("bounds", "coefficients", "intercept")
        results.append(result_of(folder, command, f"{name}.csv", file="model.json", keys=keys))
    assert results[0][0] == results[1][0]
    assert ADMISSIBLE not in results[0][1].assumptions


def test_gaps_of_a_typed_table_are_null_records_too(folder):
    rows = patients()
    columns = {name: [row[at] for row in rows] for at, name in enumerate(HEADER)}
    columns["smoker"] = [cell == "true" for cell in columns["smoker"]]
    tables = {}
    for name, column, cell in (("gap", "age", None), ("label", "ill", "unknown")):
        changed = columns | {column: [cell if at == 7 else value for at, value in enumerate(columns[column])]}
        parquet.write_table(pa.table(changed), folder / f"{name}.parquet")
        command, file, keys = COMMANDS["fit"]
        tables[name], _ = result_of(folder, command, f"{name}.parquet", "--invalid", "null", file=file, keys=keys)
    assert tables["gap"] == tables["label"]


def test_sparse_rows_with_a_missing_entry_are_null_records_too(folder):
    bounds = '[target]\nname = "label"\nclasses = [0, 1]\n[defaults]\nlower = -1\nupper = 1\n'
    (folder / "sparse.toml").write_text(bounds, encoding="utf-8")
    found = {}
    for name, row in (("gap", "1 2:nan 3:0.5"), ("label", "7 2:0.1 3:0.5")):
        lines = [f"{at % 2} {1 + at % 3}:{0.5 - at % 2} 4:0.25" for at in range(60)]
        (folder / f"{name}.libsvm").write_text("\n".join([*lines, row]) + "\n", encoding="utf-8")
        command = ("fit", "--bounds", "sparse.toml")
        options = ("--invalid", "null", "--nonzero", 2)
        keys = ("coefficients", "intercept")
        found[name], _ = result_of(folder, command, f"{name}.libsvm", *options, file="model.json", keys=keys)
    assert found["gap"] == found["label"]


def test_compare_passes_the_option_on_to_every_method(folder, monkeypatch):
    from taciturn.app.cli import fit as cli_fit

    original, passed = cli_fit.new_estimator, []

    def recorded(*arguments, **parameters):
        passed.append(parameters.get("invalid"))
        return original(*arguments, **parameters)

    monkeypatch.setattr(cli_fit, "new_estimator", recorded)
    done = run("compare", "bad.csv", "--bounds", "bounds.toml", "--trials", 1, "--invalid", "null", cwd=folder)
    assert done.code == 0, done
    assert passed.count("null") == len(passed) / 2 > 5
    assert "nan" not in done.out
    sentences(run("compare", "bad.csv", "--bounds", "bounds.toml", "--trials", 1, cwd=folder))


def test_null_needs_classes_that_are_stated(folder):
    (folder / "open.toml").write_text(BOUNDS.replace('classes = ["no", "yes"]\n', ""), encoding="utf-8")
    options = ("--bounds", "open.toml", "--task", "classify", "--invalid", "null")
    sentence = one_sentence(run("fit", "null.csv", *options, cwd=folder))
    assert "invalid='null': expected stated classes of the target; list the classes in the bounds file." in sentence


def test_other_values_are_wrong_usage(folder):
    done = run("fit", "bad.csv", "--bounds", "bounds.toml", "--invalid", "drop", cwd=folder)
    assert done.code == 2
    assert "'--invalid'" in done.err


# ------------------------------------------------------------------ predict


@pytest.fixture(scope="module")
def sparse_model(tmp_path_factory):
    """A model of age and dose alone; the other columns and categories have coefficients of zero."""
    folder = tmp_path_factory.mktemp("predict")
    table, bounds = write_patients(folder)
    options = ("--bounds", bounds, "--columns", "age,dose", "--epsilon", 20, "--seed", 0, "-o", folder / "model")
    assert run("fit", table, *options).code == 0
    return folder


def predict(folder, text, *options, name="new.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    done = run("predict", folder / "model", folder / name, "-o", folder / "out.csv", *options)
    if done.code:
        return one_sentence(done)
    return list(csv.reader((folder / "out.csv").read_text(encoding="utf-8").splitlines()))


def test_predictions_need_the_columns_with_coefficients_alone(sparse_model):
    rows = patients(50, seed=3)
    whole = predict(sparse_model, csv_text(rows))
    assert len(whole) == 51
    # In another order, without the other columns, or with anything in them.
    fewer = csv_text([[dose, age] for age, dose, *_ in rows], header=["dose", "age"])
    assert predict(sparse_model, fewer) == whole
    odd = csv_text([[age, dose, "perhaps", "", ""] for age, dose, *_ in rows])
    assert predict(sparse_model, odd) == whole
    # A column with a coefficient is needed.
    said = predict(sparse_model, csv_text([row[1:2] for row in rows], header=["dose"]))
    assert said.startswith('taciturn: table: expected a column "age", got a table without it')
    # A loaded model asks for no more.
    loaded = taciturn.load(sparse_model / "model" / "model.json")
    frame = pa.table({"dose": [row[1] for row in rows], "age": [row[0] for row in rows]})
    assert loaded.predict(frame).tolist() == [row[0] for row in whole[1:]]
    assert loaded.predict_proba(frame)[:, 1].tolist() == [float(row[2]) for row in whole[1:]]
    with pytest.raises(taciturn.DataError, match='expected a column "dose"'):
        loaded.predict(frame.drop_columns(["dose"]))


def test_a_category_is_needed_if_one_of_its_levels_has_a_coefficient(sparse_model):
    text = (sparse_model / "model" / "model.json").read_text(encoding="utf-8")
    model = Model.from_json(text)
    places = {name: at for at, name in enumerate(model.feature_names)}
    model.estimator.coef_[0, places["region=dale"]] = 0.5
    table = pa.table({"age": [50.0], "dose": [0.0]})
    with pytest.raises(taciturn.DataError, match='expected a column "region"'):
        model.pipeline().predict(table)
    given = table.append_column("region", [["dale"]])
    whole = given.append_column("smoker", [[True]])
    full = model.encoder
    full.used_ = None
    assert np.array_equal(model.encoder.transform(given)[0] != 0, (full.transform(whole)[0] != 0) & model.encoder.used_)
    # A model of zeros still has to know how many rows there are.
    model.estimator.coef_[:] = 0.0
    assert model.pipeline().predict(table.drop_columns(["dose"])).shape == (1,)


def test_rows_that_cannot_be_read_have_empty_predictions_in_their_places(sparse_model):
    rows = patients(30, seed=4)
    whole = predict(sparse_model, csv_text(rows))
    rows[3][0], rows[7][1], rows[29][0] = SECRET, "", "NA"
    assert 'expected numbers in column "age"' in predict_lines(sparse_model, csv_text(rows))
    found = predict(sparse_model, csv_text(rows), "--invalid", "null")
    assert [at for at, row in enumerate(found[1:]) if row == ["", "", ""]] == [3, 7, 29]
    assert [row for at, row in enumerate(found[1:]) if at not in (3, 7, 29)] == [
        row for at, row in enumerate(whole[1:]) if at not in (3, 7, 29)
    ]
    alone = predict(sparse_model, csv_text([[SECRET, "", "", "", ""]]), "--invalid", "null")
    assert alone == [whole[0], ["", "", ""]]


def predict_lines(folder, text):
    (folder / "new.csv").write_text(text, encoding="utf-8")
    return "\n".join(sentences(run("predict", folder / "model", folder / "new.csv", "-o", folder / "out.csv")))


def test_a_key_is_the_first_column_of_the_predictions(sparse_model):
    rows = patients(4, seed=5)
    whole = predict(sparse_model, csv_text(rows))
    keys = ["007", "NA", '"a,b"', ""]
    text = csv_text([[*row, key] for row, key in zip(rows, keys, strict=True)], header=[*HEADER, "id"])
    found = predict(sparse_model, text, "--key", "id")
    assert [row[0] for row in found] == ["id", "007", "NA", "a,b", ""]
    assert [row[1:] for row in found] == whole
    # The target, and a column of the model, may be copied, too.
    assert [row[0] for row in predict(sparse_model, text, "--key", "ill")] == ["ill", *(row[4] for row in rows)]
    ages = predict(sparse_model, text, "--key", "age")
    assert [float(row[0]) for row in ages[1:]] == [row[0] for row in rows]
    assert [row[1:] for row in ages] == whole
    said = predict(sparse_model, text, "--key", "nobody")
    assert said.startswith('taciturn: table: expected a column "nobody", got a table without it')
    numbers = pa.table({"age": [50.0, 51.0], "dose": [0.0, 0.1], "id": [2**60 + 1, None]})
    parquet.write_table(numbers, sparse_model / "new.parquet")
    done = run("predict", sparse_model / "model", sparse_model / "new.parquet", "-o", sparse_model / "o", "--key", "id")
    assert done.code == 0
    lines = list(csv.reader((sparse_model / "o").read_text().splitlines()))
    assert [row[0] for row in lines] == ["id", str(2**60 + 1), ""]
