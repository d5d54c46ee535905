"""scikit-learn's contract for Kendall selection, and what rank correlation promises: order alone counts."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.data.reading import ADMISSIBLE
from taciturn.selectors.kendall import KendallSelector


def data(n=2000, d=8, seed=0):
    """Heavy tails; columns 2 and 6 carry the target, column 4 repeats column 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((n, d))
    X[:, 4] = X[:, 2] ** 3
    return X, np.arctan(X[:, 2]) - 0.7 * np.arctan(X[:, 6])


def chosen(selector):
    return np.flatnonzero(selector.support_).tolist()


def test_check_estimator_with_no_expected_failures():
    with warnings.catch_warnings():
        # The checks' tables have fewer columns than the default asks for.
        warnings.filterwarnings("ignore", message="n_features_to_select=10 is more than")
        # A check that needs a deterministic estimator is skipped, as the tag asks; none may fail.
        check_estimator(KendallSelector(), on_skip=None)
        check_estimator(KendallSelector(n_features_to_select=1), on_skip=None)


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


@pytest.mark.parametrize(
    "convert",
    [sp.csr_matrix, sp.csc_matrix, sp.csr_array, np.asfortranarray, np.float32, pd.DataFrame, pl.DataFrame],
)
def test_every_layout_gives_the_same_selection(convert):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((80, 12)) < 0.6, 0.0, np.round(rng.standard_normal((80, 12)), 1))
    X = X.astype(np.float32).astype(np.float64)
    y = X[:, 3] - X[:, 8]
    X.setflags(write=False)
    for seed in range(5):
        expected = KendallSelector(n_features_to_select=4, random_state=seed).fit(X, y)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*feature names.*")
            ours = KendallSelector(n_features_to_select=4, random_state=seed).fit(convert(X), y)
        assert np.array_equal(ours.support_, expected.support_)


def test_sparse_entries_that_repeat_are_added_and_stored_zeros_are_zeros():
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((40, 6)) < 0.5, 0.0, rng.integers(-3, 4, (40, 6))).astype(float)
    part = rng.integers(-9, 10, (40, 6)).astype(float)
    stored = sp.csr_matrix((dense.ravel(), np.tile(np.arange(6), 40), np.arange(0, 241, 6)), shape=(40, 6))
    repeated = sp.csr_matrix(
        (np.hstack((part, dense - part)).ravel(), np.tile(np.arange(6), 80), np.arange(0, 481, 12)), shape=(40, 6)
    )
    assert stored.nnz == 240
    assert not repeated.has_canonical_format
    y = dense[:, 1] + rng.standard_normal(40)
    for seed in range(10):
        selector = KendallSelector(n_features_to_select=3, random_state=seed)
        expected = chosen(clone(selector).fit(dense, y))
        assert chosen(clone(selector).fit(stored, y)) == expected
        assert chosen(clone(selector).fit(repeated.copy(), y)) == expected


def test_data_frames_in_and_out():
    X, y = data()
    names = [f"gene {j}" for j in range(X.shape[1])]
    X[:, 4] = 0.0
    frame = pd.DataFrame(X, columns=names)
    selector = KendallSelector(n_features_to_select=2, random_state=0).fit(frame, pd.Series(y))
    assert selector.feature_names_in_.tolist() == names
    assert selector.get_feature_names_out().tolist() == ["gene 2", "gene 6"]
    assert selector.set_output(transform="pandas").transform(frame).columns.tolist() == ["gene 2", "gene 6"]
    table = pl.DataFrame(X, schema=names)
    out = clone(selector).set_output(transform="polars").fit(table, pl.Series(y)).transform(table)
    assert out.columns == ["gene 2", "gene 6"]
    arrow = pa.table({name: X[:, j] for j, name in enumerate(names)})
    assert clone(selector).fit(arrow, y).support_.sum() == 2


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


def test_selector_methods_pipelines_and_pickles():
    X, y = data()
    X[:, 4] = 0.0
    selector = KendallSelector(n_features_to_select=2, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 6]
    assert np.array_equal(selector.transform(X), X[:, [2, 6]])
    assert sp.issparse(selector.transform(sp.csr_matrix(X)))
    again = pickle.loads(pickle.dumps(selector))
    assert again.certificate_ == selector.certificate_
    assert np.array_equal(again.support_, selector.support_)
    pipeline = make_pipeline(KendallSelector(random_state=0), LinearRegression())
    search = GridSearchCV(pipeline, {"kendallselector__n_features_to_select": [1, 2]}, cv=2).fit(np.arctan(X), y)
    assert search.best_params_ == {"kendallselector__n_features_to_select": 2}


