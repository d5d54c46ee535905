"""Private LASSO, Sparsifier and the multinomial form do what their papers print, and say what is wrong with it."""

import dataclasses
import json
import math

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import taciturn
from taciturn import Certificate
from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnError
from taciturn.core.rng import Stream
from taciturn.datasets import make_sparsifier_logistic
from taciturn.events import LaplaceMaxEvent, NotPrivateEvent, PureEvent
from taciturn.losses import LogisticLoss, SquaredLoss
from taciturn.published import MultinomialPrivateLasso, PrivateLasso, Sparsifier, frank_wolfe

LOSSES = {"logistic": LogisticLoss(), "squared": SquaredLoss()}


def data(loss="logistic", n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = X @ np.resize([0.4, -0.3, 0.0], d)
    return X, (signal > 0).astype(int) if loss == "logistic" else np.clip(signal, -1, 1)


def objective(model, X, y):
    margins = X @ np.ravel(model.coef_)
    return LOSSES[model.loss].value(margins, y).mean()


def as_printed(X, y, loss, radius, n_loops, scale, laplaces, choose=min):
    """Algorithm 1, word for word: a list of vertices, an inner loop over it, noise in the order of the list."""
    n, d = X.shape
    vertices = [radius * e for e in np.eye(d)] + [-radius * e for e in np.eye(d)]
    w = np.zeros(d)
    for t in range(1, n_loops + 1):
        gradient = sum(LOSSES[loss].derivative(X[i] @ w, y[i]) * X[i] for i in range(n)) / n
        alpha = [s @ gradient + scale * z for s, z in zip(vertices, laplaces(2 * d), strict=True)]
        best = vertices[alpha.index(choose(alpha))]
        w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * best
    return w


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("literal", [False, True])
def test_private_lasso_is_the_printed_algorithm(loss, literal):
    X, y = data(loss, n=40, d=4)
    X *= 3.0  # nothing is clipped
    settings = {"epsilon": 2.0, "delta": 1e-3, "radius": 5.0, "n_steps": 12, "gradient_bound": 1.5}
    model = PrivateLasso(**settings, loss=loss, literal_appendix=literal, random_state=3).fit(X, y)
    scale = 5.0 * 1.5 * math.sqrt(8 * 12 * math.log(1e3)) / (40 * 2.0)
    noise = Stream.of(3).spawn("frank-wolfe").laplaces
    # T - 1 steps to the smallest score; T to the largest in the appendix.
    expected = as_printed(X, y, loss, 5.0, 12 if literal else 11, scale, noise, max if literal else min)
    assert np.allclose(np.ravel(model.coef_), expected, atol=1e-12)
    assert not np.any(model.intercept_)
    assert np.array_equal(model.support_, expected != 0)
    (release,) = model.certificate_.events
    assert release.count == model.n_iter_ == (12 if literal else 11)
    slope = 1.0 if loss == "logistic" else 6.0
    assert release.scale == pytest.approx(scale / (5.0 * slope / 40))
    assert isinstance(release.event, LaplaceMaxEvent)
    assert release.event.epsilon == pytest.approx(2 * (5.0 * slope / 40) / scale)


def test_one_step_fewer_than_the_noise_is_made_for():
    X, y = data()
    one = PrivateLasso(epsilon=math.inf, radius=3.0, n_steps=2).fit(X, y)
    assert np.abs(one.coef_).max() == pytest.approx(2.0)  # one step of 2 / 3
    assert one.n_iter_ == one.support_.sum() == 1
    none = PrivateLasso(n_steps=1).fit(X, y)
    assert not none.coef_.any()
    assert none.certificate_.events == ()
    assert none.certificate_.proved_epsilon == 0.0
    assert "epsilon = 0 can be proved" in str(none.certificate_)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_algorithm_descends_and_the_appendix_ascends(loss):
    X, y = data(loss)
    settings = {"epsilon": math.inf, "radius": 1.0, "loss": loss}
    at_zero = LOSSES[loss].value(np.zeros(len(X)), y).mean()
    printed = [objective(PrivateLasso(n_steps=t, **settings).fit(X, y), X, y) for t in (5, 50, 500)]
    assert at_zero > printed[0] > printed[1] > printed[2]
    literal = PrivateLasso(n_steps=500, literal_appendix=True, **settings).fit(X, y)
    assert objective(literal, X, y) > 1.2 * at_zero
    assert literal.score(X, y) < 0.3 < 0.7 < PrivateLasso(n_steps=500, **settings).fit(X, y).score(X, y)


@pytest.mark.parametrize("kind", [PrivateLasso, Sparsifier])
def test_the_loss_decides_what_the_model_is(kind):
    classifier, regressor = kind(), kind(loss="squared")
    assert [is_classifier(classifier), is_regressor(classifier)] == [True, False]
    assert [is_classifier(regressor), is_regressor(regressor)] == [False, True]
    assert hasattr(classifier, "predict_proba")
    assert not hasattr(regressor, "predict_proba")
    X, y = data()
    named = clone(classifier).set_params(n_steps=20, epsilon=50.0, random_state=0).fit(X, np.where(y, "yes", "no"))
    assert list(named.classes_) == ["no", "yes"]
    assert set(named.predict(X)) <= {"no", "yes"}
    assert named.coef_.shape == (1, 6)
    assert np.array_equal(named.predict(X) == "yes", named.predict_proba(X)[:, 1] > 0.5)
    with pytest.raises(DataError, match="Only binary classification is supported"):
        classifier.fit(X, np.arange(len(X)) % 3)


QUICK = {"n_steps": 20}


# ---------------------------------------------------------------------- Sparsifier


def settings_of_many_coefficients(**changes):
    # Noise so large that every coefficient moves: what is kept is then the count, and nothing else.
    split = {"epsilon_optimise": 1e-3, "epsilon_count": 0.05}
    return {**split, "n_steps": 400, "n_count_steps": 30, "random_state": 5} | changes


def kept(model):
    return int(np.count_nonzero(model.coef_))


@pytest.mark.parametrize("literal", [False, True])
def test_noise_moves_the_count_but_not_that_of_the_appendix(literal, monkeypatch):
    X, y = data(d=30)
    X[:, 12:] = 0.0
    settings = settings_of_many_coefficients(literal_appendix=literal, count_range=(4, 20))
    exact = kept(PrivateLasso(epsilon=math.inf, n_steps=31).fit(X, y))
    assert 4 < exact < 20
    counts = []
    for noise in (-1e6, 1e6):
        monkeypatch.setattr(frank_wolfe, "double_geometric", lambda rate, stream, noise=noise: noise)
        counts.append(kept(Sparsifier(**settings).fit(X, y)))
    assert counts == ([exact, exact] if literal else [4, 20])


def test_the_count_is_clipped_noised_scaled_and_clipped(monkeypatch):
    X, y = data(d=30)
    rates = []
    monkeypatch.setattr(frank_wolfe, "double_geometric", lambda rate, stream: rates.append(rate) or 3.0)
    settings = settings_of_many_coefficients(epsilon_count=0.5)
    # Twenty non-zeros in truth: clipped to the range before the noise and after it.
    assert Sparsifier(count_range=(2, 10), **settings).fit(X, y).count_ == 10
    assert Sparsifier(count_range=(25, 29), **settings).fit(X, y).count_ == 28
    assert Sparsifier(count_range=(25, 29), precision=0.4, **settings).fit(X, y).count_ == pytest.approx(11.2)
    assert kept(Sparsifier(count_range=(25, 29), precision=0.4, **settings).fit(X, y)) == 11
    assert Sparsifier(count_range=(25, 29), precision=1.4, **settings).fit(X, y).count_ == 30
    assert kept(Sparsifier(count_range=(25, 29), precision=0.01, **settings).fit(X, y)) == 0
    assert rates == [0.5 / 8] + [0.5 / 4] * 5


def test_the_largest_coefficients_of_private_lasso_are_kept():
    X, y = data(n=50, d=9)
    model = Sparsifier(epsilon_optimise=20.0, epsilon_count=0.05, n_steps=40, n_count_steps=30, random_state=5).fit(
        X, y
    )
    stream = Stream.of(5)
    stream.spawn("count")
    scale = 10.0 * math.sqrt(8 * 40 * math.log(1e6)) / (50 * 20.0)
    whole = as_printed(X, y, "logistic", 10.0, 39, scale, stream.spawn("frank-wolfe").laplaces)
    smallest_kept = np.sort(np.abs(whole))[-int(model.count_)]
    assert 3 <= model.count_ <= 6 < np.count_nonzero(whole)
    assert np.allclose(np.ravel(model.coef_), np.where(np.abs(whole) >= smallest_kept, whole, 0.0))


def test_the_printed_range_is_the_square_root_and_twice_that():
    X, y = data(d=30)
    facts = Sparsifier(n_steps=5, n_count_steps=5).fit(X, y).certificate_.public
    assert facts["count_range"] == pytest.approx([math.sqrt(30), 2 * math.sqrt(30)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count_range": (5, 5)}, "count_range="),
        ({"count_range": (-1, 5)}, "count_range="),
        ({"count_range": 5}, "count_range="),
        ({"n_count_steps": 50_001}, "n_count_steps="),
        ({"precision": 0.0}, "precision="),
        ({"count_share": 0.0}, "count_share="),
        ({"count_share": 1.0}, "count_share="),
        ({"epsilon_optimise": 1.0, "epsilon_count": 0.0}, "epsilon_count="),
        ({"epsilon_count": 0.1}, "epsilon_optimise=None"),
        ({"epsilon_optimise": 0.1}, "epsilon_count=None"),
        ({"delta": 0.0}, "delta="),
        ({"loss": "huber"}, "loss="),
        ({"gradient_bound": -1.0}, "gradient_bound="),
        ({"n_steps": 0}, "n_steps="),
    ],
)
def test_bad_parameters_are_named(changes, message):
    with pytest.raises(ParameterError, match=message):
        Sparsifier(**changes).fit(*data())


# ---------------------------------------------------------------------- multinomial


def test_the_multinomial_form_is_the_printed_algorithm():
    X, _ = data(n=60, d=5)
    y = np.arange(60) % 3
    model = MultinomialPrivateLasso(epsilon=3.0, delta=1e-3, radius=2.0, n_steps=9, random_state=4).fit(X, y)
    scale = 2.0 * 2.0 * math.sqrt(8 * 9 * math.log(3 / 1e-3)) / (60 * 3.0 / 3)
    stream = Stream.of(4).spawn("frank-wolfe")
    vertices = [2.0 * e for e in np.eye(3)] + [-2.0 * e for e in np.eye(3)]
    W = np.zeros((3, 5))
    for t in range(1, 9):
        odds = np.exp(X @ W.T)
        G = (odds / odds.sum(axis=1, keepdims=True) - np.eye(3)[y]).T @ X / 60
        noise = stream.laplaces(6 * 5).reshape(6, 5)
        steps = np.zeros((3, 5))
        for i in range(5):
            alpha = [s @ G[:, i] + scale * noise[number, i] for number, s in enumerate(vertices)]
            steps[:, i] = vertices[int(np.argmin(alpha))]
        W = (1 - 2 / (t + 2)) * W + 2 / (t + 2) * steps
    assert np.allclose(model.coef_, W, atol=1e-12)
    (release,) = model.certificate_.events
    assert release.count == 5 * 8
    assert release.scale == pytest.approx(scale * 60 / 2.0)


def test_the_multinomial_form_leaves_its_ball():
    X, _ = data(n=300, d=40)
    model = MultinomialPrivateLasso(radius=1.0, n_steps=30, random_state=0).fit(X, np.arange(300) % 4)
    assert np.abs(model.coef_).sum() > 10.0
    assert np.abs(model.coef_).sum(axis=0).max() <= 1.0 + 1e-12
    sound = taciturn.FrankWolfeClassifier(radius=1.0, n_steps=30, fit_intercept=False, random_state=0)
    assert np.abs(sound.fit(X, np.arange(300) % 4).coef_).sum() <= 1.0 + 1e-12


def test_two_classes_have_a_row_each_and_one_margin():
    X, y = data()
    model = MultinomialPrivateLasso(epsilon=math.inf, radius=1.0, n_steps=100).fit(X, y)
    assert model.coef_.shape == (2, 6)
    odds = np.exp(X @ model.coef_.T)
    assert np.allclose(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))
    assert model.decision_function(X).shape == (200,)
    assert model.score(X, y) > 0.8


