"""Selectors end to end: the law that a fit uses, exactly, and what a fit with a score of one's own may see and say."""

import warnings
from functools import cache
from itertools import product
from math import log

import numpy as np
import pytest
import scipy.sparse as sp
from laws import (
    canonical_law,
    chi_square_p,
    laplace_max_law,
    ordered_law,
    permute_and_flip_law,
    published_canonical_law,
    softmax_law,
    subsets,
)

from taciturn import CorrelationSelector
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import RELATIONS, Sensitivity, record_sum
from taciturn.events import PureEvent
from taciturn.mechanisms import CanonicalLipschitz, GumbelTopK, LaplaceTopK, PeelingTopK, TwoSidedGeometric
from taciturn.methods.selection import estimator as selection_estimator
from taciturn.methods.selection import plan as selection_plan
from taciturn.published.dpsis import DPSIS, printed_top_k

N_FEATURES, EPSILON = 3, 1.2
KINDS = {
    CanonicalLipschitz: "canonical-lipschitz",
    GumbelTopK: "gumbel",
    PeelingTopK: "peeling",
    LaplaceTopK: "laplace",
}
MECHANISMS = tuple(KINDS.values())


class Cubes:
    """A score of one's own, from cubes of features; ``share`` of its true sensitivity is declared."""

    def __init__(self, share=1.0):
        self.share = share

    def __call__(self, X, y):
        return np.abs((X**3).T @ y)

    def sensitivity(self, relation):
        return record_sum(self.share, "linf", relation)


