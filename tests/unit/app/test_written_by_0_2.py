"""Certificates and models that version 0.2 wrote still load, state the same and predict the same.

``tests/data/written_by_0_2.json`` holds what the code of version 0.2.0 wrote, seeded: a model of every class, standard
errors, no noise, selectors, scalers, scores, persons, groups, relations, a composition and a published claim.
"""

import hashlib
import inspect
import json
import math
import operator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import taciturn
from taciturn import Certificate
from taciturn.accounting import best_bound
from taciturn.app.model_file import CLASSES, VERSION, Model, model_digest
from taciturn.core.errors import CertificateError
from taciturn.events import for_group

WRITTEN = json.loads((Path(__file__).parents[2] / "data" / "written_by_0_2.json").read_text(encoding="utf-8"))
MODELS = WRITTEN["models"]
CERTIFICATES = WRITTEN["certificates"] | {name: model["certificate"] for name, model in MODELS.items()}

LATER = {"select": "columns", "groups": None, "weight_bound": None, "person_weight": "mean", "exposure_bound": None}
"""What a model of 0.2 was fitted with, in the words of today: single features, and neither weights nor exposures."""


def read(name):
    return Certificate.from_json(json.dumps(CERTIFICATES[name]))


def test_every_class_of_models_is_here():
    assert {content["estimator"] for content in MODELS.values()} <= set(CLASSES)
    assert len({content["estimator"] for content in MODELS.values()}) >= 14


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_states_what_it_stated(name):
    certificate = read(name)
    assert json.loads(certificate.to_json()) == CERTIFICATES[name] | {"taciturn": taciturn.__version__}
    rates = certificate.attack_rates()
    proved = certificate.epsilon if certificate.is_proved else certificate.proved_epsilon
    assert (rates is None) == (proved is None or math.isinf(proved))
    if rates is not None:
        for level, rate in zip(rates.fpr, rates.tpr, strict=True):
            assert level <= rate <= min(1.0, (math.exp(proved) * level + certificate.delta) * (1 + 1e-5))


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_lower_claim_is_refused(name):
    stored = CERTIFICATES[name]
    field = "proved_epsilon" if stored["status"] == "as published" else "epsilon"
    if stored[field] in (None, "inf", 0.0):
        return
    certificate = read(name)
    whole = for_group(certificate.event, certificate.group_size)
    together = best_bound(whole, certificate.delta, ordered=certificate.ordered).epsilon
    for share in (0.5, 0.99):
        with pytest.raises(CertificateError, match=rf"^{field}="):
            Certificate.from_json(json.dumps(stored | {field: share * min(stored[field], together)}))


@pytest.mark.parametrize("field", ["parts", "unit", "account_head", "unprotected", "side_channels"])
def test_a_certificate_without_a_field_is_refused(field):
    stored = {name: value for name, value in CERTIFICATES["composed"].items() if name != field}
    with pytest.raises(CertificateError, match=f"expected a complete certificate, found a problem with '{field}'"):
        Certificate.from_json(json.dumps(stored))


def in_one_table(errors):
    """Errors of 0.2 in the present form: normal quantiles, no allowance, and nothing known about confounding."""
    if errors is None:
        return None
    size = len(errors["std_error"])
    added = {"degrees": [[None] * size], "allowance": [[0.0] * size], "confounded": [[]] * size}
    return errors | added | {name: [errors[name]] for name in ("std_error", "sampling", "privacy")}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_as_it_was(name):
    model = Model.from_json(json.dumps(MODELS[name]))
    again = json.loads(model.to_json())
    assert again.pop("certificate") == MODELS[name]["certificate"] | {"taciturn": taciturn.__version__}
    written = {field: value for field, value in MODELS[name].items() if field != "certificate"}
    # Parameters that came later have their defaults, in the classes that have them.
    known = inspect.signature(CLASSES[written["estimator"]]).parameters
    later = {parameter: value for parameter, value in LATER.items() if parameter in known}
    written["parameters"] = written["parameters"] | later
    assert again == written | {
        "taciturn": taciturn.__version__,
        "version": VERSION,
        "inference": in_one_table(written["inference"]),
        # Not known of a model of 0.2.
        "noise": None,
        "date": None,
    }


@pytest.mark.parametrize("name", MODELS)
def test_the_digest_of_a_model_is_that_of_its_file(name):
    # In the lines of the file, which this version writes with other keys.
    text = "{\n" + ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in MODELS[name].items()) + "\n}\n"
    assert model_digest(Model.from_json(text)) == hashlib.sha256(text.encode()).hexdigest()


PEOPLE = [
    {"age": age, "smoker": smoker, "region": region}
    for age in (0.0, 30.0, 55.0, 80.0, 110.0)
    for smoker in (True, False)
    for region in ("north", "south", "elsewhere")
]


def encoded(person):
    """The features of one record, as docs/model-file.md describes them."""
    return [
        2.0 * person["age"] / 110.0 - 1.0,
        float(person["smoker"]),
        float(person["region"] == "north"),
        float(person["region"] == "south"),
    ]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_what_its_numbers_say(name, tmp_path):
    stored = MODELS[name]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    pipeline = taciturn.load(path)
    table = pa.Table.from_pylist(PEOPLE)
    classifier = stored["classes"] is not None
    (weights,) = stored["coefficients"] if classifier else [stored["coefficients"]]
    (intercept,) = stored["intercept"] if classifier else [stored["intercept"]]
    margins = [math.fsum([intercept, *map(operator.mul, weights, encoded(person))]) for person in PEOPLE]
    if not classifier:
        # Some regressors clip what they predict to the bounds of the target, others do not.
        predicted, expected = (np.clip(values, -1.0, 3.0) for values in (pipeline.predict(table), margins))
        assert predicted.tolist() == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-12)
        assert np.any((expected > -1.0) & (expected < 3.0))
        return
    chances = [1.0 / (1.0 + math.exp(-margin)) for margin in margins]
    assert pipeline.predict_proba(table)[:, 1].tolist() == pytest.approx(chances, rel=1e-12)
    assert pipeline.predict(table).tolist() == [stored["classes"][margin > 0.0] for margin in margins]
