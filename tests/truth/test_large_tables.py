"""Large tables are fitted in few steps, and as well as in many: more rows never give a worse model."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from taciturn import SparseClassifier, SparseRegressor
from taciturn.methods import descent

N, D = 60_000, 20


@cache
def table(n):
    """Labels that depend on directions of second moments from 1 to 1/400, and their log-loss by maximum likelihood."""
    rng = np.random.default_rng(0)
    mixed = np.linalg.qr(rng.normal(size=(D, D)))[0] * np.geomspace(1.0, 0.05, D)
    # Drawn before the rows, so that tables of all sizes have one truth.
    weights = 0.6 * rng.normal(size=D) @ np.linalg.pinv(mixed)
    X = np.clip(rng.normal(size=(n, D)) @ mixed.T, -1.0, 1.0)
    y = (rng.logistic(size=n) < X @ weights).astype(int)
    return X, y, log_loss(y, LogisticRegression(C=1e6, max_iter=2000).fit(X, y).predict_proba(X))


def excess(n, epsilon=8.0, seeds=3):
    """The mean log-loss above that of maximum likelihood."""
    X, y, best = table(n)
    parameters = {"epsilon": epsilon, "x_bound": 1.0, "classes": (0, 1), "n_nonzero": "all"}
    fits = (SparseClassifier(random_state=seed, **parameters).fit(X, y) for seed in range(seeds))
    return float(np.mean([log_loss(y, fit.predict_proba(X)) - best for fit in fits]))


@pytest.fixture
def fewest_steps(monkeypatch):
    """As many steps as the largest tables have."""
    monkeypatch.setattr(descent, "MOST_STEPS", descent._STEPS_OF_LARGEST)


@pytest.fixture
def descents(monkeypatch):
    """Two classes are fitted by a descent, however tall the table is."""
    monkeypatch.setattr("taciturn.methods.sparse.plan._is_tall", lambda n_rows, width, mu: False)


def test_few_steps_fit_a_large_table_as_well_as_many(monkeypatch, request, descents):
    many = excess(N)
    request.getfixturevalue("fewest_steps")
    few = excess(N)
    assert few < 3.0 * many
    # The same momentum in all directions, and no more of it than up to 0.9, leaves the flat ones behind.
    monkeypatch.setattr(descent, "_momentum_for", lambda time, n_steps: min(1.0 - n_steps / time, 0.9))
    monkeypatch.setattr(descent.StepRule, "momentum_along", lambda self, c: np.full(c.shape, self.momentum))
    assert excess(N) > 2.0 * few


SIZES = (4000, 12_000, 36_000, 108_000)


def never_worse(found):
    return all(more < fewer for fewer, more in pairwise(found))


def fall_behind(monkeypatch):
    """With the same momentum in all directions, and steps that fall with the size of a table."""
    monkeypatch.setattr(descent, "_STEPS_OF_LARGE", 0)
    monkeypatch.setattr(descent, "_STEPS_OF_LARGEST", 1)
    monkeypatch.setattr(descent, "_momentum_for", lambda time, n_steps: min(1.0 - n_steps / time, 0.9))
    monkeypatch.setattr(descent.StepRule, "momentum_along", lambda self, c: np.full(c.shape, self.momentum))


@pytest.mark.slow
def test_more_rows_never_give_a_worse_model(monkeypatch, request):
    """From a descent to Newton steps, and by a descent alone, whose steps are those of tables fifty times as large."""
    monkeypatch.setattr(descent, "_MANY_ENTRIES", descent._MANY_ENTRIES / 50.0)
    monkeypatch.setattr(descent, "_MOST_ENTRIES", descent._MOST_ENTRIES / 50.0)
    found = [excess(n) for n in SIZES]
    assert never_worse(found), found
    request.getfixturevalue("descents")
    found = [excess(n) for n in SIZES]
    assert never_worse(found), found
    steps = [
        SparseClassifier(x_bound=1.0, classes=(0, 1), n_nonzero="all").fit(*table(n)[:2]).n_iter_ for n in (4000, N)
    ]
    assert steps == [descent._STEPS_OF_LARGE, descent._STEPS_OF_LARGEST]
    fall_behind(monkeypatch)
    found = [excess(n) for n in SIZES]
    assert not never_worse(found), found


@cache
def numbers(n):
    """Numbers that depend on directions as labels do, and their mean squared error by least squares."""
    X = table(n)[0]
    rng = np.random.default_rng(1)
    y = np.clip(X @ (0.1 * rng.normal(size=D)) + 0.1 * rng.normal(size=n), -1.0, 1.0)
    rows = np.column_stack((X, np.ones(n)))
    return X, y, rows, np.linalg.lstsq(rows, y, rcond=None)[0]


def excess_of_numbers(n, epsilon=8.0, seeds=3):
    """The mean squared distance from the predictions of least squares."""
    X, y, rows, best = numbers(n)
    parameters = {"epsilon": epsilon, "x_bound": 1.0, "y_bounds": (-1.0, 1.0), "n_nonzero": "all"}
    fits = (SparseRegressor(random_state=seed, **parameters).fit(X, y) for seed in range(seeds))
    return float(np.mean([np.mean((fit.predict(X) - rows @ best) ** 2) for fit in fits]))


@pytest.mark.slow
def test_more_rows_never_give_a_worse_regression(monkeypatch):
    """From a descent to whitened coordinates, and from many passes to five."""
    monkeypatch.setattr(descent, "_MANY_ENTRIES", descent._MANY_ENTRIES / 50.0)
    monkeypatch.setattr(descent, "_MOST_ENTRIES", descent._MOST_ENTRIES / 50.0)
    found = [excess_of_numbers(n) for n in SIZES]
    assert never_worse(found), found
    monkeypatch.setattr("taciturn.methods.sparse.estimator.plan_tall", lambda plan: None)
    fall_behind(monkeypatch)
    found = [excess_of_numbers(n) for n in SIZES]
    assert not never_worse(found), found
