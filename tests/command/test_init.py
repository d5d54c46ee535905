"""``taciturn init``: the types that it tells, TOML that is complete, and no value of the table."""

import csv
import re
import sqlite3
import tomllib

import numpy as np
import pytest
from commands import one_sentence, run, sentences
from messy_table import write_hospital

from taciturn import SparseClassifier, open_table, private_score
from taciturn.tables import TableBounds, TableLayout, detect_table, read_schema
from taciturn.tables.columns import STATED_NAMES
from taciturn.tables.propose import MARKS, ColumnProposal, propose_column

KINDS = {
    "patient_id": "person", "visit no": "identifier", "born": "date", "admitted": "date", "sex": "category",
    "ward": "category", "smoker": "boolean", "age": "number", "CRP": "censored", "creatinine": "number",
    "weight kg": "number", "diagnosis": "codes", "notes": "free text", "readmitted": "boolean",
}  # fmt: skip


@pytest.mark.parametrize(("delimiter", "decimal"), [(";", ","), ("\t", ","), ("|", "."), (",", ".")])
def test_types_and_layout_are_told_from_the_first_rows(tmp_path, delimiter, decimal):
    path = tmp_path / "visits.csv"
    write_hospital(path, 400, delimiter=delimiter, decimal=decimal)
    found = detect_table(path)
    assert {name: each.kind for name, each in found.columns.items()} == KINDS
    assert found.columns["admitted"] == ColumnProposal("date", "%d.%m.%Y")
    assert found.columns["born"].format is None
    assert found.columns["diagnosis"].group == 3
    assert found.layout == TableLayout(None if delimiter == "," else delimiter, decimal)


def test_the_template_is_toml_and_holds_no_value(tmp_path):
    path = tmp_path / "visits.csv"
    write_hospital(path, 400)
    done = run("init", path, "--target", "readmitted", "-o", tmp_path / "bounds.toml")
    assert done.code == 0, done
    text = (tmp_path / "bounds.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    assert content["table"] == {"delimiter": ";", "decimal": ","}
    assert content["person"] == {"column": "patient_id"}
    assert content["target"] == {"name": "readmitted", "classes": [False, True]}
    types = {name: column["type"] for name, column in content["columns"].items()}
    assert types == {
        "visit no": "ignore", "born": "date", "admitted": "date", "sex": "category", "ward": "category",
        "smoker": "boolean", "age": "number", "CRP": "number", "creatinine": "number", "weight kg": "number",
        "diagnosis": "category", "notes": "ignore",
    }  # fmt: skip
    # No cell stands in it: neither as a word nor in the numbers, which are those of every template.
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    cells = {cell for row in csv.reader(lines, delimiter=";") for cell in row}
    written = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    words = set(re.findall(r"[\w.,<%-]+", re.sub(r"#.*", "", written)))
    assert not (words & cells) - {"3", "2000-01-01"}
    # Another table of the same types has the same template, to the byte.
    write_hospital(path, 500, seed=7)
    assert run("init", path, "--target", "readmitted", "-o", tmp_path / "other.toml").code == 0
    assert (tmp_path / "other.toml").read_text(encoding="utf-8") == text


def test_what_is_left_to_do_is_told_at_once(tmp_path):
    path = tmp_path / "visits.csv"
    write_hospital(path, 400)
    assert run("init", path, "--target", "readmitted", "-o", tmp_path / "bounds.toml").code == 0
    left = sentences(run("fit", path, "--bounds", tmp_path / "bounds.toml", "-o", tmp_path / "model"))
    assert [re.match(r'taciturn: columns\."(\w+)"', line)[1] for line in left] == ["sex", "ward", "diagnosis"]
    text = (tmp_path / "bounds.toml").read_text(encoding="utf-8").replace("# categories =", 'categories = ["a"]')
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    (tmp_path / "diagnosis.txt").write_text("E11\n")
    left = one_sentence(run("fit", path, "--bounds", tmp_path / "bounds.toml", "-o", tmp_path / "model"))
    assert 'lower and upper of "born", "admitted", "age", "CRP", "creatinine", "weight kg"; state them' in left


def test_a_target_in_other_letters_is_proposed(tmp_path):
    write_hospital(tmp_path / "visits.csv", 50)
    said = one_sentence(run("init", tmp_path / "visits.csv", "--target", "Readmitted", "-o", tmp_path / "b.toml"))
    assert 'did you mean "readmitted"?' in said


def test_a_table_of_a_database_is_named_in_the_template(tmp_path):
    path = tmp_path / "study.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE visits (age INTEGER, ill TEXT)")
        database.executemany("INSERT INTO visits VALUES (?, ?)", [(30 + i, "yes" if i % 2 else "no") for i in range(9)])
        database.execute("CREATE TABLE other (x)")
    database.close()
    assert run("init", f"{path}#visits", "--target", "ill", "-o", tmp_path / "bounds.toml").code == 0
    stated = TableBounds.from_toml((tmp_path / "bounds.toml").read_text(encoding="utf-8"))
    assert stated.layout == TableLayout(name="visits")
    assert read_schema(path, stated.layout).names == ("age", "ill")


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("x", ["1", "2.5", "-3e4"], "number"),
        ("x", ["<5", ">=100", "7"], "censored"),
        ("x", ["yes", "No", "Y"], "boolean"),
        ("x", ["0", "1"], "number"),
        ("x", ["2020-01-31", "2020-02-01 10:00"], "date"),
        ("x", ["31/12/2020"], "date"),
        ("x", ["31.12.2020 10:15"], "date"),
        ("x", ["31.12.2020", "soon"], "category"),
        ("x", [f"code {i}" for i in range(40)], "codes"),
        ("x", ["the patient is well today"] * 3, "free text"),
        ("x", [], "unknown"),
        ("patient_id", ["1", "2"], "person"),
        ("last name", ["a", "b"], "identifier"),
        ("visit no", ["1"], "identifier"),
    ],
)
def test_shapes_of_cells(name, cells, kind):
    assert propose_column(name, "category", cells).kind == kind


