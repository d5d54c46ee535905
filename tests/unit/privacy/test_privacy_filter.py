"""A privacy filter: what is spent along the way never costs more than the whole, whatever is bought in which order."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from taciturn import SparseClassifier, SparseRegressor
from taciturn.accounting import Budget, PrivacyFilter, best_bound, calibrate, satisfies
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.events import ComposedEvent, ExponentialEvent, GaussianEvent, NotPrivateEvent, for_group
from taciturn.methods.releases import list_spends
from taciturn.privacy.budget import pieces_of
from taciturn.privacy.certificate import Certificate, certify
from taciturn.privacy.filter import Spend, chain_holds
from taciturn.privacy.gdp import mu_squared, nu, selection_step

INF = math.inf
BUDGETS = st.builds(Budget, st.floats(0.05, 20.0), st.sampled_from([1e-9, 1e-6, 1e-3]))
# Each spend: which kind, what part of what remains, how many releases at once.
SPENDS = st.lists(
    st.tuples(st.sampled_from(["gaussian", "selection"]), st.floats(1e-3, 1.0), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


def spend(budget, spends):
    """What was bought, as events at the noise that the filter allowed, one by one in order."""
    bought = []
    for kind, part, count in spends:
        if budget.remaining > 1e-6:
            noise = getattr(budget, kind)(kind, part * budget.remaining, count)
            bought.append((GaussianEvent(noise) if kind == "gaussian" else ExponentialEvent(noise), count))
    return bought


def whole(budget):
    """The squared Gaussian parameter of the budget."""
    return calibrate(budget, GaussianEvent) ** -2


def walked(bought, x=0.0):
    """The squared Gaussian parameter of events in the order in which they happened, by the recursion of the theory."""
    for event, count in reversed(bought):
        for _ in range(count):
            gaussian = isinstance(event, GaussianEvent)
            x = x + event.noise_multiplier**-2 if gaussian else selection_step(x, event.epsilon)
    return x


def stated(spends, budget):
    """The certificate of what was bought."""
    return certify(list_spends(spends), budget, relation="zero-out", public={}, seeded=False, arithmetic="exact")


# ------------------------------------------------------------------ prices


@settings(derandomize=True, deadline=None, max_examples=60)
@given(BUDGETS, SPENDS)
def test_what_is_bought_costs_what_is_paid_and_certificates_never_pass_the_budget(budget, spends):
    filled = PrivacyFilter(budget)
    bought = spend(filled, spends)
    # In their order, with all that remains spent on a Gaussian release, they cost the whole and nothing more.
    rest = filled.remaining * filled.mu**2
    assert walked(bought, rest) <= whole(budget)
    assert walked(bought, rest) == pytest.approx(whole(budget), rel=1e-8)
    # Listed as Gaussian releases of the same price.
    events = [one.event * one.count for one in filled.spends]
    assert math.fsum(mu_squared(event) for event in events) == pytest.approx(filled.mu**2 - rest, rel=1e-9)
    assert satisfies(ComposedEvent(tuple(events)), budget, ordered=False)
    assert stated(filled.spends, budget).epsilon <= budget.epsilon


class PricedAlone(PrivacyFilter):
    """Selections at the price that they have where nothing can follow: sound, and dearer than they need be."""

    def range_of(self, share, count=1):
        return math.sqrt(share) * self.mu / nu(count)


class PricedByWhatWasThere(PrivacyFilter):
    """The mutant: F(y, .) at the y before a selection instead of the one after it."""

    def range_of(self, share, count=1):
        asked, self.remaining = self.remaining, self.remaining + share
        try:
            return super().range_of(share, count)
        finally:
            self.remaining = asked


class PricedByTheLimit(PrivacyFilter):
    """The mutant: selections at the price that each has among very many."""

    def range_of(self, share, count=1):
        return 2.0 * math.sqrt(share / count) * self.mu


CHAINS = [
    [("selection", 1.0, 1)],
    [("selection", 0.5, 1), ("gaussian", 1.0, 1)],
    [("gaussian", 0.3, 1), ("selection", 0.7, 2), ("gaussian", 1.0, 1)],
    [("selection", 0.2, 1)] * 4 + [("selection", 1.0, 3)],
]


def hockey_stick(bought, mu_end, log_gammas):
    """The worst P(S) - gamma Q(S) of everything, on a grid: numbers, not the theory.

    Backwards from what follows, which is exactly mu-GDP. A selection of range e: the worst two-point law, the larger
    ratio being any e**t; a Gaussian release: a mean over its loss. Values between the points of the grid are those of
    chords, which lie above a convex function; t runs over a grid of its own, from below.
    """
    gammas = np.exp(log_gammas)
    near, far = (mu_end / 2 - log_gammas / mu_end, -mu_end / 2 - log_gammas / mu_end) if mu_end else (0.0, 0.0)
    H = ndtr(near) - np.exp(log_gammas + log_ndtr(far)) if mu_end else np.maximum(1.0 - gammas, 0.0)
    nodes = np.linspace(-8.5, 8.5, 681)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()

    def at(shift):
        asked = np.exp(log_gammas - shift)
        inside = np.interp(asked, gammas, H)
        return np.where(asked < gammas[0], np.maximum(inside, 1.0 - asked), inside)

    for event, count in reversed(bought):
        for _ in range(count):
            if isinstance(event, GaussianEvent):
                mu = 1.0 / event.noise_multiplier
                H = sum(w * at(mu * mu / 2 + mu * z) for w, z in zip(weights, nodes, strict=True))
            else:
                e, best = event.epsilon, np.zeros_like(H)
                for t in np.linspace(0.0, e, 41):
                    p = math.expm1(e - t) / math.expm1(e) * math.exp(t)
                    best = np.maximum(best, p * at(t) + (1.0 - p) * at(t - e))
                H = best
    return H


LOG_GAMMAS = np.linspace(-9.0, 9.0, 3001)


def excess(kind, chain):
    """By how much a chain passes what the budget allows, relative to that, at its worst over epsilons up to 4."""
    filled = kind(Budget(1.0, 1e-3))
    bought = spend(filled, chain)
    mu = filled.mu
    allowed = ndtr(mu / 2 - LOG_GAMMAS / mu) - np.exp(LOG_GAMMAS + log_ndtr(-mu / 2 - LOG_GAMMAS / mu))
    relevant = (LOG_GAMMAS >= 0.0) & (allowed > 1e-6)
    return float((hockey_stick(bought, 0.0, LOG_GAMMAS) / allowed)[relevant].max() - 1.0)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_by_numbers_no_chain_passes_the_budget_and_all_come_close(chain):
    assert excess(PrivacyFilter, chain) <= 1e-3
    assert excess(PrivacyFilter, chain) > -0.05
    if len(chain) > 1:
        assert excess(PrivacyFilter, chain) > excess(PricedAlone, chain)


@pytest.mark.parametrize("kind", [PricedByWhatWasThere, PricedByTheLimit])
def test_by_numbers_mutants_are_caught(kind):
    assert max(excess(kind, chain) for chain in CHAINS) > 0.05


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [(PrivacyFilter, "exact"), (PricedAlone, "dear"), (PricedByWhatWasThere, "false"), (PricedByTheLimit, "false")],
)
def test_the_recursion_tells_exact_prices_from_dear_and_false_ones(kind, verdict):
    for chain in CHAINS[1:]:
        budget = Budget(1.0, 1e-6)
        filled = kind(budget)
        cost = walked(spend(filled, chain)) / filled.mu**2
        assert {"exact": abs(cost - 1.0) < 1e-9, "dear": cost < 0.98, "false": cost > 1.01}[verdict]
        assert chain_holds(filled.spent()) == (verdict != "false")


def test_a_lone_selection_before_much_has_a_fifth_less_noise():
    """The noise of a selection is one over its range: e = 2 sqrt(s) instead of sqrt(s) / nu_1, to first order."""
    for share, saved in ((0.01, 0.20), (0.03, 0.20), (0.06, 0.197)):
        ranges = [kind(Budget(5.0, 1e-6)).range_of(share) for kind in (PricedAlone, PrivacyFilter)]
        assert 1.0 - ranges[0] / ranges[1] == pytest.approx(saved, abs=3e-3)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(1e-4, 1.0), st.floats(1e-3, 1.0), st.integers(1, 60))
def test_a_range_and_its_price_belong_together(before, part, count):
    bought, given = (PrivacyFilter(Budget(2.0, 1e-6)) for _ in range(2))
    for filled in (bought, given):
        if before < 1.0:
            filled.gaussian("something", 1.0 - before)
    share = part * bought.remaining
    selection_range = bought.selection("columns", share, count)
    price = given.selection_of_range("columns", selection_range, count)
    # The largest remainder: never less than where the range came from, and paid for to the last digit.
    assert price <= share * (1 + 1e-6) + 1e-11
    unit = selection_range / given.mu
    assert selection_step(given.remaining, unit, count) <= before * (1 + 1e-9) + 1e-11
    assert selection_step(given.remaining * (1 + 1e-6) + 1e-9, unit, count) >= before * (1 - 1e-9) - 1e-11
    assert given.spends[-1].parameter == selection_range


def test_of_several_remainders_the_largest_is_kept():
    # F(y, e) = e**2 / 2 for all y from 0.107 e**2 to 0.125 e**2.
    e = math.sqrt(2.0)
    for y in (0.2147, 0.23, 0.25):
        assert selection_step(y, e) == pytest.approx(1.0, rel=1e-12)
    filled = PrivacyFilter(Budget(1.0, 1e-6))
    price = filled.selection_of_range("a median", e * filled.mu * (1 - 1e-9))
    # Hardly more than the largest of them: F leaves its minimum slowly.
    assert 0.25 <= filled.remaining == 1.0 - price < 0.2501
    for bad in (0.0, -1.0, math.nan, 1.6 * filled.mu):
        with pytest.raises(CertificateError, match="^selection_range="):
            filled.selection_of_range("too much", bad)


# ------------------------------------------------------------------ what is stated


@settings(derandomize=True, deadline=None, max_examples=20)
@given(BUDGETS, SPENDS, SPENDS)
def test_what_a_certificate_states_does_not_depend_on_what_was_bought(budget, first, second):
    found = set()
    for spends in (first, second):
        filled = PrivacyFilter(budget, 1e-20)
        spend(filled, spends)
        if filled.remaining > 1e-9:
            with pytest.raises(CertificateError, match="^remaining=.*an exhausted filter"):
                filled.spent()
            filled.selection("the rest", filled.remaining)
        assert list(filled.spent()) == filled.spends
        assert chain_holds(filled.spent())
        certificate = stated(filled.spent(), budget)
        assert pieces_of(certificate.event).distance == pytest.approx(1e-20, rel=1e-9)
        pair = best_bound(for_group(certificate.event, 2), 0.1).epsilon
        found.add((certificate.epsilon, certificate.bound, f"{pair:.7g}"))
    assert len(found) == 1
    assert found.pop()[:2] == (budget.epsilon, "gdp")


def spends_of(certificate):
    """What a verifier reads off a certificate."""
    kinds = {"Gaussian": ("gaussian", 1), "Gumbel": ("selection", -1)}
    for line in certificate.events:
        mechanism, power = kinds[line.noise]
        parameter = line.scale if power == 1 else 2.0 / line.scale
        yield Spend(line.what, mechanism, parameter, line.count, line.event, line.remaining)


@pytest.mark.parametrize("settings", [{"n_nonzero": 3}, {"n_nonzero": "auto"}, {"n_nonzero": 3, "method": "one-shot"}])
@pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
def test_a_verifier_can_check_a_certificate_by_what_remained(kind, settings):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 20))
    y = X[:, 0] + 0.2 * rng.standard_normal(1500)
    model = kind(epsilon=3.0, random_state=0, **settings).fit(X, y > 0 if kind is SparseClassifier else y)
    certificate = Certificate.from_json(model.certificate_.to_json())
    assert certificate == model.certificate_
    spends = list(spends_of(certificate))
    assert chain_holds(spends)
    # It notices ranges and multipliers that were not paid for, a remainder that was not there, and a missing line.
    for place, one in enumerate(spends):
        noise = 1.001 if one.mechanism == "selection" else 0.999
        changes = [{"parameter": one.parameter * noise}, {"remaining": one.remaining + 1e-3}]
        for change in changes:
            assert not chain_holds([*spends[:place], dataclasses.replace(one, **change), *spends[place + 1 :]])
    assert not chain_holds(spends[:-1])
    swapped = next(i for i, (a, b) in enumerate(pairwise(spends)) if a.mechanism != b.mechanism)
    assert not chain_holds([*spends[:swapped], spends[swapped + 1], spends[swapped], *spends[swapped + 2 :]])


@pytest.mark.parametrize("budget", [Budget(0.1, 1e-6), Budget(1.0, 1e-6), Budget(8.0, 1e-3)])
def test_the_whole_spent_at_once_is_what_calibration_gives(budget):
    exact = calibrate(budget, GaussianEvent)
    for count in (1, 16):
        multiplier = PrivacyFilter(budget).gaussian("everything", 1.0, count)
        assert multiplier == pytest.approx(exact * math.sqrt(count), rel=2e-9)
        assert multiplier >= exact * math.sqrt(count)
        assert PrivacyFilter(budget).selection("everything", 1.0, count) == pytest.approx(1 / (exact * nu(count)))
    # Another accountant, which knows nothing of filters.
    assert exact == pytest.approx(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta), rel=1e-5)


def test_equal_shares_buy_the_same_noise_and_the_larger_ranges_the_more_remains():
    budget = Budget(1.0, 1e-6)
    early, late = PrivacyFilter(budget), PrivacyFilter(budget)
    late.selection("something else", 0.5)
    assert early.gaussian("sums", 0.25, 3) == late.gaussian("sums", 0.25, 3)
    assert early.selection("columns", 0.25, 7) > late.selection("columns", 0.25, 7)
    assert [(one.what, one.count) for one in late.spends[1:]] == [("sums", 3), ("columns", 7)]
    assert [one.event for one in early.spends] == [one.event for one in late.spends[1:]]


def test_what_selections_add_falls_with_what_follows_them():
    """Prices lie between F^k(0, e) = nu_k**2 e**2 and k e**2 / 4."""
    for e in (1e-3, 0.1, 1.0, 7.0):
        for k in (1, 2, 5, 40):
            added = []
            for y in [0.0, *(e * e * 2.0**power for power in range(-12, 13))]:
                x = y
                for _ in range(k):
                    x = selection_step(x, e)
                assert selection_step(y, e, k) == pytest.approx(x, rel=1e-12)
                added.append(x - y)
            assert max(added) == pytest.approx(nu(k) ** 2 * e * e, rel=1e-12)
            assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(added))
            # The central limit at last; but that price is refuted where nothing follows.
            assert added[-1] == pytest.approx(0.25 * k * e * e, rel=1e-4)
            assert added[0] > (0.25 * k + 0.14) * e * e


# ------------------------------------------------------------------ edges


@pytest.mark.parametrize("share", [0.0, -0.1, 1.001, math.nan])
@pytest.mark.parametrize("kind", ["gaussian", "selection"])
@pytest.mark.parametrize("epsilon", [1.0, INF])
def test_overspending_is_refused_and_buys_nothing(kind, share, epsilon):
    budget = PrivacyFilter(Budget(epsilon, 1e-6))
    with pytest.raises(CertificateError, match="^share=.*a defect of the plan"):
        getattr(budget, kind)("too much", share)
    assert budget.remaining == 1.0
    assert budget.spends == []


@pytest.mark.parametrize("parts", [[1.0], [0.7, 0.3], [0.1] * 10, [1 / 7] * 7])
def test_an_exhausted_filter_stays_exhausted(parts):
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    for part in parts:
        budget.gaussian("a part", part)
    with pytest.raises(CertificateError, match="^share="):
        budget.selection("a crumb", 1e-9)
    assert len(budget.spends) == len(parts)


@pytest.mark.parametrize("share", [1e-12, 1e-15])
@pytest.mark.parametrize("kind", ["gaussian", "selection"])
def test_of_an_exhausted_filter_no_crumb_is_sold(kind, share):
    """The tolerance for rounding is granted once: 20,000 crumbs of it would pass the budget by 1.8e-8 of itself."""
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    budget.gaussian("half", 0.5)
    budget.gaussian("the rest, rounded up", 0.5 + 1e-13)
    with pytest.raises(CertificateError, match="^share="):
        getattr(budget, kind)("a crumb", share)
    assert math.fsum(one.price for one in budget.spends) <= whole(Budget(1.0, 1e-6))


def test_there_are_not_arbitrarily_many_releases_for_next_to_nothing():
    # A price below the rounding of what remains would never be noticed there.
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    budget.gaussian("crumbs", 1e-18, 600_000)
    assert budget.remaining == 1.0
    for kind in ("gaussian", "selection"):
        with pytest.raises(ParameterError, match="^count=400001: expected an integer from 1 to 400000"):
            getattr(budget, kind)("more crumbs", 1e-18, 400_001)
    budget.gaussian("more crumbs", 1e-18, 400_000)
    with pytest.raises(ParameterError, match="^count=1: "):
        budget.gaussian("one more", 1e-18)


def test_without_privacy_nothing_is_noisy_and_nothing_is_hidden():
    budget = PrivacyFilter(Budget(INF, 0.0))
    assert (budget.private, budget.mu) == (False, INF)
    # No noise is drawn, so that no distance was announced.
    assert budget.gaussian("sums", 0.4, 3, distance=0.1) == 0.0
    assert budget.selection("columns", 0.6, 2) == INF
    assert all(isinstance(one.event, NotPrivateEvent) for one in budget.spends)
    assert [(one.what, one.count) for one in budget.spends] == [("sums", 3), ("columns", 2)]
    assert not chain_holds(budget.spent())
    certificate = stated(budget.spent(), Budget(INF, 0.0))
    assert (certificate.status, certificate.epsilon) == ("not private", INF)
