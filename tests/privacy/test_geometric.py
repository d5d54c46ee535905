"""Two-sided geometric noise: its exact law, its sampled law with power, and what it refuses."""

import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import PureEvent
from taciturn.privacy import mechanisms
from taciturn.privacy.mechanisms import TwoSidedGeometric, two_sided_geometric

THRESHOLD = 1e-4


class _UndecidedError(Exception):
    pass


class _RestartedError(Exception):
    pass


class Branches:
    """Replays a path of random decisions; at its end, asks for one more, with its probabilities."""

    def __init__(self, path):
        self._path = list(path)
        self._at = 0

    def choose(self, weights):
        if self._at == len(self._path):
            raise _UndecidedError(weights)
        self._at += 1
        return self._path[self._at - 1]


def exact_law(program, *, negligible):
    """Every outcome of ``program(branches)`` and its probability, paths below a mass left out."""
    law = defaultdict(lambda: 0)
    open_paths = [((), 1)]
    while open_paths:
        path, mass = open_paths.pop()
        try:
            law[program(Branches(path))] += mass
        except _UndecidedError as undecided:
            (weights,) = undecided.args
            children = [((*path, i), mass * weight) for i, weight in enumerate(weights)]
            open_paths += [child for child in children if child[1] > negligible]
    return law


class Comparison:
    """A uniform draw that is only ever compared: two branches instead of ``bound``."""

    def __init__(self, branches, bound):
        self._branches, self._bound = branches, bound

    def __lt__(self, other):
        share = Fraction(other, self._bound)
        return self._branches.choose([1 - share, share]) == 1


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(5, 6), Fraction(1)])
def test_decays_with_the_exponential_probability(x):
    def program(branches):
        return mechanisms._decays(*x.as_integer_ratio(), lambda bound: Comparison(branches, bound))

    law = exact_law(program, negligible=Fraction(1, 10**30))
    with mpmath.workdps(40):
        difference = mpmath.mpf(law[True].numerator) / law[True].denominator - mpmath.exp(
            -mpmath.mpf(x.numerator) / x.denominator
        )
        assert abs(difference) < mpmath.mpf(10) ** -28


def sampled_law(rate, monkeypatch):
    """The exact law of one accepted round of the sampler."""

    def program(branches):
        def decays(numerator, denominator, _):
            probability = math.exp(-numerator / denominator)
            return branches.choose([1.0 - probability, probability]) == 1

        rounds = 0

        def below(bound):
            nonlocal rounds
            if bound == rate.denominator:
                rounds += 1
                if rounds > 1:
                    raise _RestartedError
            return branches.choose([1.0 / bound] * bound)

        monkeypatch.setattr(mechanisms, "_decays", decays)
        try:
            return two_sided_geometric(rate, below)
        except _RestartedError:
            return None

    law = exact_law(program, negligible=1e-16)
    restart = law.pop(None)
    return {k: mass / (1.0 - restart) for k, mass in law.items()}


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(3, 4), Fraction(5, 3), Fraction(7, 16)])
def test_probabilities_and_their_ratios_are_exact(rate, monkeypatch):
    law = sampled_law(rate, monkeypatch)
    decay = math.exp(-rate)
    centre = (1.0 - decay) / (1.0 + decay)
    reach = int(20 / rate)
    for k in range(-reach, reach + 1):
        assert law[k] == pytest.approx(centre * decay ** abs(k), rel=1e-5)
    for sensitivity in (1, 2, 3):
        epsilon = float(rate * sensitivity)
        steps = range(-reach // 2, reach // 2)
        losses = [abs(math.log(law[k] / law[k + sensitivity])) for k in steps]
        assert max(losses) == pytest.approx(epsilon, rel=1e-6)


def law_p_value(noise, rate):
    """Chi-square test over every integer that is expected ten times, and the two tails."""
    decay = math.exp(-rate)
    centre = (1.0 - decay) / (1.0 + decay)
    reach = max(1, int(math.log(noise.size * centre / 10.0) / rate))
    clipped = np.clip(noise, -reach, reach)
    counts = np.bincount(clipped + reach, minlength=2 * reach + 1)
    one_side = centre * decay ** np.arange(1, reach + 1)
    # The last cell of each side takes its tail.
    one_side[-1] /= 1.0 - decay
    expected = np.concatenate((one_side[::-1], [centre], one_side)) * noise.size
    return stats.chisquare(counts, expected).pvalue


FURTHER = [(1, 0.1), (2, 5.0), (1, 2.0**-4), (10, 1 / 3)]


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"),
    [(1, 1.0), (3, 0.7), *(pytest.param(*each, marks=pytest.mark.slow) for each in FURTHER)],
)
def test_sampled_noise_has_the_right_epsilon_and_no_other(sensitivity, epsilon):
    zeros = np.zeros(40_000, dtype=np.int64)
    for factor, passes in [(1, True), (2 / 3, False), (3 / 2, False), (1.1, False)]:
        mechanism = TwoSidedGeometric(sensitivity, epsilon * factor)
        noise = mechanism.release(zeros, Stream.of(201))
        assert (law_p_value(noise, epsilon / sensitivity) > THRESHOLD) == passes


