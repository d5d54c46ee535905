"""Certificates of releases about two halves of the records."""

import copy
import dataclasses
import itertools
import json
import math

import pytest

from taciturn import Budget, Certificate, compose
from taciturn.accounting import PrivacyFilter, best_bound
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.events import (
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    PureEvent,
    alternatives,
    fold,
    for_group,
)
from taciturn.methods.releases import list_spends
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release

DELTA = 1e-6
DETAILS = {"relation": "zero-out", "public": {}, "seeded": False, "arithmetic": "exact"}
A, B, C = GaussianEvent(5.0), GaussianEvent(7.0), PureEvent(0.1)
SENTENCE = (
    "The two halves of the records are drawn at random without looking at the data, and one record is in one of them, "
    "so that the cost is the larger of the two, not the sum."
)


def line(event, half=None, count=1):
    return Release("a test value", "Gaussian", 3.0, event, count, half=half)


def make(*lines, delta=DELTA, budget=30.0, **changes):
    return certify([line(*each) for each in lines], Budget(budget, delta), **(DETAILS | changes))


def half_of_a_fit(half, epsilon=1.0, distance=1e-12):
    budget = PrivacyFilter(Budget(epsilon, DELTA), distance)
    budget.selection("some columns", share=0.3, count=3)
    budget.gaussian("a gradient", share=budget.remaining, count=7)
    return list_spends(budget.spent(), half)


def fitted(epsilon=1.0, **changes):
    """Each half spends the whole budget."""
    lines = (*half_of_a_fit(1, epsilon), *half_of_a_fit(2, epsilon, 1e-10))
    return certify(lines, Budget(epsilon, DELTA), **(DETAILS | changes))


def epsilon_of(event, delta=DELTA):
    return best_bound(event, delta).epsilon


# ------------------------------------------------------------------ lines


def test_a_pair_of_halves_costs_the_larger_one():
    certificate = make((A, 1), (B, 2), (B, 2))
    assert certificate.event == ComposedEvent((ParallelEvent((ComposedEvent((A,)), ComposedEvent((B, B)))),))
    assert certificate.epsilon == max(epsilon_of(A), epsilon_of(B * 2))
    around = make((C,), (A, 1), (B, 2), (C,))
    assert around.epsilon == pytest.approx(max(epsilon_of(C * 2 + A), epsilon_of(C * 2 + B)))


@pytest.mark.parametrize(
    ("halves", "expected"),
    [
        ((None, None), [2]),
        ((1,), [1]),
        ((2,), [1]),
        ((2, 1), [2]),
        ((1, 1), [2]),
        ((2, 2), [2]),
        ((1, None, 2), [3]),
        ((1, 2), [1, 1]),
        ((1, 2, 2, 1), [2, 3]),
        ((1, 2, 1, 2), [2, 2, 2, 2]),
        ((2, 1, 2), [2, 2]),
        ((1, 1, 2, None, 1), [3, 4]),
        ((None, 1, 2, None), [3, 3]),
    ],
)
def test_only_a_first_half_directly_before_a_second_one_is_a_pair(halves, expected):
    certificate = make(*((C, half) for half in halves))
    found = [sum(fold(each).values()) for each in alternatives(certificate.event)]
    assert sorted(found) == expected
    assert certificate.epsilon == epsilon_of(C * max(expected))
    assert (SENTENCE in str(certificate)) == (len(expected) > 1)
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_a_half_is_the_first_or_the_second():
    for bad in (0, 3, -1, 1.5, "1", True):
        with pytest.raises(ParameterError, match="^half="):
            line(A, bad)
    assert [line(A, half).half for half in (None, 1, 2)] == [None, 1, 2]


def test_words_name_the_half():
    first, second = line(A, 1), line(NotPrivateEvent(), 2, 3)
    assert str(first) == "a test value (first half of the records) (once, Gaussian noise of 3 sensitivities)"
    assert str(second) == "a test value (second half of the records) (3 times, without noise)"
    assert "half" not in str(line(A))


def test_spends_are_listed_by_half():
    for half in (None, 1, 2):
        assert {release.half for release in half_of_a_fit(half)} == {half}
    budget = PrivacyFilter(Budget(math.inf, 0.0))
    budget.gaussian("a sum", share=1.0)
    (free,) = list_spends(budget.spent(), 2)
    assert (free.half, free.noise) == (2, "none")
    certificate = certify((*list_spends(budget.spent(), 1), free), Budget(math.inf, 0.0), **DETAILS)
    assert certificate.status == "not private"


# ------------------------------------------------------------------ JSON


