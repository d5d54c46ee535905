"""What is not protected follows from a certificate's other fields, and every field of the registry can be filled."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from taciturn import (
    Budget,
    Certificate,
    CorrelationSelector,
    ObjectivePerturbationClassifier,
    SparseClassifier,
    compose,
)
from taciturn.core.errors import CertificateError
from taciturn.data.records import ADMISSIBLE, PUBLIC_LABELS
from taciturn.events import GaussianEvent
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import DERIVED, Release

PAGE = Path(__file__).parents[3] / "docs" / "certificates.md"


def make(**changes):
    details = {"relation": "zero-out", "public": {"records": 100}, "seeded": False, "arithmetic": "exact"}
    return certify([Release("a value", "Gaussian", 3.0, GaussianEvent(3.0))], Budget(30.0, 1e-6), **(details | changes))


def says(sentences, part):
    return any(part in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("changes", "listed", "part"),
    [
        ({"relation": "zero-out"}, True, "the number of records"),
        ({"relation": "replace-one"}, True, "the number of records"),
        ({"relation": "add-remove"}, True, "the number of records that was stated as public"),
        ({"relation": "add-remove", "public": {}}, False, "the number of"),
        ({"unit": "person"}, True, "the number of persons"),
        ({}, True, "names, types and order of the columns"),
        ({}, False, "the bounds of features"),
        ({"public": {"part 1": {"x_bound": 1.0}}}, True, "the bounds of features"),
        ({}, False, "the set of labels"),
        ({"public": {"classes": ["a", "b"]}}, True, "the set of labels"),
        ({"public": {"classes": ["a", "b"]}}, False, "taken from the data"),
        ({"public": {"classes": ["a"]}, "assumptions": (PUBLIC_LABELS,)}, True, "taken from the data"),
        ({}, False, "the seed"),
        ({"seeded": True}, True, "everything, from whoever knows the seed"),
    ],
)
def test_what_is_unprotected_follows_from_the_facts(changes, listed, part):
    assert says(make(**changes).unprotected, part) == listed


@pytest.mark.parametrize(
    ("changes", "listed", "part"),
    [
        ({}, True, "running time"),
        ({}, True, "a refusal"),
        ({"public": {"invalid": "raise"}}, True, "a refusal"),
        ({"public": {"invalid": "null"}}, False, "a refusal"),
        ({"public": {"invalid": "null"}, "assumptions": (ADMISSIBLE,)}, True, "a refusal"),
        ({"public": {"part 1": {"invalid": "null"}, "part 2": {"invalid": "raise"}}}, True, "a refusal"),
        ({}, False, "double precision"),
        ({"arithmetic": "float64"}, True, "double precision"),
        ({}, False, "steps of the solver"),
    ],
)
def test_side_channels_follow_from_the_facts(changes, listed, part):
    assert says(make(**changes).side_channels, part) == listed


def test_without_noise_everything_is_unprotected():
    certificate = dataclasses.replace(make(), status="not private", epsilon=math.inf)
    assert certificate.unprotected == ("everything: the result was computed without noise",)


def test_a_file_that_states_less_contradicts_itself():
    certificate = make(arithmetic="float64", public={"classes": ["a"]}, assumptions=(PUBLIC_LABELS,))
    content = json.loads(certificate.to_json())
    assert Certificate.from_json(json.dumps(content)) == certificate
    for name in DERIVED:
        assert content[name] == list(getattr(certificate, name))
        for at in range(len(content[name])):
            fewer = content | {name: content[name][:at] + content[name][at + 1 :]}
            with pytest.raises(CertificateError, match=f"^{name}: expected what follows from"):
                Certificate.from_json(json.dumps(fewer))
        for other in ([*content[name], "another"], list(reversed(content[name]))):
            with pytest.raises(CertificateError, match=f"^{name}: "):
                Certificate.from_json(json.dumps(content | {name: other}))


# ------------------------------------------------------------------ the registry

OWNER = None
"""What the owner of the data has to say."""

REGISTRY = {
    "dp_variant.variant_name": lambda c: "pure" if c.delta == 0.0 else "approximate",
    "dp_variant.data_domain": lambda c: f"{c.relation}, {dict(c.public)}",
    "dp_variant.unprotected_quantities": lambda c: "; ".join(c.unprotected),
    "privacy_loss.privacy_unit": lambda c: c.unit,
    "privacy_loss.privacy_unit_details": lambda c: f"{c.relation}; up to {c.group_size}",
    "privacy_loss.privacy_parameters.epsilon": lambda c: c.epsilon,
    "privacy_loss.privacy_parameters.delta": lambda c: c.delta,
    # A mu-GDP release is a function of a Gaussian one, whose Rényi curve is alpha mu^2 / 2.
    "privacy_loss.privacy_parameters.rho": lambda c: "none" if c.mu is None else c.mu**2 / 2.0,
    "privacy_loss.privacy_parameters_details": lambda c: f"{c.status}, by {c.bound}; {c.attack_rates()}",
    "accounting.post_processing": OWNER,
    "accounting.composition": lambda c: f"{len(c.events)} kinds of release, by {c.bound}, ordered: {c.ordered}",
    "implementation.preprocessing_and_hyperparameter_tuning": OWNER,
    "implementation.mechanisms": lambda c: [(release.noise, release.scale, release.count) for release in c.events],
    "implementation.justification": lambda c: f"{c.assumptions}, {c.side_channels}, {c.arithmetic}",
}


@pytest.fixture(scope="module")
def certificates():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 5))
    y = np.where(X[:, 0] > 0, "case", "control")
    estimators = (
        SparseClassifier(epsilon=4.0, x_bound=1.0, n_nonzero=2, random_state=0),
        ObjectivePerturbationClassifier(epsilon=2.0, random_state=0, relation="add-remove", n_public=400),
        CorrelationSelector(epsilon=1.0, delta=0.0, n_features_to_select=2, classes=("case", "control")),
    )
    found = [estimator.fit(X, y).certificate_ for estimator in estimators]
    return [*found, compose(found[0], make())]


@pytest.mark.parametrize("field", REGISTRY)
def test_every_field_is_filled_or_the_owner_s_to_say(field, certificates):
    fill = REGISTRY[field]
    for certificate in certificates:
        # What a reader has is the file.
        read = Certificate.from_json(certificate.to_json())
        value = OWNER if fill is OWNER else fill(read)
        assert (value is None) == (fill is OWNER)
        assert value not in ("", [], ())


def test_the_page_has_the_same_table():
    page = PAGE.read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    assert set(REGISTRY) <= set(rows)
    for field, fill in REGISTRY.items():
        assert ("the owner" in rows[field]) == (fill is OWNER), field
