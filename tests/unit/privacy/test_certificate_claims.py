"""A certificate is believed only as far as its events prove it."""

import copy
import dataclasses
import json
import math
import pickle

import pytest

from taciturn import Budget, Certificate, certificate_of, compose
from taciturn.accounting import PrivacyFilter, epsilon_of
from taciturn.core.errors import CertificateError, TaciturnError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    PureEvent,
)
from taciturn.methods.releases import list_spends
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release

INF = math.inf


def make(*events, delta=1e-6, budget=30.0, **changes):
    releases = [Release("a test value", "Gaussian", 3.0, event) for event in events]
    details = {"relation": "zero-out", "public": {}, "seeded": False, "arithmetic": "exact"}
    return certify(releases, Budget(budget, delta), **(details | changes))


def with_claim(certificate, **changes):
    return json.dumps(json.loads(certificate.to_json()) | changes)


def objective(*, replaced=False):
    return ObjectivePerturbationEvent(log_jacobian=0.1, shift=0.1, replaced=replaced)


CASES = {
    "gaussian": make(GaussianEvent(5.0)),
    "selections": make(ExponentialEvent(0.1) * 50, ExponentialEvent(0.5)),
    "any order": make(ExponentialEvent(0.1) * 50, ExponentialEvent(0.5), ordered=False),
    "pure": make(PureEvent(0.1), PureEvent(0.3), delta=0.0),
    "approximate": make(ApproximateEvent(0.5, 1e-7)),
    "objective": make(objective()),
    "group": make(GaussianEvent(5.0)).for_group(4),
    "composed": compose(make(GaussianEvent(5.0)), make(GaussianEvent(7.0))),
    "sum": compose(make(GaussianEvent(5.0), delta=1e-6), make(PureEvent(1.0), delta=0.0)),
}


def test_the_sum_is_a_sum_and_the_others_are_not():
    assert {name for name, case in CASES.items() if case.bound == "sum"} == {"sum"}
    assert {name for name, case in CASES.items() if case.parts} == {"sum"}


@pytest.mark.parametrize("name", CASES)
def test_a_claim_is_held_against_its_events(name):
    certificate = CASES[name]
    assert Certificate.from_json(certificate.to_json()) == certificate
    # More than needed is true as well, except where parts are listed with their own.
    assert Certificate.from_json(with_claim(certificate, epsilon=2.0 * certificate.epsilon)).epsilon > 0.0
    for lower in (0.0, 0.5 * certificate.epsilon, 0.99999 * certificate.epsilon):
        with pytest.raises(CertificateError, match=r"^epsilon=.*: expected at least .*; do not rely on this certif"):
            Certificate.from_json(with_claim(certificate, epsilon=lower))
        claimed = dataclasses.replace(certificate, epsilon=lower)
        for composition in (
            lambda claimed=claimed: compose(claimed),
            lambda claimed=claimed: compose(claimed, claimed),
        ):
            with pytest.raises(CertificateError, match=r"^epsilon="):
                composition()
    if certificate.delta > 0.0:
        with pytest.raises(CertificateError):
            Certificate.from_json(with_claim(certificate, delta=certificate.delta / 10.0))


def test_whoever_asks_for_the_certificate_of_a_pipeline_gets_no_lie():
    class Fitted:
        certificate_ = dataclasses.replace(make(GaussianEvent(5.0)), epsilon=0.01)

    with pytest.raises(CertificateError, match=r"^epsilon=0\.01: expected at least"):
        certificate_of(Fitted())


def test_the_sentence_names_what_the_events_prove_rounded_up():
    certificate = make(GaussianEvent(5.0))
    with pytest.raises(CertificateError) as caught:
        Certificate.from_json(with_claim(certificate, epsilon=0.1))
    needed = float(str(caught.value).split("at least ")[1].split(",")[0])
    assert certificate.epsilon <= needed <= certificate.epsilon * (1.0 + 1e-5)