def test_halves_are_written_and_read():
    certificate = fitted()
    content = json.loads(certificate.to_json())
    assert [entry["half"] for entry in content["events"]] == [1, 1, 2, 2]
    assert content["schema"] == 1
    assert Certificate.from_json(json.dumps(content)) == certificate
    whole = make((A,), (C,))
    content = json.loads(whole.to_json())
    assert Certificate.from_json(json.dumps(content)) == whole
    for entry in content["events"]:
        assert entry.pop("half") is None
    with pytest.raises(CertificateError, match="found a problem with 'half'"):
        Certificate.from_json(json.dumps(content))


@pytest.mark.parametrize("bad", [0, 3, -1, 1.0, "1", True, [], {}])
def test_other_halves_are_refused_in_a_sentence(bad):
    content = json.loads(fitted().to_json())
    content["events"][0]["half"] = bad
    with pytest.raises(CertificateError, match=r"^half=.*: expected (1, 2 or null|a whole number); the certificate"):
        Certificate.from_json(json.dumps(content))


# ------------------------------------------------------------------ claims


def test_each_half_may_spend_the_whole_budget():
    certificate = fitted()
    assert certificate.epsilon == 1.0
    assert epsilon_of(ComposedEvent(tuple(release.total for release in certificate.events))) > 1.4
    # A second filter on the same records is refused where the halves are not stated.
    lines = [dataclasses.replace(release, half=None) for release in certificate.events]
    with pytest.raises(CertificateError, match="expected at most the budget of 1.0"):
        certify(lines, Budget(1.0, DELTA), **DETAILS)


def test_forged_halves_are_refused():
    certificate = fitted()
    content = json.loads(certificate.to_json())
    refused, sentences = [], set()
    for halves in itertools.product((None, 1, 2), repeat=4):
        changed = copy.deepcopy(content)
        for entry, half in zip(changed["events"], halves, strict=True):
            entry["half"] = half
        try:
            Certificate.from_json(json.dumps(changed))
        except CertificateError as error:
            refused.append(halves)
            sentences.add(str(error).partition(" ")[0])
    # Swapped, interleaved, one half missing, a filter across halves: everything but the truth.
    assert len(refused) == 3**4 - 1
    assert (1, 1, 2, 2) not in refused
    assert sentences == {"events:", "epsilon=1.0:"}


def test_a_filter_does_not_pay_for_both_halves():
    lines = half_of_a_fit(1)
    across = [dataclasses.replace(release, half=half) for half, release in enumerate(lines, start=1)]
    # Each line alone costs less than the whole, so that the claim itself would pass.
    forged = dataclasses.replace(fitted(), events=tuple(across))
    assert epsilon_of(forged.event) < 1.0
    with pytest.raises(CertificateError, match="^events: expected noise that costs what is stated"):
        Certificate.from_json(forged.to_json())


def test_each_half_exhausts_its_filter():
    certificate = fitted()
    # Without its last release a filter is not exhausted.
    for missing in (1, 3):
        lines = certificate.events[:missing] + certificate.events[missing + 1 :]
        with pytest.raises(CertificateError, match="^events: expected noise that costs what is stated"):
            Certificate.from_json(dataclasses.replace(certificate, events=lines).to_json())
    # One half alone is a fit on some of the records.
    for half in (1, 2):
        lines = tuple(release for release in certificate.events if release.half == half)
        alone = dataclasses.replace(certificate, events=lines)
        assert Certificate.from_json(alone.to_json()) == alone


@pytest.mark.parametrize("cheaper", [1, 2])
def test_a_claim_for_the_cheaper_half_is_refused(cheaper):
    certificate = make((A, 3 - cheaper), (B, cheaper)) if cheaper == 2 else make((B, 1), (A, 2))
    assert certificate.epsilon == epsilon_of(A)
    for lower in (epsilon_of(B), certificate.epsilon * (1 - 1e-6)):
        with pytest.raises(CertificateError, match=r"^epsilon=.*: expected at least"):
            Certificate.from_json(dataclasses.replace(certificate, epsilon=lower).to_json())


def test_the_status_and_the_relation_are_those_of_both_halves():
    objective = ObjectivePerturbationEvent(0.1, 0.1, replaced=False)
    certificate = make((A, 1), (objective, 2))
    assert certificate.status == "proved under a numerical assumption"
    with pytest.raises(CertificateError, match="^relation="):
        Certificate.from_json(dataclasses.replace(certificate, relation="replace-one").to_json())
    assert make((A, 1), (NotPrivateEvent(), 2)).status == "not private"