def test_days_and_months_that_cannot_be_told_apart_are_noted(tmp_path):
    assert propose_column("x", "category", ["01/02/2020"]) == ColumnProposal("date", "%d/%m/%Y", ambiguous=True)
    assert propose_column("x", "category", ["01/13/2020"]) == ColumnProposal("date", "%m/%d/%Y")
    (tmp_path / "t.csv").write_text("when,y\n01/02/2020,1\n")
    assert run("init", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "b.toml").code == 0
    assert "do not tell day and month apart" in (tmp_path / "b.toml").read_text(encoding="utf-8")


def test_names_that_look_like_values_need_a_statement_which_certificates_assume(tmp_path):
    table, bounds = tmp_path / "t.csv", tmp_path / "bounds.toml"
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (400, 2)).round(3).tolist()
    lines = [f"{a},{b},{'yes' if a + b > 0 else 'no'}" for a, b in rows]
    table.write_text("\n".join(["2019,2020,ill", *lines]) + "\n")
    said = one_sentence(run("init", table, "--target", "ill", "-o", bounds))
    assert "expected names of columns, got one for column 1 that looks like a value" in said
    assert "2019" not in said
    assert not bounds.exists()
    assert run("init", table, "--target", "ill", "-o", bounds, "--header").code == 0
    text = bounds.read_text(encoding="utf-8").replace("# lower =", "lower = -1").replace("# upper =", "upper = 1")
    assert tomllib.loads(text)["table"] == {"header": True}
    bounds.write_text(text)
    fit = ("fit", table, "--bounds", bounds, "--epsilon", "1", "--seed", "0")
    assert run(*fit, "-o", tmp_path / "whole", "--method", "objective-perturbation").code == 0
    assert run(*fit, "-o", tmp_path / "streamed", "--memory", "100MB").code == 0
    model = tmp_path / "streamed" / "model.json"
    score = ("score", model, table, "--epsilon", "1", "-o", tmp_path / "score.json")
    assert run(*score).code == 0
    assert run("predict", model, table, "-o", tmp_path / "predictions.csv").code == 0
    for certificate in ("whole/certificate.json", "streamed/certificate.json", "score.json"):
        assert (tmp_path / certificate).read_text(encoding="utf-8").count(STATED_NAMES) == 1
    with open_table(table, bounds) as opened:
        certificate = SparseClassifier(random_state=0).fit(opened).certificate_
        assert STATED_NAMES in certificate.assumptions
        scored = private_score(SparseClassifier(random_state=0).fit(opened), opened, metric="all", random_state=0)
        assert STATED_NAMES in scored.certificate.assumptions
    # Names that are plainly names need no such statement, and have no such assumption.
    table.write_text("\n".join(["a,b,ill", *lines]) + "\n")
    assert run("init", table, "--target", "ill", "-o", tmp_path / "plain.toml").code == 0
    assert "header" not in tomllib.loads((tmp_path / "plain.toml").read_text(encoding="utf-8")).get("table", {})


