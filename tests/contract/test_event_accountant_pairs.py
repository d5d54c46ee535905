"""One suite for every pair of an event and a bound, and second opinions from dp_accounting.

dp_accounting is always asked under ADD_OR_REMOVE_ONE: our parameters arrive already normalised, and
its accountants disagree about the other relations.
"""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from taciturn.accounting import epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    ParallelEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    alternatives,
)
from taciturn.privacy import pure
from taciturn.privacy.budget import BestOfTrials, Pieces, pieces_of
from taciturn.privacy.calibration import RULES, Rule
from taciturn.privacy.rdp import ORDERS, success_probability, trials_curve

RELATION = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
DELTA = 1e-5

EVENTS = [
    ExponentialEvent(0.2),
    LaplaceMaxEvent(0.2),
    PermuteAndFlipEvent(0.2),
    PureEvent(0.2),
    ApproximateEvent(0.2, 1e-7),
    GaussianEvent(6.0),
    ObjectivePerturbationEvent(0.05, 0.2, False),
    ObjectivePerturbationEvent(0.05, 0.2, True),
    OppositeSelectionsEvent(0.2, 0.1),
    OppositeSelectionsEvent(0.02, 0.01, 10),
    ExponentialEvent(0.2) + ExponentialEvent(0.1),
    ExponentialEvent(0.2) + GaussianEvent(6.0) + PureEvent(0.1),
    ExponentialEvent(0.2) + ObjectivePerturbationEvent(0.05, 0.2, False) + GaussianEvent(6.0),
    NotPrivateEvent(),
    RepeatAndSelectEvent(6.0, 10.0),
    RepeatAndSelectEvent(6.0, 3.0, 1.0) + GaussianEvent(6.0),
]

every_event = pytest.mark.parametrize("event", EVENTS, ids=repr)
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def ways_to_repeat(event: Event, count: int) -> list[Event]:
    """The same plan, written differently."""
    return [
        ComposedEvent((event,) * count),
        RepeatedEvent(event, count),
        event * (count // 2) + event * (count - count // 2),
        ComposedEvent((event, ComposedEvent((RepeatedEvent(event, count - 1),)))),
    ]


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(6.0, 3e-9),
        ExponentialEvent(0.2, 3e-9) + GaussianEvent(6.0),
        ObjectivePerturbationEvent(0.05, 0.2, False, distance=1e-9) + GaussianEvent(6.0, 2e-9),
    ],
    ids=repr,
)
def test_distances_of_samplers_count_in_every_spelling(event):
    plans = ways_to_repeat(event, 12)
    assert [pieces_of(plan).distance for plan in plans] == pytest.approx([12 * 3e-9] * 4, rel=1e-12)
    # All of it is charged, at the epsilon of all.
    epsilon = epsilon_of(plans[0], DELTA)
    assert [epsilon_of(plan, DELTA) for plan in plans] == pytest.approx([epsilon] * 4, rel=1e-12)
    bare = replace(pieces_of(plans[0]), distance=0.0)
    charge = (1 + math.exp(epsilon)) * 12 * 3e-9
    assert epsilon == pytest.approx(min(rule.epsilon(bare, (DELTA - charge) * (1 - 1e-6)) for rule in RULES), rel=1e-9)
    assert epsilon > min(rule.epsilon(bare, DELTA * (1 - 1e-6)) for rule in RULES) * 1.001


def counts_every_repeat(rule: Rule, event: Event, count: int = 12) -> bool:
    """All spellings cost the same, and more than the event alone."""
    plans = [pieces_of(plan) for plan in ways_to_repeat(event, count)]
    epsilons = [rule.epsilon(plan, DELTA) for plan in plans]
    deltas = [rule.log_delta(plan, 0.3) for plan in plans]
    same = all(a == pytest.approx(answers[0], rel=1e-12) for answers in (epsilons, deltas) for a in answers)
    alone = rule.epsilon(pieces_of(event), DELTA)
    return same and (math.isinf(alone) or epsilons[0] > 1.5 * alone)


@every_event
@every_rule
def test_listed_equals_repeated(event, rule):
    assert counts_every_repeat(rule, event)


PARALLEL = [
    ParallelEvent((one, other))
    for one, other in (
        (EVENTS[0], EVENTS[5]),
        (EVENTS[1], EVENTS[4]),
        (EVENTS[6], EVENTS[10]),
        (EVENTS[8], ParallelEvent((EVENTS[3], EVENTS[5]))),
        (EVENTS[5], NotPrivateEvent()),
    )
]


@pytest.mark.parametrize("event", PARALLEL, ids=repr)
@every_rule
def test_of_parallel_releases_the_dearest_counts_in_every_spelling(event, rule):
    def dearest(plan: Event) -> tuple[float, float]:
        every = [pieces_of(each) for each in alternatives(plan)]
        return max(rule.epsilon(each, DELTA) for each in every), max(rule.log_delta(each, 0.3) for each in every)

    costs = [dearest(plan) for plan in ways_to_repeat(event, 4)]
    assert all(cost == pytest.approx(costs[0], rel=1e-12) for cost in costs)
    branches = [dearest(branch * 4) for branch in event.events]
    assert costs[0][0] >= max(epsilon for epsilon, _ in branches) * (1 - 1e-12)
    assert dearest(event) == tuple(max(costs) for costs in zip(*map(dearest, event.events), strict=True))
    with pytest.raises(ParameterError, match="expected one branch of each parallel event"):
        pieces_of(event)