# ---------------------------------------------------------------------- certificates


def certificates():
    X, y = data(d=7)
    quick = {"n_steps": 10, "random_state": 0}
    return {
        "lasso": PrivateLasso(delta=1e-5, **quick).fit(X, y).certificate_,
        "squared": PrivateLasso(loss="squared", **quick).fit(*data("squared")).certificate_,
        "integers": Sparsifier(count_range=(2, 5), n_count_steps=5, **quick).fit(X, y).certificate_,
        "fractions": Sparsifier(n_count_steps=5, **quick).fit(X, y).certificate_,
        "literal": Sparsifier(count_range=(2, 5), literal_appendix=True, **quick).fit(X, y).certificate_,
        "multinomial": MultinomialPrivateLasso(**quick).fit(X, np.arange(200) % 3).certificate_,
        "noiseless": Sparsifier(epsilon=math.inf, n_count_steps=5, **quick).fit(X, y).certificate_,
    }


CERTIFICATES = certificates()


@pytest.mark.parametrize("name", CERTIFICATES)
def test_claims_survive_json(name):
    certificate = CERTIFICATES[name]
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    content = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert content["schema"] == 1
    assert content["errata"] == list(certificate.errata)
    for field in ("proved_epsilon", "errata"):
        damaged = {key: value for key, value in content.items() if key != field}
        with pytest.raises(CertificateError, match=f"problem with '{field}'"):
            Certificate.from_json(json.dumps(damaged))
    for change in ({"proved_epsilon": -1}, {"proved_epsilon": "x"}, {"errata": "x"}, {"errata": [1]}, {"errata": 1}):
        with pytest.raises(TaciturnError):
            Certificate.from_json(json.dumps(content | change))


