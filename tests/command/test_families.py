"""Tables with a count, an amount, a time to an event and weights, from the template to a signed report for each."""

import json
import math
import re
import shutil

import numpy as np
import pytest
from commands import one_sentence, run
from studies import write_key

import taciturn

BOUNDS = """\
[target]
name = "{name}"
kind = "{kind}"
lower = {lower}
upper = {upper}
[columns.age]
type = "number"
lower = 18
upper = 100
[columns.smoker]
type = "boolean"
[columns.{other}]
type = "ignore"
"""
TARGETS = {
    "visits": ("count", 0, 40, "cost", "rate ratio"),
    "cost": ("amount", 10, 20_000, "visits", "ratio of means"),
}


def write_table(path, n=6000):
    rng = np.random.default_rng(0)
    age, smoker = rng.integers(18, 96, n), rng.random(n) < 0.3
    mean = np.exp(0.4 + 0.015 * (age - 55) + 0.5 * smoker)
    visits, cost = rng.poisson(mean), np.round(300.0 * mean * rng.exponential(size=n), 2)
    rows = zip(age, np.where(smoker, "yes", "no"), visits, cost, strict=True)
    lines = ["age,smoker,visits,cost", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_hospital_table_goes_from_init_to_a_signed_report(name, tmp_path):
    kind, lower, upper, other, ratio = TARGETS[name]
    write_table(tmp_path / "t.csv")
    assert run("init", "t.csv", "--target", name, cwd=tmp_path).code == 0
    template = (tmp_path / "bounds.toml").read_text(encoding="utf-8")
    assert ('# kind = "count"' in template) == (name == "visits")
    stated = BOUNDS.format(name=name, kind=kind, lower=lower, upper=upper, other=other)
    (tmp_path / "bounds.toml").write_text(stated, encoding="utf-8")
    key = write_key(tmp_path / "owner.pem")
    fitting = ("fit", "t.csv", "--bounds", "bounds.toml", "--epsilon", 5, "--inference", "--columns", "age,smoker")
    done = run(*fitting, "--seed", 1, "--sign", key, cwd=tmp_path)
    assert done.code == 0, done
    assert f"{ratio} per unit" in done.out
    # One year of age, and a smoker against others.
    page = (tmp_path / "model" / "report.html").read_text(encoding="utf-8")
    assert f"{ratio} per unit" in page
    stored = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    found = dict(zip(stored["features"], stored["coefficients"], strict=True))
    assert found["age"] / 41.0 == pytest.approx(0.015, abs=0.003)
    assert found["smoker"] == pytest.approx(0.5, abs=0.1)
    assert stored["intercept"] - math.log(300.0 if name == "cost" else 1.0) == pytest.approx(0.46, abs=0.1)
    assert run("verify", "model", cwd=tmp_path).code == 0
    done = run("score", "model", "t.csv", "--epsilon", 5, "--seed", 1, cwd=tmp_path)
    assert done.code == 0, done
    assert re.search(r"D2 .*\d", done.out)
    done = run("report", "model", "--score", "score.json", "-o", "page.html", cwd=tmp_path)
    assert done.code == 0, done
    assert "Calibration by bins of the prediction" in (tmp_path / "page.html").read_text(encoding="utf-8")
    done = run("predict", "model", "t.csv", "-o", "p.csv", cwd=tmp_path)
    assert done.code == 0, done
    predicted = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1, usecols=-1)
    assert lower <= predicted.min()
    assert predicted.mean() == pytest.approx(stored_mean(tmp_path / "t.csv", name), rel=0.05)


def stored_mean(path, name):
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return float(table[name].mean())


def test_a_method_without_the_family_is_refused(tmp_path):
    write_table(tmp_path / "t.csv", 50)
    stated = BOUNDS.format(name="visits", kind="count", lower=0, upper=40, other="cost")
    (tmp_path / "bounds.toml").write_text(stated, encoding="utf-8")
    done = run("fit", "t.csv", "--bounds", "bounds.toml", "--method", "frank-wolfe", cwd=tmp_path)
    assert done.code == 1
    assert "auto" in one_sentence(done)


# ------------------------------------------------------------------ times to an event, weights and exposures

