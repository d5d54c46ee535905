"""Whether a pair is proved, asked directly, has the answer of the search for the smallest epsilon."""

import math

import pytest

from taciturn.accounting import best_bound, proves
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    PureEvent,
)

SELECTIONS = ComposedEvent((ExponentialEvent(0.02) * 30, ExponentialEvent(0.5) * 3))
PLANS = {
    "gaussian": GaussianEvent(4.0) * 3,
    "selections": SELECTIONS,
    "few selections": ExponentialEvent(0.4) * 2,
    "pure": PureEvent(0.2) * 5 + LaplaceMaxEvent(0.1) * 40,
    "approximate": ApproximateEvent(0.3, 1e-7) + GaussianEvent(9.0),
    "objective": ObjectivePerturbationEvent(0.1, 0.2, replaced=True) + GaussianEvent(9.0),
    "fixed sign": ObjectivePerturbationEvent(0.1, 0.2, replaced=False, fixed_sign=True) * 3,
    "sampled": GaussianEvent(4.0, distance=2.0**-60),
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("plan", PLANS)
def test_asking_and_searching_agree(plan, delta, ordered):
    smallest = best_bound(PLANS[plan], delta, ordered=ordered).epsilon
    if math.isinf(smallest):
        assert not proves(PLANS[plan], 100.0, delta, ordered=ordered)
        return
    for share in (1.0, 1.0 + 1e-9, 1.01, 2.0):
        assert proves(PLANS[plan], share * smallest, delta, ordered=ordered)
    for share in (0.0, 0.5, 0.999):
        assert not proves(PLANS[plan], share * smallest, delta, ordered=ordered)


def test_at_a_large_epsilon_the_charge_for_samplers_does_not_refute_a_smaller_one():
    plan = GaussianEvent(4.0, distance=2.0**-60)
    # At 40 the sampler alone costs e^40 / 2^60 = 0.2, but what holds at the smallest epsilon holds at 40.
    assert (1.0 + math.exp(40.0)) * 2.0**-60 > 1e-6
    assert proves(plan, 40.0, 1e-6)
    assert not proves(GaussianEvent(0.1, distance=2.0**-60), 40.0, 1e-6)


def test_pure_plans_are_proved_without_tolerance_and_others_not_at_all_at_delta_zero():
    assert proves(PureEvent(0.1) * 3, math.fsum([0.1 * 3]), 0.0)
    assert not proves(PureEvent(0.1) * 3, math.nextafter(0.1 * 3, 0.0), 0.0)
    assert not proves(GaussianEvent(100.0), 1e9, 0.0)
    assert not proves(NotPrivateEvent(), 1e9, 0.5)