@pytest.mark.parametrize("name", [name for name in CERTIFICATES if name != "noiseless"])
def test_claims_say_what_is_claimed_what_is_proved_and_what_is_wrong(name):
    certificate = CERTIFICATES[name]
    assert certificate.status == "as published"
    assert certificate.relation == "zero-out"
    assert certificate.epsilon == 1.0
    text = str(certificate)
    assert f"As published, NOT verified (epsilon = 1, delta = {certificate.delta:.6g})" in text
    assert "every feature value lies in [-1, 1]" in text
    assert certificate.errata
    for erratum in certificate.errata:
        assert erratum in text
    with pytest.raises(CertificateError, match="as published"):
        certificate.for_group(2)


def test_what_is_proved_of_each():
    proved = {name: certificate.proved_epsilon for name, certificate in CERTIFICATES.items()}
    assert 0.5 < proved["lasso"] < 1.0
    assert "can be proved at the same delta, so that the claim holds" in str(CERTIFICATES["lasso"])
    # A ball of radius 10 and targets up to 1 make for eleven times the gradient that L = 1 allows.
    assert proved["squared"] > 5.0
    assert "which is more than the claim" in str(CERTIFICATES["squared"])
    assert "move the gradient by 11 and not only by gradient_bound = 1" in str(CERTIFICATES["squared"])
    assert 0.0 < proved["integers"] < 1.0
    assert CERTIFICATES["integers"].events[0].event == PureEvent(0.05)
    for name, words in (("fractions", "fractional part of the count shows"), ("literal", "releases it without noise")):
        assert math.isinf(proved[name])
        assert words in str(CERTIFICATES[name])
        assert "nothing can be proved" in str(CERTIFICATES[name])
        assert any(release.event == NotPrivateEvent() for release in CERTIFICATES[name].events)
    assert "climbs" in str(CERTIFICATES["literal"])
    assert "each of the 7 features" in str(CERTIFICATES["multinomial"])
    assert "has not been computed" in str(dataclasses.replace(CERTIFICATES["lasso"], proved_epsilon=None))


