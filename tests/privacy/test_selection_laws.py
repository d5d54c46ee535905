"""Every selection follows its exact law, and no other scale; every law is private on near-tie neighbours."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from laws import (
    chi_square_p,
    laplace_max_law,
    ordered_law,
    permute_and_flip_law,
    softmax_law,
)

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import ExponentialEvent, LaplaceMaxEvent, PermuteAndFlipEvent, PureEvent, RepeatedEvent
from taciturn.mechanisms import (
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
)
from taciturn.privacy.mechanisms import first_k_of, first_of, noise_scale, noisy_keys, rounding_charge

UNIT = Sensitivity(1.0, "linf", "zero-out")
MONOTONE = Sensitivity(1.0, "linf", "zero-out", monotone=True)
SCORES = np.array([3.0, 2.0, 2.0, -1.0, 0.5])
LAWS = [
    (ExponentialMechanism, softmax_law, ExponentialEvent),
    (PermuteAndFlip, permute_and_flip_law, PermuteAndFlipEvent),
    (LaplaceNoisyMax, laplace_max_law, LaplaceMaxEvent),
]


@pytest.mark.parametrize(("kind", "law", "event"), LAWS)
@pytest.mark.parametrize("sensitivity", [UNIT, MONOTONE])
def test_selection_follows_its_law_and_no_other_scale(kind, law, event, sensitivity):
    epsilon = 1.5
    mechanism = kind(sensitivity, epsilon)
    assert mechanism.event == event(epsilon)
    stream = Stream.of(3)
    counts = np.bincount([mechanism.release(SCORES, stream) for _ in range(20_000)], minlength=SCORES.size)
    per_score = epsilon / sensitivity.spread
    assert chi_square_p(counts, law(SCORES * per_score)) > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert chi_square_p(counts, law(SCORES * per_score * factor)) < 1e-6


@pytest.mark.parametrize(("kind", "law", "event"), LAWS)
def test_selection_laws_are_private_and_tight(kind, law, event):
    # At scale b = 2 / epsilon; half that noise must be caught by the same pairs.
    rng = np.random.default_rng(2)
    epsilon = 0.8
    pairs = [(np.zeros(d), rng.choice([-1.0, 1.0], d)) for d in range(2, 9) for _ in range(6)]
    pairs += [(base, base + rng.uniform(-1, 1, 5)) for base in rng.exponential(1.0, (30, 5))]
    # One candidate rises, many fall: where all three laws come near epsilon.
    pairs.append((np.zeros(60), np.where(np.arange(60) == 0, 1.0, -1.0)))

    def worst(per_score):
        return max(np.max(np.abs(np.log(law(a * per_score) / law(b * per_score)))) for a, b in pairs)

    assert 0.7 * epsilon < worst(epsilon / 2) <= epsilon * (1 + 1e-9)
    assert worst(epsilon) > epsilon


def test_only_the_exponential_mechanism_has_bounded_range():
    epsilon = 1.0
    two, four = np.array([1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])

    def log_range(law, moves):
        return np.ptp(np.log(law(np.zeros(moves.size)) / law(moves * epsilon / 2)))

    assert log_range(softmax_law, two) == pytest.approx(epsilon)
    assert log_range(softmax_law, four) == pytest.approx(epsilon)
    # Two tied candidates: epsilon + log(2 - exp(-epsilon)).
    assert log_range(permute_and_flip_law, two) == pytest.approx(epsilon + np.log(2 - np.exp(-epsilon)))
    assert log_range(laplace_max_law, four) > 1.05 * epsilon


def ordered_counts(mechanism, scores, draws, seed):
    stream = Stream.of(seed)
    index = {winners: i for i, winners in enumerate(permutations(range(scores.size), mechanism.k))}
    counts = np.zeros(len(index))
    for _ in range(draws):
        counts[index[tuple(mechanism.release(scores, stream).tolist())]] += 1
    return counts


@pytest.mark.parametrize("peeling", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_gumbel_top_k_is_peeling(k, peeling):
    scores = SCORES[:4]
    mechanism = PeelingTopK(ExponentialMechanism(UNIT, 1.5), k) if peeling else GumbelTopK(UNIT, k, 1.5)
    assert mechanism.event == ExponentialEvent(1.5) * k
    counts = ordered_counts(mechanism, scores, 8_000, seed=9)

    def law(factor):
        return list(ordered_law(softmax_law, scores * 0.75 * factor, k).values())

    assert chi_square_p(counts, law(1.0)) > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert chi_square_p(counts, law(factor)) < 1e-6


def test_peeling_with_permute_and_flip_follows_its_law():
    scores = SCORES[:4]
    mechanism = PeelingTopK(PermuteAndFlip(UNIT, 1.5), 2)
    counts = ordered_counts(mechanism, scores, 8_000, seed=10)
    assert chi_square_p(counts, list(ordered_law(permute_and_flip_law, scores * 0.75, 2).values())) > 1e-4
    wrong = list(ordered_law(softmax_law, scores * 0.75, 2).values())
    assert chi_square_p(counts, wrong) < 1e-6
    assert mechanism.event == RepeatedEvent(PermuteAndFlipEvent(1.5), 2)
    assert mechanism.scale == mechanism.selection.scale


def laplace_pair_law(utilities, pairs=None):
    """Ordered top 2 with Laplace(1) noise, by a fine grid over the winner's and the runner-up's values."""
    x = np.linspace(utilities.min() - 25, utilities.max() + 25, 4001)
    z = x[:, None] - utilities
    pdf = 0.5 * np.exp(-np.abs(z))
    cdf = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))
    h = x[1] - x[0]
    law = []
    for first, second in pairs or permutations(range(utilities.size), 2):
        others = np.delete(cdf, [first, second], axis=1)
        runner_up = pdf[:, second] * np.prod(others, axis=1) * h
        law.append(np.sum(pdf[:, first] * (np.cumsum(runner_up) - runner_up / 2) * h))
    return np.array(law)


def test_one_shot_laplace_follows_its_law_and_is_private():
    scores = np.array([2.0, 1.0, 0.0])
    epsilon, k = 3.0, 2
    mechanism = LaplaceTopK(UNIT, k, epsilon)
    assert mechanism.event == PureEvent(epsilon)
    assert mechanism.scale == pytest.approx(2 * k / epsilon)
    counts = ordered_counts(mechanism, scores, 12_000, seed=12)
    per_score = epsilon / (2 * k)

    def law(factor):
        probabilities = laplace_pair_law(scores * per_score * factor)
        return probabilities / probabilities.sum()

    assert chi_square_p(counts, law(1.0)) > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert chi_square_p(counts, law(factor)) < 1e-6

    def worst(per_score):
        rng = np.random.default_rng(4)
        pairs = [(base, base + rng.choice([-1.0, 1.0], 3)) for base in rng.uniform(0, 4, (20, 3))]
        ratios = [laplace_pair_law(a * per_score) / laplace_pair_law(b * per_score) for a, b in pairs]
        # Two rise, many fall: where the bound is nearly attained.
        crowd = np.where(np.arange(200) < k, 1.0, -1.0)
        down, up = (laplace_pair_law(s * per_score, [(0, 1)]) for s in (np.zeros(200), crowd))
        return np.max(np.abs(np.log(np.concatenate((*ratios, up / down)))))

    # The grid of the law is good to about 1e-6.
    assert 0.7 * epsilon < worst(per_score) <= epsilon * (1 + 1e-5)
    # Forgetting the factor k in the scale is caught.
    assert worst(k * per_score) > epsilon


def exact_order(scores, noise, scale):
    """Indices by decreasing scores + scale * noise, in rational arithmetic."""
    sums = [Fraction(s) + Fraction(float(z) * scale) for s, z in zip(scores.tolist(), noise, strict=True)]
    return sorted(range(len(sums)), key=lambda j: -sums[j])


@pytest.mark.parametrize("kind", ["integers", "doubles"])
def test_noisy_scores_are_compared_exactly(kind):
    rng = np.random.default_rng(6)
    for _ in range(200):
        offsets = rng.choice([0, 10**17, -(10**17), 2**61], 8)
        scores = offsets + rng.integers(-3, 4, 8)
        if kind == "doubles":
            scores = scores.astype(float) + rng.choice([0.0, 0.3], 8)
        noise, scale = rng.standard_normal(8), float(rng.choice([1e-3, 1.0, 1e5]))
        expected = exact_order(scores, noise, scale)
        keys = noisy_keys(scores, noise, scale)
        assert first_of(*keys) == expected[0]
        assert first_k_of(*keys, 5).tolist() == expected[:5]
    plain = scores + scale * noise
    rounded = noisy_keys(scores, noise, scale)[0]
    assert kind == "integers" or np.array_equal(plain, rounded)


def test_integers_that_leave_no_room_are_refused():
    with pytest.raises(DataError, match="integers below"):
        noisy_keys(np.array([2**62 + 1]), np.zeros(1), 1.0)


@pytest.mark.parametrize(("make", "law"), [(GumbelTopK, softmax_law), (PeelingTopK, softmax_law)])
def test_second_place_is_private_far_below_the_first(make, law):
    # Doubles next to 10**17 are 16 apart: rounded differences to the best score would decide second place alone.
    epsilon, giant = 1.0, 10**17
    mechanism = (
        GumbelTopK(UNIT, 2, epsilon) if make is GumbelTopK else PeelingTopK(ExponentialMechanism(UNIT, epsilon), 2)
    )
    stream = Stream.of(15)
    for low in ([8, 0], [9, 0], [8, 7]):
        scores = np.array([giant, *low])
        seconds = np.array([mechanism.release(scores, stream)[1] for _ in range(4_000)])
        counts = np.bincount(seconds, minlength=3)[1:]
        assert chi_square_p(counts, law(np.array(low) * epsilon / 2)) > 1e-4


def test_rounding_is_charged_to_epsilon():
    assert ExponentialMechanism(UNIT, 0.5).scale > 2.0 / 0.5
    assert ExponentialMechanism(UNIT, 0.5).scale == pytest.approx(2.0 / 0.5, rel=1e-9)
    assert rounding_charge(100) > 100 * rounding_charge(1)
    with pytest.raises(ParameterError, match="twice what rounding costs"):
        noise_scale(2.0, 1e-12, rounding_charge())


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.array([np.inf, 0.0]), np.array([]), np.eye(2)])
@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialMechanism(UNIT, 1.0),
        PermuteAndFlip(UNIT, 1.0),
        LaplaceNoisyMax(UNIT, 1.0),
        GumbelTopK(UNIT, 1, 1.0),
        LaplaceTopK(UNIT, 1, 1.0),
        PeelingTopK(PermuteAndFlip(UNIT, 1.0), 1),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_bad_scores_are_refused_before_any_noise(mechanism, bad):
    with pytest.raises(DataError, match="^scores: expected"):
        mechanism.release(bad, Stream.of(0))


@pytest.mark.parametrize("make", [GumbelTopK, LaplaceTopK])
def test_top_k_edges(make):
    assert make(UNIT, 3, 1.0).release(np.zeros(3), Stream.of(0)).tolist() == [0, 1, 2]
    with pytest.raises(ParameterError, match="k=4: expected an integer from 1 to 3"):
        make(UNIT, 4, 1.0).release(np.zeros(3), Stream.of(0))
    with pytest.raises(ParameterError, match="k=0: expected an integer >= 1"):
        make(UNIT, 0, 1.0)
    peeled = PeelingTopK(PermuteAndFlip(UNIT, 1.0), 3).release(np.zeros(3), Stream.of(0))
    assert peeled.tolist() == [0, 1, 2]
