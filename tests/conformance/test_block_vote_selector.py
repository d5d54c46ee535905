"""What block votes promise beyond the contract of every class: blocks, keys, workers."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config

from taciturn.core.errors import DataError, ParameterError
from taciturn.methods.selection import run as selection_run
from taciturn.methods.selection.estimator import BlockVoteSelector


def data(n=3000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X[:, 2] - 0.8 * X[:, 7], -1, 1)


def selected(selector, *table, **extra):
    return selector.fit(*table, **extra).get_support(indices=True).tolist()


@pytest.mark.parametrize("mechanism", ["auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"])
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_strong_features_are_found(mechanism, relation):
    selector = BlockVoteSelector(
        epsilon=2.0, n_features_to_select=2, mechanism=mechanism, relation=relation, n_public=2500, random_state=1
    )
    assert selected(selector, *data()) == [2, 7]
    certificate = selector.certificate_
    assert certificate.epsilon <= 2.0
    assert certificate.delta == (1e-6 if certificate.public["method"] == "gumbel" else 0.0)
    assert certificate.relation == relation
    assert certificate.status == "proved"
    assert certificate.arithmetic == "exact"
    assert certificate.seeded
    # The root of 3000, or of the number that was made public.
    assert certificate.public["blocks"] == (50 if relation == "add-remove" else 54)
    assert certificate.public["records"] == (2500 if relation == "add-remove" else 3000)


def test_weak_features_beside_strong_ones_are_found_by_paths_and_not_by_correlations():
    rng = np.random.default_rng(5)
    common = rng.uniform(-0.5, 0.5, 8000)
    X = 0.5 * rng.uniform(-1, 1, (8000, 20)) + common[:, None]
    X[:, 9] = 0.5 * rng.uniform(-1, 1, 8000)
    # Every column but the ninth goes with the first; the ninth alone adds something.
    y = np.clip(0.8 * X[:, 0] + 0.35 * X[:, 9], -1, 1)
    assert np.argsort(-np.abs(np.corrcoef(X.T, y)[-1, :-1])).tolist().index(9) == 19
    assert selected(BlockVoteSelector(n_features_to_select=2, random_state=0), X, y) == [0, 9]


def test_all_relations_need_the_same_noise():
    X, y = data(n=200)
    scales = {
        BlockVoteSelector(relation=relation, n_public=200, n_features_to_select=2, mechanism="laplace")
        .fit(X, y)
        .certificate_.events[0]
        .scale
        for relation in ("zero-out", "add-remove", "replace-one")
    }
    # Two winners, each against votes that move by one in either direction.
    assert list(scales) == pytest.approx([4.0])


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), ("a", "b", "c")])
def test_labels_of_any_type(labels):
    X, _ = data()
    codes = np.digitize(X[:, 5], np.linspace(-1, 1, len(labels) + 1)[1:-1])
    selector = BlockVoteSelector(classes=labels, n_features_to_select=1, random_state=0)
    assert selected(selector, X, np.array(labels)[codes]) == [5]
    assert selector.certificate_.public["classes"] == list(labels)
    if labels == (0, 1):
        truth = BlockVoteSelector(n_features_to_select=1, random_state=0)
        assert selected(truth, X, codes == 1) == [5]
        assert truth.certificate_.public["classes"] == [False, True]


def recorded_blocks(monkeypatch, selector, *table, **extra):
    """The rows of each block of a fit."""
    seen = []

    def record(X, x_bound, targets, blocks, k, **_):
        seen.append([rows.tolist() for rows in blocks])
        return np.zeros(X.shape[1], dtype=np.int64)

    monkeypatch.setattr(selection_run, "count_votes", record)
    selector.fit(*table, **extra)
    return seen[0]


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_null_records_keep_their_slots_and_do_not_vote(relation, monkeypatch):
    X, _ = data(n=25)
    y = np.where(X[:, 3] > 0, "a", "b").astype(object)
    y[[0, 7, 8]] = "unknown"
    selector = BlockVoteSelector(classes=("a", "b"), relation=relation, n_features_to_select=3)
    blocks = recorded_blocks(monkeypatch, selector, X, y)
    # Blocks count the records that are not null, each of which is where its slot in the table puts it.
    slots = np.delete(np.arange(25), [0, 7, 8])
    assert [slots[rows].tolist() for rows in blocks] == [
        [row for row in range(5 * b, 5 * b + 5) if row not in (0, 7, 8)] for b in range(5)
    ]


def test_records_with_another_label_might_as_well_be_anything():
    X, _ = data(n=400)
    y = np.where(X[:, 3] > 0, "a", "b").astype(object)
    y[::9] = "unknown"
    other = X.copy()
    other[::9] = 1.0
    selector = BlockVoteSelector(classes=("a", "b"), epsilon=math.inf, n_features_to_select=4)
    assert selected(selector, X, y) == selected(selector, other, y)
    # As records they would have mattered.
    y[::9] = "a"
    assert selected(selector, X, y) != selected(selector, other, y)


def test_under_add_remove_records_are_assigned_one_by_one(monkeypatch):
    X, y = data(n=40)
    selector = BlockVoteSelector(relation="add-remove", n_blocks=4, n_features_to_select=2, random_state=3)
    random = recorded_blocks(monkeypatch, selector, X, y)
    assert sorted(row for rows in random for row in rows) == list(range(40))
    assert random != [list(range(10 * b, 10 * b + 10)) for b in range(4)]
    keys = [f"person {i % 13}" for i in range(40)]
    by_key = recorded_blocks(monkeypatch, selector, X, y, keys=pd.Series(keys))
    assert by_key == recorded_blocks(monkeypatch, selector, X, y, keys=np.array(keys))
    for person in set(keys):
        assert sum(any(keys[row] == person for row in rows) for rows in by_key) == 1
    # The same seed, one record less: the others stay where they are.
    fewer = recorded_blocks(monkeypatch, selector, X[1:], y[1:], keys=keys[1:])
    assert [[row - 1 for row in rows if row] for rows in by_key] == fewer


def test_keys_serve_to_find_the_same_features():
    X, y = data()
    selector = BlockVoteSelector(
        relation="add-remove", n_public=3000, n_features_to_select=2, epsilon=2.0, random_state=0
    )
    assert selected(selector, X, y, keys=np.arange(3000) // 2) == [2, 7]


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_keys_are_refused_where_records_have_slots(relation):
    X, y = data(n=30)
    with pytest.raises(ParameterError, match="^relation=.*'add-remove' where keys are given"):
        BlockVoteSelector(relation=relation, n_features_to_select=2).fit(X, y, keys=np.arange(30))


@pytest.mark.parametrize(
    "keys", [np.arange(29), np.zeros((30, 1)), ["alice"], [None] * 30, [np.nan] * 30, [{"alice": 1}] * 30]
)
def test_bad_keys_are_described_not_quoted(keys):
    X, y = data(n=30)
    selector = BlockVoteSelector(relation="add-remove", n_blocks=3, n_features_to_select=2)
    with pytest.raises(DataError, match="^keys: expected .*; .*\\.$") as caught:
        selector.fit(X, y, keys=keys)
    assert "alice" not in str(caught.value)
    assert not hasattr(selector, "certificate_")


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_any_number_of_workers_gives_the_same_votes(backend):
    X, y = data(n=600, d=40)
    cut = selection_run.blocks_by_slot(600, 37)
    targets = (np.digitize(y, [-0.4, 0.4])[:, None] == np.arange(3)).astype(float)
    one, two = (BlockVoteSelector(n_features_to_select=3, n_jobs=n_jobs, random_state=5) for n_jobs in (1, 2))
    with parallel_config(backend=backend):
        for table in (X, sp.csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X))):
            alone, shared = (
                selection_run.count_votes(table, 1.0, targets, cut, 4, logistic=True, n_jobs=n_jobs)
                for n_jobs in (1, 2)
            )
            assert np.array_equal(alone, shared)
            assert alone.sum() == 37 * 4
        assert selected(one, X, y) == selected(two, X, y)


def test_wide_sparse_tables_stay_sparse():
    rng = np.random.default_rng(6)
    n, d = 900, 400_000
    filler = sp.csr_matrix((np.ones(20 * n), rng.integers(0, d, 20 * n), np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    strong = rng.random((n, 2)) < 0.5
    rows, columns = np.nonzero(strong)
    X = (filler + sp.csr_matrix((np.ones(rows.size), (rows, np.array([17, d - 1])[columns])), shape=(n, d))).tocsr()
    # Thirty dense rows of this width would take a hundred megabytes.
    selector = BlockVoteSelector(n_features_to_select=2, epsilon=8.0, random_state=0)
    assert selected(selector, X, strong @ [0.6, -0.6]) == [17, d - 1]


def test_what_is_public_is_stated_and_nothing_else():
    public = BlockVoteSelector(random_state=0).fit(*data(n=100)).certificate_.public
    assert set(public) == {*("features", "selected", "records", "invalid", "method", "blocks", "x_bound", "y_bounds")}


@pytest.mark.parametrize(
    ("X", "y", "extra"),
    [
        (np.ones((5, 4)), np.zeros(5), {"n_blocks": 5}),
        (np.eye(4), np.array(list("abcd")), {"classes": tuple("abcdefgh")}),
        (np.eye(4), np.array(list("aaaa")), {"classes": ("a", "b"), "n_blocks": 1}),
    ],
    ids=["blocks of one row", "more classes than rows", "one class in one block"],
)
def test_small_blocks(X, y, extra):
    assert len(selected(BlockVoteSelector(n_features_to_select=2, **extra), X, y)) == 2


def test_infinite_epsilon_takes_the_most_voted():
    X, y = data(n=120)
    votes = selection_run.count_votes(X, 1.0, y[:, None], selection_run.blocks_by_slot(120, 10), 4, logistic=False)
    selector = BlockVoteSelector(epsilon=math.inf, n_features_to_select=4)
    assert selected(selector, X, y) == sorted(np.argsort(-votes, kind="stable")[:4].tolist())
    assert selector.certificate_.status == "not private"


def test_nothing_is_fitted_where_all_features_are_selected(monkeypatch):
    monkeypatch.setattr(selection_run, "count_votes", lambda *_, **__: pytest.fail("votes were counted"))
    assert BlockVoteSelector(n_features_to_select=12).fit(*data(n=50)).support_.all()


def test_more_blocks_than_records_are_refused():
    selector = BlockVoteSelector(n_blocks=51, n_features_to_select=2)
    with pytest.raises(ParameterError, match="^n_blocks=51: expected "):
        selector.fit(*data(n=50))
    assert not hasattr(selector, "certificate_")


def test_a_private_number_of_records_cannot_set_the_number_of_blocks():
    X, y = data(n=50)
    with pytest.raises(ParameterError, match="^n_public=None: expected a public number of records, .*n_blocks"):
        BlockVoteSelector(relation="add-remove", n_features_to_select=2).fit(X, y)
    # More blocks than there are records is no error then: it would tell how many there are.
    crowded = BlockVoteSelector(relation="add-remove", n_blocks=80, n_features_to_select=2).fit(X, y)
    assert crowded.certificate_.public["blocks"] == 80
