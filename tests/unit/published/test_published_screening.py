"""ADP-Screen and RNM-Screen do what their papers print, and say what is wrong with it."""

import json
import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest
from sklearn.base import clone, is_classifier, is_regressor

from taciturn import Certificate
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import GaussianEvent, LaplaceMaxEvent, NotPrivateEvent, PureEvent
from taciturn.losses import LogisticLoss, SquaredLoss
from taciturn.published.screening import ADPScreen, ByGram, ByMargins, RNMScreen, ScreeningRule, mean_loss, random_start

INFINITY = float("inf")
LOSSES = {"squared": SquaredLoss(), "logistic": LogisticLoss()}


def data(loss="squared", n=60, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[np.abs(X) < 0.3] = 0.0
    signal = X @ np.resize([0.9, -0.7, 0.0, 0.0], d)
    return X, (signal > 0).astype(int) if loss == "logistic" else signal


# ---------------------------------------------------------------------- the algorithms, word for word


def equation_1(X, y, w, radius, loss):
    """Term by term as printed, the gap as a maximum over the vertices."""
    n, d = X.shape
    u = X @ w
    if loss == "squared":
        gradient, L, mu = (u - y) / n, 1 / n, 1 / n
    else:
        s = 1 / (1 + math.exp(-radius))
        gradient, L, mu = -(y - 1 / (1 + np.exp(-u))) / n, 1 / (4 * n), s * (1 - s) / n
    vertices = [sign * radius * e for e in np.eye(d) for sign in (1, -1)]
    gap = max((u - X @ z) @ gradient for z in vertices)
    return np.array(
        [
            abs(X[:, i] @ gradient)
            + u @ gradient
            + L * (np.linalg.norm(X[:, i]) + np.linalg.norm(u)) * math.sqrt(gap / mu)
            for i in range(d)
        ]
    )


def as_printed(X, y, model, screen_at, zero_out, screening_noise, gradient):
    """Both algorithms: they differ in the noise of the scores and in what is set to zero."""
    (n, d), radius, T = X.shape, model.radius, model.n_steps
    stream = Stream.of(model.random_state)
    w = random_start(radius, d, stream.spawn("start"))
    steps, screenings = stream.spawn("frank-wolfe"), stream.spawn("screening")
    vertices = [radius * e for e in np.eye(d)] + [-radius * e for e in np.eye(d)]
    root = math.sqrt(8 * T * math.log(1 / model.delta_optimise))
    step_scale = radius * model.gradient_bound * root / (n * model.epsilon_optimise)
    screened = 0
    for t in range(1, T + 1):
        g = gradient(X, y, w)
        noise = steps.laplaces(2 * d) if step_scale else np.zeros(2 * d)
        alpha = [v @ g + step_scale * z for v, z in zip(vertices, noise, strict=True)]
        w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * vertices[int(np.argmin(alpha))]
        if t in screen_at:
            s = equation_1(X, y, w, radius, model.loss) + screening_noise(screenings, d)
            gone = [j for j in zero_out(s) if w[j] != 0]
            screened += len(gone)
            w[gone] = 0.0
    return w, screened


def mean_gradient(loss):
    if loss == "squared":
        return lambda X, y, w: X.T @ (X @ w - y) / len(y)
    return lambda X, y, w: X.T @ (1 / (1 + np.exp(-X @ w)) - y) / len(y)


@pytest.mark.parametrize("epsilons", [(300.0, 60.0), (INFINITY, 60.0), (300.0, INFINITY), (INFINITY, INFINITY)])
@pytest.mark.parametrize(
    ("screen_at", "steps"), [("every", range(1, 13)), ("last", [12]), (5, [5, 10]), (12, [12])], ids=str
)
@pytest.mark.parametrize(("loss", "n"), [("squared", 60), ("squared", 6), ("logistic", 60)])
def test_adp_screen_is_the_printed_algorithm(loss, n, screen_at, steps, epsilons):
    X, y = data(loss, n=n)
    settings = {"epsilon_optimise": epsilons[0], "delta_optimise": 1e-3}
    settings |= {"epsilon_screen": epsilons[1], "delta_screen": 1e-2}
    model = ADPScreen(
        **settings, radius=3.0, n_steps=12, screen_at=screen_at, loss=loss, gradient_bound=2.0, random_state=4
    )
    model.fit(X, y)
    l = len(steps)  # noqa: E741
    d, delta_iter = 8, 1e-2 / (l + 1)
    s = 1 / (1 + math.exp(-3.0))
    if loss == "squared":
        delta_2 = math.sqrt(d) * 4 * 3.0 * 4.0 / n
    else:
        delta_2 = math.sqrt(d) * (2 * s * 4.0 / n + 4.0 / (4 * n) * math.sqrt(4 * 3.0 / (1 - s)))
    epsilon_iter = epsilons[1] / (2 * math.sqrt(2 * l * math.log(1 / delta_iter)))
    sigma = math.sqrt(2 * delta_2**2 * math.log(1.25 / delta_iter)) / epsilon_iter
    expected, screened = as_printed(
        X,
        y,
        model,
        steps,
        lambda s: np.flatnonzero(s < 0),
        lambda stream, d: sigma * stream.normals(d) if sigma else 0.0,
        mean_gradient(loss),
    )
    assert np.allclose(np.ravel(model.coef_), expected, atol=1e-12)
    assert screened > 0 or math.isinf(epsilons[1])
    assert np.array_equal(model.support_, expected != 0)
    assert model.n_iter_ == 12
    steps_made, screenings = model.certificate_.events
    assert (steps_made.count, screenings.count) == (12, l)
    # What one record can do: to a residual, and to a score.
    residual = 6.0 if loss == "squared" else s
    true = 4.0 * residual / n + (4.0 * 6.0 / math.sqrt(n) if loss == "squared" else math.sqrt(6.0 / (n * (1 - s))))
    if math.isinf(epsilons[0]):
        assert steps_made.event == NotPrivateEvent()
    else:
        assert isinstance(steps_made.event, LaplaceMaxEvent)
        printed = 3.0 * 2.0 * math.sqrt(8 * 12 * math.log(1e3)) / (n * epsilons[0])
        assert steps_made.event.epsilon == pytest.approx(2 * 3.0 * residual / (n * printed))
    if math.isinf(epsilons[1]):
        assert screenings.event == NotPrivateEvent()
    else:
        assert isinstance(screenings.event, GaussianEvent)
        assert screenings.event.noise_multiplier == pytest.approx(sigma / (math.sqrt(d) * true))
    sparse = clone(model).fit(sp.csr_array(X), y)
    assert np.allclose(sparse.coef_, model.coef_, atol=1e-12)


@pytest.mark.parametrize("epsilons", [(400.0, 20.0), (INFINITY, 20.0), (400.0, INFINITY), (INFINITY, INFINITY)])
@pytest.mark.parametrize("n", [60, 6])
def test_rnm_screen_is_the_printed_algorithm(n, epsilons):
    X, y = data(n=n)
    settings = {"epsilon_optimise": epsilons[0], "delta_optimise": 1e-3}
    settings |= {"epsilon_screen": epsilons[1], "delta_screen": 1e-2}
    model = RNMScreen(**settings, radius=3.0, n_steps=15, gradient_bound=2.0, random_state=4).fit(X, y)
    epsilon_iter = epsilons[1] / math.sqrt(8 * 15 * math.log(1e2))
    scale = (2 * 3.0 / n + 2 * 9.0 / n + 2 * 3.0 * 4.0 / n) / epsilon_iter

    def zero_out(s):
        j = int(np.argmin(s))
        return [j] if s[j] < 0 else []

    expected, screened = as_printed(
        X,
        y,
        model,
        range(1, 16),
        zero_out,
        lambda stream, d: scale * stream.laplaces(d) if scale else 0.0,
        mean_gradient("squared"),
    )
    assert np.allclose(model.coef_, expected, atol=1e-12)
    assert 0 < screened < 15 or math.isinf(epsilons[1])
    steps, scores = model.certificate_.events
    if math.isinf(epsilons[1]):
        assert (scores.event, scores.count) == (NotPrivateEvent(), 15)
    else:
        assert (type(scores.event), scores.count) == (PureEvent, 15 * 8)
    assert (type(steps.event), steps.count) == (NotPrivateEvent if math.isinf(epsilons[0]) else LaplaceMaxEvent, 15)
    assert np.allclose(clone(model).fit(sp.csc_matrix(X), y).coef_, expected, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_are_those_of_equation_1(loss):
    X, y = data(loss)
    rule, objective = ScreeningRule.for_loss(loss, 3.0, 60), mean_loss(X, y, LOSSES[loss])
    for seed in range(20):
        w = random_start(3.0, 8, Stream.of(seed))
        image = objective.matrix @ w
        norms = objective.column_norms, objective.prediction_norm(w, image)
        scores = rule.scores(w, objective.gradient(image), *norms)
        assert np.allclose(scores, equation_1(X, y, w, 3.0, loss), rtol=1e-12, atol=1e-12)


def test_columns_beyond_the_number_of_records_are_screened_too():
    # As line 7 of Algorithm 2 is printed, only the first five would have a score.
    X, y = data(n=5, d=30)
    supports = [RNMScreen(n_steps=60, random_state=seed).fit(X, y).support_ for seed in range(3)]
    assert all((~support[5:]).sum() > 5 for support in supports)


def test_the_two_forms_of_the_objective_agree():
    X, y = data(n=40, d=5)
    gram, margins = mean_loss(X, y, SquaredLoss()), mean_loss(sp.csc_array(X), y, SquaredLoss())
    assert (type(gram), type(margins)) == (ByGram, ByMargins)
    assert type(mean_loss(X.T, y[:5], SquaredLoss())) is type(mean_loss(X, y, LogisticLoss())) is ByMargins
    w = np.array([1.0, -2.0, 0.0, 0.5, 0.1])
    for form in (gram, margins):
        image = form.matrix @ w
        assert np.allclose(form.gradient(image), X.T @ (X @ w - y) / 40)
        assert form.prediction_norm(w, image) == pytest.approx(np.linalg.norm(X @ w))
        assert np.allclose(form.column_norms, np.linalg.norm(X, axis=0))


def test_the_start_is_uniform_in_the_ball():
    radius, d, stream = 3.0, 4, Stream.of(7)
    starts = np.array([random_start(radius, d, stream) for _ in range(4000)])
    sizes = np.abs(starts).sum(axis=1)
    # A ball of share r of the radius has the share r**d of the volume; the sphere alone has none of it.
    assert kstest((sizes / radius) ** d, "uniform").pvalue > 1e-4
    assert kstest((sizes / radius) ** (d + 1), "uniform").pvalue < 1e-6
    for j in range(d):
        # On the simplex of the sizes, one coordinate exceeds s with chance (1 - s)**(d - 1).
        assert kstest((1 - np.abs(starts[:, j]) / sizes) ** (d - 1), "uniform").pvalue > 1e-4
        assert abs((starts[:, j] > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(4000)


# ---------------------------------------------------------------------- scikit-learn's contract

QUICK = {"n_steps": 20}
MODELS = [
    ADPScreen(loss="squared", **QUICK),
    ADPScreen(screen_at=5, **QUICK),
    ADPScreen(loss="squared", epsilon=INFINITY, screen_at="last", **QUICK),
    RNMScreen(**QUICK),
]


def test_the_loss_decides_what_the_model_is():
    classifier = ADPScreen(**QUICK)
    assert [is_classifier(classifier), is_regressor(classifier)] == [True, False]
    for regressor in (ADPScreen(loss="squared"), RNMScreen()):
        assert [is_classifier(regressor), is_regressor(regressor)] == [False, True]
        assert not hasattr(regressor, "predict_proba")
    X, y = data("logistic")
    named = classifier.fit(X, np.where(y, "yes", "no"))
    assert list(named.classes_) == ["no", "yes"]
    assert named.coef_.shape == (1, 8)
    assert named.certificate_.public["classes"] == ["no", "yes"]
    with pytest.raises(DataError, match="Only binary classification is supported"):
        classifier.fit(X, np.arange(60) % 3)
    assert "loss" not in RNMScreen().get_params()


def test_nothing_else_is_learned_from_data():
    for model in (ADPScreen(loss="squared", **QUICK), RNMScreen(**QUICK)):
        names = {name for name in vars(model.fit(*data())) if name.endswith("_")}
        assert names == {"coef_", "intercept_", "support_", "n_iter_", "certificate_", "n_features_in_"}


def test_seeds_reproduce_and_their_absence_does_not():
    X, y = data()
    for kind in (partial(ADPScreen, loss="squared"), RNMScreen):
        one, two = (kind(random_state=3, **QUICK).fit(X, y) for _ in range(2))
        assert np.array_equal(one.coef_, two.coef_)
        assert one.certificate_.seeded
        # Without noise the rule leaves the start alone, which no two runs share.
        one, two = (kind(epsilon_optimise=2.5, epsilon_screen=INFINITY, **QUICK).fit(X, y) for _ in range(2))
        assert not np.array_equal(one.coef_, two.coef_)
        assert not one.certificate_.seeded


@pytest.mark.parametrize("kind", [partial(ADPScreen, loss="squared"), RNMScreen])
def test_weights_stay_in_the_ball(kind):
    X, y = data()
    for seed in range(20):
        w = kind(n_steps=1 + seed, radius=2.0, random_state=seed).fit(X, y).coef_
        assert np.abs(w).sum() <= 2.0 * (1 + 1e-12)


class Untouchable:
    """Data that complain when they are looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"data were read: {name}")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (ADPScreen, {"epsilon": 0.0}),
        (ADPScreen, {"delta": 0.0}),
        (ADPScreen, {"screen_share": 0.0}),
        (ADPScreen, {"screen_share": 1.0}),
        (ADPScreen, {"screen_delta_share": -0.1}),
        (ADPScreen, {"epsilon_screen": -1.0, "epsilon_optimise": 1.0}),
        (ADPScreen, {"epsilon_optimise": None, "epsilon_screen": 1.0}),
        (ADPScreen, {"epsilon_screen": None, "epsilon_optimise": 1.0}),
        (ADPScreen, {"delta_optimise": None, "delta_screen": 1e-3}),
        (ADPScreen, {"delta_screen": 0.0, "delta_optimise": 0.1}),
        (ADPScreen, {"delta_screen": 1.0, "delta_optimise": 0.1}),
        (ADPScreen, {"delta_screen": 0.6, "delta_optimise": 0.4}),
        (ADPScreen, {"radius": 0.0}),
        (ADPScreen, {"radius": 601.0, "loss": "logistic"}),
        (RNMScreen, {"radius": 1.1e6}),
        (ADPScreen, {"n_steps": 0}),
        (ADPScreen, {"screen_at": "never"}),
        (ADPScreen, {"screen_at": 0}),
        (ADPScreen, {"screen_at": 1001}),
        (ADPScreen, {"screen_at": 2.5}),
        (ADPScreen, {"loss": "huber"}),
        (ADPScreen, {"gradient_bound": -1.0}),
        (ADPScreen, {"random_state": -1}),
        (RNMScreen, {"epsilon_screen": 0.0, "epsilon_optimise": 1.0}),
        (RNMScreen, {"delta_screen": 0.0, "delta_optimise": 1e-3}),
        (RNMScreen, {"n_steps": 2.5}),
        (RNMScreen, {"random_state": "x"}),
    ],
)
def test_bad_parameters_are_named_before_data_are_read(kind, changes):
    with pytest.raises(ParameterError, match=f"^{next(iter(changes))}=.*: expected .*; .*\\.$"):
        kind(**changes).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(("loss", "radius"), [("logistic", 600.0), ("squared", 1e6)])
def test_the_largest_balls_are_still_computed(loss, radius):
    model = ADPScreen(radius=radius, loss=loss, n_steps=5, random_state=0).fit(*data(loss))
    assert np.isfinite(model.coef_).all()
    assert 0.0 < model.certificate_.events[1].scale < INFINITY


# ---------------------------------------------------------------------- certificates


def certificates():
    X, y = data(n=300)
    return {
        "adp": ADPScreen(loss="squared", random_state=0, **QUICK).fit(X, y).certificate_,
        "adp every fifth": ADPScreen(loss="squared", screen_at=5, **QUICK).fit(X, y).certificate_,
        "logistic": ADPScreen(loss="logistic", **QUICK).fit(*data("logistic", n=300)).certificate_,
        "rnm": RNMScreen(**QUICK).fit(X, y).certificate_,
        "rnm small ball": RNMScreen(radius=2.0, **QUICK).fit(X, y).certificate_,
    }


CERTIFICATES = certificates()


PRINTED = {
    ADPScreen: {"epsilon_optimise": 2.5, "epsilon_screen": 2.5, "delta_optimise": 1 / 6000, "delta_screen": 1 / 6000},
    RNMScreen: {"epsilon_optimise": 4.9, "epsilon_screen": 0.1, "delta_optimise": 1 / 4000, "delta_screen": 1 / 12000},
}


@pytest.mark.parametrize("kind", PRINTED)
def test_epsilon_is_the_total_and_its_shares_are_those_of_the_papers(kind):
    given = QUICK | ({"loss": "squared"} if kind is ADPScreen else {})
    X, y = data()
    for epsilon in (0.5, 5.0):
        certificate = kind(epsilon=epsilon, delta=1e-4, **given).fit(X, y).certificate_
        assert (certificate.epsilon, certificate.delta) == (epsilon, 1e-4)
    # The papers' own parts are the default, to the bit, and add up to the claim.
    printed, shared = (kind(random_state=3, **given, **more).fit(X, y) for more in (PRINTED[kind], {}))
    assert np.array_equal(printed.coef_, shared.coef_)
    assert printed.certificate_.events == shared.certificate_.events
    assert printed.certificate_.epsilon == shared.certificate_.epsilon == 5.0
    parts = kind(**(PRINTED[kind] | {"epsilon_screen": 7.0, "delta_screen": 0.01}), **given).fit(X, y).certificate_
    assert parts.epsilon == PRINTED[kind]["epsilon_optimise"] + 7.0
    assert parts.delta == PRINTED[kind]["delta_optimise"] + 0.01
    # Another share moves noise from one part to the other.
    steps, screenings = kind(screen_share=0.9, **given).fit(X, y).certificate_.events
    assert steps.scale > shared.certificate_.events[0].scale
    assert screenings.scale < shared.certificate_.events[1].scale


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificates_say_claim_status_proof_and_errata(name):
    certificate = CERTIFICATES[name]
    assert (certificate.status, certificate.relation, certificate.epsilon) == ("as published", "zero-out", 5.0)
    assert certificate.delta == pytest.approx(1 / 3000)
    assert certificate.arithmetic == "float64"
    assert 5.0 < certificate.proved_epsilon < INFINITY or name == "logistic"
    text = str(certificate)
    assert "As published, NOT verified (epsilon = 5" in text
    assert all(erratum in text for erratum in certificate.errata)
    assert "every feature value lies in [-1, 1]" in certificate.assumptions
    target = "the set of labels is public" if name == "logistic" else "every target lies in [-radius, radius]"
    assert target in certificate.assumptions
    assert not any("[-1, 1]" in assumption for assumption in certificate.assumptions[1:])
    assert Certificate.from_json(certificate.to_json()) == certificate
    json.loads(certificate.to_json(), parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


def test_which_errata_concern_which_run():
    words = {
        "at least 5.8": {"adp", "adp every fifth"},
        "agree in its target": {"adp", "adp every fifth"},
        "exp(28.6)": {"rnm", "rnm small ball"},
        "loops over n scores": {"rnm", "rnm small ball"},
        "proved for half of that": {"rnm", "rnm small ball"},
        # 17.3 records in the root of 300: more than 4 * 2 + 1, fewer than 4 * 50 + 1.
        "even for the index alone": {"rnm small ball"},
        "what is proved of a score is": set(CERTIFICATES),
        "leaves out the radius": set(CERTIFICATES),
        "scale the features by values found in the data": set(CERTIFICATES),
        "drops the second-order term": set(CERTIFICATES),
        "not only by gradient_bound = 1": set(CERTIFICATES) - {"logistic"},
    }
    for text, names in words.items():
        assert {name for name, c in CERTIFICATES.items() if any(text in e for e in c.errata)} == names, text


@pytest.mark.parametrize("epsilons", [(INFINITY, 2.5), (2.5, INFINITY), (INFINITY, INFINITY)])
@pytest.mark.parametrize("kind", [partial(ADPScreen, loss="squared"), RNMScreen])
def test_half_the_noise_is_no_privacy(kind, epsilons):
    split = dict(zip(("epsilon_optimise", "epsilon_screen"), epsilons, strict=True))
    certificate = kind(**split, **QUICK).fit(*data()).certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("not private", INFINITY, 0.0)
    assert certificate.proved_epsilon is None
    without_noise = [isinstance(release.event, NotPrivateEvent) for release in certificate.events]
    assert without_noise == [math.isinf(epsilon) for epsilon in epsilons]
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_public_facts_are_those_of_the_settings():
    facts = dict(CERTIFICATES["adp every fifth"].public)
    expected = {"features": 8, "records": 300, "radius": 5.0, "n_steps": 20, "gradient_bound": 1.0}
    assert facts == expected | {"loss": "squared", "screen_at": 5}
    assert dict(CERTIFICATES["rnm"].public) == expected | {"radius": 50.0, "loss": "squared"}
