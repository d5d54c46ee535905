"""What an account holds, and what fits cost it: against independent arithmetic, and against exact laws."""

import math

import mpmath
import pytest

from taciturn import Budget, CertificateError, ParameterError
from taciturn.accounting import PrivacyFilter
from taciturn.events import (
    ApproximateEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    PureEvent,
)
from taciturn.privacy.filter import chain_holds
from taciturn.privacy.gdp import delta_of_mu
from taciturn.privacy.ledger import (
    DELTA_UNITS,
    DISTANCE_UNITS,
    EPSILON_UNITS,
    GAUSSIAN_UNITS,
    Price,
    prices_of,
    totals_of,
)

# ------------------------------------------------------------------ totals


def gaussian_delta(mu, epsilon):
    """The hockey-stick divergence of N(mu, 1) from N(0, 1), to fifty digits."""
    with mpmath.workdps(50):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        if mu == 0:
            return mpmath.mpf(0) if epsilon >= 0 else 1 - mpmath.e**epsilon
        return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.e**epsilon * mpmath.ncdf(-epsilon / mu - mu / 2)


def stated_delta(totals, epsilon):
    """What the theorem states for the totals, from integers alone."""
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.mpf(totals.gaussian) / GAUSSIAN_UNITS)
        shift = mpmath.mpf(totals.epsilon) / EPSILON_UNITS
        samplers = (1 + mpmath.e**epsilon) * mpmath.mpf(totals.distance) / DISTANCE_UNITS
        return gaussian_delta(mu, epsilon - shift) + mpmath.mpf(totals.delta) / DELTA_UNITS + samplers


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-5, 0.01])
@pytest.mark.parametrize("second", [(0.0, 0.0), (0.25, 0.5), (0.9, 0.01)])
def test_totals_prove_what_the_account_states_and_waste_nothing(epsilon, delta, second):
    totals = totals_of(epsilon, delta, (second[0] * epsilon, second[1] * delta))
    stated = stated_delta(totals, mpmath.mpf(epsilon))
    assert stated <= delta
    # A millionth of delta is kept back for rounding, and a ten-millionth for samplers. Units are coarse beside the
    # smallest of the budgets.
    assert stated > delta * (1 - 2e-6) - 1e-12 * (epsilon < 0.02)
    more = Price(totals.gaussian + max(totals.gaussian // 10**6, 10), *totals.values[1:])
    assert stated_delta(more, mpmath.mpf(epsilon)) > delta * (1 - 1e-6)


def test_an_approximate_budget_may_be_all_of_it_or_none():
    assert totals_of(1.0, 0.0, (1.0, 0.0)) == Price(epsilon=10**15)
    assert totals_of(1.0, 1e-6).values[1:3] == (0, 0)
    assert totals_of(2.0, 1e-6, (2.0, 1e-6)).values[:3] == (0, 2 * 10**15, 10**12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "approximate", "parameter"),
    [
        (math.inf, 1e-6, (0, 0), "epsilon"),
        (0.0, 1e-6, (0, 0), "epsilon"),
        (31.0, 1e-6, (0, 0), "epsilon"),
        (1.0, 0.0, (0, 0), "delta"),
        (1.0, 1.0, (0, 0), "delta"),
        (1.0, 1e-6, (1.1, 0), "approximate"),
        (1.0, 1e-6, (0.5, 1e-5), "approximate"),
        (1.0, 1e-6, (-0.5, 0), "approximate"),
        (1.0, 1e-6, 0.5, "approximate"),
        (1.0, 1e-6, (math.nan, 0), "approximate"),
    ],
)
def test_totals_that_mean_nothing_are_refused(epsilon, delta, approximate, parameter):
    with pytest.raises(ParameterError, match=f"^{parameter}="):
        totals_of(epsilon, delta, approximate)


# ------------------------------------------------------------------ prices


def test_gaussian_releases_cost_their_squares_rounded_up():
    (first, second) = prices_of(GaussianEvent(4.0, 2.0**-118) * 3, Budget(10.0, 1e-6))
    exact = 3 * 10**15 // 16
    assert first.epsilon == first.delta == 0
    # By 2**-40, and by less than one unit.
    assert exact < first.gaussian <= exact * (1 + 2.0**-39) + 1
    assert first.distance == math.ceil(3 * 2.0**-118 * 1e30)
    assert second == Price(epsilon=10**16, delta=10**12)


def test_decimal_budgets_cost_decimal_prices():
    budget = Budget(0.1, 1e-7)
    *_, price = prices_of(ApproximateEvent(0.1, 1e-7), budget)
    assert price == Price(epsilon=10**14, delta=10**11)
    total = totals_of(1.0, 1e-6, (1.0, 1e-6))
    spent = Price()
    for _ in range(10):
        spent += price
        assert spent.fits(total)
    # In floats ten times 0.1 is one, but added up it is not; of integers it is, and the eleventh is refused.
    assert sum([0.1] * 10) != 1.0
    assert spent.values[:3] == total.values[:3]
    assert not (spent + price).fits(total)


def test_what_has_no_gaussian_parameter_costs_the_approximate_budget_alone():
    objective = ObjectivePerturbationEvent(log_jacobian=0.01, shift=0.05, replaced=False)
    for event in (ApproximateEvent(0.5, 1e-8), objective, GaussianEvent(10.0) + ApproximateEvent(0.2, 1e-8)):
        (price,) = prices_of(event, Budget(2.0, 1e-6))
        assert price == Price(epsilon=2 * 10**15, delta=10**12)


def test_a_pure_release_costs_no_delta_of_the_approximate_budget():
    assert list(prices_of(PureEvent(0.5), Budget(0.5, 1e-6)))[1] == Price(epsilon=5 * 10**14)
    # By the pure bound these cost more than the budget, so that delta is needed.
    many = ExponentialEvent(0.02) * 100
    assert list(prices_of(many, Budget(1.0, 1e-6)))[1] == Price(epsilon=10**15, delta=10**12)


def test_two_halves_are_charged_once_each_component_by_its_dearest_branch():
    cheap, dear = GaussianEvent(9.0, 1e-20), GaussianEvent(5.0, 1e-25)
    price = next(iter(prices_of(ParallelEvent((cheap, dear)), Budget(10.0, 1e-6))))
    alone = [next(iter(prices_of(event, Budget(10.0, 1e-6)))) for event in (cheap, dear)]
    assert price == Price(max(each.gaussian for each in alone), 0, 0, max(each.distance for each in alone))


def test_order_matters_where_it_is_known():
    plan = ExponentialEvent(0.5) + ExponentialEvent(0.1) * 50
    ordered, any_order = (next(iter(prices_of(plan, Budget(5.0, 1e-6), ordered=known))) for known in (True, False))
    assert ordered.gaussian < any_order.gaussian


@pytest.mark.parametrize(
    ("event", "budget"),
    [
        (NotPrivateEvent(), Budget(math.inf, 0.0)),
        (GaussianEvent(1.0), Budget(1.0, 1e-6)),
        (PureEvent(2.0), Budget(1.0, 0.0)),
    ],
)
def test_what_is_not_within_a_finite_budget_has_no_price(event, budget):
    with pytest.raises(ParameterError, match="^epsilon="):
        list(prices_of(event, budget))


def test_prices_are_integers_that_databases_can_add():
    for wrong in (-1, 2**63, 1.0, True, "1"):
        with pytest.raises(ParameterError):
            Price(gaussian=wrong)
    assert (Price(2**62) + Price(2**62 - 1)).gaussian == 2**63 - 1


# ------------------------------------------------------------------ the theorem, on laws that can be written down


def response(epsilon, delta):
    """The worst (epsilon, delta)-DP release: outcomes with their probabilities on both sides."""
    rest, odds = 1.0 - delta, math.exp(epsilon)
    return [
        (delta, 0.0),
        (rest * odds / (1 + odds), rest / (1 + odds)),
        (rest / (1 + odds), rest * odds / (1 + odds)),
        (0.0, delta),
    ]


def divergence(release, t):
    """The hockey-stick divergence at exp(t) of a release after every outcome of which another one may follow."""
    kind, *parameters = release
    if kind == "nothing":
        return max(1.0 - math.exp(t), 0.0)
    if kind == "gaussian":
        return float(gaussian_delta(parameters[0], t))
    budget, following = parameters
    total = 0.0
    for (p, q), after in zip(response(*budget), following, strict=True):
        if p > 0.0 and q == 0.0:
            total += p
        elif p > 0.0:
            total += p * divergence(after, t + math.log(q / p))
    return total


NOTHING = ("nothing",)
# Adaptive studies that a budget of (1.0, 0.02) and mu = 0.8 can pay for: what comes next depends on what came out.
STUDIES = {
    "one after the other": ("response", (1.0, 0.02), [("gaussian", 0.8)] * 4),
    "only where it looked good": ("response", (1.0, 0.02), [("gaussian", 0.8), ("gaussian", 0.8), NOTHING, NOTHING]),
    "in two steps": (
        "response",
        (0.4, 0.01),
        [("response", (0.6, 0.01), [("gaussian", 0.8), ("gaussian", 0.3), ("gaussian", 0.8), NOTHING])] * 2
        + [("gaussian", 0.8), ("response", (0.6, 0.01), [("gaussian", 0.8)] * 4)],
    ),
}
GRID = [-1.5, -0.5, 0.0, 0.3, 0.9, 1.0, 1.6, 2.5, 4.0]


def promised(t, *, shift=1.0, constant=0.02, mu=0.8):
    return float(gaussian_delta(mu, t - shift)) + constant


@pytest.mark.parametrize("study", STUDIES)
def test_adaptive_studies_keep_to_the_two_budgets(study):
    for t in GRID:
        assert divergence(STUDIES[study], t) <= promised(t) + 1e-12


def test_the_two_budgets_are_needed():
    study = STUDIES["one after the other"]
    # Without the shift, without the constant, or with less of the Gaussian budget the statement is false.
    for less in ({"shift": 0.9}, {"constant": 0.015}, {"mu": 0.7}):
        assert any(divergence(study, t) > promised(t, **less) for t in [*GRID, 6.0, 8.0])


def test_the_filter_of_a_process_has_the_same_two_budgets():
    budget = PrivacyFilter(Budget(3.0, 0.03), 1e-12, (1.0, 0.02))
    # In one process a millionth of delta is kept back, in an account half of that.
    assert budget.mu == pytest.approx(totals_of(3.0, 0.03, (1.0, 0.02)).mu, rel=1e-6)
    for epsilon, delta in ((0.4, 0.01), (0.6, 0.01)):
        budget.gaussian("a mean", 0.25)
        budget.approximate_release("a model", epsilon, delta)
    with pytest.raises(CertificateError, match=r"^epsilon=1e-06, delta=0.0: expected at most \(0.0, 0.0\)"):
        budget.approximate_release("a model", 1e-6)
    budget.gaussian("a mean", 0.5)
    assert chain_holds(budget.spent())
    for epsilon, delta in ((3.0, 0.0), (1.0, 0.03)):
        with pytest.raises(ParameterError, match="^approximate="):
            PrivacyFilter(Budget(3.0, 0.03), 0.0, (epsilon, delta))


def test_budgets_that_are_chosen_after_looking_cost_more_than_any_of_the_runs():
    """Each run has a certificate of its own; the largest of these is not the cost of the study."""
    branches = [("gaussian", 0.5), ("gaussian", 0.1)]
    epsilon, delta = 0.5, 1e-3

    def run_costs(mu):
        return delta + delta_of_mu(2.0 - epsilon, mu)

    study = ("response", (epsilon, delta), [branches[0], branches[1], branches[0], branches[1]])
    assert divergence(study, 2.0) > run_costs(0.1)
    assert divergence(study, 2.0) <= run_costs(0.5)
