"""DP-IGHT does what its paper prints, and says what is wrong with it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from dp_accounting import gaussian_mechanism
from sklearn.base import is_classifier, is_regressor

import taciturn
from taciturn import Certificate
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.published.dpight import DPIGHT, printed_noise


def data(n=400, d=12, logistic=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
    signal = X[:, 2] - 0.8 * X[:, 7]
    return X, (signal > 0).astype(int) if logistic else signal


def as_printed(gradient, d, s, eta, T, sigma, stream):
    """Algorithm 1, line by line."""
    theta = [0.0] * d
    for _ in range(T):
        u = stream.normals(d)
        g = gradient(np.array(theta))
        moved = [theta[j] - eta * (g[j] + sigma * u[j]) for j in range(d)]
        top = sorted(range(d), key=lambda j: -abs(moved[j]))[:s]
        theta = [moved[j] if j in top else 0.0 for j in range(d)]
    return np.array(theta)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_iterates_are_those_of_the_printed_algorithm(loss, layout):
    X, y = data(logistic=loss == "logistic")
    n, T = len(y), 7

    def gradient(theta):
        margins = X @ theta
        residuals = margins - y if loss == "squared" else 1 / (1 + np.exp(-margins)) - y
        return X.T @ residuals / n

    # Remark 5.3, written out.
    sigma = math.sqrt(T * 0.7**2 / (n * (math.sqrt(math.log(1e4) + 2.0) - math.sqrt(math.log(1e4)))) ** 2)
    for seed in range(5):
        expected = as_printed(gradient, X.shape[1], 3, 2.5, T, sigma, Stream.of(seed).spawn("gradient"))
        model = DPIGHT(
            epsilon=2.0, delta=1e-4, gradient_bound=0.7, n_nonzero=3, n_steps=T, step_size=2.5, loss=loss,
            random_state=seed,
        ).fit(layout(X), y)  # fmt: skip
        assert np.allclose(np.ravel(model.coef_), expected, rtol=1e-10, atol=1e-12)
        assert model.support_.sum() == 3
        assert model.n_iter_ == T


def replaced_epsilon(noise, gradient_bound, n_rows, n_steps, delta):
    """By dp-accounting, from the definition: T releases of sensitivity 2 G / n."""
    multiplier = noise * n_rows / (2 * gradient_bound) / math.sqrt(n_steps)
    return gaussian_mechanism.get_epsilon_gaussian(multiplier, delta)


@pytest.mark.parametrize(
    ("variant", "delta", "stated", "true"),
    [
        ("theorem-5.2", 1e-5, 0.1, 0.090),
        ("theorem-5.2", 1e-5, 1.0, 1.084),
        ("theorem-5.2", 1e-5, 4.9, 6.04),
        ("corollary-5.8", 0.01, 2.0, 5.4),
        ("corollary-5.8", 0.01, 10.0, 64.0),
    ],
)
def test_what_the_printed_noise_truly_costs(variant, delta, stated, true):
    X, y = data(logistic=True)
    model = DPIGHT(epsilon=stated, delta=delta, loss="logistic", variant=variant, n_steps=20, random_state=0).fit(X, y)
    certificate = model.certificate_
    assert certificate.proved_epsilon == pytest.approx(true, rel=0.01)
    noise = printed_noise(variant, stated, delta, 1.0, 20, len(y))
    assert certificate.proved_epsilon == pytest.approx(replaced_epsilon(noise, 1.0, len(y), 20, delta), rel=1e-4)
    # For a missing record instead of a replaced one, the theorem's noise is enough.
    missing = replaced_epsilon(2.0 * noise, 1.0, len(y), 20, delta)
    assert (missing <= stated) == (variant == "theorem-5.2")


@pytest.mark.parametrize(("epsilon", "T", "sigma"), [(0.1, 100, 680.1), (1.0, 1000, 219.2), (4.9, 4000, 96.1)])
def test_noise_of_the_theorem_in_units_of_its_bound(epsilon, T, sigma):
    assert printed_noise("theorem-5.2", epsilon, 1e-5, 3.0, T, 50) * 50 / 3.0 == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "T", "sigma"), [(0.1, 100, 339.3), (1.0, 1000, 107.3), (4.9, 4000, 43.8)])
def test_noise_of_the_logistic_corollary_in_units_of_its_bound(epsilon, T, sigma):
    assert printed_noise("corollary-5.8", epsilon, 1e-5, 3.0, T, 50) * 50 / 3.0 == pytest.approx(sigma, rel=1e-3)


def test_the_linear_corollary_needs_an_oracle_and_proves_nothing():
    X, y = data()
    with pytest.raises(ParameterError, match="^oracle=None"):
        DPIGHT(variant="corollary-5.6", loss="squared").fit(X, y)
    oracle = (1.3, 0.2, 0.5)
    model = DPIGHT(variant="corollary-5.6", oracle=oracle, n_nonzero=4, loss="squared", random_state=0).fit(X, y)
    assert model.certificate_.proved_epsilon == math.inf
    assert any("this variant is not private" in text for text in model.certificate_.errata)
    variance = 2 * 0.5 * 10 * (math.sqrt(8) * 1.3 + 0.2 * math.log(400)) ** 2 * math.log(1e6) / (400 * 1.0) ** 2
    assert printed_noise("corollary-5.6", 1.0, 1e-6, 1.0, 10, 400, 4, oracle) ** 2 == pytest.approx(variance)


def test_certificates_state_claim_and_errata():
    X, y = data(logistic=True)
    certificate = DPIGHT(loss="logistic", random_state=0).fit(X, y).certificate_
    assert (certificate.status, certificate.epsilon, certificate.relation) == ("as published", 1.0, "replace-one")
    assert certificate.assumptions[0] == "no row is longer than gradient_bound"
    assert any("replaced record" in text for text in certificate.errata)
    assert not any("no Lipschitz constant" in text for text in certificate.errata)
    assert Certificate.from_json(certificate.to_json()) == certificate
    squared = DPIGHT(loss="squared", random_state=0).fit(*data()).certificate_
    assert any("no Lipschitz constant" in text for text in squared.errata)


def test_without_noise_it_recovers_the_signal():
    X, y = data(n=2000)
    model = DPIGHT(epsilon=math.inf, n_nonzero=2, n_steps=200, step_size=20.0, loss="squared").fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert np.allclose(model.coef_[[2, 7]], [1.0, -0.8])
    assert (model.certificate_.status, model.certificate_.proved_epsilon) == ("not private", None)


def test_the_loss_decides_what_it_is():
    assert is_regressor(DPIGHT(loss="squared"))
    assert is_classifier(DPIGHT())
    with pytest.raises(DataError, match="Only binary classification"):
        DPIGHT(loss="logistic").fit(data()[0], np.arange(400) % 3)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epsilon", 0.0),
        ("delta", 0.0),
        ("gradient_bound", -1.0),
        ("n_nonzero", 0),
        ("n_steps", 0),
        ("step_size", 0.0),
        ("loss", "hinge"),
        ("variant", "theorem 5.2"),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter, value):
    with pytest.raises(ParameterError, match=f"^{parameter}="):
        DPIGHT(**{parameter: value}).fit(*data())


@pytest.mark.parametrize(("variant", "loss"), [("corollary-5.6", "logistic"), ("corollary-5.8", "squared")])
def test_corollaries_are_about_one_loss(variant, loss):
    with pytest.raises(ParameterError, match="^loss="):
        DPIGHT(variant=variant, loss=loss, oracle=(1, 1, 1)).fit(*data(logistic=loss == "logistic"))


def test_it_is_not_in_the_main_namespace():
    assert "DPIGHT" not in taciturn.__all__
