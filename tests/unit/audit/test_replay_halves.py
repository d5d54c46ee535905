"""Releases about two halves of the records are compared with the lines of one half, never with both."""

from dataclasses import dataclass

import numpy as np
import pytest

from taciturn.accounting import Budget, PrivacyFilter
from taciturn.audit import replay
from taciturn.audit.observing import uncovered
from taciturn.core.rng import Stream
from taciturn.events import Event, ExponentialEvent, GaussianEvent, PureEvent
from taciturn.mechanisms import TwoSidedGeometric
from taciturn.methods.releases import list_spends
from taciturn.privacy import transcript
from taciturn.privacy.certificate import certify, compose
from taciturn.privacy.claim import Release

DETAILS = {"relation": "zero-out", "public": {}, "seeded": False, "arithmetic": "exact"}
VALUE = np.zeros(1)


@dataclass(frozen=True)
class Priced:
    """A mechanism that is its cost."""

    event: Event


def recorded(*events):
    return [(Priced(event), VALUE) for event in events]


def bought(half):
    """What a filter paid for, and the releases themselves."""
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    selection_range = budget.selection("some columns", share=0.5, count=4)
    multiplier = budget.gaussian("a gradient", share=budget.remaining)
    return list_spends(budget.spent(), half), [*[ExponentialEvent(selection_range)] * 4, GaussianEvent(multiplier)]


@pytest.mark.parametrize("composed", [False, True])
def test_a_half_may_not_spend_the_filter_of_the_other_one(composed):
    lines, made = bought(1)
    certificate = certify((*lines, *bought(2)[0]), Budget(1.0, 1e-6), **DETAILS)
    if composed:
        certificate = compose(certificate, certify((), Budget(1.0, 0.0), **DETAILS))
        assert not certificate.ordered
    assert uncovered(certificate, recorded(*made)) is None
    # One release more, and everything twice: the lines of both halves together would cover these.
    for much in ([*made, made[0]], made * 2, [GaussianEvent(made[-1].noise_multiplier)] * 3):
        assert "cost more than epsilon=1" in uncovered(certificate, recorded(*much))


def test_lines_of_one_half_are_used_where_the_order_is_not_known():
    parts = [
        certify(
            [Release("a value", "two-sided geometric", 1.0 / cost, PureEvent(cost), half=half) for half in (1, 2)],
            Budget(1.0, 0.0),
            **DETAILS,
        )
        for cost in (0.4, 0.3)
    ]
    total = compose(*parts)
    assert total.epsilon == pytest.approx(0.7)
    assert uncovered(total, recorded(PureEvent(0.4), PureEvent(0.3))) is None
    assert uncovered(total, recorded(PureEvent(0.4), PureEvent(0.4))) is not None


# ------------------------------------------------------------------ whole fits


class Counts:
    """Counts of records in two random halves, each with the whole budget."""

    def __init__(self, certificate_):
        self.certificate_ = certificate_


def counts(*, times=(1, 1), blocks=True, shared=0, halves=(1, 2)):
    """A fit that counts each half so often; ``shared`` records of the first half are counted with the second one."""

    def fit(X, y, random_state=None):
        stream = Stream.of(random_state)
        with transcript.coupling():
            order = np.argsort(stream.spawn("halves").uniforms(len(y)))
        middle = len(y) // 2
        mechanism = TwoSidedGeometric(1, 0.5)
        model = Counts(
            certify(
                [Release("a count", "two-sided geometric", 2.0, mechanism.event, half=half) for half in halves],
                Budget(1.0, 0.0),
                **DETAILS,
            )
        )
        model.counts_ = []
        for half, slots in enumerate((order[:middle], order[middle - shared :]), start=1):
            value = int((y[slots] >= 0).sum())
            for _ in range(times[half - 1]):
                if blocks:
                    with transcript.block_of_records(half, {"X": X[slots], "y": y[slots]}):
                        model.counts_.append(mechanism.release(value, stream.spawn("count")))
                else:
                    model.counts_.append(mechanism.release(value, stream.spawn("count")))
        return model

    return fit


def found_by_replay(fit, record):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20, 2)), np.ones(20)
    nulled = y.copy()
    nulled[record] = -1
    found = replay(fit, {"X": X, "y": y}, {"X": X, "y": nulled}, relation="zero-out")
    assert found.error is None
    return {each.kind for each in found.differences}


def test_a_fit_in_halves_passes_for_records_of_either_half():
    assert [found_by_replay(counts(), record) for record in range(20)] == [set()] * 20


@pytest.mark.parametrize("times", [(2, 1), (1, 2)])
def test_a_half_that_releases_twice_is_found(times):
    assert found_by_replay(counts(times=times), 0) == {"cost"}
    # Where both lines are about all records they pay for two releases.
    assert found_by_replay(counts(times=times, halves=(None, None)), 0) == set()


def test_halves_that_are_not_declared_are_charged_one_after_the_other():
    assert found_by_replay(counts(blocks=False), 0) == {"cost"}
    assert found_by_replay(counts(blocks=False, halves=(None, None)), 0) == set()


def test_a_record_in_both_halves_is_found():
    found = [found_by_replay(counts(shared=3), record) for record in range(20)]
    assert sorted(map(len, found)) == [0] * 17 + [1] * 3
    assert {"cost"} in found