def forgetting(rule: Rule) -> Rule:
    """The rule with the fault to be caught: a repeated piece is charged once."""

    def forget(pieces: Pieces) -> Pieces:
        return replace(
            pieces,
            selections=tuple((value, 1) for value, _ in pieces.selections),
            pure=tuple((value, 1) for value, _ in pieces.pure),
            gaussians=tuple((value, 1) for value, _ in pieces.gaussians),
            objectives=tuple((value, 1) for value, _ in pieces.objectives),
        )

    return replace(
        rule,
        epsilon=lambda pieces, delta: rule.epsilon(forget(pieces), delta),
        log_delta=lambda pieces, epsilon: rule.log_delta(forget(pieces), epsilon),
    )


@pytest.mark.parametrize("event", EVENTS[:10], ids=repr)
@every_rule
def test_a_rule_that_forgets_counts_is_caught(event, rule):
    if math.isinf(rule.epsilon(pieces_of(event), DELTA)):
        return  # Gaussian noise is infinite to the pure bound, whatever the count
    assert not counts_every_repeat(forgetting(rule), event)


@every_event
def test_leaks_of_approximate_releases_count_every_repeat(event):
    leaks = [pieces_of(plan).leak for plan in ways_to_repeat(event, 12)]
    assert leaks == pytest.approx([leaks[0]] * 4, rel=1e-12)
    if isinstance(event, ApproximateEvent):
        assert leaks[0] == pytest.approx(12e-7, rel=1e-5)


@every_rule
def test_opposite_selections_are_two_in_an_unknown_order(rule):
    pairs, count = OppositeSelectionsEvent(0.2, 0.1), 12
    apart = pieces_of(ExponentialEvent(0.2) * count + ExponentialEvent(0.1) * count, ordered=False)
    assert rule.epsilon(pieces_of(pairs * count), DELTA) == rule.epsilon(apart, DELTA)
    # Of several records each may move another one of the two: both are charged in full, but no more than the sum.
    group = pieces_of(OppositeSelectionsEvent(0.04, 0.02, 5) * count)
    full = pieces_of(ExponentialEvent(0.2) * (2 * count))
    most = count * 0.3 if rule.name == "pure" else math.inf
    assert rule.epsilon(group, DELTA) == pytest.approx(min(rule.epsilon(full, DELTA), most), rel=1e-12)
    assert rule.epsilon(group, 0.0) == pytest.approx(most, rel=1e-12)
    few, few_full = pieces_of(OppositeSelectionsEvent(0.04, 0.02, 5)), pieces_of(ExponentialEvent(0.2) * 2)
    assert rule.log_delta(few, 0.25) == pytest.approx(rule.log_delta(few_full, 0.25), rel=1e-12)


# ------------------------------------------------------------------ second opinions: Renyi


MIXES = [
    ({0.05: 100}, {}, {}),
    ({2 / 140: 1000}, {30.0: 20}, {0.05: 1}),
    ({0.3: 4}, {8.0: 2}, {0.1: 3}),
    ({1.5: 2}, {}, {0.5: 1}),
    ({}, {3.0: 5}, {0.02: 40}),
    ({0.01: 500, 0.2: 3}, {50.0: 7}, {}),
]


def ours(selections, gaussians, pures) -> Event:
    parts = [ExponentialEvent(e) * n for e, n in selections.items()]
    parts += [GaussianEvent(s) * n for s, n in gaussians.items()]
    parts += [PureEvent(e) * n for e, n in pures.items()]
    return ComposedEvent(tuple(parts))


def theirs(selections, gaussians, pures) -> float:
    accountant = RdpAccountant(orders=ORDERS, neighboring_relation=RELATION)
    for e, n in selections.items():
        accountant.compose(dp_event.ZCDpEvent(rho=n * e * e / 8))
    for sigma, n in gaussians.items():
        accountant.compose(dp_event.GaussianDpEvent(sigma), n)
    for e, n in pures.items():
        accountant.compose(dp_event.ZCDpEvent(rho=n * e * e / 2))
    return accountant.get_epsilon(DELTA)


@pytest.mark.parametrize("mix", MIXES)
def test_never_above_their_renyi_accountant(mix):
    assert epsilon_of(ours(*mix), DELTA) <= theirs(*mix) * (1 + 1e-6)
    doubled = tuple({value: 2 * count for value, count in part.items()} for part in mix)
    assert not epsilon_of(ours(*doubled), DELTA) <= theirs(*mix) * (1 + 1e-6)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("sigma", "mean"), [(8.0, 10.0), (3.0, 2.0), (20.0, 300.0)])
