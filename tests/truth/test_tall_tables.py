"""Tall tables are fitted in a few passes: least squares, collinear columns included, and maximum likelihood."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from taciturn import SparseClassifier, SparseRegressor
from taciturn.engines import ArraySource
from taciturn.methods.inference.algebra import NormalDesign, Span
from taciturn.methods.inference.plan import InferencePlan
from taciturn.methods.releases import Releases
from taciturn.methods.sparse.plan import _FURTHER_VALUES, _MOST_VALUES
from taciturn.methods.sums import GramMatrix


def collinear(seed, n=20_000, rho=0.999):
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, n)) / 4
    X = np.clip(np.column_stack((first, rho * first + np.sqrt(1 - rho**2) * second)), -1, 1)
    y = np.clip(1.2 * X[:, 0] - 0.9 * X[:, 1] + 0.1 * rng.standard_normal(n), -1, 1)
    return X, y


def least_squares(X, y):
    return np.linalg.lstsq(np.column_stack((X, np.ones(len(X)))), y, rcond=None)[0]


def ratios(model, X, y):
    return model.fit(X, y).coef_ / least_squares(X, y)[:-1]


def make(**given):
    return SparseRegressor(**({"x_bound": 1.0, "y_bounds": (-1, 1), "epsilon": 30.0, "random_state": 0} | given))


@pytest.mark.parametrize("seed", range(3))
def test_nearly_collinear_columns_have_the_coefficients_of_least_squares(seed):
    X, y = collinear(seed)
    np.testing.assert_allclose(ratios(make(random_state=seed), X, y), 1.0, atol=0.05)


def test_a_descent_does_not_get_there():
    X, y = collinear(0)
    assert np.abs(ratios(make(method="two-phase"), X, y) - 1.0).max() > 0.1


def test_a_duplicate_shares_its_coefficient_evenly():
    X, y = collinear(0)
    X[:, 1] = X[:, 0]
    model = make(epsilon=5.0).fit(X, y)
    alone = least_squares(X[:, :1], y)[0]
    np.testing.assert_allclose(model.coef_, alone / 2, rtol=0.05)


def plan(n, p, epsilon, **given):
    X, y = np.zeros((n, p)), np.zeros(n)
    return make(epsilon=epsilon, n_nonzero="all", **given).plan_for(X, y)


def test_public_facts_choose_the_coordinates():
    assert isinstance(plan(100_000, 5, 1.0), InferencePlan)
    assert not plan(100_000, 5, 1.0).errors
    # Few records, another loss, stated bounds or a stated strategy: a descent.
    for other in (
        plan(2_000, 5, 1.0),
        plan(100_000, 5, 1.0, loss="huber", residual_clip=0.5),
        plan(100_000, 5, 1.0, residual_clip=0.5),
        plan(100_000, 5, 1.0, row_bound=1.0),
        plan(100_000, 5, 1.0, method="two-phase"),
        plan(100_000, 5, np.inf),
    ):
        assert not isinstance(other, InferencePlan)


def test_nothing_of_the_errors_is_released():
    X, y = collinear(1)
    model = make(epsilon=1.0).fit(X, y)
    assert model.certificate_.public["method"] == "whitened"
    assert model.certificate_.epsilon == 1.0
    assert not any("scores" in release.what for release in model.certificate_.events)
    assert not hasattr(model, "inference_")


# ---- Five passes over the records.


def counted(monkeypatch, model, X, y):
    """The fitted model, and how often its fit went through the records."""
    asked, total = [], ArraySource.total
    with monkeypatch.context() as patched:
        patched.setattr(ArraySource, "total", lambda source, task: (asked.append(task), total(source, task))[1])
        return model.fit(X, y), len(asked)


def passes(monkeypatch, X, y, **given):
    return counted(monkeypatch, make(n_nonzero="all", **given), X, y)


def tall(seed, n=150_000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    return X, np.clip(X @ np.array([0.3, -0.2, 0.1, 0.0, 0.2]) + 0.1 * rng.standard_normal(n), -1, 1)


def excess(model, X, y):
    """Mean squared error above that of least squares, in units of the latter."""
    best = np.mean((np.column_stack((X, np.ones(len(X)))) @ least_squares(X, y) - y) ** 2)
    return float(np.mean((model.predict(X) - y) ** 2) / best - 1.0)


def test_a_tall_table_is_read_five_times(monkeypatch):
    X, y = tall(0)
    model, n_passes = passes(monkeypatch, X, y, epsilon=1.0)
    assert n_passes == 5
    assert excess(model, X, y) < 1e-3
    # One after the other, the same sums take nine passes.
    monkeypatch.setattr(Releases, "ask_together", lambda releases, *asked: [releases.ask(each) for each in asked])
    assert passes(monkeypatch, X, y, epsilon=1.0)[1] == 9


def test_gradients_after_the_first_correct_what_noise_of_the_matrix_leaves(monkeypatch):
    # Columns that hardly vary around their means: noise hides how much in the first Gram matrix.
    rng = np.random.default_rng(0)
    X = np.clip(0.8 + 0.03 * rng.standard_normal((150_000, 4)), -1, 1)
    y = np.clip((X - 0.8) @ np.array([3.0, -2.0, 1.0, 2.0]) + 0.05 * rng.standard_normal(len(X)), -1, 1)
    model, n_passes = passes(monkeypatch, X, y, epsilon=1.0)
    assert n_passes == 5
    assert excess(model, X, y) < 2e-3
    # Without corrections the start stays.
    monkeypatch.setattr(Span, "inverse", property(lambda span: np.zeros((len(span.basis), len(span.basis)))))
    assert excess(passes(monkeypatch, X, y, epsilon=1.0)[0], X, y) > 2e-2


def test_partitions_give_the_same_bits(monkeypatch):
    X, y = tall(0)
    whole = make(epsilon=1.0, n_nonzero="all").fit(X, y)
    begin = ArraySource.__init__
    monkeypatch.setattr(ArraySource, "__init__", lambda *given, **named: begin(*given, **named, n_partitions=7))
    parts = make(epsilon=1.0, n_nonzero="all").fit(X, y)
    assert np.array_equal(parts.coef_, whole.coef_)
    assert parts.intercept_ == whole.intercept_


# ---- Two classes in twelve passes.

LABELLED = {"x_bound": 1.0, "classes": (0, 1), "n_nonzero": "all", "random_state": 0}


@cache
def labelled(kind, n=150_000):
    """Labels of which rows tell something, or nearly everything; rare levels, and directions from 1 to 1/20."""
    rng = np.random.default_rng(0)
    if kind == "levels":
        X = (rng.random((n, 8)) < np.geomspace(0.3, 0.004, 8)).astype(float)
        margins = X @ rng.normal(size=8) - 2.0
    else:
        mixed = np.linalg.qr(rng.normal(size=(5, 5)))[0] * np.geomspace(1.0, 0.05, 5)
        X = np.clip(rng.normal(size=(n, 5)) @ mixed.T, -1.0, 1.0)
        margins = X @ (0.6 * rng.normal(size=5) @ np.linalg.pinv(mixed))
        margins *= 12.0 / margins.std() if kind == "certain" else 1.0
    y = (rng.logistic(size=n) < margins).astype(int)
    return X, y, log_loss(y, LogisticRegression(C=1e6, max_iter=2000).fit(X, y).predict_proba(X))


def excess_loss(model, kind):
    X, y, best = labelled(kind)
    return log_loss(y, model.predict_proba(X)) - best


@pytest.mark.parametrize("kind", ["directions", "levels"])
def test_labels_of_a_tall_table_take_twelve_passes(monkeypatch, kind):
    X, y, _ = labelled(kind)
    model, n_passes = counted(monkeypatch, SparseClassifier(epsilon=4.0, **LABELLED), X, y)
    assert model.certificate_.public["method"] == "few passes"
    assert model.certificate_.epsilon == 4.0
    assert n_passes <= 12
    assert excess_loss(model, kind) < 1e-4
    # A descent has no more to say.
    with monkeypatch.context() as patched:
        patched.setattr("taciturn.methods.sparse.plan._is_tall", lambda *facts: False)
        descended, many = counted(monkeypatch, SparseClassifier(epsilon=4.0, **LABELLED), X, y)
    assert many > 40
    assert excess_loss(model, kind) < excess_loss(descended, kind) + 5e-5


def test_steps_by_the_information_end_where_those_of_normal_rows_do_not(monkeypatch):
    X, y, _ = labelled("levels")
    good = excess_loss(SparseClassifier(epsilon=4.0, **LABELLED).fit(X, y), "levels")
    # Curvature as if every label were uncertain makes steps that are too short.
    plain = GramMatrix.of_records
    monkeypatch.setattr(GramMatrix, "of_records", lambda task, block: plain(replace(task, coefficients=None), block))
    monkeypatch.setattr(NormalDesign, "solve", lambda design, theta, *given: theta)
    assert excess_loss(SparseClassifier(epsilon=4.0, **LABELLED).fit(X, y), "levels") > 10.0 * max(good, 1e-5)


def test_labels_that_are_nearly_certain_are_left_to_a_descent(monkeypatch):
    X, y, _ = labelled("certain")
    model, n_passes = counted(monkeypatch, SparseClassifier(epsilon=4.0, **LABELLED), X, y)
    assert n_passes > 12
    assert "in many steps" in str(model.certificate_.events)
    assert model.certificate_.epsilon == 4.0


def test_public_facts_choose_few_passes():
    def is_few(n, p, epsilon, **given):
        model = SparseClassifier(epsilon=epsilon, **LABELLED | given)
        return model.plan_for(np.zeros((n, p)), np.arange(n) % len(model.classes)).few_passes

    assert is_few(150_000, 5, 1.0)
    for other in (
        {"n": 5_000}, {"p": 200}, {"epsilon": math.inf}, {"method": "two-phase"}, {"row_bound": 1.0},
        {"classes": (0, 1, 2)}, {"n_nonzero": 2},
    ):  # fmt: skip
        assert not is_few(**{"n": 150_000, "p": 5, "epsilon": 1.0} | other)


def test_wide_tables_are_left_to_a_descent():
    """Two Gram matrices of so many columns would draw more noise than the plan announced, in the middle of a fit."""
    model = SparseClassifier(epsilon=10.0, **LABELLED)
    for p, is_few in ((1_000, True), (1_499, True), (1_500, False), (2_200, False)):
        facts = replace(model._public_facts(np.zeros((2, p)), np.arange(2)), n_records=12_000_000)
        plan = model.unadvised_plan(facts)
        assert plan.few_passes is is_few
        n_matrices, n_gradients, width = 2, 6, p + 1
        drawn = n_matrices * width * (width + 1) // 2 + n_gradients * width
        assert not is_few or drawn < _MOST_VALUES * width + _FURTHER_VALUES
    # Without the limit the plan of the last one would have announced too few.
    assert drawn > _MOST_VALUES * width + _FURTHER_VALUES


def test_weights_may_leave_little_of_a_tall_table():
    X, y, _ = labelled("directions")
    model = SparseClassifier(epsilon=4.0, weight_bound=1.0, **LABELLED)
    model.fit(X, y, sample_weight=np.full(len(y), 0.01))
    assert model.certificate_.public["method"] == "dense"


def test_partitions_give_the_same_bits_of_labels(monkeypatch):
    X, y, _ = labelled("directions")
    whole = SparseClassifier(epsilon=4.0, **LABELLED).fit(X, y)
    begin = ArraySource.__init__
    monkeypatch.setattr(ArraySource, "__init__", lambda *given, **named: begin(*given, **named, n_partitions=7))
    parts = SparseClassifier(epsilon=4.0, **LABELLED).fit(X, y)
    assert np.array_equal(parts.coef_, whole.coef_)
    assert np.array_equal(parts.intercept_, whole.intercept_)
