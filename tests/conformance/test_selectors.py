"""What selection by correlations promises beyond the contract of every class, and what selectors share."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import r_regression

from taciturn import BlockVoteSelector, Budget, CorrelationSelector, KendallSelector
from taciturn.accounting import epsilon_of
from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import RELATIONS, correlation_scores, record_sum
from taciturn.events import PureEvent
from taciturn.methods.selection import estimator as selection_estimator
from taciturn.methods.selection.plan import plan_correlation, plan_top_k


def data(n=4000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X[:, 2] - 0.8 * X[:, 7], -1, 1)


class PositivePart:
    """A score of one's own: a record adds at most 1 to any sum."""

    def __call__(self, X, y):
        return np.abs(np.asarray(X.maximum(0) if sp.issparse(X) else np.maximum(X, 0)).T @ y)

    def sensitivity(self, relation):
        return record_sum(1.0, "linf", relation)


@pytest.mark.parametrize("mechanism", ["auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"])
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_strong_features_are_found(mechanism, relation):
    X, y = data()
    selector = CorrelationSelector(n_features_to_select=2, mechanism=mechanism, relation=relation, random_state=1).fit(
        X, y
    )
    assert np.flatnonzero(selector.support_).tolist() == [2, 7]
    certificate = selector.certificate_
    assert certificate.epsilon <= 1.0
    assert certificate.delta == (1e-6 if mechanism in ("auto", "gumbel") else 0.0)
    assert certificate.relation == relation
    assert certificate.status == "proved"
    assert certificate.arithmetic == "exact"
    assert certificate.seeded
    assert ("records" in certificate.public) == (relation != "add-remove")
    told = CorrelationSelector(n_features_to_select=2, mechanism=mechanism, relation=relation, n_public=77).fit(X, y)
    assert told.certificate_.public["records"] == (77 if relation == "add-remove" else 4000)


def test_replacement_needs_twice_the_noise():
    X, y = data()
    scales = {
        relation: CorrelationSelector(relation=relation, n_features_to_select=2, mechanism="gumbel")
        .fit(X, y)
        .certificate_.events[1]
        .scale
        for relation in ("zero-out", "replace-one")
    }
    # In units of the relation's own sensitivity, which doubles.
    assert scales["zero-out"] == pytest.approx(scales["replace-one"])
    rng = np.random.default_rng(0)
    weak = rng.uniform(-1, 1, (30, 2))
    target = np.clip(0.4 * weak[:, 0] + rng.uniform(-0.3, 0.3, 30), -1, 1)

    def hits(relation):
        return sum(
            CorrelationSelector(delta=0.0, n_features_to_select=1, relation=relation, random_state=seed)
            .fit(weak, target)
            .support_[0]
            for seed in range(300)
        )

    assert hits("zero-out") > hits("replace-one") + 15


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), ("a", "b", "c")])
def test_labels_of_any_type(labels):
    X, _ = data()
    codes = np.digitize(X[:, 5], np.quantile(X[:, 5], np.linspace(0, 1, len(labels) + 1))[1:-1])
    y = np.array(labels)[codes]
    selector = CorrelationSelector(classes=labels, n_features_to_select=1, random_state=0).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [5]
    assert selector.certificate_.public["classes"] == list(labels)
    assert not any("set of labels" in text for text in selector.certificate_.assumptions)


@pytest.mark.parametrize("dtype", [object, str])
def test_labels_may_be_digits_written_as_text(dtype):
    X, y = data()
    labels = np.where(y > 0, "1", "0").astype(dtype)
    selector = CorrelationSelector(classes=("0", "1"), n_features_to_select=2, random_state=0).fit(X, labels)
    assert np.flatnonzero(selector.support_).tolist() == [2, 7]


def test_numbers_as_objects_and_truth_values_need_nothing():
    X, y = data()
    plain = CorrelationSelector(n_features_to_select=2, random_state=0)
    as_objects = clone(plain).fit(X, y.astype(object))
    assert np.array_equal(as_objects.support_, plain.fit(X, y).support_)
    assert as_objects.certificate_.public["y_bounds"] == [-1.0, 1.0]
    truth = clone(plain).fit(X, y > 0)
    assert truth.certificate_.public["classes"] == [False, True]
    assert truth.support_[2]