def test_tiny_budgets_sample_numbers_beyond_64_bits():
    mechanism = TwoSidedGeometric(10**6, 1e-15)
    stream = Stream.of(202)
    sizes = np.array([abs(mechanism.release(0, stream)) * 1e-21 for _ in range(4_000)])
    assert stats.kstest(sizes, "expon").pvalue > THRESHOLD
    saturated = TwoSidedGeometric(10**6, 1e-20).release(np.zeros(200, dtype=np.int64), stream)
    assert set(saturated.tolist()) == {-(2**63), 2**63 - 1}


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 250, 2**63 + 1, 2**64, 3 * 2**64, 2**130 + 7])
def test_batched_draws_are_uniform(bound):
    below = mechanisms._batched(Stream.of(203))
    draws = [below(bound) for _ in range(20_000)]
    assert 0 <= min(draws) <= max(draws) < bound
    n_cells = min(bound, 10)
    counts = np.bincount([draw * n_cells // bound for draw in draws], minlength=n_cells)
    edges = [-(-cell * bound // n_cells) / bound for cell in range(n_cells + 1)]
    assert bound == 1 or stats.chisquare(counts, np.diff(edges) * 20_000).pvalue > THRESHOLD


def test_release_of_one_integer_and_of_many():
    mechanism = TwoSidedGeometric(1, 0.5)
    one = mechanism.release(7, Stream.of(204))
    assert type(one) is int
    assert type(mechanism.release(np.int64(7), Stream.of(204))) is int
    many = mechanism.release(np.arange(6, dtype=np.uint8).reshape(2, 3), Stream.of(204))
    assert many.dtype == np.int64
    assert many.shape == (2, 3)
    assert many[0, 0] == one - 7
    assert mechanism.release([0, 1], Stream.of(204)).tolist() == many[0, :2].tolist()
    assert mechanism.release(2**80, Stream.of(204)) == 2**80 + one - 7


def test_unseeded_releases_differ():
    mechanism = TwoSidedGeometric(1, 0.01)
    zeros = np.zeros(50, dtype=np.int64)
    releases = [mechanism.release(zeros, Stream.of()) for _ in range(2)]
    assert not np.array_equal(*releases)


def test_event_and_arithmetic():
    assert TwoSidedGeometric(3, 0.5).event == PureEvent(0.5)
    assert TwoSidedGeometric.arithmetic == "exact"


@pytest.mark.parametrize("value", [1.5, 1.0, True, "3", None, [0.5], np.array([1.0]), np.array([True])])
def test_values_that_are_not_integers_are_refused(value):
    with pytest.raises(DataError, match="expected an integer or an array of integers") as refusal:
        TwoSidedGeometric(1, 1.0).release(value, Stream.of(205))
    assert "1.5" not in str(refusal.value)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.0, 1.5, True, None])
def test_sensitivities_that_are_not_positive_integers_are_refused(sensitivity):
    with pytest.raises(ParameterError, match=r"sensitivity=.*expected an integer >= 1"):
        TwoSidedGeometric(sensitivity, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, None])
def test_budgets_out_of_range_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        TwoSidedGeometric(1, epsilon)
