from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from laws import chi_square_p, softmax_law

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.events import ExponentialEvent
from taciturn.mechanisms import PrivateQuantile

GRID = (0.0, 1.0, 2.0, 4.0, 8.0)


def direct_scores(values, grid, q):
    """-max(0, -s(g_j), s(g_{j-1})) in floating point, from its definition; the last bin has no upper end."""
    values = np.minimum(values, grid[-1])

    def s(g):
        return (1 - q) * np.sum(values <= g) - q * np.sum(values > g)

    left = [-q * values.size, *(s(g) for g in grid[:-1])]
    return np.array([-max(0.0, -s(g), low) for g, low in zip(grid, left, strict=True)])


@pytest.mark.parametrize("q", [0.5, 0.25, 0.9])
def test_scores_match_their_definition(q):
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = rng.exponential(2.0, 17)
        mechanism = PrivateQuantile(GRID, q, "zero-out", 1.0)
        unit = mechanism._fraction.denominator
        assert np.allclose(mechanism.scores(values) / unit, direct_scores(values, GRID, q))


def test_a_single_bin_that_holds_everything_wins_clearly():
    mechanism = PrivateQuantile(GRID, 0.5, "zero-out", 1.0)
    scores = mechanism.scores(np.full(100, 1.7)) / 2
    assert scores.tolist() == [-50, -50, 0, -50, -50]
    stream = Stream.of(0)
    assert {mechanism.release(np.full(100, 1.7), stream) for _ in range(200)} == {2.0}


def test_values_beyond_the_grid_belong_to_its_ends():
    mechanism = PrivateQuantile(GRID, 0.5, "zero-out", 5.0)
    stream = Stream.of(1)
    assert {mechanism.release(np.full(50, 1e9), stream) for _ in range(50)} == {8.0}
    assert {mechanism.release(np.full(50, -1e9), stream) for _ in range(50)} == {0.0}


def test_no_records_are_a_data_set_like_any_other():
    mechanism = PrivateQuantile(GRID, 0.5, "add-remove", 1.0)
    stream = Stream.of(2)
    assert {mechanism.release([], stream) for _ in range(100)} == set(GRID)
    assert not mechanism.scores([]).any()


def test_release_follows_the_exponential_law_and_no_other_scale():
    values = np.array([0.5, 1.5, 1.5, 3.0, 3.5, 9.0, 0.2])
    epsilon, q = 1.0, 0.25
    mechanism = PrivateQuantile(GRID, q, "zero-out", epsilon)
    assert mechanism.event == ExponentialEvent(epsilon)
    stream = Stream.of(5)
    counts = np.array([GRID.index(mechanism.release(values, stream)) for _ in range(10_000)])
    counts = np.bincount(counts, minlength=5)
    sensitivity = max(q, 1 - q)
    law = softmax_law(direct_scores(values, GRID, q) * epsilon / (2 * sensitivity))
    assert chi_square_p(counts, law) > 1e-4
    for factor in (2 / 3, 3 / 2):
        wrong = softmax_law(direct_scores(values, GRID, q) * factor * epsilon / (2 * sensitivity))
        assert chi_square_p(counts, wrong) < 1e-6


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("q", [0.5, 0.2, 0.75])
def test_sensitivity_is_never_passed_and_reached(relation, q):
    rng = np.random.default_rng(7)
    mechanism = PrivateQuantile(GRID, q, relation, 1.0)
    declared = mechanism._selection.sensitivity.value
    worst = 0
    for _ in range(400):
        values = rng.choice([-1.0, 0.5, 1.5, 3.0, 5.0, 100.0], rng.integers(2, 9))
        other = values[1:]
        if relation == "replace-one":
            other = np.append(other, rng.choice([-1.0, 100.0]))
        worst = max(worst, np.max(np.abs(mechanism.scores(values) - mechanism.scores(other))))
    assert worst <= declared
    assert worst >= 0.99 * declared


# ------------------------------------------------------------------ a prior

VALUES = (0.5, 1.5, 3.0, 5.0)
PRIORS = (None, (0.0, -1.0, -4.0, 0.5, 2.0), (-500.0, 0.0, 300.0, -0.3, 7.0))


def log_law(mechanism, values):
    """Logarithms of the probabilities, up to a constant."""
    return mechanism.scores(np.asarray(values)) / mechanism._selection.scale


def largest_loss(relation, logarithms):
    """The largest range of log-ratios between all neighbours of up to four records."""
    worst = 0.0
    for n in range(1, 5):
        for values in combinations_with_replacement(VALUES, n):
            others = [values[1:]] if relation != "replace-one" else [(v, *values[1:]) for v in VALUES]
            for other in (*others, *([values[:-1]] if relation != "replace-one" else [])):
                # Logarithms of probabilities, up to a constant, which the range does not see.
                worst = max(worst, np.ptp(logarithms(values) - logarithms(other)))
    return worst


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("q", [0.5, 0.9])
@pytest.mark.parametrize("prior", PRIORS, ids=["none", "mild", "firm"])
def test_a_public_prior_costs_nothing(relation, q, prior):
    mechanism = PrivateQuantile(GRID, q, relation, 0.7, prior)
    worst = largest_loss(relation, lambda values: log_law(mechanism, values))
    assert worst <= 0.7 * (1.0 + 1e-9)
    assert mechanism.event == ExponentialEvent(0.7)
    # One that follows the data costs something, and so do scores in other units.
    assert largest_loss(relation, lambda values: 2.5 * log_law(mechanism, values)) > 0.7

    def informed(values):
        typical = float(np.median(values)) if len(values) else 1.0
        return log_law(replace(mechanism, prior=tuple(-np.abs(np.array(GRID) - typical))), values)

    assert largest_loss(relation, informed) > 0.75


def test_releases_follow_the_law_with_the_prior_and_no_other():
    values, prior = np.array([0.5, 1.5, 1.5, 3.0, 3.5, 9.0, 0.2]), (0.0, -1.0, -0.5, 0.5, 1.0)
    mechanism, stream = PrivateQuantile(GRID, 0.5, "zero-out", 1.0, prior), Stream.of(6)
    counts = np.bincount([GRID.index(mechanism.release(values, stream)) for _ in range(8000)], minlength=5)
    utilities = direct_scores(values, GRID, 0.5) + np.array(prior)
    # Scores are integers, of which one is a half here: this prior is not rounded.
    assert np.allclose(log_law(mechanism, values), utilities)
    assert chi_square_p(counts, softmax_law(utilities)) > 1e-4
    for wrong in (direct_scores(values, GRID, 0.5), utilities + np.array(prior)):
        assert chi_square_p(counts, softmax_law(wrong)) < 1e-6
    # Without records the prior is all there is.
    assert np.allclose(log_law(mechanism, []), prior)


@pytest.mark.parametrize("grid", [(1.0,), (1.0, 1.0), (2.0, 1.0), (0.0, np.nan), (0.0, np.inf)])
def test_bad_grids_are_refused(grid):
    with pytest.raises(ParameterError, match="grid=.*increasing order"):
        PrivateQuantile(grid, 0.5, "zero-out", 1.0)


def test_other_bad_parameters_are_refused_at_construction():
    with pytest.raises(ParameterError, match=r"quantile=1\.0"):
        PrivateQuantile(GRID, 1.0, "zero-out", 1.0)
    with pytest.raises(ParameterError, match="relation='neighbour'"):
        PrivateQuantile(GRID, 0.5, "neighbour", 1.0)
    with pytest.raises(ParameterError, match="epsilon=0"):
        PrivateQuantile(GRID, 0.5, "zero-out", 0)
