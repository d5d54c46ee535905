"""Predictions in R from ``model.json`` alone, beside Python's: families, encodings, terms; and what R refuses."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from taciturn import FrankWolfeRegressor, SparseClassifier, SparseRegressor, load
from taciturn.app.model_file import Model
from taciturn.tables import TableBounds, TableEncoder

PACKAGE = Path(__file__).parents[2] / "r" / "R"
RSCRIPT = shutil.which("Rscript")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(RSCRIPT is None, reason="R is not installed (Debian: r-base-core, r-cran-jsonlite)"),
]

COLUMNS = """
[columns]
age = {type = "number", lower = 18, upper = 100}
dose = {type = "number", lower = -0.1, upper = 0.7, per = 0.1}
smoker = {type = "boolean"}
region = {type = "category", categories = ["north", "south", "1.50"], reference = "south"}
ward = {type = "code", lower = 1, upper = 3}
icd = {type = "category", categories = ["E11", "I10"], group = 3}
[missing]
age = {value = 50, indicator = true}
dose = {indicator = true}
smoker = true
region = {indicator = true}
icd = "I10"
"""
TERMS = """
[terms]
list = ["age^2", "dose^3", "spline(age, 30, 50, 60, 80)", "log(age)", "age:smoker", "dose^2:region", "ward:region",
        "dose:age"]
"""
TARGETS = {
    "classes": '[target]\nname = "y"\nclasses = ["no", "yes"]\n',
    "three": '[target]\nname = "y"\nclasses = ["a", "b", "c"]\n',
    "truth": '[target]\nname = "y"\nclasses = [false, true]\n',
    "number": '[target]\nname = "y"\nlower = -2\nupper = 3.5\n',
    "count": '[target]\nname = "y"\nlower = 0\nupper = 20\nkind = "count"\n',
    "amount": '[target]\nname = "y"\nlower = 1\nupper = 50\nkind = "amount"\n',
}
COMMON = {"epsilon": 20.0, "random_state": 0, "x_bound": 1.0, "n_nonzero": "all"}
CASES = {
    "two classes": ("classes", COLUMNS, SparseClassifier(**COMMON, classes=("no", "yes"))),
    "truth values": ("truth", COLUMNS + TERMS, SparseClassifier(**COMMON, classes=(False, True))),
    "three classes": ("three", COLUMNS + TERMS, SparseClassifier(**COMMON, classes=("a", "b", "c"))),
    "numbers": ("number", COLUMNS, SparseRegressor(**COMMON, y_bounds=(-2.0, 3.5))),
    "terms": ("number", COLUMNS + TERMS, SparseRegressor(**COMMON, y_bounds=(-2.0, 3.5))),
    "counts": ("count", COLUMNS, SparseRegressor(**COMMON, loss="poisson", y_bounds=(0.0, 20.0))),
    "amounts": ("amount", COLUMNS + TERMS, SparseRegressor(**COMMON, loss="gamma", y_bounds=(1.0, 50.0))),
    "some columns": ("number", COLUMNS, FrankWolfeRegressor(epsilon=5.0, random_state=0, x_bound=1.0,
                                                            y_bounds=(-2.0, 3.5), n_steps=30)),
    "intervals": ("number", COLUMNS, SparseRegressor(**COMMON | {"n_nonzero": 4}, y_bounds=(-2.0, 3.5), inference=True,
                                                     columns=(0, 3, 5, 7))),
}  # fmt: skip


def make_table(n_rows=4000):
    """Cells within and beyond their bounds, unlisted categories and gaps; numbers that every program reads alike."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame()
    table["age"] = rng.integers(0, 130 * 1024, n_rows) / 1024
    table["dose"] = rng.integers(-1024, 2048, n_rows) / 1024
    table["smoker"] = rng.choice(["yes", "NO", " true", "0"], n_rows)
    table["region"] = rng.choice(["north", "south", "1.5", "1.50", "elsewhere"], n_rows)
    table["ward"] = rng.integers(0, 5, n_rows)
    table["icd"] = rng.choice(["E11.9", "I10", "Z99"], n_rows)
    for name in ("age", "dose", "smoker", "region", "icd"):
        table.loc[rng.random(n_rows) < 0.1, name] = None
    return table


