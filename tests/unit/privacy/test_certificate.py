import dataclasses
import json
import math

import numpy as np
import pytest

from taciturn import Budget, Certificate, compose
from taciturn.accounting import best_bound, epsilon_of
from taciturn.core.errors import CertificateError, ParameterError, TaciturnError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    PureEvent,
)
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release

ASSUMED = "proved under a numerical assumption"
OBJECTIVE = ObjectivePerturbationEvent(log_jacobian=0.1, shift=0.1, replaced=False)


def make(*events, delta=1e-6, budget=None, relation="zero-out", **changes):
    releases = [Release("a test value", "Gaussian", 3.0, event) for event in events]
    details = {"relation": relation, "public": {"records": 100}, "seeded": False, "arithmetic": "exact"}
    return certify(releases, Budget(budget or math.inf, delta), **(details | changes))


def test_certificates_state_the_accounted_cost():
    certificate = make(GaussianEvent(5.0), GaussianEvent(5.0))
    assert certificate.status == "proved"
    assert certificate.epsilon == pytest.approx(epsilon_of(GaussianEvent(5.0) * 2, 1e-6))
    assert certificate.delta == 1e-6


def test_a_budget_that_was_all_but_spent_is_stated_as_such():
    spent = epsilon_of(GaussianEvent(5.0), 1e-6)
    assert make(GaussianEvent(5.0), budget=spent * 1.0005).epsilon == spent * 1.0005
    assert make(GaussianEvent(5.0), budget=spent * 1.1).epsilon == pytest.approx(spent)


def test_a_plan_that_overspends_gets_no_certificate():
    with pytest.raises(CertificateError, match="expected at most the budget of 0.1"):
        make(GaussianEvent(1.0), budget=0.1)


@pytest.mark.parametrize("event", [OBJECTIVE, OBJECTIVE * 3, ComposedEvent((PureEvent(0.1), OBJECTIVE))])
def test_a_perturbed_objective_is_proved_under_a_numerical_assumption(event):
    certificate = make(event, PureEvent(0.1))
    assert (certificate.status, certificate.is_proved) == (ASSUMED, True)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert str(certificate).startswith("Differentially private under a numerical assumption (epsilon = ")
    assert certificate.for_group(2).status == ASSUMED
    assert make(event, NotPrivateEvent()).status == "not private"


def test_composition_takes_the_weakest_status_of_its_parts():
    claim = dataclasses.replace(make(PureEvent(1.0)), status="as published")
    from_strong_to_weak = [make(PureEvent(1.0)), make(OBJECTIVE), claim, make(NotPrivateEvent())]
    for stronger, one in enumerate(from_strong_to_weak):
        for other in from_strong_to_weak[stronger:]:
            assert compose(one, other).status == compose(other, one).status == other.status
    assert [part.is_proved for part in from_strong_to_weak] == [True, True, False, False]
    both = compose(make(OBJECTIVE), make(GaussianEvent(10.0)))
    # One accountant for both, not the sum: the status is no reason to be loose.
    assert both.epsilon == best_bound(both.event, 2e-6, ordered=False).epsilon


