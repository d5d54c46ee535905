"""Parallel releases cost as much as the dearest, never the sum."""

import math

import pytest

from taciturn.accounting import Budget, best_bound, calibrate, delta_of, proves, satisfies
from taciturn.core.errors import ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    PureEvent,
    for_group,
)
from taciturn.privacy import gdp
from taciturn.privacy.filter import chain_cost

DELTA = 1e-6
OBJECTIVE = ObjectivePerturbationEvent(0.1, 0.2, replaced=False)

PAIRS = {
    "gaussian": (GaussianEvent(4.0), GaussianEvent(5.0) * 2),
    "selections": (ExponentialEvent(0.1) * 50, ExponentialEvent(0.4) + ExponentialEvent(0.2) * 3),
    "pure": (PureEvent(0.3), PureEvent(0.1) * 2),
    "approximate": (ApproximateEvent(0.3, 1e-7), PureEvent(0.2) * 3),
    "gaussian and pure": (GaussianEvent(5.0), PureEvent(0.5)),
    "gaussian and selections": (GaussianEvent(5.0), ExponentialEvent(0.1) * 40),
    "objective": (OBJECTIVE, GaussianEvent(5.0) + ExponentialEvent(0.1)),
    "distances": (GaussianEvent(4.0), GaussianEvent(4.0, 1e-8)),
    "equal": (GaussianEvent(4.0), GaussianEvent(4.0)),
    "nothing": (ComposedEvent(()), GaussianEvent(4.0)),
    "three": (GaussianEvent(4.0), PureEvent(0.6), ExponentialEvent(0.3) * 9),
}
AROUND = {
    "alone": lambda event: event,
    "composed": lambda event: ExponentialEvent(0.2) + event + GaussianEvent(6.0),
    "once": lambda event: ComposedEvent((event * 1, ComposedEvent(()))),
    "inside": lambda event: ParallelEvent((event + PureEvent(0.01), PureEvent(1e-9))),
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PAIRS)
def test_the_dearest_branch_is_charged(name, around, ordered):
    branches, within = PAIRS[name], AROUND[around]
    plan = within(ParallelEvent(branches))
    apart = [best_bound(within(branch), DELTA, ordered=ordered) for branch in branches]
    dearest = max(bound.epsilon for bound in apart)
    found = best_bound(plan, DELTA, ordered=ordered)
    assert found.epsilon == pytest.approx(dearest, rel=1e-12)
    assert found.name in {bound.name for bound in apart if bound.epsilon >= dearest * (1 - 1e-12)}
    # The order of branches does not matter.
    assert best_bound(within(ParallelEvent(branches[::-1])), DELTA, ordered=ordered).epsilon == pytest.approx(dearest)
    if name != "nothing":
        both = best_bound(within(ComposedEvent(branches)), DELTA, ordered=ordered).epsilon
        assert found.epsilon < both * (0.9 if around == "alone" and name != "pure" else 1.0)
    for share, held in ((1 - 1e-4, False), (1 + 1e-9, True)):
        assert proves(plan, share * dearest, DELTA, ordered=ordered) == held
        assert satisfies(plan, Budget(share * dearest, DELTA), ordered=ordered) == held
    assert delta_of(plan, 0.4) == pytest.approx(max(delta_of(within(branch), 0.4) for branch in branches), rel=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_repeated_pairs_cover_every_choice(name):
    branches = PAIRS[name][:2]
    one, other = branches
    choices = (one * 3, one * 2 + other, one + other + one, other + one * 2, one + other * 2, other * 2 + one)
    choices += (other + one + other, other * 3)
    dearest = max(best_bound(choice, DELTA).epsilon for choice in choices)
    assert best_bound(ParallelEvent(branches) * 3, DELTA).epsilon == pytest.approx(dearest, rel=1e-12)


def test_pure_pairs_need_no_delta():
    pair = ParallelEvent((PureEvent(0.3), PureEvent(0.1) * 2))
    assert best_bound(pair, 0.0) == best_bound(PureEvent(0.3), 0.0)
    assert best_bound(pair + pair, 0.0).epsilon == 0.6
    assert math.isinf(best_bound(ParallelEvent((PureEvent(0.3), GaussianEvent(9.0))), 0.0).epsilon)


def test_one_branch_without_protection_is_no_protection():
    pair = ParallelEvent((PureEvent(0.3), NotPrivateEvent()))
    assert math.isinf(best_bound(pair, DELTA).epsilon)
    assert delta_of(pair, 3.0) == 1.0
    assert not proves(pair, 100.0, DELTA)
    assert satisfies(pair, Budget(math.inf, 0.0))


def test_the_gaussian_number_of_a_pair_is_the_larger_one():
    pair = ParallelEvent((GaussianEvent(4.0), ExponentialEvent(0.5) * 3))
    assert gdp.mu_squared(pair) == gdp.mu_squared(ExponentialEvent(0.5) * 3) > 1 / 16
    assert math.isinf(gdp.mu_squared(ParallelEvent((GaussianEvent(4.0), OBJECTIVE))))
    # A filter does not sell parallel releases.
    assert math.isinf(chain_cost([pair]))


def test_calibration_finds_what_the_dearer_branch_needs():
    budget = Budget(1.0, DELTA)

    def few(scale: float) -> Event:
        return ExponentialEvent(2.0 / scale) * 3

    def many(scale: float) -> Event:
        return GaussianEvent(2.0 * scale) * 30

    scale = calibrate(budget, lambda b: ParallelEvent((few(b), many(b))))
    assert scale == pytest.approx(max(calibrate(budget, few), calibrate(budget, many)), rel=1e-6)
    # Each by another bound: one bound for both would need more.
    assert {best_bound(plan(scale), DELTA).name for plan in (few, many)} == {"rdp", "gdp"}
    with pytest.raises(ParameterError, match="^delta="):
        calibrate(budget, lambda b: ParallelEvent((few(b), GaussianEvent(b, 1e-3))))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_gaussian_groups_cover_every_way_to_spread_them(k):
    one, other = GaussianEvent(8.0, 1e-13) * 2, GaussianEvent(5.0, 3e-13)
    stated = best_bound(for_group(ParallelEvent((one, other)), k), DELTA).epsilon
    assert stated == pytest.approx(best_bound(for_group(other, k), DELTA).epsilon, rel=1e-2)
    for j in range(k + 1):
        parts = [for_group(part, n) for part, n in ((one, j), (other, k - j)) if n]
        # In whatever way they lie, all samplers count.
        unused = GaussianEvent(1e12, 2e-13 if j == 0 else 3e-13 if j == k else 0.0)
        assert best_bound(ComposedEvent((*parts, unused)), DELTA).epsilon <= stated * (1 + 1e-9)


@pytest.mark.parametrize("name", ["pure", "selections", "gaussian and pure", "approximate", "objective"])
def test_other_groups_cover_every_way_to_spread_them(name):
    one, other = PAIRS[name]
    stated = best_bound(for_group(ParallelEvent((one, other)), 3), DELTA).epsilon
    for j in range(4):
        parts = [for_group(part, n) for part, n in ((one, j), (other, 3 - j)) if n]
        assert best_bound(ComposedEvent(tuple(parts)), DELTA).epsilon <= stated * (1 + 1e-9)
