"""``--invalid``: a record with a cell that cannot be used is refused, or counts as a null record."""

import json
import re

import pyarrow as pa
import pytest
from commands import BOUNDS, HEADER, csv_text, one_sentence, patients, run, sentences
from pyarrow import parquet

from taciturn.certificate import Certificate
from taciturn.data.reading import ADMISSIBLE

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
    from taciturn.cli import comparing

    original, passed = comparing.new_estimator, []

    def recorded(*arguments, **parameters):
        passed.append(parameters.get("invalid"))
        return original(*arguments, **parameters)

    monkeypatch.setattr(comparing, "new_estimator", recorded)
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
