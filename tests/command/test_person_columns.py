"""Persons from the command line: a column of keys, what is written about it, and what is refused before it is read."""

import json

import numpy as np
import pyarrow as pa
import pytest
from commands import BOUNDS, csv_text, one_sentence, patients, run
from pyarrow import parquet

import taciturn
from taciturn.app.model_file import Model
from taciturn.core.errors import DataError, ParameterError
from taciturn.tables import TableBounds, TableSchema, bounds_template, read_person_keys
from taciturn.tables.propose import names_a_person, names_an_identifier

N_PERSONS = 300
PERSON = '[person]\ncolumn = "patient_id"\n'
HEADER = ["age", "dose", "smoker", "region", "ill", "patient_id"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Visits of 300 patients with 1 to 9 visits each, in no order, as text and as Parquet, and bounds."""
    folder = tmp_path_factory.mktemp("persons")
    rng = np.random.default_rng(0)
    owners = rng.permutation(np.repeat(np.arange(N_PERSONS), rng.integers(1, 10, N_PERSONS)))
    rows = [[*row, f"{owner:05}"] for row, owner in zip(patients(owners.size), owners, strict=True)]
    rows[7][-1] = ""
    (folder / "visits.csv").write_text(csv_text(rows, header=HEADER), encoding="utf-8")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(HEADER)}
    columns["smoker"] = [value == "true" for value in columns["smoker"]]
    # The same keys as numbers, with a gap.
    columns["patient_id"] = [int(key) if key else None for key in columns["patient_id"]]
    parquet.write_table(pa.table(columns), folder / "visits.parquet")
    (folder / "bounds.toml").write_text(BOUNDS + PERSON, encoding="utf-8")
    (folder / "rows.toml").write_text(BOUNDS + '[columns.patient_id]\ntype = "ignore"\n', encoding="utf-8")
    return folder


def fit(folder, *options, table="visits.csv", output="out"):
    return run("fit", table, "--bounds", "bounds.toml", "--seed", 1, *options, "-o", output, cwd=folder)


def test_a_column_of_keys_makes_a_person_the_record(folder):
    done = fit(folder, output="model")
    assert done.code == 0, done.err
    text = (folder / "model" / "model.json").read_text(encoding="utf-8")
    model = Model.from_json(text)
    assert model.bounds.person == "patient_id"
    assert "patient_id" not in model.feature_names
    certificate = model.certificate
    assert certificate.unit == "person"
    assert certificate.public["records"] == N_PERSONS
    assert certificate.public["person column"] == "patient_id"
    assert "for all rows of one person (zero-out), proved" in done.out
    words = " ".join(run("show", folder / "model").out.replace("│", " ").split())
    assert "leaving all rows of one person out of the data" in words
    assert "persons = 300" in words
    assert "how many rows a person has is protected" in words
    report = (folder / "model" / "report.html").read_text(encoding="utf-8")
    assert "all rows of any one person" in report
    assert "2 persons together" in report
    # The file comes back to the bit, and predicts from tables without keys.
    assert Model.from_json(model.to_json()).to_json() == model.to_json()
    loaded = taciturn.load(folder / "model" / "model.json")
    assert taciturn.certificate_of(loaded).unit == "person"
    table = parquet.read_table(folder / "visits.parquet").drop_columns(["patient_id", "ill"])
    assert loaded.predict(table).shape == (table.num_rows,)


def test_text_and_numbers_are_the_same_keys(folder):
    assert fit(folder, output="text").code == fit(folder, table="visits.parquet", output="numbers").code == 0
    one, other = (json.loads((folder / name / "model.json").read_text()) for name in ("text", "numbers"))
    assert one["coefficients"] == other["coefficients"]
    assert one["certificate"]["public"] == other["certificate"]["public"]


def test_bounds_that_are_found_privately_count_persons_too(folder):
    done = fit(folder, "--private-bounds", 0.5, "--epsilon", 20, output="found")
    assert done.code == 0, done.err
    # Nothing is found where all bounds are stated.
    stated = (
        (folder / "bounds.toml")
        .read_text(encoding="utf-8")
        .replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n', "")
    )
    (folder / "less.toml").write_text(stated, encoding="utf-8")
    options = ("--bounds", "less.toml", "--private-bounds", 0.5, "--epsilon", 30, "--seed", 1, "-o", "found-age")
    done = run("fit", "visits.csv", *options, cwd=folder)
    assert done.code == 0, done.err
    certificate = Model.from_json((folder / "found-age" / "model.json").read_text()).certificate
    assert certificate.unit == "person"
    assert {certificate.public[part]["records"] for part in ("part 1", "part 2")} == {N_PERSONS}


def test_the_number_of_rows_of_a_person_refuses_no_table(folder, monkeypatch):
    select = ("select", "visits.csv", "--bounds", "bounds.toml", "--keep", 2, "--seed", 1, "--method", "block-vote")
    assert fit(folder, output="in-memory").code == 0
    assert run(*select, "-o", "in-memory-kept", cwd=folder).code == 0
    # One person's rows make the table larger than the memory.
    monkeypatch.setattr("taciturn.app.cli.tables._size", lambda *_: 1 << 60)
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 400)
    assert fit(folder, output="partitions").code == 0
    one, other = (json.loads((folder / name / "model.json").read_text()) for name in ("in-memory", "partitions"))
    assert one["coefficients"] == other["coefficients"]
    assert one["certificate"]["assumptions"] == other["certificate"]["assumptions"]
    assert run(*select, "-o", "larger-kept", cwd=folder).code == 0


def test_selections_and_scores_are_of_persons(folder):
    done = run("select", "visits.csv", "--bounds", "bounds.toml", "--keep", 2, "--seed", 1, "-o", "kept", cwd=folder)
    assert done.code == 0, done.err
    certificate = json.loads((folder / "kept" / "selection.json").read_text())["certificate"]
    assert (certificate["unit"], certificate["public"]["person column"]) == ("person", "patient_id")
    assert fit(folder, output="scored").code == 0
    scored = ("score", "scored/model.json", "visits.csv")
    assert run(*scored, "--epsilon", 1, "--seed", 1, "-o", "score.json", cwd=folder).code == 0
    certificate = json.loads((folder / "score.json").read_text())["certificate"]
    assert (certificate["unit"], certificate["public"]["records"]) == ("person", N_PERSONS)
    assert certificate["public"]["person column"] == "patient_id"
    # A public table may do without keys, a private one may not.
    bare = (folder / "visits.csv").read_text().replace("patient_id", "other")
    (folder / "bare.csv").write_text(bare)
    assert run("score", "scored/model.json", "bare.csv", cwd=folder).code == 0
    refused = run("score", "scored/model.json", "bare.csv", "--epsilon", 1, "-o", "no.json", cwd=folder)
    assert refused.code != 0
    assert 'expected a column "patient_id"' in one_sentence(refused)


@pytest.mark.parametrize(
    ("command", "method", "name"),
    [("fit", "frank-wolfe", "FrankWolfeClassifier"), ("select", "kendall", "KendallSelector")],
)
def test_methods_without_a_proof_refuse_before_anything_is_spent(folder, command, method, name):
    options = ("visits.csv", "--bounds", "bounds.toml", "--method", method, "-o", f"refused-{method}")
    done = run(command, *options, cwd=folder)
    assert done.code != 0
    assert one_sentence(done).startswith(f"taciturn: method='{name}': expected one for persons")
    assert not (folder / f"refused-{method}").exists()


def test_rows_count_one_by_one_without_the_section(folder):
    done = run("fit", "visits.csv", "--bounds", "rows.toml", "--seed", 1, "-o", "rows", cwd=folder)
    assert done.code == 0, done.err
    certificate = Model.from_json((folder / "rows" / "model.json").read_text()).certificate
    assert certificate.unit == "record"
    assert "person column" not in certificate.public


def test_a_model_file_that_swaps_its_certificate_is_refused(folder):
    assert fit(folder, output="own").code == 0
    assert run("fit", "visits.csv", "--bounds", "rows.toml", "--seed", 1, "-o", "foreign", cwd=folder).code == 0
    own, foreign = (json.loads((folder / name / "model.json").read_text()) for name in ("own", "foreign"))
    with pytest.raises(taciturn.CertificateError, match="bounds that name persons"):
        Model.from_json(json.dumps(own | {"certificate": foreign["certificate"]}))


# ------------------------------------------------------------------ bounds


def test_a_person_column_is_never_a_feature():
    stated = TableBounds.from_toml(BOUNDS + PERSON + "[defaults]\nlower = 0\nupper = 1\n")
    schema = TableSchema(("patient_id", "age", "dose", "smoker", "region", "ill"), ("number",) * 6)
    resolved = stated.for_table(schema)
    assert resolved.order == ("age", "dose", "smoker", "region")
    assert stated.column("patient_id") is None
    assert TableBounds.from_json(resolved.to_json()) == resolved
    with pytest.raises(ParameterError, match="^person.column='patient_id': expected the name of a column of the table"):
        stated.for_table(TableSchema(("age", "dose", "smoker", "region", "ill"), ("number",) * 5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[person]\n", "^person.column=None: expected the name of a column"),
        ("[person]\ncolumn = 3\n", "^person.column=3: expected the name of a column"),
        ('[person]\ncolumn = "ill"\n', "^person.column='ill': expected the name of a column other than the target"),
        ('[person]\ncolumn = "age"\n', "^person.column='age': expected a column that does not enter the model"),
        ('[person]\ncolumn = "x"\nname = "y"\n', "^person='name': expected no key but column"),
    ],
)
def test_sections_that_name_no_person_are_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        TableBounds.from_toml(BOUNDS + text)


def test_keys_are_read_cell_by_cell(folder, tmp_path):
    stated = TableBounds.from_toml(BOUNDS + PERSON)
    keys = read_person_keys(folder / "visits.csv", stated)
    assert keys[7] is None
    assert keys[0] == str(keys[0])
    assert read_person_keys(folder / "visits.csv", TableBounds.from_toml(BOUNDS)) is None
    with pytest.raises(DataError, match="expected a column"):
        read_person_keys(folder / "visits.csv", TableBounds.from_toml(BOUNDS + '[person]\ncolumn = "who"\n'))
    (tmp_path / "t.libsvm").write_text("1 1:2\n")
    with pytest.raises(ParameterError, match="^person.column='1': expected a table with named columns"):
        read_person_keys(
            tmp_path / "t.libsvm", TableBounds.from_toml('[target]\nname="label"\nclasses=[0,1]\n[person]\ncolumn="1"')
        )


PERSON_NAMES = (
    "patient_id", "PatientID", "patientId", "subject id", "person.number", "SUBJID", "usubjid", "customer-key", "ssn",
    "participant_uuid", "user_id", "MRN", "hospital_patient_nr",
)  # fmt: skip
KEY_NAMES = ("id", "ID", "uuid", "order_id", "row_id", "record id", "visitId")
OTHER_NAMES = (
    "age", "idea", "number of patients", "patients", "zip code", "paid", "solid", "patient age", "id_count", "code",
    "person", "width",
)  # fmt: skip


def test_keys_are_told_by_their_names():
    assert all(map(names_a_person, PERSON_NAMES))
    assert not any(map(names_a_person, (*KEY_NAMES, *OTHER_NAMES)))
    assert all(map(names_an_identifier, (*PERSON_NAMES, *KEY_NAMES)))
    assert not any(map(names_an_identifier, OTHER_NAMES))


@pytest.mark.parametrize("wide", [False, True])
def test_a_template_proposes_the_person_and_offers_no_key_as_a_feature(wide):
    others = tuple(f"x{place}" for place in range(600)) if wide else ("age",)
    names = ("id", "patient_id", "user_id", *others, "ill")
    template = bounds_template(TableSchema(names, ("number",) * len(names)), "ill")
    assert template.count('[person]\ncolumn = "patient_id"') == 1
    assert '[columns."patient_id"]' not in template
    filled = template.replace("# lower =\n", "lower = 0\n").replace("# upper =\n", "upper = 1\n")
    if wide:
        filled = filled.replace("# [defaults]\n", "[defaults]\n")
    resolved = TableBounds.from_toml(filled).for_table(TableSchema(names, ("number",) * len(names)))
    assert resolved.person == "patient_id"
    assert resolved.order == others
    plain = bounds_template(TableSchema(("age", "ill"), ("number", "number")), "ill")
    assert "[person]" not in plain
