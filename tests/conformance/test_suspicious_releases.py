"""Bounds and classes that released numbers speak against: told where they do not fit, and hardly ever where they do."""

import math
import warnings

import numpy as np
import pytest

from taciturn import SparseClassifier, SparseRegressor, SuspiciousReleaseWarning
from taciturn.mechanisms import PrivateQuantile
from taciturn.methods import diagnostics
from taciturn.methods.diagnostics import Diagnosis, crowds_at_ceiling, diagnose_counts, diagnose_mean, diagnose_shares
from taciturn.methods.sparse import run

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

BOUNDS = {"x_bound": 1.0, "y_bounds": (-1, 1)}


def classifier_warned(X, y, classes=("no", "yes"), *, epsilon=1.0, seed=0, **parameters):
    model = SparseClassifier(epsilon=epsilon, x_bound=1.0, classes=classes, random_state=seed, **parameters)
    return warned(model, X, y)


def regressor_warned(X, y, *, epsilon=1.0, seed=0, **parameters):
    return warned(SparseRegressor(epsilon=epsilon, **BOUNDS, random_state=seed, **parameters), X, y)


def warned(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SuspiciousReleaseWarning)
        model.fit(X, y)
    assert {warning.filename for warning in caught} <= {__file__}
    remarks = [release.what.partition(": it says that ")[2] for release in model.certificate_.events]
    # What is said is said on the certificate too, and what both halves of a fit say is told once.
    assert len({*remarks} - {""}) == len(caught)
    return [str(warning.message) for warning in caught]