@pytest.mark.parametrize("leak", [0.0, 0.5e-6, 0.999e-6])
def test_the_tolerance_is_within_what_the_accountant_keeps_back(leak):
    # Shows the record with a chance of leak, and is as good as silent otherwise.
    outright = (ApproximateEvent(1e-12, leak),) if leak else ()
    certificate = make(GaussianEvent(5.0), *outright)
    # What passes has to be proved at the certificate's own delta with nothing kept back: closed form, no accountant.
    lowest = certificate.epsilon
    for share in (1e-12, 1e-11, 1e-10, 1e-9, 2e-9, 5e-9, 1e-8, 2e-8, 3e-8, 1e-7, 1e-6):
        try:
            lowest = Certificate.from_json(with_claim(certificate, epsilon=(1.0 - share) * certificate.epsilon)).epsilon
        except CertificateError:
            break
    else:
        pytest.fail("nothing was refused")
    mu, phi = 1.0 / 5.0, lambda x: math.erfc(-x / math.sqrt(2.0)) / 2.0
    exact = phi(-lowest / mu + mu / 2.0) - math.exp(lowest) * phi(-lowest / mu - mu / 2.0)
    assert leak + (1.0 - leak) * exact <= certificate.delta
    assert lowest < certificate.epsilon


def test_pure_claims_have_no_tolerance():
    certificate = make(PureEvent(0.1), PureEvent(0.3), delta=0.0)
    assert certificate.epsilon == math.fsum((0.1, 0.3))
    with pytest.raises(CertificateError, match="expected at least 0.4"):
        Certificate.from_json(with_claim(certificate, epsilon=math.nextafter(certificate.epsilon, 0.0)))


# ------------------------------------------------------------------ contradictions


def test_a_claim_without_releases_is_refused():
    for epsilon in (1.0, 1e-9):
        with pytest.raises(CertificateError, match="expected 0 where no release is listed; releases are missing"):
            Certificate.from_json(with_claim(make(GaussianEvent(5.0)), events=[], epsilon=epsilon))
    free = make(delta=0.0)
    assert Certificate.from_json(free.to_json()) == free


@pytest.mark.parametrize("replaced", [True, False])
def test_a_relation_that_the_events_do_not_know_is_refused(replaced):
    relations = ["replace-one"] if replaced else ["zero-out", "add-remove"]
    certificate = make(objective(replaced=replaced), relation=relations[0])
    for relation in ("replace-one", "zero-out", "add-remove"):
        # What is unprotected follows from the relation, and goes with it.
        unprotected = list(dataclasses.replace(certificate, relation=relation).unprotected)
        changes = {"relation": relation, "unprotected": unprotected}
        text = with_claim(certificate, **changes, epsilon=2.0 * certificate.epsilon)
        if relation in relations:
            assert Certificate.from_json(text).relation == relation
        else:
            with pytest.raises(CertificateError, match=f"^relation='{relation}': expected the relation that"):
                Certificate.from_json(text)
            with pytest.raises(CertificateError, match=f"^relation='{relation}'"):
                compose(dataclasses.replace(certificate, relation=relation))


def test_a_status_stronger_than_the_events_is_refused():
    assumed = make(objective())
    refused = pytest.raises(CertificateError, match="^status='proved': expected 'proved under a numerical assumption'")
    with refused:
        Certificate.from_json(with_claim(assumed, status="proved"))
    with refused:
        compose(dataclasses.replace(assumed, status="proved"))
    weaker = Certificate.from_json(with_claim(make(PureEvent(1.0)), status="proved under a numerical assumption"))
    assert weaker.status == "proved under a numerical assumption"
    for status in ("proved", "proved under a numerical assumption"):
        with pytest.raises(CertificateError, match="^status="):
            Certificate.from_json(with_claim(make(NotPrivateEvent()), status=status, epsilon=1.0))


def test_no_protection_is_infinite_and_nothing_else_is():
    for certificate, epsilon in ((make(NotPrivateEvent()), 1.0), (make(GaussianEvent(5.0)), "inf")):
        with pytest.raises(CertificateError, match="expected infinity where the status is 'not private'"):
            Certificate.from_json(with_claim(certificate, epsilon=epsilon))


def test_a_published_claim_is_the_authors_and_its_proof_is_checked():
    certificate = make(GaussianEvent(5.0))
    claim = {"status": "as published", "bound": "none", "epsilon": 0.01}
    for proved in (certificate.epsilon, 2.0 * certificate.epsilon, "inf", None):
        read = Certificate.from_json(with_claim(certificate, proved_epsilon=proved, **claim))
        assert (read.epsilon, read.proved_epsilon) == (0.01, INF if proved == "inf" else proved)
    with pytest.raises(CertificateError, match=r"^proved_epsilon=0\.5: expected at least 0\.8"):
        Certificate.from_json(with_claim(certificate, proved_epsilon=0.5, **claim))
    with pytest.raises(CertificateError, match="^proved_epsilon=9.0: expected none except beside a published claim"):
        Certificate.from_json(with_claim(certificate, proved_epsilon=9.0))