def test_nothing_else_is_learned_from_data():
    X, y = data(n=30)
    selector = KendallSelector(n_features_to_select=3, random_state=0).fit(X, y)
    assert {name for name in vars(selector) if name.endswith("_")} == {"support_", "certificate_", "n_features_in_"}
    assert set(vars(selector)) == {"support_", "certificate_", "n_features_in_", *selector.get_params()}


def test_two_unseeded_fits_differ_and_two_seeded_agree():
    X, y = np.zeros((20, 200)), np.zeros(20)
    supports = {tuple(KendallSelector().fit(X, y).get_support(indices=True)) for _ in range(10)}
    assert len(supports) == 10
    fits = [KendallSelector(random_state=3).fit(X, y) for _ in range(2)]
    assert np.array_equal(fits[0].support_, fits[1].support_)
    assert not KendallSelector().fit(X, y).certificate_.seeded


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([[0.5, 1.0, 3.0]]), np.array([0.5])),
        (np.zeros((3, 50)), np.array([1.0, 0.0, -1.0])),
        (np.ones((5, 3)), np.zeros(5)),
        (sp.csr_matrix((4, 30)), np.ones(4)),
    ],
    ids=["one row", "d > n", "constant", "empty rows"],
)
def test_small_and_degenerate_tables(X, y, relation):
    selector = KendallSelector(n_features_to_select=2, relation=relation).fit(X, y)
    assert selector.support_.sum() == 2
    assert selector.certificate_.epsilon == 1.0


def test_a_table_of_null_records_is_selected_from_too():
    X, _ = data(n=10)
    selector = KendallSelector(classes=("a", "b"), n_features_to_select=2).fit(X, np.full(10, "c"))
    assert selector.support_.sum() == 2


def test_all_features_cost_nothing():
    X, y = data(n=30)
    certificate = KendallSelector(n_features_to_select=8).fit(X, y).certificate_
    assert (certificate.epsilon, certificate.delta, certificate.events) == (0.0, 0.0, ())
    with pytest.warns(UserWarning, match="n_features_to_select=50 is more than the 8 features"):
        assert KendallSelector(n_features_to_select=50).fit(X, y).support_.all()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epsilon", 0),
        ("epsilon", float("nan")),
        ("delta", 1.0),
        ("relation", "swap"),
        ("classes", ["only"]),
        ("classes", ["a", "b", "c"]),
        ("n_features_to_select", 0),
        ("n_features_to_select", 2.5),
        ("n_public", 0),
        ("random_state", -3),
    ],
)
def test_bad_parameters_are_refused_before_data_are_read(parameter, value):
    selector = KendallSelector(**{parameter: value})
    with pytest.raises(ParameterError) as caught:
        selector.fit("no table at all", None)
    message = str(caught.value)
    assert message.startswith(f"{parameter}=")
    assert "expected" in message
    assert message.count(". ") == 0
    assert not hasattr(selector, "certificate_")


def test_more_than_two_classes_have_no_order_but_numbers_do():
    X, _ = data()
    grades = np.digitize(X[:, 5], [-1.0, 0.0, 1.0])
    with pytest.raises(ParameterError, match="^classes=.*expected two labels, since more have no order"):
        KendallSelector(classes=(0, 1, 2, 3)).fit(X, grades)
    assert chosen(KendallSelector(n_features_to_select=1, random_state=0).fit(X, grades)) == [5]


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([["alice", "b"], ["c", "d"]], dtype=object), np.array([0.0, 1.0])),
        (np.zeros((2, 2)), np.array(["alice", "bob"])),
        (np.zeros((2, 2)), np.array(["alice", "bob"], dtype=object)),
        (np.array([[0.0, np.nan], [43210.5, 1.0]]), np.array([0.0, 1.0])),
        (np.array([[0.0, np.inf], [43210.5, 1.0]]), np.array([0.0, 1.0])),
        (np.zeros((2, 2)), np.array([np.nan, 43210.5])),
        (np.zeros((2, 2)), np.array([0.0, 1.0, 43210.5])),
    ],
    ids=["text", "labels without classes", "objects", "NaN", "infinity", "NaN target", "lengths"],
)
def test_bad_tables_are_refused_without_a_value_from_them(X, y):
    selector = KendallSelector(n_features_to_select=1)
    with pytest.raises((TaciturnError, TypeError)) as caught:
        selector.fit(X, y)
    assert "alice" not in str(caught.value)
    assert "43210" not in str(caught.value)
    assert caught.value.__context__ is None
    assert not hasattr(selector, "certificate_")


def test_labels_need_their_public_list():
    X, _ = data(n=30)
    with pytest.raises(DataError, match="pass the labels as classes"):
        KendallSelector(n_features_to_select=1).fit(X, np.where(X[:, 1] > 0, "p", "q"))