def test_records_with_another_label_are_null_records():
    X, _ = data()
    y = np.where(X[:, 3] > 0, "a", "b").astype(object)
    spoiled = y.copy()
    spoiled[:100] = "unknown"
    with_nulls = CorrelationSelector(classes=("a", "b"), epsilon=float("inf"), n_features_to_select=3)
    without = clone(with_nulls).fit(X[100:], y[100:])
    assert np.array_equal(with_nulls.fit(X, spoiled).support_, without.support_)


def heavy_tailed():
    """Standardised columns and a target with many values far beyond the default bounds."""
    rng = np.random.default_rng(3)
    X = rng.standard_t(3, (500, 20)) * rng.uniform(0.5, 2, 20) + rng.uniform(-3, 3, 20)
    y = 5.0 + X @ rng.standard_normal(20) + rng.standard_normal(500)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def nearly_noiseless(convert, Z, y, **settings):
    """The private selection at the largest budget from each record 400 times, beside which the noise is nothing."""
    selector = CorrelationSelector(epsilon=30.0, random_state=0, **settings)
    return selector.fit(convert(np.tile(Z, (400, 1))), np.tile(y, 400)).support_


@pytest.mark.parametrize("bounds", [{}, {"x_bound": 1e-3, "y_bounds": (100.0, 101.0)}, {"x_bound": 1e5}])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_infinite_epsilon_is_the_exact_ranking_on_standardised_columns_whatever_the_bounds(bounds, convert):
    Z, y = heavy_tailed()
    expected = set(np.argsort(-np.abs(r_regression(Z, y)))[:6])
    selector = CorrelationSelector(epsilon=float("inf"), n_features_to_select=6, **bounds).fit(convert(Z), y)
    assert set(np.flatnonzero(selector.support_)) == expected
    assert selector.certificate_.status == "not private"
    assert selector.certificate_.epsilon == float("inf")
    # Bounds and lattice do their work as soon as there is privacy, however small the noise: another ranking.
    if bounds != {"x_bound": 1e5}:
        assert set(np.flatnonzero(nearly_noiseless(convert, Z, y, n_features_to_select=6, **bounds))) != expected


def centred(target):
    return target - target.mean()


@pytest.mark.parametrize(
    ("score", "by_hand"),
    [
        ("sign", lambda Z, y: Z.T @ centred(np.sign(y - 5.0))),
        ("quadrant", lambda Z, y: np.sign(Z).T @ centred(np.sign(y - 5.0))),
        (PositivePart(), lambda Z, y: np.maximum(Z, 0).T @ (y - 5.0)),
    ],
)
def test_infinite_epsilon_clips_nothing_for_the_other_scores(score, by_hand):
    Z, y = heavy_tailed()
    settings = {"n_features_to_select": 8, "score_func": score, "y_bounds": (4.0, 6.0)}
    selector = CorrelationSelector(epsilon=float("inf"), **settings).fit(Z, y)
    expected = np.argsort(-np.abs(by_hand(Z, y)))[:8]
    assert set(np.flatnonzero(selector.support_)) == set(expected)
    clipped = np.argsort(-np.abs(by_hand(np.clip(Z, -1, 1), np.clip(y, 4.0, 6.0))))[:8]
    assert set(np.flatnonzero(nearly_noiseless(np.asarray, Z, y, **settings))) == set(clipped)
    assert (set(clipped) == set(expected)) == (score == "quadrant")


