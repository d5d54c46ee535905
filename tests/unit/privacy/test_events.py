import json
import pickle

import pytest

from taciturn.core.errors import CertificateError, ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RepeatedEvent,
    event_from_dict,
    event_to_dict,
    fold,
    for_group,
    in_order,
)

ELEMENTARY = [
    ExponentialEvent(0.5),
    LaplaceMaxEvent(0.5),
    PermuteAndFlipEvent(0.5),
    PureEvent(0.5),
    ApproximateEvent(0.5, 1e-6),
    GaussianEvent(4.0),
    ObjectivePerturbationEvent(0.1, 0.2, False),
    OppositeSelectionsEvent(0.5, 0.3),
    OppositeSelectionsEvent(0.5, 0.3, 4),
    NotPrivateEvent(),
    ParallelEvent((GaussianEvent(4.0), PureEvent(0.5) * 2)),
    ParallelEvent(()),
]


@pytest.mark.parametrize("event", ELEMENTARY, ids=lambda event: event.kind)
def test_events_are_values(event):
    assert event == pickle.loads(pickle.dumps(event))
    assert len({event, event, event * 2, event + event}) == 3
    with pytest.raises((AttributeError, TypeError)):
        event.epsilon = 9.0


@pytest.mark.parametrize("event", ELEMENTARY, ids=lambda event: event.kind)
def test_json_round_trip(event):
    whole = (event * 3 + GaussianEvent(2.0)) * 5
    assert event_from_dict(json.loads(json.dumps(event_to_dict(whole)))) == whole


def test_counts_are_multiplied_out_wherever_they_stand():
    a, b = ExponentialEvent(0.1), GaussianEvent(3.0)
    nested = ((a * 3 + b) * 4 + a) * 2
    assert fold(nested) == {a: 26, b: 8}
    assert fold(a + a + a) == fold(a * 3) == fold(3 * a)
    assert fold(ComposedEvent(())) == {}


def test_order_of_one_kind_is_kept_and_equal_runs_merge():
    a, b, g = ExponentialEvent(0.1), ExponentialEvent(0.2), GaussianEvent(3.0)
    assert in_order((a + g) * 1_000_000, ExponentialEvent) == [(a, 1_000_000)]
    assert in_order(a * 2 + g + a + b, ExponentialEvent) == [(a, 3), (b, 1)]
    assert in_order((a + b) * 2, ExponentialEvent) == [(a, 1), (b, 1), (a, 1), (b, 1)]
    assert in_order(g * 5, ExponentialEvent) == []


def test_repeating_once_changes_nothing():
    event = PureEvent(1.0)
    assert event * 1 is event
    assert event * 4 == RepeatedEvent(event, 4)


def test_groups_scale_each_kind_of_cost():
    assert for_group(ExponentialEvent(0.5), 3) == ExponentialEvent(1.5)
    assert for_group(GaussianEvent(6.0) * 7, 3) == GaussianEvent(2.0) * 7
    assert for_group(OppositeSelectionsEvent(0.5, 0.3, 2) * 7, 3) == OppositeSelectionsEvent(0.5, 0.3, 6) * 7
    pair = for_group(ApproximateEvent(0.5, 1e-6), 2)
    # (2 eps, delta (1 + e^eps)): one step of the chain of neighbours.
    assert pair.epsilon == 1.0
    assert pair.delta == pytest.approx(1e-6 * (1 + 2.718281828459045**0.5))
    assert for_group(ApproximateEvent(5.0, 0.1), 5) == NotPrivateEvent()
    assert for_group(ApproximateEvent(1.0, 1e-6), 10**6) == NotPrivateEvent()
    assert for_group(ApproximateEvent(1.0, 0.0), 10**6) == PureEvent(1e6)
    assert for_group(PureEvent(1.0) + NotPrivateEvent(), 2) == PureEvent(2.0) + NotPrivateEvent()


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), "1", None, True])
@pytest.mark.parametrize("kind", [ExponentialEvent, LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent])
def test_bad_costs_are_refused(kind, bad):
    with pytest.raises(ParameterError, match="^epsilon="):
        kind(bad)


def test_opposite_selections_have_a_far_one_and_a_near_one():
    for far, near in ((0.0, 0.0), (float("inf"), 1.0), (1.0, 0.0), (1.0, 1.1), (1.0, None), (1e308, 1.0)):
        with pytest.raises(ParameterError, match="^(far|near)="):
            OppositeSelectionsEvent(far, near, 2)
    for records in (0, 1.5, True, 2**53 + 1, 10**400):
        with pytest.raises(ParameterError, match="^records="):
            OppositeSelectionsEvent(1.0, 1.0, records)


def test_other_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="noise_multiplier=0"):
        GaussianEvent(0)
    with pytest.raises(ParameterError, match=r"delta=1\.0"):
        ApproximateEvent(1.0, 1.0)
    for count in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="count="):
            _ = PureEvent(1.0) * count


@pytest.mark.parametrize(
    "text", [{"kind": "subsampled"}, {}, "gaussian", {"kind": "gaussian"}, {"kind": "pure", "epsilon": 1, "x": 2}]
)
def test_unknown_or_damaged_events_are_refused(text):
    with pytest.raises(CertificateError, match="^event kind="):
        event_from_dict(text)