COLUMNS = """\
[columns.age]
type = "number"
lower = 18
upper = 100
per = 10
[columns.smoker]
type = "boolean"
[columns.ward]
type = "category"
categories = ["medical", "surgical", "intensive"]
"""
TIMES = '[target]\nkind = "survival"\ntime = "months"\nevent = "died"\ncuts = [6, 12, 18, 24]\n' + COLUMNS
MEASURES = '[weight]\ncolumn = "survey_weight"\nupper = 4\n'
COUNTS = (
    '[target]\nname = "visits"\nkind = "count"\nlower = 0\nupper = 40\n[exposure]\ncolumn = "person_years"\nupper = 3\n'
    + MEASURES
    + COLUMNS
)
LABELS = '[target]\nname = "readmitted"\nclasses = ["no", "yes"]\n' + MEASURES + COLUMNS
STUDIES = {
    "died": (TIMES, "hazard ratio", 0.02, 0.5, ("survey_weight", "person_years", "visits", "readmitted")),
    "died, weighted": (TIMES + MEASURES, "hazard ratio", 0.02, 0.5, ("person_years", "visits", "readmitted")),
    "visits": (COUNTS, "rate ratio", 0.015, 0.5, ("months", "died", "readmitted")),
    "readmitted": (LABELS, "odds ratio", 0.02, 0.7, ("months", "died", "visits", "person_years")),
}


def write_hospital(path, n=8000):
    rng = np.random.default_rng(0)
    age, smoker = rng.integers(18, 96, n), rng.random(n) < 0.3
    ward = rng.choice(["medical", "surgical", "intensive"], n)
    death = rng.exponential(50.0 * np.exp(-0.02 * (age - 55) - 0.5 * smoker - 0.6 * (ward == "intensive")))
    leaves, years = rng.uniform(4.0, 30.0, n), np.round(rng.uniform(0.2, 3.0, n), 2)
    visits = rng.poisson(years * np.exp(0.4 + 0.015 * (age - 55) + 0.5 * smoker))
    readmitted = rng.random(n) < 1.0 / (1.0 + np.exp(0.5 - 0.02 * (age - 55) - 0.7 * smoker))
    yes = {True: "yes", False: "no"}
    columns = {
        "age": age, "smoker": [yes[bool(each)] for each in smoker], "ward": ward,
        "months": np.maximum(np.round(np.minimum(death, leaves), 1), 0.1),
        "died": [yes[bool(each)] for each in death <= leaves], "survey_weight": np.where(age > 60, 4.0, 1.0),
        "person_years": years, "visits": visits, "readmitted": [yes[bool(each)] for each in readmitted],
    }  # fmt: skip
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stated(name):
    text, *_, others = STUDIES[name]
    return text + "".join(f'[columns.{other}]\ntype = "ignore"\n' for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_goes_from_init_to_a_signed_report(name, tmp_path):
    _, ratio, per_year, of_smokers, _ = STUDIES[name]
    target, _, weighted = name.partition(", ")
    write_hospital(tmp_path / "t.csv")
    assert run("init", "t.csv", "--target", target, cwd=tmp_path).code == 0
    template = (tmp_path / "bounds.toml").read_text(encoding="utf-8")
    assert ('# kind = "survival"\n# time = "months"\n# event = "died"' in template) == (target == "died")
    assert "[weight]" in template
    assert "[exposure]" in template
    (tmp_path / "bounds.toml").write_text(stated(name), encoding="utf-8")
    key = write_key(tmp_path / "owner.pem")
    fitting = ("fit", "t.csv", "--bounds", "bounds.toml", "--epsilon", 5, "--inference", "--seed", 1)
    fitting += () if target == "died" else ("--columns", "age,smoker,ward")
    done = run(*fitting, "--sign", key, cwd=tmp_path)
    assert done.code == 0, done
    assert f"{ratio} per unit" in done.out
    page = (tmp_path / "model" / "report.html").read_text(encoding="utf-8")
    assert f"{ratio} per unit" in page
    stored = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    found = dict(zip(stored["features"], stored["coefficients"][0] if name == "readmitted" else stored["coefficients"],
                     strict=True))  # fmt: skip
    assert found["age"] / 41.0 == pytest.approx(per_year, abs=0.003)
    assert found["smoker"] == pytest.approx(of_smokers, abs=0.15)
    verified = run("verify", "model", "--public-key", write_public(tmp_path), cwd=tmp_path)
    assert verified.code == 0, verified
    model = taciturn.load(tmp_path / "model" / "model.json")
    done = run("predict", "model", "t.csv", "-o", "p.csv", cwd=tmp_path)
    assert done.code == 0, done
    if name != "died":
        assert "raked" in page
        assert "Weights: survey_weight, at most 4" in page
        assert stored["parameters"]["weight_bound"] == 4.0
    if target != "died":
        return
    assert "Survival and hazards" in page
    header = (tmp_path / "p.csv").read_text(encoding="utf-8").split("\n", 1)[0]
    assert header == "prediction,S(6),S(12),S(18),S(24)"
    curves = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3, 4))
    hazards = model["model"]
    assert hazards.predict_survival_function(np.zeros((1, 5))).shape == (1, 4)
    # Predictions average to the curve of all records, as they count, whose band covers them.
    band = hazards.survival_curve_
    table = np.genfromtxt(tmp_path / "t.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    means, plain = np.average(curves, axis=0, weights=table["survey_weight"]), curves.mean(axis=0)
    means, other = (means, plain) if weighted else (plain, means)
    assert np.all((band.lower - 0.01 < means) & (means < band.upper + 0.01))
    assert np.any((band.lower - 0.01 > other) | (other > band.upper + 0.01))


def write_public(folder):
    from cryptography.hazmat.primitives import serialization

    private = serialization.load_pem_private_key((folder / "owner.pem").read_bytes(), None)
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "owner.pub.pem").write_bytes(private.public_key().public_bytes(*form))
    return "owner.pub.pem"


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    folder = tmp_path_factory.mktemp("times")
    write_hospital(folder / "t.csv", 1500)
    (folder / "bounds.toml").write_text(stated("died"), encoding="utf-8")
    done = run("fit", "t.csv", "--bounds", "bounds.toml", "--epsilon", 20, "--seed", 1, cwd=folder)
    assert done.code == 0, done
    return folder


