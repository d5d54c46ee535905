"""The default converges to maximum likelihood (least squares) on its columns as the budget grows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from generators import GENERATORS, TASKS, Distance, measure, table
from sklearn.linear_model import LogisticRegression

from taciturn import SparseClassifier, SparseRegressor
from taciturn.methods.sparse import run as sparse_run
from taciturn.methods.sparse.run import Descent

INF = math.inf
# By how much a slope may differ from one.
SLOPES = {5.0: 0.12, 25.0: 0.05}
MOST_EXCESS = 0.006
# Of a mean probability, and of a mean prediction in the larger one of the target's mean and standard deviation.
MOST_MISSED, MOST_SHIFT = 0.012, 0.015
# What a fit without noise may differ by, in the largest coefficient.
CLOSE = 1e-4
# Seeds whose mean is judged where one is not enough: every bound is five standard errors or more from what is expected.
SEEDS = {25.0: {"skewed": 2, "one column": 8}, 5.0: {"one column": 16}}
# Noise lengthens coefficients of rare levels with three classes: their slope, 1.046 on average, is near its bound.
SEEDS_OF_RARE_LEVELS = 8


def tables(quick):
    """Every task with every generator; those that are not quick wait for the night."""
    pairs = [(task, name) for task in TASKS for name in GENERATORS]
    return pytest.mark.parametrize(
        ("task", "name"), [pytest.param(*pair, marks=() if quick(*pair) else pytest.mark.slow) for pair in pairs]
    )


def fit(task, name, epsilon, seed=0, n_nonzero="all"):
    """How far a fit lies from maximum likelihood on its columns."""
    drawn, best = table(name, task, seed)
    kind = SparseRegressor if task == "regress" else SparseClassifier
    state = 100 * list(GENERATORS).index(name) + seed
    model = kind(epsilon=epsilon, n_nonzero=n_nonzero, random_state=state, **drawn.public).fit(drawn.X, drawn.y)
    assert model.support_.sum() == (drawn.X.shape[1] if n_nonzero == "all" else n_nonzero)
    return measure(model, drawn, best)


def faults(task, name, epsilon, n_seeds=1, n_nonzero="all"):
    """Which of the means over seeds are beyond their bounds."""
    found = Distance(*np.mean([fit(task, name, epsilon, seed, n_nonzero) for seed in range(n_seeds)], axis=0))
    beyond = {
        "slope": abs(found.slope - 1.0) > SLOPES[epsilon],
        "coef_slope": abs(found.coef_slope - 1.0) > SLOPES[epsilon],
        "excess": found.excess > MOST_EXCESS,
        "mean": abs(found.mean) > (MOST_SHIFT if task == "regress" else MOST_MISSED),
    }
    return {fault: float(getattr(found, fault)) for fault, is_beyond in beyond.items() if is_beyond}


def shut_clips(monkeypatch):
    """Clip derivatives at one half and residuals near their median, whatever the budget, and recalibrate nothing."""

    def largest_derivative(descent, rule, size):
        return min(size, 0.05) if descent.plan.regression else 0.5

    sound = Descent.clipping

    def clipping(descent, model, bound, derivative_bound):
        return sound(descent, model, bound, derivative_bound if descent.plan.regression else 0.5)

    monkeypatch.setattr(Descent, "_largest_derivative", largest_derivative)
    # Newton steps of tall tables of two classes clip nothing else.
    monkeypatch.setattr(Descent, "clipping", clipping)
    # Tall regressions are estimated in whitened coordinates, with clips of their own.
    monkeypatch.setattr("taciturn.methods.inference.run._Estimation._residual_room", lambda *facts: 0.2)
    monkeypatch.setattr(sparse_run, "recalibration_share", lambda *facts: 0.0)


@tables(quick=lambda task, name: task != "three classes")
def test_fits_at_a_large_budget_are_maximum_likelihood(task, name, monkeypatch):
    rare = (task, name) == ("three classes", "one-hot Zipf")
    assert not faults(task, name, 25.0, SEEDS_OF_RARE_LEVELS if rare else SEEDS[25.0].get(name, 1))
    shut_clips(monkeypatch)
    assert faults(task, name, 25.0)


@tables(quick=lambda task, name: False)
def test_fits_at_a_moderate_budget_are_near_maximum_likelihood(task, name, monkeypatch):
    assert not faults(task, name, 5.0, SEEDS[5.0].get(name, 6))
    shut_clips(monkeypatch)
    assert faults(task, name, 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [5.0, 25.0])
@pytest.mark.parametrize("name", list(GENERATORS))
def test_descents_of_tall_tables_are_near_maximum_likelihood(name, epsilon, monkeypatch):
    monkeypatch.setattr("taciturn.methods.sparse.plan._is_tall", lambda n_rows, width, mu: False)
    assert not faults("classify", name, epsilon, SEEDS[epsilon].get(name, 6))
    shut_clips(monkeypatch)
    assert faults("classify", name, epsilon)


@pytest.mark.parametrize("task", ["regress", pytest.param("classify", marks=pytest.mark.slow)])
def test_fits_of_chosen_columns_are_maximum_likelihood_on_these(task, monkeypatch):
    # Most rows are zero in all five.
    assert not faults(task, "one-hot Zipf", 25.0, n_nonzero=5)
    shut_clips(monkeypatch)
    assert faults(task, "one-hot Zipf", 25.0, n_nonzero=5)


@pytest.mark.parametrize(
    ("name", "n_nonzero", "n_seeds"), [("skewed", "all", 2), pytest.param("one-hot Zipf", 5, 3, marks=pytest.mark.slow)]
)
def test_bins_of_margins_weigh_what_they_hold(name, n_nonzero, n_seeds, monkeypatch):
    """Rows of zeros have one bin, and margins beyond the reach the outer ones: neighbours say nothing of these."""

    def missed():
        slopes = [fit("classify", name, 25.0, seed, n_nonzero).slope for seed in range(n_seeds)]
        return np.abs(np.subtract(slopes, 1.0)).mean()

    assert missed() < 0.03
    monkeypatch.setattr(sparse_run, "TUNING", replace(sparse_run.TUNING, clear_bin=INF))
    assert missed() > 0.05


@tables(quick=lambda task, name: task != "three classes" and name == "one column")
def test_fits_without_noise_equal_maximum_likelihood(task, name, monkeypatch):
    assert fit(task, name, INF).largest <= CLOSE
    if name == "one column":
        shut_clips(monkeypatch)
        assert fit(task, name, INF).largest > 100 * CLOSE


def test_a_rare_class_is_fitted_to_its_end(monkeypatch):
    """One record in two hundred: curvature is small, and steps that rely on a quarter of it are short."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, (20_000, 1))
    y = (rng.logistic(size=20_000) < 2.0 * x[:, 0] - 6.0).astype(int)
    assert 50 < y.sum() < 200
    best = LogisticRegression(C=INF, tol=1e-10, max_iter=1000).fit(x, y).coef_[0, 0]

    def missed():
        return abs(SparseClassifier(epsilon=INF, n_nonzero="all", classes=(0, 1)).fit(x, y).coef_[0, 0] / best - 1.0)

    assert missed() < CLOSE
    monkeypatch.setattr("taciturn.methods.descent._MOST_MOMENTUM", 0.0)
    assert missed() > 100.0 * CLOSE
