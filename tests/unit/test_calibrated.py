"""Releases that share one noise scale."""

import math
import pickle

import pytest

from taciturn.accounting import Budget, epsilon_of
from taciturn.events import ComposedEvent, ExponentialEvent, GaussianEvent, NotPrivateEvent, PureEvent
from taciturn.methods.schedule import Schedule


def schedule_of(budget, *, ordered=True):
    schedule = Schedule(budget, ordered)
    schedule.add("median", "a median", lambda b: ExponentialEvent(0.5 / b))
    schedule.add("gradient", "a gradient", lambda b: GaussianEvent(3.0 * b), 7)
    return schedule


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_releases_spend_the_budget_and_keep_their_proportions(epsilon):
    schedule = schedule_of(Budget(epsilon, 1e-6), ordered=False).calibrate()
    median, gradient = schedule.releases
    assert (median, gradient) == (schedule["median"], schedule["gradient"])
    whole = ComposedEvent((median.total, gradient.total))
    assert 0.999 * epsilon < epsilon_of(whole, 1e-6) <= epsilon
    assert schedule.selection_range("median") == median.event.epsilon == 0.5 / schedule.scale
    assert schedule.multiplier("gradient") == gradient.event.noise_multiplier == 3.0 * schedule.scale
    assert (median.what, median.noise, median.count) == ("a median", "Gumbel", 1)
    assert (gradient.what, gradient.noise, gradient.count) == ("a gradient", "Gaussian", 7)
    # Scales are those of the mechanisms that the events stand for.
    assert median.scale == 2.0 / median.event.epsilon
    assert gradient.scale == gradient.event.noise_multiplier


def test_a_release_of_fixed_cost_leaves_less_for_the_others():
    alone, beside = schedule_of(Budget(1.0, 1e-6)).calibrate(), schedule_of(Budget(1.0, 1e-6))
    beside.add("count", "a count", lambda b: PureEvent(0.5), noise="geometric", scale_at=lambda b: 2.0)
    count = beside.calibrate()["count"]
    assert (count.event, count.noise, count.scale) == (PureEvent(0.5), "geometric", 2.0)
    assert beside["gradient"].scale > 1.5 * alone["gradient"].scale
    assert epsilon_of(ComposedEvent(tuple(release.total for release in beside.releases)), 1e-6) <= 1.0


def test_without_privacy_there_is_no_noise():
    schedule = schedule_of(Budget(math.inf, 1e-6)).calibrate()
    assert (schedule.private, schedule.scale, schedule.budget) == (False, 0.0, Budget(math.inf, 0.0))
    for release, stated in zip(schedule.releases, (("a median", 1), ("a gradient", 7)), strict=True):
        assert (release.what, release.count) == stated
        assert (release.noise, release.scale, release.event) == ("none", 0.0, NotPrivateEvent())


def test_noise_is_found_by_name_and_kind():
    schedule = schedule_of(Budget(1.0, 1e-6)).calibrate()
    assert "median" in schedule
    assert "count" not in schedule
    with pytest.raises(TypeError, match="^gradient: expected a selection"):
        schedule.selection_range("gradient")
    with pytest.raises(TypeError, match="^median: expected a Gaussian release"):
        schedule.multiplier("median")


def test_names_are_given_once_and_nothing_is_added_later():
    schedule = schedule_of(Budget(1.0, 1e-6))
    with pytest.raises(TypeError, match="a name of its own"):
        schedule.add("median", "another", lambda b: ExponentialEvent(1.0 / b))
    with pytest.raises(TypeError, match="before the noise is fixed"):
        schedule.calibrate().add("count", "a count", lambda b: PureEvent(0.5))


def test_calibrated_schedules_are_plain_values():
    schedule = schedule_of(Budget(1.0, 1e-6)).calibrate()
    assert pickle.loads(pickle.dumps(schedule)) == schedule == schedule_of(Budget(1.0, 1e-6)).calibrate()


def test_other_events_have_to_say_their_scale():
    schedule = Schedule(Budget(1.0, 1e-6))
    schedule.add("count", "a count", lambda b: PureEvent(0.5 / b))
    with pytest.raises(TypeError, match="say what its noise scale is"):
        schedule.calibrate()
