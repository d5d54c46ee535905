"""Every fit states how far its samplers are from their laws: what the certificate lists covers what was drawn."""

import math

import numpy as np
import pytest

import taciturn
from taciturn import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    HardThresholdClassifier,
    HardThresholdRegressor,
    ScreenedRegressor,
    SparseClassifier,
    SparseRegressor,
    SparsifiedRegressor,
    private_score,
)
from taciturn.accounting import Budget, PrivacyFilter
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.methods.descent import MOST_STEPS
from taciturn.methods.frank_wolfe.run import open_run
from taciturn.methods.sparse.plan import _FURTHER_VALUES, _MOST_VALUES, TUNING
from taciturn.privacy import mechanisms
from taciturn.privacy.budget import pieces_of

VALUE, STEP = 2.0**-118, 2.0**-110


@pytest.fixture
def drawn(monkeypatch):
    """How many Gaussian values were drawn, as a list of sizes."""
    sizes, exact = [], mechanisms.rounded_normals

    def counted(stream, size, log2_scale):
        sizes.append(size)
        return exact(stream, size, log2_scale)

    monkeypatch.setattr(mechanisms, "rounded_normals", counted)
    return sizes


def table(n=400, d=6):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n)


def listed(certificate):
    return pieces_of(certificate.event).distance


EXACTLY = [
    (HardThresholdRegressor(n_nonzero=2), 0),
    (HardThresholdRegressor(n_nonzero=2, n_steps=3, fit_intercept=False, step_size=0.5), 0),
    (HardThresholdRegressor(n_nonzero=2, mechanism="peeling"), 0),
    (HardThresholdClassifier(n_nonzero=2, classes=(0, 1, 2)), 0),
    (HardThresholdClassifier(n_nonzero=2, classes=(0, 1, 2), mechanism="peeling"), 0),
    (FrankWolfeRegressor(n_steps=25), 25),
    (FrankWolfeClassifier(n_steps=25, classes=(0, 1)), 25),
    (SparsifiedRegressor(n_steps=25, n_nonzero=2), 25),
    (ScreenedRegressor(n_steps=25, screen_at=6, rule="select"), 25),
    (ScreenedRegressor(n_steps=25, screen_at=6, rule="tested"), 25),
    (ScreenedRegressor(n_steps=25, screen_at=6, rule="adp"), 25),
    (FrankWolfeRegressor(n_steps=25, delta=0.0), 0),
    (ScreenedRegressor(n_steps=25, screen_at=6, delta=0.0), 0),
]


@pytest.mark.parametrize(("model", "n_steps"), EXACTLY, ids=str)
def test_plans_count_what_is_drawn(drawn, model, n_steps):
    X, y = table()
    if hasattr(model, "classes"):
        y = np.arange(y.size) % len(model.classes)
    certificate = model.fit(X, y).certificate_
    # Frank-Wolfe's steps are counted one by one, whether or not they take a sampler with a distance.
    assert listed(certificate) == pytest.approx(sum(drawn) * VALUE + n_steps * STEP, rel=1e-12)
    assert sum(drawn) > 0 or not isinstance(model, HardThresholdRegressor)


@pytest.mark.parametrize(("method", "n_nonzero"), [("auto", 3), ("one-shot", 3), ("two-phase", 3), ("auto", "auto")])
@pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])
def test_a_filter_counts_the_longest_way_in_advance(drawn, kind, n_nonzero, method):
    found = set()
    for seed in (0, 1):
        X, y = table(2000, 30)
        given = {"classes": (0, 1, 2)} if kind is SparseClassifier else {}
        y = np.digitize(y, (-0.3, 0.3)) if given else y
        drawn.clear()
        model = kind(n_nonzero=n_nonzero, method=method, epsilon=5.0, random_state=seed, **given).fit(X, y)
        assert 0 < sum(drawn) * VALUE <= listed(model.certificate_)
        found.add(round(listed(model.certificate_) / VALUE, 6))
    # The same whatever was drawn: so many per coefficient, and those of Gram matrices and of recalibration.
    assert found == {_MOST_VALUES * 31.0 * (3 if given else 1) + _FURTHER_VALUES}


def test_no_way_through_the_default_model_is_longer_than_that():
    """Two descents of two legs, each after a Gram matrix; correlations, means of columns and of the target, counts."""
    for n_features, n_outputs in ((1, 1), (30, 3), (10**6, 1)):
        steps = 4 * MOST_STEPS * n_outputs * (n_features + 1)
        sums = n_outputs * n_features + n_features + 2 * n_outputs
        grams, counts = TUNING.most_width * (TUNING.most_width + 1), 2 * TUNING.most_margin_bins
        assert steps + sums + grams + counts <= _MOST_VALUES * n_outputs * (n_features + 1) + _FURTHER_VALUES


def test_a_filter_refuses_more_values_than_were_announced():
    budget = PrivacyFilter(Budget(1.0, 1e-6), 10 * VALUE)
    budget.gaussian("sums", 0.25, count=2, distance=4 * VALUE)
    with pytest.raises(CertificateError, match=r"^distance=.*: expected at most the .* that is left of what was ann"):
        budget.gaussian("sums", 0.25, distance=3 * VALUE)
    assert budget.remaining == 0.75
    budget.gaussian("sums", 0.75, distance=2 * VALUE)
    assert math.fsum(spend.count * spend.event.distance for spend in budget.spent()) == pytest.approx(10 * VALUE)


def test_scores_count_their_values(drawn):
    X, y = table()
    labels = np.arange(y.size) % 3
    model = FrankWolfeClassifier(classes=(0, 1, 2), n_steps=3).fit(X, labels)
    for metric, n_values in (("accuracy", 1), ("balanced accuracy", 6)):
        # Geometric noise where it deviates less, which has no distance; Gaussian noise for a large delta.
        assert listed(private_score(model, X, labels, metric=metric, delta=1e-9).certificate) == 0.0
        drawn.clear()
        score = private_score(model, X, labels, metric=metric, epsilon=0.01, delta=0.4)
        assert listed(score.certificate) == sum(drawn) * VALUE == n_values * VALUE


@pytest.mark.parametrize("epsilon", [5e-324, 30.5, 74.0, 1e4])
@pytest.mark.parametrize(
    "name", [name for name in taciturn.__all__ if name.endswith(("Regressor", "Classifier", "Selector"))]
)
def test_finite_budgets_beyond_their_range_are_refused(name, epsilon):
    X, y = table(60, 12)
    y = (y > 0).astype(int) if name.endswith("Classifier") else y
    expected = r"^epsilon=.*: expected a number >= 1e-09 and at most 30 \(infinity switches privacy off\); .*"
    with pytest.raises(ParameterError, match=expected):
        getattr(taciturn, name)(epsilon=epsilon).fit(X, y)
    assert math.isinf(getattr(taciturn, name)(epsilon=math.inf).fit(X, y).certificate_.epsilon)


def test_noise_that_no_budget_asks_for_still_has_a_way():
    """Scores beyond the digits of doubles are weighed one by one; published claims get there."""
    from taciturn.data.design import Design
    from taciturn.losses import HuberLoss
    from taciturn.methods.frank_wolfe.run import PlainRun

    X, y = table(50, 3)
    target = np.rint(np.clip(y, -1, 1) * 2**16)
    kinds = [type(open_run(Design(X, 1.0), target, HuberLoss(0.5), 1.0, 4, 1, noise, 50)) for noise in (1e-14, 1.0)]
    assert kinds[0] is PlainRun
    assert kinds[1] is not PlainRun
