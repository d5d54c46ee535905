"""score.json: written and read again, and refused where it cannot be what a score wrote."""

import json

import numpy as np
import pytest

from taciturn import SparseClassifier, SparseRegressor, private_score
from taciturn.app.model_file import ScoreFile
from taciturn.core.errors import CertificateError, DataError, TaciturnError
from taciturn.core.validation import parse_strictly

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 3))


def model_of(kind, coefficients, intercept, **given):
    model = kind(**given)
    model.coef_, model.intercept_, model.n_features_in_ = np.array(coefficients), np.array(intercept), 3
    if "classes" in given:
        model.classes_ = np.array(given["classes"])
    return model


def score_of(kind, **given):
    noise = RNG.normal(size=600)
    if kind == "numbers":
        model = model_of(SparseRegressor, [1.0, 0.0, 0.5], 0.0, y_bounds=(-3.0, 3.0))
        return private_score(model, X, X[:, 0] + noise, metric="all", random_state=0, **given)
    if kind == "two":
        model = model_of(SparseClassifier, [[2.0, 0.0, 1.0]], [0.0], classes=("no", "yes"))
        return private_score(
            model, X, np.where(X[:, 0] + noise > 0, "yes", "no"), metric="all", random_state=0, **given
        )
    model = model_of(SparseClassifier, np.eye(3), [0.0, 0.0, 0.0], classes=(1, 2, 3))
    return private_score(model, X, 1 + X.argmax(axis=1), metric="all", random_state=0, **given)


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
@pytest.mark.parametrize("given", [{"epsilon": 1.0}, {"epsilon": float("inf")}, {"epsilon": 0.01}])
def test_what_was_written_is_read_again(kind, given):
    score = score_of(kind, **given)
    text = ScoreFile(score, "abc").to_json()
    assert parse_strictly(text) is not None
    read = ScoreFile.from_json(text)
    assert (read.score, read.model) == (score, "abc")
    assert read.score.measures == score.measures
    assert read.to_json() == text


def test_one_number_is_written_as_before():
    model = model_of(SparseClassifier, [[2.0, 0.0, 1.0]], [0.0], classes=(0, 1))
    score = private_score(model, X, (X[:, 0] > 0).astype(int), epsilon=1.0)
    content = json.loads(ScoreFile(score, "abc").to_json())
    assert content["version"] == 1
    assert (content["metric"], content["value"], content["noise_std"]) == ("accuracy", score.value, score.std)
    with pytest.raises(DataError, match="^score: expected all measures of a model, found one metric"):
        ScoreFile.from_json(json.dumps(content))


def changed(content, path, value):
    content = json.loads(json.dumps(content))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return json.dumps(content)


CHANGES = {
    "a better measure": (["measures", 0, "value"], lambda value: value + 1e-3),
    "a shorter interval": (["measures", 1, "upper"], lambda value: value - 1e-3),
    "a worse baseline": (["measures", 2, "baseline"], 0.1),
    "another name": (["measures", 0, "name"], "F1"),
    "another count": (["counts", 7], lambda value: value + 40.0),
    "counts of text": (["counts", 0], "7"),
    "fewer counts": (["counts"], lambda counts: counts[1:]),
    "no counts": (["counts"], None),
    "other bins": (["cells", "edges", 0], -2.0),
    "bins in no order": (["cells", "edges"], lambda edges: edges[::-1]),
    "bins of text": (["cells", "edges", 3], "0"),
    "no bins": (["cells"], {}),
    "bins of no tenths": (["cells", "edges"], lambda edges: edges[1:]),
    "cells of numbers": (["cells"], {"y_bounds": [0, 1], "targets": [0, 1, 2], "errors": [0, 1, 2]}),
    "less noise": (["noise_std"], 0.0),
    "negative noise": (["noise_std"], -1.0),
    "another level": (["confidence_level"], 0.99),
    "other classes": (["classes"], ["a", "b"]),
    "more classes": (["classes"], ["no", "yes", "perhaps"]),
    "no classes": (["classes"], None),
    "another budget": (["certificate", "epsilon"], 0.1),
    "another release": (["certificate", "public", "cells"], 12),
    "another metric": (["certificate", "public", "metric"], "accuracy"),
    "a model that is no text": (["model_sha256"], 7),
    "another version": (["version"], 3),
    "another format": (["format"], "taciturn model"),
    "a version that is no whole number": (["version"], 2.0),
    "a metric that is no text": (["metric"], 7),
    "one metric": (["metric"], "accuracy"),
    "a package that is no text": (["taciturn"], None),
    "a level that is text": (["confidence_level"], "0.95"),
    "records that are text": (["certificate", "public", "records"], "many"),
    "records that are no whole number": (["certificate", "public", "records"], 600.5),
    "no records": (["certificate", "public", "records"], None),
    "cells that are no whole number": (["certificate", "public", "cells"], float),
}

CHANGES_OF_NUMBERS = {
    "bounds of text": (["cells", "y_bounds"], ["-3.0", "3.0"]),
    "bounds in one text": (["cells", "y_bounds"], "03"),
    "bounds of truth values": (["cells", "y_bounds"], [False, True]),
    "bins between whole numbers": (["cells", "targets", 1], lambda edge: edge + 0.25),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_contradicts_itself_is_refused(name):
    content = json.loads(ScoreFile(score_of("two", epsilon=1.0), "abc").to_json())
    assert ScoreFile.from_json(json.dumps(content)).model == "abc"
    with pytest.raises((DataError, CertificateError)):
        ScoreFile.from_json(changed(content, *CHANGES[name]))


@pytest.mark.parametrize("name", CHANGES_OF_NUMBERS)
def test_cells_of_another_type_are_refused(name):
    content = json.loads(ScoreFile(score_of("numbers", epsilon=1.0), "abc").to_json())
    with pytest.raises(DataError):
        ScoreFile.from_json(changed(content, *CHANGES_OF_NUMBERS[name]))


def test_labels_of_another_type_than_the_certificates_are_refused():
    model = model_of(SparseClassifier, [[2.0, 0.0, 1.0]], [0.0], classes=(0, 1))
    score = private_score(model, X, (X[:, 0] > 0).astype(int), metric="all", epsilon=1.0)
    content = json.loads(ScoreFile(score, "abc").to_json())
    assert ScoreFile.from_json(json.dumps(content)).score.labels == (0, 1)
    with pytest.raises(DataError, match="the certificate of another release"):
        ScoreFile.from_json(changed(content, ["classes"], [False, True]))


def test_a_small_file_cannot_ask_for_much_memory():
    content = json.loads(ScoreFile(score_of("numbers", epsilon=1.0), "abc").to_json())
    many = list(range(100_001))
    for key in ("targets", "errors"):
        content["cells"][key] = many
    with pytest.raises(DataError, match="more cells than a score has"):
        ScoreFile.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"format": "taciturn score", "version": 2}', "[" * 10**5])
def test_what_is_no_score_is_refused_in_one_sentence(text):
    with pytest.raises(TaciturnError) as caught:
        ScoreFile.from_json(text)
    assert str(caught.value).startswith("score: expected a complete score.json")