def test_searches_cost_what_their_accountant_says(sigma, mean, shape):
    def asked(of_trials: float) -> float:
        accountant = RdpAccountant(orders=ORDERS, neighboring_relation=RELATION)
        trial = dp_event.GaussianDpEvent(sigma)
        accountant.compose(dp_event.RepeatAndSelectDpEvent(trial, of_trials, shape))
        return accountant.get_epsilon(DELTA)

    epsilon = epsilon_of(RepeatAndSelectEvent(sigma, mean, shape), DELTA)
    assert epsilon == pytest.approx(asked(mean), rel=1e-5)
    # A search that is charged as one of half as many trials, or as its best trial alone.
    assert asked(max(mean / 2, 1.0 + 1e-6)) < 0.995 * epsilon
    assert epsilon_of(GaussianEvent(sigma), DELTA) < 0.8 * epsilon


@pytest.mark.parametrize("shape", [0.0, 1.0])
def test_searches_have_the_closed_form_of_concentrated_trials(shape):
    """For trials of curve rho alpha the best order for the constant is the root of ln(1/gamma) / rho.

    Beyond the root of ln(mean) / rho the curve rises.
    """
    sigma, mean, alpha = 30.0, 20.0, 200.0
    rho, gamma = 0.5 / sigma**2, success_probability(mean, shape)
    at = int(np.argmin(np.abs(ORDERS - alpha)))
    constant = (1 + shape) * (2 * math.sqrt(rho * math.log(1 / gamma)) - rho)
    expected = rho * ORDERS[at] + constant + math.log(mean) / (ORDERS[at] - 1)
    assert trials_curve(BestOfTrials(sigma, mean, shape))[at] == pytest.approx(expected, rel=2e-3)


# ------------------------------------------------------------------ second opinions: loss distributions


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize(("sigma", "count"), [(1.0, 1), (4.0, 3), (20.0, 100), (120.0, 1000)])
def test_gaussians_agree_with_their_loss_distributions(sigma, count, delta):
    accountant = PLDAccountant(neighboring_relation=RELATION, value_discretization_interval=1e-4)
    accountant.compose(dp_event.GaussianDpEvent(sigma / math.sqrt(count)))
    reference = accountant.get_epsilon(delta)
    epsilon = epsilon_of(GaussianEvent(sigma) * count, delta)
    # Theirs rounds losses up to the grid.
    assert epsilon <= reference * (1 + 1e-6)
    assert epsilon >= reference - 2e-4


@pytest.mark.parametrize(("e0", "count"), [(0.5, 1), (0.5, 8), (0.05, 100), (0.01, 1000)])
def test_pure_releases_agree_with_their_loss_distributions(e0, count):
    single = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(e0, 0.0), value_discretization_interval=e0 / 100
    )
    reference = single.self_compose(count).get_epsilon_for_delta(DELTA)
    epsilon = epsilon_of(LaplaceMaxEvent(e0) * count, DELTA)
    assert epsilon <= reference * (1 + 1e-6)
    assert epsilon >= reference * (1 - 0.03) - e0 / 100


def test_mixed_pure_releases_agree_with_their_loss_distributions():
    def single(epsilon: float):
        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=1e-3
        )

    reference = single(0.1).self_compose(30).compose(single(0.4).self_compose(5)).get_epsilon_for_delta(DELTA)
    epsilon = epsilon_of(PureEvent(0.1) * 30 + LaplaceMaxEvent(0.4) * 5, DELTA)
    assert reference * (1 - 0.01) <= epsilon <= reference * (1 + 1e-6)


# ------------------------------------------------------------------ lower bounds


def respects_lower_bounds(accountant, selections: int, e0: float) -> bool:
    """Randomised response at half the range *is* a bounded-range selection, so it must be covered."""
    lowest = pure.epsilon(pieces_of(PureEvent(e0 / 2) * selections), DELTA)
    return accountant(ExponentialEvent(e0) * selections, DELTA) >= lowest * (1 - 1e-9)


@pytest.mark.parametrize(("selections", "e0"), [(1, 1.0), (3, 0.5), (10, 0.2), (100, 0.05), (1000, 0.02), (4000, 0.08)])
def test_never_below_what_randomised_response_achieves(selections, e0):
    assert respects_lower_bounds(epsilon_of, selections, e0)


@pytest.mark.parametrize(("selections", "e0"), [(100, 0.05), (1000, 0.02), (4000, 0.08)])
def test_an_accountant_that_is_five_percent_too_hopeful_is_caught(selections, e0):
    def hopeful(event: Event, delta: float) -> float:
        return 0.95 * epsilon_of(event, delta)

    assert not respects_lower_bounds(hopeful, selections, e0)


@pytest.mark.parametrize("count", [1, 5, 50])
def test_pure_releases_are_charged_exactly(count):
    plan = LaplaceMaxEvent(0.3) * count
    exact = pure.epsilon(pieces_of(plan), DELTA * (1 - 1e-6))
    assert epsilon_of(plan, DELTA) == exact
    assert epsilon_of(ExponentialEvent(0.3) * count, DELTA) <= exact