# ------------------------------------------------------------------ parts


def test_parts_prove_a_sum_that_the_events_together_do_not():
    total = CASES["sum"]
    assert epsilon_of(total.event, total.delta) > total.epsilon
    assert [(part.releases, part.delta) for part in total.parts] == [(1, 1e-6), (1, 0.0)]
    nested = compose(total, make(PureEvent(1.0), delta=0.0))
    assert (nested.bound, len(nested.parts), nested.epsilon) == ("sum", 3, pytest.approx(total.epsilon + 1.0))
    assert Certificate.from_json(nested.to_json()) == nested
    assert nested.for_group(2).parts == ()
    free = compose(make(delta=0.0), nested)
    assert Certificate.from_json(free.to_json()) == free


def test_parts_are_checked_one_by_one():
    content = json.loads(CASES["sum"].to_json())
    first, second = content["parts"]
    half = [first | {"epsilon": first["epsilon"] / 2}, second]
    for parts in (
        half,
        [first],
        [second, first],
        [first, second, second],
        [first | {"delta": 0.9}, second],
        [first | {"delta": 0.0}, second],
        [first | {"releases": 2}, second | {"releases": 0}],
        [{**first, "releases": 0, "epsilon": 0.0}, {**second, "releases": 2}],
    ):
        with pytest.raises(CertificateError, match=r"^(parts|epsilon)[=:]"):
            Certificate.from_json(json.dumps(content | {"parts": parts}))
    with pytest.raises(CertificateError):
        Certificate.from_json(json.dumps(content | {"parts": half, "epsilon": 0.6 * content["epsilon"]}))


def test_published_claims_compose_with_what_is_proved_of_each():
    claim = dataclasses.replace(make(GaussianEvent(5.0)), status="as published", epsilon=0.1, bound="none")
    claim = dataclasses.replace(claim, proved_epsilon=make(GaussianEvent(5.0)).epsilon)
    total = compose(claim, make(PureEvent(1.0), delta=0.0))
    assert total.proved_epsilon == claim.proved_epsilon + 1.0
    assert Certificate.from_json(total.to_json()) == total
    with pytest.raises(CertificateError, match="^proved_epsilon="):
        Certificate.from_json(with_claim(total, proved_epsilon=1.0))


# ------------------------------------------------------------------ privacy filters


def filtered():
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    budget.gaussian("a sum", share=0.3, count=4)
    budget.selection("a median", share=0.2)
    budget.selection("some columns", share=0.1, count=3)
    budget.gaussian("a gradient", share=budget.remaining, count=7)
    details = {"relation": "zero-out", "public": {}, "seeded": False, "arithmetic": "exact"}
    return certify(list_spends(budget.spent()), Budget(1.0, 1e-6), **details)


def test_what_a_filter_paid_for_is_followed_line_by_line():
    certificate = filtered()
    total = compose(certificate, make(PureEvent(0.1), delta=0.0), certificate)
    for sound in (certificate, total, certificate.for_group(2)):
        assert Certificate.from_json(sound.to_json()) == sound
    content = json.loads(certificate.to_json())
    for at, line in enumerate(content["events"]):
        for changes in (
            # Less noise than is paid for, more than remained, another mechanism, a line left out of the chain.
            {"scale": 0.99 * line["scale"]},
            {"scale": 1e-200},
            {"scale": 0.0},
            {"remaining": 1.01 * line["remaining"] + 1e-3},
            {"remaining": 1e308},
            {"noise": "Gumbel" if line["noise"] == "Gaussian" else "Gaussian", "scale": line["scale"] / 4.0},
            # The first line would be a Gaussian release by itself, and rightly so.
            *([{"remaining": None}] if at > 0 else []),
        ):
            events = [*content["events"][:at], line | changes, *content["events"][at + 1 :]]
            with pytest.raises(CertificateError, match="^events: expected noise that costs what is stated for it"):
                Certificate.from_json(json.dumps(content | {"events": events}))
    # Less privacy for a price is a lie, more is not.
    events = [line | {"scale": 1.01 * line["scale"]} for line in content["events"]]
    assert Certificate.from_json(json.dumps(content | {"events": events})).epsilon == certificate.epsilon


# ------------------------------------------------------------------ bombs