# Columns of the target and features by hand, of records within the bounds. "labels" stands for the default score with
# three classes; a null record is in no column.
COLUMNS = {
    "correlation": lambda y: y[:, None],
    "sign": lambda y: np.sign(y)[:, None],
    "quadrant": lambda y: np.sign(y)[:, None],
    "labels": lambda y: np.where(y[:, None] == [0, 1, 2], 1.0, -1.0),
}
SCORES = (*COLUMNS, "own")
# What a fit may release as the means of the columns of the target.
CENTRES = ((0,), (ONE // 2,), (-ONE,))
CENTRES_OF_CLASSES = ((0, 0, 0), (-ONE // 2, ONE // 4, -3 * ONE // 4), (-ONE, -ONE, ONE))
SETTINGS = {score: {"score_func": score} for score in ("correlation", "sign", "quadrant")}
SETTINGS |= {"own": {"score_func": Cubes()}, "labels": {"classes": (0, 1, 2)}}
# Values beyond the bounds are clipped; 9 is no class, which makes a null record.
X_VALUES, Y_VALUES, LABELS = (-1.0, 0.0, 0.5, 40.0), (-30.0, 0.0, 0.5, 1.0), (0.0, 1.0, 2.0, 9.0)


def scores_by_hand(score, X, y, centres=None):
    X, y = np.clip(X, -1, 1), y if score == "labels" else np.clip(y, -1, 1)
    if score == "own":
        return np.abs((X**3).T @ y)
    known = y <= 2
    centred = np.rint(ONE * (ONE * COLUMNS[score](y[known]) - centres) / (ONE + np.abs(centres).max())) / ONE
    return np.abs((np.sign(X) if score == "quadrant" else X)[known].T @ centred).max(axis=1)


def selector_of(score, mechanism, relation, k, epsilon=EPSILON):
    settings = {"mechanism": mechanism, "relation": relation, "n_features_to_select": k} | SETTINGS[score]
    return CorrelationSelector(epsilon=epsilon, delta=0.0, **settings)


def table(score, seed, n):
    rng = np.random.default_rng(seed)
    return rng.choice(X_VALUES, (n, N_FEATURES)), rng.choice(LABELS if score == "labels" else Y_VALUES, n)


@pytest.fixture
def shown(monkeypatch):
    """``shown(selector, X, y, centres)``: the plan of a fit and the scores that it shows to its mechanism.

    ``centres`` are what it releases as the means of the target.
    """
    seen = []

    def select(plan, scores, stream):
        seen.append((plan, scores))
        return np.arange(plan.k)

    def fit(selector, X, y, centres=None):
        with monkeypatch.context() as patch:
            patch.setattr(selection_estimator, "select_top_k", select)
            patch.setattr(selection_estimator, "release_centres", lambda *given, **named: centres)
            selector.fit(X, y)
        return seen.pop()

    return fit


@cache
def laplace_law_of_sorted(utilities):
    return laplace_max_law(np.array(utilities))


def laplace_law(utilities):
    """The slow law, computed once for each set of differences."""
    order = np.argsort(utilities)
    law = np.empty(utilities.size)
    law[order] = laplace_law_of_sorted(tuple(np.round(utilities[order] - utilities.max(), 11).tolist()))
    return law


def law_of_sets(mechanism, utilities, k):
    """Probabilities of the selected sets; ``utilities`` are scores in units of the noise."""
    if mechanism == "canonical-lipschitz":
        return canonical_law(2.0 * utilities, k, 1.0, 0.5)
    if mechanism == "laplace":
        # Of three candidates, two are selected by leaving out the last one.
        return laplace_law(utilities) if k == 1 else laplace_law(-utilities)[::-1]
    law_of_one = softmax_law if mechanism == "gumbel" else permute_and_flip_law
    out = dict.fromkeys(subsets(utilities.size, k), 0.0)
    for winners, probability in ordered_law(law_of_one, utilities, k).items():
        out[tuple(sorted(winners))] += probability
    return np.array(list(out.values()))


def law_used(plan, scores):
    return law_of_sets(KINDS[type(plan.mechanism)], scores / plan.mechanism.scale, plan.k)


def left_of(score, epsilon=EPSILON):
    """What a fit spends on its selection: all but a twentieth, which is for the mean of the target."""
    return epsilon if score == "own" else 0.95 * epsilon


def centres_of(score):
    return (None,) if score == "own" else CENTRES_OF_CLASSES if score == "labels" else CENTRES


def law_by_hand(mechanism, scores, k, relation, epsilon):
    spread = 4.0 if relation == "replace-one" else 2.0
    shares = 1 if mechanism == "canonical-lipschitz" else k
    return law_of_sets(mechanism, scores * epsilon / (shares * spread), k)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 2])
def test_a_fit_uses_the_law_of_the_true_scores(shown, score, relation, k):
    left = left_of(score)
    for mechanism in MECHANISMS:
        selector = selector_of(score, mechanism, relation, k)
        for seed, centres in enumerate(centres_of(score)):
            X, y = table(score, seed, n=9)
            scores = scores_by_hand(score, X, y, centres)
            used = law_used(*shown(selector, X, y, centres))
            assert used.sum() == pytest.approx(1.0)
            assert used == pytest.approx(law_by_hand(mechanism, scores, k, relation, left), rel=1e-7)
            # A slip of a tenth in the noise would show, wherever scores differ at all.
            if np.ptp(scores) > 0.1:
                assert used != pytest.approx(law_by_hand(mechanism, scores, k, relation, 1.1 * left), rel=1e-4)


N_IDLE = 3000


def with_idle_records(score, X, y):
    """The table with records of zeros, and the means of its target, which so many records hold where they are."""
    idle = np.resize([0.0, 1.0, 2.0] if score == "labels" else [-1.0, 1.0], N_IDLE)
    X, y = np.vstack((np.zeros((N_IDLE, N_FEATURES)), X)), np.append(idle, y)
    if score == "own":
        return X, y, None
    known = y <= 2
    return X, y, np.rint(ONE * COLUMNS[score](np.clip(y, -1, None if score == "labels" else 1)[known]).mean(axis=0))


@pytest.mark.parametrize(
    ("score", "mechanism", "relation"),
    [
        ("sign", "canonical-lipschitz", "add-remove"),
        ("quadrant", "gumbel", "replace-one"),
        ("own", "peeling", "zero-out"),
        ("labels", "laplace", "zero-out"),
    ],
)
def test_selections_follow_that_law(score, mechanism, relation):
    X, y, centres = with_idle_records(score, *table(score, 1, n=14))
    index = {chosen: i for i, chosen in enumerate(subsets(N_FEATURES, 2))}
    counts = np.zeros(len(index))
    selector = selector_of(score, mechanism, relation, 2, 2 * EPSILON)
    for seed in range(400):
        support = selector.set_params(random_state=seed).fit(X, y).support_
        counts[index[tuple(np.flatnonzero(support).tolist())]] += 1
    scores, left = scores_by_hand(score, X, y, centres), left_of(score, 2 * EPSILON)
    assert chi_square_p(counts, law_by_hand(mechanism, scores, 2, relation, left)) > 1e-4
    # Noise of another scale: that of a selector that got its sensitivity wrong.
    for factor in (2.5, 0.3):
        assert chi_square_p(counts, law_by_hand(mechanism, scores, 2, relation, factor * left)) < 1e-6


def crafted():
    """Scores well above zero, and records by which two of them drift apart as far as they can."""
    X = np.array([[1, 1, 1]] * 6 + [[1, -1, -1], [-1, 1, 40], [-1, -1, 0]], dtype=float)
    return X, np.ones(len(X))


def neighbours_of(score, X, y, relation):
    """Every neighbour of a table over a small domain; equal rows are changed once."""
    for i in np.unique(np.column_stack((X, y)), axis=0, return_index=True)[1]:
        if relation != "replace-one":
            yield np.delete(X, i, axis=0), np.delete(y, i)
            continue
        for x, target in product(product((-1.0, 40.0), repeat=N_FEATURES), LABELS if score == "labels" else (-30, 1)):
            X2, y2 = X.copy(), y.copy()
            X2[i], y2[i] = x, target
            yield X2, y2


def worst_log_ratio(plan, pairs, factor=1.0):
    laws = {scores: law_used(plan, factor * np.array(scores)) for pair in pairs for scores in pair}
    return max(np.max(np.abs(np.log(laws[a] / laws[b]))) for a, b in pairs)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_all_neighbours_stay_within_epsilon_whatever_mean_was_released(shown, score, relation):
    pairs = set()
    for (X, y), centres in product((crafted(), table(score, 0, n=2)), centres_of(score)):
        # The scores that a fit shows do not depend on its mechanism.
        _, base = shown(selector_of(score, "peeling", relation, 1), X, y, centres)
        for neighbour in neighbours_of(score, X, y, relation):
            _, other = shown(selector_of(score, "peeling", relation, 1), *neighbour, centres)
            pairs.add((tuple(base.tolist()), tuple(other.tolist())))
    left = left_of(score)
    for mechanism, k in product(MECHANISMS, (1, 2)):
        plan, _ = shown(selector_of(score, mechanism, relation, k), X, y, centres)
        worst = worst_log_ratio(plan, pairs)
        assert 0.35 * left < worst <= left * (1 + 1e-9)
        assert worst_log_ratio(plan, pairs, 3.0) > left
        if (mechanism, k) == ("peeling", 1):
            # The bound is reached, so that half the sensitivity, zero-out's in place of replace-one's, is too little.
            assert worst > 0.99 * left
            assert worst_log_ratio(plan, pairs, 1.5) > 1.4 * left


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("score", COLUMNS)
def test_the_mean_of_the_target_is_released_by_its_own_law(score, relation):
    """All neighbours over a small domain: log-ratios reach the twentieth that it costs, and do not exceed it."""
    values = LABELS if score == "labels" else (-30.0, 0.0, 0.5, 1.0)
    released = []

    class Shown(TwoSidedGeometric):
        def release(self, value, stream):
            released.append((self, np.asarray(value)))
            return super().release(value, stream)

    def parts(targets):
        selector = selector_of(score, "peeling", relation, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection_plan, "TwoSidedGeometric", Shown)
            selector.fit(np.ones((len(targets), N_FEATURES)), np.array(targets))
        assert selector.certificate_.events[0].event == PureEvent(0.05 * EPSILON)
        return released.pop()

    worst = 0.0
    for targets in product(values, repeat=2):
        mechanism, sums = parts(targets)
        for other in values if relation == "replace-one" else (None,):
            changed = targets[:1] if other is None else (targets[0], other)
            # P(k) ~ exp(-rate |k - sum|) in each part, so that tails have this log-ratio.
            ratio = np.abs(sums - parts(changed)[1]).sum() * mechanism.epsilon / mechanism.sensitivity
            worst = max(worst, ratio)
    assert worst == pytest.approx(0.05 * EPSILON, rel=1e-12)
    # A sensitivity of two thirds would be found.
    assert 1.5 * worst > 0.05 * EPSILON * (1 + 1e-9)


def test_a_guarantee_is_as_good_as_the_declared_sensitivity(shown):
    worst = {}
    X, y = crafted()
    for share in (1.0, 0.5):
        selector = selector_of("own", "peeling", "zero-out", 1).set_params(score_func=Cubes(share))
        plan, base = shown(selector, X, y)
        others = [shown(selector, *pair)[1] for pair in neighbours_of("own", X, y, "zero-out")]
        worst[share] = worst_log_ratio(plan, [(tuple(base), tuple(other)) for other in others])
    assert worst[1.0] <= EPSILON * (1 + 1e-9) < worst[0.5]


# ---------------------------------------------------------------------- scores of one's own


class Recorder:
    """Keeps what a score is shown."""

    def __call__(self, X, y):
        self.X, self.y = X, y
        return np.arange(X.shape[1])

    def sensitivity(self, relation):
        return Sensitivity(1.0, "linf", relation)

    def __deepcopy__(self, memo):
        return self


def test_a_callable_sees_bounded_data():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (50, 4)), rng.uniform(-1, 1, 50)
    seen = Recorder()
    selector = CorrelationSelector(score_func=seen, n_features_to_select=1, x_bound=0.5, y_bounds=(-0.2, 0.6)).fit(X, y)
    assert np.array_equal(seen.X, np.clip(X, -0.5, 0.5))
    assert seen.y == pytest.approx((np.clip(y, -0.2, 0.6) - 0.2) / 0.4, abs=2.0**-16)
    assert np.abs(seen.y).max() == 1.0
    assert np.abs(X).max() > 0.9, "the caller's table is left alone"
    selector.set_params(epsilon=float("inf")).fit(X, y)
    assert np.array_equal(seen.X, X)
    assert seen.y == pytest.approx((y - 0.2) / 0.4)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_a_callable_sees_sparse_data_as_given(kind):
    seen = Recorder()
    # One entry is stored as 3 and -2.4, which is 0.6.
    X = kind(sp.csc_array(([3.0, -2.4, -7.0], [1, 1, 2], [0, 2, 2, 3]), shape=(4, 3)))
    CorrelationSelector(score_func=seen, n_features_to_select=1).fit(X, np.zeros(4))
    assert type(seen.X) is kind
    assert seen.X.toarray()[1:3] == pytest.approx(np.array([[0.6, 0, 0], [0, 0, -1.0]]))
    assert X.nnz == 3, "the caller's table is left alone"


def test_a_callable_sees_labels_as_signs():
    seen = Recorder()
    y = np.array(["a", "b", "a", "other"])
    for classes, expected in (("ab", [-1, 1, -1, 0]), ("abc", [[1, -1, -1], [-1, 1, -1], [1, -1, -1], [0, 0, 0]])):
        CorrelationSelector(score_func=seen, classes=list(classes), n_features_to_select=1).fit(np.zeros((4, 2)), y)
        assert seen.y.tolist() == expected


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_a_callable_sees_null_records_as_zeros_in_their_rows(layout):
    seen = Recorder()
    X = np.array([[0.5, 1.0], [np.nan, 1.0], [0.25, -1.0], [1.0, 0.5]])
    for relation in ("zero-out", "replace-one", "add-remove"):
        selector = CorrelationSelector(
            score_func=seen, invalid="null", relation=relation, n_public=4, n_features_to_select=1
        )
        selector.fit(layout(X), [1.0, 0.5, 0.25, None])
        table = seen.X.toarray() if sp.issparse(seen.X) else seen.X
        present = [[0.5, 1.0], [0.25, -1.0]]
        zeros = [0.0, 0.0]
        assert table.tolist() == (present if relation == "add-remove" else [present[0], zeros, present[1], zeros])
        assert seen.y.tolist() == ([1.0, 0.25] if relation == "add-remove" else [1.0, 0.0, 0.25, 0.0])


def with_sensitivity(value):
    def score(X, y):
        return np.zeros(X.shape[1])

    score.sensitivity = value
    return score


class Unreadable:
    """A table that must not be looked at."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the data were read")

    shape = property(__array__)


@pytest.mark.parametrize(
    "score",
    [
        lambda X, y: np.zeros(X.shape[1]),
        with_sensitivity(Sensitivity(1.0, "linf", "zero-out")),
        with_sensitivity(lambda relation: 1.0),
        with_sensitivity(lambda relation: record_sum(1.0, "l2", relation)),
        with_sensitivity(lambda relation: record_sum(1.0, "linf", "replace-one")),
    ],
    ids=["nothing", "not a function of the relation", "a number", "another norm", "another relation"],
)
def test_a_callable_must_declare_its_sensitivity_before_data_are_read(score):
    selector = CorrelationSelector(score_func=score, n_features_to_select=1)
    with pytest.raises(ParameterError) as caught:
        selector.fit(Unreadable(), np.zeros(3))
    assert str(caught.value).startswith("score_func='")
    assert "expected a callable whose method sensitivity('zero-out') returns a Sensitivity" in str(caught.value)
    assert not hasattr(selector, "certificate_")
    with pytest.raises(AssertionError, match="the data were read"):
        selector.set_params(score_func=Cubes()).fit(Unreadable(), np.zeros(3))


def raising(X, y):
    raise RuntimeError(f"cannot use {X[0, 0]}")


def warning(X, y):
    warnings.warn(f"strange: {X[0, 0]}", UserWarning, stacklevel=1)
    return np.log(np.zeros(X.shape[1]))


@pytest.mark.parametrize(
    "function",
    [
        raising,
        warning,
        lambda X, y: np.full(X.shape[1], np.nan),
        lambda X, y: X[0, 1:],
        lambda X, y: np.zeros((X.shape[1], 1)),
        lambda X, y: ["0.43210"] * (X.shape[1] + 1),
    ],
    ids=["error", "warning and infinity", "NaN", "too few", "two dimensions", "too many"],
)
def test_what_goes_wrong_in_a_callable_is_not_quoted(function):
    X = np.full((3, 4), 0.43210)
    function.sensitivity = lambda relation: record_sum(1.0, "linf", relation)
    selector = CorrelationSelector(score_func=function, n_features_to_select=1)
    with pytest.raises(DataError, match="^score_func: expected one finite number per feature, .*data") as caught:
        selector.fit(X, np.zeros(3))
    assert "4321" not in str(caught.value)
    assert caught.value.__context__ is None
    assert not hasattr(selector, "certificate_")


# ---------------------------------------------------------------------- DP-SIS as printed


def test_the_printed_selector_follows_the_printed_law_and_not_the_sound_one():
    scores = np.array([9.0, 6.0, 4.0, 2.5, 0.0])
    index = {chosen: i for i, chosen in enumerate(subsets(5, 3))}
    counts = np.zeros(len(index))
    stream = Stream.of(8)
    for _ in range(3000):
        counts[index[tuple(sorted(printed_top_k(scores, 3, 1.0, 0.5, stream).tolist()))]] += 1
    assert chi_square_p(counts, published_canonical_law(scores, 3, 1.0, 0.5)) > 1e-4
    assert chi_square_p(counts, canonical_law(scores, 3, 1.0, 0.5)) < 1e-6
    for factor in (2 / 3, 3 / 2):
        assert chi_square_p(counts, published_canonical_law(scores, 3, factor, 0.5)) < 1e-6


def drifts(d, k, rng):
    """Pairs of scores at distance one: random ones, and ladders of near ties that one step turns over."""
    ladder = np.arange(d, 0, -1) * 1e-9
    for _ in range(5):
        base = rng.exponential(1.0, d)
        yield base, base + rng.uniform(-1, 1, d)
        yield ladder, ladder[rng.permutation(d)]
        yield ladder, ladder + rng.choice([-1.0, 1.0], d)
        yield ladder, ladder + np.where(np.arange(d) < k, -1.0, 1.0)


@pytest.mark.parametrize(("d", "k"), [(6, 1), (6, 2), (6, 3), (7, 4)])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_what_is_proved_of_the_printed_selector_holds_and_is_needed(d, k, epsilon):
    X = np.zeros((3, d))
    proved = DPSIS(epsilon=epsilon, n_features_to_select=k).fit(X, np.zeros(3)).certificate_.proved_epsilon
    assert proved == pytest.approx(epsilon + log(k))
    rng = np.random.default_rng(0)
    worst = max(
        np.max(np.abs(np.log(published_canonical_law(a, k, epsilon, g) / published_canonical_law(b, k, epsilon, g))))
        for g in (0.5, 0.9)
        for a, b in drifts(d, k, rng)
    )
    assert worst <= proved * (1 + 1e-9)
    # The claim is broken, by nearly all that the bound allows for; the logarithm is there at any epsilon.
    assert (worst > epsilon) == (k > 1)
    assert worst > 0.9 * log(k)