def lopsided(n=6000, seed=0):
    """Two nearly constant columns, one that goes with the target, noise, and a target that is mostly -1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.1, 1.0, -1.0)
    goes = np.where(rng.random(n) < 0.8, y, -y) * (rng.random(n) < 0.5)
    nearly_constant = np.where(rng.random((2, n)) < 0.98, 1.0, 0.0)
    return np.column_stack((*nearly_constant, goes, rng.choice([0.0, 1.0], n))), y


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("settings", "of_target"),
    [
        ({}, lambda y: 0.8 * y),
        ({"score_func": "sign"}, lambda y: y),
        ({"score_func": "quadrant"}, lambda y: y),
        ({"classes": (0, 1)}, lambda y: (y > 0).astype(int)),
        ({"classes": ("a", "b", "c")}, lambda y: np.where(y > 0, "c", np.resize(["a", "a", "a", "b"], y.size))),
    ],
    ids=["numbers", "sign", "quadrant", "labels", "classes"],
)
def test_nearly_constant_columns_are_not_selected(monkeypatch, relation, settings, of_target):
    X, y = lopsided()
    selector = CorrelationSelector(
        x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=1, relation=relation, random_state=0, **settings
    )
    persons = np.arange(y.size) // 2 * 2

    def chosen(epsilon, **given):
        return selector.set_params(epsilon=epsilon).fit(X, of_target(y), **given).get_support(indices=True).tolist()

    for epsilon in (1.0, 3.0, float("inf")):
        assert chosen(epsilon) == [2]
        assert chosen(epsilon, persons=persons) == [2]
    assert [line.what for line in selector.set_params(epsilon=1.0).fit(X, of_target(y)).certificate_.events] == [
        "the sizes of the classes" if "classes" in settings else "the mean of the target",
        "which 1 of 4 features score highest",
    ]
    # Without a mean to take off, the target goes with whatever is always there.
    none = (0,) * (3 if len(settings.get("classes", ())) == 3 else 1)
    monkeypatch.setattr(selection_estimator, "release_centres", lambda *given, **named: none)
    assert chosen(1.0)[0] < 2


@pytest.mark.parametrize("mechanism", ["auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1 / 3, 1.0, 7.0])
def test_mean_and_selection_cost_the_budget_together(mechanism, delta, epsilon):
    if mechanism == "gumbel" and delta == 0.0:
        return
    budget = Budget(epsilon, delta)
    plan = plan_correlation(budget, 30, 4, "zero-out", labelled=True, part_unit=1, method=mechanism)
    mean = plan.releases[0]
    assert mean.event == PureEvent(0.05 * epsilon)
    total = epsilon_of(plan.cost, plan.budget.delta)
    assert 0.99 * epsilon < total <= epsilon
    # Without the mean in the account there would be more for the selection.
    alone = plan_top_k(budget, 30, 4, correlation_scores(ONE, ONE, "zero-out"), method=plan.selection.method)
    assert epsilon_of(alone.cost + mean.event, alone.budget.delta) > 1.005 * epsilon


def test_all_features_cost_nothing_and_need_no_mean():
    X, y = data(n=50)
    selector = CorrelationSelector(n_features_to_select=12).fit(X, y)
    assert selector.certificate_.events == ()
    assert selector.support_.all()


@pytest.mark.parametrize("score", ["sign", "quadrant", PositivePart()], ids=["sign", "quadrant", "own"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_score_finds_strong_features(score, relation):
    X, y = data()
    selector = CorrelationSelector(n_features_to_select=2, relation=relation, score_func=score, random_state=1)
    assert np.flatnonzero(selector.fit(X, y).support_).tolist() == [2, 7]
    certificate = selector.certificate_
    own = not isinstance(score, str)
    assert certificate.public["score"] == ("PositivePart" if own else score)
    assert certificate.arithmetic == ("float64" if own else "exact")
    assert ("the sensitivity declared for the score is right" in certificate.assumptions) == own
    assert (certificate.status, certificate.relation) == ("proved", relation)


def test_labels_are_signs_already():
    X, y = data()
    for labels in (y > 0, np.digitize(y, (-0.3, 0.3))):
        plain = CorrelationSelector(classes=np.unique(labels), epsilon=0.05, n_features_to_select=4, random_state=2)
        sign = clone(plain).set_params(score_func="sign").fit(X, labels)
        assert np.array_equal(sign.support_, plain.fit(X, labels).support_)
    # A numeric target is not: here few of its values are large, and most have the sign of another column.
    numbers = np.where(np.abs(X[:, 2]) > 0.9, X[:, 2], 0.01 * X[:, 7])
    for selector, best in ((plain, 2), (sign, 7)):
        selector.set_params(classes=None, epsilon=1.0, n_features_to_select=1).fit(X, numbers)
        assert selector.get_support(indices=True).tolist() == [best]


def test_quadrants_are_not_moved_by_a_few_large_products():
    rng = np.random.default_rng(0)
    y = rng.uniform(-1, 1, 4000)
    X = np.column_stack((0.01 * np.sign(y), np.where(np.abs(y) > 0.9, np.sign(y), 0.0)))
    for score, best in (("correlation", 1), ("sign", 1), ("quadrant", 0)):
        selector = CorrelationSelector(n_features_to_select=1, score_func=score, random_state=0).fit(X, y)
        assert np.flatnonzero(selector.support_).tolist() == [best]


def test_a_callable_survives_pickles_and_clones():
    X, y = data()
    fitted = CorrelationSelector(score_func=PositivePart(), n_features_to_select=2, random_state=1).fit(X, y)
    again = pickle.loads(pickle.dumps(clone(fitted))).fit(X, y)
    assert np.array_equal(again.support_, fitted.support_)
    assert again.certificate_ == fitted.certificate_


@pytest.mark.parametrize("score", ["correlation", "sign", "quadrant"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_entries_stored_in_parts_are_their_sums(score, kind):
    # Column 0 holds 3 - 2 where the target is 1; taken apart, its parts clip to 0 and have signs that cancel.
    entries, rows = np.append(np.tile([3.0, -2.0], 40), 0.5), np.append(np.repeat(np.arange(40), 2), 7)
    parts = kind(sp.csc_array((entries, rows, [0, 80, 81]), shape=(80, 2)))
    assert parts.nnz == 81
    selector = CorrelationSelector(n_features_to_select=1, score_func=score)
    for epsilon in (float("inf"), 30.0):
        selector.set_params(epsilon=epsilon).fit(parts, np.where(np.arange(80) < 40, 1.0, -1.0))
        assert selector.get_support(indices=True).tolist() == [0]


SELECTORS = [BlockVoteSelector, CorrelationSelector, KendallSelector]


@pytest.mark.parametrize("kind", SELECTORS)
@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_missing_and_infinite_targets_are_refused_also_as_objects(kind, bad):
    X, y = data(n=200)
    y = y.astype(object)
    y[3] = bad
    selector = kind(n_features_to_select=2)
    with pytest.raises(TaciturnError, match="(?i)nan|infin|missing|numbers"):
        selector.fit(X, y)
    assert not hasattr(selector, "certificate_")


@pytest.mark.parametrize("kind", SELECTORS)
def test_truth_values_are_truth_values_also_as_objects(kind):
    X, y = data(n=400)
    selector = kind(n_features_to_select=2, random_state=0)
    plain = clone(selector).fit(X, y > 0)
    as_objects = clone(selector).fit(X, (y > 0).astype(object))
    as_nullable = clone(selector).fit(X, pd.Series(y > 0, dtype="boolean"))
    assert plain.certificate_ == as_objects.certificate_ == as_nullable.certificate_
    assert np.array_equal(plain.support_, as_objects.support_)
    assert plain.certificate_.public["classes"] == [False, True]
    # One record could change what kind of target it is, so that is said to be public.
    assert any("numbers or truth values" in text for text in plain.certificate_.assumptions)
    given = clone(selector).set_params(classes=(False, True)).fit(X, y > 0)
    assert not any("numbers or truth values" in text for text in given.certificate_.assumptions)


@pytest.mark.parametrize("kind", SELECTORS)
def test_numbers_written_as_text_are_no_numbers(kind):
    X, y = data(n=200)
    with pytest.raises(DataError, match="pass the labels as classes"):
        kind(n_features_to_select=2).fit(X, np.where(y > 0, "1", "0").astype(object))


def test_auto_does_without_a_mechanism_that_rounding_would_ruin():
    sensitivity = correlation_scores(1.0, 1.0, "zero-out")
    for budget, d, k in ((Budget(1.0, 1e-6), 40_000, 20_000), (Budget(1e-4, 1e-6), 5000, 1000)):
        assert plan_top_k(budget, d, k, sensitivity).method in ("peeling", "canonical-lipschitz")