@pytest.mark.parametrize(
    "event",
    [
        ExponentialEvent(0.1) * 2**60,
        ComposedEvent((ExponentialEvent(0.1), ExponentialEvent(0.2))) * 10**9,
        ComposedEvent(tuple(ExponentialEvent(0.1 + 1e-6 * i) * 100_000 for i in range(60))),
    ],
    ids=["a count", "alternating runs", "long runs"],
)
def test_what_would_take_for_ever_is_refused_at_once(event):
    release = Release("x", "Gumbel", 1.0, event)
    certificate = dataclasses.replace(make(PureEvent(1.0)), events=(release,))
    for attempt in (lambda: Certificate.from_json(certificate.to_json()), lambda: compose(certificate)):
        with pytest.raises(CertificateError, match="^events: expected as many releases, and"):
            attempt()


def test_groups_that_would_take_for_ever_are_refused_at_once():
    with pytest.raises(CertificateError, match="and as many records of one person, as can be accounted for, got more"):
        make(objective()).for_group(10**6)
    assert make(PureEvent(1e-3), delta=0.0).for_group(1000).epsilon == pytest.approx(1.0)


def test_events_inside_one_another_have_an_end():
    content = json.loads(make(PureEvent(1.0)).to_json())
    for depth in (40, 300):
        event = content["events"][0]["event"]
        for _ in range(depth):
            event = {"kind": "composed", "events": [event]}
        text = json.dumps(content | {"events": [content["events"][0] | {"event": event}]})
        with pytest.raises(CertificateError, match="^event=.*: expected at most 32 events inside one another"):
            Certificate.from_json(text)
    with pytest.raises(CertificateError, match="^text: expected JSON"):
        Certificate.from_json('{"format": "taciturn-certificate", "events": ' + "[" * 100_000)


def test_two_values_for_one_key_are_refused():
    text = make(PureEvent(1.0), delta=0.0).to_json()
    assert text.count('"epsilon": 1.0,') == 1
    with pytest.raises(CertificateError, match="^text: expected JSON"):
        Certificate.from_json(text.replace('"epsilon": 1.0,', '"epsilon": 0.1, "epsilon": 1.0,'))


def test_fields_that_are_not_known_are_refused():
    with pytest.raises(CertificateError, match="expected the fields of a certificate, got also 'region'; read it with"):
        Certificate.from_json(with_claim(make(PureEvent(1.0)), region="north"))


def test_the_unit_and_the_head_of_an_account_are_checked():
    stated = make(PureEvent(1.0), unit="person", account_head="0123456789abcdef" * 4)
    assert Certificate.from_json(stated.to_json()) == stated
    for wrong in ({"unit": "household"}, {"unit": None}, {"account_head": "12"}, {"account_head": 7}):
        with pytest.raises(CertificateError, match=next(iter(wrong))):
            Certificate.from_json(with_claim(stated, **wrong))
    with pytest.raises(CertificateError, match="unit: expected one and the same"):
        compose(stated, make(PureEvent(1.0)))


# ------------------------------------------------------------------ copies


def test_copies_are_equal_and_not_accounted_for_again(monkeypatch):
    certificates = [*CASES.values(), make(NotPrivateEvent(), public={"part": {"x": [1, None]}})]
    monkeypatch.setattr("taciturn.privacy.certificate.check_claim", lambda _: pytest.fail("accounted for again"))
    for certificate in certificates:
        for made in (pickle.loads(pickle.dumps(certificate)), copy.copy(certificate), copy.deepcopy(certificate)):
            assert made == certificate
            with pytest.raises(TypeError):
                made.public["x"] = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"assumptions": [[]]},
        {"assumptions": "abc"},
        {"errata": [None]},
        {"events": [1]},
        {"events": 7},
        {"parts": [{}]},
        {"public": [1]},
        {"bound": "guess"},
        {"bound": None},
        {"seeded": 1},
        {"ordered": "yes"},
        {"group_size": 2**63},
        {"group_size": True},
        {"epsilon": 10**400},
        {"epsilon": True},
        {"delta": None},
    ],
    ids=str,
)
def test_types_are_checked_in_memory_too(changes):
    with pytest.raises(TaciturnError) as caught:
        dataclasses.replace(make(PureEvent(1.0)), **changes)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "changes", [{"scale": None}, {"scale": INF}, {"count": 2**63}, {"count": 0}, {"what": 3}, {"event": 1.0}], ids=str
)
def test_lines_are_checked_in_memory_too(changes):
    with pytest.raises(TaciturnError) as caught:
        dataclasses.replace(Release("x", "Gaussian", 1.0, PureEvent(1.0)), **changes)
    assert str(caught.value).endswith(".")
