"""model.json and back: every public estimator, bit for bit; every damage, one sentence."""

import json
import math
import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import taciturn
from taciturn import certificate_of, compose, load
from taciturn.app import model_file
from taciturn.app.model_file import Model, shown_noise
from taciturn.app.verify import VerificationError, verify_folder
from taciturn.core import validation
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.methods.registry import classes_of
from taciturn.tables import Column, TableBounds, TableEncoder, Target

PAGE = Path(__file__).parents[3] / "docs" / "model-file.md"
N = 300
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0, 110, N),
        "smoker": RNG.random(N) < 0.5,
        "region": RNG.choice(["north", "south"], N),
        "dose": RNG.normal(0, 1, N),
    }
)
SCORE = FRAME["age"] / 110 + FRAME["smoker"] + FRAME["dose"] / 3
COLUMNS = {
    "age": Column("number", 0, 110),
    "smoker": Column("boolean"),
    "region": Column("category", categories=("north", "south")),
    "dose": Column("number", -2.5, 3),
}
TARGETS = {
    "number": (Target("y", -1, 3), SCORE.to_numpy()),
    "words": (Target("y", classes=("well", "ill")), np.where(SCORE > 1, "ill", "well")),
    "truth": (Target("y", classes=(False, True)), (SCORE > 1).to_numpy()),
    "three": (Target("y", classes=(3, 1, 2)), np.digitize(SCORE, (0.7, 1.3)) + 1),
    "unstated": (Target("y"), np.where(SCORE > 1, "inf", "0")),
}
KINDS = classes_of("regressor", "classifier")
CASES = [
    (name, target)
    for name, kind in KINDS.items()
    for target in (["words", "truth", "three", "unstated"] if "Classifier" in name else ["number"])
    if (name, target) != ("ADMMClassifier", "three")
]


def fitted(name="SparseRegressor", target="number", frame=FRAME, **parameters):
    stated, y = TARGETS[target]
    if stated.task == "regress":
        parameters["y_bounds"] = (stated.lower, stated.upper)
    elif stated.classes is not None:
        parameters["classes"] = stated.classes
    bounds = TableBounds(stated, COLUMNS)
    encoder = TableEncoder(bounds=bounds).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taciturn.WeakBudgetWarning)
        estimator = KINDS[name](**({"random_state": 7, "x_bound": 1.0} | parameters)).fit(encoder.transform(frame), y)
    return Model(encoder.bounds_, estimator, 'taciturn fit "t.csv" --seed ...')


def same(first, second):
    """Equal to the last bit, in type, shape and value."""
    if isinstance(first, np.ndarray):
        return type(second) is np.ndarray and first.dtype == second.dtype and first.tobytes() == second.tobytes()
    return type(first) is type(second) and first == second


@pytest.mark.parametrize("name", KINDS)
def test_a_verifier_accepts_every_class_at_any_budget_and_no_budget_that_was_not_spent(tmp_path, name):
    path = tmp_path / "model.json"
    target = "words" if "Classifier" in name else "number"
    for epsilon, delta, relation in ((0.1, 1e-9, "zero-out"), (3.0, 1e-6, "replace-one"), (20.0, 1e-3, "add-remove")):
        public = {"n_public": N} if relation == "add-remove" else {}
        text = fitted(name, target, epsilon=epsilon, delta=delta, relation=relation, **public).to_json()
        path.write_text(text, encoding="utf-8")
        assert verify_folder(path).holds
        content = json.loads(text)
        content["parameters"]["epsilon"] *= 1.01
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(VerificationError, match="releases that cost its budget"):
            verify_folder(path)


def test_every_public_estimator_is_here():
    assert {name for name, _ in CASES} == {
        name for name in taciturn.__all__ if name.endswith(("Regressor", "Classifier"))
    }


@pytest.mark.parametrize(("name", "target"), CASES)
def test_a_model_comes_back_bit_for_bit(tmp_path, name, target):
    model = fitted(name, target)
    path = tmp_path / "model.json"
    path.write_text(model.to_json(), encoding="utf-8")
    loaded = load(path)
    before, after = model.pipeline(), loaded
    public = {key: value for key, value in vars(model.estimator).items() if key.endswith("_")}
    restored = {key: value for key, value in vars(loaded[-1]).items() if key.endswith("_")}
    assert set(restored) == set(public)
    # Whatever else a fit leaves has to be restored too.
    assert {key for key in vars(model.estimator) if key[0] == "_"} == {key for key in vars(loaded[-1]) if key[0] == "_"}
    assert all(same(public[key], restored[key]) for key in public if key != "certificate_")
    assert restored["certificate_"] == public["certificate_"]
    whole, encoder = certificate_of(loaded), loaded[0]
    # What a table has to be for its encoder is assumed besides.
    assert set(whole.assumptions) == {*model.certificate.assumptions, *encoder.assumptions}
    assert replace(whole, assumptions=model.certificate.assumptions) == model.certificate
    saved = model.estimator.get_params() | {"random_state": None}
    assert loaded[-1].get_params() == saved
    y = TARGETS[target][1]
    tables = (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME))
    for table in tables:
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            if hasattr(before, method):
                assert same(getattr(before, method)(FRAME), getattr(after, method)(table)), method
        assert before.score(FRAME, y) == after.score(table, y)
    # The model file of the model that was read is the same file.
    assert Model.from_json(model.to_json()).to_json() == model.to_json()
    assert pickle.loads(pickle.dumps(after)).predict(FRAME).tobytes() == after.predict(FRAME).tobytes()


