"""A purse: what is spent along the way never costs more than the whole, whatever is bought and in which order."""

import math
from itertools import pairwise

import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting import Budget, calibrate, satisfies
from taciturn.accounting.gdp import mu_squared, nu, selection_step
from taciturn.certificate import certify
from taciturn.core.errors import CertificateError
from taciturn.events import ComposedEvent, ExponentialEvent, GaussianEvent, NotPrivateEvent
from taciturn.plan.purse import Purse

INF = math.inf
VALUES = 1000
BUDGETS = st.builds(Budget, st.floats(0.05, 20.0), st.sampled_from([1e-9, 1e-6, 1e-3]))
# Each spend: which kind, what part of what is left, how many releases at once.
SPENDS = st.lists(
    st.tuples(st.sampled_from(["gaussian", "selection"]), st.floats(1e-3, 1.0), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


def spend(purse, spends):
    """What was bought, as events at the noise that the purse allowed, one by one in order."""
    bought = []
    for kind, part, count in spends:
        if purse.left > 1e-6:
            noise = getattr(purse, kind)(kind, part * purse.left, count)
            bought.append((GaussianEvent(noise) if kind == "gaussian" else ExponentialEvent(noise), count))
    return bought


def whole(budget):
    """The squared Gaussian parameter of the budget."""
    return calibrate(budget, GaussianEvent) ** -2


def walked(bought):
    """The squared Gaussian parameter of events in the order in which they happened, by the recursion of the theory."""
    x = 0.0
    for event, count in reversed(bought):
        for _ in range(count):
            gaussian = isinstance(event, GaussianEvent)
            x = x + event.noise_multiplier**-2 if gaussian else selection_step(x, event.epsilon)
    return x


def stated(releases, budget):
    """The certificate of these releases."""
    return certify(releases, budget, relation="zero-out", public={}, seeded=False, arithmetic="exact")


@settings(derandomize=True, deadline=None, max_examples=60)
@given(BUDGETS, SPENDS)
def test_prices_never_pass_the_whole_and_certificates_never_pass_the_budget(budget, spends):
    purse = Purse(budget, VALUES)
    bought = spend(purse, spends)
    listed = [release.total for release in purse.releases]
    # What each would cost alone adds up to no more than the whole; in their order they cost no more than that.
    costs = [mu_squared(event * count) for event, count in bought]
    assert walked(bought) <= math.fsum(costs) * (1 + 1e-12)
    assert math.fsum(costs) <= whole(budget)
    assert math.fsum(costs) == pytest.approx((1.0 - purse.left) * whole(budget), rel=1e-7)
    # The certificate lists neither less than was bought nor more.
    assert [mu_squared(event) for event in listed] == pytest.approx(costs, rel=1e-12)
    assert satisfies(ComposedEvent(tuple(listed)), budget, ordered=False)
    assert stated(purse.releases, budget).epsilon <= budget.epsilon


class GenerousPurse(Purse):
    """Selections at the price that each has among many, also where there is one alone."""

    def selection(self, what, share, count=1):
        return super().selection(what, share, count) * nu(count) / math.sqrt(count / 4.0)


@pytest.mark.parametrize("spends", [[("selection", 1.0, 1)], [("selection", 0.2, 1)] * 4 + [("selection", 1.0, 3)]])
def test_selections_at_the_price_of_the_central_limit_are_caught(spends):
    budget = Budget(1.0, 1e-6)
    for kind, caught in ((Purse, False), (GenerousPurse, True)):
        bought = spend(kind(budget, VALUES), spends)
        assert (math.fsum(mu_squared(event * count) for event, count in bought) > 1.05 * whole(budget)) == caught
        assert (walked(bought) > whole(budget)) == caught


@settings(derandomize=True, deadline=None, max_examples=30)
@given(BUDGETS, SPENDS, SPENDS)
def test_what_a_certificate_states_does_not_depend_on_what_was_bought(budget, first, second):
    found = set()
    for spends in (first, second):
        purse = Purse(budget, VALUES)
        spend(purse, spends)
        if purse.left > 1e-9:
            with pytest.raises(CertificateError, match="^left=.*an empty purse"):
                purse.spent()
            purse.selection("the rest", purse.left)
        assert list(purse.spent()) == purse.releases
        certificate = stated(purse.spent(), budget)
        found.add((certificate.epsilon, certificate.bound))
    assert found == {(budget.epsilon, "gdp")}


@pytest.mark.parametrize("budget", [Budget(0.1, 1e-6), Budget(1.0, 1e-6), Budget(8.0, 1e-3)])
def test_the_whole_spent_at_once_is_what_calibration_gives(budget):
    exact = calibrate(budget, GaussianEvent)
    for count in (1, 16):
        multiplier = Purse(budget, VALUES).gaussian("everything", 1.0, count)
        assert multiplier == pytest.approx(exact * math.sqrt(count), rel=2e-9)
        assert multiplier >= exact * math.sqrt(count)
    # Another accountant, which knows nothing of purses.
    assert exact == pytest.approx(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta), rel=1e-5)


def test_equal_shares_buy_the_same_whatever_was_bought_before():
    budget = Budget(1.0, 1e-6)
    early, late = Purse(budget, VALUES), Purse(budget, VALUES)
    late.selection("something else", 0.5)
    assert early.gaussian("sums", 0.25, 3) == late.gaussian("sums", 0.25, 3)
    assert early.selection("columns", 0.25, 7) == late.selection("columns", 0.25, 7)
    assert [(release.what, release.count) for release in late.releases[1:]] == [("sums", 3), ("columns", 7)]


def test_what_selections_add_falls_with_what_follows_them():
    """The inequality on which the theorem rests: F^k(y, e) - y <= nu_k**2 e**2."""
    for e in (1e-3, 0.1, 1.0, 7.0):
        for k in (1, 2, 5, 40):
            added = []
            for y in [0.0, *(e * e * 2.0**power for power in range(-12, 13))]:
                x = y
                for _ in range(k):
                    x = selection_step(x, e)
                added.append(x - y)
            assert max(added) == pytest.approx(nu(k) ** 2 * e * e, rel=1e-12)
            assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(added))
            # The central limit at last; but that price is refuted where nothing follows.
            assert added[-1] == pytest.approx(0.25 * k * e * e, rel=1e-4)
            assert added[0] > (0.25 * k + 0.14) * e * e


