"""Bounds on tests of membership: never below what the best test achieves, and close to it where that is known.

The best tests come from elsewhere: mpmath's normal law, the privacy loss distributions of dp_accounting, and the
lemma of Neyman and Pearson on laws that are written out.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from taciturn.accounting import attack_rates, delta_of, mu_of
from taciturn.events import (
    ApproximateEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    ParallelEvent,
    PureEvent,
    for_group,
)

LEVELS = (0.001, 0.01, 0.05)
INTERVAL = 2e-4


def check_above(rates, powers, advantage, *, within=None):
    """The bounds are at least these numbers, and where ``within`` is given larger by no greater share."""
    for bound, exact in zip((*rates.tpr, rates.advantage), (*powers, advantage), strict=True):
        assert exact * (1.0 - 1e-6) <= bound <= 1.0
        assert within is None or bound <= exact * (1.0 + within)


# ------------------------------------------------------------------ references


def gaussian_test(mu):
    """Power at each level, and the advantage, of the best test of N(mu, 1) against N(0, 1)."""
    with mpmath.workdps(30):
        powers = [mpmath.ncdf(mpmath.erfinv(2 * mpmath.mpf(level) - 1) * mpmath.sqrt(2) + mu) for level in LEVELS]
        return [float(power) for power in powers], float(2 * mpmath.ncdf(mpmath.mpf(mu) / 2) - 1)


def losses_test(loss_distribution, *corners):
    """The same from a privacy loss distribution: the smallest of all lines above the trade-off curve."""
    epsilons = np.sort([*np.linspace(0.0, 8.0, 4001), *corners])
    deltas = np.asarray(loss_distribution.get_delta_for_epsilon(epsilons.tolist()))
    powers = []
    for level in LEVELS:
        lines = np.exp(epsilons) * level + deltas, 1.0 - np.exp(-epsilons) * (1.0 - deltas - level)
        powers.append(min(float(lines[0].min()), float(lines[1].min()), 1.0))
    return powers, float(deltas[0])


def listed_test(one, other):
    """The same for two laws on a finite set, by Neyman and Pearson: outcomes by ratio, the last one in part."""
    with np.errstate(divide="ignore"):
        order = np.argsort(-(one / other), kind="stable")
    power, level = np.cumsum(one[order]), np.cumsum(other[order])
    powers = np.interp(LEVELS, np.concatenate([[0.0], level]), np.concatenate([[0.0], power]))
    return powers.tolist(), 0.5 * float(np.abs(one - other).sum())


def product(*laws):
    """The joint law of independent outcomes."""
    joint = np.ones(1)
    for law in laws:
        joint = np.multiply.outer(joint, np.asarray(law)).ravel()
    return joint


def responses(epsilon):
    """Randomised response: the laws with the record and without it."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return np.array([truth, 1.0 - truth]), np.array([1.0 - truth, truth])


# ------------------------------------------------------------------ Gaussian noise


@pytest.mark.parametrize("multipliers", [(1.0,), (0.4,), (25.0,), (2.0, 2.0, 2.0), (5.0, 1.5, 9.0)])
def test_gaussian_noise_gives_the_power_of_the_best_test(multipliers):
    event = ComposedEvent(tuple(map(GaussianEvent, multipliers)))
    mu = math.sqrt(sum(multiplier**-2 for multiplier in multipliers))
    powers, advantage = gaussian_test(mu)
    check_above(attack_rates(event), powers, advantage, within=1e-7)
    assert mu <= mu_of(event) <= mu * (1.0 + 1e-8)


def test_gaussian_noise_agrees_with_dp_accounting():
    event = ComposedEvent((GaussianEvent(3.0) * 4, GaussianEvent(2.0)))

    def losses(pessimistic):
        options = {
            "value_discretization_interval": INTERVAL,
            "pessimistic_estimate": pessimistic,
            "use_connect_dots": pessimistic,
        }
        three, two = (pld.from_gaussian_mechanism(multiplier, **options) for multiplier in (3.0, 2.0))
        return three.self_compose(4).compose(two)

    check_above(attack_rates(event), *losses_test(losses(False)), within=0.01)
    powers, advantage = losses_test(losses(True))
    for bound, above in zip(
        (*attack_rates(event).tpr, attack_rates(event).advantage), (*powers, advantage), strict=True
    ):
        assert bound <= above * (1.0 + 1e-6)
    # The profile from which the rates come agrees as well.
    for epsilon in (0.0, 0.5, 2.0):
        assert delta_of(event, epsilon) == pytest.approx(losses(True).get_delta_for_epsilon(epsilon), rel=1e-3)


