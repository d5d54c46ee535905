"""Releases that share one noise scale."""

import math

import pytest

from taciturn.accounting import Budget, epsilon_of
from taciturn.events import ComposedEvent, ExponentialEvent, GaussianEvent, NotPrivateEvent, PureEvent
from taciturn.methods.releases import PlannedRelease, calibrate_releases

PLANNED = (
    PlannedRelease("a median", "Gumbel", lambda b: ExponentialEvent(0.5 / b)),
    PlannedRelease("a gradient", "Gaussian", lambda b: GaussianEvent(3.0 * b), 7),
)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_releases_spend_the_budget_and_keep_their_proportions(epsilon):
    median, gradient = calibrate_releases(Budget(epsilon, 1e-6), PLANNED, ordered=False)
    whole = ComposedEvent((median.total, gradient.total))
    assert 0.999 * epsilon < epsilon_of(whole, 1e-6) <= epsilon
    scale = 0.5 / median.event.epsilon
    assert gradient.event.noise_multiplier == pytest.approx(3.0 * scale, rel=1e-12)
    assert (median.what, median.noise, median.count) == ("a median", "Gumbel", 1)
    assert (gradient.what, gradient.noise, gradient.count) == ("a gradient", "Gaussian", 7)
    # Scales are those of the mechanisms that the events stand for.
    assert median.scale == 2.0 / median.event.epsilon
    assert gradient.scale == gradient.event.noise_multiplier


def test_a_release_of_fixed_cost_leaves_less_for_the_others():
    fixed = PlannedRelease("a count", "geometric", lambda b: PureEvent(0.5), scale_of=lambda event: 2.0)
    alone = calibrate_releases(Budget(1.0, 1e-6), PLANNED)
    beside = calibrate_releases(Budget(1.0, 1e-6), (*PLANNED, fixed))
    assert beside[2].event == PureEvent(0.5)
    assert beside[2].scale == 2.0
    assert beside[1].scale > 1.5 * alone[1].scale
    assert epsilon_of(ComposedEvent(tuple(release.total for release in beside)), 1e-6) <= 1.0


def test_without_privacy_there_is_no_noise():
    for release, planned in zip(calibrate_releases(Budget(math.inf, 0.0), PLANNED), PLANNED, strict=True):
        assert (release.what, release.count) == (planned.what, planned.count)
        assert (release.noise, release.scale, release.event) == ("none", 0.0, NotPrivateEvent())


def test_other_events_have_to_say_their_scale():
    with pytest.raises(TypeError, match="say what its noise scale is"):
        calibrate_releases(Budget(1.0, 1e-6), [PlannedRelease("a count", "geometric", lambda b: PureEvent(0.5 / b))])
