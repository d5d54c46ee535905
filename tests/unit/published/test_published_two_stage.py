"""The two-stage method as published: both stages by their definition, and what the certificate admits."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from taciturn.core.errors import CertificateError, DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import ObjectivePerturbationEvent, PureEvent
from taciturn.privacy.certificate import Certificate
from taciturn.published.two_stage import TwoStage, TwoStageSelector, smallest_in_ball


def data(loss="squared", n=900, d=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    signal = 0.8 * X[:, 1] - 0.6 * X[:, 4]
    return X, signal > 0 if loss == "logistic" else np.clip(signal, -1, 1)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_both_stages_by_their_definition(loss):
    X, y = data(loss)
    epsilon, delta, k, radius = 3.0, 1e-5, 2, 0.7
    model = TwoStage(epsilon=epsilon, delta=delta, n_nonzero=k, radius=radius, loss=loss, random_state=7).fit(X, y)
    first = TwoStageSelector(epsilon=epsilon / 2, n_features_to_select=k, random_state=7).fit(X, y.astype(float))
    chosen = np.flatnonzero(first.support_)
    assert np.flatnonzero(model.support_).tolist() == chosen.tolist()
    # Algorithm 1 of Kifer et al., with the second half of epsilon.
    half = epsilon / 2
    slope, curvature = (math.sqrt(2), 0.5) if loss == "logistic" else (math.sqrt(2) * (math.sqrt(2) * radius + 1), 2.0)
    ridge, sigma = 2 * curvature / half, slope * math.sqrt(8 * math.log(2 / delta) + 4 * half) / half
    stream = Stream.of(7)
    stream.spawn("top-k")
    tilt = sigma * stream.spawn("objective").normals(k)
    table, target = X[:, chosen], y.astype(float)

    def objective(w):
        margins = table @ w
        losses = np.logaddexp(0, margins) - target * margins if loss == "logistic" else (margins - target) ** 2 / 2
        return losses.sum() + ridge / 2 * w @ w + tilt @ w

    inside = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
    reference = minimize(
        objective,
        np.zeros(k),
        method="SLSQP",
        constraints=[inside] if loss == "squared" else [],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.allclose(np.ravel(model.coef_)[chosen], reference.x, atol=1e-4)
    if loss == "squared":
        assert np.linalg.norm(model.coef_) <= radius * (1 + 1e-9)


def test_the_ball_binds_only_where_it_must():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.standard_normal((5, 3))
        hessian, right = root.T @ root + 0.1 * np.eye(3), 3 * rng.standard_normal(3)
        free = np.linalg.solve(hessian, right)
        assert np.allclose(smallest_in_ball(hessian, right, 1.01 * np.linalg.norm(free)), free)
        bound = smallest_in_ball(hessian, right, 0.5 * np.linalg.norm(free))
        assert np.linalg.norm(bound) == pytest.approx(0.5 * np.linalg.norm(free))
        # On the sphere the gradient points inwards along the radius.
        gradient = hessian @ bound - right
        assert gradient @ bound == pytest.approx(-np.linalg.norm(gradient) * np.linalg.norm(bound))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_the_certificate_admits(loss):
    model = TwoStage(n_nonzero=3, loss=loss, random_state=0).fit(*data(loss))
    certificate = model.certificate_
    assert certificate.status == "as published"
    assert (certificate.epsilon, certificate.delta, certificate.relation) == (1.0, 1e-6, "zero-out")
    first, second = certificate.events
    assert first.event == PureEvent(0.5)
    assert second.event.log_jacobian == pytest.approx(math.log(1.25))
    assert second.event.shift == pytest.approx(0.5 / math.sqrt(8 * math.log(2e6) + 2))
    assert isinstance(second.event, ObjectivePerturbationEvent)
    assert 0.5 < certificate.proved_epsilon < 1.0
    text = str(certificate)
    for words in ("NOT verified", "so that the claim holds", "slices of the list", "how the budget is split"):
        assert words in text
    assert ("a ball must be given" in text) == (loss == "squared")
    assert Certificate.from_json(certificate.to_json()) == certificate
    with pytest.raises(CertificateError, match="as published"):
        certificate.for_group(2)


def test_spending_the_whole_epsilon_twice_would_not_be_covered():
    """What a public implementation does: the same claim with the second stage at full epsilon."""
    from taciturn.accounting import epsilon_of

    honest = TwoStage(n_nonzero=3, loss="squared", random_state=0).fit(*data()).certificate_
    full = TwoStage(epsilon=2.0, n_nonzero=3, loss="squared", random_state=0).fit(*data()).certificate_.events[1]
    assert epsilon_of(honest.events[0].total + full.total, 1e-6) > 1.0


def test_without_noise_the_model_is_plain():
    X, y = data()
    model = TwoStage(epsilon=math.inf, n_nonzero=2, radius=5.0, loss="squared", random_state=0).fit(X, y)
    assert model.certificate_.status == "not private"
    chosen = np.flatnonzero(model.support_)
    assert chosen.tolist() == [1, 4]
    plain = np.linalg.lstsq(X[:, chosen], y, rcond=None)[0]
    assert np.allclose(model.coef_[chosen], plain, atol=1e-6)
    sparse = TwoStage(epsilon=math.inf, n_nonzero=2, radius=5.0, loss="squared", random_state=0).fit(
        sp.csr_matrix(X), y
    )
    assert np.allclose(sparse.coef_, model.coef_, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"alpha": 0.0}, "alpha"),
        ({"n_nonzero": 0}, "n_nonzero"),
        ({"radius": -1.0}, "radius"),
        ({"loss": "hinge"}, "loss"),
        ({"n_blocks": 0}, "n_blocks"),
    ],
)
def test_bad_parameters(parameters, name):
    with pytest.raises(ParameterError, match=f"^{name}="):
        TwoStage(**parameters).fit("not a table", None)


def test_two_classes_only():
    X, _ = data(n=60)
    with pytest.raises(DataError, match="Expected two classes"):
        TwoStage().fit(X, np.arange(60) % 3)