def test_wrong_gaussian_parameters_are_seen():
    multipliers = (2.0, 3.0)
    powers, advantage = gaussian_test(math.sqrt(sum(multiplier**-2 for multiplier in multipliers)))
    # Noise taken for twice what it is: bounds that are passed.
    doubled = attack_rates(ComposedEvent(tuple(GaussianEvent(2.0 * multiplier) for multiplier in multipliers)))
    with pytest.raises(AssertionError):
        check_above(doubled, powers, advantage)
    # Parameters added instead of their squares: bounds that hold, and are far too large.
    summed = attack_rates(GaussianEvent(1.0 / sum(1.0 / multiplier for multiplier in multipliers)))
    check_above(summed, powers, advantage)
    with pytest.raises(AssertionError):
        check_above(summed, powers, advantage, within=1e-3)


def test_bounds_from_epsilon_and_delta_alone_are_far_larger():
    event = GaussianEvent(1.0)
    rates = attack_rates(event)
    for epsilon in (1.0, 4.0):
        delta = delta_of(event, epsilon)
        for level, rate in zip(rates.fpr, rates.tpr, strict=True):
            assert rate <= math.exp(epsilon) * level + delta
    assert rates.tpr[2] < 0.6 * (0.05 * math.e + delta_of(event, 1.0)) + 0.2


# ------------------------------------------------------------------ pure releases


@pytest.mark.parametrize("epsilons", [(1.0,), (0.1,), (4.0,), (0.5, 0.5, 0.5), (0.2, 1.0, 0.7)])
def test_pure_releases_give_the_power_against_randomised_response(epsilons):
    one, other = (product(*laws) for laws in zip(*map(responses, epsilons), strict=True))
    powers, advantage = listed_test(one, other)
    check_above(attack_rates(ComposedEvent(tuple(map(PureEvent, epsilons)))), powers, advantage, within=1e-5)
    weaker = attack_rates(ComposedEvent(tuple(PureEvent(0.9 * epsilon) for epsilon in epsilons)))
    with pytest.raises(AssertionError):
        check_above(weaker, powers, advantage)


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 1), (0.3, 5), (0.1, 40)])
def test_laplace_noise_of_dp_accounting_stays_below(epsilon, count):
    laplace = pld.from_laplace_mechanism(
        1.0 / epsilon, value_discretization_interval=INTERVAL, pessimistic_estimate=False, use_connect_dots=False
    ).self_compose(count)
    powers, advantage = losses_test(laplace, epsilon * count)
    check_above(attack_rates(PureEvent(epsilon) * count), powers, advantage)
    with pytest.raises(AssertionError):
        check_above(attack_rates(PureEvent(0.5 * epsilon) * count), powers, advantage)


def test_failures_are_added():
    # With probability delta everything is told, else by randomised response: the extremal law.
    for epsilon, delta in ((1.0, 1e-3), (0.2, 0.05)):
        one, other = responses(epsilon)
        one, other = np.append((1 - delta) * one, [delta, 0.0]), np.append((1 - delta) * other, [0.0, delta])
        powers, advantage = listed_test(one, other)
        check_above(attack_rates(ApproximateEvent(epsilon, delta)), powers, advantage, within=1e-4)
        with pytest.raises(AssertionError):
            check_above(attack_rates(PureEvent(epsilon)), powers, advantage)
        assert mu_of(ApproximateEvent(epsilon, delta)) is None
        both = ComposedEvent((ApproximateEvent(0.01, delta), GaussianEvent(1.0)))
        for level, rate, plain in zip(LEVELS, attack_rates(both).tpr, gaussian_test(1.0)[0], strict=True):
            # At worst the failure comes on top of the Gaussian test.
            assert delta + (1 - delta) * plain <= rate
            assert rate <= delta + 1.1 * plain + 1.1 * level


# ------------------------------------------------------------------ selections


def bounded_range_laws(width, place, count):
    """So many two-point laws whose log-ratios span ``width``, ``place`` of it above zero: one and the other."""
    up, down = math.exp(place * width), math.exp((place - 1.0) * width)
    other = (1.0 - down) / (up - down)
    return product(*[[other * up, 1.0 - other * up]] * count), product(*[[other, 1.0 - other]] * count)


