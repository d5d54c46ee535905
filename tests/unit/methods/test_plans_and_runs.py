import math

import numpy as np
import pytest

from taciturn.accounting import Budget, epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.records import Records
from taciturn.data.sensitivity import Sensitivity
from taciturn.data.target import numeric_target
from taciturn.engines import ArraySource
from taciturn.events import ComposedEvent
from taciturn.losses import SquaredLoss
from taciturn.mechanisms import CanonicalLipschitz, GumbelTopK, LaplaceTopK, PeelingTopK
from taciturn.methods.frank_wolfe.plan import ClippedCount, number_of_steps, plan_frank_wolfe
from taciturn.methods.frank_wolfe.run import count_nonzero, run_frank_wolfe
from taciturn.methods.schedule import Problem
from taciturn.methods.selection.plan import plan_top_k
from taciturn.methods.selection.run import select_top_k

UNIT = Sensitivity(1.0, "linf", "zero-out")
KINDS = {
    "canonical-lipschitz": CanonicalLipschitz,
    "gumbel": GumbelTopK,
    "peeling": PeelingTopK,
    "laplace": LaplaceTopK,
}


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_every_method_spends_its_budget_and_not_more(method, delta, k):
    budget = Budget(1.0, delta)
    plan = plan_top_k(budget, 100, k, UNIT, method=method)
    assert isinstance(plan.mechanism, KINDS[method])
    planned = ComposedEvent(tuple(release.total for release in plan.releases))
    assert epsilon_of(plan.mechanism.event, plan.budget.delta) == pytest.approx(epsilon_of(planned, plan.budget.delta))
    assert 0.999 < epsilon_of(planned, plan.budget.delta) <= 1.0
    if method != "gumbel":
        assert plan.budget.delta == 0.0


def test_gumbel_uses_delta():
    with_delta = plan_top_k(Budget(1.0, 1e-6), 10_000, 100, UNIT, method="gumbel")
    without = plan_top_k(Budget(1.0, 0.0), 10_000, 100, UNIT, method="gumbel")
    assert with_delta.mechanism.scale < 0.25 * without.mechanism.scale


def test_auto_is_pure_without_delta_and_sharper_with_it():
    assert plan_top_k(Budget(1.0, 0.0), 1000, 60, UNIT).method == "canonical-lipschitz"
    assert plan_top_k(Budget(1.0, 0.0), 1000, 1, UNIT).method == "peeling"
    assert plan_top_k(Budget(1.0, 1e-6), 10**6, 100, UNIT).method == "gumbel"
    assert plan_top_k(Budget(1.0, 1e-6), 30, 10, UNIT).method == "canonical-lipschitz"
    assert plan_top_k(Budget(1.0, 1e-6), 30, 10, UNIT, gamma=0.0).method != "canonical-lipschitz"


def recovered(method, d, k, delta, gap, seeds):
    """How often the exact top k is found at a given gap."""
    scores = np.where(np.arange(d) < k, gap, 0.0)
    plan = plan_top_k(Budget(1.0, delta), d, k, UNIT, method=method)
    hits = [set(select_top_k(plan, scores, Stream.of(seed)).tolist()) == set(range(k)) for seed in range(seeds)]
    return np.mean(hits)


@pytest.mark.parametrize(("d", "k", "delta"), [(1000, 2, 1e-6), (1000, 60, 1e-6), (200, 5, 0.0), (50, 1, 0.0)])
def test_auto_takes_the_method_that_finds_more(d, k, delta):
    chosen = plan_top_k(Budget(1.0, delta), d, k, UNIT).method
    others = {"canonical-lipschitz", "peeling", "gumbel"} - {chosen}
    # The smallest gap at which the chosen one is right half of the time.
    gap = next(gap for gap in np.geomspace(5, 5000, 40) if recovered(chosen, d, k, delta, gap, 20) >= 0.5)
    ours = recovered(chosen, d, k, delta, gap, 100)
    worst = min(recovered(other, d, k, delta, gap, 100) for other in others)
    best = max(recovered(other, d, k, delta, gap, 100) for other in others)
    assert ours > worst + 0.2
    assert ours > best - 0.1


def test_everything_costs_nothing_and_infinity_is_not_private():
    everything = plan_top_k(Budget(1.0, 1e-6), 5, 5, UNIT)
    assert everything.releases == ()
    assert sorted(select_top_k(everything, np.zeros(5), Stream.of(0)).tolist()) == [0, 1, 2, 3, 4]
    exact = plan_top_k(Budget(math.inf, 1e-6), 5, 2, UNIT)
    assert exact.method == "exact"
    assert select_top_k(exact, [1, 9, 2, 8, 0], Stream.of(0)).tolist() == [1, 3]


def test_plans_spawn_a_stream_of_their_own():
    plan = plan_top_k(Budget(1.0, 1e-6), 50, 3, UNIT)
    stream, untouched = Stream.of(0), Stream.of(0)
    draws = {tuple(select_top_k(plan, np.zeros(50), stream).tolist()) for _ in range(20)}
    assert len(draws) == 20
    assert np.array_equal(stream.words(5), untouched.words(5))


def test_bad_requests_are_refused():
    with pytest.raises(ParameterError, match="mechanism='snap': expected one of 'auto'"):
        plan_top_k(Budget(1.0, 0.0), 5, 2, UNIT, method="snap")
    for k in (0, 6, 2.0):
        with pytest.raises(ParameterError, match="k=.*an integer from 1 to 5"):
            plan_top_k(Budget(1.0, 0.0), 5, k, UNIT)


def whole_table(X, target):
    return ArraySource(Records(X, target, np.arange(len(target)), len(target)), 1.0, len(target))


def test_a_private_count_does_not_count_the_intercept():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 6))
    # Without noise the count shows itself: one feature and a large constant fill the ball.
    target = numeric_target(np.clip(0.4 + 0.5 * X[:, 2], -1, 1), (-1.0, 1.0))
    source = whole_table(X, target)
    plan = plan_frank_wolfe(
        Budget(math.inf, 0.0),
        Problem(SquaredLoss(), "zero-out", 400, 6, intercept=True),
        radius=0.9,
        n_steps="auto",
        count=ClippedCount(1, 6, "zero-out", math.inf),
    )
    (weights,) = run_frank_wolfe(plan, source, Stream.of(0))
    assert np.flatnonzero(np.abs(weights) > 0.01).tolist() == [2, 6]
    assert count_nonzero(plan, source, Stream.of(0)) == np.count_nonzero(weights[:6])
    assert count_nonzero(plan, source, Stream.of(0)) < np.count_nonzero(weights)


def test_plans_without_a_count_do_not_count():
    plan = plan_frank_wolfe(Budget(1.0, 1e-6), Problem(SquaredLoss(), "zero-out", 9, 2), radius=1.0, n_steps=5)
    with pytest.raises(TypeError, match="does not count"):
        count_nonzero(plan, whole_table(np.zeros((9, 2)), np.zeros(9)), Stream.of(0))


def test_the_number_of_steps_depends_on_public_facts_alone():
    budget = Budget(1.0, 1e-5)
    assert number_of_steps("auto", budget, None, 200, 10.0) == 80
    assert number_of_steps("auto", budget, 10, 200, 10.0) == 20
    assert number_of_steps("auto", budget, 10**8, 200, 10.0) == 640
    grown = [number_of_steps("auto", budget, n, 200, 10.0) for n in (10_000, 20_000, 40_000)]
    assert grown[1] / grown[0] == pytest.approx(2 ** (2 / 3), rel=0.02)
    assert grown[2] / grown[1] == pytest.approx(2 ** (2 / 3), rel=0.02)
