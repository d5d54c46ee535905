"""A table with a count and an amount, from the template to a signed report for each."""

import json
import math
import re

import numpy as np
import pytest
from commands import one_sentence, run
from studies import write_key

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