def target(name, table):
    rng = np.random.default_rng(1)
    z = (table["age"].fillna(50) - 60) / 40 + (table["region"] == "south") - 0.5 + 0.5 * rng.normal(size=len(table))
    return {
        "classes": np.where(z > 0, "yes", "no"),
        "truth": (z > 0).to_numpy(),
        "three": np.array(["a", "b", "c"])[np.digitize(z, (-0.5, 0.5))],
        "number": z.to_numpy(),
        "count": rng.poisson(np.exp(z.clip(-3, 2))),
        "amount": np.exp(z.clip(0.1, 3)).to_numpy(),
    }[name]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A folder for each case with the model, a table, and what R makes of both."""
    home = tmp_path_factory.mktemp("cases")
    table = make_table()
    for name, (kind, stated, estimator) in CASES.items():
        whole = table.assign(y=target(kind, table))
        bounds = TableBounds.from_toml(TARGETS[kind] + stated)
        encoder = TableEncoder(bounds=bounds).fit(whole)
        fitted = estimator.fit(encoder.transform(whole), whole["y"])
        (home / name).mkdir()
        text = Model(encoder.bounds_, fitted, "taciturn fit").to_json()
        (home / name / "model.json").write_text(text, encoding="utf-8")
        table[:1000].to_csv(home / name / "table.csv", index=False, na_rep="NA")
    run_r(home)
    return home


def run_r(home, package=PACKAGE):
    done = subprocess.run(
        [RSCRIPT, "--vanilla", Path(__file__).with_name("predictions.R"), package, home],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def largest_difference(case):
    """Between R's predictions and Python's, relative to the size of the numbers; every kind of prediction."""
    pipeline = load(case / "model.json")
    table = pd.read_csv(case / "table.csv", na_values=["NA"], keep_default_na=False)
    read = {name: np.genfromtxt(case / f"{name}.txt", delimiter=",", ndmin=2) for name in ("response", "link")}
    if hasattr(pipeline, "predict_proba"):
        response, link = pipeline.predict_proba(table), pipeline.decision_function(table)
        response = response[:, [1]] if response.shape[1] == 2 else response
        labels = np.array((case / "class.txt").read_text().splitlines())
        expected = np.array([str(label).upper() if isinstance(label, bool) else str(label)
                             for label in pipeline.predict(table).tolist()])  # fmt: skip
        assert (labels == expected).all()
    else:
        response, encoded = pipeline.predict(table), pipeline[0].transform(table)
        link = np.asarray(encoded) @ np.ravel(pipeline[1].coef_) + pipeline[1].intercept_
    pairs = [(read["response"], response), (read["link"], link)]
    differences = [
        np.max(np.abs(one - np.reshape(other, one.shape)) / np.maximum(1.0, np.abs(one))) for one, other in pairs
    ]
    return max(differences)


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_those_of_python(cases, name):
    coefficients = np.array(json.loads((cases / name / "model.json").read_text())["coefficients"])
    assert np.count_nonzero(coefficients) >= 3
    assert largest_difference(cases / name) <= 1e-12


@pytest.mark.parametrize(
    ("file", "line", "instead", "hits"),
    [
        ("predict.R", "scaled[values >= ends[2L]] <- 1", "", "numbers"),
        ("predict.R", "substr(normal_text(cells), 1L, group)", "as.character(cells)", "numbers"),
        ("predict.R", "features[, owner == at] <- column$features", "features[, owner == at] <- 0", "numbers"),
        ("predict.R", "cbind(scaled, as.numeric(gaps))", "cbind(scaled, 0)", "numbers"),
        ("predict.R", "max(ends[1L], 2^-16 * ends[2L])", "ends[2L] / 4", "counts"),
        ("terms.R", "products(first, second, `*`)", "products(second, first, `*`)", "terms"),
        ("terms.R", "+ 3 * (last - knot)", "- 3 * (last - knot)", "terms"),
    ],
)
def test_broken_encodings_are_noticed(cases, tmp_path, file, line, instead, hits):
    broken = shutil.copytree(PACKAGE, tmp_path / "R")
    text = (broken / file).read_text(encoding="utf-8")
    assert line in text
    (broken / file).write_text(text.replace(line, instead), encoding="utf-8")
    home = tmp_path / "cases"
    shutil.copytree(cases / hits, home / hits)
    run_r(home, broken)
    assert largest_difference(home / hits) > 1e-6


def test_intervals_are_those_of_python(cases):
    frame = load(cases / "intervals" / "model.json")[1].summary().to_frame()
    tidied = np.genfromtxt(cases / "intervals" / "tidy.txt", delimiter=",")
    bounds = Model.from_json((cases / "intervals" / "model.json").read_text()).bounds
    units = np.array([1.0 if step is None else step for step in bounds.feature_steps]) / bounds.feature_units
    share = np.append(units[[0, 3, 5, 7]], 1.0)
    for place, name in enumerate(["coefficient", "std error", "p", "lower", "upper"]):
        expected = frame[name].to_numpy() * (1.0 if name == "p" else share)
        np.testing.assert_allclose(tidied[:, place], expected, rtol=1e-9, atol=1e-12)
