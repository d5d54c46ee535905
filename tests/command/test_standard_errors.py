"""Standard errors from the command line: what is printed and written, and what is refused before anything is spent."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from commands import BOUNDS, SECRET, csv_text, one_sentence, run
from scipy.stats import t as student

import taciturn
from taciturn.app.cli.tables import find_features
from taciturn.app.model_file import Model
from taciturn.core.errors import ParameterError
from taciturn.tables import Column, TableBounds, Target

N = 8000
THREE = BOUNDS.replace('["hill", "dale"]', '["hill", "dale", "coast"]')


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of patients with a class, a number and three classes as targets, and their bounds files."""
    folder = tmp_path_factory.mktemp("inference")
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(0, 100, N).round(2), rng.uniform(-1, 1, N).round(4)
    smoker, region = rng.random(N) < 0.5, rng.choice(["hill", "dale", "coast"], N)
    score = (age - 50) / 40 + dose + 0.7 * smoker + rng.logistic(size=N)
    rows = list(zip(age, dose, (str(bool(s)).lower() for s in smoker), region, strict=True))
    header = ["age", "dose", "smoker", "region"]
    targets = {
        "ill": (np.where(score > 0, "yes", "no"), 'classes = ["no", "yes"]'),
        "score": (np.clip(score, -10, 10).round(3), "lower = -10\nupper = 10"),
        "certain": (np.where(age > 40, "yes", "no"), 'classes = ["no", "yes"]'),
        "stage": (np.digitize(score, (-1, 1)), "classes = [0, 1, 2]"),
        "unstated": (np.digitize(score, (-1, 1)), ""),
    }
    for name, (y, stated) in targets.items():
        text = csv_text([[*row, value] for row, value in zip(rows, y, strict=True)], header=[*header, name])
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
        described = THREE.replace('"ill"', f'"{name}"').replace('classes = ["no", "yes"]', stated)
        (folder / f"{name}.toml").write_text(described, encoding="utf-8")
    return folder


def fit(tables, target, *options, output="out"):
    stated = ("--bounds", f"{target}.toml", "--epsilon", 4, "--seed", 1)
    return run("fit", f"{target}.csv", *stated, *options, "-o", output, cwd=tables)


@pytest.fixture(scope="module")
def fits(tables):
    runs = {
        "odds": fit(tables, "ill", "--inference", "--columns", "age,dose,smoker,region", output="odds"),
        "chosen": fit(tables, "score", "--inference", "--nonzero", 3, "--confidence", 0.9, output="chosen"),
    }
    for name, done in runs.items():
        assert done.code == 0, (name, done)
    return {name: (done, Model.from_json((tables / name / "model.json").read_text())) for name, done in runs.items()}


def printed_rows(out):
    """The cells of the first table by the name in its first column."""
    table = out.split("└")[0]
    rows = re.findall(r"^│ (\S+) +│(.*)│$", table, flags=re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("│")] for name, cells in rows}


@pytest.mark.parametrize("name", ["odds", "chosen"])
def test_the_printed_numbers_are_those_of_the_model(fits, name):
    done, model = fits[name]
    estimator = model.estimator
    found = estimator.inference_
    rows = printed_rows(done.out)
    names = [model.feature_names[j] for j in found.columns]
    assert set(rows) == {*names, "(intercept)"}
    quantiles = student.ppf(0.5 + found.confidence_level / 2, found.degrees[0])
    halves = {"age": 50.0, "dose": 1.0}
    for k, (place, feature) in enumerate(zip(found.columns, names, strict=True)):
        value, error = float(np.ravel(estimator.coef_)[place]), math.hypot(found.sampling[0, k], found.privacy[0, k])
        *coefficient, std_error, p, per_unit = rows[feature]
        unit = halves.get(feature, 1.0)
        assert [float(cell.strip("†")) for cell in coefficient] == pytest.approx([value / unit], rel=1e-3)
        assert float(std_error) == pytest.approx(error / unit, rel=1e-3)
        z, true_p = quantiles[k], 2 * student.sf(abs(value) / error, found.degrees[0, k])
        assert true_p < 0.001 if p == "<0.001" else abs(float(p) - true_p) < 6e-4
        expected = [(value + side * z * error) / halves.get(feature, 1.0) for side in (0, -1, 1)]
        if name == "odds":
            expected = [math.exp(x) for x in expected]
        told = [float(x) for x in re.match(r"(\S+) \((\S+) to (\S+)\)", per_unit).groups()]
        # Two digits of the error.
        assert told == pytest.approx(expected, abs=0.05 * (expected[2] - expected[1]))
    # One screen: no line of the table is wider than a narrow terminal.
    assert all(len(line) <= 80 for line in done.out.split("└")[0].splitlines())
    assert f"The {100 * found.confidence_level:g}% intervals include the sampling error" in done.out


