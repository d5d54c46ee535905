"""Two halves of the records, enumerated outcome by outcome.

Two records with one bit each. A secret coin decides which of them is the first half. The first half answers by
randomised response; the second half, too, with a parameter that depends on the first answer. Both answers are released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from taciturn.accounting import best_bound, delta_of
from taciturn.events import ComposedEvent, Event, GaussianEvent, ParallelEvent, PureEvent, alternatives, for_group

Law = dict[tuple[int, ...], float]


def keeps(epsilon: float, answer: int, bit: int) -> float:
    """The probability of an answer by randomised response."""
    return 1.0 / (1.0 + math.exp(-epsilon if answer == bit else epsilon))


def law(bits: tuple[int, int], first: float, second: tuple[float, float], coin: float = 0.5) -> Law:
    """Of both answers, where record 0 is the first half with probability ``coin``."""
    return {
        (one, other): sum(
            weight * keeps(first, one, a) * keeps(second[one], other, b)
            for weight, (a, b) in ((coin, bits), (1.0 - coin, bits[::-1]))
        )
        for one, other in itertools.product((0, 1), repeat=2)
    }


def exact_epsilon(p: Law, q: Law) -> float:
    return max(abs(math.log(p[outcome] / q[outcome])) for outcome in p)


def exact_delta(p: Law, q: Law, epsilon: float = 0.0) -> float:
    return sum(max(p.get(outcome, 0.0) - math.exp(epsilon) * q.get(outcome, 0.0), 0.0) for outcome in {**p, **q})


def worst(differing: int, first: float, second: tuple[float, float], coin: float) -> float:
    """The largest exact epsilon over pairs of data sets that differ in so many of the two records at most."""
    tables = list(itertools.product((0, 1), repeat=2))
    return max(
        exact_epsilon(law(one, first, second, coin), law(other, first, second, coin))
        for one, other in itertools.product(tables, repeat=2)
        if sum(a != b for a, b in zip(one, other, strict=True)) <= differing
    )


CASES = [
    (first, second, coin)
    for first, second in ((1.0, (0.4, 0.1)), (0.3, (0.9, 0.9)), (0.5, (0.5, 0.5)), (0.2, (1.1, 0.3)))
    for coin in (0.0, 0.5, 0.9, 1.0)
]


def stated(first: float, second: tuple[float, float], account: Callable[[Event], float]) -> float:
    return account(ParallelEvent((PureEvent(first), PureEvent(max(second)))))


def largest(event: Event) -> float:
    return best_bound(event, 0.0).epsilon


def covers_and_is_tight(account: Callable[[Event], float]) -> bool:
    covered = all(
        worst(1, first, second, coin) <= stated(first, second, account) * (1 + 1e-12) for first, second, coin in CASES
    )
    # With public halves nothing is hidden by the coin.
    return covered and all(
        worst(1, first, second, coin) > 0.9 * stated(first, second, account)
        for first, second, coin in CASES
        if coin in (0.0, 1.0)
    )


def test_one_record_pays_for_its_own_half():
    assert covers_and_is_tight(largest)


@pytest.mark.parametrize("mutant", ["smallest", "first", "last", "sum"])
def test_other_accounts_are_found_out(mutant):
    accounts: dict[str, Callable[[Event], float]] = {
        "smallest": lambda event: min(map(largest, alternatives(event))),
        "first": lambda event: largest(alternatives(event)[0]),
        "last": lambda event: largest(alternatives(event)[-1]),
        "sum": lambda event: largest(ComposedEvent(alternatives(event))),
    }
    assert not covers_and_is_tight(accounts[mutant])


@pytest.mark.parametrize(("first", "second", "coin"), CASES)
def test_two_records_can_lie_in_both_halves(first, second, coin):
    exact = worst(2, first, second, coin)
    both = PureEvent(first), PureEvent(max(second))
    assert exact <= largest(for_group(ParallelEvent(both), 2)) * (1 + 1e-12)
    if coin in (0.0, 1.0):
        # The sum of the two halves is what one record in each of them costs: one half for one record is no cover.
        assert exact == pytest.approx(first + max(second), rel=1e-9)
        assert exact > 1.1 * largest(ParallelEvent(both))
    assert largest(for_group(ParallelEvent(both), 2)) >= first + max(second)


# ------------------------------------------------------------------ samplers


def test_of_several_records_all_samplers_count():
    """Samplers with outcomes "rest", "up" and "down" of which the last two have a probability of eta by law.

    The law does not depend on the data, and is as good as Gaussian noise without end. The sampler for a bit of 1 takes
    "up" for "down", that for a bit of 0 the other way round: each is within eta of the law.
    """
    eta = 0.01
    sampler = {bit: {(0,): 1 - 2 * eta, (1 if bit else -1,): 2 * eta} for bit in (0, 1)}

    def both(bits: tuple[int, int]) -> Law:
        one, other = (sampler[bit] for bit in bits)
        return {a + b: p * q for (a, p), (b, q) in itertools.product(one.items(), other.items())}

    half = GaussianEvent(1e12, eta)
    pair = ParallelEvent((half, half))
    assert exact_delta(both((0, 1)), both((1, 1))) == pytest.approx(2 * eta)
    assert 2 * eta <= delta_of(pair, 0.0) < 2.1 * eta
    exact = exact_delta(both((0, 0)), both((1, 1)))
    assert exact == pytest.approx(4 * eta - 4 * eta**2)
    # A branch for a group with the distance of its own sampler alone would be false.
    assert delta_of(ParallelEvent(tuple(for_group(branch, 2) for branch in pair.events)), 0.0) < 0.6 * exact
    assert exact <= delta_of(for_group(pair, 2), 0.0) < 1.1 * exact
