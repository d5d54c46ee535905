"""``taciturn arena``: where results go, and methods and data sets of others."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from taciturn.app.cli.main import app
from taciturn.core.errors import ParameterError
from taciturn_research.arena import report
from taciturn_research.arena.catalogue import DATA_SETS, METHODS, add
from taciturn_research.arena.report import PUBLISHED, setting_in_words
from taciturn_research.arena.run import Result, results_in
from taciturn_research.harness import FILE_NAME, Config, read_additions

MINE = """
import numpy as np
from taciturn_research.arena.catalogue import add
from taciturn_research.arena.methods import Fitted, Method
from taciturn_research.arena.sets import DataSet, Records, divided_by

def records(seed, folder):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (200, 4))
    return Records(X, X[:, 0], truth=np.arange(4) == 0)

def fit(data_set, problem, epsilon, seed, column):
    places = {"first": 0, "last": 3}
    return Fitted(problem.X_test[:, places[column]], np.arange(4) == places[column])

def settings(data_set, quick):
    return ({"column": "last"}, {"column": "first"})

add(DataSet("my set", "regression", 4, 1, 2.0, records, divided_by(1.0), "none", error="mse"))
add(Method("my method", "sound", ("regression",), fit, settings))
"""


def invoke(*arguments):
    return CliRunner().invoke(app, ["arena", *map(str, arguments)], catch_exceptions=False)


def published_bytes():
    return {path.name: path.read_bytes() for path in (PUBLISHED / "results.md", PUBLISHED / "summary.csv")}


@pytest.mark.slow
def test_a_file_adds_a_method_and_a_data_set_in_worker_processes_too(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    before = published_bytes()
    call = [sys.executable, "-m", "taciturn", "arena", "--with", "mine.py", "--data-set", "my set"]
    call += ["--method", "my method", "--epsilon", "1", "--seeds", "2", "--jobs", "2", "--out", "out"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fits = [json.loads(line) for line in (tmp_path / "out" / FILE_NAME).read_text(encoding="utf-8").splitlines()]
    mine = [each for each in fits if each["config"]["method"] == "my method"]
    assert {(each["config"]["setting"], each["config"]["seed"]) for each in mine} == {
        (setting, seed) for setting in ('{"column": "first"}', '{"column": "last"}') for seed in range(2)
    }
    # A setting that is text is in the report, which is below --out and nowhere else.
    written = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert "| 1 | my method | column first | 0.000 |" in written
    assert "my set,1,my method,column first,2," in (tmp_path / "out" / "summary.csv").read_text(encoding="utf-8")
    assert published_bytes() == before


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"radius": 0.5, "steps": 100}, "radius 0.5, steps 100"),
        ({"rule": "select", "steps": 3}, "rule select, steps 3"),
        ({"delta": None}, "delta None"),
        ({}, ""),
    ],
)
def test_settings_are_numbers_or_text(setting, words):
    assert setting_in_words(json.dumps(setting)) == words


@pytest.mark.parametrize("publish", [False, True])
def test_only_publishing_replaces_the_report_of_the_repository(tmp_path, monkeypatch, publish):
    monkeypatch.setattr(report, "PUBLISHED", tmp_path / "published")
    results = results_in(tmp_path / "out")
    results.add(Result(Config("diabetes", "PrivateLasso", 1.0, "{}", 0, None), 0.5, 0.5, 3, 0.1))
    before = published_bytes()
    done = invoke("--report-only", "--out", tmp_path / "out", *(["--publish"] if publish else []))
    assert done.exit_code == 0
    assert (tmp_path / "published" / "results.md").exists() is publish
    assert (tmp_path / "out" / "results.md").exists() is not publish
    assert published_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data-set", "magic"], "--data-set='magic': expected one of "),
        (["--method", "magic"], "--method='magic': expected a family, or one of "),
        (["--forget", "magic"], "--forget='magic': expected a family, or one of "),
    ],
)
def test_unknown_names_are_refused_before_anything_is_written(tmp_path, arguments, sentence):
    with pytest.raises(ParameterError, match=sentence):
        invoke(*arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_others_add_is_not_published(tmp_path):
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    with pytest.raises(ParameterError, match="--publish=True: expected no --with"):
        invoke("--with", tmp_path / "mine.py", "--publish", "--out", tmp_path / "out")
    assert "my set" not in DATA_SETS


def test_a_name_is_given_once_and_a_file_that_fails_says_why(tmp_path):
    with pytest.raises(ParameterError, match="name='diabetes': expected a name that no other has"):
        add(DATA_SETS["diabetes"])
    with pytest.raises(ParameterError, match="name='default': expected a name that no other has"):
        add(METHODS["default"])
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"--with='broken.py': expected a file that runs; ModuleNotFoundError: No"):
        read_additions(broken)