def test_thousands_are_no_decimals(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,234;2.5\n5,678;3.5\n")
    found = detect_table(tmp_path / "t.csv")
    assert found.layout == TableLayout(";", ".", thousands=",")
    assert [each.kind for each in found.columns.values()] == ["number", "number"]


@pytest.mark.parametrize(
    ("cells", "layout"),
    [
        (["1.234,5;2", "0,5;3"], TableLayout(";", ",", thousands=".")),
        (["1.234;2,5", "2.345;3,5"], TableLayout(";", ",", thousands=".")),
        (["1,234.5;2", "7.25;3"], TableLayout(";", ".", thousands=",")),
        (["1 234 567;2,5", "12;3,5"], TableLayout(";", ",", thousands=" ")),
        (["1'234;2.5", "12;3.5"], TableLayout(";", ".", thousands="'")),
        # A point in one column and thousands in another one would make a decimal of the point.
        (["1.234,5;2.5", "0,5;3.25"], TableLayout(";", ".")),
        (["1.234;2", "5.678;3"], TableLayout(";", ".")),
        (["1,2;k.A.", "-;3.234,5"], TableLayout(";", ",", thousands=".")),
        (["12.34.56;1", "1.2.3;2"], TableLayout(";", ".")),
    ],
)
def test_decimals_and_thousands_are_told_together(tmp_path, cells, layout):
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *cells, ""]))
    assert detect_table(tmp_path / "t.csv").layout == layout


@pytest.mark.parametrize(("encoding", "told"), [("utf-8", None), ("utf-8-sig", None), ("utf-16", "utf-16"),
                                                ("cp1252", "cp1252"), ("latin-1", "cp1252")])  # fmt: skip
def test_the_encoding_is_told_and_stated(tmp_path, encoding, told):
    text = "größe;stadt;y\n" + "".join(f"1,{i % 10};{'Köln' if i % 3 else 'Gießen'};{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    done = run("init", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "b.toml")
    assert done.code == 0, done
    content = tomllib.loads((tmp_path / "b.toml").read_text(encoding="utf-8"))
    assert content["table"].get("encoding") == told
    assert list(content["columns"]) == ["größe", "stadt"]


def test_a_table_of_r_has_a_template(tmp_path):
    """Row numbers, zip codes and marks of missing cells, as write.csv2 writes them; no mark of the table is told."""
    ending = (
        f'"{i}";0{1000 + i};{"k.A." if i % 5 == 0 else f"3,{i % 9}"};{"?" if i % 7 == 0 else "ja"};{i % 2}\n'
        for i in range(60)
    )
    (tmp_path / "t.csv").write_text('"";"area";"crp";"smoker";"y"\n' + "".join(ending))
    assert run("init", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "b.toml").code == 0
    text = (tmp_path / "b.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    assert content["columns"][""] == {"type": "ignore"}
    assert "row numbers of R" in text
    # Digits with zeros before them are codes: as numbers they would lose them.
    assert content["columns"]["area"] == {"type": "category", "categories_file": "area.txt"}
    assert content["columns"]["crp"]["type"] == "number"
    assert content["columns"]["smoker"]["type"] == "boolean"
    # The list is that of every table: which of its texts is in this one is not told.
    assert (
        tuple(content["columns"]["crp"]["missing_values"])
        == MARKS
        == tuple(content["columns"]["smoker"]["missing_values"])
    )
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text().replace("k.A.", "-").replace("?", "fehlt"))
    assert run("init", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "other.toml").code == 0
    assert (tmp_path / "other.toml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("name", "kind", "cells", "expected"),
    [
        ("x", "category", ["01067", "99998"], "category"),
        ("x", "category", [f"0{i}" for i in range(1000, 1050)], "codes"),
        ("x", "category", ["10", "20", "5"], "number"),
        # Of one digit, or of several lengths: 0 and 0.5 are numbers, and 007 alone might be.
        ("x", "category", ["0", "1"], "number"),
        ("x", "category", ["007", "12"], "number"),
        ("zip code", "category", ["10115", "80331"], "category"),
        ("PLZ", "number", None, "codes"),
        ("zipper", "number", None, "number"),
        ("x", "category", ["1.5", "k.A.", "-"], "number"),
        ("x", "category", ["31.12.2020", "unbekannt"], "date"),
        ("x", "category", ["north", "unknown"], "category"),
        ("x", "category", ["-", "?"], "category"),
    ],
)
def test_codes_and_marks_are_told_from_numbers(name, kind, cells, expected):
    found = propose_column(name, kind, cells)
    assert found.kind == expected
    assert found.marked == (expected in ("number", "date") and cells is not None and not {*cells}.isdisjoint(MARKS))
