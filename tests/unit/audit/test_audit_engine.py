"""Audits: bounds that hold and come near the truth, events chosen honestly, exact laws, a search that climbs."""

import math
import random
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, norm

from taciturn.audit import Pair, audit, engine, observing
from taciturn.core.errors import DataError, ParameterError

TRUTH = math.log(3.0)
# For bounds that a test takes for certain: two of them have to fail together.
SURE = 0.9999
BIT = Pair(1, 0, "replace-one", "The only record is the bit itself")


def respond(bit, random_state, kept=0.75):
    """Randomised response: ln(3)-DP."""
    return bit if random.Random(random_state).random() < kept else 1 - bit


def shifted_normals(mean, random_state, spread=1.0):
    """A Gaussian mechanism."""
    return mean + spread * np.random.default_rng(random_state).standard_normal(np.size(mean))


def one_of(outcomes, random_state):
    return random.Random(random_state).randrange(outcomes)


def is_one(outcome):
    return outcome == 1


@pytest.fixture
def quick(monkeypatch):
    """A look at the loaded libraries takes longer than some hundred of these runs."""
    monkeypatch.setattr(engine, "threadpool_limits", lambda limits: nullcontext())


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize("tail", [0.025, 1e-7])
def test_clopper_pearson_by_its_definition(tail):
    trials = 30
    low, high = observing.clopper_pearson(np.arange(trials + 1), trials, tail)
    assert (low[0], high[trials]) == (0.0, 1.0)
    assert binom.sf(np.arange(trials), trials, low[1:]) == pytest.approx(np.full(trials, tail))
    assert binom.cdf(np.arange(trials), trials, high[:-1]) == pytest.approx(np.full(trials, tail))


def plug_in(successes, trials, tail):
    """Estimates in place of bounds."""
    return np.asarray(successes) / trials, np.maximum(successes, 0.5) / trials


def test_bounds_cover_the_truth_and_estimates_do_not(quick, monkeypatch):
    def too_often_above(repeats):
        found = [audit(respond, BIT, 0.0, 200, random_state=seed).lower_bound for seed in range(repeats)]
        # One in twenty is allowed, up to chance of one in a million.
        return sum(bound > TRUTH for bound in found) > binom.isf(1e-6, repeats, 0.05)

    assert not too_often_above(200)
    monkeypatch.setattr(observing, "clopper_pearson", plug_in)
    assert too_often_above(60)


def test_randomised_response_is_nearly_measured_and_weaker_noise_is_caught():
    result = audit(respond, BIT, 0.0, 20_000, SURE, claimed=TRUTH)
    assert 0.8 * TRUTH < result.lower_bound <= TRUTH
    assert result.verdict == "no violation found"
    assert audit(partial(respond, kept=0.85), BIT, 0.0, 4_000, SURE, claimed=TRUTH).verdict == "violated"


def test_delta_is_taken_off():
    # p = 3/4, q = 1/4.
    truth = math.log((0.75 - 0.2) / 0.25)
    assert 0.7 * truth < audit(respond, BIT, 0.2, 10_000, SURE).lower_bound <= truth < 0.8 * TRUTH
    assert audit(respond, BIT, 0.9, 1_000).lower_bound == 0.0


def bound_by_scipy(n_likelier, n_other, trials, tail):
    low = binomtest(n_likelier, trials, alternative="greater").proportion_ci(1 - tail).low
    high = binomtest(n_other, trials, alternative="less").proportion_ci(1 - tail).high
    return math.log(low / high)


class Recorder:
    """Remembers what it was asked and what it answered."""

    def __init__(self):
        self.seeds, self.answers = {1: [], 0: []}, {1: [], 0: []}

    def __call__(self, bit, random_state):
        self.seeds[bit].append(random_state)
        self.answers[bit].append(respond(bit, random_state))
        return self.answers[bit][-1]


