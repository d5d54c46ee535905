"""The two-stage selection as published, and the path that a block of the sound one follows."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, lars_path, lasso_path

from taciturn.core.errors import CertificateError, DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.methods.selection.run import first_features
from taciturn.privacy.certificate import Certificate
from taciturn.published.two_stage import TwoStageSelector, lasso_counts


def data(n=100, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(n)


def printed_counts(X, y, n_blocks, alpha):
    """Supports of the LASSO on equal slices, each centred by itself for the intercept."""
    counts = np.zeros(X.shape[1], dtype=int)
    for Xb, yb in zip(np.split(X, n_blocks), np.split(y, n_blocks), strict=True):
        _, coefs, _ = lasso_path(Xb - Xb.mean(axis=0), yb - yb.mean(), alphas=[alpha], tol=1e-9, max_iter=100_000)
        counts += np.abs(coefs[:, 0]) > 1e-9
    return counts


def on_lattice(values):
    return np.rint(np.asarray(values) * 2.0**16) / 2.0**16


def block(rng, n, d, *, logistic=False):
    """Correlated columns of different scales, and a target that a few of them explain."""
    X = rng.uniform(-1, 1, (n, d)) * rng.uniform(0.1, 0.5, d) + 0.4 * rng.uniform(-1, 1, (n, 1))
    margins = X[:, :3] @ [2.0, -1.6, 1.0][: min(d, 3)] + 0.2 * rng.standard_normal(n)
    return on_lattice(X), (margins > 0).astype(float) if logistic else on_lattice(np.clip(margins, -1, 1))


def voted(X, y, k, *, logistic=False):
    return first_features(X, 1.0, y[:, None], k, logistic=logistic).tolist()


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("alpha", [0.1, 0.02])
def test_selection_is_laplace_noise_on_the_printed_counts(alpha):
    X, y = data()
    counts = printed_counts(X, y, 10, alpha)
    assert 10 >= counts.max() > counts.min() >= 0
    picks = set()
    for seed in range(30):
        selector = TwoStageSelector(epsilon=3.0, alpha=alpha, n_features_to_select=3, random_state=seed).fit(X, y)
        noise = Stream.of(seed).spawn("top-k").laplaces(20)
        expected = np.argsort(-(counts + noise * 2 * 3 / 3.0))[:3]
        assert set(selector.get_support(indices=True)) == set(expected)
        picks.add(tuple(sorted(expected)))
    assert len(picks) > 5
    # Sparse tables and other numbers of blocks are cut and counted alike.
    sparse = TwoStageSelector(epsilon=math.inf, n_blocks=5, alpha=alpha, n_features_to_select=2, random_state=0)
    five = printed_counts(X, y, 5, alpha)
    chosen = sparse.fit(sp.csr_matrix(X), y).support_
    assert sorted(five[chosen]) == sorted(np.sort(five)[-2:])


def test_ties_are_settled_at_random_without_noise():
    X, y = np.zeros((100, 20)), np.ones(100)
    picks = [TwoStageSelector(epsilon=math.inf, n_features_to_select=2, random_state=s).fit(X, y) for s in range(60)]
    counts = np.sum([selector.support_ for selector in picks], axis=0)
    # Twenty equal columns: none is picked every time, as the first ones would be by their order.
    assert counts.max() <= 20
    assert np.count_nonzero(counts) >= 15
    strong = TwoStageSelector(epsilon=math.inf, n_features_to_select=2, random_state=0).fit(*data())
    assert strong.get_support(indices=True).tolist() == [1, 4]


def test_what_the_certificate_admits():
    selector = TwoStageSelector(n_features_to_select=3, random_state=0).fit(*data())
    certificate = selector.certificate_
    assert certificate.status == "as published"
    assert (certificate.epsilon, certificate.delta, certificate.proved_epsilon) == (1.0, 0.0, 1.0)
    assert certificate.relation == "zero-out"
    (release,) = certificate.events
    assert release.event == PureEvent(1.0)
    assert release.scale == pytest.approx(6.0)
    assert certificate.public == {"features": 20, "selected": 3, "records": 100, "blocks": 10, "alpha": 0.1}
    text = str(certificate)
    for words in (
        "NOT verified",
        "so that the claim holds",
        "slices of the list",
        "does not print",
        "sways every block",
    ):
        assert words in text
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert json.loads(certificate.to_json())["errata"] == list(certificate.errata)
    with pytest.raises(CertificateError, match="as published"):
        certificate.for_group(2)


def test_without_noise_nothing_is_claimed_and_all_features_cost_nothing():
    certificate = TwoStageSelector(epsilon=math.inf, n_features_to_select=2).fit(*data()).certificate_
    assert certificate.status == "not private"
    assert certificate.proved_epsilon is None
    assert certificate.events[0].event == NotPrivateEvent()
    everything = TwoStageSelector(n_features_to_select=20).fit(*data()).certificate_
    assert everything.events == ()
    assert everything.proved_epsilon == 0.0


def test_a_missing_record_moves_counts_further_than_one():
    """The first erratum: with slices of a list, a record less shifts every block; a blanked one does not."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (100, 6)), rng.standard_normal(100)
    worst = {"missing": 0, "blanked": 0}
    whole = lasso_counts(X, y, 10, 0.1)
    for i in range(0, 60, 6):
        missing = lasso_counts(np.delete(X, i, axis=0), np.delete(y, i), math.isqrt(99), 0.1)
        worst["missing"] = max(worst["missing"], int(np.abs(whole - missing).max()))
        slot = np.arange(10 * (i // 10), 10 * (i // 10) + 10)
        one, other = (lasso_counts(X[rows], y[rows], 1, 0.1) for rows in (slot, slot[slot != i]))
        worst["blanked"] = max(worst["blanked"], int(np.abs(one - other).max()))
    assert worst["blanked"] == 1
    assert worst["missing"] > 2


def test_a_common_scale_moves_counts_further_than_one():
    """The third erratum: columns divided by their largest values in the data, which one record can set."""
    X, y = data(n=100, d=6)
    spoiled = X.copy()
    spoiled[0, 1] = 50.0
    one, other = (lasso_counts(table / np.abs(table).max(axis=0), y, 10, 0.1) for table in (X, spoiled))
    assert np.abs(one - other).max() >= 8


def test_a_solver_that_does_not_converge_says_nothing():
    rng = np.random.default_rng(1)
    X = np.cumsum(rng.standard_normal((36, 300)), axis=1)
    y = rng.standard_normal(36)
    with pytest.warns(ConvergenceWarning):
        Lasso(alpha=0.01).fit(X[:6], y[:6])
    assert TwoStageSelector(alpha=0.01, n_features_to_select=3).fit(X, y).support_.sum() == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "^epsilon="),
        ({"alpha": 0.0}, "^alpha="),
        ({"n_blocks": 0}, "^n_blocks="),
        ({"n_blocks": 101}, "^n_blocks=101: expected at most 100"),
        ({"n_features_to_select": 0}, "^n_features_to_select="),
        ({"random_state": -1}, "^random_state="),
    ],
)
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(ParameterError, match=message):
        TwoStageSelector(**({"n_features_to_select": 2} | changes)).fit(*data())