def test_more_choices_than_any_fit_has_are_refused_at_once():
    # Neither branch stands for both.
    pairs = make(*[(GaussianEvent(50.0), 1), (GaussianEvent(60.0, 1e-15), 2)] * 10)
    assert Certificate.from_json(pairs.to_json()) == pairs
    many = dataclasses.replace(pairs, events=pairs.events * 20)
    costly = line(ParallelEvent((ObjectivePerturbationEvent(0.1, 0.01, False, records=400), A)) * 3)
    for lines in (many.events, (costly,)):
        with pytest.raises(CertificateError, match="^events: expected as many releases"):
            Certificate.from_json(dataclasses.replace(pairs, events=lines).to_json())
    with pytest.raises(CertificateError, match="^epsilon="):
        Certificate.from_json(dataclasses.replace(pairs, group_size=10**9).to_json())
    with pytest.raises(CertificateError, match="^events: expected as many releases"):
        compose(pairs, pairs)


# ------------------------------------------------------------------ composition


def test_pairs_of_two_certificates_stay_apart():
    far = GaussianEvent(7.0, 1e-15)
    one, other = make((A, 1), (far, 2)), make((far, 1), (A, 2))
    total = compose(one, other)
    assert [sorted(fold(each).items(), key=str) for each in alternatives(total.event)] == [
        [(A, 1), (far, 1)],
        [(A, 2)],
        [(far, 2)],
        [(A, 1), (far, 1)],
    ]
    # A record can be in the dearer half of both.
    assert total.epsilon == best_bound(A * 2, 2 * DELTA, ordered=False).epsilon
    assert Certificate.from_json(total.to_json()) == total
    both = compose(fitted(), fitted())
    assert both.epsilon == pytest.approx(
        compose(*[certify(half_of_a_fit(None), Budget(1.0, DELTA), **DETAILS)] * 2).epsilon, rel=1e-3
    )
    assert Certificate.from_json(both.to_json()) == both


def test_any_number_of_fits_whose_halves_cost_the_same_can_be_composed():
    pair = make((A, 1), (A, 2))
    assert compose(*[pair] * 30).epsilon == best_bound(A * 30, 30 * DELTA, ordered=False).epsilon


@pytest.mark.parametrize(
    ("left", "right"),
    [((1,), (2,)), ((1,), (1, 2)), ((1, 2), (2,)), ((1, 1), (2, 2)), ((2, 1), (2, 1)), ((1, 2, 1), (2, 1, 2))],
)
def test_halves_without_the_other_one_do_not_become_pairs_by_composition(left, right):
    parts = [make(*((A, half) for half in halves)) for halves in (left, right)]
    dearest = [max(sum(fold(each).values()) for each in alternatives(part.event)) for part in parts]
    for total in (compose(*parts), compose(*parts[::-1])):
        found = max(sum(fold(each).values()) for each in alternatives(total.event))
        assert found == sum(dearest)
        assert total.epsilon == pytest.approx(epsilon_of(A * found, 2 * DELTA))
        assert Certificate.from_json(total.to_json()) == total


def test_parts_of_a_sum_keep_their_pairs():
    pair, pure = make((A, 1), (B, 2)), make((PureEvent(1.0), 1), (PureEvent(0.9), 2), delta=0.0)
    total = compose(pair, pure)
    assert (total.bound, [part.releases for part in total.parts]) == ("sum", [2, 2])
    assert total.epsilon == pytest.approx(epsilon_of(A) + 1.0)
    assert Certificate.from_json(total.to_json()) == total
    content = json.loads(total.to_json())
    for entry in content["events"]:
        entry["half"] = None
    with pytest.raises(CertificateError, match="^parts: "):
        Certificate.from_json(json.dumps(content))


# ------------------------------------------------------------------ groups


def test_groups_may_lie_in_both_halves():
    certificate = fitted()
    pair = certificate.for_group(2)
    assert pair.epsilon == epsilon_of(for_group(certificate.event, 2))
    # Gaussian halves: as for a fit of one half, but for the samplers of the other one.
    alone = certify(half_of_a_fit(None, distance=1e-10), Budget(1.0, DELTA), **DETAILS).for_group(2)
    assert pair.epsilon == pytest.approx(alone.epsilon, rel=1e-3)
    assert Certificate.from_json(pair.to_json()) == pair
    assert pair.for_group(3) == certificate.for_group(6)
    mixed = make((PureEvent(0.5), 1), (ExponentialEvent(0.4), 2), delta=0.0)
    assert mixed.epsilon == 0.5
    assert mixed.for_group(2).epsilon == pytest.approx(2 * (0.5 + 0.4))
    with pytest.raises(CertificateError, match="^epsilon="):
        Certificate.from_json(dataclasses.replace(mixed, group_size=2, epsilon=1.0).to_json())