def test_a_chosen_event_is_bounded_by_the_other_half():
    record = Recorder()
    result = audit(record, BIT, 0.0, 1_000, confidence=0.9)
    # Four equivalent events: ones or zeros, each by name or by exclusion.
    outcome = 1 if "first" in result.event else 0
    assert result.event in {
        f"the outcome is {words}, likelier on the {'first' if outcome else 'second'} data set"
        for words in (outcome, f"not {1 - outcome}")
    }
    second_half = {bit: answers[500:].count(outcome) for bit, answers in record.answers.items()}
    assert result.lower_bound == pytest.approx(
        bound_by_scipy(second_half[outcome], second_half[1 - outcome], 500, 0.05)
    )


def test_an_event_given_in_advance_is_bounded_by_all_runs_on_either_side():
    record = Recorder()
    result = audit(record, BIT, 0.0, 4_000, SURE, event=is_one)
    ones = {bit: answers.count(1) for bit, answers in record.answers.items()}
    tail = (1 - SURE) / 4
    by_event = bound_by_scipy(ones[1], ones[0], 4_000, tail)
    by_opposite = bound_by_scipy(4_000 - ones[0], 4_000 - ones[1], 4_000, tail)
    assert result.lower_bound == pytest.approx(max(by_event, by_opposite))
    assert "is_one, given in advance, likelier on the" in result.event
    assert 0.7 * TRUTH < result.lower_bound <= TRUTH
    # A pair in the other order is told apart as well.
    swapped = audit(respond, Pair(0, 1, "replace-one", ""), 0.0, 4_000, SURE, event=is_one)
    assert 0.7 * TRUTH < swapped.lower_bound <= TRUTH
    assert audit(respond, BIT, 0.0, 1_000, event=lambda outcome: True).lower_bound == 0.0


def test_no_seed_is_used_twice():
    record, again, other = Recorder(), Recorder(), Recorder()
    audit(record, BIT, 0.0, 3_000, random_state=4)
    audit(again, BIT, 0.0, 3_000, random_state=4)
    audit(other, BIT, 0.0, 3_000, random_state=5)
    used = record.seeds[1] + record.seeds[0]
    assert len(set(used)) == 6_000
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in used)
    assert again.seeds == record.seeds
    assert len(set(used) & set(other.seeds[1] + other.seeds[0])) < 10


def test_seeds_are_distinct_even_where_draws_repeat(monkeypatch):
    class FewBits:
        def __init__(self, sequence):
            pass

        def random_raw(self, size):
            return np.arange(size, dtype=np.uint64) // np.uint64(9) << np.uint64(32)

    monkeypatch.setattr(np.random, "PCG64", FewBits)
    assert np.unique(engine._seeds(0, 4)).size == 8


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers():
    pair = Pair(np.zeros(3), np.array([1.0, 0.0, 0.0]), "zero-out", "One mean differs")
    alone, shared = (audit(shifted_normals, pair, 1e-3, 1_100, claimed=1.0, n_jobs=jobs) for jobs in (1, 2))
    assert alone.lower_bound > 0.0
    assert alone == shared


# ------------------------------------------------------------------ the Gaussian route


def gaussian_epsilon(mu, delta):
    """From the closed form of the Gaussian mechanism's delta."""
    return brentq(
        lambda eps: norm.cdf(-eps / mu + mu / 2) - math.exp(eps) * norm.cdf(-eps / mu - mu / 2) - delta, 0.0, 50.0
    )


DIRECTION = Pair(np.zeros(3), np.array([0.6, 0.0, -0.8]), "zero-out", "Means at distance one")


