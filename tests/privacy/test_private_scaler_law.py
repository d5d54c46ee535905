"""The private scaler: its grid, the exact law of its bounds, what that law hides, and when it is refused."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, log

import numpy as np
import pytest
from laws import chi_square_p, softmax_law
from scipy.stats import binom
from sklearn.preprocessing import MinMaxScaler

from taciturn import Budget, PrivateScaler
from taciturn.accounting import calibrate, delta_of, epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS, opposite_quantile_scores
from taciturn.engines import ArraySource
from taciturn.events import ExponentialEvent, OppositeSelectionsEvent, PureEvent, for_group
from taciturn.mechanisms import PrivateQuantile
from taciturn.methods.scaling import estimator as scaling_estimator
from taciturn.methods.scaling import plan as scaling_plan
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.methods.scaling.plan import decimal_grid, plan_bounds
from taciturn.methods.scaling.run import release_bounds
from taciturn.privacy import pure
from taciturn.privacy.budget import pieces_of

# The smallest grid there is: 0 and +- 1, 1.1, .., 2.
SIZES = np.arange(10, 21) / 10
GRID = np.concatenate((-SIZES[::-1], [0.0], SIZES))
TAIL, EPSILON = 0.25, 1.5
VALUES = (-9.0, -1.55, -1.2, 0.0, 0.3, 1.0, 1.25, 1.72, 9.0)


@pytest.fixture
def never_refused(monkeypatch):
    """Tables of a few records, on which everything can be enumerated, support no bound that is worth having."""
    monkeypatch.setattr(scaling_plan, "_CHANCE", 1e300)


@pytest.fixture
def shown(monkeypatch, never_refused):
    """``shown(scaler, X)``: the plan of a fit and the table that it is shown."""
    seen = []

    def release(plan, source, stream):
        seen.append((plan, source.records.X))
        return np.zeros(source.n_features), np.ones(source.n_features)

    def fit(scaler, X):
        with monkeypatch.context() as patch:
            patch.setattr(scaling_estimator, "release_bounds", release)
            scaler.fit(X)
        return seen.pop()

    return fit


def source_of(X, **partitions):
    return ArraySource(Records(X, np.zeros(len(X)), np.arange(len(X)), len(X)), np.inf, len(X), **partitions)


def scaler_of(relation="zero-out", **changes):
    settings = {"epsilon": EPSILON, "delta": 0.0, "tail": TAIL, "smallest": 1.0, "largest": 2.0, "n_public": 50}
    return PrivateScaler(relation=relation, **(settings | changes))


def misses_by_hand(values, tail=TAIL):
    """By how many ranks each grid point misses the quantile 1 - tail, from the definition."""

    def beyond(edge):
        return np.sum(values > edge)

    out, n = [], len(values)
    for j, edge in enumerate(GRID):
        above = beyond(edge) if j + 1 < GRID.size else 0  # the last bin is open
        above_left = beyond(GRID[j - 1]) if j else n  # and so is the first
        out.append(max(0.0, above - tail * n, tail * n - above_left))
    return np.array(out)


def drift_of_column(relation, tail=TAIL):
    """By how many ranks the scores of a column's two bounds drift apart: 2 each, or one as far as it can, one by 1."""
    return 4.0 if relation == "replace-one" else 2.0 * (1.0 - tail) + 1.0


def laws_by_hand(X, relation, epsilon=EPSILON, drift=None):
    """Laws of all selections, lower before upper in every column, at a pure budget."""
    scale = (drift_of_column(relation) if drift is None else drift) * X.shape[1] / epsilon
    return np.array(
        [softmax_law(-misses_by_hand(sign * column) / scale) for column in X.T for sign in (-1.0, 1.0)], dtype=float
    )


def laws_used(plan, X):
    """The same from what a fit does."""
    out = []
    for quantile, column in zip(plan.quantiles, X.T, strict=True):
        assert np.array_equal(quantile.grid, GRID)
        unit = Fraction(quantile.quantile).limit_denominator(1000).denominator
        out += [softmax_law(quantile.scores(sign * column) / unit / quantile.scale) for sign in (-1.0, 1.0)]
    return np.array(out)


def table(seed, n, d):
    return np.random.default_rng(seed).choice(VALUES, (n, d))