def test_a_certificate_is_frozen():
    certificate = make(PureEvent(1.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.epsilon = 0.1
    with pytest.raises(TypeError):
        certificate.public["records"] = 1


@pytest.mark.parametrize(
    "certificate",
    [
        make(GaussianEvent(5.0) * 20, ExponentialEvent(0.01) * 1000, PureEvent(0.05)),
        make(NotPrivateEvent()),
        make(PureEvent(1.0), delta=0.0, public={"classes": np.array(["a", "b"]), "y_bounds": (0.0, np.float64(2))}),
        make(PureEvent(1.0), seeded=True, arithmetic="float64", assumptions=("x", "y"), relation="replace-one"),
        make(GaussianEvent(5.0)).for_group(3),
    ],
)
def test_json_round_trip(certificate):
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    assert Certificate.from_json(text).to_json() == text
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


def test_json_of_another_version_is_refused_in_one_sentence():
    content = json.loads(make(PureEvent(1.0)).to_json()) | {"schema": 99, "taciturn": "9.9"}
    with pytest.raises(CertificateError, match=r"schema=99: expected 1, .* read the certificate with taciturn 9\.9"):
        Certificate.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"format": "other"}'])
def test_other_text_is_refused(text):
    with pytest.raises(CertificateError, match="expected JSON with format 'taciturn-certificate'"):
        Certificate.from_json(text)


@pytest.mark.parametrize("field", ["epsilon", "events", "seeded", "relation"])
def test_damaged_certificates_are_refused(field):
    content = json.loads(make(PureEvent(1.0)).to_json())
    del content[field]
    with pytest.raises(CertificateError, match=f"problem with '{field}'"):
        Certificate.from_json(json.dumps(content))


@pytest.mark.parametrize(("field", "value"), [("status", "certain"), ("relation", "x"), ("arithmetic", "int")])
def test_unknown_words_are_refused(field, value):
    content = json.loads(make(PureEvent(1.0)).to_json()) | {field: value}
    with pytest.raises(TaciturnError, match=f"{field}="):
        Certificate.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", -5),
        ("epsilon", "abc"),
        ("epsilon", True),
        ("delta", 2),
        ("group_size", "two"),
        ("seeded", "maybe"),
        ("assumptions", "abc"),
        ("public", [1]),
        ("events", [1]),
        ("events", 7),
    ],
)
def test_wrong_types_are_refused_in_one_sentence(field, value):
    content = json.loads(make(PureEvent(1.0)).to_json()) | {field: value}
    with pytest.raises(TaciturnError):
        Certificate.from_json(json.dumps(content))


def test_composition_uses_one_accountant_and_beats_the_sum():
    parts = [make(GaussianEvent(10.0) * 10, delta=1e-7) for _ in range(4)]
    total = compose(*parts)
    assert total.delta == pytest.approx(4e-7)
    assert total.epsilon == pytest.approx(epsilon_of(GaussianEvent(10.0) * 40, 4e-7), rel=1e-6)
    assert total.epsilon < 0.8 * sum(part.epsilon for part in parts)
    assert len(total.events) == 4
    assert total.public["part 3"] == {"records": 100}


def test_composition_holds_for_every_order_of_the_fits():
    many, large = make(ExponentialEvent(0.1) * 400, delta=0.005), make(ExponentialEvent(1.0), delta=0.005)
    one, other = compose(many, large), compose(large, many)
    assert one.epsilon == other.epsilon
    assert not one.ordered
    in_either_order = [
        best_bound(ComposedEvent(events), 0.01).epsilon
        for events in ((many.event, large.event), (large.event, many.event))
    ]
    # Reading the arguments as the order of execution would understate one of the two.
    assert in_either_order[0] != pytest.approx(in_either_order[1], rel=0.01)
    assert one.epsilon >= max(in_either_order)
    assert one.epsilon < 1.03 * max(in_either_order)


def test_groups_compose_as_groups():
    alone = make(GaussianEvent(20.0) * 5, delta=1e-7)
    together = compose(alone.for_group(3), alone.for_group(3))
    assert together.epsilon == pytest.approx(epsilon_of(GaussianEvent(20.0 / 3) * 10, 2e-7), rel=1e-6)
    assert together.group_size == 3


def test_composition_is_never_worse_than_the_sum():
    parts = [make(PureEvent(0.5), delta=0.0), make(ApproximateEvent(0.5, 1e-6), delta=1e-5)]
    total = compose(*parts)
    assert total.epsilon <= 1.0 + 1e-9
    assert total.delta == 1e-5


def test_nothing_added_changes_nothing():
    fit = make(GaussianEvent(5.0), budget=epsilon_of(GaussianEvent(5.0), 1e-6) * 1.0005)
    free = make(delta=0.0, public={})
    assert compose(free, fit).epsilon == fit.epsilon


def test_composition_keeps_the_worst_of_everything():
    total = compose(make(PureEvent(1.0)), make(PureEvent(1.0), seeded=True, arithmetic="float64"))
    assert total.seeded
    assert total.arithmetic == "float64"
    lost = compose(make(PureEvent(1.0)), make(NotPrivateEvent()))
    assert lost.status == "not private"
    assert math.isinf(lost.epsilon)