def test_gaussian_noise_is_nearly_measured_and_half_of_it_is_caught():
    truth = gaussian_epsilon(1.0, 1e-5)
    settings = {"confidence": SURE, "event": "gaussian", "claimed": truth}
    result = audit(shifted_normals, DIRECTION, 1e-5, 20_000, **settings)
    assert 0.8 * truth < result.lower_bound <= truth
    assert (result.route, result.verdict) == ("Gaussian", "no violation found")
    halved = audit(partial(shifted_normals, spread=0.5), DIRECTION, 1e-5, 3_000, **settings)
    assert halved.verdict == "violated"
    assert halved.lower_bound <= gaussian_epsilon(2.0, 1e-5)
    # Counting events alone shows far less at a small delta.
    assert audit(shifted_normals, DIRECTION, 1e-5, 3_000).lower_bound < 0.5 * truth


def test_the_gaussian_route_finds_nothing_where_nothing_differs():
    same = Pair(np.zeros(3), np.zeros(3), "zero-out", "One data set twice")
    assert audit(shifted_normals, same, 1e-5, 2_000, SURE, event="gaussian").lower_bound == 0.0


# ------------------------------------------------------------------ events


def correlated(mean, random_state):
    """Noise along (1, 1), nearly none across; the means differ across."""
    rng = np.random.default_rng(random_state)
    return mean + np.full(2, rng.standard_normal()) + 0.1 * rng.standard_normal(2)


def one_coordinate(size, random_state):
    """Laplace noise on the second of two coordinates: 1-DP at distance one."""
    rng = np.random.default_rng(random_state)
    return np.array([rng.standard_normal(), size + rng.laplace()])


def one_feature(bit, random_state):
    """A coefficient on one of two features, by randomised response."""
    place = respond(bit, random_state)
    return np.eye(2)[place] * np.random.default_rng(random_state).choice([-1.0, 1.0])


def parity(bit, random_state):
    """Which of three coefficients are zero looks fair one by one; whether their number is odd does not."""
    rng = random.Random(random_state)
    kept = [rng.random() < 0.5 for _ in range(2)]
    return np.array([*kept, (respond(bit, random_state + 2**32) + sum(kept)) % 2 == 1]) * rng.choice([-1.0, 1.0])


@pytest.mark.parametrize(
    ("run", "pair", "words", "truth"),
    [
        (correlated, (np.array([0.1, -0.1]), np.zeros(2)), "a linear score (heaviest on coordinate ", 2.0),
        (one_coordinate, (1.0, 0.0), "coordinate 1 ", 1.0),
        (one_feature, (1, 0), " zero, likelier", TRUTH),
        (parity, (1, 0), "the set of non-zero coordinates is one of (", TRUTH),
    ],
    ids=["linear score", "coordinate", "zero or not", "pattern"],
)
def test_the_event_is_found_wherever_the_difference_is(run, pair, words, truth):
    result = audit(run, Pair(*pair, "replace-one", ""), 0.0, 4_000, SURE)
    assert words in result.event
    assert 0.5 * truth < result.lower_bound
    if truth != 2.0:
        # The two Gaussian laws have no epsilon at delta = 0.
        assert result.lower_bound <= truth
    assert audit(run, Pair(pair[0], pair[0], "replace-one", ""), 0.0, 1_000, SURE).lower_bound == 0.0


def doubled(outcomes):
    return [outcome for outcome in outcomes for _ in range(2)]


def test_an_event_is_not_bounded_by_the_runs_that_chose_it(quick, monkeypatch):
    # Many outcomes, each of them rare, and one law on both sides: some look telling by chance.
    pair = Pair(400, 400, "zero-out", "One data set twice")

    def verdicts():
        return {audit(one_of, pair, 0.0, 2_000, SURE, claimed=0.1, random_state=seed).verdict for seed in range(5)}

    assert verdicts() == {"no violation found"}

    def overfitting(first, second, make, bound_of):
        # Even and odd runs are the same ones: statistics are compared on the runs that made them.
        return observing.best_event(doubled(first), doubled(second), make, bound_of)

    monkeypatch.setattr(engine, "best_event", overfitting)
    assert verdicts() == {"no violation found"}, "a bad choice costs power alone"
    monkeypatch.setattr(engine, "_halves", lambda outcomes: (outcomes, outcomes))
    assert verdicts() == {"violated"}