@pytest.mark.parametrize(("width", "count"), [(1.0, 1), (2.0, 2), (0.4, 8)])
def test_selections_are_bounded_by_every_law_of_their_range(width, count):
    laws = [bounded_range_laws(width, place, count) for place in np.linspace(0.05, 0.95, 19)]

    def check_above_all(rates):
        for one, other in laws:
            check_above(rates, *listed_test(one, other))

    check_above_all(attack_rates(ExponentialEvent(width) * count))
    narrower = attack_rates(ExponentialEvent(0.5 * width) * count)
    with pytest.raises(AssertionError):
        check_above_all(narrower)


def test_the_order_of_selections_is_not_taken_for_granted():
    event = ComposedEvent((ExponentialEvent(0.5) * 3, ExponentialEvent(0.1) * 5, GaussianEvent(4.0)))
    known, unknown = attack_rates(event), attack_rates(event, ordered=False)
    assert mu_of(event) < mu_of(event, ordered=False)
    for bound, larger in zip((*known.tpr, known.advantage), (*unknown.tpr, unknown.advantage), strict=True):
        assert bound <= larger


# ------------------------------------------------------------------ the rest


def test_a_perturbed_objective_costs_at_least_its_gaussian_shift():
    event = ObjectivePerturbationEvent(0.2, 0.8, replaced=False)
    assert mu_of(event) is None
    check_above(attack_rates(event), *gaussian_test(0.8))
    assert attack_rates(event).tpr[0] < 0.2


def test_samplers_are_charged_on_either_side():
    distance = 1e-3
    plain, sampled = attack_rates(GaussianEvent(1.0)), attack_rates(GaussianEvent(1.0, distance))
    # Mixed with a law that tells everything: as far away as is admitted, and the best test gains that much.
    for level, rate, exact in zip(LEVELS, sampled.tpr, gaussian_test(1.0)[0], strict=True):
        assert distance + (1.0 - distance) * exact <= rate
        with mpmath.workdps(20):
            shifted = mpmath.ncdf(mpmath.erfinv(2 * mpmath.mpf(level + distance) - 1) * mpmath.sqrt(2) + 1)
        assert rate <= float(shifted) + distance + 1e-6
    assert plain.advantage + distance * (1.0 - plain.advantage) <= sampled.advantage
    assert sampled.advantage <= plain.advantage + 2.1 * distance
    # mu is that of the law.
    assert mu_of(GaussianEvent(1.0, distance)) == mu_of(GaussianEvent(1.0))


def test_the_dearest_branch_counts_and_groups_are_larger():
    branches = ParallelEvent((GaussianEvent(1.0), GaussianEvent(3.0) * 2))
    assert attack_rates(branches) == attack_rates(GaussianEvent(1.0))
    assert mu_of(branches) == mu_of(GaussianEvent(1.0))
    many = ComposedEvent(tuple(ParallelEvent((GaussianEvent(9.0 + k), PureEvent(0.01 * k + 0.01))) for k in range(8)))
    worst = ComposedEvent(tuple(GaussianEvent(9.0 + k) for k in range(8)))
    check_above(attack_rates(many), attack_rates(worst).tpr, attack_rates(worst).advantage)
    powers, advantage = gaussian_test(0.6)
    check_above(attack_rates(for_group(GaussianEvent(5.0), 3)), powers, advantage, within=1e-7)


def test_nothing_released_tells_nothing_and_no_noise_tells_all():
    nothing = attack_rates(ComposedEvent(()))
    assert (nothing.fpr, nothing.tpr, nothing.advantage) == (LEVELS, LEVELS, 0.0)
    assert mu_of(ComposedEvent(())) == 0.0
    everything = attack_rates(ComposedEvent((GaussianEvent(5.0), NotPrivateEvent())))
    assert (everything.tpr, everything.advantage) == ((1.0,) * 3, 1.0)
    assert mu_of(NotPrivateEvent()) is None


def test_rates_at_every_level_are_a_curve_between_a_guess_and_certainty():
    levels = (0.0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1.0)
    for event in (GaussianEvent(0.7), PureEvent(2.0), ExponentialEvent(1.0) * 30, ApproximateEvent(1.0, 1e-4)):
        rates = attack_rates(event, fpr=levels)
        assert rates.fpr == levels
        assert all(level <= rate <= 1.0 for level, rate in zip(levels, rates.tpr, strict=True))
        assert all(low <= high for low, high in itertools.pairwise(rates.tpr))
        gains = [rate - level for level, rate in zip(levels, rates.tpr, strict=True)]
        assert max(gains) <= rates.advantage * (1.0 + 1e-6) + 1e-9