def test_a_coefficient_that_is_off_by_one_bit_would_be_seen():
    model = fitted()
    text = model.to_json()
    coefficient = model.estimator.coef_[0]
    assert repr(float(coefficient)) in text
    other = text.replace(repr(float(coefficient)), repr(float(np.nextafter(coefficient, 9.0))), 1)
    read = Model.from_json(other)
    assert not same(model.estimator.coef_, read.estimator.coef_)
    assert not same(model.pipeline().predict(FRAME), read.pipeline().predict(FRAME))


def test_a_model_without_privacy_and_one_with_names_and_one_that_is_sparse():
    model = fitted(epsilon=math.inf)
    read = Model.from_json(model.to_json())
    assert read.estimator.epsilon == math.inf
    assert read.certificate.status == "not private"
    named = fitted("SparseClassifier", "three")
    frame = named.encoder.set_output(transform="pandas").transform(FRAME)
    named.estimator.fit(frame, TARGETS["three"][1])
    read = Model.from_json(named.to_json())
    assert read.estimator.feature_names_in_.tolist() == list(frame.columns)
    # With warnings as errors: an estimator that knows names is given names.
    assert same(read.pipeline().predict_proba(FRAME), named.pipeline().predict_proba(FRAME))
    for target in ("number", "three"):
        sparse = fitted("SparseRegressor" if target == "number" else "SparseClassifier", target)
        sparse.estimator.sparsify()
        read = Model.from_json(sparse.to_json())
        assert sp.issparse(read.estimator.coef_)
        assert same(read.pipeline().predict(FRAME), sparse.pipeline().predict(FRAME))


def test_the_bounds_of_the_fit_stay_with_the_model():
    model = fitted(epsilon=math.inf)
    expected = model.pipeline().predict(FRAME.assign(age=1e9))
    assert expected.max() <= 3
    model.estimator.set_params(y_bounds=(-0.1, 0.1))
    assert same(Model.from_json(model.to_json()).pipeline().predict(FRAME.assign(age=1e9)), expected)


def test_composed_certificates_are_kept():
    model = fitted()
    model.estimator.certificate_ = compose(model.certificate, fitted("HardThresholdRegressor").certificate)
    assert Model.from_json(model.to_json()).certificate == model.certificate


def test_the_file_does_not_tell_where_the_account_is():
    model = fitted()
    model.estimator.account = "postgresql://clerk:secret@host/study#patients"
    text = model.to_json()
    assert "secret" not in text
    assert "account" not in json.loads(text)["parameters"]
    assert Model.from_json(text).estimator.account is None
    stated = json.loads(text)
    stated["parameters"]["account"] = "sqlite:///other.db#patients"
    with pytest.raises(taciturn.DataError):
        Model.from_json(json.dumps(stated))


def test_the_file_is_readable_and_tells_no_seed():
    model = fitted(random_state=918273645)
    text = model.to_json()
    assert "918273645" not in text
    assert json.loads(text)["certificate"]["seeded"] is True
    assert len(text.splitlines()) == len(json.loads(text)) + 2
    assert text.isascii()