def test_one_certificate_composes_to_itself_and_none_is_refused():
    certificate = make(PureEvent(1.0))
    assert compose(certificate) is certificate
    with pytest.raises(CertificateError, match="expected at least one"):
        compose()


def test_different_relations_or_groups_do_not_compose():
    with pytest.raises(CertificateError, match="relation: expected one and the same, got 'replace-one', 'zero-out'"):
        compose(make(PureEvent(1.0)), make(PureEvent(1.0), relation="replace-one"))
    with pytest.raises(CertificateError, match="group_size: expected one and the same"):
        compose(make(PureEvent(1.0)), make(PureEvent(1.0)).for_group(2))


def test_groups_are_accounted_anew():
    pure = make(PureEvent(0.5), delta=0.0).for_group(4)
    assert pure.epsilon == pytest.approx(2.0)
    gaussian = make(GaussianEvent(20.0) * 5).for_group(3)
    assert gaussian.epsilon == pytest.approx(epsilon_of(GaussianEvent(20.0 / 3) * 5, 1e-6))
    assert gaussian.group_size == 3
    assert gaussian.for_group(2).epsilon == pytest.approx(epsilon_of(GaussianEvent(20.0 / 6) * 5, 1e-6))
    assert make(PureEvent(1.0), delta=0.0).for_group(1).epsilon == 1.0
    with pytest.raises(ParameterError, match="k=0"):
        make(PureEvent(1.0)).for_group(0)
    with pytest.raises(CertificateError, match="k=2: expected a group small enough"):
        make(ApproximateEvent(0.5, 1e-6)).for_group(2)


def test_certificates_are_values():
    assert len({make(PureEvent(1.0)), make(PureEvent(1.0)), make(PureEvent(2.0))}) == 2


def test_factors_in_words_are_rounded_up():
    # e = 2.71828: a bound of 2.718 would be false.
    assert "a factor of at most 2.719" in str(make(PureEvent(1.0), delta=0.0))


def test_published_claims_do_not_extend_to_groups():
    claimed = dataclasses.replace(make(PureEvent(1.0)), status="as published")
    with pytest.raises(CertificateError, match="as published"):
        claimed.for_group(2)


def test_words_name_what_a_reader_must_know():
    certificate = make(
        GaussianEvent(5.0), seeded=True, assumptions=("the set of labels is public",), relation="add-remove"
    )
    text = str(certificate)
    for part in (
        f"epsilon = {certificate.epsilon:.6g}, delta = 1e-06",
        "one record more",
        "a test value (once, Gaussian noise of 3 sensitivities)",
        "records = 100",
        "provided that the set of labels is public",
        "Arithmetic: exact",
    ):
        assert part in text
    seed = ", but seeded and for reproduction only, since whoever knows the seed can undo the noise: "
    assert text.startswith("Differentially private (epsilon")
    assert f"delta = 1e-06){seed}leaving one record out" in text
    assert "eed" not in str(dataclasses.replace(certificate, seeded=False))
    assert str(make(NotPrivateEvent(), seeded=True)).startswith(f"No privacy guarantee{seed}the result")
    assert "may reveal any record" in str(make(NotPrivateEvent()))
    assert "up to 3 records of one person" in str(certificate.for_group(3))
    assert "replacing one record by anything else" in str(make(PureEvent(1.0), relation="replace-one"))
    assert "does not depend on the data at all" in str(make(delta=0.0))
    assert "NOT verified" in str(dataclasses.replace(certificate, status="as published"))


def test_composition_keeps_errata_and_what_can_be_proved():
    claim = dataclasses.replace(
        make(PureEvent(1.0)), status="as published", proved_epsilon=3.0, errata=("a constant is wrong",)
    )
    sound = make(PureEvent(0.5), delta=0.0)
    both = compose(claim, sound)
    assert both.status == "as published"
    assert both.proved_epsilon == 3.5
    assert both.errata == ("a constant is wrong",)
    unknown = dataclasses.replace(claim, proved_epsilon=None)
    assert compose(unknown, sound).proved_epsilon is None