def test_labels_are_refused():
    X, y = data()
    with pytest.raises(DataError, match="^y: expected numbers"):
        TwoStageSelector(n_features_to_select=2).fit(X, np.where(y > 0, "a", "b"))


# ---------------------------------------------------------------------- the path of a block


def test_a_vote_is_the_first_segment_of_the_lasso_path_with_k_active_features():
    rng = np.random.default_rng(0)
    differs_from_correlations = 0
    for _ in range(60):
        k = int(rng.integers(2, 8))
        X, y = block(rng, int(rng.integers(k + 3, 60)), int(rng.integers(k + 2, 80)))
        _, _, coefs = lars_path(standardised(X), y - y.mean(), method="lasso")
        inside = (coefs[:, 1:] + coefs[:, :-1]) / 2.0
        segment = np.argmax(np.count_nonzero(inside, axis=0) == k)
        assert voted(X, y, k) == np.flatnonzero(inside[:, segment]).tolist()
        marginal = np.abs(standardised(X).T @ (y - y.mean()))
        differs_from_correlations += voted(X, y, k) != np.sort(np.argsort(-marginal)[:k]).tolist()
    assert differs_from_correlations > 30


# The spelling of the penalty changed between the oldest and the newest scikit-learn.
@pytest.mark.filterwarnings("ignore:.*penalty")
def test_labels_follow_the_path_of_the_logistic_loss():
    rng = np.random.default_rng(1)
    exact = 0
    for _ in range(8):
        X, y = block(rng, 60, 12, logistic=True)
        Z = standardised(X)
        penalty = np.abs(Z.T @ (y - y.mean())).max()
        model = LogisticRegression(penalty="l1", solver="saga", tol=1e-5, max_iter=5000, warm_start=True)
        support = np.zeros(0)
        while support.size < 4:
            penalty *= 0.97
            support = np.flatnonzero(np.abs(model.set_params(C=1 / penalty).fit(Z, y).coef_[0]) > 1e-4)
        ours = voted(X, y, 4, logistic=True)
        # The reference walks on a grid, where a fourth and a fifth feature can come in one step.
        assert len(set(ours) - set(support.tolist())) <= 1
        exact += ours == support.tolist()
    assert exact >= 6