# ------------------------------------------------------------------ the grid


def test_the_grid_is_every_number_with_two_digits():
    grid = np.array(decimal_grid(1e-3, 1e6))
    assert grid.size == 2 * (9 * 90 + 1) + 1
    assert np.array_equal(grid, -grid[::-1])
    # Equal to the last bit to what a file says.
    for number in (0.0, 1.0, 0.1, -0.3, 7e-3, 65.0, 99.0, 100.0, 0.0012, 1e-3, 1e6, -98000.0):
        assert number in grid
    sizes = grid[grid > 0]
    assert (sizes[0], sizes[-1]) == (1e-3, 1e6)
    ratios = sizes[1:] / sizes[:-1]
    assert ratios.min() > 1.01
    assert ratios.max() < 1.1 + 1e-12


@pytest.mark.parametrize(
    ("smallest", "largest", "expected"),
    [
        (1.0, 2.0, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0]),
        (9.75, 21.0, [9.8, 9.9, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0]),
    ],
)
def test_the_grid_keeps_within_its_ends(smallest, largest, expected):
    grid = decimal_grid(smallest, largest)
    assert [size for size in grid if size > 0] == expected
    assert len(grid) == 2 * len(expected) + 1


def test_the_widest_grid_is_made_of_finite_numbers_in_order():
    X = np.array([[0.0, 1e308, -1e308]] * 1000)
    scaler = PrivateScaler(epsilon=30.0, smallest=1e-300, largest=1e300, random_state=0).fit(X)
    assert scaler.upper_.tolist() == [1e-300, 1e300 + 1e298, -1e300 + 1e298]
    assert (scaler.lower_ < scaler.upper_).all()
    assert np.isfinite(scaler.transform(X)).all()


# ------------------------------------------------------------------ the law


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 3])
def test_a_fit_uses_the_law_of_the_true_ranks(shown, relation, d):
    for seed in range(5):
        X = table(seed, 9, d)
        used = laws_used(*shown(scaler_of(relation), X))
        assert used == pytest.approx(laws_by_hand(X, relation), rel=1e-6)
        # The accounting of d selections instead of 2 d would show, and so would another quantile.
        assert used != pytest.approx(laws_by_hand(X, relation, drift=drift_of_column(relation) / 2), rel=1e-2)
        assert used != pytest.approx(laws_by_hand(-X, relation), rel=1e-2)


def bounds_by_hand(low, high):
    if low == high:
        half = max(1.0, abs(low) / 100)
        return low - half, high + half
    return min(low, high), max(low, high)


def law_of_bounds(lower_law, upper_law):
    """``{(lower, upper): probability}`` of one column, lower bounds being upper ones of the mirror image."""
    out = {}
    for (i, p), (j, q) in product(enumerate(lower_law), enumerate(upper_law)):
        bounds = bounds_by_hand(-GRID[i], GRID[j])
        out[bounds] = out.get(bounds, 0.0) + p * q
    return out


def test_released_bounds_follow_that_law_and_no_other_scale(never_refused):
    X, draws = np.repeat(table(3, 12, 1), 2, axis=1), 3000
    ends = {"smallest": np.ones(2), "largest": np.full(2, 2.0)}
    plan = plan_bounds(Budget(8.0, 0.0), relation="zero-out", n_rows=12, tail=TAIL, **ends)
    stream = Stream.of(11)
    found = np.array([release_bounds(plan, source_of(X), stream) for _ in range(draws)])
    law = law_of_bounds(*laws_by_hand(X, "zero-out", 8.0)[:2])
    pairs = list(law)
    for column in range(2):
        counts = dict.fromkeys(pairs, 0)
        for bounds in found[:, :, column].tolist():
            counts[tuple(bounds)] += 1
        assert chi_square_p(list(counts.values()), list(law.values())) > 1e-7
        for factor in (0.5, 2.0):
            wrong = law_of_bounds(*laws_by_hand(X, "zero-out", 8.0 * factor)[:2])
            assert chi_square_p(list(counts.values()), [wrong[pair] for pair in pairs]) < 1e-20
    # Equal columns have noise of their own: they agree as often as two draws from that law.
    chance = sum(p * p for p in law.values())
    agree = int(np.sum((found[:, :, 0] == found[:, :, 1]).all(axis=1)))
    assert 1e-7 < binom.cdf(agree, draws, chance) < 1 - 1e-7
    assert chance < 0.5