def records(n, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    score = 0.6 * X[:, 0] - 0.4 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, np.clip(score, -1, 1), np.where(score > 0, "yes", "no")


# ------------------------------------------------------------------ whole fits


def test_the_mistakes_of_a_new_user_are_told():
    X, numbers, labels = records(8000)
    (message,) = classifier_warned(X, labels, ("No", "Yes"))
    assert message.startswith("classes=['No', 'Yes']: expected the labels that records have")
    assert "almost no record has a stated label" in message
    (message,) = classifier_warned(X, labels, ("No", "yes"), epsilon=3.0)
    assert "almost no record has the label 'No'" in message
    (message,) = classifier_warned(200.0 + 100.0 * X, labels)
    assert message.startswith("x_bound=1.0: ")
    assert "the released median row norm is at its ceiling" in message
    for target in (50.0 + numbers, -50.0 + numbers):
        (message,) = regressor_warned(X, target)
        assert message.startswith("y_bounds=(-1, 1): ")
        assert "the mean of the target, as released, says that most lie at or beyond them" in message
    (message,) = regressor_warned(X, 100.0 * numbers)
    assert "the median magnitude of the target, as released" in message


@pytest.mark.parametrize("parameters", [{"inference": True}, {"method": "one-shot"}, {"relation": "replace-one"}])
def test_every_strategy_tells(parameters):
    X, _, labels = records(8000, d=30)
    assert classifier_warned(X, labels, ("No", "Yes"), n_nonzero=2, **parameters)
    assert classifier_warned(200.0 + X, labels, n_nonzero=2, epsilon=3.0, **parameters)
    assert classifier_warned(X, labels, n_nonzero=2, **parameters) == []


def test_what_the_second_half_alone_says_is_told(monkeypatch):
    shares = []

    def of_the_second(what, codes, rates, deviation):
        shares.append(rates)
        return Diagnosis("labels", what) if len(shares) == 2 else None

    monkeypatch.setattr(run, "diagnose_shares", of_the_second)
    X, _, labels = records(2000, d=6)
    assert len(classifier_warned(X, labels, epsilon=4.0, n_nonzero=2, inference=True)) == 1
    assert len(shares) == 2


def test_without_privacy_and_with_given_clips_nothing_is_released_that_could_tell():
    X, numbers, labels = records(2000)
    assert classifier_warned(200.0 + X, labels, epsilon=math.inf) == []
    assert classifier_warned(200.0 + X, labels, row_bound=1.0, epsilon=3.0) == []
    assert regressor_warned(X, 100.0 * numbers, residual_clip=0.5, epsilon=3.0) == []


@pytest.mark.slow
def test_good_tables_raise_no_warning_at_any_budget():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, epsilon = int(rng.choice([300, 1500, 6000])), float(rng.choice([0.1, 0.5, 1.0, 4.0]))
        X, numbers, labels = records(n, d=int(rng.choice([6, 20])), seed=seed)
        # One class in twenty, sparse truth values, a target at the edge of its range.
        rare = np.where(rng.random(n) < 0.05, "yes", "no")
        flags = (rng.random(X.shape) < 0.3).astype(float)
        assert classifier_warned(X, labels, epsilon=epsilon, seed=seed) == []
        assert classifier_warned(flags, rare, epsilon=epsilon, seed=seed) == []
        assert regressor_warned(X, numbers, epsilon=epsilon, seed=seed) == []
        assert regressor_warned(flags, np.clip(0.6 + 0.3 * numbers, -1, 1), epsilon=epsilon, seed=seed) == []


# ------------------------------------------------------------------ the rules, by their laws


def chance_of_shares(shares, deviation, draws=200_000):
    rng = np.random.default_rng(0)
    noisy = np.asarray(shares) + deviation * rng.normal(size=(draws, len(shares)))
    codes = tuple(range(len(shares)))
    found = [diagnose_shares("it", codes, rates, deviation) for rates in noisy[:20_000]]
    return np.mean([each is not None and each.kind == "labels" for each in found])


@pytest.mark.parametrize("deviation", [0.2, 0.035, 0.01, 0.001])
def test_shares_of_classes(deviation):
    # Half of the records have a stated label: the probability is below 1e-9.
    assert chance_of_shares([0.25, 0.25], deviation) == 0.0
    power = chance_of_shares([0.0, 0.0], deviation)
    assert power == 0.0 if deviation == 0.2 else power > 0.99


def test_a_rule_without_regard_to_noise_would_raise_false_alarms(monkeypatch):
    monkeypatch.setattr(diagnostics, "_MOST_NOISE", math.inf)
    assert chance_of_shares([0.25, 0.25], 0.2) > 0.1


@pytest.mark.parametrize(("n_classes", "n_cells"), [(2, 4), (2, 80), (3, 240)])
def test_counts_of_scores(n_classes, n_cells):
    """By the heavier tails of geometric noise: with half of the records labelled, and with none."""
    rng = np.random.default_rng(0)
    noise = rng.geometric(0.1, (5000, n_cells)) - rng.geometric(0.1, (5000, n_cells))
    # So few records that the sum deviates by as much as the rule admits.
    deviation = float(noise.std())
    n_records = math.ceil(deviation * math.sqrt(n_cells) / 0.05)

    def chance(counts, n):
        return np.mean([diagnose_counts("it", each, deviation, n_classes, n) for each in counts])

    assert chance(noise + 0.5 * n_records / n_cells, n_records) == 0.0
    assert chance(noise, n_records) > 0.99
    assert chance(noise, n_records // 2) == 0.0


def test_one_class_that_hardly_occurs():
    assert diagnose_shares("it", (1, 0), np.array([0.4, 0.002]), 0.001) == Diagnosis("label", "it", (0,))
    assert diagnose_shares("it", (1, 0), np.array([0.4, 0.004]), 0.001) is None
    assert diagnose_shares("it", (0, 1, 2), np.array([0.4, 0.0, -0.01]), 0.004) == Diagnosis("label", "it", (1, 2))
    # With this much noise a rare class cannot be told from none.
    assert diagnose_shares("it", (1, 0), np.array([0.4, 0.002]), 0.01) is None


def test_means_of_targets():
    assert diagnose_mean("it", 0.97, 0.001) == diagnose_mean("it", -0.9, 0.018) == Diagnosis("target", "it")
    assert diagnose_mean("it", 0.9, 0.001) is None
    assert diagnose_mean("it", 1.1, 0.05) is None


def quantile(epsilon, prior=None):
    return PrivateQuantile((0.25, 0.5, 1.0), 0.5, "zero-out", epsilon, prior)


def chance_at_ceiling(mechanism, values):
    """The exact probability that the rule speaks up."""
    scores = mechanism.scores(values).astype(float) / (2.0 * mechanism.scale)
    law = np.exp(scores - scores.max())
    law /= law.sum()
    return sum(
        p for p, point in zip(law, mechanism.grid, strict=True) if crowds_at_ceiling(mechanism, point, len(values))
    )


@pytest.mark.parametrize("prior", [None, (-9.0, -1.0, 0.0)])
@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_the_law_of_the_rule_for_medians(n, prior):
    usual = np.repeat([0.2, 0.4, 0.9], [n // 2, n // 4, n // 4])
    crowded = np.full(n, 0.9)
    told = []
    for epsilon in np.geomspace(1e-3, 10.0, 60):
        mechanism = quantile(epsilon, prior)
        assert chance_at_ceiling(mechanism, usual) <= math.exp(-16.0) * (1.0 + 1e-6)
        power = chance_at_ceiling(mechanism, crowded)
        assert power == 0.0 or power > 1.0 - 1e-6
        told.append(power > 0.0)
    # From some budget on the rule tells, and that budget falls with the number of records.
    assert told == sorted(told)
    assert any(told)


def test_a_rule_that_trusts_every_release_would_raise_false_alarms(monkeypatch):
    monkeypatch.setattr(diagnostics, "_CERTAINTY", -math.inf)
    usual = np.repeat([0.2, 0.4, 0.9], [50, 25, 25])
    assert chance_at_ceiling(quantile(0.01), usual) > 0.2