def test_more_classes_have_a_path_each_and_the_largest_penalties_count():
    rng = np.random.default_rng(2)
    X = on_lattice(rng.uniform(-1, 1, (200, 10)))
    codes = np.digitize(X[:, 4] + 0.1 * rng.standard_normal(200), [-0.3, 0.3])
    codes[X[:, 8] > 0.6] = 3
    targets = (codes[:, None] == np.arange(4)).astype(float)
    assert first_features(X, 1.0, targets, 2, logistic=True).tolist() == [4, 8]
    assert voted(X, targets[:, 3], 1, logistic=True) == [8]
    assert voted(X, targets[:, 0], 1, logistic=True) == [4]


@pytest.mark.parametrize("logistic", [False, True])
def test_a_vote_does_not_depend_on_layout_or_on_values_beyond_the_bound(logistic):
    rng = np.random.default_rng(3)
    for _ in range(10):
        X, y = block(rng, 40, 30, logistic=logistic)
        X[rng.random(X.shape) < 0.7] = 0.0
        X[:, 5] = 0.0
        expected = voted(X, y, 5, logistic=logistic)
        stored = sp.csr_matrix(X)
        stored.data[0] /= 2.0
        split = sp.csr_matrix(
            (
                np.concatenate((stored.data[:1], stored.data)),
                np.concatenate((stored.indices[:1], stored.indices)),
                stored.indptr + (np.arange(41) > np.flatnonzero(np.diff(stored.indptr))[0]),
            ),
            shape=X.shape,
        )
        for other in (np.asfortranarray(X), sp.csr_matrix(X), sp.csr_array(X), split):
            assert voted(other, y, 5, logistic=logistic) == expected
        order = rng.permutation(40)
        assert voted(X[order], y[order], 5, logistic=logistic) == expected
    wild = X.copy()
    wild[7, 3] = 1e9
    wild[8, 4] = -np.finfo(float).max
    assert voted(wild, y, 5, logistic=logistic) == voted(np.clip(wild, -1, 1), y, 5, logistic=logistic)


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("name", ["constant target", "constant columns", "copies", "separable", "two rows", "one row"])
def test_degenerate_blocks_vote_in_silence(name, logistic):
    rng = np.random.default_rng(4)
    X, y = block(rng, 12, 6, logistic=logistic)
    expected = None
    if name == "constant target":
        y[:], expected = 1.0, []
    elif name == "constant columns":
        X[:], expected = 0.5, []
    elif name == "copies":
        # Nothing tells columns 1 and 4 from column 0 and its negative; only the first of them can be active.
        X[:, 1], X[:, 4] = X[:, 0], -X[:, 0]
        assert not {1, 4} & set(voted(X, y, 6, logistic=logistic))
    elif name == "separable":
        X[:, 2] = np.where(y > np.median(y), 1.0, -1.0) if not logistic else 2.0 * y - 1.0
        assert 2 in voted(X, y, 3, logistic=logistic)
    else:
        n = 2 if name == "two rows" else 1
        X, y = X[:n], np.arange(n, dtype=float)
        expected = [int(np.argmax(np.ptp(X, axis=0) > 0))] if n == 2 else []
    chosen = voted(X, y, 6, logistic=logistic)
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= min(6, len(y) - 1)
    if expected is not None:
        assert chosen == expected