def test_a_fit_makes_the_releases_of_its_plan_and_nothing_else(never_refused):
    X = table(5, 30, 2)
    fitted = scaler_of(random_state=4).fit(X)
    ends = {"smallest": np.ones(2), "largest": np.full(2, 2.0)}
    plan = plan_bounds(Budget(EPSILON, 0.0), relation="zero-out", n_rows=30, tail=TAIL, **ends)
    lower, upper = release_bounds(plan, source_of(X), Stream.of(4))
    assert np.array_equal(fitted.lower_, lower)
    assert np.array_equal(fitted.upper_, upper)
    # Of two columns one quantile each with scores that drift apart by 3/2 ranks, and one with 1.
    (both,) = fitted.certificate_.events
    assert (both.count, both.event.far) == (2, pytest.approx(EPSILON / 2 * 1.5 / 2.5))
    assert (both.event.near, both.event.records) == (pytest.approx(EPSILON / 2 * 1.0 / 2.5), 1)
    assert not fitted.certificate_.ordered


# ------------------------------------------------------------------ what one record does to both bounds


def drifts(values, neighbour, fraction):
    """How far scores of the lower and of the upper bound drift apart, the larger one first."""
    quantile = PrivateQuantile(tuple(GRID), float(fraction), "zero-out", 1.0)
    changes = [quantile.scores(sign * values) - quantile.scores(sign * neighbour) for sign in (-1.0, 1.0)]
    return sorted((int(np.ptp(change)) for change in changes), reverse=True)


def searched_drifts(fraction, relation="zero-out", n_tables=600):
    """All pairs of drifts that random tables and extreme records give; a null record is absent."""
    rng, found = np.random.default_rng(0), set()
    places = np.array([-9.0, -1.55, -1.05, 0.0, 1.05, 1.55, 9.0])
    for _ in range(n_tables):
        # Few places, so that many records agree.
        rest = rng.choice(rng.choice(places, 2), rng.integers(0, 40))
        one, other = rng.choice(places, 2)
        pair = (np.append(rest, one), np.append(rest, other) if relation == "replace-one" else rest)
        found.add(tuple(drifts(*pair, fraction)))
    return found


@pytest.mark.parametrize("fraction", [Fraction(19, 20), Fraction(3, 4), Fraction(3, 5), Fraction(1, 2)])
def test_one_record_moves_only_one_of_a_columns_bounds_far(fraction):
    a, b = fraction.numerator, fraction.denominator
    for relation in ("zero-out", "add-remove"):
        first, second = opposite_quantile_scores(a, b, relation)
        assert (first.spread, second.spread, second.rise, second.fall) == (2 * a, b, b - a, a)
    found = searched_drifts(fraction)
    assert max(larger for larger, _ in found) == 2 * a
    assert max(smaller for _, smaller in found) == b
    # Both at once: neither bound can be made smaller by looking at the other.
    assert (2 * a, b) in found


def test_that_does_not_hold_for_replacements():
    a, b = 19, 20
    assert [one.spread for one in opposite_quantile_scores(a, b, "replace-one")] == [2 * b, 2 * b]
    # A record that goes from one end to the other: with the sensitivities of zero-out this would not be private.
    assert (2 * b, 2 * b) in searched_drifts(Fraction(a, b), "replace-one")
    # The proof is for upper bounds of a column and of its mirror image.
    with pytest.raises(ParameterError, match="^numerator=1: expected an integer from 2 to 3"):
        opposite_quantile_scores(1, 4, "zero-out")