@pytest.mark.parametrize("share", [0.0, -0.1, 1.001, math.nan])
@pytest.mark.parametrize("kind", ["gaussian", "selection"])
@pytest.mark.parametrize("epsilon", [1.0, INF])
def test_overspending_is_refused_and_buys_nothing(kind, share, epsilon):
    purse = Purse(Budget(epsilon, 1e-6), VALUES)
    with pytest.raises(CertificateError, match="^share=.*a defect of the plan"):
        getattr(purse, kind)("too much", share)
    assert purse.left == 1.0
    assert purse.releases == []


@pytest.mark.parametrize("parts", [[1.0], [0.7, 0.3], [0.1] * 10, [1 / 7] * 7])
def test_an_empty_purse_stays_empty(parts):
    purse = Purse(Budget(1.0, 1e-6), VALUES)
    for part in parts:
        purse.gaussian("a part", part)
    with pytest.raises(CertificateError, match="^share="):
        purse.selection("a crumb", 1e-9)
    assert len(purse.releases) == len(parts)


def test_without_privacy_nothing_is_noisy_and_nothing_is_hidden():
    purse = Purse(Budget(INF, 0.0), VALUES)
    assert (purse.private, purse.mu) == (False, INF)
    assert purse.gaussian("sums", 0.4, 3) == 0.0
    assert purse.selection("columns", 0.6, 2) == INF
    assert all(isinstance(release.event, NotPrivateEvent) for release in purse.releases)
    assert [(release.what, release.count) for release in purse.releases] == [("sums", 3), ("columns", 2)]
    certificate = stated(purse.spent(), Budget(INF, 0.0))
    assert (certificate.status, certificate.epsilon) == ("not private", INF)