def test_the_options_reach_the_model(fits):
    odds, chosen = fits["odds"][1], fits["chosen"][1]
    # Of the categories the first one is what the others are compared with.
    assert odds.summary().names == ["age", "dose", "smoker", "region=dale", "region=coast"]
    assert not odds.estimator.inference_.split
    assert odds.estimator.inference_.confidence_level == 0.95
    assert "the columns of the model were chosen without looking at these data" in odds.certificate.assumptions
    assert chosen.estimator.inference_.split
    assert chosen.estimator.inference_.confidence_level == 0.9
    assert chosen.estimator.inference_.columns.size == 3
    assert "--inference" in odds.command.split()
    assert "--columns age,dose,smoker,region" in odds.command


def test_a_wide_screen_shows_the_parts_of_the_error(fits, tables, monkeypatch):
    monkeypatch.setenv("COLUMNS", "130")
    done = run("show", "odds", cwd=tables)
    assert done.code == 0
    assert "of which privacy" in done.out
    found = fits["odds"][1].estimator.inference_
    assert float(printed_rows(done.out)["age"][2]) == pytest.approx(found.privacy[0, 0] / 50.0, rel=1e-3)
    monkeypatch.setenv("COLUMNS", "80")
    assert printed_rows(run("show", "odds", cwd=tables).out) == printed_rows(fits["odds"][0].out)


def test_the_report_and_the_loaded_model_have_them_too(fits, tables):
    page = (tables / "odds" / "report.html").read_text(encoding="utf-8")
    assert "odds ratio per unit" in page
    loaded = taciturn.load(tables / "odds" / "model.json")[-1]
    interval = fits["odds"][1].estimator.coef_interval_
    assert loaded.coef_interval_.tobytes() == interval.tobytes()


def test_where_there_are_none_the_reason_is_printed(tables):
    done = fit(tables, "certain", "--inference", "--columns", "age", output="weak")
    assert done.code == 0
    told = "No standard errors: the last step towards the estimate was long"
    assert told in " ".join(done.out.split())
    assert told in " ".join(run("show", "weak", cwd=tables).out.split())
    assert json.loads((tables / "weak" / "model.json").read_text())["inference"]["std_error"][0] == [None, None]
    # No odds ratio without its error.
    assert "odds ratio" not in done.out


def test_all_categories_together_are_told(tables):
    listed = "age,region=hill,region=dale,region=coast"
    done = fit(tables, "score", "--inference", "--columns", listed, output="collinear")
    assert done.code == 0
    told = " ".join(done.out.split())
    named = "region=hill, region=dale, region=coast and the intercept are not estimable at this budget"
    assert f"{named}: they are confounded with one another." in told
    rows = printed_rows(done.out)
    assert [rows[f"region={name}"] for name in ("hill", "dale", "coast")] == [["-", "-", "-", "not estimable"]] * 3
    assert float(rows["age"][1]) > 0
    full = " ".join(run("show", "collinear", cwd=tables).out.split())
    assert "The model has all categories of region, which are collinear with the intercept" in full


def test_three_classes_have_a_table_each_against_the_first(tables):
    done = fit(tables, "stage", "--inference", "--columns", "age,dose,smoker", output="stages")
    assert done.code == 0
    assert "stage (1 against 0): 3 of 6 features" in done.out
    assert "classes that are not shown: 1 (--full prints them)" in done.out
    full = run("show", "stages", cwd=tables).out
    assert "stage (2 against 0)" in full
    found = taciturn.load(tables / "stages" / "model.json")[-1]
    assert found.inference_.estimable.all()
    assert np.isnan(found.coef_std_error_[0]).all()
    assert not found.coef_[0].any()
    # Classes that the bounds do not state are those of the table.
    unstated = fit(tables, "unstated", "--inference", "--task", "classify", "--columns", "age,dose", output="found")
    assert unstated.code == 0
    assert "unstated (1 against 0): 2 of 6 features" in unstated.out
    # Higher stages are those of the old.
    assert 0 < found.coef_interval_[1, 0, 0] < found.coef_interval_[2, 0, 0]


def test_columns_can_be_fixed_without_inference(tables):
    done = fit(tables, "score", "--columns", "dose,age", output="fixed")
    assert done.code == 0
    assert set(printed_rows(done.out)) == {"age", "dose", "(intercept)"}
    assert json.loads((tables / "fixed" / "model.json").read_text())["inference"] is None