@pytest.mark.parametrize(("tail", "saved"), [(0.05, 0.20), (0.25, 0.15), (0.49, 0.01)])
def test_the_noise_that_is_saved(tail, saved, never_refused):
    """For many columns the root of (4 a**2 + b**2) / (8 a**2), beside what a plan without pairs would take."""
    d, budget = 200, Budget(1.0, 1e-6)
    facts = {"n_rows": 10**9, "tail": tail, "smallest": np.ones(d), "largest": np.full(d, 2.0)}
    plan = plan_bounds(budget, relation="zero-out", **facts)
    alone = calibrate(budget, lambda scale: ExponentialEvent(2.0 * (1.0 - tail) / scale) * (2 * d))
    assert 1.0 - plan.quantiles[0].scale / alone == pytest.approx(saved, abs=0.01)
    # Replacements have what they had.
    plan = plan_bounds(budget, relation="replace-one", **facts)
    alone = calibrate(budget, lambda scale: ExponentialEvent(2.0 / scale) * (2 * d))
    assert plan.quantiles[0].scale == pytest.approx(alone, rel=1e-6)


# ------------------------------------------------------------------ what several records do to both bounds


def charged(event):
    """The ranges of all selections that an event is accounted for, the largest first."""
    return sorted((e for e, count in pieces_of(event).selections for _ in range(count)), reverse=True)


def covers(event, ranges):
    """Whether an event charges for selections of these ranges: the premise of every bound."""
    return all(have >= need for have, need in zip(charged(event), sorted(ranges, reverse=True), strict=True))


def scaled_for_groups(event, size):
    """The fault to be caught: the far range stays with one of the two along the whole chain."""
    return ExponentialEvent(size * event.far) + ExponentialEvent(size * event.near)


# Eighteen values at one place: a value below them moves one bound far, a value above them the other one.
SAME, BELOW, ABOVE = np.full(18, 1.0), -1.0, 1.5


def test_two_records_may_each_move_another_bound_far():
    fraction = Fraction(9, 10)
    assert drifts(np.append(SAME, BELOW), SAME, fraction) == drifts(np.append(SAME, ABOVE), SAME, fraction) == [18, 10]
    both = drifts(np.append(SAME, (BELOW, ABOVE)), SAME, fraction)
    assert both == [26, 26]
    one = OppositeSelectionsEvent(18.0, 10.0)
    assert covers(one, (18, 10))
    assert covers(for_group(one, 2), both)
    assert not covers(scaled_for_groups(one, 2), both)
    # Nor need equal ranges of the same sum cost less: for the optimal composition of pure releases they cost more.
    scaled, equal = (pieces_of(PureEvent(a / 20) + PureEvent(b / 20)) for a, b in ((36, 20), (28, 28)))
    assert pure.log_delta(equal, 0.98 * 56 / 20) > pure.log_delta(scaled, 0.98 * 56 / 20) + 0.01


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("fraction", [Fraction(19, 20), Fraction(3, 4), Fraction(1, 2)])
def test_groups_are_charged_for_what_they_can_do(fraction, size):
    one = OppositeSelectionsEvent(2.0 * fraction.numerator, float(fraction.denominator))
    rng, found = np.random.default_rng(1), set()
    places = np.array([-9.0, -1.0, 0.0, 1.0, 1.5, 9.0])
    for _ in range(500):
        rest = rng.choice(rng.choice(places, 2), rng.integers(0, 40))
        found.add(tuple(drifts(np.append(rest, rng.choice(places, size)), rest, fraction)))
    assert all(covers(for_group(one, size), ranges) for ranges in found)
    assert all(sum(ranges) <= size * (one.far + one.near) for ranges in found)
    if fraction == Fraction(19, 20):
        assert not all(covers(scaled_for_groups(one, size), ranges) for ranges in found)


@pytest.mark.parametrize("far", [0.05, 0.5, 3.0])
def test_the_exact_loss_of_two_records_is_covered(far):
    quantile = PrivateQuantile(tuple(GRID), 0.9, "zero-out", 1.0)

    def law(values):
        lower, upper = (softmax_law(quantile.scores(sign * values) * (far / 18.0)) for sign in (-1.0, 1.0))
        return np.outer(lower, upper).ravel()

    laws = law(SAME), law(np.append(SAME, (BELOW, ABOVE)))
    group = for_group(OppositeSelectionsEvent(far, far * 10.0 / 18.0), 2)
    worst = max(float(np.log(p / q).max()) for p, q in (laws, laws[::-1]))
    assert worst <= epsilon_of(group, 0.0)
    assert epsilon_of(group, 0.0) == pytest.approx(2.0 * far * 28.0 / 18.0)
    for epsilon in np.linspace(0.0, 0.99, 12) * worst:
        exact = max(np.maximum(p - exp(epsilon) * q, 0.0).sum() for p, q in (laws, laws[::-1]))
        assert exact <= delta_of(group, epsilon)
        if epsilon == 0.0:
            assert exact > delta_of(OppositeSelectionsEvent(far / 4.0, far * 10.0 / 72.0), 0.0)