def test_what_has_no_use_for_times_says_what_has(times):
    fitting = ("fit", "t.csv", "--bounds", "bounds.toml", "-o", "other")
    for command, word in (
        (("select", "t.csv", "--bounds", "bounds.toml"), "--columns"),
        (("compare", "t.csv", "--bounds", "bounds.toml"), "fit"),
        ((*fitting, "--method", "frank-wolfe"), "auto"),
        ((*fitting, "--nonzero", 2), "--columns"),
        ((*fitting, "--select", "variables"), "--columns"),
        ((*fitting, "--task", "regress"), "survive"),
        (("score", "model", "t.csv", "--epsilon", 1), "score()"),
    ):
        done = run(*command, cwd=times)
        assert done.code == 1, command
        assert word in one_sentence(done)
    assert not (times / "other").exists()


def test_a_model_of_hazards_is_read_back_and_a_changed_one_refused(times):
    path = times / "model" / "model.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["task"] == "survive"
    # The reference level of the ward is left out, as baseline hazards are in the place of an intercept.
    assert content["coefficients"][content["features"].index("ward=medical")] == 0.0
    model = taciturn.load(path)["model"]
    assert model.cuts_.tolist() == [6, 12, 18, 24]
    assert model.baseline_hazard_.tolist() == content["hazards"]["baseline"]
    assert run("verify", "model", cwd=times).code == 0
    for change in (
        {"hazards": content["hazards"] | {"baseline": [-1.0, 1.0, 1.0, 1.0]}},
        {"hazards": content["hazards"] | {"exits": content["hazards"]["exits"][:-1]}},
        {"hazards": content["hazards"] | {"noise_std": -1.0}},
        {"hazards": {"baseline": content["hazards"]["baseline"]}},
        {"intercept": 1.0},
        {"parameters": content["parameters"] | {"cuts": [6, 12, 18]}},
        {"bounds": content["bounds"] | {"target": content["bounds"]["target"] | {"cuts": [6, 12, 18, 25]}}},
        {"task": "regress"},
    ):
        (times / "bad.json").write_text(json.dumps(content | change), encoding="utf-8")
        done = run("show", "bad.json", cwd=times)
        assert done.code == 1, change
        one_sentence(done)


def test_counts_below_zero_and_weights_beyond_their_bound_are_trimmed(tmp_path):
    write_hospital(tmp_path / "t.csv", 400)
    (tmp_path / "bounds.toml").write_text(stated("visits"), encoding="utf-8")
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    names, found = lines[0].split(","), []
    for visits, weight in (("0", "4"), ("-3", "7919"), ("1", "4"), ("0", "2")):
        cells = dict(zip(names, lines[1].split(","), strict=True)) | {"visits": visits, "survey_weight": weight}
        (tmp_path / "t.csv").write_text("\n".join((lines[0], ",".join(cells.values()), *lines[2:])), encoding="utf-8")
        done = run("fit", "t.csv", "--bounds", "bounds.toml", "--epsilon", 8, "--seed", 1, "-o", "model", cwd=tmp_path)
        assert done.code == 0, done
        found.append(json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))["coefficients"])
        shutil.rmtree(tmp_path / "model")
    assert found[0] == found[1]
    assert found[2] != found[0] != found[3]


def test_weights_of_another_method_are_refused(tmp_path):
    write_hospital(tmp_path / "t.csv", 50)
    (tmp_path / "bounds.toml").write_text(stated("readmitted"), encoding="utf-8")
    for command in (("fit", "t.csv", "--method", "two-stage"), ("select", "t.csv"), ("compare", "t.csv")):
        done = run(*command, "--bounds", "bounds.toml", cwd=tmp_path)
        assert done.code == 1
        assert "[weight]" in one_sentence(done)
