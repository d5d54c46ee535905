"""What rank correlation promises beyond the contract of every class: order alone counts."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kendalltau
from sklearn.base import clone

from taciturn.core.errors import ParameterError
from taciturn.data.records import ADMISSIBLE
from taciturn.methods.selection.estimator import KendallSelector


def data(n=2000, d=8, seed=0):
    """Heavy tails; columns 2 and 6 carry the target, column 4 repeats column 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((n, d))
    X[:, 4] = X[:, 2] ** 3
    return X, np.arctan(X[:, 2]) - 0.7 * np.arctan(X[:, 6])


def chosen(selector):
    return np.flatnonzero(selector.support_).tolist()


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_strong_features_are_found_and_certified(relation, delta):
    X, y = data()
    selector = KendallSelector(n_features_to_select=2, delta=delta, relation=relation, random_state=1).fit(X, y)
    assert chosen(selector) in ([2, 6], [4, 6])
    certificate = selector.certificate_
    assert (certificate.epsilon, certificate.delta) == (1.0, delta)
    assert (certificate.relation, certificate.status, certificate.arithmetic) == (relation, "proved", "exact")
    assert certificate.seeded
    assert set(certificate.assumptions) == {"whether the target holds numbers or truth values is public", ADMISSIBLE}
    assert certificate.events[0].count == 2
    assert ("records" in certificate.public) == (relation != "add-remove")
    assert certificate.public["method"] == ("gumbel" if delta else "permute-and-flip")
    told = clone(selector).set_params(n_public=77).fit(X, y)
    assert told.certificate_.public["records"] == (77 if relation == "add-remove" else 2000)


def test_rounds_are_accounted_together():
    X, y = data(n=50, d=60)
    scales = {
        delta: KendallSelector(n_features_to_select=40, delta=delta).fit(X, y).certificate_.events[0].scale
        for delta in (0.0, 1e-6)
    }
    # One fortieth of epsilon a round makes 80 sensitivities of noise.
    assert scales[0.0] == pytest.approx(80.0)
    assert scales[1e-6] < 0.4 * scales[0.0]


def greedy(X, y, k):
    """The definition, by scipy. tau-b is tau-a where nothing is tied."""
    relevance = np.array([abs(kendalltau(column, y).statistic) for column in X.T])
    redundancy, selected = np.zeros(X.shape[1]), []
    for _ in range(k):
        scores = relevance - redundancy / max(len(selected), 1)
        scores[selected] = -np.inf
        selected.append(int(np.argmax(scores)))
        redundancy += [abs(kendalltau(column, X[:, selected[-1]]).statistic) for column in X.T]
    return sorted(selected)


@pytest.mark.parametrize("relation", ["zero-out", "add-remove"])
def test_infinite_epsilon_is_the_greedy_choice(relation):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 9))
    X[:, 3] += 2.0 * X[:, 0]
    X[:, 5] += 3.0 * X[:, 0]
    y = 2.0 * X[:, 0] + X[:, 7] - X[:, 8] + rng.standard_normal(60)
    selector = KendallSelector(epsilon=float("inf"), relation=relation, n_features_to_select=4).fit(X, y)
    assert chosen(selector) == greedy(X, y, 4)
    # Relevance alone would choose others.
    assert chosen(selector) != sorted(np.argsort([-abs(kendalltau(x, y).statistic) for x in X.T])[:4].tolist())
    assert selector.certificate_.status == "not private"
    assert selector.certificate_.epsilon == float("inf")


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_increasing_and_decreasing_transformations_change_nothing(relation):
    X, y = data(n=60)
    warped = np.column_stack(
        [np.arctan(X[:, 0]), X[:, 1] ** 3, 1e300 * np.tanh(X[:, 2]), -X[:, 3], X[:, 4] * 2.0**40, *X[:, 5:].T]
    )
    supports = set()
    for seed in range(20):
        selector = KendallSelector(n_features_to_select=3, relation=relation, random_state=seed)
        expected = tuple(chosen(clone(selector).fit(X, y)))
        assert tuple(chosen(selector.fit(warped, np.exp(y)))) == expected
        supports.add(expected)
    assert len(supports) > 3


@pytest.mark.parametrize("labels", [(0, 1), ("yes", "no"), (1.5, -1.5), (False, True)])
def test_two_labels_of_any_type(labels):
    X, _ = data()
    y = np.array(labels)[(X[:, 5] > 0.3).astype(int)]
    selector = KendallSelector(classes=labels, n_features_to_select=1, random_state=0).fit(X, y)
    assert chosen(selector) == [5]
    assert selector.certificate_.public["classes"] == list(labels)


def test_numbers_as_objects_and_truth_values_need_nothing():
    X, y = data()
    plain = KendallSelector(n_features_to_select=2, random_state=0)
    as_objects = clone(plain).fit(X, y.astype(object))
    assert np.array_equal(as_objects.support_, plain.fit(X, y).support_)
    assert "classes" not in as_objects.certificate_.public
    truth = clone(plain).fit(X, y > 0)
    assert truth.certificate_.public["classes"] == [False, True]
    assert truth.support_[[2, 4]].any()


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_records_with_another_label_are_in_no_pair(convert):
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((150, 8)))
    y = np.where(X[:, 3] + rng.standard_normal(150) > 0, "a", "b").astype(object)
    spoiled, X_spoiled = y.copy(), X.copy()
    spoiled[:50] = "unknown"
    X_spoiled[:50] = 1000.0 * np.arange(50)[:, None] * rng.choice([-1, 1], 8)
    selector = KendallSelector(classes=("a", "b"), epsilon=float("inf"), n_features_to_select=4)
    expected = chosen(clone(selector).fit(convert(X[50:]), y[50:]))
    assert chosen(clone(selector).fit(convert(X_spoiled), spoiled)) == expected
    # They do count as records.
    private = selector.set_params(epsilon=1.0).fit(convert(X_spoiled), spoiled)
    assert private.certificate_.public["records"] == 150
    with_label = np.where(np.arange(150) < 50, "a", spoiled).astype(object)
    assert chosen(clone(selector).set_params(epsilon=float("inf")).fit(convert(X_spoiled), with_label)) != expected


def test_more_than_two_classes_have_no_order_but_numbers_do():
    X, _ = data()
    grades = np.digitize(X[:, 5], [-1.0, 0.0, 1.0])
    with pytest.raises(ParameterError, match="^classes=.*expected two labels, since more have no order"):
        KendallSelector(classes=(0, 1, 2, 3)).fit(X, grades)
    assert chosen(KendallSelector(n_features_to_select=1, random_state=0).fit(X, grades)) == [5]