# ------------------------------------------------------------------ what it hides


# Below the grid, at both of its ends, in the middle, beyond it.
PLACES = (-9.0, -1.05, 0.3, 1.95, 9.0)
TABLES = [places for n in range(1, 5) for places in combinations_with_replacement(PLACES, n)]


def neighbours(relation):
    """All pairs of tables with at most four records."""
    for rest in TABLES:
        fuller = [tuple(sorted((*rest, place))) for place in PLACES if len(rest) < 4]
        if relation == "replace-one":
            yield from product(fuller, fuller)
        else:
            # A null record is absent.
            yield from ((one, rest) for one in fuller)
            yield from ((rest, one) for one in fuller)


def laws_of_tables(law, d=1):
    """The laws of all tables with these records; each has the same value in all its columns, which hides it least."""
    return {places: law(np.repeat(np.array(places)[:, None], d, axis=1)) for places in TABLES}


def largest_loss(laws, relation):
    """The largest log-ratio of joint probabilities: selections are independent, so that the largest ones add up."""
    logs = {places: np.log(law) for places, law in laws.items()}
    return max(float(np.sum(np.max(logs[one] - logs[other], axis=1))) for one, other in neighbours(relation))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2])
def test_no_neighbour_is_told_apart_beyond_epsilon(shown, relation, d):
    epsilon = 4.0 * d
    scaler = scaler_of(relation, epsilon=epsilon)
    worst = largest_loss(laws_of_tables(lambda X: laws_used(*shown(scaler, X)), d), relation)
    # Half the noise, as if only d selections had to be paid for, and that of two quantiles that drift by one rank each.
    half, both = (
        largest_loss(laws_of_tables(lambda X, by=by: laws_by_hand(X, relation, epsilon, by), d), relation)
        for by in (drift_of_column(relation) / 2, 2.0)
    )
    assert (0.6 if relation == "replace-one" else 0.8) * epsilon < worst <= epsilon
    assert half > 1.2 * epsilon
    assert both > epsilon


def largest_delta(laws, relation, epsilon):
    """The largest over all pairs of the smallest delta at this epsilon, from the joint law of both bounds."""
    joint = {places: np.multiply.outer(*law) for places, law in laws.items()}
    excess = (joint[one] - exp(epsilon) * joint[other] for one, other in neighbours(relation))
    return max(float(np.sum(np.maximum(difference, 0.0))) for difference in excess)


@pytest.mark.parametrize("relation", RELATIONS)
def test_delta_covers_the_joint_law_of_both_bounds(shown, relation):
    epsilon, delta = 0.5, 0.02
    scaler = scaler_of(relation, epsilon=epsilon, delta=delta)
    worst = largest_delta(laws_of_tables(lambda X: laws_used(*shown(scaler, X))), relation, epsilon)
    plan, _ = shown(scaler, np.zeros((2, 1)))
    assert plan.quantiles[0].scale < drift_of_column(relation) / epsilon  # less noise than at delta = 0
    # Laws by hand are laws at delta = 0, where half the noise belongs to twice the budget.
    twice = 2.0 * drift_of_column(relation) / plan.quantiles[0].scale
    broken = largest_delta(laws_of_tables(lambda X: laws_by_hand(X, relation, twice)), relation, epsilon)
    assert worst <= delta
    assert broken > delta


def test_extremes_act_through_the_bounds_alone():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[7] = 1e7
    further = X.copy()
    further[7] = 1e300
    scaler = PrivateScaler(random_state=1)
    others = np.arange(len(X)) != 7
    whole = scaler.fit_transform(X)
    assert np.array_equal(scaler.fit_transform(further), whole)
    bounds = BoundedScaler(lower=scaler.lower_, upper=scaler.upper_)
    assert np.array_equal(bounds.fit_transform(X), whole)
    assert (scaler.upper_ < 3.0).all()
    # The scaler that reads its bounds off the data squeezes all other records together.
    assert np.ptp(MinMaxScaler().fit_transform(X)[others]) > 1e-8
    assert np.ptp(MinMaxScaler().fit_transform(further)[others]) < 1e-100