REFUSALS = [
    ("score", ("--inference", "--method", "frank-wolfe"), "method='frank-wolfe': expected auto with --inference"),
    ("score", ("--columns", "age", "--method", "admm"), "method='admm': expected auto with --columns"),
    ("score", ("--inference", "--epsilon", "0.01"), "inference=True: expected about"),
    ("stage", ("--inference", "--epsilon", "0.05"), "nothing was spent"),
    ("unstated", ("--inference", "--task", "classify", "--epsilon", "0.05"), "inference=True: expected about"),
    ("score", ("--confidence", "0.9"), "confidence=0.9: expected --inference beside it"),
    ("score", ("--inference", "--confidence", "1.5"), "confidence=1.5: expected a number in [0.5, 1)"),
    ("score", ("--inference", "--confidence", "0.2"), "confidence=0.2: expected a number in [0.5, 1)"),
    ("score", ("--columns", "age,weight"), "columns='weight': expected the name of a column or feature of the model"),
    ("score", ("--columns", "score"), "columns='score': expected the name of a column or feature of the model"),
    ("score", ("--columns", ""), "columns='': expected at least one feature, and each of them once"),
    ("score", ("--columns", "age,age"), "columns='age,age': expected at least one feature, and each of them once"),
    ("score", ("--columns", "region,region=dale"), "expected at least one feature, and each of them once"),
    ("score", ("--columns", "age", "--nonzero", "3"), "nonzero=3: expected nothing beside --columns"),
]


@pytest.mark.parametrize(("target", "options", "message"), REFUSALS, ids=lambda part: str(part)[:40])
def test_what_cannot_be_is_refused_in_one_sentence_before_anything_is_spent(tables, target, options, message):
    done = fit(tables, target, *options, output="refused")
    assert message in one_sentence(done)
    assert not (tables / "refused").exists()
    assert not (tables / "refused.unfinished").exists()
    assert SECRET not in done.err


def test_names_with_commas_are_quoted():
    columns = {
        "a,b": Column("number", 0, 1),
        "c": Column("category", categories=("x", "y", "z")),
        "d": Column("boolean"),
    }
    bounds = TableBounds(Target("y", 0, 1), columns, order=("a,b", "c", "d"))
    assert find_features('"a,b",d', bounds) == [0, 4]
    assert find_features("d, c", bounds) == [2, 3, 4]
    assert find_features("c=x,c=z", bounds) == [1, 3]
    with pytest.raises(ParameterError, match="^columns='a': expected the name of a column"):
        find_features("a,b", bounds)


def test_a_fit_that_public_facts_refuse_is_refused_before_bounds_are_paid_for(tmp_path):
    rows = "".join(f"{i % 60 + 20},{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (tmp_path / "few.csv").write_text(f"age,dose,ill\n{rows}")
    columns = "".join(f'[columns."{name}"]\ntype = "number"\n' for name in ("age", "dose"))
    (tmp_path / "few.toml").write_text(f'[target]\nname = "ill"\nclasses = ["no", "yes"]\n{columns}')
    done = run("fit", "few.csv", "--bounds", "few.toml", "--private-bounds", 0.5, "--inference", "--nonzero", "all",
               "-o", "refused", cwd=tmp_path)  # fmt: skip
    assert "records for 3 coefficients at this budget" in one_sentence(done)
    assert "nothing was spent" in one_sentence(done)
    assert not (tmp_path / "refused").exists()
    assert not (tmp_path / "refused.unfinished").exists()


# ------------------------------------------------------------------ tables for other programs


def test_the_table_as_csv_is_that_of_the_summary_per_unit(tables, fits):
    _, model = fits["odds"]
    done = run("show", "odds", "--format", "csv", cwd=tables)
    assert (done.code, done.err) == (0, "")
    rows = {row["term"]: row for row in csv.DictReader(io.StringIO(done.out))}
    # The first category is what the others are compared with.
    assert rows["region=hill"]["note"] == "reference level"
    assert rows.pop("region=hill")["estimate"] == ""
    frame = model.summary().to_frame()
    assert list(rows) == [*frame.index[:-1], "(Intercept)"]
    for name, row in zip(frame.index, rows.values(), strict=True):
        stated = ("effect per unit", "lower per unit", "upper per unit", "p")
        expected = [frame.loc[name, column] for column in stated]
        found = [float(row[column]) for column in ("estimate", "conf.low", "conf.high", "p.value")]
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", ["json", "latex", "markdown", "docx"])
def test_a_table_is_written_to_a_file_that_is_not_replaced(tables, fits, tmp_path, form):
    if form == "docx":
        pytest.importorskip("docx", reason="needs python-docx")
    place = tmp_path / f"table.{form}"
    done = run("show", "odds", "--format", form, "-o", place, cwd=tables)
    assert (done.code, done.out) == (0, f"written: {place}\n")
    content = place.read_bytes()
    assert (b"PK" if form == "docx" else b"age") in content
    again = run("show", "odds", "--format", form, "-o", place, cwd=tables)
    assert again.code == 1
    assert "a file that is not there yet" in one_sentence(again)
    assert place.read_bytes() == content


def test_what_a_table_needs_is_said(tables, fits):
    assert "a file for the format docx" in one_sentence(run("show", "odds", "--format", "docx", cwd=tables))
    assert "--format beside it" in one_sentence(run("show", "odds", "-o", "table.csv", cwd=tables))
    alone = run("show", "odds/certificate.json", "--format", "csv", cwd=tables)
    assert "expected JSON with format 'taciturn model'" in one_sentence(alone)
    assert not (tables / "table.csv").exists()
