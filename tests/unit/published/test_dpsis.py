"""DP-SIS does what its paper prints, and says what is wrong with it."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import r_regression

import taciturn
from taciturn import Certificate
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.published.dpsis import DPSIS, printed_top_k


def data(n=300, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X[:, 2] - 0.8 * X[:, 7], -1, 1)


def as_printed(scores, k, epsilon, gamma, stream, overlap=1):
    """Algorithm 2, line by line, with powers of uniforms and whole-number sizes; ``overlap=2`` corrects line 15."""
    d = len(scores)
    order = sorted(range(d), key=lambda j: -scores[j])
    x = [None] + [scores[j] for j in order]
    e1, e2 = (1 - gamma) * epsilon, gamma * epsilon
    first = stream.exponentials(1)[0]
    uniforms = {}
    for h in range(k - 1, -1, -1):
        for t, gumbel in zip(range(k + 1, d + 1), stream.gumbels(d - k), strict=True):
            uniforms[h, t] = math.exp(-math.exp(-gumbel))
    H, T, v = k - 1, k, (e2 - e1) / 2 * x[k] + first
    for t in range(k + 1, d + 1):
        h, m = k - 1, 1
        while h >= 0:
            if h < k - 1:
                m = m * (t - h - overlap) // (k - h - 1)
            if m > 0:
                value = e2 / 2 * x[t] - e1 / 2 * x[h + 1] - math.log(1 - uniforms[h, t] ** (1 / m))
                if value > v:
                    v, H, T = value, h, t
            h -= 1
    keys = stream.words(T - 1 - H)
    body = [order[H + int(i)] for i in np.argsort(keys)[: k - H - 1]]
    return sorted([*order[:H], *body, order[T - 1]])


@pytest.mark.parametrize(("k", "gamma"), [(1, 0.5), (3, 0.5), (4, 0.0), (6, 0.9)])
def test_selections_are_those_of_the_printed_algorithm(k, gamma):
    scores = np.random.default_rng(1).exponential(3.0, 8)
    corrected_agrees = []
    for seed in range(150):
        ours = sorted(printed_top_k(scores, k, 1.3, gamma, Stream.of(seed)).tolist())
        assert len(set(ours)) == k
        assert ours == as_printed(scores, k, 1.3, gamma, Stream.of(seed))
        corrected_agrees.append(ours == as_printed(scores, k, 1.3, gamma, Stream.of(seed), overlap=2))
    # For one feature the printed sizes are right.
    assert all(corrected_agrees) == (k == 1)


def test_fits_use_absolute_sums_and_their_own_noise():
    X, y = data(n=30)
    scores = np.abs(X.T @ y)
    for seed in range(20):
        selector = DPSIS(epsilon=2.0, n_features_to_select=3, random_state=seed).fit(X, y)
        expected = as_printed(scores.tolist(), 3, 2.0, 0.5, Stream.of(seed).spawn("top-k"))
        assert np.flatnonzero(selector.support_).tolist() == expected
        sparse = clone(selector).fit(sp.csc_array(X), y)
        assert np.array_equal(sparse.support_, selector.support_)


def test_sizes_beyond_doubles_stay_finite():
    # The largest class has more than 10**330 members.
    chosen = printed_top_k(np.zeros(100_000), 100, 1.0, 0.5, Stream.of(0))
    assert np.unique(chosen).size == 100
    # Without any signal it is a random subset: all of it in one half has probability 2**-100.
    assert chosen.min() < 50_000 < chosen.max()


def test_without_noise_it_is_sure_independence_screening():
    X, y = data()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    selector = DPSIS(epsilon=math.inf, n_features_to_select=5).fit(Z, y)
    assert set(np.flatnonzero(selector.support_)) == set(np.argsort(-np.abs(r_regression(Z, y)))[:5])
    certificate = selector.certificate_
    assert (certificate.status, certificate.epsilon, certificate.proved_epsilon) == ("not private", math.inf, None)
    assert isinstance(certificate.events[0].event, NotPrivateEvent)


@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_certificate_states_claim_proof_and_errata(k):
    X, y = data()
    certificate = DPSIS(epsilon=0.7, n_features_to_select=k, random_state=0).fit(X, y).certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("as published", 0.7, 0.0)
    assert certificate.proved_epsilon == pytest.approx(0.7 + math.log(k))
    (release,) = certificate.events
    assert release.event == PureEvent(0.7 + math.log(k))
    assert release.scale == pytest.approx(2 / 0.7)
    assert any("class sizes" in text for text in certificate.errata) == (k > 1)
    assert any("a replaced record counts twice" in text for text in certificate.errata)
    assert any("divide them by their largest values" in text for text in certificate.errata)
    assert certificate.assumptions[:2] == ("every feature value lies in [-1, 1]", "every target lies in [-1, 1]")
    assert certificate.public["gamma"] == 0.5
    assert certificate.seeded
    verdict = "so that the claim holds" if k == 1 else "which is more than the claim"
    assert verdict in str(certificate)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert json.loads(certificate.to_json())["status"] == "as published"


def test_the_side_claim_of_the_theorem_is_false():
    ratios = [math.comb(d, 5) * 5**5 / d**5 for d in (10, 100, 10**6)]
    assert ratios[0] > 5
    assert ratios[-1] == pytest.approx(26.04, abs=0.01)
    assert max(math.log(math.comb(d, k) * k**k / d**k) / k for d in (50, 500) for k in range(1, 50)) <= 1.0


def test_all_features_are_selected_at_no_cost():
    X, y = data()
    with pytest.warns(UserWarning, match="n_features_to_select=13 is more than the 12 features"):
        selector = DPSIS(n_features_to_select=13).fit(X, y)
    assert selector.support_.all()
    assert (selector.certificate_.events, selector.certificate_.proved_epsilon) == ((), 0.0)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("epsilon", 0.0), ("gamma", 1.0), ("n_features_to_select", 0), ("random_state", -1)],
)
def test_bad_parameters_are_refused(parameter, value):
    with pytest.raises(ParameterError, match=f"^{parameter}="):
        DPSIS(**{parameter: value}).fit(*data())


def test_labels_are_refused_without_quoting_them():
    X, _ = data(n=3)
    with pytest.raises(DataError, match="^y: expected numbers") as caught:
        DPSIS(n_features_to_select=1).fit(X, np.array(["alice", "bob", "carol"]))
    assert "alice" not in str(caught.value)


def test_it_is_not_in_the_main_namespace():
    assert "DPSIS" not in taciturn.__all__