def test_epsilon_is_the_total_of_steps_and_count():
    X, y = data(d=7)
    quick = {"n_steps": 10, "n_count_steps": 5, "count_range": (2, 5), "random_state": 0}
    for epsilon in (0.5, 5.0):
        certificate = Sparsifier(epsilon=epsilon, **quick).fit(X, y).certificate_
        assert certificate.epsilon == epsilon
        assert certificate.events[0].event == PureEvent(0.05 * epsilon)
    printed = Sparsifier(epsilon_optimise=0.95, epsilon_count=0.05, **quick).fit(X, y)
    assert printed.certificate_.events == Sparsifier(**quick).fit(X, y).certificate_.events
    dear = Sparsifier(epsilon_optimise=0.95, epsilon_count=2.0, **quick).fit(X, y).certificate_
    assert (dear.epsilon, dear.events[0].event) == (2.95, PureEvent(2.0))
    assert Sparsifier(count_share=0.5, **quick).fit(X, y).certificate_.events[0].event == PureEvent(0.5)


def test_without_noise_nothing_is_claimed():
    certificate = CERTIFICATES["noiseless"]
    assert certificate.status == "not private"
    assert math.isinf(certificate.epsilon)
    assert certificate.proved_epsilon is None


def test_the_true_bound_mends_the_squared_loss():
    X, y = data("squared")
    mended = PrivateLasso(loss="squared", gradient_bound=11.0, n_steps=10).fit(X, y).certificate_
    assert mended.proved_epsilon < 1.0
    assert not any("too small" in erratum for erratum in mended.errata)


# ---------------------------------------------------------------------- the paper's numbers


@pytest.mark.slow
def test_non_zeros_of_the_papers_synthetic_set():
    """Table 1, row SYNTHETIC: 7 without privacy, 100 for Private LASSO, 15.08 for Sparsifier."""
    X, y, _ = make_sparsifier_logistic(random_state=0)
    assert kept(PrivateLasso(epsilon=math.inf, n_steps=500).fit(X, y)) == 7
    assert kept(PrivateLasso(delta=1e-4, random_state=0).fit(X, y)) >= 99
    runs = [Sparsifier(delta=1e-4, n_count_steps=100, random_state=seed).fit(X, y) for seed in (0, 4)]
    assert [kept(model) for model in runs] == [10, 20]
    assert min(model.score(X, y) for model in runs) > 0.85