def test_the_order_of_records_does_not_matter():
    X = np.random.default_rng(2).lognormal(size=(2000, 2))
    one = PrivateScaler(random_state=5).fit(X)
    other = PrivateScaler(random_state=5).fit(X[::-1])
    assert np.array_equal(one.lower_, other.lower_)
    assert np.array_equal(one.upper_, other.upper_)


# ------------------------------------------------------------------ refusals


def records_needed(d, relation="zero-out", tail=0.05, epsilon=1.0, points=2 * 811 + 1):
    """From the printed rule, for delta = 0; 811 is the number of two-digit numbers from 0.001 to 1,000,000."""
    scale = drift_of_column(relation, tail) * d / epsilon
    return int(np.ceil(scale * log(2 * d * points / 0.1) / tail))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 4])
def test_too_few_records_are_refused_by_the_printed_rule(monkeypatch, relation, d):
    needed = records_needed(d, relation)
    drawn = []
    words = Stream.words
    monkeypatch.setattr(Stream, "words", lambda stream, size: drawn.append(size) or words(stream, size))
    told = []
    for value in (0.0, 12345.0):
        n_public = needed - 1 if relation == "add-remove" else None
        scaler = PrivateScaler(delta=0.0, relation=relation, n_public=n_public, random_state=0)
        with pytest.raises(ParameterError) as caught:
            scaler.fit(np.full((needed - 1, d), value))
        told.append(str(caught.value))
        assert not hasattr(scaler, "certificate_")
    assert not drawn
    # What it says follows from public facts: the message is the same whatever the data are.
    assert told[0] == told[1]
    assert told[0].startswith("epsilon=1.0: expected enough")
    few = f"{needed:,} records, not n_samples={needed - 1:,};"
    for fact in (f"n_features={d} ", "tail=0.05", few, "BoundedScaler"):
        assert fact in told[0]
    assert told[0].endswith(".")
    assert told[0].count(". ") == 0
    n_public = needed if relation == "add-remove" else None
    scaler = PrivateScaler(delta=0.0, relation=relation, n_public=n_public, random_state=0)
    scaler.fit(np.zeros((needed, d)))
    assert drawn
    assert scaler.certificate_.epsilon == 1.0


def test_a_private_number_of_records_decides_nothing():
    few, many = np.zeros((3, 2)), np.zeros((5000, 2))
    refused = PrivateScaler(relation="add-remove", n_public=100)
    told = []
    for X in (few, many):
        with pytest.raises(ParameterError) as caught:
            refused.fit(X)
        told.append(str(caught.value))
    assert told[0] == told[1]
    accepted = PrivateScaler(relation="add-remove", n_public=5000, random_state=0)
    assert accepted.fit(few).certificate_ == accepted.fit(many).certificate_
    with pytest.raises(ParameterError, match=r"^n_public=None: expected a public number of records under add-remove"):
        PrivateScaler(relation="add-remove").fit(many)


def test_what_is_not_refused_is_worth_having_and_less_is_not(monkeypatch):
    needed = records_needed(2)
    monkeypatch.setattr(scaling_plan, "_CHANCE", 1e300)
    ends = {"smallest": np.full(2, 1e-3), "largest": np.full(2, 1e6)}
    plan = plan_bounds(Budget(1.0, 0.0), relation="zero-out", n_rows=1, tail=0.05, **ends)
    assert plan.quantiles[0].grid == decimal_grid(1e-3, 1e6)

    def share_beyond_all_records(n, runs=100):
        X = np.random.default_rng(n).normal(size=(n, 2))
        reach, stream, wild = 1.1 * np.abs(X).max(), Stream.of(n), 0
        for _ in range(runs):
            wild += bool((np.abs(release_bounds(plan, source_of(X), stream)) > reach).any())
        return wild / runs

    assert share_beyond_all_records(needed) <= 0.05
    assert share_beyond_all_records(needed // 3) > 0.5
