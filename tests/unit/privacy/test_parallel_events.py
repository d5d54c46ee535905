"""Parallel events taken apart, and their groups."""

import math

import pytest

from taciturn.accounting import best_bound
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.events import (
    MOST_ALTERNATIVES,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ParallelEvent,
    PureEvent,
    RepeatedEvent,
    alternatives,
    count_alternatives,
    event_from_dict,
    fold,
    for_group,
    in_order,
)

A, B, C, D = GaussianEvent(2.0, 1e-9), PureEvent(0.3), ExponentialEvent(0.1), GaussianEvent(3.0, 1e-12)


def folds(event):
    return [fold(each) for each in alternatives(event)]


def test_without_parallel_events_there_is_no_choice():
    for event in (A, A + B, (A + B) * 3, ComposedEvent(())):
        (alone,) = alternatives(event)
        assert alone is event


def test_one_branch_is_chosen_for_each_parallel_event():
    pair = ParallelEvent((A, B))
    assert alternatives(pair) == (A, B)
    assert folds(C + pair + C) == [{C: 2, A: 1}, {C: 2, B: 1}]
    assert folds(pair + ParallelEvent((C, D))) == [{A: 1, C: 1}, {A: 1, D: 1}, {B: 1, C: 1}, {B: 1, D: 1}]
    assert folds(ParallelEvent((pair + C, D * 4))) == [{A: 1, C: 1}, {B: 1, C: 1}, {D: 4}]
    # Groups may be assigned anew each time.
    assert folds(pair * 2) == [{A: 2}, {A: 1, B: 1}, {B: 1, A: 1}, {B: 2}]
    assert alternatives(ParallelEvent((A,)) * 7) == (RepeatedEvent(A, 7),)
    assert folds(ParallelEvent(())) == folds(ParallelEvent(()) * 10**9) == [{}]


def test_the_order_of_selections_within_an_alternative_is_kept():
    small, large = ExponentialEvent(0.1), ExponentialEvent(0.2)
    plan = small + ParallelEvent((large, small * 2)) + large
    runs = [in_order(each, ExponentialEvent) for each in alternatives(plan)]
    assert runs == [[(small, 1), (large, 2)], [(small, 3), (large, 1)]]


def test_everything_that_happens_is_counted():
    plan = (A + ParallelEvent((B * 2, C))) * 3
    assert fold(plan) == {A: 3, B: 6, C: 3}
    assert in_order(plan, ExponentialEvent) == [(C, 3)]


@pytest.mark.parametrize(
    "event",
    [
        ParallelEvent((A, B)) * 11,
        ParallelEvent((A, B)) * 2**53,
        ComposedEvent((ParallelEvent((A, B)),) * 4000),
        ParallelEvent((B,) * 1025),
        ParallelEvent((ParallelEvent((A, B)) * 10, C)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_too_many_choices_are_refused_at_once(event):
    assert count_alternatives(event) == MOST_ALTERNATIVES + 1
    with pytest.raises(ParameterError, match="at most 1024 choices of one branch"):
        alternatives(event)


@pytest.mark.parametrize("event", [ParallelEvent((A, B)) * 10, ParallelEvent((B,) * 1024)])
def test_as_many_as_may_be_are_listed(event):
    assert count_alternatives(event) == len(alternatives(event)) == MOST_ALTERNATIVES


def test_damaged_parallel_events_are_refused():
    for described in ({"kind": "parallel"}, {"kind": "parallel", "events": 3}, {"kind": "parallel", "event": {}}):
        with pytest.raises(CertificateError, match="^event kind="):
            event_from_dict(described)


# ------------------------------------------------------------------ groups


def distance_of(event):
    return math.fsum(part.distance * count for part, count in fold(event).items())


def test_one_record_changes_nothing():
    for pair in (ParallelEvent((A, D)), ParallelEvent((A, B))):
        assert for_group(pair, 1) == pair


def test_gaussian_branches_stay_side_by_side_with_the_distances_of_all():
    inner = ParallelEvent((GaussianEvent(4.0, 1e-6), GaussianEvent(9.0, 1e-5) * 2))
    plan = ParallelEvent((A * 2 + inner, D, ComposedEvent(())))
    group = for_group(plan, 3)
    assert isinstance(group, ParallelEvent)
    (dearest,) = alternatives(group)
    assert distance_of(dearest) == pytest.approx(2e-9 + 1e-6 + 2e-5 + 1e-12, rel=1e-9)
    assert price_of(dearest) == pytest.approx(9 * (2 / 4 + 1 / 16), rel=1e-12)


def price_of(event):
    return math.fsum(n / g.noise_multiplier**2 for g, n in fold(event).items())


def test_a_branch_that_costs_most_stands_for_all():
    dear, cheap, far = GaussianEvent(2.0, 1e-9), GaussianEvent(3.0, 1e-12), GaussianEvent(3.0, 1e-8)
    for branches in ((dear, cheap), (cheap, dear), (ParallelEvent((cheap, dear)), cheap), (dear, ComposedEvent(()))):
        assert alternatives(ParallelEvent(branches)) == (dear,)
    # Two releases that cost a little less together than one of the other branch, which a sum over branches would miss.
    assert alternatives(ParallelEvent((ParallelEvent((cheap, cheap)), dear))) == (dear,)
    # Neither costs more than the other in both respects.
    assert alternatives(ParallelEvent((dear, far))) == (dear, far)
    # Up to rounding: nothing gets lost.
    close = GaussianEvent(2.5, 1e-9 * (1 + 1e-12))
    (one,) = alternatives(ParallelEvent((dear, close)))
    assert distance_of(one) >= 1e-9 * (1 + 1e-12)
    assert price_of(one) == pytest.approx(1 / 4, rel=1e-12)
    many = ComposedEvent((ParallelEvent((dear, close)),) * 50)
    assert count_alternatives(many) == 1
    assert best_bound(many, 1e-4).epsilon == pytest.approx(best_bound(dear * 50, 1e-4).epsilon, rel=1e-6)


def test_distances_add_up_to_one_at_most():
    far = ParallelEvent((GaussianEvent(1.0, 0.7), GaussianEvent(1.0, 0.6)))
    assert for_group(far, 2) == ParallelEvent((GaussianEvent(0.5, 1.0), GaussianEvent(0.5, 1.0)))


@pytest.mark.parametrize("other", [B, C, A + B, NotPrivateEvent(), ParallelEvent((A, C))])
def test_other_branches_are_composed(other):
    group = for_group(ParallelEvent((A, other)), 2)
    assert count_alternatives(group) == 1
    everything = ComposedEvent((A, *getattr(other, "events", (other,))))
    assert fold(group) == fold(for_group(everything, 2))