def test_a_file_written_by_hand_predicts_what_its_numbers_say():
    certificate = json.loads(fitted("FrankWolfeRegressor").certificate.to_json())
    by_hand = {
        "format": "taciturn model",
        "version": 3,
        "taciturn": "0.3.0",
        "task": "regress",
        "target": "income",
        "bounds": {
            "target": {"name": "income", "lower": 0, "upper": 100},
            "columns": {
                "age": {"type": "number", "lower": 20, "upper": 60},
                "region": {"type": "category", "categories": ["north", "south"]},
            },
            "missing": {"age": 30},
            "order": ["age", "region"],
        },
        "features": ["age", "region=north", "region=south"],
        "estimator": "FrankWolfeRegressor",
        "parameters": {
            "epsilon": 1.0, "delta": 1e-6, "relation": "zero-out", "n_public": None, "x_bound": 1.0,
            "y_bounds": [0, 100], "radius": 10.0, "loss": "huber", "residual_clip": "auto", "n_steps": "auto",
            "fit_intercept": True, "invalid": "raise",
        },
        "coefficients": [8.0, 2.0, -4.0],
        "intercept": 50,
        "classes": None,
        "inference": None,
        "noise": [0.5, 0.25, 0.75],
        "n_steps": 10,
        "sparse": False,
        "named": False,
        "certificate": certificate,
        "command": "by hand",
        "date": "2026-07-01",
    }  # fmt: skip
    model = Model.from_json(json.dumps(by_hand))
    table = pa.table({"region": ["north", "south", "moon"], "age": [50, None, 1e9]})
    # Ages 50, 30 and beyond 60 are 0.5, -0.5 and 1.
    assert model.pipeline().predict(table).tolist() == [50 + 4 + 2, 50 - 4 - 4, 50 + 8]
    assert model.feature_names == ("age", "region=north", "region=south")
    assert model.bounds.missing == {"age": 30}
    assert (model.estimator.radius, model.estimator.residual_clip) == (10.0, "auto")
    # South against north has the noise of both.
    assert shown_noise(model.estimator, model.bounds).tolist() == [[0.5, 0.0, math.hypot(0.25, 0.75)]]
    assert model.date == "2026-07-01"
    # The page describes the same keys, and those of times to an event.
    described = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8").partition("\nNumbers")[0], re.MULTILINE)
    assert [key for key in described if key != "hazards"] == list(by_hand)


# ------------------------------------------------------------------ damage


@pytest.fixture(scope="module")
def content():
    return {
        "regress": json.loads(fitted().to_json()),
        "classify": json.loads(fitted("SparseClassifier", "three").to_json()),
    }


def damaged(content, path, value):
    """A copy with one entry exchanged."""
    copy = json.loads(json.dumps(content))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(copy)


NAN, LARGE = float("nan"), float("1e400")
KEYS = (
    "format version taciturn task target bounds features estimator parameters coefficients intercept classes "
    "n_steps sparse named certificate command"
)
WRONG = [
    ("classify", [key], value)
    for key in KEYS.split()
    for value in ({}, [[]], 3.5, "x", True)
    if (key, value) not in [("command", "x"), ("taciturn", "x"), ("sparse", True), ("named", True)]
]
DAMAGE = [
    *[("regress", [key], KeyError) for key in KEYS.split()],
    *WRONG,
    ("regress", ["version"], 1),
    ("regress", ["version"], 4),
    ("regress", ["task"], "classify"),
    ("classify", ["task"], "regress"),
    ("regress", ["estimator"], "SparseClassifier"),
    ("regress", ["estimator"], "StandardScaler"),
    ("regress", ["estimator"], "private_score"),
    ("regress", ["estimator"], ["SparseRegressor"]),
    ("regress", ["parameters", "random_state"], 3),
    ("regress", ["parameters", "epsilon"], -1),
    ("regress", ["parameters", "epsilon"], KeyError),
    ("regress", ["parameters", "y_bounds"], [1, 0]),
    ("regress", ["parameters", "y_bounds"], "ab"),
    ("regress", ["parameters", "relation"], "none"),
    ("regress", ["parameters", "whatever"], 1),
    ("regress", ["coefficients", 0], NAN),
    ("regress", ["coefficients", 0], LARGE),
    ("regress", ["coefficients", 0], "0.5"),
    ("regress", ["coefficients", 0], None),
    ("regress", ["coefficients", 0], True),
    ("regress", ["coefficients", 0], 10**400),
    ("regress", ["coefficients"], [0.0]),
    ("regress", ["coefficients"], [[0.0] * 5]),
    ("regress", ["coefficients", 0], [0.0]),
    ("regress", ["coefficients", 0], [[0.0]]),
    ("regress", ["intercept"], [0.0]),
    ("regress", ["intercept"], NAN),
    ("regress", ["n_steps"], -1),
    ("regress", ["n_steps"], 1.5),
    ("regress", ["features"], ["age"]),
    ("regress", ["features", 0], "AGE"),
    ("regress", ["target"], "z"),
    ("regress", ["bounds", "order"], KeyError),
    ("regress", ["bounds", "order"], ["age", "age"]),
    ("regress", ["bounds", "order"], ["nobody"]),
    ("regress", ["bounds", "columns", "age", "lower"], 111),
    ("regress", ["bounds", "columns", "age", "lower"], NAN),
    ("regress", ["bounds", "target", "name"], 3),
    ("regress", ["bounds", "found_privately"], ["nobody"]),
    ("classify", ["classes"], ["a", "b"]),
    ("classify", ["classes"], [1, 1, 2]),
    ("classify", ["classes"], [1, "b", 2]),
    ("classify", ["classes"], [[1], [2], [3]]),
    ("classify", ["coefficients", 1], KeyError),
    ("regress", ["certificate", "epsilon"], "much"),
    ("regress", ["certificate", "events"], [3]),
    ("regress", ["certificate", "events"], [{"what": 1}]),
    ("regress", ["certificate", "schema"], 99),
    ("regress", ["certificate", "public"], 3),
]  # fmt: skip