def many_outcomes(bit, random_state):
    """Randomised response, hidden in the last bit of one of 40 numbers."""
    return 2 * random.Random(random_state + 2**32).randrange(20) + respond(bit, random_state)


def test_outcomes_are_put_together_where_each_is_rare():
    result = audit(many_outcomes, BIT, 0.0, 6_000, SURE)
    assert 0.6 * TRUTH < result.lower_bound <= TRUTH
    assert " of " in result.event
    assert result.event.split(", likelier")[0].endswith("more")


def test_sets_of_outcomes_in_words():
    assert observing.outcomes_in_words("it", [frozenset("ba")]) == "it is {'a', 'b'}"
    assert observing.outcomes_in_words("it", [1, (2, 3)]) == "it is one of 1, (2, 3)"
    assert observing.outcomes_in_words("it", list(range(7)), none=True) == "it is none of 0, 1, 2, 3, 4 and 2 more"
    assert observing.outcomes_in_words("it", [], none=True) == "it is anything"


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"neighbours": (1, 0)}, "^neighbours='tuple': expected a Pair"),
        ({"run": 7}, "^run='int': expected a callable"),
        ({"delta": -0.1}, "^delta=-0.1: "),
        ({"trials": 7}, "^trials=7: expected an integer >= 8"),
        ({"confidence": 1.0}, r"^confidence=1.0: expected a number in \[0, 1\)"),
        ({"event": "gauss"}, "^event='gauss': expected one of 'auto', 'gaussian'"),
        ({"event": "gaussian"}, "^delta=0.0: expected a number > 0 for event='gaussian'"),
        ({"claimed": -1.0}, "^claimed=-1.0: "),
        ({"name": None}, "^name=None: expected text"),
        ({"random_state": None}, "^random_state=None: "),
        ({"n_jobs": 0}, "^n_jobs=0: "),
        ({"progress": "yes"}, "^progress='yes': "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters_are_checked_before_anything_runs(settings, message):
    record = Recorder()
    with pytest.raises(ParameterError, match=message):
        audit(**({"run": record, "neighbours": BIT, "delta": 0.0, "trials": 100} | settings))
    assert record.seeds == {1: [], 0: []}


@pytest.mark.parametrize(
    "outcome",
    [0.4321, np.float32(0.4321), [4321], ([4321],), np.array([np.nan, 4321.0]), np.full((2, 2), 4321.0), np.zeros(0)],
)
def test_outcomes_that_cannot_be_used_are_refused_unquoted(outcome):
    with pytest.raises(DataError, match="^run: expected a discrete, hashable outcome or a one-dim.* return") as caught:
        audit(lambda data, random_state: outcome, BIT, 0.0, 8)
    assert "4321" not in str(caught.value)


@pytest.mark.parametrize("outcomes", [(np.zeros(2), np.zeros(3)), (np.zeros(2), 1)])
def test_outcomes_are_of_one_kind(outcomes):
    with pytest.raises(DataError, match="^run: expected outcomes of one kind"):
        audit(lambda bit, random_state: outcomes[bit], BIT, 0.0, 8)


def test_the_gaussian_route_needs_arrays():
    with pytest.raises(DataError, match="^event='gaussian': expected outcomes that are arrays"):
        audit(respond, BIT, 1e-5, 8, event="gaussian")


def test_a_pair_says_how_it_is_one():
    with pytest.raises(ParameterError, match="^relation='swap'"):
        Pair(1, 0, "swap", "")
    with pytest.raises(ParameterError, match="^words=None: expected text"):
        Pair(1, 0, "zero-out", None)


def test_progress_is_drawn_on_request_only(capsys, quick):
    audit(respond, BIT, 0.0, 8, name="a coin")
    assert capsys.readouterr() == ("", "")
    audit(respond, BIT, 0.0, 8, name="a coin", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "a coin" in err
    assert "16/16" in err
