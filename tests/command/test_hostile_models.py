"""``load`` and ``taciturn show`` believe a certificate in a model file no more than one by itself."""

import json
import random

import pytest
from commands import run

from json_values import exchanged, paths
from taciturn import SparseClassifier, load
from taciturn.accounting import epsilon_of
from taciturn.app.model_file import Model
from taciturn.core.errors import CertificateError, TaciturnError
from taciturn.events import ExponentialEvent
from taciturn.tables import Column, TableBounds, TableSchema, Target

HOSTILE = [
    None, True, 0, -1, 0.5, 1e308, 2**53, 2**63, 10**400, "", "x", "inf", "proved", "not private", "replace-one",
    "\ud800", "\u202e\x1b[2J", [], [[]], [None], {}, {"a": 1}, {"kind": []}, {"kind": "not-private"},
    {"kind": "pure", "epsilon": 1e-9},
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    rng = random.Random(0)
    X = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(400)]
    y = ["ill" if row[0] > 0 else "well" for row in X]
    estimator = SparseClassifier(random_state=0, n_nonzero=2, classes=("ill", "well")).fit(X, y)
    bounds = TableBounds(Target("y", classes=("ill", "well")), {name: Column("number", -1, 1) for name in "abc"})
    schema = TableSchema(("a", "b", "c", "y"), ("number",) * 4)
    # Imports what takes its time once.
    epsilon_of(ExponentialEvent(1.0), 1e-6)
    return json.loads(Model(bounds.for_table(schema), estimator, "taciturn fit t.csv").to_json())


def test_an_exchanged_value_is_refused_by_both_in_one_sentence(model, tmp_path):
    rng = random.Random(16)
    places = [("certificate", *path) for path in paths(model["certificate"])]
    file = tmp_path / "model.json"
    shown = 0
    for _ in range(100):
        path, value = rng.choice(places), rng.choice(HOSTILE)
        file.write_text(json.dumps(exchanged(model, path, value)), encoding="utf-8")
        try:
            load(file)
            sentence = None
        except TaciturnError as error:
            sentence = str(error)
        ended = run("show", file)
        shown += sentence is None
        if sentence is None:
            assert (ended.code, ended.err) == (0, ""), (path, value)
            # Nothing that a terminal would obey.
            assert "\x1b[2J" not in ended.out
            assert "\u202e" not in ended.out
        else:
            assert ended.code == 1, (path, value)
            assert sentence.endswith(".")
            assert "\n" not in sentence
            assert "defect" not in ended.err
            assert "Traceback" not in ended.err
    assert 0 < shown < 50


def test_a_lower_claim_is_shown_to_nobody(model, tmp_path):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(exchanged(model, ("certificate", "epsilon"), 0.1)), encoding="utf-8")
    with pytest.raises(CertificateError, match=r"^epsilon=0\.1: expected at least (0\.99|1,)"):
        load(file)
    table = tmp_path / "t.csv"
    table.write_text("a,b,c,y\n0,0,0,ill\n", encoding="utf-8")
    for command in (("show", file), ("predict", file, table), ("score", file, table)):
        ended = run(*command, cwd=tmp_path)
        assert ended.code == 1
        assert "epsilon=0.1: expected at least" in " ".join(ended.err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "t.csv"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("classes",), ["ill", "hale"], "classes that contradict its bounds"),
        (("bounds", "target", "classes"), ["ill", "hale"], "classes that contradict its bounds"),
        (("parameters", "classes"), ["ill", "hale"], "classes that contradict its bounds"),
        (("certificate", "public", "classes"), ["ill", "hale"], "the certificate of a model with other classes"),
        (("certificate", "relation"), "add-remove", "unprotected: expected what follows from the relation"),
        (("parameters", "relation"), "replace-one", "the certificate of a fit under another relation"),
        (("parameters", "epsilon"), "inf", "a model without noise"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_parts_that_contradict_one_another_are_refused(model, tmp_path, path, value, sentence):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(model), encoding="utf-8")
    load(file)
    file.write_text(json.dumps(exchanged(model, path, value)), encoding="utf-8")
    with pytest.raises(TaciturnError, match=sentence):
        load(file)
    assert run("show", file).code == 1
