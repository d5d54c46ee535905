"""A certificate with any of its values exchanged is refused in one sentence, or says nothing that it does not prove."""

import dataclasses
import json
import math

import pytest

from json_values import exchanged, paths
from taciturn import Budget, Certificate, compose
from taciturn.accounting import best_bound
from taciturn.core.errors import CertificateError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PureEvent,
    for_group,
)
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release

# As JSON text, since some of it is not what Python would write.
HOSTILE = [
    "null", "true", "false", "0", "-0.0", "1", "-1", "0.5", "2", "1.5", "1e-300", "5e-324", "1e308", "1e999", "-1e999",
    "NaN", "Infinity", "-Infinity", str(2**31), str(2**53), str(2**63), str(2**64), "1" + "0" * 400, '""', '"x"',
    '"inf"', '"nan"', '"1.0"', '"proved"', '"as published"', '"not private"', '"replace-one"', '"sum"', '"pure"',
    '"\\ud800"', '"\\u202e\\u001b[2J\\u0000\\n"', json.dumps("long " * 40_000), "[]", "[[]]", "[null]", "[1]", '["a"]',
    "{}", '{"a": 1}', '{"kind": "pure", "epsilon": 1e-9}', '{"kind": []}', '{"kind": "not-private"}',
    '{"kind": "repeated", "event": {"kind": "exponential-selection", "epsilon": 1e-9}, "count": 9007199254740993}',
    '[{"what": "x", "noise": "y", "scale": 1, "count": 1, "event": {"kind": "gaussian", "noise_multiplier": 1e9}}]',
    "[" * 60 + "]" * 60, "[" * 5000 + "]" * 5000, '{"a":' * 400 + "1" + "}" * 400, "[" + "1," * 20_000 + "1]",
]  # fmt: skip
MARK = "put it here"


def make(*events, delta=1e-6, **changes):
    releases = [Release("a value", "Gaussian", 3.0, event) for event in events]
    details = {"relation": "zero-out", "public": {"records": 100, "classes": ["a", "b"]}, "seeded": True}
    return certify(releases, Budget(30.0, delta), arithmetic="exact", **(details | changes))


OBJECTIVE = ObjectivePerturbationEvent(0.1, 0.1, replaced=False)
MIXED = ComposedEvent((GaussianEvent(20.0) * 3, ExponentialEvent(0.01), ApproximateEvent(0.01, 1e-9)))
PARALLEL = ParallelEvent((MIXED, PureEvent(0.01)))
BASES = {
    "one": make(MIXED * 2, PARALLEL, OBJECTIVE, OppositeSelectionsEvent(0.01, 0.005), assumptions=("it holds",)),
    "sum": compose(make(GaussianEvent(5.0)), make(PureEvent(1.0), delta=0.0)),
    "halves": certify(
        [Release("a value", "Gaussian", 3.0, GaussianEvent(20.0), half=half) for half in (1, 1, 2)],
        Budget(30.0, 1e-6),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    ),
    "published": Certificate.from_json(
        json.dumps(
            json.loads(make(GaussianEvent(5.0)).to_json())
            | {"status": "as published", "proved_epsilon": 2.0, "errata": ["a constant is wrong"], "bound": "none"}
        )
    ),
}


def written(content, path, text):
    """The content as text, with the value at a path exchanged for what a text says."""
    return json.dumps(exchanged(content, path, MARK)).replace(json.dumps(MARK), text)


def sentence_of(error):
    text = str(error)
    assert text.endswith("."), text[:200]
    assert "\n" not in text
    assert len(text) < 600
    return text


def check_honest(certificate):
    """What was read proves what it states, prints, and comes back."""
    assert Certificate.from_json(certificate.to_json()) == certificate
    str(certificate).encode("utf-8")
    assert str(certificate).replace("\n", "").isprintable()
    hash(certificate)
    check_proved(certificate)
    check_bounded(certificate)


def check_bounded(certificate):
    """Tests of membership are bounded by numbers between those of a guess and of certainty."""
    rates = certificate.attack_rates()
    if rates is not None:
        assert all(level <= rate <= 1.0 for level, rate in zip(rates.fpr, rates.tpr, strict=True))
        assert 0.0 <= rates.advantage <= 1.0


def check_proved(certificate):
    """By the search for the smallest epsilon, where reading asks whether the one that is stated is proved."""
    stated = certificate.epsilon if certificate.is_proved else certificate.proved_epsilon
    assert not certificate.is_proved or not math.isinf(stated)
    if stated is None or math.isinf(stated) or certificate.parts:
        return
    whole = for_group(certificate.event, certificate.group_size)
    needed = best_bound(whole, certificate.delta, ordered=certificate.ordered).epsilon
    assert needed <= stated * (1.0 + 1e-6)
    assert stated == 0.0 or certificate.events or certificate.status == "as published"


@pytest.mark.parametrize("name", BASES)
def test_an_exchanged_value_is_refused_or_proved(name):
    content = json.loads(BASES[name].to_json())
    best_bound(BASES[name].event, 1e-9)  # Imports what takes its time once.
    refused = 0
    mutations = [(path, text) for path in paths(content) for text in HOSTILE]
    for path, text in mutations:
        try:
            certificate = Certificate.from_json(written(content, path, text))
        except CertificateError as error:
            sentence_of(error)
            refused += 1
            certificate = None
        if certificate is not None:
            check_honest(certificate)
    # Texts may be others, numbers larger; but most of what is exchanged must be seen.
    assert 0.75 * len(mutations) < refused < len(mutations)


@pytest.mark.parametrize("name", BASES)
def test_a_missing_or_additional_key_is_refused(name):
    content = json.loads(BASES[name].to_json())
    for path in paths(content):
        if isinstance(path[-1], str) and path[0] != "public":
            copy = json.loads(json.dumps(content))
            place = copy
            for key in path[:-1]:
                place = place[key]
            del place[path[-1]]
            # These were added to what earlier versions wrote.
            added = (
                "distance", "parts", "records", "fixed_sign", "remaining", "half", "unit", "account_head",
                "unprotected", "side_channels",
            )  # fmt: skip
            if path[-1] not in added:
                with pytest.raises(CertificateError):
                    Certificate.from_json(json.dumps(copy))
            place["another"] = 1
            with pytest.raises(CertificateError):
                Certificate.from_json(json.dumps(copy))


def test_a_lie_would_be_found_by_this_test():
    for name in ("one", "published"):
        check_proved(BASES[name])
        lower = {"epsilon" if name == "one" else "proved_epsilon": 0.1}
        with pytest.raises(AssertionError):
            check_proved(dataclasses.replace(BASES[name], **lower))