@pytest.mark.parametrize(("task", "path", "value"), DAMAGE, ids=lambda part: str(part)[:40])
def test_a_damaged_file_is_one_sentence(content, task, path, value):
    # No key may be missing, and none of these values is what a model has there.
    with pytest.raises(TaciturnError) as caught:
        Model.from_json(damaged(content[task], path, value))
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 500


def test_a_file_of_another_version_names_the_program_to_use(content):
    text = damaged(content["regress"], ["version"], 4)
    text = text.replace(f'"taciturn": "{content["regress"]["taciturn"]}"', '"taciturn": "3.4"', 1)
    with pytest.raises(
        TaciturnError, match=r"^model: expected version 2 or 3, which .*; read it with taciturn 3\.4\.$"
    ):
        Model.from_json(text)


def test_whole_files_that_are_something_else(tmp_path, content):
    whole = json.dumps(content["regress"])
    for text in ("", "{}", "[]", "null", "NaN", whole[:-1], whole[: len(whole) // 2], whole + "}", "[" * 100_000):
        with pytest.raises(
            TaciturnError, match="^model: expected JSON with format 'taciturn model', got something else"
        ):
            Model.from_json(text)
    path = tmp_path / "model.json"
    with pytest.raises(ParameterError, match="^model='.*model.json': expected a file that exists"):
        load(path)
    with pytest.raises(ParameterError, match="expected a file, got a folder"):
        load(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ParameterError, match="got one of 0 bytes"):
        load(path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(TaciturnError, match="^model: expected JSON"):
        load(path)


# ------------------------------------------------------------------ parts that do not go together


def test_parts_that_do_not_go_together_are_refused():
    model, other = fitted(), fitted("SparseClassifier", "three")
    unresolved = TableBounds(model.bounds.target, COLUMNS)
    for bounds, estimator, message in (
        (model.bounds, other.estimator, "^estimator='SparseClassifier': expected one that can regress"),
        (other.bounds, model.estimator, "^estimator='SparseRegressor': expected one that can classify"),
        (unresolved, model.estimator, "^bounds=.*: expected bounds for a table"),
        (model.bounds, model.encoder, "^estimator='TableEncoder': expected one of Sparse"),
    ):
        with pytest.raises(ParameterError, match=message):
            Model(bounds, estimator, "")
    narrow = TableBounds(model.bounds.target, {"age": COLUMNS["age"]}, order=("age",))
    with pytest.raises(ParameterError, match="^n_features_in_=5: expected one for each feature"):
        Model(narrow, model.estimator, "")
    schema = taciturn.tables.TableSchema((*FRAME.columns, "y"), ("number", "boolean", "category", "number", "number"))
    made = Model(unresolved.for_table(schema), model.estimator, model.command)
    assert made.to_json() == model.to_json()
    assert is_classifier(other.estimator)
    other.estimator.set_params(classes=[(1,), (2,)])
    with pytest.raises(ParameterError, match="^classes=.*: expected a number, a text, a list of them or None"):
        other.to_json()


def test_work_on_a_long_list_is_bounded(monkeypatch):
    """By the number of values before a text is parsed, and by the length of a list before its values are looked at."""
    monkeypatch.setattr(validation, "_MOST_VALUES", 5)
    assert validation.parse_strictly("[1, 2, 3, 4, 5]") == [1, 2, 3, 4, 5]
    assert validation.parse_strictly("[1, 2, 3, 4, 5, 6]") is None
    monkeypatch.setattr(model_file, "_leaves", lambda value: pytest.fail("its values were looked at"))
    for value, shape in (([0.0] * 1000, (3,)), ([[0.0] * 1000], (1, 3)), ([[0.0] * 3] * 1000, (1, 3)), ([], (3,))):
        with pytest.raises(DataError, match="of another shape"):
            model_file.read_numbers("coefficients", value, shape)


def test_a_model_file_is_parsed_once_to_be_shown(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from taciturn.app.cli.main import app

    (tmp_path / "model.json").write_text('{"format": "taciturn model", "version": 2}')
    parsed, parse = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text, **how: parsed.append(text) or parse(text, **how))
    done = CliRunner().invoke(app, ["show", str(tmp_path)])
    assert "expected a complete model.json" in str(done.exception)
    assert len(parsed) == 1
